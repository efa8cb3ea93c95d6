//! What a run wants of its annotations.

/// The columns of annotations that the tables get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All of them.
    All,
    /// Those with these names.
    Named(Vec<String>),
}

impl Wanted {
    /// No columns: the tables stay as they are.
    pub const NONE: Wanted = Wanted::Named(Vec::new());
}

/// What follows if no row of a table of annotations matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnmatchedTables {
    /// An error, as the table is probably of other structures.
    Error,
    /// A warning: the rows may be of structures in other shards.
    Warn,
    /// Nothing.
    Allow,
}
