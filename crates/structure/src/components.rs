//! The components of polymers: amino acids, nucleotides and caps by id.
//!
//! `components.tsv` has those of the wwPDB chemical component dictionary;
//! `scripts/make_components.py` makes it. `simulation_names.tsv` has the names that simulation
//! programs use instead, each with the component that it stands for. A few names are in both tables
//! with different meanings (HSE is homoserine, and a histidine in CHARMM). There the heavy atoms of
//! a residue decide; see [`ResidueAtoms`](super::residue_atoms::ResidueAtoms).

use std::collections::HashMap;
use std::sync::OnceLock;

use super::atom_table::PolymerKind;
use super::model::{Residue, ResidueFlags};
use super::residue_template::{ResidueTemplates, TemplateId};
use super::text8::{Text8, text8};

/// A component of polymers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Component {
    pub kind: PolymerKind,
    /// The standard component that this one is a variant of, or the first of several; blank if none
    /// is known.
    pub parent: Text8,
    /// One-letter code of the parent; `X` for none.
    pub aa: u8,
    /// The template of the parent; without a parent, the component's own.
    pub template: TemplateId,
    /// Whether its heavy atoms are those of the template: a standard component, or a simulation
    /// program's name of one.
    pub has_template_atoms: bool,
    /// Whether the name is a simulation program's.
    pub is_simulation_name: bool,
    /// Whether the dictionary has another component of this name; see [`dictionary_component_by_atoms`].
    pub is_ambiguous: bool,
}

impl Component {
    /// A component that the table does not have.
    pub(super) fn unknown(kind: PolymerKind) -> &'static Self {
        static AMINO: Component = Component::without_parent(PolymerKind::Amino);
        static NUCLEOTIDE: Component = Component::without_parent(PolymerKind::Nucleotide);
        static CAP: Component = Component::without_parent(PolymerKind::Cap);
        match kind {
            PolymerKind::Amino => &AMINO,
            PolymerKind::Nucleotide => &NUCLEOTIDE,
            PolymerKind::Cap => &CAP,
        }
    }

    /// A component that is not a modification of another one.
    const fn without_parent(kind: PolymerKind) -> Self {
        Component {
            kind,
            parent: BLANK,
            aa: b'X',
            template: 0,
            has_template_atoms: false,
            is_simulation_name: false,
            is_ambiguous: false,
        }
    }
}

const TSV: &str = include_str!("components.tsv");
const SIMULATION_NAMES: &str = include_str!("simulation_names.tsv");
const BLANK: Text8 = *b"        ";

/// The component of a space-padded id; `None` if it is not one of polymers. A name that is both a
/// simulation program's and the dictionary's is the program's here.
pub(super) fn lookup(id: Text8) -> Option<&'static Component> {
    table().get(id)
}

/// The dictionary's component of a name that simulation programs use too.
#[cfg(test)]
pub(super) fn dictionary_component(id: Text8) -> Option<&'static Component> {
    Some(&ambiguous(id)?.component)
}

/// The dictionary's component of a name that simulation programs use too, if the residue has an atom that
/// only that component has.
pub(super) fn dictionary_component_by_atoms(
    id: Text8,
    mut atoms: impl Iterator<Item = Text8>,
) -> Option<&'static Component> {
    let known = ambiguous(id)?;
    let has_own = atoms.any(|atom| known.atoms.contains(&atom));
    has_own.then_some(&known.component)
}

fn ambiguous(id: Text8) -> Option<&'static DictionaryComponent> {
    table().ambiguous.iter().find(|known| known.id == id)
}

fn table() -> &'static ComponentTable {
    static TABLE: OnceLock<ComponentTable> = OnceLock::new();
    TABLE.get_or_init(ComponentTable::parse)
}

/// The standard components that a component was made of, separated by commas, if they are several:
/// `MET,TYR,GLY` of the chromophore NRQ.
fn several_parents(id: Text8) -> Option<&'static str> {
    static SEVERAL: OnceLock<HashMap<Text8, &'static str>> = OnceLock::new();
    let parse = || {
        let rows = rows().filter_map(|row| {
            let mut columns = row.split('\t');
            let id = columns.next()?;
            let parents = columns.nth(1)?;
            parents
                .contains(',')
                .then(|| (text8(id.as_bytes()), parents))
        });
        rows.collect()
    };
    SEVERAL.get_or_init(parse).get(&id).copied()
}

