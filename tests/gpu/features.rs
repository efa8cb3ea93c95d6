//! Feature kernels on a GPU against their CPU twins, in both modes.
//! `TAPELOOP_STRUCTURES` may name a folder whose files are computed too.

mod centrality;
mod compilation;
mod contacts;
mod density;
mod interactions;
mod interfaces;
mod own_kernel;
mod residue_depth;

use crate::gpu::{self, device as gpu};
use crate::made_up::{ring, structure, with_ligands};
use crate::tables::{self, bits};
use half::{bf16, f16};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::features::{
    Column, Cutoff, DsspVersion, FeatureConfig, FeatureName, FeatureTable, Features, Fusion, Reals,
    RsaScale, SasaAlgorithm, TableName,
};
use tapeloop::pipeline::{Engine, EngineConfig, Wait};
use tapeloop::record::{Element, Kernel, Recorder};
use tapeloop::replay::{Mode, Policy};
use tapeloop::structure::{MISSING, Radii, ReadOptions, Reader, Residue, Structure};
use tapeloop::workload::Workload;
use tapeloop_test_support::repository;

const RELATIVE_TOLERANCE: f32 = 1e-4;

fn pool() -> Arc<ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().num_threads(4).build().unwrap())
}

struct Run<'a> {
    backend: &'a Arc<dyn Backend>,
    pool: &'a Arc<ThreadPool>,
    policy: Policy,
    slots: usize,
    residues: u32,
    wait: Wait,
    fusion: Fusion,
}

impl Run<'_> {
    fn tables(&self, structures: &[Structure]) -> Vec<FeatureTable> {
        self.tables_of(&features(), structures)
    }

    fn tables_of(&self, features: &FeatureConfig, structures: &[Structure]) -> Vec<FeatureTable> {
        let features = FeatureConfig {
            fusion: self.fusion,
            ..features.clone()
        };
        let workload = Features::new(features).unwrap();
        let mut config = EngineConfig::new(Features::capacity(self.residues));
        (config.policy, config.slots, config.wait) = (self.policy, self.slots, self.wait);
        // Made-up structures are denser than proteins, and have more hydrogen bonds.
        let most = structures
            .iter()
            .map(|structure| structure.residues.len() as u32)
            .max();
        let most = most.unwrap_or(0).next_power_of_two().max(16_384);
        let (largest, mut axes) = (Features::capacity(most), workload.axes().iter());
        let room = axes.position(|axis| *axis == "pair_room").unwrap();
        config
            .buckets
            .push(largest.with(room, 4 * largest[room]).max(config.batch));
        let backends = [Arc::clone(self.backend)];
        let mut engine = Engine::new(workload, &backends, Arc::clone(self.pool), &config).unwrap();
        tables::tables(&mut engine, structures.iter())
    }
}

fn features() -> FeatureConfig {
    let mut features = FeatureConfig::default();
    features.cluster.select = ["A", "L", "V"].map(String::from).to_vec();
    (features.ligands.keep, features.hydrogen_bonds.keep) = (true, true);
    (features.atoms.keep, features.sheets.keep) = (true, true);
    features.interactions.keep = true;
    features.residue_depth = residue_depth::OF_MODEL;
    features
}

/// Every column of every table, with its name.
fn columns<'a>(features: &FeatureConfig, tables: &'a [FeatureTable]) -> Vec<(String, Column<'a>)> {
    let decls = TableName::ALL
        .into_iter()
        .flat_map(|table| features.columns(table));
    let names: Vec<String> = decls.map(|column| column.name).collect();
    let columns = tables.iter().flat_map(|table| {
        TableName::ALL
            .into_iter()
            .flat_map(|name| table.columns(name))
    });
    names.iter().cloned().cycle().zip(columns).collect()
}

fn assert_equal(found: &[FeatureTable], expected: &[FeatureTable], context: &str) {
    let [found, expected] = [found, expected].map(|tables| columns(&features(), tables));
    assert_eq!(found.len(), expected.len(), "{context}");
    for ((name, found), (_, expected)) in found.into_iter().zip(expected) {
        assert_eq!(bits(found), bits(expected), "{name}, {context}");
    }
}

