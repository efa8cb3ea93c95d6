//! `tapeloop paint`: writes a feature into the B factors of a structure file, by which molecule
//! viewers colour, and draws features along the sequence.
//!
//! `values` turns a column into numbers and numbers into text, `text` writes them into a file,
//! [`strip`] draws, `target` names the outputs, and `viewers` has the commands that colour by them.

mod target;
mod text;
mod values;
mod viewers;

use super::args::PaintArgs;
use super::progress::{Audience, start_engine};
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use tapeloop::error::{Error, Result};
use tapeloop::features::{
    ColumnDecl, FeatureConfig, FeatureName, FeatureTable, Features, Input, TableName,
};
use tapeloop::structure::{BFactorFields, Models, ReadLimits, Structure, text_of};
use tapeloop::workload::Completion;
use tapeloop_annotations::WantedColumns;
use tapeloop_cli::config::{Config, OutputTable, column_hint, feature_of_column_in};
use tapeloop_cli::oversized;
use tapeloop_cli::plan::{Plan, channels_of};
use tapeloop_cli::reading::rejecting_panics;
use tapeloop_cli::run_counters::RunCounters;
use tapeloop_cli::strip::{self, Sequence, Track};
use tapeloop_cli::tables::identifying_columns_of;
use tapeloop_cli::terminal::complain;
use tapeloop_cli::{exit_codes, reading};
use tapeloop_error::internal::printable;
use tapeloop_files::FileId;
use tapeloop_files::{open_file, path_of, read_all, shown};
use tapeloop_inputs::{Archives, Shard, Source, Sources, structure_name};
use target::{Outputs, PaintTarget};
use text::{Model, ModelValues, Painted};

/// Paints, and returns the exit code.
///
/// # Errors
/// The config or an output is wrong, or an error ends the engine.
pub(super) fn paint(args: PaintArgs) -> Result<u8> {
    if let Some(null) = args.null.filter(|null| !null.is_finite()) {
        let error = Error::usage(format!(
            "--null {null} is not a number that a file can hold"
        ));
        return Err(error.fix("give a number, such as -1"));
    }
    let mut raw = args.overrides.raw_config(args.config.as_deref())?;
    raw.set_list("INPUT", "input", vec![args.input.clone()]);
    // Viewers show all models.
    raw.set_default("models", "all");
    // All residues and atoms are painted.
    raw.remove("tables.where");
    raw.remove("tables.where_atoms");
    if let Some(name) = &args.column {
        if args.output.is_none() {
            let message = format!("`{name}` is painted into a file, and none is named");
            return Err(Error::usage(message)
                .fix("name one with -o; --features chooses what --svg draws, without a column"));
        }
        raw.add_names("COLUMN", "features", "all", &features_of(name));
    }
    let mut config = Config::resolve(raw)?;
    let column = match &args.column {
        Some(name) => Some(choose(&mut config.features, name, args.svg.is_some())?),
        None => None,
    };
    let input = path_of(&args.input);
    let mut sources = Sources::new(config.input.clone(), Archives::Unknown, Shard::WHOLE);
    // An output that exists may be any of the inputs, so all inputs must be known.
    let walked: Option<Vec<Source>> = args.overwrite.then(|| sources.by_ref().collect());
    let inputs = walked.iter().flatten();
    let inputs = inputs.filter_map(|source| FileId::from_path(&source.path));
    let mut outputs = Outputs::new(args.overwrite, inputs.collect());
    let sources = walked.into_iter().flatten().chain(sources);
    let mut target = |path: &Option<PathBuf>, what| {
        let path = path.as_deref();
        path.map(|path| PaintTarget::new(path, what, &input, &mut outputs))
            .transpose()
    };
    let output = target(&args.output, "the painted file")?;
    let svg = target(&args.svg, "the drawing")?;
    // The tables that annotations bring are not painted.
    config.wanted = WantedColumns::NONE;
    if channels_of(&config).is_empty() {
        config.annotations.clear();
    }
    let plan = Plan::new(config)?;
    let mut painter = Painter {
        columns: columns(&plan.config.features),
        column: column
            .map(|(table, name)| PaintedColumn::new(&plan.config.features, table, &name))
            .zip(output),
        svg,
        outputs,
        limits: plan.config.reading.limits,
        joins_models: plan.config.reading.models == Models::Joined,
        null: args.null,
        says: !args.quiet && (args.verbose || std::io::stderr().is_terminal()),
        open: None,
        colouring: None,
        painted: 0,
        rejected: 0,
    };
    let mut engine = start_engine(
        &plan,
        &TableName::ALL,
        painter.says.then_some(Audience::Reader),
    )?;
    let counters = Arc::new(RunCounters::default());
    let inputs = reading::inputs(
        sources.map(|source| vec![source]),
        plan.config.reading,
        &plan.read_budget(engine.memory()),
        &plan.pool,
        &counters,
        plan.annotations.as_ref(),
    );
    let take = |completion: Completion<Features>| {
        counters.set_inputs(completion.item.ordinal + 1);
        painter.take(completion);
        Ok(())
    };
    oversized::run(&mut engine, &plan, inputs, &counters, |done| done, take)?;
    painter.close();
    painter.say_how_to_colour();
    if let Some(annotations) = &plan.annotations {
        let matches = counters.matches();
        annotations.log(&matches)?;
        if painter.painted > 0 {
            let unmatched = plan.config.unmatched;
            annotations.check_matched(&matches, painter.rejected, unmatched)?;
        }
    }
    Ok(exit_codes::of_inputs(painter.painted, painter.rejected))
}

