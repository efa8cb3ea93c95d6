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
