//! Features of real structures, compared with the CPU's results for each structure alone.

use rayon::ThreadPool;
use rayon::prelude::*;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::error::{Context, Error, ErrorKind, Result};
use tapeloop::features::{Column, FeatureConfig, FeatureTable, Features, Input, TableName};
use tapeloop::pipeline::{Packer, Ring, Wait};
use tapeloop::replay::{Mode, Policy};
use tapeloop::structure::CheckedStructure;
use tapeloop::workload::{Extent, Workload};
use tapeloop_bench::benchmark::Benchmark;
use tapeloop_bench::internal::{halves, slot_missing};
use tapeloop_bench::record::Amounts;
use tapeloop_cli::config::BATCH_RESIDUES;

/// The largest difference between a device's real number and the CPU's, as a share of its size or
/// of 0.01, whichever is larger.
const TOLERANCE: f32 = 1e-4;

/// Structures with their expected features.
pub(super) struct StructureSet {
    config: FeatureConfig,
    structures: Vec<CheckedStructure>,
    expected: Vec<FeatureTable>,
}

impl StructureSet {
    /// Computes the features of every structure alone with the CPU twins, one structure per thread
    /// of `pool`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if there are no structures or the features' settings are not valid,
    /// and the error of a structure that cannot be computed, with its index.
    pub(super) fn new(
        structures: Vec<CheckedStructure>,
        config: FeatureConfig,
        pool: &Arc<ThreadPool>,
    ) -> Result<Self> {
        if structures.is_empty() {
            return Err(
                Error::config("there are no structures to measure features of")
                    .fix("give some with --input, or leave the workload features out"),
            );
        }
        let alone = |(index, structure): (usize, &CheckedStructure)| {
            expected(structure, &config, pool).within(|| format!("structure {index}"))
        };
        let expected: Result<Vec<FeatureTable>> =
            pool.install(|| structures.par_iter().enumerate().map(alone).collect());
        Ok(StructureSet {
            expected: expected?,
            structures,
            config,
        })
    }

    /// The same structures with other features.
    ///
    /// # Errors
    /// The errors of [`StructureSet::new`].
    pub(super) fn with_features(
        &self,
        config: FeatureConfig,
        pool: &Arc<ThreadPool>,
    ) -> Result<Self> {
        StructureSet::new(self.structures.clone(), config, pool)
    }

    /// The size of the set: `24 structures, 53312 atoms`.
    pub(super) fn describe(&self) -> String {
        let atoms = self.structures.iter().map(|structure| structure.xyz.len());
        format!(
            "{} structures, {} atoms",
            self.structures.len(),
            atoms.sum::<usize>()
        )
    }

    /// The structures.
    pub(super) fn structures(&self) -> &[CheckedStructure] {
        &self.structures
    }

    /// The structures in batches of up to `residues` residues.
    pub(super) fn in_batches(self: &Arc<Self>, residues: u32) -> StructureBatches {
        let fits = |structure: &CheckedStructure| structure.residues.len() <= residues as usize;
        let indices = 0..self.structures.len();
        StructureBatches {
            fitting: indices
                .filter(|&index| fits(&self.structures[index]))
                .collect(),
            set: Arc::clone(self),
            residues,
        }
    }

    /// The time that the CPU takes for all structures, in batches like those of `tapeloop run`,
    /// without reading and packing. Compares every result.
    ///
    /// # Errors
    /// [`ErrorKind::Mismatch`] for a wrong result.
    pub(super) fn pass(self: &Arc<Self>, pool: &Arc<ThreadPool>) -> Result<Duration> {
        let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(pool)));
        let longest = self
            .structures
            .iter()
            .map(|structure| structure.residues.len());
        let longest = longest.max().unwrap_or(0) as u32;
        let benchmark = self.in_batches(longest.max(BATCH_RESIDUES));
        let capacity = Features::capacity(benchmark.residues);
        let packer = Packer::new(
            benchmark.workload()?,
            &[capacity],
            &backend,
            Arc::clone(pool),
        )?;
        let policy = Policy::new(Mode::Stream);
        let mut ring = Ring::new(&backend, &packer.buckets(), 1, &policy, Wait::Spin)?;
        let mut took = Duration::ZERO;
        let mut next = 0;
        while next < self.structures.len() {
            let items = benchmark.batch_from(next..self.structures.len(), capacity);
            next += items.len();
            let mut slot = ring.acquire().ok_or_else(slot_missing)?;
            let packed = packer.pack(&mut slot, items).map_err(|(error, _)| error)?;
            let start = Instant::now();
            ring.submit(slot, packed.extent(), packed)
                .map_err(|failed| failed.error)?;
            let done = ring
                .wait()
                .ok_or_else(slot_missing)?
                .map_err(|failed| failed.error)?;
            took += start.elapsed();
            for (item, output) in done.batch().items().zip(packer.read(&done)) {
                benchmark.check(item, &output?)?;
            }
            ring.release(Ok(done));
        }
        Ok(took)
    }
}

