//! The settings that leave other chains out: their results are those of a structure of the chain
//! alone.

use crate::made_up::structure;
use crate::samples::samples;
use crate::tables::{bits, compute};
use tapeloop::features::{
    Column, FeatureConfig, FeatureName, FeatureTable, Features, NULL_COUNT, Setting, TableName,
};
use tapeloop::structure::{Channel, MISSING, Residue, Structure};

/// Some chains of a structure alone, with the atoms that belong to no residue, and the rows of the
/// structure that are its residues.
pub(crate) fn alone(s: &Structure, chains: &[u32]) -> (Structure, Vec<usize>) {
    let mut part = Structure {
        atom_start: vec![0],
        chains: s.chains.clone(),
        b_factor_kind: s.b_factor_kind,
        ..Structure::default()
    };
    let mut rows = Vec::new();
    let mut next = 0;
    let mut take = |part: &mut Structure, chain: u32, count: usize| {
        let atoms = next..next + count;
        next = atoms.end;
        let is_kept = chains.contains(&chain);
        for atom in atoms.filter(|_| is_kept) {
            part.xyz.push(s.xyz[atom]);
            part.element.push(s.element[atom]);
            part.class.push(s.class[atom]);
            part.b_factor.push(s.b_factor[atom]);
        }
        is_kept
    };
    let spans = s.residues.iter().zip(s.atom_start.windows(2));
    for (row, (residue, span)) in spans.enumerate() {
        let place = |part: &Structure, atom: u32| match atom {
            MISSING => MISSING,
            atom => atom - span[0] + part.xyz.len() as u32,
        };
        let place_of = |atom: u32| place(&part, atom);
        let moved = Residue {
            n: place_of(residue.n),
            ca: place_of(residue.ca),
            c: place_of(residue.c),
            o: place_of(residue.o),
            cb: place_of(residue.cb),
            ..*residue
        };
        if take(&mut part, residue.chain, (span[1] - span[0]) as usize) {
            part.residues.push(moved);
            part.atom_start.push(part.xyz.len() as u32);
            rows.push(row);
        }
    }
    for span in &s.loose {
        if take(&mut part, span.chain, span.atom_count as usize) {
            part.loose.push(*span);
        }
    }
    part.channels = s.channels.clone();
    for (channel, all) in part.channels.iter_mut().zip(&s.channels) {
        channel.values = rows.iter().map(|&row| all.values[row]).collect();
    }
    (part, rows)
}

/// The key of a feature's setting of chains. Residue depth, which is off by default, has its own
/// tests.
fn key_of(name: FeatureName) -> Option<&'static str> {
    let settings = FeatureConfig::default().settings(name).into_iter();
    let mut keys = settings.map(|(key, _)| key);
    keys.find(|key| key.ends_with(".chains") && name != FeatureName::ResidueDepth)
}

fn config(features: &[FeatureName], own_chain_features: &[FeatureName]) -> FeatureConfig {
    let mut config = FeatureConfig {
        features: features.to_vec(),
        ..FeatureConfig::default()
    };
    config.cluster.select = ["L", "A", "V"].map(str::to_owned).to_vec();
    config.contacts.point = tapeloop::features::ContactPoint::Ca;
    config.smooth.channels = vec!["numbers".to_owned()];
    for &name in own_chain_features {
        let key = key_of(name).unwrap();
        let own_chain = Setting::Choice("own", &["all", "own"]);
        config.set(name, key, &own_chain).unwrap();
        assert!(config.settings(name).contains(&(key, own_chain)));
    }
    config
}

/// Structures whose chains are contiguous and in order, with a channel of numbers.
fn structures() -> Vec<Structure> {
    let made_up = (0..4).map(|n| {
        let mut s = structure([40, 90, 129, 200][n], 70 + n as u64);
        let (mut last, count) = (None, s.residues.len());
        for (index, residue) in s.residues.iter_mut().enumerate() {
            residue.chain = (3 * index / count) as u32;
            residue.break_before |= last != Some(residue.chain);
            last = Some(residue.chain);
        }
        s
    });
    let real = samples().into_iter().map(|(_, s)| s);
    let several = |s: &Structure| s.row_chains().len() > 1 && s.residues.len() < 600;
    let mut all: Vec<Structure> = made_up.chain(real.filter(several)).collect();
    for s in &mut all {
        let value = |row: usize| (row as f32 * 0.37).sin() * 9.0;
        s.channels = vec![Channel {
            name: "numbers".to_owned(),
            values: (0..s.residues.len()).map(value).collect(),
        }];
    }
    all
}

/// Numbers in the order in which they first appear.
fn renumbered(values: &[i32]) -> Vec<i32> {
    let mut seen = Vec::new();
    let number = |value: &i32| {
        if *value == NULL_COUNT {
            return NULL_COUNT;
        }
        let known = seen.iter().position(|other| other == value);
        known.unwrap_or_else(|| {
            seen.push(*value);
            seen.len() - 1
        }) as i32
    };
    values.iter().map(number).collect()
}

fn real(column: Column<'_>) -> Option<&[f32]> {
    match column {
        Column::Real(values) => Some(values),
        Column::Count(_) => None,
    }
}

#[test]
fn features_of_neighbours_have_the_setting() {
    let have: Vec<&str> = FeatureName::ALL
        .iter()
        .filter(|&&name| key_of(name).is_some())
        .map(|name| name.name())
        .collect();
    let expected = [
        "contact_number",
        "wcn",
        "hse_a",
        "hse_b",
        "dssp",
        "sasa",
        "protrusion",
        "cluster",
        "smooth",
        "contacts",
    ];
    assert_eq!(have, expected);
    let mut config = FeatureConfig::default();
    for name in FeatureName::ALL.iter().copied() {
        let Some(key) = key_of(name) else { continue };
        let default = config.settings(name);
        let all = Setting::Choice("all", &["all", "own"]);
        assert!(default.contains(&(key, all)), "{key}");
        let none = Setting::Choice("none", &["none"]);
        assert!(config.set(name, key, &none).is_err(), "{key}");
    }
    assert!(Features::new(config).is_ok());
}

