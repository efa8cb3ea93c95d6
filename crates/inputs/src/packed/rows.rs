//! Turns structures into the rows of a record batch.

use super::residue_columns::ResidueBuilders;
use super::schema::{columns, fields_of};
use arrow_array::builder::{
    BooleanBuilder, Float32Builder, Int32Builder, StringBuilder, UInt8Builder, UInt32Builder,
};
use arrow_array::{ArrayRef, FixedSizeListArray, ListArray, RecordBatch, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, SchemaRef};
use std::sync::Arc;
use tapeloop_error::{Error, ErrorKind, Result};
use tapeloop_structure::{Assembly, BFactorKind, Findings, Structure, Truncation};

/// Estimated size of the rows of one input. Offsets within a record batch are 32 bits with a sign: half of what they
/// reach, as the size is an estimate and the batch may hold other inputs.
const INPUT_BYTES_MAX: usize = 1 << 30;

/// The kinds of errors that reject inputs, by the names that `rejected.jsonl` has for them.
pub(super) const ERROR_KINDS: [(&str, ErrorKind); 5] = [
    ("input", ErrorKind::Input),
    ("capacity", ErrorKind::Capacity),
    ("io", ErrorKind::Io),
    ("config", ErrorKind::Config),
    ("usage", ErrorKind::Usage),
];

/// Assemblies and kinds of B factors, by the names that the config has for them.
pub const ASSEMBLIES: [(&str, Assembly); 2] =
    [("deposited", Assembly::Deposited), ("1", Assembly::First)];
pub(super) const B_FACTOR_KINDS: [(&str, BFactorKind); 2] = [
    ("b", BFactorKind::Temperature),
    ("plddt", BFactorKind::Plddt),
];

pub(super) const NO_END: &str = "no_end";
pub(super) const LINE_BROKEN_OFF: &str = "line_broken_off";
pub(super) const ATOMS_MISSING: &str = "atoms_missing";

/// The name of a value, out of a table of names; the first if no name has the value.
pub fn enum_name<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> &'static str {
    let found = names.iter().find(|(_, named)| named == value);
    found.unwrap_or(&names[0]).0
}

/// The rows of an open record batch. The builders have the names of their columns.
#[derive(Default)]
pub(super) struct RowBuilders {
    /// Number of rows.
    pub(super) count: usize,
    /// Estimated size.
    pub(super) bytes: usize,
    source: StringBuilder,
    input: UInt32Builder,
    model: Int32Builder,
    entry_id: StringBuilder,
    method: StringBuilder,
    resolution: Float32Builder,
    title: StringBuilder,
    assembly: StringBuilder,
    b_factor_kind: StringBuilder,
    plddt_scaled: BooleanBuilder,
    rounded_atoms: UInt32Builder,
    truncation: TruncationBuilders,
    findings: FindingBuilders,
    error: ErrorBuilders,
    chains: ChainBuilders,
    uniprot: (Vec<usize>, StringBuilder),
    residues: ResidueBuilders,
    loose: LooseBuilders,
    channels: ChannelBuilders,
    atoms: AtomBuilders,
}

#[derive(Default)]
struct TruncationBuilders {
    is_set: Vec<bool>,
    kind: StringBuilder,
    master: UInt32Builder,
    read: UInt32Builder,
}

#[derive(Default)]
struct FindingBuilders {
    lengths: Vec<usize>,
    check: StringBuilder,
    count: UInt32Builder,
    first: StringBuilder,
}

#[derive(Default)]
struct ErrorBuilders {
    is_set: Vec<bool>,
    kind: StringBuilder,
    reason: StringBuilder,
    fix: StringBuilder,
}

#[derive(Default)]
struct ChainBuilders {
    lengths: Vec<usize>,
    auth_asym_id: StringBuilder,
    label_asym_id: StringBuilder,
    entity_id: StringBuilder,
}

