//! Every setting has an effect, on the kind of memory that it is for.

use super::{SPACES, backend, limits, roomy, stats, take};
use std::time::{Duration, Instant};
use tapeloop_engine::backend::Space;
use tapeloop_engine::memory::{Pool, PoolConfig};

/// What a fixed sequence of calls shows.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    /// Of the backend.
    allocations: u64,
    /// Whether a fourth buffer was to be had.
    fourth: bool,
    owner_is_named: bool,
    /// What a reused allocation holds.
    contents: u8,
    /// What is free once all are dropped.
    cached_bytes: u64,
    /// What is still after 10 s.
    cached_bytes_later: u64,
}

/// Takes three buffers twice, then a fourth.
fn run(config: PoolConfig, space: Space) -> Seen {
    let backend = backend();
    let pool = Pool::new(backend.clone(), config);
    let three = || (0..3).map(|_| take(&pool, space, 1000, "me").unwrap());
    let mut first: Vec<_> = three().collect();
    first.iter_mut().for_each(|buffer| buffer.fill(7));
    drop(first);
    let again: Vec<_> = three().collect();
    let contents = again[0].get()[0];
    let fourth = take(&pool, space, 1000, "me");
    let owner_is_named = pool.leaks().to_string().contains("me");
    let fourth_was_had = fourth.is_ok();
    drop((again, fourth));
    let cached_bytes = stats(&pool, space).cached_bytes;
    pool.trim(Instant::now() + Duration::from_secs(10));
    Seen {
        allocations: backend.driver_calls().allocations,
        fourth: fourth_was_had,
        owner_is_named,
        contents,
        cached_bytes,
        cached_bytes_later: stats(&pool, space).cached_bytes,
    }
}

const ROOMY: Seen = Seen {
    allocations: 4,
    fourth: true,
    owner_is_named: true,
    contents: 7,
    cached_bytes: 4096,
    cached_bytes_later: 4096,
};

