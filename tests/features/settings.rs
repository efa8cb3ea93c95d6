//! The features of made-up structures against definitions written out naively,
//! and their independence of everything but the structure.

use crate::tables;

use crate::made_up::{moved, structure};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::{slice, sync::Arc};
use tapeloop::ErrorKind;
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::features::{
    Centrality, Cluster, Column, ContactNumber, Cutoff, FeatureConfig, FeatureName, FeatureTable,
    Features, Fusion, Input, NULL_COUNT, Reals, Sasa, TableName, twins, virtual_c_beta,
};
use tapeloop::pipeline::{Engine, EngineConfig, Wait};
use tapeloop::record::Recorder;
use tapeloop::replay::{Mode, Policy};
use tapeloop::structure::{AtomClass, MISSING, Residue, Structure};
use tapeloop::workload::{Completion, Extent, Workload};

fn distance2(a: [i32; 3], b: [i32; 3]) -> i64 {
    (0..3)
        .map(|axis| (i64::from(a[axis]) - i64::from(b[axis])).pow(2))
        .sum()
}

fn contact_numbers(positions: &[Option<[i32; 3]>], cutoff_milli: i64) -> Vec<i32> {
    let near = |i: usize, a: [i32; 3]| {
        let others = positions.iter().enumerate().filter(|(j, _)| *j != i);
        others
            .filter_map(|(_, b)| *b)
            .filter(|b| distance2(a, *b) < cutoff_milli.pow(2))
            .count()
    };
    let count = |(i, a): (usize, &Option<[i32; 3]>)| a.map_or(NULL_COUNT, |a| near(i, a) as i32);
    positions.iter().enumerate().map(count).collect()
}

fn c_alphas(s: &Structure) -> Vec<Option<[i32; 3]>> {
    s.residues.iter().map(|r| s.position(r.ca)).collect()
}

fn c_betas(s: &Structure) -> Vec<Option<[i32; 3]>> {
    let of = |r: &Residue| {
        let ca = s.position(r.ca)?;
        let glycine = &r.parent_comp_id == b"GLY     ";
        let real = if glycine { None } else { s.position(r.cb) };
        real.or_else(|| Some(virtual_c_beta(s.position(r.n)?, ca, s.position(r.c)?)))
    };
    s.residues.iter().map(of).collect()
}

fn wcn(ca: &[Option<[i32; 3]>]) -> Vec<f64> {
    let sum = |a: [i32; 3]| -> f64 {
        let d2 = ca
            .iter()
            .flatten()
            .map(|b| distance2(a, *b))
            .filter(|d2| *d2 > 0);
        d2.map(|d2| 1e6 / d2 as f64).sum()
    };
    ca.iter().map(|a| a.map_or(f64::NAN, sum)).collect()
}

fn half_spheres(s: &Structure, radius_milli: i64) -> Vec<(i32, i32)> {
    let ca = c_alphas(s);
    let unit = |from: [i32; 3], to: [i32; 3]| {
        let d: [f64; 3] = std::array::from_fn(|axis| f64::from(to[axis] - from[axis]));
        let norm = d.iter().map(|x| x * x).sum::<f64>().sqrt();
        (norm > 0.0).then(|| d.map(|x| x / norm))
    };
    let of = |i: usize| -> Option<(i32, i32)> {
        let linked = i > 0
            && i + 1 < ca.len()
            && !s.residues[i].break_before
            && !s.residues[i + 1].break_before;
        let (before, own, after) = if linked {
            (ca[i - 1]?, ca[i]?, ca[i + 1]?)
        } else {
            None?
        };
        let (u, v) = (unit(before, own)?, unit(after, own)?);
        let (mut up, mut down) = (0, 0);
        for (j, other) in ca.iter().enumerate() {
            let Some(other) = other.filter(|o| j != i && distance2(own, *o) < radius_milli.pow(2))
            else {
                continue;
            };
            let side: f64 = (0..3)
                .map(|axis| f64::from(other[axis] - own[axis]) * (u[axis] + v[axis]))
                .sum();
            if side > 0.0 { up += 1 } else { down += 1 }
        }
        Some((up, down))
    };
    (0..ca.len())
        .map(|i| of(i).unwrap_or((NULL_COUNT, NULL_COUNT)))
        .collect()
}

