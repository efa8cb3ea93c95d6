//! Files that are over a limit, and files that may be cut short.

use super::{SAMPLES, has_parts, parts, run, run_well, str_of, text};
use std::fs;
use std::path::Path;

fn record(out: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(out.join("run.json")).unwrap()).unwrap()
}

#[test]
fn a_file_over_a_limit_is_rejected_with_the_key_that_raises_it() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let (small, large) = (format!("{SAMPLES}/1yjp.cif"), format!("{SAMPLES}/1ubi.pdb"));
    let files = ["-i", &small, "-i", &large, "-o", str_of(&out)];
    let features = ["--features", "rg", "--set", "limits.atoms_max=100"];
    let (output, code) = run(&[&files[..], &features].concat());
    assert_eq!(code, 3, "{}", text(&output.stderr));
    let rejected = fs::read_to_string(out.join("rejected.jsonl")).unwrap();
    let message = "limits.atoms_max is 100";
    assert!(
        rejected.contains("1ubi.pdb") && rejected.contains(message),
        "{rejected}"
    );
    assert_eq!(record(&out)["counts"]["structures"], 1);
    assert_eq!(record(&out)["config"]["limits.atoms_max"], 100);
}

#[test]
fn the_memory_that_readers_share_changes_no_table() {
    let folder = tempfile::tempdir().unwrap();
    let tables_with = |name: &str, setting: &str| {
        let out = folder.path().join(name);
        let args = [
            "-i",
            SAMPLES,
            "-o",
            str_of(&out),
            "--features",
            "rg",
            "--threads",
            "3",
        ];
        run(&[&args[..], &["--set", setting]].concat());
        parts(&out)
    };
    let wanted = tables_with("all", "limits.reading_bytes_max=4_000_000_000");
    assert_eq!(tables_with("one", "limits.reading_bytes_max=1"), wanted);
}

#[test]
fn pdb_files_that_may_be_cut_short_are_counted_and_named_and_strict_rejects_them() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read_to_string(format!("{SAMPLES}/1ubi.pdb")).unwrap();
    let (cut, out) = (
        folder.path().join("cut\x1b[2J.pdb"),
        folder.path().join("out"),
    );
    let lines = whole.lines().filter(|line| line.starts_with("ATOM"));
    let lines: Vec<&str> = lines.take(100).collect();
    let cut_text = lines.join("\n");
    fs::write(&cut, &cut_text).unwrap();
    let sample = format!("{SAMPLES}/1ubi.pdb");
    let args = [
        "-i",
        str_of(&cut),
        "-i",
        &sample,
        "-o",
        str_of(&out),
        "--overwrite",
    ];
    let args = [&args[..], &["--features", "rg"]].concat();
    let said = text(&run_well(&args).stderr);
    assert_eq!(said.matches("may be cut short").count(), 1, "{said}");
    assert!(said.contains("cut\\u{1b}[2J.pdb"), "{said}");
    assert!(said.contains("ENDMDL"), "{said}");
    assert_eq!(record(&out)["counts"]["truncated"], 1);
    // The short table alone warns too.
    let shown = super::tapeloop([str_of(&cut), "--features", "rg"])
        .output()
        .unwrap();
    let said = text(&shown.stderr);
    assert_eq!(said.matches("may be cut short").count(), 1, "{said}");
    let (output, code) = run(&[&args[..], &["--strict"]].concat());
    assert_eq!(code, 3, "{}", text(&output.stderr));
    let record = record(&out);
    assert_eq!(
        (
            &record["counts"]["truncated"],
            &record["counts"]["structures"]
        ),
        (&0.into(), &1.into())
    );
    let rejected = fs::read_to_string(out.join("rejected.jsonl")).unwrap();
    assert!(has_parts(&rejected, "cut short .. END"), "{rejected}");
    let reader = record["values_follow_from"]["tapeloop.reader"]
        .as_str()
        .unwrap();
    assert!(reader.contains(r#""strict":true"#), "{reader}");
}

#[test]
fn files_without_end_whose_last_line_is_whole_are_noted_in_the_summary_and_not_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let input = format!("{SAMPLES}/3mht.pdb.gz");
    let args = ["-i", &input, "-o", str_of(&out), "--features", "rg"];
    assert_eq!(text(&run_well(&args).stderr), "");
    assert_eq!(record(&out)["counts"]["truncated"], 1);
    let said = text(&run_well(&[&args[..], &["--verbose"]].concat()).stderr);
    let note = "note: PDB files without END .. : 1";
    assert!(has_parts(&said, note), "{said}");
    assert!(!said.contains("warning"), "{said}");
    let (output, code) = run(&[&args[..], &["--strict", "--overwrite"]].concat());
    assert_eq!(code, 1, "{}", text(&output.stderr));
}

/// Rows that repeat names of 256 bytes are written a few at a time.
#[cfg(target_os = "linux")]
#[test]
fn long_names_in_each_row_take_no_more_memory_in_any_format() {
    const COPIES: usize = 130;
    const RESIDUES: usize = 1000;
    let [chain, entity] = ["A", "e"].map(|letter| letter.repeat(256));
    let entry = "y".repeat(256);
    let mut text = format!(
        "data_{entry}\n_struct_asym.id {chain}\n_struct_asym.entity_id {entity}\n\
         _entity.id {entity}\n_entity.type polymer\n"
    );
    // Each operator moves the chain along y.
    text += "loop_\n_pdbx_struct_oper_list.id\n";
    for row in 1..=3 {
        for column in 1..=3 {
            text += &format!("_pdbx_struct_oper_list.matrix[{row}][{column}]\n");
        }
        text += &format!("_pdbx_struct_oper_list.vector[{row}]\n");
    }
    for copy in 1..=COPIES {
        text += &format!("{copy} 1 0 0 0 0 1 0 {} 0 0 1 0\n", 60 * copy);
    }
    text += &format!(
        "_pdbx_struct_assembly_gen.assembly_id 1\n\
         _pdbx_struct_assembly_gen.oper_expression 1-{COPIES}\n\
         _pdbx_struct_assembly_gen.asym_id_list {chain}\nloop_\n"
    );
    let tags = "label_atom_id label_comp_id label_asym_id label_seq_id Cartn_x Cartn_y Cartn_z";
    for tag in tags.split(' ') {
        text += &format!("_atom_site.{tag}\n");
    }
    for residue in 0..RESIDUES {
        let (x, y) = (residue % 97 * 4, residue / 97 * 4);
        text += &format!("CA ALA {chain} {residue} {x} {y} 0\n");
    }
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.cif");
    fs::write(&input, text).unwrap();
    for format in ["parquet", "arrow", "csv", "json"] {
        let out = folder.path().join(format);
        let format = format!("tables.format={format}");
        let set = [&format, "assembly=1"].map(|key| ["--set", key]);
        let args = ["-i", str_of(&input), "-o", str_of(&out), "--features", "rg"];
        run_well(&[&args, &["--threads", "2"][..], &set.concat()].concat());
        let record = record(&out);
        assert_eq!(record["counts"]["residues"], COPIES * RESIDUES);
        let peak = record["memory_bytes"]["process_peak"].as_u64().unwrap();
        assert!(peak < 256_000_000, "{format}: {peak} bytes");
    }
}
