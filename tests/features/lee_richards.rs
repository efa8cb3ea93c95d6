//! Areas by Lee and Richards against a naive definition in double precision.

use crate::made_up::{ring, structure, with_ligands};
use crate::sasa::{
    assert_is_the_same_alone_in_company_and_moved, atoms_of, compute, only, radius, real, sample,
};
use crate::{every_feature, tables};
use std::f64::consts::PI;
use std::slice;
use tapeloop::features::{Cutoff, FeatureConfig, FeatureName, Sasa, SasaAlgorithm, TableName};
use tapeloop::structure::Structure;

fn slices(slices: u32) -> Sasa {
    Sasa {
        algorithm: SasaAlgorithm::LeeRichards,
        slices,
        ..Sasa::default()
    }
}

/// The open part of a circle of which arcs, by their ends in radians, are buried.
fn open_part(mut arcs: Vec<[f64; 2]>) -> f64 {
    arcs.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let (mut open, mut covered) = (0.0, 0.0);
    for [start, end] in arcs {
        open += (start - covered).max(0.0);
        covered = covered.max(end);
    }
    (open + (2.0 * PI - covered).max(0.0)) / (2.0 * PI)
}

/// The area of an atom, in A^2.
fn naive_area(s: &Structure, atom: usize, sasa: &Sasa) -> f64 {
    let r = radius(s, atom, sasa);
    let position = |atom: usize| s.xyz[atom].map(|x| f64::from(x) / 1000.0);
    let center = position(atom);
    let mut open = 0.0;
    for slice in 0..sasa.slices {
        let height = r * (f64::from(2 * slice + 1) / f64::from(sasa.slices) - 1.0);
        let own = (r * r - height * height).sqrt();
        let mut arcs = Vec::new();
        for other in (0..s.xyz.len()).filter(|other| *other != atom) {
            let (q, radius) = (position(other), radius(s, other, sasa));
            let [x, y, z] = [0, 1, 2].map(|axis| q[axis] - center[axis]);
            if [x, y, z] == [0.0; 3] && radius == r {
                if other < atom {
                    arcs.push([0.0, 2.0 * PI]);
                }
                continue;
            }
            let across2 = radius * radius - (z - height).powi(2);
            if across2 < 0.0 {
                continue;
            }
            let (distance, across) = (x.hypot(y), across2.sqrt());
            if distance >= own + across || distance + across < own {
                continue;
            }
            if distance + own <= across {
                arcs.push([0.0, 2.0 * PI]);
                continue;
            }
            let cosine = (own * own + distance * distance - across2) / (2.0 * own * distance);
            let (middle, half) = (y.atan2(x), cosine.clamp(-1.0, 1.0).acos());
            let start = (middle - half).rem_euclid(2.0 * PI);
            let end = start + 2.0 * half;
            arcs.push([start, end.min(2.0 * PI)]);
            if end > 2.0 * PI {
                arcs.push([0.0, end - 2.0 * PI]);
            }
        }
        open += open_part(arcs);
    }
    4.0 * PI * r * r * open / f64::from(sasa.slices)
}

fn assert_matches(s: &Structure, sasa: &Sasa) {
    let features = only(&[FeatureName::Sasa], sasa.clone());
    let table = &compute(features, slice::from_ref(s))[0];
    let found = real(table.column(TableName::Residues, 0));
    for (residue, found) in found.iter().enumerate() {
        let expected: f64 = atoms_of(s, residue)
            .map(|atom| naive_area(s, atom, sasa))
            .sum();
        let off = (f64::from(*found) - expected).abs();
        // An atom's sum is rounded to 1 / 4096 of a circle, and an arc that grazes a circle has an error of
        // up to 1e-4 turns.
        let sphere = 4.0 * PI * (1.9 + sasa.probe.angstrom()).powi(2);
        let rounding = 2e-4 * sphere * atoms_of(s, residue).len() as f64 / f64::from(sasa.slices);
        assert!(
            off < 1e-5 * expected + rounding,
            "{} slices, residue {residue}: {found}, not {expected}",
            sasa.slices
        );
    }
}

#[test]
fn areas_match_the_definition_at_any_number_of_slices() {
    for (count, probe, residues) in [
        (1, 1.4, 40),
        (7, 0.5, 60),
        (16, 1.4, 60),
        (20, 16.0, 40),
        (33, 3.0, 40),
        (128, 1.4, 20),
    ] {
        let sasa = Sasa {
            probe: Cutoff::from_angstrom(probe).unwrap(),
            ..slices(count)
        };
        for n in 0..2 {
            assert_matches(&structure(residues + n as usize, n), &sasa);
        }
    }
    assert_matches(&sample("1ubi.pdb"), &slices(20));
}

#[test]
fn circles_of_many_open_arcs_and_crowded_atoms_match() {
    let ring = ring();
    for count in [3, 16, 20] {
        let sasa = slices(count);
        let whole = 4.0 * PI * radius(&ring, 0, &sasa).powi(2);
        let open = naive_area(&ring, 0, &sasa) / whole;
        assert!(open < 0.95, "the ring buries nothing: {open}");
        assert_matches(&ring, &sasa);
    }
    // Each atom of a small sphere has hundreds of neighbours, and some stand in one place.
    let mut s = structure(300, 5);
    let count = s.xyz.len() as f64;
    for (index, xyz) in s.xyz.iter_mut().enumerate() {
        let z = 1.0 - (2 * (index / 2) * 2 + 1) as f64 / count;
        let (r, turn) = ((1.0 - z * z).max(0.0).sqrt(), (index / 2) as f64 * 2.4);
        *xyz = [r * turn.cos(), r * turn.sin(), z].map(|x| (9_000.0 * x) as i32);
    }
    assert_matches(&s, &slices(5));
}

#[test]
fn a_structure_is_the_same_alone_in_company_and_moved() {
    assert_is_the_same_alone_in_company_and_moved(&slices(20), 20);
}

/// Both algorithms come near the true areas, in every column of areas that there is.
#[test]
fn all_areas_are_near_those_of_many_test_points() {
    let structures: Vec<_> = (0..3)
        .map(|seed| with_ligands(structure(150, seed), seed))
        .collect();
    let points = Sasa {
        points: 1024,
        ..Sasa::default()
    };
    let [by_points, by_slices] = [points, slices(64)].map(|sasa| FeatureConfig {
        sasa,
        ..every_feature::every_feature()
    });
    let tables =
        [&by_points, &by_slices].map(|config| tables::compute(config.clone(), &structures));
    let mut compared = Vec::new();
    for name in TableName::ALL {
        for (place, column) in by_points.columns(name).iter().enumerate() {
            // B factors have the unit of areas.
            if column.unit != "A^2" || column.name.contains("b_") {
                continue;
            }
            let values = |which: usize| {
                let all = tables[which].iter();
                all.flat_map(|table| real(table.column(name, place)).to_vec())
            };
            let (mut differ, mut has_area) = (0, false);
            for (a, b) in values(0).zip(values(1)) {
                assert_eq!(a.is_nan(), b.is_nan(), "{}", column.name);
                let off = (a - b).abs();
                assert!(
                    a.is_nan() || off < 3.0 + 0.02 * a,
                    "{}: {a} and {b}",
                    column.name
                );
                differ += usize::from(off > 0.0);
                has_area |= a > 0.0;
            }
            assert_eq!(
                differ > 0,
                has_area,
                "{} is that of test points",
                column.name
            );
            compared.push(format!("{name:?}.{}", column.name));
        }
    }
    assert!(compared.len() >= 15, "{compared:?}");
}
