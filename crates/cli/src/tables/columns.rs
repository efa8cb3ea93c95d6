//! The columns of each table: those that identify a row, then those of features.

use super::super::config::{ASSEMBLIES, OptionalColumns, OutputTable, Reduction};
use super::atom_columns::atom_columns;
use super::column::{TableColumn, TextOfRow};
use super::interaction_columns::interaction_columns;
use super::structure_rows::{PairSide, StructureRows};
use super::water_bridge_columns::water_bridge_columns;
use std::collections::HashSet;
use std::sync::OnceLock;
use tapeloop::features::{ColumnDecl, RowKind, TableName};
use tapeloop::structure::Assembly;
use tapeloop_annotations::AnnotationColumn;

/// What the tables' columns come from, besides those that identify a row.
#[derive(Clone, Copy)]
pub struct ColumnSources<'a> {
    /// Lists the features' columns of each table.
    pub features: &'a dyn Fn(TableName) -> Vec<ColumnDecl>,
    /// Statistics of residues' columns.
    pub reductions: &'a [Reduction],
    pub annotations: &'a [AnnotationColumn],
}

impl<'a> ColumnSources<'a> {
    /// Features alone.
    pub fn of_features(features: &'a dyn Fn(TableName) -> Vec<ColumnDecl>) -> Self {
        ColumnSources {
            features,
            reductions: &[],
            annotations: &[],
        }
    }
}

/// The first name that two columns of one table have, and the table.
pub fn find_repeated_name(
    sources: ColumnSources<'_>,
    optional: OptionalColumns,
) -> Option<(OutputTable, String)> {
    OutputTable::ALL.into_iter().find_map(|table| {
        let columns = columns(table, &sources, optional);
        let names = || columns.iter().map(|column| &column.spec.name);
        let is_again =
            |(index, name): &(usize, &String)| names().take(*index).any(|other| other == *name);
        let again = names().enumerate().find(is_again);
        again.map(|(_, name)| (table, name.clone()))
    })
}

/// The names of the columns of all tables that no feature computes: those that identify a row, frames and
/// coordinates.
pub fn identifying_columns() -> HashSet<String> {
    let all = OutputTable::ALL.into_iter();
    all.flat_map(identifying_columns_of).collect()
}

/// The names of the columns of a table that no feature computes.
pub fn identifying_columns_of(table: OutputTable) -> impl Iterator<Item = String> {
    let sources = ColumnSources::of_features(&|_| Vec::new());
    let columns = columns(table, &sources, OptionalColumns::ALL).into_iter();
    columns.map(|column| column.spec.name)
}

/// All columns of a table.
pub(super) fn columns(
    table: OutputTable,
    sources: &ColumnSources<'_>,
    optional: OptionalColumns,
) -> Vec<TableColumn> {
    let ColumnSources {
        features,
        reductions,
        annotations,
    } = *sources;
    let mut columns = vec![
        TableColumn::text("source", "The path of the file.", |r, _| Some(&r.source)).of_structure(),
        TableColumn::text(
            "structure",
            "The name of the structure: the file's name without its endings.",
            |r, _| Some(&r.name),
        )
        .of_structure(),
        TableColumn::integer("model", "The model's number as in the file.", |r, _| {
            Some(r.structure.model)
        })
        .of_structure(),
    ];
    if optional.has_frames {
        columns.extend(frame_columns());
    }
    columns.extend(match table {
        OutputTable::Features(name) => match name.decl().rows {
            RowKind::Residue => {
                let mut columns = residue_columns(optional.unobserved);
                columns.extend(optional.coordinates.columns().map(TableColumn::coordinate));
                columns
            }
            RowKind::Chain => {
                let mut columns = chain_columns();
                let seqres = optional.seqres.then(seqres);
                columns.extend(seqres);
                columns
            }
            RowKind::Structure => structure_columns(),
            RowKind::ResiduePair(endings) => {
                let mut columns = pair_columns(name);
                if optional.pair_names {
                    columns.extend(pair_names(name, endings));
                }
                columns
            }
            RowKind::Ligand => ligand_columns(),
            RowKind::ChainPair => chain_pair_columns(name),
            RowKind::Atom => atom_columns(optional.ligands),
            RowKind::AtomPair => interaction_columns(optional.ligands),
        },
        OutputTable::WaterBridges => water_bridge_columns(optional.ligands),
        OutputTable::Variants => variant_columns(),
    });
    let of_level = annotations
        .iter()
        .filter(|column| Some(column.level) == table.level());
    let of_level = of_level.enumerate();
    columns.extend(of_level.map(|(index, column)| TableColumn::annotation(column, index)));
    let declared = table.features().map_or(Vec::new(), features);
    let declared = declared.iter().enumerate();
    columns.extend(declared.map(|(index, decl)| TableColumn::feature(decl, index, table)));
    if let OutputTable::Features(name @ (TableName::Chains | TableName::Structures)) = table {
        let residue_decls = features(TableName::Residues);
        columns.extend(reductions.iter().filter_map(|reduction| {
            let mut all = residue_decls.iter().enumerate();
            let found = all.find(|(_, decl)| decl.name == reduction.column)?;
            Some(TableColumn::reduced(reduction, found, name))
        }));
    }
    columns
}

