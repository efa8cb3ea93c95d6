//! The keys of the tables.

use super::Reduction;
use super::condition::Condition;
use super::coordinates::CoordinateAtoms;
use super::resolver::{Resolver, named};
use super::setting_values::SettingValues;
use serde_json::{Value as Json, json};
use tapeloop::features::{FeatureConfig, TableName};
use tapeloop_annotations::{Level, WantedColumns};
use tapeloop_files::did_you_mean;

/// The level of zstd that is the default of `tables.compression_level`.
const LEVEL: i64 = 3;

/// Declares the tables in their order: what a row is, the table's name, the table of features whose columns
/// its rows have, and the level of the annotations that they get.
macro_rules! tables {
    ($($(#[$doc:meta])* $kind:ident $name:literal $features:ident $level:expr;)*) => {
        /// What a row of a table is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum RowKind { $($(#[$doc])* $kind,)* }

        impl RowKind {
            /// The tables, in the order in which they are written.
            pub const ALL: [RowKind; [$($name),*].len()] = [$(RowKind::$kind),*];

            /// The name of the table and of its folder.
            pub const fn table(self) -> &'static str {
                match self { $(RowKind::$kind => $name,)* }
            }

            /// The table of features whose columns the rows have.
            pub const fn features(self) -> TableName {
                match self { $(RowKind::$kind => TableName::$features,)* }
            }

            /// The level of the annotations that the rows get.
            pub const fn level(self) -> Option<Level> {
                match self { $(RowKind::$kind => $level,)* }
            }
        }
    };
}

tables! {
    Residue "residues" Residues Some(Level::Residues);
    Chain "chains" Chains None;
    Structure "structures" Structures Some(Level::Structures);
    /// A pair of residues that are in contact.
    Contact "contacts" Contacts None;
    /// A backbone hydrogen bond.
    HydrogenBond "hydrogen_bonds" HydrogenBonds None;
    /// A residue that is no polymer.
    Ligand "ligands" Ligands None;
    /// A pair of chains whose residues are in contact.
    Interface "interfaces" Interfaces None;
    /// A row of the annotations' tables of variants, with the residue that it names.
    Variant "variants" Residues Some(Level::Variants);
}

impl RowKind {
    /// The table of this name.
    pub fn of_table(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.table() == name)
    }

    /// Whether a row is a pair of residues.
    pub fn is_pair(self) -> bool {
        matches!(self, RowKind::Contact | RowKind::HydrogenBond)
    }
}

/// Some of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSet([bool; RowKind::ALL.len()]);

impl TableSet {
    pub const ALL: TableSet = TableSet([true; RowKind::ALL.len()]);

    /// The tables of residues, chains and structures, which every run can have.
    pub const USUAL: TableSet = {
        let mut tables = [false; RowKind::ALL.len()];
        tables[RowKind::Residue as usize] = true;
        tables[RowKind::Chain as usize] = true;
        tables[RowKind::Structure as usize] = true;
        TableSet(tables)
    };

    /// The tables for which `contains` is true.
    pub fn new(contains: impl FnMut(RowKind) -> bool) -> Self {
        TableSet(RowKind::ALL.map(contains))
    }

    pub fn contains(self, table: RowKind) -> bool {
        self.0[table as usize]
    }

    /// The tables in their order.
    pub fn iter(self) -> impl Iterator<Item = RowKind> {
        let all = RowKind::ALL.into_iter();
        all.filter(move |&table| self.contains(table))
    }

    /// The names of the tables in their order.
    pub fn names(self) -> Vec<&'static str> {
        self.iter().map(RowKind::table).collect()
    }
}

/// When the tables have rows that not every run has.
pub const TABLES_WITH_ROWS: &str = "there are contacts if contacts.atom is set, \
     hydrogen bonds if `hydrogen_bonds` is true, ligands if `ligands` is \"keep\", interfaces if \
     `interfaces` is true, and variants if a table of annotations has a column `variant`";

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
    pub compression: Compression,
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
    /// Whether the tables of contacts and hydrogen bonds name both residues, by chain, number, insertion code
    /// and component.
    pub pair_names: bool,
}

impl OptionalColumns {
    /// None of them.
    pub const NONE: OptionalColumns = OptionalColumns {
        has_frames: false,
        coordinates: CoordinateAtoms::NONE,
        seqres: false,
        unobserved: false,
        pair_names: false,
    };
    /// All of them.
    pub const ALL: OptionalColumns = OptionalColumns {
        has_frames: true,
        coordinates: CoordinateAtoms::ALL,
        seqres: true,
        unobserved: true,
        pair_names: true,
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
pub enum Compression {
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
    fn compressions(self) -> &'static [Compression] {
        const ZSTD: Compression = Compression::Zstd(LEVEL as i32);
        match self {
            TableFormat::Parquet => &[ZSTD, Compression::Lz4, Compression::None],
            // Programs map files that are not compressed, and read them without a copy.
            TableFormat::Arrow => &[Compression::None, Compression::Lz4, ZSTD],
            TableFormat::Csv | TableFormat::Json => &[Compression::None],
        }
    }
}

impl Compression {
    fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Lz4 => "lz4",
            Compression::Zstd(_) => "zstd",
        }
    }
}

pub(super) fn resolve_tables(
    keys: &mut Resolver,
    coordinates: CoordinateAtoms,
    [seqres, unobserved]: [bool; 2],
) -> TableSettings {
    let format = keys.choice(
        "tables.format",
        &named(&TableFormat::ALL, TableFormat::name),
    );
    let written = resolve_written(keys);
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
    let wrong = names.iter().find(|name| RowKind::of_table(name).is_none());
    if wrong.is_some() || names.is_empty() {
        let found = wrong.map_or("no table is named".to_owned(), |name| {
            format!("there is no table \"{name}\"{}", did_you_mean(name, &all))
        });
        keys.problem(KEY, format!("{found}; choose from {}", all.join(", ")));
    }
    keys.record(KEY, json!(names));
    TableSet::new(|table| names.iter().any(|name| name == table.table()))
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
    if !tables.written.contains(RowKind::Residue) && reductions.is_empty() {
        let text = "chooses residues, and no table has any; \
                    set `reduce`, or add \"residues\" to tables.written";
        keys.problem(KEY, text);
    }
    parsed.map_err(|error| keys.error(KEY, &error)).ok()
}

fn resolve_compression(keys: &mut Resolver, format: TableFormat) -> Compression {
    const KEY: &str = "tables.compression";
    const LEVEL_KEY: &str = "tables.compression_level";
    let all = named(TableFormat::Parquet.compressions(), Compression::name);
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
    if let Compression::Zstd(_) = compression {
        return Compression::Zstd(keys.integer(LEVEL_KEY, LEVEL, 1..=22) as i32);
    }
    if keys.entry(LEVEL_KEY).is_some() {
        let has_zstd = supported
            .iter()
            .any(|compression| matches!(compression, Compression::Zstd(_)));
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
