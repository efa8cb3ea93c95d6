//! The table of interactions.

use super::*;
use serde_json::Value;

const FEATURES: [&str; 2] = ["--features", "interactions"];
const WITH_LIGANDS: [&str; 2] = ["--features", "interactions,ligands"];

/// The rows of a run over one input, as JSON.
fn rows(input: &Path, options: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let start = [str_of(input), "-o", str_of(&out), "--format", "json"];
    run_well(&[&start[..], options].concat());
    let text = fs::read_to_string(out.join("interactions/part-00000.json")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn sample(name: &str) -> PathBuf {
    Path::new(SAMPLES).join(name)
}

/// A side of a row as text: `A/25/ASP/OD1/acceptor/names`.
fn side(row: &Value, ending: &str) -> String {
    let columns = [
        "auth_asym_id",
        "auth_seq_id",
        "comp_id",
        "atoms",
        "role",
        "typed_by",
    ];
    let values = columns.map(|column| match &row[format!("{column}_{ending}")] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        value => value.to_string(),
    });
    values.join("/")
}

fn of_kind<'a>(rows: &'a [Value], kind: &str) -> Vec<&'a Value> {
    rows.iter().filter(|row| row["kind"] == kind).collect()
}

#[test]
fn the_table_names_both_sides_of_an_interaction() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let input = sample("1hvr.pdb.gz");
    let start = [str_of(&input), "-o", str_of(&out), "--format", "csv"];
    run_well(&[&start[..], &WITH_LIGANDS].concat());
    let text = fs::read_to_string(out.join("interactions/part-00000.csv")).unwrap();
    let columns = "source,structure,model,same_chain,\
        res_index_1,ligand_index_1,auth_asym_id_1,auth_seq_id_1,ins_code_1,comp_id_1,atoms_1,role_1,\
        typed_by_1,\
        res_index_2,ligand_index_2,auth_asym_id_2,auth_seq_id_2,ins_code_2,comp_id_2,atoms_2,role_2,\
        typed_by_2,\
        atom_index_1,atom_index_2,kind,distance,angle";
    assert_eq!(text.lines().next().unwrap(), columns);
    let found = rows(&input, &WITH_LIGANDS);
    let of_ligand: Vec<_> = found
        .iter()
        .filter(|row| row["ligand_index_2"] == 0)
        .collect();
    // The inhibitor's hydroxyls hold the two aspartates, and the flaps hold its urea.
    let bonds: Vec<[String; 2]> = of_ligand
        .iter()
        .filter(|row| row["kind"] == "hydrogen_bond")
        .map(|row| ["1", "2"].map(|ending| side(row, ending)))
        .collect();
    for (chain, number, atom, other) in [
        ("A", 25, "ASP/OD1/acceptor", "O5/donor"),
        ("A", 50, "ILE/N/donor", "O1/acceptor"),
        ("B", 25, "ASP/OD1/acceptor", "O4/donor"),
        ("B", 50, "ILE/N/donor", "O1/acceptor"),
    ] {
        let expected = [
            format!("{chain}/{number}/{atom}/names"),
            format!("A/263/XK2/{other}/conect"),
        ];
        assert!(bonds.contains(&expected), "{expected:?}: {bonds:?}");
    }
    let row = of_ligand[0];
    assert!(row["res_index_2"].is_null() && row["ligand_index_1"].is_null());
    // Without the feature there are neither ligands nor their column.
    let without = rows(&input, &FEATURES);
    assert!(without[0].get("ligand_index_1").is_none());
    assert_eq!(without.len() + of_ligand.len(), found.len());
    // A salt bridge is one of groups.
    let bridge = of_kind(&without, "salt_bridge")[0];
    let sides = ["1", "2"].map(|ending| side(bridge, ending));
    assert_eq!(
        sides,
        [
            "A/8/ARG/NE,NH1,NH2/positive/names",
            "B/29/ASP/OD1,OD2/negative/names"
        ]
    );
    assert!(bridge["angle"].is_null() && bridge["same_chain"] == false);
}

