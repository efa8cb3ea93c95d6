//! The options of a run about its annotations.

/// The columns of annotations that the tables get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedColumns {
    /// All columns.
    All,
    /// The columns with these names.
    Named(Vec<String>),
}

impl WantedColumns {
    /// No columns: the tables stay as they are.
    pub const NONE: WantedColumns = WantedColumns::Named(Vec::new());
}

/// What happens if no row of a table of annotations matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnmatchedTables {
    /// An error, as the table is probably of other structures.
    Error,
    /// A warning: the rows may be of structures in other shards.
    Warn,
    /// Neither an error nor a warning.
    Allow,
}
