//! Properties that every feature's columns must have: they depend on distances and chains, not on
//! the coordinate frame, the order of atoms or the other structures of the batch.

mod chain_order;

use crate::every_feature::every_feature;
use crate::samples::{sample, samples};
use crate::tables::{self, bits};
use rayon::ThreadPoolBuilder;
use std::collections::BTreeMap;
use std::sync::Arc;
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::features::{
    Column, ColumnDecl, ColumnKind, FeatureConfig, FeatureTable, Features, NULL_COUNT, RowKind,
    TableName,
};
use tapeloop::pipeline::{Engine, EngineConfig};
use tapeloop::structure::{Channel, MISSING, Structure};

/// Columns that name a residue by its `res_index`.
const PARTNERS: [&str; 4] = ["hb_nho1", "hb_nho2", "hb_ohn1", "hb_ohn2"];

/// All features, including those that compute something only with a setting.
fn config() -> FeatureConfig {
    let mut config = every_feature();
    config.cluster.select = ["L", "V", "I", "F", "M"].map(str::to_owned).to_vec();
    config.smooth.channels.push("numbers".to_owned());
    config.smooth.weighted = true;
    config
}

/// Leaves out the largest sample, which takes longer than all others and differs from them only in
/// size.
const RESIDUES_MAX: usize = 2_000;

/// The samples of up to [`RESIDUES_MAX`] residues, each with a channel whose neighbouring values
/// differ.
fn structures() -> Vec<(String, Structure)> {
    let mut all = samples();
    all.retain(|(_, s)| s.residues.len() <= RESIDUES_MAX);
    for (_, s) in &mut all {
        let value = |row: usize| match row % 11 {
            0 => f32::NAN,
            _ => (row as f32 * 0.37).sin() * 9.0,
        };
        s.channels = vec![Channel {
            name: "numbers".to_owned(),
            values: (0..s.residues.len()).map(value).collect(),
        }];
    }
    all
}

fn engine(residues_a_batch: u32) -> Engine<Features> {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let mut plan = EngineConfig::new(Features::capacity(residues_a_batch));
    plan.buckets.push(Features::capacity(32_768));
    let workload = Features::new(config()).unwrap();
    Engine::new(workload, &[backend], pool, &plan).unwrap()
}

fn compute<'a>(structures: impl IntoIterator<Item = &'a Structure>) -> Vec<FeatureTable> {
    let all: Vec<&Structure> = structures.into_iter().collect();
    tables::tables(&mut engine(2048), all.into_iter())
}

/// The columns of a table, with their declarations.
fn columns(name: TableName, table: &FeatureTable) -> Vec<(ColumnDecl, Column<'_>)> {
    let decls = config().columns(name);
    assert_eq!(decls.len(), table.columns(name).len());
    decls.into_iter().zip(table.columns(name)).collect()
}

fn assert_same_bits(context: &str, found: &FeatureTable, expected: &FeatureTable) {
    for table_name in TableName::ALL {
        let pairs = columns(table_name, found)
            .into_iter()
            .zip(columns(table_name, expected));
        for ((decl, found), (_, expected)) in pairs {
            let row = bits(found)
                .iter()
                .zip(bits(expected))
                .position(|(a, b)| *a != b);
            let name = &decl.name;
            assert!(
                bits(found) == bits(expected),
                "{context}: {name} of {table_name:?} differs from row {row:?} on"
            );
        }
    }
}

fn moved(s: &Structure, to: impl Fn([i32; 3]) -> [i32; 3]) -> Structure {
    let xyz: Vec<[i32; 3]> = s.xyz.iter().map(|&p| to(p)).collect();
    assert!(s.xyz.is_empty() || xyz != s.xyz, "the structure moves");
    Structure { xyz, ..s.clone() }
}

#[test]
fn a_translation_by_lattice_steps_changes_nothing() {
    let samples = structures();
    let expected = compute(samples.iter().map(|(_, s)| s));
    let steps = [
        [1, 0, 0],
        [-1_777, 4_096, 33],
        [71_234_567, -63_000_001, -9_999],
        [-50_000_000, -50_000_000, 50_000_000],
    ];
    for step in steps {
        let by = |p: [i32; 3]| std::array::from_fn(|axis| p[axis] + step[axis]);
        let shifted: Vec<Structure> = samples.iter().map(|(_, s)| moved(s, by)).collect();
        for (((name, _), found), expected) in samples.iter().zip(compute(&shifted)).zip(&expected) {
            assert_same_bits(&format!("{name} by {step:?}"), &found, expected);
        }
    }
}

