//! The image of the built-in kernels, as the build script compiled it.

use crate::record::{CudaSource, Image};
use std::sync::{Arc, OnceLock};

/// SHA-256 of the source of all kernels, in hexadecimal.
pub const KERNELS_HASH: &str = env!("TAPELOOP_KERNELS_HASH");

/// The version of the nvcc that compiled the kernels; empty if none did.
pub const NVCC_VERSION: &str = env!("TAPELOOP_NVCC");

/// The targets that nvcc compiled the kernels for, by its names for them; empty if it did not.
pub const KERNEL_TARGETS: &str = env!("TAPELOOP_KERNEL_TARGETS");

/// The image of all built-in kernels. It has the source and, if the build had nvcc, a fat binary.
/// Without the binary NVRTC compiles the source at run time.
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
                // The kernels' lambdas have no `__device__` annotation.
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
