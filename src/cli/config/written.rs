//! The config as written: every key with its value and where it stands.

use super::super::names::shown;
use super::suggest::nearest;
use crate::error::{Context, Error, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// A value of any type that TOML has.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Integer(i64),
    Real(f64),
    Flag(bool),
    Text(String),
    List(Vec<Value>),
    /// A type that no key takes, by its name.
    Other(&'static str),
}

impl Value {
    /// The type as error messages name it.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Value::Integer(_) => "an integer",
            Value::Real(_) => "a number",
            Value::Flag(_) => "true or false",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Other(name) => name,
        }
    }
}

/// Where a value stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// A file and its line, from 1.
    Line(Arc<Path>, usize),
    /// A command line option, as the user knows it.
    Option(String),
}

impl Origin {
    /// The folder that relative paths written here start from.
    pub(super) fn folder(&self) -> &Path {
        match self {
            Origin::Line(file, _) => file.parent().unwrap_or(Path::new("")),
            Origin::Option(_) => Path::new(""),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Line(file, line) => write!(f, "{}:{line}", shown(file)),
            Origin::Option(option) => f.write_str(option),
        }
    }
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// All keys of a config file and of the options that override it. Keys of
/// tables are dotted: `batch.residues`.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(super) entries: BTreeMap<String, Entry>,
    /// Tables that the file opens, so that an unknown empty one is seen too.
    pub(super) tables: Vec<(String, Origin)>,
    /// Whether the file may name code to run.
    pub(super) trusts_file: bool,
}

