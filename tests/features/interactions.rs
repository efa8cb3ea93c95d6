//! The table of interactions against its definitions, written out naively.

use crate::made_up::with_rings_on_lines;
use crate::samples::samples;
use crate::tables::compute;
use std::collections::BTreeMap;
use tapeloop::features::{
    Column, Cutoff, FeatureConfig, FeatureName, FeatureTable, INTERACTION_KINDS, Interactions,
    TableName,
};
use tapeloop::structure::{CheckedStructure, Chemistry, Roles, Structure};

fn config(interactions: Interactions) -> FeatureConfig {
    FeatureConfig {
        features: vec![FeatureName::Interactions],
        interactions: Interactions {
            keep: true,
            ..interactions
        },
        ..FeatureConfig::default()
    }
}

/// The rows by both atoms and the kind: the distance and the angle.
type Rows = BTreeMap<(usize, usize, &'static str), (f32, f32)>;

fn rows(table: &FeatureTable) -> Rows {
    let name = TableName::Interactions;
    let counts = |index: usize| match table.column(name, index) {
        Column::Count(values) => values.to_vec(),
        Column::Real(_) => panic!("column {index} is real"),
    };
    let reals = |index: usize| match table.column(name, index) {
        Column::Real(values) => values.to_vec(),
        Column::Count(_) => panic!("column {index} is a count"),
    };
    let [first, second, kinds] = [0, 1, 2].map(counts);
    let [distances, angles] = [3, 4].map(reals);
    let keys: Vec<_> = (0..first.len())
        .map(|row| {
            let kind = INTERACTION_KINDS[kinds[row] as usize];
            (first[row] as usize, second[row] as usize, kind)
        })
        .collect();
    let order: Vec<_> = keys.iter().map(|key| (key.0, key.1)).collect();
    assert!(order.is_sorted(), "rows are sorted by their atoms");
    let values = distances.into_iter().zip(angles);
    let all: Rows = keys.iter().copied().zip(values).collect();
    assert_eq!(all.len(), keys.len(), "no row is there twice");
    all
}

type Vector = [f64; 3];

fn minus(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|axis| a[axis] - b[axis])
}

fn dot(a: Vector, b: Vector) -> f64 {
    (0..3).map(|axis| a[axis] * b[axis]).sum()
}

fn length(a: Vector) -> f64 {
    dot(a, a).sqrt()
}

fn cross(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|axis| {
        let (next, last) = ((axis + 1) % 3, (axis + 2) % 3);
        a[next] * b[last] - a[last] * b[next]
    })
}

fn degrees(a: Vector, b: Vector) -> f64 {
    (dot(a, b) / length(a) / length(b))
        .clamp(-1.0, 1.0)
        .acos()
        .to_degrees()
}

fn mean(positions: &[Vector]) -> Vector {
    let sum = |axis: usize| positions.iter().map(|position| position[axis]).sum::<f64>();
    std::array::from_fn(|axis| sum(axis) / positions.len() as f64)
}

/// A value compared with a limit: how much it is below it.
fn below(value: f64, limit: f64) -> f64 {
    limit - value
}

/// An interaction that the definition gives, with by how much it fulfils it (negative if it does not).
struct Found {
    kind: &'static str,
    by: f64,
    distance: f64,
    angle: Option<f64>,
}

/// The definitions, in A and degrees.
struct Definition {
    xyz: Vec<Vector>,
    chemistry: Chemistry,
    bonded: BTreeMap<usize, Vec<usize>>,
    groups: BTreeMap<usize, Vec<usize>>,
}

impl Definition {
    fn new(structure: &Structure) -> Self {
        let checked = CheckedStructure::new(structure.clone()).unwrap();
        let chemistry = Chemistry::of(&checked, None);
        let mut bonded: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for [atom, other] in chemistry.bonds().flatten() {
            bonded
                .entry(*atom as usize)
                .or_default()
                .push(*other as usize);
        }
        let groups = chemistry.groups();
        let groups = groups.map(|(atom, members)| {
            let members = members.iter().map(|&member| member as usize);
            (atom as usize, members.collect())
        });
        Definition {
            xyz: structure
                .xyz
                .iter()
                .map(|xyz| xyz.map(|axis| f64::from(axis) / 1000.0))
                .collect(),
            groups: groups.collect(),
            bonded,
            chemistry,
        }
    }

