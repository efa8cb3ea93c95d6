//! One slot's share of the device: a stream, its fence, its graphs, its memory.

use super::context::Context;
use super::module::{Functions, PARAMS_MAX};
use super::share::Share;
use super::stream::{Event, GraphExec, Stream};
use crate::backend::{Addresses, FunctionId, GraphId, HostViews, Lane, Op};
use crate::error::{Error, Result};
use crate::record::BufferId;
use arrayvec::ArrayVec;
use std::ffi::c_void;
use std::sync::Arc;

/// A lane of the CUDA backend. A capture is begun and ended in one thread.
pub(super) struct CudaLane {
    // Fields drop in this order, after `drop` has waited for the stream: what
    // work may still use goes after what starts work.
    graphs: Vec<GraphExec>,
    mark: Event,
    stream: Stream,
    share: Share,
    functions: Arc<Functions>,
    context: Arc<Context>,
    capturing: bool,
    progress: Progress,
}

/// How much work was given, marked, and seen done. The host side of the lane's
/// memory may be touched only when all that was given is done.
#[derive(Default)]
struct Progress {
    given: u64,
    marked: u64,
    done: u64,
}

impl CudaLane {
    pub(super) fn open(
        context: &Arc<Context>,
        functions: &Arc<Functions>,
        share: Share,
        blocking_wait: bool,
    ) -> Result<CudaLane> {
        let lane = CudaLane {
            graphs: Vec::new(),
            mark: Event::new(context, blocking_wait)?,
            stream: Stream::new(context)?,
            share,
            functions: Arc::clone(functions),
            context: Arc::clone(context),
            capturing: false,
            progress: Progress::default(),
        };
        lane.memset(lane.share.device_start(), 0, lane.share.device_bytes())?;
        lane.stream.synchronize()?;
        Ok(lane)
    }

    fn upload(&self, host: u64, device: u64, bytes: usize) -> Result<()> {
        self.share.check_host(host, bytes)?;
        self.share.check_device(device, bytes)?;
        let driver = self.context.bind()?;
        // SAFETY: both ranges are inside the lane's share, checked above; the
        // share outlives the work, as `drop` waits; and `assert_quiet` keeps the
        // host from writing it meanwhile.
        self.context.check("cuMemcpyHtoDAsync", unsafe {
            let host = host as *const c_void;
            (driver.cuMemcpyHtoDAsync_v2)(device, host, bytes, self.stream.raw())
        })
    }

    fn download(&self, device: u64, host: u64, bytes: usize) -> Result<()> {
        self.share.check_device(device, bytes)?;
        self.share.check_host(host, bytes)?;
        let driver = self.context.bind()?;
        // SAFETY: as for `upload`; the host does not read it meanwhile either.
        self.context.check("cuMemcpyDtoHAsync", unsafe {
            let host = host as *mut c_void;
            (driver.cuMemcpyDtoHAsync_v2)(host, device, bytes, self.stream.raw())
        })
    }

    fn memset(&self, device: u64, byte: u8, bytes: usize) -> Result<()> {
        self.share.check_device(device, bytes)?;
        let driver = self.context.bind()?;
        // SAFETY: the range is inside the lane's share, checked above, and the
        // share outlives the work, as `drop` waits.
        self.context.check("cuMemsetD8Async", unsafe {
            (driver.cuMemsetD8Async)(device, byte, bytes, self.stream.raw())
        })
    }

