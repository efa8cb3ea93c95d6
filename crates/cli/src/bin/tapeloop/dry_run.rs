//! The text of `--dry-run`.

use tapeloop::error::Result;
use tapeloop::features::TableName;
use tapeloop_bench::internal::format;
use tapeloop_cli::config::{Config, Reduction};
use tapeloop_cli::input_count::count_inputs;
use tapeloop_cli::oversized;
use tapeloop_cli::plan::{Plan, memory_text, residues_room};
use tapeloop_cli::tables::rows_bytes;
use tapeloop_error::internal::printable;

/// The text of `--dry-run`: what the run would do, and the settings that are not the default as a config
/// file. `result` completes "this run would". With `verbose` all settings, the columns and the memory of each
/// buffer.
///
/// # Errors
/// The engine's settings are wrong.
pub(super) fn describe(plan: &Plan, result: &str, verbose: bool) -> Result<String> {
    let Config {
        input,
        features,
        tables,
        ..
    } = &plan.config;
    let memory = plan.memory()?;
    let columns: Vec<String> = TableName::ALL
        .into_iter()
        .flat_map(|table| features.columns(table))
        .map(|column| column.name)
        .chain(plan.config.reductions.iter().map(Reduction::name))
        .collect();
    let inputs: Vec<String> = input
        .iter()
        .map(|item| printable(item).into_owned())
        .collect();
    let inputs = inputs.join(", ");
    let counted = count_inputs(input, &plan.trajectories, plan.config.shard);
    let inputs = match counted {
        Some(count) => format!("{inputs} ({})", format::counted(count, "input")),
        None => inputs,
    };
    let (heading, settings) = if verbose {
        ("The config as resolved:".to_owned(), plan.config.to_toml())
    } else {
        let all = plan.config.settings.len();
        let heading = format!("The settings that are not the default; --verbose prints all {all}:");
        (heading, plan.config.changed_to_toml())
    };
    let of_residues = features.columns(TableName::Residues).len();
    let chosen = plan
        .config
        .condition
        .as_ref()
        .map_or(String::new(), |condition| {
            format!(
                "# Of the residues, it would take those where {}.\n",
                printable(&condition.text)
            )
        });
    let batch = plan.config.batch;
    let alone = if batch.structure_residues_max > batch.residues_max {
        format!(
            "# A structure of more than {} runs alone, with up to {}.\n",
            format::counted(batch.residues_max.into(), "residue"),
            memory_text(&oversized::memory_max(plan)?),
        )
    } else {
        String::new()
    };
    let details = if verbose {
        format!(
            "# Feature columns: {}.\n# Memory of the engine by buffer:\n# {}\n",
            columns.join(", "),
            memory.to_string().replace('\n', "\n# ")
        )
    } else {
        String::new()
    };
    Ok(format!(
        "# This run would read {}, compute {} ({}) on {},\n\
         # and {result}.\n{chosen}\
         # Choice of the backend: {}.\n\
         # Memory: {} for {} batches in flight with room for {} each, and up to {} for rows that wait to be written.\n\
         {alone}{details}#\n\
         # {heading}\n{settings}",
        inputs,
        format::counted(plan.features_computed(), "feature"),
        format::counted(columns.len() as u64, "column"),
        plan.device(),
        plan.reason,
        memory_text(&memory),
        memory.slots,
        format::counted(residues_room(&plan.engine).into(), "residue"),
        format::size(rows_bytes(*tables, of_residues, plan.pool.current_num_threads()) as f64),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::Arc;
    use tapeloop::backend::cpu::CpuBackend;
    use tapeloop_cli::config::RawConfig;

    #[test]
    fn the_batches_are_those_of_all_devices() {
        let text = "backend = \"cpu\"\nthreads = 2\nslots = 2\nbatch.residues = 256";
        let raw = RawConfig::parse(text, Path::new("run.toml")).unwrap();
        let mut plan = Plan::of_any_input(Config::resolve(raw).unwrap()).unwrap();
        let another = CpuBackend::new(Arc::clone(&plan.pool));
        plan.backends.push(Arc::new(another));
        let text = describe(&plan, "print", false).unwrap();
        let expected = "for 4 batches in flight with room for 32,768 residues each";
        assert!(text.contains(expected), "{text}");
    }
}
