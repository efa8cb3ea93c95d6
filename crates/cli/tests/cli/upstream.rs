//! Defects of dependencies that `docs/upstream` reports. A report goes once its inputs no longer panic.

use super::*;
use tapeloop_files::quietly;

/// The input of a report, and the inputs with its changes.
fn inputs_of(report: &str) -> (Vec<u8>, Vec<Vec<u8>>) {
    let text = fs::read_to_string(format!("{ROOT}/docs/upstream/{report}.md")).unwrap();
    let block = text.split("```hex\n").nth(1).unwrap();
    let digits: String = block
        .split("```")
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let digits = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let good: Vec<u8> = digits.map(byte).collect();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let damaged = rows.map(|row| {
        let mut bytes = good.clone();
        for change in row.split('`').next().unwrap().split(", ") {
            let (place, value) = change.split_once('=').unwrap();
            bytes[place.parse::<usize>().unwrap()] = value.parse().unwrap();
        }
        bytes
    });
    let damaged: Vec<_> = damaged.collect();
    (good, damaged)
}

fn check(report: &str, read: impl Fn(Vec<u8>) -> Option<usize>) {
    let (good, damaged) = inputs_of(report);
    assert!(quietly(|| read(good)).unwrap().is_some(), "{report}");
    assert!(damaged.len() >= 3, "{report}");
    for (row, bytes) in damaged.into_iter().enumerate() {
        let outcome = quietly(|| read(bytes));
        assert!(outcome.is_err(), "{report}, row {}: {outcome:?}", row + 1);
    }
}

#[test]
fn the_inputs_of_reports_of_readers_panic() {
    check("molly", |bytes| {
        let mut frame = molly::Frame::default();
        let read = molly::XTCReader::new(&*bytes).read_frame(&mut frame);
        read.ok().map(|()| frame.positions.len())
    });
    check("parquet", |bytes| {
        use parquet::file::reader::{FileReader, SerializedFileReader};
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        let reader = SerializedFileReader::new(file).ok()?;
        let rows: Result<Vec<_>, _> = reader.get_row_iter(None).ok()?.collect();
        rows.ok().map(|rows| rows.len())
    });
    check("arrow-ipc", |bytes| {
        let bytes = std::io::Cursor::new(bytes);
        let reader = arrow_ipc::reader::FileReader::try_new(bytes, None).ok()?;
        let batches: Result<Vec<_>, _> = reader.collect();
        batches.ok().map(|batches| batches.len())
    });
}
