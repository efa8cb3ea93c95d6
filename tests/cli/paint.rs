//! Painted files, read again, and drawings.

use super::*;
use std::collections::BTreeMap;
use tapeloop::structure::{Models, ReadLimits, ReadOptions, Reader, Structure, text_of};

const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/small");

fn paint(args: &[&str]) -> (Output, i32) {
    let args = ["paint"].iter().chain(args).chain(&["--backend", "cpu"]);
    let output = tapeloop(args).output().unwrap();
    let code = output.status.code().expect("not killed by a signal");
    (output, code)
}

fn paint_well(args: &[&str]) -> String {
    let (output, code) = paint(args);
    assert_eq!(code, 0, "{}", text(&output.stderr));
    text(&output.stdout)
}

fn paint_badly(args: &[&str], expected_code: i32, parts: &[&str]) {
    let (output, code) = paint(args);
    let said = text(&output.stderr);
    assert_eq!(code, expected_code, "{said}");
    for part in parts {
        assert!(said.contains(part), "{said:?} lacks {part:?}");
    }
}

fn models(path: &Path) -> Vec<Structure> {
    let options = ReadOptions {
        models: Models::All,
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

/// The text of a file, with the B factor of each atom line cut out, and the lines
/// that are no atoms.
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
fn every_painted_sample_reads_as_the_run_says_and_is_else_as_it_was() {
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
fn a_residue_is_painted_whole_and_what_has_no_row_has_the_value_for_null() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("painted.pdb");
    let input = format!("{SAMPLES}/1ejg.pdb.gz");
    let said = paint_well(&[&input, "wcn", "-o", str_of(&out), "--null", "7.5"]);
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
fn models_that_were_not_computed_have_the_value_for_null() {
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
fn what_the_assembly_adds_is_painted_on_the_chains_that_are_there() {
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
fn what_cannot_be_painted_is_named_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.pdb");
    let input = format!("{SAMPLES}/1ubi.pdb");
    let out_text = str_of(&out);
    let near = "no feature has a residue column `cn_ca_9` (did you mean `cn_ca_8`?)";
    paint_badly(
        &[&input, "cn_ca_9", "-o", out_text],
        2,
        &[near, "tapeloop features"],
    );
    paint_badly(
        &[&input, "rg", "-o", out_text],
        2,
        &["no feature has a residue column `rg`"],
    );
    paint_badly(&[&input, "wcn"], 2, &["--output"]);
    paint_badly(
        &[&input, "wcn", "-o", &input, "--overwrite"],
        2,
        &["replace an input"],
    );
    let cif = folder.path().join("out.cif.gz");
    paint_badly(
        &[&input, "wcn", "-o", str_of(&cif)],
        1,
        &["keeps the format", ".pdb"],
    );
    let missing = format!("{SAMPLES}/none.pdb");
    paint_badly(&[&missing, "wcn", "-o", out_text], 1, &["none.pdb"]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

    paint_well(&[&input, "wcn", "-o", out_text]);
    let first = fs::read(&out).unwrap();
    paint_badly(
        &[&input, "cn_ca_8", "-o", out_text],
        2,
        &["the file is there", "--overwrite"],
    );
    assert_eq!(fs::read(&out).unwrap(), first);
    paint_well(&[&input, "cn_ca_8", "-o", out_text, "--overwrite"]);
    assert_ne!(fs::read(&out).unwrap(), first);
}

#[test]
fn no_output_replaces_an_input_of_the_same_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("in/x")).unwrap();
    for name in ["in/1ubi.pdb", "in/x/1ubi.pdb"] {
        fs::copy(format!("{SAMPLES}/1ubi.pdb"), at(name)).unwrap();
    }
    let before = fs::read(at("in/1ubi.pdb")).unwrap();
    let input = at("in");
    let args = [str_of(&input), "wcn", "-o", str_of(&input), "--overwrite"];
    paint_badly(&args, 1, &["in/1ubi.pdb: this would replace an input"]);
    for name in ["in/1ubi.pdb", "in/x/1ubi.pdb"] {
        assert!(fs::read(at(name)).unwrap() == before);
    }
    // Another way to the same file.
    fs::create_dir(at("out")).unwrap();
    fs::hard_link(at("in/1ubi.pdb"), at("out/1ubi.pdb")).unwrap();
    let (inner, out) = (at("in/x/1ubi.pdb"), at("out"));
    let list = at("list");
    fs::write(&list, "in/x/1ubi.pdb\nin/1ubi.pdb\n").unwrap();
    let list = format!("@{}", list.display());
    let args = [&list, "wcn", "-o", str_of(&out), "--overwrite"];
    paint_badly(&args, 1, &["out/1ubi.pdb: this would replace an input"]);
    assert!(fs::read(inner).unwrap() == before);
}

#[test]
#[cfg(unix)]
fn a_link_is_no_output() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("precious.pdb"), "precious").unwrap();
    std::os::unix::fs::symlink(at("precious.pdb"), at("out.pdb")).unwrap();
    let (input, out) = (format!("{SAMPLES}/1ubi.pdb"), at("out.pdb"));
    let args = [&input, "wcn", "-o", str_of(&out), "--overwrite"];
    paint_badly(&args, 2, &["out.pdb: this is a link"]);
    assert_eq!(fs::read(at("precious.pdb")).unwrap(), b"precious");
}

#[test]
fn several_files_go_into_a_folder_and_a_bad_one_stops_none() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list.txt");
    let broken = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/broken/truncated.cif.gz"
    );
    let files = [
        "1yjp.cif",
        "1a8o.pdb",
        "1a8o.cif.gz",
        "1ubi.pdb",
        "1ubi.pdb",
    ];
    let files = files.map(|name| format!("{SAMPLES}/{name}\n")).concat();
    fs::write(&list, format!("{broken}\n{files}")).unwrap();
    let out = folder.path().join("painted");
    let input = format!("@{}", list.display());
    let svg = folder.path().join("drawn");
    let args = [
        &input,
        "wcn",
        "-o",
        str_of(&out),
        "--svg",
        str_of(&svg),
        "--features",
        "rg",
    ];
    let ubi = format!("{SAMPLES}/1ubi.pdb");
    let clash = format!(
        "the painted file of {ubi} would replace the painted file of {ubi}, {}/1ubi.pdb",
        out.display()
    );
    paint_badly(&args, 3, &["cut short", &clash]);
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(
        names(&out),
        ["1a8o.cif.gz", "1a8o.pdb", "1ubi.pdb", "1yjp.cif"]
    );
    // The second drawing of 1ubi has a free name, but its painted file has none.
    let drawings = ["1a8o.cif.gz.svg", "1a8o.svg", "1ubi.svg", "1yjp.svg"];
    assert_eq!(names(&svg), drawings);
    let drawn = fs::read_to_string(svg.join("1ubi.svg")).unwrap();
    assert!(
        drawn.contains(">wcn</text>") && !drawn.contains("cn_ca"),
        "{drawn}"
    );
}

