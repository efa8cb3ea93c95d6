//! The table of contacts.

use super::{Computed, asking_for, made_up};
use crate::definitions::{c_alphas, distance2};
use crate::made_up::{spread, structure};
use crate::tables;
use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use tapeloop::ErrorKind;
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::features::{
    Cutoff, FeatureConfig, FeatureName, Features, Fusion, Setting, TableName, virtual_c_beta,
};
use tapeloop::pipeline::{Engine, EngineConfig};
use tapeloop::structure::Structure;

const ATOMS: &[&str] = &["none", "ca", "cb", "any"];
const CHAINS: &[&str] = &["all", "own"];

fn config(atom: &'static str, cutoff: f64, chains: &'static str) -> FeatureConfig {
    let mut config = asking_for(&[FeatureName::Contacts]);
    let cutoff = Cutoff::from_angstrom(cutoff).unwrap();
    for (key, value) in [
        ("contacts.atom", Setting::Choice(atom, ATOMS)),
        (
            "contacts.cutoff",
            Setting::Length(cutoff, Cutoff::MAX_ANGSTROM),
        ),
        ("contacts.chains", Setting::Choice(chains, CHAINS)),
    ] {
        config.set(FeatureName::Contacts, key, &value).unwrap();
        let settings = config.settings(FeatureName::Contacts);
        assert!(settings.contains(&(key, value)));
    }
    config
}

fn nearest(atom: &'static str, count: i64, chains: &'static str) -> FeatureConfig {
    let mut config = config(atom, 1.0, chains);
    let count = Setting::Integer(count, 0..=64);
    let name = FeatureName::Contacts;
    config.set(name, "contacts.nearest", &count).unwrap();
    let settings = config.settings(name);
    assert!(settings.contains(&("contacts.nearest", count)));
    config
}

/// Both residues of each pair, their distance and the least distance of their atoms.
type Rows = Vec<(i32, i32, f32, f32)>;

fn angstrom(d2: i64) -> f32 {
    ((d2 as f64).sqrt() / 1000.0) as f32
}

/// The least squared distance of the atoms of two residues that have some.
fn least(s: &Structure, i: usize, j: usize) -> i64 {
    let atoms = |i: usize| &s.xyz[s.atom_start[i] as usize..s.atom_start[i + 1] as usize];
    let pairs = atoms(i)
        .iter()
        .flat_map(|a| atoms(j).iter().map(move |b| distance2(*a, *b)));
    pairs.min().unwrap()
}

/// The squared distance of two residues by their `atom`, if both have it. All residues have heavy
/// atoms.
fn squared(
    s: &Structure,
    atom: &str,
    points: &[Option<[i32; 3]>],
    i: usize,
    j: usize,
) -> Option<i64> {
    match atom {
        "any" => Some(least(s, i, j)),
        _ => Some(distance2(points[i]?, points[j]?)),
    }
}

fn points(s: &Structure, atom: &str) -> Vec<Option<[i32; 3]>> {
    match atom {
        "cb" => c_betas(s),
        _ => c_alphas(s),
    }
}

fn expected(s: &Structure, atom: &str, cutoff: i64, own_chain: bool) -> Rows {
    let points = points(s, atom);
    let mut rows = Rows::new();
    for i in 0..points.len() {
        for j in i + 1..points.len() {
            if own_chain && s.residues[i].chain != s.residues[j].chain {
                continue;
            }
            let d2 = squared(s, atom, &points, i, j);
            if let Some(d2) = d2.filter(|d2| *d2 < cutoff.pow(2)) {
                rows.push((i as i32, j as i32, angstrom(d2), angstrom(least(s, i, j))));
            }
        }
    }
    rows
}

