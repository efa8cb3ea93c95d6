//! What the atoms of known components are, by name.
//!
//! Nearly every residue has the atoms of its component in the same order, but
//! for the last ones. Such a residue is compared with the template once, and all
//! that depends on names comes from there; only of others is every atom looked
//! up. The templates are the rows of `protor.tsv`, made by
//! `scripts/make_protor.py` from what FreeSASA has of the ProtOr radii.

use std::sync::OnceLock;

use super::class::AtomClass;
use super::element;
use super::model::MISSING;
use super::table::{Atom, Text8, text8};

const TSV: &str = include_str!("protor.tsv");

/// Index of a component in [`Templates`]; 0 for a component without.
pub(super) type TemplateId = u8;

/// The templates by component; the first component is blank and has no atoms.
pub(super) struct Templates(Vec<(Text8, Template)>);

impl Templates {
    pub(super) fn table() -> &'static Self {
        static TABLE: OnceLock<Templates> = OnceLock::new();
        TABLE.get_or_init(|| {
            let none = (text8(b""), Template::parse(""));
            let rows = rows().map(|(id, atoms)| (text8(id.as_bytes()), Template::parse(atoms)));
            Templates(std::iter::once(none).chain(rows).collect())
        })
    }

    /// Where a component is, 0 where it has no template.
    pub(super) fn id_of(&self, comp_id: Text8) -> TemplateId {
        let at = self.0.iter().position(|(id, _)| *id == comp_id);
        at.unwrap_or(0) as TemplateId
    }

    pub(super) fn of(&self, component: TemplateId) -> &Template {
        &self.0[usize::from(component)].1
    }
}

/// The atoms of a component in the order that files have them in.
pub(super) struct Template {
    /// Names and elements.
    atoms: Vec<(u64, u8)>,
    classes: Vec<AtomClass>,
    /// Where N, CA, C, O and CB are, or [`MISSING`].
    backbone: [u32; 5],
}

impl Template {
    /// Of names and radii in turn.
    fn parse(row: &str) -> Self {
        let words: Vec<&str> = row.split_whitespace().collect();
        let atoms = words.chunks(2).map(|pair| {
            let name = text8(pair[0].as_bytes());
            let radius = pair[1].parse().expect("protor.tsv: a radius is a number");
            (name, element::from_name(first4(name)), radius)
        });
        let class = |(name, element, radius)| AtomClass::known(radius, name, element);
        let classes = atoms.clone().map(class).collect();
        let atoms: Vec<_> = atoms
            .map(|(name, element, _)| (u64::from_le_bytes(name), element))
            .collect();
        let backbone = backbone(atoms.iter().copied());
        Template {
            atoms,
            classes,
            backbone,
        }
    }

    /// Adds the classes of a residue's atoms, and returns which are N, CA, C, O
    /// and CB, or [`MISSING`], of each the first.
    #[inline]
    pub(super) fn apply(&self, atoms: &[Atom], classes: &mut Vec<AtomClass>) -> [u32; 5] {
        if let Some(known) = self.fit(atoms) {
            classes.extend_from_slice(known);
            let there = |at: u32| {
                if (at as usize) < atoms.len() {
                    at
                } else {
                    MISSING
                }
            };
            return self.backbone.map(there);
        }
        classes.extend(atoms.iter().map(|atom| self.class(atom.name, atom.element)));
        backbone(
            atoms
                .iter()
                .map(|atom| (u64::from_le_bytes(atom.name), atom.element)),
        )
    }

    /// The classes of the template's first atoms, if these are they.
    #[inline]
    fn fit(&self, atoms: &[Atom]) -> Option<&[AtomClass]> {
        let known = self.classes.get(..atoms.len())?;
        let pairs = atoms.iter().zip(&self.atoms);
        let differs = pairs.fold(0, |bits, (atom, (name, element))| {
            bits | (u64::from_le_bytes(atom.name) ^ name) | u64::from(atom.element ^ element)
        });
        (differs == 0).then_some(known)
    }