#[derive(Default)]
struct LooseBuilders {
    lengths: Vec<usize>,
    chain: UInt32Builder,
    atom_count: UInt32Builder,
}

#[derive(Default)]
struct ChannelBuilders {
    lengths: Vec<usize>,
    name: StringBuilder,
    value_lengths: Vec<usize>,
    values: Float32Builder,
}

#[derive(Default)]
struct AtomBuilders {
    lengths: Vec<usize>,
    xyz: Int32Builder,
    element: UInt8Builder,
    class: UInt8Builder,
    atom_name: UInt8Builder,
    b_factor: Float32Builder,
}

/// The estimated size of a structure's row in bytes, without the name of its file. Findings are short, and not
/// counted.
fn bytes_of(structure: &Structure) -> usize {
    // The position, element, class, name and B factor of an atom.
    const ATOM_BYTES: usize = 3 * 4 + 1 + 1 + 1 + 4;
    // The fields of `ResidueBuilders`, with the offset and usual length of each text.
    const RESIDUE_BYTES: usize = 70;
    // The chain of a span of loose atoms, and their number.
    const LOOSE_BYTES: usize = 4 + 4;
    // The names of a chain, or an accession, with their offsets.
    const NAMES_BYTES: usize = 64;
    // The fields that a row has once, without the texts that are counted below.
    const ROW_BYTES: usize = 128;
    let values = structure
        .channels
        .iter()
        .map(|channel| channel.values.len());
    let length = |text: &Option<Arc<str>>| text.as_ref().map_or(0, |text| text.len());
    ROW_BYTES
        + length(&structure.method)
        + length(&structure.title)
        + NAMES_BYTES * (structure.chains.len() + structure.uniprot.len())
        + RESIDUE_BYTES * structure.residues.len()
        + LOOSE_BYTES * structure.loose.len()
        + ATOM_BYTES * structure.xyz.len()
        + size_of::<f32>() * values.sum::<usize>()
}

/// Refuses the models of one input if they are too large for a record batch.
///
/// # Errors
/// [`ErrorKind::Capacity`].
pub(super) fn check_size(models: Vec<&Structure>) -> Result<()> {
    let bytes: usize = models.into_iter().map(bytes_of).sum();
    if bytes <= INPUT_BYTES_MAX {
        return Ok(());
    }
    let message =
        format!("the input takes {bytes} bytes in a packed set, and the most is {INPUT_BYTES_MAX}");
    Err(Error::new(ErrorKind::Capacity, message).fix("run it from its file, or pack fewer models"))
}

