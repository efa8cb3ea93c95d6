//! What an error concerns.

use super::{Code, ErrorKind};

/// What an error concerns, from the least to the most. An error ends what it
/// concerns, and nothing beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// One item: it comes back with the error.
    Item,
    /// One batch: each of its items comes back with the error.
    Batch,
    /// The graph of a bucket, which could not be made or changed. The batch takes
    /// the fallback that the policy names; without one it fails as for
    /// [`Scope::Batch`], and a later batch of the bucket tries again.
    Graph,
    /// A device, which takes no more work. A supervised device is started again;
    /// otherwise the engine ends.
    Device,
    /// The engine: it takes no more work.
    Engine,
}

impl Scope {
    /// The scope of an error of this kind with this code of the driver. A device
    /// error without a code, or with one that is not known, is taken for the worst.
    pub(super) fn of(kind: ErrorKind, code: Option<i32>) -> Scope {
        match kind {
            ErrorKind::Input | ErrorKind::Capacity | ErrorKind::Quarantined => Scope::Item,
            ErrorKind::Usage | ErrorKind::Kernel | ErrorKind::Mismatch => Scope::Batch,
            ErrorKind::OutOfMemory => Scope::Graph,
            ErrorKind::Device => match code {
                Some(code) if Code::of(code).loses_context => Scope::Device,
                // Captures, updates of graphs, captures that are made again.
                Some(900..=910 | 918) => Scope::Graph,
                Some(_) => Scope::Batch,
                None => Scope::Device,
            },
            ErrorKind::Deadline => Scope::Device,
            ErrorKind::Config | ErrorKind::Io | ErrorKind::Unavailable | ErrorKind::Closed => {
                Scope::Engine
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
            let scope = Scope::of(ErrorKind::Device, Some(raw));
            let is_of_device = scope == Scope::Device;
            assert_eq!(is_of_device, Code::of(raw).loses_context, "code {raw}");
            let is_of_capture = (900..=909).contains(&raw);
            assert!(!is_of_capture || scope == Scope::Graph, "code {raw}");
        }
        assert_eq!(Scope::of(ErrorKind::Device, None), Scope::Device);
        for lost in [700, 719, 911, 916, 999] {
            assert_eq!(Scope::of(ErrorKind::Device, Some(lost)), Scope::Device);
        }
    }

    #[test]
    fn every_kind_has_a_scope() {
        let of = |kind| Scope::of(kind, None);
        for (kind, scope) in [
            (ErrorKind::Input, Scope::Item),
            (ErrorKind::Capacity, Scope::Item),
            (ErrorKind::Quarantined, Scope::Item),
            (ErrorKind::Usage, Scope::Batch),
            (ErrorKind::Kernel, Scope::Batch),
            (ErrorKind::Mismatch, Scope::Batch),
            (ErrorKind::OutOfMemory, Scope::Graph),
            (ErrorKind::Deadline, Scope::Device),
            (ErrorKind::Config, Scope::Engine),
            (ErrorKind::Io, Scope::Engine),
            (ErrorKind::Unavailable, Scope::Engine),
            (ErrorKind::Closed, Scope::Engine),
        ] {
            assert_eq!(of(kind), scope, "{kind:?}");
        }
        assert!(Scope::Item < Scope::Batch && Scope::Device < Scope::Engine);
    }
}