    fn has(&self, atom: usize, role: Roles) -> bool {
        self.chemistry.roles()[atom].contains(role)
    }

    /// The positions of the atoms that are bonded to an atom.
    fn neighbours(&self, atom: usize) -> Vec<Vector> {
        let bonded = self.bonded.get(&atom).map_or(&[][..], Vec::as_slice);
        bonded.iter().map(|&other| self.xyz[other]).collect()
    }

    /// A bond from a donor: the hydrogen is searched for in steps.
    fn hydrogen_bond(&self, donor: usize, acceptor: usize) -> Option<Found> {
        let [d, a] = [donor, acceptor].map(|atom| self.xyz[atom]);
        let distance = length(minus(a, d));
        let behind = self.neighbours(acceptor);
        let open = if behind.is_empty() {
            f64::INFINITY
        } else {
            90.0 - degrees(minus(a, mean(&behind)), minus(d, a))
        };
        let bonded = self.neighbours(donor);
        let hydrogens: Vec<Vector> = match bonded.len() {
            0 => vec![minus(a, d)],
            1 => {
                // The cone at the tetrahedral angle.
                let axis = minus(d, bonded[0]);
                let side = cross(
                    axis,
                    if axis[0].abs() < length(axis) / 2.0 {
                        [1.0, 0.0, 0.0]
                    } else {
                        [0.0, 1.0, 0.0]
                    },
                );
                let other = cross(axis, side);
                let tilt = (1.0_f64 / 3.0).acos();
                let step = |index: usize| {
                    let turn = index as f64 / 3600.0 * std::f64::consts::TAU;
                    std::array::from_fn(|k| {
                        axis[k] / length(axis) * tilt.cos()
                            + tilt.sin()
                                * (side[k] / length(side) * turn.cos()
                                    + other[k] / length(other) * turn.sin())
                    })
                };
                (0..3600).map(step).collect()
            }
            _ => vec![minus(d, mean(&bonded))],
        };
        let at = |direction: &Vector| -> Vector {
            std::array::from_fn(|axis| d[axis] + direction[axis] / length(*direction))
        };
        let nearest = hydrogens
            .iter()
            .map(at)
            .min_by(|one, other| length(minus(a, *one)).total_cmp(&length(minus(a, *other))))?;
        let angle = degrees(minus(d, nearest), minus(a, nearest));
        let by = [
            below(distance, 3.9),
            below(length(minus(a, nearest)), 2.5),
            (angle - 90.0) / 50.0,
            open / 50.0,
            distance - 2.0,
        ];
        Some(Found {
            kind: "hydrogen_bond",
            by: by.into_iter().fold(f64::INFINITY, f64::min),
            distance,
            angle: (!bonded.is_empty()).then_some(angle),
        })
    }

    fn of_atoms(&self, a: usize, b: usize) -> Option<Found> {
        let distance = length(minus(self.xyz[a], self.xyz[b]));
        let both = |role| self.has(a, role) && self.has(b, role);
        let either = |one, other| {
            (self.has(a, one) && self.has(b, other)) || (self.has(a, other) && self.has(b, one))
        };
        let plain = |kind, by| {
            Some(Found {
                kind,
                by,
                distance,
                angle: None,
            })
        };
        if both(Roles::HYDROPHOBIC) {
            return plain("hydrophobic", below(distance, 4.0).min(distance - 2.0));
        }
        if either(Roles::DONOR, Roles::ACCEPTOR) {
            let from = |donor: usize, acceptor: usize| {
                let may_be = self.has(donor, Roles::DONOR) && self.has(acceptor, Roles::ACCEPTOR);
                may_be.then(|| self.hydrogen_bond(donor, acceptor))?
            };
            let [one, other] = [from(a, b), from(b, a)];
            return match (one, other) {
                (Some(one), Some(other)) if one.by < 0.0 => Some(other),
                (None, other) => other,
                (one, _) => one,
            };
        }
        if both(Roles::THIOL) {
            return plain("disulfide", below(distance, 2.5));
        }
        if either(Roles::METAL, Roles::COORDINATES) {
            return plain("metal_coordination", below(distance, 3.0));
        }
        None
    }

