//! Statistics of residues in the tables of chains and structures.

use super::*;

/// The rows of a table in CSV: a map from column to value for each.
fn rows(out: &Path, table: &str) -> Vec<std::collections::HashMap<String, String>> {
    let path = out.join(table).join("part-00000.csv");
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

#[test]
fn statistics_are_those_of_the_rows_of_residues() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let reduce = r#"reduce=["rsa.mean", "rsa.p90", "hse_a_up.max", "plddt.median"]"#;
    let more = ["--format", "csv", "--set", reduce];
    run_well(&[&[SAMPLES, "-o", str_of(&out)], &more[..]].concat());
    let residues = rows(&out, "residues");
    let number = |text: &String| text.parse::<f64>().ok();
    let check = |row: &std::collections::HashMap<String, String>, keys: &[&str]| {
        let own = residues
            .iter()
            .filter(|it| keys.iter().all(|&key| it[key] == row[key]));
        let own: Vec<_> = own.collect();
        assert!(!own.is_empty());
        let values = |column: &str| {
            let mut values: Vec<f64> = own.iter().filter_map(|it| number(&it[column])).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let rsa = values("rsa");
        let mean = rsa.iter().sum::<f64>() / rsa.len() as f64;
        let at = (rsa.len().max(1) - 1) as f64 * 0.9;
        let near = |column: &str, expected: Option<f64>| match (number(&row[column]), expected) {
            (Some(found), Some(expected)) => {
                assert!(
                    (found - expected).abs() <= 1e-6 * expected.abs().max(1.0),
                    "{column}: {found} {expected}"
                );
            }
            (found, expected) => assert_eq!(found, expected.filter(|it| !it.is_nan()), "{column}"),
        };
        near("rsa_mean", (!rsa.is_empty()).then_some(mean));
        let p90 = rsa
            .get(at.floor() as usize)
            .map(|low| low + (rsa[at.ceil() as usize] - low) * at.fract());
        near("rsa_p90", p90);
        near("hse_a_up_max", values("hse_a_up").last().copied());
        let plddt = values("plddt");
        let median = |values: &[f64]| match values.len() {
            0 => None,
            n => Some((values[(n - 1) / 2] + values[n / 2]) / 2.0),
        };
        near("plddt_median", median(&plddt));
    };
    let chains = rows(&out, "chains");
    assert!(chains.len() > 30);
    for row in &chains {
        check(row, &["source", "model", "auth_asym_id", "label_asym_id"]);
    }
    for row in rows(&out, "structures") {
        check(&row, &["source", "model"]);
    }
}

#[test]
fn a_set_may_be_one_small_table_and_goes_on_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let args = |out: &str| {
        let out = folder.path().join(out);
        let written = r#"tables.written=["structures"]"#;
        let sets = [
            "--set",
            written,
            "--set",
            "reduce=*.mean",
            "--set",
            "tables.inputs_per_part=9",
        ];
        let start = [SAMPLES, "-o", str_of(&out)].map(str::to_owned);
        start
            .into_iter()
            .chain(sets.map(str::to_owned))
            .collect::<Vec<_>>()
    };
    let run_it = |out: &str, more: &[&str]| {
        let args = args(out);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        run_well(&[&args[..], more].concat());
    };
    run_it("whole", &[]);
    let [whole, again] = ["whole", "again"].map(|out| folder.path().join(out));
    assert!(!whole.join("residues").exists() && !whole.join("chains").exists());
    let part =
        |out: &Path, part: u64| fs::read(out.join(format!("structures/part-{part:05}.parquet")));
    let columns = record(&whole)["columns"]["structures"].clone();
    assert!(
        columns["rsa_mean"].is_object() && columns["eigenvector_mean"].is_object(),
        "{columns}"
    );
    // What a run leaves that ends behind the first part.
    run_it("again", &[]);
    let mut left = record(&again);
    left["state"] = serde_json::json!("running");
    fs::write(again.join("run.json"), left.to_string()).unwrap();
    let again_args = args("again");
    let again_args: Vec<&str> = again_args.iter().map(String::as_str).collect();
    let (output, code) = run(&[&again_args[..], &["--resume"]].concat());
    assert_eq!(code, 2, "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("complete"));
    for at in 0..3 {
        assert!(
            part(&whole, at).unwrap() == part(&again, at).unwrap(),
            "{at}"
        );
    }
}

#[test]
fn what_cannot_be_reduced_is_refused_with_what_can() {
    let refused = |reduce: &str, said: &str| {
        let set = format!("reduce={reduce}");
        let (output, code) = run(&[SAMPLES, "-o", "-", "--set", &set]);
        let stderr = text(&output.stderr);
        assert_eq!(code, 2, "{stderr}");
        assert!(has_parts(&stderr, said), "{stderr}");
    };
    refused("rsa", "statistic");
    refused("rsa.average", "average .. mean, min, max, median");
    refused("rza.mean", "rza");
    refused("ss8.mean", "numbers");
    refused(r#"["rsa.mean", "*.mean"]"#, "rsa_mean");
    let (output, code) = run(&[SAMPLES, "--set", r#"tables.written=["bonds"]"#]);
    assert_eq!(code, 2);
    let said = text(&output.stderr);
    assert!(said.contains("residues, chains, structures"), "{said}");
}
