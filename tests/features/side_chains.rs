//! Torsions of side chains, their bins, and missing atoms.

use crate::tables;

use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::features::{
    Column, ColumnKind, FeatureConfig, FeatureName, FeatureTable, Features, NULL_COUNT, TableName,
};
use tapeloop::pipeline::{Engine, EngineConfig};
use tapeloop::structure::{Format, ReadOptions, Reader, Structure};

fn config() -> FeatureConfig {
    FeatureConfig {
        features: vec![FeatureName::SideChains],
        ..FeatureConfig::default()
    }
}

fn compute(structure: &Structure) -> FeatureTable {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let workload = Features::new(config()).unwrap();
    let engine = EngineConfig::new(Features::capacity(2048));
    let mut engine = Engine::new(workload, &[backend], pool, &engine).unwrap();
    tables::tables(&mut engine, [structure].into_iter()).swap_remove(0)
}

/// The values of a residue as text, by column; nulls are left out.
fn row(table: &FeatureTable, row: usize) -> Vec<(String, String)> {
    let columns = config().columns(TableName::Residues);
    let value = |(index, column): (usize, &tapeloop::features::ColumnDecl)| {
        let text = match (table.column(TableName::Residues, index), column.kind) {
            (Column::Real(values), _) if values[row].is_nan() => return None,
            (Column::Real(values), _) => format!("{:.1}", values[row]),
            (Column::Count(values), _) if values[row] == NULL_COUNT => return None,
            (Column::Count(values), ColumnKind::Text(texts)) => {
                texts[values[row] as usize].to_owned()
            }
            (Column::Count(values), _) => values[row].to_string(),
        };
        Some((column.name.clone(), text))
    };
    columns.iter().enumerate().filter_map(value).collect()
}

fn with<const N: usize>(values: [(&str, &str); N]) -> Vec<(String, String)> {
    values
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

/// The name and the position of an atom.
type Placed = (&'static str, [f64; 3]);

/// Residues of one chain, each a component and its atoms.
fn read(residues: &[(&str, &[Placed])]) -> Structure {
    let mut text = String::new();
    for (residue, (component, atoms)) in residues.iter().enumerate() {
        for (name, [x, y, z]) in *atoms {
            let element = &name[..1];
            let x = x + 50.0 * residue as f64;
            text += &format!(
                "ATOM      1  {name:<3} {component} A{:4}    {x:8.3}{y:8.3}{z:8.3}  1.00 20.00          \
                 {element:>2}\n",
                residue + 1
            );
        }
    }
    text += "END\n";
    let mut reader = Reader::new(ReadOptions::default());
    reader
        .read_bytes(text.as_bytes(), Format::Pdb)
        .unwrap()
        .swap_remove(0)
}

/// N, CA, CB and three more atoms: chi1 is 90 degrees, chi2 180 and chi3 -90.
const PATH: [[f64; 3]; 6] = [
    [0.0, 2.0, 0.0],
    [0.0, 0.0, 0.0],
    [2.0, 0.0, 0.0],
    [2.0, 0.0, 2.0],
    [4.0, 0.0, 2.0],
    [4.0, -2.0, 2.0],
];

fn named(names: &[&'static str]) -> Vec<Placed> {
    names.iter().copied().zip(PATH).collect()
}

#[test]
fn angles_are_those_of_the_path_and_have_bins_between_tetrahedral_atoms() {
    let values = |component: &'static str, names: &[&'static str]| {
        let atoms = named(names);
        row(&compute(&read(&[(component, &atoms[..])])), 0)
    };
    let angles = [("chi1", "90.0"), ("chi2", "180.0"), ("chi3", "-90.0")];
    let [chi1, chi2, chi3] = angles;
    let [bin1, bin2, bin3] = [("chi1_bin", "p"), ("chi2_bin", "t"), ("chi3_bin", "m")];
    let missing = |count| ("side_missing", count);
    let met = with([chi1, chi2, chi3, bin1, bin2, bin3, missing("0")]);
    assert_eq!(values("MET", &["N", "CA", "CB", "CG", "SD", "CE"]), met);
    assert_eq!(values("MSE", &["N", "CA", "CB", "CG", "SE", "CE"]), met);
    assert_eq!(
        values("GLU", &["N", "CA", "CB", "CG", "CD", "OE1"]),
        with([
            chi1,
            chi2,
            chi3,
            bin1,
            bin2,
            ("chi_symmetric", "3"),
            missing("1")
        ])
    );
    assert_eq!(
        values("LYS", &["N", "CA", "CB", "CG", "CD", "CE"]),
        with([chi1, chi2, chi3, bin1, bin2, bin3, missing("1")])
    );
    let ile = with([chi1, chi2, bin1, bin2, missing("1")]);
    assert_eq!(values("ILE", &["N", "CA", "CB", "CG1", "CD1"]), ile);
    assert_eq!(
        values("ILE", &["N", "CA", "CB", "CG1", "CD"]),
        ile,
        "as CHARMM names it"
    );
    assert_eq!(
        values("TYR", &["N", "CA", "CB", "CG", "CD1"]),
        with([chi1, chi2, bin1, ("chi_symmetric", "2"), missing("5")])
    );
    assert_eq!(
        values("PRO", &["N", "CA", "CB", "CG", "CD"]),
        with([chi1, chi2, missing("0")])
    );
    assert_eq!(
        values("VAL", &["N", "CA", "CB", "CG1"]),
        with([chi1, bin1, missing("1")])
    );
    assert_eq!(values("ALA", &["N", "CA", "CB"]), with([missing("0")]));
    assert_eq!(values("GLY", &["N", "CA"]), with([missing("0")]));
}

#[test]
fn what_is_missing_or_unknown_is_null() {
    // Every chi needs CG or NH1, so each is null if both are missing. The atoms are not in the
    // usual order.
    let path = |index: usize| PATH[index];
    let arg = [
        ("CZ", [4.0, -2.0, 4.0]),
        ("NE", path(5)),
        ("CD", path(4)),
        ("CB", path(2)),
        ("CA", path(1)),
        ("N", path(0)),
    ];
    // A modified residue has the angles of its parent, and no bins and counts.
    let sep = named(&["N", "CA", "CB", "OG"]);
    let unk = named(&["N", "CA", "CB", "CG"]);
    let trace = [("CA", PATH[1])];
    let s = read(&[
        ("ARG", &arg[..]),
        ("SEP", &sep[..]),
        ("UNK", &unk[..]),
        ("PHE", &trace[..]),
    ]);
    let table = compute(&s);
    assert_eq!(row(&table, 0), with([("side_missing", "3")]));
    assert_eq!(row(&table, 1), with([("chi1", "90.0")]));
    assert_eq!(row(&table, 2), []);
    assert_eq!(
        row(&table, 3),
        with([("chi_symmetric", "2"), ("side_missing", "7")])
    );
}

#[test]
fn a_structure_without_names_has_no_side_chains() {
    let mut s = read(&[("VAL", &named(&["N", "CA", "CB", "CG1"])[..])]);
    assert_eq!(
        s.atom_name
            .iter()
            .map(|name| name.as_str())
            .collect::<Vec<_>>(),
        ["N", "CA", "CB", "CG1"]
    );
    s.atom_name.clear();
    assert_eq!(row(&compute(&s), 0), []);
}