/// The residue columns that are computed, in their order in the table.
fn columns(features: &FeatureConfig) -> Vec<(FeatureName, ColumnDecl)> {
    let chosen = FeatureName::ALL.iter().copied();
    let chosen = chosen.filter(|name| features.features.contains(name));
    let of_feature = |name| {
        let columns = features.columns_of(name).into_iter();
        columns.map(move |column| (name, column))
    };
    let all = chosen.flat_map(of_feature);
    all.filter(|(_, column)| column.table == TableName::Residues)
        .collect()
}

/// What the name of a column of atoms begins with.
const OF_ATOMS: &str = "atoms.";

/// The table and the column that COLUMN names: of residues or, with the prefix `atoms.`, of atoms.
fn place_of(name: &str) -> (TableName, &str) {
    match name.strip_prefix(OF_ATOMS) {
        Some(name) => (TableName::Atoms, name),
        None => (TableName::Residues, name),
    }
}

/// The features that COLUMN needs. To name them switches on those that compute nothing by default.
fn features_of(name: &str) -> Vec<&'static str> {
    let (table, name) = place_of(name);
    let owner = feature_of_column_in(table, name).map(|place| place.feature);
    let atoms = (table == TableName::Atoms).then_some(FeatureName::Atoms);
    let features = owner.into_iter().chain(atoms);
    features.map(FeatureName::name).collect()
}