    fn of_groups(&self, a: usize, b: usize) -> Option<Found> {
        let [one, other] = [a, b].map(|atom| -> Option<Vec<Vector>> {
            let members = self.groups.get(&atom)?;
            Some(members.iter().map(|&member| self.xyz[member]).collect())
        });
        let (one, other) = (one?, other?);
        let apart = minus(mean(&other), mean(&one));
        let distance = length(apart);
        let normal = |ring: &[Vector]| {
            let centre = mean(ring);
            let pairs = ring.iter().zip(ring.iter().cycle().skip(1));
            let products = pairs.map(|(p, q)| cross(minus(*p, centre), minus(*q, centre)));
            products.fold([0.0; 3], |sum, product| {
                std::array::from_fn(|axis| sum[axis] + product[axis])
            })
        };
        // How far a point is from the axis of a ring.
        let beside = |ring: &[Vector]| {
            let normal = normal(ring);
            let along = dot(normal, apart) / length(normal);
            (distance * distance - along * along).max(0.0).sqrt()
        };
        let of_lines = |degrees: f64| degrees.min(180.0 - degrees);
        let is = |atom, role| self.has(atom, role);
        let found = |kind, by: f64, angle| {
            Some(Found {
                kind,
                by,
                distance,
                angle,
            })
        };
        match (is(a, Roles::RING), is(b, Roles::RING)) {
            (true, true) => {
                let angle = of_lines(degrees(normal(&one), normal(&other)));
                let offset = beside(&one).min(beside(&other));
                let by = below(distance, 5.5).min(below(offset, 2.0));
                if angle < 45.0 {
                    let by = by.min((30.0 - angle) / 50.0);
                    found("pi_stacking_face", by, Some(angle))
                } else {
                    let by = by.min((angle - 60.0) / 50.0);
                    found("pi_stacking_edge", by, Some(angle))
                }
            }
            (false, false) => {
                let charges = |positive, negative| {
                    is(positive, Roles::POSITIVE) && is(negative, Roles::NEGATIVE)
                };
                let is_pair = charges(a, b) || charges(b, a);
                is_pair.then(|| found("salt_bridge", below(distance, 5.5), None))?
            }
            (first_is_ring, _) => {
                let (ring, charge) = if first_is_ring {
                    (&one, b)
                } else {
                    (&other, a)
                };
                let by = below(distance, 6.0).min(below(beside(ring), 2.0));
                let angle = of_lines(degrees(normal(ring), apart));
                is(charge, Roles::POSITIVE).then(|| found("cation_pi", by, Some(angle)))?
            }
        }
    }
}

/// The counts of residues.
fn residue_counts(table: &FeatureTable) -> Vec<[i32; INTERACTION_KINDS.len()]> {
    let columns =
        [0, 1, 2, 3, 4, 5, 6, 7].map(|index| match table.column(TableName::Residues, index) {
            Column::Count(values) => values,
            Column::Real(_) => panic!("column {index} is real"),
        });
    (0..table.rows(TableName::Residues))
        .map(|row| columns.map(|column| column[row]))
        .collect()
}

#[test]
fn residues_count_their_rows_by_kind() {
    for (name, structure) in samples() {
        let table = &compute(
            config(Interactions::default()),
            std::slice::from_ref(&structure),
        )[0];
        let checked = CheckedStructure::new(structure.clone()).unwrap();
        let chemistry = Chemistry::of(&checked, None);
        let mut expected = vec![[0; INTERACTION_KINDS.len()]; structure.residues.len()];
        for (first, second, kind) in rows(table).into_keys() {
            let kind = INTERACTION_KINDS
                .iter()
                .position(|known| *known == kind)
                .unwrap();
            for atom in [first, second] {
                if let Some(counts) = expected.get_mut(chemistry.owners()[atom] as usize) {
                    counts[kind] += 1;
                }
            }
        }
        assert_eq!(residue_counts(table), expected, "{name}");
    }
}

/// Values this close to a limit may be on either side: positions are rounded to 0.001 A, and the search
/// for a hydrogen has steps.
const MARGIN: f64 = 0.003;

