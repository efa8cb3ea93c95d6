//! Turns the rows of a record batch into structures. The file may be damaged or hostile: every
//! length, index and name is checked, and what is wrong rejects its input.

use super::residue_columns::ResidueColumns;
use super::rows::{
    ASSEMBLIES, ATOMS_MISSING, B_FACTOR_KINDS, ERROR_KINDS, LINE_BROKEN_OFF, NO_END,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float32Type, Int32Type, UInt8Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float32Array, Int32Array, PrimitiveArray, RecordBatch,
    StringArray, StructArray, UInt8Array, UInt32Array,
};
use arrow_buffer::OffsetBuffer;
use std::ops::Range;
use std::sync::Arc;
use tapeloop_error::{Error, ErrorKind, Result};
use tapeloop_structure::internal::{check_limit, header_text};
use tapeloop_structure::{
    Assembly, AtomClass, Chain, Channel, Check, Findings, LooseSpan, ReadLimits, Structure,
    Truncation,
};

/// The most annotations of a structure, of which a table has some columns. Those of a structure without residues
/// would take no bytes in the file.
const CHANNELS_MAX: usize = 1000;

/// The most bytes of the place where a check applied first, which is a residue, an atom or a line.
const FINDING_BYTES_MAX: usize = 4096;

/// The columns of a record batch.
#[derive(Debug)]
pub(super) struct PackedColumns {
    model: Int32Array,
    entry_id: StringArray,
    /// `None` if the file lacks the column, as do those of earlier programs.
    method: Option<StringArray>,
    resolution: Option<Float32Array>,
    title: Option<StringArray>,
    assembly: StringArray,
    b_factor_kind: StringArray,
    plddt_scaled: BooleanArray,
    rounded_atoms: UInt32Array,
    truncation: StructArray,
    /// `None` if the file lacks the column, as do those of earlier programs.
    findings: Option<(ListOffsets, StructArray)>,
    error: StructArray,
    chains: (ListOffsets, StructArray),
    uniprot: (ListOffsets, StringArray),
    residues: ResidueColumns,
    loose: (ListOffsets, [UInt32Array; 2]),
    channels: ChannelColumns,
    atoms: PackedAtomColumns,
}

/// The lists of a column: ranges of the items of all lists.
#[derive(Debug)]
pub(super) struct ListOffsets(OffsetBuffer<i32>);

impl ListOffsets {
    /// The items of a row.
    pub(super) fn range(&self, row: usize) -> Range<usize> {
        self.0[row] as usize..self.0[row + 1] as usize
    }
}

#[derive(Debug)]
struct ChannelColumns {
    lists: ListOffsets,
    name: StringArray,
    values: (ListOffsets, Float32Array),
}

#[derive(Debug)]
struct PackedAtomColumns {
    lists: ListOffsets,
    xyz: Int32Array,
    element: UInt8Array,
    class: UInt8Array,
    /// `None` if the file lacks the field, as do those of earlier programs.
    atom_name: Option<UInt8Array>,
    b_factor: Float32Array,
}

pub(super) fn damaged_error(defect: &str) -> Error {
    let message = format!("the packed structure is damaged: {defect}");
    Error::input(message).fix("pack its file again")
}

/// A field of structs. The schema of the file has been checked, so it is there.
pub(super) fn child(structs: &StructArray, name: &str) -> ArrayRef {
    let found = structs.column_by_name(name);
    Arc::clone(found.expect("the schema has been checked"))
}

/// A field of numbers.
pub(super) fn values<T: ArrowPrimitiveType>(
    structs: &StructArray,
    name: &str,
) -> PrimitiveArray<T> {
    child(structs, name).as_primitive().clone()
}

/// A field of texts.
pub(super) fn strings(structs: &StructArray, name: &str) -> StringArray {
    child(structs, name).as_string().clone()
}

/// Refuses nulls where every row has a value.
pub(super) fn no_nulls(name: &str, array: &dyn Array) -> Result<()> {
    match array.null_count() {
        0 => Ok(()),
        _ => Err(damaged_error(&format!("column `{name}` has nulls"))),
    }
}

/// The array, which must have no nulls.
pub(super) fn given<A: Array>(name: &str, array: A) -> Result<A> {
    no_nulls(name, &array)?;
    Ok(array)
}

/// The lists of a column, and the items of all lists.
fn lists(name: &str, array: &dyn Array) -> Result<(ListOffsets, ArrayRef)> {
    no_nulls(name, array)?;
    let array = array.as_list::<i32>();
    no_nulls(name, array.values())?;
    let offsets = array.offsets().clone();
    Ok((ListOffsets(offsets), Arc::clone(array.values())))
}

