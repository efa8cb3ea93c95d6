//! Runs that are killed at random moments, in every format of tables. The parts that `run.json`
//! counts can be read and agree across the tables, and its state says whether the run has finished.
#![cfg(unix)]

use super::formats::{FORMATS, texts};
use super::*;
use crate::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Number of kills, unless the variable `TAPELOOP_KILLS` gives another.
const KILLS: usize = 12;

const INPUTS: usize = 48;
const INPUTS_PER_PART: usize = 4;

fn command(input: &Path, out: &Path, format: &str) -> Command {
    let mut command = tapeloop(["run", "--backend", "cpu", "-q", "--features", "rg"]);
    command.args(["--threads", "2", "-i", str_of(input), "-o", str_of(out)]);
    let parts = format!("tables.inputs_per_part={INPUTS_PER_PART}");
    let format = format!("tables.format={format}");
    command.args(["--set", &parts, "--set", &format]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// A folder of inputs of which each fourth is broken.
fn inputs(folder: &Path) -> PathBuf {
    let broken = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/data/broken/junk.pdb"
    );
    let good = format!("{SAMPLES}/1ubi.pdb");
    let input = folder.join("in");
    fs::create_dir(&input).unwrap();
    for number in 0..INPUTS {
        let from = if number % 4 == 1 { broken } else { &good };
        fs::copy(from, input.join(format!("{number:03}.pdb"))).unwrap();
    }
    input
}

fn copy_results(from: &Path, to: &Path) {
    for table in TABLES {
        fs::create_dir_all(to.join(table)).unwrap();
    }
    let files = parts(from).into_iter().map(|(name, _)| name);
    for name in files.chain(["run.json", "rejected.jsonl"].map(PathBuf::from)) {
        fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}

/// The parts of a table that have their names.
fn visible(folder: &Path, table: &str) -> usize {
    let Ok(entries) = folder.join(table).read_dir() else {
        return 0;
    };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.starts_with('.')).count()
}

fn record_state(folder: &Path) -> String {
    record(folder)["state"].as_str().unwrap().to_owned()
}

/// Checks the folder of a run and returns its state.
fn check(folder: &Path, whole: &[(PathBuf, Vec<u8>)]) -> String {
    if !folder.join("run.json").exists() {
        assert!(TABLES.iter().all(|table| visible(folder, table) == 0));
        return "no record".to_owned();
    }
    let (record, state) = (record(folder), record_state(folder));
    let format = record["config"]["tables.format"].as_str().unwrap();
    let count = |name: &str| record["written"][name].as_u64().unwrap() as usize;
    if state == "replacing" {
        assert_eq!(count("parts"), 0);
        // The next run finishes the replacement, and then refuses to go over the results.
        let next = command(Path::new(SAMPLES), folder, format)
            .status()
            .unwrap();
        assert_eq!(next.code(), Some(2));
        assert_eq!(record_state(folder), "finished");
        check(folder, whole);
        return state;
    }
    let mut structures = 0;
    for part in 0..count("parts") {
        let sources = TABLES.map(|table| {
            let path = folder.join(format!("{table}/part-{part:05}.{format}"));
            let sources = texts(&path, "source");
            if table == "structures" {
                structures += sources.len();
            }
            BTreeSet::from_iter(sources)
        });
        assert!(sources.iter().all(|of_table| *of_table == sources[0]));
    }
    assert_eq!(structures, count("structures"));
    for table in TABLES {
        // The parts on their way when the run was killed: not counted, and one at most.
        let more = visible(folder, table) - count("parts");
        assert!(
            more <= usize::from(state == "running"),
            "{state}: {more} more"
        );
    }
    let lines = fs::read_to_string(folder.join("rejected.jsonl")).unwrap();
    assert!(lines.is_empty() || lines.ends_with('\n'), "{lines}");
    let counted = rejected(folder).into_iter();
    let counted = counted.filter(|line| line["ordinal"].as_u64() < Some(count("inputs") as u64));
    assert_eq!(counted.count(), count("rejected"));
    if state == "finished" {
        assert!(parts(folder) == whole);
        assert_eq!(count("rejected"), INPUTS / 4);
    }
    state
}

#[test]
fn run_json_of_a_killed_run_counts_only_complete_parts_that_agree() {
    let kills = std::env::var("TAPELOOP_KILLS").map_or(KILLS, |number| number.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let input = inputs(folder.path());
    let earlier = folder.path().join("earlier");
    // Also warms the caches for the runs that are timed.
    let one = input.join("000.pdb");
    let status = command(&one, &earlier, FORMATS[0]).status().unwrap();
    assert_eq!(status.code(), Some(0));
    let (earlier_parts, earlier_record) = (parts(&earlier), record(&earlier));
    // The parts and the time of a run that is not killed.
    let references = FORMATS.map(|format| {
        let reference = folder.path().join(format);
        let start = Instant::now();
        let status = command(&input, &reference, format).status().unwrap();
        let usual = start.elapsed();
        assert_eq!(status.code(), Some(3));
        let whole = parts(&reference);
        assert_eq!(check(&reference, &whole), "finished");
        (whole, usual)
    });

    let mut random = Random::new(7);
    let mut states: BTreeMap<String, u64> = BTreeMap::new();
    for kill in 0..kills {
        let out = folder.path().join("out");
        let replaces = kill % 2 == 1;
        // Four kills of each format in turn; the results that they replace have the first one.
        let at = kill / 4 % FORMATS.len();
        let (format, (whole, usual)) = (FORMATS[at], &references[at]);
        let mut run = command(&input, &out, format);
        if replaces {
            copy_results(&earlier, &out);
            run.arg("--overwrite");
        }
        let mut child = run.spawn().unwrap();
        let moment = if kill % 4 == 3 {
            // While the results are moved, which takes about a hundredth of the run.
            while record(&out) == earlier_record && child.try_wait().unwrap().is_none() {}
            random.below(usual.as_micros() as usize / 50) as u64
        } else {
            usual.as_micros() as u64 * random.below(1400) as u64 / 1000
        };
        std::thread::sleep(Duration::from_micros(moment));
        let signal = ["-KILL", "-KILL", "-KILL", "-TERM", "-INT", "-HUP"][random.below(6)];
        let id = child.id().to_string();
        // The run may have ended before.
        let mut sent = Command::new("kill");
        let _ = sent.args([signal, &id]).stderr(Stdio::null()).status();
        let status = child.wait().unwrap();

        let mut state = String::new();
        if replaces {
            if record(&out) == earlier_record {
                assert!(
                    parts(&out) == earlier_parts,
                    "the earlier results are whole"
                );
                state.push_str("earlier results stay, ");
            } else {
                state.push_str("replaced, ");
            }
            let new = out.join(".tapeloop-new");
            if new.join("run.json").exists() {
                state.push_str(&check(&new, whole));
            }
            if record(&out) != earlier_record {
                state.push_str(&check(&out, whole));
            }
        } else {
            state = check(&out, whole);
        }
        match status.code() {
            Some(3) => assert!(state.ends_with("finished"), "{state}"),
            Some(130) => assert!(state.ends_with("interrupted"), "{state}"),
            // Before the run listened to signals.
            code => assert!(code.is_none() && status.signal().is_some(), "{status}"),
        }
        *states
            .entry(format!("{format}, {signal}: {state}"))
            .or_default() += 1;
        // Each fourth time a run goes over what is left.
        if random.below(4) == 0 {
            let again = command(&input, &out, format)
                .arg("--overwrite")
                .status()
                .unwrap();
            assert_eq!(again.code(), Some(3));
            assert_eq!(check(&out, whole), "finished");
            assert!(!out.join(".tapeloop-new").exists());
        }
        fs::remove_dir_all(&out).or_else(is_missing).unwrap();
    }
    for (state, times) in states {
        println!("{times:5} {state}");
    }
}

fn is_missing(error: std::io::Error) -> std::io::Result<()> {
    match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    }
}