/// The features of one structure, computed alone. Fails with the error of the structure, or
/// [`ErrorKind::Config`] for settings that are not valid.
fn expected(
    structure: &CheckedStructure,
    config: &FeatureConfig,
    pool: &Arc<ThreadPool>,
) -> Result<FeatureTable> {
    let features = Features::new(config.clone())?;
    let input = input(0, structure);
    let capacity = features.extent(&input)?;
    let capacity = capacity.max(Features::capacity(structure.residues.len().max(1) as u32));
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::inline());
    let packer = Packer::new(features, &[capacity], &backend, Arc::clone(pool))?;
    let policy = Policy::new(Mode::Stream);
    let mut ring = Ring::new(&backend, &packer.buckets(), 1, &policy, Wait::Spin)?;
    let mut slot = ring.acquire().ok_or_else(slot_missing)?;
    let packed = packer.pack(&mut slot, vec![input]);
    let packed = packed.map_err(|(error, _)| error)?;
    ring.submit(slot, packed.extent(), packed)
        .map_err(|failed| failed.error)?;
    let done = ring.wait().ok_or_else(slot_missing)?;
    let done = done.map_err(|failed| failed.error)?;
    packer.read(&done).pop().ok_or_else(slot_missing)?
}

/// A structure as an input that came from no file.
fn input(index: usize, structure: &CheckedStructure) -> Input {
    Input {
        source: String::new(),
        ordinal: index as u64,
        model: Some(structure.model),
        structure: Ok(structure.clone()),
    }
}

/// Structures of a set, packed into batches of one size.
pub(super) struct StructureBatches {
    set: Arc<StructureSet>,
    residues: u32,
    /// Indices of the structures that fit in a batch.
    fitting: Vec<usize>,
}

impl StructureBatches {
    /// The first structures of `indices` that fit together in `room`, at least one.
    fn batch_from(&self, indices: impl Iterator<Item = usize>, room: Extent) -> Vec<Input> {
        let features = Features::new(self.set.config.clone());
        let features = features.expect("StructureSet::new has computed with these settings");
        let (mut items, mut total) = (Vec::new(), Extent::default());
        for index in indices {
            let item = input(index, &self.set.structures[index]);
            let extent = features.extent(&item);
            let extent = extent.expect("StructureSet::new has computed this structure");
            match total.checked_add(extent).filter(|sum| sum.fits(room)) {
                Some(sum) => total = sum,
                // The first is taken even if it exceeds `room`: it fits in the largest bucket.
                None if items.is_empty() => {}
                None => break,
            }
            items.push(item);
        }
        items
    }
}

impl Benchmark for StructureBatches {
    type Workload = Features;

    fn workload(&self) -> Result<Features> {
        if self.fitting.is_empty() {
            return Err(Error::config(format!(
                "no structure has {} residues or fewer",
                self.residues
            ))
            .fix("give smaller structures, or take larger batches"));
        }
        Features::new(self.set.config.clone())
    }

    fn ladder(&self, buckets: usize) -> Vec<Extent> {
        halves(self.residues, buckets)
            .map(Features::capacity)
            .collect()
    }

    fn items(&self, seed: u64, fill: f64) -> Vec<Input> {
        // Each batch starts at another structure; the stride, a prime, reaches all of them.
        let first = (seed as usize).wrapping_mul(7_919) % self.fitting.len();
        let round = self.fitting.iter().copied().cycle().skip(first);
        let room = Features::capacity((f64::from(self.residues) * fill) as u32);
        self.batch_from(round, room)
    }

    fn describe(&self) -> String {
        self.set.describe()
    }

    /// Compares the columns of residues, chains and structures; those of pairs, ligands and atoms are left out.
    fn check(&self, item: &Input, output: &FeatureTable) -> Result<()> {
        let expected = &self.set.expected[item.ordinal as usize];
        let tables = [
            ("residue", TableName::Residues),
            ("chain", TableName::Chains),
            ("structure", TableName::Structures),
        ];
        for (row, table) in tables {
            let (found, expected) = (output.columns(table), expected.columns(table));
            if found.len() != expected.len() {
                return Err(mismatch(item, format!("{} columns a {row}", found.len())));
            }
            for (index, (found, expected)) in found.zip(expected).enumerate() {
                if !agree(found, expected) {
                    return Err(mismatch(item, format!("column {index} a {row} differs")));
                }
            }
        }
        Ok(())
    }

    fn amounts(&self, item: &Input) -> Amounts {
        let structure = &self.set.structures[item.ordinal as usize];
        Amounts {
            structures: 1.0,
            residues: structure.residues.len() as f64,
            atoms: structure.xyz.len() as f64,
            ..Amounts::default()
        }
    }
}

fn mismatch(item: &Input, message: String) -> Error {
    Error::new(ErrorKind::Mismatch, message).within(format!("structure {}", item.ordinal))
}

/// Compares counts exactly, and real numbers with a tolerance.
fn agree(found: Column<'_>, expected: Column<'_>) -> bool {
    let (Column::Real(found), Column::Real(expected)) = (found, expected) else {
        return found == expected;
    };
    let close = |(found, expected): (&f32, &f32)| {
        let both_null = found.is_nan() && expected.is_nan();
        both_null || (found - expected).abs() <= TOLERANCE * expected.abs().max(1e-2)
    };
    found.len() == expected.len() && found.iter().zip(expected).all(close)
}
