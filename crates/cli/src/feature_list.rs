//! The features that a run computes, as text for a terminal, as JSON, and as Markdown for
//! `docs/config/feature-reference.md`: `tapeloop features`, and `describe` of the Python package.
//!
//! Writing to a string cannot fail, so what `write!` returns is ignored.

use super::config::{Config, OutputTable, RawConfig, names_in, range_text, setting_json};
use serde_json::{Value as Json, json};
use std::fmt::Write;
use tapeloop::error::Result;
use tapeloop::features::{ColumnDecl, ColumnKind, Cutoff, FeatureConfig, FeatureName, Setting};
use tapeloop::structure::Radii;

/// Maximum width of a line, in characters: that of a terminal.
const WIDTH: usize = 80;

const NO_COLUMNS: &str = "None with these settings";

/// Indentation of a feature's lines, and the width of their labels.
const INDENT: usize = 4;
const LABEL: usize = 10;

/// Which features are listed, and how as text.
pub enum Listing {
    /// A line for each feature.
    Index,
    /// The chosen features; these names chose them, some of which may be of columns.
    Details(Vec<String>),
}

impl Listing {
    /// The names that chose the features.
    fn names(&self) -> Vec<&str> {
        match self {
            Listing::Index => Vec::new(),
            Listing::Details(names) => names.iter().flat_map(|list| names_in(list)).collect(),
        }
    }
}

/// The features that `settings` choose, as text and as JSON: `{"features": ["sasa"], "sasa.points": 256}`.
/// Without the setting `features` the text is the index of all.
///
/// # Errors
/// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) lists all settings that are wrong.
pub fn of_settings(settings: &serde_json::Map<String, Json>) -> Result<(String, Json)> {
    let config = Config::resolve(RawConfig::of_settings(settings)?)?;
    let names = |names: &Json| match names {
        Json::Array(names) => names
            .iter()
            .filter_map(Json::as_str)
            .map(str::to_owned)
            .collect(),
        name => name.as_str().map(str::to_owned).into_iter().collect(),
    };
    let listing = match settings.get("features").filter(|names| !names.is_null()) {
        Some(list) => Listing::Details(names(list)),
        None => Listing::Index,
    };
    Ok((text(&config, &listing), json(&config, &listing)))
}

/// The listing of `config` as text.
pub fn text(config: &Config, listing: &Listing) -> String {
    match listing {
        Listing::Index => index(config),
        Listing::Details(_) => details(config, &listing.names()),
    }
}

/// The features of `config`, each with its summary, then the presets.
fn index(config: &Config) -> String {
    let features = &config.features;
    let mut text = String::new();
    let names = FeatureName::ALL.iter().map(|feature| feature.name());
    let width = names.map(str::len).max().unwrap_or(0);
    for &feature in &features.features {
        let start = format!("{:width$}  ", feature.name());
        let hang = start.len();
        wrap(&mut text, start, hang, features.about(feature).summary);
    }
    text.push_str("\nPresets:\n");
    for (preset, members) in FeatureName::PRESETS {
        let members = match members.len() {
            count if count == FeatureName::ALL.len() => "every feature".to_owned(),
            _ => joined_names(members),
        };
        let _ = writeln!(text, "{preset:width$}  {members}");
    }
    text
}

/// The chosen features of `config`: name, meaning, settings and columns of each.
fn details(config: &Config, names: &[&str]) -> String {
    let features = &config.features;
    let mut text = String::new();
    for &feature in &features.features {
        let columns = shown_columns(features, feature, names);
        describe(&mut text, features, feature, &columns);
        text.push('\n');
    }
    text.push_str(
        "docs/config/columns.md lists the columns that name residues, chains and structures.\n",
    );
    text
}

/// The columns of a feature. One that was chosen by the names of columns, which `names` has, shows these
/// columns alone.
fn shown_columns(
    features: &FeatureConfig,
    feature: FeatureName,
    names: &[&str],
) -> Vec<ColumnDecl> {
    let is_preset = |name: &&str| {
        FeatureName::PRESETS
            .iter()
            .any(|(preset, _)| preset == name)
    };
    let is_whole = names.contains(&feature.name()) || names.iter().any(is_preset);
    let is_shown = |column: &ColumnDecl| is_whole || names.contains(&&*column.name);
    let mut columns = features.columns_of(feature);
    if columns.iter().any(is_shown) {
        columns.retain(is_shown);
    }
    columns
}

