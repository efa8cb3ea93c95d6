//! The CPU backend: kernels run as their twins, on all cores.
//!
//! Host and device sides of a buffer are one, so uploads and downloads copy
//! nothing. A lane takes work down and does it when it is asked whether the work
//! is done: the engine's completion stage computes while its upload stage fills
//! the next slot, and what is read too early is stale here as on a GPU.

use super::{Addresses, Backend, DeviceInfo, FunctionId, GraphId, HostViews, Lane, Op};
use crate::error::{Error, ErrorKind, Result, panic_text};
use crate::record::{BufferDecl, BufferId, Kernel, ParamKind, Scalar, TwinArg, TwinLaunch};
use parking_lot::RwLock;
use rayon::ThreadPool;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Runs the twins on a thread pool.
pub struct CpuBackend {
    device: DeviceInfo,
    pool: Arc<ThreadPool>,
    functions: Arc<RwLock<Vec<Arc<Kernel>>>>,
}

impl CpuBackend {
    /// A backend that computes on `pool`.
    pub fn new(pool: Arc<ThreadPool>) -> Self {
        CpuBackend {
            device: DeviceInfo {
                backend: "cpu",
                name: processor_name(),
                compute_capability: None,
                multiprocessors: pool.current_num_threads() as u32,
                memory_bytes: memory_bytes(),
                driver_version: 0,
                shares_host_memory: true,
            },
            pool,
            functions: Arc::default(),
        }
    }
}

impl Backend for CpuBackend {
    fn device(&self) -> &DeviceInfo {
        &self.device
    }

    fn load(&self, kernel: &Kernel) -> Result<FunctionId> {
        if kernel.twin.is_none() {
            return Err(Error::new(
                ErrorKind::Kernel,
                format!("kernel {} has no CPU twin", kernel.name),
            )
            .fix("give the kernel a twin with Kernel::twin, or use a GPU"));
        }
        let mut functions = self.functions.write();
        let known = functions
            .iter()
            .position(|known| is_same_twin(known, kernel));
        let index = known.unwrap_or_else(|| {
            functions.push(Arc::new(kernel.clone()));
            functions.len() - 1
        });
        Ok(FunctionId(index as u32))
    }

    fn open_lanes(&self, buffers: &[BufferDecl], lanes: usize) -> Result<Vec<Box<dyn Lane>>> {
        let open = |_| -> Result<Box<dyn Lane>> {
            let storage = |decl: &BufferDecl| Storage::zeroed(decl.size_bytes());
            Ok(Box::new(CpuLane {
                buffers: buffers.iter().map(storage).collect::<Result<_>>()?,
                pool: Arc::clone(&self.pool),
                functions: Arc::clone(&self.functions),
                graphs: Vec::new(),
                capture: None,
                queue: Vec::new(),
                failed: None,
            }))
        };
        (0..lanes).map(open).collect()
    }
}

/// Whether two declarations run the same code on the same parameters.
fn is_same_twin(a: &Kernel, b: &Kernel) -> bool {
    let same_code = match (a.twin, b.twin) {
        (Some(a), Some(b)) => std::ptr::fn_addr_eq(a, b),
        _ => false,
    };
    same_code && a.name == b.name && a.params == b.params
}

/// A buffer's bytes, aligned for every element type.
#[derive(Default)]
struct Storage {
    words: Vec<u128>,
    bytes: usize,
}

impl Storage {
    fn zeroed(bytes: usize) -> Result<Self> {
        let words = bytes.div_ceil(size_of::<u128>());
        // Asked first, since a plain vector aborts when it is refused. The second
        // comes zeroed from the system and takes no memory until it is touched.
        let refused = Vec::<u128>::new().try_reserve_exact(words).is_err();
        if refused {
            let message = format!("{bytes} bytes of memory for a buffer were refused");
            return Err(Error::new(ErrorKind::OutOfMemory, message)
                .fix("take fewer slots or smaller batches"));
        }
        Ok(Storage {
            words: vec![0; words],
            bytes,
        })
    }

    fn as_slice(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.bytes]
    }
}

enum Work {
    Op(Op),
    Graph(GraphId),
}

struct CpuLane {
    buffers: Vec<Storage>,
    pool: Arc<ThreadPool>,
    functions: Arc<RwLock<Vec<Arc<Kernel>>>>,
    graphs: Vec<Arc<[Op]>>,
    capture: Option<Vec<Op>>,
    queue: Vec<Work>,
    failed: Option<Error>,
}

impl Lane for CpuLane {
    fn addresses(&self, buffer: BufferId) -> Addresses {
        let address = buffer.index() as u64;
        Addresses {
            device: address,
            host: Some(address),
        }
    }

    fn host(&self, buffer: BufferId) -> &[u8] {
        self.buffers[buffer.index()].as_slice()
    }

