//! The settings of a run's engine: how many slots it has, and of which sizes.

use crate::config::{Config, WaitSetting};
use std::fs::Metadata;
use tapeloop::backend::DeviceInfo;
use tapeloop::features::Features;
use tapeloop::pipeline::{self, EngineConfig, TimelineConfig};
use tapeloop::replay::Mode;
use tapeloop::structure::{Assembly, Format};
use tapeloop_files::path_of;
use tapeloop_structure::internal::Compression;

/// The fewest bytes of a residue in nearly all files. As text it has at least one atom, whose line
/// in a PDB file has 54 columns up to the end of its coordinates. The other is for compressed and
/// binary files: usual residues have eight lines of 80 bytes, and gzip data a seventh of its text
/// (docs/LIMITS.md).
const RESIDUE_BYTES_TEXT: u64 = 54;
const RESIDUE_BYTES_PACKED: u64 = 16;

/// The residues that a batch has room for: the memory of each slot is for so many.
pub fn residues_room(engine: &EngineConfig) -> u32 {
    let residues = engine.buckets.iter().map(|capacity| capacity[0]);
    residues.max().unwrap_or_default()
}

/// The engine's settings on devices such as `device`, with a pool of `threads` threads.
pub fn engine_config(config: &Config, device: &DeviceInfo, threads: usize) -> EngineConfig {
    let batch = config.batch;
    let few = few_residues(config);
    let buckets = match (few, config.policy.mode) {
        (Some(residues), _) => {
            // It has as much room for pairs as the largest of all buckets.
            let factor = batch.residues_max.div_ceil(residues);
            vec![Features::with_pair_room(
                Features::capacity(residues),
                factor,
            )]
        }
        // A device runs few loops, and each bucket of a slot needs one.
        (None, Mode::Resident) => {
            let mut sizes = vec![batch.residues, batch.residues_max];
            sizes.dedup();
            sizes.into_iter().map(Features::capacity).collect()
        }
        (None, _) => Features::buckets(batch.residues, batch.residues_max),
    };
    EngineConfig {
        slots: config.slots.unwrap_or_else(|| match few {
            Some(_) => 1,
            None => slots(device, threads),
        }),
        policy: config.policy,
        buckets,
        memory_bytes_max: config.memory_bytes_max,
        restarts_max: config.restarts_max,
        timeline: config.timeline.as_ref().map(|_| TimelineConfig::default()),
        wait: match config.wait {
            WaitSetting::Spin => pipeline::Wait::Spin,
            WaitSetting::Block | WaitSetting::Sleep => pipeline::Wait::Block,
        },
        ..EngineConfig::new(Features::capacity(few.unwrap_or(batch.residues)))
    }
}

/// Slots of a device without the setting. On the CPU a thread fills, computes and reads one, and
/// others help it: two or three keep all of them busy. On a GPU, where filling takes longer than
/// computing, several are filled and read at the same time (`crates/cli/DECISIONS.md` has figures).
fn slots(device: &DeviceInfo, threads: usize) -> usize {
    match device.backend {
        "cpu" => threads.clamp(2, 3),
        _ => 6,
    }
}

/// The residues of all inputs at most, if these are files that fit one batch by their sizes. A run over
/// them takes one slot with one small graph: on a GPU the memory of six slots and the graphs of all
/// buckets take a quarter of the time of such a run. Should the files hold more, they take more batches.
fn few_residues(config: &Config) -> Option<u32> {
    let repeats_atoms = config.topology.is_some() || config.reading.assembly != Assembly::Deposited;
    if config.input.is_empty() || repeats_atoms {
        return None;
    }
    let mut residues = 0;
    for item in &config.input {
        // Folders, globs, lists and pipes do not count.
        let file = path_of(item).metadata().ok().filter(Metadata::is_file)?;
        let is_text = Compression::unpacked_name(item) == item
            && Format::from_name(item).is_some_and(|format| format != Format::BinaryCif);
        let residue_bytes = if is_text {
            RESIDUE_BYTES_TEXT
        } else {
            RESIDUE_BYTES_PACKED
        };
        residues += file.len().div_ceil(residue_bytes);
        if residues > u64::from(config.batch.residues) {
            return None;
        }
    }
    Some((residues as u32).max(1))
}
