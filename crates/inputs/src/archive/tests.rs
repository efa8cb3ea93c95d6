use super::super::{Archives, Shard, Source, Sources};
use super::*;
use flate2::write::GzEncoder;
use makers::{TarMaker, ZipMaker};
use rawzip::CompressionMethod;
use std::io::Write;
use tapeloop_error::ErrorKind;
use tapeloop_files::text_of;
use tapeloop_structure::ReadOptions;
use tar_core::EntryType;
use tar_core::builder::EntryBuilder;

use tapeloop_test_support::archives as makers;

const ATOM: &[u8] =
    b"ATOM      1  CA  ALA A   1      11.104   6.134  -6.504  1.00  9.00           C\nEND\n";

fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let maker = ZipMaker::new(CompressionMethod::DEFLATE);
    let add = |maker: ZipMaker, (name, bytes): &(&str, &[u8])| maker.file(name, bytes);
    files.iter().fold(maker, add).finish()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

struct ReadSources {
    /// The names in the archive, and whether the source has a problem.
    sources: Vec<(String, Option<String>)>,
    skipped: Skipped,
}

fn read_with(name: &str, bytes: &[u8], members: Option<&str>, shard: &str) -> ReadSources {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let options = ArchiveOptions {
        members: members.map(|text| member_pattern(text).unwrap()),
        limits: ReadLimits {
            text_bytes_max: 8 << 20,
            ..ReadLimits::default()
        },
        budget: Arc::new(ReadBudget::new(1 << 20)),
        has_topology: false,
        reader: Map::new(),
    };
    let shard: Shard = shard.parse().unwrap();
    let mut sources = Sources::new(vec![text_of(&path)], Archives::Read(options), shard);
    let mut reader = Reader::new(ReadOptions::default());
    let mut read = |source: Source| {
        let name = source.path.strip_prefix(&path).unwrap();
        let content = source.content;
        let structures = content.and_then(|content| content.read(&source.path, &mut reader));
        (
            text_of(name),
            structures.err().map(|error| error.to_string()),
        )
    };
    let found = std::iter::from_fn(|| sources.next())
        .map(&mut read)
        .collect();
    ReadSources {
        sources: found,
        skipped: sources.skipped().clone(),
    }
}

fn read(name: &str, bytes: &[u8]) -> Vec<(String, Option<String>)> {
    read_with(name, bytes, None, "1/1").sources
}

/// Names of sources that are read without a problem.
fn good(names: &[&str]) -> Vec<(String, Option<String>)> {
    names.iter().map(|&name| (name.to_owned(), None)).collect()
}

#[test]
fn nothing_is_read_of_a_damaged_pipe_that_holds_a_structure() {
    let packed = gzipped(&ATOM.repeat(100));
    let cut = std::io::Cursor::new(packed[..packed.len() - 20].to_vec());
    let options = ArchiveOptions {
        members: None,
        limits: ReadLimits::default(),
        budget: Arc::new(ReadBudget::new(1 << 20)),
        has_topology: false,
        reader: Map::new(),
    };
    let piped = Piped::new(cut, &options.limits);
    let error = piped
        .and_then(|piped| piped.read_all(&options))
        .err()
        .unwrap();
    assert_eq!(error.message(), "standard input is cut short");
    assert_eq!(error.fix_text(), Some("fetch or make it again"));
}

/// The only problem, which is of the last source.
fn last_problem(sources: &[(String, Option<String>)]) -> &str {
    let (last, others) = sources.split_last().unwrap();
    assert!(
        others.iter().all(|(_, problem)| problem.is_none()),
        "{sources:?}"
    );
    last.1.as_deref().unwrap()
}

#[test]
fn names_show_archives() {
    let of_name = ArchiveKind::of_name;
    for tar in ["a.tar", "a.TAR.gz", "x.y.tar.zst", "a.tgz", "a.tzst"] {
        assert_eq!(of_name(tar), Some(ArchiveKind::Tar), "{tar}");
    }
    assert_eq!(of_name("a.ZIP"), Some(ArchiveKind::Zip));
    assert_eq!(of_name("a.Arrow"), Some(ArchiveKind::Packed));
    for other in ["a.pdb", "tar", "a.zip.gz", "a.gz", ""] {
        assert_eq!(of_name(other), None, "{other}");
    }
}

