//! The field that lets structs of options have more fields later.

use std::fmt;

/// Structs of options have a field of this type, which is not documented: a program's literal of such a
/// struct has to end with `..`, as in `..Policy::default()`, and so compiles with later versions that
/// have more fields. `#[non_exhaustive]` would refuse such literals too.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LaterFields(());

impl LaterFields {
    /// Its one value, for the crates' own defaults.
    pub const NONE: Self = LaterFields(());
}

impl fmt::Debug for LaterFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}
