//! Inputs and output folders that would harm a program that trusted them.
#![cfg(unix)]

use super::*;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/1ubi.pdb");

fn make_fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

/// A run of one feature over `inputs` into `out`.
fn run_into(out: &Path, inputs: &[&str], more: &[&str]) -> (Output, i32) {
    let mut args = vec!["-o", str_of(out), "--features", "rg"];
    args.extend(inputs.iter().flat_map(|input| ["-i", *input]));
    run(&[&args, more].concat())
}

#[test]
fn earlier_results_stay_until_the_new_ones_are_complete() {
    let out = tempfile::tempdir().unwrap();
    let out = out.path();
    assert_eq!(run_into(out, &[SAMPLE], &[]).1, 0);
    let (first, first_record) = (parts(out), record(out));
    assert_eq!(first_record["state"], "finished");
    assert_eq!(first_record["written"]["parts"], 1);

    let junk = tempfile::tempdir().unwrap();
    let missing = junk.path().join("1ubo.pdb");
    fs::write(&missing, "junk").unwrap();
    let missing = str_of(&missing);
    let (output, code) = run_into(out, &[missing], &["--overwrite"]);
    assert_eq!(code, 1);
    assert!(parts(out) == first && record(out) == first_record);
    let new = out.join(".tapeloop-new");
    let said = text(&output.stderr);
    let kept = format!("earlier results .. {}\n", new.display());
    assert!(has_parts(&said, &kept), "{said}");
    assert_eq!(rejected(&new).len(), 1);

    let other = format!("{SAMPLES}/1a8o.pdb");
    assert_eq!(run_into(out, &[&other, missing], &["--overwrite"]).1, 3);
    assert!(parts(out) != first && !new.exists());
    assert_eq!(rejected(out).len(), 1);
    assert_eq!(record(out)["counts"]["structures"], 1);
}

#[test]
fn a_run_first_finishes_the_replacement_that_an_earlier_run_began() {
    let folder = tempfile::tempdir().unwrap();
    let [out, other] = ["out", "other"].map(|name| folder.path().join(name));
    let second = format!("{SAMPLES}/1a8o.pdb");
    let two = ["--set", "tables.inputs_per_part=1"];
    assert_eq!(run_into(&out, &[SAMPLE, SAMPLE], &two).1, 0);
    assert_eq!(run_into(&other, &[&second], &[]).1, 0);
    let (new_parts, new_record) = (parts(&other), record(&other));
    // As a kill leaves them once the residues have been moved.
    let new = out.join(".tapeloop-new");
    fs::rename(&other, &new).unwrap();
    fs::rename(new.join("run.json"), new.join(".run.json.tmp")).unwrap();
    let moving = r#"{"state": "replacing", "written": {"parts": 0}}"#;
    fs::write(out.join("run.json"), moving).unwrap();
    let part = "residues/part-00000.parquet";
    fs::rename(new.join(part), out.join(part)).unwrap();

    let junk = folder.path().join("junk.pdb");
    fs::write(&junk, "junk").unwrap();
    let (output, code) = run_into(&out, &[str_of(&junk)], &["--overwrite"]);
    assert_eq!(code, 1);
    let said = text(&output.stderr);
    assert!(said.contains("earlier run"), "{said}");
    assert!(parts(&out) == new_parts && record(&out) == new_record);
}

#[test]
fn a_link_or_a_fifo_in_place_of_a_result_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("precious"), "precious").unwrap();
    for (number, name) in [
        "rejected.jsonl",
        "run.json",
        ".run.json.tmp",
        ".tapeloop.lock",
    ]
    .into_iter()
    .enumerate()
    {
        for more in [&["-q"][..], &["-q", "--overwrite"]] {
            let out = at(&format!("out{number}"));
            fs::create_dir_all(&out).unwrap();
            let _ = fs::remove_file(out.join(name));
            symlink(at("precious"), out.join(name)).unwrap();
            let (output, code) = run_into(&out, &[SAMPLE], more);
            let said = text(&output.stderr);
            assert_eq!(code, 2, "{said}");
            assert!(has_parts(&said, &format!("{name}: .. link")), "{said}");
            assert!(said.contains("fix: remove it"), "{said}");
            fs::remove_file(out.join(name)).unwrap();
            make_fifo(&out.join(name));
            let said = text(&run_into(&out, &[SAMPLE], more).0.stderr);
            assert!(has_parts(&said, &format!("{name}: .. FIFO")), "{said}");
        }
    }
    fs::create_dir_all(at("out/elsewhere")).unwrap();
    symlink("elsewhere", at("out/residues")).unwrap();
    let (output, code) = run_into(&at("out"), &[SAMPLE], &[]);
    assert_eq!(code, 2);
    assert!(has_parts(
        &text(&output.stderr),
        "residues: .. link .. folder"
    ));
    assert_eq!(fs::read(at("precious")).unwrap(), b"precious");
}

#[test]
fn a_run_locks_its_folder_before_it_looks_for_results() {
    let out = tempfile::tempdir().unwrap();
    fs::write(out.path().join("rejected.jsonl"), "mine").unwrap();
    let said = |more: &[&str]| {
        let (output, code) = run_into(out.path(), &[SAMPLE], more);
        assert_eq!(code, 2);
        text(&output.stderr)
    };
    assert!(said(&[]).contains("results of another run"));
    let lock = fs::File::open(out.path().join(".tapeloop.lock")).unwrap();
    lock.lock().unwrap();
    for more in [&[][..], &["--overwrite"]] {
        assert!(said(more).contains("another run"));
    }
    assert_eq!(
        fs::read(out.path().join("rejected.jsonl")).unwrap(),
        b"mine"
    );
}

