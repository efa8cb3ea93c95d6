//! Features of structures that are already packed in memory, results on the host:
//! a ring of slots, each packed once and submitted again and again. Throughput is
//! in atoms. It runs on the GPU if there is one, else on the CPU.
//!
//! ```sh
//! cargo bench --bench features                              # the samples
//! TAPELOOP_STRUCTURES=folder cargo bench --bench features -- all/graph
//! RAYON_NUM_THREADS=1 cargo bench --bench features          # one CPU thread
//! ```
//!
//! Before anything is timed, every result is compared with the CPU's.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop::backend::{Backend, Choice, cpu::CpuBackend, select};
use tapeloop::features::{
    Column, FeatureConfig, FeatureName, FeatureTable, Features, Fusion, Input,
};
use tapeloop::pipeline::{Finished, Packed, Packer, Ring, Wait};
use tapeloop::replay::{Build, Mode, Policy, Scope};
use tapeloop::structure::{MISSING, ReadOptions, Reader, Residue, Structure};
use tapeloop::workload::{Extent, Workload};

const SLOTS: usize = 3;
/// Residues of a batch, by the size's name.
const BATCHES: [(&str, u32); 3] = [("1k", 1_024), ("16k", 16_384), ("128k", 131_072)];

/// Atoms of the structures whose cost an atom is compared.
const SIZES: [usize; 5] = [1_000, 4_000, 16_000, 64_000, 130_000];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn structures() -> Vec<Structure> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let folder = std::env::var_os("TAPELOOP_STRUCTURES").map_or(samples, PathBuf::from);
    let mut found = Vec::new();
    files(&folder, &mut found);
    let mut reader = Reader::new(ReadOptions::default());
    let read = found.iter().filter_map(|file| reader.read_path(file).ok());
    read.flatten().collect()
}

/// Batches of up to `residues`, going through the structures over and over.
fn batches(structures: &[Structure], residues: u32) -> Vec<Vec<Input>> {
    let fitting = structures
        .iter()
        .filter(|s| s.residues.len() <= residues as usize);
    let mut round = fitting.cycle();
    let (workload, capacity) = (
        Features::new(FeatureConfig::default()).unwrap(),
        Features::capacity(residues),
    );
    let mut next = round.next();
    let batch = |number| {
        let (mut batch, mut total) = (Vec::new(), Extent::default());
        while let Some(structure) = next {
            let input = Input {
                source: String::new(),
                ordinal: number as u64,
                structure: Ok(structure.clone()),
            };
            let own = workload.extent(&input).unwrap();
            match total.checked_add(own).filter(|total| total.fits(capacity)) {
                Some(sum) => total = sum,
                None => break,
            }
            batch.push(input);
            next = round.next();
        }
        batch
    };
    (0..SLOTS).map(batch).collect()
}

struct Run {
    ring: Ring<Packed<Features>>,
    packer: Packer<Features>,
    tables: Vec<FeatureTable>,
}

impl Run {
    fn open(
        backend: &Arc<dyn Backend>,
        pool: &Arc<ThreadPool>,
        config: &FeatureConfig,
        policy: &Policy,
        residues: u32,
        batches: Vec<Vec<Input>>,
    ) -> Run {
        let features = Features::new(config.clone()).unwrap();
        let buckets = [Features::capacity(residues)];
        let packer = Packer::new(features, &buckets, backend, Arc::clone(pool)).unwrap();
        let ring = Ring::new(backend, &packer.buckets(), SLOTS, policy, Wait::Spin).unwrap();
        let mut run = Run {
            ring,
            packer,
            tables: Vec::new(),
        };
        for batch in batches {
            let mut slot = run.ring.acquire().expect("one slot a batch");
            let packed = run
                .packer
                .pack(&mut slot, batch)
                .map_err(|(error, _)| error);
            let packed = packed.unwrap();
            run.ring.submit(slot, packed.extent(), packed).unwrap();
        }
        let mut done: Vec<_> = (0..SLOTS)
            .map(|_| run.ring.wait().unwrap().unwrap())
            .collect();
        done.sort_by_key(|slot| slot.batch().items().next().map(|item| item.ordinal));
        for slot in &done {
            let tables = run.packer.read(slot).into_iter();
            run.tables.extend(tables.map(|table| table.unwrap()));
        }
        done.into_iter().for_each(|slot| run.again(Ok(slot)));
        run
    }

