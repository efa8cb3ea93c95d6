//! Which residues a condition selects, and what the tables have of them.

use super::super::super::config::{
    ATOM_KEYS, ATOM_LIGAND_KEY, Condition, FRAME_KEYS, OptionalColumns, RESIDUE_KEYS, Reduction,
    ValueType,
};
use super::super::row_filter::RowFilter;
use super::super::schema::Kind;
use super::*;

fn filter(condition: &str) -> RowFilter {
    let decls_of_residues = decls(TableName::Residues);
    let parsed = Condition::parse(condition, &decls_of_residues, OptionalColumns::ALL);
    RowFilter::new(OutputTable::RESIDUES, parsed.unwrap(), &decls)
}

fn record(ordinal: u64, length: i32) -> StructureRows {
    let structure = structure(length);
    let features = features(structure.residues.len());
    StructureRows::new(format!("in/{ordinal}.pdb"), structure, features)
}

/// The residues of a structure of 8 for which the condition holds.
fn selected(condition: &str) -> Vec<usize> {
    let record = filter(condition).select(record(0, 4));
    let rows = record.rows(OutputTable::RESIDUES);
    let rows: Vec<usize> = rows.into_iter().flatten().collect();
    assert_eq!(record.left_out(), 8 - rows.len() as u64);
    rows
}

#[test]
fn columns_of_every_type_are_compared() {
    assert_eq!(selected("count > 5"), [6, 7]);
    assert_eq!(selected("real <= 3"), [0, 2, 3]);
    assert_eq!(selected("half == 0.5"), [4]);
    assert_eq!(selected("flag"), [1, 3, 5, 7]);
    assert_eq!(selected("partner == 'empty'"), [1, 3, 5, 7]);
    assert_eq!(selected("side != 'right'"), [0, 4, 6]);
    assert_eq!(selected("chain == 'B' and residue in (1, 4)"), [4, 7]);
    assert_eq!(selected("ins_code == 'A'"), [1, 5]);
    assert_eq!(selected("break_before == false"), [1, 2, 5, 6]);
    assert_eq!(selected("structure == '0' and aa >= 'X'"), [2, 6]);
    assert_eq!(selected("uniprot_pos == 77"), [0, 4]);
    assert_eq!(selected("model == 2"), [0; 0]);
}

