//! B factors and pLDDT, and the summaries of chains and structures over their rows, against
//! definitions written out naively.

use crate::made_up::structure;
use crate::samples::{sample, samples};
use crate::tables;
use tapeloop::features::{Column, FeatureConfig, FeatureName, FeatureTable, TableName};
use tapeloop::structure::{BFactorKind, LooseSpan, MISSING, Structure};

fn config() -> FeatureConfig {
    FeatureConfig {
        features: vec![
            FeatureName::Dssp,
            FeatureName::Sasa,
            FeatureName::BFactor,
            FeatureName::Plddt,
            FeatureName::Rg,
        ],
        ..FeatureConfig::default()
    }
}

fn compute(structures: &[Structure]) -> Vec<FeatureTable> {
    tables::compute(config(), structures)
}

fn column<'a>(table_name: TableName, name: &str, table: &'a FeatureTable) -> Column<'a> {
    let decls = config().columns(table_name);
    let column = decls.iter().position(|decl| decl.name == name).unwrap();
    table.column(table_name, column)
}

fn reals(table_name: TableName, name: &str, table: &FeatureTable) -> Vec<Option<f64>> {
    let Column::Real(values) = column(table_name, name, table) else {
        panic!("{name} is real")
    };
    let value = |&value: &f32| (!value.is_nan()).then_some(f64::from(value));
    values.iter().map(value).collect()
}