#[test]
fn base_pairs_are_hydrogen_bonds_of_nucleotides() {
    let found = rows(&sample("1lcd.pdb.gz"), &FEATURES);
    let bonds = of_kind(&found, "hydrogen_bond");
    let pair = |first: i64, comps: [&str; 2]| {
        let is_pair = |row: &&&Value| {
            row["auth_asym_id_1"] == "B"
                && row["auth_asym_id_2"] == "C"
                && row["auth_seq_id_1"] == first
                && row["auth_seq_id_2"] == 12 - first
        };
        let own: Vec<_> = bonds.iter().filter(is_pair).collect();
        for row in &own {
            assert_eq!([&row["comp_id_1"], &row["comp_id_2"]], comps, "{row}");
            let columns = ["res_index_1", "res_index_2"];
            assert!(columns.iter().all(|column| row[column].is_null()), "{row}");
            let columns = ["typed_by_1", "typed_by_2"];
            assert!(columns.iter().all(|column| row[column] == "names"), "{row}");
        }
        own.len()
    };
    assert!(pair(5, ["DG", "DC"]) >= 2);
    assert!(pair(4, ["DT", "DA"]) >= 1);
    // Bases of a strand are stacked.
    assert!(of_kind(&found, "pi_stacking_face").len() > 15);
}

#[test]
fn a_condition_leaves_out_rows_of_residues_without_a_row() {
    let input = sample("1hvr.pdb.gz");
    let all = rows(&input, &WITH_LIGANDS);
    let condition = ["--where", "chain == 'A' and residue <= 30"];
    let chosen = rows(&input, &[&WITH_LIGANDS[..], &condition].concat());
    let has_row = |row: &&Value| {
        ["res_index_1", "res_index_2"]
            .iter()
            .all(|column| row[column].as_i64().is_none_or(|index| index < 30))
    };
    let expected: Vec<Value> = all.iter().filter(has_row).cloned().collect();
    assert!(!expected.is_empty() && expected.len() < all.len());
    assert_eq!(chosen, expected);
}

#[test]
fn threads_and_batches_do_not_change_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = folder.path().join("in");
    for name in [
        "1lcd.pdb.gz",
        "1hvr.pdb.gz",
        "5pti.cif.gz",
        "1ubi.pdb",
        "3mht.pdb.gz",
    ] {
        copy_of(name, &inputs);
    }
    let written = |options: &[&str]| {
        let out = folder.path().join("out");
        let start = [str_of(&inputs), "-o", str_of(&out), "--overwrite"];
        run_well(&[&start[..], &WITH_LIGANDS, options].concat());
        parts(&out)
    };
    let expected = written(&["--threads", "1"]);
    assert!(
        expected
            .iter()
            .any(|(path, _)| path.starts_with("interactions"))
    );
    assert!(written(&["--threads", "4"]) == expected);
    for residues in ["64", "4096"] {
        let setting = format!("batch.residues={residues}");
        assert!(written(&["--set", &setting]) == expected, "{residues}");
    }
}

#[test]
fn a_packed_set_has_no_names_of_atoms_and_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [set, out] = ["set", "out"].map(|name| folder.path().join(name));
    let input = sample("1ubi.pdb");
    let packed = tapeloop(["pack", str_of(&input), "-o", str_of(&set)])
        .output()
        .unwrap();
    assert!(packed.status.success(), "{}", text(&packed.stderr));
    let start = [str_of(&set), "-o", str_of(&out)];
    let (output, code) = run(&[&start[..], &FEATURES].concat());
    let said = text(&output.stderr);
    assert_eq!(code, 2, "{said}");
    for part in [
        "`interactions` is true",
        "names of atoms",
        "structure files",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn a_run_does_not_go_on_with_other_distances() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let input = sample("1ubi.pdb");
    let start = [str_of(&input), "-o", str_of(&out)];
    run_well(&[&start[..], &FEATURES].concat());
    let other = ["--resume", "--set", "interaction.salt_bridge=4"];
    let (output, code) = run(&[&start[..], &FEATURES, &other].concat());
    let said = text(&output.stderr);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("`interaction.salt_bridge` differ"), "{said}");
}

#[test]
fn methods_cite_the_sources_and_state_the_distances() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let input = sample("1ubi.pdb");
    let start = [str_of(&input), "-o", str_of(&out)];
    let settings = ["--set", "interaction.salt_bridge=4"];
    run_well(&[&start[..], &FEATURES, &settings].concat());
    let methods = tapeloop(["methods", str_of(&out)]).output().unwrap();
    let said = text(&methods.stdout)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    for part in [
        "McDonald and Thornton 1994",
        "Adasme et al. 2021",
        "interaction.salt_bridge = 4.0",
        "10.1006/jmbi.1994.1334",
        "10.1093/nar/gkab294",
    ] {
        assert!(said.contains(part), "{said} lacks {part}");
    }
}