/// Rotates by a quaternion of any length, and rounds to 0.001 A.
fn rotated(s: &Structure, quaternion: [f64; 4]) -> Structure {
    let length = quaternion.iter().map(|q| q * q).sum::<f64>().sqrt();
    let [w, x, y, z] = quaternion.map(|q| q / length);
    let rows = [
        [
            1.0 - 2.0 * (y * y + z * z),
            2.0 * (x * y - w * z),
            2.0 * (x * z + w * y),
        ],
        [
            2.0 * (x * y + w * z),
            1.0 - 2.0 * (x * x + z * z),
            2.0 * (y * z - w * x),
        ],
        [
            2.0 * (x * z - w * y),
            2.0 * (y * z + w * x),
            1.0 - 2.0 * (x * x + y * y),
        ],
    ];
    moved(s, |p| {
        rows.map(|row| {
            let along = row.iter().zip(p).map(|(r, p)| r * f64::from(p));
            along.sum::<f64>().round() as i32
        })
    })
}

/// The number of rows of a column, of rows that a rotation changes beyond the column's limits, and
/// of rows that it changes at all.
#[derive(Default)]
struct Moved {
    rows: usize,
    beyond: usize,
    any: usize,
}

impl Moved {
    fn add(&mut self, decl: &ColumnDecl, found: Column<'_>, expected: Column<'_>) {
        let changed = bits(found).into_iter().zip(bits(expected));
        self.any += changed.clone().filter(|(a, b)| a != b).count();
        self.rows += changed.len();
        let (Column::Real(found), Column::Real(expected)) = (found, expected) else {
            return;
        };
        let limits = decl.rotation;
        let is_beyond = |&(&a, &b): &(&f32, &f32)| {
            let mut moved = (a - b).abs();
            if decl.unit == "degrees" {
                moved = moved.min(360.0 - moved);
            }
            let allowed = limits.absolute.max(limits.relative * b.abs());
            a.is_nan() != b.is_nan() || moved > allowed
        };
        self.beyond += found.iter().zip(expected).filter(is_beyond).count();
    }
}

#[test]
fn a_rotation_changes_little() {
    let samples = structures();
    let expected = compute(samples.iter().map(|(_, s)| s));
    let quaternions = [
        [0.9, 0.1, -0.3, 0.2],
        [0.1, 0.7, 0.5, -0.6],
        [-0.4, 0.2, 0.9, 0.3],
    ];
    for quaternion in quaternions {
        let turned: Vec<Structure> = samples
            .iter()
            .map(|(_, s)| rotated(s, quaternion))
            .collect();
        let mut moved: BTreeMap<String, (ColumnDecl, Moved)> = BTreeMap::new();
        let mut counts = Moved::default();
        for (found, expected) in compute(&turned).iter().zip(&expected) {
            for table_name in TableName::ALL {
                // Rounded positions add and remove pairs near the limit of a distance or an energy.
                if let RowKind::ResiduePair(_) | RowKind::AtomPair = table_name.decl().rows {
                    continue;
                }
                let pairs = columns(table_name, found)
                    .into_iter()
                    .zip(columns(table_name, expected));
                for ((decl, found), (_, expected)) in pairs {
                    let name = format!("{} of {table_name:?}", decl.name);
                    let entry = moved.entry(name);
                    let (_, tally) = entry.or_insert_with(|| (decl.clone(), Moved::default()));
                    tally.add(&decl, found, expected);
                    if decl.name.starts_with("cn_") || decl.name.starts_with("hse_") {
                        counts.add(&decl, found, expected);
                    }
                }
            }
        }
        assert!(counts.any > 0, "the rotation reaches what is computed");
        assert!(
            counts.any * 200 <= counts.rows,
            "{} of {}",
            counts.any,
            counts.rows
        );
        for (name, (decl, moved)) in moved {
            let wrong = if decl.kind.is_real() {
                moved.beyond
            } else {
                moved.any
            };
            let (allowed, rows) = (decl.rotation.rows_per_thousand as usize, moved.rows);
            assert!(wrong * 1000 <= allowed * rows, "{name}: {wrong} of {rows}");
        }
    }
}

#[test]
fn a_turn_that_keeps_the_lattice_changes_no_contact() {
    let samples = structures();
    let expected = compute(samples.iter().map(|(_, s)| s));
    let turned: Vec<Structure> = samples
        .iter()
        .map(|(_, s)| moved(s, |[x, y, z]| [z, -x, -y]))
        .collect();
    let same = [
        "cluster",
        "clusters",
        "iface",
        "iface_dmin",
        "iface_chain",
        "co",
        "co_relative",
        "cx_mean",
        "cx_max",
        "eigenvector",
        "b_ca",
        "wcn_coincident",
        "rg",
        "rg_ca",
        "auth_asym_id_i",
        "auth_asym_id_j",
        "residues_i",
        "residues_j",
        "contacts",
    ];
    for (found, expected) in compute(&turned).iter().zip(&expected) {
        for table_name in TableName::ALL {
            let pairs = columns(table_name, found)
                .into_iter()
                .zip(columns(table_name, expected));
            for ((decl, found), (_, expected)) in pairs {
                let name = decl.name.as_str();
                if name.starts_with("cn_ca") || name.starts_with("smooth") || same.contains(&name) {
                    assert!(bits(found) == bits(expected), "{name} of {table_name:?}");
                }
            }
        }
    }
}

