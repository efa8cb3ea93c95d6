//! Reports the buffers that are alive.

use crate::backend::Space;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// The buffers that are alive, by owner; the largest sum comes first. At the end of a program these
/// are its leaks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeakReport {
    /// One line for each owner and kind of memory; without tracking, one for each kind of memory.
    pub lines: Vec<LeakLine>,
}

/// The buffers of one owner in one kind of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeakLine {
    /// The owner; `None` without tracking.
    pub owner: Option<Cow<'static, str>>,
    /// The kind of memory.
    pub space: Space,
    /// The number of buffers.
    pub buffers: u64,
    /// The size of their allocations in bytes.
    pub bytes: u64,
    /// The age of the oldest buffer; `None` without tracking.
    pub oldest: Option<Duration>,
}

impl LeakReport {
    /// Whether no buffer is alive.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The number of buffers.
    pub fn buffers(&self) -> u64 {
        self.lines.iter().map(|line| line.buffers).sum()
    }

    /// The size of all their allocations in bytes.
    pub fn bytes(&self) -> u64 {
        self.lines.iter().map(|line| line.bytes).sum()
    }

    /// Sorts the lines by size and owner.
    pub(super) fn sorted(mut self) -> Self {
        self.lines
            .sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.owner.cmp(&b.owner)));
        self
    }
}

impl fmt::Display for LeakReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (buffers, bytes) = (self.buffers(), self.bytes());
        write!(f, "{buffers} buffers of {bytes} bytes are alive")?;
        self.lines.iter().try_for_each(|line| write!(f, "\n{line}"))
    }
}

impl fmt::Display for LeakLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owner = self.owner.as_deref().unwrap_or("(not tracked)");
        let (bytes, space) = (self.bytes, self.space.name());
        write!(
            f,
            "  {owner:<24} {bytes:>14} B {space}, buffers: {}",
            self.buffers
        )?;
        match self.oldest {
            Some(oldest) => write!(f, ", oldest: {:.1} s", oldest.as_secs_f64()),
            None => Ok(()),
        }
    }
}
