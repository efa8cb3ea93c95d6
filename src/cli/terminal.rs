//! What the program prints on the terminal, and how it writes rates there.

use std::io::Write;

/// Prints to standard output. An error of printing is ignored: `| head` closes the pipe early.
pub(super) fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Prints a line to standard error, which may be closed; an error of printing is ignored.
pub(super) fn complain(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// `1234567.0` as `1.23 M`.
pub(super) fn short(number: f64) -> String {
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