/// The columns of frames of a trajectory.
fn frame_columns() -> [TableColumn; 2] {
    [
        TableColumn::integer(
            "frame",
            "The frame's number in its trajectory, from 0.",
            |r, _| Some(r.structure.frame?.index as i32),
        )
        .nullable(),
        TableColumn::real("time_ps", "The time of the frame.", "ps", |r, _| {
            r.structure.frame?.time_ps
        })
        .nullable(),
    ]
}

fn entry_id() -> TableColumn {
    TableColumn::text("entry_id", "The entry's id as in the file.", |r, _| {
        r.structure.entry_id.as_deref()
    })
    .nullable()
}

/// The column of the author's chain.
fn author_chain(value: TextOfRow) -> TableColumn {
    TableColumn::text(
        "auth_asym_id",
        "The author's chain; null where the file names none.",
        value,
    )
    .nullable()
}

const LABEL: &str = "mmCIF's own chain; in a PDB file the part of a chain that is split: A_2.";

/// The text, unless it is empty.
fn named(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn residue_chain() -> TableColumn {
    author_chain(|r, row| named(&r.chain_of(row).auth_asym_id))
}

fn residue_number() -> TableColumn {
    let about = "The author's residue number.";
    TableColumn::integer("auth_seq_id", about, |r, row| r.number(row))
}

fn insertion_code() -> TableColumn {
    let about = "The insertion code.";
    TableColumn::code("ins_code", about, |r, row| r.residue(row).ins_code, None)
}

fn component() -> TableColumn {
    let about = "The residue name.";
    TableColumn::padded("comp_id", about, |r, row| &r.residue(row).comp_id)
}

/// The columns of residues; with `unobserved` some are null for residues that were not observed.
fn residue_columns(unobserved: bool) -> Vec<TableColumn> {
    let null_of_unobserved = |column: TableColumn| {
        if unobserved {
            column.nullable()
        } else {
            column
        }
    };
    let break_before = "Whether the residue is not linked to the residue in the row before.";
    let mut columns = vec![
        null_of_unobserved(TableColumn::integer(
            "res_index",
            "The residue's index in the structure, from 0.",
            |r, row| r.is_observed(row).then_some(row as i32),
        )),
        entry_id(),
        residue_chain(),
        null_of_unobserved(residue_number()),
        insertion_code(),
        TableColumn::text("label_asym_id", LABEL, |r, row| {
            r.chain_of(row).label_asym_id.as_deref()
        })
        .nullable(),
        TableColumn::integer("label_seq_id", "mmCIF's own residue number.", |r, row| {
            r.residue(row).label_seq_id
        })
        .nullable(),
        TableColumn::text("entity_id", "mmCIF's entity.", |r, row| {
            r.chain_of(row).entity_id.as_deref()
        })
        .nullable(),
        component(),
        TableColumn::parents(
            "parent_comp_id",
            "The standard residue that this one is a variant of; with commas those of a chromophore \
             that was made of several.",
        ),
        TableColumn::code(
            "aa",
            "The one-letter code of the parent, or of the first; X if there is none.",
            |r, row| r.residue(row).aa,
            Some(b'X'),
        ),
        if unobserved {
            TableColumn::flag_or_null("break_before", break_before, |r, row| {
                r.is_observed(row).then(|| r.residue(row).break_before)
            })
        } else {
            TableColumn::flag("break_before", break_before, |r, row| {
                r.residue(row).break_before
            })
        },
        TableColumn::text("uniprot_acc", "The UniProt accession.", |r, row| {
            let uniprot = r.residue(row).uniprot?;
            Some(&r.structure.uniprot[uniprot.accession as usize])
        })
        .nullable(),
        TableColumn::integer(
            "uniprot_pos",
            "The position in the UniProt sequence, from 1.",
            |r, row| Some(r.residue(row).uniprot?.position),
        )
        .nullable(),
        TableColumn::text(
            "flags",
            "Which rules of reading changed, chose or built something of the residue, with semicolons: \
             simulation_name, renamed_atoms, atoms_left_out, unknown_atoms, alternate_chosen, cb_built. \
             Empty if none did.",
            |r, row| Some(flag_names(r.flags(row))),
        ),
    ];
    if unobserved {
        columns.push(TableColumn::flag(
            "observed",
            "Whether the residue was observed: false for one that only the chain's sequence has.",
            |r, row| r.is_observed(row),
        ));
    }
    columns
}

/// The names of the bits of [`StructureRows::flags`], joined with semicolons.
fn flag_names(flags: u8) -> &'static str {
    /// In the order of the bits.
    const NAMES: [&str; 6] = [
        "simulation_name",
        "renamed_atoms",
        "atoms_left_out",
        "unknown_atoms",
        "alternate_chosen",
        "cb_built",
    ];
    static TEXTS: OnceLock<Vec<String>> = OnceLock::new();
    let texts = TEXTS.get_or_init(|| {
        let text = |flags: usize| {
            let set = NAMES.iter().enumerate();
            let set = set.filter(|(bit, _)| flags >> bit & 1 == 1);
            set.map(|(_, name)| *name).collect::<Vec<_>>().join(";")
        };
        (0..1 << NAMES.len()).map(text).collect()
    });
    &texts[usize::from(flags)]
}

