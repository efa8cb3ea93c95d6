//! What crosses between the processes.

use crate::backend::{
    Built, Choice, CudaOptions, DriverCalls, FunctionId, GraphId, GraphSource, Node, Occupancy, Op,
    Queue, Streams, Timestamps,
};
use crate::error::Result;
use crate::record::{BufferDecl, DeviceInfo, Image, Kernel, Param};

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// From the engine's process. Those that ask are answered, one after the other.
#[derive(Serialize, Deserialize)]
pub(super) enum Request {
    /// The first request. Asks for [`Opened`].
    Open {
        choice: Choice,
        cuda: CudaOptions,
        /// The paths of [`CudaOptions::nvrtc`] and [`CudaOptions::kernel_cache`], which
        /// do not travel by themselves.
        nvrtc: Option<PathBuf>,
        kernel_cache: Option<PathBuf>,
        /// Threads of a CPU, 0 for all cores.
        threads: usize,
    },
    /// The next image.
    Image(Arc<Image>),
    /// The next kernel. Asks for nothing but an error.
    Load(KernelDecl),
    /// Opens slots, numbered by their places in the files that follow: of their host
    /// memory, and of their completion flags. A place without a number has memory and
    /// no slot. Asks for nothing but an error.
    OpenSlots {
        buffers: Vec<BufferDecl>,
        slots: Vec<Option<u32>>,
        streams: Streams,
    },
    /// Drops a slot, whose work in flight ends undisturbed. Asks for nothing but an error.
    CloseSlot { slot: u32 },
    /// Makes a graph, or gives its parameters to the one there is. Asks for
    /// [`Built`].
    Build {
        slot: u32,
        #[serde(with = "graph_number")]
        graph: GraphId,
        spec: Spec,
    },
    /// Asks for nothing but an error.
    SetParams {
        slot: u32,
        #[serde(with = "graph_number")]
        graph: GraphId,
        node: usize,
        op: Op,
    },
    /// Asks for the operations.
    GraphOps {
        slot: u32,
        #[serde(with = "graph_number")]
        graph: GraphId,
    },
    /// Does not ask.
    DropGraph {
        slot: u32,
        #[serde(with = "graph_number")]
        graph: GraphId,
    },
    /// Gives work to a slot, and sets a fence behind it. Does not ask: the slot's
    /// completion flag has the number of the fence when it is reached.
    Work {
        slot: u32,
        steps: Vec<SlotCall>,
        fence: u32,
    },
    /// Asks for the error that a slot's completion flag announces.
    Why { slot: u32 },
    /// Asks how the kernel loaded as this fills the device.
    Occupancy(FunctionId),
    /// Asks when the device came to a slot's timestamps.
    Timestamps { slot: u32 },
    /// Asks for the driver's calls.
    Calls,
    /// The last.
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
    pub(super) fn of(source: GraphSource<'_>) -> Spec {
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

/// A step of a slot's work.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum SlotCall {
    Op(Queue, Op),
    Graph(#[serde(with = "graph_number")] GraphId),
    Join(Queue, Queue),
}

/// A kernel without its code.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KernelDecl {
    pub(super) name: String,
    /// The place of its image, if it has code.
    pub(super) image: Option<usize>,
    pub(super) params: Vec<Param>,
    pub(super) block: [u32; 3],
    pub(super) shared_bytes: u32,
    pub(super) revisits: bool,
    pub(super) follows_device_pointers: bool,
}

impl KernelDecl {
    pub(super) fn of(kernel: &Kernel, image: Option<usize>) -> Self {
        KernelDecl {
            name: kernel.name.clone(),
            image,
            params: kernel.params.clone(),
            block: kernel.block,
            shared_bytes: kernel.shared_bytes,
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
        kernel.revisits = self.revisits;
        kernel.follows_device_pointers = self.follows_device_pointers;
        kernel
    }
}

/// What the worker runs on.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Opened {
    device: DeviceInfo,
    backend: String,
    pub(super) reason: String,
}

impl Opened {
    pub(super) fn new(device: &DeviceInfo, reason: String) -> Self {
        Opened {
            device: device.clone(),
            backend: device.backend.to_owned(),
            reason,
        }
    }

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

/// From the worker.
#[derive(Serialize, Deserialize)]
pub(super) enum Reply {
    Done(Result<()>),
    Opened(Result<Opened>),
    Loaded(Result<FunctionId>),
    Built(Result<Built>),
    Ops(Result<Vec<Op>>),
    Occupancy(Result<Occupancy>),
    /// The timestamps, and what time it is, both on the worker's clock.
    Timestamps(Result<Timestamps>, u64),
    Calls(DriverCalls),
}

/// Graphs' names as numbers. [`GraphId`] itself is not deserialized, as that would give
/// safe code the names of others' graphs.
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