    fn again(&mut self, finished: Finished<Packed<Features>>) {
        let (packed, error) = self.ring.release(finished);
        assert!(error.is_none(), "{error:?}");
        let slot = self.ring.acquire().expect("just released");
        self.ring.submit(slot, packed.extent(), packed).unwrap();
    }

    /// The time that every slot takes to go round `rounds` times.
    fn time(&mut self, rounds: u64) -> Duration {
        let start = Instant::now();
        for _ in 0..rounds * SLOTS as u64 {
            let finished = self.ring.wait().expect("all slots are in flight");
            self.again(finished);
        }
        start.elapsed()
    }
}

/// A protein of about `atoms` atoms: copies of a structure side by side, the chains
/// of each its own.
fn tiled(one: &Structure, atoms: usize) -> Structure {
    let copies = atoms.div_ceil(one.xyz.len()).max(1);
    let (edge, size) = ((copies as f64).cbrt().ceil() as usize, |axis: usize| {
        let along = || one.xyz.iter().map(|p| p[axis]);
        along().max().unwrap_or(0) - along().min().unwrap_or(0) + 2_000
    });
    let mut whole = Structure {
        residues: Vec::new(),
        chains: Vec::new(),
        xyz: Vec::new(),
        element: Vec::new(),
        class: Vec::new(),
        b_factor: Vec::new(),
        atom_start: vec![0],
        loose: Vec::new(),
        ..one.clone()
    };
    for copy in 0..copies {
        let at = [copy % edge, copy / edge % edge, copy / edge / edge];
        let moved =
            |p: &[i32; 3]| std::array::from_fn(|axis| p[axis] + at[axis] as i32 * size(axis));
        let (atoms, chains) = (whole.xyz.len() as u32, whole.chains.len() as u32);
        let row_atoms = one.atom_start[one.residues.len()] as usize;
        whole.xyz.extend(one.xyz[..row_atoms].iter().map(moved));
        whole.element.extend(&one.element[..row_atoms]);
        whole.class.extend(&one.class[..row_atoms]);
        whole.b_factor.extend(&one.b_factor[..row_atoms]);
        whole.chains.extend(one.chains.iter().cloned());
        whole
            .atom_start
            .extend(one.atom_start[1..].iter().map(|start| start + atoms));
        let index = |atom: u32| {
            if atom == MISSING {
                MISSING
            } else {
                atom + atoms
            }
        };
        whole
            .residues
            .extend(one.residues.iter().map(|residue| Residue {
                chain: residue.chain + chains,
                n: index(residue.n),
                ca: index(residue.ca),
                c: index(residue.c),
                o: index(residue.o),
                cb: index(residue.cb),
                ..*residue
            }));
    }
    whole
}

fn assert_agree(found: &[FeatureTable], expected: &[FeatureTable]) {
    let columns = |table: &FeatureTable| -> Vec<Column> {
        let all = [&table.residues, &table.chains, &table.structure];
        all.into_iter().flatten().cloned().collect()
    };
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        for (found, expected) in columns(found).iter().zip(&columns(expected)) {
            let (Column::Real(found), Column::Real(expected)) = (found, expected) else {
                assert_eq!(found, expected);
                continue;
            };
            for (found, expected) in found.iter().zip(expected) {
                let close = (found - expected).abs() <= 1e-4 * expected.abs().max(1e-2);
                let null = found.is_nan() && expected.is_nan();
                assert!(close || null, "{found}, on the CPU {expected}");
            }
        }
    }
}