    /// The class of an atom of the component.
    pub(super) fn class(&self, name: Text8, element: u8) -> AtomClass {
        let word = u64::from_le_bytes(name);
        match self.atoms.iter().position(|&(known, _)| known == word) {
            Some(at) => AtomClass::known(self.classes[at].radius_milli_angstrom(), name, element),
            None => AtomClass::unknown(name, element),
        }
    }
}

/// Which of atoms, names and elements, are N, CA, C, O and CB, or [`MISSING`], of
/// each the first.
fn backbone(atoms: impl Iterator<Item = (u64, u8)>) -> [u32; 5] {
    const NAMES: [u64; 5] = [
        u64::from_le_bytes(*b"N       "),
        u64::from_le_bytes(*b"CA      "),
        u64::from_le_bytes(*b"C       "),
        u64::from_le_bytes(*b"O       "),
        u64::from_le_bytes(*b"CB      "),
    ];
    let mut found = [MISSING; 5];
    let mut missing = found.len();
    for (at, (name, element)) in (0..).zip(atoms) {
        let Some(place) = NAMES.iter().position(|&known| known == name) else {
            continue;
        };
        // Calcium has the same name but for the column.
        let is_calcium = place == 1 && !matches!(element, 0 | 6);
        if found[place] == MISSING && !is_calcium {
            found[place] = at;
            missing -= 1;
            if missing == 0 {
                break;
            }
        }
    }
    found
}

fn first4([a, b, c, d, ..]: Text8) -> [u8; 4] {
    [a, b, c, d]
}

/// The rows of the table: component and atoms.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = TSV.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|row| row.split_once('\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Component, atom and radius of each entry of the table.
    fn entries() -> impl Iterator<Item = (Text8, Text8, u32)> {
        rows().flat_map(|(id, atoms)| {
            let words: Vec<&str> = atoms.split(' ').collect();
            let pairs = (0..words.len() / 2).map(move |at| (words[2 * at], words[2 * at + 1]));
            pairs.map(move |(name, radius)| {
                let (id, name) = (text8(id.as_bytes()), text8(name.as_bytes()));
                (id, name, radius.parse().unwrap())
            })
        })
    }

    fn atom(name: Text8) -> Atom {
        Atom {
            xyz: [0; 3],
            b_factor: 0.0,
            occupancy: 0,
            name,
            element: element::from_name(first4(name)),
            altloc: 0,
            rounded: false,
        }
    }

    #[test]
    fn every_entry_of_the_table_is_found() {
        for (id, name, radius) in entries() {
            let class = AtomClass::of(id, name, atom(name).element);
            assert_eq!(class.radius_milli_angstrom(), radius, "{id:?} {name:?}");
        }
        assert_eq!(entries().count(), 475);
    }

    #[test]
    fn atoms_in_any_order_are_what_each_is_alone() {
        for (id, _) in rows() {
            let id = text8(id.as_bytes());
            let names = entries().filter(|entry| entry.0 == id);
            let mut atoms: Vec<Atom> = names.map(|entry| atom(entry.1)).collect();
            let check = |atoms: &[Atom]| {
                let (templates, mut classes) = (Templates::table(), Vec::new());
                let found = templates.of(templates.id_of(id)).apply(atoms, &mut classes);
                let class = |atom: &Atom| AtomClass::of(id, atom.name, atom.element);
                assert_eq!(classes, atoms.iter().map(class).collect::<Vec<_>>());
                let names = ["N", "CA", "C", "O", "CB"].map(|name| text8(name.as_bytes()));
                let expected = names.map(|name| {
                    let at = atoms.iter().position(|atom| atom.name == name);
                    at.map_or(MISSING, |at| at as u32)
                });
                assert_eq!(found, expected);
            };
            check(&atoms);
            check(&atoms[..atoms.len() - 1]);
            check(&atoms[..1]);
            check(&atoms[1..]);
            atoms.reverse();
            check(&atoms);
            atoms.insert(1, atom(text8(b"XYZ")));
            check(&atoms);
            atoms[0].element = 0;
            check(&atoms);
        }
    }
}