    fn launch(
        &self,
        function: FunctionId,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        args: &[u64],
    ) -> Result<()> {
        let function = self.functions.get(function)?;
        if args.len() != function.params {
            return Err(Error::usage(format!(
                "{} arguments for {} parameters",
                args.len(),
                function.params
            )));
        }
        let mut pointers: ArrayVec<*mut c_void, PARAMS_MAX> = args
            .iter()
            .map(|arg| std::ptr::from_ref(arg).cast_mut().cast())
            .collect();
        let driver = self.context.bind()?;
        // SAFETY: the module of `function` lives as long as `functions`. The
        // driver reads `function.params` pointers, which `load` counted and the
        // check above compared, and through each at most the 8 bytes of a word,
        // which `load` checked too. What the kernel's code does with them is its
        // author's, as is any code that an image brings.
        self.context.check("cuLaunchKernel", unsafe {
            (driver.cuLaunchKernel)(
                function.raw(),
                grid[0],
                grid[1],
                grid[2],
                block[0],
                block[1],
                block[2],
                shared_bytes,
                self.stream.raw(),
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        })
    }

    fn assert_quiet(&self) {
        assert!(
            self.progress.done == self.progress.given,
            "host memory is touched while the lane works: mark the work with fence, then wait"
        );
    }

    fn refuse_in_capture(&self, what: &str) -> Result<()> {
        match self.capturing {
            true => Err(Error::usage(format!("{what} during a capture"))),
            false => Ok(()),
        }
    }
}

impl Lane for CudaLane {
    fn addresses(&self, buffer: BufferId) -> Addresses {
        self.share.addresses(buffer)
    }

    fn host(&self, buffer: BufferId) -> &[u8] {
        self.assert_quiet();
        // SAFETY: the assert above: nothing is in flight on this lane, and other
        // lanes are refused addresses that are not their own.
        unsafe { self.share.host(buffer) }
    }

    fn host_mut(&mut self, buffers: &[BufferId]) -> HostViews<'_> {
        self.assert_quiet();
        // SAFETY: as for `host`.
        unsafe { self.share.host_mut(buffers) }
    }

    fn enqueue(&mut self, op: &Op) -> Result<()> {
        // Counted before the call, so that work of which it is not known whether
        // it started never counts as done.
        if !self.capturing {
            self.progress.given += 1;
        }
        match op {
            &Op::Upload {
                host,
                device,
                bytes,
            } => self.upload(host, device, bytes),
            &Op::Download {
                device,
                host,
                bytes,
            } => self.download(device, host, bytes),
            &Op::Memset {
                device,
                byte,
                bytes,
            } => self.memset(device, byte, bytes),
            Op::Launch {
                function,
                grid,
                block,
                shared_bytes,
                args,
            } => self.launch(*function, *grid, *block, *shared_bytes, args),
        }
    }

    fn begin_capture(&mut self) -> Result<()> {
        self.refuse_in_capture("a capture was begun")?;
        self.stream.begin_capture()?;
        self.capturing = true;
        Ok(())
    }

    fn end_capture(&mut self) -> Result<GraphId> {
        if !std::mem::take(&mut self.capturing) {
            return Err(Error::usage("no capture is in progress"));
        }
        self.graphs.push(self.stream.end_capture()?);
        Ok(GraphId(self.graphs.len() as u32 - 1))
    }

    fn launch_graph(&mut self, graph: GraphId) -> Result<()> {
        self.refuse_in_capture("a graph was launched")?;
        let exec = self.graphs.get_mut(graph.0 as usize);
        let exec = exec.ok_or_else(|| Error::usage("the lane captured no such graph"))?;
        self.progress.given += 1;
        exec.launch(&self.stream)
    }

    fn fence(&mut self) -> Result<()> {
        self.refuse_in_capture("a fence was set")?;
        self.mark.record(&self.stream)?;
        self.progress.marked = self.progress.given;
        Ok(())
    }

    fn is_done(&mut self) -> Result<bool> {
        let done = self.mark.is_done()?;
        if done {
            self.progress.done = self.progress.marked;
        }
        Ok(done)
    }

    fn wait(&mut self) -> Result<()> {
        self.mark.wait()?;
        self.progress.done = self.progress.marked;
        Ok(())
    }
}

impl Drop for CudaLane {
    fn drop(&mut self) {
        if self.capturing {
            // The graph is of no use; ending the capture frees the stream.
            drop(self.stream.end_capture());
        }
        if let Err(error) = self.stream.synchronize() {
            // Copies may be under way for ever; their memory is leaked.
            self.context.lose();
            tracing::warn!(%error, "a lane was dropped while the device cannot be used");
        }
    }
}
