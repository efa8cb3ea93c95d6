//! Times on the device, converted to the host's clock.

use std::sync::OnceLock;
use std::time::Instant;

/// How many timestamps a slot has.
pub const TIMESTAMPS: usize = 4;

/// When the device last reached each of a slot's timestamps, in nanoseconds of [`host_ns`];
/// `None` for one that it never reached.
pub type Timestamps = [Option<u64>; TIMESTAMPS];

/// The timestamps of a batch of which only the beginning and the end are known. All of it counts as
/// kernels.
pub fn of_whole_batch(begun: u64, ended: u64) -> Timestamps {
    [begun, begun, ended, ended].map(Some)
}

/// A moment on the host's monotonic clock, in nanoseconds since the first call in this process;
/// 0 for an earlier moment.
pub fn host_ns(at: Instant) -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = *START.get_or_init(|| at);
    let since = at.saturating_duration_since(start);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::host_ns;
    use std::time::{Duration, Instant};

    #[test]
    fn differences_of_numbers_are_differences_of_time() {
        let now = Instant::now();
        let start = host_ns(now);
        let later = host_ns(now + Duration::from_micros(3));
        assert_eq!(later - start, 3_000);
    }
}
