#![no_main]

mod reading;

use libfuzzer_sys::fuzz_target;
use tapeloop::structure::Format;

fuzz_target!(|text: &[u8]| reading::read(text, Format::Pdb));
