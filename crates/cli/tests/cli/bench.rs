//! `tapeloop bench`: what it writes, compares and refuses.

use super::*;
use tapeloop_bench::record;

/// A short benchmark: one workload in two modes, unless `more` overrides that.
fn bench(folder: &Path, more: &[&str]) -> (Output, i32) {
    let of = |option: &'static str, value: &'static str| {
        if more.contains(&option) {
            vec![]
        } else {
            vec![option, value]
        }
    };
    let usual = [of("--workloads", "launch"), of("--axes", "mode")].concat();
    let start = [
        "bench",
        "--backend",
        "cpu",
        "--threads",
        "1",
        "--output",
        str_of(folder),
    ];
    let small = [
        "--set",
        "rounds=3",
        "--set",
        "repetition_ms=1",
        "--set",
        "vary.modes=[\"graph\", \"stream\"]",
        "--set",
        "launch.elements=100",
        "--set",
        "launch.kernels=3",
    ];
    let args = start.iter().chain(&small).chain(&usual).chain(more);
    let output = tapeloop(args).output().unwrap();
    let code = output.status.code().expect("not killed by a signal");
    (output, code)
}

#[test]
fn a_benchmark_leaves_a_history_and_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let (output, code) = bench(folder.path(), &[]);
    assert_eq!(code, 0, "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(
        said.contains("launch, 3 kernels") && said.contains("report.html"),
        "{said}"
    );
    let history = folder.path().join("bench.jsonl");
    let records = record::read(&history).unwrap();
    let modes: Vec<&str> = records.iter().map(|record| &*record.point.mode).collect();
    assert_eq!(modes, ["graph", "stream"]);
    for record in &records {
        assert_eq!(record.figures().unwrap().period_ns.len(), 3);
        assert_eq!(record.run.backend, "cpu");
        assert!(record.run.config.contains("launch.kernels = 3"));
        assert!(record.run.limits.host_bytes_per_s.unwrap() > 0.0);
    }
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("launch.kernels = 3"));
    // Another run adds to the history.
    let (_, code) = bench(folder.path(), &["--quiet"]);
    assert_eq!(code, 0);
    assert_eq!(record::read(&history).unwrap().len(), 4);
}

#[test]
fn whole_runs_are_measured_by_the_kind_of_work() {
    let folder = tempfile::tempdir().unwrap();
    let sample = format!("{SAMPLES}/1ubi.pdb");
    let files = ["--workloads", "files", "--set", "features=[\"rg\"]"];
    let (output, code) = bench(folder.path(), &[&files[..], &["--input", &sample]].concat());
    assert_eq!(code, 0, "{}", text(&output.stderr));
    let records = record::read(&folder.path().join("bench.jsonl")).unwrap();
    let names: Vec<&str> = records.iter().map(|it| &*it.point.workload).collect();
    assert_eq!(
        names,
        ["sasa_files", "sasa_files", "all_files", "all_files"]
    );
    for record in &records {
        let figures = record.figures().unwrap();
        assert_eq!(figures.period_ns.len(), 3);
        assert!(!figures.bound.is_empty());
        let cores: Vec<&str> = figures.cores.iter().map(|it| &*it.work).collect();
        assert_eq!(cores, ["engine", "reading", "tables"]);
        let engine = &figures.cores[0];
        assert!(engine.per_million_atoms > 0.0, "{engine:?}");
    }
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("s per million atoms"));
    assert!(page.contains("1 thread, unless a row differs") && !page.contains("0 slots"));
    let last = fs::read_to_string(folder.path().join("programs/run/run.json")).unwrap();
    let last: serde_json::Value = serde_json::from_str(&last).unwrap();
    assert_eq!(last["config"]["features"], serde_json::json!(["rg"]));

    let (output, code) = bench(folder.path(), &[&files[..], &["--dry-run"]].concat());
    assert_eq!((text(&output.stdout).as_str(), code), ("", 2));
    let said = text(&output.stderr);
    assert!(said.contains("--input"), "{said}");
}

#[test]
fn features_of_structures_are_measured_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let more = [
        "--workloads",
        "features",
        "--axes",
        "front",
        "--input",
        &format!("{SAMPLES}/1ubi.pdb"),
        "--set",
        "features=[\"rg\", \"contact_number\"]",
        "--set",
        "structures.residues=200",
    ];
    let (output, code) = bench(folder.path(), &more);
    assert_eq!(code, 0, "{}", text(&output.stderr));
    let records = record::read(&folder.path().join("bench.jsonl")).unwrap();
    let fronts: Vec<&str> = records.iter().map(|record| &*record.point.front).collect();
    assert_eq!(fronts, ["ring", "pipeline", "engine"]);
    for record in &records {
        let amounts = record.figures().unwrap().amounts;
        // Two ubiquitins of 76 residues fit.
        assert_eq!((amounts.structures, amounts.residues), (2.0, 152.0));
    }
}