fn list_of_structs(batch: &StructArray, name: &str) -> Result<(ListOffsets, StructArray)> {
    let (lists, items) = lists(name, &child(batch, name))?;
    Ok((lists, items.as_struct().clone()))
}

impl PackedColumns {
    /// The columns of a record batch whose file has the schema of a packed file.
    ///
    /// # Errors
    /// Of kind `Input`: a column has nulls that may not have any.
    pub(super) fn new(batch: RecordBatch) -> Result<Self> {
        let batch = StructArray::from(batch);
        let plddt_scaled = child(&batch, "plddt_scaled").as_boolean().clone();
        let (chains, chain_names) = list_of_structs(&batch, "chains")?;
        no_nulls("auth_asym_id", &child(&chain_names, "auth_asym_id"))?;
        let (uniprot, accessions) = lists("uniprot", &child(&batch, "uniprot"))?;
        let (residues, residue) = list_of_structs(&batch, "residues")?;
        let (loose, span) = list_of_structs(&batch, "loose")?;
        let (channels, channel) = list_of_structs(&batch, "channels")?;
        let (channel_values, items) = lists("values", &child(&channel, "values"))?;
        let (atoms, atom) = list_of_structs(&batch, "atoms")?;
        let xyz = child(&atom, "xyz");
        no_nulls("xyz", &xyz)?;
        let xyz = xyz.as_fixed_size_list().values();
        let findings = match batch.column_by_name("findings") {
            Some(_) => {
                let (lists, found) = list_of_structs(&batch, "findings")?;
                for name in ["check", "count", "first"] {
                    no_nulls(name, &child(&found, name))?;
                }
                Some((lists, found))
            }
            None => None,
        };
        let later = |name: &str| batch.column_by_name(name);
        let later_strings = |name: &str| later(name).map(|array| array.as_string().clone());
        let number =
            |structs: &StructArray, name: &str| given(name, values::<UInt32Type>(structs, name));
        Ok(PackedColumns {
            model: given("model", values(&batch, "model"))?,
            entry_id: strings(&batch, "entry_id"),
            method: later_strings("method"),
            resolution: later("resolution").map(|array| array.as_primitive().clone()),
            title: later_strings("title"),
            assembly: given("assembly", strings(&batch, "assembly"))?,
            b_factor_kind: given("b_factor_kind", strings(&batch, "b_factor_kind"))?,
            plddt_scaled: given("plddt_scaled", plddt_scaled)?,
            rounded_atoms: number(&batch, "rounded_atoms")?,
            // Where these are null, other programs make their fields null too.
            truncation: child(&batch, "truncation").as_struct().clone(),
            findings,
            error: child(&batch, "error").as_struct().clone(),
            chains: (chains, chain_names),
            uniprot: (uniprot, accessions.as_string().clone()),
            residues: ResidueColumns::new(residues, &residue)?,
            loose: (
                loose,
                [number(&span, "chain")?, number(&span, "atom_count")?],
            ),
            channels: ChannelColumns {
                lists: channels,
                name: given("name", strings(&channel, "name"))?,
                values: (channel_values, items.as_primitive::<Float32Type>().clone()),
            },
            atoms: PackedAtomColumns {
                lists: atoms,
                xyz: given("xyz", xyz.as_primitive::<Int32Type>().clone())?,
                element: given("element", values::<UInt8Type>(&atom, "element"))?,
                class: given("class", values::<UInt8Type>(&atom, "class"))?,
                atom_name: match atom.column_by_name("atom_name") {
                    Some(names) => Some(given("atom_name", names.as_primitive().clone())?),
                    None => None,
                },
                b_factor: given("b_factor", values::<Float32Type>(&atom, "b_factor"))?,
            },
        })
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        self.model.len()
    }

    /// The error of a row that is a rejected input.
    pub(super) fn error(&self, row: usize) -> Option<Error> {
        if self.error.is_null(row) {
            return None;
        }
        let text = |name: &str| strings(&self.error, name).value(row).to_owned();
        let kind = text("kind");
        let kind = ERROR_KINDS.iter().find(|(name, _)| *name == kind);
        let kind = kind.map_or(ErrorKind::Input, |(_, kind)| *kind);
        let error = Error::new(kind, text("reason"));
        Some(if child(&self.error, "fix").is_valid(row) {
            error.fix(text("fix"))
        } else {
            error
        })
    }

