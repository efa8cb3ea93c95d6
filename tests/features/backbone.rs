//! Angles of the backbone and of the C-alpha trace against the maths library, and
//! where they are null.

use crate::made_up::structure;
use crate::samples;
use crate::samples::samples;
use crate::tables;
use std::slice;
use tapeloop::features::{Column, FeatureConfig, FeatureName, FeatureTable, TableName};
use tapeloop::structure::{MISSING, Residue, Structure};

fn config() -> FeatureConfig {
    FeatureConfig {
        features: vec![FeatureName::Torsions, FeatureName::CaGeometry],
        ..FeatureConfig::default()
    }
}

fn compute(structures: &[Structure]) -> Vec<FeatureTable> {
    tables::compute(config(), structures)
}

fn column<'a>(name: &str, table: &'a FeatureTable) -> &'a [f32] {
    let decls = config().columns(TableName::Residues);
    let column = decls.iter().position(|decl| decl.name == name).unwrap();
    match table.column(TableName::Residues, column) {
        Column::Real(values) => values,
        Column::Count(_) => panic!("{name} is real"),
    }
}

type Point = [f64; 3];

fn minus(a: Point, b: Point) -> Point {
    std::array::from_fn(|axis| a[axis] - b[axis])
}

fn dot(a: Point, b: Point) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn cross(a: Point, b: Point) -> Point {
    std::array::from_fn(|axis| {
        let (j, k) = ((axis + 1) % 3, (axis + 2) % 3);
        a[j] * b[k] - a[k] * b[j]
    })
}

fn unit(a: Point) -> Point {
    a.map(|x| x / dot(a, a).sqrt())
}

/// Computes the dihedral from the parts of the outer bonds that are normal to the axis.
fn dihedral([p1, p2, p3, p4]: [Point; 4]) -> f64 {
    let axis = unit(minus(p3, p2));
    let normal = |arm: Point| minus(arm, axis.map(|x| x * dot(arm, axis)));
    let (v, w) = (normal(minus(p1, p2)), normal(minus(p4, p3)));
    dot(cross(axis, v), w).atan2(dot(v, w)).to_degrees()
}

fn angle([p1, p2, p3]: [Point; 3]) -> f64 {
    let cosine = dot(unit(minus(p1, p2)), unit(minus(p3, p2)));
    cosine.clamp(-1.0, 1.0).acos().to_degrees()
}

/// phi, psi, omega, ca_dihedral and ca_angle.
fn naive(s: &Structure, row: usize) -> [Option<f64>; 5] {
    // Residues that are linked from `from` to `to`, both relative to `row`.
    let residue = |from: isize, to: isize, which: isize| -> Option<&Residue> {
        let index = |offset: isize| usize::try_from(row as isize + offset).ok();
        let all = index(from)?..=index(to)?;
        let links = s.residues.get(all)?.iter().skip(1);
        let linked = links.clone().all(|residue| !residue.break_before);
        linked.then(|| &s.residues[index(which).unwrap()])
    };
    let point = |atom: u32| Some(s.position(atom)?.map(f64::from));
    let n = |from, to, which| point(residue(from, to, which)?.n);
    let ca = |from, to, which| point(residue(from, to, which)?.ca);
    let c = |from, to, which| point(residue(from, to, which)?.c);
    let phi = || Some([c(-1, 0, -1)?, n(-1, 0, 0)?, ca(-1, 0, 0)?, c(-1, 0, 0)?]);
    let psi = || Some([n(0, 1, 0)?, ca(0, 1, 0)?, c(0, 1, 0)?, n(0, 1, 1)?]);
    let omega = || Some([ca(0, 1, 0)?, c(0, 1, 0)?, n(0, 1, 1)?, ca(0, 1, 1)?]);
    let trace = |to: isize| -> Option<Vec<Point>> { (-1..=to).map(|k| ca(-1, to, k)).collect() };
    [
        phi().map(dihedral),
        psi().map(dihedral),
        omega().map(dihedral),
        trace(2).map(|p| dihedral([p[0], p[1], p[2], p[3]])),
        trace(1).map(|p| angle([p[0], p[1], p[2]])),
    ]
}

const COLUMNS: [&str; 5] = ["phi", "psi", "omega", "ca_dihedral", "ca_angle"];

/// How many angles there are of each kind.
fn assert_matches(name: &str, s: &Structure, table: &FeatureTable) -> [usize; 5] {
    let mut counts = [0; 5];
    for row in 0..s.residues.len() {
        for (kind, expected) in naive(s, row).into_iter().enumerate() {
            let found = column(COLUMNS[kind], table)[row];
            let Some(expected) = expected else {
                assert!(found.is_nan(), "{name}, {} of {row} is null", COLUMNS[kind]);
                continue;
            };
            let error = (f64::from(found) - expected).abs();
            let error = error.min(360.0 - error);
            assert!(
                error < 1e-4 && found > -180.0 && found <= 180.0,
                "{name}, {} of {row}: {found}, expected {expected}",
                COLUMNS[kind]
            );
            counts[kind] += 1;
        }
    }
    counts
}

#[test]
fn angles_of_the_samples_match_the_maths_library() {
    let samples = samples();
    let structures: Vec<_> = samples.iter().map(|(_, s)| s.clone()).collect();
    let mut counts = [0; 5];
    for ((name, s), table) in samples.iter().zip(compute(&structures)) {
        let counts_of_structure = assert_matches(name, s, &table);
        counts = std::array::from_fn(|kind| counts[kind] + counts_of_structure[kind]);
    }
    assert!(counts.iter().all(|&count| count > 3_000), "{counts:?}");
}

