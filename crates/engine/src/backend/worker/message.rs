//! The messages between the processes.

use crate::backend::{
    Built, Choice, Compilation, CudaOptions, DriverCalls, FunctionId, GraphId, GraphSource, Node,
    Occupancy, Op, Priority, Timestamps,
};
use crate::error::Result;
use crate::record::{BufferDecl, DeviceInfo, Image, Kernel, LaunchAttributes, Param};

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// A request of the engine's process. The worker replies to each that expects a reply, one after
/// the other.
#[derive(Serialize, Deserialize)]
pub(super) enum Request {
    /// The first request. The reply is [`WorkerReply::Opened`].
    Open {
        choice: Choice,
        cuda: CudaOptions,
        /// The paths of [`CudaOptions::nvrtc`] and [`CudaOptions::kernel_cache`], which are not
        /// serialized.
        nvrtc: Option<PathBuf>,
        kernel_cache: Option<PathBuf>,
        /// Threads of the CPU backend; 0 for all cores.
        threads: usize,
    },
    /// The next image.
    Image(Arc<Image>),
    /// Compiles the images from this one on. The replies are any number of [`WorkerReply::Compiling`], and
    /// [`WorkerReply::Done`].
    Prepare { first: usize },
    /// The next kernel. The reply is [`WorkerReply::Done`].
    Load(KernelDecl),
    /// Opens slots. Two files follow: their host memory, and their completion flags. An entry
    /// without a number has memory in the files and no slot. The reply is [`WorkerReply::Done`].
    OpenSlots {
        buffers: Vec<BufferDecl>,
        slots: Vec<Option<u32>>,
        priority: Priority,
    },
    /// Drops a slot; its work in flight runs to its end. The reply is [`WorkerReply::Done`].
    CloseSlot { slot: u32 },
    /// Takes an allocation, which all slots may read at this address. The reply is [`WorkerReply::Done`].
    Allocate { address: u64, bytes: usize },
    /// Copies a part of its contents to an allocation. A file with them follows. The reply is
    /// [`WorkerReply::Done`].
    Fill {
        address: u64,
        offset: usize,
        bytes: usize,
    },
    /// Drops an allocation, but for graphs that use it. No reply.
    Free { address: u64 },
    /// Makes a graph, or updates the existing one. The reply is [`WorkerReply::Built`].
    Build {
        slot: u32,
        #[serde(with = "graph_number")]
        graph: GraphId,
        spec: Spec,
    },
    /// Changes the parameters of a node. The reply is [`WorkerReply::Done`].
    SetParams {
        slot: u32,
        #[serde(with = "graph_number")]
        graph: GraphId,
        node: usize,
        op: Op,
    },
    /// The reply is [`WorkerReply::Ops`].
    GraphOps {
        slot: u32,
        #[serde(with = "graph_number")]
        graph: GraphId,
    },
    /// No reply.
    DropGraph {
        slot: u32,
        #[serde(with = "graph_number")]
        graph: GraphId,
    },
    /// Submits work to a slot, and a fence behind it. No reply: the slot's completion flag gets the
    /// number of the fence when it is reached.
    Work {
        slot: u32,
        steps: Vec<SlotCall>,
        fence: u32,
    },
    /// Asks for the error that a slot's completion flag announces. The reply is [`WorkerReply::Done`].
    TakeError { slot: u32 },
    /// Asks how the kernel with this id fills the device.
    Occupancy(FunctionId),
    /// Asks for a slot's timestamps.
    Timestamps { slot: u32 },
    /// Asks for the numbers of driver calls.
    Calls,
    /// The last request.
    Close,
}

/// A [`GraphSource`] that owns its operations.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Spec {
    pub(super) ops: Vec<Op>,
    /// The indices of the nodes that each runs after; `None` for a captured graph.
    after: Option<Vec<Vec<usize>>>,
}

impl Spec {
    pub(super) fn new(source: GraphSource<'_>) -> Spec {
        let after = match source {
            GraphSource::Captured(_) => None,
            GraphSource::Explicit(nodes) => {
                Some(nodes.iter().map(|node| node.after.to_vec()).collect())
            }
        };
        Spec {
            ops: source.ops().cloned().collect(),
            after,
        }
    }