impl RowBuilders {
    /// Adds a row: a structure, or the error that rejects an input.
    pub(super) fn add(&mut self, input: u32, source: &str, structure: Result<&Structure, &Error>) {
        // The row of an error has the values of an empty structure.
        let none = Structure::default();
        let (structure, error) = match structure {
            Ok(structure) => (structure, None),
            Err(error) => (&none, Some(error)),
        };
        self.count += 1;
        self.bytes += bytes_of(structure) + source.len();
        self.source.append_value(source);
        self.input.append_value(input);
        self.model.append_value(structure.model);
        self.entry_id.append_option(structure.entry_id.as_deref());
        self.method.append_option(structure.method.as_deref());
        self.resolution.append_option(structure.resolution);
        self.title.append_option(structure.title.as_deref());
        let assembly = enum_name(&ASSEMBLIES, &structure.assembly);
        self.assembly.append_value(assembly);
        let kind = enum_name(&B_FACTOR_KINDS, &structure.b_factor_kind);
        self.b_factor_kind.append_value(kind);
        self.plddt_scaled.append_value(structure.plddt_scaled);
        self.rounded_atoms.append_value(structure.rounded_atoms);
        self.truncation.add(structure.truncation);
        self.findings.add(&structure.findings);
        self.error.add(error);
        let chains = &mut self.chains;
        chains.lengths.push(structure.chains.len());
        for chain in &structure.chains {
            chains.auth_asym_id.append_value(&chain.auth_asym_id);
            let label = chain.label_asym_id.as_deref();
            chains.label_asym_id.append_option(label);
            chains.entity_id.append_option(chain.entity_id.as_deref());
        }
        self.uniprot.0.push(structure.uniprot.len());
        for accession in &structure.uniprot {
            self.uniprot.1.append_value(accession);
        }
        self.residues.add(structure);
        let loose = &mut self.loose;
        loose.lengths.push(structure.loose.len());
        for span in &structure.loose {
            loose.chain.append_value(span.chain);
            loose.atom_count.append_value(span.atom_count);
        }
        let channels = &mut self.channels;
        channels.lengths.push(structure.channels.len());
        for channel in &structure.channels {
            channels.name.append_value(&channel.name);
            channels.value_lengths.push(channel.values.len());
            channels.values.append_slice(&channel.values);
        }
        let atoms = &mut self.atoms;
        atoms.lengths.push(structure.xyz.len());
        atoms.xyz.append_slice(bytemuck::cast_slice(&structure.xyz));
        atoms.element.append_slice(&structure.element);
        let class = bytemuck::cast_slice(&structure.class);
        atoms.class.append_slice(class);
        // A structure that was read from a set of an earlier program lacks the names.
        if structure.atom_name.len() == structure.xyz.len() {
            let names = bytemuck::cast_slice(&structure.atom_name);
            atoms.atom_name.append_slice(names);
        } else {
            atoms.atom_name.append_value_n(0, structure.xyz.len())
        }
        atoms.b_factor.append_slice(&structure.b_factor);
    }

    /// The rows as a record batch of `schema`.
    ///
    /// # Errors
    /// The arrays do not fit the schema.
    pub(super) fn finish(mut self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        let fields = columns();
        let column = |name: &str| {
            let (_, field) = fields.find(name).expect("`columns` has this column");
            Arc::clone(field)
        };
        let truncation = StructArray::new(
            fields_of(column("truncation").data_type()),
            vec![
                Arc::new(self.truncation.kind.finish()),
                Arc::new(self.truncation.master.finish()),
                Arc::new(self.truncation.read.finish()),
            ],
            Some(NullBuffer::from(self.truncation.is_set)),
        );
        let findings: Vec<ArrayRef> = vec![
            Arc::new(self.findings.check.finish()),
            Arc::new(self.findings.count.finish()),
            Arc::new(self.findings.first.finish()),
        ];
        let error = StructArray::new(
            fields_of(column("error").data_type()),
            vec![
                Arc::new(self.error.kind.finish()),
                Arc::new(self.error.reason.finish()),
                Arc::new(self.error.fix.finish()),
            ],
            Some(NullBuffer::from(self.error.is_set)),
        );
        let chains: Vec<ArrayRef> = vec![
            Arc::new(self.chains.auth_asym_id.finish()),
            Arc::new(self.chains.label_asym_id.finish()),
            Arc::new(self.chains.entity_id.finish()),
        ];
        let loose: Vec<ArrayRef> = vec![
            Arc::new(self.loose.chain.finish()),
            Arc::new(self.loose.atom_count.finish()),
        ];
        let channel_fields = fields_of(column("channels").data_type());
        let values = Arc::new(self.channels.values.finish());
        let channels: Vec<ArrayRef> = vec![
            Arc::new(self.channels.name.finish()),
            list(&channel_fields[1], self.channels.value_lengths, values),
        ];
        let atom_fields = fields_of(column("atoms").data_type());
        let DataType::FixedSizeList(item, size) = atom_fields[0].data_type() else {
            unreachable!("a position has three coordinates");
        };
        let xyz = Arc::new(self.atoms.xyz.finish());
        let atoms: Vec<ArrayRef> = vec![
            Arc::new(FixedSizeListArray::new(Arc::clone(item), *size, xyz, None)),
            Arc::new(self.atoms.element.finish()),
            Arc::new(self.atoms.class.finish()),
            Arc::new(self.atoms.atom_name.finish()),
            Arc::new(self.atoms.b_factor.finish()),
        ];
        let residues = column("residues");
        let residue_fields = fields_of(residues.data_type());
        let (residue_lengths, residue_arrays) = self.residues.finish();
        let uniprot = Arc::new(self.uniprot.1.finish());
        // In the order of `columns`.
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(self.source.finish()),
            Arc::new(self.input.finish()),
            Arc::new(self.model.finish()),
            Arc::new(self.entry_id.finish()),
            Arc::new(self.method.finish()),
            Arc::new(self.resolution.finish()),
            Arc::new(self.title.finish()),
            Arc::new(self.assembly.finish()),
            Arc::new(self.b_factor_kind.finish()),
            Arc::new(self.plddt_scaled.finish()),
            Arc::new(self.rounded_atoms.finish()),
            Arc::new(truncation),
            list_of_structs(&column("findings"), self.findings.lengths, findings),
            Arc::new(error),
            list_of_structs(&column("chains"), self.chains.lengths, chains),
            list(&column("uniprot"), self.uniprot.0, uniprot),
            list(
                &residues,
                residue_lengths,
                structs(&residue_fields, residue_arrays),
            ),
            list_of_structs(&column("loose"), self.loose.lengths, loose),
            list_of_structs(&column("channels"), self.channels.lengths, channels),
            list_of_structs(&column("atoms"), self.atoms.lengths, atoms),
        ];
        RecordBatch::try_new(Arc::clone(schema), arrays)
    }
}

