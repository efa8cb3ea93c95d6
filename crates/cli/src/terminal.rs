//! What the program prints on the terminal, and how it writes rates there.
//!
//! All text for a terminal passes through [`say`], [`complain`] or [`for_terminal`], which escape control
//! characters: names in files, configs and the environment may hold any.

use super::exit_codes::FAILED;
use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write, stdout};
use std::sync::OnceLock;
use tapeloop::error::Error;
use tapeloop_error::internal::printable_lines;

/// The first error of printing to standard output.
static FAILURE: OnceLock<Error> = OnceLock::new();

/// Prints to standard output. Work goes on after an error, which [`final_code`] reports. A pipe that
/// its reader has closed, as `| head` does, is no error.
pub fn say(text: &str) {
    let mut stdout = stdout().lock();
    let printed = stdout.write_all(printable_lines(text).as_bytes());
    note(printed.and_then(|()| stdout.flush()));
}

/// Notes the outcome of printing to standard output.
pub fn note(printed: std::io::Result<()>) {
    if let Err(error) = printed
        && error.kind() != ErrorKind::BrokenPipe
    {
        FAILURE.get_or_init(|| Error::io(error).within("standard output"));
    }
}

/// The program's exit code: `code`, unless something could not be printed. Reports that on standard
/// error.
pub fn final_code(code: u8) -> u8 {
    match FAILURE.get() {
        None => code,
        Some(error) => {
            complain(&format!("error: {error}"));
            code.max(FAILED)
        }
    }
}

/// Prints a line to standard error, which may be closed; an error of printing is ignored.
pub fn complain(line: &str) {
    let line = format!("{}\n", printable_lines(line));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Rows or a file for `output`: as they are, unless it is a terminal.
pub fn for_terminal<'a>(output: &impl IsTerminal, bytes: &'a [u8]) -> Cow<'a, [u8]> {
    if !output.is_terminal() {
        return Cow::Borrowed(bytes);
    }
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => match printable_lines(text) {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        },
        Cow::Owned(text) => Cow::Owned(printable_lines(&text).into_owned().into_bytes()),
    }
}

/// `1234567.0` as `1.23 M`: three digits, or a whole number below 10,000.
pub fn short(number: f64) -> String {
    let (scaled, unit) = match number {
        n if n >= 1e9 => (n / 1e9, " G"),
        n if n >= 1e6 => (n / 1e6, " M"),
        n if n >= 1e4 => (n / 1e3, " k"),
        n => (n, ""),
    };
    let decimals = match scaled {
        s if s < 10.0 => 2,
        s if s < 100.0 => 1,
        _ => 0,
    };
    format!("{scaled:.decimals$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn control_characters_go_to_files_and_not_to_terminals() {
        let bytes = "a\u{9b}2J\x1b\n".as_bytes();
        let terminal = std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/ptmx");
        let terminal = terminal.unwrap();
        assert_eq!(*for_terminal(&terminal, bytes), *b"a\\u009b2J\\u001b\n");
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(*for_terminal(&file, bytes), *bytes);
    }

    #[test]
    fn rates_are_shortened() {
        assert_eq!(short(1_234_567.0), "1.23 M");
        assert_eq!(short(123.4), "123");
        assert_eq!(short(12_345.0), "12.3 k");
    }
}
