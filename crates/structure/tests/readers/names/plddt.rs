//! pLDDT of `_ma_qa_metric_local`.

use super::{mmcif, ubiquitin};
use crate::message_pack::{byte_array, category, column, data, file, ints, strings};
use tapeloop_structure::{BFactorKind, Format, ReadOptions, Reader, Structure};

/// The atoms of ubiquitin, whose B factors are 0 and whose pLDDT is 50 and half of the number.
fn model(metrics: &str, values: &str) -> String {
    let atoms = super::edit(&ubiquitin(), |line| super::with(line, 61, "  0.00"));
    let local = "loop_\n_ma_qa_metric_local.label_asym_id\n_ma_qa_metric_local.label_seq_id\n\
                 _ma_qa_metric_local.metric_id\n_ma_qa_metric_local.metric_value\n\
                 _ma_qa_metric_local.model_id\n";
    let atoms = mmcif(&atoms, true);
    let (block, atoms) = atoms.split_at("data_x\n".len());
    format!("{block}{metrics}{local}{values}#\n{atoms}")
}

const PLDDT: &str = "_ma_qa_metric.id 3\n_ma_qa_metric.name 'all pLDDT'\n_ma_qa_metric.mode local\n\
                     _ma_qa_metric.type other\n";

fn values(metric: u32, model: i32, first: i32) -> String {
    let row = |number: i32| {
        let value = 50.0 + f64::from(number) / 2.0;
        format!("A {number} {metric} {value} {model}\n")
    };
    (first..77).map(row).collect()
}

fn read(text: &str, kind: Option<BFactorKind>) -> Structure {
    let options = ReadOptions {
        b_factor_kind: kind,
        ..ReadOptions::default()
    };
    let structures = Reader::new(options).read_bytes(text.as_bytes(), Format::Mmcif);
    structures.unwrap().remove(0)
}

fn residue_b_factors(structure: &Structure) -> Vec<f32> {
    let first = structure.atom_start.iter().take(structure.residues.len());
    first
        .map(|&atom| structure.b_factor[atom as usize])
        .collect()
}

fn expected() -> Vec<f32> {
    (1..77).map(|number| 50.0 + number as f32 / 2.0).collect()
}

#[test]
fn the_metric_gives_the_values_that_b_factors_lack() {
    for model_number in [1, 7] {
        let structure = read(&model(PLDDT, &values(3, model_number, 1)), None);
        assert_eq!(structure.b_factor_kind, BFactorKind::Plddt);
        assert_eq!(
            residue_b_factors(&structure),
            expected(),
            "model {model_number}"
        );
    }
    // Rows in any order; the first value of a residue counts.
    let mut rows: Vec<String> = values(3, 1, 1)
        .lines()
        .map(|row| format!("{row}\n"))
        .collect();
    rows.reverse();
    rows.push("A 5 3 1.0 1\n".to_owned());
    assert_eq!(
        residue_b_factors(&read(&model(PLDDT, &rows.concat()), None)),
        expected()
    );
}

#[test]
fn b_factors_stay_where_there_is_no_value() {
    let structure = read(&model(PLDDT, &values(3, 1, 11)), None);
    let found = residue_b_factors(&structure);
    assert_eq!(found[..10], [0.0; 10]);
    assert_eq!(found[10..], expected()[10..]);
    // Another metric, a global one, and B factors that are wanted as such.
    let other = read(&model(PLDDT, &values(4, 1, 1)), None);
    assert_eq!(residue_b_factors(&other), [0.0; 76]);
    let global = PLDDT.replace("mode local", "mode global");
    assert_eq!(
        residue_b_factors(&read(&model(&global, &values(3, 1, 1)), None)),
        [0.0; 76]
    );
    let wanted = read(
        &model(PLDDT, &values(3, 1, 1)),
        Some(BFactorKind::Temperature),
    );
    assert_eq!(residue_b_factors(&wanted), [0.0; 76]);
}

#[test]
fn binary_cif_has_the_metric_too() {
    let numbers = |name: &str, values: &[i32]| column(name, ints(vec![], values));
    let texts = |name: &str, values: &[&str]| {
        let index: Vec<i32> = (0..values.len() as i32).collect();
        column(name, strings(values, &ints(vec![], &index)))
    };
    let reals = |name: &str, values: &[f32]| {
        let bytes = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        column(name, data(vec![byte_array(32)], bytes))
    };
    let atoms = category(
        "_atom_site",
        2,
        vec![
            texts("label_atom_id", &["CA", "CA"]),
            texts("type_symbol", &["C", "C"]),
            texts("label_comp_id", &["ALA", "GLY"]),
            texts("label_asym_id", &["A", "A"]),
            numbers("label_seq_id", &[1, 2]),
            reals("Cartn_x", &[0.0, 3.8]),
            reals("Cartn_y", &[0.0, 0.0]),
            reals("Cartn_z", &[0.0, 0.0]),
            reals("B_iso_or_equiv", &[0.0, 0.0]),
        ],
    );
    let metric = category(
        "_ma_qa_metric",
        1,
        vec![
            numbers("id", &[3]),
            texts("type", &["pLDDT"]),
            texts("mode", &["local"]),
        ],
    );
    let local = category(
        "_ma_qa_metric_local",
        2,
        vec![
            texts("label_asym_id", &["A", "A"]),
            numbers("label_seq_id", &[1, 2]),
            numbers("metric_id", &[3, 3]),
            reals("metric_value", &[91.5, 42.25]),
            numbers("model_id", &[1, 1]),
        ],
    );
    let bytes = file(vec![metric, local, atoms]);
    let mut reader = Reader::new(ReadOptions::default());
    let structure = reader
        .read_bytes(&bytes, Format::BinaryCif)
        .unwrap()
        .remove(0);
    assert_eq!(structure.b_factor, [91.5, 42.25]);
}