/// Finds the feature that has the column, and chooses it: in addition to the other features if
/// `keeps_others`, else alone. Returns the table and the column's name in it. An
/// [`ErrorKind::Usage`](tapeloop::ErrorKind::Usage) error if no feature computes it; the fix
/// depends on what the name is instead.
fn choose(
    features: &mut FeatureConfig,
    name: &str,
    keeps_others: bool,
) -> Result<(TableName, String)> {
    let (table, name) = place_of(name);
    let rows = table.decl().name;
    let columns = |feature: &FeatureName| -> Vec<String> {
        let columns = features.columns_of(*feature).into_iter();
        let of_table = columns.filter(|column| column.table == table);
        of_table.map(|column| column.name).collect()
    };
    let mut all = FeatureName::ALL.iter().copied();
    let Some(owner) = all.find(|feature| columns(feature).iter().any(|column| column == name))
    else {
        let is_name = |feature: &&FeatureName| feature.name() == name;
        let feature = FeatureName::ALL.iter().find(is_name);
        let of_feature = feature.map_or(Vec::new(), columns);
        if !of_feature.is_empty() {
            let error = Error::usage(format!("`{name}` is a feature, and not a column"));
            return Err(error.fix(format!(
                "name one of its columns: {}",
                of_feature.join(", ")
            )));
        }
        if let Some(place) = feature_of_column_in(table, name) {
            let message = format!("`{name}` is not computed with these settings");
            return Err(Error::usage(message).fix(place.how_to_compute()));
        }
        let mut identifying = identifying_columns_of(OutputTable::Features(table));
        if identifying.any(|column| column == name) {
            let message = format!("`{name}` is a column of {rows} that no feature computes");
            return Err(Error::usage(message)
                .fix("name one that a feature computes; `tapeloop features` lists them"));
        }
        let known: Vec<String> = FeatureName::ALL.iter().flat_map(columns).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let hint = column_hint(name, &known);
        let error = Error::usage(format!("no feature has a column `{name}` of {rows}{hint}"));
        return Err(error.fix("`tapeloop features` lists the columns"));
    };
    if !keeps_others {
        features.features = vec![owner];
        if table == TableName::Atoms && owner != FeatureName::Atoms {
            features.features.push(FeatureName::Atoms);
        }
    } else if !features.features.contains(&owner) {
        features.features.push(owner);
    }
    Ok((table, name.to_owned()))
}

/// The column that is painted.
struct PaintedColumn {
    table: TableName,
    /// Its index among the features' columns of the table.
    index: usize,
    decl: ColumnDecl,
}

impl PaintedColumn {
    /// The column `name` of `table`, which is computed.
    fn new(features: &FeatureConfig, table: TableName, name: &str) -> Self {
        let columns = features.columns(table).into_iter().enumerate();
        let mut found = columns.filter(|(_, decl)| decl.name == name);
        let (index, decl) = found
            .next()
            .expect("the column is one of the computed ones");
        PaintedColumn { table, index, decl }
    }

    /// The values of a model.
    fn values(&self, structure: &Structure, table: &FeatureTable) -> ModelValues {
        let column = table.column(self.table, self.index);
        let values = values::numbers_of(&self.decl, column, structure);
        if self.table == TableName::Residues {
            return ModelValues::Residues(values);
        }
        // The order of values: atoms of residues, those of none, and those of ligands.
        let ligands = structure.ligands_by_atoms();
        let of_ligands = ligands.flat_map(|(_, ligand)| ligand.atoms.iter().map(|atom| atom.xyz));
        let positions = structure.xyz.iter().copied().chain(of_ligands);
        let of_atoms = positions.zip(values);
        ModelValues::Atoms(
            of_atoms
                .filter_map(|(xyz, value)| Some((xyz, value?)))
                .collect(),
        )
    }
}

/// Takes results in order, and paints a file after its last model.
struct Painter {
    /// The residue columns that are computed, and their features.
    columns: Vec<(FeatureName, ColumnDecl)>,
    /// The column that is painted, and its target.
    column: Option<(PaintedColumn, PaintTarget)>,
    svg: Option<PaintTarget>,
    outputs: Outputs,
    limits: ReadLimits,
    joins_models: bool,
    /// The B factor of atoms without a value; `None` for the column's own.
    null: Option<f64>,
    /// Whether lines about the written files are printed.
    says: bool,
    open: Option<OpenFile>,
    /// The first painted file, and the range of the values in all of them.
    colouring: Option<(PathBuf, (f64, f64))>,
    painted: u64,
    rejected: u64,
}

/// A file with the models that have arrived so far.
struct OpenFile {
    ordinal: u64,
    source: String,
    models: Result<Vec<(Structure, FeatureTable)>>,
}

