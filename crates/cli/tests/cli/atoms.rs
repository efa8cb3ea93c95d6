//! The table of atoms.

use super::*;

/// Two residues with alternate locations, a modified name of an atom, a cap, and a ligand.
const FILE: &str = "\
HETATM    1  C   ACE A   0      -1.200   0.500   0.000  1.00  9.00           C
ATOM      2  N   GLY A   1       0.000   0.000   0.000  1.00 11.50           N
ATOM      3  H   GLY A   1       0.500   0.900   0.000  1.00 11.50           H
ATOM      4  CA AGLY A   1       1.400   0.300   0.000  0.40 12.00           C
ATOM      5  CA BGLY A   1       1.400   0.000   0.000  0.60 13.00           C
ATOM      6  C   GLY A   1       2.000   1.300   0.000  1.00 14.00           C
ATOM      7  O   GLY A   1       1.400   2.400   0.000  1.00 15.00           O
ATOM      8  N   CYS A   2A      3.300   1.300   0.000  1.00 16.00           N
ATOM      9  CA  CYS A   2A      4.000   2.500   0.000  1.00 17.00           C
ATOM     10  C   CYS A   2A      5.500   2.300   0.000  1.00 18.00           C
ATOM     11  OT1 CYS A   2A      6.100   1.200   0.000  1.00 19.00           O
ATOM     12  SG  CYS A   2A      3.500   3.500   1.400  1.00 20.00           S
HETATM   13 ZN    ZN A 101       5.000   4.500   3.000  0.75 30.00          ZN
END
";

const FEATURES: [&str; 2] = ["--features", "atoms"];
const WITH_LIGANDS: [&str; 2] = ["--features", "atoms,ligands"];

/// The table of a run into CSV with these options, without the columns that name the file.
fn table(options: &[&str]) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.pdb");
    fs::write(&file, FILE).unwrap();
    let out = folder.path().join("out");
    let start = [str_of(&file), "-o", str_of(&out), "--format", "csv"];
    run_well(&[&start[..], options].concat());
    let text = fs::read_to_string(out.join("atoms/part-00000.csv")).unwrap();
    let rows = text.lines().map(|line| {
        let fields = line.split(',').skip(3);
        fields.map(str::to_owned).collect()
    });
    rows.collect()
}

/// The rows of a table, without the areas.
fn rows_without(table: &[Vec<String>], areas: usize) -> Vec<String> {
    let rows = table.iter().skip(1);
    rows.map(|row| row[..row.len() - areas].join(",")).collect()
}

#[test]
fn the_table_of_atoms_has_a_row_for_each_atom_of_a_residue() {
    let found = table(&FEATURES);
    let names = "res_index,auth_asym_id,auth_seq_id,ins_code,comp_id,name,altloc,element,is_backbone,\
                 class,radius,x,y,z,occupancy,b_factor,sasa";
    assert_eq!(found[0].join(","), names);
    let expected = [
        "0,A,1,,GLY,N,,N,true,polar,1.64,0,0,0,1,11.5",
        "0,A,1,,GLY,CA,B,C,true,apolar,1.88,1.4,0,0,0.6,13",
        "0,A,1,,GLY,C,,C,true,apolar,1.61,2,1.3,0,1,14",
        "0,A,1,,GLY,O,,O,true,polar,1.42,1.4,2.4,0,1,15",
        "1,A,2,A,CYS,N,,N,true,polar,1.64,3.3,1.3,0,1,16",
        "1,A,2,A,CYS,CA,,C,true,apolar,1.88,4,2.5,0,1,17",
        "1,A,2,A,CYS,C,,C,true,apolar,1.61,5.5,2.3,0,1,18",
        "1,A,2,A,CYS,O,,O,true,polar,1.42,6.1,1.2,0,1,19",
        "1,A,2,A,CYS,SG,,S,false,polar,1.77,3.5,3.5,1.4,1,20",
    ];
    assert_eq!(rows_without(&found, 1), expected);
    let area = |row: &Vec<String>| row.last().unwrap().parse::<f64>().unwrap();
    let total: f64 = found.iter().skip(1).map(area).sum();
    assert!((200.0..400.0).contains(&total), "{total}");
}

#[test]
fn atoms_of_ligands_have_rows_and_bury_those_of_residues() {
    let found = table(&WITH_LIGANDS);
    assert_eq!(found[0][1], "ligand_index");
    let (all, last) = (rows_without(&found, 2), found.last().unwrap());
    assert_eq!(all.len(), 10);
    assert_eq!(
        all[9],
        ",0,A,101,,ZN,ZN,,ZN,false,apolar,1.8,5,4.5,3,0.75,30"
    );
    let [alone, bound] = [2, 1].map(|place| &last[last.len() - place]);
    assert!(alone.is_empty() && bound.parse::<f64>().unwrap() > 50.0);
    let sulphur = &found[9];
    let [alone, bound] = [2, 1].map(|place| sulphur[sulphur.len() - place].parse::<f64>().unwrap());
    assert!(bound < alone, "{bound} {alone}");
}

#[test]
fn conditions_choose_atoms_by_their_residues_and_by_their_own_columns() {
    let names = |options: &[&str]| -> Vec<String> {
        let rows = table(options).into_iter().skip(1);
        rows.map(|row| row[if row.len() > 17 { 6 } else { 5 }].clone())
            .collect()
    };
    let of_residues = ["--where", "residue == 2"];
    let found = names(&[FEATURES, of_residues].concat());
    assert_eq!(found, ["N", "CA", "C", "O", "SG"]);
    let own = ["--set", "tables.where_atoms=not is_backbone or name == 'O'"];
    assert_eq!(names(&[FEATURES, own].concat()), ["O", "O", "SG"]);
    assert_eq!(names(&[FEATURES, of_residues, own].concat()), ["O", "SG"]);
    let of_ligands = ["--set", "tables.where_atoms=ligand_index is not null"];
    assert_eq!(names(&[WITH_LIGANDS, of_ligands].concat()), ["ZN"]);
    let by_text = ["--set", "tables.where_atoms=altloc == 'B' and sasa > 0"];
    assert_eq!(names(&[FEATURES, by_text].concat()), ["CA"]);
    let of_none = ["--set", "tables.where_atoms=x > 1000"];
    assert!(names(&[FEATURES, of_none].concat()).is_empty());
}