fn b_z(s: &Structure) -> Vec<f64> {
    let b = |r: &Residue| {
        s.b_factor
            .get(r.ca as usize)
            .map_or(f64::NAN, |b| f64::from(*b))
    };
    let z = |r: &Residue| {
        let chain = s.residues.iter().filter(|other| other.chain == r.chain);
        let values: Vec<f64> = chain.map(b).filter(|b| !b.is_nan()).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let sd = (values.iter().map(|b| (b - mean).powi(2)).sum::<f64>() / n).sqrt();
        if sd > 0.0 {
            (b(r) - mean) / sd
        } else {
            f64::NAN
        }
    };
    s.residues.iter().map(z).collect()
}

fn rg(points: &[[i32; 3]]) -> f64 {
    let n = points.len() as f64;
    let mean = |axis: usize| points.iter().map(|p| f64::from(p[axis])).sum::<f64>() / n;
    let means: [f64; 3] = std::array::from_fn(mean);
    let squares = points.iter().map(|p| {
        (0..3)
            .map(|axis| (f64::from(p[axis]) - means[axis]).powi(2))
            .sum::<f64>()
    });
    (squares.sum::<f64>() / n).sqrt() / 1000.0
}

fn assert_close(name: &str, found: &Column, expected: &[f64]) {
    let Column::Real(found) = found else {
        panic!("{name} is real")
    };
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let close = (f64::from(*found) - expected).abs() <= 1e-5 * expected.abs().max(1e-3);
        let null = found.is_nan() && expected.is_nan();
        assert!(close || null, "{name} of {i}: {found}, expected {expected}");
    }
}

/// A column of the residues, with all features.
fn of_residues<'a>(table: &'a FeatureTable, name: &str) -> &'a Column {
    let columns = FeatureConfig::default().columns(TableName::Residues);
    let at = columns.iter().position(|column| column.name == name);
    &table.residues[at.unwrap()]
}

/// A column of the structures, with all features.
fn of_structure<'a>(table: &'a FeatureTable, name: &str) -> &'a Column {
    let columns = FeatureConfig::default().columns(TableName::Structures);
    let at = columns.iter().position(|column| column.name == name);
    &table.structure[at.unwrap()]
}

fn assert_matches(s: &Structure, table: &FeatureTable) {
    let ca = c_alphas(s);
    let cb = c_betas(s);
    for angstrom in [8, 10, 12] {
        let expected = Column::Count(contact_numbers(&ca, 1000 * angstrom));
        assert_eq!(of_residues(table, &format!("cn_ca_{angstrom}")), &expected);
    }
    for angstrom in [8, 10] {
        let expected = Column::Count(contact_numbers(&cb, 1000 * angstrom));
        assert_eq!(of_residues(table, &format!("cn_cb_{angstrom}")), &expected);
    }
    assert_close("wcn", of_residues(table, "wcn"), &wcn(&ca));
    let (up, down) = half_spheres(s, 12_000).into_iter().unzip();
    assert_eq!(of_residues(table, "hse_a_up"), &Column::Count(up));
    assert_eq!(of_residues(table, "hse_a_down"), &Column::Count(down));
    assert_close("b_z", of_residues(table, "b_z"), &b_z(s));
    assert_close("rg", of_structure(table, "rg"), &[rg(&s.xyz)]);
    let ca: Vec<_> = ca.into_iter().flatten().collect();
    assert_close("rg_ca", of_structure(table, "rg_ca"), &[rg(&ca)]);
}

fn pool(threads: usize) -> Arc<ThreadPool> {
    Arc::new(
        ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap(),
    )
}

fn compute(structures: &[Structure], config: &EngineConfig, threads: usize) -> Vec<FeatureTable> {
    compute_with(FeatureConfig::default(), structures, config, threads)
}

