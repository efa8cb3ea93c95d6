//! Reads typed values out of what was written, and remembers what was asked.

use super::suggest::nearest;
use super::written::{Entry, Origin, Value, Written, unknown_text};
use crate::error::{Error, Result};
use serde_json::{Value as Json, json};
use std::fmt::Display;
use std::ops::RangeInclusive;

/// Every key is asked for once, by name, with its default; so what was asked for
/// is the list of known keys, and the answers are the config as resolved.
pub(super) struct Form {
    written: Written,
    settings: Vec<(&'static str, Json)>,
    problems: Vec<(Option<Origin>, String)>,
}

impl Form {
    pub(super) fn new(written: Written) -> Self {
        Form {
            written,
            settings: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// The entry of `key`, if it is written.
    pub(super) fn entry(&self, key: &str) -> Option<Entry> {
        self.written.entries.get(key).cloned()
    }

    /// Notes the resolved value of `key`.
    pub(super) fn note(&mut self, key: &'static str, value: Json) {
        self.settings.push((key, value));
    }

    /// Notes that the value of `key` cannot be used.
    pub(super) fn problem(&mut self, key: &str, text: impl Display) {
        let origin = self
            .written
            .entries
            .get(key)
            .map(|entry| entry.origin.clone());
        self.problems.push((origin, format!("`{key}`: {text}")));
    }

    /// Notes that the value of `key` is not of the type that is wanted.
    pub(super) fn wrong_type(&mut self, key: &str, wanted: &str, value: &Value) {
        self.problem(key, format!("wants {wanted}, not {}", value.type_name()));
    }

    /// An integer of `range`.
    pub(super) fn integer(
        &mut self,
        key: &'static str,
        default: i64,
        range: RangeInclusive<i64>,
    ) -> i64 {
        let value = self.written_integer(key, range).unwrap_or(default);
        self.note(key, json!(value));
        value
    }

    /// An integer of `range` for a key without a default.
    pub(super) fn optional_integer(
        &mut self,
        key: &'static str,
        range: RangeInclusive<i64>,
    ) -> Option<i64> {
        let value = self.written_integer(key, range);
        self.note(key, json!(value));
        value
    }

    /// An integer of `range`, if one is written. The caller notes what it makes
    /// of it.
    pub(super) fn written_integer(&mut self, key: &str, range: RangeInclusive<i64>) -> Option<i64> {
        match self.entry(key)?.value {
            Value::Integer(value) if range.contains(&value) => Some(value),
            Value::Integer(value) => {
                let text = if *range.end() == i64::MAX {
                    format!("{value} is less than {}", range.start())
                } else {
                    format!("{value} is not {} to {}", range.start(), range.end())
                };
                self.problem(key, text);
                None
            }
            other => {
                self.wrong_type(key, "an integer", &other);
                None
            }
        }
    }

    /// True or false.
    pub(super) fn flag(&mut self, key: &'static str, default: bool) -> bool {
        let value = self.written_flag(key).unwrap_or(default);
        self.note(key, json!(value));
        value
    }

    /// True or false, if either is written. The caller notes what it makes of it.
    pub(super) fn written_flag(&mut self, key: &str) -> Option<bool> {
        match self.entry(key)?.value {
            Value::Flag(value) => Some(value),
            other => {
                self.wrong_type(key, "true or false", &other);
                None
            }
        }
    }

    /// One of several names; the first is the default.
    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> T {
        let (name, choice) = self.written_choice(key, choices).unwrap_or(choices[0]);
        self.note(key, json!(name));
        choice
    }

    /// One of several names, if one is written. The caller notes what it makes of
    /// it.
    pub(super) fn written_choice<T: Copy>(
        &mut self,
        key: &str,
        choices: &[(&'static str, T)],
    ) -> Option<(&'static str, T)> {
        let text = match self.entry(key)?.value {
            Value::Text(text) => text,
            // `--set assembly=1` means the name.
            Value::Integer(integer)
                if choices.iter().any(|(name, _)| *name == integer.to_string()) =>
            {
                integer.to_string()
            }
            other => {
                self.wrong_type(key, "a string", &other);
                return None;
            }
        };
        let chosen = choices.iter().find(|(name, _)| *name == text);
        if chosen.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            let quoted: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
            let hint = nearest(&text, &names)
                .map_or(String::new(), |near| format!(" (did you mean {near:?}?)"));
            let legal = quoted.join(", ");
            self.problem(key, format!("{text:?} is none of {legal}{hint}"));
        }
        chosen.copied()
    }

    /// A string for a key without a default, with where it stands. The caller
    /// notes what it makes of it.
    pub(super) fn text(&mut self, key: &'static str) -> Option<(String, Origin)> {
        let entry = self.entry(key)?;
        match entry.value {
            Value::Text(text) if !text.is_empty() => Some((text, entry.origin)),
            Value::Text(_) => {
                self.problem(key, "is empty");
                None
            }
            other => {
                self.wrong_type(key, "a string", &other);
                None
            }
        }
    }

    /// [`Form::text`] for a path to code that the program runs. A config file names one
    /// only if the user trusts the file: configs are copied and downloaded.
    pub(super) fn code_path(&mut self, key: &'static str) -> Option<(String, Origin)> {
        let (path, origin) = self.text(key)?;
        if matches!(origin, Origin::Line(..)) && !self.written.trusts_file {
            let text = format!(
                "names code to run, and the config file is not trusted (fix: give \
                 --trust-config if you trust the file, or --set {key}={path:?})"
            );
            self.problem(key, text);
            return None;
        }
        Some((path, origin))
    }

    /// A string or a list of strings, with where it stands. The caller notes
    /// what it makes of it.
    pub(super) fn texts(&mut self, key: &'static str) -> Option<(Vec<String>, Origin)> {
        let entry = self.entry(key)?;
        let items = match entry.value {
            Value::List(items) => items,
            single => vec![single],
        };
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Value::Text(text) if !text.is_empty() => texts.push(text),
                Value::Text(_) => self.problem(key, "holds an empty string"),
                other => self.wrong_type(key, "a string or a list of strings", &other),
            }
        }
        Some((texts, entry.origin))
    }

    /// Different names out of `known`; `None` where the key is not written. The
    /// caller notes what it makes of them.
    pub(super) fn names(
        &mut self,
        key: &'static str,
        known: &[&'static str],
    ) -> Option<Vec<String>> {
        let (names, _) = self.texts(key)?;
        for (index, name) in names.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                self.problem(key, unknown_text("name", name, nearest(name, known)));
            } else if names[..index].contains(name) {
                self.problem(key, format!("{name:?} is there twice"));
            }
        }
        if names.is_empty() {
            self.problem(key, "is empty");
        }
        Some(names)
    }