#[test]
fn every_kind_of_archive_has_the_same_members() {
    let packed = gzipped(ATOM);
    let long = format!("{}/3.pdb", "folder".repeat(40));
    let tar = TarMaker::default()
        .entry("./set/", EntryType::Directory, b"")
        .file("./set/1.pdb", ATOM)
        .file("./set/2.pdb.gz", &packed)
        .file("./set/readme.txt", b"not a structure")
        .file("./set/._2.pdb.gz", b"of macOS")
        .file(&long, ATOM)
        .finish();
    let zipped = zip(&[
        ("set/1.pdb", ATOM),
        ("set/2.pdb.gz", &packed),
        ("set/readme.txt", b"not a structure"),
        (&long, ATOM),
    ]);
    let expected = good(&["set/1.pdb", "set/2.pdb.gz", &long]);
    let kinds = [
        ("a.tar", tar.clone()),
        ("a.tar.gz", gzipped(&tar)),
        ("a.tzst", zstd::encode_all(&tar[..], 3).unwrap()),
        // The content decides how it is compressed.
        ("b.tar", gzipped(&tar)),
        ("a.zip", zipped),
    ];
    for (name, bytes) in kinds {
        let found = read_with(name, &bytes, None, "1/1");
        assert_eq!(found.sources, expected, "{name}");
        assert_eq!(found.skipped.others, 1, "{name}");
        assert!(found.skipped.first_others[0].ends_with("set/readme.txt"));
        let chosen = read_with(name, &bytes, Some("*.gz"), "1/1");
        assert_eq!(chosen.sources, good(&["set/2.pdb.gz"]), "{name}");
        let second = read_with(name, &bytes, None, "2/2");
        assert_eq!(second.sources, good(&["set/2.pdb.gz"]), "{name}");
    }
}

#[test]
fn a_pattern_with_a_folder_is_for_the_whole_name() {
    let tar = TarMaker::default()
        .file("a/1.pdb", ATOM)
        .file("b/1.pdb", ATOM);
    let found = read_with("x.tar", &tar.finish(), Some("b/*"), "1/1");
    assert_eq!(found.sources, good(&["b/1.pdb"]));
}