fn compute_with(
    features: FeatureConfig,
    structures: &[Structure],
    config: &EngineConfig,
    threads: usize,
) -> Vec<FeatureTable> {
    let pool = pool(threads);
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let workload = Features::new(features).unwrap();
    let mut engine = Engine::new(workload, &[backend], pool, config).unwrap();
    tables::tables(&mut engine, structures.iter())
}

/// Tables compare by bits, so that null is equal to null.
fn bits(tables: &[FeatureTable]) -> Vec<Vec<u32>> {
    let column = |column: &Column| match column {
        Column::Count(values) => values.iter().map(|value| *value as u32).collect(),
        Column::Real(values) => values.iter().map(|value| value.to_bits()).collect(),
    };
    tables
        .iter()
        .flat_map(|t| t.residues.iter().chain(&t.structure))
        .map(column)
        .collect()
}

#[test]
fn every_size_around_the_tile_edges_matches_the_definitions() {
    let sizes = [0, 1, 2, 3, 31, 32, 33, 127, 128, 129, 255, 256, 257, 700];
    let structures: Vec<_> = sizes.iter().map(|&n| structure(n, n as u64)).collect();
    let config = EngineConfig::new(Features::capacity(1024));
    for (s, table) in structures.iter().zip(compute(&structures, &config, 2)) {
        assert_matches(s, &table);
    }
}

#[test]
fn results_do_not_depend_on_batch_order_slots_threads_or_mode() {
    let structures: Vec<_> = (0..200)
        .map(|n| structure(n * 13 % 301, n as u64))
        .collect();
    let expected = compute(
        &structures,
        &EngineConfig::new(Features::capacity(1 << 16)),
        1,
    );
    for (slots, residues, threads, mode, wait) in [
        (1, 512, 1, Mode::Graph, Wait::Block),
        (2, 301, 3, Mode::Stream, Wait::Spin),
        (5, 4096, 2, Mode::Graph, Wait::Spin),
        (2, 777, 2, Mode::Auto, Wait::Block),
    ] {
        let mut config = EngineConfig::new(Features::capacity(residues));
        (config.slots, config.policy.mode, config.wait) = (slots, mode, wait);
        config.buckets = Features::buckets(residues, 1024.max(residues));
        assert_eq!(
            bits(&compute(&structures, &config, threads)),
            bits(&expected)
        );
    }
    for policy in Policy::legal() {
        let mut config = EngineConfig::new(Features::capacity(777));
        config.policy = policy;
        config.buckets = Features::buckets(777, 1024);
        let tables = compute(&structures, &config, 2);
        assert!(bits(&tables) == bits(&expected), "{policy:?}");
    }
    let mut reversed = structures;
    reversed.reverse();
    let mut tables = compute(&reversed, &EngineConfig::new(Features::capacity(2048)), 2);
    tables.reverse();
    assert_eq!(bits(&tables), bits(&expected));
}

#[test]
fn fused_launches_compute_the_same() {
    let structures: Vec<_> = [0, 1, 129, 300, 5]
        .iter()
        .map(|&n| structure(n, n as u64))
        .collect();
    let config = EngineConfig::new(Features::capacity(400));
    let with = |fusion| {
        let mut features = FeatureConfig {
            fusion,
            ..FeatureConfig::default()
        };
        features.cluster.select = vec!["A".to_owned(), "L".to_owned()];
        compute_with(features, &structures, &config, 2)
    };
    assert_eq!(bits(&with(Fusion::On)), bits(&with(Fusion::Off)));
}

