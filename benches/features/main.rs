//! Features of structures that are already packed in memory, results on the host:
//! a ring of slots, each packed once and submitted again and again. Rates are in
//! atoms. It runs on the GPU if there is one, else on the CPU.
//!
//! ```sh
//! cargo bench --bench features                              # the samples
//! cargo bench --bench features -- twin/                     # each CPU kernel by itself
//! TAPELOOP_STRUCTURES=folder cargo bench --bench features -- all/graph
//! RAYON_NUM_THREADS=1 cargo bench --bench features          # one CPU thread
//! TAPELOOP_BENCH_ALL=1 cargo bench --bench features         # on a CPU too:
//! ```
//!
//! On a CPU a graph is the same calls, so policies, fused launches, large batches and
//! sizes of structures are measured there only if `TAPELOOP_BENCH_ALL` is set: they
//! take a quarter of an hour.
//!
//! Before anything is timed on a GPU, every result is compared with the CPU's.

use tapeloop_conformance::forward;
mod launches;
mod run;
mod sample;

use criterion::{BatchSize, Criterion, SamplingMode, Throughput};
use criterion::{criterion_group, criterion_main};
use forward::BackendHooks;
use launches::{Launches, Timing};
use rayon::{ThreadPool, ThreadPoolBuilder};
use run::{Run, assert_agree};
use sample::{atoms, batches, peptide, structures, tiled};
use std::collections::BTreeSet;
use std::slice;
use std::sync::Arc;
use std::time::Duration;
use tapeloop::backend::{Backend, Choice, cpu::CpuBackend, select};
use tapeloop::features::{
    FeatureConfig, FeatureName, Features, Fusion, Input, Interfaces, Reals, RsaScale, Sasa,
    SasaAlgorithm, twins,
};
use tapeloop::pipeline::{Packer, Ring, Wait};
use tapeloop::replay::{Build, Mode, Policy};
use tapeloop::structure::Structure;

/// Residues of a batch, by the size's name.
const SMALL: (&str, u32) = ("1k", 1_024);
const MIDDLE: (&str, u32) = ("16k", 16_384);
const LARGE: (&str, u32) = ("128k", 131_072);

/// Atoms of the structures whose cost an atom is compared.
const SIZES: [usize; 5] = [1_000, 4_000, 16_000, 64_000, 130_000];

/// What every case needs.
struct Bench {
    device: Arc<dyn Backend>,
    cpu: Arc<dyn Backend>,
    pool: Arc<ThreadPool>,
    structures: Vec<Structure>,
}

impl Bench {
    fn open() -> Bench {
        let pool = Arc::new(ThreadPoolBuilder::new().build().unwrap());
        let selected = select(Choice::Auto, &pool).unwrap();
        let device = selected.backend.device();
        println!(
            "on {} ({}): {}",
            device.backend, device.name, selected.reason
        );
        Bench {
            cpu: Arc::new(CpuBackend::new(Arc::clone(&pool))),
            device: selected.backend,
            pool,
            structures: structures(),
        }
    }

    fn is_on_cpu(&self) -> bool {
        self.device.device().backend == "cpu"
    }

    /// Times one configuration over batches of up to `residues` of the structures.
    fn time(
        &self,
        c: &mut Criterion,
        name: &str,
        config: &FeatureConfig,
        policy: &Policy,
        (residues, structures): (u32, &[Structure]),
    ) {
        let filled = batches(structures, residues);
        let mut group = c.benchmark_group("features");
        group.throughput(Throughput::Elements(atoms(&filled)));
        let mut filled = Some(filled);
        let mut run = None;
        group.bench_function(name, |bencher| {
            let run = run.get_or_insert_with(|| {
                let filled = filled.take().expect("once");
                self.checked(config, policy, residues, filled)
            });
            bencher.iter_custom(|rounds| run.time(rounds));
        });
        group.finish();
    }

    fn checked(
        &self,
        config: &FeatureConfig,
        policy: &Policy,
        residues: u32,
        batches: Vec<Vec<Input>>,
    ) -> Run {
        let open = |backend, policy, batches| {
            Run::open(backend, &self.pool, config, policy, residues, batches)
        };
        if self.is_on_cpu() {
            return open(&self.device, policy, batches);
        }
        let same = batches.clone();
        let usual = Policy::default();
        let expected = open(&self.cpu, &usual, same);
        let run = open(&self.device, policy, batches);
        assert_agree(&run.tables, &expected.tables);
        run
    }
}

