//! The example `features` does what it says.

#[path = "../../examples/features.rs"]
#[allow(dead_code, reason = "its main takes arguments")]
mod features;

use std::path::PathBuf;
use tapeloop_test_support::repository;

#[test]
fn features_are_printed_for_each_residue_and_a_bad_file_harms_no_other() {
    let files = ["tests/data/broken/empty.pdb", "samples/1ubi.pdb"].map(repository);
    let mut out = Vec::new();
    assert_eq!(features::run(&files, &mut out).unwrap(), 76);
    let out = String::from_utf8(out).unwrap();
    let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split('\t').collect()).collect();
    let names: Vec<PathBuf> = lines.iter().map(|line| PathBuf::from(line[0])).collect();
    assert_eq!((&names[0], lines[0].len()), (&files[0], 2), "{out}");
    assert!(names[1..].iter().all(|name| *name == files[1]), "{out}");
    assert_eq!(lines[1][1..4], ["A", "1", "MET"]);
    assert_eq!(lines[76][1..4], ["A", "76", "GLY"]);
    // The C-alphas of the middle are closer to the others than those of the free end.
    let value = |line: usize| lines[line][4].parse::<f32>().unwrap();
    assert!(value(43) > 2.0 * value(76), "{out}");
}