/// The columns of the table of variants that no feature computes. A row's residue is that of the
/// annotation, also where the structure has no such residue.
fn variant_columns() -> Vec<TableColumn> {
    fn residue(r: &StructureRows, row: usize) -> Option<&tapeloop::structure::Residue> {
        r.variant_residue(row).map(|residue| r.residue(residue))
    }
    vec![
        TableColumn::integer(
            "res_index",
            "The residue's index in the structure, from 0; null if the structure lacks it.",
            |r, row| Some(r.variant_residue(row)? as i32),
        )
        .nullable(),
        entry_id(),
        author_chain(|r, row| {
            named(match r.variant_residue(row) {
                Some(residue) => &r.chain_of(residue).auth_asym_id,
                None => &r.variant_key(row).chain,
            })
        }),
        TableColumn::integer("auth_seq_id", "The author's residue number.", |r, row| {
            Some(r.variant_key(row).number)
        }),
        TableColumn::code(
            "ins_code",
            "The insertion code.",
            |r, row| r.variant_key(row).ins_code,
            None,
        ),
        TableColumn::code(
            "aa",
            "The residue's one-letter code; null if the structure lacks it.",
            |r, row| residue(r, row).map_or(0, |residue| residue.aa),
            None,
        ),
        TableColumn::text("uniprot_acc", "The UniProt accession.", |r, row| {
            let uniprot = residue(r, row)?.uniprot?;
            Some(&r.structure.uniprot[uniprot.accession as usize])
        })
        .nullable(),
        TableColumn::integer(
            "uniprot_pos",
            "The position in the UniProt sequence, from 1.",
            |r, row| Some(residue(r, row)?.uniprot?.position),
        )
        .nullable(),
    ]
}

/// The columns of pairs of residues, whose indices in the structure are columns of the feature.
fn pair_columns(table: TableName) -> Vec<TableColumn> {
    vec![
        TableColumn::pair_flag(
            "same_chain",
            "Whether both residues are of one chain.",
            table,
            is_of_one_chain,
        ),
        TableColumn::pair_integer(
            "separation",
            "How much farther in the chain's sequence the second residue is, negative if it is the \
             earlier one: by label_seq_id, or by the position in SEQRES of PDB files; by res_index \
             where a file gives neither. Null for residues of different chains.",
            table,
            separation,
        )
        .nullable(),
    ]
}

/// What names both residues of a pair. The names of the columns end with `endings`.
fn pair_names(table: TableName, endings: [&str; 2]) -> impl Iterator<Item = TableColumn> {
    let sides = endings.into_iter().enumerate();
    sides.flat_map(move |(side, ending)| {
        let columns = [
            residue_chain(),
            residue_number(),
            insertion_code(),
            component(),
        ];
        let table = OutputTable::Features(table);
        columns.map(|column| column.of_side(PairSide { table, side }, ending))
    })
}

fn is_of_one_chain(r: &StructureRows, pair: [usize; 2]) -> bool {
    let [one, other] = pair.map(|residue| r.residue(residue).chain);
    one == other
}

/// The number of residues from the first to the second of a pair along the chain, by the numbers of
/// the sequence if it has those; `None` between chains.
fn separation(r: &StructureRows, [i, j]: [usize; 2]) -> Option<i32> {
    let [one, other] = [i, j].map(|residue| r.residue(residue));
    let is_numbered = r.is_numbered(one.chain);
    let positions = one.sequence_position.zip(other.sequence_position);
    let positions = positions.filter(|_| is_numbered);
    let (from, to) = positions.unwrap_or((i as i32, j as i32));
    (one.chain == other.chain).then_some(to - from)
}

