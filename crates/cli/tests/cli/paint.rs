//! Painted files, read again, and drawings.

mod missing;
mod outputs;
mod viewers;

use super::*;
use std::collections::BTreeMap;
use tapeloop::structure::{
    BFactorKind, Models, ReadLimits, ReadOptions, Reader, Structure, text_of,
};

const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/small");

fn paint(args: &[&str]) -> (Output, i32) {
    let args = ["paint"].iter().chain(args).chain(&["--backend", "cpu"]);
    let output = tapeloop(args).output().unwrap();
    let code = output.status.code().expect("not killed by a signal");
    (output, code)
}

/// What the command prints to standard error; standard output is for results.
fn paint_well(args: &[&str]) -> String {
    let (output, code) = paint(args);
    assert_eq!(code, 0, "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
    text(&output.stderr)
}

fn paint_badly(args: &[&str], expected_code: i32, parts: &[&str]) {
    let (output, code) = paint(args);
    let said = text(&output.stderr);
    assert_eq!(code, expected_code, "{said}");
    for part in parts {
        assert!(has_parts(&said, part), "{said:?} lacks {part:?}");
    }
}

fn models(path: &Path) -> Vec<Structure> {
    // A file that names pLDDT would be rejected if it is painted with values that are none.
    let options = ReadOptions {
        models: Models::All,
        b_factor_kind: Some(BFactorKind::Temperature),
        ..ReadOptions::default()
    };
    Reader::new(options).read_path(path).unwrap()
}

/// A column of a run, by file and model.
fn column_of_run(folder: &Path, column: &str) -> BTreeMap<(String, i32), Vec<Option<f64>>> {
    let table = results::read(&folder.join("residues/part-00000.parquet"));
    let sources = results::texts(&table, "source");
    let models = results::integers(&table, "model");
    let values = results::numbers(&table, column);
    let mut columns: BTreeMap<_, Vec<Option<f64>>> = BTreeMap::new();
    for ((source, model), value) in sources.iter().zip(models).zip(values) {
        let file = source.rsplit('/').next().unwrap();
        let key = (file.to_owned(), model);
        columns.entry(key).or_default().push(value);
    }
    columns
}

/// The text of a file without the B factors of its atom lines.
fn without_b_factors(path: &Path) -> Vec<String> {
    let (bytes, _) = text_of(
        str_of(path),
        fs::read(path).unwrap(),
        &ReadLimits::default(),
    )
    .unwrap();
    let whole = String::from_utf8_lossy(&bytes).into_owned();
    let items: Vec<&str> = whole
        .lines()
        .filter(|line| line.starts_with("_atom_site."))
        .collect();
    let b_factor = items
        .iter()
        .position(|item| item.trim() == "_atom_site.B_iso_or_equiv");
    let strip = |line: &str| {
        let is_atom = line.starts_with("ATOM") || line.starts_with("HETATM");
        match b_factor {
            _ if !is_atom => line.to_owned(),
            None => {
                let (start, rest) = line.split_at(line.len().min(60));
                format!("{start}|{}", rest.get(6..).unwrap_or_default())
            }
            Some(at) => {
                let words = line.split_whitespace().enumerate();
                let words = words.filter(|(word, _)| *word != at);
                words.map(|(_, word)| word).collect::<Vec<_>>().join(" ")
            }
        }
    };
    whole.lines().map(strip).collect()
}

#[test]
fn painting_changes_the_b_factors_of_every_sample_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (out, painted) = (folder.path().join("out"), folder.path().join("painted"));
    run_well(&["-i", SAMPLES, "-o", str_of(&out), "--models", "all", "-q"]);
    let expected = column_of_run(&out, "hse_a_up");
    paint_well(&[SAMPLES, "hse_a_up", "-o", str_of(&painted), "--null", "-1"]);
    let mut seen = 0;
    for entry in fs::read_dir(&painted).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(
            without_b_factors(&path),
            without_b_factors(&Path::new(SAMPLES).join(file)),
            "{file}"
        );
        for structure in models(&path) {
            let expected = &expected[&(file.to_owned(), structure.model)];
            assert_eq!(structure.residues.len(), expected.len(), "{file}");
            let rows_end = *structure.atom_start.last().unwrap() as usize;
            for (row, value) in expected.iter().enumerate() {
                let atoms =
                    structure.atom_start[row] as usize..structure.atom_start[row + 1] as usize;
                for atom in atoms {
                    let b_factor = f64::from(structure.b_factor[atom]);
                    assert_eq!(b_factor, value.unwrap_or(-1.0), "{file}, row {row}");
                }
            }
            let others = &structure.b_factor[rows_end..];
            assert!(others.iter().all(|&b_factor| b_factor == -1.0), "{file}");
            seen += 1;
        }
    }
    assert_eq!(seen, expected.len());
}

