#![no_main]

use libfuzzer_sys::fuzz_target;
use tapeloop::cli::fuzzing;

fuzz_target!(|text: &str| fuzzing::condition(text));
