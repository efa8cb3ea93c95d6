//! Residue depth against hand-computed cases, and against its definition, written out naively.

use crate::chains::alone;
use crate::made_up::{structure, with_ligands};
use crate::samples::sample;
use crate::tables::{bits, compute};
use std::f64::consts::PI;
use tapeloop::features::{
    Column, Cutoff, DepthChains, FeatureConfig, FeatureName, FeatureTable, Features, Input,
    ResidueDepth, Sasa, Setting, TableName,
};
use tapeloop::structure::{AtomClass, Chain, MISSING, Radii, ReadOptions, Reader, Structure};
use tapeloop::{ErrorKind, Workload};
use tapeloop_test_support::repository;

/// The radius of the C-alphas below, in A.
const RADIUS: f32 = 1.88;

fn config(chains: DepthChains, points: u32, probe: f64) -> FeatureConfig {
    FeatureConfig {
        features: vec![FeatureName::ResidueDepth],
        residue_depth: ResidueDepth { chains },
        sasa: Sasa {
            points,
            probe: Cutoff::from_angstrom(probe).unwrap(),
            ..Sasa::default()
        },
        ..FeatureConfig::default()
    }
}

/// The mean depth of each residue and the depth of its C-alpha.
fn depths(table: &FeatureTable) -> Vec<[f32; 2]> {
    let column = |index: usize| match table.column(TableName::Residues, index) {
        Column::Real(values) => values,
        Column::Count(_) => panic!("column {index} is a count"),
    };
    let pairs = column(0).iter().zip(column(1));
    pairs.map(|(mean, alpha)| [*mean, *alpha]).collect()
}

fn depths_of(s: &Structure, config: FeatureConfig) -> Vec<[f32; 2]> {
    depths(&compute(config, std::slice::from_ref(s))[0])
}

#[test]
fn depths_leave_interactions_their_room() {
    let input = Input::new("", 0, Ok(with_ligands(structure(1, 7), 7)));
    let room = |features: &[FeatureName]| {
        let mut config = FeatureConfig {
            features: features.to_vec(),
            ..config(DepthChains::All, 100, 1.4)
        };
        config.interactions.keep = true;
        let features = Features::new(config).unwrap();
        let axis = features.axes().iter().position(|axis| *axis == "pair_room");
        features.extent(&input).unwrap()[axis.unwrap()]
    };
    let (depth, interactions) = (FeatureName::ResidueDepth, FeatureName::Interactions);
    assert!(room(&[interactions]) > room(&[depth]));
    assert_eq!(room(&[depth, interactions]), room(&[interactions]));
}

/// A structure with so many atoms for each residue, of which the first is the C-alpha.
fn structure_of_atoms(positions: &[[f64; 3]], atoms_a_residue: usize) -> Structure {
    let residue = structure(1, 7).residues[0];
    let mut s = Structure {
        atom_start: vec![0],
        chains: vec![Chain::default()],
        ..Structure::default()
    };
    for atoms in positions.chunks(atoms_a_residue) {
        let ca = s.xyz.len() as u32;
        for position in atoms {
            s.xyz.push(position.map(|x| (1000.0 * x).round() as i32));
            s.element.push(6);
            s.class.push(AtomClass::of(*b"ALA     ", *b"CA      ", 6));
            s.b_factor.push(0.0);
        }
        s.atom_start.push(s.xyz.len() as u32);
        s.residues.push(tapeloop::structure::Residue {
            chain: 0,
            n: MISSING,
            ca,
            c: MISSING,
            o: MISSING,
            cb: MISSING,
            ..residue
        });
    }
    s
}

/// FreeSASA's golden-section spiral.
fn sphere(count: u32) -> Vec<[f64; 3]> {
    let turn = PI * (3.0 - 5f64.sqrt());
    let point = |index: u32| {
        let z = 1.0 - f64::from(2 * index + 1) / f64::from(count);
        let (radius, longitude) = ((1.0 - z * z).sqrt(), f64::from(index) * turn);
        [longitude.cos() * radius, longitude.sin() * radius, z]
    };
    (0..count).map(point).collect()
}