/// Counts are equal, reals within the tolerance; says how many reals differ in
/// any bit.
fn assert_agree(
    features: &FeatureConfig,
    gpu: &[FeatureTable],
    cpu: &[FeatureTable],
) -> (usize, usize) {
    let (mut reals, mut unequal) = (0, 0);
    let [gpu, cpu] = [gpu, cpu].map(|tables| columns(features, tables));
    assert_eq!(gpu.len(), cpu.len());
    for ((name, gpu), (_, cpu)) in gpu.into_iter().zip(cpu) {
        let (Column::Real(gpu), Column::Real(cpu)) = (gpu, cpu) else {
            assert_eq!(gpu, cpu, "{name}");
            continue;
        };
        assert_eq!(gpu.len(), cpu.len());
        for (gpu, cpu) in gpu.iter().zip(cpu) {
            let close = (gpu - cpu).abs() <= RELATIVE_TOLERANCE * cpu.abs().max(1e-3);
            assert!(
                close || (gpu.is_nan() && cpu.is_nan()),
                "{name} is {gpu} on the GPU, {cpu} on the CPU"
            );
            reals += 1;
            unequal += usize::from(gpu.to_bits() != cpu.to_bits());
        }
    }
    (reals, unequal)
}

fn assert_modes_and_backends_agree(
    gpu: &Arc<dyn Backend>,
    pool: &Arc<ThreadPool>,
    s: &[Structure],
) {
    let backend = gpu;
    let (slots, residues, wait) = (3, 16_384, Wait::Block);
    let graph = Run {
        backend,
        pool,
        policy: Policy::default(),
        slots,
        residues,
        wait,
        fusion: Fusion::Off,
    }
    .tables(s);
    // One block would take its time over 100,000 residues.
    let fusions: &[Fusion] = if s.len() > 1 {
        &[Fusion::Off, Fusion::On]
    } else {
        &[Fusion::Off]
    };
    for (slots, residues, wait) in [(1, 700, Wait::Spin), (4, 50_000, Wait::Block)] {
        for &fusion in fusions {
            let stream = Run {
                backend,
                pool,
                policy: Policy::new(Mode::Stream),
                slots,
                residues,
                wait,
                fusion,
            }
            .tables(s);
            assert_equal(&stream, &graph, &format!("stream mode, fusion {fusion:?}"));
        }
    }
    // One run of the large sets per mode is enough.
    let policies = Policy::combinations().filter(|_| s.len() < 100 && s.len() > 1);
    for policy in policies {
        let run = Run {
            backend,
            pool,
            policy,
            slots,
            residues: 3_000,
            wait,
            fusion: Fusion::On,
        };
        let tables = run.tables(s);
        assert_equal(&tables, &graph, &format!("{policy:?}, fused"));
    }
    let cpu: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(pool)));
    let cpu = Run {
        backend: &cpu,
        pool,
        policy: Policy::default(),
        slots,
        residues,
        wait,
        fusion: Fusion::Off,
    }
    .tables(s);
    let (reals, unequal) = assert_agree(&features(), &graph, &cpu);
    let agreed = format!(
        "{} structures agree; {unequal} of {reals} reals differ in a bit",
        s.len()
    );
    gpu::say(&agreed);
}

#[test]
#[ignore = "needs a CUDA device"]
fn made_up_structures_agree_at_every_size_around_the_tile_edges() {
    let pool = pool();
    let gpu = gpu();
    let sizes = [
        0, 1, 2, 3, 31, 32, 33, 127, 128, 129, 255, 256, 257, 700, 5000,
    ];
    let structures: Vec<_> = sizes.iter().map(|&n| structure(n, n as u64)).collect();
    assert_modes_and_backends_agree(&gpu, &pool, &structures);
    let many: Vec<_> = (0..500)
        .map(|n| with_ligands(structure(n * 37 % 400, n as u64), n as u64))
        .collect();
    assert_modes_and_backends_agree(&gpu, &pool, &many);
}

