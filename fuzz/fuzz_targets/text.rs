#![no_main]

mod reading;

use libfuzzer_sys::fuzz_target;
use tapeloop::structure::{BFactorFields, Format, ReadOptions};

// Reads text in every format, and finds its B factors.
fuzz_target!(|text: &[u8]| {
    for &format in Format::ALL {
        for mut reader in reading::readers() {
            if let Ok(structures) = reader.read_bytes(text, format) {
                for structure in &structures {
                    assert_eq!(structure.atom_start.len(), structure.residues.len() + 1);
                    assert_eq!(structure.xyz.len(), structure.b_factor.len());
                }
            }
        }
        let _ = BFactorFields::find(text, format, ReadOptions::default().limits);
    }
});
