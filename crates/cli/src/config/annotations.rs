//! The keys of annotations.

use super::dots::resolve_dots;
use super::resolver::Resolver;
use super::setting_values::SettingValues;
use serde_json::json;
use std::path::PathBuf;
use tapeloop_annotations::UnmatchedTables;
use tapeloop_files::text_of;

/// The files of annotations. Paths in a config are relative to its folder.
pub(super) fn resolve_annotations(keys: &mut Resolver) -> Vec<PathBuf> {
    keys.takes("annotations", SettingValues::Path.or_list());
    let set = keys.texts("annotations");
    let paths: Vec<PathBuf> = set.map_or(Vec::new(), |(items, origin)| {
        let resolve = |item| resolve_dots(origin.join(item));
        items.iter().map(resolve).collect()
    });
    let texts: Vec<String> = paths.iter().map(|path| text_of(path)).collect();
    keys.record("annotations", json!(texts));
    paths
}

/// What a table of which no row matches does. A shard reads only some of the inputs, so it warns at
/// most.
pub(super) fn resolve_unmatched(keys: &mut Resolver, is_shard: bool) -> UnmatchedTables {
    let choices = [
        ("error", UnmatchedTables::Error),
        ("allow", UnmatchedTables::Allow),
    ];
    let chosen = keys.choice("annotations_unmatched", &choices);
    if chosen == UnmatchedTables::Error && is_shard {
        return UnmatchedTables::Warn;
    }
    chosen
}
