//! The components of polymers: amino acids, nucleotides and caps by id.
//!
//! `scripts/make_components.py` makes the table, `components.tsv`, from the wwPDB chemical component
//! dictionary and the names that simulation packages use.

#[cfg(feature = "cli")]
use std::collections::HashMap;
use std::sync::OnceLock;

use super::atom_table::Kind;
#[cfg(feature = "cli")]
use super::model::Residue;
use super::residue_template::{ResidueTemplates, TemplateId};
use super::text8::{Text8, text8};

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Component {
    pub kind: Kind,
    /// The standard component that this one is a variant of, or the first of several; blank if none
    /// is known.
    pub parent: Text8,
    /// One-letter code of the parent; `X` for none.
    pub aa: u8,
    /// The template of the parent; without a parent, the component's own.
    pub template: TemplateId,
}

impl Component {
    /// A component that the table does not have.
    pub(super) fn unknown(kind: Kind) -> Self {
        Component {
            kind,
            parent: BLANK,
            aa: b'X',
            template: 0,
        }
    }
}

const TSV: &str = include_str!("components.tsv");
const BLANK: Text8 = *b"        ";

/// The component of a space-padded id; `None` if it is not one of polymers.
pub(super) fn lookup(id: Text8) -> Option<Component> {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(Table::parse).get(id)
}

/// The standard components that a component was made of, separated by commas, if they are several:
/// `MET,TYR,GLY` of the chromophore NRQ.
#[cfg(feature = "cli")]
pub(super) fn several_parents(id: Text8) -> Option<&'static str> {
    static SEVERAL: OnceLock<HashMap<Text8, &'static str>> = OnceLock::new();
    let of_table = || {
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
    SEVERAL.get_or_init(of_table).get(&id).copied()
}

#[cfg(feature = "cli")]
impl Residue {
    /// The standard components that this one was made of, separated by commas, if they are several.
    pub(crate) fn several_parents(&self) -> Option<&'static str> {
        match self.comp_id == self.parent_comp_id {
            true => None,
            false => several_parents(self.comp_id),
        }
    }
}

fn rows() -> impl Iterator<Item = &'static str> {
    TSV.lines().filter(|line| !line.starts_with('#'))
}

/// A hash table with linear probing. A lookup takes one multiplication and, for nearly all ids, one
/// comparison; there is one lookup for each residue.
struct Table {
    slots: Vec<(Text8, Component)>,
    shift: u32,
}

impl Table {
    fn parse() -> Self {
        let slot_count = (rows().count() * 4).next_power_of_two();
        let empty = Component::unknown(Kind::Cap);
        let mut table = Table {
            slots: vec![(BLANK, empty); slot_count],
            shift: 64 - slot_count.trailing_zeros(),
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
        table
    }

    fn get(&self, id: Text8) -> Option<Component> {
        let (found, component) = self.slots[self.slot(id)];
        (found == id && id != BLANK).then_some(component)
    }

    /// The slot that holds `id`, or the free one for it.
    fn slot(&self, id: Text8) -> usize {
        let hash = u64::from_le_bytes(id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut slot = (hash >> self.shift) as usize;
        while self.slots[slot].0 != id && self.slots[slot].0 != BLANK {
            slot = (slot + 1) % self.slots.len();
        }
        slot
    }
}

fn parse_row(row: &str) -> (Text8, Component) {
    let mut columns = row.split('\t');
    let mut next = || columns.next().unwrap_or_default();
    let id = text8(next().as_bytes());
    let kind = match next() {
        "A" => Kind::Amino,
        "N" => Kind::Nucleotide,
        "C" => Kind::Cap,
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
    };
    (id, component)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(id: &str) -> Option<Component> {
        lookup(text8(id.as_bytes()))
    }

    #[test]
    fn standard_and_modified_residues_know_their_parents() {
        let mse = find("MSE").unwrap();
        assert_eq!(
            (mse.kind, mse.parent, mse.aa),
            (Kind::Amino, *b"MET     ", b'M')
        );
        assert_eq!(find("ALA").unwrap().parent, *b"ALA     ");
        assert_eq!(find("UNK").unwrap().aa, b'X');
        assert_eq!(find("DA").unwrap().kind, Kind::Nucleotide);
        assert_eq!(find("ACE").unwrap().kind, Kind::Cap);
    }

    #[test]
    fn water_ligands_and_the_blank_id_are_not_components() {
        for id in ["HOH", "HEM", "NA", "TIP", "", "ZZZZZZZZ"] {
            assert_eq!(find(id), None, "{id}");
        }
    }

    #[cfg(feature = "cli")]
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
    fn every_row_of_the_table_is_found() {
        for row in rows() {
            let (id, component) = parse_row(row);
            assert_eq!(lookup(id), Some(component), "{row}");
        }
    }
}
