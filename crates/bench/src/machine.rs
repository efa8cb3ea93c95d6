//! Describes the machine, and reads its CPU clocks.

use super::record::{MachineLimits, Run};
use std::fs;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tapeloop_engine::backend::Backend;
use tapeloop_engine::internal::device_names;

/// Describes a run on `backends` that starts now, without its limits.
///
/// # Panics
/// If there are no backends.
pub fn describe(backends: &[Arc<dyn Backend>], config: String) -> Run {
    let device = backends[0].device();
    let started = SystemTime::now().duration_since(UNIX_EPOCH);
    let started_unix_s = started.unwrap_or_default().as_secs_f64();
    // CUDA's number is 1000 times the major version plus 10 times the minor one.
    let driver = match device.driver_version {
        0 => String::new(),
        cuda => format!(
            "{}, CUDA {}.{}",
            driver_version().as_deref().unwrap_or("unknown"),
            cuda / 1000,
            cuda % 1000 / 10
        ),
    };
    let cores = std::thread::available_parallelism();
    Run {
        // The process distinguishes runs that start in the same millisecond.
        id: format!("{started_unix_s:.3}-{}", std::process::id()),
        started_unix_s,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("TAPELOOP_COMMIT")
            .unwrap_or_default()
            .to_owned(),
        backend: device.backend.to_owned(),
        device: device_names(backends.iter().map(|backend| backend.device())),
        driver,
        cpu: cpu_name().unwrap_or_default(),
        cores: cores.map_or(1, usize::from),
        os: os_name(),
        config,
        limits: MachineLimits::default(),
        is_partial: false,
    }
}

/// The version of NVIDIA's kernel module: the first word of its text that is numbers with points. `None` if
/// there is no module.
fn driver_version() -> Option<String> {
    let text = fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let is_version =
        |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.split_whitespace().find(is_version).map(str::to_owned)
}

fn cpu_name() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn os_name() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease");
    let release = release.unwrap_or_default();
    format!("{} {}", std::env::consts::OS, release.trim())
        .trim()
        .to_owned()
}

/// CPU time of this thread, or of all threads of the process; `None` if the clock is unavailable.
pub fn core_time(threads: CpuClock) -> Option<Duration> {
    #[cfg(target_os = "linux")]
    {
        use rustix::time::{ClockId, clock_gettime};
        let time = clock_gettime(match threads {
            CpuClock::This => ClockId::ThreadCPUTime,
            CpuClock::All => ClockId::ProcessCPUTime,
        });
        let seconds = Duration::from_secs(u64::try_from(time.tv_sec).ok()?);
        Some(seconds + Duration::from_nanos(u64::try_from(time.tv_nsec).ok()?))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = threads;
        None
    }
}

/// The CPU clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuClock {
    /// The calling thread's.
    This,
    /// The process'.
    All,
}
