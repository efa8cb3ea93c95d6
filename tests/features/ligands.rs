//! Ligands, ions and glycans of made-up structures against definitions written
//! out naively, and against the same atoms as atoms of the polymer.

use crate::made_up::{structure, with_ligands};
use crate::tables::{bits, compute};

use tapeloop::features::{
    Column, Cutoff, FeatureConfig, FeatureName, FeatureTable, Features, Fusion, NULL_COUNT,
    TableName,
};
use tapeloop::structure::{AtomDetails, LigandAtom, LigandKind, LooseSpan, MISSING, Structure};

const REACH2: i64 = 12_000 * 12_000;

fn structures() -> Vec<Structure> {
    let sizes = [0, 1, 40, 129, 300];
    let seeds = sizes.iter().zip(0..);
    seeds
        .map(|(&n, seed)| with_ligands(structure(n, seed), seed))
        .collect()
}

fn keeping(features: &[FeatureName]) -> FeatureConfig {
    let mut config = FeatureConfig {
        features: features.to_vec(),
        ..FeatureConfig::default()
    };
    config.ligands.keep = true;
    config
}

/// The bits of a column of residues.
fn column(config: &FeatureConfig, table: &FeatureTable, name: &str) -> Vec<u32> {
    let columns = config.columns(TableName::Residues);
    let position = columns.iter().position(|column| column.name == name);
    let position = position.unwrap_or_else(|| panic!("no column {name}"));
    bits(table.column(TableName::Residues, position))
}

fn distance2(a: [i32; 3], b: [i32; 3]) -> i64 {
    (0..3).map(|axis| i64::from(a[axis] - b[axis]).pow(2)).sum()
}

#[test]
fn ligands_and_metals_are_as_near_as_their_nearest_atoms() {
    let structures = structures();
    let mut config = keeping(&[FeatureName::Ligands]);
    config.ligands.cutoff = Cutoff::from_angstrom(5.5).unwrap();
    let tables = compute(config.clone(), &structures);
    let (mut found, mut metals, mut pairs, mut ties) = (0, 0, 0, 0);
    for (s, table) in structures.iter().zip(&tables) {
        let [dmin, contacts, comp, number, metal] = [
            "ligand_dmin",
            "ligand_contacts",
            "ligand_comp",
            "ligand_seq",
            "metal_dmin",
        ]
        .map(|name| column(&config, table, name));
        for row in 0..s.residues.len() {
            let atoms_of_residue =
                &s.xyz[s.atom_start[row] as usize..s.atom_start[row + 1] as usize];
            let (mut nearest, mut near_metal, mut near) = ((i64::MAX, 0), i64::MAX, 0);
            for (index, ligand) in s.ligands.iter().enumerate() {
                for atom in ligand.atoms.iter() {
                    for &xyz in atoms_of_residue {
                        let d2 = distance2(xyz, atom.xyz);
                        if ligand.kind == LigandKind::Ligand {
                            ties += u32::from(nearest.0 == d2);
                            nearest = nearest.min((d2, index));
                            near += u32::from(d2 < 5_500 * 5_500);
                        }
                        if [26, 30].contains(&atom.element) {
                            near_metal = near_metal.min(d2);
                        }
                    }
                }
            }
            let angstrom = |d2: i64| {
                if d2 < REACH2 {
                    (((d2 as f64).sqrt() * 0.001) as f32).to_bits()
                } else {
                    f32::NAN.to_bits()
                }
            };
            assert_eq!(dmin[row], angstrom(nearest.0), "row {row}");
            assert_eq!(metal[row], angstrom(near_metal), "row {row}");
            assert_eq!(contacts[row], near, "row {row}");
            let index = if nearest.0 < REACH2 {
                nearest.1 as i32
            } else {
                NULL_COUNT
            };
            assert_eq!([comp[row], number[row]], [index as u32; 2], "row {row}");
            found += u32::from(nearest.0 < REACH2);
            metals += u32::from(near_metal < REACH2);
            pairs += near;
        }
    }
    let seen = [found, metals, pairs, ties];
    assert!(seen.iter().all(|&count| count > 20), "{seen:?}");
}

