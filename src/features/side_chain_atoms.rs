//! Which atoms are a residue's side chain.

use super::constants;
use super::cpu::split::TASK_ROWS;
use super::kernels::{Twin, side_chain_atoms};
use super::layout::{Atom, Position, RESIDUES, ResidueSpan, SideChain};
use super::recorder::FeatureRecorder;
use crate::record::Buffer;
use crate::structure::AtomName;
use rayon::prelude::*;
use std::sync::OnceLock;

/// The side chain of a standard amino acid.
struct Definition {
    /// One-letter code.
    aa: u8,
    /// All heavy atoms, CB first.
    atoms: &'static [&'static str],
    /// The atoms after CB that define chi1, chi2 and so on.
    chain: &'static [&'static str],
    /// A bit for each chi between two tetrahedral atoms, chi1's the lowest.
    bins: u32,
    /// The chi that half a turn changes in the names of atoms alone; 0 if there is none.
    symmetric: u32,
}

/// A row of [`DEFINITIONS`], in the order in which they are written.
const fn definition(
    aa: u8,
    chain: &'static [&'static str],
    atoms: &'static [&'static str],
    bins: u32,
    symmetric: u32,
) -> Definition {
    Definition {
        aa,
        atoms,
        chain,
        bins,
        symmetric,
    }
}

/// The names follow IUPAC-IUB 1970 as the wwPDB applies it. Bins are those angles for which Lovell et
/// al. 2000 have p, t and m: not about a bond to an sp2 atom, and not in the ring of proline.
const DEFINITIONS: [Definition; 20] = [
    definition(b'A', &[], &["CB"], 0, 0),
    definition(
        b'R',
        &["CG", "CD", "NE", "CZ", "NH1"],
        &["CB", "CG", "CD", "NE", "CZ", "NH1", "NH2"],
        0b111,
        0,
    ),
    definition(b'N', &["CG", "OD1"], &["CB", "CG", "OD1", "ND2"], 0b1, 0),
    definition(b'D', &["CG", "OD1"], &["CB", "CG", "OD1", "OD2"], 0b1, 2),
    definition(b'C', &["SG"], &["CB", "SG"], 0b1, 0),
    definition(
        b'Q',
        &["CG", "CD", "OE1"],
        &["CB", "CG", "CD", "OE1", "NE2"],
        0b11,
        0,
    ),
    definition(
        b'E',
        &["CG", "CD", "OE1"],
        &["CB", "CG", "CD", "OE1", "OE2"],
        0b11,
        3,
    ),
    definition(b'G', &[], &[], 0, 0),
    definition(
        b'H',
        &["CG", "ND1"],
        &["CB", "CG", "ND1", "CD2", "CE1", "NE2"],
        0b1,
        0,
    ),
    definition(b'I', &["CG1", "CD1"], &["CB", "CG1", "CG2", "CD1"], 0b11, 0),
    definition(b'L', &["CG", "CD1"], &["CB", "CG", "CD1", "CD2"], 0b11, 0),
    definition(
        b'K',
        &["CG", "CD", "CE", "NZ"],
        &["CB", "CG", "CD", "CE", "NZ"],
        0b1111,
        0,
    ),
    definition(
        b'M',
        &["CG", "SD", "CE"],
        &["CB", "CG", "SD", "CE"],
        0b111,
        0,
    ),
    definition(
        b'F',
        &["CG", "CD1"],
        &["CB", "CG", "CD1", "CD2", "CE1", "CE2", "CZ"],
        0b1,
        2,
    ),
    definition(b'P', &["CG", "CD"], &["CB", "CG", "CD"], 0, 0),
    definition(b'S', &["OG"], &["CB", "OG"], 0b1, 0),
    definition(b'T', &["OG1"], &["CB", "OG1", "CG2"], 0b1, 0),
    definition(
        b'W',
        &["CG", "CD1"],
        &[
            "CB", "CG", "CD1", "CD2", "NE1", "CE2", "CE3", "CZ2", "CZ3", "CH2",
        ],
        0b1,
        0,
    ),
    definition(
        b'Y',
        &["CG", "CD1"],
        &["CB", "CG", "CD1", "CD2", "CE1", "CE2", "CZ", "OH"],
        0b1,
        2,
    ),
    definition(b'V', &["CG1"], &["CB", "CG1", "CG2"], 0b1, 0),
];

/// The other name of an atom: selenomethionine's, and that of some simulation packages.
const OTHER_NAMES: [(u8, &str, &str); 2] = [(b'M', "SD", "SE"), (b'I', "CD1", "CD")];

/// A definition with the codes of names.
struct SideChainAtoms {
    atoms: Vec<AtomName>,
    chain: Vec<AtomName>,
    /// An atom and its other name.
    other: Option<(AtomName, AtomName)>,
    bins: u32,
    symmetric: u32,
}

