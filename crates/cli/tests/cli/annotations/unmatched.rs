//! Rows of annotations that match nothing.

use super::*;

/// The arguments of a run over `input` with annotations of `table`.
fn args_of(input: &str, table: &Path, out: &Path, more: &[&str]) -> Vec<String> {
    let annotations = format!("annotations={}", table.display());
    let mut args = vec![input, "-o", str_of(out), "--features", "contact_number"];
    args.extend(["--set", &annotations]);
    args.extend(more);
    args.into_iter().map(str::to_owned).collect()
}

fn run_with(input: &str, table: &Path, out: &Path, more: &[&str]) -> (String, i32) {
    let args = args_of(input, table, out, more);
    let (output, code) = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
    (text_of(&output), code)
}

fn says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(has_parts(said, part), "{said:?} lacks {part:?}");
    }
}

#[test]
fn a_table_without_a_matching_row_fails_the_run_which_keeps_what_it_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let input = format!("{SAMPLES}/1ubi.pdb");
    let rows = "structure,chain,residue,x\n1abc,A,1,1\n1UBI,A,5,2\n";
    fs::write(at("x.csv"), rows).unwrap();
    let (said, code) = run_with(&input, &at("x.csv"), &at("out"), &[]);
    assert_eq!(code, 1, "{said}");
    says(
        &said,
        &[
            "error:",
            "structure",
            "x.csv:2: 1abc, chain A, residue 1",
            "1UBI .. 1ubi",
            "annotations_unmatched = \"allow\"",
        ],
    );
    let table = read(&at("out/residues/part-00000.parquet"));
    assert_eq!(table.num_rows(), 76, "what was written stays");
    assert_eq!(record(&at("out"))["state"], "failed");
    let matched = matched(&at("out"));
    assert_eq!(matched["rows_matched"], 0);
    assert_eq!(matched["tables"][0]["rows_unmatched"], 2);

    // The same run goes on once the user allows it.
    let allow = ["--set", "annotations_unmatched=allow"];
    let more = [&allow[..], &["--resume"]].concat();
    let (said, code) = run_with(&input, &at("x.csv"), &at("out"), &more);
    assert_eq!(code, 0, "{said}");
    assert_eq!(record(&at("out"))["state"], "finished");
    let (said, code) = run_with(&input, &at("x.csv"), &at("allowed"), &allow);
    assert_eq!((said.as_str(), code), ("", 0));
}

#[test]
fn residues_that_no_structure_has_are_told_from_structures_that_were_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let input = format!("{SAMPLES}/1ubi.pdb");
    fs::write(at("x.csv"), "structure,chain,residue,x\n1ubi,B,5,2\n").unwrap();
    let (said, code) = run_with(&input, &at("x.csv"), &at("out"), &[]);
    assert_eq!(code, 1, "{said}");
    says(&said, &["residue", "x.csv:2: 1ubi, chain B, residue 5"]);
    assert!(!said.contains("case counts"), "{said}");
}

#[test]
fn each_table_has_its_own_count_and_its_first_row_without_a_match() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("tables")).unwrap();
    let write = |name: &str, text: &str| fs::write(at("tables").join(name), text).unwrap();
    write("a.csv", "structure,x\n1ubi,1\n1abc,2\n1yjp,3\n2abc,4\n");
    write("b.csv", "structure,chain,residue,y\n1ubi,A,5,2\n");
    write("c.csv", "structure,chain,residue,z\n");
    let samples = ["1ubi.pdb", "1yjp.cif"].map(|name| format!("{SAMPLES}/{name}"));
    let more = [&*samples[1], "-v"];
    let names = ["a.csv", "b.csv", "c.csv"].map(|name| at("tables").join(name));
    let tables = format!("annotations={names:?}");
    let each = [&more[..], &["--set", &tables]].concat();
    let (said, code) = run_with(&samples[0], &at("tables"), &at("out"), &each);
    assert_eq!(code, 0, "{said}");
    says(
        &said,
        &[
            "a.csv .. 2 of 4",
            "a.csv:3: 1abc",
            "b.csv: 1 of 1 rows match\n",
        ],
    );
    let matched = matched(&at("out"));
    assert_eq!(
        (&matched["rows"], &matched["rows_read"]),
        (&5.into(), &3.into())
    );
    let tables = matched["tables"].as_array().unwrap();
    let counts = |name: &str| -> Vec<u64> {
        tables
            .iter()
            .map(|table| table[name].as_u64().unwrap())
            .collect()
    };
    assert_eq!(counts("rows"), [4, 1, 0]);
    assert_eq!(counts("rows_matched"), [2, 1, 0]);
    assert_eq!(counts("rows_unmatched"), [2, 0, 0]);
    let first = tables[0]["first_unmatched"].as_str().unwrap();
    assert!(first.ends_with("a.csv:3: 1abc"), "{first}");
    assert!(tables[1]["first_unmatched"].is_null());

    // One table of several without a match is an error, and names that one. A folder is one table.
    fs::create_dir(at("others")).unwrap();
    for name in ["d.csv", "e.csv"] {
        fs::write(at("others").join(name), "structure,w\n3abc,1\n1YJP,2\n").unwrap();
    }
    let others = format!("annotations=[{:?}, {:?}]", at("tables"), at("others"));
    let more = [&more[..], &["--set", &others]].concat();
    let (said, code) = run_with(&samples[0], &at("tables"), &at("more"), &more);
    assert_eq!(code, 1, "{said}");
    let folder = str_of(&at("others")).to_owned();
    says(
        &said,
        &[&format!("error: {folder}"), "d.csv:2: 3abc", "1YJP .. 1yjp"],
    );
    assert!(!said.contains("either"), "{said}");
}