#[test]
fn interactions_are_those_of_their_definitions() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, structure) in samples() {
        if structure.xyz.len() > 4_000 {
            continue;
        }
        let definition = Definition::new(&structure);
        let table = compute(
            config(Interactions::default()),
            std::slice::from_ref(&structure),
        );
        let mut rows = rows(&table[0]);
        let owners = definition.chemistry.owners();
        for a in 0..structure.xyz.len() {
            for b in a + 1..structure.xyz.len() {
                let near = length(minus(definition.xyz[a], definition.xyz[b])) < 12.0;
                if !near || owners[a] == owners[b] {
                    continue;
                }
                let both = [definition.of_atoms(a, b), definition.of_groups(a, b)];
                for found in both.into_iter().flatten() {
                    let row = rows.remove(&(a, b, found.kind));
                    let place = format!("{name}: {a} {b} {} by {}", found.kind, found.by);
                    match row {
                        None => assert!(found.by < MARGIN, "{place}: there is no row"),
                        Some((distance, angle)) => {
                            assert!(found.by > -MARGIN, "{place}: there is a row");
                            let apart = (f64::from(distance) - found.distance).abs();
                            assert!(apart < 0.002, "{place}: {distance}");
                            match found.angle {
                                None => assert!(angle.is_nan(), "{place}"),
                                Some(expected) => {
                                    let apart = (f64::from(angle) - expected).abs();
                                    assert!(apart < 0.5, "{place}: {angle}, expected {expected}");
                                }
                            }
                            *counts.entry(found.kind).or_default() += 1;
                        }
                    }
                }
            }
        }
        assert!(rows.is_empty(), "{name}: {rows:?}");
    }
    for kind in [
        "hydrogen_bond",
        "salt_bridge",
        "disulfide",
        "hydrophobic",
        "pi_stacking_edge",
    ] {
        assert!(
            counts.get(kind).is_some_and(|&count| count > 5),
            "{counts:?}"
        );
    }
}

#[test]
fn a_ring_without_a_plane_is_not_stacked() {
    let mut stacked = [0; 2];
    for (_, structure) in samples() {
        let count = |structure: Structure| {
            let table = &compute(config(Interactions::default()), &[structure])[0];
            let of_rings = |key: &(usize, usize, &str)| key.2.starts_with("pi_stacking");
            let rows = rows(table);
            let angles = rows.iter().filter(|(key, _)| of_rings(key));
            let angles: Vec<_> = angles.map(|(_, (_, angle))| *angle).collect();
            assert!(angles.iter().all(|angle| !angle.is_nan()), "{angles:?}");
            angles.len()
        };
        stacked[0] += count(structure.clone());
        stacked[1] += count(with_rings_on_lines(structure));
    }
    assert!(0 < stacked[1] && stacked[1] < stacked[0], "{stacked:?}");
}

#[test]
fn kinds_and_distances_choose_rows() {
    let structure = crate::samples::sample("5pti.cif.gz");
    let all = rows(
        &compute(
            config(Interactions::default()),
            std::slice::from_ref(&structure),
        )[0],
    );
    for kind in INTERACTION_KINDS {
        let alone = Interactions {
            kinds: vec![kind.to_owned()],
            ..Interactions::default()
        };
        let found = rows(&compute(config(alone), std::slice::from_ref(&structure))[0]);
        let expected: Rows = all
            .iter()
            .filter(|(key, _)| key.2 == kind)
            .map(|(k, v)| (*k, *v))
            .collect();
        assert!(found.keys().eq(expected.keys()), "{kind}");
    }
    let nearer = Interactions {
        hydrophobic: Cutoff::from_angstrom(3.8).unwrap(),
        ..Interactions::default()
    };
    let found = rows(&compute(config(nearer), std::slice::from_ref(&structure))[0]);
    let is_kept = |(key, value): &(&(usize, usize, &str), &(f32, f32))| {
        key.2 != "hydrophobic" || value.0 < 3.8
    };
    let expected: Vec<_> = all.iter().filter(is_kept).map(|(key, _)| *key).collect();
    assert!(found.keys().copied().eq(expected.iter().copied()));
    assert!(found.len() < all.len());
}

#[test]
fn settings_that_fit_nothing_are_refused_with_a_fix() {
    let check = |interactions| {
        let error = tapeloop::features::Features::new(config(interactions))
            .err()
            .unwrap();
        error.to_string()
    };
    let kinds = |kinds: &[&str]| Interactions {
        kinds: kinds.iter().map(|&kind| kind.to_owned()).collect(),
        ..Interactions::default()
    };
    assert!(check(kinds(&["hydrogen_bonds"])).contains("hydrogen_bonds"));
    assert!(check(kinds(&[])).contains("interaction.kinds"));
    let far = Interactions {
        salt_bridge: Cutoff::from_angstrom(9.0).unwrap(),
        ..Interactions::default()
    };
    assert!(check(far).contains("interaction.salt_bridge"));
}
