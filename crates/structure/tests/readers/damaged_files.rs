//! Formats are recognised, and broken input is an error, never a panic, and leaves the reader
//! usable.

use crate::has_parts;
use crate::random::Random;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use tapeloop_structure::{ErrorKind, ErrorScope};
use tapeloop_structure::{Format, Models, ReadOptions, Reader, Structure};

const PDB: &str = include_str!("fixtures/two_models.pdb");
const MMCIF: &str = include_str!("fixtures/two_models.cif");

/// The fixture of each format.
fn fixtures() -> impl Iterator<Item = (Format, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers/fixtures");
    Format::ALL.iter().map(move |&format| {
        let path = folder.join(format!("two_models.{}", format.endings()[0]));
        let text = std::fs::read(&path);
        (
            format,
            text.unwrap_or_else(|error| panic!("{}: {error}", path.display())),
        )
    })
}

fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn reader() -> Reader {
    Reader::new(ReadOptions {
        models: Models::All,
        ..ReadOptions::default()
    })
}

#[test]
fn the_fixture_of_each_format_has_two_models_under_every_ending_plain_and_gzipped() {
    for (format, text) in fixtures() {
        let wanted = reader().read_bytes(&text, format).unwrap();
        assert_eq!(wanted.len(), 2, "{format:?}");
        for ending in format.endings() {
            for name in [format!("a.{ending}"), format!("a.{ending}.gz")] {
                assert_eq!(Format::from_name(&name), Some(format), "{name}");
                let plain = reader().read_auto(&name, &text).unwrap();
                let packed = reader().read_auto(&name, &gzipped(&text)).unwrap();
                assert!(
                    is_same(&plain, &wanted) && is_same(&packed, &wanted),
                    "{name}"
                );
            }
        }
    }
}

/// Whether structures are equal, or NaN in the same places.
fn is_same(one: &[Structure], other: &[Structure]) -> bool {
    format!("{one:?}") == format!("{other:?}")
}

#[test]
fn the_manual_lists_the_endings_of_every_format() {
    let manual = include_str!("../../../../docs/config/inputs.md");
    for ending in Format::ALL.iter().flat_map(|format| format.endings()) {
        let quoted = format!("`.{ending}`");
        assert!(
            manual.contains(&quoted),
            "docs/config/inputs.md lacks {quoted}"
        );
    }
}

#[test]
fn gzip_is_recognised_by_its_bytes() {
    let wanted = reader().read_bytes(PDB.as_bytes(), Format::Pdb).unwrap();
    for name in ["a.ENT.GZ", "a", "a.txt"] {
        let plain = reader().read_auto(name, PDB.as_bytes()).unwrap();
        let packed = reader().read_auto(name, &gzipped(PDB.as_bytes())).unwrap();
        assert!(plain == wanted && packed == wanted, "{name}");
    }
    let (start, end) = PDB.as_bytes().split_at(500);
    let members = [gzipped(start), gzipped(end)].concat();
    assert_eq!(reader().read_auto("a.pdb.gz", &members).unwrap(), wanted);
}

#[test]
fn mmcif_text_is_recognised_under_any_name() {
    let wanted = reader()
        .read_bytes(MMCIF.as_bytes(), Format::Mmcif)
        .unwrap();
    for name in ["a.ent", "a"] {
        assert_eq!(
            reader().read_auto(name, MMCIF.as_bytes()).unwrap(),
            wanted,
            "{name}"
        );
    }
}

#[test]
fn damaged_files_say_what_is_wrong() {
    let packed = gzipped(PDB.as_bytes());
    let mut flipped = packed.clone();
    flipped[40] ^= 0x55;
    let mut wrong_sum = packed.clone();
    let checksum = wrong_sum.len() - 6;
    wrong_sum[checksum] ^= 1;
    for (name, bytes, wanted) in [
        ("cut.pdb.gz", &packed[..packed.len() - 9], "cut short"),
        ("cut.pdb.gz", &packed[..11], "cut short"),
        ("cut.pdb.gz", &packed[..2], "gzip"),
        ("flipped.pdb.gz", &flipped, "damaged"),
        ("sum.pdb.gz", &wrong_sum, "damaged"),
        ("tail.pdb.gz", &[&packed[..], b"xyz"].concat(), "gzip"),
        ("empty.pdb", b"", "empty"),
        ("blank.cif", b" \n\n", "empty"),
        ("empty.cif.gz", &gzipped(b""), "empty"),
        ("letter.txt", b"Dear Sir or Madam", "PDB .. mmCIF"),
        ("letter.pdb", b"Dear Sir or Madam", "ATOM or HETATM"),
        ("a.bcif", b"\x83\xa7encoder", "byte 9: .. cut short"),
    ] {
        let error = reader().read_auto(name, bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "{name}");
        assert!(has_parts(error.message(), wanted), "{name}: {error}");
    }
}

