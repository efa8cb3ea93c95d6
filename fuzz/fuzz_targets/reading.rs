//! What every target does with text.

use tapeloop::structure::{Assembly, BFactorFields, Format, Models, ReadOptions, Reader};

/// Readers of all models, as deposited and as assembly 1.
pub(crate) fn readers() -> [Reader; 2] {
    [Assembly::Deposited, Assembly::First].map(|assembly| {
        Reader::new(ReadOptions {
            models: Models::All,
            assembly,
            ..ReadOptions::default()
        })
    })
}

/// Reads text in both ways, and finds its B factors.
#[allow(dead_code, reason = "one target reads files instead")]
pub(crate) fn read(text: &[u8], format: Format) {
    for mut reader in readers() {
        if let Ok(structures) = reader.read_bytes(text, format) {
            for structure in &structures {
                assert_eq!(structure.atom_start.len(), structure.residues.len() + 1);
                assert_eq!(structure.xyz.len(), structure.b_factor.len());
            }
        }
    }
    let _ = BFactorFields::find(text, format, ReadOptions::default().limits);
}
