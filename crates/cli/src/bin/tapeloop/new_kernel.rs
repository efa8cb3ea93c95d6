//! `tapeloop kernel new`: a kernel of one's own that works.

use std::io::Write;
use std::path::Path;
use tapeloop::error::{Context, Error, Result};
use tapeloop::features::{OwnKernel, OwnKernelSettings};
use tapeloop_cli::exit_codes::GOOD;
use tapeloop_cli::terminal::say;
use tapeloop_files::{Existing, open_to_write, shown};

const TEXT: &str = include_str!("new_kernel.cu");
const CONFIG: &str = include_str!("new_kernel.toml");
/// The name in both texts.
const NAME: &str = "neighbours";

/// Writes `NAME.cu` and `NAME.toml`, which must not exist, and returns the exit code.
///
/// # Errors
/// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) if the name is no name of a function,
/// [`ErrorKind::Io`](tapeloop::ErrorKind::Io) if a file exists or cannot be written.
pub(super) fn new_kernel(path: &Path) -> Result<u8> {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("");
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let settings = OwnKernelSettings {
        text: TEXT.replace(NAME, name).into(),
        entry: name.to_owned(),
        // That of the config, as a number without a value is an error.
        values: [("radius".to_owned(), 8000.0)].into(),
        ..OwnKernelSettings::default()
    };
    // A word of the language makes another declaration of the text.
    // SAFETY: the kernel is checked, and never run.
    let made = unsafe { OwnKernel::new(settings) };
    if !is_name || made.is_err() {
        return Err(
            Error::config(format!("{name:?} is not a name of a function"))
                .fix("use letters, digits and _, and begin with a letter"),
        );
    }
    for (extension, text) in [("cu", TEXT), ("toml", CONFIG)] {
        let path = path.with_extension(extension);
        let text = text.replace(NAME, name);
        let file = open_to_write(&path, Existing::Refused);
        let mut file = file.map_err(|error| error.fix("give another name"))?;
        file.write_all(text.as_bytes()).within(|| shown(&path))?;
        say(&format!("wrote {}\n", shown(&path)));
    }
    let name = shown(path);
    say(&format!(
        "try it on a GPU: tapeloop run {name}.toml STRUCTURES -o out --trust-config\n"
    ));
    Ok(GOOD)
}
