//! The keys of the tables. Functions `resolve_...` ask for keys, add what is wrong with their values to the
//! resolver's problems, and record the values that they resolve to.

use super::Reduction;
use super::condition::Condition;
use super::coordinates::CoordinateAtoms;
use super::features::{how_to_switch_on, setting_json};
use super::resolver::{Resolver, named};
use super::setting_values::SettingValues;
use serde_json::{Value as Json, json};
use tapeloop::features::{FeatureConfig, FeatureName, RowKind, Setting, TableName};
use tapeloop_annotations::{Level, WantedColumns};
use tapeloop_error::internal::excerpt;
use tapeloop_files::did_you_mean;

/// The level of zstd that is the default of `tables.compression_level`: zstd's own default.
const LEVEL: i64 = 3;

/// A table that the program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputTable {
    /// A table of features.
    Features(TableName),
    /// The table of bridges of water, which the reader finds.
    WaterBridges,
    /// The table of variants: it has a row for each row of the annotations' tables of variants, with the
    /// features of the residue that the row names.
    Variants,
}

impl OutputTable {
    pub const RESIDUES: OutputTable = OutputTable::Features(TableName::Residues);
    pub const ATOMS: OutputTable = OutputTable::Features(TableName::Atoms);
    pub const INTERACTIONS: OutputTable = OutputTable::Features(TableName::Interactions);

    /// All tables, in the order in which they are written.
    pub const ALL: [OutputTable; TableName::ALL.len() + 2] = {
        let mut all = [OutputTable::Variants; TableName::ALL.len() + 2];
        all[TableName::ALL.len()] = OutputTable::WaterBridges;
        let mut index = 0;
        while index < TableName::ALL.len() {
            all[index] = OutputTable::Features(TableName::ALL[index]);
            index += 1;
        }
        all
    };

    /// The table of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }

    /// The name of the table and of its folder.
    pub fn name(self) -> &'static str {
        match self {
            OutputTable::Features(table) => table.decl().name,
            OutputTable::WaterBridges => "water_bridges",
            OutputTable::Variants => "variants",
        }
    }

    /// What has a row, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            OutputTable::Features(table) => table.decl().about,
            OutputTable::WaterBridges => "bridge of water",
            OutputTable::Variants => "annotation of a variant",
        }
    }

    /// The table of features whose columns the rows have, if they have any.
    pub fn features(self) -> Option<TableName> {
        match self {
            OutputTable::Features(table) => Some(table),
            OutputTable::WaterBridges => None,
            OutputTable::Variants => Some(TableName::Residues),
        }
    }

    /// The level of the annotations that the rows get.
    pub fn level(self) -> Option<Level> {
        match self {
            OutputTable::Features(TableName::Residues) => Some(Level::Residues),
            OutputTable::Features(TableName::Structures) => Some(Level::Structures),
            OutputTable::Features(_) | OutputTable::WaterBridges => None,
            OutputTable::Variants => Some(Level::Variants),
        }
    }

    /// Whether a row is a pair of residues.
    pub fn is_pair(self) -> bool {
        let is_pair = |table: TableName| matches!(table.decl().rows, RowKind::ResiduePair(_));
        matches!(self, OutputTable::Features(table) if is_pair(table))
    }

    /// When the table has rows, in words: "`hydrogen_bonds` is true". `None` if every run can have the
    /// table.
    pub fn condition(self) -> Option<String> {
        let key = match self {
            OutputTable::Features(table) => table.decl().key?,
            OutputTable::WaterBridges => return Some("`interaction.waters` is true".to_owned()),
            OutputTable::Variants => {
                return Some("a table of annotations has a column `variant`".to_owned());
            }
        };
        let (key, setting) = FeatureConfig::default().let_compute(FeatureName::of_key(key)?)?;
        Some(match setting {
            // There are several values with which the table has rows.
            Setting::Choice(_, words) if words.len() > 2 => format!("`{key}` is set"),
            setting => format!("`{key}` is {}", setting_json(&setting)),
        })
    }

    /// What to do so that the table is computed, for messages.
    pub fn how_to_compute(self) -> String {
        let key = match self {
            OutputTable::Features(table) => table.decl().key,
            OutputTable::WaterBridges => {
                return "set interactions = true and interaction.waters = true".to_owned();
            }
            OutputTable::Variants => return "give annotations with a column variant".to_owned(),
        };
        match key.and_then(FeatureName::of_key) {
            Some(feature) => how_to_switch_on(feature),
            None => "leave tables.written out, or add the table".to_owned(),
        }
    }

    /// Whether a structure has many more rows than residues: a row group spans few structures.
    pub fn has_many_rows(self) -> bool {
        self.is_pair() || [OutputTable::ATOMS, OutputTable::INTERACTIONS].contains(&self)
    }

    fn index(self) -> usize {
        match self {
            OutputTable::Features(table) => table as usize,
            OutputTable::WaterBridges => TableName::ALL.len(),
            OutputTable::Variants => TableName::ALL.len() + 1,
        }
    }
}