#[test]
fn the_own_chain_has_the_values_of_the_chain_alone() {
    let structures = structures();
    let all = FeatureName::ALL.iter().copied();
    let names: Vec<FeatureName> = all.filter(|&name| key_of(name).is_some()).collect();
    let (own_chain, model) = (config(&names, &names), config(&names, &[]));
    let decls = own_chain.columns(TableName::Residues);
    let found = compute(own_chain, &structures);
    let in_model = compute(model.clone(), &structures);
    let mut parts = Vec::new();
    for (n, s) in structures.iter().enumerate() {
        for chain in 0..s.chains.len() as u32 {
            let (part, rows) = alone(s, &[chain]);
            if !rows.is_empty() {
                parts.push((n, part, rows));
            }
        }
    }
    let alone: Vec<Structure> = parts.iter().map(|(_, part, _)| part.clone()).collect();
    let expected = compute(model, &alone);
    let mut differ = vec![0; decls.len()];
    for ((n, part, rows), expected) in parts.iter().zip(&expected) {
        for (column, decl) in decls.iter().enumerate() {
            let bits_of = |table: &FeatureTable| -> Vec<u32> {
                bits(table.column(TableName::Residues, column))
            };
            let (all, model) = (bits_of(&found[*n]), bits_of(&in_model[*n]));
            let pick = |all: &[u32]| -> Vec<u32> { rows.iter().map(|&row| all[row]).collect() };
            let (found_bits, expected) = (pick(&all), bits_of(expected));
            differ[column] += found_bits
                .iter()
                .zip(pick(&model))
                .filter(|(a, b)| **a != *b)
                .count();
            let context = format!("{} of structure {n}", decl.name);
            if decl.name == "wcn" {
                // The terms are added in single precision, and in a different order.
                for (found_bits, expected) in found_bits.iter().zip(&expected) {
                    let [found_bits, expected] = [*found_bits, *expected].map(f32::from_bits);
                    let near = (found_bits - expected).abs() <= 4e-6 * expected;
                    assert!(
                        near || found_bits.is_nan() && expected.is_nan(),
                        "{context}"
                    );
                }
                continue;
            }
            let signed =
                |values: &[u32]| values.iter().map(|value| *value as i32).collect::<Vec<_>>();
            let is_partner = decl.name.starts_with("hb_") && !decl.name.ends_with("_energy");
            let expected: Vec<u32> = match decl.name.as_str() {
                "cluster" => {
                    assert_eq!(
                        renumbered(&signed(&found_bits)),
                        renumbered(&signed(&expected)),
                        "{context}"
                    );
                    continue;
                }
                // Indices count in the structure of the chain alone.
                _ if is_partner => {
                    let row = |&row_index: &u32| {
                        rows.get(row_index as usize)
                            .map_or(u32::MAX, |&row| row as u32)
                    };
                    expected.iter().map(row).collect()
                }
                _ => expected,
            };
            assert_eq!(found_bits, expected, "{context}");
        }
        // Sums over the chain.
        let chain = part.residues[0].chain as usize;
        let columns = found[*n]
            .columns(TableName::Chains)
            .zip(expected.columns(TableName::Chains));
        for (found_column, expected) in columns {
            if let (Some(found_column), Some(expected)) = (real(found_column), real(expected)) {
                assert_eq!(found_column[chain].to_bits(), expected[chain].to_bits());
            }
        }
    }
    for (decl, differ) in decls.iter().zip(differ) {
        assert!(differ > 0, "{}: other chains change it", decl.name);
    }
}

/// The area in the chain alone is the area in the model plus what other chains bury.
#[test]
fn areas_of_the_chain_alone_leave_what_other_chains_bury_as_it_is() {
    let structures = structures();
    let names = [
        FeatureName::Sasa,
        FeatureName::InterfaceResidues,
        FeatureName::Rsa,
    ];
    let own_chain = config(&names, &[FeatureName::Sasa]);
    let decls = own_chain.columns(TableName::Residues);
    let column_of = |name: &str| decls.iter().position(|decl| decl.name == name).unwrap();
    let [found, in_model] =
        [own_chain.clone(), config(&names, &[])].map(|config| compute(config, &structures));
    let mut buried = 0;
    for (found, in_model) in found.iter().zip(&in_model) {
        let column = |table: &FeatureTable, name: &str| -> Vec<f32> {
            real(table.column(TableName::Residues, column_of(name)))
                .unwrap()
                .to_vec()
        };
        let delta = column(found, "sasa_delta");
        let bits = |values: &[f32]| {
            values
                .iter()
                .map(|value| value.to_bits())
                .collect::<Vec<_>>()
        };
        assert_eq!(bits(&delta), bits(&column(in_model, "sasa_delta")));
        let pairs = column(found, "sasa")
            .into_iter()
            .zip(column(in_model, "sasa"));
        for ((alone, model), delta) in pairs.zip(delta) {
            assert!((alone - model - delta).abs() < 1e-2 || alone.is_nan());
            buried += usize::from(delta > 1.0);
        }
        assert_ne!(bits(&column(found, "rsa")), bits(&column(in_model, "rsa")));
    }
    assert!(buried > 50, "{buried}");
}