impl SideChainAtoms {
    /// The atoms of a standard amino acid by its one-letter code; `None` for any other letter. The
    /// table is made at the first call.
    fn by_letter(aa: u8) -> Option<&'static Self> {
        static BY_LETTER: OnceLock<[Option<SideChainAtoms>; 26]> = OnceLock::new();
        let by_letter = BY_LETTER.get_or_init(|| {
            std::array::from_fn(|letter| {
                let aa = b'A' + letter as u8;
                let definition = DEFINITIONS.iter().find(|definition| definition.aa == aa)?;
                let codes = |names: &[&str]| names.iter().map(|name| AtomName::of(name)).collect();
                let mut others = OTHER_NAMES.iter().filter(|(other_aa, ..)| *other_aa == aa);
                Some(SideChainAtoms {
                    atoms: codes(definition.atoms),
                    chain: codes(definition.chain),
                    other: others
                        .next()
                        .map(|(_, name, other)| (AtomName::of(name), AtomName::of(other))),
                    bins: definition.bins,
                    symmetric: definition.symmetric,
                })
            })
        });
        let letter = aa.checked_sub(b'A')?;
        by_letter.get(usize::from(letter))?.as_ref()
    }
}

/// Words of a definition in the header: flags, other name, atoms and chain; see `words`.
pub(super) const DEFINITION_WORDS: usize = constants::DEFINITION_WORDS as usize;

impl SideChainAtoms {
    /// The definition for the kernel. The first word has a 1, the number of atoms, the bins and the
    /// symmetric chi, a byte each; the next one the atom with another name and that name; then come
    /// the atoms, and from the sixth word on the chain, a byte each.
    fn words(&self) -> [u32; DEFINITION_WORDS] {
        let mut bytes = [0; 4 * DEFINITION_WORDS];
        let (bins, symmetric) = (self.bins as u8, self.symmetric as u8);
        bytes[..4].copy_from_slice(&[1, self.atoms.len() as u8, bins, symmetric]);
        if let Some((name, other)) = self.other {
            bytes[4..6].copy_from_slice(bytemuck::bytes_of(&[name, other]));
        }
        bytes[8..][..self.atoms.len()].copy_from_slice(bytemuck::cast_slice(&self.atoms));
        bytes[20..][..self.chain.len()].copy_from_slice(bytemuck::cast_slice(&self.chain));
        std::array::from_fn(|word| {
            u32::from_le_bytes(std::array::from_fn(|byte| bytes[4 * word + byte]))
        })
    }
}

/// The side chains, which features share.
#[derive(Clone, Copy)]
pub(super) struct SharedSideChains(pub(super) Buffer<SideChain>);

impl FeatureRecorder<'_> {
    /// The side chain of each residue, `[residues]`. Records the launch that finds its atoms at the
    /// first call.
    pub(super) fn side_chains(&mut self) -> Buffer<SideChain> {
        if let Some(SharedSideChains(sides)) = self.shared() {
            return sides;
        }
        let words = (b'A'..=b'Z').flat_map(|aa| match SideChainAtoms::by_letter(aa) {
            Some(definition) => definition.words(),
            None => [0; DEFINITION_WORDS],
        });
        let definitions = self.constants("side_chain", words) as u32;
        let (header, residues) = (self.header(), self.residues());
        let (atoms, names) = (self.atoms(), self.names());
        let sides = self.device("side_chains", RESIDUES, 1);
        let args = side_chain_atoms::Args {
            header,
            residues,
            atoms,
            names,
            sides,
            definitions,
        };
        self.launch_threads(RESIDUES, args);
        self.share(SharedSideChains(sides)).0
    }
}

/// Finds the atoms of each residue's side chain by their names.
impl Twin for side_chain_atoms::Views<'_> {
    fn run(self) {
        let count = self.header[RESIDUES] as usize;
        let names: &[AtomName] = bytemuck::cast_slice(self.names);
        let residues = self.residues[..count].par_chunks(TASK_ROWS);
        let sides = self.sides[..count].par_chunks_mut(TASK_ROWS);
        residues.zip(sides).for_each(|(residues, sides)| {
            for (residue, side) in residues.iter().zip(sides) {
                let range = residue.atoms();
                *side = side_chain(residue, &names[range.clone()], &self.atoms[range]);
            }
        });
    }
}

/// The side chain of a residue with these atoms. The residue's standard amino acid decides which
/// atoms belong to it.
fn side_chain(residue: &ResidueSpan, names: &[AtomName], atoms: &[Atom]) -> SideChain {
    let mut found = SideChain::NONE;
    let definition = SideChainAtoms::by_letter(residue.aa);
    let Some(definition) = definition.filter(|_| residue.is(ResidueSpan::NAMED)) else {
        return found;
    };
    let atom = |name: AtomName| {
        let index_of = |wanted| names.iter().position(|name| *name == wanted);
        let other_name = || {
            let other = definition.other.filter(|(usual, _)| *usual == name);
            other.map(|(_, other)| other)
        };
        index_of(name).or_else(|| index_of(other_name()?))
    };
    let position = |name| atom(name).map_or(Position::NONE, |index| atoms[index].position);
    if let Some(&beta) = definition.atoms.first() {
        found.beta = position(beta);
    }
    for (place, &name) in found.chain.iter_mut().zip(&definition.chain) {
        *place = position(name);
    }
    if definition.symmetric > 0 {
        found.symmetric = definition.symmetric as i32;
    }
    if residue.is(ResidueSpan::STANDARD) {
        found.bins = definition.bins;
        let missing = definition
            .atoms
            .iter()
            .filter(|name| atom(**name).is_none());
        found.missing = missing.count() as i32;
    }
    found
}