#[test]
fn two_outputs_of_a_run_that_are_one_file_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let input = format!("{SAMPLES}/1ubi.pdb");
    let refuse = |output: &str, svg: &str, code: i32| {
        let (output, svg) = (at(output), at(svg));
        let args = ["-o", str_of(&output), "--svg", str_of(&svg), "--overwrite"];
        let args = [&[&input, "wcn"][..], &args].concat();
        paint_badly(
            &args,
            code,
            &["would replace the ", "fix: give each output"],
        );
        let said = text(&paint(&args).0.stderr);
        assert!(said.contains(str_of(&svg)), "{said}");
        assert!(!at("y.pdb").exists() && !at("new").exists());
        said
    };
    let said = refuse("y.pdb", "y.pdb", 2);
    let both = format!(
        "y.pdb: the drawing of {input} would replace the painted file of {input}, {}",
        at("y.pdb").display()
    );
    assert!(said.contains(&both), "{said}");
    refuse("y.pdb", "new/../y.pdb", 2);
    refuse("new/y.pdb", "new/./y.pdb", 2);
    // A folder that gets a file which is named too.
    fs::create_dir(at("out")).unwrap();
    refuse("out", "out/1ubi.pdb", 1);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(at("out"), at("linked")).unwrap();
        refuse("out/y.pdb", "linked/y.pdb", 2);
    }
    assert_eq!(fs::read_dir(at("out")).unwrap().count(), 0);
}

#[test]
fn a_name_of_255_bytes_is_painted_and_no_hidden_file_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let long = at(&format!("{}.pdb", "x".repeat(251)));
    let input = format!("{SAMPLES}/1ubi.pdb");
    let mine = [".out.pdb.tmp", ".tapeloop-0.tmp"];
    for name in mine {
        fs::copy(&input, at(name)).unwrap();
    }
    paint_well(&[&input, "wcn", "-o", str_of(&long)]);
    // An input may have the name too.
    let hidden = at(mine[0]);
    paint_well(&[str_of(&hidden), "wcn", "-o", str_of(&at("out.pdb"))]);
    assert_eq!(fs::read(&long).unwrap(), fs::read(at("out.pdb")).unwrap());
    let before = fs::read(&input).unwrap();
    for name in mine {
        assert!(fs::read(at(name)).unwrap() == before, "{name}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
}

#[test]
#[cfg(unix)]
fn a_file_that_cannot_be_written_is_rejected_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("painted");
    let list = folder.path().join("list.txt");
    let files = ["1a8o.pdb", "1yjp.cif", "1grm.pdb"];
    let lines = files.map(|name| format!("{SAMPLES}/{name}\n"));
    fs::write(&list, lines.concat()).unwrap();
    // No file may have more than 80 blocks of 512 or 1024 bytes, and the first has more.
    let limited = "trap '' XFSZ; ulimit -f 80; exec \"$0\" \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", limited, env!("CARGO_BIN_EXE_tapeloop"), "paint"]);
    shell.arg(format!("@{}", list.display()));
    shell.args(["wcn", "--backend", "cpu", "-o", str_of(&out)]);
    let output = shell.output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert_eq!(said.matches("error: ").count(), 1, "{said}");
    assert!(said.contains("painted/1a8o.pdb: File too large"), "{said}");
    let entries = fs::read_dir(&out).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["1grm.pdb", "1yjp.cif"]);
}

#[test]
fn settings_come_from_the_config_and_columns_with_them() {
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
fn a_drawing_has_a_line_a_hundred_residues_and_a_track_a_column() {
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
fn a_drawing_names_chains_by_the_colours_that_interfaces_have() {
    let folder = tempfile::tempdir().unwrap();
    let svg = folder.path().join("drawn.svg");
    let input = format!("{SAMPLES}/1grm.pdb");
    paint_well(&[&input, "--svg", str_of(&svg), "--features", "iface"]);
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
