//! What a run says of itself: `run.json`, and the summary.

use super::heading::Heading;
use super::interrupt;
use super::path_text::shown;
use super::plan::Plan;
use super::sink::Kept;
use super::tables::{AuditedColumn, warnings};
use super::tally::Counts;
use super::{FAILED, GOOD, REJECTED};
use crate::error::{Error, Result};
use crate::pipeline::{Counters, Latencies, MemoryPlan, Shrunk, Statistics};
use crate::replay::Chosen;
use serde_json::{Map, Value as Json, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How a run went.
pub(super) struct Outcome {
    pub(super) elapsed: Duration,
    pub(super) counts: Counts,
    pub(super) kept: Kept,
    /// Of the engine.
    pub(super) counters: Counters,
    /// Of the engine too.
    pub(super) statistics: Statistics,
    pub(super) memory: MemoryPlan,
    /// What the engine did without.
    pub(super) shrunk: Vec<Shrunk>,
    /// What mode auto chose.
    pub(super) chosen: Vec<Chosen>,
    pub(super) columns: Vec<AuditedColumn>,
    pub(super) interrupted: bool,
    pub(super) error: Option<Error>,
    /// The first rejected inputs, each with its reason.
    pub(super) rejected: Vec<String>,
    /// Where the results lie: the output, or within it if earlier results stay there.
    pub(super) folder: PathBuf,
}

impl Outcome {
    fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The exit code of the run.
    ///
    /// # Errors
    /// What ended it early.
    pub(super) fn exit_code(&self) -> Result<u8> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        Ok(match (self.counts.structures, self.counts.rejected) {
            _ if self.interrupted => interrupt::EXIT_CODE,
            (_, 0) => GOOD,
            (0, _) => FAILED,
            _ => REJECTED,
        })
    }

    /// Seconds by stage. Stages run beside each other, and reading on several
    /// threads, so they add up to more than the run took; encoding of tables is
    /// in `write` only where the run had to wait for it.
    fn stages(&self) -> [(&'static str, f64); 7] {
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

    /// How the run ended: `run.json`'s `state`.
    fn state(&self) -> &'static str {
        if self.error.is_some() {
            "failed"
        } else if self.interrupted {
            "interrupted"
        } else {
            "finished"
        }
    }

    /// Whether the results may replace those of an earlier run: the run came to its end, and
    /// not without any structure.
    pub(super) fn has_succeeded(&self) -> bool {
        matches!(self.exit_code(), Ok(GOOD | REJECTED))
    }

    /// The contents of `run.json`.
    pub(super) fn record(&self, plan: &Plan, heading: Heading) -> Json {
        let stages: Map<String, Json> = self
            .stages()
            .into_iter()
            .map(|(name, seconds)| (name.to_owned(), json!(seconds)))
            .collect();
        let counts = &self.counts;
        let annotations = plan.annotations.as_ref().map(|annotations| {
            let matches = annotations.matches();
            json!({
                "residues": matches.residues,
                "rows_unmatched": matches.rows_unmatched,
                "structures_without": matches.structures_without,
            })
        });
        let outcome = json!({
            "state": self.state(),
            "written": self.kept.json(),
            "seconds": self.elapsed.as_secs_f64(),
            "interrupted": self.interrupted,
            "error": self.error.as_ref().map(Error::to_string),
            "chosen": self.chosen.iter().map(chosen_json).collect::<Vec<_>>(),
            "trial_seconds": self.counters.trial_ns as f64 / 1e9,
            "slots": self.memory.slots,
            "shrunk": self.shrunk.iter().map(Shrunk::to_string).collect::<Vec<_>>(),
            "counts": {
                "inputs": counts.inputs,
                "structures": counts.structures,
                "residues": counts.residues,
                "atoms": counts.atoms,
                "rounded_atoms": counts.rounded_atoms,
                "scaled_plddt": counts.scaled_plddt,
                "assemblies": counts.assemblies,
                "truncated": counts.truncated,
                "rejected": counts.rejected,
                "specials_skipped": counts.specials_skipped,
                "parts": self.kept.parts,
                "batches": self.counters.batches,
                "driver_calls": self.counters.driver_calls,
                "graphs_failed": self.counters.graphs_failed,
                "batches_in_larger_bucket": self.counters.batches_in_larger_bucket,
                "batches_as_launches": self.counters.batches_as_launches,
                "verified_batches": self.counters.verified_batches,
                "tried_batches": self.counters.tried_batches,
                "copied_bytes": self.counters.copied_bytes,
                "padding_bytes": self.counters.padding_bytes,
                "restarts": self.counters.restarts,
                "reruns": self.counters.reruns,
                "quarantined": self.counters.items_quarantined,
            },
            "per_second": {
                "structures": self.per_second(counts.structures),
                "residues": self.per_second(counts.residues),
                "atoms": self.per_second(counts.atoms),
            },
            "annotations": annotations,
            "stage_seconds": stages,
            "statistics": statistics_json(&self.statistics),
            "columns": self.audits(),
            "memory_bytes": {
                "engine_device": self.memory.device_bytes(),
                "engine_pinned": self.memory.host_bytes(),
                "process_peak": peak_memory_bytes(),
            },
        });
        let Json::Object(mut record) = outcome else {
            unreachable!("it is written as an object");
        };
        record.extend(heading.0);
        Json::Object(record)
    }

    /// What each column held, by table and name.
    fn audits(&self) -> Json {
        let mut tables = Map::new();
        for column in &self.columns {
            let table = tables.entry(column.table).or_insert_with(|| json!({}));
            table[&column.name] = column.audit.json();
        }
        Json::Object(tables)
    }

    /// What ran, in a line.
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
            let _ = writeln!(text, "{:>16} {name:<11} {rate:>8} /s", grouped(count));
        }
        let stages = self.stages();
        let stages = stages.map(|(name, seconds)| format!("{name} {seconds:.2}"));
        let _ = writeln!(text, "seconds by stage: {}", stages.join(", "));
        let _ = writeln!(text, "{}", self.statistics.sentence());
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
                "the device was lost {restarts} times, to {items_quarantined} inputs, and started again"
            );
        }
        text.push_str(&warnings(&self.columns, counts.structures));
        if counts.rejected > 0 {
            let rejected = grouped(counts.rejected);
            let _ = writeln!(
                text,
                "rejected: {rejected}, listed in {folder}/rejected.jsonl"
            );
            text.push_str(&self.first_rejected());
        }
        text
    }

    /// The first inputs that were rejected, a line each.
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

