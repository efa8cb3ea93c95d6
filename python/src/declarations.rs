//! What features and keys are declared.

use crate::engine::{object_of, raised};
use pyo3::prelude::*;
use tapeloop_cli::config::{self, Config, RawConfig, SettingValues};
use tapeloop_cli::feature_list;

/// The features that the settings choose, as text and as JSON. `settings` is a JSON object of config keys.
#[pyfunction]
pub(crate) fn describe(settings: &str) -> PyResult<(String, String)> {
    let listed = feature_list::of_settings(&object_of(settings)?);
    let (text, json) = listed.map_err(|error| raised(&error))?;
    Ok((text, json.to_string()))
}

/// The names in lists such as `phi, psi`.
#[pyfunction]
pub(crate) fn names_in(lists: Vec<String>) -> Vec<String> {
    let names = lists.iter().flat_map(|list| config::names_in(list));
    names.map(str::to_owned).collect()
}

/// The keys of a run in their order, each with the type of its values as Python writes it.
#[pyfunction]
pub(crate) fn settings() -> PyResult<Vec<(&'static str, String)>> {
    let config = Config::resolve(RawConfig::default()).map_err(|error| raised(&error))?;
    let keys = config.settings.iter().map(|(key, _)| *key);
    Ok(keys
        .map(|key| {
            (
                key,
                config.values.get(key).map_or("Any".to_owned(), annotation),
            )
        })
        .collect())
}

/// The type of such values in Python.
fn annotation(values: &SettingValues) -> String {
    match values {
        SettingValues::Integer => "int".to_owned(),
        SettingValues::Number => "float".to_owned(),
        SettingValues::Flag => "bool".to_owned(),
        SettingValues::Text => "str".to_owned(),
        SettingValues::Path => "str | PathLike[str]".to_owned(),
        SettingValues::Choice(names) => {
            let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
            format!("Literal[{}]", names.join(", "))
        }
        SettingValues::List(item) => format!("Sequence[{}]", annotation(item)),
        SettingValues::Tables => "Sequence[dict[str, Any]]".to_owned(),
        SettingValues::OneOf(kinds) => {
            let kinds: Vec<String> = kinds.iter().map(annotation).collect();
            kinds.join(" | ")
        }
    }
}
