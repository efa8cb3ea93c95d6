//! `tapeloop inspect`: shows a packed set.

use super::args::InspectArgs;
use serde_json::{Value as Json, json};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use tapeloop::error::{Context, Error, Result};
use tapeloop::structure::{ReadBudget, ReadLimits, Structure};
use tapeloop_bench::internal::format;
use tapeloop_cli::exit_codes::GOOD;
use tapeloop_cli::terminal::say;
use tapeloop_error::internal::printable;
use tapeloop_files::shown;
use tapeloop_inputs::packed::{
    ASSEMBLIES, PackedBatch, PackedFile, SetSettings, enum_name, files_in,
};
use tapeloop_inputs::structure_name;
use tapeloop_structure::internal::distinct_chain_names;

/// What a set holds.
#[derive(Default)]
struct Totals {
    files: u64,
    bytes: u64,
    inputs: u64,
    rejected: u64,
    structures: u64,
    residues: u64,
    atoms: u64,
    /// Files without checksums.
    unchecked: u64,
    /// The distinct settings of all files; one in a set that `tapeloop pack` made.
    settings: Vec<SetSettings>,
}

/// Prints what a set holds, or its structures of one name, and returns the exit code.
///
/// # Errors
/// [`ErrorKind::Usage`](tapeloop::ErrorKind::Usage) if no structure has the name; those of a set
/// that cannot be read or is damaged.
pub(super) fn inspect(args: &InspectArgs) -> Result<u8> {
    let files = files_in(&args.set).within(|| shown(&args.set))?;
    say(&match &args.name {
        None => totals(&files)?.print(args.json),
        Some(name) => {
            let found = find(&files, name)?;
            if found.is_empty() {
                let message = format!("no input of the set is called {}", printable(name));
                let error = Error::usage(message).fix("give a file's name, with or without ending");
                return Err(error.within(shown(&args.set)));
            }
            if args.json {
                format!("{:#}\n", Json::from(found))
            } else {
                found.iter().map(text_of_input).collect()
            }
        }
    });
    Ok(GOOD)
}

/// Nothing else waits for memory here.
fn budget() -> Arc<ReadBudget> {
    Arc::new(ReadBudget::new(u64::MAX))
}

/// Reads all structures as a run does, and compares the checksums.
fn totals(files: &[impl AsRef<Path>]) -> Result<Totals> {
    let (limits, budget) = (ReadLimits::default(), budget());
    let mut totals = Totals::default();
    for path in files {
        let path = path.as_ref();
        let file = PackedFile::open(path).within(|| shown(path))?;
        totals.files += 1;
        totals.bytes += file.bytes();
        totals.unchecked += u64::from(!file.has_checksums());
        if totals.settings.iter().all(|known| known != file.settings()) {
            totals.settings.push(file.settings().clone());
        }
        for index in 0..file.batches() {
            let names = file.names(index, &limits).within(|| shown(path))?;
            let batch = file.batch(index, &names, &limits, &budget)?.read()?;
            let mut row = 0;
            while let Some((_, rows)) = names.input(row) {
                totals.inputs += 1;
                row = rows.end;
                if batch.error(rows.start).is_some() {
                    totals.rejected += 1;
                    continue;
                }
                for structure in batch.structures(rows)? {
                    totals.structures += 1;
                    totals.residues += structure.residues.len() as u64;
                    totals.atoms += structure.xyz.len() as u64;
                }
            }
        }
    }
    Ok(totals)
}

impl Totals {
    /// The totals as lines of text, or as JSON.
    fn print(&self, as_json: bool) -> String {
        let Totals {
            files,
            bytes,
            inputs,
            rejected,
            structures,
            residues,
            atoms,
            unchecked,
            settings,
        } = self;
        if as_json {
            let first = settings.first().cloned().unwrap_or_default();
            let text = json!({
                "files": files,
                "bytes": bytes,
                "inputs": inputs,
                "rejected": rejected,
                "structures": structures,
                "residues": residues,
                "atoms": atoms,
                "files_without_checksums": unchecked,
                "settings": first.reader,
                "annotations": first.channels(),
                "settings_differ": settings.len() > 1,
            });
            return format!("{text:#}\n");
        }
        let whole = |count: &u64| format::whole(*count);
        let checksums = match unchecked {
            0 => "all right".to_owned(),
            some => format!("missing in {}", format::counted(*some, "file")),
        };
        let settings: String = settings.iter().map(settings_text).collect();
        format!(
            "files        {} ({})\n\
             inputs       {} ({} rejected)\n\
             structures   {}\n\
             residues     {}\n\
             atoms        {}\n\
             checksums    {checksums}\n\
             {settings}",
            whole(files),
            format::size(*bytes as f64),
            whole(inputs),
            whole(rejected),
            whole(structures),
            whole(residues),
            whole(atoms),
        )
    }
}

/// The lines of the settings of a file, whose texts may be anything.
fn settings_text(settings: &SetSettings) -> String {
    let reader = match &settings.reader {
        None => "not stated".to_owned(),
        Some(reader) => {
            let settings = reader.iter().map(|(key, value)| format!("{key} = {value}"));
            settings.collect::<Vec<_>>().join(", ")
        }
    };
    let annotations = match &settings.channels()[..] {
        [] => String::new(),
        channels => format!("annotations  {}\n", printable(&channels.join(", "))),
    };
    format!("settings     {}\n{annotations}", printable(&reader))
}

