//! Real columns of residues in 16 bits are within their error bound of those in 32 bits, and all
//! other columns are the same.

use crate::made_up::structure;
use crate::samples;
use crate::tables;
use tapeloop::backend::cpu::CpuBackend;
use tapeloop::features::{
    Column, ColumnKind, FeatureConfig, FeatureTable, Features, Fusion, Reals, TableName,
};
use tapeloop::record::{BufferDecl, DType, Recorder, Unit, View};
use tapeloop::structure::Structure;
use tapeloop::{Backend, Workload};

fn config(reals: Reals) -> FeatureConfig {
    let mut features = FeatureConfig {
        reals,
        ..FeatureConfig::default()
    };
    features.cluster.select = ["A", "L", "V"].map(String::from).to_vec();
    features
}

fn computed(reals: Reals, fusion: Fusion, structures: &[Structure]) -> Vec<FeatureTable> {
    let features = FeatureConfig {
        fusion,
        ..config(reals)
    };
    tables::compute(features, structures)
}

/// The largest error that the reals may have, in f16 and bf16.
fn bound(reals: Reals, wide: f64) -> f64 {
    match reals {
        Reals::F32 => 0.0,
        Reals::F16 if wide.abs() < 2f64.powi(-14) => 2f64.powi(-25),
        Reals::F16 => wide.abs() * 2f64.powi(-11),
        Reals::Bf16 => wide.abs() * 2f64.powi(-8),
    }
}

/// Checks a column of residues; returns how many of its values differ from f32.
fn assert_within(reals: Reals, name: &str, narrow: Column<'_>, wide: Column<'_>) -> usize {
    let (Column::Real(narrow), Column::Real(wide)) = (narrow, wide) else {
        assert_eq!(narrow, wide, "{name}");
        return 0;
    };
    assert_eq!(narrow.len(), wide.len());
    let mut rounded = 0;
    for (&narrow, &wide) in narrow.iter().zip(wide) {
        assert_eq!(narrow.is_nan(), wide.is_nan(), "{name}");
        if wide.is_nan() {
            continue;
        }
        // No column of these has values beyond f16.
        let error = (f64::from(narrow) - f64::from(wide)).abs();
        assert!(
            error <= bound(reals, f64::from(wide)),
            "{name}: {wide:e} became {narrow:e}"
        );
        let bits = match reals {
            Reals::F32 => 32,
            Reals::F16 => 11,
            Reals::Bf16 => 8,
        };
        let dropped = 24_u32.saturating_sub(bits);
        if narrow.is_normal() && narrow.abs() >= 2f32.powi(-14) {
            assert_eq!(narrow.to_bits() & ((1 << dropped) - 1), 0, "{name}");
        }
        rounded += usize::from(narrow != wide);
    }
    rounded
}

#[test]
fn every_real_column_of_the_samples_is_within_the_bound() {
    let samples: Vec<Structure> = samples::samples().into_iter().map(|(_, s)| s).collect();
    let wide = computed(Reals::F32, Fusion::Off, &samples);
    for reals in [Reals::F16, Reals::Bf16] {
        let names = config(reals).columns(TableName::Residues);
        let narrow = computed(reals, Fusion::Off, &samples);
        let mut rounded = vec![0; names.len()];
        for (narrow, wide) in narrow.iter().zip(&wide) {
            let residue_columns = [narrow, wide].map(|table| table.columns(TableName::Residues));
            let [narrow_columns, wide_columns] = residue_columns;
            assert_eq!(narrow_columns.len(), names.len());
            let columns = narrow_columns.zip(wide_columns).zip(&names);
            for (index, ((narrow, wide), decl)) in columns.enumerate() {
                rounded[index] += assert_within(reals, &decl.name, narrow, wide);
            }
            // Summaries are computed from f32, and are f32.
            for table in [TableName::Chains, TableName::Structures] {
                assert_eq!(bits(narrow, table), bits(wide, table));
            }
        }
        for (decl, rounded) in names.iter().zip(rounded) {
            assert_eq!(decl.kind.is_real(), rounded > 0, "{} {reals:?}", decl.name);
        }
    }
}

fn bits(table: &FeatureTable, name: TableName) -> Vec<Vec<u32>> {
    table.columns(name).map(tables::bits).collect()
}

#[test]
fn fused_launches_narrow_the_same() {
    let structures: Vec<_> = [0, 1, 129, 300, 5]
        .iter()
        .map(|&n| structure(n, n as u64))
        .collect();
    for reals in [Reals::F16, Reals::Bf16] {
        let [off, on] = [Fusion::Off, Fusion::On].map(|fusion| {
            let tables = computed(reals, fusion, &structures).into_iter();
            tables
                .map(|table| bits(&table, TableName::Residues))
                .collect::<Vec<_>>()
        });
        assert_eq!(off, on, "{reals:?}");
    }
}

/// The buffers that a batch downloads.
fn downloads(reals: Reals) -> Vec<BufferDecl> {
    let features = Features::new(config(reals)).unwrap();
    let capacity = Features::capacity(1024);
    let mut recorder = Recorder::new(&capacity.as_slice()[..features.axes().len()]);
    let backend = CpuBackend::inline();
    features.record(&mut recorder, backend.device()).unwrap();
    let recording = recorder.finish().unwrap();
    let all = recording.buffers().iter();
    all.filter(|decl| decl.view == View::Download)
        .cloned()
        .collect()
}

#[test]
fn downloads_of_reals_of_residues_halve_and_no_others() {
    let is_residues = |decl: &BufferDecl| matches!(decl.unit, Unit::PerAxis { axis: 0, .. });
    let wide = downloads(Reals::F32);
    for (reals, dtype) in [(Reals::F16, DType::F16), (Reals::Bf16, DType::BF16)] {
        let narrow = downloads(reals);
        assert_eq!(narrow.len(), wide.len());
        let mut halved = 0;
        for (narrow, wide) in narrow.iter().zip(&wide) {
            assert_eq!((narrow.unit, narrow.len), (wide.unit, wide.len));
            if is_residues(wide) && wide.dtype == DType::F32 {
                assert_eq!(narrow.dtype, dtype, "{}", narrow.name);
                assert_eq!(2 * narrow.size_bytes(), wide.size_bytes());
                halved += 1;
            } else {
                assert_eq!(narrow, wide);
            }
        }
        assert!(halved > 10, "{halved} buffers");
    }
}

#[test]
fn columns_say_what_they_hold() {
    for (reals, residue_kind) in [
        (Reals::F32, ColumnKind::Real),
        (Reals::F16, ColumnKind::Half),
        (Reals::Bf16, ColumnKind::Real),
    ] {
        let config = config(reals);
        let kind = |table, name: &str| {
            let columns = config.columns(table);
            let column = columns.iter().find(|column| column.name == name);
            column.unwrap().kind
        };
        assert_eq!(kind(TableName::Residues, "sasa"), residue_kind);
        assert_eq!(kind(TableName::Residues, "cn_ca_8"), ColumnKind::Count);
        assert_eq!(kind(TableName::Chains, "sasa_total"), ColumnKind::Real);
        assert_eq!(kind(TableName::Structures, "rg"), ColumnKind::Real);
    }
}
