//! `tapeloop devices` where no device is in sight, on every machine.

use super::{tapeloop, text};

fn devices(args: &[&str]) -> (String, Option<i32>) {
    let mut command = tapeloop(["devices"].iter().chain(args));
    let output = command.env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
    (text(&output.stdout), output.status.code())
}

#[test]
fn where_no_gpu_is_in_sight_it_says_so_and_names_the_processor() {
    let (said, code) = devices(&[]);
    assert_eq!(code, Some(0));
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("No GPU: "), "{said}");
    assert!(lines[1].starts_with("Runs compute on the CPU: "), "{said}");
    assert!(lines[1].ends_with(" threads."), "{said}");
}

#[test]
fn as_json_it_says_the_same() {
    let (said, code) = devices(&["--json"]);
    assert_eq!(code, Some(0));
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(json["devices"], serde_json::json!([]));
    assert!(json["absent"].is_string());
    assert_eq!(json["cuda_visible_devices"], "");
    assert!(json["cpu"]["threads"].as_u64().unwrap() > 0);
    assert!(json["cpu"]["name"].is_string());
}
