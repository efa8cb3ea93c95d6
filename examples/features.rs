//! The built-in features as a library: reads structure files and prints the weighted contact number of
//! each residue.
//!
//! ```sh
//! cargo run --release -p tapeloop --no-default-features --example features -- samples/1ubi.pdb
//! cargo run --release -p tapeloop --example features -- samples/*
//! ```

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::from_utf8;
use tapeloop::features::{Column, FeatureConfig, FeatureName, Features, Input, TableName};
use tapeloop::structure::{ReadOptions, Reader, Structure};
use tapeloop::{Engine, EngineConfig, Error, Result};

/// The residues of a batch, and of the largest structure.
const RESIDUES: u32 = 32_768;

/// The structures of a file, each as an item of the workload. The error of a file that cannot be read
/// comes back as its result.
fn inputs(file: &Path, ordinal: u64) -> Vec<Input> {
    let input =
        |structure: Result<Structure>| Input::new(file.display().to_string(), ordinal, structure);
    match Reader::new(ReadOptions::default()).read_path(file) {
        Ok(structures) => structures.into_iter().map(Ok).map(input).collect(),
        Err(error) => vec![input(Err(error))],
    }
}

/// Writes a line for each residue: file, chain, number, component and value. Returns the number of
/// residues.
pub(crate) fn run(files: &[PathBuf], out: &mut impl Write) -> Result<usize> {
    let config = FeatureConfig {
        features: vec![FeatureName::Wcn],
        ..FeatureConfig::default()
    };
    let workload = Features::new(config)?;
    let mut engine = Engine::auto(workload, &EngineConfig::new(Features::capacity(RESIDUES)))?;
    let items = (0..)
        .zip(files)
        .flat_map(|(ordinal, file)| inputs(file, ordinal));
    let mut count = 0;
    engine.run(items, &mut |done: tapeloop::Completion<Features>| {
        let table = match done.result {
            Ok(table) => table,
            // One file that cannot be used does not end the others.
            Err(error) => return writeln!(out, "{}\t{error}", done.item.source).map_err(Error::io),
        };
        let Column::Real(values) = table.column(TableName::Residues, 0) else {
            return Err(Error::usage("the weighted contact number is a real number"));
        };
        let structure = done.item.structure?;
        for (residue, value) in structure.residues.iter().zip(values) {
            let chain = &structure.chains[residue.chain as usize].auth_asym_id;
            let component = from_utf8(&residue.comp_id).unwrap_or("?");
            let component = component.trim_end_matches(['\0', ' ']);
            let number = residue.auth_seq_id;
            writeln!(
                out,
                "{}\t{chain}\t{number}\t{component}\t{value}",
                done.item.source
            )
            .map_err(Error::io)?;
        }
        count += values.len();
        Ok(())
    })?;
    Ok(count)
}

pub(crate) fn main() -> Result<()> {
    let files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if files.is_empty() {
        return Err(Error::usage("no files").fix("name structure files, such as samples/1ubi.pdb"));
    }
    let mut out = BufWriter::new(std::io::stdout().lock());
    let count = run(&files, &mut out)?;
    out.flush().map_err(Error::io)?;
    eprintln!("{count} residues");
    Ok(())
}
