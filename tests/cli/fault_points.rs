//! Runs that are killed, or lose their power, at each rename and each flush.

use super::disk_calls::kill_at;
use super::resume::Set;
use super::*;
use std::process::Stdio;

#[test]
fn a_run_that_stops_at_any_rename_or_flush_goes_on_to_the_same_bytes() {
    let mut set = Set::new();
    set.features = "rg";
    set.args = ["--set", "tables.inputs_per_part=20"]
        .map(str::to_owned)
        .to_vec();
    assert_eq!(set.run("whole", &[]).1, 3);
    let folder = set.folder.path().to_owned();
    let go_on = |out: &str, when: &str| {
        let (output, code) = set.run(out, &["--resume"]);
        assert_eq!(code, 3, "{when}: {}", text(&output.stderr));
        set.check(out);
        fs::remove_dir_all(folder.join(out)).unwrap();
    };
    let mut point = 0;
    loop {
        point += 1;
        let start = ["run", "--backend", "cpu"].map(str::to_owned);
        let mut command = tapeloop(start.into_iter().chain(set.args("out", &[])));
        let Some(disk) = kill_at(command.stderr(Stdio::null()), point) else {
            break;
        };
        let out = folder.join("out");
        copy_folder(&out, &folder.join("killed"));
        go_on("killed", &format!("killed at point {point}"));
        disk.lose_power(&out);
        go_on("out", &format!("power lost at point {point}"));
    }
    // Three parts of three tables: each is flushed and renamed, as is `run.json` with each part.
    assert!(point > 3 * (3 + 3 + 3) + 3 * 4, "{point} points");
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in from.read_dir().unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match from.is_dir() {
            true => copy_folder(&from, &to),
            false => drop(fs::copy(&from, &to).unwrap()),
        }
    }
}
