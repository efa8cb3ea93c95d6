//! The settings that a packed set was made with.

use serde_json::{Map, Value as Json};
use std::collections::BTreeSet;
use tapeloop_error::internal::excerpt;
use tapeloop_error::{Error, Result};

/// The keys that decide what is read from a structure file.
pub const READER_KEYS: [&str; 6] = [
    "models",
    "chains.split",
    "nucleic",
    "assembly",
    "b_factor",
    "strict",
];

/// What sets do not hold: its key, the word that asks for it (`None` where it is true), and its name.
const ABSENT: [(&str, Option<&str>, &str); 3] = [
    ("ligands", Some("keep"), "ligands"),
    ("seqres", None, "whole sequences"),
    ("unobserved", None, "residues that were not observed"),
];

/// What the files of a packed set state of how it was made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetSettings {
    /// The values of [`READER_KEYS`]; `None` if another program made the file and leaves them out.
    pub reader: Option<Map<String, Json>>,
    /// What identifies the annotations, as the metadata of tables has it.
    pub annotations: Option<String>,
}

/// The settings of a config that decide what is read from a structure file.
pub fn reader_settings(settings: &[(&'static str, Json)]) -> Map<String, Json> {
    let is_of_reader = |(key, value): &&(&'static str, Json)| {
        let is_asked = |(absent, word, _): &(&str, Option<&str>, &str)| {
            absent == key && word.map_or(*value == true, |word| *value == word)
        };
        READER_KEYS.contains(key) || ABSENT.iter().any(is_asked)
    };
    let of_reader = settings.iter().filter(is_of_reader);
    of_reader
        .map(|(key, value)| ((*key).to_owned(), value.clone()))
        .collect()
}

impl SetSettings {
    /// The settings of `tapeloop pack`.
    pub fn of(settings: &[(&'static str, Json)], annotations: Option<String>) -> Self {
        SetSettings {
            reader: Some(reader_settings(settings)),
            annotations,
        }
    }

    /// The settings in the metadata of a file.
    ///
    /// # Errors
    /// `reader` is no JSON object.
    pub(super) fn parse(reader: Option<&str>, annotations: Option<String>) -> Result<Self> {
        let parse = |text: &str| {
            serde_json::from_str::<Map<String, Json>>(text).map_err(|error| {
                let message =
                    format!("the settings of the packed set are not a JSON object: {error}");
                Error::input(message).fix("pack the files again")
            })
        };
        Ok(SetSettings {
            reader: reader.map(parse).transpose()?,
            annotations,
        })
    }

    /// The settings of the reader as one line of JSON.
    pub(super) fn reader_text(&self) -> Option<String> {
        let reader = self.reader.as_ref()?;
        Some(Json::Object(reader.clone()).to_string())
    }

    /// The names of the annotations.
    pub fn channels(&self) -> Vec<String> {
        let text = self.annotations.as_deref().unwrap_or_default();
        let annotations: Json = serde_json::from_str(text).unwrap_or_default();
        let channels = annotations["channels"].as_array().cloned();
        let channels = channels.unwrap_or_default().into_iter();
        channels
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect()
    }

    /// Checks that a run may read the set. Keys that either side leaves out are not compared.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop_error::ErrorKind::Config): a setting differs, with both values.
    pub fn check_run(&self, run: &Map<String, Json>) -> Result<()> {
        let mut absent = ABSENT.iter();
        if let Some((key, _, what)) = absent.find(|(key, ..)| run.contains_key(*key)) {
            let asked = &run[*key];
            let message = format!("`{key}` is {asked}, and packed sets have no {what}");
            let fix = format!("run over the structure files, or leave `{key}` out");
            return Err(Error::config(message).fix(fix));
        }
        let set = self.reader.iter().flatten();
        for (key, packed) in set {
            if let Some(own) = run.get(key)
                && own != packed
            {
                let shown = excerpt(packed.to_string());
                let message =
                    format!("the set was packed with {key} = {shown}, and {key} is {own} here");
                return Err(Error::config(message).fix(format!(
                    "set {key} = {shown}, or pack the files again with {key} = {own}"
                )));
            }
        }
        Ok(())
    }

    /// Checks that structures read with these settings may be appended to a set with the settings
    /// `set`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop_error::ErrorKind::Config): a setting differs, with both values.
    pub(super) fn check_append(&self, set: &SetSettings) -> Result<()> {
        let (of_set, own) = (set.reader.as_ref(), self.reader.as_ref());
        let keys = of_set.into_iter().chain(own).flat_map(|keys| keys.keys());
        let keys: BTreeSet<&String> = keys.collect();
        let text = |value: Option<&Json>| value.map_or("not stated".to_owned(), Json::to_string);
        let differs = |key: &str, set: &str, own: &str| {
            let set = excerpt(set);
            let key = excerpt(key);
            let message = format!("the set was packed with {key} = {set}, and {key} is {own} here");
            Error::config(message).fix("use the same settings, or name another set")
        };
        for key in keys {
            let value = |of: Option<&Map<String, Json>>| text(of.and_then(|of| of.get(key)));
            if value(of_set) != value(own) {
                return Err(differs(key, &value(of_set), &value(own)));
            }
        }
        if set.annotations == self.annotations {
            Ok(())
        } else {
            let shown = |of: &SetSettings| of.annotations.clone().unwrap_or("[]".to_owned());
            Err(differs("annotations", &shown(set), &shown(self)))
        }
    }
}
