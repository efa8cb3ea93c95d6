//! The key that names a dictionary of components.

use super::dots::resolve_dots;
use super::resolver::Resolver;
use super::setting_values::SettingValues;
use std::fs;
use std::path::Path;
use tapeloop::structure::{Components, ReadLimits, text_of};
use tapeloop_files as files;

/// The value for no dictionary.
pub(super) const NO_COMPONENTS: &str = "none";

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
    let unreadable = |error: std::io::Error| format!("{file}: {error}");
    let limits = ReadLimits::default();
    let found = path.metadata().map_err(unreadable)?;
    // Opening a FIFO would wait for a program that writes to it.
    if !found.is_file() {
        return Err(format!("{file}: it is not a file"));
    }
    if found.len() > u64::from(limits.text_bytes_max) {
        return Err(format!(
            "{file}: it has over {} bytes",
            limits.text_bytes_max
        ));
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    let components =
        text_of(&file, bytes, &limits).and_then(|(text, _)| Components::of_text(&file, &text));
    components.map_err(|error| {
        let fix = error.fix_text().map(|fix| format!(" (fix: {fix})"));
        format!("{file}: {}{}", error.message(), fix.unwrap_or_default())
    })
}
