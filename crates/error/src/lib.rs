//! The one error type of tapeloop's crates.
//!
//! An [`Error`] has a kind, a message, a fix if there is something to do, and the places that it
//! passed through, outermost first: `slot 2: batch 8123: download: buffer out: ...`.

mod driver_code;
mod later_fields;
mod panics;
mod printable;
mod scope;
mod threads;

pub use driver_code::Code;
pub use scope::ErrorScope;
use std::fmt;

/// What the other crates of tapeloop use. It may change with every version.
#[doc(hidden)]
pub mod internal {
    pub use crate::driver_code::CAPTURE_CODES;
    pub use crate::later_fields::LaterFields;
    pub use crate::panics::catch;
    pub use crate::printable::{cut, excerpt, printable, printable_lines};
    pub use crate::threads::{stack_bytes, thread, thread_error};
}

/// The kind of an error, for programs to match on.
///
/// ```
/// use tapeloop_error::{Error, ErrorKind};
///
/// let error = Error::from(std::fs::read("missing.cif").unwrap_err());
/// assert_eq!(error.kind(), ErrorKind::Io);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ErrorKind {
    /// A setting is missing, unknown, of the wrong type or out of range.
    Config,
    /// The library or the program is called in a wrong way.
    Usage,
    /// An input item cannot be used; other items are unaffected.
    Input,
    /// An operating-system call failed: on a file, or one that starts a thread.
    Io,
    /// An item or a plan does not fit in the memory that is reserved for it, or a file exceeds a
    /// limit of its reader.
    Capacity,
    /// Device or pinned memory ran out.
    OutOfMemory,
    /// The requested backend does not exist or cannot be used.
    Unavailable,
    /// A kernel could not be compiled, loaded or found, or its CPU twin panicked.
    Kernel,
    /// A driver call or work on the device failed; [`Error::code`] is the driver's code.
    Device,
    /// The device did not finish a batch before the deadline, and counts as lost.
    Deadline,
    /// The worker process of a supervised device ended for a reason outside of its work: another
    /// process sent it a signal such as SIGKILL, or it ended while it started. The device is
    /// restarted, and no item is blamed.
    Worker,
    /// The device failed twice on this item alone; other items are unaffected.
    Quarantined,
    /// The item's batch was given no slot before the time at which the item expires; it was not
    /// computed.
    Expired,
    /// A graph or a result on the device differs from the recording.
    Mismatch,
    /// The engine has stopped and takes no more work.
    Closed,
}

impl ErrorKind {
    /// The name in `rejected.jsonl` and in the table of rejected inputs, in small letters.
    #[doc(hidden)]
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// An error with its kind, its fix and its places.
///
/// ```
/// use tapeloop_error::Error;
///
/// let error = Error::input("line 3 has no number").fix("write one").within("a.txt");
/// assert_eq!(error.to_string(), "a.txt: line 3 has no number (fix: write one)");
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Error(Box<Inner>);

#[derive(Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Inner {
    kind: ErrorKind,
    message: String,
    fix: Option<String>,
    code: Option<i32>,
    // A worker process sends errors of devices, and none of files.
    #[cfg_attr(feature = "serde", serde(skip))]
    io_kind: Option<std::io::ErrorKind>,
    // Innermost first; printed in reverse.
    context: Vec<String>,
}

/// A result with an [`Error`].
///
/// ```
/// use tapeloop_error::{Error, Result};
///
/// fn number(text: &str) -> Result<f32> {
///     text.parse().map_err(|_| Error::input(format!("{text:?} is no number")))
/// }
/// assert!(number("7.5").is_ok() && number("seven").is_err());
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of this kind with a message. Control characters in it, but line breaks and tabs, become
    /// escapes, and of more than 16 KiB the end is cut; so it is with fixes and places.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            kind,
            message: printable::message(message.into()),
            fix: None,
            code: None,
            io_kind: None,
            context: Vec::new(),
        }))
    }

    /// [`ErrorKind::Config`].
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Config, message)
    }

    /// [`ErrorKind::Usage`].
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// [`ErrorKind::Input`].
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Input, message)
    }

    /// [`ErrorKind::Io`], with the operating system's message.
    pub fn io(error: std::io::Error) -> Self {
        let mut wrapped = Self::new(ErrorKind::Io, error.to_string());
        wrapped.0.io_kind = Some(error.kind());
        wrapped
    }

    /// Adds what the reader can do.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.0.fix = Some(printable::message(fix.into()));
        self
    }

    /// Adds the driver's code (a `CUresult`).
    #[must_use]
    pub fn with_code(mut self, code: i32) -> Self {
        self.0.code = Some(code);
        self
    }

    /// Adds a place around those that the error has.
    #[must_use]
    pub fn within(mut self, place: impl Into<String>) -> Self {
        self.0.context.push(printable::message(place.into()));
        self
    }

    /// Removes all places.
    #[must_use]
    pub fn without_places(mut self) -> Self {
        self.0.context.clear();
        self
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message, without places and fix.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What the reader can do, if known.
    pub fn fix_text(&self) -> Option<&str> {
        self.0.fix.as_deref()
    }

    /// What the error ends: see docs/ERRORS.md.
    pub fn scope(&self) -> ErrorScope {
        ErrorScope::for_kind(self.0.kind, self.0.code)
    }

    /// The driver's code (a `CUresult`), if the error came from the driver.
    pub fn code(&self) -> Option<i32> {
        self.0.code
    }

    /// The kind of the operating system's error, if the error came from a call on a file.
    ///
    /// ```
    /// use std::io;
    /// use tapeloop_error::Error;
    ///
    /// let error = Error::from(std::fs::read("missing.cif").unwrap_err());
    /// assert_eq!(error.io_kind(), Some(io::ErrorKind::NotFound));
    /// ```
    pub fn io_kind(&self) -> Option<std::io::ErrorKind> {
        self.0.io_kind
    }

    /// The places, outermost first.
    pub fn places(&self) -> impl Iterator<Item = &str> {
        self.0.context.iter().rev().map(String::as_str)
    }
}

impl Error {
    /// The places and the message, without the fix.
    #[doc(hidden)]
    pub fn reason(&self) -> String {
        let mut reason: Vec<&str> = self.places().collect();
        reason.push(self.message());
        reason.join(": ")
    }
}

impl Clone for Error {
    fn clone(&self) -> Self {
        Error(self.0.clone())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for place in self.places() {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.0.message)?;
        if let Some(fix) = &self.0.fix {
            write!(f, " (fix: {fix})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::io(error)
    }
}

/// Adds places to errors.
pub trait Context<T> {
    /// Adds the place that `place` returns to an error.
    fn within<P: Into<String>>(self, place: impl FnOnce() -> P) -> Result<T>;
}

impl<T, E: Into<Error>> Context<T> for std::result::Result<T, E> {
    #[inline]
    fn within<P: Into<String>>(self, place: impl FnOnce() -> P) -> Result<T> {
        self.map_err(|error| error.into().within(place()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_print_outermost_first_and_the_fix_last() {
        let error = Error::new(ErrorKind::Device, "illegal address")
            .with_code(700)
            .fix("run with compute-sanitizer")
            .within("download")
            .within("slot 2");
        assert_eq!(
            error.to_string(),
            "slot 2: download: illegal address (fix: run with compute-sanitizer)"
        );
        assert_eq!(error.code(), Some(700));
    }
}
