//! Resolves one key at a time, and collects what is wrong with all of them.

use super::raw::{Origin, PROBLEMS_MAX, RawConfig, RawEntry};
use super::removed::removed_in;
use super::setting_values::SettingValues;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use tapeloop::error::{Error, Result};
use tapeloop_error::internal::{cut, excerpt};
use tapeloop_files::did_you_mean;
use toml::Value;

/// The most bytes of one problem: a message lists the names that a key takes, and may quote a value.
const PROBLEM_BYTES_MAX: usize = 4096;

/// Reads the values of a config by key.
///
/// Resolving a config asks for every key that it knows, so the keys that were asked for are
/// the known ones. Methods that take a default record the resolved value; after the others
/// the caller records it.
pub(super) struct Resolver {
    raw: RawConfig,
    settings: Vec<(&'static str, Json)>,
    values: BTreeMap<String, SettingValues>,
    problems: Vec<(Option<Origin>, String)>,
}

impl Resolver {
    /// A resolver of `raw`. Keys of earlier versions are problems already, each with the text that
    /// says what replaced it.
    pub(super) fn new(raw: RawConfig) -> Self {
        let removed = removed_in(&raw);
        let mut keys = Resolver {
            raw,
            settings: Vec::new(),
            values: BTreeMap::new(),
            problems: Vec::new(),
        };
        for (key, text) in &removed {
            keys.problem(key, text);
        }
        // These keys get their defaults, and no second error.
        for (key, _) in removed {
            keys.raw.entries.remove(key);
        }
        keys
    }

    /// The entry of `key`, if the file or an option sets it.
    pub(super) fn entry(&self, key: &str) -> Option<RawEntry> {
        self.raw.entries.get(key).cloned()
    }

    /// Records the resolved value of `key`.
    pub(super) fn record(&mut self, key: &'static str, value: Json) {
        self.settings.push((key, value));
    }

    /// Records the values that `key` takes. Methods that ask for a value of one kind do so too, unless this
    /// one was called before.
    pub(super) fn takes(&mut self, key: &str, values: SettingValues) {
        self.values.entry(key.to_owned()).or_insert(values);
    }

    /// The values that each key takes which has been asked for.
    pub(super) fn values_taken(&self) -> BTreeMap<String, SettingValues> {
        self.values.clone()
    }

    /// Records that the value of `key` cannot be used.
    pub(super) fn problem(&mut self, key: &str, text: impl Display) {
        let origin = self.raw.entries.get(key);
        let origin = origin.map(|entry| entry.origin.clone());
        let text = cut(text.to_string(), PROBLEM_BYTES_MAX);
        self.problems
            .push((origin, format!("`{}`: {text}", excerpt(key))));
    }

    /// Whether there are more problems than a message lists. Looking for further ones takes time alone.
    pub(super) fn has_many_problems(&self) -> bool {
        self.problems.len() > PROBLEMS_MAX
    }

    /// Records an error about the value of `key`.
    pub(super) fn error(&mut self, key: &str, error: &Error) {
        let fix = error.fix_text().unwrap_or_default();
        self.problem(key, format!("{}; {fix}", error.message()));
    }

    /// `value` as a `T`. The message calls it `expected`: "an integer".
    fn typed<T: DeserializeOwned>(&mut self, key: &str, value: Value, expected: &str) -> Option<T> {
        let found = value.type_str();
        let typed = T::deserialize(value).ok();
        if typed.is_none() {
            let article = if found.starts_with(['a', 'i']) {
                "an"
            } else {
                "a"
            };
            self.problem(key, format!("must be {expected}, not {article} {found}"));
        }
        typed
    }

    /// The value of `key` as a `T`, if it is set.
    pub(super) fn value<T: DeserializeOwned>(&mut self, key: &str, expected: &str) -> Option<T> {
        let value = self.entry(key)?.value;
        self.typed(key, value, expected)
    }

    /// The value of `key` as a list, if it is set; a single value is a list of one.
    fn values<T: DeserializeOwned>(&mut self, key: &str, expected: &str) -> Option<Vec<T>> {
        let items = match self.entry(key)?.value {
            Value::Array(items) => items,
            single => vec![single],
        };
        let typed = items
            .into_iter()
            .map(|item| self.typed(key, item, expected));
        let typed: Vec<Option<T>> = typed.collect();
        typed.into_iter().collect()
    }

