//! Runs that are killed, interrupted or fail, and go on.

use super::*;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A folder of inputs, some of which are rejected, in several parts.
pub(super) struct Set {
    pub(super) folder: tempfile::TempDir,
    pub(super) features: &'static str,
    /// More arguments of every run.
    pub(super) args: Vec<String>,
}

const INPUTS: usize = 60;

/// Arguments that make twelve parts, with small row groups.
const PARTS: [&str; 4] = [
    "--set",
    "tables.inputs_per_part=5",
    "--set",
    "tables.rows_per_group=100",
];

impl Set {
    pub(super) fn of(count: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let inputs = folder.path().join("in");
        fs::create_dir(&inputs).unwrap();
        let sample = fs::read(Path::new(SAMPLES).join("1ubi.pdb")).unwrap();
        for number in 0..count {
            let text: &[u8] = if number % 7 == 3 { b"junk" } else { &sample };
            fs::write(inputs.join(format!("{number:03}.pdb")), text).unwrap();
        }
        Set {
            folder,
            features: "contact_number,rsa,hse_a",
            args: Vec::new(),
        }
    }

    /// With annotations of most of the inputs, which are read with the structures.
    fn annotated() -> Self {
        let mut set = Set::of(INPUTS);
        let mut table = "structure\tchain\tresidue\tx\n".to_owned();
        for number in (0..INPUTS).filter(|number| number % 5 != 4) {
            // Residue 900 is in no structure.
            for residue in [1, 2 + number, 900] {
                table += &format!("{number:03}\tA\t{residue}\t{number}.5\n");
            }
        }
        // Two for each residue, and one for none.
        let mut variants = "structure,chain,residue,variant,lineage\n".to_owned();
        for number in (0..INPUTS).filter(|number| number % 5 != 4) {
            for residue in [1, 1, 2, 900] {
                variants += &format!("{number:03},A,{residue},V{number},L{residue}\n");
            }
        }
        let [path, mutations] = ["x.tsv", "v.csv"].map(|name| set.at(name));
        fs::write(&path, table).unwrap();
        fs::write(&mutations, variants).unwrap();
        set.features = "smooth";
        for setting in [
            format!("annotations=[{path:?}, {mutations:?}]"),
            "smooth.channels=[\"x\"]".to_owned(),
        ] {
            set.args.extend(["--set".to_owned(), setting]);
        }
        set
    }

    /// With the frames of a trajectory, which holds those of a shorter one again and again.
    fn frames() -> Self {
        let mut set = Set::of(INPUTS);
        let inputs = set.folder.path().join("in");
        fs::remove_dir_all(&inputs).unwrap();
        fs::create_dir(&inputs).unwrap();
        let xtc = Path::new(ROOT).join("tests/data/trajectories/1ubi.xtc");
        let bytes = fs::read(xtc).unwrap().repeat(INPUTS / 3);
        fs::write(inputs.join("long.xtc"), bytes).unwrap();
        set.args = vec!["--topology".to_owned(), format!("{SAMPLES}/1ubi.pdb")];
        set
    }

    fn at(&self, name: &str) -> String {
        str_of(&self.folder.path().join(name)).to_owned()
    }

    pub(super) fn args(&self, out: &str, more: &[&str]) -> Vec<String> {
        let args = [self.at("in"), "-o".to_owned(), self.at(out)];
        let args = args.into_iter().chain(PARTS.map(str::to_owned));
        let args = args.chain(["--features".to_owned(), self.features.to_owned()]);
        let args = args.chain(self.args.iter().cloned());
        args.chain(more.iter().map(|&arg| arg.to_owned())).collect()
    }

    pub(super) fn run(&self, out: &str, more: &[&str]) -> (Output, i32) {
        let args = self.args(out, more);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        run(&args)
    }

