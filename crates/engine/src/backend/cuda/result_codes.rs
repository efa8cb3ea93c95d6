//! Result codes of the driver that the backend handles, and results of updates of graphs.

pub(super) use crate::error::Code;
use cudarc::driver::sys::CUgraphExecUpdateResult;

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

/// Whether an update was refused because the topology differs: the edges, the number of nodes, or
/// the type of a node.
pub(super) fn is_of_topology(raw: u32) -> bool {
    use CUgraphExecUpdateResult as R;
    raw == R::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED as u32
        || raw == R::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED as u32
}

/// The driver's name for the result of an update.
pub(super) fn update_result(raw: u32) -> String {
    use CUgraphExecUpdateResult as R;
    let known = [
        R::CU_GRAPH_EXEC_UPDATE_ERROR,
        R::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED,
        R::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED,
        R::CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED,
        R::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED,
        R::CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED,
        R::CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE,
        R::CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED,
    ];
    known
        .iter()
        .find(|result| **result as u32 == raw)
        .map_or_else(|| format!("result {raw}"), |result| format!("{result:?}"))
}

#[cfg(test)]
mod tests {
    use super::update_result;

    #[test]
    fn a_refused_update_has_the_driver_s_name_or_its_number() {
        let name = "CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED";
        assert_eq!(update_result(2), name);
        assert_eq!(update_result(77), "result 77");
    }
}