/// All features with their default settings, but with the test points of earlier measurements.
pub(crate) fn usual() -> FeatureConfig {
    let mut config = FeatureConfig::default();
    config.sasa.points = 100;
    config
}

fn features(c: &mut Criterion) {
    let bench = Bench::open();
    let all = usual();
    let has_columns = |name: &&FeatureName| !all.columns_of(**name).is_empty();
    let size = if bench.is_on_cpu() { SMALL } else { MIDDLE };
    for &feature in all.features.iter().filter(has_columns) {
        let one = FeatureConfig {
            features: vec![feature],
            ..usual()
        };
        let name = format!("{}/graph/{}", feature.name(), size.0);
        let batch = (size.1, &bench.structures[..]);
        bench.time(c, &name, &one, &Policy::default(), batch);
    }
    areas(c, &bench);
    twin(c, &bench);
    pack_and_read(c, &bench);
    if bench.is_on_cpu() && std::env::var_os("TAPELOOP_BENCH_ALL").is_none() {
        let name = format!("all/graph/{}", size.0);
        let batch = (size.1, &bench.structures[..]);
        return bench.time(c, &name, &all, &Policy::default(), batch);
    }
    policies(c, &bench);
    fused(c, &bench);
    sizes(c, &bench);
}

/// Areas alone, by test points and by slices whose errors are about the same, two by two.
fn areas(c: &mut Criterion, bench: &Bench) {
    let size = if bench.is_on_cpu() { SMALL } else { MIDDLE };
    for (points, slices) in [(256, 12), (512, 17), (1024, 23)] {
        for (algorithm, parts) in [
            (SasaAlgorithm::ShrakeRupley, format!("{points} points")),
            (SasaAlgorithm::LeeRichards, format!("{slices} slices")),
        ] {
            let config = FeatureConfig {
                features: vec![FeatureName::Sasa],
                sasa: Sasa {
                    algorithm,
                    points,
                    slices,
                    ..Sasa::default()
                },
                ..usual()
            };
            let name = format!("areas/{parts}/{}", size.0);
            let batch = (size.1, &bench.structures[..]);
            bench.time(c, &name, &config, &Policy::default(), batch);
        }
    }
}

/// Settings that launch every kernel between them.
fn of_all_kernels() -> Vec<FeatureConfig> {
    let mut separate = FeatureConfig {
        fusion: Fusion::Off,
        ..usual()
    };
    for &name in FeatureName::ALL {
        separate.let_compute(name);
    }
    let narrow = |reals| FeatureConfig {
        reals,
        ..separate.clone()
    };
    // Without interfaces, areas come from another kernel.
    let areas = FeatureConfig {
        features: vec![FeatureName::Sasa],
        ..separate.clone()
    };
    let mut in_chains = areas.clone();
    in_chains.features.push(FeatureName::Protrusion);
    in_chains.sasa.own_chain = true;
    in_chains.protrusion.own_chain = true;
    let interfaces = FeatureConfig {
        features: vec![FeatureName::Interfaces],
        interfaces: Interfaces { keep: true },
        ..separate.clone()
    };
    let fused = FeatureConfig {
        fusion: Fusion::On,
        ..separate.clone()
    };
    let (f16, bf16) = (narrow(Reals::F16), narrow(Reals::Bf16));
    let mut atoms = areas.clone();
    atoms
        .features
        .extend([FeatureName::Rsa, FeatureName::Atoms]);
    atoms.atoms.keep = true;
    atoms.rsa.scale = RsaScale::Miller1987;
    let mut all = vec![
        separate, f16, bf16, areas, in_chains, interfaces, fused, atoms,
    ];
    let by_slices = all.clone().into_iter().map(|mut config| {
        config.sasa.algorithm = SasaAlgorithm::LeeRichards;
        config
    });
    all.extend(by_slices);
    all
}

/// Each CPU kernel: what its launches take of one batch, with all features.
fn twin(c: &mut Criterion, bench: &Bench) {
    let filled = batches(&bench.structures, SMALL.1).swap_remove(0);
    let mut group = c.benchmark_group("twin");
    group.sampling_mode(SamplingMode::Flat);
    group.throughput(Throughput::Elements(atoms(slice::from_ref(&filled))));
    let mut timed = BTreeSet::new();
    for config in &of_all_kernels() {
        let launches = Arc::new(Launches::default());
        let timed_cpu = Timing(Arc::clone(&launches)).around(Arc::clone(&bench.cpu));
        let policy = Policy::new(Mode::Stream);
        let batch = vec![filled.clone()];
        let mut run = Run::open(&timed_cpu, &bench.pool, config, &policy, SMALL.1, batch);
        for kernel in launches.kernels() {
            if !timed.insert(kernel.clone()) {
                continue;
            }
            group.bench_function(&kernel, |bencher| {
                bencher.iter_custom(|rounds| {
                    let before = launches.time(&kernel);
                    // In the pool, so that twins are called and not handed over.
                    bench.pool.install(|| run.time(rounds));
                    launches.time(&kernel) - before
                });
            });
        }
    }
    for (kernel, _) in twins() {
        assert!(timed.contains(&kernel), "{kernel} was not launched");
    }
}

