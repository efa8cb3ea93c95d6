//! The processor time of a thread.

use std::time::Duration;

/// The processor time that the calling thread has used, so that other work on the machine adds
/// nothing to a measurement.
pub fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
