//! What columns 18 to 22 of residues are: the component and the chain.
//!
//! The format has the component in columns 18 to 20 and the chain in column 22. Programs use column 21
//! too: for the fourth letter of a component (`DVAL`, `NALA`, `TIP3`), or for the first of two letters
//! of a chain (`AA`). A line alone does not show which: `HISAA` is HIS of chain AA, or HISA of chain A.
//! So all residues with the same letters in columns 21 and 22 are decided together, from the whole
//! file:
//!
//! 1. If a peptide bond joins one of them to a residue with the same letter in column 22 and another
//!    one in column 21, that is their chain, and the components have four letters.
//! 2. Else, if columns 18 to 20 of one of them are a component, by its atoms too, and columns 18 to 21
//!    are none, the chain has two letters.
//! 3. Else, if columns 18 to 21 of one of them are a component, or columns 18 to 20 one that has other
//!    atoms, the components have four letters. Else the chain has two.
//!
//! With a blank in column 22, column 21 is a chain only by rule 2 and an amino acid or a nucleotide, if
//! residues of several components have it, and no residue has blanks in both columns.
//!
//! Residues to which both 1 and 2 apply contradict each other, and are counted.

use std::collections::{HashMap, HashSet};

use super::columns::{
    COORDINATES_END, Columns, ResidueKey, coordinate_fields, is_atom, line_end, padded, take,
    text_start,
};
use super::models::ends_model;
use super::shifted_line::{self, LastResidue, ShiftedLine};
use crate::atom_table::PolymerKind;
use crate::decimal;
use crate::ligands::{is_agent_name, is_saccharide, is_water};
use crate::structure_builder::{LINK, is_within};
use crate::text8::text8;
use crate::{components, ions};

/// Components of four letters that no table has: lipids and sugars of CHARMM, and probes of DruGUI.
#[rustfmt::skip]
const FOUR_LETTERS: [&[u8; 4]; 56] = [
    b"ACAM", b"ACET", b"AFUC", b"AGAL", b"AGLC", b"AMAN", b"ANE5", b"BENZ", b"BFUC", b"BGAL", b"BGLC", b"BGLN",
    b"BMAN", b"CER1", b"CHL1", b"CHOL", b"DLPC", b"DLPE", b"DMPC", b"DMPE", b"DMPG", b"DOPA", b"DOPC", b"DOPE",
    b"DOPG", b"DOPS", b"DPPA", b"DPPC", b"DPPE", b"DPPG", b"DPPS", b"DSPC", b"DSPE", b"DSPG", b"ERG1", b"IMID",
    b"IPAM", b"IPRO", b"LDAO", b"PLPC", b"POPA", b"POPC", b"POPE", b"POPG", b"POPI", b"POPS", b"PSM1", b"SAPC",
    b"SDPC", b"SDPE", b"SDPS", b"SITO", b"SOPC", b"SOPE", b"STIG", b"TOCL",
];

/// Columns 21 and 22.
type Letters = [u8; 2];

/// The decision for a file.
#[derive(Default)]
pub(super) struct ChainColumns {
    /// The letters that are a chain of two.
    chains: HashSet<Letters>,
    /// Residues that contradict others, and where the first line of the first of them starts.
    pub contradictions: u32,
    pub first_contradiction: Option<usize>,
}

/// The facts on all residues with the same letters in columns 21 and 22.
#[derive(Default)]
struct Votes {
    /// Whether a peptide bond leads to a residue with another letter in column 21.
    is_linked_elsewhere: bool,
    /// Residues whose component has three letters and not four, and where the first line of the first
    /// of them starts.
    three_letter_count: u32,
    first_three_letter: usize,
    /// Whether one of them is an amino acid or a nucleotide.
    has_polymer: bool,
    /// Whether the components have four letters, or cannot have three.
    has_four_letter: bool,
    /// Columns 18 to 20 of the first residue, and whether another one has others.
    comp: [u8; 3],
    has_several_comps: bool,
}

/// A residue as far as it has been read.
struct PartialResidue {
    key: ResidueKey,
    /// The offset of the residue's first line.
    start: usize,
    n: Option<[i32; 3]>,
    c: Option<[i32; 3]>,
    /// Whether it has an alpha carbon, an atom C1' or P, and a methyl carbon of a cap.
    has_ca: bool,
    has_sugar: bool,
    has_ch3: bool,
    atoms: u32,
}

impl PartialResidue {
    fn letters(&self) -> Letters {
        [self.key[3], self.key[4]]
    }

    /// Whether columns 18 to 20 are a component, by its atoms too; `None` if no table has it.
    fn is_three_letter(&self) -> Option<bool> {
        let comp = text8(self.key[..3].trim_ascii());
        if let Some(component) = components::lookup(comp) {
            return Some(match component.kind {
                PolymerKind::Amino => self.has_ca,
                PolymerKind::Nucleotide => self.has_sugar,
                // NH2 and FOR have no methyl carbon, and with their hydrogens three atoms.
                PolymerKind::Cap => self.has_ch3 || self.atoms <= 3,
            });
        }
        let is_ion = self.atoms == 1 && ions::symbol(comp).is_some();
        let is_known = is_water(comp) || is_agent_name(comp) || is_saccharide(comp) || is_ion;
        is_known.then_some(true)
    }