/// Compares separate launches, and the fused launch, with the twins.
fn assert_agree_fused_or_not(
    features: &FeatureConfig,
    gpu: &Arc<dyn Backend>,
    pool: &Arc<ThreadPool>,
    structures: &[Structure],
) {
    assert_agree_by(&[Fusion::Off, Fusion::On], features, gpu, pool, structures);
}

fn assert_agree_by(
    fusions: &[Fusion],
    features: &FeatureConfig,
    gpu: &Arc<dyn Backend>,
    pool: &Arc<ThreadPool>,
    structures: &[Structure],
) {
    let run = |backend: &Arc<dyn Backend>, fusion| {
        let run = Run {
            backend,
            pool,
            policy: Policy::new(Mode::Stream),
            slots: 1,
            residues: 128,
            wait: Wait::Spin,
            fusion,
        };
        run.tables_of(features, structures)
    };
    let cpu: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(pool)));
    let expected = run(&cpu, Fusion::Off);
    for &fusion in fusions {
        let (_, unequal) = assert_agree(features, &run(gpu, fusion), &expected);
        assert_eq!(unequal, 0, "{fusion:?}");
    }
}

/// Small enough for a race checker.
#[test]
#[ignore = "needs a CUDA device"]
fn a_small_batch_agrees() {
    let pool = pool();
    let gpu = gpu();
    let structures = [40, 1, 70].map(|n| with_ligands(structure(n, n as u64), n as u64));
    assert_agree_fused_or_not(&features(), &gpu, &pool, &structures);
    for features in contacts::configs().into_iter().chain(interfaces::configs()) {
        assert_agree_fused_or_not(&features, &gpu, &pool, &structures);
    }
}

/// A race checker follows separate launches in seconds; the fused kernel takes minutes to
/// compile for it.
#[test]
#[ignore = "needs a CUDA device"]
fn a_small_batch_agrees_in_separate_launches() {
    let pool = pool();
    let gpu = gpu();
    let mut structures = [40, 1, 70].map(|n| with_ligands(structure(n, n as u64), n as u64));
    for algorithm in [SasaAlgorithm::ShrakeRupley, SasaAlgorithm::LeeRichards] {
        for own_chain in [false, true] {
            for radii in ["protor", "bondi"] {
                let radii = Radii::named(radii).unwrap();
                structures.iter_mut().for_each(|s| s.radii = radii);
                let mut features = features();
                features.sasa.algorithm = algorithm;
                features.sasa.own_chain = own_chain;
                features.sasa.radii = radii;
                features.rsa.scale = RsaScale::Rose1985;
                assert_agree_by(&[Fusion::Off], &features, &gpu, &pool, &structures);
            }
        }
    }
}

/// A made-up structure with more atoms in some residues: 9, 70 up to 40 A away, and
/// 200 in one place.
fn crowded(seed: u64) -> Structure {
    let one = structure(60, seed);
    let mut crowded = Structure {
        residues: Vec::new(),
        xyz: Vec::new(),
        element: Vec::new(),
        class: Vec::new(),
        b_factor: Vec::new(),
        atom_start: vec![0],
        loose: Vec::new(),
        ..one.clone()
    };
    for (index, residue) in one.residues.iter().enumerate() {
        let range = one.atom_start[index] as usize..one.atom_start[index + 1] as usize;
        let place = |atom: u32| match atom {
            MISSING => MISSING,
            atom => atom - range.start as u32 + crowded.xyz.len() as u32,
        };
        let moved = Residue {
            n: place(residue.n),
            ca: place(residue.ca),
            c: place(residue.c),
            o: place(residue.o),
            cb: place(residue.cb),
            ..*residue
        };
        let (more, apart) = match index {
            10 => (9, 1_500),
            20 => (70, 40_000),
            30 => (200, 1),
            _ => (0, 1),
        };
        let first = one.xyz[range.start];
        crowded.xyz.extend(&one.xyz[range.clone()]);
        crowded.xyz.extend((0..more).map(|k: i32| {
            let along = |step: i32| k.wrapping_mul(step).rem_euclid(2 * apart) - apart + 1;
            [
                first[0] + along(7_919),
                first[1] + along(104_729),
                first[2] + along(1_299_709),
            ]
        }));
        let added = range.len() + more as usize;
        crowded.element.extend(std::iter::repeat_n(6, added));
        crowded
            .class
            .extend(std::iter::repeat_n(one.class[range.start], added));
        crowded.b_factor.extend(std::iter::repeat_n(20.0, added));
        crowded.residues.push(moved);
        crowded.atom_start.push(crowded.xyz.len() as u32);
    }
    crowded
}