    /// The structures in the rows of an input that was not rejected.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: a structure is damaged. [`ErrorKind::Capacity`]: the input is over a
    /// limit.
    pub(super) fn structures(
        &self,
        rows: Range<usize>,
        limits: &ReadLimits,
    ) -> Result<Vec<Structure>> {
        let count = |range: &dyn Fn(usize) -> usize| {
            let each = rows.clone().map(|row| range(row) as u64);
            each.sum::<u64>()
        };
        let atoms = count(&|row| self.atoms.lists.range(row).len());
        let residues = count(&|row| self.residues.count(row));
        let too_many =
            |items: &'static str| move || format!("the packed structure has too many {items}");
        check_limit(
            "models_max",
            limits.models_max,
            rows.len() as u64,
            too_many("models"),
        )?;
        check_limit("atoms_max", limits.atoms_max, atoms, too_many("atoms"))?;
        check_limit(
            "residues_max",
            limits.residues_max,
            residues,
            too_many("residues"),
        )?;
        let read = |row: usize| self.structure(row, limits);
        let structures = rows.clone().map(read).collect::<Result<Vec<_>>>()?;
        limits.check_row_names(&structures)?;
        Ok(structures)
    }

    /// Reads a structure from its row. Checks everything that a damaged or hostile file could
    /// break: limits, lengths of lists, and indices.
    fn structure(&self, row: usize, limits: &ReadLimits) -> Result<Structure> {
        let chains = self.chains.0.range(row);
        let too_many = || "the packed structure has too many chains";
        check_limit(
            "chains_max",
            limits.chains_max,
            chains.len() as u64,
            too_many,
        )?;
        let atoms = self.atoms.lists.range(row);
        // Names that nothing has take memory too.
        if chains.len() > atoms.len() {
            return Err(damaged_error("it has more chains than atoms"));
        }
        let xyz = self.atoms.xyz.values();
        let xyz = xyz.get(3 * atoms.start..3 * atoms.end);
        let xyz = xyz.ok_or_else(|| damaged_error("an atom has no position"))?;
        let assembly = value_named(&ASSEMBLIES, self.assembly.value(row));
        let kind = value_named(&B_FACTOR_KINDS, self.b_factor_kind.value(row));
        let entry_id = self
            .entry_id
            .is_valid(row)
            .then(|| self.entry_id.value(row));
        let entry_id = entry_id.map(|id| name("entry_id", id, limits));
        let header = |texts: &Option<StringArray>| {
            let texts = texts.as_ref().filter(|texts| texts.is_valid(row))?;
            header_text(texts.value(row))
        };
        let resolutions = self.resolution.as_ref();
        let resolution = resolutions.filter(|values| values.is_valid(row));
        let resolution = resolution.map(|values| values.value(row));
        let mut structure = Structure {
            entry_id: entry_id.transpose()?,
            method: header(&self.method),
            resolution: resolution.filter(|value| value.is_finite() && *value > 0.0),
            title: header(&self.title),
            model: self.model.value(row),
            assembly: assembly.ok_or_else(|| damaged_error("its `assembly` is not known"))?,
            xyz: bytemuck::cast_slice(xyz).to_vec(),
            element: self.atoms.element.values()[atoms.clone()].to_vec(),
            class: bytemuck::cast_slice::<u8, AtomClass>(&self.atoms.class.values()[atoms.clone()])
                .to_vec(),
            atom_name: match &self.atoms.atom_name {
                Some(names) => bytemuck::cast_slice(&names.values()[atoms.clone()]).to_vec(),
                None => Vec::new(),
            },
            b_factor: self.atoms.b_factor.values()[atoms].to_vec(),
            b_factor_kind: kind.ok_or_else(|| damaged_error("its `b_factor_kind` is not known"))?,
            plddt_scaled: self.plddt_scaled.value(row),
            rounded_atoms: self.rounded_atoms.value(row),
            truncation: self.truncation(row)?,
            findings: self.findings(row)?,
            ..Structure::default()
        };
        if structure.assembly == Assembly::First {
            let (residues, atoms) = (self.residues.count(row), structure.xyz.len());
            let too_many = |what: &'static str| move || format!("assembly 1 has too many {what}");
            let (atoms_max, residues_max) =
                (limits.assembly_atoms_max, limits.assembly_residues_max);
            check_limit(
                "assembly_atoms_max",
                atoms_max,
                atoms as u64,
                too_many("atoms"),
            )?;
            check_limit(
                "assembly_residues_max",
                residues_max,
                residues as u64,
                too_many("residues"),
            )?;
        }
        let chain = |index: usize| self.chain(index, limits);
        structure.chains = chains.map(chain).collect::<Result<Vec<_>>>()?;
        let (lists, accessions) = &self.uniprot;
        let count = lists.range(row).len() as u64;
        let too_many = || "the packed structure has too many accessions";
        check_limit("chains_max", limits.chains_max, count, too_many)?;
        let accession = |index: usize| name("accession", accessions.value(index), limits);
        let accessions = lists.range(row).map(accession);
        structure.uniprot = accessions.collect::<Result<Vec<_>>>()?;
        let (lists, [chain, atom_count]) = &self.loose;
        let span = |index: usize| LooseSpan {
            chain: chain.value(index),
            atom_count: atom_count.value(index),
        };
        structure.loose = lists.range(row).map(span).collect();
        let chains = structure.chains.len() as u32;
        if structure.loose.iter().any(|span| span.chain >= chains) {
            return Err(damaged_error(
                "atoms without a residue have a chain that is not there",
            ));
        }
        let loose = structure
            .loose
            .iter()
            .map(|span| u64::from(span.atom_count));
        self.residues.read(row, loose.sum(), &mut structure)?;
        structure.channels = self.channels(row, structure.residues.len(), limits)?;
        Ok(structure)
    }

