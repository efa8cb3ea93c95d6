//! What the annotations of a model bring to the tables.

use std::sync::Arc;

/// The columns of a model, in the order of those of
/// [`Annotations::columns`](super::Annotations::columns) of each level. A structure without any row
/// has none.
#[derive(Debug, Default)]
pub(in crate::cli) struct Joined {
    /// With one row.
    pub(in crate::cli) structures: Vec<JoinedValues>,
    /// With a row for each residue.
    pub(in crate::cli) residues: Vec<JoinedValues>,
    pub(in crate::cli) variants: JoinedVariants,
}

/// Some consecutive rows of the table of variants.
#[derive(Debug, Default)]
pub(in crate::cli) struct JoinedVariants {
    pub(in crate::cli) columns: Vec<JoinedValues>,
    /// For each row the index of the residue; `None` if the model has no such residue.
    pub(in crate::cli) residues: Vec<Option<u32>>,
    /// For each row the residue as the annotation names it.
    pub(in crate::cli) keys: Vec<VariantKey>,
}

/// The residue of a variant.
#[derive(Clone, Debug)]
pub(in crate::cli) struct VariantKey {
    pub(in crate::cli) chain: Arc<str>,
    pub(in crate::cli) number: i32,
    /// 0 for none.
    pub(in crate::cli) ins_code: u8,
}

/// The values of a column, one for each row.
#[derive(Debug)]
pub(in crate::cli) enum JoinedValues {
    Flags(Vec<Option<bool>>),
    Integers(Vec<Option<i64>>),
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
pub(in crate::cli) fn text_bytes_max(columns: &[JoinedValues]) -> usize {
    columns.iter().map(JoinedValues::text_bytes_max).sum()
}
