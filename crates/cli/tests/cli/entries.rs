//! `scripts/entries.tsv`, the list of real files to test on, and what `docs/VALIDATION.md` states of
//! it and of the columns that too few of their values validate.

use super::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Component;

/// A column is unvalidated if fewer of its values were compared.
const COMPARED_MIN: u64 = 200;

fn document(name: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(name)).unwrap()
}

/// A line of a list for `scripts/fetch_samples.py`.
struct Listed {
    name: String,
    package: String,
    version: String,
    path: String,
    digest: String,
    /// What the file has: `ligands`, or the program that predicted it.
    has: Vec<String>,
}

fn listed(list: &str) -> Vec<Listed> {
    let text = document(list);
    assert!(text.is_ascii() && text.ends_with('\n'), "{list}");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let file = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, package, version, path, digest, has] = fields[..] else {
            panic!("{list}: {} fields in {line:?}", fields.len());
        };
        let has = has.split(',').filter(|word| !word.is_empty());
        Listed {
            name: name.to_owned(),
            package: package.to_owned(),
            version: version.to_owned(),
            path: path.to_owned(),
            digest: digest.to_owned(),
            has: has.map(str::to_owned).collect(),
        }
    };
    lines.map(file).collect()
}

/// An entry's name, which files of several formats share.
fn entry(file: &Listed) -> &str {
    file.name.split('.').next().unwrap()
}

/// The number of entries that have something.
fn entries_with(files: &[Listed], what: &str) -> usize {
    let having = files
        .iter()
        .filter(|file| file.has.iter().any(|it| it == what));
    having.map(entry).collect::<BTreeSet<_>>().len()
}

#[test]
fn each_line_of_the_lists_names_a_file_of_a_package() {
    for list in ["scripts/entries.tsv", "scripts/samples.tsv"] {
        let files = listed(list);
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{list}: {names:?}");
        let digests: BTreeSet<&str> = files.iter().map(|file| file.digest.as_str()).collect();
        assert_eq!(
            digests.len(),
            files.len(),
            "{list}: two files have one digest"
        );
        let mut versions = BTreeMap::new();
        for file in &files {
            let Listed {
                name,
                package,
                version,
                path,
                digest,
                ..
            } = file;
            let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            assert!(
                digest.len() == 64 && digest.bytes().all(is_hex),
                "{name}: {digest}"
            );
            let is_named = |byte: u8| byte.is_ascii_lowercase() || b"0123456789-".contains(&byte);
            assert!(
                package.bytes().all(is_named) && !package.is_empty(),
                "{name}: {package}"
            );
            assert!(
                version.starts_with(|digit: char| digit.is_ascii_digit()),
                "{name}: {version}"
            );
            let one = versions.entry(package).or_insert(version);
            assert_eq!(*one, version, "{name}: another version of {package}");
            let mut parts = Path::new(path).components();
            assert!(
                parts.all(|part| matches!(part, Component::Normal(_))),
                "{name}: {path}"
            );
            let plain = |path: &str| path.trim_end_matches(".gz").to_lowercase();
            let endings = [name, path].map(|it| plain(it).rsplit('.').next().map(str::to_owned));
            assert!(!name.contains('/') && endings[0].is_some(), "{name}");
            // A package may call its PDB files otherwise.
            let as_pdb =
                endings[1].as_deref() == Some("ent") && endings[0].as_deref() == Some("pdb");
            assert!(as_pdb || endings[0] == endings[1], "{name}: {path}");
        }
    }
}

