//! How a run went: its exit code, and the summary that it prints.
//!
//! Writing to a string cannot fail, so what `write!` returns is ignored.

use super::bottleneck::Cores;
use super::waits::{slots_line, threads_line};
use serde_json::Value as Json;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tapeloop::backend::Compilation;
use tapeloop::backend::DeviceInfo;
use tapeloop::error::{Error, Result};
use tapeloop::features::FeatureName;
use tapeloop::pipeline::{Counters, DeviceStatistics, MemoryPlan, Shrunk, Statistics};
use tapeloop::structure::Check;
use tapeloop_annotations::{Matches, TableMatches};
use tapeloop_bench::internal::format;
use tapeloop_cli::exit_codes::{self, GOOD, INTERRUPTED, REJECTED};
use tapeloop_cli::output::FINISHED;
use tapeloop_cli::plan::{Plan, memory_text};
use tapeloop_cli::run_counters::{FindingCounts, RunCounts, WrittenParts, finding_line};
use tapeloop_cli::tables::{ColumnStatistics, folders, notes, warnings};
use tapeloop_cli::terminal::short;
use tapeloop_error::internal::printable;
use tapeloop_files::shown;

/// Shorter runs are mostly start and end, and nothing bounds them.
const BOUND_TIME_MIN: Duration = Duration::from_secs(1);

/// How a run went.
pub(super) struct RunOutcome {
    pub(super) elapsed: Duration,
    pub(super) counts: RunCounts,
    /// The counts of an interrupted run that this one went on with; they are part of `counts`.
    pub(super) earlier: RunCounts,
    /// What the annotations matched.
    pub(super) matches: Matches,
    /// What each table of the annotations matched.
    pub(super) tables: Vec<TableMatches>,
    pub(super) written: WrittenParts,
    /// The engine's counters.
    pub(super) counters: Counters,
    /// The engine's stage statistics.
    pub(super) statistics: Statistics,
    /// What had to be compiled.
    pub(super) compilation: Compilation,
    pub(super) cores: Cores,
    /// The memory of the engine.
    pub(super) memory: MemoryPlan,
    /// What the engine reduced for lack of memory.
    pub(super) shrunk: Vec<Shrunk>,
    /// The columns of all tables; none if an error left parts unwritten.
    pub(super) columns: Vec<ColumnStatistics>,
    pub(super) was_interrupted: bool,
    /// Whether there are more inputs than the run was to read.
    pub(super) is_cut: bool,
    pub(super) error: Option<Error>,
    /// The first rejected inputs, each with its reason.
    pub(super) rejected: Vec<String>,
    /// Folder of the results: the output, or a folder in it if earlier results stay. `None` for
    /// standard output.
    pub(super) folder: Option<PathBuf>,
    /// Whether the output folder has earlier results, and these are in a folder in it.
    pub(super) keeps_earlier: bool,
    /// The first PDB files that are likely cut short, each with what is missing.
    pub(super) truncated: Vec<String>,
    /// What the checks of files found.
    pub(super) findings: FindingCounts,
    /// What is unusual about the inputs.
    pub(super) notes: Vec<String>,
    /// What may make values wrong, besides what the checks of files found.
    pub(super) warnings: Vec<String>,
    /// `run.json` of the run.
    pub(super) record: Json,
}

impl RunOutcome {
    /// The rate of one of the counts, without what an earlier run has counted.
    pub(super) fn per_second(&self, of: fn(&RunCounts) -> u64) -> f64 {
        let count = of(&self.counts).saturating_sub(of(&self.earlier));
        count as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The exit code of the run.
    ///
    /// # Errors
    /// The error that ended the run.
    pub(super) fn exit_code(&self) -> Result<u8> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        Ok(if self.was_interrupted {
            INTERRUPTED
        } else {
            exit_codes::of_inputs(self.counts.structures, self.counts.rejected)
        })
    }