impl Painter {
    /// Takes the next result. With the first one of a file, the file before is painted and closed.
    fn take(&mut self, completion: Completion<Features>) {
        let Input {
            source,
            ordinal,
            structure,
            ..
        } = completion.item;
        if self
            .open
            .as_ref()
            .is_some_and(|open| open.ordinal != ordinal)
        {
            self.close();
        }
        let open = self.open.get_or_insert(OpenFile {
            ordinal,
            source,
            models: Ok(Vec::new()),
        });
        // A failed model rejects the file: values would go to the atoms of other models.
        match (structure, completion.result, &mut open.models) {
            (Ok(structure), Ok(table), Ok(models)) => models.push((structure.into_inner(), table)),
            (_, Err(error), models @ Ok(_)) => *models = Err(error),
            _ => {}
        }
    }

    /// Paints the open file. An error is printed, and rejects this file alone.
    fn close(&mut self) {
        let Some(OpenFile { source, models, .. }) = self.open.take() else {
            return;
        };
        let painted = models
            .and_then(|models| rejecting_panics("painting", || self.make_products(&source, models)))
            .and_then(|products| {
                products
                    .iter()
                    .try_for_each(|product| self.write(product, &source))
            });
        match painted {
            Ok(()) => self.painted += 1,
            Err(error) => {
                let line = format!("{source}: {error}");
                complain(&format!("error: {}", printable(&line)));
                self.rejected += 1;
            }
        }
    }

    /// Writes an output of the input `source`. Prints a line about it if `says`, or if values were
    /// clamped.
    fn write(&mut self, product: &Product, source: &str) -> Result<()> {
        target::write(&product.path, &product.bytes)?;
        let start = if product.is_clamped { "warning: " } else { "" };
        if self.says || product.is_clamped {
            let (source, path) = (printable(source), shown(&product.path));
            complain(&format!("{start}{source} -> {path}: {}", product.summary));
        }
        if let Some(range) = product.range {
            let colouring = self.colouring.take();
            let (first, before) = colouring.unwrap_or_else(|| (product.path.clone(), range));
            self.colouring = Some((first, (before.0.min(range.0), before.1.max(range.1))));
        }
        Ok(())
    }

    /// Prints the commands that colour the first painted file by the values of all.
    fn say_how_to_colour(&self) {
        // One value has one colour.
        if let Some((path, (min, max))) = &self.colouring
            && self.says
            && min < max
        {
            complain(&viewers::commands(path, (*min, *max)));
        }
    }

    /// The outputs of a file.
    fn make_products(
        &mut self,
        source: &str,
        models: Vec<(Structure, FeatureTable)>,
    ) -> Result<Vec<Product>> {
        let path = path_of(source);
        let file = path.file_name().unwrap_or_default().to_owned();
        let mut products = Vec::new();
        if let (Some(target), Some((structure, table))) = (&self.svg, models.first()) {
            let name = structure_name(source);
            let tracks: Vec<Track> = self
                .columns
                .iter()
                .zip(table.columns(TableName::Residues))
                .map(|((feature, decl), column)| {
                    let values = values::numbers_of(decl, column, structure);
                    let meaning = values::meaning_of(decl, structure);
                    Track::new(&decl.name, Some(*feature), decl.unit, values, meaning)
                })
                .collect();
            let sequence = Sequence::of_structure(&printable(name), structure);
            // `1abc.pdb` and `1abc.cif` have the same stem.
            let names = [OsStr::new(name), &file].map(|name| {
                let mut name = name.to_owned();
                name.push(".svg");
                name
            });
            products.push(Product {
                path: target.place(&path, &names, &mut self.outputs)?,
                bytes: strip::draw(&sequence, &tracks).into_bytes(),
                summary: format!("{} tracks", tracks.len()),
                range: None,
                is_clamped: false,
            });
        }
        if let Some((column, target)) = &self.column {
            let bytes = read_all(open_file(&path)?, u64::from(self.limits.text_bytes_max))?;
            let (text, format) = text_of(source, bytes, &self.limits)?;
            let to = target.place(&path, &[file], &mut self.outputs)?;
            target::check_format(&to, format)?;
            let values = |(structure, table): (Structure, FeatureTable)| Model {
                values: column.values(&structure, &table),
                structure,
            };
            let models: Vec<Model> = models.into_iter().map(values).collect();
            let mut fields = BFactorFields::find(&text, format, self.limits)?;
            if self.joins_models {
                fields.join_models();
            }
            let null = self.null.unwrap_or(column.decl.null_number);
            let painted = text::paint(&text, format, &fields, &models, null, self.null.is_some());
            let all = models.iter().flat_map(|model| model.values.numbers());
            let range = strip::range(all);
            products.push(Product {
                path: to,
                summary: painted_summary(&painted, &column.decl, range, null),
                range,
                is_clamped: painted.is_clamped,
                bytes: painted.text,
            });
        }
        Ok(products)
    }
}

