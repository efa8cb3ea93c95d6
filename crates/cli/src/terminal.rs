//! What the program prints on the terminal, and how it writes rates there.

use super::exit_codes::FAILED;
use std::io::{ErrorKind, Write, stdout};
use std::sync::OnceLock;
use tapeloop::error::Error;

/// The first error of printing to standard output.
static FAILURE: OnceLock<Error> = OnceLock::new();

/// Prints to standard output. Work goes on after an error, which [`final_code`] reports. A pipe that
/// its reader has closed, as `| head` does, is no error.
pub fn say(text: &str) {
    let mut stdout = stdout().lock();
    let printed = stdout.write_all(text.as_bytes());
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
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// `1234567.0` as `1.23 M`.
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
    use super::short;

    #[test]
    fn rates_are_shortened() {
        assert_eq!(short(1_234_567.0), "1.23 M");
        assert_eq!(short(123.4), "123");
        assert_eq!(short(12_345.0), "12.3 k");
    }
}