/// Places on a sphere around the origin.
fn shell(radius: f64, count: u32) -> Vec<[f64; 3]> {
    let places = sphere(count).into_iter();
    places.map(|u| u.map(|x| radius * x)).collect()
}

fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|axis| a[axis] - b[axis])
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    (0..3).map(|axis| a[axis] * b[axis]).sum()
}

/// Atoms as the definition sees them, in A.
struct DepthDefinition {
    centers: Vec<[f64; 3]>,
    radii: Vec<f64>,
    probe: f64,
    /// The largest radius of the set, at least that of ProtOr.
    radius_max: f64,
    /// The exposed points, each with its atom.
    points: Vec<([f64; 3], usize)>,
}

impl DepthDefinition {
    fn new(s: &Structure, count: u32, probe: f64) -> Self {
        let centers: Vec<_> = s
            .xyz
            .iter()
            .map(|p| p.map(|x| f64::from(x) / 1000.0))
            .collect();
        let radius = |class: &AtomClass| f64::from(s.radii.milli_angstrom(*class)) / 1000.0 + probe;
        let radii: Vec<f64> = s.class.iter().map(radius).collect();
        let mut points = Vec::new();
        for (atom, center) in centers.iter().enumerate() {
            let others = (0..centers.len()).filter(|&other| {
                let d = minus(centers[other], *center);
                other != atom && dot(d, d) < (radii[atom] + radii[other]).powi(2)
            });
            let others: Vec<usize> = others.collect();
            for u in sphere(count) {
                let point = std::array::from_fn(|axis| center[axis] + radii[atom] * u[axis]);
                let buries = |&other: &usize| {
                    let d = minus(point, centers[other]);
                    dot(d, d) <= radii[other].powi(2)
                };
                if !others.iter().any(buries) {
                    points.push((point, atom));
                }
            }
        }
        DepthDefinition {
            centers,
            radii,
            probe,
            radius_max: f64::from(s.radii.max_milli_angstrom().max(1_900)) / 1000.0,
            points,
        }
    }

    /// The depth of each atom below the points that are of the outer surface.
    fn depths(&self, is_outer: impl Fn(usize) -> bool) -> Vec<f64> {
        let outer = (0..self.points.len()).filter(|&point| is_outer(point));
        let outer: Vec<[f64; 3]> = outer.map(|point| self.points[point].0).collect();
        let depth = |center: &[f64; 3]| {
            let squares = outer.iter().map(|point| {
                let d = minus(*point, *center);
                dot(d, d)
            });
            squares.fold(f64::INFINITY, f64::min).sqrt() - self.probe
        };
        self.centers.iter().map(depth).collect()
    }

    /// Whether each point is of the outer surface of its body.
    fn outer(&self, count: u32) -> Vec<bool> {
        let apart = 1.5 * (4.0 * PI / f64::from(count)).sqrt() * (self.radius_max + self.probe);
        let apart = (apart.min(10.0) * 1000.0).floor() / 1000.0;
        let surfaces = numbers(self.points.len(), |a, b| {
            let [(p, i), (q, j)] = [self.points[a], self.points[b]];
            let line = minus(q, p);
            let above = dot(line, minus(p, self.centers[i])) >= 0.0
                && dot(line, minus(q, self.centers[j])) <= 0.0;
            dot(line, line) < apart * apart && (i == j || above)
        });
        let bodies = numbers(self.centers.len(), |i, j| {
            let d = minus(self.centers[i], self.centers[j]);
            dot(d, d) < (self.radii[i] + self.radii[j]).powi(2)
        });
        let body = |point: usize| bodies[self.points[point].1];
        let ends = (0..bodies.len()).map(|wanted| {
            let points_of_body = (0..self.points.len()).filter(|&point| body(point) == wanted);
            points_of_body.max_by(|&a, &b| self.points[a].0[0].total_cmp(&self.points[b].0[0]))
        });
        let ends: Vec<Option<usize>> = ends.collect();
        let is_outer =
            |point: usize| ends[body(point)].is_some_and(|end| surfaces[point] == surfaces[end]);
        (0..self.points.len()).map(is_outer).collect()
    }
}

