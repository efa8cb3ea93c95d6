//! Runs that are killed, or lose their power, at each rename and each flush.

use super::disk_calls::kill_at;
use super::resume::Set;
use super::*;
use std::process::Stdio;

/// Stops runs at each rename and flush, and lets them go on. `prepare` makes the output folder.
/// Returns the number of these points.
fn stop_everywhere(set: &Set, args: &[&str], prepare: impl Fn(&str)) -> usize {
    let folder = set.folder.path();
    let go_on = |out: &str, when: &str| {
        let (mut output, mut code) = set.run(out, &["--resume"]);
        if code == 2 && args.contains(&"--overwrite") {
            // It was stopped before it had any results.
            (output, code) = set.run(out, args);
        }
        assert_eq!(code, 3, "{when}: {}", text(&output.stderr));
        set.check(out);
        fs::remove_dir_all(folder.join(out)).unwrap();
    };
    for point in 1.. {
        prepare("out");
        let start = ["run", "--backend", "cpu"].map(str::to_owned);
        let mut command = tapeloop(start.into_iter().chain(set.args("out", args)));
        let out = folder.join("out");
        let Some(disk) = kill_at(command.stderr(Stdio::null()), &out, point) else {
            set.check("out");
            return point - 1;
        };
        copy_folder(&out, &folder.join("killed"));
        go_on("killed", &format!("killed at point {point}"));
        disk.lose_power(&out);
        go_on("out", &format!("power lost at point {point}"));
    }
    unreachable!("a run has an end")
}

fn set() -> Set {
    // The number of points depends on the number of parts, and not on that of inputs.
    let mut set = Set::of(6);
    set.features = "rg";
    let args = ["--set", "tables.inputs_per_part=3"];
    set.args = args.map(str::to_owned).to_vec();
    assert_eq!(set.run("whole", &[]).1, 3);
    set
}

#[test]
fn a_run_that_stops_at_any_rename_or_flush_goes_on_to_the_same_bytes() {
    let points = stop_everywhere(&set(), &[], |_| ());
    // Two parts of three tables, each flushed and renamed, and `run.json` with each part.
    assert!(points > 2 * 3 * 2 + 2 * 2, "{points} points");
}

#[test]
fn a_run_that_stops_while_it_replaces_others_goes_on_to_the_same_bytes() {
    let set = set();
    let other = ["--set", "tables.inputs_per_part=4"];
    let points = stop_everywhere(&set, &["--overwrite"], |out| {
        assert_eq!(set.run(out, &other).1, 3);
    });
    assert!(points > 2 * 2 * 3 * 2, "{points} points");
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in from.read_dir().unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy_folder(&from, &to);
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}
