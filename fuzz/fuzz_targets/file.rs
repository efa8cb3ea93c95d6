#![no_main]

mod reading;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for mut reader in reading::readers() {
        let _ = reader.read_auto("file", bytes);
    }
});
