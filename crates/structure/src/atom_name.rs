//! The names of the heavy atoms of standard amino acids.

use super::text8::Text8;

/// The names in the order of their codes, from 1. Packed sets hold the codes.
const NAMES: [&str; 38] = [
    "N", "CA", "C", "O", "CB", "CG", "CD", "CG1", "CG2", "CD1", "CD2", "OG", "OG1", "SG", "SD",
    "SE", "ND1", "ND2", "OD1", "OD2", "NE", "NE1", "NE2", "OE1", "OE2", "CE", "CE1", "CE2", "CE3",
    "CZ", "CZ2", "CZ3", "NZ", "NH1", "NH2", "OH", "CH2", "OXT",
];

/// The name of an atom in one byte, if a standard amino acid or selenomethionine has an atom of that
/// name. The default is any other name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct AtomName(u8);

impl AtomName {
    /// The code of a name without blanks: `CG1`.
    pub fn of(name: &str) -> Self {
        let index = NAMES.iter().position(|known| *known == name);
        AtomName(index.map_or(0, |index| index as u8 + 1))
    }

    /// The code of a name that is padded with spaces.
    pub(super) fn of_padded(name: Text8) -> Self {
        // Compared as words: this runs for each atom of a residue that is not in the usual order.
        const WORDS: [u64; NAMES.len()] = {
            let mut words = [0; NAMES.len()];
            let mut index = 0;
            while index < NAMES.len() {
                words[index] = u64::from_le_bytes(padded(NAMES[index]));
                index += 1;
            }
            words
        };
        let word = u64::from_le_bytes(name);
        let index = WORDS.iter().position(|known| *known == word);
        AtomName(index.map_or(0, |index| index as u8 + 1))
    }

    /// The name; empty for any other name.
    pub fn as_str(self) -> &'static str {
        match usize::from(self.0).checked_sub(1) {
            Some(index) => NAMES.get(index).copied().unwrap_or_default(),
            None => "",
        }
    }
}

/// The name with spaces at its end, in constants.
const fn padded(name: &str) -> Text8 {
    let (bytes, mut padded) = (name.as_bytes(), *b"        ");
    let mut index = 0;
    while index < bytes.len() {
        padded[index] = bytes[index];
        index += 1;
    }
    padded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text8::text8;

    #[test]
    fn names_have_codes_and_others_none() {
        for name in NAMES {
            let code = AtomName::of(name);
            assert_eq!(code.as_str(), name);
            assert_eq!(AtomName::of_padded(text8(name.as_bytes())), code);
        }
        for name in ["", "CG3", "P", "OP1", "HB2", "ca"] {
            assert_eq!(AtomName::of(name), AtomName::default(), "{name}");
            assert_eq!(AtomName::of_padded(text8(name.as_bytes())).as_str(), "");
        }
    }
}
