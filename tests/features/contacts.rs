//! Contacts, exposure and networks of made-up structures against definitions
//! written out naively.

mod interfaces;
mod many;
mod network;
mod pairs;

use crate::definitions::{assert_close, c_alphas, distance2, wcn};
use crate::made_up::structure;
use crate::tables;
use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::features::{
    Column, FeatureConfig, FeatureName, FeatureTable, Features, NULL_COUNT, Setting, TableName,
};
use tapeloop::pipeline::{Engine, EngineConfig};
use tapeloop::structure::{BFactorKind, Channel, LooseSpan, MISSING, Structure};

/// Structures with all kinds of gaps, and what two of them share.
fn made_up() -> Vec<Structure> {
    let mut structures: Vec<_> = (0..12)
        .map(|n| structure([0, 1, 2, 40, 129, 300][n % 6], 100 + n as u64))
        .collect();
    // Two residues at one position, three at another.
    let s = &mut structures[4];
    for (one, other) in [(10, 90), (20, 80), (20, 50)] {
        let (one, other) = (s.residues[one].ca, s.residues[other].ca);
        if one != MISSING && other != MISSING {
            s.xyz[other as usize] = s.xyz[one as usize];
        }
    }
    structures
}

struct Computed {
    config: FeatureConfig,
    tables: Vec<FeatureTable>,
}

impl Computed {
    fn new(config: FeatureConfig, structures: &[Structure]) -> Self {
        let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
        let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
        let workload = Features::new(config.clone()).unwrap();
        let engine_config = EngineConfig::new(Features::capacity(2048));
        let mut engine = Engine::new(workload, &[backend], pool, &engine_config).unwrap();
        let tables = tables::tables(&mut engine, structures.iter());
        Computed { config, tables }
    }

    fn of_features(features: &[FeatureName], structures: &[Structure]) -> Self {
        Computed::new(asking_for(features), structures)
    }

    fn column(&self, structure: usize, table: TableName, name: &str) -> Column<'_> {
        let columns = self.config.columns(table);
        let index = columns.iter().position(|column| column.name == name);
        let index = index.unwrap_or_else(|| panic!("no column {name}"));
        self.tables[structure].column(table, index)
    }

    fn counts(&self, structure: usize, table: TableName, name: &str) -> &[i32] {
        match self.column(structure, table, name) {
            Column::Count(values) => values,
            Column::Real(_) => panic!("{name} is no count"),
        }
    }

    fn reals(&self, structure: usize, table: TableName, name: &str) -> &[f32] {
        match self.column(structure, table, name) {
            Column::Real(values) => values,
            Column::Count(_) => panic!("{name} is no real"),
        }
    }
}

fn asking_for(features: &[FeatureName]) -> FeatureConfig {
    FeatureConfig {
        features: features.to_vec(),
        ..FeatureConfig::default()
    }
}

#[test]
fn contact_numbers_may_leave_other_chains_out() {
    let structures = made_up();
    let mut config = asking_for(&[FeatureName::ContactNumber]);
    let own_chain = Setting::Choice("own", &["all", "own"]);
    let name = FeatureName::ContactNumber;
    config
        .set(name, "contact_number.chains", &own_chain)
        .unwrap();
    assert!(
        config
            .settings(name)
            .contains(&("contact_number.chains", own_chain))
    );
    let computed = Computed::new(config, &structures);
    for (n, s) in structures.iter().enumerate() {
        let ca = c_alphas(s);
        let near = |i: usize, j: usize| {
            let same_chain = s.residues[i].chain == s.residues[j].chain;
            let pair = ca[i].zip(ca[j]).filter(|_| same_chain && i != j);
            pair.is_some_and(|(a, b)| distance2(a, b) < 10_000i64.pow(2))
        };
        let count = |i: usize| match ca[i] {
            Some(_) => (0..ca.len()).filter(|&j| near(i, j)).count() as i32,
            None => NULL_COUNT,
        };
        let expected: Vec<i32> = (0..ca.len()).map(count).collect();
        assert_eq!(
            computed.counts(n, TableName::Residues, "cn_ca_10"),
            expected
        );
    }
}

/// N turned about the axis from C-alpha to C, by -120 degrees, with the rotation
/// matrix that Biopython makes.
fn glycine_direction(n: [f64; 3], c: [f64; 3]) -> [f64; 3] {
    let norm = c.iter().map(|x| x * x).sum::<f64>().sqrt();
    let [x, y, z] = c.map(|coordinate| coordinate / norm);
    let (sine, cosine) = (-120f64).to_radians().sin_cos();
    let t = 1.0 - cosine;
    let rotation = [
        [
            t * x * x + cosine,
            t * x * y - sine * z,
            t * x * z + sine * y,
        ],
        [
            t * x * y + sine * z,
            t * y * y + cosine,
            t * y * z - sine * x,
        ],
        [
            t * x * z - sine * y,
            t * y * z + sine * x,
            t * z * z + cosine,
        ],
    ];
    rotation.map(|row| (0..3).map(|k| row[k] * n[k]).sum())
}