fn expected_nearest(s: &Structure, atom: &str, count: usize, own_chain: bool) -> Rows {
    let points = points(s, atom);
    let mut rows = Rows::new();
    for i in 0..points.len() {
        let is_wanted =
            |j: &usize| *j != i && (!own_chain || s.residues[i].chain == s.residues[*j].chain);
        let others = (0..points.len()).filter(is_wanted);
        let others = others.filter_map(|j| Some((squared(s, atom, &points, i, j)?, j)));
        let mut others: Vec<_> = others.collect();
        others.sort();
        let nearest = others.into_iter().take(count);
        rows.extend(
            nearest.map(|(d2, j)| (i as i32, j as i32, angstrom(d2), angstrom(least(s, i, j)))),
        );
    }
    rows
}

fn found(computed: &Computed, n: usize) -> Rows {
    let table = TableName::Contacts;
    let [i, j] = ["res_index_i", "res_index_j"].map(|name| computed.counts(n, table, name));
    let [d, least] = ["distance", "min_distance"].map(|name| computed.reals(n, table, name));
    assert_eq!(computed.tables[n].rows(table), i.len());
    let pairs = i.iter().zip(j).zip(d.iter().zip(least));
    pairs
        .map(|((&i, &j), (&d, &least))| (i, j, d, least))
        .collect()
}

fn c_betas(s: &Structure) -> Vec<Option<[i32; 3]>> {
    let beta_of = |residue: &tapeloop::structure::Residue| {
        let [n, ca, c] = [residue.n, residue.ca, residue.c].map(|atom| s.position(atom));
        let beta = s.position(residue.cb);
        let beta = beta.filter(|_| &residue.parent_comp_id != b"GLY     ");
        beta.or_else(|| Some(virtual_c_beta(n?, ca?, c?)))
    };
    s.residues.iter().map(beta_of).collect()
}

#[test]
fn pairs_are_those_of_the_definition_in_order() {
    let structures = made_up();
    for (atom, cutoff, chains) in [
        ("ca", 10.0, "all"),
        ("ca", 6.5, "own"),
        ("ca", 30.0, "all"),
        ("cb", 8.0, "all"),
        ("any", 4.5, "all"),
        ("any", 3.0, "own"),
        ("any", 30.0, "all"),
    ] {
        let computed = Computed::new(config(atom, cutoff, chains), &structures);
        let mut pairs = 0;
        for (n, s) in structures.iter().enumerate() {
            let cutoff = (cutoff * 1000.0) as i64;
            let expected = expected(s, atom, cutoff, chains == "own");
            pairs += expected.len();
            // `assert!` instead of `assert_eq!`: the rows are too many to print.
            let are_equal = found(&computed, n) == expected;
            assert!(are_equal, "{atom} {cutoff} {chains}, {n}");
        }
        assert!(pairs > 300, "{pairs}");
    }
}

/// The made-up structures, one whose residues are up to thousands of A apart, and one with
/// neighbours at equal distances.
fn near_and_far() -> Vec<Structure> {
    let mut structures = made_up();
    let mut even = structure(60, 8);
    for (index, residue) in even.residues.iter().enumerate() {
        let atoms = even.atom_start[index] as usize..even.atom_start[index + 1] as usize;
        let position = [index % 4, index / 4 % 4, index / 16].map(|step| 3_000 * step as i32);
        assert!(!atoms.is_empty() && residue.n as usize == atoms.start);
        even.xyz[atoms].fill(position);
    }
    structures.push(spread(structure(90, 7)));
    structures.push(even);
    structures
}

#[test]
fn the_nearest_residues_are_those_of_the_definition_in_order() {
    let structures = near_and_far();
    for (atom, count, chains) in [
        ("ca", 1, "all"),
        ("ca", 30, "all"),
        ("ca", 64, "own"),
        ("cb", 33, "all"),
        ("any", 2, "own"),
        ("any", 32, "all"),
    ] {
        let computed = Computed::new(nearest(atom, count, chains), &structures);
        let (mut far, mut ties) = (0, 0);
        for (n, s) in structures.iter().enumerate() {
            let expected = expected_nearest(s, atom, count as usize, chains == "own");
            far += expected.iter().filter(|row| row.2 > 100.0).count();
            let is_tie =
                |rows: &[(i32, i32, f32, f32)]| rows[0].0 == rows[1].0 && rows[0].2 == rows[1].2;
            ties += expected.windows(2).filter(|rows| is_tie(rows)).count();
            let are_equal = found(&computed, n) == expected;
            assert!(are_equal, "{atom} {count} {chains}, {n}");
        }
        assert!(
            far > 80,
            "{far} neighbours are farther than a search in cells"
        );
        assert!(ties > 50 || count < 3, "{ties} neighbours are equally near");
    }
}

