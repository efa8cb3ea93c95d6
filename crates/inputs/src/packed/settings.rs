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

/// What packed sets never hold: the config's key, the value that does not ask for it (`None` for false), and
/// its name in messages.
const ABSENT: [(&str, Option<&str>, &str); 6] = [
    (
        "atoms",
        None,
        "names, occupancies and alternate locations of atoms",
    ),
    ("interactions", None, "names of atoms and nucleotides"),
    ("ligands", Some("drop"), "ligands"),
    (
        "sasa.radii",
        Some("protor"),
        "radii but those of \"protor\"",
    ),
    ("seqres", None, "whole sequences"),
    ("unobserved", None, "residues that were not observed"),
];

/// The settings that the files of a packed set state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetSettings {
    /// The values of [`READER_KEYS`]; `None` if another program made the file and leaves them out.
    pub reader: Option<Map<String, Json>>,
    /// The text that identifies the annotations, as in the metadata of tables.
    pub annotations: Option<String>,
}

/// The settings of a config that decide what is read from a structure file.
pub fn reader_settings(settings: &[(&'static str, Json)]) -> Map<String, Json> {
    let is_read = |(key, value): &&(&'static str, Json)| {
        let is_asked = |(absent, word, _): &(&str, Option<&str>, &str)| {
            absent == key && word.map_or(*value != false, |word| *value != word)
        };
        READER_KEYS.contains(key) || ABSENT.iter().any(is_asked)
    };
    let kept = settings.iter().filter(is_read);
    kept.map(|(key, value)| ((*key).to_owned(), value.clone()))
        .collect()
}

impl SetSettings {
    /// The settings of a set that `tapeloop pack` makes with the config's `settings`.
    pub fn from_config(settings: &[(&'static str, Json)], annotations: Option<String>) -> Self {
        SetSettings {
            reader: Some(reader_settings(settings)),
            annotations,
        }
    }

    /// The settings in the metadata of a file.
    ///
    /// # Errors
    /// Of kind `Input`: `reader` is no JSON object.
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

    /// The names of the annotations; none if another program wrote the text in a form of its own.
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
            if let Some(wanted) = run.get(key)
                && wanted != packed
            {
                let shown = excerpt(packed.to_string());
                let message =
                    format!("the set was packed with {key} = {shown}, and {key} is {wanted} here");
                return Err(Error::config(message).fix(format!(
                    "set {key} = {shown}, or pack the files again with {key} = {wanted}"
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
        let (set_reader, reader) = (set.reader.as_ref(), self.reader.as_ref());
        let keys = set_reader
            .into_iter()
            .chain(reader)
            .flat_map(|keys| keys.keys());
        let keys: BTreeSet<&String> = keys.collect();
        let text = |value: Option<&Json>| value.map_or("not stated".to_owned(), Json::to_string);
        let differs = |key: &str, set: &str, reader: &str| {
            let set = excerpt(set);
            let key = excerpt(key);
            let message =
                format!("the set was packed with {key} = {set}, and {key} is {reader} here");
            Error::config(message).fix("use the same settings, or name another set")
        };
        for key in keys {
            let value = |settings: Option<&Map<String, Json>>| {
                text(settings.and_then(|settings| settings.get(key)))
            };
            if value(set_reader) != value(reader) {
                return Err(differs(key, &value(set_reader), &value(reader)));
            }
        }
        if set.annotations == self.annotations {
            Ok(())
        } else {
            let shown =
                |settings: &SetSettings| settings.annotations.clone().unwrap_or("[]".to_owned());
            Err(differs("annotations", &shown(set), &shown(self)))
        }
    }
}
