//! `docs/METHODS.md` and `CITATION.cff` describe this version.

use super::*;
use crate::every_feature::every_feature;
use tapeloop::features::TableName;

fn document(name: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(name)).unwrap()
}

/// The rows of the table of columns: the names in the first cell, and the other cells.
fn rows(text: &str) -> Vec<(Vec<String>, Vec<String>)> {
    let start = text.find("| columns | computed as |").unwrap();
    let lines = text[start..].lines().skip(2);
    let lines = lines.take_while(|line| line.starts_with('|'));
    let cells = |line: &str| -> Vec<String> {
        let line = line.replace("\\|", "");
        let cells = line.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    let names = |cell: &str| {
        cell.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    };
    let row = |line: &str| {
        let mut cells = cells(line);
        let first = cells.remove(0);
        (names(&first), cells)
    };
    lines.map(row).collect()
}

#[test]
fn the_methods_have_each_column_once_and_no_other() {
    let rows = rows(&document("docs/METHODS.md"));
    let mut described: Vec<String> = rows.iter().flat_map(|(names, _)| names.clone()).collect();
    let config = every_feature();
    let all = TableName::ALL
        .into_iter()
        .flat_map(|table| config.columns(table));
    let columns: Vec<_> = all.collect();
    let mut expected: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    expected.sort();
    expected.dedup();
    described.sort();
    let only_in = |one: &[String], other: &[String]| -> Vec<String> {
        one.iter()
            .filter(|name| !other.contains(name))
            .cloned()
            .collect()
    };
    let missing = only_in(&expected, &described);
    assert!(missing.is_empty(), "docs/METHODS.md lacks {missing:?}");
    let unknown = only_in(&described, &expected);
    assert!(
        unknown.is_empty(),
        "docs/METHODS.md has {unknown:?}, which are no columns"
    );
    assert_eq!(described, expected, "a column is there twice");
    for (names, cells) in &rows {
        assert!(
            cells.len() == 4 && !cells[0].is_empty(),
            "{names:?}: {cells:?}"
        );
    }
}

#[test]
fn the_citation_is_of_this_version() {
    let citation = document("CITATION.cff");
    let version = format!("version: {}\n", env!("CARGO_PKG_VERSION"));
    assert!(
        citation.contains(&version),
        "CITATION.cff lacks `{version}`"
    );
    assert!(citation.contains("docs/METHODS.md"));
}