/// `s` with ubiquitin as one more chain, thousands of A away.
fn with_far_chain(s: &Structure) -> Structure {
    let far = sample("1ubi.pdb");
    let mut to = s.clone();
    let chain_count = s.row_chains().len();
    let loose_start = s.atom_start[s.residues.len()] as usize;
    to.chains.insert(chain_count, far.chains[0].clone());
    for span in &mut to.loose {
        span.chain += u32::from(span.chain as usize >= chain_count);
    }
    for mut residue in far.residues.iter().copied() {
        residue.chain = chain_count as u32;
        for atom in [
            &mut residue.n,
            &mut residue.ca,
            &mut residue.c,
            &mut residue.o,
            &mut residue.cb,
        ] {
            *atom = atom.saturating_add(loose_start as u32);
        }
        to.residues.push(residue);
    }
    let ends = far.atom_start[1..].iter();
    to.atom_start
        .extend(ends.map(|end| end + loose_start as u32));
    let places = far
        .xyz
        .iter()
        .map(|[x, y, z]| [x + 7_000_000, y - 4_000_000, z + 1_234_567]);
    to.xyz.splice(loose_start..loose_start, places);
    to.element
        .splice(loose_start..loose_start, far.element.iter().copied());
    to.class
        .splice(loose_start..loose_start, far.class.iter().copied());
    to.atom_name
        .splice(loose_start..loose_start, far.atom_name.iter().copied());
    to.b_factor
        .splice(loose_start..loose_start, far.b_factor.iter().copied());
    for channel in &mut to.channels {
        // The far chain must not set the scale of fixed-point sums either.
        channel.values.resize(to.residues.len(), 1e30);
    }
    to
}

#[test]
fn a_chain_far_away_changes_only_wcn_and_what_is_of_the_structure() {
    let samples = structures();
    let expected = compute(samples.iter().map(|(_, s)| s));
    let with_far: Vec<Structure> = samples.iter().map(|(_, s)| with_far_chain(s)).collect();
    let tables = compute(&with_far);
    for (((name, s), found), expected) in samples.iter().zip(&tables).zip(&expected) {
        for table_name in [TableName::Residues, TableName::Chains] {
            let rows = match table_name {
                TableName::Residues => s.residues.len(),
                _ => s.row_chains().len(),
            };
            let pairs = columns(table_name, found)
                .into_iter()
                .zip(columns(table_name, expected));
            for ((decl, found), (_, expected)) in pairs {
                let (mut found, expected) = (bits(found), bits(expected));
                if decl.kind == ColumnKind::Chain {
                    // Chains without rows come after the far chain.
                    let chain_count = s.row_chains().len() as u32;
                    let after = found
                        .iter_mut()
                        .filter(|chain| (**chain as i32) > chain_count as i32);
                    after.for_each(|chain| *chain -= 1);
                }
                if decl.name == "wcn" {
                    let real = |bits: u32| f32::from_bits(bits);
                    let near = |(a, b): (&u32, &u32)| {
                        real(*a).is_nan() || (real(*a) - real(*b)).abs() < 1e-5
                    };
                    assert!(found.iter().zip(&expected).all(near), "{name}: wcn");
                    assert!(
                        found[..rows] != expected[..rows],
                        "{name}: wcn has no cutoff"
                    );
                } else {
                    let same = found[..rows] == expected[..rows];
                    assert!(same, "{name}: {} of {table_name:?}", decl.name);
                }
            }
        }
        let table_name = TableName::Structures;
        let areas = |table| {
            bits(
                columns(table_name, table)
                    .into_iter()
                    .find(|(decl, _)| decl.name == "sasa_total")
                    .unwrap()
                    .1,
            )
        };
        assert!(
            areas(found) != areas(expected),
            "{name}: there is more of it"
        );
    }
}

#[test]
fn what_else_is_in_a_batch_changes_nothing() {
    let samples = structures();
    let all: Vec<&Structure> = samples.iter().map(|(_, s)| s).collect();
    let mut alone = engine(32);
    let expected: Vec<FeatureTable> = all
        .iter()
        .map(|&s| tables::tables(&mut alone, std::iter::once(s)).remove(0))
        .collect();
    let count = all.len();
    let orders: [Vec<usize>; 3] = [
        (0..count).collect(),
        (0..count).rev().collect(),
        (0..3 * count).map(|index| index * 7 % count).collect(),
    ];
    for (order, residues) in orders
        .iter()
        .flat_map(|o| [300, 2048, 32_768].map(|r| (o, r)))
    {
        let mut engine = engine(residues);
        let found = tables::tables(&mut engine, order.iter().map(|&index| all[index]));
        let batches = engine.counters().batches;
        assert!(
            residues < 32_768 || batches < order.len() as u64 / 4,
            "batches are shared"
        );
        for (table, &index) in found.iter().zip(order) {
            let context = format!("{} among {} a batch", samples[index].0, residues);
            assert_same_bits(&context, table, &expected[index]);
        }
    }
}
