//! The features of made-up structures against definitions written out naively,
//! and their independence of everything but the structure.

mod edges;
mod refused;

use crate::definitions::{assert_close, c_alphas, distance2, wcn};
use crate::every_feature::every_feature;
use crate::made_up::{moved, structure, with_ligands};
use crate::tables;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::{slice, sync::Arc};
use tapeloop::ErrorKind;
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::features::{
    Centrality, Column, ContactNumber, ContactPoint, Cutoff, FeatureConfig, FeatureName,
    FeatureTable, Features, Fusion, Input, NULL_COUNT, Reals, Sasa, Setting, TableName, twins,
    virtual_c_beta,
};
use tapeloop::pipeline::{Engine, EngineConfig, Wait};
use tapeloop::record::Recorder;
use tapeloop::replay::{Mode, Policy};
use tapeloop::structure::{AtomClass, MISSING, Residue, Structure};
use tapeloop::workload::{Completion, Extent, Workload};

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

fn c_betas(s: &Structure) -> Vec<Option<[i32; 3]>> {
    let letter_or_name = |r: &Residue| {
        let glycine = &r.parent_comp_id == b"GLY     ";
        let real = if glycine { None } else { s.position(r.cb) };
        let built = || {
            Some(virtual_c_beta(
                s.position(r.n)?,
                s.position(r.ca)?,
                s.position(r.c)?,
            ))
        };
        real.or_else(built)
    };
    s.residues.iter().map(letter_or_name).collect()
}

fn half_spheres(s: &Structure, radius_milli: i64) -> Vec<(i32, i32)> {
    let ca = c_alphas(s);
    let unit = |from: [i32; 3], to: [i32; 3]| {
        let d: [f64; 3] = std::array::from_fn(|axis| f64::from(to[axis] - from[axis]));
        let norm = d.iter().map(|x| x * x).sum::<f64>().sqrt();
        (norm > 0.0).then(|| d.map(|x| x / norm))
    };
    let counts_of = |i: usize| -> Option<(i32, i32)> {
        let linked = i > 0
            && i + 1 < ca.len()
            && !s.residues[i].break_before
            && !s.residues[i + 1].break_before;
        let (before, here, after) = if linked {
            (ca[i - 1]?, ca[i]?, ca[i + 1]?)
        } else {
            None?
        };
        let (u, v) = (unit(before, here)?, unit(after, here)?);
        let (mut up, mut down) = (0, 0);
        for (j, other) in ca.iter().enumerate() {
            let Some(other) = other.filter(|o| j != i && distance2(here, *o) < radius_milli.pow(2))
            else {
                continue;
            };
            let side: f64 = (0..3)
                .map(|axis| f64::from(other[axis] - here[axis]) * (u[axis] + v[axis]))
                .sum();
            if side > 0.0 { up += 1 } else { down += 1 }
        }
        Some((up, down))
    };
    (0..ca.len())
        .map(|i| counts_of(i).unwrap_or((NULL_COUNT, NULL_COUNT)))
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

fn assert_column_close(name: &str, found: Column<'_>, expected: &[f64]) {
    match found {
        Column::Real(found) => assert_close(name, found, expected, 1e-5),
        Column::Count(_) => panic!("{name} is real"),
    }
}

/// A column of the residues, with all features.
fn residue_column<'a>(table: &'a FeatureTable, name: &str) -> Column<'a> {
    let columns = FeatureConfig::default().columns(TableName::Residues);
    let position = columns.iter().position(|column| column.name == name);
    table.column(TableName::Residues, position.unwrap())
}

/// A column of the structures, with all features.
fn structure_column<'a>(table: &'a FeatureTable, name: &str) -> Column<'a> {
    let columns = FeatureConfig::default().columns(TableName::Structures);
    let position = columns.iter().position(|column| column.name == name);
    table.column(TableName::Structures, position.unwrap())
}