fn structs(fields: &Fields, arrays: Vec<ArrayRef>) -> ArrayRef {
    Arc::new(StructArray::new(fields.clone(), arrays, None))
}

/// A column of lists of these lengths.
fn list(field: &Field, lengths: Vec<usize>, values: ArrayRef) -> ArrayRef {
    let DataType::List(item) = field.data_type() else {
        unreachable!("column {} is no list", field.name());
    };
    let offsets = OffsetBuffer::from_lengths(lengths);
    Arc::new(ListArray::new(Arc::clone(item), offsets, values, None))
}

fn list_of_structs(field: &Field, lengths: Vec<usize>, arrays: Vec<ArrayRef>) -> ArrayRef {
    let values = structs(&fields_of(field.data_type()), arrays);
    list(field, lengths, values)
}

impl TruncationBuilders {
    /// Appends how a file was cut short; null if it was not.
    fn add(&mut self, truncation: Option<Truncation>) {
        let (kind, counts) = match truncation {
            None => ("", None),
            Some(Truncation::NoEnd) => (NO_END, None),
            Some(Truncation::LineBrokenOff) => (LINE_BROKEN_OFF, None),
            Some(Truncation::AtomsMissing { master, read }) => {
                (ATOMS_MISSING, Some((master, read)))
            }
        };
        self.is_set.push(truncation.is_some());
        self.kind.append_value(kind);
        self.master.append_option(counts.map(|(master, _)| master));
        self.read.append_option(counts.map(|(_, read)| read));
    }
}

impl FindingBuilders {
    /// Appends the findings of a structure.
    fn add(&mut self, findings: &Findings) {
        self.lengths.push(findings.iter().count());
        for finding in findings.iter() {
            self.check.append_value(finding.check.name());
            self.count.append_value(finding.count);
            self.first.append_value(&finding.first);
        }
    }
}

impl ErrorBuilders {
    /// Appends why an input was rejected; null if it was not.
    fn add(&mut self, error: Option<&Error>) {
        self.is_set.push(error.is_some());
        let kinds = ERROR_KINDS;
        let kind = error.map_or("", |error| enum_name(&kinds, &error.kind()));
        self.kind.append_value(kind);
        self.reason
            .append_value(error.map_or(String::new(), Error::reason));
        self.fix.append_option(error.and_then(Error::fix_text));
    }
}
