//! The config before it is resolved: every key that is set, its value, and where it is set.

use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tapeloop::error::{Context, Error, Result};
use tapeloop_error::internal::excerpt;
use tapeloop_files::shown as shown_path;
use tapeloop_files::{did_you_mean, nearest};
use tapeloop_files::{open_stream, read_text};
use toml::Value;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// The most problems of a config that a message lists.
pub(super) const PROBLEMS_MAX: usize = 50;

/// The largest config file in bytes. It may list inputs.
const CONFIG_BYTES_MAX: u64 = 1 << 24;

/// What messages name as the place of a setting of a program that embeds this one.
const SETTINGS: &str = "settings";

/// Where a value is set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// A file and its line, from 1.
    Line(Arc<Path>, usize),
    /// A command line option, as the user writes it.
    Option(String),
}

impl Origin {
    /// Resolves `path` against the folder of the config file. A path on the command line stays.
    pub(super) fn join(&self, path: impl AsRef<Path>) -> PathBuf {
        match self {
            Origin::Line(file, _) => file.parent().unwrap_or(Path::new("")).join(path),
            Origin::Option(_) => path.as_ref().to_owned(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Line(file, line) => write!(f, "{}:{line}", shown_path(file)),
            Origin::Option(option) => f.write_str(option),
        }
    }
}

/// The names in a list that commas and white space separate.
pub fn names_in(list: &str) -> impl Iterator<Item = &str> {
    list.split(|separator: char| separator == ',' || separator.is_whitespace())
        .filter(|name| !name.is_empty())
}

/// A value and where it is set.
#[derive(Clone, Debug)]
pub(super) struct RawEntry {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// All keys that a config file sets, and the options that override it. Keys in tables are
/// dotted: `batch.residues`.
#[derive(Debug, Default)]
pub struct RawConfig {
    pub(super) entries: BTreeMap<String, RawEntry>,
    /// Tables in the file; an unknown table is reported although it is empty.
    tables: Vec<(String, Origin)>,
    /// Whether the file may name code to run: `--trust-config`.
    pub trusts_file: bool,
}

impl RawConfig {
    /// Reads a config file; without one no key is set.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) if the file cannot be read, or is not
    /// valid TOML; the message names the line.
    pub fn read(file: Option<&Path>) -> Result<Self> {
        let Some(file) = file else {
            return Ok(RawConfig::default());
        };
        let text = open_stream(file)
            .and_then(|stream| read_text(stream, CONFIG_BYTES_MAX))
            .map_err(|error| Error::config(error.to_string()).fix("give the path of a TOML file"))
            .within(|| shown_path(file))?;
        Self::parse(&text, file)
    }

    /// Parses the text of the config file `file`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) if the text is not valid TOML, sets a key
    /// twice, or has a number that 64 bits do not hold; the message names the line.
    pub fn parse(text: &str, file: &Path) -> Result<Self> {
        let file: Arc<Path> = Arc::from(file);
        let breaks: Vec<usize> = text.match_indices('\n').map(|(offset, _)| offset).collect();
        let origin = |offset: usize| {
            let line = breaks.partition_point(|&end| end < offset) + 1;
            Origin::Line(Arc::clone(&file), line)
        };
        let invalid = |error: toml::de::Error| {
            let span = error.span().unwrap_or_default();
            let place = origin(span.start).to_string();
            let near = text.get(span).map(str::trim).unwrap_or_default();
            let near = match near {
                "" => String::new(),
                near if near.contains('\n') => String::new(),
                near => format!(": `{}`", excerpt(near)),
            };
            Error::config(format!("{}{near}", error.message().trim())).within(place)
        };
        let table = DeTable::parse(text).map_err(invalid)?;
        let mut raw = RawConfig::default();
        raw.insert("", table.get_ref(), &origin, &invalid)?;
        Ok(raw)
    }

    /// Inserts the entries of a table, and those of tables in it under their keys with dots.
    ///
    /// # Errors
    /// Those of [`Self::insert_new`], and what `invalid` makes of a number that 64 bits do not hold.
    fn insert(
        &mut self,
        prefix: &str,
        table: &DeTable<'_>,
        origin: &dyn Fn(usize) -> Origin,
        invalid: &dyn Fn(toml::de::Error) -> Error,
    ) -> Result<()> {
        for (name, value) in table {
            let key = format!("{prefix}{}", name.get_ref());
            let origin_here = origin(name.span().start);
            if let DeValue::Table(inner) = value.get_ref() {
                self.tables.push((key.clone(), origin_here));
                self.insert(&format!("{key}."), inner, origin, invalid)?;
            } else {
                let value = Value::deserialize(ValueDeserializer::from(value.clone()));
                self.insert_new(key, value.map_err(invalid)?, origin_here)?;
            }
        }
        Ok(())
    }

