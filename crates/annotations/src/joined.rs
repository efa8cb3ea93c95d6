//! The annotations of a model, as columns of the tables.

use std::sync::Arc;

/// The columns of a model, in the order of those of
/// [`Annotations::columns`](super::Annotations::columns) of each level. A structure without any row
/// has none.
#[derive(Debug, Default)]
pub struct Joined {
    /// Columns of the table of structures, with one row.
    pub structures: Vec<JoinedValues>,
    /// Columns of the table of residues, with a row for each residue.
    pub residues: Vec<JoinedValues>,
    /// The table of variants, with a row for each variant.
    pub variants: JoinedVariants,
}

/// Some consecutive rows of the table of variants.
#[derive(Debug, Default)]
pub struct JoinedVariants {
    /// Columns with a row for each of these variants.
    pub columns: Vec<JoinedValues>,
    /// For each row the index of the residue; `None` if the model has no such residue.
    pub residues: Vec<Option<u32>>,
    /// For each row the residue as the annotation names it.
    pub keys: Vec<VariantKey>,
}

/// The residue of a variant.
#[derive(Clone, Debug)]
pub struct VariantKey {
    /// The author's chain id.
    pub chain: Arc<str>,
    /// The author's number.
    pub number: i32,
    /// 0 for none.
    pub ins_code: u8,
}

/// The values of a column, one for each row.
#[derive(Debug)]
pub enum JoinedValues {
    /// Booleans.
    Flags(Vec<Option<bool>>),
    /// Integers of 32 or 64 bits.
    Integers(Vec<Option<i64>>),
    /// Reals of 32 or 64 bits.
    Reals(Vec<Option<f64>>),
    /// Indices of the texts, and the texts.
    Texts(Vec<Option<u32>>, Vec<Box<str>>),
}

impl JoinedValues {
    /// The most bytes of a text.
    fn text_bytes_max(&self) -> usize {
        match self {
            JoinedValues::Texts(_, texts) => texts.iter().map(|text| text.len()).max().unwrap_or(0),
            _ => 0,
        }
    }
}

/// Upper bound of the bytes of text in a row of these columns.
pub fn text_bytes_max(columns: &[JoinedValues]) -> usize {
    columns.iter().map(JoinedValues::text_bytes_max).sum()
}
