//! The column of residues, in both directions.

use super::columns::{ListOffsets, damaged_error, given, no_nulls, strings, values};
use arrow_array::builder::{
    BooleanBuilder, Int32Builder, StringBuilder, UInt8Builder, UInt32Builder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt8Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int32Array, StringArray, StructArray, UInt8Array, UInt32Array,
};
use std::ops::Range;
use std::sync::Arc;
use tapeloop_error::Result;
use tapeloop_structure::{MISSING, Residue, ResidueFlags, Structure, Uniprot};

/// Bytes of a component's name, which is padded with blanks.
const COMPONENT_BYTES: usize = 8;

/// The residues of an open record batch.
#[derive(Default)]
pub(super) struct ResidueBuilders {
    lengths: Vec<usize>,
    chain: UInt32Builder,
    auth_seq_id: Int32Builder,
    ins_code: StringBuilder,
    label_seq_id: Int32Builder,
    sequence_position: Int32Builder,
    comp_id: StringBuilder,
    parent_comp_id: StringBuilder,
    aa: StringBuilder,
    break_before: BooleanBuilder,
    atom_count: UInt32Builder,
    /// N, CA, C, O and CB.
    backbone: [UInt32Builder; 5],
    uniprot: UInt32Builder,
    uniprot_position: Int32Builder,
    flags: UInt8Builder,
}

/// A component's name as text. Tables show a name that is not UTF-8 as `?`.
fn component_text(name: &[u8; COMPONENT_BYTES]) -> &str {
    str::from_utf8(name).unwrap_or("?").trim_end_matches(' ')
}

impl ResidueBuilders {
    /// Adds the residues of a structure.
    pub(super) fn add(&mut self, structure: &Structure) {
        self.lengths.push(structure.residues.len());
        let starts = structure.atom_start.windows(2);
        for (residue, span) in structure.residues.iter().zip(starts) {
            self.chain.append_value(residue.chain);
            self.auth_seq_id.append_value(residue.auth_seq_id);
            let code = (residue.ins_code != 0).then(|| char::from(residue.ins_code));
            // A character of Latin 1 has up to two bytes in UTF-8.
            let mut text = [0; 2];
            let code = code.map(|code| &*code.encode_utf8(&mut text));
            self.ins_code.append_option(code);
            self.label_seq_id.append_option(residue.label_seq_id);
            self.sequence_position
                .append_option(residue.sequence_position);
            self.comp_id.append_value(component_text(&residue.comp_id));
            let parent = component_text(&residue.parent_comp_id);
            self.parent_comp_id.append_value(parent);
            // The letters of readers are of ASCII; X stands for any other.
            let letter = [residue.aa];
            self.aa.append_value(str::from_utf8(&letter).unwrap_or("X"));
            self.break_before.append_value(residue.break_before);
            self.atom_count.append_value(span[1] - span[0]);
            let Residue {
                n, ca, c, o, cb, ..
            } = *residue;
            for (builder, atom) in self.backbone.iter_mut().zip([n, ca, c, o, cb]) {
                builder.append_option((atom != MISSING).then_some(atom));
            }
            let uniprot = residue.uniprot;
            self.uniprot
                .append_option(uniprot.map(|reference| reference.accession));
            self.uniprot_position
                .append_option(uniprot.map(|reference| reference.position));
            self.flags.append_value(residue.flags.bits());
        }
    }

    /// The number of residues of each structure, and the arrays of all residues in the order of the schema's fields.
    pub(super) fn finish(mut self) -> (Vec<usize>, Vec<ArrayRef>) {
        let mut arrays: Vec<ArrayRef> = vec![
            Arc::new(self.chain.finish()),
            Arc::new(self.auth_seq_id.finish()),
            Arc::new(self.ins_code.finish()),
            Arc::new(self.label_seq_id.finish()),
            Arc::new(self.sequence_position.finish()),
            Arc::new(self.comp_id.finish()),
            Arc::new(self.parent_comp_id.finish()),
            Arc::new(self.aa.finish()),
            Arc::new(self.break_before.finish()),
            Arc::new(self.atom_count.finish()),
        ];
        let backbone = self.backbone.iter_mut();
        arrays.extend(backbone.map(|atom| Arc::new(atom.finish()) as ArrayRef));
        arrays.push(Arc::new(self.uniprot.finish()));
        arrays.push(Arc::new(self.uniprot_position.finish()));
        arrays.push(Arc::new(self.flags.finish()));
        (self.lengths, arrays)
    }
}

/// The residues of a record batch.
#[derive(Debug)]
pub(super) struct ResidueColumns {
    lists: ListOffsets,
    chain: UInt32Array,
    auth_seq_id: Int32Array,
    ins_code: StringArray,
    label_seq_id: Int32Array,
    /// `None` if the file lacks the field, as do those of earlier programs.
    sequence_position: Option<Int32Array>,
    comp_id: StringArray,
    parent_comp_id: StringArray,
    aa: StringArray,
    break_before: BooleanArray,
    atom_count: UInt32Array,
    backbone: [UInt32Array; 5],
    uniprot: UInt32Array,
    uniprot_position: Int32Array,
    /// `None` if the file lacks the field, as do those of earlier programs.
    flags: Option<UInt8Array>,
}

