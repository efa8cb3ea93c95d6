//! The sample set against the golden tables in `tests/oracles`, which the packages
//! that define the features computed.

use crate::tables;

use flate2::read::GzDecoder;
use rayon::ThreadPoolBuilder;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::features::{
    Column, ColumnDecl, ColumnKind, FeatureConfig, FeatureTable, Features, NULL_COUNT, TableName,
    Tolerance,
};
use tapeloop::pipeline::{Engine, EngineConfig};
use tapeloop::structure::{ReadOptions, Reader, Structure};
use tapeloop_test_support::repository;

/// Columns that golden tables do not have: none of the packages computes them.
const UNCHECKED: &[&str] = &["wcn_coincident"];

struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn parse(text: &str) -> Self {
        let split = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<_>>();
        let mut lines = text.lines().map(split);
        Table {
            columns: lines.next().expect("a header"),
            rows: lines.collect(),
        }
    }

    fn read(name: &str) -> Self {
        let file = repository("tests/oracles").join(name);
        Table::parse(&fs::read_to_string(file).unwrap())
    }

    fn column(&self, name: &str) -> usize {
        let found = self.columns.iter().position(|column| column == name);
        found.unwrap_or_else(|| panic!("the golden table has no column {name}"))
    }

    /// The rows of each source file, in order.
    fn by_source(&self) -> BTreeMap<&str, Vec<&[String]>> {
        let source = self.column("source");
        let mut rows: BTreeMap<&str, Vec<&[String]>> = BTreeMap::new();
        for row in &self.rows {
            rows.entry(&row[source]).or_default().push(row);
        }
        rows
    }
}

fn golden_residues() -> Table {
    let file = File::open(repository("tests/oracles/residues.tsv.gz")).unwrap();
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    Table::parse(&text)
}

