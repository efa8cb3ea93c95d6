//! Kernels whose device work a host library submits, such as cuBLAS or cuFFT.

use super::buffer::{Number, Scalar};
use super::kernel::{DeviceCode, Kernel, ParamKind};
use crate::error::{Context, Error, ErrorKind, Result};
use std::fmt;
use std::sync::Arc;
use tapeloop_error::internal::catch;

/// What the closure of a library call gets: the stream, and the launch's arguments, which it takes in
/// order.
pub struct LibraryCall<'a> {
    stream: u64,
    params: std::slice::Iter<'a, ParamKind>,
    /// A word for each parameter.
    words: std::slice::Iter<'a, u64>,
}

impl LibraryCall<'_> {
    /// The stream that takes the work, as a `CUstream` or `cudaStream_t` in a number. The device's
    /// primary context is current on the thread.
    pub fn stream(&self) -> u64 {
        self.stream
    }

    /// Takes the next argument, a buffer: the device address of its first element.
    ///
    /// # Panics
    /// If the kernel declares another parameter here.
    pub fn address(&mut self) -> u64 {
        match self.next() {
            Some((ParamKind::Buffer { .. }, address)) => address,
            _ => panic!("the call takes a buffer, but its kernel declares another parameter here"),
        }
    }

    /// Takes the next argument, a number passed by value.
    ///
    /// # Panics
    /// If the kernel declares another parameter here.
    pub fn scalar<T: Number>(&mut self) -> T {
        match self.next() {
            Some((ParamKind::Scalar { dtype }, bits)) if *dtype == T::DTYPE => Scalar {
                dtype: *dtype,
                bits,
            }
            .get(),
            _ => panic!("the call takes a number, but its kernel declares another parameter here"),
        }
    }

    fn next(&mut self) -> Option<(&ParamKind, u64)> {
        self.params.next().zip(self.words.next().copied())
    }
}

/// What submits the work of a library call. Two are equal if they are the same closure.
#[derive(Clone)]
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "library calls are submitted to GPUs")
)]
pub(crate) struct LibraryCode {
    /// The kernel's name, for errors.
    name: String,
    call: Arc<Call>,
    /// What runs before the call is captured.
    warm_up: Option<Arc<Call>>,
}

type Call = dyn Fn(&mut LibraryCall<'_>) -> Result<()> + Send + Sync;

impl LibraryCode {
    /// Calls the closure, which submits the work of a launch to `stream`. A panic is an error of
    /// [`ErrorKind::Kernel`]; the closure's own error keeps its kind.
    ///
    /// # Safety
    /// `stream` is alive, and the addresses in `words` are those of buffers of the launch.
    #[cfg_attr(
        not(feature = "cuda"),
        allow(dead_code, reason = "library calls are submitted to GPUs")
    )]
    pub(crate) unsafe fn submit(
        &self,
        stream: u64,
        params: &[ParamKind],
        words: &[u64],
    ) -> Result<()> {
        let mut call = LibraryCall {
            stream,
            params: params.iter(),
            words: words.iter(),
        };
        let panicked = |message| Error::new(ErrorKind::Kernel, format!("it panicked: {message}"));
        let submitted = catch(|| (self.call)(&mut call)).map_err(panicked);
        submitted
            .flatten()
            .within(|| format!("kernel {}", self.name))
    }
}

impl PartialEq for LibraryCode {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.call, &other.call)
    }
}

impl fmt::Debug for LibraryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LibraryCode")
    }
}