#[test]
fn half_spheres_open_towards_the_c_beta() {
    let mut structures = made_up();
    for s in &mut structures {
        // Readers give glycine its letter.
        for residue in &mut s.residues {
            if &residue.parent_comp_id == b"GLY     " {
                residue.aa = b'G';
            }
        }
    }
    let computed = Computed::of_features(&[FeatureName::HseB], &structures);
    let (mut glycines, mut nulls) = (0, 0);
    for (n, s) in structures.iter().enumerate() {
        let ca = c_alphas(s);
        let from = |origin: [i32; 3], atom: u32| {
            let position = s.position(atom)?;
            Some([0, 1, 2].map(|axis| f64::from(position[axis] - origin[axis])))
        };
        let expected = |i: usize| -> Option<[i32; 2]> {
            let (here, residue) = (ca[i]?, &s.residues[i]);
            let direction = if residue.aa == b'G' {
                glycines += 1;
                glycine_direction(from(here, residue.n)?, from(here, residue.c)?)
            } else {
                from(here, residue.cb)?
            };
            let mut sides = [0, 0];
            for (j, other) in ca.iter().enumerate() {
                let near = |other: &[i32; 3]| j != i && distance2(here, *other) < 12_000i64.pow(2);
                if let Some(other) = other.filter(near) {
                    let along: f64 = (0..3)
                        .map(|axis| f64::from(other[axis] - here[axis]) * direction[axis])
                        .sum();
                    sides[usize::from(along <= 0.0)] += 1;
                }
            }
            Some(sides)
        };
        let expected: Vec<_> = (0..ca.len()).map(expected).collect();
        nulls += expected.iter().filter(|sides| sides.is_none()).count();
        for (side, name) in ["hse_b_up", "hse_b_down"].into_iter().enumerate() {
            let expected: Vec<i32> = expected
                .iter()
                .map(|sides| sides.map_or(NULL_COUNT, |sides| sides[side]))
                .collect();
            assert_eq!(computed.counts(n, TableName::Residues, name), expected);
        }
    }
    assert!(glycines > 20 && nulls > 20);
}

#[test]
fn the_weighted_contact_number_leaves_out_and_counts_what_is_in_one_place() {
    let mut structures = made_up();
    // A chain so far away that its distances do not fit single precision.
    let mut far = structure(200, 5);
    for position in far.xyz.iter_mut().skip(300) {
        position[0] += 90_000_000;
    }
    structures.push(far);
    let computed = Computed::of_features(&[FeatureName::Wcn], &structures);
    let mut pairs = 0;
    for (n, s) in structures.iter().enumerate() {
        let (sums, coincident) = wcn(s);
        let found = computed.reals(n, TableName::Residues, "wcn");
        assert_close("wcn", found, &sums, 1e-5);
        let found = computed.counts(n, TableName::Structures, "wcn_coincident");
        assert_eq!(found, [coincident]);
        pairs += coincident;
    }
    assert!(pairs >= 3);
}

/// Atoms of residues, each with its residue.
fn atoms_of_rows(s: &Structure) -> Vec<(usize, [i32; 3])> {
    let spans = s.atom_start.windows(2).enumerate();
    let atoms = spans.flat_map(|(residue, span)| (span[0]..span[1]).map(move |a| (residue, a)));
    atoms
        .map(|(residue, atom)| (residue, s.xyz[atom as usize]))
        .collect()
}

#[test]
fn protrusion_compares_the_free_with_the_filled_volume() {
    let mut structures = made_up();
    // Two clouds so far apart that their cells share indices.
    let mut far = structure(150, 8);
    for position in far.xyz.iter_mut().skip(200) {
        position[2] -= 70_000_000;
    }
    structures.push(far);
    let computed = Computed::of_features(&[FeatureName::Protrusion], &structures);
    for (n, s) in structures.iter().enumerate() {
        let mut cx = vec![Vec::new(); s.residues.len()];
        for (residue, atom) in atoms_of_rows(s) {
            let near = s
                .xyz
                .iter()
                .filter(|b| distance2(atom, **b) < 10_000i64.pow(2));
            let filled = near.count() as f64 * 20.1;
            let sphere = 4.0 / 3.0 * std::f64::consts::PI * 1000.0;
            cx[residue].push((sphere - filled) / filled);
        }
        let mean = |cx: &Vec<f64>| cx.iter().sum::<f64>() / cx.len() as f64;
        let expected: Vec<f64> = cx.iter().map(mean).collect();
        let found = computed.reals(n, TableName::Residues, "cx_mean");
        assert_close("cx_mean", found, &expected, 1e-6);
        let largest = |cx: &Vec<f64>| cx.iter().copied().fold(f64::NAN, f64::max);
        let expected: Vec<f64> = cx.iter().map(largest).collect();
        let found = computed.reals(n, TableName::Residues, "cx_max");
        assert_close("cx_max", found, &expected, 1e-6);
    }
}