fn samples() -> Vec<(String, Structure)> {
    let mut files: Vec<_> = fs::read_dir(repository("samples"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut reader = Reader::new(ReadOptions::default());
    let is_structure = |file: &&PathBuf| file.extension().is_some_and(|e| e != "md");
    let first_model = |file: &PathBuf| {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let mut models = reader
            .read_path(file)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, models.swap_remove(0))
    };
    files.iter().filter(is_structure).map(first_model).collect()
}

/// The features that the golden tables have.
fn features() -> FeatureConfig {
    let mut features = FeatureConfig::default();
    features.sheets.keep = true;
    features
}

fn compute(samples: &[(String, Structure)]) -> Vec<FeatureTable> {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let workload = Features::new(features()).unwrap();
    let mut config = EngineConfig::new(Features::capacity(2048));
    config.buckets.push(Features::capacity(32_768));
    let mut engine = Engine::new(workload, &[backend], pool, &config).unwrap();
    tables::tables(&mut engine, samples.iter().map(|(_, structure)| structure))
}

/// A column's values as the golden tables write them; empty is null.
fn texts(kind: ColumnKind, column: Column<'_>, structure: &Structure) -> Vec<String> {
    let count = |&value: &i32| match kind {
        _ if value == NULL_COUNT => String::new(),
        ColumnKind::Text(texts) => texts[value as usize].to_owned(),
        // Golden tables name chains by label, and those with residues only.
        ColumnKind::Chain => match structure.row_chains().get(value as usize) {
            Some(chain) => chain
                .label_asym_id
                .as_ref()
                .unwrap_or(&chain.auth_asym_id)
                .to_string(),
            None => String::new(),
        },
        _ => value.to_string(),
    };
    let real = |&value: &f32| {
        if value.is_nan() {
            String::new()
        } else {
            value.to_string()
        }
    };
    match column {
        Column::Count(values) => values.iter().map(count).collect(),
        Column::Real(values) => values.iter().map(real).collect(),
    }
}

/// Whether a text is close enough to the golden one: as a number, within the column's limits for
/// references.
fn is_close(decl: &ColumnDecl, found: &str, expected: &str) -> bool {
    let (Ok(found), Ok(expected)) = (found.parse::<f64>(), expected.parse::<f64>()) else {
        return found == expected;
    };
    let mut error = (found - expected).abs();
    if decl.unit == "degrees" {
        error = error.min(360.0 - error);
    }
    let limit = |limit: f32| f64::from(limit);
    let Tolerance {
        absolute, relative, ..
    } = decl.reference;
    error <= limit(absolute).max(limit(relative) * expected.abs())
}

/// Rows of a column over all samples, those that differ, and the first of them.
#[derive(Default)]
struct Tally {
    rows: usize,
    wrong: usize,
    /// The number of rows per thousand that may differ.
    exceptions: usize,
    first: String,
}

impl Tally {
    /// Compares one sample's column with the golden column.
    fn compare(&mut self, source: &str, decl: &ColumnDecl, found: &[String], expected: &[&str]) {
        let name = &decl.name;
        assert_eq!(found.len(), expected.len(), "{source}: rows of {name}");
        self.exceptions = decl.reference.rows_per_thousand as usize;
        self.rows += found.len();
        for (row, (found, expected)) in found.iter().zip(expected).enumerate() {
            if !is_close(decl, found, expected) {
                if self.wrong == 0 {
                    self.first = format!("{source}, row {row}: {found:?}, not {expected:?}");
                }
                self.wrong += 1;
            }
        }
    }
}

#[test]
fn the_samples_match_the_golden_tables() {
    let samples = samples();
    let computed = compute(&samples);
    let config = features();
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    let golden = [
        (TableName::Residues, golden_residues()),
        (TableName::Chains, Table::read("chains.tsv")),
        (TableName::Structures, Table::read("structures.tsv")),
    ];
    for (table, golden) in &golden {
        let rows = golden.by_source();
        let decls = config.columns(*table);
        let names = decls.iter().map(|decl| decl.name.as_str());
        let known: Vec<&str> = names.filter(|name| !UNCHECKED.contains(name)).collect();
        for ((source, structure), features) in samples.iter().zip(&computed) {
            let rows_of_structure = rows.get(source.as_str()).map_or(&[][..], Vec::as_slice);
            for (decl, column) in decls.iter().zip(features.columns(*table)) {
                if !known.contains(&decl.name.as_str()) {
                    continue;
                }
                let mut found = texts(decl.kind, column, structure);
                if *table == TableName::Chains {
                    found = chains_with_rows(structure)
                        .map(|chain| found[chain].clone())
                        .collect();
                }
                let column = golden.column(&decl.name);
                let mut expected: Vec<&str> = rows_of_structure
                    .iter()
                    .map(|row| row[column].as_str())
                    .collect();
                if decl.name.starts_with("hb_") && !decl.name.ends_with("_bonds") {
                    leave_out_weak_bonds(
                        golden,
                        &decl.name,
                        rows_of_structure,
                        &mut found,
                        &mut expected,
                    );
                }
                let tally = tallies.entry(decl.name.clone()).or_default();
                tally.compare(source, decl, &found, &expected);
            }
        }
    }
    for (name, tally) in tallies {
        assert!(tally.rows > 0, "{name} was compared");
        assert!(
            tally.wrong * 1000 <= tally.exceptions * tally.rows,
            "{name}: {} of {} differ, the first {}",
            tally.wrong,
            tally.rows,
            tally.first
        );
    }
}

/// Leaves out pairs whose energy is too weak for a bond: two may have the same energy to 0.001
/// kcal/mol, and one may round to 0.
fn leave_out_weak_bonds(
    golden: &Table,
    name: &str,
    rows: &[&[String]],
    found: &mut [String],
    expected: &mut [&str],
) {
    let bond = name.trim_end_matches("_energy");
    let energy = golden.column(&format!("{bond}_energy"));
    for ((row, found), expected) in rows.iter().zip(found).zip(expected) {
        if row[energy].parse::<f64>().is_ok_and(|energy| energy > -0.5) {
            found.clear();
            *expected = "";
        }
    }
}

/// Chains with residues, in the order of their first residues.
fn chains_with_rows(structure: &Structure) -> impl Iterator<Item = usize> {
    let mut seen = Vec::new();
    for residue in &structure.residues {
        if !seen.contains(&(residue.chain as usize)) {
            seen.push(residue.chain as usize);
        }
    }
    seen.into_iter()
}