fn assert_close(name: &str, found: &[Option<f64>], expected: &[Option<f64>]) {
    assert_eq!(found.len(), expected.len(), "{name}");
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        let close = match (found, expected) {
            (Some(found), Some(expected)) => {
                (found - expected).abs() <= 1e-5 * expected.abs().max(1e-2)
            }
            (found, expected) => found == expected,
        };
        assert!(close, "{name} of {index}: {found:?}, expected {expected:?}");
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The rows of each chain, then all.
fn groups(s: &Structure) -> (Vec<Vec<usize>>, Vec<usize>) {
    let rows = |chain: usize| {
        let residues = s.residues.iter().enumerate();
        let residues = residues.filter(|(_, residue)| residue.chain as usize == chain);
        residues.map(|(row, _)| row).collect()
    };
    let chains = (0..s.chains.len()).map(rows).collect();
    (chains, (0..s.residues.len()).collect())
}

fn b_of(s: &Structure, atom: usize) -> Option<f64> {
    s.b_factor
        .get(atom)
        .filter(|b| !b.is_nan())
        .map(|b| f64::from(*b))
}

fn assert_b_factors_match(s: &Structure, table: &FeatureTable) {
    let is_model = s.b_factor_kind == BFactorKind::Plddt;
    let found = |name: &str| reals(TableName::Residues, name, table);
    let ca: Vec<_> = s.residues.iter().map(|r| b_of(s, r.ca as usize)).collect();
    let atoms = |row: usize| {
        let atoms = s.atom_start[row] as usize..s.atom_start[row + 1] as usize;
        mean(&atoms.filter_map(|atom| b_of(s, atom)).collect::<Vec<_>>())
    };
    let means: Vec<_> = (0..ca.len()).map(atoms).collect();
    let (chains, all) = groups(s);
    let mut scores = vec![None; ca.len()];
    for rows in &chains {
        let values: Vec<f64> = rows.iter().filter_map(|&row| ca[row]).collect();
        let Some(centre) = mean(&values) else {
            continue;
        };
        let squares: Vec<f64> = values.iter().map(|b| (b - centre).powi(2)).collect();
        let sd = mean(&squares).unwrap().sqrt();
        for &row in rows.iter().filter(|_| sd > 0.0) {
            scores[row] = ca[row].map(|b| (b - centre) / sd);
        }
    }
    let none = vec![None; ca.len()];
    let unless = |model: bool, values| if is_model == model { &none } else { values };
    assert_close("b_ca", &found("b_ca"), unless(true, &ca));
    assert_close("b_mean", &found("b_mean"), unless(true, &means));
    assert_close("b_z", &found("b_z"), unless(true, &scores));
    assert_close("plddt", &found("plddt"), unless(false, &ca));

    let confidence = |rows: &Vec<usize>| {
        let values: Vec<f64> = rows.iter().filter_map(|&row| ca[row]).collect();
        mean(&values).filter(|_| is_model)
    };
    let chain_means: Vec<_> = chains.iter().map(confidence).collect();
    let name = "plddt_mean";
    assert_close(name, &reals(TableName::Chains, name, table), &chain_means);
    let structure_mean = reals(TableName::Structures, name, table);
    assert_close(name, &structure_mean, &[confidence(&all)]);
}

fn assert_fractions_match(s: &Structure, table: &FeatureTable) {
    let Column::Count(classes) = column(TableName::Residues, "ss3", table) else {
        panic!("ss3 is text")
    };
    let (chains, all) = groups(s);
    let names = ["helix_fraction", "strand_fraction", "coil_fraction"];
    for (class, name) in (0..).zip(names) {
        let share = |rows: &Vec<usize>| {
            let known = rows.iter().filter(|&&row| classes[row] >= 0);
            let is_class = |&&row: &&usize| f64::from(u8::from(classes[row] == class));
            mean(&known.map(|row| is_class(&row)).collect::<Vec<_>>())
        };
        let expected: Vec<_> = chains.iter().map(share).collect();
        assert_close(name, &reals(TableName::Chains, name, table), &expected);
        let found = reals(TableName::Structures, name, table);
        assert_close(name, &found, &[share(&all)]);
    }
}

fn assert_areas_match(s: &Structure, table: &FeatureTable) {
    let areas = reals(TableName::Residues, "sasa", table);
    let sum = |rows: &Vec<usize>| {
        let known: Vec<f64> = rows.iter().filter_map(|&row| areas[row]).collect();
        (!known.is_empty()).then(|| known.iter().sum())
    };
    let (chains, all) = groups(s);
    let expected: Vec<Option<f64>> = chains.iter().map(sum).collect();
    let name = "sasa_total";
    assert_close(name, &reals(TableName::Chains, name, table), &expected);
    let structure_sum = reals(TableName::Structures, name, table);
    assert_close(name, &structure_sum, &[sum(&all)]);
}

fn assert_radii_match(s: &Structure, table: &FeatureTable) {
    let end = s.atom_start[s.residues.len()] as usize;
    let row_atoms = s.residues.iter().zip(s.atom_start.windows(2));
    let mut atoms = vec![Vec::new(); s.chains.len()];
    for (residue, span) in row_atoms {
        atoms[residue.chain as usize].extend(span[0] as usize..span[1] as usize);
    }
    let mut next = end;
    for span in &s.loose {
        atoms[span.chain as usize].extend(next..next + span.atom_count as usize);
        next += span.atom_count as usize;
    }
    let radius = |atoms: &Vec<usize>| {
        let axis = |axis: usize| {
            let along: Vec<f64> = atoms
                .iter()
                .map(|&atom| f64::from(s.xyz[atom][axis]) / 1000.0)
                .collect();
            let centre = mean(&along)?;
            mean(
                &along
                    .iter()
                    .map(|x| (x - centre).powi(2))
                    .collect::<Vec<_>>(),
            )
        };
        Some((axis(0)? + axis(1)? + axis(2)?).sqrt())
    };
    let expected: Vec<_> = atoms.iter().map(radius).collect();
    assert_close("rg", &reals(TableName::Chains, "rg", table), &expected);
}

fn assert_matches(s: &Structure, table: &FeatureTable) {
    assert_b_factors_match(s, table);
    assert_fractions_match(s, table);
    assert_areas_match(s, table);
    assert_radii_match(s, table);
}

#[test]
fn made_up_structures_match_the_definitions_measured_and_predicted() {
    let sizes = [0, 1, 2, 3, 127, 128, 129, 255, 256, 257, 700];
    let mut structures: Vec<_> = sizes.iter().map(|&n| structure(n, n as u64)).collect();
    let predicted = |s: &Structure| Structure {
        b_factor_kind: BFactorKind::Plddt,
        ..s.clone()
    };
    // Both kinds in one batch.
    structures = structures
        .iter()
        .flat_map(|s| [s.clone(), predicted(s)])
        .collect();
    for (s, table) in structures.iter().zip(compute(&structures)) {
        assert_matches(s, &table);
    }
}

#[test]
fn the_samples_match_the_definitions() {
    let structures: Vec<_> = samples().into_iter().map(|(_, s)| s).collect();
    for (s, table) in structures.iter().zip(compute(&structures)) {
        assert_matches(s, &table);
    }
    let predicted = structures
        .iter()
        .filter(|s| s.b_factor_kind == BFactorKind::Plddt);
    assert_eq!(
        predicted.count(),
        1,
        "one of the samples is a predicted model"
    );
}

#[test]
fn loose_atoms_count_for_their_chain_wherever_they_are_listed() {
    let mut s = structure(30, 4);
    let end = s.atom_start[30] as usize;
    let (class, element) = (s.class[0], s.element[0]);
    s.xyz.truncate(end);
    s.class.truncate(end);
    s.element.truncate(end);
    s.b_factor.truncate(end);
    s.loose.clear();
    for (chain, atom_count) in [(1, 3), (0, 2), (1, 1), (0, 4)] {
        s.loose.push(LooseSpan { chain, atom_count });
        for atom in 0..atom_count as i32 {
            s.xyz.push([20_000 * chain as i32, 3_000 * atom, -9_000]);
            s.class.push(class);
            s.element.push(element);
            s.b_factor.push(1.0);
        }
    }
    let tables = compute(&[structure(9, 1), s.clone()]);
    assert_matches(&s, &tables[1]);
}

#[test]
fn without_an_atom_there_is_no_area_to_sum() {
    let mut s = structure(1, 3);
    s.xyz.clear();
    s.element.clear();
    s.class.clear();
    s.b_factor.clear();
    s.loose.clear();
    s.atom_start = vec![0, 0];
    let residue = &mut s.residues[0];
    for atom in [
        &mut residue.n,
        &mut residue.ca,
        &mut residue.c,
        &mut residue.o,
        &mut residue.cb,
    ] {
        *atom = MISSING;
    }
    let table = &compute(&[s])[0];
    assert_eq!(reals(TableName::Residues, "sasa", table), [None]);
    assert_eq!(reals(TableName::Chains, "sasa_total", table), [None; 3]);
    assert_eq!(reals(TableName::Structures, "sasa_total", table), [None]);
}

#[test]
fn values_that_are_all_equal_have_no_score() {
    let mut s = sample("1ubi.pdb");
    s.b_factor.fill(20.0);
    let table = &compute(&[s])[0];
    let found = |name: &str| reals(TableName::Residues, name, table);
    assert!(found("b_z").iter().all(Option::is_none));
    assert!(found("b_ca").iter().all(|b| *b == Some(20.0)));
    assert!(found("b_mean").iter().all(|b| *b == Some(20.0)));
}

#[test]
fn ubiquitins_fractions_are_those_of_its_residues() {
    let table = &compute(&[sample("1ubi.pdb")])[0];
    for table_name in [TableName::Chains, TableName::Structures] {
        let share = |name: &str| (reals(table_name, name, table)[0].unwrap() * 76.0).round();
        assert_eq!(share("helix_fraction"), 19.0);
        assert_eq!(share("strand_fraction"), 26.0);
        assert_eq!(share("coil_fraction"), 31.0);
    }
}