/// The columns of the table of ligands that no feature computes.
fn ligand_columns() -> Vec<TableColumn> {
    vec![
        TableColumn::integer(
            "ligand_index",
            "The ligand's index in the structure, from 0.",
            |_, row| Some(row as i32),
        ),
        entry_id(),
        author_chain(|r, row| named(&r.ligand(row).auth_asym_id)),
        TableColumn::text("label_asym_id", "mmCIF's own chain.", |r, row| {
            r.ligand(row).label_asym_id.as_deref()
        })
        .nullable(),
        TableColumn::integer("auth_seq_id", "The author's residue number.", |r, row| {
            r.ligand(row).auth_seq_id
        })
        .nullable(),
        TableColumn::code(
            "ins_code",
            "The insertion code.",
            |r, row| r.ligand(row).ins_code,
            None,
        ),
        TableColumn::padded("comp_id", "The residue name.", |r, row| {
            &r.ligand(row).comp_id
        }),
        TableColumn::text(
            "kind",
            "What it is: ligand, ion, agent or glycan.",
            |r, row| Some(r.ligand(row).kind.name()),
        ),
        TableColumn::integer(
            "molecule",
            "The index of its molecule in the structure, from 0: covalent links join the ligands of \
             one molecule.",
            |r, row| Some(r.ligand(row).molecule as i32),
        ),
        TableColumn::integer("atoms", "Number of heavy atoms.", |r, row| {
            Some(r.ligand_atoms[row] as i32)
        }),
    ]
}

/// The columns of pairs of chains, whose author's ids are columns of the feature.
fn chain_pair_columns(table: TableName) -> Vec<TableColumn> {
    let label = |side, ending| {
        let value: TextOfRow = |r, chain| r.structure.chains[chain].label_asym_id.as_deref();
        let column = TableColumn::text("label_asym_id", LABEL, value).nullable();
        let table = OutputTable::Features(table);
        column.of_side(PairSide { table, side }, ending)
    };
    vec![entry_id(), label(0, "i"), label(1, "j")]
}

// Counts fit 32 bits, since the engine limits the size of a structure.

/// The columns of the table of chains that no feature computes.
fn chain_columns() -> Vec<TableColumn> {
    vec![
        entry_id(),
        author_chain(|r, row| named(&r.chain(row).auth_asym_id)),
        TableColumn::text("label_asym_id", LABEL, |r, row| {
            r.chain(row).label_asym_id.as_deref()
        })
        .nullable(),
        TableColumn::text("entity_id", "mmCIF's entity.", |r, row| {
            r.chain(row).entity_id.as_deref()
        })
        .nullable(),
        TableColumn::integer("residues", "Number of residues.", |r, row| {
            Some(r.chains[row].residues as i32)
        }),
        TableColumn::integer("breaks", "Number of breaks inside chains.", |r, row| {
            Some(r.chains[row].breaks as i32)
        }),
        TableColumn::text(
            "sequence",
            "The one-letter codes of the chain's rows of residues, in their order; residues that were \
             not observed have none.",
            |r, row| Some(&r.chains[row].sequence),
        ),
    ]
}

/// The column of the whole sequence of a chain.
fn seqres() -> TableColumn {
    TableColumn::text(
        "seqres",
        "The one-letter codes of the whole chain, residues that were not observed included: of \
         SEQRES, or of mmCIF's _entity_poly_seq.",
        |r, row| r.chains[row].seqres.as_deref(),
    )
    .nullable()
}

/// The columns of the table of structures that no feature computes.
fn structure_columns() -> Vec<TableColumn> {
    vec![
        entry_id(),
        TableColumn::text("assembly", "What was built: deposited or 1.", |r, _| {
            let is = |(_, assembly): &&(_, Assembly)| *assembly == r.structure.assembly;
            ASSEMBLIES.iter().find(is).map(|(name, _)| *name)
        }),
        TableColumn::integer("residues", "Number of residues.", |r, _| {
            Some(r.structure.residues.len() as i32)
        }),
        TableColumn::integer(
            "atoms",
            "Number of heavy polymer atoms of the chosen conformers.",
            |r, _| Some(r.atoms as i32),
        ),
        TableColumn::integer("chains", "Number of chains with residues.", |r, _| {
            Some(r.chains.len() as i32)
        }),
        TableColumn::integer("breaks", "Number of breaks inside chains.", |r, _| {
            Some(r.breaks() as i32)
        }),
        TableColumn::integer(
            "rounded_atoms",
            "Number of atoms whose coordinates had more than three decimals.",
            |r, _| Some(r.structure.rounded_atoms as i32),
        ),
        TableColumn::text(
            "method",
            "The experimental method as in the file.",
            |r, _| r.structure.method.as_deref(),
        )
        .nullable(),
        TableColumn::real(
            "resolution",
            "The resolution as in the file.",
            "A",
            |r, _| r.structure.resolution,
        )
        .nullable(),
        TableColumn::text("title", "The title as in the file.", |r, _| {
            r.structure.title.as_deref()
        })
        .nullable(),
    ]
}