#[test]
fn a_structure_of_100000_residues_is_right() {
    // C-alphas 3.8 A apart in ten rows 100 A apart: how many are within 8 A needs
    // no search.
    let (count, row) = (100_000i32, 10_000);
    let place = |index| [(index % row) * 3800, (index / row) * 100_000, 0];
    let line = of_c_alphas(&(0..count).map(place).collect::<Vec<[i32; 3]>>());
    let mut config = EngineConfig::new(Features::capacity(4096));
    config.slots = 1;
    config.buckets.push(Features::capacity(131_072));
    let chosen = FeatureConfig {
        features: vec![
            FeatureName::ContactNumber,
            FeatureName::BFactor,
            FeatureName::Rg,
        ],
        contact_number: ContactNumber {
            ca: vec![Cutoff::from_angstrom(8.0).unwrap()],
            cb: vec![],
            own_chain: false,
        },
        ..FeatureConfig::default()
    };
    let table = &compute_with(chosen, slice::from_ref(&line), &config, 2)[0];
    let neighbours = |i: i32| (i % row).min(2) + (row - 1 - i % row).min(2);
    assert_eq!(
        table.residues[0],
        Column::Count((0..count).map(neighbours).collect())
    );
    assert_close("rg", &table.structure[0], &[rg(&line.xyz)]);
    // The chains' members are checked at smaller sizes; here that all are there.
    let Column::Real(z) = &table.residues[1] else {
        panic!("b_z is real")
    };
    assert!(z.iter().all(|z| !z.is_nan()));
}

#[test]
fn a_translation_on_the_lattice_changes_nothing() {
    let original: Vec<_> = (0..20).map(|n| structure(150, n)).collect();
    let mut translated = original.clone();
    for s in &mut translated {
        s.xyz
            .iter_mut()
            .for_each(|p| *p = moved(*p, [1_234_567, -7_654_321, 999]));
    }
    let config = EngineConfig::new(Features::capacity(1024));
    let (before, after) = (
        compute(&original, &config, 1),
        compute(&translated, &config, 1),
    );
    let residues = |tables: &[FeatureTable]| -> Vec<_> {
        let strip = |t: &FeatureTable| FeatureTable {
            structure: Vec::new(),
            ..t.clone()
        };
        bits(&tables.iter().map(strip).collect::<Vec<_>>())
    };
    // Built C-betas are rounded after the translation, so those columns may flip.
    let columns = FeatureConfig::default().columns(TableName::Residues);
    let without_cb = |values: Vec<Vec<u32>>| -> Vec<_> {
        let named = values.into_iter().zip(columns.iter().cycle());
        named
            .filter(|(_, column)| !column.name.starts_with("cn_cb"))
            .map(|(values, _)| values)
            .collect()
    };
    assert_eq!(without_cb(residues(&before)), without_cb(residues(&after)));
}

