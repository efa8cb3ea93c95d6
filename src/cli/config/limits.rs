//! How much may be read.

use super::form::Form;
use crate::structure::ReadLimits;

/// Bytes of files and text that the readers of all threads hold at once, unless the config
/// says otherwise: room for the four largest files that `limits.text_bytes_max` admits.
const READING_BYTES_MAX: i64 = 4 << 30;

/// The limits of a file.
pub(super) fn resolve_limits(form: &mut Form) -> ReadLimits {
    let default = ReadLimits::default();
    let mut limit = |key, default: u32| {
        let range = 1..=i64::from(u32::MAX);
        form.integer(key, default.into(), range) as u32
    };
    ReadLimits {
        text_bytes_max: limit("limits.text_bytes_max", default.text_bytes_max),
        unpack_ratio_max: limit("limits.unpack_ratio_max", default.unpack_ratio_max),
        name_bytes_max: limit("limits.name_bytes_max", default.name_bytes_max),
        atoms_max: limit("limits.atoms_max", default.atoms_max),
        residues_max: limit("limits.residues_max", default.residues_max),
        models_max: limit("limits.models_max", default.models_max),
        chains_max: limit("limits.chains_max", default.chains_max),
        operators_max: limit("limits.operators_max", default.operators_max),
        assembly_atoms_max: limit("limits.assembly_atoms_max", default.assembly_atoms_max),
        assembly_residues_max: limit(
            "limits.assembly_residues_max",
            default.assembly_residues_max,
        ),
    }
}

/// The bytes that the readers of all threads share.
pub(super) fn resolve_reading_bytes(form: &mut Form) -> u64 {
    form.integer("limits.reading_bytes_max", READING_BYTES_MAX, 1..=i64::MAX) as u64
}
