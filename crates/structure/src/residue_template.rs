//! The classes of atoms and the backbone atoms of known components.
//!
//! Nearly every residue has the first atoms of its component in the order of the component's
//! template. One comparison of the whole residue then yields what depends on atom names. The atoms
//! of all other residues are looked up one by one. The templates are the rows of `protor.tsv`, which
//! `scripts/make_protor.py` makes from the ProtOr radii of FreeSASA.

use std::sync::OnceLock;

use super::atom_class::AtomClass;
use super::atom_name::AtomName;
use super::atom_table::AtomLine;
use super::element;
use super::model::MISSING;
use super::text8::{Text8, text8};

const TSV: &str = include_str!("protor.tsv");

/// Index of a component in [`ResidueTemplates`]; 0 for a component without a template.
pub(super) type TemplateId = u8;

/// The templates by component. The first one has a blank component and no atoms.
pub(super) struct ResidueTemplates(Vec<(Text8, ResidueTemplate)>);

impl ResidueTemplates {
    /// The table, which is made at the first call. Index 0 is the template without atoms.
    pub(super) fn table() -> &'static Self {
        static TABLE: OnceLock<ResidueTemplates> = OnceLock::new();
        TABLE.get_or_init(|| {
            let none = (text8(b""), ResidueTemplate::parse(""));
            let rows =
                rows().map(|(id, atoms)| (text8(id.as_bytes()), ResidueTemplate::parse(atoms)));
            ResidueTemplates(std::iter::once(none).chain(rows).collect())
        })
    }

    /// The id of a component's template; 0 if it has none.
    pub(super) fn id_of(&self, comp_id: Text8) -> TemplateId {
        let index = self.0.iter().position(|(id, _)| *id == comp_id);
        index.unwrap_or(0) as TemplateId
    }

    pub(super) fn get(&self, id: TemplateId) -> &ResidueTemplate {
        &self.0[usize::from(id)].1
    }
}

/// How the atoms of a residue match a template.
pub(super) struct TemplateMatch {
    /// The indices of the first N, CA, C, O and CB, or [`MISSING`].
    pub backbone: [u32; 5],
    /// Whether every atom is one of the template, with its element, and none is there twice.
    pub is_subset: bool,
}

/// The atoms of a component in the order of files; at most 64.
pub(super) struct ResidueTemplate {
    /// Names and elements.
    atoms: Vec<(u64, u8)>,
    classes: Vec<AtomClass>,
    names: Vec<AtomName>,
    /// Indices of N, CA, C, O and CB, or [`MISSING`].
    backbone: [u32; 5],
}

impl ResidueTemplate {
    /// Parses names and radii, which alternate.
    fn parse(row: &str) -> Self {
        let words: Vec<&str> = row.split_whitespace().collect();
        let atoms = words.chunks(2).map(|pair| {
            let name = text8(pair[0].as_bytes());
            let radius = pair[1].parse().expect("protor.tsv: a radius is a number");
            (name, element::from_name(name), radius)
        });
        let class = |(name, element, radius)| AtomClass::known(radius, name, element);
        let classes = atoms.clone().map(class).collect();
        let names = atoms.clone();
        let names = names.map(|(name, ..)| AtomName::of_padded(name)).collect();
        let atoms: Vec<_> = atoms
            .map(|(name, element, _)| (u64::from_le_bytes(name), element))
            .collect();
        let backbone = backbone(atoms.iter().copied());
        ResidueTemplate {
            atoms,
            classes,
            names,
            backbone,
        }
    }

    /// Adds the classes and names of a residue's atoms. The backbone is the indices of the first N,
    /// CA, C, O and CB, or [`MISSING`].
    #[inline(always)]
    pub(super) fn apply(
        &self,
        atoms: &[AtomLine],
        classes: &mut Vec<AtomClass>,
        names: &mut Vec<AtomName>,
    ) -> TemplateMatch {
        if let Some(known) = self.fit(atoms) {
            classes.extend_from_slice(known);
            names.extend_from_slice(&self.names[..atoms.len()]);
            let present = |index: u32| {
                if (index as usize) < atoms.len() {
                    index
                } else {
                    MISSING
                }
            };
            return TemplateMatch {
                backbone: self.backbone.map(present),
                is_subset: true,
            };
        }
        self.apply_each(atoms, classes, names)
    }

    /// [`ResidueTemplate::apply`] for atoms that are not the template's first atoms in order.
    #[inline(never)]
    fn apply_each(
        &self,
        atoms: &[AtomLine],
        classes: &mut Vec<AtomClass>,
        names: &mut Vec<AtomName>,
    ) -> TemplateMatch {
        let (mut seen, mut is_subset) = (0u64, true);
        classes.reserve(atoms.len());
        names.reserve(atoms.len());
        for &AtomLine { name, element, .. } in atoms {
            match self.position(name) {
                Some(index) => {
                    is_subset &= seen >> index & 1 == 0 && element == self.atoms[index].1;
                    seen |= 1 << index;
                    names.push(self.names[index]);
                    classes.push(if element == self.atoms[index].1 {
                        self.classes[index]
                    } else {
                        let radius = self.classes[index].protor_milli_angstrom();
                        AtomClass::known(radius, name, element)
                    });
                }
                None => {
                    is_subset = false;
                    names.push(AtomName::of_padded(name));
                    classes.push(AtomClass::unknown(name, element));
                }
            }
        }
        let word = |atom: &AtomLine| (u64::from_le_bytes(atom.name), atom.element);
        TemplateMatch {
            backbone: backbone(atoms.iter().map(word)),
            is_subset,
        }
    }

