#![no_main]

use libfuzzer_sys::fuzz_target;
use tapeloop::cli::fuzzing;

fuzz_target!(|bytes: &[u8]| fuzzing::packed_file(bytes));
