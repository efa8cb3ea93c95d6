//! Resolved settings as a config file.

use serde_json::{Value as Json, json};

/// Settings as the lines of a config file.
pub(super) fn to_toml(settings: &[(&'static str, Json)]) -> String {
    let line = |(key, value): &(&str, Json)| match value {
        Json::Null => format!("# {key} is not set\n"),
        value => format!("{key} = {}\n", toml_text(value)),
    };
    settings.iter().map(line).collect()
}

/// JSON as TOML: all but objects are written alike.
fn toml_text(value: &Json) -> String {
    match value {
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_text).collect();
            format!("[{}]", items.join(","))
        }
        Json::Object(fields) => {
            let field =
                |(name, value): (&String, &Json)| format!("{} = {}", json!(name), toml_text(value));
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        value => value.to_string(),
    }
}
