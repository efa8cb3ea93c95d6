//! The key that names a dictionary of components.

use super::dots::resolve_dots;
use super::resolver::Resolver;
use super::setting_values::SettingValues;
use std::path::Path;
use tapeloop::structure::{Components, ReadLimits, text_of};
use tapeloop_files as files;

/// The value for no dictionary.
pub const NO_COMPONENTS: &str = "none";

/// The dictionary that the key names; a relative path starts from the config file's folder.
pub(super) fn read_components(
    keys: &mut Resolver,
    key: &'static str,
) -> Option<Option<Components>> {
    let none = SettingValues::Choice(vec![NO_COMPONENTS]);
    keys.takes(key, SettingValues::OneOf(vec![none, SettingValues::Path]));
    let (text, origin) = keys.text(key)?;
    if text == NO_COMPONENTS {
        return Some(None);
    }
    let path = resolve_dots(origin.join(&text));
    let read = read(&path).map_err(|problem| keys.problem(key, problem));
    read.ok().map(Some)
}

/// Reads a dictionary, which may be compressed. The message of an error names its file.
fn read(path: &Path) -> Result<Components, String> {
    let file = files::text_of(path);
    let limits = ReadLimits::default();
    let bytes = files::open_file(path)
        .and_then(|source| files::read_all(source, u64::from(limits.text_bytes_max)))
        .map_err(|error| format!("{file}: {error}"))?;
    let components =
        text_of(&file, bytes, &limits).and_then(|(text, _)| Components::of_text(&file, &text));
    components.map_err(|error| {
        let fix = error.fix_text().map(|fix| format!(" (fix: {fix})"));
        format!("{file}: {}{}", error.message(), fix.unwrap_or_default())
    })
}