/// A file to write, with what is reported of it.
struct Product {
    path: PathBuf,
    bytes: Vec<u8>,
    /// What the line about the file says of its contents.
    summary: String,
    /// The range of the values in a painted file; `None` if it has none.
    range: Option<(f64, f64)>,
    /// Whether the file has other values than were computed.
    is_clamped: bool,
}

/// What the line about a painted file says of its contents: the column and its unit, the painted atoms,
/// the range of the values, what numbers that stand for words mean, and which number the atoms
/// without a value have.
fn painted_summary(
    painted: &Painted,
    column: &ColumnDecl,
    range: Option<(f64, f64)>,
    null: f64,
) -> String {
    let unit = match column.unit {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let range_text = range.map_or("null everywhere".to_owned(), |(min, max)| {
        format!("{} to {}{unit}", strip::short(min), strip::short(max))
    });
    let words = strip::words(column.kind);
    let word_legend = if words.is_empty() {
        String::new()
    } else {
        let pairs: Vec<String> = words
            .iter()
            .enumerate()
            .map(|(value, word)| format!("{value} {word}"))
            .collect();
        format!(" ({})", pairs.join(", "))
    };
    let note = painted
        .note
        .as_ref()
        .map_or(String::new(), |note| format!("; {note}"));
    let nulls = match painted.null_atoms {
        0 => "every atom has a value".to_owned(),
        count => format!("{count} atoms without a value have {null}"),
    };
    format!(
        "{} at {} atoms, {range_text}{word_legend}; {nulls}{note}",
        column.name, painted.atoms
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use tapeloop::structure::{Format, ReadOptions, Reader};

    #[test]
    fn a_file_that_makes_painting_panic_is_rejected_and_the_others_are_painted() {
        let folder = tempfile::tempdir().unwrap();
        let mut outputs = Outputs::new(false, HashSet::new());
        let svg = PaintTarget::new(folder.path(), "the drawing", folder.path(), &mut outputs);
        let mut painter = Painter {
            columns: Vec::new(),
            column: None,
            svg: Some(svg.unwrap()),
            outputs,
            limits: ReadLimits::default(),
            joins_models: false,
            null: None,
            says: false,
            open: None,
            colouring: None,
            painted: 0,
            rejected: 0,
        };
        let line =
            b"ATOM      1  CA  ALA A   1      11.104   6.134  -6.504  1.00  9.00           C";
        for (ordinal, name) in (0..).zip(["first", "broken", "last"]) {
            let structures = Reader::new(ReadOptions::default()).read_bytes(line, Format::Pdb);
            let mut structure = structures.unwrap().remove(0);
            if name == "broken" {
                // No input has such a structure: its residue's chain does not exist.
                structure.chains.clear();
            }
            let table = FeatureTable::new(Default::default());
            painter.open = Some(OpenFile {
                ordinal,
                source: format!("{name}.pdb"),
                models: Ok(vec![(structure, table)]),
            });
            painter.close();
        }
        assert_eq!((painter.painted, painter.rejected), (2, 1));
        let is_drawn = |name| folder.path().join(name).exists();
        assert!(is_drawn("first.svg") && is_drawn("last.svg"));
        assert!(!is_drawn("broken.svg"));
    }
}
