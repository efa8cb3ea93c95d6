//! Sets of radii: `sasa.radii`.

use super::*;

/// A file with the radii of ProtOr, as FreeSASA's `protor.config` has them.
fn protor_file() -> String {
    let table = fs::read_to_string(Path::new(ROOT).join("crates/structure/src/protor.tsv"));
    let (mut types, mut atoms) = (std::collections::BTreeSet::new(), String::new());
    for line in table.unwrap().lines().filter(|line| !line.starts_with('#')) {
        let (comp, entries) = line.split_once('\t').unwrap();
        let words: Vec<&str> = entries.split(' ').collect();
        for pair in words.chunks(2) {
            let is_polar = pair[0].starts_with(['N', 'O', 'P', 'S']);
            let class = if is_polar { "polar" } else { "apolar" };
            let angstrom = pair[1].parse::<f64>().unwrap() / 1000.0;
            types.insert(format!("{class}{} {angstrom} {class}\n", pair[1]));
            atoms += &format!("{comp} {} {class}{}\n", pair[0], pair[1]);
        }
    }
    let types: String = types.into_iter().collect();
    format!("name: ProtOr\ntypes:\n{types}atoms:\n{atoms}")
}

const FEATURES: &str = "sasa,rsa,interface_residues,residue_depth,interfaces,atoms";

/// The tables of a run with a set of radii, into CSV.
fn tables(inputs: &[&str], radii: &str, options: &[&str]) -> Vec<(PathBuf, Vec<u8>)> {
    tables_of(FEATURES, inputs, radii, options)
}

fn tables_of(
    features: &str,
    inputs: &[&str],
    radii: &str,
    options: &[&str],
) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let radii = format!("sasa.radii={radii}");
    let start = [
        "-o",
        str_of(&out),
        "--format",
        "csv",
        "--features",
        features,
    ];
    let start = [inputs, &start[..], &["--set", &radii]].concat();
    run_well(&[&start[..], options].concat());
    parts(&out)
}

/// Names, classes, radii and areas of the table of atoms.
fn atoms(tables: &[(PathBuf, Vec<u8>)]) -> Vec<Vec<String>> {
    let part = tables.iter().find(|(path, _)| path.starts_with("atoms"));
    let text = text(&part.unwrap().1);
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let columns = ["structure", "comp_id", "name", "class", "radius", "sasa"];
    let columns = columns.map(|name| header.iter().position(|column| *column == name).unwrap());
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        columns.map(|column| fields[column].to_owned()).to_vec()
    };
    lines.map(row).collect()
}

fn assert_refused(args: &[&str], parts: &[&str]) {
    let (output, code) = run(args);
    let said = text(&output.stderr);
    assert_eq!(code, 2, "{said}");
    for part in parts {
        assert!(said.contains(part), "{said} lacks {part}");
    }
}

#[test]
fn a_file_with_the_radii_of_protor_gives_the_values_of_protor() {
    let folder = tempfile::tempdir().unwrap();
    let [file, config] = ["protor.config", "job.toml"].map(|name| folder.path().join(name));
    fs::write(&file, protor_file()).unwrap();
    let samples = ["1ubi.pdb", "3mht.pdb.gz"].map(|name| format!("{SAMPLES}/{name}"));
    let samples = samples.each_ref().map(String::as_str);
    // Depths differ in the last bit: elements that the file lacks may have more than 1.9 A.
    let features = FEATURES.replace("residue_depth,", "");
    let of = |radii| tables_of(&features, &samples, radii, &[]);
    let expected = of("protor");
    assert!(expected == of(str_of(&file)));
    assert!(expected != of("oons"));
    // A relative path starts from the folder of the config file.
    fs::write(&config, "sasa.radii = \"protor.config\"\n").unwrap();
    let out = folder.path().join("out");
    let args = [
        &[str_of(&config), "-o", str_of(&out), "--features", &features],
        &samples[..],
    ];
    run_well(&[&args.concat()[..], &["--format", "csv"]].concat());
    assert!(expected == parts(&out));
}

#[test]
fn the_table_of_atoms_has_the_radii_and_classes_of_the_set() {
    let sample = format!("{SAMPLES}/1ubi.pdb");
    for (radii, expected) in [
        (
            "naccess",
            ["apolar 1.87", "apolar 1.76", "polar 1.4", "apolar 1.85"],
        ),
        ("oons", ["apolar 2", "polar 1.55", "polar 1.4", "polar 2"]),
        (
            "bondi",
            ["apolar 1.7", "apolar 1.7", "polar 1.52", "polar 1.8"],
        ),
    ] {
        let rows = atoms(&tables(&[&sample], radii, &[]));
        let found =
            [("MET", "CA"), ("MET", "C"), ("MET", "O"), ("MET", "SD")].map(|(comp, name)| {
                let row = rows
                    .iter()
                    .find(|row| row[1] == comp && row[2] == name)
                    .unwrap();
                format!("{} {}", row[3], row[4])
            });
        assert_eq!(found, expected, "{radii}");
    }
}

