//! Explains the result codes of the CUDA driver.
//!
//! The driver explains its codes too (`cuGetErrorString`), but not on a machine without a driver,
//! and never with a next step. Codes are plain numbers, as a newer driver returns codes that the
//! bindings' enum lacks.

use super::{Error, ErrorKind};

/// One line for each code: number, name, `lost` if the context cannot be used after it, meaning,
/// next step.
const TABLE: &str = include_str!("codes.tsv");

/// `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: i32 = 2;

/// A `CUresult` with its explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Code {
    /// The number.
    pub raw: i32,
    /// Its name in `cuda.h`.
    pub name: &'static str,
    /// Whether the context, and mostly CUDA in the whole process, cannot be used after it.
    pub loses_context: bool,
    /// The meaning.
    pub meaning: &'static str,
    /// What the reader can do.
    pub next_step: &'static str,
}

impl Code {
    /// All known codes.
    pub fn all() -> impl Iterator<Item = Code> {
        TABLE.lines().skip(1).filter_map(Code::parse)
    }

    /// The entry of a number; for an unknown number an entry that says so.
    pub fn of(raw: i32) -> Code {
        Code::all()
            .find(|code| code.raw == raw)
            .unwrap_or(Code {
                raw,
                name: "an unknown code",
                loses_context: true,
                meaning: "the driver is newer than this program and returned a code that it does not know",
                next_step: "look the number up in the cuda.h of the driver's CUDA version",
            })
    }

    fn parse(line: &'static str) -> Option<Code> {
        let mut cells = line.split('\t');
        Some(Code {
            raw: cells.next()?.parse().ok()?,
            name: cells.next()?,
            loses_context: cells.next()? == "lost",
            meaning: cells.next()?,
            next_step: cells.next()?,
        })
    }

    /// The error of a driver call that returned this code.
    pub fn error(self, call: &str) -> Error {
        let kind = match self.raw {
            OUT_OF_MEMORY => ErrorKind::OutOfMemory,
            _ => ErrorKind::Device,
        };
        Error::new(
            kind,
            format!("{call}: {} ({}, {})", self.meaning, self.name, self.raw),
        )
        .with_code(self.raw)
        .fix(self.next_step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(feature = "cuda")]
    use cudarc::driver::sys::CUresult;

    #[cfg(feature = "cuda")]
    /// Lists variants, and a match that stops compiling when the bindings gain
    /// one that is not listed.
    macro_rules! variants {
        ($($name:ident)*) => {{
            #[allow(dead_code, reason = "only its exhaustiveness is of interest")]
            fn listed(code: CUresult) {
                match code {
                    $(CUresult::$name => {})*
                    #[cfg(not(any(feature = "cuda-12040", feature = "cuda-13000")))]
                    #[allow(unreachable_patterns, reason = "depends on the version")]
                    _ => {}
                }
            }
            [$((CUresult::$name as i32, stringify!($name))),*]
        }};
    }

    #[cfg(all(feature = "cuda", not(feature = "cuda-13000")))]
    macro_rules! with_newer {
        ($($name:ident)*) => { variants!($($name)*) };
    }
    #[cfg(feature = "cuda-13000")]
    macro_rules! with_newer {
        ($($name:ident)*) => {
            variants!($($name)* CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER CUDA_ERROR_CONTAINED
                CUDA_ERROR_TENSOR_MEMORY_LEAK CUDA_ERROR_KEY_ROTATION)
        };
    }

    #[cfg(feature = "cuda")]
    #[test]
    fn every_code_of_the_bindings_has_an_entry() {
        let codes = with_newer!(
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

    #[test]
    fn every_entry_is_complete_and_codes_ascend() {
        let codes: Vec<Code> = Code::all().collect();
        assert_eq!(
            codes.len(),
            TABLE.lines().count() - 1,
            "a line is malformed"
        );
        assert!(codes.is_sorted_by_key(|code| code.raw));
        for code in codes {
            assert!(
                !code.meaning.is_empty() && !code.next_step.is_empty(),
                "{code:?}"
            );
        }
    }

    #[test]
    fn an_error_names_the_call_the_code_and_the_next_step() {
        let error = Code::of(700).error("cuEventQuery");
        assert_eq!(error.code(), Some(700));
        assert_eq!(error.kind(), ErrorKind::Device);
        let text = error.to_string();
        for part in [
            "cuEventQuery",
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "700",
            "compute-sanitizer",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(
            Code::of(2).error("cuMemAlloc").kind(),
            ErrorKind::OutOfMemory
        );
        assert_eq!(Code::of(12_345).error("cuInit").code(), Some(12_345));
    }
}