#[test]
fn a_run_reports_how_many_atoms_meet_the_condition_and_warns_of_none() {
    let folder = tempfile::tempdir().unwrap();
    let [file, out] = ["two.pdb", "out"].map(|name| folder.path().join(name));
    fs::write(&file, FILE).unwrap();
    let said = |condition: &str| {
        let condition = format!("tables.where_atoms={condition}");
        let start = [str_of(&file), "-o", str_of(&out), "--overwrite", "-v"];
        let output = run_well(&[&start[..], &FEATURES, &["--set", &condition]].concat());
        text(&output.stderr)
    };
    let some = said("name == 'O'");
    assert!(
        some.contains("where_atoms name == 'O': 2 of 9 atoms\n"),
        "{some}"
    );
    assert!(!some.contains("no atom"), "{some}");
    let none = said("x > 1000");
    assert!(
        none.contains("warning: no atom meets tables.where_atoms\n"),
        "{none}"
    );
}

#[test]
fn a_condition_on_atoms_needs_the_table_and_names_its_columns() {
    refused(
        "tables.where_atoms=sasa > 1",
        &[],
        &["`tables.where_atoms`", "set atoms = true"],
    );
    refused(
        "tables.where_atoms=sasa > 1",
        &["--features", "sasa", "--set", "atoms=true"],
        &["a list of features has to name `atoms`"],
    );
    refused(
        "tables.where_atoms=sasa > 1",
        &["--features", "atoms", "--set", "tables.written=residues"],
        &["add \"atoms\" to tables.written"],
    );
    let wrong = "tables.where_atoms=ss8 == 'H'";
    refused(wrong, &FEATURES, &["`tables.where_atoms`", "`ss8`"]);
}

#[test]
fn a_packed_set_has_no_names_of_atoms_and_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [file, set, out] = ["two.pdb", "set", "out"].map(|name| folder.path().join(name));
    fs::write(&file, FILE).unwrap();
    run_well_as(&["pack", str_of(&file), "-o", str_of(&set)]);
    let run = [
        "run",
        str_of(&set),
        "-o",
        str_of(&out),
        "--set",
        "atoms=true",
    ];
    assert_refused(&run, &["`atoms` is true", "packed sets", "structure files"]);
}

#[test]
fn paint_writes_the_areas_of_atoms_into_the_atoms() {
    let folder = tempfile::tempdir().unwrap();
    let [file, painted] = ["two.pdb", "painted.pdb"].map(|name| folder.path().join(name));
    fs::write(&file, FILE).unwrap();
    let start = ["paint", str_of(&file), "atoms.sasa", "-o", str_of(&painted)];
    // All atoms are painted, whatever rows the config chooses.
    let conditions = ["tables.where_atoms=x > 1000", "tables.where=model > 1"];
    let conditions = conditions.map(|condition| ["--set", condition]).concat();
    run_well_as(&[&start[..], &["--backend", "cpu"], &conditions].concat());
    let text = fs::read_to_string(&painted).unwrap();
    let b_factors: Vec<f64> = (text.lines().take(13))
        .map(|line| line[60..66].trim().parse().unwrap())
        .collect();
    let rows = table(&FEATURES);
    let areas = rows.iter().skip(1).map(|row| row.last().unwrap());
    let areas: Vec<f64> = areas.map(|area| area.parse().unwrap()).collect();
    // The cap, the hydrogen, the other location and the ligand have no value.
    let with_value = [1, 4, 5, 6, 7, 8, 9, 10, 11];
    for (place, b_factor) in b_factors.iter().enumerate() {
        let index = with_value.iter().position(|&atom| atom == place);
        let expected = index.map_or(-1.0, |index| areas[index]);
        assert!(
            (b_factor - expected).abs() < 0.01,
            "atom {place}: {b_factor}"
        );
    }
    let wrong = ["paint", str_of(&file), "atoms.rsa", "-o", "-"];
    assert_refused(&wrong, &["`rsa`", "atoms"]);
    let identifying = ["paint", str_of(&file), "atoms.radius", "-o", "-"];
    assert_refused(
        &identifying,
        &["`radius` is a column of atoms that no feature computes"],
    );
    let bound = ["paint", str_of(&file), "atoms.sasa_bound", "-o", "-"];
    run_well_as(&bound);
    let off = [&bound[..], &["--set", "ligands=drop"]].concat();
    assert_refused(&off, &["`sasa_bound`", "set ligands ="]);
}

/// A run over the file with a setting, which is refused with a message that has these parts.
fn refused(setting: &str, options: &[&str], parts: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let [file, out] = ["two.pdb", "out"].map(|name| folder.path().join(name));
    fs::write(&file, FILE).unwrap();
    let start = ["run", str_of(&file), "-o", str_of(&out), "--set", setting];
    assert_refused(&[&start[..], options].concat(), parts);
}

fn assert_refused(args: &[&str], parts: &[&str]) {
    let output = tapeloop(args).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in parts {
        assert!(said.contains(part), "{said} lacks {part}");
    }
}

fn run_well_as(args: &[&str]) {
    let output = tapeloop(args).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}
