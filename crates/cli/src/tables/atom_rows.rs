//! The table of atoms: what its rows are made from, and the columns that identify a row.

use super::column::{Column, TextOfRow};
use super::dictionary::Dictionary;
use super::schema::Kind;
use super::structure_rows::{RowRange, StructureRows, row_count, selected_in};
use arrow_array::types::{Float32Type, Int32Type};
use arrow_array::{Array, ArrayRef, BooleanArray, DictionaryArray, PrimitiveArray, cast::AsArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use std::ops::Range;
use std::sync::Arc;
use tapeloop::structure::{AtomClass, AtomDetails, LigandKind, Structure};
use tapeloop_structure::internal::element_symbol;

/// Bytes of an atom in [`AtomRows`], and of its areas.
pub(super) const ATOM_BYTES: usize = size_of::<[i32; 3]>()
    + size_of::<u8>()
    + size_of::<AtomClass>()
    + size_of::<f32>()
    + size_of::<AtomDetails>()
    + 2 * size_of::<f32>();

/// The atoms of a structure, in the order of the results of features: those of residues, those
/// without a residue, and those of ligands, glycans first.
#[derive(Debug, Default)]
pub(super) struct AtomRows {
    xyz: Vec<[i32; 3]>,
    element: Vec<u8>,
    class: Vec<AtomClass>,
    b_factor: Vec<f32>,
    details: Vec<AtomDetails>,
    /// Index of the first atom of each residue, then the end of the last residue's atoms.
    starts: Vec<u32>,
    /// The atoms of each ligand.
    of_ligands: Vec<Range<usize>>,
    /// The atoms that have rows; `None` for all.
    selected: Option<BooleanBuffer>,
}

impl AtomRows {
    /// Takes the atoms out of a structure, and leaves ligands as they are.
    pub(super) fn take(structure: &mut Structure) -> Self {
        let mut rows = AtomRows {
            xyz: std::mem::take(&mut structure.xyz),
            element: std::mem::take(&mut structure.element),
            class: std::mem::take(&mut structure.class),
            b_factor: std::mem::take(&mut structure.b_factor),
            details: std::mem::take(&mut structure.atom_details),
            starts: std::mem::take(&mut structure.atom_start),
            of_ligands: vec![0..0; structure.ligands.len()],
            selected: None,
        };
        if rows.starts.is_empty() {
            rows.starts.push(0);
        }
        // A structure of a program's own may have none.
        rows.details.resize(rows.xyz.len(), AtomDetails::default());
        for glycans in [true, false] {
            for (ligand, range) in structure.ligands.iter().zip(&mut rows.of_ligands) {
                if (ligand.kind == LigandKind::Glycan) == glycans {
                    let start = rows.xyz.len();
                    *range = start..start + ligand.atoms.len();
                    rows.xyz.extend(ligand.atoms.iter().map(|atom| atom.xyz));
                    rows.element
                        .extend(ligand.atoms.iter().map(|atom| atom.element));
                    rows.class
                        .extend(ligand.atoms.iter().map(|atom| atom.class));
                    rows.b_factor
                        .extend(ligand.atoms.iter().map(|atom| atom.b_factor));
                    rows.details
                        .extend(ligand.atoms.iter().map(|atom| atom.details));
                }
            }
        }
        rows
    }

    /// Selects atoms: `selected` has a value for each atom in these ranges, one after the other, and
    /// no other atom is selected.
    pub(super) fn select(&mut self, ranges: &[Range<usize>], selected: &BooleanBuffer) {
        let mut all = vec![false; self.xyz.len()];
        let mut values = selected.iter();
        for range in ranges {
            let of_range = all[range.clone()].iter_mut().zip(&mut values);
            of_range.for_each(|(is_selected, value)| *is_selected = value);
        }
        self.selected = Some(BooleanBuffer::from(all));
    }

    /// The atoms that have rows, as ranges: those of the residues that are selected, and those of all
    /// ligands in the ligands' order. No range has atoms of two ligands.
    pub(super) fn ranges(&self, selected: Option<&BooleanBuffer>) -> Vec<Range<usize>> {
        let atoms =
            |start: usize, end: usize| self.starts[start] as usize..self.starts[end] as usize;
        let of_residues: Vec<_> = match selected {
            None => vec![atoms(0, self.starts.len() - 1)],
            // Residues that were not observed follow the others, and have no atoms.
            Some(selected) => selected
                .slice(0, self.starts.len() - 1)
                .set_slices()
                .map(|(start, end)| atoms(start, end))
                .collect(),
        };
        let ranges = of_residues.into_iter().chain(self.of_ligands.clone());
        let ranges = ranges.filter(|range| !range.is_empty());
        match &self.selected {
            None => ranges.collect(),
            Some(selected) => ranges
                .flat_map(|range| selected_in(selected, range))
                .collect(),
        }
    }

    /// The residues or ligands that some atoms belong to, by the index of [`AtomOwner`], each with the
    /// number of these atoms. The atoms are those of residues or of one ligand.
    fn owners(&self, atoms: Range<usize>) -> (Range<usize>, Vec<usize>) {
        let residues = self.starts.len() - 1;
        let is_of_ligand = atoms.start >= self.starts[residues] as usize;
        if is_of_ligand {
            let mut ligands = self.of_ligands.iter();
            let ligand = ligands.position(|range| range.contains(&atoms.start));
            let owner = residues + ligand.expect("rows are of residues or of ligands");
            return (owner..owner + 1, vec![atoms.len()]);
        }
        let first = self
            .starts
            .partition_point(|&start| start as usize <= atoms.start)
            - 1;
        let mut lengths = Vec::new();
        let (mut residue, mut start) = (first, atoms.start);
        while start < atoms.end {
            let end = atoms.end.min(self.starts[residue + 1] as usize);
            lengths.push(end - start);
            (residue, start) = (residue + 1, end);
        }
        (first..residue, lengths)
    }
}

/// What an atom belongs to, by its index: residues come first, and ligands follow.
enum AtomOwner {
    Residue(usize),
    Ligand(usize),
}

impl AtomOwner {
    fn new(record: &StructureRows, index: usize) -> Self {
        match index.checked_sub(record.structure.residues.len()) {
            None => AtomOwner::Residue(index),
            Some(ligand) => AtomOwner::Ligand(ligand),
        }
    }
}

/// A column of atoms, as the values of some atoms of a structure.
#[derive(Clone, Copy)]
pub(super) enum AtomColumn {
    Name,
    Element,
    Class,
    IsBackbone,
    Radius,
    /// The coordinate along an axis.
    Position(usize),
    Occupancy,
    BFactor,
    Altloc,
}

/// The columns that identify an atom, and what the file states of it.
pub(super) fn atom_columns(ligands: bool) -> Vec<Column> {
    let of_owner = |column: Column| column.of_atom_owners();
    let author: TextOfRow = |r, owner| {
        let id = match AtomOwner::new(r, owner) {
            AtomOwner::Residue(residue) => &r.chain_of(residue).auth_asym_id,
            AtomOwner::Ligand(ligand) => &r.ligand(ligand).auth_asym_id,
        };
        (!id.is_empty()).then_some(&**id)
    };
    let mut columns = vec![of_owner(Column::ascending(
        "res_index",
        "The index of the atom's residue in the structure, from 0; null for an atom of a ligand.",
        |r, owner| match AtomOwner::new(r, owner) {
            AtomOwner::Residue(residue) => Some(residue as i32),
            AtomOwner::Ligand(_) => None,
        },
    ))];
    if ligands {
        columns.push(of_owner(Column::ascending(
            "ligand_index",
            "The index of the atom's ligand in the structure, from 0; null for an atom of a residue.",
            |r, owner| match AtomOwner::new(r, owner) {
                AtomOwner::Residue(_) => None,
                AtomOwner::Ligand(ligand) => Some(ligand as i32),
            },
        )));
    }
    columns.extend([
        of_owner(Column::text(
            "auth_asym_id",
            "The author's chain; null where the file names none.",
            author,
        ))
        .nullable(),
        of_owner(Column::ascending(
            "auth_seq_id",
            "The author's number of the residue or ligand.",
            |r, owner| match AtomOwner::new(r, owner) {
                AtomOwner::Residue(residue) => r.number(residue),
                AtomOwner::Ligand(ligand) => r.ligand(ligand).auth_seq_id,
            },
        )),
        of_owner(Column::code(
            "ins_code",
            "The insertion code.",
            |r, owner| match AtomOwner::new(r, owner) {
                AtomOwner::Residue(residue) => r.residue(residue).ins_code,
                AtomOwner::Ligand(ligand) => r.ligand(ligand).ins_code,
            },
            None,
        )),
        of_owner(Column::padded(
            "comp_id",
            "The name of the residue or ligand.",
            |r, owner| match AtomOwner::new(r, owner) {
                AtomOwner::Residue(residue) => &r.residue(residue).comp_id,
                AtomOwner::Ligand(ligand) => &r.ligand(ligand).comp_id,
            },
        )),
        Column::atom(
            "name",
            Kind::Word,
            "The atom's name, as the component has it.",
            "",
            AtomColumn::Name,
        ),
        Column::atom(
            "altloc",
            Kind::Word,
            "The alternate location that was chosen; null for an atom without others.",
            "",
            AtomColumn::Altloc,
        )
        .nullable(),
        Column::atom(
            "element",
            Kind::Word,
            "The element's symbol, in capitals; null if it is unknown.",
            "",
            AtomColumn::Element,
        )
        .nullable(),
        Column::atom(
            "is_backbone",
            Kind::Flag,
            "Whether it is N, CA, C, O or OXT of a residue.",
            "",
            AtomColumn::IsBackbone,
        ),
        Column::atom(
            "class",
            Kind::Word,
            "The class of its surface: polar or apolar.",
            "",
            AtomColumn::Class,
        ),
        Column::atom(
            "radius",
            Kind::Real,
            "The radius without the probe.",
            "A",
            AtomColumn::Radius,
        ),
    ]);
    let axes = ["x", "y", "z"].into_iter().enumerate();
    columns.extend(axes.map(|(axis, name)| {
        let about = format!("The {name} coordinate.");
        Column::atom(name, Kind::Real, &about, "A", AtomColumn::Position(axis))
    }));
    columns.extend([
        Column::atom(
            "occupancy",
            Kind::Real,
            "The occupancy; 1 where the file gives none.",
            "",
            AtomColumn::Occupancy,
        ),
        Column::atom(
            "b_factor",
            Kind::Real,
            "The B factor in A^2, or the pLDDT of a predicted model from 0 to 100; null where the file \
             gives none.",
            "",
            AtomColumn::BFactor,
        )
        .nullable(),
    ]);
    columns
}

/// The rows of a range that are atoms of its structure.
fn of_range<'a, T>(
    range: &'a RowRange,
    values: fn(&'a AtomRows) -> &'a [T],
) -> (&'a AtomRows, &'a [T]) {
    let atoms = range.record.atom_rows();
    (atoms, &values(atoms)[range.rows.clone()])
}

/// Reals of all rows of a group.
fn reals<'a, T: 'a>(
    group: &'a [RowRange],
    values: fn(&'a AtomRows) -> &'a [T],
    real: impl Fn(&T) -> f32,
) -> Vec<f32> {
    let mut reals = Vec::with_capacity(row_count(group));
    for range in group {
        reals.extend(of_range(range, values).1.iter().map(&real));
    }
    reals
}

fn array(reals: Vec<f32>) -> ArrayRef {
    Arc::new(PrimitiveArray::<Float32Type>::new(reals.into(), None))
}

impl AtomColumn {
    /// The array of a row group.
    pub(super) fn gather(self, group: &[RowRange]) -> ArrayRef {
        let bytes = |byte: fn(&AtomClass) -> u8, text: fn(u8) -> Option<&'static str>| {
            Dictionary::gather(group, |keys, range| {
                let (_, classes) = of_range(range, |atoms| &atoms.class);
                keys.extend_bytes(classes.iter().map(byte), text);
            })
        };
        match self {
            AtomColumn::Name => Dictionary::gather(group, |keys, range| {
                let (_, details) = of_range(range, |atoms| &atoms.details);
                keys.extend_padded(details.iter().map(|atom| &atom.name), false);
            }),
            AtomColumn::Element => Dictionary::gather(group, |keys, range| {
                let (_, elements) = of_range(range, |atoms| &atoms.element);
                keys.extend_bytes(elements.iter().copied(), |element| {
                    Some(element_symbol(element)).filter(|symbol| !symbol.is_empty())
                });
            }),
            AtomColumn::Class => bytes(
                |class| u8::from(class.is_polar()),
                |polar| Some(["apolar", "polar"][usize::from(polar)]),
            ),
            AtomColumn::Altloc => Dictionary::gather(group, |keys, range| {
                let (_, details) = of_range(range, |atoms| &atoms.details);
                keys.extend_codes(details.iter().map(|atom| atom.altloc), None);
            }),
            AtomColumn::IsBackbone => {
                let mut flags: Vec<bool> = Vec::with_capacity(row_count(group));
                for range in group {
                    let (atoms, classes) = of_range(range, |atoms| &atoms.class);
                    let of_residues =
                        range.rows.start < *atoms.starts.last().unwrap_or(&0) as usize;
                    flags.extend(classes.iter().map(|class| of_residues && !class.is_side()));
                }
                Arc::new(BooleanArray::from(flags))
            }
            AtomColumn::Radius => array(reals(
                group,
                |atoms| &atoms.class,
                |class| (f64::from(class.radius_milli_angstrom()) / 1000.0) as f32,
            )),
            AtomColumn::Position(axis) => array(reals(
                group,
                |atoms| &atoms.xyz,
                |position| (f64::from(position[axis]) / 1000.0) as f32,
            )),
            AtomColumn::Occupancy => array(reals(
                group,
                |atoms| &atoms.details,
                |details| details.occupancy,
            )),
            AtomColumn::BFactor => {
                let values = reals(group, |atoms| &atoms.b_factor, |b_factor| *b_factor);
                Arc::new(super::column::with_nulls::<Float32Type>(values, |value| {
                    value.is_nan()
                }))
            }
        }
    }
}

/// A group of rows of atoms as one of their residues and ligands, and how many rows each of these has.
pub(super) fn owners_of(group: &[RowRange]) -> (Vec<RowRange>, Vec<usize>) {
    let mut owners = Vec::with_capacity(group.len());
    let mut lengths = Vec::new();
    for RowRange { record, rows } in group {
        let (range, of_range) = record.atom_rows().owners(rows.clone());
        owners.push(RowRange {
            record: Arc::clone(record),
            rows: range,
        });
        lengths.extend(of_range);
    }
    (owners, lengths)
}

/// The array in which each value of `array` is repeated as often as `lengths` says.
///
/// # Panics
/// If the values are neither integers nor texts of a dictionary.
pub(super) fn repeated(array: &ArrayRef, lengths: &[usize]) -> ArrayRef {
    match array.as_any_dictionary_opt() {
        Some(dictionary) => {
            let keys = repeated_integers(array.as_dictionary::<Int32Type>().keys(), lengths);
            Arc::new(DictionaryArray::new(keys, Arc::clone(dictionary.values())))
        }
        None => Arc::new(repeated_integers(array.as_primitive(), lengths)),
    }
}

fn repeated_integers(
    array: &PrimitiveArray<Int32Type>,
    lengths: &[usize],
) -> PrimitiveArray<Int32Type> {
    let rows = lengths.iter().sum();
    let mut values = Vec::with_capacity(rows);
    for (value, &length) in array.values().iter().zip(lengths) {
        values.resize(values.len() + length, *value);
    }
    let nulls = array.nulls().map(|nulls| {
        let mut valid = Vec::with_capacity(rows);
        for (is_valid, &length) in nulls.iter().zip(lengths) {
            valid.resize(valid.len() + length, is_valid);
        }
        NullBuffer::from(valid)
    });
    PrimitiveArray::new(values.into(), nulls)
}
