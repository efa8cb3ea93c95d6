//! Packed sets.

mod annotations;
mod damaged;
mod hostile;
mod other_programs;

use super::*;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// `tapeloop` with `args`, its exit code and what it printed on standard error.
fn command(args: &[&str]) -> (Output, i32, String) {
    let output = tapeloop(args).output().unwrap();
    let (code, said) = (output.status.code().unwrap(), text(&output.stderr));
    (output, code, said)
}

/// Packs, which must end with exit code `expected`.
fn pack(args: &[&str], expected: i32) -> String {
    let (_, code, said) = command(&[&["pack"], args].concat());
    assert_eq!(code, expected, "{said}");
    said
}

fn inspect(set: &Path, name: &[&str]) -> serde_json::Value {
    let (output, code, said) = command(&[&["inspect", "--json", str_of(set)], name].concat());
    assert_eq!(code, 0, "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A folder with the small samples, broken files, and an archive with a member that is no structure.
fn inputs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let inputs = folder.path().join("in");
    fs::rename(small_samples(folder.path()), &inputs).unwrap();
    let broken = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/broken");
    for entry in fs::read_dir(broken).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, inputs.join(path.file_name().unwrap())).unwrap();
    }
    let files = ["1ubi.pdb", "1yjp.cif"].map(|name| {
        let bytes = fs::read(Path::new(SAMPLES).join(name)).unwrap();
        (format!("deep/{name}"), bytes)
    });
    let junk = ("junk.pdb".to_owned(), b"junk".to_vec());
    let members = [&files[..], &[junk]].concat();
    fs::write(inputs.join("more.tar"), archives::tar_of(&members)).unwrap();
    folder
}

/// Features that read every column of a structure.
const FEATURES: [&str; 2] = [
    "--features",
    "rsa,iface,dssp,sheets,wcn,torsions,b_factor,plddt,rg,contact_order",
];

/// The tables and the rejected inputs of a run, which may reject some.
fn results(input: &str, out: &Path, args: &[&str]) -> (Vec<(PathBuf, Vec<u8>)>, Vec<u8>) {
    let (output, code) = run(&[&[input, "-o", str_of(out)], args].concat());
    assert!([0, 3].contains(&code), "{}", text(&output.stderr));
    (parts(out), fs::read(out.join("rejected.jsonl")).unwrap())
}

#[test]
fn a_run_over_a_set_writes_the_bytes_of_a_run_over_its_files() {
    let folder = inputs();
    let at = |name: &str| folder.path().join(name);
    let input = at("in");
    let settings: [&[&str]; 4] = [
        &[],
        &["--models", "all"],
        &["--set", "assembly=1", "--set", "nucleic=false"],
        &["--strict", "--set", "b_factor=plddt"],
    ];
    for (number, settings) in settings.into_iter().enumerate() {
        let set = at(&format!("set-{number}"));
        let to_set = [str_of(&input), "-o", str_of(&set)];
        pack(&[&to_set, settings, &["--threads", "2"]].concat(), 3);
        let formats: &[&str] = match number {
            0 => &["parquet", "arrow", "csv", "json"],
            _ => &["parquet"],
        };
        for format in formats {
            let args = |threads| {
                [
                    &FEATURES,
                    settings,
                    &["--format", format, "--threads", threads],
                ]
                .concat()
            };
            let out = |name: &str| at(&format!("{name}-{number}-{format}"));
            let files = results(str_of(&input), &out("files"), &args("1"));
            assert!(files.0.iter().all(|(_, bytes)| bytes.len() > 100));
            assert!(files.1.len() > 1000);
            for threads in ["1", "2"] {
                let packed = results(str_of(&set), &out(threads), &args(threads));
                assert!(packed == files, "{settings:?}, {format}, {threads} threads");
            }
        }
    }
    // The bytes of the set do not depend on the threads either.
    let again = at("again");
    pack(&[str_of(&input), "-o", str_of(&again), "--threads", "1"], 3);
    let bytes = |set: &Path| fs::read(set.join("structures-00000.arrow")).unwrap();
    assert!(bytes(&again) == bytes(&at("set-0")));
    // A set that is packed from a set has the same structures.
    let copy = at("copy");
    pack(&[str_of(&again), "-o", str_of(&copy)], 3);
    assert!(bytes(&copy) == bytes(&again));
    let totals = inspect(&again, &[]);
    assert_eq!(
        totals["inputs"],
        totals["structures"].as_u64().unwrap() + totals["rejected"].as_u64().unwrap()
    );
    assert_eq!(totals["settings"]["models"], "first");
    let models = inspect(&at("set-1"), &[]);
    assert!(models["structures"].as_u64() > totals["structures"].as_u64());
}