impl Written {
    /// Reads a config file.
    ///
    /// # Errors
    /// The file cannot be read, or it is no TOML; the line is named.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| Error::config(error.to_string()).fix("give the path of a TOML file"))
            .within(|| shown(file))?;
        Self::parse(&text, file)
    }

    /// Reads the text of a config file called `file`.
    ///
    /// # Errors
    /// The text is no TOML, or it has a key twice; the line is named.
    pub(super) fn parse(text: &str, file: &Path) -> Result<Self> {
        let file: Arc<Path> = Arc::from(file);
        let line_of = |offset: usize| {
            let before = &text.as_bytes()[..offset.min(text.len())];
            before.iter().filter(|&&byte| byte == b'\n').count() + 1
        };
        let table = DeTable::parse(text).map_err(|error| {
            let span = error.span().unwrap_or_default();
            let origin = Origin::Line(Arc::clone(&file), line_of(span.start));
            let near = text.get(span).map(str::trim).unwrap_or_default();
            let near = if near.is_empty() || near.contains('\n') {
                String::new()
            } else {
                format!(": `{near}`")
            };
            Error::config(format!("{}{near}", error.message().trim())).within(origin.to_string())
        })?;
        let mut written = Written::default();
        let origin = |offset| Origin::Line(Arc::clone(&file), line_of(offset));
        written.take_table("", table.get_ref(), &origin);
        Ok(written)
    }

    fn take_table(&mut self, prefix: &str, table: &DeTable<'_>, origin: &dyn Fn(usize) -> Origin) {
        for (name, value) in table {
            let key = format!("{prefix}{}", name.get_ref());
            let origin_here = origin(name.span().start);
            if let DeValue::Table(inner) = value.get_ref() {
                self.tables.push((key.clone(), origin_here));
                self.take_table(&format!("{key}."), inner, origin);
            } else {
                let entry = Entry {
                    value: value_of(value.get_ref()),
                    origin: origin_here,
                };
                self.entries.insert(key, entry);
            }
        }
    }

    fn set(&mut self, option: &str, key: &str, value: Value) {
        let origin = Origin::Option(option.to_owned());
        self.entries.insert(key.to_owned(), Entry { value, origin });
    }

    /// Sets `key` to what a command line option gives, over what the file says.
    pub(crate) fn set_text(&mut self, option: &str, key: &str, text: Option<String>) {
        if let Some(text) = text {
            self.set(option, key, Value::Text(text));
        }
    }

    /// [`Written::set_text`] for an integer.
    pub(crate) fn set_integer(&mut self, option: &str, key: &str, integer: Option<i64>) {
        if let Some(integer) = integer {
            self.set(option, key, Value::Integer(integer));
        }
    }

    /// [`Written::set_text`] for true; false leaves the key alone.
    pub(crate) fn set_true(&mut self, option: &str, key: &str, flag: bool) {
        if flag {
            self.set(option, key, Value::Flag(true));
        }
    }

    /// [`Written::set_text`] for a list, which is not given where it is empty.
    pub(crate) fn set_list(&mut self, option: &str, key: &str, texts: Vec<String>) {
        if !texts.is_empty() {
            let texts = texts.into_iter().map(Value::Text).collect();
            self.set(option, key, Value::List(texts));
        }
    }

    /// Lets the file name code to run, as `--trust-config` says.
    pub(crate) fn trust_file(&mut self, trusts: bool) {
        self.trusts_file = trusts;
    }

    /// Whether the file or an option sets `key`.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// Sets what `--set key=value` says. A value that is no TOML is a string, so
    /// that `--set mode=stream` needs no quotes.
    ///
    /// # Errors
    /// There is no `=`.
    pub(crate) fn set_assignment(&mut self, assignment: &str) -> Result<()> {
        let option = format!("--set {assignment}");
        let Some((key, text)) = assignment.split_once('=') else {
            return Err(Error::config("no `=` between key and value")
                .fix("write --set batch.residues=8192")
                .within(option));
        };
        let (key, text) = (key.trim(), text.trim());
        let value = match DeValue::parse(text) {
            Ok(value) => value_of(value.get_ref()),
            Err(_) => Value::Text(text.to_owned()),
        };
        self.set(&option, key, value);
        Ok(())
    }

    /// What is wrong with the keys that are not among `known`.
    pub(super) fn unknown(&self, known: &[&'static str]) -> Vec<(Origin, String)> {
        let is_table = |name: &str| {
            known
                .iter()
                .any(|key| key.strip_prefix(name).is_some_and(|k| k.starts_with('.')))
        };
        let keys = self.entries.iter().filter_map(|(key, entry)| {
            if known.contains(&key.as_str()) {
                return None;
            }
            let text = if is_table(key) {
                format!("`{key}` is a table; write its keys as `{key}.name = value`")
            } else {
                unknown_text("key", key, nearest(key, known))
            };
            Some((entry.origin.clone(), text))
        });
        let tables = self.tables.iter().filter_map(|(name, origin)| {
            let inner = format!("{name}.");
            let has_keys = self.entries.keys().any(|key| key.starts_with(&inner));
            if known.contains(&name.as_str()) {
                let text = format!("`{name}` is a key and not a table");
                return Some((origin.clone(), text));
            }
            if has_keys || is_table(name) {
                return None;
            }
            let tables: Vec<&str> = known
                .iter()
                .filter_map(|key| Some(key.rsplit_once('.')?.0))
                .collect();
            let text = unknown_text("table", name, nearest(name, &tables));
            Some((origin.clone(), text))
        });
        keys.chain(tables).collect()
    }
}

/// `unknown key `x` (did you mean `y`?)`.
pub(super) fn unknown_text(what: &str, name: &str, near: Option<&str>) -> String {
    match near {
        Some(near) => format!("unknown {what} `{name}` (did you mean `{near}`?)"),
        None => format!("unknown {what} `{name}`"),
    }
}

fn value_of(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map_or(Value::Other("an integer beyond 64 bits"), Value::Integer),
        DeValue::Float(real) => real
            .as_str()
            .parse()
            .map_or(Value::Other("no number"), Value::Real),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Array(list) => {
            Value::List(list.iter().map(|item| value_of(item.get_ref())).collect())
        }
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Table(_) => Value::Other("a table"),
    }
}

/// `path` as written at `origin`.
pub(super) fn from_folder(origin: &Origin, path: impl AsRef<Path>) -> PathBuf {
    origin.folder().join(path)
}
