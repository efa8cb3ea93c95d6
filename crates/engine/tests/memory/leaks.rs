//! Reports name owners; errors say who has the memory.

use super::{SPACES, backend, limits, roomy, stats, take};
use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tapeloop_engine::ErrorKind;
use tapeloop_engine::backend::Space;
use tapeloop_engine::memory::{Pool, PoolConfig};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

#[test]
fn a_report_has_a_line_for_each_owner_the_largest_first() {
    let pool = Pool::new(backend(), roomy());
    let _atoms = [
        pool.device::<f32>(1000, "atoms").unwrap(),
        pool.device::<f32>(1000, "atoms").unwrap(),
    ];
    let _staging = pool.pinned::<u8>(300, format!("reader {}", 7)).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    let _young = pool.device::<u8>(300, "atoms").unwrap();
    drop(pool.device::<u8>(1 << 20, "gone").unwrap());

    let report = pool.leaks();
    let lines: Vec<_> = report
        .lines
        .iter()
        .map(|line| (line.owner.as_deref(), line.space, line.buffers, line.bytes))
        .collect();
    let expected = [
        (Some("atoms"), Space::Device, 3, 2 * 4096 + 320),
        (Some("reader 7"), Space::Pinned, 1, 320),
    ];
    assert_eq!(lines, expected);
    assert!(report.lines[0].oldest.unwrap() >= Duration::from_millis(20));
    assert_eq!((report.buffers(), report.bytes()), (4, 2 * 4096 + 640));
    let text = report.to_string();
    assert!(text.contains("4 buffers") && text.contains("atoms"));
    assert!(text.contains("8512 B device"), "{text}");
}

#[test]
fn without_tracking_a_report_has_sums_alone() {
    let mut config = roomy();
    config.tracking = false;
    let pool = Pool::new(backend(), config);
    let _buffers = SPACES.map(|space| take(&pool, space, 100, "me").unwrap());
    let report = pool.leaks();
    assert_eq!(report.lines.len(), 2);
    assert!(
        report
            .lines
            .iter()
            .all(|line| line.owner.is_none() && line.bytes == 256)
    );
    assert!(report.lines.iter().all(|line| line.oldest.is_none()));
    assert!(report.to_string().contains("not tracked"));
}

#[test]
fn memory_that_runs_out_says_who_has_it_and_what_helps() {
    for space in SPACES {
        let mut config = roomy();
        limits(&mut config, space).bytes_max = Some(10_000);
        let pool = Pool::new(backend(), config);
        let _held = take(&pool, space, 6000, "model").unwrap();
        let viewed = take(&pool, space, 1000, "view").unwrap();
        let _view = viewed.view();
        drop(viewed);
        let error = take(&pool, space, 5000, "reader").err().unwrap();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        let name = space.name();
        let text = error.to_string();
        for part in [
            &format!("{name} buffer of reader: an allocation of 5120 bytes does not fit"),
            "the pool's 10000 bytes: 6144 are in use, 1024 parked; 1 buffers of 6144 bytes",
            &format!("\n  model                              6144 B {name}, buffers: 1"),
            &format!("(fix: drop buffers, or raise bytes_max of {name} memory)"),
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
        assert_eq!(stats(&pool, space).refused, 1);
    }
}

#[test]
fn a_buffer_of_no_elements_or_too_many_is_refused() {
    let pool = Pool::new(backend(), roomy());
    for len in [0, usize::MAX, usize::MAX / 4] {
        let error = pool.device::<f32>(len, "me").err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
    assert_eq!(pool.stats().device.allocations(), 0);
}

/// Takes down what is logged.
#[derive(Default)]
struct Log(Mutex<String>);

impl Visit for &Log {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        writeln!(self.0.lock().unwrap(), "{field}: {value:?}").unwrap();
    }
}

struct Logger(Arc<Log>);

impl Subscriber for Logger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut &*self.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn buffers_outlive_their_pool_which_warns_of_them() {
    let log = Arc::new(Log::default());
    tracing::subscriber::with_default(Logger(Arc::clone(&log)), || {
        let clean = Pool::new(backend(), PoolConfig::development());
        drop(clean.device::<u8>(100, "gone").unwrap());
        drop(clean);
        assert_eq!(*log.0.lock().unwrap(), "");

        let pool = Pool::new(backend(), PoolConfig::development());
        let mut leaked = take(&pool, Space::Device, 3000, "culprit").unwrap();
        let another = pool.clone();
        drop(pool);
        assert_eq!(*log.0.lock().unwrap(), "", "one handle is left");
        drop(another);
        leaked.fill(3);
        assert_eq!(leaked.get(), vec![3; 3000]);
    });
    let text = log.0.lock().unwrap().clone();
    assert!(text.contains("dropped before its buffers"), "{text}");
    assert!(
        text.contains("culprit") && text.contains("3072 B device"),
        "{text}"
    );
}