#[test]
fn the_frames_of_a_trajectory_have_interactions_of_their_own() {
    let topology = sample("1ubi.pdb");
    let trajectory = Path::new(ROOT).join("tests/data/trajectories/1ubi.xtc");
    let found = rows(
        &trajectory,
        &[&FEATURES[..], &["--topology", str_of(&topology)]].concat(),
    );
    let of_frame = |frame: i64| -> Vec<[String; 3]> {
        let own = found.iter().filter(|row| row["frame"] == frame);
        let names = |row: &Value| {
            [
                side(row, "1"),
                side(row, "2"),
                row["kind"].as_str().unwrap().to_owned(),
            ]
        };
        own.map(names).collect()
    };
    let [first, second] = [of_frame(0), of_frame(1)];
    assert!(first.len() > 100 && second.len() > 50);
    assert_ne!(first, second);
}

#[test]
fn the_nucleotides_of_an_assembly_keep_their_numbers() {
    let input = sample("1pfe.cif.gz");
    let found = rows(
        &input,
        &[&FEATURES[..], &["--set", "assembly=\"1\""]].concat(),
    );
    let bonds = of_kind(&found, "hydrogen_bond");
    // The strand pairs with its copy.
    let pairs: Vec<_> = bonds
        .iter()
        .filter(|row| row["auth_asym_id_1"] == "A" && row["auth_asym_id_2"] == "A-2")
        .collect();
    let atoms =
        |row: &Value| ["atoms_1", "atoms_2"].map(|column| row[column].as_str().unwrap().to_owned());
    let watson_crick = pairs.iter().filter(|row| {
        let comps = [&row["comp_id_1"], &row["comp_id_2"]];
        let names = atoms(row);
        (comps == ["DG", "DC"] && names == ["N1", "N3"])
            || (comps == ["DC", "DG"] && names == ["N3", "N1"])
    });
    let numbers: Vec<i64> = watson_crick
        .map(|row| row["auth_seq_id_1"].as_i64().unwrap() + row["auth_seq_id_2"].as_i64().unwrap())
        .collect();
    assert!(numbers.len() >= 4, "{pairs:?}");
    assert!(numbers.iter().all(|&sum| sum == numbers[0]), "{numbers:?}");
}

#[test]
fn the_texts_of_an_arrow_file_are_dictionaries() {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let input = sample("1hvr.pdb.gz");
    let start = [str_of(&input), "-o", str_of(&out), "--format", "arrow"];
    let small = ["--set", "tables.rows_per_group=50"];
    run_well(&[&start[..], &WITH_LIGANDS, &small].concat());
    let file = fs::File::open(out.join("interactions/part-00000.arrow")).unwrap();
    let batches = arrow_ipc::reader::FileReader::try_new(file, None).unwrap();
    let mut found = Vec::new();
    for batch in batches {
        let batch = batch.unwrap();
        let columns = ["kind", "atoms_1", "comp_id_2", "role_2"].map(|name| {
            let column = batch
                .column_by_name(name)
                .unwrap()
                .as_dictionary::<Int32Type>();
            column.downcast_dict::<arrow_array::StringArray>().unwrap()
        });
        for row in 0..batch.num_rows() {
            use arrow_array::{Array, ArrayAccessor};
            found.push(
                columns.map(|column| column.is_valid(row).then(|| column.value(row).to_owned())),
            );
        }
    }
    let expected = rows(&input, &WITH_LIGANDS);
    let expected: Vec<_> = expected
        .iter()
        .map(|row| {
            ["kind", "atoms_1", "comp_id_2", "role_2"]
                .map(|name| row[name].as_str().map(str::to_owned))
        })
        .collect();
    assert!(found.len() > 200);
    assert_eq!(found, expected);
}

