//! The text of dictionaries of components.

use std::collections::HashMap;

use super::chemistry::{Components, DictionaryAtom, DictionaryBond, DictionaryComponent};
use super::element;
use super::formats::mmcif::{CifValues, each_row};
use super::text8::{Text8, text8};
use crate::{Error, Result};

/// The most atoms of a component, hydrogens included.
const ATOMS_MAX: usize = u16::MAX as usize;

impl Components {
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

/// The FNV-1a hash of the text's words of eight bytes.
fn fingerprint(text: &[u8]) -> u64 {
    let (words, rest) = text.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let all = words.chain(rest.iter().map(|&byte| u64::from(byte)));
    all.fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ word).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A component as it is read, with its hydrogens.
#[derive(Default)]
struct RawComponent {
    atoms: Vec<(Text8, u8)>,
    /// The two atoms, whether it is no single bond, and whether it is aromatic.
    bonds: Vec<([Text8; 2], bool, bool)>,
}

fn parse(text: &[u8]) -> Result<HashMap<Text8, DictionaryComponent>> {
    let mut raw: HashMap<Text8, RawComponent> = HashMap::new();
    const ATOM: [&str; 3] = ["comp_id", "atom_id", "type_symbol"];
    const BOND: [&str; 5] = [
        "comp_id",
        "atom_id_1",
        "atom_id_2",
        "value_order",
        "pdbx_aromatic_flag",
    ];
    let categories: [(&str, &[&str]); 2] = [("chem_comp_atom", &ATOM), ("chem_comp_bond", &BOND)];
    each_row(text, &categories, |category, values: CifValues<'_>| {
        let component = raw.entry(text8(values.get(0))).or_default();
        if category == 0 {
            let symbol = values.get(2);
            let [first, second] = [0, 1].map(|index| symbol.get(index).copied().unwrap_or(b' '));
            let element = element::from_symbol([first, second]);
            component.atoms.push((text8(values.get(1)), element));
        } else {
            let atoms = [1, 2].map(|index| text8(values.get(index)));
            let is_aromatic = values.get(4).eq_ignore_ascii_case(b"Y");
            let is_single = values.get(3).eq_ignore_ascii_case(b"SING");
            component.bonds.push((atoms, !is_single, is_aromatic));
        }
        Ok(())
    })?;
    if raw.is_empty() {
        let error = Error::input("it has no component");
        return Err(error.fix("give the wwPDB's components.cif, or files of its components"));
    }
    let finished = raw
        .into_iter()
        .map(|(id, component)| Ok((id, component.finish(&id)?)));
    finished.collect()
}

impl RawComponent {
    fn finish(self, id: &Text8) -> Result<DictionaryComponent> {
        let broken = |what: String| {
            let id = String::from_utf8_lossy(id.trim_ascii_end()).into_owned();
            let error = Error::input(format!("component {id:?} {what}"));
            error.fix("fetch the dictionary again")
        };
        if self.atoms.len() > ATOMS_MAX {
            return Err(broken(format!("has more than {ATOMS_MAX} atoms")));
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
                    *hydrogens = hydrogens.saturating_add(1);
                }
                [None, None] => {}
            }
        }
        Ok(component)
    }
}