impl Residue {
    /// Whether the residue has the heavy atoms of its parent: the component is standard, or a
    /// simulation program's name of a standard one (HID of HIS).
    pub fn is_standard(&self) -> bool {
        let is_renamed = || {
            self.flags.contains(ResidueFlags::SIMULATION_NAME)
                && lookup(self.comp_id).is_some_and(|known| known.has_template_atoms)
        };
        self.comp_id == self.parent_comp_id || is_renamed()
    }

    /// The standard components that this one was made of, separated by commas, if they are several.
    #[doc(hidden)]
    pub fn several_parents(&self) -> Option<&'static str> {
        if self.comp_id == self.parent_comp_id {
            None
        } else {
            several_parents(self.comp_id)
        }
    }
}

fn rows() -> impl Iterator<Item = &'static str> {
    lines(TSV)
}

/// The lines of a table without its heading.
fn lines(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().filter(|line| !line.starts_with('#'))
}

/// The simulation programs' names, each with the id of its component, and with the atoms, separated by
/// blanks, by which the dictionary's component of that name is recognised.
fn simulation_names() -> impl Iterator<Item = (Text8, Text8, &'static str)> {
    lines(SIMULATION_NAMES).filter_map(|row| {
        let mut columns = row.split('\t');
        let mut id = || Some(text8(columns.next()?.as_bytes()));
        Some((id()?, id()?, columns.nth(1).unwrap_or_default()))
    })
}

/// A component of the dictionary whose name simulation programs use for another one.
struct DictionaryComponent {
    id: Text8,
    component: Component,
    /// Atoms that only this component has.
    atoms: Vec<Text8>,
}

/// A hash table with linear probing. A lookup takes one multiplication and, for nearly all ids, one
/// comparison; there is one lookup for each residue.
struct ComponentTable {
    slots: Vec<(Text8, Component)>,
    shift: u32,
    ambiguous: Vec<DictionaryComponent>,
}

impl ComponentTable {
    /// The components of both tables; a simulation program's name takes the place of the
    /// dictionary's component of that name, which [`ComponentTable::ambiguous`] keeps.
    fn parse() -> Self {
        let count = rows().count() + simulation_names().count();
        // At most a quarter is taken, so that few ids share a slot.
        let slot_count = (count * 4).next_power_of_two();
        let empty = Component::without_parent(PolymerKind::Cap);
        let mut table = ComponentTable {
            slots: vec![(BLANK, empty); slot_count],
            shift: 64 - slot_count.trailing_zeros(),
            ambiguous: Vec::new(),
        };
        for row in rows() {
            let (id, component) = parse_row(row);
            let slot = table.slot(id);
            assert!(
                table.slots[slot].0 == BLANK,
                "component {row:?} occurs twice"
            );
            table.slots[slot] = (id, component);
        }
        // Looked up before any name is added, as a name may be that of another component.
        let names = simulation_names().map(|(name, id, atoms)| {
            let component = table.get(id).expect("the component is one of polymers");
            (name, *component, atoms)
        });
        for (name, component, atoms) in names.collect::<Vec<_>>() {
            let slot = table.slot(name);
            let known = table.slots[slot];
            let is_ambiguous = known.0 == name;
            if is_ambiguous {
                let atoms = atoms.split_whitespace();
                table.ambiguous.push(DictionaryComponent {
                    id: name,
                    component: known.1,
                    atoms: atoms.map(|atom| text8(atom.as_bytes())).collect(),
                });
            }
            let component = Component {
                is_simulation_name: true,
                is_ambiguous,
                ..component
            };
            table.slots[slot] = (name, component);
        }
        table
    }

    fn get(&self, id: Text8) -> Option<&Component> {
        let (found, component) = &self.slots[self.slot(id)];
        (*found == id && id != BLANK).then_some(component)
    }

    /// The slot that holds `id`, or the free one for it: the first from the highest bits of the
    /// product with 2^64 over the golden ratio on (Fibonacci hashing).
    fn slot(&self, id: Text8) -> usize {
        let hash = u64::from_le_bytes(id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut slot = (hash >> self.shift) as usize;
        while self.slots[slot].0 != id && self.slots[slot].0 != BLANK {
            slot = (slot + 1) % self.slots.len();
        }
        slot
    }
}

/// The id and the component of a row of `components.tsv`: id, kind, parents and one-letter code.
///
/// # Panics
/// If the kind is not A, N or C.
fn parse_row(row: &str) -> (Text8, Component) {
    let mut columns = row.split('\t');
    let mut next = || columns.next().unwrap_or_default();
    let id = text8(next().as_bytes());
    let kind = match next() {
        "A" => PolymerKind::Amino,
        "N" => PolymerKind::Nucleotide,
        "C" => PolymerKind::Cap,
        other => panic!("components.tsv: unknown kind {other:?} in {row:?}"),
    };
    let parent = next().split(',').next().unwrap_or_default();
    let parent = text8(parent.as_bytes());
    let aa = next().as_bytes().first().copied().unwrap_or(b'X');
    let template = ResidueTemplates::table().id_of(if parent == BLANK { id } else { parent });
    let component = Component {
        kind,
        parent,
        aa,
        template,
        has_template_atoms: id == parent && template != 0,
        is_simulation_name: false,
        is_ambiguous: false,
    };
    (id, component)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(id: &str) -> Option<&'static Component> {
        lookup(text8(id.as_bytes()))
    }

