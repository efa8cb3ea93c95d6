//! Spans as NVTX ranges, which Nsight Systems shows above the device's work.
//!
//! The library that passes ranges to a profiler is opened at run time, as the driver is. Without a
//! profiler its functions do nothing.

use crate::error::{Error, ErrorKind, Result};
use libloading::Library;
use std::ffi::{CString, c_char, c_int};
use std::fmt::{Debug, Write};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// The file names of version 3, which CUDA 12.9 has, and of the version before.
const LIBRARIES: [&str; 4] = [
    "libnvtx3interop.so.1",
    "libnvtx3interop.so",
    "libnvToolsExt.so.1",
    "libnvToolsExt.so",
];

/// A layer of a [`tracing`] subscriber that emits the spans of tapeloop's crates as NVTX ranges, with their
/// names and fields, in the threads that enter them.
///
/// ```no_run
/// use tapeloop_engine::backend::cuda::NvtxLayer;
/// use tapeloop_engine::backend::cuda::tracing_subscriber::{self, layer::SubscriberExt};
///
/// let subscriber = tracing_subscriber::registry().with(NvtxLayer::find()?);
/// // This fails only where there is another subscriber.
/// let _ = tracing::subscriber::set_global_default(subscriber);
/// # Ok::<(), tapeloop_engine::Error>(())
/// ```
pub struct NvtxLayer {
    push: unsafe extern "C" fn(*const c_char) -> c_int,
    pop: unsafe extern "C" fn() -> c_int,
    // Stays open as long as its functions are used.
    _library: Library,
}

/// The name of a span's range.
struct Label(CString);

impl NvtxLayer {
    /// Opens the library.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] without the library.
    pub fn find() -> Result<Self> {
        let found = LIBRARIES.iter().find_map(|name| NvtxLayer::open(name));
        found.ok_or_else(|| {
            let message = format!("no NVTX library ({}) on this machine", LIBRARIES[0]);
            Error::new(ErrorKind::Unavailable, message).fix(
                "install the CUDA toolkit or pip's nvidia-nvtx, and put the folder of the library \
                 into LD_LIBRARY_PATH",
            )
        })
    }

    /// Opens the library of this name; `None` if it is not there, as without profiling tools.
    fn open(name: &str) -> Option<Self> {
        // SAFETY: opening NVTX runs its initialisers alone, which are made to be run
        // by any process at any time.
        let library = unsafe { Library::new(name) }.ok()?;
        // SAFETY: the types are those of nvToolsExt.h, the same in all versions, and
        // the functions are called only while the library is open, as it is owned
        // beside them.
        let (push, pop) = unsafe {
            let push =
                library.get::<unsafe extern "C" fn(*const c_char) -> c_int>("nvtxRangePushA");
            let pop = library.get::<unsafe extern "C" fn() -> c_int>("nvtxRangePop");
            (*push.ok()?, *pop.ok()?)
        };
        Some(NvtxLayer {
            push,
            pop,
            _library: library,
        })
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for NvtxLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && is_own(attributes.metadata())
        {
            span.extensions_mut().replace(label(attributes));
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(Label(text)) = span.extensions().get::<Label>()
        {
            // SAFETY: `text` ends in a zero and outlives the call, which copies it.
            unsafe { (self.push)(text.as_ptr()) };
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && span.extensions().get::<Label>().is_some()
        {
            // SAFETY: the call takes nothing; spans are left in the thread that
            // entered them, the last one first, as ranges are.
            unsafe { (self.pop)() };
        }
    }
}

/// Whether it is a span of one of the crates of tapeloop.
fn is_own(metadata: &Metadata<'_>) -> bool {
    let of_crate = metadata.target().split("::").next().unwrap_or_default();
    of_crate == "tapeloop" || of_crate.starts_with("tapeloop_")
}

fn label(attributes: &Attributes<'_>) -> Label {
    let mut text = Text(attributes.metadata().name().to_owned());
    attributes.record(&mut text);
    Label(text.into_c())
}

/// A name followed by fields.
struct Text(String);

impl Text {
    fn into_c(self) -> CString {
        CString::new(self.0.replace('\0', "")).unwrap_or_default()
    }
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, " {field}={value:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_ends_where_it_ends() {
        let text = Text("fill batch=3\0 slot=1".to_owned());
        assert_eq!(text.into_c().as_bytes(), b"fill batch=3 slot=1");
    }

    #[test]
    fn a_library_that_is_none_is_not_taken() {
        assert!(NvtxLayer::open("libthere-is-no-such-library.so").is_none());
        // The library can be opened, and records no ranges.
        assert!(NvtxLayer::open("libc.so.6").is_none());
    }
}