    /// Runs until `parts` parts are complete, and then kills the run. Returns false if the run
    /// had finished before.
    fn kill_after(&self, out: &str, parts: u64, more: &[&str]) -> bool {
        let start = ["run", "--backend", "cpu"].map(str::to_owned);
        let mut child = tapeloop(start.into_iter().chain(self.args(out, more)))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        let record = self.folder.path().join(out).join("run.json");
        let complete = || {
            let text = fs::read_to_string(&record).unwrap_or_default();
            let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            json["written"]["parts"].as_u64().unwrap_or(0)
        };
        while complete() < parts && child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end);
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let record = serde_json::from_str(&fs::read_to_string(&record).unwrap_or_default());
        record.is_ok_and(|record: serde_json::Value| record["state"] == "running")
    }

    /// Leaves the results of a run that was killed after `parts` parts.
    fn interrupt(&self, out: &str, parts: u64, more: &[&str]) {
        for _ in 0..20 {
            if self.kill_after(out, parts, more) {
                return;
            }
            fs::remove_dir_all(self.folder.path().join(out)).unwrap();
        }
        panic!("every run finished before it was killed");
    }

    /// The bytes of all parts, and the rejected inputs.
    fn results(&self, out: &str) -> (Vec<(PathBuf, Vec<u8>)>, Vec<u8>) {
        let out = self.folder.path().join(out);
        (parts(&out), fs::read(out.join("rejected.jsonl")).unwrap())
    }

    /// Checks that a run that went on has the results of one that nothing disturbed.
    pub(super) fn check(&self, out: &str) {
        assert!(self.results(out) == self.results("whole"));
        let [whole, resumed] = ["whole", out].map(|out| record(&self.folder.path().join(out)));
        assert_eq!(resumed["state"], "finished");
        assert_eq!(resumed["written"], whole["written"]);
        assert_eq!(resumed["columns"], whole["columns"]);
        assert_eq!(resumed["annotations"], whole["annotations"]);
        assert!(resumed["resume"].is_null());
        for count in [
            "inputs",
            "structures",
            "residues",
            "residues_left_out",
            "atoms",
            "rejected",
            "truncated",
        ] {
            assert_eq!(resumed["counts"][count], whole["counts"][count], "{count}");
        }
    }
}

#[test]
fn a_run_that_is_killed_again_and_again_ends_with_the_same_bytes() {
    let set = Set::of(INPUTS);
    assert_eq!(set.run("whole", &[]).1, 3);
    let mut killed = 0;
    for kills in 1..=8 {
        // Others of the settings that the bytes do not depend on.
        let threads = (1 + kills % 2).to_string();
        let args = ["--resume", "--threads", &threads];
        killed += u32::from(set.kill_after("out", kills + kills / 2, &args));
    }
    assert!(killed >= 3, "{killed} kills");
    let (output, code) = set.run("out", &["--resume", "-v"]);
    assert_eq!(code, 3, "{}", text(&output.stderr));
    set.check("out");
    // Nothing is left to do, and nothing is done.
    let before = set.results("out");
    let (output, code) = set.run("out", &["--resume"]);
    assert_eq!(code, 3);
    assert!(text(&output.stderr).contains("finished"));
    assert!(set.results("out") == before);
    let part = set.folder.path().join("out/chains/part-00001.parquet");
    fs::remove_file(&part).unwrap();
    let (output, code) = set.run("out", &["--resume"]);
    let said = text(&output.stderr);
    assert_eq!(code, 2, "{said}");
    assert!(has_parts(&said, "part-00001.parquet: .. gone"), "{said}");
}

#[test]
fn annotations_are_counted_through_all_runs_that_had_a_part_in_the_results() {
    let set = Set::annotated();
    assert_eq!(set.run("whole", &[]).1, 3);
    let matched = record(&set.folder.path().join("whole"))["annotations"].clone();
    for count in ["residues", "rows_matched", "structures_without"] {
        assert!(matched[count].as_u64().unwrap() > 5, "{count}: {matched}");
    }
    set.interrupt("out", 3, &[]);
    set.kill_after("out", 7, &["--resume"]);
    let (output, code) = set.run("out", &["--resume"]);
    let said = text(&output.stderr);
    assert_eq!(code, 3, "{said}");
    set.check("out");
    let whole = set.run("whole", &["--overwrite"]).0;
    let warnings = |output: &Output| -> Vec<String> {
        let said = text(&output.stderr);
        let warnings = said.lines().filter(|line| line.starts_with("warning:"));
        warnings.map(str::to_owned).collect()
    };
    assert_eq!(warnings(&output).len(), 1, "{said}");
    assert_eq!(warnings(&output), warnings(&whole));
}

#[test]
fn a_table_may_match_in_an_earlier_part_alone() {
    let mut set = Set::of(INPUTS);
    fs::write(set.at("x.csv"), "structure,x\n000,1\n").unwrap();
    let table = format!("annotations={:?}", set.at("x.csv"));
    set.args.extend(["--set".to_owned(), table]);
    assert_eq!(set.run("whole", &[]).1, 3);
    set.interrupt("out", 3, &[]);
    assert_eq!(set.run("out", &["--resume"]).1, 3);
    set.check("out");
}

