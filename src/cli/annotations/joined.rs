//! What the annotations of a model bring to the tables.

use std::sync::Arc;

/// The columns of a model, in the order of those of
/// [`Annotations::columns`](super::Annotations::columns) of each level.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct Joined {
    /// With one row.
    pub(in crate::cli) structures: Vec<JoinedColumn>,
    /// With a row for each residue.
    pub(in crate::cli) residues: Vec<JoinedColumn>,
    pub(in crate::cli) variants: JoinedVariants,
}

/// The rows of the table of variants.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct JoinedVariants {
    pub(in crate::cli) columns: Vec<JoinedColumn>,
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

/// A column whose rows point at the values of a structure's annotations.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct JoinedColumn {
    pub(in crate::cli) values: Arc<JoinedValues>,
    /// For each row the index of its value.
    pub(in crate::cli) at: Arc<[Option<u32>]>,
}

/// The values of a column.
#[derive(Debug)]
pub(in crate::cli) enum JoinedValues {
    Flags(Vec<Option<bool>>),
    Integers(Vec<Option<i64>>),
    Reals(Vec<Option<f64>>),
    /// Indices of the texts, and the texts.
    Texts(Vec<Option<u32>>, Vec<Box<str>>),
}

impl Default for JoinedValues {
    fn default() -> Self {
        JoinedValues::Flags(Vec::new())
    }
}

impl JoinedValues {
    /// Whether the value at `index` is null.
    pub(super) fn is_null(&self, index: usize) -> bool {
        match self {
            JoinedValues::Flags(values) => values[index].is_none(),
            JoinedValues::Integers(values) => values[index].is_none(),
            JoinedValues::Reals(values) => values[index].is_none(),
            JoinedValues::Texts(values, _) => values[index].is_none(),
        }
    }

    /// The most bytes of a text.
    fn text_bytes_max(&self) -> usize {
        match self {
            JoinedValues::Texts(_, texts) => texts.iter().map(|text| text.len()).max().unwrap_or(0),
            _ => 0,
        }
    }
}

/// Upper bound of the bytes of text in a row of these columns.
pub(in crate::cli) fn text_bytes_max(columns: &[JoinedColumn]) -> usize {
    columns
        .iter()
        .map(|column| column.values.text_bytes_max())
        .sum()
}
