//! Solvent-accessible areas against a naive definition in double precision.

mod radii;

use crate::made_up::{moved, structure};
use crate::tables;
use rayon::ThreadPoolBuilder;
use std::{slice, sync::Arc};
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::features::{
    Column, Cutoff, FeatureConfig, FeatureName, FeatureTable, Features, RsaScale, Sasa, TableName,
};
use tapeloop::pipeline::{Engine, EngineConfig};
use tapeloop::record::{Recorder, View};
use tapeloop::structure::{AtomClass, MISSING, ReadOptions, Reader, Structure};
use tapeloop::workload::Workload;
use tapeloop_test_support::repository;

/// FreeSASA's golden-section spiral.
fn points(count: u32) -> Vec<[f64; 3]> {
    let turn = std::f64::consts::PI * (3.0 - 5f64.sqrt());
    let point = |index: u32| {
        let z = 1.0 - f64::from(2 * index + 1) / f64::from(count);
        let (radius, longitude) = ((1.0 - z * z).sqrt(), f64::from(index) * turn);
        [longitude.cos() * radius, longitude.sin() * radius, z]
    };
    (0..count).map(point).collect()
}

pub(crate) fn radius(s: &Structure, atom: usize, sasa: &Sasa) -> f64 {
    f64::from(s.radii.milli_angstrom(s.class[atom])) / 1000.0 + sasa.probe.angstrom()
}

/// The area of an atom among others, in A^2.
fn naive_area(s: &Structure, atom_index: usize, others: &[usize], sasa: &Sasa) -> f64 {
    let r = radius(s, atom_index, sasa);
    let position = |atom: usize| s.xyz[atom].map(|x| f64::from(x) / 1000.0);
    let center = position(atom_index);
    let buries = |point: [f64; 3], other: usize| {
        let (q, radius) = (position(other), radius(s, other, sasa));
        let d2: f64 = (0..3)
            .map(|axis| (center[axis] + r * point[axis] - q[axis]).powi(2))
            .sum();
        // Of several atoms of one radius at one position only the first is exposed, whatever the
        // rounding.
        let same = s.xyz[atom_index] == s.xyz[other] && radius == r;
        if same {
            other < atom_index
        } else {
            d2 <= radius * radius
        }
    };
    let all = points(sasa.points);
    let open = all
        .iter()
        .filter(|point| {
            let mut near = others.iter().filter(|other| **other != atom_index);
            !near.any(|other| buries(**point, *other))
        })
        .count();
    4.0 * std::f64::consts::PI * r * r * open as f64 / all.len() as f64
}

pub(crate) fn atoms_of(s: &Structure, residue: usize) -> std::ops::Range<usize> {
    s.atom_start[residue] as usize..s.atom_start[residue + 1] as usize
}

pub(crate) fn compute(features: FeatureConfig, structures: &[Structure]) -> Vec<FeatureTable> {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let mut config = EngineConfig::new(Features::capacity(2048));
    config.buckets = Features::buckets(2048, 4096);
    let workload = Features::new(features).unwrap();
    let mut engine = Engine::new(workload, &[backend], pool, &config).unwrap();
    tables::tables(&mut engine, structures.iter())
}

pub(crate) fn only(features: &[FeatureName], sasa: Sasa) -> FeatureConfig {
    FeatureConfig {
        features: features.to_vec(),
        sasa,
        ..FeatureConfig::default()
    }
}

pub(crate) fn real(column: Column<'_>) -> &[f32] {
    match column {
        Column::Real(values) => values,
        Column::Count(_) => panic!("a real column"),
    }
}

fn bits(tables: &[FeatureTable]) -> Vec<Vec<u32>> {
    let columns = tables.iter().flat_map(|t| t.columns(TableName::Residues));
    let bits = |column| real(column).iter().map(|value| value.to_bits()).collect();
    columns.map(bits).collect()
}

/// Compares with the naive areas. No point of these structures lies so near to a
/// sphere that single precision puts it on the other side.
fn assert_matches(s: &Structure, table: &FeatureTable, sasa: &Sasa) {
    let all: Vec<usize> = (0..s.xyz.len()).collect();
    for residue in 0..s.residues.len() {
        let areas: Vec<(AtomClass, f64)> = atoms_of(s, residue)
            .map(|atom| (s.class[atom], naive_area(s, atom, &all, sasa)))
            .collect();
        let kinds: [&dyn Fn(AtomClass) -> bool; 3] =
            [&|_| true, &|class| class.is_side(), &|class| {
                class.is_polar()
            }];
        for (column, kind) in table.columns(TableName::Residues).zip(kinds) {
            let areas_of_kind = areas.iter().filter(|(class, _)| kind(*class));
            let expected: f64 = areas_of_kind.map(|(_, area)| area).sum();
            let found = f64::from(real(column)[residue]);
            let off = (found - expected).abs();
            assert!(
                off < 1e-5 * (1.0 + expected),
                "residue {residue}: {found}, not {expected}"
            );
        }
    }
}

