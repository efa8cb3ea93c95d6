//! Which atoms are a residue's side chain.

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
    /// The chi that is the same after half a turn, but for names; 0 for none.
    symmetric: u32,
}

const fn of(
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
    of(b'A', &[], &["CB"], 0, 0),
    of(
        b'R',
        &["CG", "CD", "NE", "CZ", "NH1"],
        &["CB", "CG", "CD", "NE", "CZ", "NH1", "NH2"],
        0b111,
        0,
    ),
    of(b'N', &["CG", "OD1"], &["CB", "CG", "OD1", "ND2"], 0b1, 0),
    of(b'D', &["CG", "OD1"], &["CB", "CG", "OD1", "OD2"], 0b1, 2),
    of(b'C', &["SG"], &["CB", "SG"], 0b1, 0),
    of(
        b'Q',
        &["CG", "CD", "OE1"],
        &["CB", "CG", "CD", "OE1", "NE2"],
        0b11,
        0,
    ),
    of(
        b'E',
        &["CG", "CD", "OE1"],
        &["CB", "CG", "CD", "OE1", "OE2"],
        0b11,
        3,
    ),
    of(b'G', &[], &[], 0, 0),
    of(
        b'H',
        &["CG", "ND1"],
        &["CB", "CG", "ND1", "CD2", "CE1", "NE2"],
        0b1,
        0,
    ),
    of(b'I', &["CG1", "CD1"], &["CB", "CG1", "CG2", "CD1"], 0b11, 0),
    of(b'L', &["CG", "CD1"], &["CB", "CG", "CD1", "CD2"], 0b11, 0),
    of(
        b'K',
        &["CG", "CD", "CE", "NZ"],
        &["CB", "CG", "CD", "CE", "NZ"],
        0b1111,
        0,
    ),
    of(
        b'M',
        &["CG", "SD", "CE"],
        &["CB", "CG", "SD", "CE"],
        0b111,
        0,
    ),
    of(
        b'F',
        &["CG", "CD1"],
        &["CB", "CG", "CD1", "CD2", "CE1", "CE2", "CZ"],
        0b1,
        2,
    ),
    of(b'P', &["CG", "CD"], &["CB", "CG", "CD"], 0, 0),
    of(b'S', &["OG"], &["CB", "OG"], 0b1, 0),
    of(b'T', &["OG1"], &["CB", "OG1", "CG2"], 0b1, 0),
    of(
        b'W',
        &["CG", "CD1"],
        &[
            "CB", "CG", "CD1", "CD2", "NE1", "CE2", "CE3", "CZ2", "CZ3", "CH2",
        ],
        0b1,
        0,
    ),
    of(
        b'Y',
        &["CG", "CD1"],
        &["CB", "CG", "CD1", "CD2", "CE1", "CE2", "CZ", "OH"],
        0b1,
        2,
    ),
    of(b'V', &["CG1"], &["CB", "CG1", "CG2"], 0b1, 0),
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
    fn of(aa: u8) -> Option<&'static Self> {
        static KNOWN: OnceLock<[Option<SideChainAtoms>; 26]> = OnceLock::new();
        let known = KNOWN.get_or_init(|| {
            std::array::from_fn(|letter| {
                let aa = b'A' + letter as u8;
                let definition = DEFINITIONS.iter().find(|it| it.aa == aa)?;
                let codes = |names: &[&str]| names.iter().map(|name| AtomName::of(name)).collect();
                let mut others = OTHER_NAMES.iter().filter(|it| it.0 == aa);
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
        known.get(usize::from(letter))?.as_ref()
    }
}

/// Words of a definition in the header: flags, other name, atoms and chain; see `words`.
pub(super) const DEFINITION_WORDS: usize = 7;

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
        std::array::from_fn(|at| {
            u32::from_le_bytes(std::array::from_fn(|byte| bytes[4 * at + byte]))
        })
    }
}

/// The side chains, which features share.
#[derive(Clone, Copy)]
pub(super) struct SideChains(pub(super) Buffer<SideChain>);

impl FeatureRecorder<'_> {
    /// The side chain of each residue, `[residues]`.
    pub(super) fn side_chains(&mut self) -> Buffer<SideChain> {
        if let Some(SideChains(sides)) = self.shared() {
            return sides;
        }
        let of_letters = (b'A'..=b'Z').flat_map(|aa| match SideChainAtoms::of(aa) {
            Some(known) => known.words(),
            None => [0; DEFINITION_WORDS],
        });
        let definitions = self.constants("side_chain", of_letters) as u32;
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
        self.share(SideChains(sides)).0
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
                let own = residue.atoms();
                *side = side_chain(residue, &names[own.clone()], &self.atoms[own]);
            }
        });
    }
}

/// The side chain of a residue with these atoms. Its standard amino acid decides which of them are
/// meant.
fn side_chain(residue: &ResidueSpan, names: &[AtomName], atoms: &[Atom]) -> SideChain {
    let mut found = SideChain::NONE;
    let known = SideChainAtoms::of(residue.aa);
    let Some(known) = known.filter(|_| residue.is(ResidueSpan::NAMED)) else {
        return found;
    };
    let atom = |name: AtomName| {
        let of = |name| names.iter().position(|own| *own == name);
        let other = || known.other.filter(|it| it.0 == name).map(|it| it.1);
        of(name).or_else(|| of(other()?))
    };
    let position = |name| atom(name).map_or(Position::NONE, |at| atoms[at].position);
    if let Some(&beta) = known.atoms.first() {
        found.beta = position(beta);
    }
    for (place, &name) in found.chain.iter_mut().zip(&known.chain) {
        *place = position(name);
    }
    if known.symmetric > 0 {
        found.symmetric = known.symmetric as i32;
    }
    if residue.is(ResidueSpan::STANDARD) {
        found.bins = known.bins;
        let missing = known.atoms.iter().filter(|name| atom(**name).is_none());
        found.missing = missing.count() as i32;
    }
    found
}