    /// An integer of `range`.
    pub(super) fn integer(
        &mut self,
        key: &'static str,
        default: i64,
        range: RangeInclusive<i64>,
    ) -> i64 {
        let value = self.integer_if_set(key, range).unwrap_or(default);
        self.record(key, json!(value));
        value
    }

    /// An integer of `range` for a key without a default. Records the value.
    pub(super) fn optional_integer(
        &mut self,
        key: &'static str,
        range: RangeInclusive<i64>,
    ) -> Option<i64> {
        let value = self.integer_if_set(key, range);
        self.record(key, json!(value));
        value
    }

    /// An integer of `range`, if the key is set.
    pub(super) fn integer_if_set(&mut self, key: &str, range: RangeInclusive<i64>) -> Option<i64> {
        self.takes(key, SettingValues::Integer);
        let value = self.value(key, "an integer")?;
        self.check_within(key, &[value], &range).then_some(value)
    }

    /// An integer or a list of integers of `range`, if the key is set.
    pub(super) fn integers_if_set(
        &mut self,
        key: &str,
        range: &RangeInclusive<i64>,
    ) -> Option<Vec<i64>> {
        self.takes(key, SettingValues::Integer.or_list());
        let values: Vec<i64> = self.values(key, "an integer or a list of integers")?;
        self.check_within(key, &values, range).then_some(values)
    }

    /// True or false.
    pub(super) fn flag(&mut self, key: &'static str, default: bool) -> bool {
        let value = self.flag_if_set(key).unwrap_or(default);
        self.record(key, json!(value));
        value
    }

    /// True or false, if the key is set.
    pub(super) fn flag_if_set(&mut self, key: &str) -> Option<bool> {
        self.takes(key, SettingValues::Flag);
        self.value(key, "true or false")
    }

    /// One of several named values; the first is the default.
    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> T {
        let (name, choice) = self.choice_if_set(key, choices).unwrap_or(choices[0]);
        self.record(key, json!(name));
        choice
    }

