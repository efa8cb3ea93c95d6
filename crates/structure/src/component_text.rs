//! The text of dictionaries of components.

use std::collections::{BTreeSet, HashMap};
use std::sync::OnceLock;

use super::chemistry::{
    ComponentMap, Components, DictionaryAtom, DictionaryBond, DictionaryComponent,
};
use super::element;
use super::formats::mmcif::{CifValues, each_row};
use super::text8::{Text8, text8};
use crate::{Error, Result};

/// The most atoms of a component, hydrogens included: their indices have 16 bits.
const ATOMS_MAX: usize = u16::MAX as usize;

/// The most atoms of a component of a structure's own file, and half of its most bonds, as each ligand is
/// compared with all of them. Those of the wwPDB's dictionary have a few hundred.
const FILE_ATOMS_MAX: usize = 2_000;

/// Frequent ligands and modified residues of wwPDB entries, from the chemical component dictionary (CC0);
/// `scripts/make_frequent_components.py` makes the file.
const FREQUENT: &[u8] = include_bytes!("frequent_components.cif");

impl Components {
    /// The components that the library has itself: frequent ligands and modified residues.
    pub fn frequent() -> Components {
        static KEPT: OnceLock<Components> = OnceLock::new();
        *KEPT.get_or_init(|| {
            let known = Components::of_text("frequent_components.cif", FREQUENT);
            known.expect("a test reads the file")
        })
    }

    /// The components of a dictionary's text, plain mmCIF. `name` is what [`Components::name`] returns:
    /// the file's.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) with the line and what is wrong in it: the text is no
    /// mmCIF, a component is not complete, or there is none.
    pub fn of_text(name: &str, text: &[u8]) -> Result<Components> {
        Components::kept(name, fingerprint(text), || parse(text))
    }
}

/// The FNV-1a hash of the text's words of eight bytes, and of the bytes after the last.
fn fingerprint(text: &[u8]) -> u64 {
    let (words, rest) = text.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let all = words.chain(rest.iter().map(|&byte| u64::from(byte)));
    all.fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ word).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The items of `_chem_comp_atom` that are read.
pub(super) const ATOM_ITEMS: [&str; 3] = ["comp_id", "atom_id", "type_symbol"];
/// The items of `_chem_comp_bond` that are read.
pub(super) const BOND_ITEMS: [&str; 5] = [
    "comp_id",
    "atom_id_1",
    "atom_id_2",
    "value_order",
    "pdbx_aromatic_flag",
];

/// The rows of `_chem_comp_atom` and `_chem_comp_bond`, by component.
#[derive(Default)]
pub(super) struct ComponentRows(HashMap<Text8, RawComponent>);

/// A component as it is read, with its hydrogens.
#[derive(Default)]
struct RawComponent {
    atoms: Vec<(Text8, u8)>,
    /// The two atoms, whether it is no single bond, and whether it is aromatic.
    bonds: Vec<([Text8; 2], bool, bool)>,
    /// Whether the file does not state the order of one of the bonds.
    lacks_order: bool,
}

impl ComponentRows {
    /// Adds an atom: the values of [`ATOM_ITEMS`].
    pub(super) fn add_atom(&mut self, [comp, atom, symbol]: [&[u8]; 3]) {
        let letter = |index: usize| symbol.get(index).copied().unwrap_or(b' ');
        let element = element::from_symbol([letter(0), letter(1)]);
        let component = self.0.entry(text8(comp)).or_default();
        component.atoms.push((text8(atom), element));
    }

    /// Adds a bond: the values of [`BOND_ITEMS`].
    pub(super) fn add_bond(&mut self, [comp, one, other, order, aromatic]: [&[u8]; 5]) {
        let is_aromatic = aromatic.eq_ignore_ascii_case(b"Y");
        // `SING` in the wwPDB's files, and `SINGLE` in those of AceDRG and CCP4's library.
        let first_letters = order.get(..4).unwrap_or_default();
        let is_single = first_letters.eq_ignore_ascii_case(b"SING");
        let component = self.0.entry(text8(comp)).or_default();
        component.lacks_order |= order.is_empty();
        let bond = ([one, other].map(text8), !is_single, is_aromatic);
        component.bonds.push(bond);
    }