pub(crate) fn sample(name: &str) -> Structure {
    let path = repository("samples").join(name);
    let mut reader = Reader::new(ReadOptions::default());
    reader.read_path(&path).unwrap().remove(0)
}

#[test]
fn areas_match_the_definition_at_any_number_of_points() {
    for (count, probe, residues) in [
        (1, 1.4, 40),
        (16, 0.5, 90),
        (100, 1.4, 200),
        (100, 16.0, 60),
        (333, 3.0, 40),
        (960, 1.4, 60),
        (1024, 0.001, 30),
    ] {
        let sasa = Sasa {
            points: count,
            probe: Cutoff::from_angstrom(probe).unwrap(),
            ..Sasa::default()
        };
        let structures: Vec<_> = (0..3)
            .map(|n| structure(residues + n as usize, n))
            .collect();
        let tables = compute(only(&[FeatureName::Sasa], sasa.clone()), &structures);
        for (s, table) in structures.iter().zip(tables) {
            assert_matches(s, &table, &sasa);
        }
    }
}

#[test]
fn areas_of_real_structures_match_the_definition() {
    for name in ["1ubi.pdb", "1yjp.cif", "1lcd.pdb.gz", "1grm.pdb"] {
        let s = sample(name);
        let sasa = Sasa::default();
        let tables = compute(
            only(&[FeatureName::Sasa], sasa.clone()),
            slice::from_ref(&s),
        );
        assert_matches(&s, &tables[0], &sasa);
    }
}

#[test]
fn an_atom_buries_no_point_of_its_own_and_of_two_at_one_place_the_first_shows() {
    let mut s = structure(3, 1);
    let far = |atom: usize| [atom as i32 * 50_000, 0, 0];
    s.xyz = (0..s.xyz.len()).map(far).collect();
    let alone = compute(
        only(&[FeatureName::Sasa], Sasa::default()),
        slice::from_ref(&s),
    );
    assert_matches(&s, &alone[0], &Sasa::default());
    assert!(real(alone[0].column(TableName::Residues, 0))[1] > 300.0);
    // All atoms of the second residue are at one position: only the first of the largest is
    // exposed.
    let atoms = atoms_of(&s, 1);
    s.xyz[atoms].fill([0, 90_000, 0]);
    let same = compute(
        only(&[FeatureName::Sasa], Sasa::default()),
        slice::from_ref(&s),
    );
    assert_matches(&s, &same[0], &Sasa::default());
    let largest = 4.0 * std::f32::consts::PI * (1.88 + 1.4f32).powi(2);
    assert!((real(same[0].column(TableName::Residues, 0))[1] - largest).abs() < 1e-3);
}

#[test]
fn a_residue_without_atoms_has_no_area() {
    let mut s = structure(20, 2);
    s.atom_start[8] = s.atom_start[7];
    (s.residues[7].n, s.residues[7].ca) = (MISSING, MISSING);
    (s.residues[7].c, s.residues[7].cb) = (MISSING, MISSING);
    let features = [FeatureName::Sasa, FeatureName::Rsa];
    let table = &compute(only(&features, Sasa::default()), slice::from_ref(&s))[0];
    for index in 0..4 {
        let column = real(table.column(TableName::Residues, index));
        assert!(column[7].is_nan() && !column[8].is_nan());
    }
}

/// Areas of `count` structures do not depend on the others of the batch, nor on where a structure is.
pub(crate) fn assert_is_the_same_alone_in_company_and_moved(sasa: &Sasa, count: usize) {
    let structures: Vec<_> = (0..count)
        .map(|n| structure(n * 7 % 120, n as u64))
        .collect();
    let features = [FeatureName::Sasa, FeatureName::Rsa];
    let config = || only(&features, sasa.clone());
    let together = bits(&compute(config(), &structures));
    let alone = structures
        .iter()
        .flat_map(|s| bits(&compute(config(), slice::from_ref(s))));
    assert!(alone.eq(together.iter().cloned()));
    let mut translated = structures;
    for s in &mut translated {
        s.xyz
            .iter_mut()
            .for_each(|p| *p = moved(*p, [1_234_567, -7_654_321, 999]));
    }
    assert_eq!(bits(&compute(config(), &translated)), together);
}

#[test]
fn a_structure_is_the_same_alone_in_company_and_moved() {
    assert_is_the_same_alone_in_company_and_moved(&Sasa::default(), 40);
}