    /// Seconds by stage. Stages overlap, and several threads read, so the sum exceeds the time of
    /// the run. `write` includes the encoding of tables only while the run waited for it.
    pub(super) fn stages(&self) -> [(&'static str, f64); 8] {
        let seconds = |ns: u64| ns as f64 / 1e9;
        [
            ("compile", seconds(self.compilation.ns)),
            ("read", self.counts.read.as_secs_f64()),
            ("stall", seconds(self.counters.stall_ns)),
            ("fill", seconds(self.counters.fill_ns)),
            ("submit", seconds(self.counters.submit_ns)),
            ("compute", seconds(self.counters.compute_ns)),
            ("unpack", seconds(self.counters.unpack_ns)),
            ("write", self.counts.write.as_secs_f64()),
        ]
    }

    /// What bounds the run and what would help, in a sentence.
    pub(super) fn bound(&self) -> String {
        self.cores.bound(&self.statistics)
    }

    /// The key `state` of `run.json`.
    pub(super) fn state(&self) -> &'static str {
        if self.error.is_some() {
            "failed"
        } else if self.was_interrupted {
            "interrupted"
        } else {
            FINISHED
        }
    }

    /// Whether the results may replace those of an earlier run: the run finished, and computed
    /// a structure.
    pub(super) fn has_succeeded(&self) -> bool {
        matches!(self.exit_code(), Ok(GOOD | REJECTED))
    }

    /// The device and the main settings, in a line.
    pub(super) fn title(&self, plan: &Plan) -> String {
        format!(
            "{} ({}), mode {}, {} slots, {} threads",
            plan.first_device().backend,
            plan.device_names(),
            plan.config.policy.mode.name(),
            plan.engine.slots * plan.backends.len(),
            plan.pool.current_num_threads()
        )
    }