#[test]
fn all_atoms_of_a_residue_get_its_value_and_others_the_value_for_null() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("painted.pdb");
    let input = format!("{SAMPLES}/1ejg.pdb.gz");
    let args = [&input, "wcn", "-o", str_of(&out), "--null", "7.5"];
    assert_eq!(paint_well(&args), "", "silent where no terminal is");
    let said = paint_well(&[&args[..], &["--overwrite", "--verbose"]].concat());
    assert!(said.contains("1/A^2"), "{said}");
    let text = fs::read_to_string(&out).unwrap();
    let mut of_residue: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("ATOM")) {
        of_residue
            .entry(&line[17..27])
            .or_default()
            .push(&line[60..66]);
    }
    // Both conformers and all hydrogens; of two components at one place, one has
    // the row.
    for (residue, values) in &of_residue {
        assert!(values.iter().all(|value| value == &values[0]), "{residue}");
    }
    let painted = of_residue
        .values()
        .filter(|values| values[0].trim() != "7.50");
    assert_eq!(painted.count(), 46);
    assert_ne!(of_residue["PRO A  22 "][0], of_residue["SER A  22 "][0]);

    let out = folder.path().join("water.cif");
    paint_well(&[
        &format!("{SAMPLES}/1yjp.cif"),
        "wcn",
        "-o",
        str_of(&out),
        "--null",
        "7.5",
    ]);
    let text = fs::read_to_string(&out).unwrap();
    let waters: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("HETATM"))
        .collect();
    assert!(
        waters.iter().all(|line| line.contains(" 7.50 ")),
        "{waters:?}"
    );
    assert_eq!(waters.len(), 7);
}

#[test]
fn models_that_were_not_computed_get_the_value_for_null() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("first.pdb.gz");
    let input = format!("{SAMPLES}/1a1p.pdb.gz");
    let args = [
        &input,
        "cn_ca_8",
        "-o",
        str_of(&out),
        "--models",
        "first",
        "--null",
        "-2",
    ];
    paint_well(&args);
    let models = models(&out);
    assert_eq!(models.len(), 21);
    let nulls = |structure: &Structure| structure.b_factor.iter().all(|&b_factor| b_factor == -2.0);
    assert!(!nulls(&models[0]));
    assert!(models[1..].iter().all(nulls));
}

#[test]
fn values_that_do_not_fit_are_warned_of_without_a_terminal_too() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (format!("{SAMPLES}/1ubi.pdb"), folder.path().join("x.pdb"));
    let said = paint_well(&[&input, "wcn", "-o", str_of(&out), "--null", "1e7"]);
    assert!(said.starts_with("warning: "), "{said}");
    assert!(said.contains("clamped to -99999 to 999999"), "{said}");
}