    /// Whether columns 18 to 21 are a component.
    fn is_four_letter(&self) -> bool {
        let name = &self.key[..4];
        let comp = text8(name.trim_ascii());
        let is_ion = self.atoms == 1 && ions::symbol(comp).is_some();
        let is_listed = FOUR_LETTERS.iter().any(|known| known[..] == *name);
        let is_ion = is_ion && self.is_three_letter() != Some(true);
        components::lookup(comp).is_some() || is_water(comp) || is_listed || is_ion
    }
}

impl ChainColumns {
    /// Decides for the text of a file.
    pub(super) fn of_text(text: &[u8]) -> Self {
        let mut votes: HashMap<Letters, Votes> = HashMap::new();
        let mut has_blank_chain = false;
        let (mut before, mut this): (Option<PartialResidue>, Option<PartialResidue>) = (None, None);
        let mut next = text_start(text);
        while next < text.len() {
            let start = next;
            let end = line_end(text, start);
            next = end + 1;
            let line = &text[start..end];
            let Some(columns) = columns_of(line) else {
                if ends_model(line) {
                    vote(before.take(), this.take(), &mut votes);
                }
                continue;
            };
            let key: ResidueKey = take(&columns, 17);
            if this.as_ref().is_none_or(|residue| residue.key != key) {
                has_blank_chain |= key[3..5] == *b"  ";
                before = vote(before.take(), this.take(), &mut votes);
                this = Some(PartialResidue {
                    key,
                    start,
                    n: None,
                    c: None,
                    has_ca: false,
                    has_sugar: false,
                    has_ch3: false,
                    atoms: 0,
                });
            }
            if let Some(residue) = &mut this {
                residue.atoms += 1;
                let position = || {
                    let texts = coordinate_fields(&columns);
                    Some(decimal::coordinates(texts).ok()?.0)
                };
                match columns[12..16].trim_ascii() {
                    b"N" => residue.n = residue.n.or_else(position),
                    b"C" => residue.c = residue.c.or_else(position),
                    b"CA" => residue.has_ca = true,
                    b"C1'" | b"C1*" | b"P" => residue.has_sugar = true,
                    b"CH3" => residue.has_ch3 = true,
                    _ => {}
                }
            }
        }
        vote(before, this, &mut votes);
        let mut decided = ChainColumns::default();
        for (letters, votes) in votes {
            let is_chain = if votes.is_linked_elsewhere {
                decided.contradictions += votes.three_letter_count;
                if votes.three_letter_count > 0 {
                    let first = decided.first_contradiction.unwrap_or(usize::MAX);
                    decided.first_contradiction = Some(first.min(votes.first_three_letter));
                }
                false
            } else {
                match letters[1] {
                    b' ' => votes.has_polymer && votes.has_several_comps && !has_blank_chain,
                    _ => votes.three_letter_count > 0 || !votes.has_four_letter,
                }
            };
            if is_chain {
                decided.chains.insert(letters);
            }
        }
        decided
    }

    /// Component and chain id of a residue, with blanks around them.
    pub(super) fn names<'k>(&self, key: &'k ResidueKey) -> (&'k [u8], &'k [u8]) {
        let split = if self.chains.contains(&[key[3], key[4]]) {
            3
        } else {
            4
        };
        (&key[..split], &key[split..5])
    }
}

/// The columns of an atom's line, with fields that are in other columns put into theirs. `None` for lines
/// that are no atom, or not one that can be read, and for those whose chain id does not fit its column or
/// is separated by tabs: columns 21 and 22 do not decide it.
fn columns_of(line: &[u8]) -> Option<Columns> {
    if !is_atom(line) {
        return None;
    }
    if shifted_line::shift(line) == Some(0) {
        return (line.len() >= COORDINATES_END).then(|| padded(line));
    }
    let none = LastResidue {
        chain: b"",
        number: None,
    };
    let shifted = ShiftedLine::read(line, none).ok()??;
    shifted.chain.is_none().then_some(shifted.columns)
}

/// Notes what `this` residue, which has been read, has, and whether a peptide bond joins it to the one
/// before with another letter in column 21. Returns the residue.
fn vote(
    before: Option<PartialResidue>,
    this: Option<PartialResidue>,
    votes: &mut HashMap<Letters, Votes>,
) -> Option<PartialResidue> {
    let this = this?;
    let (key, letters) = (&this.key, this.letters());
    if letters[0] != b' ' {
        let comp = [key[0], key[1], key[2]];
        let votes = votes.entry(letters).or_insert_with(|| Votes {
            comp,
            ..Votes::default()
        });
        votes.has_several_comps |= votes.comp != comp;
        let has_four_letter = this.is_four_letter();
        let is_three_letter = this.is_three_letter();
        votes.has_four_letter |= has_four_letter || is_three_letter == Some(false);
        if !has_four_letter && is_three_letter == Some(true) {
            if votes.three_letter_count == 0 {
                votes.first_three_letter = this.start;
            }
            votes.three_letter_count += 1;
            votes.has_polymer |= this.has_ca || this.has_sugar;
        }
    }
    if let Some(before) = before
        && let (Some(c), Some(n)) = (before.c, this.n)
        && before.letters()[1] == letters[1]
        && before.letters()[0] != letters[0]
        && is_within(c, n, LINK)
    {
        for letters in [before.letters(), letters] {
            if let Some(votes) = votes.get_mut(&letters) {
                votes.is_linked_elsewhere = true;
            }
        }
    }
    Some(this)
}