#[test]
fn only_what_is_asked_for_is_taken() {
    let pool = pool(1);
    let backend = CpuBackend::new(pool);
    let config = EngineConfig::new(Features::capacity(1024));
    let lines = |features: &[FeatureName]| {
        let chosen = FeatureConfig {
            features: features.to_vec(),
            ..FeatureConfig::default()
        };
        let workload = Features::new(chosen).unwrap();
        let plan = Engine::memory_plan(&workload, backend.device(), &config).unwrap();
        plan.lines
            .into_iter()
            .map(|line| line.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        lines(&[FeatureName::Wcn]),
        [
            "header",
            "wcn",
            "wcn_coincident_with",
            "structures",
            "residues",
            "tiles",
            "ca",
            "wcn_coincident",
            "alignment"
        ]
    );
    assert_eq!(
        lines(&[FeatureName::BFactor]),
        [
            "header",
            "b_factors",
            "structures",
            "residues",
            "chains",
            "members",
            "b",
            "atom_b",
            "alignment"
        ]
    );
}

#[test]
fn impossible_choices_are_named() {
    let choose = |features: Vec<FeatureName>| {
        let config = FeatureConfig {
            features,
            ..FeatureConfig::default()
        };
        Features::new(config).err().map(|error| error.to_string())
    };
    assert_eq!(choose(vec![]).unwrap(), "no feature is asked for");
    let twice = vec![FeatureName::Wcn, FeatureName::Wcn];
    assert_eq!(choose(twice).unwrap(), "wcn is asked for twice");
    assert!(Cutoff::from_angstrom(37.1).is_err());
    assert!(Cutoff::from_angstrom(f64::NAN).is_err());
    assert_eq!(Cutoff::from_angstrom(8.5).unwrap().angstrom(), 8.5);
}

#[test]
fn an_oversized_structure_is_rejected_alone() {
    let pool = pool(1);
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let workload = Features::new(FeatureConfig::default()).unwrap();
    let config = EngineConfig::new(Features::capacity(64));
    let engine = Engine::new(workload, &[backend], pool, &config).unwrap();
    let input = |n: usize| Input {
        source: String::new(),
        ordinal: 0,
        structure: Ok(structure(n, 1)),
    };
    let tickets = [65, 64].map(|n| engine.submit(input(n)).unwrap());
    let [large, small] = tickets.map(|ticket| ticket.wait().unwrap().result);
    let message = large.unwrap_err().to_string();
    assert!(
        message.contains("65 residues, and a batch holds at most 64"),
        "{message}"
    );
    assert!(small.is_ok());
    assert_eq!(
        Features::capacity(64),
        Extent::from([64, 1024, 4, 4, 32, 1284])
    );
    assert_eq!(Features::buckets(64, 64), [8, 64].map(Features::capacity));
    assert_eq!(
        Features::buckets(64, 100),
        [8, 64, 100].map(Features::capacity)
    );
}

/// Residues of C-alphas alone, each linked to the one before.
fn of_c_alphas(positions: &[[i32; 3]]) -> Structure {
    let mut s = structure(positions.len(), 0);
    s.xyz = positions.to_vec();
    s.loose.clear();
    s.element = vec![6; positions.len()];
    s.class = vec![AtomClass::of(*b"ALA     ", *b"CA      ", 6); positions.len()];
    s.b_factor = (0..positions.len()).map(|index| index as f32).collect();
    s.atom_start = (0..=positions.len() as u32).collect();
    for (index, residue) in s.residues.iter_mut().enumerate() {
        (residue.ca, residue.cb) = (index as u32, MISSING);
        (residue.n, residue.c) = (MISSING, MISSING);
        residue.break_before = index == 0;
    }
    s
}

#[test]
fn a_distance_of_exactly_the_cutoff_is_outside() {
    // 4.8, 6.4 and 8 make a right triangle.
    let around = |p: [i32; 3]| of_c_alphas(&[[0, 0, 0], p]);
    let at = [[8000, 0, 0], [0, -8000, 0], [4800, 6400, 0], [8001, 0, 0]].map(around);
    let inside = [[7999, 0, 0], [4800, 6399, 0], [0, 0, -7999]].map(around);
    let far = [[100_000_000, -100_000_000, 100_000_000]].map(around);
    let config = EngineConfig::new(Features::capacity(64));
    let near = |structures: &[Structure]| -> Vec<Column> {
        let tables = compute(structures, &config, 1);
        tables
            .into_iter()
            .map(|table| table.residues[0].clone())
            .collect()
    };
    assert!(
        near(&at)
            .iter()
            .all(|column| *column == Column::Count(vec![0, 0]))
    );
    assert!(
        near(&inside)
            .iter()
            .all(|column| *column == Column::Count(vec![1, 1]))
    );
    assert!(
        near(&far)
            .iter()
            .all(|column| *column == Column::Count(vec![0, 0]))
    );
}

#[test]
fn the_largest_cutoff_is_exact_too() {
    let cutoff = Cutoff::from_angstrom(37.0).unwrap();
    let features = FeatureConfig {
        features: vec![FeatureName::ContactNumber],
        contact_number: ContactNumber {
            ca: vec![cutoff],
            cb: vec![],
            own_chain: false,
        },
        ..FeatureConfig::default()
    };
    let pairs = [
        [36_999, 0, 0],
        [37_000, 0, 0],
        [22_200, 29_600, 0],
        [22_200, 29_599, 0],
    ];
    let pairs = pairs.map(|p| of_c_alphas(&[[0, 0, 0], p]));
    let config = EngineConfig::new(Features::capacity(64));
    let tables = compute_with(features, &pairs, &config, 1);
    let counts = tables.iter().map(|table| table.residues[0].clone());
    let expected = [1, 0, 0, 1].map(|n| Column::Count(vec![n, n]));
    assert!(counts.eq(expected));
}

#[test]
fn a_residue_without_c_alpha_is_null_and_no_neighbour() {
    let mut s = structure(40, 3);
    s.residues[20].ca = MISSING;
    let config = EngineConfig::new(Features::capacity(64));
    let table = &compute(slice::from_ref(&s), &config, 1)[0];
    assert_matches(&s, table);
    let of_c_alpha = [
        "cn_ca_8", "cn_cb_8", "wcn", "hse_a_up", "hse_b_up", "phi", "ss8", "b_ca", "b_z",
    ];
    for column in of_c_alpha.map(|name| of_residues(table, name)) {
        match column {
            Column::Count(values) => assert_eq!(values[20], NULL_COUNT),
            Column::Real(values) => assert!(values[20].is_nan()),
        }
    }
}

#[test]
fn structures_that_no_reader_makes_are_refused_or_harmless() {
    let good = structure(60, 5);
    let mut linked_at_the_start = structure(60, 6);
    linked_at_the_start.residues[0].break_before = false;
    // A backbone torn apart builds its C-beta millions of A away.
    let mut torn = structure(60, 7);
    let (n, c) = (torn.residues[9].n as usize, torn.residues[9].c as usize);
    torn.residues[9].cb = MISSING;
    (torn.xyz[n], torn.xyz[c]) = ([90_000_000, 0, 0], [0, -90_000_000, 5]);
    let mut beyond = structure(60, 8);
    beyond.xyz[3] = [100_000_001, 0, 0];
    let mut chainless = structure(60, 9);
    chainless.residues[30].chain = 77;
    let all = [
        good.clone(),
        linked_at_the_start,
        beyond,
        torn,
        chainless,
        good,
    ];

    let pool = pool(2);
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let config = EngineConfig::new(Features::capacity(1024));
    let workload = Features::new(FeatureConfig::default()).unwrap();
    let mut engine = Engine::new(workload, &[backend], pool, &config).unwrap();
    let results: Vec<_> = tables::outcomes(&mut engine, all.iter())
        .into_iter()
        .map(|outcome| outcome.map_err(|error| error.message().to_owned()))
        .collect();
    assert_eq!(
        bits(slice::from_ref(results[0].as_ref().unwrap())),
        bits(slice::from_ref(results[5].as_ref().unwrap()))
    );
    let Column::Count(up) = of_residues(results[1].as_ref().unwrap(), "hse_a_up") else {
        panic!("counts")
    };
    assert_eq!(
        up[0], NULL_COUNT,
        "the first residue has no plane, whatever its link says"
    );
    assert!(
        results[2]
            .as_ref()
            .unwrap_err()
            .contains("farther than 100000 A")
    );
    let Column::Count(cb) = &results[3].as_ref().unwrap().residues[3] else {
        panic!("counts")
    };
    assert_eq!(cb[9], NULL_COUNT);
    assert!(
        results[4]
            .as_ref()
            .unwrap_err()
            .contains("a chain that the structure does not list")
    );
}

/// A worker process finds twins by the names of their kernels.
#[test]
fn the_list_of_twins_has_every_kernel_that_features_launch() {
    let twins = twins();
    let backend = CpuBackend::inline();
    let mut configs = Vec::new();
    for (_, reals) in Reals::NAMES {
        for (_, fusion) in Fusion::NAMES {
            let all = FeatureConfig {
                reals,
                fusion,
                cluster: Cluster {
                    select: vec!["H".to_owned()],
                },
                ..FeatureConfig::default()
            };
            configs.extend(FeatureName::ALL.iter().map(|&name| FeatureConfig {
                features: vec![name],
                ..all.clone()
            }));
            configs.push(all);
        }
    }
    for config in configs {
        let mut recorder = Recorder::new(Features::capacity(16).as_slice());
        let features = Features::new(config.clone()).unwrap();
        features.record(&mut recorder, backend.device()).unwrap();
        for launch in recorder.finish().unwrap().launches() {
            let kernel = launch.kernel_name();
            let is_known = twins.iter().any(|(name, _)| name == kernel);
            assert!(is_known, "{kernel} of {:?}", config.features);
        }
    }
}

#[test]
fn a_bucket_of_more_chains_than_a_tile_can_name_is_refused() {
    let features = Features::new(FeatureConfig::default()).unwrap();
    let backend = CpuBackend::inline();
    let chains = features.axes().iter().position(|axis| *axis == "chains");
    let chains = chains.unwrap();
    let record = |more: u32| {
        let mut capacity = *Features::capacity(16)
            .as_slice()
            .first_chunk::<6>()
            .unwrap();
        capacity[chains] = (1 << 19) + more;
        let mut recorder = Recorder::new(&capacity);
        features.record(&mut recorder, backend.device()).map(drop)
    };
    record(0).unwrap();
    let error = record(1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("524288 chains"), "{error}");
    let largest = Features::capacity(u32::MAX / 32);
    assert_eq!(largest.as_slice()[chains], 1 << 19);
}

#[test]
fn settings_of_features_that_others_need_are_checked_too() {
    for (name, points) in [(FeatureName::Rsa, 0), (FeatureName::Iface, u32::MAX)] {
        let config = FeatureConfig {
            features: vec![name],
            sasa: Sasa {
                points,
                ..Sasa::default()
            },
            ..FeatureConfig::default()
        };
        let error = Features::new(config).err().unwrap().to_string();
        let expected = format!("sasa.points of {points} is not 1 to 1024");
        assert!(error.contains(&expected), "{name:?}: {error}");
    }
}

#[test]
fn atoms_in_one_point_reject_their_structure_and_no_other() {
    let good = structure(300, 1);
    let mut dense = structure(300, 2);
    dense.xyz.fill([1_000; 3]);
    let pool = pool(1);
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let engine_config = EngineConfig::new(Features::capacity(1024));
    let run = |name: FeatureName, structures: [&Structure; 3]| {
        let config = FeatureConfig {
            features: vec![name],
            ..FeatureConfig::default()
        };
        let workload = Features::new(config).unwrap();
        let backends = [Arc::clone(&backend)];
        let mut engine =
            Engine::new(workload, &backends, Arc::clone(&pool), &engine_config).unwrap();
        let inputs = structures.map(|structure| Input {
            source: String::new(),
            ordinal: 0,
            structure: Ok(structure.clone()),
        });
        let mut results = Vec::new();
        engine
            .run(inputs.into_iter(), &mut |completion: Completion<
                Features,
            >| {
                results.push(completion.result.map_err(|error| error.to_string()));
                Ok(())
            })
            .unwrap();
        results
    };
    for name in [FeatureName::Sasa, FeatureName::Centrality] {
        let results = run(name, [&good, &dense, &good]);
        let error = results[1].as_ref().unwrap_err();
        assert!(error.contains("more than 256"), "{name:?}: {error}");
        let tables = [&results[0], &results[2]].map(|table| table.clone().unwrap());
        assert_eq!(bits(&tables[..1]), bits(&tables[1..]));
        let alone = run(name, [&good; 3]);
        assert_eq!(bits(&tables[..1]), bits(&[alone[0].clone().unwrap()]));
    }
}

#[test]
fn more_steps_of_centrality_than_the_settings_allow_are_refused() {
    for steps in [0, 1_000_000] {
        let error = Features::new(FeatureConfig {
            features: vec![FeatureName::Centrality],
            centrality: Centrality { steps },
            ..FeatureConfig::default()
        });
        let error = error.err().unwrap().to_string();
        assert!(
            error.contains(&format!("steps of {steps} is not 1 to")),
            "{error}"
        );
    }
}