#[test]
fn neither_threads_nor_batches_nor_company_change_a_value() {
    let names = ["1ubi.pdb", "1hvr.pdb.gz", "4e43.pdb.gz", "3mht.pdb.gz"];
    let samples = names.map(|name| format!("{SAMPLES}/{name}"));
    let samples = samples.each_ref().map(String::as_str);
    let keep = ["--set", "ligands=keep", "--set", "ligand.agents=keep"];
    let features = format!("{FEATURES},ligands");
    for radii in ["oons", "bondi"] {
        let one = ["--threads", "1", "--set", "batch.residues=100"];
        let many = ["--threads", "4", "--set", "batch.residues=20000"];
        let [one, many] = [one, many]
            .map(|options| tables_of(&features, &samples, radii, &[&keep[..], &options].concat()));
        assert!(one == many, "{radii}");
        let alone = tables_of(&features, &samples[2..3], radii, &keep);
        let of_sample = |tables| {
            let rows = atoms(tables).into_iter();
            rows.filter(|row| row[0] == "4e43").collect::<Vec<_>>()
        };
        assert_eq!(of_sample(&alone), of_sample(&many));
        assert!(of_sample(&alone).iter().any(|row| row[1] == "DMS"));
    }
}

#[test]
fn frames_models_and_assemblies_have_the_radii_of_the_set() {
    let oons = |inputs: &[&str], options: &[&str]| atoms(&tables(inputs, "oons", options));
    let is_of_set = |rows: &[Vec<String>]| {
        let mut alphas = rows.iter().filter(|row| row[2] == "CA");
        !rows.is_empty() && alphas.all(|row| row[4] == "2")
    };
    let [trajectory, topology] = ["tests/data/trajectories/1ubi.xtc", "samples/1ubi.pdb"];
    let [trajectory, topology] = [trajectory, topology].map(|name| format!("{ROOT}/{name}"));
    let frames = oons(&[&trajectory], &["--topology", &topology]);
    assert!(is_of_set(&frames));
    // Frame 0 is the topology's coordinates, moved by less than 0.05 A.
    let single = oons(&[&topology], &[]);
    assert_eq!(frames.len(), 3 * single.len());
    let columns = |rows: &[Vec<String>]| -> Vec<Vec<String>> {
        rows.iter().map(|row| row[1..5].to_vec()).collect()
    };
    assert_eq!(columns(&frames[..single.len()]), columns(&single));
    let models = oons(&[&format!("{SAMPLES}/1lcd.pdb.gz")], &["--models", "all"]);
    let first = oons(&[&format!("{SAMPLES}/1lcd.pdb.gz")], &[]);
    assert_eq!(columns(&models[..first.len()]), columns(&first));
    assert!(models.len() == 3 * first.len() && is_of_set(&models));
    let assembly = oons(
        &[&format!("{SAMPLES}/4zhl.cif.gz")],
        &["--set", "assembly=1"],
    );
    assert!(is_of_set(&assembly));
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_its_line_and_the_fix() {
    let folder = tempfile::tempdir().unwrap();
    let [file, out] = ["mine.config", "out"].map(|name| folder.path().join(name));
    let setting = format!("sasa.radii={}", str_of(&file));
    let sample = format!("{SAMPLES}/1ubi.pdb");
    let args = [&*sample, "-o", str_of(&out), "--set", &setting];
    assert_refused(
        &args,
        &["`sasa.radii`", "mine.config: No such file", "\"naccess\""],
    );
    fs::write(&file, "types:\nC 1.7 apolar\natoms:\nANY CA N\n").unwrap();
    assert_refused(
        &args,
        &["mine.config: line 4: there is no type \"N\" (fix: add it"],
    );
    fs::write(&file, b"types:\n\xff\n").unwrap();
    assert_refused(&args, &["mine.config: "]);
    assert_refused(
        &[&*sample, "-o", "x", "--set", "sasa.radii=Naccess"],
        &["\"naccess\""],
    );
    assert_refused(
        &[&*sample, "-o", "x", "--set", "sasa.radii=3"],
        &["a string"],
    );
    assert!(!out.exists());
}

#[test]
fn the_limit_of_the_probe_is_that_of_the_radii() {
    let sample = format!("{SAMPLES}/1ubi.pdb");
    let refused = |settings: &[&str], said: &str| {
        let settings = settings.iter().flat_map(|setting| ["--set", *setting]);
        let settings: Vec<&str> = settings.collect();
        assert_refused(&[&[&*sample, "-o", "x"], &settings[..]].concat(), &[said]);
    };
    refused(&["sasa.probe=20"], "must be 0.001 to 16, not 20");
    refused(
        &["sasa.probe=15.95", "sasa.radii=oons"],
        "sasa.probe of 15.95 A is more than 15.9 A, the most with sasa.radii = \"oons\"",
    );
}

#[test]
fn packed_sets_have_no_other_radii_and_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [set, out] = ["set", "out"].map(|name| folder.path().join(name));
    let sample = format!("{SAMPLES}/1ubi.pdb");
    let pack = ["pack", &sample, "-o", str_of(&set)];
    assert!(tapeloop(pack).output().unwrap().status.success());
    let run = [str_of(&set), "-o", str_of(&out)];
    assert_refused(
        &[&run[..], &["--set", "sasa.radii=oons"]].concat(),
        &["`sasa.radii` is \"oons\"", "packed sets", "structure files"],
    );
    run_well(&[&run[..], &["--set", "sasa.radii=protor"]].concat());
}

