//! `tapeloop pack`: reads structures as a run does, and writes them into a packed set.

use super::args::PackArgs;
use super::signals;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use tapeloop::error::{Context, Error, Result};
use tapeloop::features::Input;
use tapeloop::structure::ReadBudget;
use tapeloop_annotations::WantedColumns;
use tapeloop_bench::internal::format;
use tapeloop_cli::config::Config;
use tapeloop_cli::exit_codes::{self, INTERRUPTED};
use tapeloop_cli::plan::{archive_options, load_annotations, thread_pool};
use tapeloop_cli::reading;
use tapeloop_cli::run_counters::RunCounters;
use tapeloop_cli::source_thread::SourceThread;
use tapeloop_cli::terminal::complain;
use tapeloop_files::{path_of, shown};
use tapeloop_inputs::packed::{SetSettings, SetWriter, reader_settings};
use tapeloop_inputs::{
    self, Archives, PackedSet, STDIN, Shard, Source, Sources, Trajectories, is_packed_name,
};

/// Rejected inputs that are printed.
const REJECTED_SHOWN: u64 = 10;

/// What was packed.
#[derive(Default)]
struct Counts {
    structures: u64,
    rejected: u64,
}

/// Packs, and returns the exit code.
///
/// # Errors
/// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) if the config is wrong; those of an input or
/// a set that cannot be used, or of a file that cannot be written. The set is then as it was.
pub(super) fn pack(args: PackArgs) -> Result<u8> {
    let (quiet, max_rejects) = (args.quiet, args.max_rejects);
    let config = args.resolve()?;
    if config.input.is_empty() {
        let error = Error::config("no input is given");
        return Err(error.fix("name files or folders: tapeloop pack structures/ -o set"));
    }
    if config.topology.is_some() {
        let error = Error::config("`topology` is set, and sets have no frames of trajectories");
        return Err(error.fix("run over the trajectory itself"));
    }
    let reader = reader_settings(&config.settings);
    // Structures keep the annotations that they have, unless others are given.
    let keeps = config.annotations.is_empty();
    let packed = tapeloop_inputs::check(&config.input, &Trajectories::Unknown, &reader, keeps)?;
    check_apart(&config)?;
    // A set holds what the kernels read. Runs over it add columns to their tables.
    let annotations = load_annotations(&config, &packed, &WantedColumns::NONE)?.map(Arc::new);
    let provenance = match &annotations {
        Some(annotations) => Some(annotations.provenance()),
        None => shared_annotations(packed)?,
    };
    let pool = thread_pool(config.threads)?;
    let archives = Archives::Read(archive_options(&config));
    let sources = Sources::new(config.input.clone(), archives, config.shard);
    let interrupt = signals::listen()?;
    let mut set = SetWriter::open(
        &config.output,
        SetSettings::from_config(&config.settings, provenance),
    )?;
    let counters = Arc::new(RunCounters::default());
    let sources = SourceThread::start(sources, &interrupt, &counters)?;
    let budget = Arc::new(ReadBudget::new(config.reading_bytes_max));
    let reading = config.reading;
    let inputs = reading::inputs(
        sources,
        reading,
        &budget,
        &pool,
        &counters,
        annotations.as_ref(),
    );
    let mut counts = Counts::default();
    let mut models: Vec<Input> = Vec::new();
    for input in inputs {
        if models
            .first()
            .is_some_and(|first| first.ordinal != input.ordinal)
        {
            add(&mut set, &mut models, &mut counts)?;
        }
        counters.set_inputs(input.ordinal + 1);
        models.push(input);
    }
    if interrupt.has_stopped() {
        complain("interrupted; the set is as it was");
        return Ok(INTERRUPTED);
    }
    if !models.is_empty() {
        add(&mut set, &mut models, &mut counts)?;
    }
    // This comes before the set is finished: otherwise a run with a corrected table would append to it.
    if let Some(annotations) = &annotations {
        let matches = counters.matches();
        annotations.log(&matches)?;
        if counts.structures > 0 {
            let checked = annotations.check_matched(&matches, counts.rejected, config.unmatched);
            checked.within(|| "the set is as it was")?;
        }
    }
    set.finish()?;
    if !quiet && std::io::stderr().is_terminal() {
        let structures = format::counted(counts.structures, "structure");
        complain(&format!(
            "packed {structures} into {}",
            shown(&config.output)
        ));
    }
    let Counts {
        structures,
        rejected,
    } = counts;
    if rejected > REJECTED_SHOWN {
        let rejected = format::whole(rejected);
        complain(&format!(
            "rejected: {rejected} in total; a run over the set lists them"
        ));
    }
    let code = exit_codes::of_inputs(structures, rejected);
    Ok(exit_codes::accepting(code, rejected, max_rejects))
}

/// Returns the provenance of the annotations that all the packed sets share; `None` without annotations.
///
/// # Errors
/// [`ErrorKind::Config`](tapeloop::ErrorKind::Config): two sets have different annotations.
fn shared_annotations(packed: Vec<PackedSet>) -> Result<Option<String>> {
    let differs = |pair: &&[PackedSet]| pair[0].1.annotations != pair[1].1.annotations;
    if let Some([(first, _), (second, _)]) = packed.windows(2).find(differs) {
        let first = shown(first);
        let error = Error::config(format!(
            "{first} has other annotations than this packed set"
        ));
        let error = error.fix("pack them into sets of their own, or set `annotations`");
        return Err(error.within(shown(second)));
    }
    let first = packed.into_iter().next();
    Ok(first.and_then(|(_, set)| set.annotations))
}

/// Adds the models of an input to the set, prints why it was rejected if it was, and empties
/// `models`.
fn add(set: &mut SetWriter, models: &mut Vec<Input>, counts: &mut Counts) -> Result<()> {
    set.add(models)?;
    for Input {
        source, structure, ..
    } in models.drain(..)
    {
        let Err(error) = structure else {
            counts.structures += 1;
            continue;
        };
        counts.rejected += 1;
        if counts.rejected <= REJECTED_SHOWN {
            complain(&format!("rejected: {}: {error}", shown(&path_of(&source))));
        }
    }
    Ok(())
}

/// Checks that no input holds the set or is a file of it: the set would be packed into itself. An
/// error of kind `Usage` if one does. What standard input lists cannot be read twice, and is not
/// checked.
fn check_apart(config: &Config) -> Result<()> {
    // A set that does not exist yet is in no input.
    let Ok(set) = config.output.canonicalize() else {
        return Ok(());
    };
    let holds_set = |item: &&String| {
        let is_name = !item.starts_with('@') && item.as_str() != STDIN;
        let path = is_name.then(|| path_of(item).canonicalize().ok());
        path.flatten().is_some_and(|path| set.starts_with(path))
    };
    let usage_error = |message: &str, path: &Path| {
        let error = Error::usage(message).fix("name another folder for the set");
        Err(error.within(shown(path)))
    };
    if let Some(item) = config.input.iter().find(holds_set) {
        let message = "this input holds the set that is to be written";
        return usage_error(message, &path_of(item));
    }
    if !Sources::can_walk_twice(&config.input) {
        return Ok(());
    }
    let is_of_set = |source: &Source| {
        let path = is_packed_name(&source.path).then(|| source.path.canonicalize().ok());
        path.flatten().is_some_and(|path| path.starts_with(&set))
    };
    let mut sources = Sources::new(config.input.clone(), Archives::Whole, Shard::WHOLE);
    match sources.find(is_of_set) {
        Some(source) => usage_error(
            "this file is of the set that is to be written",
            &source.path,
        ),
        None => Ok(()),
    }
}
