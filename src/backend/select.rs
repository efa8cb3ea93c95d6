//! Which backend runs: asked for, or found once when the engine is built.

use super::Backend;
use super::cpu::CpuBackend;
use crate::error::{Error, ErrorKind, Result};
use rayon::ThreadPool;
use std::str::FromStr;
use std::sync::Arc;

/// The backend that the user asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The GPU; the CPU where there is no GPU at all.
    #[default]
    Auto,
    /// The GPU or an error.
    Cuda,
    /// The CPU.
    Cpu,
}

impl FromStr for Choice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Choice::Auto),
            "cuda" => Ok(Choice::Cuda),
            "cpu" => Ok(Choice::Cpu),
            _ => Err(Error::config(format!(
                "backend {text:?} is none of \"auto\", \"cuda\", \"cpu\""
            ))),
        }
    }
}

/// A backend and why it was chosen.
pub struct Selected {
    /// The backend.
    pub backend: Arc<dyn Backend>,
    /// The reason, for the log and the run's record.
    pub reason: String,
}

/// Chooses once. `Auto` takes the CPU only if there is no driver library or no
/// device in sight; a device that is there and cannot be used is an error.
///
/// # Errors
/// [`ErrorKind::Unavailable`], with what to install or to set.
pub fn select(choice: Choice, pool: &Arc<ThreadPool>) -> Result<Selected> {
    let cpu = |reason: String| {
        Ok(Selected {
            backend: Arc::new(CpuBackend::new(Arc::clone(pool))),
            reason,
        })
    };
    match choice {
        Choice::Cpu => cpu("asked for".to_owned()),
        Choice::Cuda | Choice::Auto => match open_gpu()? {
            Ok(backend) => Ok(Selected {
                backend,
                reason: "a usable GPU".to_owned(),
            }),
            Err(absent) if choice == Choice::Auto => cpu(absent),
            Err(absent) => Err(Error::new(ErrorKind::Unavailable, absent)
                .fix("install the NVIDIA driver, or set backend = \"cpu\"")),
        },
    }
}

/// A usable GPU, or why there is none; an error if there is one that fails.
fn open_gpu() -> Result<std::result::Result<Arc<dyn Backend>, String>> {
    Ok(Err(
        "this build has no CUDA support (feature `cuda`)".to_owned()
    ))
}
