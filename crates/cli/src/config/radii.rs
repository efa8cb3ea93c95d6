//! Keys that choose a set of radii.

use super::dots::resolve_dots;
use super::resolver::Resolver;
use super::setting_values::SettingValues;
use super::text_file::read_text;
use tapeloop::structure::Radii;
use tapeloop_files::text_of;

/// The set that the key names, or that the file defines whose path it has; a relative path starts from
/// the config file's folder.
pub(super) fn read_radii(keys: &mut Resolver, key: &'static str) -> Option<Radii> {
    let words = SettingValues::Choice(Radii::NAMES.to_vec());
    keys.takes(key, SettingValues::OneOf(vec![words, SettingValues::Path]));
    let (text, origin) = keys.text(key)?;
    if let Some(radii) = Radii::named(&text) {
        return Some(radii);
    }
    let path = resolve_dots(origin.join(&text));
    let file = text_of(&path);
    let read = read_text(&path).map_err(|problem| {
        let names = Radii::NAMES.map(|name| format!("{name:?}"));
        format!("{problem} (fix: give {} or a file)", names.join(", "))
    });
    let radii = read.and_then(|text| {
        Radii::of_file(&file, &text).map_err(|error| {
            let fix = error.fix_text().map(|fix| format!(" (fix: {fix})"));
            format!("{file}: {}{}", error.message(), fix.unwrap_or_default())
        })
    });
    radii.map_err(|problem| keys.problem(key, problem)).ok()
}
