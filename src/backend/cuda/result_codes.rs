//! Result codes of the driver that the backend handles.

pub(super) use crate::error::Code;

/// `CUDA_SUCCESS`.
pub(super) const SUCCESS: i32 = 0;
/// `CUDA_ERROR_INVALID_VALUE`.
pub(super) const INVALID_VALUE: i32 = 1;
/// `CUDA_ERROR_OUT_OF_MEMORY`.
pub(super) const OUT_OF_MEMORY: i32 = 2;
/// `CUDA_ERROR_NO_DEVICE`.
pub(super) const NO_DEVICE: i32 = 100;
/// `CUDA_ERROR_INVALID_IMAGE`.
pub(super) const INVALID_IMAGE: i32 = 200;
/// `CUDA_ERROR_NO_BINARY_FOR_GPU`.
pub(super) const NO_BINARY_FOR_GPU: i32 = 209;
/// `CUDA_ERROR_INVALID_PTX`.
pub(super) const INVALID_PTX: i32 = 218;
/// `CUDA_ERROR_JIT_COMPILER_NOT_FOUND`.
pub(super) const JIT_COMPILER_NOT_FOUND: i32 = 221;
/// `CUDA_ERROR_UNSUPPORTED_PTX_VERSION`.
pub(super) const UNSUPPORTED_PTX_VERSION: i32 = 222;
/// `CUDA_ERROR_JIT_COMPILATION_DISABLED`.
pub(super) const JIT_COMPILATION_DISABLED: i32 = 223;
/// `CUDA_ERROR_INVALID_HANDLE`.
pub(super) const INVALID_HANDLE: i32 = 400;
/// `CUDA_ERROR_NOT_FOUND`.
pub(super) const NOT_FOUND: i32 = 500;
/// `CUDA_ERROR_NOT_READY`.
pub(super) const NOT_READY: i32 = 600;
/// `CUDA_ERROR_NOT_SUPPORTED`.
#[cfg(test)]
pub(super) const NOT_SUPPORTED: i32 = 801;

/// Whether a result is about a stream capture (`CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` to
/// `CUDA_ERROR_TIMEOUT`). Such a result does not concern the work that was polled.
pub(super) fn is_of_capture(raw: i32) -> bool {
    (900..=909).contains(&raw)
}

/// `CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE`.
pub(super) const GRAPH_EXEC_UPDATE_FAILURE: i32 = 910;