#[test]
fn members_that_are_no_files_are_rejected_and_the_others_read() {
    let tar = TarMaker::default()
        .file("../up.pdb", ATOM)
        .file("/root.pdb", ATOM)
        .entry("soft.pdb", EntryType::Symlink, b"")
        .entry("hard.pdb", EntryType::Link, b"")
        .entry("pipe.pdb", EntryType::Fifo, b"")
        .entry("device.pdb", EntryType::Block, b"")
        .file("large.pdb", &vec![b' '; 9 << 20])
        .file("good.pdb", ATOM)
        .finish();
    let found = read("x.tar", &tar);
    let said: Vec<&str> = found
        .iter()
        .map(|(_, said)| said.as_deref().unwrap_or(""))
        .collect();
    let expected = [
        ("../up.pdb", "out of the archive"),
        ("root.pdb", "out of the archive"),
        ("soft.pdb", "target.pdb"),
        ("hard.pdb", "target.pdb"),
        ("pipe.pdb", "a FIFO"),
        ("device.pdb", "a device"),
        ("large.pdb", "limits.text_bytes_max"),
        ("good.pdb", ""),
    ];
    for ((name, said), (expected, part)) in found
        .iter()
        .zip(&said)
        .map(|((n, _), s)| (n, s))
        .zip(expected)
    {
        assert_eq!(name, expected);
        assert!(said.contains(part), "{name}: {said}");
        assert_eq!(said.is_empty(), part.is_empty(), "{name}: {said}");
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn folders_are_skipped_however_they_are_marked() {
    // GNU tar lists the names in a folder, each behind a letter, in archives of changes.
    let names = b"Y1.pdb\0\0";
    let tar = TarMaker::default()
        .entry("plain.pdb/", EntryType::Directory, b"")
        .entry("dumped.pdb/", EntryType::Other(b'D'), names)
        .entry("before_posix.pdb/", EntryType::Regular, b"")
        .entry("label.pdb", EntryType::Other(b'V'), b"")
        .file("dumped.pdb/1.pdb", ATOM);
    let zip = ZipMaker::new(CompressionMethod::STORE)
        .entry("plain.pdb/", 0o040_755, b"")
        .entry("marked.pdb", 0o040_755, b"")
        .file("dumped.pdb/1.pdb", ATOM);
    for (name, bytes) in [("x.tar", tar.finish()), ("x.zip", zip.finish())] {
        let found = read_with(name, &bytes, None, "1/1");
        assert_eq!(found.sources, good(&["dumped.pdb/1.pdb"]), "{name}");
        assert_eq!(found.skipped.others, 0, "{name}");
    }
    let folders = TarMaker::default().entry("a/", EntryType::Other(b'D'), names);
    assert!(last_problem(&read("x.tar", &folders.finish())).contains("no file"));
}

#[test]
fn a_zip_archive_with_the_name_of_a_tar_archive_is_called_one() {
    for bytes in [zip(&[("1.pdb", ATOM)]), zip(&[("1.pdb", &ATOM.repeat(99))])] {
        let said = read("x.tar", &bytes);
        assert!(last_problem(&said).contains("ZIP"), "{said:?}");
        assert!(last_problem(&said).contains(".zip"), "{said:?}");
    }
}

#[test]
fn a_tar_archive_with_the_name_of_a_zip_archive_is_called_one() {
    let tar = TarMaker::default().file("1.pdb", ATOM).finish();
    for (bytes, what) in [(gzipped(&tar), "compressed data"), (tar, "a tar archive")] {
        let found = read("x.zip", &bytes);
        let said = last_problem(&found);
        assert!(said.contains(what), "{said}");
        assert!(said.contains("rename it"), "{said}");
    }
}

#[test]
fn what_is_cut_short_or_damaged_ends_the_archive_with_an_error() {
    let tar = TarMaker::default()
        .file("1.pdb", ATOM)
        .file("2.pdb", ATOM)
        .finish();
    for (bytes, said) in [
        (tar.len() - 1024, "empty blocks"),
        (tar.len() - 1024 - 400, "cut short"),
        (512 + 512 + 100, "cut short"),
    ] {
        let found = read("x.tar", &tar[..bytes]);
        assert_eq!(found[0].0, "1.pdb", "{bytes}");
        assert!(last_problem(&found).contains(said), "{bytes}: {found:?}");
        let packed = gzipped(&tar[..bytes]);
        assert!(
            last_problem(&read("x.tgz", &packed)).contains(said),
            "{bytes}"
        );
    }
    let mut damaged = tar.clone();
    damaged[1024 + 3] ^= 1;
    assert!(last_problem(&read("x.tar", &damaged)).contains("damaged"));
    let packed = gzipped(&tar);
    let found = read("x.tar.gz", &packed[..packed.len() - 5]);
    assert!(last_problem(&found).contains("cut short"), "{found:?}");
    let mut wrong_sum = packed;
    let checksum = wrong_sum.len() - 6;
    wrong_sum[checksum] ^= 1;
    assert!(last_problem(&read("x.tar.gz", &wrong_sum)).contains("damaged"));
    assert!(last_problem(&read("x.tar", b"no archive at all")).contains("cut short"));
    assert!(last_problem(&read("x.zip", b"no archive at all")).contains("damaged"));
}

#[test]
fn archives_behind_each_other_are_read_as_one() {
    let one = TarMaker::default().file("1.pdb", ATOM).finish();
    let two = TarMaker::default().file("2.pdb", ATOM).finish();
    let padded = [&one[..], &[0; 5 * 512], &two].concat();
    assert_eq!(read("x.tar", &padded), good(&["1.pdb", "2.pdb"]));
    let zeros_behind_gzip = [&gzipped(&one)[..], &[0; 2000]].concat();
    assert_eq!(read("x.tar.gz", &zeros_behind_gzip), good(&["1.pdb"]));
    let junk = [&one[..], b"junk"].concat();
    assert!(last_problem(&read("x.tar", &junk)).contains("cut short"));
}

#[test]
fn an_archive_that_unpacks_too_far_is_ended() {
    let zeros = vec![0; 7 << 20];
    let mut tar = TarMaker::default().file("1.pdb", ATOM);
    for number in 0..20 {
        tar = tar.file(&format!("{number}.txt"), &zeros);
    }
    let bomb = zstd::encode_all(&tar.file("2.pdb", ATOM).finish()[..], 3).unwrap();
    let found = read("x.tar.zst", &bomb);
    assert!(
        last_problem(&found).contains("limits.unpack_ratio_max is 32"),
        "{found:?}"
    );
    let bomb = zip(&[("1.pdb", ATOM), ("2.pdb", &zeros)]);
    let found = read("x.zip", &bomb);
    assert!(
        last_problem(&found).contains("limits.unpack_ratio_max is 32"),
        "{found:?}"
    );
}

#[test]
fn members_of_a_zip_archive_that_share_bytes_end_it() {
    let one = zip(&[("1.pdb", &ATOM.repeat(40))]);
    // The directory names the same member several times.
    let start = one
        .windows(4)
        .position(|signature| signature == b"PK\x01\x02")
        .unwrap();
    let end = one
        .windows(4)
        .position(|signature| signature == b"PK\x05\x06")
        .unwrap();
    let count = 50_u16;
    let mut bomb = one[..start].to_vec();
    bomb.extend(one[start..end].repeat(count.into()));
    let mut tail = one[end..].to_vec();
    tail[8..10].copy_from_slice(&count.to_le_bytes());
    tail[10..12].copy_from_slice(&count.to_le_bytes());
    let directory = (one[start..end].len() as u32) * u32::from(count);
    tail[12..16].copy_from_slice(&directory.to_le_bytes());
    bomb.extend(tail);
    let found = read("x.zip", &bomb);
    assert!(last_problem(&found).contains("larger"), "{found:?}");
    assert!(found.len() < usize::from(count));
}

#[test]
fn headers_of_any_size_take_bounded_memory() {
    // A name of 64 MiB.
    let mut entry = EntryBuilder::new_gnu();
    entry
        .path("././@LongLink")
        .entry_type(EntryType::GnuLongName);
    let mut tar = entry.size(64 << 20).unwrap().finish_bytes();
    tar.extend(vec![b'x'; 64 << 20]);
    let found = read("x.tar", &tar);
    assert!(last_problem(&found).contains("exceeds limit"), "{found:?}");
}

#[test]
fn wrong_patterns_are_refused() {
    let error = member_pattern("a**b").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("*.cif.gz"), "{error}");
}

#[test]
fn the_number_of_inputs_does_not_depend_on_which_are_read() {
    let noise: Vec<u8> = (0..3000_u32).map(|i| (i * i * 7) as u8).collect();
    let tar = TarMaker::default()
        .file("1.pdb", ATOM)
        .file("2.pdb", &noise)
        .file("3.pdb", ATOM)
        .finish();
    let packed = gzipped(&tar);
    let cuts = (0..tar.len())
        .step_by(100)
        .map(|cut| ("x.tar", &tar[..cut]));
    let packed = (2..packed.len())
        .step_by(7)
        .map(|cut| ("x.tgz", &packed[..cut]));
    for (name, bytes) in cuts.chain(packed) {
        let whole = read(name, bytes);
        for count in 2..4_usize {
            let shard = |index: usize| format!("{}/{count}", index + 1);
            for index in 0..count {
                let expected: Vec<_> = whole.iter().skip(index).step_by(count).cloned().collect();
                let found = read_with(name, bytes, None, &shard(index)).sources;
                let names = |sources: &[(String, Option<String>)]| -> Vec<_> {
                    sources
                        .iter()
                        .map(|(name, said)| (name.clone(), said.clone()))
                        .collect()
                };
                // An archive without an input in its shard is said to be empty by the item.
                if !expected.is_empty() {
                    assert_eq!(
                        names(&found),
                        names(&expected),
                        "{name} {} {index}/{count}",
                        bytes.len()
                    );
                }
            }
        }
    }
}

#[test]
fn sizes_that_no_file_has_and_archives_without_files_are_refused() {
    for size in [u64::MAX, u64::MAX - 100, 1 << 63, i64::MAX as u64] {
        let mut entry = EntryBuilder::new_ustar();
        entry.path("2.pdb").add_pax("size", size.to_string());
        let mut tar = TarMaker::default().file("1.pdb", ATOM).0;
        tar.extend(entry.finish_bytes());
        let found = read("x.tar", &tar);
        assert_eq!(found[0], ("1.pdb".to_owned(), None), "{size}");
        assert!(found[1].1.is_some(), "{size}: {found:?}");
    }
    let folders = TarMaker::default()
        .entry("a/", EntryType::Directory, b"")
        .finish();
    for bytes in [folders, vec![0; 200 << 10]] {
        assert!(last_problem(&read("x.tar", &bytes)).contains("no file"));
    }
    assert!(last_problem(&read("x.zip", &zip(&[]))).contains("no file"));
    let mut fewer = zip(&[("1.pdb", ATOM)]);
    let end = fewer
        .windows(4)
        .position(|signature| signature == b"PK\x05\x06")
        .unwrap();
    fewer[end + 8] = 9;
    fewer[end + 10] = 9;
    assert!(last_problem(&read("x.zip", &fewer)).contains("should have 9"));
}