    /// The closing summary; with `verbose` the time of each stage too.
    pub(super) fn summary(&self, plan: &Plan, verbose: bool) -> String {
        let counts = &self.counts;
        let ended = if self.error.is_some() {
            "failed after"
        } else if self.was_interrupted {
            "interrupted after"
        } else {
            "done in"
        };
        let mut text = format!(
            "{ended} {:.2} s: {} of {} ({}, {}) on {}\n",
            self.elapsed.as_secs_f64(),
            format::counted(plan.features_computed(), "feature"),
            format::counted(counts.structures, "structure"),
            format::counted(counts.residues, "residue"),
            format::counted(counts.atoms, "atom"),
            plan.device(),
        );
        let _ = writeln!(
            text,
            "{} structures/s, {} residues/s, {} atoms/s",
            short(self.per_second(|counts| counts.structures)),
            short(self.per_second(|counts| counts.residues)),
            short(self.per_second(|counts| counts.atoms)),
        );
        if self.compilation.images > 0 {
            let kernels = format::counted(self.compilation.images, "kernel");
            let seconds = self.compilation.ns as f64 / 1e9;
            let _ = writeln!(text, "compiled {kernels} for this GPU in {seconds:.2} s");
        }
        if verbose || self.elapsed >= BOUND_TIME_MIN {
            let _ = writeln!(text, "{}", self.bound());
        }
        let infos: Vec<_> = plan
            .backends
            .iter()
            .map(|backend| backend.device())
            .collect();
        text.push_str(&by_device(&self.statistics.devices, &infos));
        if verbose {
            text.push_str(&self.details(plan));
        }
        if let Some(folder) = &self.folder {
            let size = format::size(bytes_in(folder) as f64);
            let format = plan.config.tables.format.name();
            let tables = listed(&plan.config.tables.written.names());
            let _ = writeln!(
                text,
                "results: {} ({size} of {format}: {tables})",
                shown(folder)
            );
        }
        if let Some(condition) = &plan.config.condition {
            // Saturating, as a run that goes on begins with numbers from `run.json`, which may be any.
            let written = counts.residues.saturating_sub(counts.residues_left_out);
            let _ = writeln!(
                text,
                "where {}: {} of {}",
                printable(&condition.text),
                format::whole(written),
                format::counted(counts.residues, "residue"),
            );
        }
        if let Some(condition) = &plan.config.atom_condition {
            let _ = writeln!(
                text,
                "where_atoms {}: {} of {}",
                printable(&condition.text),
                format::whole(counts.atoms_chosen),
                format::counted(counts.atoms_tested, "atom"),
            );
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        // Many columns of a run of all features are empty for a good reason.
        if verbose || plan.config.features.features.len() < FeatureName::ALL.len() {
            text.push_str(&notes(&self.columns, counts.structures));
        }
        text + &self.problems()
    }

    /// Seconds by stage, busy cores and memory.
    fn details(&self, plan: &Plan) -> String {
        let stages = self.stages();
        let stages = stages.map(|(name, seconds)| format!("{name} {seconds:.2}"));
        let mut text = format!("seconds by stage: {}\n", stages.join(", "));
        if !self.cores.all.is_zero() {
            let _ = writeln!(text, "{}", self.cores.sentence());
            let _ = writeln!(text, "{}", threads_line(&self.cores.single));
        }
        let _ = writeln!(
            text,
            "{}\nengine: mode {}, {}",
            slots_line(&self.statistics),
            plan.config.policy.mode.name(),
            memory_text(&self.memory)
        );
        text
    }

    /// What the user should know although nothing was asked for: rejected and truncated
    /// inputs, suspect columns, lost devices, and short memory. Empty if all is well.
    pub(super) fn problems(&self) -> String {
        let mut text = String::new();
        if !self.shrunk.is_empty() {
            let steps: Vec<String> = self.shrunk.iter().map(Shrunk::to_string).collect();
            let _ = writeln!(
                text,
                "memory ran out, so the engine runs with less: {}",
                steps.join(", ")
            );
        }
        if self.counters.restarts > 0 {
            let Counters {
                restarts,
                items_quarantined,
                ..
            } = self.counters;
            let subject = match self.statistics.devices.len() {
                0 | 1 => "the device was",
                _ => "devices were",
            };
            let _ = writeln!(
                text,
                "{subject} lost and restarted {restarts} times; {items_quarantined} inputs were rejected as the cause"
            );
        }
        let devices = &self.statistics.devices;
        if devices.iter().any(|device| !device.is_lost) {
            let lost = devices
                .iter()
                .enumerate()
                .filter(|(_, device)| device.is_lost);
            for (index, _) in lost {
                let _ = writeln!(
                    text,
                    "device {index} was lost and could not be restarted; the run went on on the others"
                );
            }
        }
        if self.counts.residues > 0 && self.counts.residues_left_out == self.counts.residues {
            text.push_str("warning: no residue meets tables.where\n");
        }
        if self.counts.atoms_tested > 0 && self.counts.atoms_chosen == 0 {
            text.push_str("warning: no atom meets tables.where_atoms\n");
        }
        text.push_str(&warnings(&self.columns, self.counts.structures));
        text.push_str(&self.truncations());
        text.push_str(&self.doubtful_values());
        if self.counts.rejected > 0 {
            text.push_str(&self.rejections());
        }
        if let (true, Some(folder)) = (self.keeps_earlier, &self.folder) {
            let place = shown(folder.parent().unwrap_or(folder));
            let _ = writeln!(
                text,
                "{place} keeps its earlier results; these are in {}",
                shown(folder)
            );
        }
        text
    }

    /// The number of PDB files that are likely cut short, and the first of them; empty if there are
    /// none.
    fn truncations(&self) -> String {
        let truncated = self.counts.truncated_likely;
        if truncated == 0 {
            return String::new();
        }
        format!(
            "warning: PDB files that may be cut short, and were read (--strict rejects them): {}\n{}",
            format::whole(truncated),
            first_of(&self.truncated, truncated)
        )
    }

    /// What may make values wrong, a line each.
    fn doubtful_values(&self) -> String {
        let checks = Check::ALL.iter().filter(|check| is_warning(**check));
        let lines = checks.filter_map(|&check| finding_line(check, &self.findings));
        let lines = lines.chain(self.warnings.iter().cloned());
        lines.map(|line| format!("warning: {line}\n")).collect()
    }

    /// What the user should know although a table was asked for: files that are likely cut short,
    /// and why nothing was computed. The other problems concern tables of many structures.
    pub(super) fn problems_of_table(&self) -> String {
        self.truncations() + &self.doubtful_values() + &self.nothing_done()
    }

    /// Why nothing was computed; empty if something was, or if an error ended the run.
    pub(super) fn nothing_done(&self) -> String {
        if self.counts.structures == 0 && self.counts.rejected > 0 && self.error.is_none() {
            self.rejections()
        } else {
            String::new()
        }
    }

    /// The number of rejected inputs, and the first of them.
    fn rejections(&self) -> String {
        let rejected = format::whole(self.counts.rejected);
        let all = match self.counts.structures {
            0 => "; nothing was computed",
            _ => "",
        };
        match &self.folder {
            Some(folder) => format!(
                "rejected: {rejected}, listed in {}/rejected.jsonl{all}\n{}",
                shown(folder),
                self.first_rejected()
            ),
            // Without a folder each rejected input was printed already.
            None => format!("rejected: {rejected}{all}\n"),
        }
    }

    /// The first rejected inputs, a line each.
    pub(super) fn first_rejected(&self) -> String {
        first_of(&self.rejected, self.counts.rejected)
    }
}

/// Whether what a check finds may make values wrong: a residue that is not in its chain.
pub(super) fn is_warning(check: Check) -> bool {
    matches!(check, Check::DroppedResidues | Check::ContradictoryNames)
}

/// A line for each device if there are several, with how busy it was and its batches.
fn by_device(devices: &[DeviceStatistics], infos: &[&DeviceInfo]) -> String {
    if devices.len() < 2 {
        return String::new();
    }
    let line = |(index, (device, info)): (usize, (&DeviceStatistics, &&DeviceInfo))| {
        let place = info.pci_bus_id.as_ref().map(|id| format!(", {id}"));
        format!(
            "device {index} ({}{}): busy {:.0}% of the time, {:.1} of {} slots in flight, \
             batches: {}\n",
            info.name,
            place.unwrap_or_default(),
            100.0 * device.time.share,
            device.slots_in_flight,
            device.slots,
            format::whole(device.time.batches),
        )
    };
    devices.iter().zip(infos).enumerate().map(line).collect()
}

/// The first of `count` lines, indented.
fn first_of(lines: &[String], count: u64) -> String {
    let mut text: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    if count > lines.len() as u64 {
        text.push_str("  ...\n");
    }
    text
}

/// Names as a list in a sentence: `residues, chains and structures`.
pub(super) fn listed(names: &[&str]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.concat(),
    }
}