type Knob = (&'static str, fn(&mut PoolConfig, Space), Seen);

const OF_ONE_SPACE: &[Knob] = &[
    (
        "bytes_max",
        |config, space| limits(config, space).bytes_max = Some(3 * 1024 + 1023),
        Seen {
            allocations: 3,
            fourth: false,
            cached_bytes: 3072,
            cached_bytes_later: 3072,
            ..ROOMY
        },
    ),
    (
        "cached_max_per_class",
        |config, space| limits(config, space).cached_max_per_class = 1,
        Seen {
            allocations: 3 + 2 + 1,
            cached_bytes: 1024,
            cached_bytes_later: 1024,
            ..ROOMY
        },
    ),
    (
        "idle_trim, later",
        |config, space| limits(config, space).idle_trim = Duration::from_secs(9),
        Seen {
            cached_bytes_later: 0,
            ..ROOMY
        },
    ),
    (
        "idle_trim, at once",
        |config, space| {
            limits(config, space).idle_trim = Duration::ZERO;
            // New allocations are zeroed, so this tells them from old ones.
            config.fill = Some(1);
        },
        Seen {
            allocations: 3 + 3 + 1,
            contents: 1,
            cached_bytes: 0,
            cached_bytes_later: 0,
            ..ROOMY
        },
    ),
];

const OF_BOTH: &[Knob] = &[
    (
        "tracking",
        |config, _| config.tracking = false,
        Seen {
            owner_is_named: false,
            ..ROOMY
        },
    ),
    (
        "fill",
        |config, _| config.fill = Some(0xee),
        Seen {
            contents: 0xee,
            ..ROOMY
        },
    ),
];

#[test]
fn every_knob_has_its_effect_on_both_kinds_of_memory() {
    for space in SPACES {
        assert_eq!(run(roomy(), space), ROOMY, "{space:?}");
        for (name, turn, seen) in OF_ONE_SPACE.iter().chain(OF_BOTH) {
            let mut config = roomy();
            turn(&mut config, space);
            assert_eq!(run(config, space), *seen, "{name} of {space:?}");
        }
    }
}

#[test]
fn the_limits_of_one_kind_leave_the_other_alone() {
    for (space, other) in [SPACES, [SPACES[1], SPACES[0]]].map(|[a, b]| (a, b)) {
        for (name, turn, _) in OF_ONE_SPACE {
            let mut config = roomy();
            turn(&mut config, other);
            config.fill = None;
            assert_eq!(run(config, space), ROOMY, "{name} of {other:?}");
        }
    }
}

#[test]
fn presets_differ_in_what_they_do() {
    let (development, production, testing) = (
        PoolConfig::development(),
        PoolConfig::production(),
        PoolConfig::testing(),
    );
    for space in SPACES {
        let bytes_max = |mut config: PoolConfig| limits(&mut config, space).bytes_max;
        assert!(bytes_max(testing).unwrap() < bytes_max(development).unwrap());
        assert_eq!(bytes_max(production), None);

        let used = |config| run(config, space);
        let ordinary = Seen {
            allocations: 4,
            cached_bytes_later: 0,
            ..ROOMY
        };
        assert_eq!(used(development), ordinary);
        let quiet = Seen {
            owner_is_named: false,
            ..ROOMY
        };
        assert_eq!(used(production), quiet);
        let strict = Seen {
            allocations: 7,
            contents: 0xff,
            cached_bytes: 0,
            cached_bytes_later: 0,
            ..ROOMY
        };
        assert_eq!(used(testing), strict);

        let kept = |config| {
            let pool = Pool::new(backend(), config);
            let buffer = |_| take(&pool, space, 300, "me").unwrap();
            drop((0..70).map(buffer).collect::<Vec<_>>());
            stats(&pool, space).cached_bytes / 320
        };
        assert_eq!([development, production, testing].map(kept), [4, 64, 0]);
    }
}

#[test]
fn the_longest_free_make_room_and_only_if_that_helps() {
    for space in SPACES {
        let mut config = roomy();
        limits(&mut config, space).bytes_max = Some(4096);
        let pool = Pool::new(backend(), config);
        for len in [256, 512, 1024] {
            drop(take(&pool, space, len, "me").unwrap());
        }
        let _kept = take(&pool, space, 2048 + 512, "me").unwrap();
        let after = stats(&pool, space);
        assert_eq!(
            (after.cached_bytes, after.trims),
            (1024 + 512, 1),
            "{space:?}"
        );

        assert!(take(&pool, space, 2048, "me").is_err());
        let refused = stats(&pool, space);
        assert_eq!((refused.cached_bytes, refused.refused), (1024 + 512, 1));

        assert_eq!(pool.clear(), 1024 + 512);
        assert_eq!(stats(&pool, space).held_bytes(), 2560);
    }
}

#[test]
fn allocations_are_idle_from_when_they_came_free() {
    let idle = Duration::from_millis(20);
    for space in SPACES {
        let mut config = roomy();
        limits(&mut config, space).idle_trim = idle;
        let pool = Pool::new(backend(), config);
        let buffer = take(&pool, space, 256, "me").unwrap();
        std::thread::sleep(idle);
        let before = Instant::now();
        drop(buffer);
        assert_eq!(pool.trim(before + idle - Duration::from_nanos(1)), 0);
        assert_eq!(pool.trim(Instant::now() + idle), 256);

        // Without a call to trim, taking a buffer finds out, and so does a drop.
        let idle_allocation = || {
            drop(take(&pool, space, 256, "me").unwrap());
            std::thread::sleep(idle);
        };
        idle_allocation();
        let held = take(&pool, space, 1000, "me").unwrap();
        assert_eq!(stats(&pool, space).trims, 2);
        idle_allocation();
        drop(held);
        assert_eq!(stats(&pool, space).trims, 3);
    }
}