#[test]
fn a_test_of_null_is_unknown_and_so_is_its_opposite() {
    assert_eq!(selected("count is null"), [0]);
    assert_eq!(selected("count is not null"), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(selected("count < 100"), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(selected("not count > 100"), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(selected("count not in (3)"), [1, 2, 4, 5, 6, 7]);
    assert_eq!(selected("not flag"), [0, 4, 6]);
    assert_eq!(selected("label_asym_id != 'A'"), [0; 0]);
    // Unknown or true is true, unknown and false is false, and the opposite of that is true.
    assert_eq!(selected("flag or res_index == 2"), [1, 2, 3, 5, 7]);
    assert_eq!(selected("not (flag and res_index != 2)"), [0, 2, 4, 6]);
    assert_eq!(selected("not (flag or res_index == 9)"), [0, 4, 6]);
}

/// The columns of a table without features, and the types of their values.
fn types(table: OutputTable, optional: OptionalColumns) -> Vec<(String, ValueType)> {
    let sources = ColumnSources::of_features(&|_| Vec::new());
    let table = columns::columns(table, &sources, optional).into_iter();
    let typed = table.map(|column| {
        let value_type = match column.spec.kind {
            Kind::Text | Kind::Word => ValueType::Text,
            Kind::Integer | Kind::Ascending | Kind::Repeating | Kind::Long => ValueType::Integer,
            Kind::Real | Kind::Double => ValueType::Real,
            Kind::Half => ValueType::Half,
            Kind::Flag => ValueType::Flag,
        };
        (column.spec.name, value_type)
    });
    typed.collect()
}

#[test]
fn the_columns_that_a_condition_on_atoms_may_name_are_those_of_the_table() {
    for optional in [OptionalColumns::NONE, OptionalColumns::ALL] {
        let mut expected = ATOM_KEYS.to_vec();
        if optional.ligands {
            expected.insert(4, ATOM_LIGAND_KEY);
        }
        if optional.has_frames {
            expected.splice(3..3, FRAME_KEYS);
        }
        let of_table = types(OutputTable::ATOMS, optional);
        let of_table = of_table.iter().map(|(name, kind)| (&**name, *kind));
        assert_eq!(of_table.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn the_columns_that_a_condition_may_name_are_those_of_the_table() {
    for optional in [OptionalColumns::NONE, OptionalColumns::ALL] {
        let of_table = types(OutputTable::RESIDUES, optional);
        let of_table = of_table.iter().map(|(name, kind)| (&**name, *kind));
        let mut expected = RESIDUE_KEYS.to_vec();
        if optional.has_frames {
            expected.splice(3..3, FRAME_KEYS);
        }
        if optional.unobserved {
            expected.push(("observed", ValueType::Flag));
        }
        let coordinates: Vec<String> = optional
            .coordinates
            .columns()
            .map(|column| column.0)
            .collect();
        let of_coordinates = coordinates.iter().map(|name| (&**name, ValueType::Real));
        expected.extend(of_coordinates);
        assert_eq!(of_table.collect::<Vec<_>>(), expected);
    }
}

/// Writes structures of these lengths, with the rows that meet the condition.
fn write_where(condition: &str, lengths: &[i32], settings: TableSettings) -> tempfile::TempDir {
    let filter = filter(condition);
    let reductions = Reduction::parse("count.max", &decls(TableName::Residues)).unwrap();
    let (folder, mut tables) = start_with(settings, 2, &reductions);
    for (&length, ordinal) in lengths.iter().zip(0..) {
        tables.advance(ordinal).unwrap();
        let record = filter.select(record(ordinal, length));
        tables.append(record).unwrap();
    }
    tables.finish().unwrap();
    folder
}

#[test]
fn row_groups_have_as_many_rows_as_without_a_condition() {
    for condition in ["flag", "count is not null", "res_index != 3"] {
        let folder = write_where(condition, &[9, 1, 20, 3], SETTINGS);
        let parts = open(&folder.path().join("residues/part-00000.parquet"));
        let groups = parts.metadata().row_groups().iter();
        let groups: Vec<i64> = groups.map(|group| group.num_rows()).collect();
        let (last, others) = groups.split_last().unwrap();
        assert!(
            others.iter().all(|&rows| rows == 7) && *last <= 7,
            "{groups:?}"
        );
    }
}

#[test]
fn a_structure_without_a_residue_keeps_its_other_rows_and_has_no_statistic() {
    // The second structure has two residues, whose counts are null and 1.
    let folder = write_where("count > 1 and count < 7", &[4, 1, 2], SETTINGS);
    let read = |table: &str| read(&folder.path().join(table).join("part-00000.parquet"));
    let residues = read("residues");
    let source = residues["source"].as_string::<i32>();
    let sources: Vec<&str> = source.iter().flatten().collect();
    let expected = [["in/0.pdb"; 5].as_slice(), &["in/2.pdb"; 2]].concat();
    assert_eq!(sources, expected);
    let largest = |table: &str| -> Vec<Option<f32>> {
        let rows = read(table);
        rows["count_max"]
            .as_primitive::<Float32Type>()
            .iter()
            .collect()
    };
    assert_eq!(largest("structures"), [Some(6.0), None, Some(3.0)]);
    let of_chains = [Some(3.0), Some(6.0), None, None, None, Some(3.0)];
    assert_eq!(largest("chains"), of_chains);
    assert_eq!(read("structures")["residues"].len(), 3);
}

#[test]
fn structures_are_let_go_of_although_few_rows_are_chosen() {
    let (_folder, mut tables) = start_with(SETTINGS, 1, &[]);
    let filter = filter("res_index == 0 and source == 'in/0.pdb'");
    tables.advance(0).unwrap();
    for ordinal in 0..4 {
        let record = filter.select(record(ordinal, 2));
        tables.append(record).unwrap();
    }
    // Four residues each, and row groups of seven rows: those of the first two were gathered.
    let held = tables.tables.iter().map(|table| table.group.structures());
    assert_eq!(held.collect::<Vec<_>>(), [0, 0, 0]);
}