/// Bytes of the tables in a folder, for the summary: what cannot be read counts as nothing.
fn bytes_in(folder: &Path) -> u64 {
    let parts = folders().filter_map(|table| fs::read_dir(folder.join(table)).ok());
    let sizes = parts
        .flatten()
        .filter_map(|part| part.ok()?.metadata().ok());
    sizes.map(|meta| meta.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_devices_have_a_line_each_and_one_has_none() {
        let device = |batches, share| {
            let mut device = DeviceStatistics::default();
            (device.time.batches, device.time.share) = (batches, share);
            (device.slots, device.slots_in_flight) = (3, 2.54);
            device
        };
        let card = |pci: &str| {
            let mut card = DeviceInfo::new("cuda", "NVIDIA H200");
            card.pci_bus_id = Some(pci.to_owned());
            card
        };
        let (a, b) = (card("0000:1a:00.0"), card("0000:3b:00.0"));
        assert_eq!(by_device(&[device(7, 0.5)], &[&a]), "");
        assert_eq!(
            by_device(&[device(1234, 0.971), device(7, 0.5)], &[&a, &b]),
            "device 0 (NVIDIA H200, 0000:1a:00.0): busy 97% of the time, 2.5 of 3 slots in \
             flight, batches: 1,234\n\
             device 1 (NVIDIA H200, 0000:3b:00.0): busy 50% of the time, 2.5 of 3 slots in \
             flight, batches: 7\n"
        );
    }
}