#[test]
fn contact_order_is_of_residues_in_contact_within_a_chain() {
    let by_sequence = asking_for(&[FeatureName::ContactOrder]);
    let mut by_rows = by_sequence.clone();
    let rows = Setting::Choice("res_index", &["sequence", "res_index"]);
    let (name, key) = (FeatureName::ContactOrder, "contact_order.separation");
    by_rows.set(name, key, &rows).unwrap();
    assert!(by_rows.settings(name).contains(&(key, rows)));
    assert_contact_orders(by_sequence, true);
    assert_contact_orders(by_rows, false);
}

fn assert_contact_orders(config: FeatureConfig, in_sequence: bool) {
    let structures = made_up();
    let computed = Computed::new(config, &structures);
    let mut contacts = 0;
    for (n, s) in structures.iter().enumerate() {
        let atoms = atoms_of_rows(s);
        let position = |i: usize| match s.residues[i].sequence_position {
            Some(position) if in_sequence => i64::from(position),
            _ => i as i64,
        };
        let mut sums = vec![(0, 0); s.residues.len()];
        for (i, a) in &atoms {
            for (j, b) in &atoms {
                let same_chain = s.residues[*i].chain == s.residues[*j].chain;
                if i != j && same_chain && distance2(*a, *b) < 6_000i64.pow(2) {
                    sums[*i].0 += position(*i).abs_diff(position(*j)) as usize;
                    sums[*i].1 += 1;
                }
            }
        }
        let mean = |(sum, count): (usize, usize)| sum as f64 / count as f64;
        let expected: Vec<f64> = sums.iter().map(|sum| mean(*sum)).collect();
        let found = computed.reals(n, TableName::Residues, "co");
        assert_close("co", found, &expected, 1e-6);

        let relative = |is_own: &dyn Fn(u32) -> bool| {
            let rows = s.residues.iter().zip(&sums);
            let rows_of_chain: Vec<_> = rows.filter(|(r, _)| is_own(r.chain)).collect();
            let sum = |(sum, count): (usize, usize), (_, next): &(_, &(usize, usize))| {
                (sum + next.0, count + next.1)
            };
            mean(rows_of_chain.iter().fold((0, 0), sum)) / rows_of_chain.len() as f64
        };
        let chains = 0..s.chains.len() as u32;
        let expected: Vec<f64> = chains.map(|chain| relative(&|c| c == chain)).collect();
        let found = computed.reals(n, TableName::Chains, "co_relative");
        assert_close("co_relative", found, &expected, 1e-6);
        let found = computed.reals(n, TableName::Structures, "co_relative");
        assert_close("co_relative", found, &[relative(&|_| true)], 1e-6);
        contacts += sums.iter().map(|(_, count)| count).sum::<usize>();
    }
    assert!(contacts > 1000);
}

