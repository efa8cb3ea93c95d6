//! Kernels as their CPU twins: those that are loaded, and one run on memory.

use super::FunctionId;
use crate::error::{Error, ErrorKind, Result, panic_text};
use crate::record::{Kernel, ParamKind, Scalar, TwinArg, TwinLaunch};
use parking_lot::RwLock;
use rayon::ThreadPool;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The kernels of a backend, by their [`FunctionId`].
#[derive(Default)]
pub(super) struct Functions(RwLock<Vec<Arc<Kernel>>>);

impl Functions {
    pub(super) fn load(&self, kernel: &Kernel) -> Result<FunctionId> {
        if kernel.twin.is_none() {
            return Err(Error::new(
                ErrorKind::Kernel,
                format!("kernel {} has no CPU twin", kernel.name),
            )
            .fix("give the kernel a twin with Kernel::twin, or use a GPU"));
        }
        let mut functions = self.0.write();
        let known = functions
            .iter()
            .position(|known| is_same_twin(known, kernel));
        let index = known.unwrap_or_else(|| {
            functions.push(Arc::new(kernel.clone()));
            functions.len() - 1
        });
        Ok(FunctionId(index as u32))
    }

    pub(super) fn get(&self, function: FunctionId) -> Result<Arc<Kernel>> {
        let functions = self.0.read();
        let kernel = functions.get(function.0 as usize).map(Arc::clone);
        kernel.ok_or_else(|| Error::usage("no such function is loaded"))
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

/// What a launch is given: values, and memory with the arguments that lie in it.
pub(super) struct Launch<'a> {
    kernel: &'a Kernel,
    grid: [u32; 3],
    args: Vec<Option<TwinArg<'a>>>,
}

impl<'a> Launch<'a> {
    /// A launch with all that is passed by value; the rest is to be added.
    pub(super) fn new(kernel: &'a Kernel, grid: [u32; 3], args: &[u64]) -> Self {
        let value = |(param, &bits): (&crate::record::Param, &u64)| match param.kind {
            ParamKind::Scalar { dtype } => Some(TwinArg::Scalar(Scalar { dtype, bits })),
            ParamKind::Buffer { .. } => None,
        };
        Launch {
            kernel,
            grid,
            args: kernel.params.iter().zip(args).map(value).collect(),
        }
    }

    fn writes(&self, arg: usize) -> bool {
        matches!(self.kernel.params[arg].kind,
            ParamKind::Buffer { access, .. } if access.writes())
    }

    /// Whether one of the arguments `here` is written.
    pub(super) fn writes_any(&self, here: &[(usize, usize)]) -> bool {
        here.iter().any(|&(_, arg)| self.writes(arg))
    }

    fn set(&mut self, arg: usize, part: Part<'a>) {
        let ParamKind::Buffer { dtype, .. } = self.kernel.params[arg].kind else {
            return;
        };
        self.args[arg] = Some(match part {
            Part::Read(bytes) => TwinArg::Read(dtype, bytes),
            Part::Write(bytes) => TwinArg::Write(dtype, bytes),
        });
    }

    /// Adds memory that nothing in this launch writes. `here` has the arguments
    /// that lie in it, each as its offset and its place.
    pub(super) fn add_shared(&mut self, here: &[(usize, usize)], bytes: &'a [u8]) {
        for &(offset, arg) in here {
            self.set(arg, Part::Read(&bytes[offset..]));
        }
    }

    /// Adds memory that this launch writes. Each argument reaches to where the
    /// next begins.
    pub(super) fn add_exclusive(
        &mut self,
        mut here: Vec<(usize, usize)>,
        bytes: &'a mut [u8],
    ) -> Result<()> {
        here.sort_unstable();
        let mut rest = bytes;
        let mut start = 0;
        for same in here.chunk_by(|a, b| a.0 == b.0) {
            let (offset, arg) = same[0];
            let after = here.iter().find(|(next, _)| *next > offset);
            let (_, from) = std::mem::take(&mut rest).split_at_mut(offset - start);
            let length = after.map_or(from.len(), |(next, _)| next - offset);
            let part;
            (part, rest) = from.split_at_mut(length);
            start = offset + length;
            match (self.writes_any(same), same.len()) {
                (true, 1) => self.set(arg, Part::Write(part)),
                (false, _) => {
                    let part = &*part;
                    same.iter()
                        .for_each(|&(_, arg)| self.set(arg, Part::Read(part)));
                }
                (true, _) => {
                    let name = &self.kernel.name;
                    let message = format!("kernel {name} writes what it is given twice");
                    return Err(Error::usage(message));
                }
            }
        }
        Ok(())
    }

    /// Runs the twin, on a pool or on this thread.
    pub(super) fn run(self, pool: Option<&ThreadPool>) -> Result<()> {
        let args = self.args.into_iter();
        let args = args.map(|arg| arg.expect("memory was added for every buffer"));
        let mut launch = TwinLaunch::new(self.grid, args.collect());
        let twin = self.kernel.twin.expect("checked by load");
        let outcome = catch_unwind(AssertUnwindSafe(|| match pool {
            Some(pool) => pool.install(|| twin(&mut launch)),
            None => twin(&mut launch),
        }));
        outcome.map_err(|panic| {
            let text = panic_text(&*panic);
            let name = &self.kernel.name;
            let message = format!("the twin of kernel {name} panicked: {text}");
            Error::new(ErrorKind::Device, message)
        })
    }
}

enum Part<'a> {
    Read(&'a [u8]),
    Write(&'a mut [u8]),
}