#[test]
fn a_run_goes_on_within_a_trajectory() {
    let set = Set::frames();
    assert_eq!(set.run("whole", &[]).1, 0);
    set.interrupt("out", 3, &[]);
    let (output, code) = set.run("out", &["--resume", "--threads", "2"]);
    assert_eq!(code, 0, "{}", text(&output.stderr));
    set.check("out");
}

#[test]
fn what_a_kill_may_leave_behind_is_computed_again() {
    let set = Set::of(INPUTS);
    assert_eq!(set.run("whole", &[]).1, 3);
    set.interrupt("out", 4, &[]);
    let out = set.folder.path().join("out");
    let complete = record(&out)["written"]["parts"].as_u64().unwrap();
    // A part of one table that `run.json` does not count, a torn part, and half a line.
    let part = |table: &str, part: u64, name: &str| {
        let from = out.join(table).join("part-00000.parquet");
        fs::copy(
            from,
            out.join(table)
                .join(name.replace('#', &format!("{part:05}"))),
        )
        .unwrap();
    };
    part("residues", complete, "part-#.parquet");
    part("chains", complete + 1, ".part-#.parquet.tmp");
    let mut rejected = fs::read(out.join("rejected.jsonl")).unwrap();
    rejected.extend(b"{\"source\": \"in/0");
    fs::write(out.join("rejected.jsonl"), rejected).unwrap();
    fs::write(out.join(".run.json.tmp"), "{\"state\":").unwrap();
    let (output, code) = set.run("out", &["--resume"]);
    assert_eq!(code, 3, "{}", text(&output.stderr));
    set.check("out");
}

#[test]
fn an_archive_goes_on_behind_the_complete_parts() {
    let set = Set::of(INPUTS);
    let tar = set.folder.path().join("set.tar");
    let sample = fs::read(Path::new(SAMPLES).join("1ubi.pdb")).unwrap();
    let files: Vec<(String, Vec<u8>)> = (0..40)
        .map(|number| (format!("{number}.pdb"), sample.clone()))
        .collect();
    fs::write(&tar, archives::tar_of(&files)).unwrap();
    fs::remove_dir_all(set.at("in")).unwrap();
    fs::rename(&tar, set.at("in.tar")).unwrap();
    let input = set.at("in.tar");
    let args = |out: &str, more: &[&str]| {
        let mut args = set.args(out, more);
        args[0] = input.clone();
        args
    };
    let run_it = |out: &str, more: &[&str]| {
        let args = args(out, more);
        run_well(&args.iter().map(String::as_str).collect::<Vec<_>>());
    };
    run_it("whole", &[]);
    // Too few threads to be fast, and a signal after the first parts.
    let start = ["run", "--backend", "cpu"].map(str::to_owned);
    let mut child = tapeloop(start.into_iter().chain(args("out", &["--threads", "1"])))
        .spawn()
        .unwrap();
    let record = set.folder.path().join("out/residues/part-00001.parquet");
    let end = Instant::now() + Duration::from_secs(60);
    while !record.exists() && Instant::now() < end {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    run_it("out", &["--resume"]);
    set.check("out");
}

#[test]
fn a_packed_set_goes_on_behind_the_complete_parts() {
    let set = Set::of(INPUTS);
    assert_eq!(set.run("whole", &[]).1, 3);
    let output = tapeloop(["pack", &set.at("in"), "-o", &set.at("packed")]).output();
    assert_eq!(output.unwrap().status.code(), Some(3));
    // The set has the names of the files that were packed, and the inputs its own.
    fs::remove_dir_all(set.at("in")).unwrap();
    fs::rename(set.at("packed"), set.at("in")).unwrap();
    set.interrupt("out", 3, &[]);
    let (output, code) = set.run("out", &["--resume"]);
    assert_eq!(code, 3, "{}", text(&output.stderr));
    set.check("out");
    set.interrupt("other", 3, &[]);
    let sample = format!("{SAMPLES}/1ubi.pdb");
    let appended = tapeloop(["pack", &sample, "-o", &set.at("in")]).output();
    assert!(appended.unwrap().status.success());
    let file = |number| set.at("in") + &format!("/structures-0000{number}.arrow");
    fs::rename(file(1), file(0)).unwrap();
    let (output, code) = set.run("other", &["--resume"]);
    let said = text(&output.stderr);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("there are 1 inputs, and"), "{said}");
}

