//! Atom classes: the radius of an atom, and what part of the surface it makes.
//!
//! The radii are ProtOr's (Tsai, Taylor, Chothia, Gerstein 1999, J. Mol. Biol.
//! 290, 253) by residue and atom name. The table is `protor.tsv`, made by
//! `scripts/make_protor.py` from what FreeSASA has of them.

use std::sync::OnceLock;

use super::element;
use super::table::{Atom, Text8, text8};

/// Radius, side chain or not, polar or not: all that a solvent-accessible
/// surface asks of an atom, in one byte.
///
/// The low four bits index [`AtomClass::RADII_MILLI_ANGSTROM`]; the next two are
/// flags. No atom has the class 0, so it can stand for none.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct AtomClass(u8);

const RADIUS: u8 = 15;
const SIDE: u8 = 1 << 4;
const POLAR: u8 = 1 << 5;

impl AtomClass {
    /// The radii that atoms have, in 0.001 A; 0 where no atom has the index.
    pub const RADII_MILLI_ANGSTROM: [u32; 16] = [
        0, 1420, 1460, 1500, 1610, 1640, 1760, 1770, 1800, 1880, 1900, 0, 0, 0, 0, 0,
    ];

    /// The class of an atom of a component: its parent's id
    /// ([`Residue::parent_comp_id`]) or, where it has none, its own. Both texts
    /// are space-padded; `element` is the atomic number.
    ///
    /// The radius is ProtOr's where the component has an atom of that name, else
    /// the element's: C 1.88, N 1.64, O 1.46, P 1.80, S 1.77, Se 1.90 A, any
    /// other 1.80 A. Side is any name but N, CA, C, O and OXT; polar are N, O, P,
    /// S and Se.
    ///
    /// [`Residue::parent_comp_id`]: super::Residue::parent_comp_id
    pub fn of(comp_id: [u8; 8], name: [u8; 8], element: u8) -> Self {
        let radii = Radii::table();
        radii.of(radii.id_of(comp_id)).class(name, element)
    }

    /// The radius in 0.001 A.
    pub fn radius_milli_angstrom(self) -> u32 {
        Self::RADII_MILLI_ANGSTROM[usize::from(self.0 & RADIUS)]
    }

    /// Whether the atom is none of the backbone's N, CA, C, O and OXT.
    pub fn is_side(self) -> bool {
        self.0 & SIDE != 0
    }

    /// Whether the element is N, O, P, S or Se.
    pub fn is_polar(self) -> bool {
        self.0 & POLAR != 0
    }
}

impl std::fmt::Debug for AtomClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AtomClass")
            .field("radius_milli_angstrom", &self.radius_milli_angstrom())
            .field("is_side", &self.is_side())
            .field("is_polar", &self.is_polar())
            .finish()
    }
}

/// Index of a component's atoms in [`Radii`]; 0 for a component without.
pub(super) type RadiiId = u8;

/// A component's atoms that ProtOr knows, in the order that files have them in.
#[derive(Default)]
struct Known {
    /// Names and elements.
    atoms: Vec<(u64, u8)>,
    classes: Vec<AtomClass>,
}

const TSV: &str = include_str!("protor.tsv");

/// ProtOr's atoms by component; the first component is blank and has none.
pub(super) struct Radii(Vec<(Text8, Known)>);

impl Radii {
    pub(super) fn table() -> &'static Self {
        static TABLE: OnceLock<Radii> = OnceLock::new();
        TABLE.get_or_init(|| {
            let none = (text8(b""), Known::default());
            let rows = rows().map(|(id, atoms)| (text8(id.as_bytes()), Known::parse(atoms)));
            Radii(std::iter::once(none).chain(rows).collect())
        })
    }

    /// Where a component is, 0 where ProtOr does not know it.
    pub(super) fn id_of(&self, comp_id: Text8) -> RadiiId {
        let at = self.0.iter().position(|(id, _)| *id == comp_id);
        at.unwrap_or(0) as RadiiId
    }

    /// Adds the classes of the atoms of a residue.
    #[inline]
    pub(super) fn classify(&self, component: RadiiId, atoms: &[Atom], out: &mut Vec<AtomClass>) {
        let known = self.of(component);
        match known.classes_of_all(atoms) {
            Some(classes) => out.extend_from_slice(classes),
            None => out.extend(
                atoms
                    .iter()
                    .map(|atom| known.class(atom.name, atom.element)),
            ),
        }
    }

    fn of(&self, component: RadiiId) -> &Known {
        &self.0[usize::from(component)].1
    }
}

impl Known {
    fn parse(row: &str) -> Self {
        let words: Vec<&str> = row.split(' ').collect();
        let mut known = Known::default();
        for (name, radius) in words.chunks(2).map(|pair| (pair[0], pair[1])) {
            let name = text8(name.as_bytes());
            let element = element::from_name([name[0], name[1], name[2], name[3]]);
            let radius = radius.parse().expect("protor.tsv: a radius is a number");
            known.atoms.push((u64::from_le_bytes(name), element));
            known
                .classes
                .push(class(radius_index(radius), name, element));
        }
        known
    }

    /// The classes of atoms that are all here, in this order but for the last
    /// ones: that is nearly every residue, and costs nearly nothing.
    #[inline]
    fn classes_of_all(&self, atoms: &[Atom]) -> Option<&[AtomClass]> {
        let classes = self.classes.get(..atoms.len())?;
        let pairs = atoms.iter().zip(&self.atoms);
        let differs = pairs.fold(0, |bits, (atom, (name, element))| {
            bits | (u64::from_le_bytes(atom.name) ^ name) | u64::from(atom.element ^ element)
        });
        (differs == 0).then_some(classes)
    }