/// Some of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSet([bool; OutputTable::ALL.len()]);

impl TableSet {
    pub const ALL: TableSet = TableSet([true; OutputTable::ALL.len()]);

    /// The tables of residues, chains and structures, which every run can have.
    pub const USUAL: TableSet = {
        let mut tables = [false; OutputTable::ALL.len()];
        let mut index = 0;
        while index < TableName::ALL.len() {
            tables[index] = TableName::ALL[index].decl().key.is_none();
            index += 1;
        }
        TableSet(tables)
    };

    /// The tables for which `contains` is true.
    pub fn new(contains: impl FnMut(OutputTable) -> bool) -> Self {
        TableSet(OutputTable::ALL.map(contains))
    }

    pub fn contains(self, table: OutputTable) -> bool {
        self.0[table.index()]
    }

    /// The tables in their order.
    pub fn iter(self) -> impl Iterator<Item = OutputTable> {
        let all = OutputTable::ALL.into_iter();
        all.filter(move |&table| self.contains(table))
    }

    /// The names of the tables in their order.
    pub fn names(self) -> Vec<&'static str> {
        self.iter().map(OutputTable::name).collect()
    }
}

/// How the tables are split into files and row groups, and how these are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSettings {
    pub format: TableFormat,
    pub written: TableSet,
    /// Inputs in one file, at least 1. Rejected inputs count.
    pub inputs_per_part: u64,
    /// The number of residues, at least 1, after which a file ends with the current input. Residues
    /// without a row count too.
    pub residues_per_part: u64,
    /// Rows of a row group, at least 1.
    pub rows_per_group: usize,
    /// A compression that `format` supports.
    pub compression: TableCompression,
    pub optional: OptionalColumns,
}

/// Columns that the tables have only in some runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionalColumns {
    /// Whether all tables have columns for the frames of trajectories.
    pub has_frames: bool,
    /// The atoms whose coordinates the table of residues has.
    pub coordinates: CoordinateAtoms,
    /// Whether the table of chains has the whole sequences.
    pub seqres: bool,
    /// Whether the table of residues has rows of residues that were not observed.
    pub unobserved: bool,
    /// Whether the tables of pairs of residues name both residues, by chain, number, insertion code and
    /// component.
    pub pair_names: bool,
    /// Whether the table of atoms has those of ligands.
    pub ligands: bool,
}

impl OptionalColumns {
    /// None of them.
    pub const NONE: OptionalColumns = OptionalColumns {
        has_frames: false,
        coordinates: CoordinateAtoms::NONE,
        seqres: false,
        unobserved: false,
        pair_names: false,
        ligands: false,
    };
    /// All of them.
    pub const ALL: OptionalColumns = OptionalColumns {
        has_frames: true,
        coordinates: CoordinateAtoms::ALL,
        seqres: true,
        unobserved: true,
        pair_names: true,
        ligands: true,
    };
}

impl TableSettings {
    /// The same settings for tables of one part.
    pub fn in_one_part(self) -> Self {
        TableSettings {
            inputs_per_part: u64::MAX,
            residues_per_part: u64::MAX,
            ..self
        }
    }
}

/// The file format of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    Parquet,
    /// Arrow IPC files.
    Arrow,
    Csv,
    /// JSON Lines.
    Json,
}

/// How a table is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableCompression {
    None,
    Lz4,
    /// With a level, 1 to 22.
    Zstd(i32),
}

impl TableFormat {
    /// All formats, the default first.
    pub const ALL: [TableFormat; 4] = [
        TableFormat::Parquet,
        TableFormat::Arrow,
        TableFormat::Csv,
        TableFormat::Json,
    ];