    #[test]
    fn standard_and_modified_residues_know_their_parents() {
        let mse = find("MSE").unwrap();
        assert_eq!(
            (mse.kind, mse.parent, mse.aa),
            (PolymerKind::Amino, *b"MET     ", b'M')
        );
        assert_eq!(find("ALA").unwrap().parent, *b"ALA     ");
        assert_eq!(find("UNK").unwrap().aa, b'X');
        assert_eq!(find("DA").unwrap().kind, PolymerKind::Nucleotide);
        assert_eq!(find("ACE").unwrap().kind, PolymerKind::Cap);
    }

    #[test]
    fn water_ligands_and_the_blank_id_are_not_components() {
        for id in ["HOH", "HEM", "NA", "TIP", "", "ZZZZZZZZ"] {
            assert_eq!(find(id), None, "{id}");
        }
    }

    #[test]
    fn chromophores_have_several_parents_and_are_read_as_the_first() {
        let parents = |id: &str| several_parents(text8(id.as_bytes()));
        assert_eq!(parents("NRQ"), Some("MET,TYR,GLY"));
        assert_eq!(parents("CRO"), Some("THR,TYR,GLY"));
        assert_eq!([parents("MSE"), parents("ALA"), parents("HOH")], [None; 3]);
        let nrq = find("NRQ").unwrap();
        assert_eq!((nrq.parent, nrq.aa), (*b"MET     ", b'M'));
    }

    #[test]
    fn names_of_simulation_programs_are_the_components_that_they_stand_for() {
        for (name, id, _) in simulation_names() {
            let known = lookup(name).unwrap();
            let component = dictionary_component(id).or(lookup(id)).unwrap();
            assert_eq!(
                (known.kind, known.parent),
                (component.kind, component.parent)
            );
            assert!(known.is_simulation_name && !component.is_simulation_name);
            assert_eq!(known.has_template_atoms, component.has_template_atoms);
        }
        for (name, parent) in [
            ("HSE", "HIS"),
            ("NLN", "ASN"),
            ("OLS", "SER"),
            ("CGLY", "GLY"),
        ] {
            let component = find(name).unwrap();
            assert_eq!(component.parent, text8(parent.as_bytes()));
            assert!(component.has_template_atoms, "{name}");
        }
        let d_valine = find("DVAL").unwrap();
        assert_eq!(
            (d_valine.parent, d_valine.has_template_atoms),
            (*b"VAL     ", false)
        );
    }

    #[test]
    fn the_dictionary_has_components_of_other_atoms_under_some_of_these_names() {
        let both = simulation_names().filter(|(name, ..)| dictionary_component(*name).is_some());
        let names: Vec<String> = both
            .map(|(name, _, atoms)| {
                assert!(!atoms.is_empty(), "atoms decide");
                String::from_utf8_lossy(name.trim_ascii_end()).into_owned()
            })
            .collect();
        assert_eq!(names.len(), 7);
        for name in ["CYM", "GLH", "HIP", "HSE", "LYN", "NLN", "OLT"] {
            assert!(names.iter().any(|known| known == name), "{name}");
        }
        let homoserine = dictionary_component(*b"HSE     ").unwrap();
        assert_eq!((homoserine.parent, homoserine.aa), (*b"SER     ", b'S'));
        assert_eq!(
            dictionary_component(*b"NLN     ").unwrap().parent,
            *b"LEU     "
        );
        assert_eq!(dictionary_component(*b"HID     "), None, "a ligand there");
    }

    #[test]
    fn every_row_of_the_table_is_found() {
        for row in rows() {
            let (id, component) = parse_row(row);
            let found = dictionary_component(id).or(lookup(id));
            assert_eq!(found, Some(&component), "{row}");
        }
    }
}