    fn class(&self, name: Text8, element: u8) -> AtomClass {
        let word = u64::from_le_bytes(name);
        let at = self.atoms.iter().position(|&(known, _)| known == word);
        let radius = at.map(|at| self.classes[at].0 & RADIUS);
        let radius = radius.unwrap_or(ELEMENT_RADIUS[usize::from(element)]);
        class(radius, name, element)
    }
}

/// The rows of the table: component and atoms.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = TSV.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|row| row.split_once('\t'))
}

const fn radius_index(milli_angstrom: u32) -> u8 {
    let mut index = 1;
    while AtomClass::RADII_MILLI_ANGSTROM[index] != milli_angstrom {
        index += 1;
    }
    index as u8
}

fn class(radius_index: u8, name: Text8, element: u8) -> AtomClass {
    let backbone = matches!(
        &name,
        b"N       " | b"CA      " | b"C       " | b"O       " | b"OXT     "
    );
    let side = if backbone { 0 } else { SIDE };
    let polar = matches!(element, 7 | 8 | 15 | 16 | 34);
    AtomClass(radius_index | side | if polar { POLAR } else { 0 })
}

/// By atomic number, the index of the radius of an atom that ProtOr lacks.
static ELEMENT_RADIUS: [u8; 256] = {
    let mut table = [radius_index(1800); 256];
    table[6] = radius_index(1880);
    table[7] = radius_index(1640);
    table[8] = radius_index(1460);
    table[16] = radius_index(1770);
    table[34] = radius_index(1900);
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn of(comp_id: &str, name: &str, element: u8) -> (u32, bool, bool) {
        let class = AtomClass::of(text8(comp_id.as_bytes()), text8(name.as_bytes()), element);
        (
            class.radius_milli_angstrom(),
            class.is_side(),
            class.is_polar(),
        )
    }

    /// Component, atom and radius of each entry of the table.
    fn entries() -> impl Iterator<Item = (&'static str, &'static str, u32)> {
        rows().flat_map(|(id, atoms)| {
            let words: Vec<&str> = atoms.split(' ').collect();
            let pairs = (0..words.len() / 2).map(move |at| (words[2 * at], words[2 * at + 1]));
            pairs.map(move |(name, radius)| (id, name, radius.parse().unwrap()))
        })
    }

    #[test]
    fn every_entry_of_the_table_is_found() {
        for (id, name, radius) in entries() {
            assert_eq!(of(id, name, 0).0, radius, "{id} {name}");
        }
        assert_eq!(entries().count(), 475);
    }

    #[test]
    fn atoms_in_any_order_have_the_same_classes() {
        let atom = |name: &str| {
            let name = text8(name.as_bytes());
            Atom {
                xyz: [0; 3],
                b_factor: 0.0,
                occupancy: 0,
                name,
                element: element::from_name([name[0], name[1], name[2], name[3]]),
                altloc: 0,
                rounded: false,
            }
        };
        for (id, _) in rows() {
            let id = text8(id.as_bytes());
            let names = entries().filter(|entry| text8(entry.0.as_bytes()) == id);
            let mut atoms: Vec<Atom> = names.map(|entry| atom(entry.1)).collect();
            let check = |atoms: &[Atom]| {
                let (radii, mut found) = (Radii::table(), Vec::new());
                radii.classify(radii.id_of(id), atoms, &mut found);
                let one = |atom: &Atom| AtomClass::of(id, atom.name, atom.element);
                assert_eq!(found, atoms.iter().map(one).collect::<Vec<_>>());
            };
            check(&atoms);
            check(&atoms[..atoms.len() - 1]);
            check(&atoms[1..]);
            atoms.reverse();
            check(&atoms);
            atoms.insert(1, atom("XYZ"));
            check(&atoms);
            atoms[0].element = 0;
            check(&atoms);
        }
    }

    #[test]
    fn the_element_decides_where_protor_does_not() {
        assert_eq!(of("MET", "SE", 34).0, 1900, "selenomethionine");
        assert_eq!(of("SER", "P", 15).0, 1800, "phosphoserine");
        assert_eq!(of("", "C", 6), (1880, false, false));
        assert_eq!(of("UNK", "SG", 16).0, 1770);
        assert_eq!(of("PRO", "OD1", 8).0, 1460, "hydroxyproline");
        assert_eq!(of("LYS", "NX", 7).0, 1640);
        assert_eq!(of("LYS", "F1", 9), (1800, true, false));
        assert_eq!(of("LYS", "?", 255), (1800, true, false));
    }

    #[test]
    fn side_goes_by_the_name_and_polar_by_the_element() {
        assert_eq!(of("ALA", "N", 7), (1640, false, true));
        assert_eq!(of("ALA", "CA", 6), (1880, false, false));
        assert_eq!(of("ALA", "C", 6), (1610, false, false));
        assert_eq!(of("ALA", "O", 8), (1420, false, true));
        assert_eq!(of("ALA", "OXT", 8), (1460, false, true));
        assert_eq!(of("ALA", "CB", 6), (1880, true, false));
        assert_eq!(of("CYS", "SG", 16), (1770, true, true));
        assert_eq!(of("DA", "P", 15), (1800, true, true));
        assert_eq!(of("MET", "SE", 34), (1900, true, true));
    }

    #[test]
    fn a_class_of_zero_is_no_atom() {
        assert_eq!(AtomClass::default().radius_milli_angstrom(), 0);
        for element in 0..=u8::MAX {
            assert_ne!(of("XXX", "C", element).0, 0);
        }
    }
}