#[test]
fn a_far_away_chain_changes_only_what_sums_over_the_model() {
    let alone = structure(120, 21);
    let mut with_far = alone.clone();
    // Another chain, of its own shape, 10,000 A away; its atoms come last among
    // those of residues.
    let far = structure(90, 22);
    let residue_atom_count = *alone.atom_start.last().unwrap() as usize;
    let loose = (
        with_far.xyz.split_off(residue_atom_count),
        with_far.element.split_off(residue_atom_count),
        with_far.b_factor.split_off(residue_atom_count),
        with_far.class.split_off(residue_atom_count),
    );
    let moved = |p: &[i32; 3]| [p[0] + 10_000_000, p[1], p[2]];
    let far_atoms = *far.atom_start.last().unwrap() as usize;
    with_far.xyz.extend(far.xyz[..far_atoms].iter().map(moved));
    with_far.element.extend(&far.element[..far_atoms]);
    with_far.b_factor.extend(&far.b_factor[..far_atoms]);
    with_far.class.extend(&far.class[..far_atoms]);
    with_far.xyz.extend(loose.0);
    with_far.element.extend(loose.1);
    with_far.b_factor.extend(loose.2);
    with_far.class.extend(loose.3);
    with_far.chains.push(with_far.chains[0].clone());
    let shifted = |atom: u32| {
        if atom == MISSING {
            atom
        } else {
            atom + residue_atom_count as u32
        }
    };
    for residue in &far.residues {
        let mut residue = *residue;
        residue.chain = 3;
        for atom in [
            &mut residue.n,
            &mut residue.ca,
            &mut residue.c,
            &mut residue.cb,
        ] {
            *atom = shifted(*atom);
        }
        with_far.residues.push(residue);
    }
    let starts = far.atom_start[1..].iter().map(|&start| shifted(start));
    with_far.atom_start.extend(starts);

    let mut config = FeatureConfig::default();
    config.cluster.select = vec!["A".to_owned()];
    let computed = Computed::new(config, &[alone.clone(), with_far]);
    let rows = alone.residues.len();
    let columns = computed.config.columns(TableName::Residues);
    let mut changed = Vec::new();
    for (column, values) in columns
        .iter()
        .zip(computed.tables[0].columns(TableName::Residues))
    {
        let with_far = computed.column(1, TableName::Residues, &column.name);
        if tables::bits(values)[..rows] != tables::bits(with_far)[..rows] {
            changed.push(column.name.as_str());
        }
    }
    assert_eq!(changed, ["wcn"]);
}

/// 100,000 C-alphas along a line, 1.9 A apart, all of one chain.
fn long_line() -> Structure {
    let count = 100_000;
    let mut s = structure(count, 0);
    s.xyz = (0..count as i32)
        .map(|i| [i * 1900 - 95_000_000, 0, 0])
        .collect();
    (s.element, s.b_factor) = (vec![6; count], vec![1.5; count]);
    s.class.truncate(count);
    s.loose.clear();
    s.atom_start = (0..=count as u32).collect();
    for (index, residue) in s.residues.iter_mut().enumerate() {
        (residue.ca, residue.chain) = (index as u32, 0);
        (residue.n, residue.c, residue.cb) = (MISSING, MISSING, MISSING);
    }
    s
}

#[test]
fn a_chain_of_100000_residues_is_right() {
    let s = long_line();
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let mut config = asking_for(&[
        FeatureName::InterfaceResidues,
        FeatureName::Protrusion,
        FeatureName::ContactOrder,
        FeatureName::Centrality,
        FeatureName::Cluster,
        FeatureName::Smooth,
    ]);
    config.cluster.select = vec!["A".to_owned()];
    config.centrality.steps = 50;
    let workload = Features::new(config.clone()).unwrap();
    let mut engine_config = EngineConfig::new(Features::capacity(131_072));
    engine_config.slots = 1;
    let mut engine = Engine::new(workload, &[backend], pool, &engine_config).unwrap();
    let tables = tables::tables(&mut engine, std::iter::once(&s));
    let computed = Computed { config, tables };
    let residues = TableName::Residues;
    let count = s.residues.len();
    let ends = |i: usize| i.min(count - 1 - i);
    let cx = computed.reals(0, residues, "cx_mean");
    let filled = |i: usize| (6 + ends(i).min(5)) as f64 * 20.1;
    let sphere = 4.0 / 3.0 * std::f64::consts::PI * 1000.0;
    let expected: Vec<f64> = (0..count)
        .map(|i| (sphere - filled(i)) / filled(i))
        .collect();
    assert_close("cx_mean", cx, &expected, 1e-6);
    let co = |i: usize| {
        let apart = (i.saturating_sub(3)..count.min(i + 4)).map(|j| i.abs_diff(j));
        let apart: Vec<usize> = apart.filter(|apart| *apart > 0).collect();
        apart.iter().sum::<usize>() as f64 / apart.len() as f64
    };
    let expected: Vec<f64> = (0..count).map(co).collect();
    assert_close("co", computed.reals(0, residues, "co"), &expected, 1e-6);
    assert!(
        computed
            .reals(0, residues, "smooth_b_ca")
            .iter()
            .all(|b| *b == 1.5)
    );
    assert!(
        computed
            .counts(0, residues, "cluster")
            .iter()
            .all(|c| *c == 0)
    );
    assert!(
        computed
            .reals(0, residues, "iface_dmin")
            .iter()
            .all(|d| d.is_nan())
    );
    // Eigenvalues of so long a line are the same within 1e-6.
    let v = computed.reals(0, residues, "eigenvector");
    assert!(v.iter().all(|v| v.is_nan()));
}