    /// Calls `make` with `ops` in place of the own operations.
    pub(super) fn with_ops<T>(&self, ops: &[Op], make: impl FnOnce(GraphSource<'_>) -> T) -> T {
        match &self.after {
            None => make(GraphSource::Captured(&ops.iter().collect::<Vec<_>>())),
            Some(after) => {
                let nodes = ops.iter().zip(after);
                let nodes: Vec<_> = nodes.map(|(op, after)| Node { op, after }).collect();
                make(GraphSource::Explicit(&nodes))
            }
        }
    }
}

/// One call of a slot's work.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum SlotCall {
    Op(Op),
    Graph(#[serde(with = "graph_number")] GraphId),
}

/// A kernel without its code.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KernelDecl {
    pub(super) name: String,
    /// The index of its image; `None` without code.
    pub(super) image: Option<usize>,
    pub(super) params: Vec<Param>,
    pub(super) block: [u32; 3],
    pub(super) shared_bytes: u32,
    pub(super) attributes: LaunchAttributes,
    pub(super) revisits: bool,
    pub(super) follows_device_pointers: bool,
}

impl KernelDecl {
    pub(super) fn new(kernel: &Kernel, image: Option<usize>) -> Self {
        KernelDecl {
            name: kernel.name.clone(),
            image,
            params: kernel.params.clone(),
            block: kernel.block,
            shared_bytes: kernel.shared_bytes,
            attributes: kernel.attributes,
            revisits: kernel.revisits,
            follows_device_pointers: kernel.follows_device_pointers,
        }
    }

    /// The declaration, without its code.
    pub(super) fn kernel(self) -> Kernel {
        let mut kernel = Kernel::new(self.name);
        kernel.params = self.params;
        kernel.block = self.block;
        kernel.shared_bytes = self.shared_bytes;
        kernel.attributes = self.attributes;
        kernel.revisits = self.revisits;
        kernel.follows_device_pointers = self.follows_device_pointers;
        kernel
    }
}

/// The device of the worker.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct WorkerDevice {
    device: DeviceInfo,
    backend: String,
    pub(super) reason: String,
}

impl WorkerDevice {
    pub(super) fn new(device: &DeviceInfo, reason: String) -> Self {
        WorkerDevice {
            device: device.clone(),
            backend: device.backend.to_owned(),
            reason,
        }
    }

    /// The device as the worker described it. The names of backends are static, so that of the
    /// worker is looked up.
    pub(super) fn device(&self) -> DeviceInfo {
        let known = ["cuda", "cpu"]
            .into_iter()
            .find(|name| *name == self.backend);
        DeviceInfo {
            backend: known.unwrap_or("unknown"),
            ..self.device.clone()
        }
    }
}

/// A reply of the worker.
#[derive(Serialize, Deserialize)]
pub(super) enum WorkerReply {
    Done(Result<()>),
    /// Progress of a compilation. The last report comes at its end.
    Compiling(Compilation),
    Opened(Result<WorkerDevice>),
    Built(Result<Built>),
    Ops(Result<Vec<Op>>),
    Occupancy(Result<Occupancy>),
    /// The timestamps, and the current time, both on the worker's clock.
    Timestamps(Result<Timestamps>, u64),
    Calls(DriverCalls),
}

/// Serializes graph ids as numbers. [`GraphId`] itself is not deserialized, as safe code could then
/// name the graphs of others.
mod graph_number {
    use crate::backend::GraphId;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(id: &GraphId, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(id.0)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<GraphId, D::Error> {
        u64::deserialize(from).map(GraphId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_gets_the_whole_declaration_of_a_kernel() {
        let kernel = Kernel::new("kernel")
            .block_shape([8, 4, 2])
            .shared_bytes(1 << 10)
            .cluster([2, 1, 1])
            .cooperative()
            .urgent()
            .waits_for_dependencies()
            .reads::<f32>("x")
            .scalar::<u32>("len")
            .changeable("len")
            .revisits()
            .follows_device_pointers();
        let sent = postcard::to_allocvec(&KernelDecl::new(&kernel, Some(3))).unwrap();
        let decl: KernelDecl = postcard::from_bytes(&sent).unwrap();
        assert_eq!(decl.image, Some(3));
        assert_eq!(
            format!("{:?}", decl.kernel()),
            format!("{kernel:?}"),
            "every field but the code"
        );
    }
}
