//! Moments on a device, on the host's clock.

use std::sync::OnceLock;
use std::time::Instant;

/// How many timestamps a slot has.
pub const TIMESTAMPS: usize = 4;

/// When a slot's timestamps were last met, in nanoseconds of [`host_ns`]; `None` for
/// one that never was.
pub type Timestamps = [Option<u64>; TIMESTAMPS];

/// A moment in nanoseconds on the host's steady clock, counted from the first
/// time that this process asked; what was before is 0.
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
    fn moments_are_as_far_apart_as_their_numbers() {
        let now = Instant::now();
        let start = host_ns(now);
        let later = host_ns(now + Duration::from_micros(3));
        assert_eq!(later - start, 3_000);
    }
}
