//! Files of packed sets that are damaged, and Arrow files that are no packed set.

use super::*;
use crate::random::Random;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{Metadata, Schema};
use std::sync::Arc;

/// A set of one sample three times, and the bytes of its only file.
pub(super) fn set(folder: &Path) -> (PathBuf, Vec<u8>) {
    let set = folder.join("set");
    let sample = format!("{SAMPLES}/1ubi.pdb");
    let copies = ["a", "b"].map(|name| copy_of("1ubi.pdb", &folder.join("copies").join(name)));
    let [first, second] = copies.each_ref().map(|copy| str_of(copy));
    pack(&[&sample, first, second, "-o", str_of(&set)], 0);
    let file = set.join("structures-00000.arrow");
    let bytes = fs::read(&file).unwrap();
    (file, bytes)
}

#[test]
fn a_flipped_bit_rejects_the_inputs_of_its_record_batch_and_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (file, mut bytes) = set(folder.path());
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let out = folder.path().join("out");
    let (output, code) = run(&[str_of(&file), "-o", str_of(&out)]);
    assert_eq!(code, 1);
    let said = text(&output.stderr);
    let parts = ["structures-00000.arrow: record batch 0", "checksum"];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    let rejected = rejected(&out);
    assert_eq!(rejected.len(), 3);
    assert!(
        rejected[2]["source"]
            .as_str()
            .unwrap()
            .ends_with("1ubi.pdb")
    );
    let (_, code, said) = command(&["inspect", str_of(&file)]);
    assert_eq!((code, said.contains("checksum")), (1, true), "{said}");
}

#[test]
fn a_file_that_is_cut_short_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (file, bytes) = set(folder.path());
    for length in [0, 9, 10, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&file, &bytes[..length]).unwrap();
        let (set, out) = (folder.path().join("set"), folder.path().join("out"));
        let (output, code) = run(&[str_of(&set), "-o", str_of(&out), "--overwrite"]);
        let said = text(&output.stderr);
        assert_eq!(code, 1, "{said}");
        let parts = ["structures-00000.arrow", "complete Arrow file"];
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
}

#[test]
fn a_folder_with_the_tables_of_a_run_holds_no_set() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("in/out");
    let sample = format!("{SAMPLES}/1ubi.pdb");
    fs::create_dir(folder.path().join("in")).unwrap();
    run_well(&[
        &sample,
        "-o",
        str_of(&out),
        "--format",
        "arrow",
        "--features",
        "rg",
    ]);
    let next = folder.path().join("next");
    let (output, code) = run(&[str_of(&out), "-o", str_of(&next)]);
    let said = text(&output.stderr);
    assert_ne!(code, 0);
    assert!(said.contains("no structure file"), "{said}");
    assert!(!next.exists());
    // Tables in a folder with structures are skipped. A table that is named as an input is refused.
    fs::copy(&sample, folder.path().join("in/1ubi.pdb")).unwrap();
    let input = folder.path().join("in");
    run_well(&[str_of(&input), "-o", str_of(&next), "--features", "rg"]);
    assert_eq!(record(&next)["counts"]["inputs"], 1);
    let table = out.join("residues/part-00000.arrow");
    let (output, code) = run(&[str_of(&table), "-o", str_of(&next), "--overwrite"]);
    let said = text(&output.stderr);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("Arrow file"), "{said}");
    let (_, code, said) = command(&["inspect", str_of(&table)]);
    assert_eq!((code, said.contains("packed set")), (1, true), "{said}");
    let (_, code, said) = command(&["inspect", str_of(&out)]);
    assert_eq!((code, said.contains("packed file")), (1, true), "{said}");
}

#[test]
fn limits_hold_for_packed_structures() {
    let folder = tempfile::tempdir().unwrap();
    let (file, _) = set(folder.path());
    for limit in [
        "atoms_max",
        "residues_max",
        "text_bytes_max",
        "row_names_bytes_max",
    ] {
        let setting = format!("limits.{limit}=50");
        let (output, code) = run(&[str_of(&file), "-o", "-", "--set", &setting]);
        let said = text(&output.stderr);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains(&format!("limits.{limit} is 50")), "{said}");
    }
}

const TO_STDOUT: [&str; 6] = ["-o", "-", "--format", "csv", "--features", "rg"];