/// Stages one and three, without a device: structures into a slot's memory, and
/// results out of it.
fn pack_and_read(c: &mut Criterion, bench: &Bench) {
    let (name, residues) = MIDDLE;
    let filled = batches(&bench.structures, residues).swap_remove(0);
    let features = Features::new(usual()).unwrap();
    let buckets = [Features::capacity(residues)];
    let pool = Arc::clone(&bench.pool);
    let packer = Packer::new(features, &buckets, &bench.cpu, pool).unwrap();
    let policy = Policy::default();
    let mut ring = Ring::new(&bench.cpu, &packer.buckets(), 1, &policy, Wait::Spin).unwrap();
    let mut slot = ring.acquire().expect("none is in use");
    let mut group = c.benchmark_group("host");
    group.throughput(Throughput::Elements(atoms(slice::from_ref(&filled))));
    group.bench_function(format!("pack/{name}"), |bencher| {
        let pack = |items| packer.pack(&mut slot, items).map_err(|(error, _)| error);
        bencher.iter_batched(|| filled.clone(), pack, BatchSize::PerIteration);
    });
    let packed = packer.pack(&mut slot, filled).map_err(|(error, _)| error);
    let packed = packed.unwrap();
    ring.submit(slot, packed.extent(), packed).unwrap();
    let done = ring.wait().expect("one was submitted").unwrap();
    group.bench_function(format!("read/{name}"), |bencher| {
        bencher.iter_with_large_drop(|| packer.read(&done));
    });
}

/// The ways to replay, for batches of several sizes.
fn policies(c: &mut Criterion, bench: &Bench) {
    let graph = Policy::default();
    let explicit = Policy {
        build: Build::Explicit,
        ..graph
    };
    let policies = [
        ("graph", graph),
        ("explicit graph", explicit),
        ("stream", Policy::new(Mode::Stream)),
    ];
    for (size, residues) in [SMALL, MIDDLE, LARGE] {
        for (policy_name, policy) in &policies {
            let name = format!("all/{policy_name}/{size}");
            let batch = (residues, &bench.structures[..]);
            bench.time(c, &name, &usual(), policy, batch);
        }
    }
}

/// Batches of one size in all, of ever larger structures. Weighted contact numbers are
/// of all pairs, and so left out.
fn sizes(c: &mut Criterion, bench: &Bench) {
    let all = usual();
    let is_linear =
        |name: &FeatureName| !all.columns_of(*name).is_empty() && *name != FeatureName::Wcn;
    let linear = FeatureConfig {
        features: all.features.iter().copied().filter(is_linear).collect(),
        ..usual()
    };
    let large = bench.structures.iter().filter(|s| s.xyz.len() > 500);
    let one = large.min_by_key(|s| s.xyz.len()).expect("a protein");
    for atoms in SIZES {
        let structure = tiled(one, atoms);
        let name = format!("all but wcn/graph/structures of {atoms} atoms");
        let batch = (65_536, slice::from_ref(&structure));
        bench.time(c, &name, &linear, &Policy::default(), batch);
    }
}

/// Launches of their own against the fused one, for choices of features, sizes of
/// structures, and batches of them.
fn fused(c: &mut Criterion, bench: &Bench) {
    for (preset, features) in FeatureName::PRESETS {
        for length in [16, 64, 256] {
            let cut = bench.structures.iter().filter_map(|s| peptide(s, length));
            let cut: Vec<Structure> = cut.collect();
            for batch in [1, 16, 256] {
                for (name, fusion) in [("separate", Fusion::Off), ("fused", Fusion::On)] {
                    let config = FeatureConfig {
                        features: features.to_vec(),
                        fusion,
                        ..usual()
                    };
                    let name = format!("{preset}/{name}/{batch} of {length} residues");
                    let residues = (batch * length) as u32;
                    bench.time(c, &name, &config, &Policy::default(), (residues, &cut));
                }
            }
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800));
    targets = features
}
criterion_main!(benches);
