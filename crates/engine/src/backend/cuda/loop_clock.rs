//! When the batches of loops began and ended, on the host's clock.
//!
//! A loop reads the device's clock at both ends of a batch. The host rang before the first moment,
//! and saw the batch done after the second, so each batch bounds the difference of the two clocks,
//! without a call to the driver. The bounds of batches are intersected. They widen with time, as
//! the clocks drift.

use parking_lot::Mutex;

/// How far the clocks may drift apart, in nanoseconds for each millisecond: 100 ppm, more than two quartz
/// clocks differ by. If some do all the same, the bounds come to exclude each other, and [`Bounds::meet`]
/// takes the newest.
const DRIFT_NS_PER_MS: u64 = 100;

/// The moments of a batch, in nanoseconds.
pub(super) struct BatchTimes {
    /// Before the host rang, on its clock.
    pub(super) rung_ns: u64,
    /// When the batch began, on the device's clock.
    pub(super) begun_ns: u64,
    /// When it ended, on the device's clock.
    pub(super) ended_ns: u64,
    /// After the host saw it done, on its clock.
    pub(super) seen_ns: u64,
}

/// What is known of the difference of the clocks.
#[derive(Default)]
pub(super) struct LoopClock(Mutex<Option<Bounds>>);

/// Bounds on how far the host's clock is ahead of the device's, in nanoseconds.
#[derive(Clone, Copy)]
struct Bounds {
    least: i64,
    most: i64,
    /// When this was so, on the host's clock.
    at_ns: u64,
}

impl Bounds {
    fn new(batch: &BatchTimes) -> Bounds {
        // The clocks have other origins, and a difference fits all the same.
        let ahead = |host: u64, device: u64| host.wrapping_sub(device) as i64;
        Bounds {
            least: ahead(batch.rung_ns, batch.begun_ns),
            most: ahead(batch.seen_ns, batch.ended_ns),
            at_ns: batch.seen_ns,
        }
    }

    /// What both say; `newer` alone if they exclude each other, since a clock was set or drifts by more
    /// than [`DRIFT_NS_PER_MS`].
    fn meet(self, newer: Bounds) -> Bounds {
        // Multiplied first and rounded up: most batches of a loop are less than 1 ms apart, and their
        // drifts add up.
        let apart_ns = newer.at_ns.abs_diff(self.at_ns);
        let drift = apart_ns.saturating_mul(DRIFT_NS_PER_MS).div_ceil(1_000_000);
        let drift = drift.min(i64::MAX as u64) as i64;
        let both = Bounds {
            least: newer.least.max(self.least.saturating_sub(drift)),
            most: newer.most.min(self.most.saturating_add(drift)),
            at_ns: newer.at_ns,
        };
        if both.least <= both.most { both } else { newer }
    }
}

impl LoopClock {
    /// When a batch began and ended on the host's clock: in this order, and between the host's
    /// moments, by the middle of the bounds. Narrows the bounds by this batch, for later ones too.
    pub(super) fn convert(&self, batch: &BatchTimes) -> (u64, u64) {
        let bounds_of_batch = Bounds::new(batch);
        let mut so_far = self.0.lock();
        let bounds = so_far.map_or(bounds_of_batch, |before| before.meet(bounds_of_batch));
        *so_far = Some(bounds);
        let ahead = bounds.least + bounds.most.wrapping_sub(bounds.least) / 2;
        let host = |device_ns: u64| {
            let ns = device_ns.wrapping_add_signed(ahead);
            ns.clamp(batch.rung_ns, batch.seen_ns)
        };
        (host(batch.begun_ns), host(batch.ended_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch from 1000 to 3000 ns after `at` by the host, of a device that is behind by `behind`.
    fn batch(start: u64, before: u64, after: u64, behind: u64) -> BatchTimes {
        BatchTimes {
            rung_ns: start + 1_000 - before,
            begun_ns: (start + 1_000).wrapping_sub(behind),
            ended_ns: (start + 3_000).wrapping_sub(behind),
            seen_ns: start + 3_000 + after,
        }
    }

    #[test]
    fn batches_close_in_on_the_difference_of_the_clocks() {
        // A clock that started long before, or after.
        for behind in [0, 77, 5_u64.wrapping_sub(1 << 60), 1 << 60] {
            let clock = LoopClock::default();
            let (begun, ended) = clock.convert(&batch(0, 1_000, 9_000, behind));
            assert_eq!(ended - begun, 2_000);
            assert_eq!(begun, 1_000 + 4_000, "the middle of what the batch says");
            clock.convert(&batch(0, 900, 100, behind));
            let (begun, ended) = clock.convert(&batch(10_000, 100, 9_000, behind));
            // The bounds that were known have widened by 2 ns.
            assert_eq!((begun, ended), (11_001, 13_001));
        }
    }

    #[test]
    fn times_lie_between_the_host_s_moments_whatever_the_clocks_do() {
        let clock = LoopClock::default();
        clock.convert(&batch(0, 10, 10, 0));
        // The device's clock was set.
        let jumped = batch(10_000, 500, 500, 1 << 40);
        let (begun, ended) = clock.convert(&jumped);
        assert!(jumped.rung_ns <= begun && begun <= ended && ended <= jumped.seen_ns);
        // The device's clock has coarse steps: the batch seems longer than it was.
        let coarse = BatchTimes {
            rung_ns: 50_000,
            begun_ns: 50_000,
            ended_ns: 52_000,
            seen_ns: 51_500,
        };
        let (begun, ended) = clock.convert(&coarse);
        assert!(coarse.rung_ns <= begun && begun <= ended && ended <= coarse.seen_ns);
    }

    #[test]
    fn what_was_known_counts_less_as_clocks_drift() {
        let clock = LoopClock::default();
        clock.convert(&batch(0, 0, 0, 500));
        let second_ns = 1_000_000_000;
        // Some 50 us more than a second later the clocks differ by up to 100,005 ns more or less.
        let (begun, _) = clock.convert(&batch(second_ns, 300_000_000, 50_000, 500));
        assert_eq!(begun, second_ns + 1_000 - 25_003);
    }

    #[test]
    fn what_was_known_counts_less_after_many_batches_that_are_less_than_a_millisecond_apart() {
        let clock = LoopClock::default();
        clock.convert(&batch(0, 0, 0, 500));
        // Each of these batches alone allows 600 us.
        for number in 1..=10 {
            clock.convert(&batch(number * 500_000, 300_000, 300_000, 500));
        }
        let bounds = clock.0.lock().expect("there were batches");
        // 5.3 ms after the first batch, which allowed one value.
        assert_eq!(bounds.most - bounds.least, 2 * 530);
    }
}