fn joined_names(features: &[FeatureName]) -> String {
    let names: Vec<&str> = features.iter().map(|feature| feature.name()).collect();
    names.join(", ")
}

/// Appends the description of a feature for the terminal.
fn describe(
    text: &mut String,
    features: &FeatureConfig,
    name: FeatureName,
    columns: &[ColumnDecl],
) {
    let about = features.about(name);
    text.push_str(name.name());
    text.push('\n');
    wrap(text, " ".repeat(INDENT), INDENT, about.summary);
    labelled(text, "formula", about.formula);
    if !about.source.is_empty() {
        labelled(text, "source", about.source);
    }
    if !about.needs.is_empty() {
        labelled(text, "needs", &about.needs.join(", "));
    }
    let settings = features.settings(name);
    let key_width = settings.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    for (index, (key, setting)) in settings.iter().enumerate() {
        let line = format!(
            "{key:<key_width$} = {} ({})",
            value(setting),
            range(setting)
        );
        labelled(text, if index == 0 { "settings" } else { "" }, &line);
    }
    if columns.is_empty() {
        labelled(text, "columns", NO_COLUMNS);
    }
    let longest = |length: fn(&ColumnDecl) -> usize| columns.iter().map(length).max().unwrap_or(0);
    let (name_width, unit_width) = (longest(|c| c.name.len()), longest(|c| unit(c).len()));
    for of_table in columns.chunk_by(|a, b| a.table == b.table) {
        labelled(
            text,
            "columns",
            &format!("of {}:", of_table[0].table.decl().name),
        );
        for column in of_table {
            let (kind, unit) = (type_name(column.kind), unit(column));
            let start = format!(
                "{:INDENT$}{:LABEL$}{:<name_width$}  {kind:<7}  {unit:<unit_width$}  ",
                "", "", column.name
            );
            let hang = start.len();
            wrap(text, start, hang, &meaning(column));
        }
    }
}

/// Appends a line with a label and an indented text.
fn labelled(text: &mut String, label: &str, list: &str) {
    let start = format!("{:INDENT$}{label:<LABEL$}", "");
    wrap(text, start, INDENT + LABEL, list);
}

/// Appends `start` and then `words`, wrapped at 80 characters. Lines after the first are indented by
/// `hang`.
pub fn wrap(text: &mut String, start: String, hang: usize, words: &str) {
    let mut line = start;
    let mut is_fresh = true;
    for word in words.split_whitespace() {
        let taken = line.chars().count() + usize::from(!is_fresh) + word.chars().count();
        if !is_fresh && taken > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(hang);
            is_fresh = true;
        }
        if !is_fresh {
            line.push(' ');
        }
        line.push_str(word);
        is_fresh = false;
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

/// A setting's value as TOML has it.
fn value(setting: &Setting) -> String {
    match setting_json(setting) {
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(Json::to_string).collect();
            format!("[{}]", items.join(", "))
        }
        single => single.to_string(),
    }
}

/// The values that a setting takes, in words.
fn range(setting: &Setting) -> String {
    match setting {
        Setting::Length(_, max) => format!("A, 0.001 to {max}"),
        Setting::Lengths(_) => format!("a list, in A, each 0.001 to {}", Cutoff::MAX_ANGSTROM),
        Setting::Integer(_, range) => range_text(range),
        Setting::Flag(_) => "true or false".to_owned(),
        Setting::Choice(_, words) => either_of(words),
        Setting::Radii(_) => format!("{} or a file", either_of(&Radii::NAMES)),
        Setting::Components(_) => "\"none\" or a file".to_owned(),
        Setting::Texts(_) => "a list of strings".to_owned(),
    }
}

fn either_of(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    words.join(" or ")
}