#[test]
fn the_bound_area_is_that_with_the_atoms_in_the_model() {
    let structures = structures();
    let config = keeping(&[FeatureName::Ligands]);
    let tables = compute(config.clone(), &structures);
    let polymers = structures.iter().map(|s| {
        let mut s = s.clone();
        let ligands = std::mem::take(&mut s.ligands);
        let atoms = ligands.iter().flat_map(|ligand| ligand.atoms.iter());
        for atom in atoms {
            s.xyz.push(atom.xyz);
            s.element.push(atom.element);
            s.class.push(atom.class);
            s.b_factor.push(f32::NAN);
        }
        let rows = s.atom_start.last().copied().unwrap_or(0);
        let atom_count = s.xyz.len() as u32 - rows;
        s.loose = vec![LooseSpan {
            chain: 0,
            atom_count,
        }];
        s
    });
    let polymers: Vec<Structure> = polymers.collect();
    let areas = FeatureConfig {
        features: vec![FeatureName::Sasa],
        ..FeatureConfig::default()
    };
    let expected = compute(areas.clone(), &polymers);
    let without = compute(areas.clone(), &structures);
    let mut buried = 0;
    for index in 0..structures.len() {
        let bound = column(&config, &tables[index], "sasa_bound");
        assert_eq!(bound, column(&areas, &expected[index], "sasa"));
        let alone = column(&areas, &without[index], "sasa");
        buried += bound.iter().zip(&alone).filter(|(a, b)| a != b).count();
    }
    assert!(buried > 20, "{buried}");
}

#[test]
fn what_glycans_bury_is_the_area_without_them_less_that_with_them_alone() {
    let structures = structures();
    let config = keeping(&[FeatureName::Ligands, FeatureName::Sasa]);
    let tables = compute(config.clone(), &structures);
    let mut with_glycans = structures.clone();
    for s in &mut with_glycans {
        s.ligands.retain(|ligand| ligand.kind == LigandKind::Glycan);
    }
    let bound = compute(config.clone(), &with_glycans);
    let mut buried = 0;
    for (table, bound) in tables.iter().zip(&bound) {
        let delta = column(&config, table, "glycan_sasa_delta");
        assert_eq!(delta, column(&config, bound, "glycan_sasa_delta"));
        let pairs = column(&config, table, "sasa").into_iter();
        let pairs = pairs.zip(column(&config, bound, "sasa_bound"));
        for (delta, (without, with)) in delta.into_iter().zip(pairs) {
            let [delta, without, with] = [delta, without, with].map(f32::from_bits);
            let expected = without - with;
            assert!(
                (delta - expected).abs() < 1e-3 || delta.is_nan() && expected.is_nan(),
                "{delta} against {without} less {with}"
            );
            buried += u32::from(delta > 1.0);
        }
    }
    assert!(buried > 20, "{buried}");
}

/// The area of some atoms with others around them.
fn area_among(ligand: &[LigandAtom], others: &[LigandAtom]) -> f32 {
    let mut s = structure(1, 0);
    let residue = &mut s.residues[0];
    residue.chain = 0;
    for atom in [
        &mut residue.n,
        &mut residue.ca,
        &mut residue.c,
        &mut residue.o,
        &mut residue.cb,
    ] {
        *atom = MISSING;
    }
    let atoms = ligand.iter().chain(others);
    s.xyz = atoms.clone().map(|atom| atom.xyz).collect();
    s.element = atoms.clone().map(|atom| atom.element).collect();
    s.class = atoms.map(|atom| atom.class).collect();
    s.b_factor = vec![f32::NAN; s.xyz.len()];
    s.atom_name.clear();
    s.atom_start = vec![0, ligand.len() as u32];
    s.loose = vec![LooseSpan {
        chain: 0,
        atom_count: others.len() as u32,
    }];
    let areas = FeatureConfig {
        features: vec![FeatureName::Sasa],
        ..FeatureConfig::default()
    };
    let table = &compute(areas.clone(), &[s])[0];
    f32::from_bits(column(&areas, table, "sasa")[0])
}