#[test]
fn sets_and_archives_share_little_memory_on_one_thread_and_end() {
    let folder = inputs();
    let set = folder.path().join("set");
    pack(&[str_of(&folder.path().join("in")), "-o", str_of(&set)], 3);
    let tar = folder.path().join("in/more.tar");
    let out = folder.path().join("out");
    let mut run = tapeloop([
        "run",
        str_of(&set),
        str_of(&tar),
        str_of(&set),
        str_of(&tar),
    ]);
    run.args(["--features", "rg", "--threads", "1", "-q"]);
    run.args(["--set", "limits.reading_bytes_max=1000", "-o", str_of(&out)]);
    let mut child = run.stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let code = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status.code(),
            None if Instant::now() > deadline => {
                child.kill().unwrap();
                panic!("threads wait for each other's memory");
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    assert_eq!(code, Some(3), "the inputs that cannot be read are rejected");
    assert!(record(&out)["counts"]["structures"].as_u64() > Some(20));
}

#[test]
fn chains_that_a_list_chooses_are_packed_alone() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list");
    let lines = ["1bd2.pdb.gz,D", "1bd2.pdb.gz,E", "1ubi,Z", "1ubi.pdb"];
    let lines = lines.map(|line| format!("{SAMPLES}/{line}\n"));
    fs::write(&list, lines.concat()).unwrap();
    let list = format!("@{}", list.display());
    let set = folder.path().join("set");
    let said = pack(&[&list, "-o", str_of(&set)], 3);
    assert!(said.contains("chain"), "{said}");
    let [files, packed] = [(&*list, "files"), (str_of(&set), "packed")]
        .map(|(input, out)| results(input, &folder.path().join(out), &FEATURES));
    assert!(files == packed);
    let found = inspect(&set, &["1bd2"]);
    let chains = found.as_array().unwrap().iter();
    let chains: Vec<_> = chains
        .map(|it| it["structures"][0]["chains"][0]["chain"].clone())
        .collect();
    assert_eq!(chains, ["D", "E"]);
    // A list names no part of a set.
    fs::write(folder.path().join("list"), "set/structures-00000.arrow,A\n").unwrap();
    let (output, code) = run(&[&list, "-o", "-"]);
    assert_eq!(code, 1);
    assert!(text(&output.stderr).contains("chain"));
}

#[test]
fn annotations_are_packed_with_the_residues() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let table = at("x.tsv");
    let rows = "structure\tchain\tresidue\tx\ty\n1ubi\tA\t3\t1.5\t2\n1ubi\tA\t4\t2.5\t\n";
    fs::write(&table, rows).unwrap();
    let file = format!("annotations={}", table.display());
    let channel = ["--set", "smooth.channels=[\"b_ca\", \"x\"]"];
    let set = at("set");
    let annotated = ["--set", &file];
    pack(
        &[&[SAMPLES, "-o", str_of(&set)], &annotated[..], &channel].concat(),
        0,
    );
    assert_eq!(inspect(&set, &[])["annotations"], serde_json::json!(["x"]));
    let smooth = [&["--features", "smooth"], &channel[..]].concat();
    let none = ["--set", "tables.annotations=[]"];
    let files = [&smooth[..], &annotated, &none].concat();
    let files = results(SAMPLES, &at("files"), &files);
    let packed = results(str_of(&set), &at("packed"), &smooth);
    assert!(packed == files);
    // A channel that the set does not have needs a table.
    let other = ["--features", "smooth", "--set", "smooth.channels=[\"y\"]"];
    let (output, code) = run(&[&[str_of(&set), "-o", str_of(&at("other"))], &other[..]].concat());
    assert_eq!(code, 2);
    assert!(text(&output.stderr).contains("`annotations`"));
    // A set has no tables, and columns go to those of a run over it.
    let said = pack(&[SAMPLES, "-o", str_of(&at("no")), "--set", &file], 2);
    assert!(said.contains("neither `smooth.channels`"), "{said}");
    let joined = results(
        str_of(&set),
        &at("joined"),
        &[&["--features", "rg"], &annotated[..]].concat(),
    );
    let files = [&["--features", "rg"], &annotated[..]].concat();
    assert!(joined == results(SAMPLES, &at("joined_files"), &files));
    // The same structures without annotations are another set.
    let said = pack(&[SAMPLES, "-o", str_of(&set)], 2);
    assert!(said.contains("annotations"), "{said}");
}