/// The number of each node's connected component, which is its first node.
fn numbers(count: usize, joined: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut numbers = vec![usize::MAX; count];
    for first in 0..count {
        if numbers[first] != usize::MAX {
            continue;
        }
        numbers[first] = first;
        let mut reached = vec![first];
        while let Some(node) = reached.pop() {
            for (other, number) in numbers.iter_mut().enumerate() {
                if *number == usize::MAX && joined(node, other) {
                    *number = first;
                    reached.push(other);
                }
            }
        }
    }
    numbers
}

/// Means over residues, and the C-alphas, of values of atoms.
fn rows(s: &Structure, atom_depths: &[f64]) -> Vec<[f64; 2]> {
    let spans = s.residues.iter().zip(s.atom_start.windows(2));
    let row = |(residue, span): (&tapeloop::structure::Residue, &[u32])| {
        let depths = &atom_depths[span[0] as usize..span[1] as usize];
        let mean = depths.iter().sum::<f64>() / depths.len() as f64;
        let alpha = atom_depths.get(residue.ca as usize);
        [mean, alpha.copied().unwrap_or(f64::NAN)]
    };
    spans.map(row).collect()
}

/// Compares depths with the definition's; a point that rounding buries may change `exceptions` rows.
fn assert_near(name: &str, found: &[[f32; 2]], expected: &[[f64; 2]], exceptions: usize) {
    assert_eq!(found.len(), expected.len());
    let differ = found.iter().zip(expected).filter(|(found, expected)| {
        let pairs = found.iter().zip(expected.iter());
        let mut wrong = pairs.map(|(found, expected)| {
            let found = f64::from(*found);
            let near = (found - expected).abs() <= 1e-5 * expected.abs();
            !(near || found.is_nan() && expected.is_nan())
        });
        wrong.any(|wrong| wrong)
    });
    let differ: Vec<_> = differ.collect();
    assert!(differ.len() <= exceptions, "{name}: {differ:?}");
}

#[test]
fn an_exposed_atom_is_as_deep_as_its_radius() {
    for chains in [DepthChains::All, DepthChains::Own] {
        let depth = |positions: &[[f64; 3]]| {
            depths_of(&structure_of_atoms(positions, 1), config(chains, 256, 1.4))
        };
        assert_eq!(depth(&[[0.0; 3]]), [[RADIUS; 2]]);
        // Spheres that overlap, and two bodies.
        for apart in [2.0, 100.0] {
            assert_eq!(depth(&[[0.0; 3], [apart, 0.0, 0.0]]), [[RADIUS; 2]; 2]);
        }
    }
    // All points of both atoms are on the outer surface, whatever their number.
    for points in [1, 7, 1024] {
        let pair = structure_of_atoms(&[[0.0; 3], [1.5, 0.0, 0.0]], 2);
        let [mean, alpha] = depths_of(&pair, config(DepthChains::All, points, 1.4))[0];
        assert!(
            mean >= RADIUS && alpha >= RADIUS,
            "{points}: {mean} {alpha}"
        );
        assert!(mean < 3.0, "{points}: {mean}");
    }
}

/// An atom in the middle of a closed shell is as deep as the shell's surface is far.
#[test]
fn a_buried_atom_is_as_deep_as_the_nearest_point_says() {
    let mut positions = vec![[0.0; 3]];
    positions.extend(shell(2.5, 60));
    let s = structure_of_atoms(&positions, 1);
    let found = depths_of(&s, config(DepthChains::All, 256, 1.4));
    let definition = DepthDefinition::new(&s, 256, 1.4);
    assert!(definition.points.iter().all(|(_, atom)| *atom != 0));
    let expected = rows(&s, &definition.depths(|_| true));
    assert_near("shell", &found, &expected, 0);
    // 2.5 A from the middle, 3.28 A farther, less the probe, and somewhat less between the spheres.
    assert!((4.1..4.39).contains(&found[0][0]), "{:?}", found[0]);
}