#[test]
fn with_an_assembly_the_deposited_chains_get_the_values_of_the_first_copy() {
    let folder = tempfile::tempdir().unwrap();
    let input = format!("{SAMPLES}/1yjp.cif");
    let painted = |name: &str, assembly: &str| {
        let (out, set) = (folder.path().join(name), format!("assembly={assembly}"));
        paint_well(&[&input, "wcn", "-o", str_of(&out), "--set", &set]);
        let structure = models(&out).remove(0);
        structure
            .residues
            .iter()
            .map(|residue| structure.b_factor[residue.ca as usize])
            .collect::<Vec<_>>()
    };
    let (alone, assembled) = (painted("alone.cif", "deposited"), painted("both.cif", "1"));
    assert_eq!((alone.len(), assembled.len()), (7, 7));
    let pairs = || alone.iter().zip(&assembled);
    assert!(
        pairs().all(|(alone, assembled)| assembled > alone),
        "{alone:?} {assembled:?}"
    );
}

#[test]
fn a_file_without_b_factors_gets_them() {
    let folder = tempfile::tempdir().unwrap();
    let check = |name: &str, columns: &str| {
        let (input, out) = (format!("{SMALL}/{name}"), folder.path().join(name));
        paint_well(&[&input, columns, "-o", str_of(&out), "--null", "3"]);
        let before = &models(Path::new(&input))[0];
        let after = &models(&out)[0];
        assert_eq!(
            (&before.xyz, &before.residues),
            (&after.xyz, &after.residues),
            "{name}"
        );
        assert!(before.b_factor != after.b_factor, "{name}");
        assert!(
            after.b_factor.iter().all(|&b_factor| b_factor < 4.0),
            "{name}"
        );
    };
    check("few-columns.cif", "cn_ca_8");
    check("one-row.cif", "cn_ca_8");
    check("crlf.cif", "cn_ca_8");
    check("quoted-names.cif", "cn_ca_8");
    check("rows-over-lines.cif", "cn_ca_8");
    check("insertion-codes.pdb", "cn_ca_8");
    check("crlf.pdb", "cn_ca_8");
    // Lines that end with their coordinates.
    let text = fs::read_to_string(format!("{SMALL}/insertion-codes.pdb")).unwrap();
    let short = text.lines().map(|line| &line[..line.len().min(54)]);
    let input = folder.path().join("short.pdb");
    fs::write(&input, short.collect::<Vec<_>>().join("\n")).unwrap();
    let out = folder.path().join("long.pdb");
    paint_well(&[str_of(&input), "cn_ca_8", "-o", str_of(&out)]);
    let after = &models(&out)[0];
    assert!(after.b_factor.iter().all(|&b_factor| b_factor < 4.0));
}

#[test]
fn errors_of_painting_name_the_cause_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.pdb");
    let input = format!("{SAMPLES}/1ubi.pdb");
    let out_text = str_of(&out);
    let near = "`cn_ca_9` .. did you mean `cn_ca_8`?";
    paint_badly(
        &[&input, "cn_ca_9", "-o", out_text],
        2,
        &[near, "tapeloop features"],
    );
    paint_badly(&[&input, "rg", "-o", out_text], 2, &["`rg`"]);
    paint_badly(&[&input, "wcn"], 2, &["--output"]);
    paint_badly(&[&input, "wcn", "-o", &input, "--overwrite"], 2, &["input"]);
    let cif = folder.path().join("out.cif.gz");
    paint_badly(&[&input, "wcn", "-o", str_of(&cif)], 1, &["format", ".pdb"]);
    let missing = format!("{SAMPLES}/none.pdb");
    paint_badly(&[&missing, "wcn", "-o", out_text], 1, &["none.pdb"]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

    paint_well(&[&input, "wcn", "-o", out_text]);
    let first = fs::read(&out).unwrap();
    paint_badly(
        &[&input, "cn_ca_8", "-o", out_text],
        2,
        &["exists", "--overwrite"],
    );
    assert_eq!(fs::read(&out).unwrap(), first);
    paint_well(&[&input, "cn_ca_8", "-o", out_text, "--overwrite"]);
    assert_ne!(fs::read(&out).unwrap(), first);
}