/// Batches, fusion and threads change nothing.
#[test]
fn pairs_do_not_depend_on_how_they_are_computed() {
    let structures = near_and_far();
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(3).build().unwrap());
    for config in [
        config("any", 5.0, "all"),
        nearest("cb", 20, "all"),
        nearest("any", 9, "own"),
    ] {
        let expected = Computed::new(config.clone(), &structures).tables;
        for (residues, fusion) in [(300, Fusion::Off), (4096, Fusion::On)] {
            let config = FeatureConfig {
                fusion,
                ..config.clone()
            };
            let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
            let workload = Features::new(config).unwrap();
            let mut engine_config = EngineConfig::new(Features::capacity(residues));
            engine_config.buckets.push(Features::capacity(8192));
            let pool = Arc::clone(&pool);
            let mut engine = Engine::new(workload, &[backend], pool, &engine_config).unwrap();
            let tables = tables::tables(&mut engine, structures.iter());
            assert!(tables == expected, "{residues} {fusion:?}");
        }
    }
}

/// A structure in whose small room its pairs do not fit, between two others.
#[test]
fn a_structure_that_outgrows_its_room_runs_again_by_itself() {
    let dense = structure(300, 5);
    let mut structures = [structure(40, 1), dense, structure(129, 2)];
    for n in [0, 2] {
        for position in &mut structures[n].xyz {
            *position = position.map(|coordinate| 3 * coordinate);
        }
    }
    let config = config("ca", 10.0, "all");
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    let run = |residues_max: u32| {
        let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
        let workload = Features::new(config.clone()).unwrap();
        let mut engine_config = EngineConfig::new(Features::capacity(512));
        engine_config.buckets.push(Features::capacity(residues_max));
        let pool = Arc::clone(&pool);
        let mut engine = Engine::new(workload, &[backend], pool, &engine_config).unwrap();
        let outcomes = tables::outcomes(&mut engine, structures.iter());
        (outcomes, engine.counters().items_outgrown)
    };
    let (outcomes, outgrown) = run(8192);
    assert_eq!(outgrown, 1);
    let tables = outcomes.into_iter().map(Result::unwrap).collect();
    let computed = Computed {
        config: config.clone(),
        tables,
    };
    for (n, s) in structures.iter().enumerate() {
        let expected = expected(s, "ca", 10_000, false);
        assert!(found(&computed, n) == expected, "{n}");
    }
    // No bucket holds the pairs of the dense structure; the other structures get their results.
    let (outcomes, outgrown) = run(512);
    assert_eq!(outgrown, 1);
    let error = outcomes[1].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capacity);
    assert!(error.to_string().contains("pair_room"), "{error}");
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok());
}

#[test]
fn a_cutoff_beyond_the_limit_is_refused() {
    let error = Features::new(config("ca", 31.0, "all")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Config);
    let text = "contacts.cutoff";
    assert!(error.to_string().contains(text), "{error}");
    let mut config = config("none", 10.0, "all");
    let too_many = Setting::Integer(65, 0..=64);
    let error = config.set(FeatureName::Contacts, "contacts.nearest", &too_many);
    let text = "contacts.nearest of 65 is not 0 to 64";
    assert!(error.unwrap_err().to_string().contains(text));
    let error = Features::new(config).err().unwrap();
    assert!(error.to_string().contains("nothing"), "{error}");
}