    /// One of several named values with its name, if the key is set.
    pub(super) fn choice_if_set<T: Copy>(
        &mut self,
        key: &str,
        choices: &[(&'static str, T)],
    ) -> Option<(&'static str, T)> {
        let names: Vec<&'static str> = choices.iter().map(|(name, _)| *name).collect();
        self.takes(key, SettingValues::Choice(names.clone()));
        let find = |text: &str| choices.iter().copied().find(|(name, _)| *name == text);
        let value = self.entry(key)?.value;
        // `--set assembly=1` means the name "1".
        if let Some(choice) = value
            .as_integer()
            .and_then(|number| find(&number.to_string()))
        {
            return Some(choice);
        }
        let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
        let text: String = self.typed(key, value, &format!("one of {}", quoted.join(", ")))?;
        let choice = find(&text);
        if choice.is_none() {
            let hint = did_you_mean(&text, &names);
            let text = excerpt(text);
            self.problem(
                key,
                format!("{text:?} is not one of {}{hint}", quoted.join(", ")),
            );
        }
        choice
    }

    /// A string that is not empty, if the key is set, and where it is set.
    pub(super) fn text(&mut self, key: &'static str) -> Option<(String, Origin)> {
        self.takes(key, SettingValues::Text);
        let text: String = self.value(key, "a string")?;
        if text.is_empty() {
            self.problem(key, "is empty");
            return None;
        }
        Some((text, self.entry(key)?.origin))
    }

    /// [`Resolver::text`] for a path to code that the program runs. Configs are copied and
    /// downloaded, so the file may name such a path only if the user trusts the file.
    pub(super) fn code_path(&mut self, key: &'static str) -> Option<(String, Origin)> {
        self.takes(key, SettingValues::Path);
        let (path, origin) = self.text(key)?;
        if !self.is_trusted(&origin) {
            let text = format!(
                "names code to run, and the config file is not trusted (fix: give \
                 --trust-config if you trust the file, or --set {key}={path:?})"
            );
            self.problem(key, text);
            return None;
        }
        Some((path, origin))
    }

    /// Whether what is set there may name code to run.
    pub(super) fn is_trusted(&self, origin: &Origin) -> bool {
        matches!(origin, Origin::Option(_)) || self.raw.trusts_file
    }

    /// A string or a list of strings, none of them empty, if the key is set, and where it is
    /// set.
    pub(super) fn texts(&mut self, key: &'static str) -> Option<(Vec<String>, Origin)> {
        self.takes(key, SettingValues::Text.or_list());
        let texts: Vec<String> = self.values(key, "a string or a list of strings")?;
        if texts.iter().any(String::is_empty) {
            self.problem(key, "holds an empty string");
        }
        Some((texts, self.entry(key)?.origin))
    }

    /// Different names out of `known`, if the key is set.
    pub(super) fn names(
        &mut self,
        key: &'static str,
        known: &[&'static str],
    ) -> Option<Vec<String>> {
        self.takes(key, SettingValues::Choice(known.to_vec()).or_list());
        let (names, _) = self.texts(key)?;
        for (index, name) in names.iter().enumerate() {
            if self.has_many_problems() {
                break;
            }
            if !known.contains(&name.as_str()) {
                let hint = did_you_mean(name, known);
                self.problem(key, format!("unknown name `{}`{hint}", excerpt(name)));
            } else if names[..index].contains(name) {
                self.problem(key, format!("{name:?} is there twice"));
            }
        }
        if names.is_empty() {
            self.problem(key, "is empty");
        }
        Some(names)
    }

    /// A number of `range`, if the key is set.
    pub(super) fn real(&mut self, key: &str, range: &RangeInclusive<f64>) -> Option<f64> {
        self.takes(key, SettingValues::Number);
        let value = self.value(key, "a number")?;
        self.check_within(key, &[value], range).then_some(value)
    }

    /// A number or a list of numbers of `range`, if the key is set.
    pub(super) fn reals(&mut self, key: &str, range: &RangeInclusive<f64>) -> Option<Vec<f64>> {
        self.takes(key, SettingValues::Number.or_list());
        let values: Vec<f64> = self.values(key, "a number or a list of numbers")?;
        self.check_within(key, &values, range).then_some(values)
    }

    /// Adds a problem for each of `values` that is not of `range`. Returns whether there is none.
    fn check_within<T>(&mut self, key: &str, values: &[T], range: &RangeInclusive<T>) -> bool
    where
        T: PartialOrd + Display,
    {
        let outside = values.iter().filter(|value| !range.contains(value));
        for value in outside.clone() {
            self.problem(key, format!("must be {}, not {value}", range_text(range)));
        }
        outside.count() == 0
    }

    /// The resolved values by key, once all known keys have been asked for.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) lists all problems and all unknown keys,
    /// in the order of the file.
    pub(super) fn finish(mut self) -> Result<Vec<(&'static str, Json)>> {
        let known: Vec<&'static str> = self.settings.iter().map(|(key, _)| *key).collect();
        let unknown = self.raw.unknown(&known).into_iter();
        self.problems
            .extend(unknown.map(|(origin, text)| (Some(origin), text)));
        if self.problems.is_empty() {
            return Ok(self.settings);
        }
        self.problems.sort_by(|a, b| a.0.cmp(&b.0));
        let lines = self.problems.iter().map(|(origin, text)| match origin {
            Some(origin) => format!("{origin}: {text}"),
            None => text.clone(),
        });
        let mut lines: Vec<String> = lines.take(PROBLEMS_MAX).collect();
        if self.has_many_problems() {
            lines.push(format!("and more than {PROBLEMS_MAX} problems in all"));
        }
        Err(Error::config(lines.join("\n")))
    }
}

/// A range in words. One that ends at the largest integer has no upper limit.
pub fn range_text(range: &RangeInclusive<impl Display>) -> String {
    let (start, end) = (range.start(), range.end().to_string());
    if end == i64::MAX.to_string() {
        return format!("at least {start}");
    }
    format!("{start} to {end}")
}

/// Values with the names that the config has for them.
pub(super) fn named<T: Copy>(values: &[T], name: fn(T) -> &'static str) -> Vec<(&'static str, T)> {
    values.iter().map(|&value| (name(value), value)).collect()
}