#[test]
fn angles_of_made_up_structures_match_at_every_size() {
    let sizes = [0, 1, 2, 3, 4, 63, 64, 65, 255, 256, 257, 700];
    let structures: Vec<_> = sizes.iter().map(|&n| structure(n, n as u64)).collect();
    for (s, table) in structures.iter().zip(compute(&structures)) {
        assert_matches(&format!("{} residues", s.residues.len()), s, &table);
    }
}

#[test]
fn a_strand_and_a_helix_have_the_angles_of_the_textbook() {
    let table = &compute(slice::from_ref(&samples::sample("1ubi.pdb")))[0];
    // Residues 23 to 34 are the helix, 2 to 6 a strand.
    for row in 23..31 {
        let (phi, psi) = (column("phi", table)[row], column("psi", table)[row]);
        assert!((-75.0..-50.0).contains(&phi), "phi of {row}: {phi}");
        assert!((-55.0..-25.0).contains(&psi), "psi of {row}: {psi}");
        let dihedral = column("ca_dihedral", table)[row];
        assert!((45.0..60.0).contains(&dihedral), "of {row}: {dihedral}");
    }
    for row in 2..6 {
        assert!(column("psi", table)[row] > 100.0, "psi of {row}");
        assert!(column("omega", table)[row].abs() > 165.0, "omega of {row}");
    }
}

/// Atoms in a plane, one residue after the other.
fn planar(points: &[[[i32; 3]; 3]]) -> Structure {
    let mut s = structure(points.len(), 1);
    s.xyz = points.concat();
    s.element = vec![6; s.xyz.len()];
    s.class = vec![s.class[0]; s.xyz.len()];
    s.b_factor = vec![0.0; s.xyz.len()];
    s.class = vec![s.class[0]; s.xyz.len()];
    s.loose.clear();
    s.atom_start = (0..=points.len() as u32)
        .map(|residue| 3 * residue)
        .collect();
    s.loose.clear();
    for (row, residue) in (0..).zip(&mut s.residues) {
        (residue.n, residue.ca, residue.c) = (3 * row, 3 * row + 1, 3 * row + 2);
        (residue.o, residue.cb) = (MISSING, MISSING);
        residue.break_before = row == 0;
    }
    s
}

#[test]
fn a_flat_zigzag_is_180_degrees_and_never_minus_180() {
    for mirror in [1, -1] {
        let atom = |k: i32| [1_250 * k, mirror * 800 * (k % 2), 0];
        let residue = |r: i32| [atom(3 * r), atom(3 * r + 1), atom(3 * r + 2)];
        let zigzag: Vec<_> = (0..6).map(residue).collect();
        let table = &compute(&[planar(&zigzag)])[0];
        assert_eq!(column("phi", table)[1..], [180.0; 5]);
        assert_eq!(column("psi", table)[..5], [180.0; 5]);
        assert_eq!(column("omega", table)[..5], [180.0; 5]);
        assert_eq!(column("ca_dihedral", table)[1..4], [180.0; 3]);
    }
}

#[test]
fn points_on_a_line_have_an_angle_and_no_dihedral() {
    let residue = |r: i32| [0, 1, 2].map(|k| [1_000 * (3 * r + k), 0, 0]);
    let line: Vec<_> = (0..6).map(residue).collect();
    let table = &compute(&[planar(&line)])[0];
    assert_eq!(column("ca_angle", table)[1..5], [180.0; 4]);
    for name in ["phi", "psi", "omega", "ca_dihedral"] {
        assert!(
            column(name, table).iter().all(|angle| angle.is_nan()),
            "{name}"
        );
    }
    // All atoms at the same position: there is not even an angle.
    let table = &compute(&[planar(&[[[7, 8, 9]; 3]; 4])])[0];
    assert!(column("ca_angle", table).iter().all(|angle| angle.is_nan()));
}

#[test]
fn nothing_is_computed_across_a_break_or_without_an_atom() {
    let whole = samples::sample("1ubi.pdb");
    let mut broken = whole.clone();
    broken.residues[30].break_before = true;
    let mut without_c = whole.clone();
    without_c.residues[30].c = MISSING;
    let tables = compute(&[whole, broken, without_c]);
    let lost = |table: usize, name: &str| -> Vec<usize> {
        let pairs = column(name, &tables[0])
            .iter()
            .zip(column(name, &tables[table]));
        let lost = |(before, after): (&f32, &f32)| !before.is_nan() && after.is_nan();
        (0..)
            .zip(pairs)
            .filter(|(_, pair)| lost(*pair))
            .map(|(row, _)| row)
            .collect()
    };
    assert_eq!(lost(1, "phi"), [30]);
    assert_eq!(lost(1, "psi"), [29]);
    assert_eq!(lost(1, "omega"), [29]);
    assert_eq!(lost(1, "ca_dihedral"), [28, 29, 30]);
    assert_eq!(lost(1, "ca_angle"), [29, 30]);
    assert_eq!(lost(2, "phi"), [30, 31]);
    assert_eq!(lost(2, "psi"), [30]);
    assert_eq!(lost(2, "omega"), [30]);
    assert_eq!(lost(2, "ca_angle"), [0; 0]);
}