#[test]
fn packing_again_appends_with_the_same_settings_alone() {
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set");
    let sample = |name: &str| format!("{SAMPLES}/{name}");
    let [first, second] = [sample("1ubi.pdb"), sample("1yjp.cif")];
    pack(&[&first, "-o", str_of(&set)], 0);
    pack(&[&second, "-o", str_of(&set)], 0);
    let names = || {
        let mut names: Vec<_> = fs::read_dir(&set)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let expected = [
        ".tapeloop.lock",
        "structures-00000.arrow",
        "structures-00001.arrow",
    ];
    assert_eq!(names(), expected);
    let out = |name: &str| folder.path().join(name);
    let whole = results(&first, &out("files"), &["-i", &second, "--features", "rg"]);
    let packed = results(str_of(&set), &out("packed"), &["--features", "rg"]);
    assert!(whole == packed);
    // A file of a set is an input of its own.
    let last = set.join("structures-00001.arrow");
    let alone = results(str_of(&last), &out("last"), &["--features", "rg"]);
    assert!(alone == results(&second, &out("second"), &["--features", "rg"]));
    let said = pack(&[&first, "-o", str_of(&set), "--models", "all"], 2);
    let parts = [
        "structures-00000.arrow",
        "models = \"first\"",
        "models is \"all\"",
    ];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    let said = pack(&[str_of(&set), "-o", str_of(&set)], 2);
    assert!(said.contains("holds the set"), "{said}");
    fs::write(set.join("notes.txt"), "mine").unwrap();
    let said = pack(&[&first, "-o", str_of(&set)], 2);
    assert!(said.contains("notes.txt"), "{said}");
    fs::remove_file(set.join("notes.txt")).unwrap();
    assert_eq!(names(), expected);
}

#[test]
fn settings_that_differ_are_named_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set");
    let never = folder.path().join("never");
    let sample = format!("{SAMPLES}/1ubi.pdb");
    for (key, value) in [
        ("batch.residues", "64"),
        ("features", "rg"),
        ("output", "-"),
    ] {
        let setting = format!("{key}={value}");
        let mut args = vec![&*sample, "--set", &setting];
        args.extend(["-o", str_of(&never)].iter().filter(|_| key != "output"));
        let said = pack(&args, 2);
        let named = format!("`{key}`");
        assert!(said.contains(&named) || key == "output", "{said}");
    }
    let said = pack(&[&sample, "-o", str_of(&never), "--set", "model=all"], 2);
    assert!(said.contains("unknown key `model`"), "{said}");
    pack(&[&sample, "-o", str_of(&set)], 0);
    let settings = [
        "models=all",
        "nucleic=false",
        "assembly=1",
        "b_factor=plddt",
        "strict=true",
    ];
    for setting in settings {
        let (key, _) = setting.split_once('=').unwrap();
        let args = [str_of(&set), "-o", str_of(&never), "--set", setting];
        let (output, code) = run(&args);
        let said = text(&output.stderr);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(&format!("{key} = ")), "{said}");
    }
    assert!(!never.exists());
}

#[test]
fn members_and_shards_of_a_set_are_those_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set");
    pack(&[SAMPLES, "-o", str_of(&set)], 0);
    let set = str_of(&set);
    let stdout = |args: &[&str]| {
        let to = ["-o", "-", "--format", "csv", "--features", "rg"];
        text(&run_well(&[args, &to[..]].concat()).stdout)
    };
    assert!(stdout(&[set, "--shard", "2/3"]) == stdout(&[SAMPLES, "--shard", "2/3"]));
    let files = ["1a8o.cif.gz", "1a8o.pdb"].map(|name| format!("{SAMPLES}/{name}"));
    assert!(stdout(&[set, "--members", "1a8o*"]) == stdout(&[&files[0], &files[1]]));
    assert!(stdout(&[set, "--members", "*/samples/1a8o*"]) == stdout(&[&files[0], &files[1]]));
    let (output, code) = run(&[set, "-o", "-", "--members", "none*"]);
    assert_eq!(code, 1);
    assert!(text(&output.stderr).contains("no structure file"));
    let found = inspect(Path::new(set), &["1ubi"]);
    assert_eq!(found[0]["structures"][0]["chains"][0]["residues"], 76);
    let sequence = found[0]["structures"][0]["chains"][0]["sequence"].as_str();
    assert!(sequence.unwrap().starts_with("MQIFVKTLTGK"));
    let (_, code, said) = command(&["inspect", set, "1ubj"]);
    assert_eq!((code, said.contains("1ubj")), (2, true));
    let (output, ..) = command(&["inspect", set, "1ubi.pdb"]);
    assert!(text(&output.stdout).contains("chain A, 76 residues: MQIFVKTLTGK"));
    let (output, ..) = command(&["inspect", set]);
    assert!(text(&output.stdout).contains("checksums    all right"));
}