#[test]
fn other_inputs_and_another_config_are_refused_with_what_changed() {
    let set = Set::of(INPUTS);
    set.interrupt("out", 3, &[]);
    let before = set.results("out");
    let refused = |more: &[&str], said: &str| {
        let (output, code) = set.run("out", &[&["--resume"], more].concat());
        let stderr = text(&output.stderr);
        assert_ne!(code, 0, "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
        assert!(set.results("out") == before, "nothing is changed");
    };
    refused(&["--models", "all"], "`models` differs");
    refused(
        &["--set", "tables.rows_per_group=7"],
        "`tables.rows_per_group` differs",
    );
    refused(
        &["--models", "all", "--set", "tables.rows_per_group=7"],
        "`models`, `tables.rows_per_group` differ (",
    );
    let first = set.folder.path().join("in/006.pdb");
    let moved = set.folder.path().join("006.pdb");
    fs::rename(&first, &moved).unwrap();
    refused(&[], "inputs 6 to 10");
    fs::rename(&moved, &first).unwrap();
    let other = set.folder.path().join("in/000.pdb");
    let text = fs::read(&other).unwrap();
    fs::write(&other, [&text[..], b"REMARK\n"].concat()).unwrap();
    refused(&[], "inputs 1 to 5");
    let (output, code) = run(&["--resume", SAMPLES, "-o", "-", "--format", "csv"]);
    assert_eq!(code, 2);
    let said = super::text(&output.stderr);
    assert!(said.contains("--resume"), "{said}");
}

#[test]
fn complete_parts_that_were_changed_are_refused_with_their_sizes() {
    let set = Set::of(INPUTS);
    assert_eq!(set.run("whole", &[]).1, 3);
    set.interrupt("out", 3, &[]);
    let out = set.folder.path().join("out");
    let part = out.join("chains/part-00001.parquet");
    let whole = fs::read(&part).unwrap();
    let refused = |file: &str, said: &str| {
        let before = set.results("out");
        let (output, code) = set.run("out", &["--resume"]);
        let stderr = text(&output.stderr);
        assert_eq!(code, 2, "{stderr}");
        assert!(
            stderr.contains(file) && has_parts(&stderr, said),
            "{stderr}"
        );
        assert!(set.results("out") == before, "nothing is changed");
    };
    let bytes = whole.len();
    for changed in [&whole[..bytes - 1], &[&whole[..], b"x"].concat()] {
        fs::write(&part, changed).unwrap();
        let sizes = format!("{} bytes .. {bytes}", changed.len());
        refused("chains/part-00001.parquet", &sizes);
    }
    fs::remove_file(&part).unwrap();
    refused("chains/part-00001.parquet", "is gone");
    fs::write(&part, &whole).unwrap();
    let rejected = out.join("rejected.jsonl");
    let lines = fs::read(&rejected).unwrap();
    fs::write(&rejected, &lines[..10]).unwrap();
    refused("rejected.jsonl", "10 bytes");
    fs::write(&rejected, lines).unwrap();
    let (output, code) = set.run("out", &["--resume"]);
    assert_eq!(code, 3, "{}", text(&output.stderr));
    set.check("out");
}

#[test]
fn results_that_were_to_replace_others_go_on_too() {
    let set = Set::of(INPUTS);
    assert_eq!(set.run("whole", &[]).1, 3);
    let (_, code) = set.run("out", &["--set", "models=all"]);
    assert_eq!(code, 3);
    let start = ["run", "--backend", "cpu"].map(str::to_owned);
    let mut child = tapeloop(start.into_iter().chain(set.args("out", &["--overwrite"])))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let part = set
        .folder
        .path()
        .join("out/.tapeloop-new/residues/part-00002.parquet");
    let end = Instant::now() + Duration::from_secs(60);
    while !part.exists() && Instant::now() < end {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (output, code) = set.run("out", &["--resume"]);
    assert_eq!(code, 3, "{}", text(&output.stderr));
    set.check("out");
}

#[test]
fn a_condition_goes_on_with_the_run_and_another_one_is_refused() {
    let set = Set::of(INPUTS);
    let condition = ["--where", "rsa > 0.2 and res_index != 5"];
    assert_eq!(set.run("whole", &condition).1, 3);
    set.interrupt("out", 4, &condition);
    let (output, code) = set.run("out", &["--resume", "--where", "rsa > 0.3"]);
    assert_eq!(code, 2);
    assert!(text(&output.stderr).contains("`tables.where` differ"));
    let (output, code) = set.run("out", &[&["--resume"], &condition[..]].concat());
    assert_eq!(code, 3, "{}", text(&output.stderr));
    set.check("out");
}

#[test]
fn counts_of_an_earlier_run_end_no_run_and_are_in_no_rate() {
    let set = Set::of(INPUTS);
    let condition = ["--where", "rsa > 0.2"];
    set.interrupt("out", 4, &condition);
    let path = set.folder.path().join("out/run.json");
    let mut edited = json(&path);
    // More than there are residues, and more than a run computes.
    for count in ["residues_left_out", "structures"] {
        edited["resume"]["counts"][count] = (1_u64 << 40).into();
    }
    fs::write(&path, edited.to_string()).unwrap();
    let (output, code) = set.run("out", &[&["--resume"], &condition[..]].concat());
    assert_eq!(code, 3, "{}", text(&output.stderr));
    let record = record(&set.folder.path().join("out"));
    assert!(record["counts"]["structures"].as_u64().unwrap() > 1 << 40);
    assert!(record["per_second"]["structures"].as_f64().unwrap() < 1e8);
}

#[test]
fn a_run_goes_on_with_batches_of_another_size() {
    let set = Set::of(INPUTS);
    assert_eq!(set.run("whole", &[]).1, 3);
    // Every structure runs alone, then none does.
    let alone = ["--set", "batch.residues=1", "--set", "batch.residues_max=1"];
    set.interrupt("out", 4, &alone);
    let (output, code) = set.run("out", &["--resume"]);
    assert_eq!(code, 3, "{}", text(&output.stderr));
    set.check("out");
    let record = record(&set.folder.path().join("out"));
    assert!(record["counts"]["alone"].as_u64().unwrap() > 0);
}

#[test]
fn parts_end_at_residues_too_and_a_run_goes_on_behind_them() {
    let set = Set::of(INPUTS);
    // 76 residues an input: a part ends with every third structure, whatever lies between them.
    let cut = ["--set", "tables.residues_per_part=200"];
    assert_eq!(set.run("whole", &cut).1, 3);
    let parts = |out: &str| {
        let record = record(&set.folder.path().join(out));
        record["written"]["parts"].as_u64().unwrap()
    };
    assert_eq!(parts("whole"), 18);
    // Neither batches nor a condition move the ends.
    let batches = [
        "--threads",
        "1",
        "--slots",
        "1",
        "--set",
        "batch.residues=1",
    ];
    assert_eq!(set.run("again", &[&cut[..], &batches].concat()).1, 3);
    assert!(set.results("again") == set.results("whole"));
    let few = ["--where", "res_index == 0"];
    assert_eq!(set.run("few", &[&cut[..], &few].concat()).1, 3);
    assert_eq!(parts("few"), 18);
    set.interrupt("out", 4, &cut);
    let changed = set.folder.path().join("in/005.pdb");
    let before = fs::metadata(&changed).unwrap().modified().unwrap();
    let set_time = |time| {
        let file = fs::File::options().write(true).open(&changed).unwrap();
        file.set_modified(time).unwrap();
    };
    set_time(before + Duration::from_secs(1));
    let (output, code) = set.run("out", &[&["--resume"], &cut[..]].concat());
    let said = text(&output.stderr);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("inputs 4 to 7"), "{said}");
    set_time(before);
    let (output, code) = set.run("out", &[&["--resume"], &cut[..]].concat());
    assert_eq!(code, 3, "{}", text(&output.stderr));
    set.check("out");
}

#[test]
fn a_finished_run_without_a_structure_has_its_exit_code_again_when_it_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let [input, out] = ["junk.pdb", "out"].map(|name| folder.path().join(name));
    fs::write(&input, "junk").unwrap();
    for most in ["0", "1"] {
        let start = [str_of(&input), "-o", str_of(&out), "--max-rejects", most];
        assert_eq!(run(&start).1, 1, "nothing was computed");
        let (output, code) = run(&[&start[..], &["--resume"]].concat());
        let said = text(&output.stderr);
        assert!(
            said.contains("finished already") && code == 1,
            "{code}: {said}"
        );
    }
}