#[test]
fn a_closed_cavity_does_not_count() {
    let mut positions = shell(9.0, 250);
    positions.extend(shell(12.5, 450));
    let s = structure_of_atoms(&positions, 1);
    let definition = DepthDefinition::new(&s, 100, 1.4);
    let is_outside = |index: usize| {
        let point = definition.points[index].0;
        dot(point, point).sqrt() > 11.0
    };
    let inside = (0..definition.points.len()).filter(|&index| !is_outside(index));
    assert!(inside.count() > 200, "points bound the cavity");
    let expected = rows(&s, &definition.depths(is_outside));
    let found = depths_of(&s, config(DepthChains::All, 100, 1.4));
    assert_near("cavity", &found, &expected, 0);
    assert!(found[..250].iter().all(|[depth, _]| *depth > 4.5));
    assert!(found[250..].iter().all(|[depth, _]| *depth == RADIUS));

    // An atom in the cavity that touches no wall is a body, and has an outer surface of its own.
    positions.push([0.0; 3]);
    let with_body = depths_of(
        &structure_of_atoms(&positions, 1),
        config(DepthChains::All, 100, 1.4),
    );
    assert_eq!(with_body.last(), Some(&[RADIUS; 2]));
    assert_eq!(with_body[250..], [&found[250..], &[[RADIUS; 2]]].concat());

    // The probe gets in through a hole.
    let open: Vec<[f64; 3]> = positions[..700]
        .iter()
        .copied()
        .filter(|p| p[0].hypot(p[1]) > 6.0 || p[2] < 0.0)
        .collect();
    let through = depths_of(
        &structure_of_atoms(&open, 1),
        config(DepthChains::All, 100, 1.4),
    );
    assert!(through.iter().all(|[depth, _]| *depth < 3.0), "{through:?}");
}

/// Searches in cells end at 37 A.
#[test]
fn atoms_may_be_deeper_than_searches_in_cells_reach() {
    let steps = || (-9..=9).map(|n| f64::from(n) * 6.0);
    let lattice = steps().flat_map(|x| steps().flat_map(move |y| steps().map(move |z| [x, y, z])));
    let ball: Vec<[f64; 3]> = lattice.filter(|p| dot(*p, *p).sqrt() < 55.0).collect();
    let s = structure_of_atoms(&ball, 1);
    let definition = DepthDefinition::new(&s, 40, 4.0);
    let expected = rows(&s, &definition.depths(|_| true));
    let found = depths_of(&s, config(DepthChains::All, 40, 4.0));
    assert_near("ball", &found, &expected, 0);
    let deepest = found.iter().map(|[depth, _]| *depth).fold(0.0, f32::max);
    assert!(deepest > 50.0, "{deepest}");
}

fn sample_with(name: &str, radii: Radii) -> Structure {
    let options = ReadOptions {
        radii,
        ..ReadOptions::default()
    };
    let path = repository("samples").join(name);
    Reader::new(options).read_path(&path).unwrap().remove(0)
}

#[test]
fn real_structures_have_the_depths_of_the_definition() {
    let cases = [
        ("1yjp.cif", 256, 1.4, "protor"),
        ("1ejg.pdb.gz", 256, 1.4, "protor"),
        ("1a8o.pdb", 100, 1.4, "protor"),
        ("1as5.cif.gz", 90, 0.3, "protor"),
        ("5pti.cif.gz", 60, 2.5, "protor"),
        ("1ejg.pdb.gz", 100, 1.4, "oons"),
        ("1a8o.pdb", 60, 1.4, "bondi"),
    ];
    let mut cavities = 0;
    for (name, points, probe, radii) in cases {
        let radii = Radii::named(radii).unwrap();
        let s = sample_with(name, radii);
        let definition = DepthDefinition::new(&s, points, probe);
        let outer = definition.outer(points);
        cavities += outer.iter().filter(|outer| !**outer).count();
        let expected = rows(&s, &definition.depths(|point| outer[point]));
        let mut config = config(DepthChains::All, points, probe);
        config.sasa.radii = radii;
        let found = depths_of(&s, config);
        assert_near(name, &found, &expected, 1);
        // No residue is less deep than the radius of its smallest atom.
        assert!(found.iter().all(|row| row[0] >= 1.39), "{name}");
    }
    assert!(cavities > 20, "{cavities} points of cavities");
}