    /// The atomic number of an atom of the component.
    pub(super) fn element(&self, name: Text8) -> Option<u8> {
        Some(self.atoms[self.position(name)?].1)
    }

    /// The index of an atom of the component.
    pub(super) fn position(&self, name: Text8) -> Option<usize> {
        let word = u64::from_le_bytes(name);
        self.atoms.iter().position(|&(known, _)| known == word)
    }

    /// The classes of `atoms` if they are the first atoms of the template.
    #[inline]
    fn fit(&self, atoms: &[AtomLine]) -> Option<&[AtomClass]> {
        let known = self.classes.get(..atoms.len())?;
        let pairs = atoms.iter().zip(&self.atoms);
        let differs = pairs.fold(0, |bits, (atom, (name, element))| {
            bits | (u64::from_le_bytes(atom.name) ^ name) | u64::from(atom.element ^ element)
        });
        (differs == 0).then_some(known)
    }

    /// The class of an atom of the component.
    pub(super) fn class(&self, name: Text8, element: u8) -> AtomClass {
        match self.position(name) {
            Some(index) => {
                AtomClass::known(self.classes[index].protor_milli_angstrom(), name, element)
            }
            None => AtomClass::unknown(name, element),
        }
    }
}

impl AtomClass {
    /// The class of the atom `name` of a component. `comp_id` is the id of the component's parent
    /// ([`Residue::parent_comp_id`]), or its own id if it has no parent. Both texts are padded with
    /// spaces; `element` is the atomic number, 0 if unknown.
    ///
    /// The radius is ProtOr's if ProtOr has an atom of that name in the component, else the
    /// element's: C 1.88, N 1.64, O 1.46, P 1.80, S 1.77, Se 1.90, any other 1.80 A. Side-chain
    /// atoms have any name but N, CA, C, O and OXT; N, O, P, S and Se are polar.
    ///
    /// [`Residue::parent_comp_id`]: super::Residue::parent_comp_id
    pub fn of(comp_id: [u8; 8], name: [u8; 8], element: u8) -> Self {
        let templates = ResidueTemplates::table();
        templates.get(templates.id_of(comp_id)).class(name, element)
    }
}

/// The indices of the first N, CA, C, O and CB, or [`MISSING`]. Atoms are names and elements.
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
    for (index, (name, element)) in (0..).zip(atoms) {
        let Some(which) = NAMES.iter().position(|&known| known == name) else {
            continue;
        };
        // The name of calcium differs from CA only in its column, which is not kept.
        let is_calcium = which == 1 && !matches!(element, 0 | 6);
        if found[which] == MISSING && !is_calcium {
            found[which] = index;
            missing -= 1;
            if missing == 0 {
                break;
            }
        }
    }
    found
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
            let pairs = (0..words.len() / 2).map(move |i| (words[2 * i], words[2 * i + 1]));
            pairs.map(move |(name, radius)| {
                let (id, name) = (text8(id.as_bytes()), text8(name.as_bytes()));
                (id, name, radius.parse().unwrap())
            })
        })
    }

    fn atom(name: Text8) -> AtomLine {
        AtomLine {
            name,
            element: element::from_name(name),
            ..AtomLine::default()
        }
    }

    #[test]
    fn every_entry_of_the_table_is_found() {
        for (id, name, radius) in entries() {
            let class = AtomClass::of(id, name, atom(name).element);
            assert_eq!(class.protor_milli_angstrom(), radius, "{id:?} {name:?}");
        }
        assert_eq!(entries().count(), 475);
    }

    #[test]
    fn atoms_in_any_order_have_the_classes_that_each_has_alone() {
        for (id, _) in rows() {
            let id = text8(id.as_bytes());
            let names = entries().filter(|entry| entry.0 == id);
            let mut atoms: Vec<AtomLine> = names.map(|entry| atom(entry.1)).collect();
            let check = |atoms: &[AtomLine]| {
                let (templates, mut classes) = (ResidueTemplates::table(), Vec::new());
                let mut codes = Vec::new();
                let template = templates.get(templates.id_of(id));
                let applied = template.apply(atoms, &mut classes, &mut codes);
                let found = applied.backbone;
                let is_known = |atom: &AtomLine| template.element(atom.name) == Some(atom.element);
                assert_eq!(applied.is_subset, atoms.iter().all(is_known));
                let class = |atom: &AtomLine| AtomClass::of(id, atom.name, atom.element);
                assert_eq!(classes, atoms.iter().map(class).collect::<Vec<_>>());
                let code = |atom: &AtomLine| AtomName::of_padded(atom.name);
                assert_eq!(codes, atoms.iter().map(code).collect::<Vec<_>>());
                let names = ["N", "CA", "C", "O", "CB"].map(|name| text8(name.as_bytes()));
                let expected = names.map(|name| {
                    let index = atoms.iter().position(|atom| atom.name == name);
                    index.map_or(MISSING, |index| index as u32)
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