fn assert_matches(s: &Structure, table: &FeatureTable) {
    let ca = c_alphas(s);
    let cb = c_betas(s);
    for angstrom in [8, 10, 12] {
        let expected = contact_numbers(&ca, 1000 * angstrom);
        let found = residue_column(table, &format!("cn_ca_{angstrom}"));
        assert_eq!(found, Column::Count(&expected));
    }
    for angstrom in [8, 10] {
        let expected = contact_numbers(&cb, 1000 * angstrom);
        let found = residue_column(table, &format!("cn_cb_{angstrom}"));
        assert_eq!(found, Column::Count(&expected));
    }
    assert_column_close("wcn", residue_column(table, "wcn"), &wcn(s).0);
    let (up, down): (Vec<i32>, Vec<i32>) = half_spheres(s, 12_000).into_iter().unzip();
    assert_eq!(residue_column(table, "hse_a_up"), Column::Count(&up));
    assert_eq!(residue_column(table, "hse_a_down"), Column::Count(&down));
    assert_column_close("b_z", residue_column(table, "b_z"), &b_z(s));
    assert_column_close("rg", structure_column(table, "rg"), &[rg(&s.xyz)]);
    let ca: Vec<_> = ca.into_iter().flatten().collect();
    assert_column_close("rg_ca", structure_column(table, "rg_ca"), &[rg(&ca)]);
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
    let names = [TableName::Residues, TableName::Structures];
    let columns = tables
        .iter()
        .flat_map(|table| names.into_iter().flat_map(|names| table.columns(names)));
    columns.map(tables::bits).collect()
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
fn tables_that_are_not_read_have_no_columns_and_the_others_their_values() {
    let structures: Vec<_> = (0..20).map(|n| structure(50, n)).collect();
    let config = EngineConfig::new(Features::capacity(1024));
    let all = compute(&structures, &config, 2);
    let pool = pool(2);
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let workload = Features::new(FeatureConfig::default()).unwrap();
    let workload = workload.reading(&[TableName::Structures]);
    let mut engine = Engine::new(workload, &[backend], pool, &config).unwrap();
    let read = tables::tables(&mut engine, structures.iter());
    for (table, all) in read.iter().zip(&all) {
        let values_of = |table: &FeatureTable, values_of| {
            table
                .columns(values_of)
                .map(tables::bits)
                .collect::<Vec<_>>()
        };
        assert!(values_of(all, TableName::Residues).len() > 1);
        assert!(values_of(table, TableName::Residues).is_empty());
        let values = values_of(table, TableName::Structures);
        assert!(!values.is_empty() && values == values_of(all, TableName::Structures));
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
        (2, 777, 2, Mode::Resident, Wait::Block),
    ] {
        let mut config = EngineConfig::new(Features::capacity(residues));
        (config.slots, config.policy.mode, config.wait) = (slots, mode, wait);
        config.buckets = Features::buckets(residues, 1024.max(residues));
        assert_eq!(
            bits(&compute(&structures, &config, threads)),
            bits(&expected)
        );
    }
    // Enough for two batches of each bucket.
    let few = &structures[..24];
    for policy in Policy::combinations() {
        let mut config = EngineConfig::new(Features::capacity(777));
        config.policy = policy;
        config.buckets = Features::buckets(777, 1024);
        let tables = compute(few, &config, 2);
        assert!(bits(&tables) == bits(&expected[..few.len()]), "{policy:?}");
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
    // The structures are denser than proteins, and have more pairs.
    let capacity = Features::with_pair_room(Features::capacity(800), 8);
    let config = EngineConfig::new(capacity);
    let with = |fusion| {
        let mut features = FeatureConfig {
            fusion,
            ..every_feature()
        };
        features.cluster.select = vec!["A".to_owned(), "L".to_owned()];
        features.contacts.point = ContactPoint::Any;
        compute_with(features, &structures, &config, 2)
    };
    assert_eq!(bits(&with(Fusion::On)), bits(&with(Fusion::Off)));
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
        let columns = tables.iter().flat_map(|t| t.columns(TableName::Residues));
        columns.map(tables::bits).collect()
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
        let plan = Engine::memory_plan(&workload, backend.device(), 1, &config).unwrap();
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
            "backbone",
            "betas",
            "ca",
            "cb",
            "wcn_coincident",
            "chains",
            "density",
            "ca_cell_counts",
            "ca_cell_start",
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
    assert!(choose(vec![]).unwrap().contains("no feature"));
    let twice = vec![FeatureName::Wcn, FeatureName::Wcn];
    let twice = choose(twice).unwrap();
    assert!(twice.contains("wcn") && twice.contains("twice"), "{twice}");
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
    let input = |n: usize| Input::new("", 0, Ok(structure(n, 1)));
    let tickets = [65, 64].map(|n| engine.submit(input(n)).unwrap());
    let [large, small] = tickets.map(|ticket| ticket.wait().unwrap().result);
    let message = large.unwrap_err().to_string();
    assert!(message.contains("65 residues"), "{message}");
    assert!(small.is_ok());
    assert_eq!(
        Features::capacity(64),
        Extent::from([64, 1024, 4, 4, 32, 1284, 64, 64])
    );
    let capacities =
        |sizes: &[u32]| -> Vec<Extent> { sizes.iter().copied().map(Features::capacity).collect() };
    assert_eq!(Features::buckets(64, 64), capacities(&[8, 16, 32, 64]));
    assert_eq!(
        Features::buckets(64, 300),
        capacities(&[8, 16, 32, 64, 128, 256, 300])
    );
    assert_eq!(Features::buckets(1, 3), capacities(&[1, 2, 3]));
    assert_eq!(Features::buckets(0, 0), capacities(&[1]));
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
                ..every_feature()
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