#[test]
fn the_own_chain_has_the_depths_of_the_chain_alone() {
    let own_chain = config(DepthChains::Own, 100, 1.4);
    let all = config(DepthChains::All, 100, 1.4);
    let mut differ = 0;
    for s in [
        sample("1hvr.pdb.gz"),
        sample("1lcd.pdb.gz"),
        structure(150, 3),
    ] {
        let [found, in_model] = [&own_chain, &all].map(|config| depths_of(&s, config.clone()));
        for chain in 0..s.chains.len() as u32 {
            let (part, part_rows) = alone(&s, &[chain]);
            if part_rows.is_empty() {
                continue;
            }
            let expected = depths_of(&part, all.clone());
            let bits = |row: [f32; 2]| row.map(f32::to_bits);
            for (row, expected) in part_rows.into_iter().zip(expected) {
                assert_eq!(bits(found[row]), bits(expected), "row {row}");
                differ += usize::from(bits(found[row]) != bits(in_model[row]));
            }
        }
    }
    assert!(differ > 50, "{differ}");
}

/// Twelve atoms of a residue that touch no other have twelve times the points that it has room for.
#[test]
fn structures_with_many_points_get_more_room() {
    let positions: Vec<[f64; 3]> = (0..96).map(|n| [20.0 * f64::from(n), 0.0, 0.0]).collect();
    let loose = structure_of_atoms(&positions, 12);
    let usual = structure(60, 5);
    let structures = [usual.clone(), loose, usual.clone()];
    let config = config(DepthChains::All, 256, 1.4);
    let found = compute(config.clone(), &structures);
    assert_eq!(depths(&found[1]), [[RADIUS; 2]; 8]);
    let expected = compute(config, &[usual]);
    for table in [&found[0], &found[2]] {
        for column in 0..2 {
            let [found, expected] =
                [table, &expected[0]].map(|table| bits(table.column(TableName::Residues, column)));
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn a_residue_without_c_alpha_has_no_depth_of_it() {
    let s = structure(200, 11);
    let found = depths_of(&s, config(DepthChains::All, 100, 1.4));
    let mut without = 0;
    for ([mean, alpha], residue) in found.into_iter().zip(&s.residues) {
        assert!(mean.is_finite());
        assert_eq!(alpha.is_nan(), residue.ca == MISSING);
        without += usize::from(alpha.is_nan());
    }
    assert!(without > 3, "{without}");
    assert!(depths_of(&structure(0, 1), config(DepthChains::All, 100, 1.4)).is_empty());
}

#[test]
fn no_depth_is_computed_unless_chains_are_chosen() {
    let mut config = FeatureConfig::default();
    let name = FeatureName::ResidueDepth;
    assert!(config.columns_of(name).is_empty());
    assert!(Features::new(config.clone()).is_ok());
    let choice = |word| Setting::Choice(word, &["none", "all", "own"]);
    let key = "residue_depth.chains";
    assert_eq!(config.settings(name), [(key, choice("none"))]);
    for word in ["all", "own"] {
        config.set(name, key, &choice(word)).unwrap();
        assert_eq!(config.settings(name), [(key, choice(word))]);
        let names: Vec<String> = config
            .columns_of(name)
            .into_iter()
            .map(|column| column.name)
            .collect();
        assert_eq!(names, ["residue_depth", "ca_depth"]);
    }
    for wrong in [choice("both"), Setting::Flag(true)] {
        assert!(config.set(name, key, &wrong).is_err());
    }
    assert!(
        config
            .set(name, "residue_depth.points", &choice("all"))
            .is_err()
    );

    config.set(name, key, &choice("none")).unwrap();
    config.features = vec![name];
    let error = Features::new(config.clone()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Config);
    let text = error.to_string();
    assert!(text.contains("residue_depth has nothing"), "{text}");
    assert!(
        text.contains("residue_depth.chains = \"all\" or \"own\""),
        "{text}"
    );
    // The settings of sasa, whose points are used, are checked too.
    config.set(name, key, &choice("all")).unwrap();
    config.sasa.probe = Cutoff::from_angstrom(16.5).unwrap();
    let error = Features::new(config).err().unwrap().to_string();
    assert!(error.contains("sasa.probe"), "{error}");
}