#[test]
fn whole_runs_are_measured_over_files_that_are_named_from_the_current_folder() {
    let folder = tempfile::tempdir().unwrap();
    let small = ["rounds=1", "repetition_ms=1", "features=[\"rg\"]"];
    let small = small.iter().flat_map(|it| ["--set", it]);
    let mut bench = tapeloop(["bench", "1ubi.pdb", "--workloads", "files"]);
    bench.args(["--backend", "cpu", "--quiet", "-o", str_of(folder.path())]);
    let output = bench.args(small).current_dir(SAMPLES).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(folder.path().join("report.html").exists());
}

#[test]
fn structures_of_packed_sets_and_archives_are_measured_as_those_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let sample = format!("{SAMPLES}/1ubi.pdb");
    let packed = tapeloop(["pack", &sample, "-o", str_of(&at("set"))]).output();
    assert!(packed.unwrap().status.success());
    let tar = Command::new("tar")
        .args(["-C", SAMPLES, "-cf", str_of(&at("set.tar")), "1ubi.pdb"])
        .status();
    assert!(tar.unwrap().success());
    let measured = |input: &str| {
        let out = tempfile::tempdir().unwrap();
        let more = [
            "--workloads",
            "features,files",
            "--input",
            input,
            "--set",
            "features=[\"rg\"]",
            "--set",
            "structures.residues=200",
        ];
        let (output, code) = bench(out.path(), &more);
        assert_eq!(code, 0, "{}", text(&output.stderr));
        let records = record::read(&out.path().join("bench.jsonl")).unwrap();
        let (files, features): (Vec<_>, Vec<_>) = records
            .into_iter()
            .partition(|record| record.point.unit == "files");
        let amounts: Vec<_> = features
            .iter()
            .map(|record| record.figures().unwrap().amounts.atoms)
            .collect();
        (amounts, files.is_empty(), text(&output.stderr))
    };
    let (of_file, has_no_runs, _) = measured(&sample);
    assert!(!of_file.is_empty() && !has_no_runs);
    for input in ["set", "set.tar"] {
        let (amounts, has_no_runs, said) = measured(str_of(&at(input)));
        assert_eq!(amounts, of_file, "{input}");
        assert!(has_no_runs, "{input}");
        assert!(said.contains("workload files"), "{input}: {said}");
    }
    let set = at("set.tar");
    let more = ["--workloads", "files", "--input", str_of(&set)];
    let (output, code) = bench(&at("nothing"), &more);
    assert_eq!(code, 1, "{}", text(&output.stderr));
}

#[test]
fn other_tools_are_measured_over_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    // It reads, and does nothing else; the list has to name the file.
    let tool = "echo hello name=tools; while read line; do case $line in tools) echo ok \
                reader=1.0 zsasa=2.0;; rate*tool=reader*part=read*) list=${line##*list=}; if grep -q \
                1ubi.pdb $list; then echo ok seconds=0.5 atoms=600 check=1; else echo no \
                reason=no_file; fi;; *) echo no reason=not_done;; esac; done";
    let references = folder.path().join("references.toml");
    let text = format!("[[reference]]\nname = \"tools\"\ncommand = [\"sh\", \"-c\", '{tool}']\n");
    fs::write(&references, text).unwrap();
    let more = [
        "--input",
        &format!("{SAMPLES}/1ubi.pdb"),
        "--references",
        str_of(&references),
    ];
    let (output, code) = bench(folder.path(), &more);
    assert_eq!(code, 0, "{}", text_of(&output));
    let records = record::read(&folder.path().join("bench.jsonl")).unwrap();
    let programs = records
        .iter()
        .filter(|record| record.point.front == "program");
    let programs: Vec<_> = programs.collect();
    let parts: Vec<&str> = programs
        .iter()
        .map(|record| &*record.point.workload)
        .collect();
    let expected = ["read", "contacts", "sasa_kernel", "sasa_files", "all_files"];
    assert_eq!(
        parts,
        expected.map(|part| [part; 2]).concat(),
        "at one thread and at all"
    );
    for record in programs {
        let figures = record.figures().unwrap();
        assert_eq!(figures.period_ns.len(), 3);
        assert!(figures.period_ns.iter().all(|ns| *ns > 0.0));
        assert_eq!(
            (figures.amounts.structures, figures.amounts.residues),
            (1.0, 76.0)
        );
        let named: Vec<&str> = figures.references.iter().map(|one| &*one.name).collect();
        match record.point.workload.as_str() {
            "read" => assert_eq!(named, ["reader 1.0"]),
            _ => assert!(named.is_empty(), "{named:?}"),
        }
    }
}

