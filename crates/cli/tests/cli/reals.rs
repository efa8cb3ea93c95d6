//! Real columns of residues in 16 bits.

use super::results::{numbers, read};
use super::*;
use arrow_array::cast::AsArray;
use arrow_array::types::Float16Type;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use half::{bf16, f16};
use tapeloop::features::{ColumnKind, FeatureConfig, TableName};

fn sample() -> String {
    format!("{SAMPLES}/1bd2.pdb.gz")
}

/// All tables of a run over one sample.
fn tables(out: &Path, reals: &str) -> Vec<RecordBatch> {
    let set = format!("reals={reals}");
    run_well(&["-i", &sample(), "-o", str_of(out), "--set", &set]);
    let part = |table: &&str| read(&out.join(table).join("part-00000.parquet"));
    TABLES.iter().map(part).collect()
}

/// The real columns of residues.
fn reals() -> Vec<String> {
    let columns = FeatureConfig::default().columns(TableName::Residues);
    let reals = columns
        .into_iter()
        .filter(|column| column.kind == ColumnKind::Real);
    reals.map(|column| column.name).collect()
}

#[test]
fn only_real_columns_of_residues_are_rounded() {
    let folder = tempfile::tempdir().unwrap();
    let wide = tables(&folder.path().join("f32"), "f32");
    for (name, stored, round) in [
        (
            "f16",
            DataType::Float16,
            (|wide| f16::from_f32(wide as f32).into()) as fn(f64) -> f64,
        ),
        ("bf16", DataType::Float32, |wide| {
            bf16::from_f32(wide as f32).into()
        }),
    ] {
        let out = folder.path().join(name);
        let narrow = tables(&out, name);
        let reals = reals();
        assert!(reals.len() > 15);
        for field in wide[0].schema().fields() {
            let [narrow, wide] = [&narrow[0], &wide[0]];
            if !reals.contains(field.name()) {
                let same = narrow.column_by_name(field.name());
                assert_eq!(same, wide.column_by_name(field.name()), "{}", field.name());
                continue;
            }
            let column = narrow.column_by_name(field.name()).unwrap();
            assert_eq!(*column.data_type(), stored, "{}", field.name());
            let rounded = numbers(wide, field.name()).into_iter();
            let rounded: Vec<Option<f64>> = rounded.map(|value| value.map(round)).collect();
            assert!(numbers(narrow, field.name()) == rounded, "{}", field.name());
        }
        assert_eq!(narrow[1..], wide[1..]);
        let record = record(&out);
        assert_eq!(record["config"]["reals"], name);
        assert_eq!(record["values_follow_from"]["tapeloop.reals"], name);
        let range = &record["columns"]["residues"]["sasa"];
        let sasa = numbers(&narrow[0], "sasa").into_iter().flatten();
        assert_eq!(range["max"].as_f64(), sasa.reduce(f64::max));
    }
}

#[test]
fn values_beyond_f16_are_infinity_and_f16_columns_are_read_as_annotations() {
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("large.tsv");
    let rows = (1..=76).map(|number| format!("1ubi\tA\t{number}\t1e6\n"));
    let text = format!(
        "structure\tchain\tresidue\tlarge\n{}",
        rows.collect::<String>()
    );
    fs::write(&written, text).unwrap();
    let smoothed = |annotations: &Path, channel: &str, out: &str| {
        let out = folder.path().join(out);
        let input = format!("{SAMPLES}/1ubi.pdb");
        let annotations = format!("annotations={}", annotations.display());
        let channel = format!("smooth.channels=[{channel:?}]");
        let start = ["-i", &input, "-o", str_of(&out), "--features", "smooth,wcn"];
        let set = [
            "--set",
            "reals=f16",
            "--set",
            "tables.annotations=[]",
            "--set",
            &annotations,
            "--set",
            &channel,
        ];
        run_well(&[&start[..], &set[..]].concat());
        out.join("residues/part-00000.parquet")
    };
    let first = smoothed(&written, "large", "first");
    let table = read(&first);
    let large = table.column_by_name("smooth_large").unwrap();
    let large = large.as_primitive::<Float16Type>();
    assert_eq!((large.len(), large.null_count()), (76, 0));
    assert!(large.values().iter().all(|value| *value == f16::INFINITY));
    let second = read(&smoothed(&first, "wcn", "second"));
    let means = numbers(&second, "smooth_wcn");
    assert!(means.iter().all(|mean| mean.is_some_and(|mean| mean > 0.1)));
}