#[test]
fn files_that_cannot_be_opened_are_io_errors() {
    let folder = tempfile::tempdir().unwrap();
    let missing = reader()
        .read_path(&folder.path().join("missing.pdb"))
        .unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Io);
    assert_eq!(
        reader().read_path(folder.path()).unwrap_err().kind(),
        ErrorKind::Io
    );
    let path = folder.path().join("there.cif.gz");
    std::fs::write(&path, gzipped(MMCIF.as_bytes())).unwrap();
    assert_eq!(reader().read_path(&path).unwrap().len(), 2);
}

/// The first run of bytes for which `belongs` is true that begins at `from` or later.
fn span(text: &[u8], from: usize, belongs: fn(&u8) -> bool) -> Range<usize> {
    let skipped = text[from..].iter().take_while(|byte| !belongs(byte));
    let start = from + skipped.count();
    start
        ..start
            + text[start..]
                .iter()
                .take_while(|byte| belongs(byte))
                .count()
}

fn is_of_token(byte: &u8) -> bool {
    !byte.is_ascii_whitespace()
}

fn is_of_number(byte: &u8) -> bool {
    byte.is_ascii_digit() || b"-.".contains(byte)
}

/// Flips, removes, doubles or cuts off pieces of the text, repeats a token many times, or swaps two
/// numbers.
fn mutate(text: &mut Vec<u8>, random: &mut Random) {
    const ODD: &[u8] = b"\0\n\r\t '\"#;_.?-+0123456789AZaz\x7f\xff";
    for _ in 0..=random.below(8) {
        let start = random.below(text.len().max(1)).min(text.len());
        let end = (start + random.below(90)).min(text.len());
        match random.below(8) {
            0 => text.truncate(start),
            1 => drop(text.drain(start..end)),
            2 => text
                .splice(start..start, text[start..end].to_vec())
                .for_each(drop),
            3 => text.insert(start, ODD[random.below(ODD.len())]),
            4 => {
                let token = span(text, start, is_of_token);
                // A token that was repeated before is long.
                let times = (1 + random.below(500)).min(10_000 / token.len().max(1));
                let many = text[token.clone()].repeat(times);
                text.splice(token.end..token.end, many).for_each(drop);
            }
            5 => {
                let first = span(text, start, is_of_number);
                let second = span(text, end.max(first.end), is_of_number);
                let (a, b) = (text[first.clone()].to_vec(), text[second.clone()].to_vec());
                text.splice(second, a).for_each(drop);
                text.splice(first, b).for_each(drop);
            }
            _ if start < text.len() => text[start] = ODD[random.below(ODD.len())],
            _ => {}
        }
    }
}

#[test]
fn mutated_text_never_panics_and_leaves_no_trace() {
    let mut random = Random::new(0x7461_7065_6c6f_6f70);
    for (format, text) in fixtures() {
        let mut reader = reader();
        let wanted = reader.read_bytes(&text, format).unwrap();
        for round in 0..6_000 {
            let mut bytes = text.clone();
            mutate(&mut bytes, &mut random);
            let start = Instant::now();
            let _ = reader.read_auto("a", &bytes);
            assert!(start.elapsed() < Duration::from_secs(2), "round {round}");
            if let Err(error) = reader.read_bytes(&bytes, format) {
                assert_eq!(error.scope(), ErrorScope::Item, "{error}");
            }
            if round % 100 == 0 {
                let again = reader.read_bytes(&text, format).unwrap();
                assert!(is_same(&again, &wanted), "the previous file left a trace");
            }
        }
    }
}

#[test]
fn a_loop_that_mixes_two_categories_is_read_for_its_first_one() {
    let mixed = "\nloop_\n_struct_asym.id\n_pdbx_struct_oper_list.vector[2]\nA 0.0\nB 0.0\n#\n";
    let read = |text: &str| reader().read_bytes(text.as_bytes(), Format::Mmcif).unwrap();
    assert_eq!(read(&[MMCIF, mixed].concat()), read(MMCIF));
}

#[test]
fn every_cut_of_a_file_is_read_or_refused() {
    for (format, text) in fixtures() {
        for end in 0..text.len() {
            let _ = reader().read_bytes(&text[..end], format);
        }
    }
}

#[test]
fn random_bytes_never_panic() {
    let mut random = Random::new(0x2545_f491_4f6c_dd1d);
    let mut reader = reader();
    for _ in 0..2_000 {
        let bytes: Vec<u8> = (0..random.below(600))
            .map(|_| random.below(256) as u8)
            .collect();
        for &format in Format::ALL {
            let _ = reader.read_bytes(&bytes, format);
        }
        let packed = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &bytes].concat();
        let _ = reader.read_auto("a.gz", &packed);
    }
}
