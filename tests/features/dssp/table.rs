//! The table of hydrogen bonds.

use super::{Found, Naive, config};
use crate::made_up::structure;
use crate::samples::samples;
use crate::tables::{self, compute};
use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::features::{
    Column, DsspVersion, FeatureConfig, FeatureName, FeatureTable, Features, Setting, TableName,
};
use tapeloop::pipeline::{Engine, EngineConfig};
use tapeloop::structure::Structure;

fn with_table(features: &[FeatureName]) -> FeatureConfig {
    let mut config = FeatureConfig {
        features: features.to_vec(),
        ..config(DsspVersion::V2)
    };
    let (name, table) = (FeatureName::HydrogenBonds, Setting::Flag(true));
    config.set(name, "hydrogen_bonds", &table).unwrap();
    assert_eq!(config.settings(name), [("hydrogen_bonds", table)]);
    config
}

/// Donor, acceptor and energy of each row.
fn rows(table: &FeatureTable) -> Vec<(usize, usize, f32)> {
    let columns: Vec<_> = table.columns(TableName::HydrogenBonds).collect();
    let [
        Column::Count(donors),
        Column::Count(acceptors),
        Column::Real(energies),
    ] = columns[..]
    else {
        panic!("two counts and reals")
    };
    assert_eq!(table.rows(TableName::HydrogenBonds), donors.len());
    let bonds = donors.iter().zip(acceptors).zip(energies);
    bonds
        .map(|((&donor, &acceptor), &energy)| (donor as usize, acceptor as usize, energy))
        .collect()
}

/// Energies are computed in single precision: one that is this close to the limit, in kcal/mol, may
/// be on either side.
const SLACK: f64 = 1.5e-3;

fn assert_matches(name: &str, s: &Structure, rows: &[(usize, usize, f32)]) {
    let naive = Naive::new(s);
    let pairs: Vec<_> = rows.iter().map(|row| (row.0, row.1)).collect();
    assert!(pairs.windows(2).all(|pair| pair[0] < pair[1]), "{name}");
    for &(energy, donor, acceptor) in &naive.bonds {
        let found = pairs.binary_search(&(donor, acceptor));
        match found {
            Ok(index) => {
                let found_energy = f64::from(rows[index].2);
                assert!(
                    found_energy < -0.5 && (found_energy - energy).abs() < SLACK,
                    "{name} {donor}"
                );
            }
            Err(_) => assert!(energy > -0.5 - SLACK, "{name}: {donor} to {acceptor}"),
        }
    }
    let all = naive.bonds.iter().map(|bond| (bond.1, bond.2));
    let all: std::collections::HashSet<_> = all.collect();
    assert!(pairs.iter().all(|pair| all.contains(pair)), "{name}");
}

#[test]
fn rows_are_the_bonds_of_the_definition() {
    let mut structures: Vec<_> = (0..30)
        .map(|n| (format!("made up {n}"), structure(n * 37 % 160, n as u64)))
        .collect();
    structures.extend(samples());
    let only: Vec<Structure> = structures.iter().map(|(_, s)| s.clone()).collect();
    let alone = compute(with_table(&[FeatureName::HydrogenBonds]), &only);
    let dssp = compute(
        with_table(&[FeatureName::Dssp, FeatureName::HydrogenBonds]),
        &only,
    );
    let (mut all, mut thirds) = (0, 0);
    for (((name, s), alone), dssp) in structures.iter().zip(&alone).zip(&dssp) {
        let rows = rows(alone);
        assert_matches(name, s, &rows);
        assert_eq!(rows, self::rows(dssp), "{name}");
        // The best two bonds of each N-H are the columns of residues.
        let found = Found::new(dssp);
        let best = found.bonded();
        assert!(
            best.iter()
                .all(|pair| rows.iter().any(|row| (row.0, row.1) == *pair))
        );
        let is_best = |row: &&(usize, usize, f32)| {
            let bonds = found.bonds[row.0][..2].iter().flatten();
            bonds.filter(|bond| **bond == (row.1, row.2)).count() == 1
        };
        assert_eq!(rows.iter().filter(is_best).count(), best.len(), "{name}");
        all += rows.len();
        thirds += rows.len() - best.len();
    }
    assert!(all > 5_000 && thirds > 100, "{all} {thirds}");
}

/// A structure so dense that its bonds do not fit, between two others.
#[test]
fn bonds_that_outgrow_their_room_are_computed_again() {
    let mut structures = [structure(50, 1), structure(260, 2), structure(80, 3)];
    for n in [0, 2] {
        for position in &mut structures[n].xyz {
            *position = position.map(|coordinate| 3 * coordinate);
        }
    }
    let mut config = with_table(&[FeatureName::HydrogenBonds, FeatureName::Contacts]);
    config.contacts.point = tapeloop::features::ContactPoint::Ca;
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let workload = Features::new(config).unwrap();
    let mut engine_config = EngineConfig::new(Features::capacity(512));
    engine_config.buckets.push(Features::capacity(16_384));
    let mut engine = Engine::new(workload, &[backend], pool, &engine_config).unwrap();
    let found = tables::tables(&mut engine, structures.iter());
    assert_eq!(engine.counters().items_outgrown, 1);
    for (n, (s, table)) in structures.iter().zip(&found).enumerate() {
        assert_matches(&n.to_string(), s, &rows(table));
    }
    let most = rows(&found[1]).len();
    assert!(most > 2 * 260, "{most}");
}

#[test]
fn without_the_table_there_is_nothing_to_compute() {
    let only = FeatureConfig {
        features: vec![FeatureName::HydrogenBonds],
        ..FeatureConfig::default()
    };
    let error = Features::new(only).err().unwrap().to_string();
    assert!(error.contains("hydrogen_bonds has nothing"), "{error}");
    assert!(error.contains("set hydrogen_bonds"), "{error}");
}
