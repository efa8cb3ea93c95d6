//! Which atoms are a residue's side chain.

use super::columns::NULL_COUNT;
use super::layout::{Position, SideChain};
use crate::structure::{AtomName, MISSING, Structure};
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

/// The side chain of residue `row`. Its standard amino acid decides which atoms are meant;
/// `is_standard` is whether the residue is that one or selenomethionine.
pub(super) fn side_chain(structure: &Structure, row: usize, is_standard: bool) -> SideChain {
    let mut found = SideChain::NONE;
    let Some(known) = SideChainAtoms::of(structure.residues[row].aa) else {
        return found;
    };
    let first = structure.atom_start[row];
    let atoms = first as usize..structure.atom_start[row + 1] as usize;
    // A structure may have no names.
    let Some(names) = structure.atom_name.get(atoms) else {
        return found;
    };
    let atom = |name: AtomName| {
        let of = |name| names.iter().position(|own| *own == name);
        let other = || known.other.filter(|it| it.0 == name).map(|it| it.1);
        of(name).or_else(|| of(other()?))
    };
    let position = |name| {
        let at = atom(name).map_or(MISSING, |at| first + at as u32);
        structure.position(at).map_or(Position::NONE, Into::into)
    };
    if let Some(&beta) = known.atoms.first() {
        found.beta = position(beta);
    }
    for (place, &name) in found.chain.iter_mut().zip(&known.chain) {
        *place = position(name);
    }
    found.symmetric = known.symmetric as i32;
    if found.symmetric == 0 {
        found.symmetric = NULL_COUNT;
    }
    if is_standard {
        found.bins = known.bins;
        let missing = known.atoms.iter().filter(|name| atom(**name).is_none());
        found.missing = missing.count() as i32;
    }
    found
}
