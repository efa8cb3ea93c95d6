//! The scope of an error.

use super::driver_code::{CAPTURE_CODES, UPDATE_CODES};
use super::{Code, ErrorKind};

/// What fails because of an error, from the least to the most.
///
/// ```
/// use tapeloop_error::{Error, ErrorScope};
///
/// let error = Error::input("a length of 0");
/// assert_eq!(error.scope(), ErrorScope::Item);
/// assert!(error.scope() < ErrorScope::Device, "the device goes on");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ErrorScope {
    /// One item: it comes back with the error.
    Item,
    /// One batch: each of its items comes back with the error.
    Batch,
    /// The graph of a bucket, which could not be made or changed. The batch takes the policy's
    /// fallback; without one it fails as for [`ErrorScope::Batch`], and a later batch of the
    /// bucket tries again.
    Graph,
    /// A device, which takes no more work. A supervised device is restarted;
    /// otherwise the engine ends.
    Device,
    /// The engine: it takes no more work.
    Engine,
}

impl ErrorScope {
    /// The scope of an error of this kind with this driver code. A device error without a code,
    /// or with an unknown one, counts as a loss of the device.
    pub(super) fn for_kind(kind: ErrorKind, code: Option<i32>) -> ErrorScope {
        match kind {
            ErrorKind::Input
            | ErrorKind::Capacity
            | ErrorKind::Quarantined
            | ErrorKind::Expired => ErrorScope::Item,
            ErrorKind::Usage | ErrorKind::Kernel | ErrorKind::Mismatch => ErrorScope::Batch,
            ErrorKind::OutOfMemory => ErrorScope::Graph,
            ErrorKind::Device => match code {
                Some(code) if Code::of(code).loses_context => ErrorScope::Device,
                // The stream and the context go on.
                Some(code) if CAPTURE_CODES.contains(&code) || UPDATE_CODES.contains(&code) => {
                    ErrorScope::Graph
                }
                Some(_) => ErrorScope::Batch,
                None => ErrorScope::Device,
            },
            ErrorKind::Deadline | ErrorKind::Worker => ErrorScope::Device,
            ErrorKind::Config | ErrorKind::Io | ErrorKind::Unavailable | ErrorKind::Closed => {
                ErrorScope::Engine
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_error_concerns_the_device_exactly_where_the_context_is_lost() {
        for raw in -1..=1100 {
            let scope = ErrorScope::for_kind(ErrorKind::Device, Some(raw));
            let is_of_device = scope == ErrorScope::Device;
            assert_eq!(is_of_device, Code::of(raw).loses_context, "code {raw}");
            let is_of_capture = CAPTURE_CODES.contains(&raw);
            assert!(!is_of_capture || scope == ErrorScope::Graph, "code {raw}");
        }
        assert_eq!(
            ErrorScope::for_kind(ErrorKind::Device, None),
            ErrorScope::Device
        );
        for lost in [700, 719, 911, 916, 999] {
            assert_eq!(
                ErrorScope::for_kind(ErrorKind::Device, Some(lost)),
                ErrorScope::Device
            );
        }
    }

    #[test]
    fn every_kind_has_a_scope() {
        let scope_of = |kind| ErrorScope::for_kind(kind, None);
        for (kind, scope) in [
            (ErrorKind::Input, ErrorScope::Item),
            (ErrorKind::Capacity, ErrorScope::Item),
            (ErrorKind::Quarantined, ErrorScope::Item),
            (ErrorKind::Expired, ErrorScope::Item),
            (ErrorKind::Usage, ErrorScope::Batch),
            (ErrorKind::Kernel, ErrorScope::Batch),
            (ErrorKind::Mismatch, ErrorScope::Batch),
            (ErrorKind::OutOfMemory, ErrorScope::Graph),
            (ErrorKind::Deadline, ErrorScope::Device),
            (ErrorKind::Worker, ErrorScope::Device),
            (ErrorKind::Config, ErrorScope::Engine),
            (ErrorKind::Io, ErrorScope::Engine),
            (ErrorKind::Unavailable, ErrorScope::Engine),
            (ErrorKind::Closed, ErrorScope::Engine),
        ] {
            assert_eq!(scope_of(kind), scope, "{kind:?}");
        }
        assert!(ErrorScope::Item < ErrorScope::Batch && ErrorScope::Device < ErrorScope::Engine);
    }
}
