//! The programs in `examples/` do what they say.

#[path = "../../examples/features.rs"]
#[allow(dead_code, reason = "its main takes arguments")]
mod features;
#[path = "../../examples/http_service.rs"]
#[allow(dead_code, reason = "its main waits for a signal")]
mod http_service;
#[path = "../../examples/image_filter.rs"]
mod image_filter;
#[path = "../../examples/mlp.rs"]
#[allow(dead_code, reason = "its main takes arguments")]
mod mlp;
#[path = "../../examples/priorities.rs"]
#[allow(dead_code, reason = "its main takes arguments")]
mod priorities;
#[path = "../../examples/rebind.rs"]
mod rebind;
#[path = "../../examples/ring.rs"]
mod ring;
#[path = "../../examples/saxpy.rs"]
mod saxpy;
#[path = "../../examples/two_engines.rs"]
#[allow(dead_code, reason = "its main chooses the device")]
mod two_engines;

mod http;

use std::time::Duration;
use tapeloop::backend::Choice;

#[test]
fn saxpy_is_as_on_the_host() {
    saxpy::main().unwrap();
}

#[test]
fn two_engines_share_a_device_and_both_are_right() {
    assert_eq!(two_engines::run(Choice::Cpu).unwrap(), [20_000, 20_000]);
}

#[test]
fn batches_of_a_ring_are_right() {
    ring::main().unwrap();
}

#[test]
fn a_graph_is_bound_to_other_memory() {
    rebind::main().unwrap();
}

#[test]
fn edges_of_images_are_as_on_the_host() {
    image_filter::main().unwrap();
}

#[test]
fn a_network_is_as_on_the_host() {
    mlp::run(2, 1).unwrap();
}

#[test]
fn urgent_items_next_to_others_are_right() {
    priorities::run(Duration::from_millis(20), 2).unwrap();
}

#[test]
fn features_are_printed_for_each_residue_and_a_bad_file_harms_no_other() {
    use std::path::{Path, PathBuf};

    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = ["tests/data/broken/empty.pdb", "samples/1ubi.pdb"].map(|file| root.join(file));
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
