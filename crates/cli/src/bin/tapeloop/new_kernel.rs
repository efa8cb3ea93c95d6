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

/// Writes `NAME.cu` and `NAME.toml`, neither of which may exist, and returns the exit code.
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
            Error::config(format!("{name:?} is not a name of a function")).fix(
                "use letters, digits and _, begin with no digit, and take no word of CUDA C++",
            ),
        );
    }
    let open = |extension, text: &'static str| {
        let path = path.with_extension(extension);
        match open_to_write(&path, Existing::Refused) {
            Ok(file) => Ok((path, file, text)),
            Err(error) => Err(error.fix("give another name")),
        }
    };
    let code = open("cu", TEXT)?;
    let config = open("toml", CONFIG).inspect_err(|_| {
        // It was made here, and is of no use alone. If it stays, the error is still that of the other.
        let _ = std::fs::remove_file(&code.0);
    })?;
    for (path, mut file, text) in [code, config] {
        let text = text.replace(NAME, name);
        file.write_all(text.as_bytes()).within(|| shown(&path))?;
        say(&format!("wrote {}\n", shown(&path)));
    }
    let name = shown(path);
    say(&format!(
        "try it on a GPU: tapeloop run {name}.toml STRUCTURES -o out --trust-config\n"
    ));
    Ok(GOOD)
}
