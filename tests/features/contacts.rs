//! Contacts, exposure and networks of made-up structures against definitions
//! written out naively.

use crate::tables;

use crate::made_up::structure;
use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::features::{
    Column, FeatureConfig, FeatureName, FeatureTable, Features, NULL_COUNT, Setting, TableName,
};
use tapeloop::pipeline::{Engine, EngineConfig};
use tapeloop::structure::{Channel, LooseSpan, MISSING, Structure};

/// Structures with all kinds of gaps, and what two of them share.
fn made_up() -> Vec<Structure> {
    let mut structures: Vec<_> = (0..12)
        .map(|n| structure([0, 1, 2, 40, 129, 300][n % 6], 100 + n as u64))
        .collect();
    // Two residues in one place, three in another.
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

    fn of(features: &[FeatureName], structures: &[Structure]) -> Self {
        Computed::new(asking_for(features), structures)
    }

    fn column(&self, structure: usize, table: TableName, name: &str) -> &Column {
        let columns = self.config.columns(table);
        let at = columns.iter().position(|column| column.name == name);
        let at = at.unwrap_or_else(|| panic!("no column {name}"));
        let results = &self.tables[structure];
        match table {
            TableName::Residues => &results.residues[at],
            TableName::Chains => &results.chains[at],
            TableName::Structures => &results.structure[at],
        }
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

fn distance2(a: [i32; 3], b: [i32; 3]) -> i64 {
    (0..3)
        .map(|axis| (i64::from(a[axis]) - i64::from(b[axis])).pow(2))
        .sum()
}

fn c_alphas(s: &Structure) -> Vec<Option<[i32; 3]>> {
    s.residues.iter().map(|r| s.position(r.ca)).collect()
}

fn assert_close(what: &str, found: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(*found) - expected).abs();
        let close = error <= tolerance * expected.abs().max(1e-3);
        let null = found.is_nan() && expected.is_nan();
        assert!(close || null, "{what} of {i}: {found}, expected {expected}");
    }
}