#[test]
fn the_order_of_atoms_in_a_residue_changes_nothing() {
    let s = sample("1ubi.pdb");
    let mut reversed = s.clone();
    for residue in 0..s.residues.len() {
        reversed.xyz[atoms_of(&s, residue)].reverse();
        reversed.class[atoms_of(&s, residue)].reverse();
    }
    let tables = compute(only(&[FeatureName::Sasa], Sasa::default()), &[s, reversed]);
    assert_eq!(bits(&tables[..1]), bits(&tables[1..]));
}

#[test]
fn many_more_neighbours_than_any_protein_has_are_all_looked_at() {
    // 4,000 atoms on a sphere of 9 A: each has hundreds of neighbours.
    let mut s = structure(1000, 5);
    let position = |atom: usize| {
        let [x, y, z] = points(s.xyz.len() as u32)[atom];
        [x, y, z].map(|x| (x * 9000.0) as i32)
    };
    s.xyz = (0..s.xyz.len()).map(position).collect();
    let sasa = Sasa {
        points: 20,
        ..Sasa::default()
    };
    let tables = compute(
        only(&[FeatureName::Sasa], sasa.clone()),
        slice::from_ref(&s),
    );
    assert_matches(&s, &tables[0], &sasa);
    assert!(
        real(tables[0].column(TableName::Residues, 0))
            .iter()
            .sum::<f32>()
            > 0.0
    );
}

/// The largest areas of each scale, in the order of this alphabet.
const LETTERS: &[u8; 20] = b"ACDEFGHIKLMNPQRSTVWY";
const AREA_MAX: [(RsaScale, [f64; 20]); 4] = [
    (
        RsaScale::Tien2013,
        [
            129.0, 167.0, 193.0, 223.0, 240.0, 104.0, 224.0, 197.0, 236.0, 201.0, 224.0, 195.0,
            159.0, 225.0, 274.0, 155.0, 172.0, 174.0, 285.0, 263.0,
        ],
    ),
    (
        RsaScale::Miller1987,
        [
            113.0, 140.0, 151.0, 183.0, 218.0, 85.0, 194.0, 182.0, 211.0, 180.0, 204.0, 158.0,
            143.0, 189.0, 241.0, 122.0, 146.0, 160.0, 259.0, 229.0,
        ],
    ),
    (
        RsaScale::Rose1985,
        [
            118.1, 146.1, 158.7, 186.2, 222.8, 88.1, 202.5, 181.0, 225.8, 193.1, 203.4, 165.5,
            146.8, 193.2, 256.0, 129.8, 152.5, 164.5, 266.3, 236.8,
        ],
    ),
    (
        RsaScale::Rost1994,
        [
            106.0, 135.0, 163.0, 194.0, 197.0, 84.0, 184.0, 169.0, 205.0, 164.0, 188.0, 157.0,
            136.0, 198.0, 248.0, 130.0, 142.0, 142.0, 227.0, 222.0,
        ],
    ),
];

/// Like `numpy.pad(values, 12, mode="reflect")`, which reflects as often as necessary.
fn padded(values: &[f64]) -> Vec<f64> {
    let mut padded = values.to_vec();
    if values.len() < 2 {
        return values.repeat(25);
    }
    let mut sides = 0;
    while sides < 12 {
        let length = (values.len() - 1).min(12 - sides);
        let left: Vec<f64> = padded[1..=length].iter().rev().copied().collect();
        let from = padded.len() - 1 - length;
        let right: Vec<f64> = padded[from..from + length].iter().rev().copied().collect();
        padded = [left, padded, right].concat();
        sides += length;
    }
    padded
}

#[test]
fn relative_areas_and_their_means_match_the_definition() {
    let structures: Vec<_> = [1, 2, 3, 5, 30, 200, 700]
        .into_iter()
        .map(|residues| {
            let mut s = structure(residues, residues as u64);
            for (index, residue) in s.residues.iter_mut().enumerate() {
                residue.aa = LETTERS[index % 20];
                residue.parent_comp_id = *b"ALA     ";
                match index % 23 {
                    3 => residue.comp_id = *b"SEP     ",
                    5 => residue.aa = b'X',
                    7 => residue.comp_id = *b"MSE     ",
                    _ => {}
                }
            }
            s
        })
        .collect();
    for (scale, area_max) in AREA_MAX {
        assert_relative_areas(&structures, scale, area_max);
    }
}

