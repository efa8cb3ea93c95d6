//! The key `kernel`: kernels of the user's own.

use super::super::trusted_code;
use super::dots::resolve_dots;
use super::resolver::Resolver;
use super::setting_values::SettingValues;
use super::text_file::read_text;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::path::Path;
use tapeloop::features::{OwnColumn, OwnKernel, OwnKernelSettings, TableName, Threads};
use tapeloop::record::BUFFERS_MAX;
use tapeloop_files::text_of;
use toml::Value;

const KEY: &str = "kernel";

/// The tables that a kernel's columns can be in, as `per` names them.
const PER: [(&str, TableName); 3] = [
    ("residue", TableName::Residues),
    ("chain", TableName::Chains),
    ("structure", TableName::Structures),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenKernel {
    file: String,
    entry: Option<String>,
    threads: Option<String>,
    #[serde(default)]
    values: BTreeMap<String, f64>,
    #[serde(default)]
    columns: BTreeMap<String, GivenColumn>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenColumn {
    per: Option<String>,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    about: String,
}

/// Resolves the tables `[[kernel]]`, and reads their files.
pub(super) fn resolve_kernels(keys: &mut Resolver) -> Vec<OwnKernel> {
    let (kernels, records) = read_kernels(keys);
    keys.record(KEY, json!(records));
    kernels
}

/// The kernels, and the tables that give them.
fn read_kernels(keys: &mut Resolver) -> (Vec<OwnKernel>, Vec<Json>) {
    keys.takes(KEY, SettingValues::Tables);
    let none = (Vec::new(), Vec::new());
    let Some(entry) = keys.entry(KEY) else {
        return none;
    };
    let Value::Array(tables) = entry.value else {
        keys.problem(KEY, "must be a list of tables: write [[kernel]]");
        return none;
    };
    if !keys.is_trusted(&entry.origin) && !tables.is_empty() {
        keys.problem(
            KEY,
            "names code to run, and the config file is not trusted (fix: give --trust-config if \
             you trust the file)",
        );
        return none;
    }
    // Each takes a buffer for each of its columns.
    if tables.len() > BUFFERS_MAX {
        let message = format!(
            "has {} kernels, and a run has at most {BUFFERS_MAX}",
            tables.len()
        );
        keys.problem(KEY, message);
        return none;
    }
    let mut kernels = Vec::new();
    let mut records = Vec::new();
    for table in tables {
        let given: GivenKernel = match table.try_into() {
            Ok(given) => given,
            Err(error) => {
                keys.problem(KEY, error.to_string().trim());
                continue;
            }
        };
        let path = resolve_dots(entry.origin.join(&given.file));
        match read_kernel(&path, given) {
            Ok(kernel) => {
                records.push(record_of(&kernel));
                kernels.push(kernel);
            }
            Err(problem) => keys.problem(KEY, problem),
        }
    }
    (kernels, records)
}

/// Reads the text of a user's kernel, and checks its settings. The error is a text for
/// [`Resolver::problem`].
fn read_kernel(path: &Path, given: GivenKernel) -> Result<OwnKernel, String> {
    let text = read_text(path)?;
    let stem = path.file_stem().map(|stem| text_of(Path::new(stem)));
    let threads = named("threads", given.threads.as_deref(), &Threads::NAMES)?;
    let threads = threads.unwrap_or_default();
    let mut columns = BTreeMap::new();
    for (name, column) in given.columns {
        let GivenColumn { per, unit, about } = column;
        let table = named("per", per.as_deref(), &PER)?.unwrap_or(threads.table());
        columns.insert(name, OwnColumn { table, unit, about });
    }
    let settings = OwnKernelSettings {
        file: text_of(path),
        text: text.into(),
        entry: given.entry.or(stem).unwrap_or_default(),
        threads,
        values: given.values,
        columns,
    };
    trusted_code::own_kernel(settings).map_err(|error| error.to_string())
}

/// The value with this name; `None` if the key is not set.
fn named<T: Copy>(key: &str, text: Option<&str>, names: &[(&str, T)]) -> Result<Option<T>, String> {
    let Some(text) = text else { return Ok(None) };
    let found = names.iter().find(|(name, _)| *name == text);
    let names = names.iter().map(|(name, _)| format!("{name:?}"));
    match found {
        Some((_, value)) => Ok(Some(*value)),
        None => Err(format!(
            "{key} is {text:?}, and not one of {}",
            names.collect::<Vec<_>>().join(", ")
        )),
    }
}

/// The name of a value.
///
/// # Panics
/// If it is not among them.
fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    let found = names.iter().find(|(_, known)| *known == value);
    found.expect("all values have names").0
}

/// The table in the config that gives this kernel.
fn record_of(kernel: &OwnKernel) -> Json {
    let settings = kernel.settings();
    let column = |(name, column): (&String, &OwnColumn)| {
        let per = name_of(&PER, column.table);
        let value = json!({"per": per, "unit": column.unit, "about": column.about});
        (name.clone(), value)
    };
    let columns: Map<String, Json> = settings.columns.iter().map(column).collect();
    json!({
        "file": settings.file,
        "entry": settings.entry,
        "threads": name_of(&Threads::NAMES, settings.threads),
        "values": settings.values,
        "columns": columns,
    })
}
