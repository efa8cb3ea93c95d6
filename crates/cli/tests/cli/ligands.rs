//! Runs that keep ligands, ions and glycans.

use super::*;

/// Two residues, a water, a zinc ion and a heme.
const FILE: &str = "\
ATOM      1  N   GLY A   1       0.000   0.000   0.000  1.00  9.00           N
ATOM      2  CA  GLY A   1       1.400   0.000   0.000  1.00  9.00           C
ATOM      3  N   GLY A   9      40.000   0.000   0.000  1.00  9.00           N
HETATM    4  C1  HEM A 201       4.400   0.000   0.000  1.00  9.00           C
HETATM    5  C2  HEM A 201       5.900   0.000   0.000  1.00  9.00           C
HETATM    6 ZN    ZN A 202      47.000   0.000   0.000  1.00  9.00          ZN
HETATM    7  O   HOH A 301       0.000   2.000   0.000  1.00  9.00           O
END
";

const KEEP: [&str; 2] = ["--set", "ligands=\"keep\""];

fn written(folder: &Path) -> PathBuf {
    let path = folder.join("two.pdb");
    fs::write(&path, FILE).unwrap();
    path
}

#[test]
fn the_columns_name_the_nearest_ligand() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path());
    let args = [
        str_of(&file),
        "--features",
        "ligands",
        "-o",
        "-",
        "--format",
        "csv",
    ];
    let output = run_well(&[&args[..], &KEEP].concat());
    let mut reader = csv::Reader::from_reader(&output.stdout[..]);
    let header = reader.headers().unwrap().clone();
    let first = header
        .iter()
        .position(|name| name == "ligand_dmin")
        .unwrap();
    let names: Vec<&str> = header.iter().skip(first).collect();
    let expected = [
        "ligand_dmin",
        "ligand_contacts",
        "ligand_comp",
        "ligand_seq",
        "metal_dmin",
        "sasa_bound",
        "glycan_sasa_delta",
    ];
    assert_eq!(names, expected);
    let rows: Vec<Vec<String>> = reader
        .records()
        .map(|row| row.unwrap().iter().skip(first).map(str::to_owned).collect())
        .collect();
    assert_eq!(rows[0][..5], ["3", "2", "HEM", "201", ""]);
    assert_eq!(rows[1][..5], ["", "0", "", "", "7"]);
    let area: f64 = rows[1][5].parse().unwrap();
    let alone = 4.0 * std::f64::consts::PI * (1.64f64 + 1.4).powi(2);
    assert!((area - alone).abs() < 1e-3, "{area}: zinc is 7 A away");
}

#[test]
fn the_table_of_ligands_has_a_row_each() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.pdb");
    let link = "LINK         C2  HEM A 201                 C1  HEM A 203     1555   1555  1.50\n";
    let other = FILE.lines().find(|line| line.contains(" C1  HEM")).unwrap();
    let other = other
        .replace("A 201   ", "B 203Z  ")
        .replace(" 4.400", "64.400");
    let text = format!("{}{FILE}", link.replace("A 203 ", "B 203Z"));
    fs::write(&file, text.replace("END\n", &format!("{other}\nEND\n"))).unwrap();
    let out = folder.path().join("out");
    let args = [str_of(&file), "-o", str_of(&out), "--format", "csv"];
    let more = ["--features", "ligands", "--where", "auth_seq_id > 8"];
    run_well(&[&args[..], &more, &KEEP].concat());
    let table = fs::read_to_string(out.join("ligands/part-00000.csv")).unwrap();
    let mut lines = table.lines();
    let header = "source,structure,model,ligand_index,entry_id,auth_asym_id,label_asym_id,auth_seq_id,ins_code,\
                  comp_id,kind,molecule,atoms,sasa_alone,sasa_buried,contact_residues";
    assert_eq!(lines.next(), Some(header));
    let rows: Vec<Vec<&str>> = lines
        .map(|line| line.split(',').skip(3).collect())
        .collect();
    let expected = [
        ["0", "", "A", "", "201", "", "HEM", "ligand", "0", "2"],
        ["1", "", "A", "", "202", "", "ZN", "ion", "1", "1"],
        ["2", "", "B", "", "203", "Z", "HEM", "ion", "0", "1"],
    ];
    assert_eq!(
        rows.len(),
        expected.len(),
        "all ligands, whatever residues are chosen"
    );
    for (row, expected) in rows.iter().zip(expected) {
        assert_eq!(row[..10], expected);
    }
    assert_eq!([rows[0][12], rows[1][12], rows[2][12]], ["1", "0", "0"]);
    let area: f64 = rows[2][10].parse().unwrap();
    let alone = 4.0 * std::f64::consts::PI * (1.88f64 + 1.4).powi(2);
    assert!(
        (area - alone).abs() < 1e-3 && rows[2][11] == "0",
        "{:?}",
        rows[2]
    );
    let dropped = folder.path().join("dropped");
    run_well(&[str_of(&file), "-o", str_of(&dropped)]);
    assert!(!dropped.join("ligands").exists());
}