#[test]
fn the_column_switches_its_feature_on() {
    let folder = tempfile::tempdir().unwrap();
    let input = format!("{SAMPLES}/1hvr.pdb.gz");
    for column in ["sheet", "ligand_dmin"] {
        let out = folder.path().join(format!("{column}.pdb"));
        paint_well(&[&input, column, "-o", str_of(&out)]);
        let b_factors = &models(&out)[0].b_factor;
        let has_values = b_factors.iter().any(|&value| value > 0.0 && value < 13.0);
        assert!(has_values, "{column}");
    }
    let out = folder.path().join("off.pdb");
    let off = [&input, "sheet", "-o", str_of(&out), "--set", "sheets=false"];
    paint_badly(&off, 2, &["`sheet` is not computed", "set sheets = true"]);
}

#[test]
fn a_column_needs_a_file_to_be_painted_into() {
    let folder = tempfile::tempdir().unwrap();
    let (input, svg) = (format!("{SAMPLES}/1ubi.pdb"), folder.path().join("out.svg"));
    let drawing = [&*input, "wcn", "--svg", str_of(&svg)];
    paint_badly(&drawing, 2, &["`wcn`", "-o", "--features"]);
    assert!(!svg.exists());
}

#[test]
fn paint_uses_the_settings_of_the_config() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("job.toml");
    fs::write(&config, "features = \"rg\"\ncontact_number.ca = [6.5]\n").unwrap();
    let input = format!("{SAMPLES}/1ubi.pdb");
    let out = folder.path().join("out.pdb");
    let args = [
        &input,
        "cn_ca_6_5",
        "-o",
        str_of(&out),
        "--config",
        str_of(&config),
    ];
    paint_well(&args);
    let largest = models(&out)[0].b_factor.iter().copied().fold(0.0, f32::max);
    assert!((2.0..12.0).contains(&largest), "{largest}");
}

#[test]
fn a_drawing_has_a_hundred_residues_per_line_and_a_track_for_each_column() {
    let folder = tempfile::tempdir().unwrap();
    let svg = folder.path().join("drawn.svg");
    let input = format!("{SAMPLES}/1bd2.pdb.gz");
    paint_well(&[&input, "--svg", str_of(&svg), "--features", "exposure"]);
    let drawn = fs::read_to_string(&svg).unwrap();
    let structure = &models(Path::new(&input))[0];
    let count = |word: &str| drawn.matches(word).count();
    let lines = structure.residues.len().div_ceil(100);
    assert!(lines > 8, "a sample of more than one line");
    for column in ["cn_ca_8", "wcn", "hse_a_down"] {
        assert_eq!(count(&format!(">{column}</text>")), lines);
    }
    let pairs = structure.residues.windows(2);
    let changes = pairs.filter(|pair| pair[0].chain != pair[1].chain).count();
    let breaks = structure.residues.windows(2);
    let breaks = breaks.filter(|pair| pair[0].chain == pair[1].chain && pair[1].break_before);
    // One more of each in the key.
    assert_eq!(count("<polyline class=\"text chain\""), changes + 1);
    assert_eq!(count("<polyline class=\"text break\""), breaks.count() + 1);
    assert!(drawn.contains("prefers-color-scheme: dark"));
    let letters = drawn
        .lines()
        .filter(|line| line.contains("class=\"text small middle\""));
    let sequence: String = letters
        .map(|line| line.split(['>', '<']).nth(2).unwrap())
        .collect();
    let expected = structure
        .residues
        .iter()
        .map(|residue| char::from(residue.aa));
    assert_eq!(sequence, expected.collect::<String>());
    let sheet = drawn.split("</style>").next().unwrap();
    let classes = drawn.split("class=\"").skip(1);
    for class in classes.flat_map(|rest| rest.split('"').next().unwrap().split(' ')) {
        assert!(sheet.contains(&format!(".{class}")), "{class} has no style");
    }
    assert_eq!(count("<svg"), count("</svg>"));
    assert_eq!(count("<text"), count("</text>"));
}