/// What every case needs.
struct Bench {
    device: Arc<dyn Backend>,
    cpu: Arc<dyn Backend>,
    pool: Arc<ThreadPool>,
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
        }
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
        let atoms = |input: &Input| input.structure.as_ref().map_or(0, |s| s.xyz.len() as u64);
        let filled = batches(structures, residues);
        let mut group = c.benchmark_group("features");
        let atoms = filled.iter().flatten().map(atoms).sum();
        group.throughput(Throughput::Elements(atoms));
        let mut filled = Some(filled);
        let mut run = None;
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
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
        let again = |input: &Input| Input {
            source: String::new(),
            ordinal: input.ordinal,
            structure: input.structure.clone(),
        };
        let same = batches
            .iter()
            .map(|batch| batch.iter().map(again).collect())
            .collect();
        let open = |backend, policy, batches| {
            Run::open(backend, &self.pool, config, policy, residues, batches)
        };
        let usual = Policy::default();
        let expected = open(&self.cpu, &usual, same);
        let run = open(&self.device, policy, batches);
        assert_agree(&run.tables, &expected.tables);
        run
    }
}

fn features(c: &mut Criterion) {
    let bench = Bench::open();
    let structures = structures();
    let all = FeatureConfig::default();
    let graph = Policy::default();
    let explicit = Policy {
        build: Build::Explicit,
        ..graph
    };
    let live = Policy {
        scope: Scope::Kernels,
        ..explicit
    };
    let policies = [
        ("graph", graph),
        ("explicit graph", explicit),
        ("explicit graph of kernels", live),
        ("stream", Policy::of(Mode::Stream)),
    ];
    for (size, residues) in BATCHES {
        for (policy_name, policy) in &policies {
            let name = format!("all/{policy_name}/{size}");
            bench.time(c, &name, &all, policy, (residues, &structures));
        }
    }
    fused(c, &bench, &structures);
    let has_columns = |name: &&FeatureName| !all.columns_of(**name).is_empty();
    for &feature in all.features.iter().filter(has_columns) {
        let one = FeatureConfig {
            features: vec![feature],
            ..FeatureConfig::default()
        };
        let name = format!("{}/graph/16k", feature.name());
        bench.time(c, &name, &one, &graph, (16_384, &structures));
    }
    // Batches of one size in all, of ever larger structures. Weighted contact numbers
    // are of all pairs, and so left out.
    let large = structures.iter().filter(|s| s.xyz.len() > 500);
    let one = large.min_by_key(|s| s.xyz.len());
    let linear = FeatureConfig {
        features: (all.features.iter().copied())
            .filter(|name| has_columns(&name) && *name != FeatureName::Wcn)
            .collect(),
        ..FeatureConfig::default()
    };
    for atoms in SIZES {
        let structure = tiled(one.expect("a protein"), atoms);
        let name = format!("all but wcn/graph/structures of {atoms} atoms");
        let cut = slice::from_ref(&structure);
        bench.time(c, &name, &linear, &graph, (65_536, cut));
    }
}

/// The first residues of a structure, all of one chain.
fn peptide(whole: &Structure, residues: usize) -> Option<Structure> {
    let of_chain = |residue: &Residue| residue.chain == whole.residues[0].chain;
    let first = whole.residues.get(..residues)?;
    let atoms = whole.atom_start[residues] as usize;
    first.iter().all(of_chain).then(|| Structure {
        residues: first.to_vec(),
        chains: whole.chains[..=first[0].chain as usize].to_vec(),
        xyz: whole.xyz[..atoms].to_vec(),
        element: whole.element[..atoms].to_vec(),
        class: whole.class[..atoms].to_vec(),
        b_factor: whole.b_factor[..atoms].to_vec(),
        atom_start: whole.atom_start[..=residues].to_vec(),
        loose: Vec::new(),
        ..whole.clone()
    })
}

/// Launches of their own against the fused one, for choices of features, sizes of
/// structures, and batches of them.
fn fused(c: &mut Criterion, bench: &Bench, structures: &[Structure]) {
    for (preset, features) in FeatureName::PRESETS {
        for length in [16, 64, 256] {
            let cut = structures.iter().filter_map(|s| peptide(s, length));
            let cut: Vec<Structure> = cut.collect();
            for batch in [1, 16, 256] {
                for (name, fusion) in [("separate", Fusion::Off), ("fused", Fusion::On)] {
                    let config = FeatureConfig {
                        features: features.to_vec(),
                        fusion,
                        ..FeatureConfig::default()
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