#[test]
#[ignore = "needs a CUDA device"]
fn settings_at_their_ends_agree() {
    let pool = pool();
    let gpu = gpu();
    let structures = [structure(70, 1), crowded(2), crowded(3), structure(300, 4)];
    assert_agree_fused_or_not(&features(), &gpu, &pool, &structures);
    let cutoff = |angstrom| Cutoff::from_angstrom(angstrom).unwrap();
    for (points, probe) in [(129, 16.0), (960, 1.4), (1, 0.001)] {
        let mut features = features();
        (features.sasa.points, features.sasa.probe) = (points, cutoff(probe));
        features.protrusion.radius = cutoff(37.0);
        features.contact_order.cutoff = cutoff(37.0);
        features.smooth.weighted = true;
        features.dssp.version = DsspVersion::V4;
        features.rsa.scale = RsaScale::Rose1985;
        features.contact_number.own_chain = true;
        if points != 1 {
            interfaces::leave_other_chains_out(&mut features);
        }
        assert_agree_fused_or_not(&features, &gpu, &pool, &structures);
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn areas_by_slices_agree() {
    let pool = pool();
    let gpu = gpu();
    let structures = [
        structure(70, 1),
        crowded(2),
        crowded(3),
        ring(),
        with_ligands(structure(300, 4), 4),
    ];
    for (slices, probe) in [(20, 1.4), (12, 1.4), (1, 0.001), (16, 16.0), (128, 3.0)] {
        for own_chain in [false, true] {
            let mut features = features();
            features.sasa.algorithm = SasaAlgorithm::LeeRichards;
            features.sasa.slices = slices;
            features.sasa.probe = Cutoff::from_angstrom(probe).unwrap();
            features.sasa.own_chain = own_chain;
            assert_agree_fused_or_not(&features, &gpu, &pool, &structures);
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn results_in_16_bits_agree() {
    let pool = pool();
    let gpu = gpu();
    let structures = [structure(70, 1), crowded(2), structure(300, 4)];
    for reals in narrow_reals(&gpu) {
        let features = FeatureConfig {
            reals,
            ..features()
        };
        assert_agree_fused_or_not(&features, &gpu, &pool, &structures);
    }
}

/// The 16-bit types that the card supports.
fn narrow_reals(gpu: &Arc<dyn Backend>) -> Vec<Reals> {
    if gpu.device().compute_capability >= Some((8, 0)) {
        return vec![Reals::F16, Reals::Bf16];
    }
    gpu::say("bf16 is not tried: the card has none");
    vec![Reals::F16]
}

/// The kernel alone, over bit patterns that no feature would compute.
#[test]
#[ignore = "needs a CUDA device"]
fn narrowing_rounds_every_pattern_as_the_host_does() {
    let gpu = gpu();
    let mut state = 1_u32;
    let random = (0..1 << 20).map(|_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    });
    // Every upper half, with lower halves that decide: just below, at and just above
    // the middle of two of bf16, and of two of f16.
    let lower = [0, 1, 0x0fff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff];
    let edges = (0..1_u32 << 16).flat_map(|upper| lower.map(|lower| upper << 16 | lower));
    let mut wide: Vec<f32> = edges.chain(random).map(f32::from_bits).collect();
    wide.truncate(wide.len() / 3 * 3);
    for reals in narrow_reals(&gpu) {
        let (found, expected): (Vec<u16>, Vec<u16>) = match reals {
            Reals::F16 => {
                let nearest = |wide: &f32| {
                    if wide.is_nan() {
                        f16::NAN.to_bits()
                    } else {
                        f16::from_f32(*wide).to_bits()
                    }
                };
                let found = narrowed::<f16>(&gpu, "narrow_f16", &wide);
                (found, wide.iter().map(nearest).collect())
            }
            _ => {
                let nearest = |wide: &f32| {
                    if wide.is_nan() {
                        bf16::NAN.to_bits()
                    } else {
                        bf16::from_f32(*wide).to_bits()
                    }
                };
                let found = narrowed::<bf16>(&gpu, "narrow_bf16", &wide);
                (found, wide.iter().map(nearest).collect())
            }
        };
        for ((found, expected), wide) in found.iter().zip(&expected).zip(&wide) {
            assert_eq!(found, expected, "{reals:?} of {:#x}", wide.to_bits());
        }
    }
}

/// Runs one of the narrowing kernels with three values per residue.
fn narrowed<T: Element>(gpu: &Arc<dyn Backend>, name: &str, wide: &[f32]) -> Vec<u16> {
    let residues = wide.len() as u32 / 3;
    let kernel = Kernel::new(name)
        .block(256)
        .reads::<u32>("header")
        .reads::<f32>("wide")
        .writes::<T>("narrow")
        .scalar::<u32>("values");
    // SAFETY: it narrows as many values a residue as it is told, which `wide` and
    // `narrow` have, for the residues that the counts below give.
    let kernel = unsafe { kernel.code(&tapeloop::features::image(name).unwrap()) };
    let mut recorder = Recorder::new(&[residues, 1]);
    let counts = recorder.upload_buffer::<u32>("counts", 1, 8);
    let reals = recorder.upload_buffer::<f32>("wide", 0, 3);
    let out = recorder.download_buffer::<T>("narrow", 0, 3);
    recorder.upload(counts);
    recorder.upload(reals);
    let args = [counts.into(), reals.into(), out.into(), 3_u32.into()];
    recorder.launch(&kernel, residues.div_ceil(256), &args);
    recorder.download(out);
    let recording = recorder.finish().unwrap();
    let mut device_slot = gpu::one_slot(gpu, &recording);
    let mut views = device_slot.host_mut(&[counts.id(), reals.id()]);
    views[0][..4].copy_from_slice(&residues.to_le_bytes());
    views[1].copy_from_slice(bytemuck::cast_slice(wide));
    drop(views);
    let mut executor = gpu::ready(gpu, &recording, &mut *device_slot, Mode::Graph);
    gpu::replay(&mut *device_slot, &mut executor);
    device_slot.wait().unwrap();
    bytemuck::cast_slice(device_slot.host(out.id())).to_vec()
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_structure_of_100000_residues_agrees() {
    let pool = pool();
    let gpu = gpu();
    // The twin of the all-pairs sum takes its time over ten thousand million pairs.
    assert_modes_and_backends_agree(&gpu, &pool, &[structure(100_000, 7)]);
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_samples_agree() {
    let pool = pool();
    let gpu = gpu();
    let samples = repository("samples");
    assert_modes_and_backends_agree(&gpu, &pool, &read_all(&samples));
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_larger_set_agrees() {
    let pool = pool();
    let gpu = gpu();
    let Some(folder) = std::env::var_os("TAPELOOP_STRUCTURES") else {
        gpu::say("the larger set is not tried: TAPELOOP_STRUCTURES names no folder");
        return;
    };
    assert_modes_and_backends_agree(&gpu, &pool, &read_all(Path::new(&folder)));
}

/// The first model of every file below a folder that the readers take.
fn read_all(folder: &Path) -> Vec<Structure> {
    let mut files = Vec::new();
    list(folder, &mut files);
    let mut reader = Reader::new(ReadOptions::default());
    files
        .iter()
        .filter_map(|file| reader.read_path(file).ok()?.into_iter().next())
        .collect()
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            list(&entry, files)
        } else {
            files.push(entry)
        }
    }
}
