//! Bridges, ladders and sheets: against the sequential rules of mkdssp 4.2, written out naively. The
//! golden tables have what mkdssp itself prints for the samples.

use super::{Naive, config};
use crate::made_up::structure;
use crate::samples::samples;
use crate::tables;
use std::collections::BTreeSet;
use tapeloop::features::{
    Column, ColumnKind, DsspVersion, FeatureConfig, FeatureName, FeatureTable, Features, TableName,
};
use tapeloop::structure::Structure;

fn with_sheets(features: &[FeatureName]) -> FeatureConfig {
    let mut config = FeatureConfig {
        features: features.to_vec(),
        ..config(DsspVersion::V2)
    };
    config.sheets.keep = true;
    config
}

/// A bridge of a residue: its partner, whether it is antiparallel, and its ladder.
type Bridge = Option<(usize, bool, usize)>;

#[derive(Clone, Debug, Default, PartialEq)]
struct Row {
    bridges: [Bridge; 2],
    sheet: Option<usize>,
}

fn rows(table: &FeatureTable) -> Vec<Row> {
    let decls = with_sheets(&[FeatureName::Sheets]).columns(TableName::Residues);
    let column = |name: &str| -> Vec<Option<usize>> {
        let column = decls.iter().position(|decl| decl.name == name).unwrap();
        let Column::Count(values) = table.column(TableName::Residues, column) else {
            panic!("{name} is a count")
        };
        values.iter().map(|&value| value.try_into().ok()).collect()
    };
    let bridges = ["1", "2"].map(|which| {
        let [partners, kinds, ladders] = [
            column(&format!("bridge{which}")),
            column(&format!("bridge{which}_kind")),
            column(&format!("ladder{which}")),
        ];
        let bridge = |row: usize| Some((partners[row]?, kinds[row]? == 1, ladders[row]?));
        (0..partners.len()).map(bridge).collect::<Vec<_>>()
    });
    let sheets = column("sheet").into_iter().enumerate();
    let row = |(row, sheet)| Row {
        bridges: [bridges[0][row], bridges[1][row]],
        sheet,
    };
    sheets.map(row).collect()
}

/// Ladder by ladder as `CalculateBetaSheets` of mkdssp, with ladders of one first residue in the order
/// of its partners, which mkdssp leaves open.
fn naive(s: &Structure) -> Vec<Row> {
    let mut naive = Naive::new(s);
    let ladders = naive.ladders(&naive.acceptors());
    let residues = |n: usize| -> BTreeSet<usize> {
        let (_, is, js) = &ladders[n];
        is.iter().chain(js).copied().collect()
    };
    let (mut sheets, mut numbers) = (vec![0; ladders.len()], vec![0; ladders.len()]);
    let (mut sheet, mut number) = (0, 0);
    while let Some(first) = sheets.iter().position(|&sheet| sheet == 0) {
        sheet += 1;
        sheets[first] = sheet;
        let mut known = residues(first);
        while let Some(next) =
            (0..ladders.len()).find(|&n| sheets[n] == 0 && !known.is_disjoint(&residues(n)))
        {
            sheets[next] = sheet;
            known.extend(residues(next));
        }
        for n in (0..ladders.len()).filter(|&n| sheets[n] == sheet) {
            number += 1;
            numbers[n] = number;
        }
    }
    let mut rows = vec![Row::default(); s.residues.len()];
    for (n, (antiparallel, is, js)) in ladders.iter().enumerate() {
        let has_first = |strand: &[usize]| strand.iter().any(|&row| rows[row].bridges[0].is_some());
        let which = [is, js].map(|strand| usize::from(has_first(strand)));
        for (strand, other, which) in [(is, js, which[0]), (js, is, which[1])] {
            let partners: Vec<usize> = if *antiparallel {
                other.iter().rev().copied().collect()
            } else {
                other.clone()
            };
            for (&row, partner) in strand.iter().zip(partners) {
                rows[row].bridges[which] = Some((partner, *antiparallel, numbers[n]));
            }
        }
        for strand in [is, js] {
            for row in &mut rows[strand[0]..=*strand.last().unwrap()] {
                row.sheet = Some(sheets[n]);
            }
        }
    }
    rows
}