/// Quinoxaline-2-carboxylic acid, without hydrogens.
const QUINOXALINE: &str = "\
data_QUI
loop_
_chem_comp_atom.comp_id
_chem_comp_atom.atom_id
_chem_comp_atom.type_symbol
QUI N1 N
QUI C2 C
QUI C3 C
QUI N4 N
QUI C5 C
QUI C6 C
QUI C7 C
QUI C8 C
QUI C9 C
QUI C10 C
QUI C C
QUI O1 O
loop_
_chem_comp_bond.comp_id
_chem_comp_bond.atom_id_1
_chem_comp_bond.atom_id_2
_chem_comp_bond.value_order
_chem_comp_bond.pdbx_aromatic_flag
QUI N1 C2 DOUB Y
QUI N1 C9 SING Y
QUI C2 C3 SING Y
QUI C2 C SING N
QUI C3 N4 DOUB Y
QUI N4 C10 SING Y
QUI C5 C6 DOUB Y
QUI C5 C10 SING Y
QUI C6 C7 SING Y
QUI C7 C8 DOUB Y
QUI C8 C9 SING Y
QUI C9 C10 DOUB Y
QUI C O1 DOUB N
";

#[test]
fn a_dictionary_tells_the_roles_of_ligands() {
    let folder = tempfile::tempdir().unwrap();
    let input = sample("1pfe.cif.gz");
    let by = |text: &str| {
        let path = folder.path().join("components.cif");
        fs::write(&path, text).unwrap();
        let setting = format!("interaction.components={}", str_of(&path));
        rows(&input, &[&WITH_LIGANDS[..], &["--set", &setting]].concat())
    };
    let stacked = |rows: &[Value]| {
        let rows = of_kind(rows, "pi_stacking_face").into_iter();
        rows.filter(|row| row["comp_id_2"] == "QUI")
            .map(|row| row["typed_by_2"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let by_geometry = stacked(&rows(&input, &WITH_LIGANDS));
    assert!(!by_geometry.is_empty() && by_geometry.iter().all(|word| word == "geometry"));
    let by_dictionary = stacked(&by(QUINOXALINE));
    assert_eq!(by_dictionary.len(), by_geometry.len());
    assert!(by_dictionary.iter().all(|word| word == "dictionary"));
    // Flat rings are aromatic without its word too, unless their carbons are saturated.
    let flat = QUINOXALINE.replace(" Y\n", " N\n");
    assert_eq!(stacked(&by(&flat)), by_dictionary);
    assert_eq!(stacked(&by(&flat.replace("DOUB", "SING"))), [""; 0]);
    // A component that lacks an atom is not used.
    let without = stacked(&by(&QUINOXALINE
        .replace("QUI O1 O\n", "")
        .replace("QUI C O1 DOUB N\n", "")));
    assert_eq!(without, by_geometry);
}

#[test]
fn a_publication_names_the_dictionary_also_when_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let [path, out] = ["components.cif", "out"].map(|name| folder.path().join(name));
    fs::write(&path, QUINOXALINE).unwrap();
    let setting = format!("interaction.components={}", str_of(&path));
    let input = sample("1ubi.pdb");
    let arguments = [str_of(&input), "-o", str_of(&out), "--set", &setting];
    run_well(&[&arguments[..], &FEATURES].concat());
    fs::remove_file(&path).unwrap();
    let methods = tapeloop(["methods", str_of(&out)]).output().unwrap();
    assert!(methods.status.success(), "{}", text(&methods.stderr));
    assert!(text(&methods.stdout).contains("components.cif"));
}

#[test]
fn a_dictionary_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("components.cif");
    let message = |dictionary: &str| {
        fs::write(&path, dictionary).unwrap();
        let setting = format!("interaction.components={}", str_of(&path));
        let input = sample("1ubi.pdb");
        let arguments = [str_of(&input), "--dry-run", "--set", &setting];
        let (output, code) = run(&[&arguments[..], &FEATURES].concat());
        assert_eq!(code, 2);
        text(&output.stderr).to_owned()
    };
    let broken = message(&QUINOXALINE.replace("QUI C9 C10", "QUI C9 C11"));
    for word in ["interaction.components", "components.cif", "QUI", "C11"] {
        assert!(broken.contains(word), "{word}: {broken}");
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let setting = format!("interaction.components={}", str_of(&path));
    let input = sample("1ubi.pdb");
    let (output, code) = run(&[str_of(&input), "--dry-run", "--set", &setting]);
    let said = text(&output.stderr);
    assert!(code == 2 && said.contains("a file is read here"), "{said}");
}

/// The rows of the table of bridges of a run with this option, as JSON.
fn bridges(input: &Path, options: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let start = [str_of(input), "-o", str_of(&out), "--format", "json"];
    let waters = ["--set", "interaction.waters=true"];
    run_well(&[&start[..], &WITH_LIGANDS, &waters, options].concat());
    let text = fs::read_to_string(out.join("water_bridges/part-00000.json")).unwrap();
    let rows = text.lines();
    rows.map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn bridges_of_water_have_a_table_and_change_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let out = |name: &str| folder.path().join(name);
    let input = sample("3mht.pdb.gz");
    let start = [str_of(&input), "--format", "csv"];
    let run_into = |name: &str, options: &[&str]| {
        let out = out(name);
        run_well(&[&start[..], &["-o", str_of(&out)], &WITH_LIGANDS, options].concat());
    };
    run_into("dry", &[]);
    run_into("wet", &["--set", "interaction.waters=true"]);
    let read = |run: &str, table: &str| {
        fs::read_to_string(out(run).join(table).join("part-00000.csv")).unwrap()
    };
    for table in [
        "residues",
        "chains",
        "structures",
        "ligands",
        "interactions",
    ] {
        assert!(read("dry", table) == read("wet", table), "{table}");
    }
    assert!(!out("dry").join("water_bridges").exists());
    let columns = "source,structure,model,water_auth_asym_id,water_auth_seq_id,water_ins_code,same_chain,\
        res_index_1,ligand_index_1,auth_asym_id_1,auth_seq_id_1,ins_code_1,comp_id_1,atom_1,role_1,\
        typed_by_1,\
        res_index_2,ligand_index_2,auth_asym_id_2,auth_seq_id_2,ins_code_2,comp_id_2,atom_2,role_2,\
        typed_by_2,distance_1,distance_2,angle";
    assert_eq!(
        read("wet", "water_bridges").lines().next().unwrap(),
        columns
    );
    // Each row is that of the positions in the table of atoms.
    let found = bridges(&input, &[]);
    assert!(found.len() > 100, "{}", found.len());
    let number = |row: &Value, column: &str| row[column].as_f64().unwrap();
    for row in &found {
        for distance in ["distance_1", "distance_2"] {
            assert!((2.5..4.1).contains(&number(row, distance)), "{row}");
        }
        assert!((71.0..140.0).contains(&number(row, "angle")), "{row}");
        assert!(["donor", "acceptor", "either"].contains(&row["role_1"].as_str().unwrap()));
        let sides = ["1", "2"].map(|end| {
            ["auth_asym_id", "auth_seq_id", "comp_id"]
                .map(|name| row[format!("{name}_{end}")].clone())
        });
        assert_ne!(sides[0], sides[1], "{row}");
    }
    assert!(
        found.iter().any(|row| !row["ligand_index_2"].is_null()),
        "a ligand"
    );
    let near = bridges(&input, &["--set", "interaction.water_bridge=3.5"]);
    assert!(near.len() < found.len() && !near.is_empty());
    let chosen = bridges(&input, &["--where", "auth_seq_id > 100"]);
    let is_chosen = |row: &&Value| {
        ["1", "2"].iter().all(|end| {
            row[format!("res_index_{end}")].is_null()
                || row[format!("auth_seq_id_{end}")].as_i64() > Some(100)
        })
    };
    let expected: Vec<Value> = found.iter().filter(is_chosen).cloned().collect();
    assert!(!expected.is_empty() && expected.len() < found.len());
    assert_eq!(chosen, expected);
}

#[test]
fn waters_without_interactions_of_files_are_refused() {
    let input = sample("1ubi.pdb");
    let waters = ["--set", "interaction.waters=true"];
    let refused = |options: &[&str], part: &str| {
        let args = [&[str_of(&input)], options].concat();
        let (output, code) = run(&[&["--dry-run"][..], &args].concat());
        let said = text(&output.stderr);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(part), "{said}");
    };
    refused(&waters, "set interactions = true");
    let topology = ["--topology", str_of(&input)];
    let all = [&waters[..], &FEATURES, &topology].concat();
    refused(&all, "interaction.waters");
    let table = [
        &FEATURES[..],
        &["--set", "tables.written=[\"water_bridges\"]"],
    ]
    .concat();
    refused(&table, "`interaction.waters` is true");
}