#[test]
fn the_list_of_entries_has_what_features_are_tested_on() {
    let files = listed("scripts/entries.tsv");
    for (what, least) in [
        ("ligands", 60),
        ("glycans", 10),
        ("metals", 10),
        ("gaps", 10),
        ("AlphaFold", 1),
        ("Boltz-2", 1),
    ] {
        let found = entries_with(&files, what);
        assert!(found >= least, "{found} entries with {what}, not {least}");
    }
    let known = [
        "ligands",
        "glycans",
        "metals",
        "gaps",
        "AlphaFold",
        "Boltz-2",
    ];
    for file in &files {
        let unknown = file.has.iter().find(|word| !known.contains(&word.as_str()));
        assert_eq!(unknown, None, "{}", file.name);
        let words: BTreeSet<&String> = file.has.iter().collect();
        assert_eq!(words.len(), file.has.len(), "{}: a word twice", file.name);
    }
}

#[test]
fn validation_states_what_the_list_of_entries_has() {
    let files = listed("scripts/entries.tsv");
    let text = document("docs/VALIDATION.md");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let entries: BTreeSet<&str> = files.iter().map(entry).collect();
    let with = |what: &str| entries_with(&files, what);
    let statements = [
        format!("*Entries of packages*: {} files", files.len()),
        format!(
            "{} entries have ligands, {} glycans, {} metals and {} residues of SEQRES",
            with("ligands"),
            with("glycans"),
            with("metals"),
            with("gaps")
        ),
        format!(
            "{} of these files are the second format of an entry",
            files.len() - entries.len()
        ),
        format!("| Entries of packages | {} |", files.len()),
    ];
    for statement in statements {
        assert!(
            text.contains(&statement),
            "docs/VALIDATION.md lacks {statement:?}"
        );
    }
}

/// The number of values compared of each column, over all tables of agreement: of its oracle with
/// most of them. Columns of chains and structures have their table before the name.
fn compared(text: &str) -> BTreeMap<String, u64> {
    let mut by_oracle: BTreeMap<(String, String), u64> = BTreeMap::new();
    let header = "| columns | oracle | rule | compared |";
    for table in text.split(header).skip(1) {
        let rows = table
            .lines()
            .skip(2)
            .take_while(|line| line.starts_with('|'));
        for row in rows {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            let count: u64 = cells[3].replace(',', "").parse().unwrap();
            let (table, _) = cells[0].split_once(": ").unwrap_or(("residues", ""));
            for name in cells[0].split('`').skip(1).step_by(2) {
                let column = match table {
                    "residues" => name.to_owned(),
                    table => format!("{table}: {name}"),
                };
                *by_oracle.entry((column, cells[1].to_owned())).or_default() += count;
            }
        }
    }
    let mut columns = BTreeMap::new();
    for ((column, _), count) in by_oracle {
        let most = columns.entry(column).or_default();
        *most = count.max(*most);
    }
    columns
}

#[test]
fn validation_calls_columns_unvalidated_of_which_few_values_were_compared() {
    let text = document("docs/VALIDATION.md");
    let few = compared(&text)
        .into_iter()
        .filter(|(_, count)| *count < COMPARED_MIN);
    let few: Vec<(String, u64)> = few.collect();
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let rule = format!("fewer than {COMPARED_MIN} values compared over all sets is unvalidated: ");
    let start = joined.find(&rule).expect(&rule) + rule.len();
    let stated = joined[start..].split_once('.').unwrap().0;
    // The statement groups columns by name: "`a` of chains and of structures, with 5 each".
    let mut expected: BTreeMap<&str, (Vec<&str>, BTreeSet<u64>)> = BTreeMap::new();
    for (column, count) in &few {
        let (table, name) = column.split_once(": ").unwrap_or(("residues", column));
        let (tables, counts) = expected.entry(name).or_default();
        tables.push(table);
        counts.insert(*count);
    }
    let statements: Vec<String> = expected
        .into_iter()
        .map(|(name, (tables, counts))| {
            let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
            let each = if tables.len() > 1 { " each" } else { "" };
            format!(
                "`{name}` of {}, with {}{each}",
                tables.join(" and of "),
                counts.join(" and ")
            )
        })
        .collect();
    assert_eq!(
        stated,
        statements.join("; "),
        "left: docs/VALIDATION.md, right: its tables"
    );
}
