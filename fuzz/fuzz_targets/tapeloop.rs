#![no_main]
//! All fuzz targets in one binary, as each binary takes minutes to build. `TARGET` names one.

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use tapeloop_cli::fuzzing::TARGETS;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("TARGET").unwrap_or_default();
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let Some((_, run)) = target else {
        let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
        panic!("TARGET={name:?}: set it to one of {}", names.join(", "));
    };
    *run
});

fuzz_target!(|bytes: &[u8]| TARGET(bytes));