impl ResidueColumns {
    /// The residues in the lists of a column.
    ///
    /// # Errors
    /// Of kind `Input`: a value that every residue has is null.
    pub(super) fn new(lists: ListOffsets, structs: &StructArray) -> Result<Self> {
        use super::columns::child;
        let index = |name: &str| values::<UInt32Type>(structs, name);
        let number = |name: &str| values::<Int32Type>(structs, name);
        let break_before = child(structs, "break_before");
        let break_before = break_before.as_boolean().clone();
        no_nulls("break_before", &break_before)?;
        Ok(ResidueColumns {
            lists,
            chain: given("chain", index("chain"))?,
            auth_seq_id: given("auth_seq_id", number("auth_seq_id"))?,
            ins_code: strings(structs, "ins_code"),
            label_seq_id: number("label_seq_id"),
            sequence_position: structs
                .column_by_name("sequence_position")
                .map(|array| array.as_primitive().clone()),
            comp_id: given("comp_id", strings(structs, "comp_id"))?,
            parent_comp_id: given("parent_comp_id", strings(structs, "parent_comp_id"))?,
            aa: given("aa", strings(structs, "aa"))?,
            break_before,
            atom_count: given("atom_count", index("atom_count"))?,
            backbone: ["n", "ca", "c", "o", "cb"].map(index),
            uniprot: index("uniprot"),
            uniprot_position: number("uniprot_position"),
            flags: match structs.column_by_name("flags") {
                Some(flags) => Some(given("flags", flags.as_primitive::<UInt8Type>().clone())?),
                None => None,
            },
        })
    }

    /// The number of residues of a row.
    pub(super) fn count(&self, row: usize) -> usize {
        self.lists.range(row).len()
    }

    /// Puts the residues of a row into `structure`, whose chains, accessions and atoms are there.
    /// `loose` of its atoms belong to no residue.
    ///
    /// # Errors
    /// Of kind `Input`: a residue refers to a chain, an atom or an accession that the structure lacks, or a name
    /// is too long.
    pub(super) fn read(&self, row: usize, loose: u64, structure: &mut Structure) -> Result<()> {
        let range = self.lists.range(row);
        let counts = &self.atom_count.values()[range.clone()];
        let residue_atoms: u64 = counts.iter().map(|&count| u64::from(count)).sum();
        let atoms = structure.xyz.len();
        if residue_atoms + loose != atoms as u64 {
            return Err(damaged_error("the atoms are not those of its residues"));
        }
        let mut end = 0;
        structure.atom_start.reserve_exact(counts.len() + 1);
        structure.atom_start.push(0);
        structure.atom_start.extend(counts.iter().map(|count| {
            end += count;
            end
        }));
        self.residues(range, structure)
    }

    /// Reads residues into the structure, and checks their indices.
    fn residues(&self, range: Range<usize>, structure: &mut Structure) -> Result<()> {
        let (chains, atoms) = (structure.chains.len() as u32, structure.xyz.len() as u32);
        let accessions = structure.uniprot.len() as u32;
        let (chain, auth_seq_id) = (self.chain.values(), self.auth_seq_id.values());
        structure.residues.reserve_exact(range.len());
        for residue in range {
            let mut backbone = [MISSING; 5];
            let mut is_there = chain[residue] < chains;
            for (atom, index) in backbone.iter_mut().zip(&self.backbone) {
                if index.is_valid(residue) {
                    *atom = index.values()[residue];
                    is_there &= *atom < atoms;
                }
            }
            if !is_there {
                return Err(damaged_error(
                    "a residue has a chain or an atom that is not there",
                ));
            }
            let [n, ca, c, o, cb] = backbone;
            let label_seq_id = optional(&self.label_seq_id, residue);
            structure.residues.push(Residue {
                chain: chain[residue],
                auth_seq_id: auth_seq_id[residue],
                ins_code: self.ins_code(residue)?,
                label_seq_id,
                sequence_position: match &self.sequence_position {
                    Some(positions) => optional(positions, residue),
                    None => label_seq_id,
                },
                comp_id: component(self.comp_id.value(residue))?,
                parent_comp_id: component(self.parent_comp_id.value(residue))?,
                aa: match self.aa.value(residue).as_bytes() {
                    &[letter] => letter,
                    _ => return Err(damaged_error("a residue has no one-letter code")),
                },
                break_before: self.break_before.value(residue),
                n,
                ca,
                c,
                o,
                cb,
                uniprot: match (
                    self.uniprot.is_valid(residue),
                    optional(&self.uniprot_position, residue),
                ) {
                    (true, Some(position)) if self.uniprot.value(residue) < accessions => {
                        Some(Uniprot {
                            accession: self.uniprot.value(residue),
                            position,
                        })
                    }
                    (false, None) => None,
                    _ => {
                        return Err(damaged_error(
                            "a residue has an accession that is not there",
                        ));
                    }
                },
                flags: match &self.flags {
                    Some(flags) => ResidueFlags::from_bits(flags.value(residue)),
                    None => ResidueFlags::NONE,
                },
            });
        }
        Ok(())
    }

    /// Reads an insertion code; 0 for none.
    fn ins_code(&self, residue: usize) -> Result<u8> {
        if self.ins_code.is_null(residue) {
            return Ok(0);
        }
        let mut text = self.ins_code.value(residue).chars();
        let code = text.next().and_then(|code| u8::try_from(code).ok());
        let code = code.filter(|&code| code != 0 && text.next().is_none());
        code.ok_or_else(|| damaged_error("an insertion code is not a character"))
    }
}

fn optional(array: &Int32Array, index: usize) -> Option<i32> {
    array.is_valid(index).then(|| array.value(index))
}

/// The name of a component, padded with spaces.
fn component(name: &str) -> Result<[u8; COMPONENT_BYTES]> {
    let mut padded = [b' '; COMPONENT_BYTES];
    match padded.get_mut(..name.len()) {
        Some(start) => start.copy_from_slice(name.as_bytes()),
        None => {
            return Err(damaged_error(
                "the name of a component has more than 8 bytes",
            ));
        }
    }
    Ok(padded)
}
