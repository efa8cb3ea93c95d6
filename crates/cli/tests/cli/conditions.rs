//! Rows of residues that are chosen by a condition.

use super::*;
use std::collections::HashMap;

/// The rows of a table in CSV: a map from column to text for each.
fn rows(text: &[u8]) -> Vec<HashMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text);
    reader.deserialize().map(Result::unwrap).collect()
}

fn number(row: &HashMap<String, String>, column: &str) -> Option<f64> {
    row[column].parse().ok()
}

fn part(out: &Path, table: &str) -> Vec<u8> {
    fs::read(out.join(table).join("part-00000.csv")).unwrap()
}

#[test]
fn the_rows_that_meet_the_condition_are_those_of_a_run_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let [all, some] = ["all", "some"].map(|name| folder.path().join(name));
    let run_into = |out: &Path, more: &[&str]| {
        let start = [SAMPLES, "-o", str_of(out), "--format", "csv", "-v"];
        let reduce = ["--set", "reduce=[\"rsa.mean\", \"iface.mean\"]"];
        text(&run_well(&[&start, &reduce[..], more].concat()).stderr)
    };
    run_into(&all, &[]);
    let condition = "rsa > 0.25 and (chain == 'A' or not iface) and ss8 in ('H', '-')";
    let said = run_into(&some, &["--where", condition]);
    let residues = rows(&part(&all, "residues"));
    let count = residues.len();
    let expected: Vec<_> = residues
        .into_iter()
        .filter(|row| number(row, "rsa").is_some_and(|rsa| rsa > 0.25))
        .filter(|row| row["auth_asym_id"] == "A" || row["iface"] == "false")
        .filter(|row| ["H", "-"].contains(&&*row["ss8"]))
        .collect();
    let found = rows(&part(&some, "residues"));
    assert!(found.len() > 100 && found == expected);
    // Each structure and chain has its row, and only statistics are of the chosen residues.
    for (table, keys) in [
        ("structures", &["source", "model"][..]),
        (
            "chains",
            &["source", "model", "auth_asym_id", "label_asym_id"],
        ),
    ] {
        let [all, some] = [&all, &some].map(|out| rows(&part(out, table)));
        assert_eq!(all.len(), some.len());
        for (all, some) in all.iter().zip(&some) {
            for (column, value) in all {
                assert!(
                    column.ends_with("_mean") || some[column] == *value,
                    "{column}"
                );
            }
            let own = found
                .iter()
                .filter(|it| keys.iter().all(|&key| it[key] == some[key]));
            let rsa: Vec<f64> = own.filter_map(|row| number(row, "rsa")).collect();
            let mean = rsa.iter().sum::<f64>() / rsa.len() as f64;
            match number(some, "rsa_mean") {
                Some(found) => assert!((found - mean).abs() < 1e-6, "{found} {mean}"),
                None => assert!(rsa.is_empty()),
            }
        }
    }
    // What is left out is counted.
    let record = record(&some);
    let left_out = (count - found.len()) as u64;
    assert_eq!(record["config"]["tables.where"], condition);
    assert_eq!(record["values_follow_from"]["tapeloop.where"], condition);
    assert_eq!(record["counts"]["residues"], count);
    for counts in [&record["counts"], &record["written"]] {
        assert_eq!(counts["residues_left_out"], left_out);
    }
    let whole = |count: usize| bench_format(count);
    let line = format!(
        "where {condition}: {} of {} residues\n",
        whole(found.len()),
        whole(count)
    );
    assert!(said.contains(&line), "{said}");
}

/// A number with separators of thousands, below a million.
fn bench_format(count: usize) -> String {
    match (count / 1000, count % 1000) {
        (0, _) => count.to_string(),
        (thousands, rest) => format!("{thousands},{rest:03}"),
    }
}

