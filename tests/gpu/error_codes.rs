//! The text of every result code of the driver, as it is printed; needs no driver.
//! `TAPELOOP_BLESS=1 cargo test --test gpu error_codes` writes the list anew.

use std::fmt::Write;
use tapeloop::error::Code;

const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/cuda_codes.txt");

#[test]
fn every_result_has_a_name_a_meaning_and_a_next_step() {
    let mut text = String::new();
    let (mut known, mut unknown) = (0, 0);
    for raw in -1..=1100 {
        let error = Code::of(raw).error("cuCall");
        assert_eq!(error.code(), Some(raw));
        assert!(error.fix_text().is_some_and(|fix| !fix.is_empty()));
        if Code::all().any(|code| code.raw == raw) {
            let lost = if Code::of(raw).loses_context {
                " LOST"
            } else {
                ""
            };
            writeln!(text, "{:?}{lost}: {error}", error.kind()).unwrap();
            known += 1;
        } else {
            let said = error.to_string();
            assert!(said.contains(&raw.to_string()), "{said}");
            assert!(Code::of(raw).loses_context, "the worst is assumed");
            unknown += 1;
        }
    }
    assert_eq!(known + unknown, 1102);
    assert_eq!(known, Code::all().count());
    writeln!(text, "{:?}", Code::of(-1).error("cuCall")).unwrap();
    if std::env::var_os("TAPELOOP_BLESS").is_some() {
        std::fs::write(SNAPSHOT, &text).unwrap();
    }
    let snapshot = std::fs::read_to_string(SNAPSHOT).unwrap();
    for (found, expected) in text.lines().zip(snapshot.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(text.lines().count(), snapshot.lines().count());
}