    /// The components that a structure's own file describes. One without bonds, with bonds of atoms
    /// that it lacks or without an order, or larger than [`FILE_ATOMS_MAX`], is left out: other sources
    /// describe it.
    pub(super) fn of_structure_file(self) -> ComponentMap {
        let finished = |(id, mut component): (Text8, RawComponent)| {
            let bonds = component.bonds.len();
            if bonds == 0 || bonds / 2 > FILE_ATOMS_MAX {
                return None;
            }
            component.add_unlisted_atoms();
            if component.atoms.len() > FILE_ATOMS_MAX {
                return None;
            }
            Some((id, component.finish(&id).ok()?))
        };
        self.0.into_iter().filter_map(finished).collect()
    }
}

/// Parses a dictionary in mmCIF: the atoms and bonds of all components.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind::Input): the text is no CIF, has no component, or a component is not
/// complete.
fn parse(text: &[u8]) -> Result<ComponentMap> {
    let mut rows = ComponentRows::default();
    let categories: [(&str, &[&str]); 2] = [
        ("chem_comp_atom", &ATOM_ITEMS),
        ("chem_comp_bond", &BOND_ITEMS),
    ];
    each_row(text, &categories, |category, values: CifValues<'_>| {
        if category == 0 {
            rows.add_atom(std::array::from_fn(|item| values.get(item)));
        } else {
            rows.add_bond(std::array::from_fn(|item| values.get(item)));
        }
        Ok(())
    })?;
    if rows.0.is_empty() {
        let error = Error::input("it has no component");
        return Err(error.fix("give the wwPDB's components.cif, or files of its components"));
    }
    let finished = rows
        .0
        .into_iter()
        .map(|(id, component)| Ok((id, component.finish(&id)?)));
    finished.collect()
}

impl RawComponent {
    /// Adds the atoms of bonds if the file lists no atoms: the names of hydrogens start with H or D, and
    /// the other elements are not known.
    fn add_unlisted_atoms(&mut self) {
        if !self.atoms.is_empty() {
            return;
        }
        let names = self.bonds.iter().flat_map(|(names, ..)| names);
        for name in names.copied().collect::<BTreeSet<_>>() {
            let is_hydrogen = matches!(name[0], b'H' | b'D');
            let element = if is_hydrogen { element::HYDROGEN } else { 0 };
            self.atoms.push((name, element));
        }
    }

    /// Leaves out hydrogens, which are counted on their heavy atoms, and gives the other atoms
    /// their indices.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if there are too many atoms, or a bond has no order or is of
    /// an atom that the component lacks.
    fn finish(self, id: &Text8) -> Result<DictionaryComponent> {
        let broken = |what: String| {
            let id = String::from_utf8_lossy(id.trim_ascii_end()).into_owned();
            let error = Error::input(format!("component {id:?} {what}"));
            error.fix("fetch the dictionary again")
        };
        if self.atoms.len() > ATOMS_MAX {
            return Err(broken(format!("has more than {ATOMS_MAX} atoms")));
        }
        if self.lacks_order {
            let error = broken("has a bond without _chem_comp_bond.value_order".to_owned());
            return Err(error.fix("give the wwPDB's components.cif, or files of its components"));
        }
        // Hydrogens have no index.
        let mut index: HashMap<Text8, Option<u16>> = HashMap::new();
        let mut component = DictionaryComponent::default();
        for (name, element) in self.atoms {
            let is_hydrogen = element == element::HYDROGEN;
            index.insert(name, (!is_hydrogen).then_some(component.atoms.len() as u16));
            if !is_hydrogen {
                component.atoms.push(DictionaryAtom {
                    name,
                    element,
                    hydrogens: 0,
                });
            }
        }
        for (names, is_multiple, is_aromatic) in self.bonds {
            let find = |name: &Text8| {
                let text = || String::from_utf8_lossy(name.trim_ascii_end()).into_owned();
                let found = index.get(name).copied();
                found.ok_or_else(|| {
                    broken(format!(
                        "has a bond of {:?}, which is no atom of it",
                        text()
                    ))
                })
            };
            match [find(&names[0])?, find(&names[1])?] {
                [Some(one), Some(other)] => component.bonds.push(DictionaryBond {
                    atoms: [one, other],
                    is_multiple,
                    is_aromatic,
                }),
                [Some(heavy), None] | [None, Some(heavy)] => {
                    let hydrogens = &mut component.atoms[usize::from(heavy)].hydrogens;
                    // No atom of a real component has 255 hydrogens.
                    *hydrogens = hydrogens.saturating_add(1);
                }
                [None, None] => {}
            }
        }
        Ok(component)
    }
}
