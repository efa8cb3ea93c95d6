//! Runs kernels as their CPU twins.

use super::FunctionId;
use crate::error::{Error, ErrorKind, Result};
use crate::record::{DType, Kernel, ParamKind, Pointer, Scalar, TwinArg, TwinLaunch, WORD_BYTES};
use parking_lot::RwLock;
use std::cell::Cell;
use std::sync::Arc;
use tapeloop_error::internal::catch;

thread_local! {
    /// The twins that run on this thread, each within the one before: a thread of a pool may run
    /// another one while the first waits for its parts.
    static RUNNING: Cell<usize> = const { Cell::new(0) };
}

/// Whether this thread runs a twin. Work of an engine may wait for it then.
pub(crate) fn runs_twin() -> bool {
    RUNNING.get() > 0
}

/// The loaded kernels of a backend, by their [`FunctionId`].
#[derive(Default)]
pub struct Functions(RwLock<Vec<Arc<Kernel>>>);

impl Functions {
    /// The identifier of a kernel, the same for the same twin.
    ///
    /// # Errors
    /// [`ErrorKind::Kernel`] for a kernel without a twin.
    pub fn load(&self, kernel: &Kernel) -> Result<FunctionId> {
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

    /// A loaded kernel.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for an identifier that [`Functions::load`] did not return.
    pub fn get(&self, function: FunctionId) -> Result<Arc<Kernel>> {
        let functions = self.0.read();
        let kernel = functions.get(function.0 as usize).map(Arc::clone);
        kernel.ok_or_else(|| Error::usage("no such function is loaded"))
    }
}

/// Whether two declarations run the same code on the same parameters.
fn is_same_twin(a: &Kernel, b: &Kernel) -> bool {
    let same_code = match (&a.twin, &b.twin) {
        (Some(a), Some(b)) => a.is(b),
        _ => false,
    };
    same_code && a.name == b.name && a.params == b.params && a.attributes == b.attributes
}

/// Refuses a launch that passes another number of words than its kernel takes.
///
/// # Errors
/// [`ErrorKind::Usage`].
pub fn check_words(kernel: &Kernel, words: &[u64]) -> Result<()> {
    match (words.len(), kernel.words()) {
        (given, taken) if given == taken => Ok(()),
        (given, taken) => Err(Error::usage(format!(
            "{given} words for parameters that take {taken}"
        ))),
    }
}

/// A launch of a twin: its values, and the memory that its pointers point to.
pub struct TwinCall<'a> {
    kernel: &'a Kernel,
    grid: [u32; 3],
    args: Vec<Option<TwinArg<'a>>>,
    /// The kernel's pointers, each with the index of its argument.
    pointers: Vec<(Pointer, usize)>,
}

impl<'a> TwinCall<'a> {
    /// A launch with the arguments that are passed by value. The caller adds the memory. `words`
    /// passed [`check_words`].
    pub fn new(kernel: &'a Kernel, grid: [u32; 3], mut words: &[u64]) -> Self {
        let mut args = Vec::new();
        let mut places = Vec::new();
        for param in &kernel.params {
            let passed;
            (passed, words) = words.split_at(param.kind.words());
            let inside = match &param.kind {
                ParamKind::Buffer { .. } => 1,
                ParamKind::Scalar { dtype } => {
                    let (dtype, bits) = (*dtype, passed[0]);
                    args.push(Some(TwinArg::Scalar(Scalar { dtype, bits })));
                    0
                }
                ParamKind::Struct { bytes, pointers } => {
                    args.push(Some(TwinArg::Struct(struct_bytes(passed, *bytes))));
                    pointers.len()
                }
            };
            places.extend(args.len()..args.len() + inside);
            args.extend((0..inside).map(|_| None));
        }
        TwinCall {
            kernel,
            grid,
            args,
            pointers: kernel.pointers().zip(places).collect(),
        }
    }

    fn writes(&self, pointer: usize) -> bool {
        self.pointers[pointer].0.access.writes()
    }

    /// Whether the kernel writes through one of these pointers, given as (offset, pointer).
    pub fn writes_any(&self, pointers: &[(usize, usize)]) -> bool {
        pointers.iter().any(|&(_, arg)| self.writes(arg))
    }

    fn set(&mut self, pointer: usize, arg: impl FnOnce(DType) -> TwinArg<'a>) {
        let (Pointer { dtype, .. }, place) = self.pointers[pointer];
        self.args[place] = Some(arg(dtype));
    }

    fn set_read(&mut self, pointer: usize, bytes: &'a [u8]) {
        self.set(pointer, |dtype| TwinArg::Read(dtype, bytes));
    }

    /// Adds memory that the launch only reads. `pointers` lists those into it, each as its
    /// offset in bytes and its index among the kernel's pointers.
    pub fn add_shared(&mut self, pointers: &[(usize, usize)], bytes: &'a [u8]) {
        for &(offset, arg) in pointers {
            self.set_read(arg, &bytes[offset..]);
        }
    }

    /// Adds memory that the launch writes. Each argument ends where the next one begins.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] if two pointers point to the same bytes and one of them writes.
    pub fn add_exclusive(
        &mut self,
        pointers: &mut [(usize, usize)],
        bytes: &'a mut [u8],
    ) -> Result<()> {
        pointers.sort_unstable();
        let mut rest = bytes;
        let mut start = 0;
        for same in pointers.chunk_by(|a, b| a.0 == b.0) {
            let (offset, arg) = same[0];
            let after = pointers.iter().find(|(next, _)| *next > offset);
            let (_, from) = std::mem::take(&mut rest).split_at_mut(offset - start);
            let length = after.map_or(from.len(), |(next, _)| next - offset);
            let part;
            (part, rest) = from.split_at_mut(length);
            start = offset + length;
            match (self.writes_any(same), same.len()) {
                (true, 1) => self.set(arg, |dtype| TwinArg::Write(dtype, part)),
                (false, _) => {
                    let part = &*part;
                    same.iter().for_each(|&(_, arg)| self.set_read(arg, part));
                }
                (true, _) => {
                    let name = &self.kernel.name;
                    let message = format!("kernel {name} writes a buffer that it is passed twice");
                    return Err(Error::usage(message));
                }
            }
        }
        Ok(())
    }

    /// Runs the twin.
    ///
    /// # Errors
    /// [`ErrorKind::Kernel`] if the twin panics.
    pub fn run(self) -> Result<()> {
        let args = self.args.into_iter();
        let args = args.map(|arg| arg.expect("memory was added for every buffer"));
        let mut launch = TwinLaunch::new(self.grid, args.collect());
        let twin = self.kernel.twin.as_ref().expect("checked by load");
        RUNNING.set(RUNNING.get() + 1);
        let outcome = catch(|| twin.run(&mut launch));
        RUNNING.set(RUNNING.get() - 1);
        outcome.map_err(|panic| {
            let name = &self.kernel.name;
            let message = format!("the twin of kernel {name} panicked: {panic}");
            Error::new(ErrorKind::Kernel, message)
        })
    }
}

/// The first `bytes` bytes of a struct's words.
fn struct_bytes(words: &[u64], bytes: usize) -> Vec<u8> {
    let mut all = Vec::with_capacity(words.len() * WORD_BYTES);
    words
        .iter()
        .for_each(|word| all.extend_from_slice(&word.to_le_bytes()));
    all.truncate(bytes);
    all
}