#[test]
fn runs_that_drop_ligands_have_the_tables_of_files_without_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path());
    let table = |more: &[&str]| {
        let args = [str_of(&file), "-o", "-", "--format", "csv"];
        run_well(&[&args[..], more].concat()).stdout
    };
    let kept = table(&KEEP);
    let dropped = table(&[]);
    assert_eq!(table(&["--set", "ligands=\"drop\""]), dropped);
    let bare: String = FILE
        .lines()
        .filter(|line| !line.starts_with("HETATM"))
        .fold(String::new(), |text, line| text + line + "\n");
    fs::write(&file, bare).unwrap();
    assert_eq!(table(&[]), dropped);
    let lines = |bytes: &[u8]| text(bytes).lines().map(str::to_owned).collect::<Vec<_>>();
    for (kept, dropped) in lines(&kept).iter().zip(lines(&dropped)) {
        assert!(kept.starts_with(&dropped), "{kept}\n{dropped}");
    }
}

#[test]
fn what_has_no_ligands_refuses_to_keep_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path());
    let (file, out) = (str_of(&file), folder.path().join("out"));
    let refused = |args: &[&str], parts: &[&str]| {
        let output = tapeloop(args).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        for part in parts {
            assert!(said.contains(part), "{said} lacks {part}");
        }
    };
    let out = str_of(&out);
    let start = ["run", file, "-o", out];
    let more = ["--set", "ligands=\"some\""];
    refused(
        &[&start[..], &more].concat(),
        &["ligands", "\"some\"", "keep"],
    );
    let more = ["--features", "ligands", "--set", "ligands=drop"];
    refused(
        &[&start[..], &more].concat(),
        &["ligands has nothing", "set ligands"],
    );
    let config = folder.path().join("keep.toml");
    fs::write(&config, "ligands = \"keep\"\n").unwrap();
    let set = folder.path().join("set");
    let set = str_of(&set);
    refused(
        &["pack", file, "-o", set, "--config", str_of(&config)],
        &["`ligands`"],
    );
    let packed = tapeloop(["pack", file, "-o", set]).output().unwrap();
    assert!(packed.status.success(), "{}", text(&packed.stderr));
    refused(
        &[&["run", set, "-o", out][..], &KEEP].concat(),
        &["packed sets", "leave `ligands` out"],
    );
    let features = ["--features", "rg"];
    run_well(&[&[set, "-o", out][..], &features].concat());
}

#[test]
fn a_run_without_metals_says_so_and_nothing_of_ligands() {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("{SAMPLES}/1hvr.pdb.gz");
    let keep = ["--set", "ligands=keep", "--verbose", "-o"];
    let output = run_well(&[&[&*file], &keep[..], &[str_of(folder.path())]].concat());
    let said = text(&output.stderr);
    let note = "no metal .. nothing in metal_dmin\n";
    assert!(has_parts(&said, note), "{said}");
    assert!(!said.contains("no ligand"), "{said}");
}

#[test]
fn columns_of_ligands_are_drawn_under_their_heading() {
    let folder = tempfile::tempdir().unwrap();
    let drawing = folder.path().join("1hvr.svg");
    let file = format!("{SAMPLES}/1hvr.pdb.gz");
    let args = ["paint", &file, "--svg", str_of(&drawing)];
    let more = ["--features", "ligands", "--set", "ligands=keep"];
    let output = tapeloop(args.iter().chain(&more)).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let drawing = fs::read_to_string(drawing).unwrap();
    assert!(drawing.contains(">Ligands<") && drawing.contains(">ligand_dmin<"));
    assert!(!drawing.contains("Other features"));
}