    /// The name in the config, which is also the ending of the files' names.
    pub fn name(self) -> &'static str {
        match self {
            TableFormat::Parquet => "parquet",
            TableFormat::Arrow => "arrow",
            TableFormat::Csv => "csv",
            TableFormat::Json => "json",
        }
    }

    /// Whether a terminal can show files of the format.
    pub fn is_text(self) -> bool {
        matches!(self, TableFormat::Csv | TableFormat::Json)
    }

    /// The compressions that the format has, the default first.
    fn compressions(self) -> &'static [TableCompression] {
        const ZSTD: TableCompression = TableCompression::Zstd(LEVEL as i32);
        match self {
            TableFormat::Parquet => &[ZSTD, TableCompression::Lz4, TableCompression::None],
            // Programs map files that are not compressed, and read them without a copy.
            TableFormat::Arrow => &[TableCompression::None, TableCompression::Lz4, ZSTD],
            TableFormat::Csv | TableFormat::Json => &[TableCompression::None],
        }
    }
}

impl TableCompression {
    fn name(self) -> &'static str {
        match self {
            TableCompression::None => "none",
            TableCompression::Lz4 => "lz4",
            TableCompression::Zstd(_) => "zstd",
        }
    }
}

/// The tables: which ones, their format, and the columns that follow from other settings. A part
/// ends after 65,536 inputs or 16 M residues, at which a run that was killed goes on, so that
/// little is computed again; a row group has 131,072 rows, which the writer's memory grows with.
pub(super) fn resolve_tables(
    keys: &mut Resolver,
    coordinates: CoordinateAtoms,
    [seqres, unobserved]: [bool; 2],
    ligands: bool,
) -> TableSettings {
    let format = keys.choice(
        "tables.format",
        &named(&TableFormat::ALL, TableFormat::name),
    );
    let written = resolve_written(keys);
    // docs/config/results.md says what grows with each; the largest values only exclude mistakes.
    let mut count = |key, default, max| keys.integer(key, default, 1..=max);
    TableSettings {
        format,
        written,
        inputs_per_part: count("tables.inputs_per_part", 1 << 16, 1 << 32) as u64,
        residues_per_part: count("tables.residues_per_part", 1 << 24, 1 << 40) as u64,
        rows_per_group: count("tables.rows_per_group", 1 << 17, 1 << 24) as usize,
        compression: resolve_compression(keys, format),
        optional: OptionalColumns {
            has_frames: keys.entry("topology").is_some(),
            coordinates,
            seqres,
            unobserved,
            pair_names: keys.flag("tables.pair_names", true),
            ligands,
        },
    }
}

/// The tables that are written.
fn resolve_written(keys: &mut Resolver) -> TableSet {
    const KEY: &str = "tables.written";
    let all = TableSet::ALL.names();
    keys.takes(KEY, SettingValues::Choice(all.clone()).or_list());
    let set = keys.texts(KEY).map(|(names, _)| names);
    let names = set.unwrap_or_else(|| all.iter().map(|&name| name.to_owned()).collect());
    let wrong = names
        .iter()
        .find(|name| OutputTable::of_name(name).is_none());
    if wrong.is_some() || names.is_empty() {
        let found = wrong.map_or("no table is named".to_owned(), |name| {
            format!(
                "there is no table \"{}\"{}",
                excerpt(name),
                did_you_mean(name, &all)
            )
        });
        keys.problem(KEY, format!("{found}; choose from {}", all.join(", ")));
    }
    keys.record(KEY, json!(names));
    TableSet::new(|table| names.iter().any(|name| name == table.name()))
}

/// The columns of annotations that the tables get.
pub(super) fn resolve_wanted(keys: &mut Resolver) -> WantedColumns {
    const KEY: &str = "tables.annotations";
    const ALL: &str = "*";
    let names = keys.texts(KEY).map(|(names, _)| names);
    let names = names.unwrap_or_else(|| vec![ALL.to_owned()]);
    keys.record(KEY, json!(names));
    if names.iter().any(|name| name == ALL) {
        WantedColumns::All
    } else {
        WantedColumns::Named(names)
    }
}