#[test]
fn the_table_of_ligands_has_areas_and_contacts_by_their_definitions() {
    let structures = structures();
    let mut config = keeping(&[FeatureName::Ligands]);
    config.ligands.cutoff = Cutoff::from_angstrom(3.9).unwrap();
    let tables = compute(config.clone(), &structures);
    let columns = config.columns(TableName::Ligands);
    let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    assert_eq!(names, ["sasa_alone", "sasa_buried", "contact_residues"]);
    let (mut buried_some, mut contacts) = (0, 0);
    for (s, table) in structures.iter().zip(&tables) {
        assert_eq!(table.rows(TableName::Ligands), s.ligands.len());
        let values = |column: usize| bits(table.column(TableName::Ligands, column));
        let [alone, buried, near] = [0, 1, 2].map(values);
        let polymer_atoms: Vec<LigandAtom> = (0..s.xyz.len())
            .map(|atom| LigandAtom {
                xyz: s.xyz[atom],
                element: s.element[atom],
                class: s.class[atom],
                b_factor: s.b_factor[atom],
                details: AtomDetails::default(),
            })
            .collect();
        for (index, ligand) in s.ligands.iter().enumerate() {
            let atoms_of_ligand = &ligand.atoms;
            let [alone, buried] = [alone[index], buried[index]].map(f32::from_bits);
            assert_eq!(alone, area_among(atoms_of_ligand, &[]), "ligand {index}");
            if index == 6 {
                // Ligand 3 has the same atoms and comes first.
                assert_eq!(buried, alone);
            } else {
                let ligands = s.ligands.iter().enumerate();
                let others = ligands.filter(|(other, _)| *other != index);
                let others = others.flat_map(|(_, other)| other.atoms.iter());
                let others: Vec<LigandAtom> = polymer_atoms.iter().chain(others).copied().collect();
                let in_model = area_among(atoms_of_ligand, &others);
                assert!((alone - buried - in_model).abs() < 1e-3, "ligand {index}");
            }
            let expected = s.atom_start.windows(2).filter(|range| {
                let mut atoms = s.xyz[range[0] as usize..range[1] as usize].iter();
                atoms.any(|&xyz| {
                    atoms_of_ligand
                        .iter()
                        .any(|b| distance2(xyz, b.xyz) < 3_900 * 3_900)
                })
            });
            let expected = expected.count() as u32;
            assert_eq!(near[index], expected, "ligand {index}");
            buried_some += u32::from(buried > 1.0);
            contacts += expected;
        }
    }
    assert!(
        buried_some > 20 && contacts > 50,
        "{buried_some}, {contacts}"
    );
}

#[test]
fn ligands_change_no_other_column() {
    let structures = structures();
    let mut bare = structures.clone();
    bare.iter_mut().for_each(|s| s.ligands.clear());
    let all = |tables: Vec<FeatureTable>| -> Vec<Vec<u32>> {
        let tables = tables.into_iter();
        let bits_of_table = |table: FeatureTable| -> Vec<Vec<u32>> {
            let columns = TableName::ALL
                .into_iter()
                .flat_map(|name| table.columns(name));
            columns.map(bits).collect()
        };
        tables.flat_map(bits_of_table).collect()
    };
    let dropped = FeatureConfig::default();
    let expected = all(compute(dropped.clone(), &bare));
    assert_eq!(all(compute(dropped.clone(), &structures)), expected);
    let residue_column_count = |config: &FeatureConfig| config.columns(TableName::Residues).len();
    let kept = keeping(FeatureName::ALL);
    assert_eq!(
        residue_column_count(&kept),
        residue_column_count(&dropped) + 7
    );
    for fusion in [Fusion::Off, Fusion::On] {
        let kept = FeatureConfig {
            fusion,
            ..kept.clone()
        };
        let tables = compute(kept.clone(), &structures);
        let others = compute(dropped.clone(), &bare);
        for (table, other) in tables.iter().zip(&others) {
            for decl in dropped.columns(TableName::Residues) {
                let [found, wanted] = [(&kept, table), (&dropped, other)]
                    .map(|(config, table)| column(config, table, &decl.name));
                assert_eq!(found, wanted, "{}, fusion {fusion:?}", decl.name);
            }
        }
    }
}

