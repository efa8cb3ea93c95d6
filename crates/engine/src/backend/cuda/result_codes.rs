//! Result codes of the driver that the backend handles, and results of updates of graphs.

pub(super) use crate::error::Code;
use cudarc::driver::sys::CUgraphExecUpdateResult;
use tapeloop_error::internal::CAPTURE_CODES;

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

/// Whether a result is about a stream capture. Such a result does not concern the work that was polled.
pub(super) fn is_of_capture(raw: i32) -> bool {
    CAPTURE_CODES.contains(&raw)
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

#[cfg(test)]
mod codes_of_the_bindings {
    use crate::error::Code;
    use cudarc::driver::sys::CUresult;

    /// Lists variants, and a match that stops compiling when the bindings gain
    /// one that is not listed.
    macro_rules! variants {
        ($($name:ident)*) => {{
            #[allow(dead_code, reason = "only its exhaustiveness is of interest")]
            fn listed(code: CUresult) {
                match code {
                    $(CUresult::$name => {})*
                    #[cfg(not(feature = "cuda-12040"))]
                    #[allow(unreachable_patterns, reason = "depends on the version")]
                    _ => {}
                }
            }
            [$((CUresult::$name as i32, stringify!($name))),*]
        }};
    }

    #[test]
    fn every_code_of_the_bindings_has_an_entry() {
        let codes = variants!(
            CUDA_SUCCESS CUDA_ERROR_INVALID_VALUE CUDA_ERROR_OUT_OF_MEMORY
            CUDA_ERROR_NOT_INITIALIZED CUDA_ERROR_DEINITIALIZED CUDA_ERROR_PROFILER_DISABLED
            CUDA_ERROR_PROFILER_NOT_INITIALIZED CUDA_ERROR_PROFILER_ALREADY_STARTED
            CUDA_ERROR_PROFILER_ALREADY_STOPPED CUDA_ERROR_STUB_LIBRARY
            CUDA_ERROR_DEVICE_UNAVAILABLE CUDA_ERROR_NO_DEVICE CUDA_ERROR_INVALID_DEVICE
            CUDA_ERROR_DEVICE_NOT_LICENSED CUDA_ERROR_INVALID_IMAGE CUDA_ERROR_INVALID_CONTEXT
            CUDA_ERROR_CONTEXT_ALREADY_CURRENT CUDA_ERROR_MAP_FAILED CUDA_ERROR_UNMAP_FAILED
            CUDA_ERROR_ARRAY_IS_MAPPED CUDA_ERROR_ALREADY_MAPPED CUDA_ERROR_NO_BINARY_FOR_GPU
            CUDA_ERROR_ALREADY_ACQUIRED CUDA_ERROR_NOT_MAPPED CUDA_ERROR_NOT_MAPPED_AS_ARRAY
            CUDA_ERROR_NOT_MAPPED_AS_POINTER CUDA_ERROR_ECC_UNCORRECTABLE
            CUDA_ERROR_UNSUPPORTED_LIMIT CUDA_ERROR_CONTEXT_ALREADY_IN_USE
            CUDA_ERROR_PEER_ACCESS_UNSUPPORTED CUDA_ERROR_INVALID_PTX
            CUDA_ERROR_INVALID_GRAPHICS_CONTEXT CUDA_ERROR_NVLINK_UNCORRECTABLE
            CUDA_ERROR_JIT_COMPILER_NOT_FOUND CUDA_ERROR_UNSUPPORTED_PTX_VERSION
            CUDA_ERROR_JIT_COMPILATION_DISABLED CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY
            CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC CUDA_ERROR_INVALID_SOURCE CUDA_ERROR_FILE_NOT_FOUND
            CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND CUDA_ERROR_SHARED_OBJECT_INIT_FAILED
            CUDA_ERROR_OPERATING_SYSTEM CUDA_ERROR_INVALID_HANDLE CUDA_ERROR_ILLEGAL_STATE
            CUDA_ERROR_LOSSY_QUERY CUDA_ERROR_NOT_FOUND CUDA_ERROR_NOT_READY
            CUDA_ERROR_ILLEGAL_ADDRESS CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES CUDA_ERROR_LAUNCH_TIMEOUT
            CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
            CUDA_ERROR_PEER_ACCESS_NOT_ENABLED CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE
            CUDA_ERROR_CONTEXT_IS_DESTROYED CUDA_ERROR_ASSERT CUDA_ERROR_TOO_MANY_PEERS
            CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
            CUDA_ERROR_HARDWARE_STACK_ERROR CUDA_ERROR_ILLEGAL_INSTRUCTION
            CUDA_ERROR_MISALIGNED_ADDRESS CUDA_ERROR_INVALID_ADDRESS_SPACE CUDA_ERROR_INVALID_PC
            CUDA_ERROR_LAUNCH_FAILED CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
            CUDA_ERROR_NOT_PERMITTED CUDA_ERROR_NOT_SUPPORTED CUDA_ERROR_SYSTEM_NOT_READY
            CUDA_ERROR_SYSTEM_DRIVER_MISMATCH CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
            CUDA_ERROR_MPS_CONNECTION_FAILED CUDA_ERROR_MPS_RPC_FAILURE
            CUDA_ERROR_MPS_SERVER_NOT_READY CUDA_ERROR_MPS_MAX_CLIENTS_REACHED
            CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED CUDA_ERROR_MPS_CLIENT_TERMINATED
            CUDA_ERROR_CDP_NOT_SUPPORTED CUDA_ERROR_CDP_VERSION_MISMATCH
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
            CUDA_ERROR_STREAM_CAPTURE_MERGE CUDA_ERROR_STREAM_CAPTURE_UNMATCHED
            CUDA_ERROR_STREAM_CAPTURE_UNJOINED CUDA_ERROR_STREAM_CAPTURE_ISOLATION
            CUDA_ERROR_STREAM_CAPTURE_IMPLICIT CUDA_ERROR_CAPTURED_EVENT
            CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD CUDA_ERROR_TIMEOUT
            CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE CUDA_ERROR_EXTERNAL_DEVICE
            CUDA_ERROR_INVALID_CLUSTER_SIZE CUDA_ERROR_FUNCTION_NOT_LOADED
            CUDA_ERROR_INVALID_RESOURCE_TYPE CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION
            CUDA_ERROR_UNKNOWN
        );
        for (raw, name) in codes {
            let code = Code::of(raw);
            assert_eq!((code.raw, code.name), (raw, name));
        }
    }
}