#[test]
fn a_run_is_not_resumed_with_other_radii() {
    let folder = tempfile::tempdir().unwrap();
    let [file, out] = ["mine.config", "out"].map(|name| folder.path().join(name));
    let sample = format!("{SAMPLES}/1ubi.pdb");
    let setting = format!("sasa.radii={}", str_of(&file));
    let args = [
        &*sample,
        "-o",
        str_of(&out),
        "--features",
        "sasa",
        "--set",
        &setting,
    ];
    let resumed = [&args[..], &["--resume"]].concat();
    let text_of_file = protor_file();
    fs::write(&file, &text_of_file).unwrap();
    run_well(&args);
    run_well(&resumed);
    fs::write(&file, text_of_file.replace("1.88", "1.87")).unwrap();
    assert_refused(
        &resumed,
        &[
            "the file of `sasa.radii` or of `interaction.components` differs",
            "--overwrite",
        ],
    );
    let others = [&resumed[..6], &["sasa.radii=oons", "--resume"]].concat();
    assert_refused(&others, &["`sasa.radii` differ"]);
}

#[test]
fn a_publication_says_whose_radii_they_are_also_when_the_file_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let [file, out] = ["mine.config", "out"].map(|name| folder.path().join(name));
    fs::write(&file, protor_file()).unwrap();
    let sample = format!("{SAMPLES}/1ubi.pdb");
    let methods = |features: &str, radii: &str| {
        let setting = format!("sasa.radii={radii}");
        let start = [
            &*sample,
            "-o",
            str_of(&out),
            "--overwrite",
            "--set",
            "sasa.algorithm=lee-richards",
            "--features",
            features,
        ];
        run_well(&[&start[..], &["--set", &setting]].concat());
        if radii == str_of(&file) {
            fs::remove_file(&file).unwrap();
        }
        let output = tapeloop(["methods", str_of(&out)]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let said = text(&output.stdout);
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    // Areas of atoms are those of the same algorithm and radii.
    for features in ["sasa", "atoms"] {
        let said = methods(features, "oons");
        for part in [
            "(Lee and Richards 1971; Ooi et al. 1987)",
            "@article{ooi1987",
        ] {
            assert!(said.contains(part), "{said} lacks {part}");
        }
        assert!(!said.contains("Shrake"), "{said}");
    }
    let hash = tapeloop_cli::plan::sha256_hex(protor_file());
    let said = methods("atoms", str_of(&file));
    for part in ["radii: of a file", "mine.config", &hash] {
        assert!(said.contains(part), "{said} lacks {part}");
    }
}

#[test]
fn a_file_that_lists_no_atom_of_the_run_is_named_in_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let [file, out] = ["mine.config", "out"].map(|name| folder.path().join(name));
    let sample = format!("{SAMPLES}/1ubi.pdb");
    let setting = format!("sasa.radii={}", str_of(&file));
    let warned = |atoms: &str| {
        fs::write(&file, format!("types:\nC 1.7 apolar\natoms:\n{atoms}\n")).unwrap();
        let start = [&*sample, "-o", str_of(&out), "--overwrite", "--set"];
        let output = run_well(&[&start[..], &[&setting, "--features", "sasa"]].concat());
        text(&output.stderr)
    };
    let said = warned("any ca C\nAla Cb C");
    for part in ["warning: no atom is listed in", "mine.config", "ALA CB"] {
        assert!(said.contains(part), "{said} lacks {part}");
    }
    assert!(!warned("Ala Cb C\nALA CB C").contains("listed"));
}
