//! How a run went: its exit code, and the summary that it prints.

use super::bottleneck::Cores;
use super::exit_codes::{self, GOOD, INTERRUPTED, REJECTED};
use super::path_text::shown;
use super::plan::Plan;
use super::run_counters::{RunCounts, WrittenParts};
use super::tables::{ColumnStatistics, warnings};
use super::terminal::short;
use crate::bench::format;
use crate::error::{Error, Result};
use crate::pipeline::{Counters, MemoryPlan, Shrunk, Statistics};
use crate::replay::Chosen;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How a run went.
pub(super) struct Outcome {
    pub(super) elapsed: Duration,
    pub(super) counts: RunCounts,
    pub(super) written: WrittenParts,
    /// The engine's counters.
    pub(super) counters: Counters,
    /// The engine's stage statistics.
    pub(super) statistics: Statistics,
    pub(super) cores: Cores,
    pub(super) memory: MemoryPlan,
    /// What the engine reduced for lack of memory.
    pub(super) shrunk: Vec<Shrunk>,
    /// What mode auto chose.
    pub(super) chosen: Vec<Chosen>,
    pub(super) columns: Vec<ColumnStatistics>,
    pub(super) interrupted: bool,
    pub(super) error: Option<Error>,
    /// The first rejected inputs, each with its reason.
    pub(super) rejected: Vec<String>,
    /// Folder of the results: the output, or a folder in it if earlier results stay.
    pub(super) folder: PathBuf,
}

impl Outcome {
    pub(super) fn per_second(&self, count: u64) -> f64 {
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
        Ok(match self.interrupted {
            true => INTERRUPTED,
            false => exit_codes::of_inputs(self.counts.structures, self.counts.rejected),
        })
    }

    /// Seconds by stage. Stages overlap, and several threads read, so the sum exceeds the time of
    /// the run. `write` includes the encoding of tables only while the run waited for it.
    pub(super) fn stages(&self) -> [(&'static str, f64); 7] {
        let seconds = |ns: u64| ns as f64 / 1e9;
        [
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
    pub(super) fn bound(&self, plan: &Plan) -> String {
        let on_cpu = plan.selected.backend.device().backend == "cpu";
        self.cores.bound(&self.statistics, on_cpu)
    }

    /// The key `state` of `run.json`.
    pub(super) fn state(&self) -> &'static str {
        if self.error.is_some() {
            "failed"
        } else if self.interrupted {
            "interrupted"
        } else {
            "finished"
        }
    }

    /// Whether the results may replace those of an earlier run: the run finished, and computed
    /// a structure.
    pub(super) fn has_succeeded(&self) -> bool {
        matches!(self.exit_code(), Ok(GOOD | REJECTED))
    }

    /// The device and the main settings, in a line.
    pub(super) fn title(&self, plan: &Plan) -> String {
        let device = plan.selected.backend.device();
        format!(
            "{} ({}), mode {}, {} slots, {} threads",
            device.backend,
            device.name,
            plan.config.policy.mode.name(),
            plan.config.slots,
            plan.pool.current_num_threads()
        )
    }

    /// The closing summary.
    pub(super) fn summary(&self, plan: &Plan, output: &Path) -> String {
        let counts = &self.counts;
        let ended = if self.error.is_some() {
            "failed after"
        } else if self.interrupted {
            "interrupted after"
        } else {
            "done in"
        };
        let mut text = format!(
            "{ended} {:.2} s on {}\n",
            self.elapsed.as_secs_f64(),
            self.title(plan)
        );
        let lines = [
            ("inputs", counts.inputs),
            ("structures", counts.structures),
            ("residues", counts.residues),
            ("atoms", counts.atoms),
        ];
        for (name, count) in lines {
            let rate = short(self.per_second(count));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{:>16} {name:<11} {rate:>8} /s", format::whole(count));
        }
        let stages = self.stages();
        let stages = stages.map(|(name, seconds)| format!("{name} {seconds:.2}"));
        let _ = writeln!(text, "seconds by stage: {}", stages.join(", "));
        if !self.cores.all.is_zero() {
            let _ = writeln!(text, "{}", self.cores.sentence());
        }
        let _ = writeln!(text, "{}", self.bound(plan));
        for chosen in &self.chosen {
            let _ = writeln!(text, "mode auto: {chosen}");
        }
        let folder = shown(&self.folder);
        let _ = writeln!(text, "results: {folder}");
        if self.folder != output {
            let _ = writeln!(text, "{} keeps its earlier results", shown(output));
        }
        if !self.shrunk.is_empty() {
            let steps: Vec<String> = self.shrunk.iter().map(Shrunk::to_string).collect();
            let _ = writeln!(text, "memory was short: {}", steps.join(", "));
        }
        if self.counters.restarts > 0 {
            let Counters {
                restarts,
                items_quarantined,
                ..
            } = self.counters;
            let _ = writeln!(
                text,
                "the device was lost and restarted {restarts} times; {items_quarantined} inputs were rejected as the cause"
            );
        }
        text.push_str(&warnings(&self.columns, counts.structures));
        if counts.rejected > 0 {
            let rejected = format::whole(counts.rejected);
            let _ = writeln!(
                text,
                "rejected: {rejected}, listed in {folder}/rejected.jsonl"
            );
            text.push_str(&self.first_rejected());
        }
        text
    }

    /// The first rejected inputs, a line each.
    pub(super) fn first_rejected(&self) -> String {
        let mut text = String::new();
        for line in &self.rejected {
            let _ = writeln!(text, "  {line}");
        }
        if self.counts.rejected > self.rejected.len() as u64 {
            text.push_str("  ...\n");
        }
        text
    }
}