    /// A number of `range`, if one is written. The caller notes what it makes of
    /// it.
    pub(super) fn written_real(&mut self, key: &str, range: &RangeInclusive<f64>) -> Option<f64> {
        let value = self.entry(key)?.value;
        self.real_of(key, &value, range)
    }

    /// A number or a list of numbers of `range`, if one is written. The caller
    /// notes what it makes of them.
    pub(super) fn written_reals(
        &mut self,
        key: &str,
        range: &RangeInclusive<f64>,
    ) -> Option<Vec<f64>> {
        let items = match self.entry(key)?.value {
            Value::List(items) => items,
            single => vec![single],
        };
        let reals: Vec<Option<f64>> = items
            .iter()
            .map(|item| self.real_of(key, item, range))
            .collect();
        reals.into_iter().collect()
    }

    fn real_of(&mut self, key: &str, value: &Value, range: &RangeInclusive<f64>) -> Option<f64> {
        let real = match value {
            Value::Integer(integer) => *integer as f64,
            Value::Real(real) => *real,
            other => {
                self.wrong_type(key, "a number", other);
                return None;
            }
        };
        if range.contains(&real) {
            return Some(real);
        }
        self.problem(
            key,
            format!("{real} is not {} to {}", range.start(), range.end()),
        );
        None
    }

    /// The config as resolved, once every key was asked for.
    ///
    /// # Errors
    /// All problems, in the order of the file, an unknown key among them.
    pub(super) fn finish(mut self) -> Result<Vec<(&'static str, Json)>> {
        let known: Vec<&'static str> = self.settings.iter().map(|(key, _)| *key).collect();
        let unknown = self.written.unknown(&known);
        self.problems.extend(
            unknown
                .into_iter()
                .map(|(origin, text)| (Some(origin), text)),
        );
        if self.problems.is_empty() {
            return Ok(self.settings);
        }
        self.problems.sort_by(|a, b| a.0.cmp(&b.0));
        let lines = self.problems.iter().map(|(origin, text)| match origin {
            Some(origin) => format!("{origin}: {text}"),
            None => text.clone(),
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        Err(Error::config(text))
    }
}
