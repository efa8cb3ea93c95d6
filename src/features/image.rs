//! The built-in kernels as the build made them.

use crate::record::{CudaSource, Image};
use std::sync::{Arc, OnceLock};

/// SHA-256 of the source of all kernels, in hexadecimal.
pub const KERNELS_HASH: &str = env!("TAPELOOP_KERNELS_HASH");

/// The nvcc that compiled them; empty if none did.
pub const NVCC_VERSION: &str = env!("TAPELOOP_NVCC");

/// What they were compiled for, as nvcc names it; empty if they were not.
pub const KERNEL_TARGETS: &str = env!("TAPELOOP_KERNEL_TARGETS");

/// The one image of all built-in kernels. It holds the fat binary where the build had nvcc, and
/// always the source, which NVRTC compiles where it had not.
pub fn image() -> Arc<Image> {
    static IMAGE: OnceLock<Arc<Image>> = OnceLock::new();
    let image = IMAGE.get_or_init(|| {
        let binary = include_bytes!(concat!(env!("OUT_DIR"), "/kernels.fatbin"));
        Arc::new(Image {
            name: "tapeloop kernels".to_owned(),
            binary: (!binary.is_empty()).then(|| binary.to_vec()),
            source: Some(CudaSource {
                file: "kernels.cu".to_owned(),
                text: include_str!(concat!(env!("OUT_DIR"), "/kernels.cu")).to_owned(),
                headers: Vec::new(),
                // Lambdas have no place to say where they run.
                options: [
                    "--std=c++17",
                    "--fmad=false",
                    "--device-as-default-execution-space",
                ]
                .map(str::to_owned)
                .to_vec(),
            }),
        })
    });
    Arc::clone(image)
}