/// The inputs of a name, as JSON. Reads the names of all record batches, and the batches with a
/// match.
fn find(files: &[impl AsRef<Path>], name: &str) -> Result<Vec<Json>> {
    let (limits, budget) = (ReadLimits::default(), budget());
    let mut found = Vec::new();
    for path in files {
        let path = path.as_ref();
        let file = PackedFile::open(path).within(|| shown(path))?;
        for index in 0..file.batches() {
            let names = file.names(index, &limits).within(|| shown(path))?;
            let (mut matches, mut row) = (Vec::new(), 0);
            while let Some((source, rows)) = names.input(row) {
                row = rows.end;
                let file_name = Path::new(source).file_name();
                let is_match = source == name
                    || structure_name(source) == name
                    || file_name.is_some_and(|of_file| of_file == name);
                if is_match {
                    matches.push((source.to_owned(), rows));
                }
            }
            if matches.is_empty() {
                continue;
            }
            let batch = file.batch(index, &names, &limits, &budget)?.read()?;
            for (source, rows) in matches {
                found.push(input_json(&source, path, &batch, rows)?);
            }
        }
    }
    Ok(found)
}

/// An input of a packed set as JSON: its structures, or why it was rejected.
fn input_json(source: &str, file: &Path, batch: &PackedBatch, rows: Range<usize>) -> Result<Json> {
    let place =
        |structures| json!({"source": source, "file": shown(file), "structures": structures});
    if let Some(error) = batch.error(rows.start) {
        let mut input = place(json!([]));
        input["rejected"] = json!(error.to_string());
        return Ok(input);
    }
    let structures = batch.structures(rows)?;
    let structures: Vec<Json> = structures.iter().map(structure_json).collect();
    Ok(place(Json::from(structures)))
}

/// A structure as JSON, with the sequence of each chain.
fn structure_json(structure: &Structure) -> Json {
    let mut sequences = vec![String::new(); structure.chains.len()];
    for residue in &structure.residues {
        sequences[residue.chain as usize].push(char::from(residue.aa));
    }
    let chains = structure.row_chains().iter().zip(sequences);
    let chains = chains.map(|(chain, sequence)| {
        json!({
            "chain": chain.auth_asym_id,
            "label_asym_id": chain.label_asym_id,
            "entity_id": chain.entity_id,
            "residues": sequence.len(),
            "sequence": sequence,
        })
    });
    let channels = structure.channels.iter().map(|channel| &channel.name);
    json!({
        "entry_id": structure.entry_id,
        "model": structure.model,
        "assembly": enum_name(&ASSEMBLIES, &structure.assembly),
        "residues": structure.residues.len(),
        "atoms": structure.xyz.len(),
        "annotations": channels.collect::<Vec<_>>(),
        "chains": chains.collect::<Vec<_>>(),
    })
}

/// The lines of an input, from its JSON.
fn text_of_input(input: &Json) -> String {
    let text = |value: &Json| printable(value.as_str().unwrap_or("?")).into_owned();
    let mut lines = format!("{} in {}\n", text(&input["source"]), text(&input["file"]));
    if input["rejected"].is_string() {
        lines += &format!("  rejected: {}\n", text(&input["rejected"]));
    }
    for structure in input["structures"].as_array().into_iter().flatten() {
        lines += &format!(
            "  entry {}, model {}, assembly {}: {} residues, {} atoms\n",
            text(&structure["entry_id"]),
            structure["model"],
            text(&structure["assembly"]),
            structure["residues"],
            structure["atoms"],
        );
        let chains = structure["chains"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        let ids: Vec<_> = chains
            .iter()
            .map(|chain| {
                let auth = chain["chain"].as_str().unwrap_or_default();
                (auth, chain["label_asym_id"].as_str())
            })
            .collect();
        for (chain, name) in chains.iter().zip(distinct_chain_names(&ids)) {
            let name = printable(name);
            let residues = &chain["residues"];
            lines += &format!(
                "    chain {name}, {residues} residues: {}\n",
                text(&chain["sequence"])
            );
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_label_that_is_an_author_s_id_too_names_a_chain() {
        let chain = |chain: &str, label: &str| json!({"chain": chain, "label_asym_id": label, "residues": 1});
        let names = |chains: [Json; 3]| {
            let text = text_of_input(&json!({"structures": [{"chains": chains}]}));
            let lines = text
                .lines()
                .filter_map(|line| line.strip_prefix("    chain "));
            let names = lines.filter_map(|line| Some(line.split_once(',')?.0.to_owned()));
            names.collect::<Vec<_>>()
        };
        let shared = [chain("A", "A"), chain("A", "B"), chain("B", "C")];
        assert_eq!(names(shared), ["A", "A", "B"]);
        let split = [chain("A", "A_1"), chain("A", "A_2"), chain("B", "B")];
        assert_eq!(names(split), ["A_1", "A_2", "B"]);
    }
}