    fn host_mut(&mut self, buffers: &[BufferId]) -> HostViews<'_> {
        assert!(buffers.is_sorted(), "buffers ascend");
        let mut wanted = buffers.iter().map(|buffer| buffer.index()).peekable();
        let all = self.buffers.iter_mut().enumerate();
        let views: HostViews<'_> = all
            .filter(|(index, _)| wanted.next_if_eq(index).is_some())
            .map(|(_, storage)| storage.as_mut_slice())
            .collect();
        assert_eq!(views.len(), buffers.len(), "buffers ascend and exist");
        views
    }

    fn enqueue(&mut self, op: &Op) -> Result<()> {
        match &mut self.capture {
            Some(ops) => ops.push(op.clone()),
            None => self.queue.push(Work::Op(op.clone())),
        }
        Ok(())
    }

    fn begin_capture(&mut self) -> Result<()> {
        self.capture = Some(Vec::new());
        Ok(())
    }

    fn end_capture(&mut self) -> Result<GraphId> {
        let ops = self.capture.take().unwrap_or_default();
        if ops.is_empty() {
            return Err(Error::usage("the capture took nothing down"));
        }
        self.graphs.push(ops.into());
        Ok(GraphId(self.graphs.len() as u32 - 1))
    }

    fn launch_graph(&mut self, graph: GraphId) -> Result<()> {
        self.queue.push(Work::Graph(graph));
        Ok(())
    }

    fn fence(&mut self) -> Result<()> {
        Ok(())
    }

    fn is_done(&mut self) -> Result<bool> {
        self.wait().map(|()| true)
    }

    fn wait(&mut self) -> Result<()> {
        if self.failed.is_none()
            && let Err(error) = self.drain()
        {
            self.failed = Some(error);
        }
        self.failed.clone().map_or(Ok(()), Err)
    }
}

impl CpuLane {
    fn drain(&mut self) -> Result<()> {
        for work in std::mem::take(&mut self.queue) {
            match work {
                Work::Op(op) => self.run(&op)?,
                Work::Graph(graph) => {
                    let ops = Arc::clone(&self.graphs[graph.0 as usize]);
                    ops.iter().try_for_each(|op| self.run(op))?;
                }
            }
        }
        Ok(())
    }

    fn run(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Upload { .. } | Op::Download { .. } => Ok(()),
            Op::Memset {
                device,
                byte,
                bytes,
            } => {
                self.buffers[*device as usize].as_mut_slice()[..*bytes].fill(*byte);
                Ok(())
            }
            Op::Launch {
                function,
                grid,
                args,
                ..
            } => {
                let kernel = Arc::clone(&self.functions.read()[function.0 as usize]);
                self.run_twin(&kernel, *grid, args)
            }
        }
    }

    fn run_twin(&mut self, kernel: &Kernel, grid: [u32; 3], args: &[u64]) -> Result<()> {
        // The written buffers leave the lane for the time of the call, so that
        // the twin can hold them beside the ones that it reads.
        let mut taken: Vec<(usize, Storage)> = Vec::new();
        for (param, &arg) in kernel.params.iter().zip(args) {
            if matches!(param.kind, ParamKind::Buffer { access, .. } if access.writes()) {
                taken.push((
                    arg as usize,
                    std::mem::take(&mut self.buffers[arg as usize]),
                ));
            }
        }
        let mut written = taken.iter_mut();
        let mut twin_args = Vec::with_capacity(args.len());
        for (param, &arg) in kernel.params.iter().zip(args) {
            twin_args.push(match param.kind {
                ParamKind::Scalar { dtype } => TwinArg::Scalar(Scalar { dtype, bits: arg }),
                ParamKind::Buffer { dtype, access } if access.writes() => {
                    let (_, storage) = written.next().expect("taken above, in this order");
                    TwinArg::Write(dtype, storage.as_mut_slice())
                }
                ParamKind::Buffer { dtype, .. } => {
                    TwinArg::Read(dtype, self.buffers[arg as usize].as_slice())
                }
            });
        }
        let twin = kernel.twin.expect("checked by load");
        let mut launch = TwinLaunch::new(grid, twin_args);
        let outcome = catch_unwind(AssertUnwindSafe(|| self.pool.install(|| twin(&mut launch))));
        drop(launch);
        for (index, storage) in taken {
            self.buffers[index] = storage;
        }
        outcome.map_err(|panic| {
            Error::new(
                ErrorKind::Device,
                format!(
                    "the twin of kernel {} panicked: {}",
                    kernel.name,
                    panic_text(&*panic)
                ),
            )
        })
    }
}

fn proc_field(path: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn processor_name() -> String {
    proc_field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

fn memory_bytes() -> u64 {
    proc_field("/proc/meminfo", "MemTotal")
        .and_then(|field| field.strip_suffix(" kB")?.parse::<u64>().ok())
        .map_or(0, |kib| kib * 1024)
}