/// Statistics of residues' columns for the tables of chains and structures.
pub(super) fn resolve_reductions(keys: &mut Resolver, features: &FeatureConfig) -> Vec<Reduction> {
    const KEY: &str = "reduce";
    let texts = keys.texts(KEY).map_or(Vec::new(), |(texts, _)| texts);
    let columns = features.columns(TableName::Residues);
    let of_others = [TableName::Chains, TableName::Structures].map(|table| features.columns(table));
    let mut names: Vec<String> = of_others
        .into_iter()
        .flatten()
        .map(|decl| decl.name)
        .collect();
    let mut reductions: Vec<Reduction> = Vec::new();
    for text in &texts {
        match Reduction::parse(text, &columns) {
            // All columns, but for those that features have already.
            Ok(more) if text.starts_with('*') => {
                reductions.extend(
                    more.into_iter()
                        .filter(|reduction| !names.contains(&reduction.name())),
                );
            }
            Ok(more) => reductions.extend(more),
            Err(error) => keys.error(KEY, &error),
        }
    }
    for reduction in &reductions {
        let name = reduction.name();
        if names.contains(&name) {
            keys.problem(KEY, format!("two columns are called {name}; leave one out"));
        }
        names.push(name);
    }
    keys.record(KEY, json!(texts));
    reductions
}

/// The rows of residues that are written.
pub(super) fn resolve_where(
    keys: &mut Resolver,
    features: &FeatureConfig,
    tables: &TableSettings,
    reductions: &[Reduction],
) -> Option<Condition> {
    const KEY: &str = "tables.where";
    let text = keys.text(KEY).map(|(text, _)| text);
    keys.record(KEY, json!(text));
    let columns = features.columns(TableName::Residues);
    let parsed = Condition::parse(&text?, &columns, tables.optional);
    let has_atoms = tables.written.contains(OutputTable::ATOMS)
        && !features.columns(TableName::Atoms).is_empty();
    if !tables.written.contains(OutputTable::RESIDUES) && reductions.is_empty() && !has_atoms {
        let text = "chooses residues, and no table has any; \
                    set `reduce`, or add \"residues\" to tables.written";
        keys.problem(KEY, text);
    }
    parsed.map_err(|error| keys.error(KEY, &error)).ok()
}

/// The condition that chooses rows of atoms; `None` if the key is not set or wrong.
pub(super) fn resolve_where_atoms(
    keys: &mut Resolver,
    features: &FeatureConfig,
    tables: &TableSettings,
) -> Option<Condition> {
    const KEY: &str = "tables.where_atoms";
    let text = keys.text(KEY).map(|(text, _)| text);
    keys.record(KEY, json!(text));
    let text = text?;
    let columns = features.columns(TableName::Atoms);
    if columns.is_empty() {
        let text = "chooses atoms, and their table is not computed; \
                    set atoms = true; a list of features has to name `atoms` too";
        keys.problem(KEY, text);
        return None;
    }
    if !tables.written.contains(OutputTable::ATOMS) {
        let text = "chooses atoms, and their table is not written; \
                    add \"atoms\" to tables.written";
        keys.problem(KEY, text);
        return None;
    }
    let parsed = Condition::parse_of_atoms(&text, &columns, tables.optional);
    parsed.map_err(|error| keys.error(KEY, &error)).ok()
}

/// The compression of the format's files, with its level. Formats without compression refuse one
/// that is set.
fn resolve_compression(keys: &mut Resolver, format: TableFormat) -> TableCompression {
    const KEY: &str = "tables.compression";
    const LEVEL_KEY: &str = "tables.compression_level";
    let all = named(TableFormat::Parquet.compressions(), TableCompression::name);
    let supported = format.compressions();
    let chosen = keys.choice_if_set(KEY, &all);
    let (name, compression) = chosen.unwrap_or((supported[0].name(), supported[0]));
    if !supported.contains(&compression) {
        let format = format.name();
        let text = format!(
            "{name:?} with tables.format = {format:?}: files of this format are not compressed; \
             set tables.compression = \"none\", or tables.format = \"parquet\""
        );
        keys.problem(KEY, text);
    }
    keys.record(KEY, name.into());
    if let TableCompression::Zstd(_) = compression {
        return TableCompression::Zstd(keys.integer(LEVEL_KEY, LEVEL, 1..=22) as i32);
    }
    if keys.entry(LEVEL_KEY).is_some() {
        let has_zstd = supported
            .iter()
            .any(|compression| matches!(compression, TableCompression::Zstd(_)));
        let other = if has_zstd {
            ", or set tables.compression = \"zstd\""
        } else {
            ""
        };
        let text =
            format!("tables.compression = {name:?} has no level; leave the level out{other}");
        keys.problem(LEVEL_KEY, text);
    }
    keys.record(LEVEL_KEY, Json::Null);
    compression
}