#[test]
fn a_drawing_has_groups_legends_in_each_block_and_no_empty_tracks() {
    let folder = tempfile::tempdir().unwrap();
    let svg = folder.path().join("drawn.svg");
    let input = format!("{SAMPLES}/1bd2.pdb.gz");
    let features = "contact_number,torsions,dssp,plddt";
    paint_well(&[&input, "--svg", str_of(&svg), "--features", features]);
    let drawn = fs::read_to_string(&svg).unwrap();
    let count = |word: &str| drawn.matches(word).count();
    let blocks = models(Path::new(&input))[0].residues.len().div_ceil(100);
    for each_block in [">Packing<", ">Backbone<", ">Hydrogen bonds<", " kcal/mol<"] {
        assert!(count(each_block) >= blocks, "{each_block}");
    }
    assert_eq!(count(">Packing<"), blocks);
    assert_eq!(count(">-180 to 180 degrees<") % blocks, 0);
    // A crystal structure has no pLDDT: named once, and not drawn.
    assert_eq!((count("No values: plddt"), count(">plddt<")), (1, 0));
    assert!(count("Indices, which are not drawn: hb_nho1, ") == 1 && count(">hb_nho1<") == 0);
    // Missing values are hatched, which the lowest value is not.
    assert!(count("<path class=\"null\"") > 0 && count("<path class=\"v0\"") > 0);
    assert!(
        drawn.contains(".null { fill: url(#tapeloop-null) }")
            && drawn.contains("<pattern id=\"tapeloop-null\"")
    );
}

#[test]
fn chains_and_interfaces_have_the_same_colours_in_a_drawing() {
    let folder = tempfile::tempdir().unwrap();
    let svg = folder.path().join("drawn.svg");
    let input = format!("{SAMPLES}/1grm.pdb");
    paint_well(&[
        &input,
        "--svg",
        str_of(&svg),
        "--features",
        "interface_residues",
    ]);
    let drawn = fs::read_to_string(&svg).unwrap();
    let class_of = |name: &str| {
        let lines: Vec<&str> = drawn.lines().collect();
        let text = "class=\"quiet\"";
        let legend = lines
            .windows(2)
            .find(|pair| pair[1].contains(text) && pair[1].ends_with(&format!(">{name}</text>")));
        let swatch = legend.expect("chains are in the key")[0];
        swatch.split('"').nth(1).unwrap().to_owned()
    };
    let [a, b] = ["A", "B"].map(class_of);
    assert_ne!(a, b);
    for class in [a, b] {
        // Above the chain's bar, whose 16 residues are 144 wide.
        let stripe = format!("<rect class=\"{class}\" ");
        let stripes = drawn.lines().filter(|line| line.starts_with(&stripe));
        let stripes = stripes.filter(|line| line.ends_with("width=\"144\" height=\"3\"/>"));
        assert_eq!(stripes.count(), 1, "{class}");
    }
}

#[test]
fn a_drawing_of_one_residue_has_its_chain_and_no_ranges() {
    let folder = tempfile::tempdir().unwrap();
    let [input, svg] = ["one.pdb", "one.svg"].map(|name| folder.path().join(name));
    let whole = fs::read_to_string(format!("{SAMPLES}/1ubi.pdb")).unwrap();
    let first = whole.lines().filter(|line| line.starts_with("ATOM"));
    let first: Vec<&str> = first.filter(|line| line[22..26].trim() == "1").collect();
    fs::write(&input, first.join("\n") + "\n").unwrap();
    let (input, svg_path) = (str_of(&input), str_of(&svg));
    paint_well(&[input, "--svg", svg_path, "--features", "contact_number"]);
    let drawn = fs::read_to_string(&svg).unwrap();
    for part in ["model 1, 1 residue<", ">A</text>", ">0 throughout</text>"] {
        assert!(drawn.contains(part), "{drawn} lacks {part}");
    }
    assert!(!drawn.contains(" to "), "{drawn}");
}
