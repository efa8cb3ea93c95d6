//! What `run.json` says of a run that has ended.

use super::summary::RunOutcome;
use super::waits::threads_json;
use serde_json::{Map, Value as Json, json};
use tapeloop::error::Error;
use tapeloop::pipeline::{DeviceStatistics, Latencies, Shrunk, Statistics};
use tapeloop::structure::Check;
use tapeloop_cli::plan::Plan;
use tapeloop_cli::run_counters::FindingCounts;
use tapeloop_cli::run_json::{RunHeader, object};
use tapeloop_cli::tables::ColumnStatistics;

/// `run.json` of a run that has ended.
pub(super) fn ended(header: RunHeader, plan: &Plan, outcome: &RunOutcome) -> Json {
    let stages = outcome
        .stages()
        .map(|(name, seconds)| (name, json!(seconds)));
    let cores = outcome.cores.seconds();
    let cores = cores.map(|(name, seconds)| (name, json!(seconds)));
    let counts = &outcome.counts;
    let annotations = plan.annotations.as_ref().map(|annotations| {
        let matches = &outcome.matches;
        json!({
            "rows": annotations.rows(),
            "rows_read": annotations.rows_read(matches),
            "rows_matched": annotations.rows_matched(matches),
            "rows_repeated": matches.rows_repeated,
            "residues": matches.residues,
            "structures_without": matches.structures_without,
            "tables": outcome.tables,
        })
    });
    let ended = json!({
        "state": outcome.state(),
        "written": outcome.written.json(),
        "seconds": outcome.elapsed.as_secs_f64(),
        "interrupted": outcome.was_interrupted,
        "error": outcome.error.as_ref().map(Error::to_string),
        "kernels_compiled": outcome.compilation.images,
        "slots": outcome.memory.slots,
        "shrunk": outcome.shrunk.iter().map(Shrunk::to_string).collect::<Vec<_>>(),
        "counts": {
            "inputs": counts.inputs,
            "structures": counts.structures,
            "residues": counts.residues,
            "residues_left_out": counts.residues_left_out,
            "atoms": counts.atoms,
            "rounded_atoms": counts.rounded_atoms,
            "scaled_plddt": counts.scaled_plddt,
            "unnamed_plddt": counts.unnamed_plddt,
            "unnumbered_chains": counts.unnumbered_chains,
            "assemblies": counts.assemblies,
            "alone": counts.alone,
            "truncated": counts.truncated,
            "rejected": counts.rejected,
            "specials_skipped": counts.specials_skipped,
            "others_skipped": counts.others_skipped,
            "names_repeated": counts.names_repeated,
            "files_repeated": counts.files_repeated,
            "parts": outcome.written.parts,
            "batches": outcome.counters.batches,
            "driver_calls": outcome.counters.driver_calls,
            "graphs_failed": outcome.counters.graphs_failed,
            "batches_in_larger_bucket": outcome.counters.batches_in_larger_bucket,
            "batches_as_launches": outcome.counters.batches_as_launches,
            "verified_batches": outcome.counters.verified_batches,
            "copied_bytes": outcome.counters.copied_bytes,
            "padding_bytes": outcome.counters.padding_bytes,
            "restarts": outcome.counters.restarts,
            "reruns": outcome.counters.reruns,
            "quarantined": outcome.counters.items_quarantined,
        },
        "checks": checks_json(&outcome.findings),
        "per_second": {
            "structures": outcome.per_second(|counts| counts.structures),
            "residues": outcome.per_second(|counts| counts.residues),
            "atoms": outcome.per_second(|counts| counts.atoms),
        },
        "annotations": annotations,
        "stage_seconds": object(stages),
        "core_seconds": object(cores),
        "single_threads": threads_json(&outcome.cores.single),
        "bound": outcome.bound(),
        "statistics": statistics_json(&outcome.statistics),
        "columns": columns_json(&outcome.columns),
        "memory_bytes": {
            "engine_device": outcome.memory.device_bytes(),
            "engine_pinned": outcome.memory.host_bytes(),
            "process_peak": peak_memory_bytes(),
        },
    });
    let Json::Object(mut record) = ended else {
        unreachable!("`json!` made an object");
    };
    record.extend(header.into_keys());
    Json::Object(record)
}

/// What each check of files found, by its name. Files that may be cut short are among the counts.
fn checks_json(findings: &FindingCounts) -> Json {
    let checks = Check::ALL
        .iter()
        .filter(|check| **check != Check::Truncated);
    let found = checks.map(|check| {
        let found = findings.get(check.name()).cloned().unwrap_or_default();
        let first = Some(found.first).filter(|first| !first.is_empty());
        let found = json!({
            "count": found.count,
            "structures": found.structures,
            "first": first,
        });
        (check.name(), found)
    });
    Json::Object(object(found))
}

/// The statistics of the columns, by table and name.
fn columns_json(columns: &[ColumnStatistics]) -> Json {
    let mut tables = Map::new();
    for column in columns {
        let table = tables.entry(column.table).or_insert_with(|| json!({}));
        table[&column.name] = column.values.json();
    }
    Json::Object(tables)
}

/// The time of each stage, in seconds and as a share of the wall time; that of each device too if
/// there are several.
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
    let times = times.map(|(name, time)| {
        let busy = json!({
            "seconds": seconds(time.busy_ns),
            "share": time.share,
            "batches": time.batches,
        });
        (name, busy)
    });
    let latencies = |latencies: &Latencies| {
        json!({
            "count": latencies.count(),
            "p50": seconds(latencies.quantile_ns(0.5)),
            "p90": seconds(latencies.quantile_ns(0.9)),
            "p99": seconds(latencies.quantile_ns(0.99)),
            "max": seconds(latencies.max_ns()),
        })
    };
    let mut json = json!({
        "seconds": seconds(statistics.wall_ns),
        "bound": statistics.bound.map(|stage| stage.name()),
        "sentence": statistics.sentence(),
        "stages": object(times),
        "slots_in_flight": statistics.slots_in_flight,
        "slots_filling": statistics.slots_filling,
        "slots_unpacking": statistics.slots_unpacking,
        "slots_awaiting_worker": statistics.slots_awaiting_worker,
        "threads_mapping": statistics.threads_mapping,
        "workers": statistics.workers,
        "overlap": statistics.overlap,
        "device_overlap": statistics.device_overlap,
        "latency_seconds": {
            "batch": latencies(&statistics.batch_latency),
            "item": latencies(&statistics.item_latency),
        },
    });
    if statistics.devices.len() > 1 {
        let of_device = |device: &DeviceStatistics| {
            json!({
                "seconds": seconds(device.time.busy_ns),
                "share": device.time.share,
                "batches": device.time.batches,
                "slots": device.slots,
                "slots_in_flight": device.slots_in_flight,
                "lost": device.is_lost,
            })
        };
        json["devices"] = statistics.devices.iter().map(of_device).collect();
    }
    json
}

/// The peak resident memory of the process, where `/proc` reports it.
fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_devices_have_their_statistics() {
        let run_of = |devices: usize| {
            let mut statistics = Statistics::default();
            statistics.devices = vec![DeviceStatistics::default(); devices];
            statistics.devices[devices - 1].is_lost = true;
            statistics_json(&statistics)
        };
        assert!(run_of(1).get("devices").is_none());
        let two = run_of(2);
        assert_eq!(two["devices"].as_array().unwrap().len(), 2);
        assert_eq!(two["devices"][1]["lost"], true);
        assert_eq!(two["devices"][0]["slots_in_flight"], 0.0);
    }
}