fn text_of(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn runs_are_compared_with_a_verdict_and_an_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let (_, code) = bench(folder.path(), &["--quiet"]);
    assert_eq!(code, 0);
    let history = folder.path().join("bench.jsonl");
    let compare = |new: &Path| {
        let args = ["bench", "--compare", str_of(&history), str_of(new)];
        let output = tapeloop(args).output().unwrap();
        (output.status.code(), text(&output.stdout))
    };
    let (code, said) = compare(&history);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("Of 2 points"), "{said}");
    // The same at half the speed.
    let mut slower = record::read(&history).unwrap();
    for record in &mut slower {
        let record::Outcome::Measured(figures) = &mut record.outcome else {
            panic!("refused")
        };
        // Whatever took the cores from this test.
        figures.busy = 1.0;
        let even = figures.period_ns[0];
        figures.period_ns = (0..9)
            .map(|n| even * (1.0 + 0.001 * f64::from(n)))
            .collect();
    }
    let even = folder.path().join("even.jsonl");
    record::append(&even, &slower).unwrap();
    for record in &mut slower {
        let record::Outcome::Measured(figures) = &mut record.outcome else {
            panic!("refused")
        };
        figures.period_ns.iter_mut().for_each(|ns| *ns *= 2.0);
    }
    let slow = folder.path().join("slow.jsonl");
    record::append(&slow, &slower).unwrap();
    let args = ["bench", "--compare", str_of(&even), str_of(&slow)];
    let output = tapeloop(args).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stdout).contains("SLOWER"),
        "{}",
        text(&output.stdout)
    );
    // The same while other programs take the core.
    for record in &mut slower {
        let record::Outcome::Measured(figures) = &mut record.outcome else {
            panic!("refused")
        };
        figures.busy = 0.5;
    }
    let noisy = folder.path().join("noisy.jsonl");
    record::append(&noisy, &slower).unwrap();
    let args = ["bench", "--compare", str_of(&even), str_of(&noisy)];
    let output = tapeloop(args).output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("unclear") && said.contains("new run"));
    assert!(!said.contains("SLOWER"), "{said}");
}

#[test]
fn the_points_are_shown_before_they_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let (output, code) = bench(folder.path(), &["--dry-run"]);
    assert_eq!(code, 0);
    let lines = text(&output.stdout);
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert!(!folder.path().join("bench.jsonl").exists());
}

#[test]
fn the_help_names_every_workload_and_what_the_file_of_references_is() {
    let output = tapeloop(["bench", "--help"]).output().unwrap();
    let help = text(&output.stdout);
    let help: Vec<&str> = help.split_whitespace().collect();
    let help = help.join(" ");
    for part in [
        "launch, copy, compute, features, files.",
        "TOML file that names other programs",
        "scripts/build_references.sh writes one",
    ] {
        assert!(help.contains(part), "{help:?} lacks {part:?}");
    }
}

#[test]
fn mistakes_in_a_benchmark_config_name_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = |more: &[&str], said: &str| {
        let (output, code) = bench(folder.path(), more);
        let error = text(&output.stderr);
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(said), "{error}");
    };
    wrong(&["--axes", "mod"], "did you mean");
    wrong(&["--set", "launch.kernel=3"], "launch.kernels");
    wrong(&["--set", "repetition_ms=0"], "repetition_ms");
    wrong(&["--set", "vary.slots=[1, 2.5]"], "must be an integer");
    wrong(&["--set", "vary.modes=[\"grph\"]"], "did you mean `graph`");
    wrong(&["--references", "/nonexistent.toml"], "/nonexistent.toml");
    let slots: Vec<usize> = (1..=40).collect();
    let many = format!("vary.slots={slots:?}");
    let axes = "slots,batch,kernels,front,buckets,mode,transfer";
    let sizes =
        "launch.vary_elements=[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25]";
    let all = ["--axes", axes, "--set", &many, "--set", sizes];
    wrong(&all, "--full");
    // Nothing is made before the inputs are known.
    let made = folder.path().join("made");
    let missing = format!("{SAMPLES}/none.pdb");
    let (output, code) = bench(&made, &["--workloads", "features", "--input", &missing]);
    let error = text(&output.stderr);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("none.pdb"), "{error}");
    assert!(!made.exists());
}