#[test]
fn rows_are_those_of_the_sequential_rules() {
    let mut structures: Vec<_> = (0..60)
        .map(|n| (format!("made up {n}"), structure(n * 37 % 600, n as u64)))
        .collect();
    structures.extend(samples());
    let only: Vec<Structure> = structures.iter().map(|(_, s)| s.clone()).collect();
    let alone = tables::compute(with_sheets(&[FeatureName::Sheets]), &only);
    let (mut seconds, mut second_alone, mut bulges, mut sheets) = (0, 0, 0, 0);
    for ((name, s), table) in structures.iter().zip(&alone) {
        let found = rows(table);
        for (row, (found, expected)) in found.iter().zip(naive(s)).enumerate() {
            assert_eq!(*found, expected, "{name}: row {row}");
            let [first, second] = found.bridges;
            seconds += usize::from(second.is_some());
            second_alone += usize::from(first.is_none() && second.is_some());
            bulges += usize::from(found.sheet.is_some() && (first, second) == (None, None));
        }
        sheets += found.iter().filter_map(|row| row.sheet).max().unwrap_or(0);
    }
    assert!(
        seconds > 500 && second_alone > 50 && bulges > 50 && sheets > 200,
        "{seconds} {second_alone} {bulges} {sheets}"
    );
}

/// The columns of a table by their names.
fn named(config: &FeatureConfig, table: &FeatureTable) -> Vec<(String, ColumnKind, Vec<u32>)> {
    let decls = config.columns(TableName::Residues).into_iter();
    let columns = decls.zip(table.columns(TableName::Residues));
    columns
        .map(|(decl, column)| (decl.name, decl.kind, tables::bits(column)))
        .collect()
}

#[test]
fn the_columns_of_dssp_are_there_only_if_asked_for_and_have_the_same_values() {
    let structures: Vec<_> = samples().into_iter().map(|(_, s)| s).collect();
    let of = |features: &[FeatureName]| {
        let config = with_sheets(features);
        let tables = tables::compute(config.clone(), &structures);
        tables
            .iter()
            .map(|table| named(&config, table))
            .collect::<Vec<_>>()
    };
    let dssp = of(&[FeatureName::Dssp]);
    let sheets = of(&[FeatureName::Sheets]);
    let both = of(&[FeatureName::Dssp, FeatureName::Sheets]);
    for ((dssp, sheets), both) in dssp.into_iter().zip(sheets).zip(both) {
        assert!(sheets.iter().all(|(name, ..)| name != "ss8"));
        let parts: Vec<_> = dssp.into_iter().chain(sheets).collect();
        assert!(parts == both);
    }
}

#[test]
fn numbers_of_bonds_are_those_of_the_energies_below_the_limit() {
    let config = with_sheets(&[FeatureName::Dssp, FeatureName::Sheets]);
    let structures: Vec<_> = samples().into_iter().map(|(_, s)| s).collect();
    let mut found = [0; 3];
    for table in tables::compute(config.clone(), &structures) {
        let columns = named(&config, &table);
        let bits_of = |name: &str| &columns.iter().find(|column| column.0 == name).unwrap().2;
        for side in ["hb_nho", "hb_ohn"] {
            let energies = ["1", "2"].map(|n| bits_of(&format!("{side}{n}_energy")));
            for (row, &bonds) in bits_of(&format!("{side}_bonds")).iter().enumerate() {
                let is_bond = |energies: &&Vec<u32>| f32::from_bits(energies[row]) < -0.5;
                let expected = energies.iter().filter(|energies| is_bond(energies)).count();
                if bits_of("ss8")[row] as i32 == -1 {
                    assert_eq!(bonds as i32, -1, "an incomplete residue");
                } else {
                    assert_eq!(bonds as usize, expected);
                    found[expected] += 1;
                }
            }
        }
    }
    assert!(found.into_iter().all(|count| count > 50), "{found:?}");
}

/// Sheets between chains are none with `dssp.chains = "own"`.
#[test]
fn bonds_are_those_of_the_settings_of_dssp() {
    let structures: Vec<_> = samples().into_iter().map(|(_, s)| s).collect();
    let mut across = [0; 2];
    for (own_chain, across) in [false, true].into_iter().zip(&mut across) {
        let mut config = with_sheets(&[FeatureName::Sheets]);
        config.dssp.own_chain = own_chain;
        for (s, table) in structures.iter().zip(tables::compute(config, &structures)) {
            let chain = |row: usize| s.residues[row].chain;
            for (row, found) in rows(&table).iter().enumerate() {
                let partners = found.bridges.iter().flatten();
                *across += partners
                    .filter(|bridge| chain(bridge.0) != chain(row))
                    .count();
            }
        }
    }
    assert!(across[0] > 20 && across[1] == 0, "{across:?}");
}

#[test]
fn without_the_setting_there_is_nothing_to_compute() {
    let only = FeatureConfig {
        features: vec![FeatureName::Sheets],
        ..FeatureConfig::default()
    };
    let error = Features::new(only).err().unwrap().to_string();
    assert!(error.contains("sheets has nothing"), "{error}");
}
