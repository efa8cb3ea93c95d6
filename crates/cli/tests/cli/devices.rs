//! `tapeloop devices` with all devices hidden, which works on every machine.

use super::{tapeloop, text};

fn devices(args: &[&str]) -> (String, Option<i32>) {
    let mut command = tapeloop(["devices"].iter().chain(args));
    let output = command.env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
    (text(&output.stdout), output.status.code())
}

#[test]
fn without_a_gpu_the_reason_and_the_processor_are_printed() {
    let (said, code) = devices(&[]);
    assert_eq!(code, Some(0));
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("No GPU: "), "{said}");
    assert!(lines[1].starts_with("Runs compute on the CPU: "), "{said}");
    assert!(lines[1].ends_with(" threads."), "{said}");
}

#[test]
fn the_json_has_the_same_facts() {
    let (said, code) = devices(&["--json"]);
    assert_eq!(code, Some(0));
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(json["devices"], serde_json::json!([]));
    assert!(json["absent"].is_string());
    assert_eq!(json["cuda_visible_devices"], "");
    assert!(json["cpu"]["threads"].as_u64().unwrap() > 0);
    assert!(json["cpu"]["name"].is_string());
}

/// What a run over one sample with these options would do, on a machine without a GPU.
fn dry_run(options: &[&str]) -> (String, Option<i32>) {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/1a8o.pdb");
    let args = ["run", sample, "--dry-run"];
    let mut command = tapeloop(args.iter().chain(options));
    let output = command.env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
    (
        text(&output.stdout) + &text(&output.stderr),
        output.status.code(),
    )
}

#[test]
fn several_devices_are_named_by_option_and_key_and_exclude_one() {
    let supervised = ["--devices", "all", "--set", "supervise=true"];
    for options in [
        &["--devices", "all"][..],
        &["--set", "devices=\"all\""],
        &supervised,
    ] {
        let (said, code) = dry_run(&[options, &["--set", "slots=5"]].concat());
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("devices = \"all\""), "{said}");
        assert!(said.contains("# device is not set"), "{said}");
        // Without a GPU one CPU backend computes, as with `device`.
        assert!(said.contains("for 5 batches in flight"), "{said}");
    }
    let (said, _) = dry_run(&["--devices", "0,GPU-5cf1"]);
    assert!(said.contains("devices = [0,\"GPU-5cf1\"]"), "{said}");
    let (said, code) = dry_run(&["--devices", "0,1", "--device", "2"]);
    assert_eq!(code, Some(2), "{said}");
    let expected = "--devices: `devices`: excludes `device`, which --device sets";
    assert!(said.contains(expected), "{said}");
    let (said, code) = dry_run(&["--devices", "0,1", "--backend", "cuda"]);
    assert_ne!(code, Some(0), "{said}");
    assert!(said.contains("devices") && said.contains("fix"), "{said}");
}