#[test]
fn a_timeline_is_not_written_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("precious"), "precious").unwrap();
    symlink(at("precious"), at("timeline.svg")).unwrap();
    let set = format!("timeline={:?}", str_of(folder.path()));
    let (output, code) = run_into(&at("out"), &[SAMPLE], &["--set", &set]);
    assert_eq!(code, 2, "{}", text(&output.stderr));
    assert_eq!(fs::read(at("precious")).unwrap(), b"precious");
}

#[test]
fn results_that_the_run_reads_are_not_replaced() {
    let out = tempfile::tempdir().unwrap();
    let out = out.path();
    assert_eq!(run_into(out, &[SAMPLE], &[]).1, 0);
    let (first, first_record) = (parts(out), record(out));
    let part = out.join("structures/part-00000.parquet");
    let link = out.join("link.pdb");
    symlink(&part, &link).unwrap();
    let (output, code) = run_into(out, &[SAMPLE, str_of(&link)], &["--overwrite"]);
    let said = text(&output.stderr);
    assert_eq!(code, 2, "{said}");
    assert!(has_parts(&said, "link.pdb: .. results"), "{said}");
    let annotations = format!("annotations={:?}", str_of(&out.join("residues")));
    let args = [
        "-i",
        SAMPLE,
        "-o",
        str_of(out),
        "--overwrite",
        "--features",
        "smooth",
    ];
    let channels = "smooth.channels=[\"label_seq_id\"]";
    let annotated = ["tables.annotations=[]", channels, &annotations].map(|key| ["--set", key]);
    let (output, code) = run(&[&args[..], annotated.as_flattened()].concat());
    let said = text(&output.stderr);
    assert_eq!(code, 2, "{said}");
    assert!(
        has_parts(&said, "residues/part-00000.parquet: .. input"),
        "{said}"
    );
    assert!(parts(out) == first && record(out) == first_record);
}

#[test]
fn fifos_in_folders_are_skipped_and_counted_and_a_list_may_be_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("in")).unwrap();
    fs::copy(SAMPLE, at("in/1ubi.pdb")).unwrap();
    make_fifo(&at("in/2.pdb"));
    let (output, code) = run_into(&at("out"), &[str_of(&at("in"))], &["-v"]);
    let said = text(&output.stderr);
    assert_eq!(code, 0, "{said}");
    assert_eq!(said.matches("FIFOs").count(), 1, "{said}");
    assert_eq!(record(&at("out"))["counts"]["specials_skipped"], 1);

    let (output, code) = run_into(&at("named"), &[str_of(&at("in/2.pdb"))], &["-q"]);
    let said = text(&output.stderr);
    assert_eq!(code, 1, "{said}");
    assert!(has_parts(&said, "in/2.pdb: .. FIFO"), "{said}");
    assert!(!at("named").exists());

    make_fifo(&at("list"));
    let list = at("list");
    let writer = std::thread::spawn(move || fs::write(list, "1ubi.pdb\n").unwrap());
    let item = format!("@{}", at("list").display());
    let args = [
        "run",
        "--backend",
        "cpu",
        "-q",
        "-i",
        &item,
        "--features",
        "rg",
    ];
    let mut command = tapeloop(args);
    command.args(["-o", str_of(&at("listed"))]);
    // Lines start from the folder of the program, as the FIFO's own has no inputs.
    let status = command.current_dir(SAMPLES).status().unwrap();
    writer.join().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(record(&at("listed"))["counts"]["structures"], 1);
}

#[test]
fn file_names_are_bytes_and_are_escaped_on_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in");
    fs::create_dir(&input).unwrap();
    let good: [&[u8]; 2] = [b"a\xff.pdb", b"a\xfe.pdb"];
    for name in good {
        fs::copy(SAMPLE, input.join(OsStr::from_bytes(name))).unwrap();
    }
    fs::write(input.join("z\x1b[2J\n.pdb"), "junk").unwrap();
    let out = folder.path().join("out");
    let (output, code) = run_into(&out, &[str_of(&input)], &[]);
    assert_eq!(code, 3);
    let table = results::read(&out.join("structures/part-00000.parquet"));
    let sources = results::texts(&table, "source");
    let at = |name: &str| input.join(name).to_str().unwrap().to_owned();
    assert_eq!(sources, [at(r"a\xfe.pdb"), at(r"a\xff.pdb")]);
    assert_eq!(results::texts(&table, "structure"), [r"a\xfe", r"a\xff"]);
    assert_eq!(rejected(&out)[0]["source"], at("z\x1b[2J\n.pdb"));
    let said = text(&output.stderr);
    assert!(said.contains(r"z\u{1b}[2J\n.pdb"), "{said}");
    assert!(!said.contains('\x1b') && output.stdout.is_empty());

    // The same names on the command line, and painted.
    let named = input.join(OsStr::from_bytes(good[0]));
    let painted = folder.path().join("painted");
    let mut paint = tapeloop(["paint".as_ref(), named.as_os_str(), "wcn".as_ref()]);
    paint
        .args(["--backend", "cpu", "-o"])
        .arg(format!("{}/", painted.display()));
    let output = paint.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(painted.join(OsStr::from_bytes(good[0])).exists());
}

#[test]
fn a_kernel_in_a_fifo_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    make_fifo(&folder.path().join("near.cu"));
    let config = folder.path().join("own.toml");
    fs::write(&config, "[[kernel]]\nfile = \"near.cu\"\n").unwrap();
    let out = folder.path().join("out");
    let args = [
        str_of(&config),
        SAMPLE,
        "-o",
        str_of(&out),
        "--trust-config",
    ];
    let (output, code) = run(&args);
    let said = text(&output.stderr);
    assert!(code != 0 && said.contains("near.cu: "), "{said}");
}