#[test]
fn structures_without_ligands_have_none_near() {
    let config = keeping(&[FeatureName::Ligands]);
    let tables = compute(config.clone(), &[structure(60, 1)]);
    let columns = tables[0].columns(TableName::Residues);
    for (decl, values) in config.columns(TableName::Residues).iter().zip(columns) {
        let is_empty = match values {
            _ if decl.name == "sasa_bound" => continue,
            Column::Real(reals) if decl.name == "glycan_sasa_delta" => {
                reals.iter().all(|&real| real == 0.0)
            }
            Column::Count(counts) if decl.name == "ligand_contacts" => {
                counts.iter().all(|&count| count == 0)
            }
            Column::Count(counts) => counts.iter().all(|&count| count == NULL_COUNT),
            Column::Real(reals) => reals.iter().all(|real| real.is_nan()),
        };
        assert!(is_empty, "{}", decl.name);
    }
}

#[test]
fn settings_of_ligands_are_checked() {
    let refusal = |config: FeatureConfig| Features::new(config).err().unwrap().to_string();
    let mut dropped = keeping(&[FeatureName::Ligands]);
    dropped.ligands.keep = false;
    let message = refusal(dropped);
    assert!(message.contains("ligands has nothing"), "{message}");
    let mut far = keeping(&[FeatureName::Ligands]);
    far.ligands.cutoff = Cutoff::from_angstrom(12.5).unwrap();
    let message = refusal(far);
    assert!(message.contains("ligand.cutoff"), "{message}");
}

#[test]
fn areas_of_atoms_add_up_to_those_of_residues_and_of_ligands() {
    let structures = structures();
    let mut config = keeping(&[FeatureName::Ligands, FeatureName::Atoms]);
    config.atoms.keep = true;
    let names: Vec<String> = (config.columns(TableName::Atoms).into_iter())
        .map(|column| column.name)
        .collect();
    assert_eq!(names, ["sasa", "sasa_bound"]);
    let tables = compute(config.clone(), &structures);
    let is_near = |sum: f64, expected: f64| (sum - expected).abs() < 1e-5 * (1.0 + expected);
    let mut ligands = 0;
    for (s, table) in structures.iter().zip(&tables) {
        let areas = |column: usize| -> Vec<f64> {
            let areas = bits(table.column(TableName::Atoms, column)).into_iter();
            areas.map(|bits| f64::from(f32::from_bits(bits))).collect()
        };
        let [alone, bound] = [0, 1].map(areas);
        let sasa_bound = column(&config, table, "sasa_bound");
        for (row, ends) in s.atom_start.windows(2).enumerate() {
            let sum: f64 = bound[ends[0] as usize..ends[1] as usize].iter().sum();
            let expected = f64::from(f32::from_bits(sasa_bound[row]));
            assert!(
                ends[0] == ends[1] || is_near(sum, expected),
                "{sum}, not {expected}"
            );
        }
        let of_ligands = |column: usize| bits(table.column(TableName::Ligands, column));
        let [whole, buried] = [0, 1].map(of_ligands);
        // The atoms of glycans come first.
        let mut start = s.xyz.len();
        for glycans in [true, false] {
            for (index, ligand) in s.ligands.iter().enumerate() {
                if (ligand.kind == LigandKind::Glycan) == glycans {
                    let end = start + ligand.atoms.len();
                    let sum: f64 = bound[start..end].iter().sum();
                    let [whole, buried] =
                        [&whole, &buried].map(|areas| f32::from_bits(areas[index]));
                    let left = f64::from(whole) - f64::from(buried);
                    assert!(
                        (sum - left).abs() < 1e-3,
                        "ligand {index}: {sum}, not {left}"
                    );
                    assert!(alone[start..end].iter().all(|area| area.is_nan()));
                    (start, ligands) = (end, ligands + 1);
                }
            }
        }
        assert_eq!(start, bound.len());
    }
    assert!(ligands > 20);
    let alone = FeatureConfig {
        features: vec![FeatureName::Ligands],
        ..config
    };
    assert!(
        alone.columns(TableName::Atoms).is_empty(),
        "no table of atoms"
    );
}
