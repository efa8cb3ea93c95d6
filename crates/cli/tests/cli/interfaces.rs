//! Runs with the table of interfaces.

use super::*;
use arrow_array::cast::AsArray;
use arrow_ipc::reader::FileReader;

const INTERFACES: [&str; 2] = ["--set", "interfaces=true"];

/// A run of two files, of which the first has two chains and the second has one.
fn run_into(out: &Path, format: &str, more: &[&str]) {
    let files = ["1hvr.pdb.gz", "1ubi.pdb"].map(|name| format!("{SAMPLES}/{name}"));
    let args = [&*files[0], &files[1], "-o", str_of(out), "--format", format];
    run_well(&[&args[..], &INTERFACES, more].concat());
}

#[test]
fn the_table_of_interfaces_has_a_row_a_pair_of_chains() {
    let folder = tempfile::tempdir().unwrap();
    let [large, small, arrow, none] =
        ["large", "small", "arrow", "none"].map(|name| folder.path().join(name));
    run_into(&large, "csv", &["--where", "aa == 'W'"]);
    let table = fs::read_to_string(large.join("interfaces/part-00000.csv")).unwrap();
    let mut lines = table.lines();
    let header = "source,structure,model,entry_id,label_asym_id_i,label_asym_id_j,auth_asym_id_i,auth_asym_id_j,\
                  buried_area,buried_area_i,buried_area_j,residues_i,residues_j,contacts,backbone_hydrogen_bonds";
    assert_eq!(lines.next(), Some(header));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let [row] = &rows[..] else {
        panic!(
            "a row of the protease, whatever residues are chosen, and none of ubiquitin: {table}"
        );
    };
    assert_eq!(row[1..8], ["1hvr", "1", "1HVR", "", "", "A", "B"]);
    let real = |at: usize| row[at].parse::<f64>().unwrap();
    // The monomers of HIV-1 protease bury about 1,700 A^2 each, and have strands of both chains in
    // one sheet.
    assert!((real(8) - real(9) - real(10)).abs() < 0.01, "{row:?}");
    assert!(
        [9, 10]
            .iter()
            .all(|&at| (1_400.0..2_000.0).contains(&real(at))),
        "{row:?}"
    );
    assert!(
        real(11) > 30.0 && real(12) > 30.0 && real(13) > real(11),
        "{row:?}"
    );
    assert!(real(14) >= 8.0, "{row:?}");

    let few = [
        &["--where", "aa == 'W'", "--threads", "1"][..],
        &[
            "--set",
            "batch.residues=16",
            "--set",
            "batch.residues_max=16",
        ],
        &["--set", "mode=\"stream\"", "--set", "slots=1"],
    ];
    run_into(&small, "csv", &few.concat());
    let bytes = |out: &Path| fs::read(out.join("interfaces/part-00000.csv")).unwrap();
    assert!(bytes(&large) == bytes(&small));

    run_into(&arrow, "arrow", &[]);
    let part = fs::File::open(arrow.join("interfaces/part-00000.arrow")).unwrap();
    let batches: Vec<_> = FileReader::try_new(part, None)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(
        batches.iter().map(|batch| batch.num_rows()).sum::<usize>(),
        1
    );
    let chain = batches[0].column_by_name("auth_asym_id_j").unwrap();
    assert_eq!(chain.as_string::<i32>().value(0), "B");

    let input = format!("{SAMPLES}/1hvr.pdb.gz");
    run_well(&[&input, "-o", str_of(&none)]);
    assert!(!none.join("interfaces").exists());
}

/// The copies of an assembly are chains, with names of their own.
#[test]
fn the_copies_of_an_assembly_have_interfaces() {
    let folder = tempfile::tempdir().unwrap();
    let input = format!("{SAMPLES}/1a8o.cif.gz");
    let pairs = |name: &str, assembly: &str| -> Vec<[String; 2]> {
        let out = folder.path().join(name);
        let assembly = format!("assembly={assembly:?}");
        let args = [
            &input,
            "-o",
            str_of(&out),
            "--format",
            "csv",
            "--set",
            &assembly,
        ];
        run_well(&[&args[..], &["--features", "interfaces"], &INTERFACES].concat());
        let table = fs::read_to_string(out.join("interfaces/part-00000.csv")).unwrap();
        let names = |line: &str| {
            let cells: Vec<&str> = line.split(',').collect();
            [cells[6], cells[7]].map(str::to_owned)
        };
        table.lines().skip(1).map(names).collect()
    };
    assert_eq!(pairs("deposited", "deposited"), Vec::<[String; 2]>::new());
    assert_eq!(pairs("built", "1"), [["A", "A-2"].map(str::to_owned)]);
}

#[test]
fn the_table_of_interfaces_without_the_setting_says_what_to_set() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (format!("{SAMPLES}/1ubi.pdb"), folder.path().join("out"));
    let start = [&input, "-o", str_of(&out), "--set"];
    let (output, code) = run(&[&start[..], &[r#"tables.written=["interfaces"]"#]].concat());
    assert_eq!(code, 2);
    let said = text(&output.stderr);
    assert!(said.contains("`interfaces` is true"), "{said}");
    assert!(!out.exists());
}

#[test]
fn the_former_name_of_the_bonds_of_interfaces_is_an_error_with_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (format!("{SAMPLES}/1ubi.pdb"), folder.path().join("out.pdb"));
    let fails = |args: &[&str], start: &str| {
        let output = tapeloop(args).output().unwrap();
        let said = text(&output.stderr);
        let hint = "`interfaces` .. `backbone_hydrogen_bonds`";
        let is_named = has_parts(&said, &format!("{start} .. {hint}"));
        assert!(output.status.code() == Some(2) && is_named, "{said}");
    };
    let out = ["-o", str_of(&out)];
    let condition = [&[&*input, "--where", "hydrogen_bonds > 3"], &out[..]].concat();
    fails(&condition, "column `hydrogen_bonds`");
    let painting = [&["paint", &*input, "hydrogen_bonds"], &out[..]].concat();
    fails(&painting, "column `hydrogen_bonds`");
}
