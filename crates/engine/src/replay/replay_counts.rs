//! Counts what one replay did.

/// What one replay did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replay {
    /// Driver calls that gave work or fences.
    pub calls: usize,
    /// Bytes that copies moved.
    pub copied_bytes: usize,
    /// Of [`Replay::copied_bytes`], those beyond the batch's live part.
    pub padding_bytes: usize,
    /// Buckets that were made ready.
    pub made: usize,
    /// Buckets that were dropped to make room.
    pub dropped: usize,
    /// Graphs that the device refused; they are tried again later.
    pub graphs_failed: usize,
    /// 1 if the batch ran in a larger bucket because its own has no graph.
    pub larger_bucket: usize,
    /// 1 if the batch ran as single launches because there is no graph.
    pub as_launches: usize,
    /// 1 if the batch ran twice with the same results.
    pub verified: usize,
    /// Whether the slot's timestamps will be of this batch.
    pub timed: bool,
}