    /// Inserts an entry. TOML and JSON take `"sasa.points"` and `points` in `sasa` for two keys, which are one
    /// here.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) for a key that is there already.
    fn insert_new(&mut self, key: String, value: Value, origin: Origin) -> Result<()> {
        if let Some(earlier) = self.entries.get(&key) {
            // Tables are read in the order of names, so the later line may be the first to be inserted.
            let mut origins = [&earlier.origin, &origin];
            origins.sort();
            let [first, second] = origins;
            let error = Error::config(format!("`{key}` is set twice"));
            let fix = format!("leave one out; the other is in {first}");
            return Err(error.fix(fix).within(second.to_string()));
        }
        self.entries.insert(key, RawEntry { value, origin });
        Ok(())
    }

    /// Takes keys and values from the settings of a program that embeds this one: `{"sasa.points":
    /// 256}` or `{"sasa": {"points": 256}}`. A key of null is not set.
    ///
    /// # Errors
    /// A value is of no type that a config file has.
    pub fn of_settings(settings: &serde_json::Map<String, Json>) -> Result<Self> {
        let mut raw = RawConfig::default();
        raw.insert_settings("", settings)?;
        Ok(raw)
    }

    /// Inserts settings from JSON as [`Self::insert`] does those of TOML. A null leaves a key
    /// unset. An [`ErrorKind::Config`](tapeloop::ErrorKind::Config) error for a value that TOML
    /// does not have, and for a key that is set twice.
    fn insert_settings(
        &mut self,
        prefix: &str,
        settings: &serde_json::Map<String, Json>,
    ) -> Result<()> {
        for (name, value) in settings {
            let key = format!("{prefix}{name}");
            match value {
                Json::Null => {}
                Json::Object(inner) => {
                    self.tables
                        .push((key.clone(), Origin::Option(SETTINGS.to_owned())));
                    self.insert_settings(&format!("{key}."), inner)?;
                }
                value => {
                    let typed = Value::deserialize(value);
                    let typed = typed.map_err(|error| Error::config(error.to_string()));
                    let typed = typed.within(|| key.clone())?;
                    self.insert_new(key, typed, Origin::Option(SETTINGS.to_owned()))?;
                }
            }
        }
        Ok(())
    }

    /// Sets `key` to the value of a command line option, which overrides the file. An option
    /// that is not given leaves the key alone.
    pub fn set(&mut self, option: &str, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            let (value, origin) = (value.into(), Origin::Option(option.to_owned()));
            self.entries
                .insert(key.to_owned(), RawEntry { value, origin });
        }
    }

    /// [`RawConfig::set`] for an option that may be repeated; an empty list leaves the key
    /// alone.
    pub fn set_list(&mut self, option: &str, key: &str, texts: Vec<String>) {
        self.set(option, key, (!texts.is_empty()).then_some(texts));
    }

    /// Sets `key` unless the file or an option sets it. Returns whether it did.
    pub fn set_default(&mut self, key: &str, value: &str) -> bool {
        let is_free = !self.entries.contains_key(key);
        if is_free {
            self.set("default", key, Some(value));
        }
        is_free
    }

    /// Adds names to the list of `key` that it does not have, or to `default` if the key is not set.
    pub fn add_names(&mut self, option: &str, key: &str, default: &str, names: &[&str]) {
        let first = || RawEntry {
            value: Value::from(default),
            origin: Origin::Option(option.to_owned()),
        };
        let entry = self.entries.entry(key.to_owned()).or_insert_with(first);
        let mut list = match std::mem::replace(&mut entry.value, Value::Array(Vec::new())) {
            Value::Array(list) => list,
            single => vec![single],
        };
        for &name in names {
            let mut texts = list.iter().filter_map(Value::as_str);
            if !texts.any(|text| names_in(text).any(|other| other == name)) {
                list.push(Value::from(name));
            }
        }
        entry.value = Value::Array(list);
    }

    /// Forgets the value of `key`.
    pub fn remove(&mut self, key: &str) {
        self.entries.remove(key);
    }

    /// The value of `key`, if it is set and a string.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.entries.get(key)?.value.as_str()
    }

