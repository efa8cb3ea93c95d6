//! Times the readers on one thread: all models of files in memory, as plain text and as they are. The
//! time is the best of several rounds over all files.
//!
//! ```sh
//! cargo run --release --example read_rate -- [--rounds=N] FILE...
//! ```
//!
//! Prints one line: files read, atoms selected, seconds for plain text, seconds for the bytes of the
//! files.

use std::hint::black_box;
use std::io::Read;
use std::time::Instant;

use flate2::read::MultiGzDecoder;
use tapeloop::structure::{Models, ReadOptions, Reader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut rounds = 5;
    let mut packed = Vec::new();
    for arg in std::env::args().skip(1) {
        match arg.strip_prefix("--rounds=") {
            Some(count) => rounds = count.parse()?,
            None => packed.push((arg.clone(), std::fs::read(&arg)?)),
        }
    }
    let mut plain = Vec::new();
    for (name, bytes) in &packed {
        let mut text = Vec::new();
        if MultiGzDecoder::new(&bytes[..])
            .read_to_end(&mut text)
            .is_err()
        {
            text.clone_from(bytes);
        }
        plain.push((name.clone(), text));
    }
    let mut reader = Reader::new(ReadOptions {
        models: Models::All,
        ..ReadOptions::default()
    });
    let (files, atoms, plain_s) = best_of(rounds, &mut reader, &plain);
    let (_, _, packed_s) = best_of(rounds, &mut reader, &packed);
    println!("files {files} atoms {atoms} plain_s {plain_s:.6} packed_s {packed_s:.6}");
    Ok(())
}

/// The number of files read, the atoms selected, and the seconds of the best round.
fn best_of(rounds: usize, reader: &mut Reader, files: &[(String, Vec<u8>)]) -> (usize, usize, f64) {
    let mut best = (0, 0, f64::INFINITY);
    for _ in 0..rounds {
        let (mut read, mut atoms) = (0, 0);
        let start = Instant::now();
        for (name, bytes) in files {
            if let Ok(structures) = reader.read_auto(name, black_box(bytes)) {
                read += 1;
                atoms += structures
                    .iter()
                    .map(|structure| structure.xyz.len())
                    .sum::<usize>();
            }
        }
        best = (read, atoms, best.2.min(start.elapsed().as_secs_f64()));
    }
    best
}