impl Kernel {
    /// Makes the kernel a library call, in place of device code: `call` gives the work to a stream,
    /// with cuBLAS or cuFFT for instance. It completes the declaration as [`Kernel::code`] does. Its
    /// launch is recorded with [`Recorder::call`](super::Recorder::call).
    ///
    /// In modes with graphs the work is captured when the graph is made, and replayed without another
    /// call; otherwise `call` runs for each batch. Without a GPU the twin runs. A supervised device
    /// refuses such a kernel, since its worker process does not have the closure.
    ///
    /// A graph cannot hold the allocations of a library, such as that of cuBLAS for its workspace. Give
    /// the library a buffer that the kernel [`writes`](Kernel::writes). The buffer belongs to the slot,
    /// so batches in flight do not share it.
    ///
    /// A library may submit other work for other arguments, so a graph is captured again when they
    /// change.
    ///
    /// ```
    /// use tapeloop_engine::record::{Kernel, LibraryCall, TwinLaunch};
    ///
    /// fn twice(launch: &mut TwinLaunch<'_>) {
    ///     for y in launch.write::<f32>() {
    ///         *y *= 2.0;
    ///     }
    /// }
    ///
    /// # fn sscal(_stream: u64, _len: u32, _factor: f32, _y: u64) -> i32 { 0 }
    /// let call = |call: &mut LibraryCall<'_>| {
    ///     let (y, len) = (call.address(), call.scalar::<u32>());
    ///     match sscal(call.stream(), len, 2.0, y) {
    ///         0 => Ok(()),
    ///         status => Err(tapeloop_engine::Error::usage(format!("sscal returned {status}"))),
    ///     }
    /// };
    /// let kernel = Kernel::new("twice").updates::<f32>("y").scalar::<u32>("len").twin(twice);
    /// // SAFETY: `sscal` updates `len` numbers, which is the length of `y` in the recording.
    /// let kernel = unsafe { kernel.library_call(call) };
    /// ```
    ///
    /// # Safety
    /// `call`
    /// - gives work to the stream that it gets, or to streams that wait for it and that it waits for,
    ///   and to no other;
    /// - keeps to the declaration as the code in [`Kernel::code`] does: the work reads and writes only
    ///   memory behind the addresses that it gets, each with the declared access and within the length
    ///   of the buffer that the recording passes there, whatever the buffers hold that the host can
    ///   write; or device memory that the closure owns, or that is never freed, and that any number of
    ///   launches may use at the same time;
    /// - submits no work that reads or writes the host's memory, or that calls the host, when it is
    ///   replayed;
    /// - leaves the same context current, and may be called by several threads at the same time, also for
    ///   several devices. The context that is current says for which one.
    ///
    /// The closure is dropped after the last backend that has loaded the kernel, and the last copy of the
    /// kernel.
    ///
    /// # Panics
    /// After [`Kernel::code`] or another call of this, and for a kernel that takes a struct.
    #[must_use]
    pub unsafe fn library_call(
        mut self,
        call: impl Fn(&mut LibraryCall<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.expect_open();
        let mut kinds = self.params.iter().map(|param| &param.kind);
        assert!(
            !kinds.any(|kind| matches!(kind, ParamKind::Struct { .. })),
            "kernel {} takes a struct, which a library call cannot",
            self.name
        );
        self.code = Some(DeviceCode::Library(LibraryCode {
            name: self.name.clone(),
            call: Arc::new(call),
            warm_up: None,
        }));
        self
    }

    /// Makes `warm_up` run before a library call is captured, outside of the capture: in each slot, before it makes
    /// the graph of a bucket. A library that allocates or compiles at its first call does so then, where it
    /// may; in a capture the driver refuses it. The engine waits until the work that it submits is done.
    ///
    /// It gets what the call gets, and may be the same closure. The buffers hold zeros, what an earlier batch left,
    /// or what the host has written for the next one. In [`Mode::Stream`](crate::replay::Mode::Stream) and without
    /// a GPU it does not run.
    ///
    /// ```
    /// use tapeloop_engine::record::{Kernel, LibraryCall};
    ///
    /// let call = |_: &mut LibraryCall<'_>| Ok(());
    /// let kernel = Kernel::new("twice").updates::<f32>("y");
    /// // SAFETY: it submits nothing.
    /// let kernel = unsafe { kernel.library_call(call).warm_up(call) };
    /// ```
    ///
    /// # Safety
    /// As for the closure of [`Kernel::library_call`]. What it writes to the buffers of a slot is overwritten by the
    /// batch, or does no harm there; a resident buffer that the kernel updates keeps what this leaves.
    ///
    /// # Panics
    /// If the kernel is no library call.
    #[must_use]
    pub unsafe fn warm_up(
        mut self,
        warm_up: impl Fn(&mut LibraryCall<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        match &mut self.code {
            Some(DeviceCode::Library(code)) => code.warm_up = Some(Arc::new(warm_up)),
            _ => panic!(
                "kernel {} is no library call, which a warm-up precedes",
                self.name
            ),
        }
        self
    }

    /// The kernel whose launch is the warm-up of this one.
    pub(crate) fn warm_up_kernel(&self) -> Option<Kernel> {
        let Some(DeviceCode::Library(code)) = &self.code else {
            return None;
        };
        let mut kernel = self.clone();
        kernel.code = Some(DeviceCode::Library(LibraryCode {
            name: format!("{}, warm-up", code.name),
            call: Arc::clone(code.warm_up.as_ref()?),
            warm_up: None,
        }));
        Some(kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::DType;

    fn code(
        call: impl Fn(&mut LibraryCall<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> LibraryCode {
        LibraryCode {
            name: "sum".to_owned(),
            call: Arc::new(call),
            warm_up: None,
        }
    }

    #[test]
    fn a_call_takes_its_arguments_in_order() {
        let params = [
            ParamKind::Scalar { dtype: DType::F32 },
            ParamKind::Buffer {
                dtype: DType::U8,
                access: crate::record::Access::Read,
            },
        ];
        let words = [u64::from(1.5_f32.to_bits()), 0x5000];
        let takes = code(|call| {
            assert_eq!((call.stream(), call.scalar::<f32>()), (7, 1.5));
            assert_eq!(call.address(), 0x5000);
            Ok(())
        });
        // SAFETY: the stream and the addresses are numbers to the closure.
        unsafe { takes.submit(7, &params, &words) }.unwrap();
        for mistaken in [
            code(|call| Err(Error::usage(call.address().to_string()))),
            code(|call| Err(Error::usage(call.scalar::<u32>().to_string()))),
        ] {
            // SAFETY: as above.
            let error = unsafe { mistaken.submit(7, &params, &words) }.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Kernel);
            assert!(error.to_string().contains("kernel sum: it panicked: "));
        }
    }

    #[test]
    #[should_panic(expected = "is no library call")]
    fn only_a_library_call_has_a_warm_up() {
        // SAFETY: it does nothing.
        let _ = unsafe { Kernel::new("call").warm_up(|_| Ok(())) };
    }

    #[test]
    #[should_panic(expected = "takes a struct")]
    fn a_struct_is_refused() {
        let kernel = Kernel::new("call").structure("args", 8, &[]);
        // SAFETY: it does nothing.
        let _ = unsafe { kernel.library_call(|_| Ok(())) };
    }
}