    /// Sets the key that `--set key=value` names. A value that is not TOML is a string, so
    /// `--set mode=stream` needs no quotes.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) if the assignment has no `=`.
    pub fn set_assignment(&mut self, assignment: &str) -> Result<()> {
        let option = format!("--set {}", excerpt(assignment));
        let Some((key, text)) = assignment.split_once('=') else {
            return Err(Error::config("no `=` between key and value")
                .fix(format!(
                    "write --set {}=VALUE, without a space",
                    excerpt(assignment.trim())
                ))
                .within(option));
        };
        let (key, text) = (key.trim(), text.trim());
        let value = ValueDeserializer::parse(text).and_then(Value::deserialize);
        let value = value.unwrap_or_else(|_| Value::from(text));
        self.set(&option, key, Some(value));
        Ok(())
    }

    /// The keys that are set, each with where.
    pub fn keys(&self) -> impl Iterator<Item = (&str, String)> {
        let entries = self.entries.iter();
        entries.map(|(key, entry)| (key.as_str(), entry.origin.to_string()))
    }

    /// A message for each of the first keys and tables that are not among `known`: one more of each
    /// than a message lists, which shows that there are more, as each takes a search for a similar
    /// name.
    pub(super) fn unknown(&self, known: &[&'static str]) -> Vec<(Origin, String)> {
        let holds_keys = |table: &str| {
            let is_inside =
                |key: &&str| key.strip_prefix(table).is_some_and(|k| k.starts_with('.'));
            known.iter().any(is_inside)
        };
        let keys = self.entries.iter();
        let keys = keys.filter(|(key, _)| !known.contains(&key.as_str()));
        let mut keys: Vec<_> = keys.collect();
        keys.sort_by_key(|(_, entry)| &entry.origin);
        let keys = keys.into_iter().take(PROBLEMS_MAX + 1);
        let keys = keys.map(|(key, entry)| {
            let shown = excerpt(key);
            let keys_of = |table: &str| -> Vec<&str> {
                let start = format!("{table}.");
                let keys = known.iter().copied();
                keys.filter(|known| known.starts_with(&start)).collect()
            };
            let text = if holds_keys(key) {
                let others: Vec<&str> = known
                    .iter()
                    .copied()
                    .filter(|key| !key.contains('.'))
                    .collect();
                format!(
                    "`{shown}` is a table, with the keys {}{}",
                    keys_of(key).join(", "),
                    did_you_mean(key, &others)
                )
            } else if let Some((table, name)) = key.rsplit_once('.')
                && let of_table = keys_of(table)
                && !of_table.is_empty()
            {
                // The table's name is right, so it makes no other key similar.
                let names: Vec<&str> = of_table.iter().map(|key| &key[table.len() + 1..]).collect();
                match nearest(name, &names) {
                    Some(near) => format!("unknown key `{shown}` (did you mean `{table}.{near}`?)"),
                    None => format!(
                        "unknown key `{shown}`; the table has the keys {}",
                        of_table.join(", ")
                    ),
                }
            } else {
                format!("unknown key `{shown}`{}", did_you_mean(key, known))
            };
            (entry.origin.clone(), text)
        });
        let is_start_of_key = |start: &str| {
            let mut from_here = self.entries.range(start.to_owned()..);
            from_here
                .next()
                .is_some_and(|(key, _)| key.starts_with(start))
        };
        let tables = self.tables.iter().filter_map(|(name, origin)| {
            let shown = excerpt(name);
            let start = format!("{name}.");
            let text = if known.contains(&name.as_str()) {
                format!("`{shown}` is a key and not a table")
            } else if holds_keys(name) || is_start_of_key(&start) {
                return None;
            } else {
                let tables = known.iter().filter_map(|key| Some(key.rsplit_once('.')?.0));
                let hint = did_you_mean(name, &tables.collect::<Vec<_>>());
                format!("unknown table `{shown}`{hint}")
            };
            Some((origin.clone(), text))
        });
        keys.chain(tables.take(PROBLEMS_MAX + 1)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_table_and_the_same_with_its_dot_are_refused_together() {
        let text = "\"sasa.points\" = 64\n[sasa]\npoints = 128";
        let error = RawConfig::parse(text, Path::new("run.toml")).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("run.toml:3: `sasa.points`"), "{text}");
        assert!(text.contains("run.toml:1"), "{text}");
        let settings = serde_json::json!({"sasa": {"points": 64}, "sasa.points": 128});
        let error = RawConfig::of_settings(settings.as_object().unwrap()).unwrap_err();
        assert!(error.to_string().contains("`sasa.points`"), "{error}");
    }
}
