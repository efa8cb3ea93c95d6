//! Violations of the rules for work on a device.

use std::fmt;
use std::ops::Range;
use tapeloop_engine::backend::Space;
use tapeloop_engine::backend::contract::FunctionId;
use tapeloop_engine::error::Error;

/// The rule that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ViolationKind {
    /// Two accesses to the same bytes, at least one a write, that are not ordered.
    Unordered,
    /// An address outside of the slot's memory.
    Foreign,
    /// An address in memory that was freed.
    Freed,
    /// A graph is launched with an allocation that its slot has disowned.
    Stale,
    /// Device memory is read before anything was written there.
    Undefined,
    /// A call that a capture forbids.
    Capture,
    /// A loop on the device is rung, launched or ended against the rules, or takes a batch twice or
    /// not at all.
    Doorbell,
}

/// An access, with names for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Accessed {
    /// The actor: `upload`, `kernel scale`, `the host`.
    pub operation: String,
    /// The slot of the work; `None` for the host.
    pub slot: Option<usize>,
    /// The index in the graph.
    pub node: Option<usize>,
    /// The memory.
    pub memory: String,
    /// The range in bytes.
    pub bytes: Range<usize>,
    /// Whether the access is a write.
    pub writes: bool,
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The rule.
    pub kind: ViolationKind,
    /// The message.
    pub message: String,
    /// The access that broke it.
    pub later: Option<Accessed>,
    /// The access that it clashes with.
    pub earlier: Option<Accessed>,
}

impl ViolationKind {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            ViolationKind::Unordered => "unordered",
            ViolationKind::Foreign => "foreign address",
            ViolationKind::Freed => "freed memory",
            ViolationKind::Stale => "stale address",
            ViolationKind::Undefined => "undefined bytes",
            ViolationKind::Capture => "capture",
            ViolationKind::Doorbell => "doorbell",
        }
    }
}

impl Violation {
    pub(super) fn new(kind: ViolationKind, message: String) -> Self {
        Violation {
            kind,
            message,
            later: None,
            earlier: None,
        }
    }

    /// Two accesses of which neither comes after the other.
    pub(super) fn unordered(earlier: Accessed, later: Accessed) -> Self {
        Violation {
            kind: ViolationKind::Unordered,
            message: format!("{later}, and is not after this: {earlier}"),
            later: Some(later),
            earlier: Some(earlier),
        }
    }

    /// A read of bytes that nothing has written.
    pub(super) fn undefined(later: Accessed) -> Self {
        Violation {
            kind: ViolationKind::Undefined,
            message: format!("{later}, which nothing has written"),
            later: Some(later),
            earlier: None,
        }
    }

    pub(super) fn error(&self) -> Error {
        Error::usage(format!("the simulated device saw a violation: {self}"))
    }
}

impl fmt::Display for Accessed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.writes { "writes" } else { "reads" };
        let Range { start, end } = self.bytes;
        f.write_str(&self.operation)?;
        if let Some(slot) = self.slot {
            write!(f, " (slot {slot}")?;
            match self.node {
                Some(node) => write!(f, ", node {node})")?,
                None => f.write_str(")")?,
            }
        }
        write!(f, " {verb} bytes {start} to {end} of {}", self.memory)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.message)
    }
}

/// The actor of an access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Actor {
    /// `None` for the host.
    pub(super) slot: Option<u32>,
    pub(super) node: Option<u32>,
    pub(super) action: Action,
}

/// The action of an actor.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Upload,
    Download,
    Copy,
    Memset,
    Kernel(FunctionId),
    Timestamp,
    Host,
}

impl Actor {
    pub(super) const HOST: Actor = Actor {
        slot: None,
        node: None,
        action: Action::Host,
    };
}

/// The name of one side of a buffer.
pub(super) fn memory_name(buffer: &str, slot: u32, space: Space) -> String {
    format!("buffer {buffer} of slot {slot} ({})", space.name())
}