#[test]
fn a_message_names_all_tables_that_failed_and_counts_rejected_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("bad.pdb"), "junk").unwrap();
    fs::write(
        at("x.csv"),
        "structure,chain,residue,model,x\nbad,A,5,2,1\n",
    )
    .unwrap();
    fs::write(at("y.csv"), "structure,y\n1abc,1\n").unwrap();
    let both = format!("annotations=[{:?}, {:?}]", at("x.csv"), at("y.csv"));
    let bad = at("bad.pdb");
    let more = [str_of(&bad), "--set", &both];
    let input = format!("{SAMPLES}/1ubi.pdb");
    let (said, code) = run_with(&input, &at("x.csv"), &at("out"), &more);
    assert_eq!(code, 1, "{said}");
    says(
        &said,
        &[
            "x.csv:2: bad, model 2, chain A, residue 5",
            "rejected .. : 1",
            "y.csv either",
        ],
    );
}

#[test]
fn a_shard_warns_of_a_table_whose_rows_may_be_of_other_shards() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("x.csv"), "structure,x\n1ubi,1\n").unwrap();
    let samples = ["1ubi.pdb", "1yjp.cif"].map(|name| format!("{SAMPLES}/{name}"));
    for (shard, warns) in [("1/2", false), ("2/2", true)] {
        let out = at(&shard.replace('/', "-"));
        let more = [&*samples[1], "--shard", shard];
        let (said, code) = run_with(&samples[0], &at("x.csv"), &out, &more);
        assert_eq!(code, 0, "{said}");
        assert_eq!(said.contains("no row"), warns, "{said}");
    }
}

#[test]
fn rows_of_two_chains_that_are_two_inputs_match_in_one_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let input = format!("{SAMPLES}/1ubi.pdb");
    let chains = fs::read_to_string(&input).unwrap();
    let atoms: Vec<&str> = chains
        .lines()
        .filter(|line| line.starts_with("ATOM"))
        .collect();
    let of_chain = |chain: &str| -> String {
        let lines = atoms
            .iter()
            .map(|line| format!("{}{chain}{}\n", &line[..21], &line[22..]));
        lines.collect::<String>() + "TER\n"
    };
    fs::write(at("pair.pdb"), of_chain("A") + &of_chain("B") + "END\n").unwrap();
    fs::write(at("list.txt"), "pair.pdb,A\npair.pdb,B\n").unwrap();
    let rows = "structure,chain,residue,x\npair,A,5,1\npair,B,5,2\n";
    fs::write(at("x.csv"), rows).unwrap();
    let list = format!("@{}", at("list.txt").display());
    let (said, code) = run_with(&list, &at("x.csv"), &at("out"), &[]);
    assert_eq!((said.as_str(), code), ("", 0));
    let matched = matched(&at("out"));
    assert_eq!(
        (&matched["rows_read"], &matched["rows_matched"]),
        (&2.into(), &2.into())
    );
}

#[test]
fn packing_and_painting_fail_too() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let input = format!("{SAMPLES}/1ubi.pdb");
    fs::write(at("x.csv"), "structure,chain,residue,x\n1UBI,A,5,2\n").unwrap();
    let annotations = format!("annotations={}", at("x.csv").display());
    let set = ["--set", &annotations, "--set", "smooth.channels=x"];
    let (packed, painted) = (at("set"), at("painted.pdb"));
    let pack = ["pack", &input, "-o", str_of(&packed)];
    let paint = ["paint", &input, "smooth_x", "-o", str_of(&painted)];
    for command in [&pack[..], &paint[..]] {
        let args = command.iter().chain(&set).map(|&arg| arg.to_owned());
        let output = tapeloop(args).output().unwrap();
        let said = text_of(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        says(&said, &["1UBI .. 1ubi"]);
    }
    assert!(painted.exists());
    let files = fs::read_dir(&packed).unwrap();
    let files = files.map(|entry| entry.unwrap().file_name());
    let files: Vec<_> = files
        .filter(|name| name.to_str().unwrap().ends_with("arrow"))
        .collect();
    assert_eq!(files.len(), 0, "the set is as it was");
}