fn assert_relative_areas(structures: &[Structure], scale: RsaScale, area_max: [f64; 20]) {
    let features = [FeatureName::Sasa, FeatureName::Rsa];
    let mut config = only(&features, Sasa::default());
    config.rsa.scale = scale;
    let tables = compute(config, structures);
    let close = |found: f32, expected: f64| {
        let off = (f64::from(found) - expected).abs();
        off < 1e-6 * expected.abs().max(1.0) || found.is_nan() && expected.is_nan()
    };
    for (s, table) in structures.iter().zip(&tables) {
        let columns: Vec<_> = table.columns(TableName::Residues).map(real).collect();
        let [sasa, _, _, rsa, mean] = columns[..] else {
            panic!("five columns")
        };
        let relative = |index: usize| {
            let residue = &s.residues[index];
            let place = LETTERS.iter().position(|letter| *letter == residue.aa);
            let max = place.map_or(f64::NAN, |place| area_max[place]);
            let standard = &residue.comp_id != b"SEP     ";
            f64::from(sasa[index]) / if standard { max } else { f64::NAN }
        };
        for chain in 0..3 {
            let is_in_chain = |index: &usize| s.residues[*index].chain == chain;
            let members: Vec<usize> = (0..s.residues.len()).filter(is_in_chain).collect();
            let values: Vec<f64> = members.iter().map(|&index| relative(index)).collect();
            let windows = padded(&values);
            for (&index, window) in members.iter().zip(windows.windows(25)) {
                assert!(close(rsa[index], relative(index)));
                let there: Vec<f64> = window.iter().copied().filter(|x| !x.is_nan()).collect();
                let expected = there.iter().sum::<f64>() / there.len() as f64;
                assert!(close(mean[index], expected), "{} {expected}", mean[index]);
            }
        }
    }
}

#[test]
fn areas_that_only_other_features_need_stay_on_the_device() {
    let backend = CpuBackend::new(Arc::new(ThreadPoolBuilder::new().build().unwrap()));
    let view = |features: &[FeatureName]| {
        let workload = Features::new(only(features, Sasa::default())).unwrap();
        let mut recorder = Recorder::new(Features::capacity(64).as_slice());
        workload.record(&mut recorder, backend.device()).unwrap();
        let recording = recorder.finish().unwrap();
        let mut buffers = recording.buffers_by_id().map(|(_, buffer)| buffer);
        buffers
            .find(|buffer| buffer.name == "areas")
            .map(|buffer| buffer.view)
    };
    assert_eq!(view(&[FeatureName::Rsa]), Some(View::Device));
    let both = [FeatureName::Rsa, FeatureName::Sasa];
    assert_eq!(view(&both), Some(View::Download));
    assert_eq!(view(&[FeatureName::Wcn]), None);
}

#[test]
fn impossible_settings_are_named() {
    let message = |sasa: Sasa| {
        let refused = Features::new(only(&[FeatureName::Sasa], sasa)).err();
        refused.map(|error| error.to_string()).unwrap_or_default()
    };
    let probe = |angstrom| Sasa {
        probe: Cutoff::from_angstrom(angstrom).unwrap(),
        ..Sasa::default()
    };
    assert_eq!(message(probe(16.0)), "");
    assert!(message(probe(16.001)).contains("16.001 A"));
    for points in [0, 1025] {
        let sasa = Sasa {
            points,
            ..Sasa::default()
        };
        assert!(message(sasa).contains("1 to 1024"), "{points}");
    }
}

#[test]
fn areas_of_atoms_match_the_definition_and_atoms_of_no_residue_have_none() {
    for (count, own_chain) in [(100, false), (256, true), (333, false)] {
        let sasa = Sasa {
            points: count,
            own_chain,
            ..Sasa::default()
        };
        let mut config = only(&[FeatureName::Atoms], sasa.clone());
        config.atoms.keep = true;
        let structures: Vec<_> = (0..3).map(|n| structure(60 + n as usize, n)).collect();
        let tables = compute(config, &structures);
        let mut loose = 0;
        for (s, table) in structures.iter().zip(tables) {
            let areas = real(table.column(TableName::Atoms, 0));
            assert_eq!(areas.len(), s.xyz.len());
            let of_chain = |chain: u32| -> Vec<usize> {
                let residues = 0..s.residues.len();
                let residues = residues.filter(|&residue| s.residues[residue].chain == chain);
                let mut atoms: Vec<usize> = residues.flat_map(|it| atoms_of(s, it)).collect();
                let mut start = s.atom_start[s.residues.len()] as usize;
                for span in &s.loose {
                    let end = start + span.atom_count as usize;
                    atoms.extend((start..end).filter(|_| span.chain == chain));
                    start = end;
                }
                atoms
            };
            for residue in 0..s.residues.len() {
                let others = if own_chain {
                    of_chain(s.residues[residue].chain)
                } else {
                    (0..s.xyz.len()).collect()
                };
                for atom in atoms_of(s, residue) {
                    let expected = naive_area(s, atom, &others, &sasa);
                    let off = (f64::from(areas[atom]) - expected).abs();
                    assert!(
                        off < 1e-5 * (1.0 + expected),
                        "atom {atom}: {}",
                        areas[atom]
                    );
                }
            }
            let of_none = &areas[s.atom_start[s.residues.len()] as usize..];
            assert!(of_none.iter().all(|area| area.is_nan()));
            loose += of_none.len();
        }
        assert!(loose > 0, "no structure has loose atoms");
    }
}
