//! The names of the file formats. [`formats`](super::formats) has what the program knows of each.

/// A file format of structures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// The fixed columns of the Protein Data Bank, version 3.3, and PDBQT.
    Pdb,
    /// mmCIF, of which PDBx and ModelCIF are dictionaries.
    Mmcif,
    /// BinaryCIF, the binary form of mmCIF, version 0.3.
    BinaryCif,
}

impl Format {
    /// All formats.
    pub const ALL: &[Format] = &[Format::Pdb, Format::Mmcif, Format::BinaryCif];
}
