//! Which backend is chosen on a machine, and how it is reported.

use std::process::Command;
use std::sync::Arc;
use tapeloop::ErrorKind;
use tapeloop::backend::{Choice, select};

const CHILD: &str = "TAPELOOP_TEST_CHILD";

fn pool() -> Arc<rayon::ThreadPool> {
    Arc::new(
        rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .unwrap(),
    )
}

/// Runs one test of this binary in a process that sees no device.
fn without_devices(test: &str) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("choice::{test}")])
        .env(CHILD, "1")
        .env("CUDA_VISIBLE_DEVICES", "")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    // A name that matches no test passes too.
    assert!(
        child.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

#[test]
fn the_cpu_is_taken_when_asked_for() {
    let selected = select(Choice::Cpu, &pool()).unwrap();
    assert_eq!(selected.backend.device().backend, "cpu");
    assert_eq!(selected.reason, "asked for");
}

#[test]
fn auto_takes_the_cpu_where_no_device_is_in_sight_and_says_why() {
    if !is_child() {
        return without_devices("auto_takes_the_cpu_where_no_device_is_in_sight_and_says_why");
    }
    let selected = select(Choice::Auto, &pool()).unwrap();
    assert_eq!(selected.backend.device().backend, "cpu");
    println!("auto: {}", selected.reason);
    let reasons = ["no NVIDIA driver", "shows no GPU", "no CUDA support"];
    assert!(
        reasons
            .iter()
            .any(|reason| selected.reason.contains(reason))
    );
}

#[test]
fn cuda_is_an_error_with_a_fix_where_no_device_is_in_sight() {
    if !is_child() {
        return without_devices("cuda_is_an_error_with_a_fix_where_no_device_is_in_sight");
    }
    let error = select(Choice::Cuda, &pool()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        error.fix_text().unwrap().contains("backend = \"cpu\""),
        "{error}"
    );
}