/// The type of a column in Arrow's terms.
fn type_name(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Count | ColumnKind::LigandNumber => "int32",
        ColumnKind::Real => "float32",
        ColumnKind::Half => "float16",
        ColumnKind::Flag => "bool",
        ColumnKind::Chain | ColumnKind::LigandComponent | ColumnKind::Text(_) => "string",
    }
}

fn unit(column: &ColumnDecl) -> &'static str {
    if column.unit.is_empty() {
        "-"
    } else {
        column.unit
    }
}

fn meaning(column: &ColumnDecl) -> String {
    match column.kind {
        ColumnKind::Text(texts) => format!("{} One of {}.", column.about, texts.join(" ")),
        _ => column.about.clone(),
    }
}

/// The listing of `config` as JSON: a list of features, each with its settings and columns.
pub fn json(config: &Config, listing: &Listing) -> Json {
    let features = &config.features;
    let names = listing.names();
    let of_column = |column: &ColumnDecl| {
        json!({
            "name": column.name,
            "table": column.table.decl().name,
            "type": type_name(column.kind),
            "unit": column.unit,
            "description": meaning(column),
        })
    };
    let of_feature = |&name: &FeatureName| {
        let about = features.about(name);
        let columns = shown_columns(features, name, &names);
        let columns: Vec<Json> = columns.iter().map(of_column).collect();
        let settings: serde_json::Map<String, Json> = features
            .settings(name)
            .iter()
            .map(|(key, setting)| ((*key).to_owned(), setting_json(setting)))
            .collect();
        json!({
            "name": name.name(),
            "summary": about.summary,
            "formula": about.formula,
            "source": about.source,
            "needs": about.needs,
            "settings": settings,
            "columns": columns,
        })
    };
    features.features.iter().map(of_feature).collect()
}

/// The features of `config` as the generated part of `docs/config/feature-reference.md`.
pub fn markdown(config: &Config) -> String {
    let features = &config.features;
    let mut text = String::from("| preset | features |\n|---|---|\n");
    for (preset, features) in FeatureName::PRESETS {
        let features: Vec<String> = features
            .iter()
            .map(|name| format!("`{}`", name.name()))
            .collect();
        let _ = writeln!(text, "| `\"{preset}\"` | {} |", features.join(", "));
    }
    text.push_str("\n| table | a row for each | when |\n|---|---|---|\n");
    for table in OutputTable::ALL {
        let when = match table.condition() {
            Some(condition) => format!("if {condition}"),
            None => "always".to_owned(),
        };
        let _ = writeln!(text, "| `{}` | {} | {when} |", table.name(), table.about());
    }
    for &name in &features.features {
        markdown_of(&mut text, features, name);
    }
    text
}

/// Appends the section of a feature to the reference in Markdown.
fn markdown_of(text: &mut String, features: &FeatureConfig, name: FeatureName) {
    let about = features.about(name);
    let _ = writeln!(text, "\n## `{}`\n\n{}\n\n```", name.name(), about.summary);
    wrap(text, String::new(), 4, about.formula);
    text.push_str("```\n");
    if !about.source.is_empty() {
        let _ = writeln!(text, "\nSource: {}.", about.source.trim_end_matches('.'));
    }
    if !about.needs.is_empty() {
        let _ = writeln!(text, "\nComputed with {}.", about.needs.join(", "));
    }
    let settings = features.settings(name);
    if !settings.is_empty() {
        text.push_str("\n| key | default | values |\n|---|---|---|\n");
    }
    for (key, setting) in settings {
        let (value, range) = (value(&setting), cell(&range(&setting)));
        let _ = writeln!(text, "| `{key}` | `{value}` | {range} |");
    }
    let columns = features.columns_of(name);
    if columns.is_empty() {
        let _ = writeln!(text, "\n{NO_COLUMNS}.");
        return;
    }
    text.push_str("\n| column | table | type | unit | what |\n|---|---|---|---|---|\n");
    for column in columns {
        let _ = writeln!(
            text,
            "| `{}` | `{}` | {} | {} | {} |",
            column.name,
            column.table.decl().name,
            type_name(column.kind),
            unit(&column),
            cell(&meaning(&column))
        );
    }
}

/// Escapes text for a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