/// What mode auto chose for the batches of a bucket.
fn chosen_json(chosen: &Chosen) -> Json {
    let tried = chosen.tried.iter().map(|tried| {
        json!({
            "mode": tried.way.mode.name(),
            "scope": tried.way.scope.name(),
            "seconds": tried.period_ns.map(|ns| ns as f64 / 1e9),
        })
    });
    json!({
        "capacity": chosen.capacity.as_slice(),
        "mode": chosen.way.mode.name(),
        "scope": chosen.way.scope.name(),
        "tried": tried.collect::<Vec<_>>(),
    })
}

/// Where the time went, in seconds and shares of the wall time.
fn statistics_json(statistics: &Statistics) -> Json {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let times = [
        ("input", statistics.input),
        ("stall", statistics.stall),
        ("fill", statistics.fill),
        ("device", statistics.device),
        ("unpack", statistics.unpack),
        ("output", statistics.output),
    ];
    let times: Map<String, Json> = times
        .into_iter()
        .map(|(name, time)| {
            let busy = json!({
                "seconds": seconds(time.busy_ns),
                "share": time.share,
                "batches": time.batches,
            });
            (name.to_owned(), busy)
        })
        .collect();
    let latencies = |latencies: &Latencies| {
        json!({
            "count": latencies.count(),
            "p50": seconds(latencies.quantile_ns(0.5)),
            "p90": seconds(latencies.quantile_ns(0.9)),
            "p99": seconds(latencies.quantile_ns(0.99)),
            "max": seconds(latencies.max_ns()),
        })
    };
    json!({
        "seconds": seconds(statistics.wall_ns),
        "bound": statistics.bound.map(|stage| stage.name()),
        "sentence": statistics.sentence(),
        "stages": times,
        "slots_in_flight": statistics.slots_in_flight,
        "overlap": statistics.overlap,
        "device_overlap": statistics.device_overlap,
        "latency_seconds": {
            "batch": latencies(&statistics.batch_latency),
            "item": latencies(&statistics.item_latency),
        },
    })
}

/// The most memory that the process had, where the system tells.
fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

/// `1234567` as `1,234,567`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1234567.0` as `1.23 M`.
pub(super) fn short(number: f64) -> String {
    let (scaled, unit) = match number {
        n if n >= 1e9 => (n / 1e9, " G"),
        n if n >= 1e6 => (n / 1e6, " M"),
        n if n >= 1e4 => (n / 1e3, " k"),
        n => (n, ""),
    };
    let decimals = match scaled {
        s if s < 10.0 => 2,
        s if s < 100.0 => 1,
        _ => 0,
    };
    format!("{scaled:.decimals$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::{grouped, short};

    #[test]
    fn numbers_are_grouped_and_shortened() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(123_456), "123,456");
        assert_eq!(short(1_234_567.0), "1.23 M");
        assert_eq!(short(123.4), "123");
        assert_eq!(short(12_345.0), "12.3 k");
    }
}
