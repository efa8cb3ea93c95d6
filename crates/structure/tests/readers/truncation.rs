//! PDB files that are cut short.

use tapeloop_structure::ErrorKind;
use tapeloop_structure::{Check, CheckSet, Format, Models, ReadOptions, Reader, Truncation};

use super::limits::LINE;

fn truncation_of(text: &str) -> Option<Truncation> {
    let options = ReadOptions {
        models: Models::All,
        ..ReadOptions::default()
    };
    let read = Reader::new(options)
        .read_bytes(text.as_bytes(), Format::Pdb)
        .unwrap();
    let found = read[0].truncation;
    assert!(read.iter().all(|structure| structure.truncation == found));
    let strict = ReadOptions {
        strict: CheckSet::NONE.with(Check::Truncated),
        ..options
    };
    match Reader::new(strict).read_bytes(text.as_bytes(), Format::Pdb) {
        Ok(again) => assert_eq!((again, found), (read, None)),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Input);
            let reason = found.unwrap().to_string();
            assert!(error.message().ends_with(&reason), "{error}");
            assert!(error.fix_text().unwrap().contains("strict"));
        }
    }
    found
}

#[test]
fn pdb_files_that_may_be_cut_short_are_marked() {
    let master = |atoms| format!("MASTER{:44}{atoms:5}\n", "");
    let missing = |master, read| Some(Truncation::AtomsMissing { master, read });
    let files = [
        (format!("{LINE}END\n"), None),
        (format!("{LINE}TER\nEND"), None),
        (format!("{LINE}END\r\n"), None),
        (format!("MODEL        1\n{LINE}ENDMDL\n"), None),
        (format!("{LINE}{}END\n", master(1)), None),
        // The wwPDB leaves hydrogens and some altlocs out of the count.
        (format!("{LINE}{LINE}{}END\n", master(1)), None),
        (format!("{LINE}MASTER\nEND\n"), None),
        (LINE.to_owned(), Some(Truncation::NoEnd)),
        (LINE.replace('\n', "\r\n"), Some(Truncation::NoEnd)),
        (LINE.trim_end().to_owned(), Some(Truncation::LineBrokenOff)),
        (format!("{LINE}CONECT    1    2\n"), Some(Truncation::NoEnd)),
        (
            format!("MODEL        1\n{LINE}ENDMDL\nMODEL        2\n{LINE}"),
            Some(Truncation::NoEnd),
        ),
        (format!("{LINE}{}END\n", master(3)), missing(3, 1)),
    ];
    for (text, wanted) in files {
        assert_eq!(truncation_of(&text), wanted, "{text}");
    }
}

#[test]
fn every_cut_in_the_atoms_of_a_pdb_file_is_noticed() {
    let text = format!("{}END\n", LINE.repeat(5));
    let strict = ReadOptions {
        strict: CheckSet::NONE.with(Check::Truncated),
        ..ReadOptions::default()
    };
    for end in 0..LINE.len() * 5 {
        let cut = &text.as_bytes()[..end];
        assert!(
            Reader::new(strict).read_bytes(cut, Format::Pdb).is_err(),
            "{end}"
        );
    }
    assert!(
        Reader::new(strict)
            .read_bytes(text.as_bytes(), Format::Pdb)
            .is_ok()
    );
}