/// Writes the columns of a packed file as another program would, without checksums.
pub(super) fn write(path: &Path, fields: Vec<(String, ArrayRef)>, metadata: Metadata) {
    let batch = RecordBatch::try_from_iter(fields).unwrap();
    let schema = Schema::clone(&batch.schema()).with_metadata(metadata);
    let file = fs::File::create(path).unwrap();
    let mut writer = FileWriter::try_new(file, &schema).unwrap();
    let batch = batch.with_schema(Arc::new(schema)).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
}

#[test]
fn a_file_of_another_program_needs_the_columns_and_the_version() {
    let folder = tempfile::tempdir().unwrap();
    let (file, _) = set(folder.path());
    let mut reader = FileReader::try_new(fs::File::open(&file).unwrap(), None).unwrap();
    let batch = reader.next().unwrap().unwrap();
    let schema = batch.schema();
    let metadata = schema.metadata();
    let fields = schema.fields().iter().map(|field| field.name().clone());
    let fields: Vec<(String, ArrayRef)> = fields.zip(batch.columns().to_vec()).collect();
    let other = folder.path().join("other.arrow");
    let read = |args: &[&str]| {
        let (output, code) = run(&[&[str_of(&other)], &TO_STDOUT[..], args].concat());
        (text(&output.stdout), code, text(&output.stderr))
    };
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1; batch.num_rows()]));
    let mut turned: Vec<_> = fields.iter().cloned().rev().collect();
    turned.push(("more".to_owned(), Arc::clone(&numbers)));
    write(&other, turned, metadata.clone());
    let expected = run_well(&[&[str_of(&file)], &TO_STDOUT[..]].concat());
    assert_eq!(read(&[]).0, text(&expected.stdout));
    // Settings that a file does not state are not compared.
    let mut short = metadata.clone();
    short.remove("tapeloop.reader");
    write(&other, fields.clone(), short);
    assert_eq!(read(&["--models", "all"]).1, 0);
    for at in 0..fields.len() {
        let mut changed = fields.clone();
        changed[at].1 = Arc::clone(&numbers);
        write(&other, changed, metadata.clone());
        let (_, code, said) = read(&[]);
        let name = &fields[at].0;
        let named = format!("`{name}` .. type");
        assert!(code == 1 && has_parts(&said, &named), "{said}");
        let mut fewer = fields.clone();
        fewer.remove(at);
        write(&other, fewer, metadata.clone());
        let (tables, code, said) = read(&[]);
        if ["method", "resolution", "title", "findings"].contains(&name.as_str()) {
            // Sets of earlier versions lack these, and residues do not have them.
            assert!(code == 0 && tables == text(&expected.stdout), "{said}");
            continue;
        }
        let named = format!("no column `{name}`");
        assert!(code == 1 && has_parts(&said, &named), "{said}");
    }
    let mut next = metadata.clone();
    next.insert("tapeloop.packed".to_owned(), "2".to_owned());
    write(&other, fields, next);
    let (_, code, said) = read(&[]);
    assert!(code == 1 && said.contains("of version \"2\""), "{said}");
}

