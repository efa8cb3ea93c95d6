//! How the crates start threads.

use super::opened_files::{check, users};
use super::{sources, texts};
use std::collections::BTreeMap;

/// Ways to start a thread with a stack of a size that the environment chooses, or to panic if the system starts
/// none.
const STARTS: &[&str] = &["thread::Builder::new(", "thread::spawn(", "scope.spawn("];

/// Where they may be, and why.
const STARTERS: &[(&str, &str)] = &[
    (
        "crates/engine/src/backend/cuda/compile.rs",
        "states a larger stack, and goes on without threads",
    ),
    (
        "crates/engine/src/backend/cuda/fake_loops.rs",
        "a driver for tests",
    ),
];

#[test]
fn threads_are_started_with_a_stated_stack() {
    check(
        STARTS,
        STARTERS,
        "call tapeloop_error::internal::thread, and return its thread_error",
    );
    let mut all: BTreeMap<String, String> = sources().into_iter().collect();
    all.extend(texts("python/src"));
    let pools = users(&["ThreadPoolBuilder::new("]);
    assert!(!pools.is_empty());
    for path in pools {
        let states = all[&path].contains(".stack_size(stack_bytes())");
        assert!(states, "{path}: a pool states no size of its stacks");
    }
}