#[test]
fn the_bytes_depend_on_the_condition_and_the_inputs_alone() {
    let folder = tempfile::tempdir().unwrap();
    let samples = small_samples(folder.path());
    for format in ["parquet", "arrow", "csv", "json"] {
        let run_into = |name: &str, more: &[&str]| {
            let out = folder.path().join(format).join(name);
            let start = [str_of(&samples), "-o", str_of(&out), "--format", format];
            let condition = ["--where", "plddt is null and cn_ca_10 <= 12"];
            let cuts = ["tables.rows_per_group=300", "tables.inputs_per_part=5"];
            let cuts = cuts.map(|key| ["--set", key]).concat();
            run_well(&[&start, &condition[..], &cuts, more].concat());
            parts(&out)
        };
        let first = run_into("first", &["--threads", "1", "--slots", "1"]);
        let batches = ["--set", "batch.residues=700", "--mode", "stream"];
        let again = run_into("again", &[&["--threads", "3"], &batches[..]].concat());
        assert!(first == again, "{format}");
    }
}

#[test]
fn columns_of_chosen_rows_are_not_suspect_and_no_row_at_all_is() {
    let chosen = |condition: &str| {
        let set = "features=[\"dssp\", \"contact_number\"]";
        let args = [SAMPLES, "-o", "-", "--set", set, "--where", condition];
        text(&run_well(&args).stderr)
    };
    assert_eq!(chosen("ss8 == 'H'"), "");
    let said = chosen("ss8 == 'Q'");
    assert!(has_parts(&said, "warning: .. tables.where"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn standard_output_and_the_short_table_have_the_chosen_rows() {
    let input = Path::new(SAMPLES).join("1ubi.pdb");
    let show = |more: &[&str]| {
        let output = tapeloop([&[str_of(&input)], more].concat())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let shown = show(&["--where", "residue in (7, 48, 70)"]);
    let numbers = shown
        .lines()
        .skip(2)
        .filter_map(|line| line.split_whitespace().nth(1));
    let numbers: Vec<&str> = numbers.take(3).collect();
    assert_eq!(numbers, ["7", "48", "70"], "{shown}");
    assert!(!shown.contains("more"), "{shown}");
    let printed = show(&["--format", "csv", "--where", "aa == 'G'"]);
    let printed = rows(printed.as_bytes());
    assert!(printed.len() == 6 && printed.iter().all(|row| row["comp_id"] == "GLY"));
}

#[test]
fn a_dry_run_names_the_condition_and_its_config_is_read_again() {
    let condition = "chain == 'A' and\n  comp_id != \"GLY\"";
    let output = run_well(&[SAMPLES, "--dry-run", "--where", condition]);
    let plan = text(&output.stdout);
    let said = "chain == 'A' and\\n  comp_id";
    assert!(plan.contains(said), "{plan}");
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("job.toml");
    fs::write(&config, &plan).unwrap();
    let again = run_well(&[str_of(&config), "--dry-run"]);
    assert_eq!(text(&again.stdout), plan);
}

#[test]
fn a_condition_that_cannot_be_met_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let config = folder.path().join("job.toml");
    let refused = |toml: &str, said: &str| {
        fs::write(&config, toml).unwrap();
        let (output, code) = run(&[SAMPLES, "-o", str_of(&out), str_of(&config)]);
        let found = text(&output.stderr);
        assert_eq!(code, 2, "{found}");
        let expected = format!("error: .. {}:{said}", config.display());
        assert!(has_parts(&found, &expected), "{found}");
        assert!(!out.exists());
    };
    refused(
        "\ntables.where = \"pldd >= 70\"",
        "2 .. `tables.where` .. character 1: .. `pldd` .. did you mean `plddt`",
    );
    refused(
        "tables.where = \"rsa > 'x'\"",
        "1 .. `tables.where` .. character 7: .. rsa .. numbers .. `'x'`",
    );
    refused(
        "features = \"sasa\"\ntables.where = \"aa == 'G' and plddt >= 70\"",
        "2 .. `tables.where` .. character 15: .. `plddt` .. `features` .. `plddt`",
    );
    refused(
        "tables.where = \"rsa > 0\"\ntables.written = [\"chains\"]",
        "1 .. `tables.where` .. residues .. `reduce`",
    );
    refused("tables.where = 3", "1 .. `tables.where` .. string");
    refused("tables.where = \"\"", "1: `tables.where`: is empty");
    let args = ["validate", SAMPLES, "--set", "tables.where=rsa > 0"];
    let output = tapeloop(args).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("`tables.where`"), "{said}");
}