/// A file is one input, or several, or none; whatever it holds, the run goes on and nothing panics.
#[test]
fn files_with_random_changes_end_no_run_and_panic_nowhere() {
    const FILES: u32 = 1200;
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set");
    let junk = folder.path().join("junk.pdb");
    fs::write(&junk, "junk").unwrap();
    let table = folder.path().join("x.tsv");
    fs::write(&table, "structure\tchain\tresidue\tx\n1yjp\tA\t3\t1.5\n").unwrap();
    let annotations = format!("annotations={}", table.display());
    let channels = "smooth.channels=[\"x\"]";
    let samples = ["1yjp.cif", "1grm.pdb"].map(|name| format!("{SAMPLES}/{name}"));
    let [first, second] = &samples;
    let annotated = ["--set", &annotations, "--set", channels];
    let to_set = ["-o", str_of(&set), "--models", "all"];
    let inputs = [first, second, str_of(&junk)];
    pack(&[&inputs[..], &to_set, &annotated].concat(), 3);
    let mut whole = fs::read(set.join("structures-00000.arrow")).unwrap();
    // Without checksums, so that every change reaches the decoder, and without settings, which would
    // refuse the run if a change made them differ.
    for key in [&b"tapeloop.crc32"[..], b"tapeloop.reader"] {
        let is_key = |&at: &usize| whole[at..].starts_with(key);
        let places: Vec<usize> = (0..whole.len()).filter(is_key).collect();
        assert!(!places.is_empty());
        places.into_iter().for_each(|at| whole[at] = b'T');
    }
    // Another name of the annotation refuses the run too.
    let key = &b"tapeloop.annotations"[..];
    let places = (0..whole.len()).filter(|&at| whole[at..].starts_with(key));
    let names: Vec<_> = places.map(|at| at - 64..at + 96).collect();
    assert!(!names.is_empty());
    let changed = folder.path().join("changed");
    fs::create_dir(&changed).unwrap();
    let mut random = Random::new(7);
    for number in 0..FILES {
        let mut bytes = whole.clone();
        let at = random.below(bytes.len());
        match number % 6 {
            0 => bytes.truncate(at),
            // Bytes in the middle are gone, as after a broken download.
            1 => drop(bytes.drain(at..(at + 64).min(whole.len()))),
            2 => bytes[at..].iter_mut().take(4).for_each(|byte| *byte = 0xff),
            3 => bytes[at..].iter_mut().take(8).for_each(|byte| *byte = 0),
            _ => bytes[at] ^= 1 << random.below(8),
        }
        let is_renamed = bytes.len() == whole.len()
            && names
                .iter()
                .any(|it| bytes[it.clone()] != whole[it.clone()]);
        if is_renamed {
            continue;
        }
        fs::write(changed.join(format!("{number:04}.arrow")), bytes).unwrap();
    }
    let out = folder.path().join("out");
    let args = [
        "-o",
        str_of(&out),
        "--models",
        "all",
        "--set",
        channels,
        "--features",
    ];
    let (output, code) = run(&[&[str_of(&changed)], &args[..], &["all"]].concat());
    let said = text(&output.stderr);
    assert!([0, 3].contains(&code), "{code}: {said}");
    let reasons = fs::read_to_string(out.join("rejected.jsonl")).unwrap();
    assert!(
        !said.contains("panicked") && !reasons.contains("panicked"),
        "{said}\n{reasons}"
    );
    let read = record(&out)["counts"]["structures"].as_u64().unwrap();
    assert!(read > u64::from(FILES) / 2, "{read}");
    assert!(reasons.lines().count() > 100, "{reasons}");
}

#[test]
fn a_file_of_a_set_that_is_missing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set");
    let sample = format!("{SAMPLES}/1ubi.pdb");
    for _ in 0..3 {
        pack(&[&sample, "-o", str_of(&set)], 0);
    }
    fs::remove_file(set.join("structures-00001.arrow")).unwrap();
    let out = folder.path().join("out");
    let missing = "structures-00001.arrow .. missing";
    let (output, code) = run(&[str_of(&set), "-o", str_of(&out)]);
    let said = text(&output.stderr);
    assert!(
        code == 1 && has_parts(&said, missing) && said.contains("copy the set"),
        "{said}"
    );
    assert!(!out.exists());
    let (_, code, said) = command(&["inspect", str_of(&set)]);
    assert!(code == 1 && has_parts(&said, missing), "{said}");
    let said = pack(&[&sample, "-o", str_of(&set)], 1);
    assert!(has_parts(&said, missing), "{said}");
    // Within another folder, the set is an input that is rejected for it, and its files are read.
    let (_, code) = run(&[str_of(folder.path()), "-o", str_of(&out)]);
    assert_eq!(code, 3);
    let rejected = rejected(&out);
    assert_eq!(rejected.len(), 1);
    assert!(has_parts(&rejected[0].to_string(), missing));
    let counts = &record(&out)["counts"];
    assert_eq!(counts["structures"], 2, "{counts}");
    // The files may be named one by one.
    let files = set.join("*.arrow");
    run_well(&[str_of(&files), "-o", str_of(&out), "--overwrite"]);
}

#[test]
fn a_set_states_in_each_file_that_another_follows() {
    let folder = tempfile::tempdir().unwrap();
    let (set, list) = (folder.path().join("set"), folder.path().join("list"));
    // More inputs than a file has rows. They do not exist, so each is a row with an error.
    fs::write(&list, "missing.pdb\n".repeat(65_537)).unwrap();
    pack(&[&format!("@{}", str_of(&list)), "-o", str_of(&set)], 1);
    let (first, last) = ("structures-00000.arrow", "structures-00001.arrow");
    assert_eq!(inspect(&set, &[])["rejected"], 65_537);
    fs::remove_file(set.join(last)).unwrap();
    let (_, code, said) = command(&["inspect", str_of(&set)]);
    assert!(
        code == 1 && has_parts(&said, &format!("{last} .. missing")),
        "{said}"
    );
    let alone = inspect(&set.join(first), &[]);
    assert_eq!(alone["rejected"], 65_536);
}