#[test]
fn contact_numbers_may_leave_other_chains_out() {
    let structures = made_up();
    let mut config = asking_for(&[FeatureName::ContactNumber]);
    let own = Setting::Choice("own", &["all", "own"]);
    let name = FeatureName::ContactNumber;
    config.set(name, "contact_number.chains", &own).unwrap();
    assert!(
        config
            .settings(name)
            .contains(&("contact_number.chains", own))
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
    let computed = Computed::of(&[FeatureName::HseB], &structures);
    let (mut glycines, mut nulls) = (0, 0);
    for (n, s) in structures.iter().enumerate() {
        let ca = c_alphas(s);
        let from = |origin: [i32; 3], atom: u32| {
            let position = s.position(atom)?;
            Some([0, 1, 2].map(|axis| f64::from(position[axis] - origin[axis])))
        };
        let expected = |i: usize| -> Option<[i32; 2]> {
            let (own, residue) = (ca[i]?, &s.residues[i]);
            let direction = if residue.aa == b'G' {
                glycines += 1;
                glycine_direction(from(own, residue.n)?, from(own, residue.c)?)
            } else {
                from(own, residue.cb)?
            };
            let mut sides = [0, 0];
            for (j, other) in ca.iter().enumerate() {
                let near = |other: &[i32; 3]| j != i && distance2(own, *other) < 12_000i64.pow(2);
                if let Some(other) = other.filter(near) {
                    let along: f64 = (0..3)
                        .map(|axis| f64::from(other[axis] - own[axis]) * direction[axis])
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

fn wcn(s: &Structure) -> (Vec<f64>, i32) {
    let ca = c_alphas(s);
    let mut coincident = 0;
    let mut sum = |a: [i32; 3]| -> f64 {
        let all = ca.iter().flatten().map(|b| distance2(a, *b));
        coincident += all.clone().filter(|d2| *d2 == 0).count() as i32 - 1;
        all.filter(|d2| *d2 > 0).map(|d2| 1e6 / d2 as f64).sum()
    };
    let sums = ca.iter().map(|a| a.map_or(f64::NAN, &mut sum)).collect();
    (sums, coincident / 2)
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
    let computed = Computed::of(&[FeatureName::Wcn], &structures);
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
    // Two clouds so far apart that their cells share places.
    let mut far = structure(150, 8);
    for position in far.xyz.iter_mut().skip(200) {
        position[2] -= 70_000_000;
    }
    structures.push(far);
    let computed = Computed::of(&[FeatureName::Protrusion], &structures);
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
    let structures = made_up();
    let computed = Computed::of(&[FeatureName::ContactOrder], &structures);
    let mut contacts = 0;
    for (n, s) in structures.iter().enumerate() {
        let atoms = atoms_of_rows(s);
        let mut sums = vec![(0, 0); s.residues.len()];
        for (i, a) in &atoms {
            for (j, b) in &atoms {
                let same_chain = s.residues[*i].chain == s.residues[*j].chain;
                if i != j && same_chain && distance2(*a, *b) < 6_000i64.pow(2) {
                    sums[*i].0 += i.abs_diff(*j);
                    sums[*i].1 += 1;
                }
            }
        }
        let mean = |(sum, count): (usize, usize)| sum as f64 / count as f64;
        let expected: Vec<f64> = sums.iter().map(|own| mean(*own)).collect();
        let found = computed.reals(n, TableName::Residues, "co");
        assert_close("co", found, &expected, 1e-6);

        let relative = |is_own: &dyn Fn(u32) -> bool| {
            let rows = s.residues.iter().zip(&sums);
            let own: Vec<_> = rows.filter(|(r, _)| is_own(r.chain)).collect();
            let sum = |(sum, count): (usize, usize), (_, own): &(_, &(usize, usize))| {
                (sum + own.0, count + own.1)
            };
            mean(own.iter().fold((0, 0), sum)) / own.len() as f64
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

/// The nearest atom of another chain: squared distance and chain.
fn nearest_chains(s: &Structure) -> Vec<Option<(i64, u32)>> {
    let of_rows = atoms_of_rows(s);
    let chains_of_rows = of_rows.iter().map(|(row, _)| s.residues[*row].chain);
    let of_span = |span: &LooseSpan| std::iter::repeat_n(span.chain, span.atom_count as usize);
    let chains: Vec<u32> = chains_of_rows
        .chain(s.loose.iter().flat_map(of_span))
        .collect();
    assert_eq!(chains.len(), s.xyz.len());
    let mut nearest: Vec<Option<(i64, u32)>> = vec![None; s.residues.len()];
    for (row, a) in of_rows {
        for (b, &chain) in s.xyz.iter().zip(&chains) {
            if chain != s.residues[row].chain {
                let found = (distance2(a, *b), chain);
                nearest[row] = Some(nearest[row].map_or(found, |best| best.min(found)));
            }
        }
    }
    let reach = 12_000i64.pow(2);
    nearest
        .into_iter()
        .map(|found| found.filter(|(d2, _)| *d2 < reach))
        .collect()
}

#[test]
fn an_interface_is_where_another_chain_is_near() {
    let mut structures = made_up();
    for s in &mut structures {
        // Chains of stretches of 20, and a line of them that thins out.
        for (index, residue) in s.residues.iter_mut().enumerate() {
            residue.chain = (index / 20 % 3) as u32;
        }
        for (index, position) in s.xyz.iter_mut().enumerate() {
            position[0] += index as i32 / 60 * (index as i32 / 10 * 500);
        }
    }
    // Equally near to two chains, of which the first is meant.
    let mut tie = structure(3, 1);
    tie.xyz = vec![[0, 0, 0], [4_000, 0, 0], [0, -4_000, 0]];
    (tie.element, tie.b_factor) = (vec![6; 3], vec![0.0; 3]);
    tie.class.truncate(3);
    tie.loose.clear();
    tie.atom_start = vec![0, 1, 2, 3];
    for (index, chain) in [0, 2, 1].into_iter().enumerate() {
        let residue = &mut tie.residues[index];
        (residue.chain, residue.ca) = (chain, index as u32);
        (residue.n, residue.c, residue.cb) = (MISSING, MISSING, MISSING);
    }
    structures.push(tie);
    let computed = Computed::of(&[FeatureName::Iface], &structures);
    let (mut near, mut between, mut none) = (0, 0, 0);
    for (n, s) in structures.iter().enumerate() {
        let expected = nearest_chains(s);
        let distance = |found: &Option<(i64, u32)>| {
            found.map_or(f64::NAN, |(d2, _)| (d2 as f64).sqrt() / 1000.0)
        };
        let distances: Vec<f64> = expected.iter().map(distance).collect();
        let found = computed.reals(n, TableName::Residues, "iface_dmin");
        assert_close("iface_dmin", found, &distances, 1e-6);
        let is_near = |found: &Option<(i64, u32)>| found.is_some_and(|(d2, _)| d2 < 25_000_000);
        let flags: Vec<i32> = expected.iter().map(|f| i32::from(is_near(f))).collect();
        assert_eq!(computed.counts(n, TableName::Residues, "iface"), flags);
        let chains: Vec<i32> = expected
            .iter()
            .map(|found| found.map_or(NULL_COUNT, |(_, chain)| chain as i32))
            .collect();
        let found = computed.counts(n, TableName::Residues, "iface_chain");
        assert_eq!(found, chains);
        near += flags.iter().sum::<i32>();
        between += chains.iter().filter(|chain| **chain >= 0).count() as i32;
        none += chains.iter().filter(|chain| **chain < 0).count() as i32;
    }
    assert!(
        near > 20 && between > near && none > 20,
        "{near} {between} {none}"
    );
    let tie = structures.len() - 1;
    let chain = computed.counts(tie, TableName::Residues, "iface_chain");
    assert_eq!(chain, [1, 0, 0]);
}

#[test]
fn what_other_chains_bury_is_the_area_of_the_chain_alone_less_that_in_the_model() {
    let mut s = structure(150, 31);
    let of_rows = *s.atom_start.last().unwrap() as usize;
    s.xyz.truncate(of_rows);
    s.element.truncate(of_rows);
    s.b_factor.truncate(of_rows);
    s.class.truncate(of_rows);
    s.loose.clear();
    let alone = |chain: u32| {
        let mut own = s.clone();
        let atoms = atoms_of_rows(&s).into_iter();
        let kept: Vec<bool> = atoms
            .map(|(row, _)| s.residues[row].chain == chain)
            .collect();
        let mut keep = kept.iter();
        own.xyz.retain(|_| *keep.next().unwrap());
        let mut keep = kept.iter();
        own.class.retain(|_| *keep.next().unwrap());
        own.element.truncate(own.xyz.len());
        own.b_factor.truncate(own.xyz.len());
        own.atom_start = vec![0];
        own.residues.retain(|residue| residue.chain == chain);
        for (row, span) in s.atom_start.windows(2).enumerate() {
            if s.residues[row].chain == chain {
                let end = own.atom_start.last().unwrap() + span[1] - span[0];
                own.atom_start.push(end);
            }
        }
        own
    };
    let structures = [s.clone(), alone(0), alone(1), alone(2)];
    let computed = Computed::of(&[FeatureName::Iface, FeatureName::Sasa], &structures);
    let in_model = computed.reals(0, TableName::Residues, "sasa");
    let deltas = computed.reals(0, TableName::Residues, "sasa_delta");
    let mut alone = [1, 2, 3].map(|n| computed.reals(n, TableName::Residues, "sasa").iter());
    for (row, residue) in s.residues.iter().enumerate() {
        let alone = alone[residue.chain as usize].next().unwrap();
        let expected = alone - in_model[row];
        assert!(
            (deltas[row] - expected).abs() < 1e-3,
            "{row}: {}, {expected}",
            deltas[row]
        );
    }
    assert!(deltas.iter().filter(|delta| **delta > 1.0).count() > 50);
}

#[test]
fn an_interface_is_sought_no_farther_than_12_angstrom() {
    let mut config = asking_for(&[FeatureName::Iface]);
    config.iface.cutoff = tapeloop::features::Cutoff::from_angstrom(12.001).unwrap();
    let error = Features::new(config).err().unwrap();
    assert!(error.to_string().contains("iface.cutoff"));
}

fn near(a: Option<[i32; 3]>, b: Option<[i32; 3]>, milli: i64) -> bool {
    a.zip(b)
        .is_some_and(|(a, b)| distance2(a, b) < milli.pow(2))
}

/// Steps of A + I over the residues of a chain, and the residual.
fn power_iteration(ca: &[[i32; 3]]) -> (Vec<f64>, f64) {
    let n = ca.len();
    let joined = |i: usize, j: usize| i != j && near(Some(ca[i]), Some(ca[j]), 8000);
    let image = |v: &[f64]| -> Vec<f64> {
        let row = |i: usize| (0..n).filter(|&j| joined(i, j)).map(|j| v[j]).sum();
        (0..n).map(row).collect()
    };
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let mut v = vec![1.0 / (n as f64).sqrt(); n];
    for _ in 0..200 {
        let next: Vec<f64> = image(&v).iter().zip(&v).map(|(a, b)| a + b).collect();
        let length = norm(&next);
        v = next.iter().map(|x| x / length).collect();
    }
    let image = image(&v);
    let eigenvalue: f64 = image.iter().zip(&v).map(|(a, b)| a * b).sum();
    let rest: Vec<f64> = image
        .iter()
        .zip(&v)
        .map(|(a, b)| a - eigenvalue * b)
        .collect();
    (v, norm(&rest))
}

#[test]
fn centrality_is_the_eigenvector_after_so_many_steps() {
    let mut structures = made_up();
    // So dense that contacts do not fit a list.
    let mut dense = structure(120, 9);
    for position in &mut dense.xyz {
        *position = position.map(|coordinate| coordinate / 3);
    }
    structures.push(dense);
    // A chain without a C-alpha.
    let mut bare = structure(30, 2);
    for residue in bare
        .residues
        .iter_mut()
        .filter(|residue| residue.chain == 1)
    {
        residue.ca = MISSING;
    }
    structures.push(bare);
    let computed = Computed::of(&[FeatureName::Centrality], &structures);
    let mut most = 0;
    for (n, s) in structures.iter().enumerate() {
        let ca = c_alphas(s);
        let mut expected = vec![f64::NAN; ca.len()];
        let mut residuals = Vec::new();
        for chain in 0..s.chains.len() {
            let of_chain = |i: &usize| s.residues[*i].chain as usize == chain && ca[*i].is_some();
            let rows: Vec<usize> = (0..ca.len()).filter(of_chain).collect();
            let own: Vec<_> = rows.iter().filter_map(|&i| ca[i]).collect();
            let (vector, residual) = power_iteration(&own);
            residuals.push(if own.is_empty() { f64::NAN } else { residual });
            rows.iter().zip(vector).for_each(|(&i, v)| expected[i] = v);
            let degree = |a: &[i32; 3]| {
                own.iter()
                    .filter(|b| near(Some(*a), Some(**b), 8000))
                    .count()
            };
            most = most.max(own.iter().map(degree).max().unwrap_or(0));
        }
        let found = computed.reals(n, TableName::Residues, "eigenvector");
        assert_close("eigenvector", found, &expected, 1e-4);
        let found = computed.reals(n, TableName::Chains, "eigenvector_residual");
        for (found, expected) in found.iter().zip(residuals) {
            let null = found.is_nan() && expected.is_nan();
            assert!(
                null || (f64::from(*found) - expected).abs() < 1e-6,
                "{found} {expected}"
            );
        }
    }
    assert!(most > 32, "{most} contacts fit a list");
}

fn selecting(select: &[&str]) -> FeatureConfig {
    let mut config = asking_for(&[FeatureName::Cluster]);
    let texts = select.iter().map(|name| (*name).to_owned()).collect();
    config
        .set(
            FeatureName::Cluster,
            "cluster.select",
            &Setting::Texts(texts),
        )
        .unwrap();
    config
}

#[test]
fn clusters_are_connected_components_of_selected_residues() {
    let mut structures = made_up();
    for s in &mut structures {
        for (index, residue) in s.residues.iter_mut().enumerate() {
            let (aa, parent, name) = match index * 7 % 13 {
                0 => (b'H', b"HIS     ", b"HIS     "),
                1 => (b'M', b"MET     ", b"MSE     "),
                2 => (b'C', b"CYS     ", b"CSO     "),
                _ => (b'A', b"ALA     ", b"ALA     "),
            };
            (residue.aa, residue.parent_comp_id, residue.comp_id) = (aa, *parent, *name);
        }
    }
    // A letter, a name of its own, and a parent's.
    let computed = Computed::new(selecting(&["H", "MSE", "CYS"]), &structures);
    let nothing = Computed::new(selecting(&["W"]), &structures);
    let (mut clusters, mut largest) = (0, 0);
    for (n, s) in structures.iter().enumerate() {
        let ca = c_alphas(s);
        let chosen = |i: usize| b"HMC".contains(&s.residues[i].aa) && ca[i].is_some();
        let mut expected = vec![NULL_COUNT; ca.len()];
        let mut count = 0;
        for first in 0..ca.len() {
            if !chosen(first) || expected[first] != NULL_COUNT {
                continue;
            }
            let mut stack = vec![first];
            expected[first] = count;
            let mut size = 0;
            while let Some(i) = stack.pop() {
                size += 1;
                for j in 0..ca.len() {
                    if chosen(j) && expected[j] == NULL_COUNT && near(ca[i], ca[j], 8000) {
                        expected[j] = count;
                        stack.push(j);
                    }
                }
            }
            largest = largest.max(size);
            count += 1;
        }
        assert_eq!(computed.counts(n, TableName::Residues, "cluster"), expected);
        assert_eq!(
            computed.counts(n, TableName::Structures, "clusters"),
            [count]
        );
        let in_chain = |chain: usize| {
            let of_chain = |i: &usize| s.residues[*i].chain as usize == chain;
            let own = (0..ca.len()).filter(of_chain).map(|i| expected[i]);
            let mut own: Vec<i32> = own.filter(|&cluster| cluster != NULL_COUNT).collect();
            own.sort_unstable();
            own.dedup();
            own.len() as i32
        };
        let expected: Vec<i32> = (0..s.chains.len()).map(in_chain).collect();
        assert_eq!(computed.counts(n, TableName::Chains, "clusters"), expected);
        assert_eq!(nothing.counts(n, TableName::Structures, "clusters"), [0]);
        clusters += count;
    }
    assert!(clusters > 15 && largest > 10, "{clusters} {largest}");
}

#[test]
fn clusters_need_a_selection_that_names_residues() {
    let refusal = |config: FeatureConfig| Features::new(config).err().map(|e| e.to_string());
    let message = refusal(selecting(&[])).unwrap();
    assert!(
        message.contains("cluster has nothing to compute"),
        "{message}"
    );
    assert!(message.contains("set cluster.select"), "{message}");
    let message = refusal(selecting(&["H", "his"])).unwrap();
    assert!(message.contains("\"his\""), "{message}");
    assert!(refusal(FeatureConfig::default()).is_none());
    let of_all = FeatureConfig::default().columns(TableName::Residues);
    assert!(of_all.iter().all(|column| column.name != "cluster"));
}

#[test]
fn channels_are_smoothed_over_contacts() {
    let mut structures = made_up();
    for s in &mut structures {
        let values = (0..s.residues.len()).map(|i| match i % 9 {
            4 => f32::NAN,
            _ => (i as f32 * 0.731).sin() * 1e-3,
        });
        s.channels = vec![Channel {
            name: "conservation".to_owned(),
            values: values.collect(),
        }];
    }
    let of_none = structure(50, 77);
    structures.push(of_none);
    for weighted in [false, true] {
        let mut config = asking_for(&[FeatureName::Smooth]);
        config.smooth.channels = vec!["b_ca".to_owned(), "conservation".to_owned()];
        config.smooth.weighted = weighted;
        let computed = Computed::new(config, &structures);
        for (n, s) in structures.iter().enumerate() {
            let ca = c_alphas(s);
            let b = |i: usize| s.b_factor.get(s.residues[i].ca as usize).copied();
            let conservation = |i: usize| s.channels.first().map(|own| own.values[i]);
            let smoothed = |value: &dyn Fn(usize) -> Option<f32>| -> Vec<f64> {
                let mean = |i: usize| {
                    let (mut sum, mut weights) = (0.0, 0.0);
                    for j in (0..ca.len()).filter(|&j| j != i && near(ca[i], ca[j], 10_000)) {
                        let d2 = distance2(ca[i].unwrap(), ca[j].unwrap());
                        let Some(x) = value(j).filter(|x| !x.is_nan()) else {
                            continue;
                        };
                        let weight = if weighted {
                            1.0 / (d2 as f64).sqrt()
                        } else {
                            1.0
                        };
                        if weight.is_finite() {
                            sum += weight * f64::from(x);
                            weights += weight;
                        }
                    }
                    sum / weights
                };
                (0..ca.len()).map(mean).collect()
            };
            let found = computed.reals(n, TableName::Residues, "smooth_b_ca");
            assert_close("smooth_b_ca", found, &smoothed(&b), 1e-6);
            let found = computed.reals(n, TableName::Residues, "smooth_conservation");
            // Sums of both signs may come near zero.
            for (found, expected) in found.iter().zip(smoothed(&conservation)) {
                let null = found.is_nan() && expected.is_nan();
                assert!(
                    null || (f64::from(*found) - expected).abs() < 1e-9,
                    "{found} {expected}"
                );
            }
        }
    }
}

#[test]
fn a_channel_that_does_not_fit_its_structure_is_refused() {
    let mut s = structure(20, 1);
    s.channels = vec![Channel {
        name: "conservation".to_owned(),
        values: vec![1.0; 19],
    }];
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let workload = Features::new(asking_for(&[FeatureName::Smooth])).unwrap();
    let config = EngineConfig::new(Features::capacity(64));
    let mut engine = Engine::new(workload, &[backend], pool, &config).unwrap();
    let outcome = tables::outcomes(&mut engine, std::iter::once(&s)).remove(0);
    let message = outcome.unwrap_err().to_string();
    assert!(
        message.contains("conservation has 19 values for 20 residues"),
        "{message}"
    );
}

#[test]
fn a_far_away_chain_changes_only_what_sums_over_the_model() {
    let alone = structure(120, 21);
    let mut with_far = alone.clone();
    // Another chain, of its own shape, 10,000 A away; its atoms come last among
    // those of residues.
    let far = structure(90, 22);
    let of_rows = *alone.atom_start.last().unwrap() as usize;
    let loose = (
        with_far.xyz.split_off(of_rows),
        with_far.element.split_off(of_rows),
        with_far.b_factor.split_off(of_rows),
        with_far.class.split_off(of_rows),
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
            atom + of_rows as u32
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
    let bits = |column: &Column| -> Vec<u32> {
        match column {
            Column::Count(values) => values[..rows].iter().map(|v| *v as u32).collect(),
            Column::Real(values) => values[..rows].iter().map(|v| v.to_bits()).collect(),
        }
    };
    let columns = computed.config.columns(TableName::Residues);
    let mut changed = Vec::new();
    for (column, values) in columns.iter().zip(&computed.tables[0].residues) {
        let with_far = computed.column(1, TableName::Residues, &column.name);
        if bits(values) != bits(with_far) {
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
        FeatureName::Iface,
        FeatureName::Protrusion,
        FeatureName::ContactOrder,
        FeatureName::Centrality,
        FeatureName::Cluster,
        FeatureName::Smooth,
    ]);
    config.cluster.select = vec!["A".to_owned()];
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
    // Far from the ends nothing has come through yet, and the line is symmetric.
    let v = computed.reals(0, residues, "eigenvector");
    assert_eq!(v[40_000].to_bits(), v[60_000].to_bits());
    assert!(v[10] < v[100] && v[100] < v[50_000]);
    assert!((0..count).all(|i| (v[i] - v[count - 1 - i]).abs() <= 1e-6 * v[i]));
}
