//! Keys and values that earlier versions had.

use super::raw::RawConfig;
use toml::Value;

/// A key that was removed, or one of its values.
struct Removed {
    key: &'static str,
    /// The value that was removed; `None` for the whole key.
    value: Option<&'static str>,
    /// Why, and what to do.
    text: &'static str,
}

const fn key(key: &'static str, text: &'static str) -> Removed {
    Removed {
        key,
        value: None,
        text,
    }
}

const fn value(key: &'static str, value: &'static str, text: &'static str) -> Removed {
    Removed {
        key,
        value: Some(value),
        text,
    }
}

const SCOPE: &str = "graphs of whole batches are faster (fix: leave it out; docs/PERFORMANCE.md, \
                     \"What did not help\", has the measurement)";
const STREAMS: &str = "a stream for each slot is faster (fix: leave it out; docs/PERFORMANCE.md, \
                       \"What did not help\", has the measurement)";
const BUILD: &str = "features are built as explicit graphs, which are faster (fix: leave it out; \
                     docs/PERFORMANCE.md, \"What did not help\", has the measurement)";
const MODE_AUTO: &str = "it chose \"graph\", the default, wherever it was measured (fix: leave it \
                         out; docs/PERFORMANCE.md, \"What did not help\", has the measurement)";

const REMOVED: [Removed; 13] = [
    key("scope", SCOPE),
    key("streams", STREAMS),
    key("build", BUILD),
    key(
        "shadow_every",
        "`verify` takes the number (fix: set verify = N, or leave both out)",
    ),
    value("mode", "auto", MODE_AUTO),
    value(
        "verify",
        "auto",
        "it is named \"first\", and is the default (fix: leave `verify` out)",
    ),
    value(
        "fusion",
        "auto",
        "the default is \"off\", which is as fast or faster for batches of more than 16 residues \
         (fix: leave `fusion` out)",
    ),
    key(
        "iface.cutoff",
        "the feature has another name (fix: write interface_residues.cutoff)",
    ),
    key("vary.scopes", SCOPE),
    value("vary.modes", "auto", MODE_AUTO),
    value("axes", "scope", SCOPE),
    value("axes", "streams", STREAMS),
    value("axes", "build", BUILD),
];

/// Whether an earlier version had this key. No output table depended on it, or it has another name now, whose
/// value the tables depend on.
pub fn is_removed(name: &str) -> bool {
    let mut keys = REMOVED.iter().filter(|removed| removed.value.is_none());
    keys.any(|removed| removed.key == name)
}

/// The removed keys and values that a config names, each with the text of its error.
pub(super) fn removed_in(raw: &RawConfig) -> Vec<(&'static str, String)> {
    let is_set = |removed: &&Removed| {
        let set = raw.entries.get(removed.key).map(|entry| &entry.value);
        set.is_some_and(|set| removed.value.is_none_or(|value| names(set, value)))
    };
    let message = |removed: &Removed| {
        let subject = match removed.value {
            Some(value) => format!("{value:?} was removed"),
            None => "was removed".to_owned(),
        };
        (removed.key, format!("{subject}: {}", removed.text))
    };
    REMOVED.iter().filter(is_set).map(message).collect()
}

/// Whether a value is this text, or a list with it.
fn names(set: &Value, text: &str) -> bool {
    match set {
        Value::Array(items) => items.iter().any(|item| item.as_str() == Some(text)),
        single => single.as_str() == Some(text),
    }
}