    /// Reads the names of a chain.
    fn chain(&self, index: usize, limits: &ReadLimits) -> Result<Chain> {
        let names = &self.chains.1;
        let text = |column: &str| {
            let texts = child(names, column);
            let text = texts
                .is_valid(index)
                .then(|| texts.as_string::<i32>().value(index));
            text.map(|text| name(column, text, limits)).transpose()
        };
        Ok(Chain {
            auth_asym_id: text("auth_asym_id")?.unwrap_or_default(),
            label_asym_id: text("label_asym_id")?,
            entity_id: text("entity_id")?,
            sequence: None,
        })
    }

    /// Reads the annotations of a structure, which have a value for each residue.
    fn channels(&self, row: usize, residues: usize, limits: &ReadLimits) -> Result<Vec<Channel>> {
        let ChannelColumns {
            lists,
            name: names,
            values: (value_lists, values),
        } = &self.channels;
        let channel = |index: usize| {
            limits.check_name("channel", names.value(index).as_bytes())?;
            let range = value_lists.range(index);
            if range.len() != residues {
                return Err(damaged_error("an annotation lacks the value of a residue"));
            }
            Ok(Channel {
                name: names.value(index).to_owned(),
                values: values.values()[range].to_vec(),
            })
        };
        let range = lists.range(row);
        if range.len() > CHANNELS_MAX {
            let defect = format!("it has more than {CHANNELS_MAX} annotations");
            Err(damaged_error(&defect))
        } else {
            range.map(channel).collect()
        }
    }

    /// The findings of a structure. Checks that this program does not have are left out.
    fn findings(&self, row: usize) -> Result<Findings> {
        let mut findings = Findings::default();
        let Some((lists, found)) = &self.findings else {
            return Ok(findings);
        };
        let (checks, first) = (strings(found, "check"), strings(found, "first"));
        let counts = values::<UInt32Type>(found, "count");
        for index in lists.range(row) {
            let check = Check::ALL
                .iter()
                .find(|check| check.name() == checks.value(index));
            if first.value(index).len() > FINDING_BYTES_MAX {
                return Err(damaged_error("the place of a finding has too many bytes"));
            }
            if let Some(&check) = check {
                findings.add(check, counts.value(index), || first.value(index).to_owned());
            }
        }
        Ok(findings)
    }

    /// Reads how the file of a structure was cut short.
    fn truncation(&self, row: usize) -> Result<Option<Truncation>> {
        if self.truncation.is_null(row) {
            return Ok(None);
        }
        let count = |name: &str| {
            let counts = values::<UInt32Type>(&self.truncation, name);
            let count = counts.is_valid(row).then(|| counts.value(row));
            count.ok_or_else(|| damaged_error("`truncation` lacks a count"))
        };
        Ok(Some(match strings(&self.truncation, "kind").value(row) {
            NO_END => Truncation::NoEnd,
            LINE_BROKEN_OFF => Truncation::LineBrokenOff,
            ATOMS_MISSING => Truncation::AtomsMissing {
                master: count("master")?,
                read: count("read")?,
            },
            _ => return Err(damaged_error("its `truncation` is not known")),
        }))
    }
}

/// The value that has this name.
fn value_named<T: Copy>(names: &[(&str, T)], text: &str) -> Option<T> {
    let found = names.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value)
}

/// A name within the limit.
fn name(what: &str, text: &str, limits: &ReadLimits) -> Result<Arc<str>> {
    limits.check_name(what, text.as_bytes())?;
    Ok(text.into())
}
