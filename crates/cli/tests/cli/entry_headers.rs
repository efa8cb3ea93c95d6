//! The columns `method`, `resolution` and `title`, and files that may have pLDDT without naming it.

use super::results::read;
use super::*;
use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;

#[test]
fn structures_have_the_method_the_resolution_and_the_title() {
    let folder = tempfile::tempdir().unwrap();
    let untitled = folder.path().join("untitled.pdb");
    let atom = "ATOM      1  CA  ALA A   1       0.000   0.000   0.000  1.00  9.50           C\n";
    fs::write(&untitled, atom).unwrap();
    let sample = |name: &str| format!("{SAMPLES}/{name}");
    let set = folder.path().join("set");
    let files = [
        &sample("1a8o.cif.gz"),
        &sample("1lcd.pdb.gz"),
        str_of(&untitled),
    ];
    let pack = [&["pack"], &files[..], &["-o", str_of(&set)]].concat();
    assert!(tapeloop(pack).output().unwrap().status.success());
    let inputs: Vec<&str> = files.iter().flat_map(|file| ["-i", file]).collect();
    for inputs in [&inputs[..], &["-i", str_of(&set)]] {
        let out = folder.path().join("out");
        let args = ["-o", str_of(&out), "--features", "rg", "--overwrite"];
        run_well(&[inputs, &args].concat());
        let table = read(&out.join("structures/part-00000.parquet"));
        let texts = |name: &str| -> Vec<Option<String>> {
            let column = table.column_by_name(name).unwrap().as_string::<i32>();
            column.iter().map(|text| text.map(str::to_owned)).collect()
        };
        let some = |text: &str| Some(text.to_owned());
        let methods = [some("X-RAY DIFFRACTION"), some("SOLUTION NMR"), None];
        assert_eq!(texts("method"), methods);
        let titles = texts("title");
        assert_eq!(titles[0], some("HIV CAPSID C-TERMINAL DOMAIN"));
        assert!(titles[1].as_ref().unwrap().ends_with("MOLECULAR DYNAMICS"));
        assert_eq!(titles[2], None);
        let resolution = table.column_by_name("resolution").unwrap();
        let resolution: Vec<_> = resolution.as_primitive::<Float32Type>().iter().collect();
        assert_eq!(resolution, [Some(1.7), None, None]);
        let schema = table.schema();
        let field = schema.field_with_name("resolution").unwrap();
        assert_eq!(field.metadata()["unit"], "A");
    }
}

/// A PDB file of three residues, each with an N and a CA of these B factors, after `lines`.
fn with_b_factors(lines: &str, b_factors: [[f32; 2]; 3]) -> String {
    let mut text = lines.to_owned();
    for (index, [n, ca]) in b_factors.into_iter().enumerate() {
        for (name, b, y) in [("N", n, 0.0), ("CA", ca, 1.46)] {
            let (number, x) = (index + 1, 3.8 * index as f32);
            text += &format!(
                "ATOM  {number:5}  {name:<3} ALA A{number:4}    {x:8.3}{y:8.3}   0.000  1.00{b:6.2}\n"
            );
        }
    }
    text + "END\n"
}

#[test]
fn a_note_counts_files_that_may_have_plddt_without_naming_it() {
    let same = [[90.0; 2], [80.0; 2], [35.5; 2]];
    let shares = [[0.9, 0.91], [0.8, 0.82], [0.35, 0.3]];
    let looks = [("", same), ("", shares), ("TITLE     MODEL 1\n", same)];
    let others = [
        ("EXPDTA    X-RAY DIFFRACTION\n", same),
        ("REMARK   2 RESOLUTION. 2.00 ANGSTROMS.\n", same),
        ("", [[90.0, 91.0], [80.0, 80.0], [35.5, 35.5]]),
        ("", [[90.0; 2], [80.0; 2], [100.5; 2]]),
        ("", [[-1.0; 2], [80.0; 2], [10.0; 2]]),
        // What programs write if they have no B factors, and marks of atoms.
        ("", [[20.0; 2]; 3]),
        ("", [[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]),
    ];
    let folder = tempfile::tempdir().unwrap();
    let note = "structures whose B factors look like pLDDT, which their files do not name: 3 \
                (b_factor = \"plddt\" reads them as pLDDT)";
    let input = folder.path().join("in");
    fs::create_dir(&input).unwrap();
    for (number, (lines, b_factors)) in looks.into_iter().chain(others).enumerate() {
        let path = input.join(format!("{number}.pdb"));
        fs::write(path, with_b_factors(lines, b_factors)).unwrap();
    }
    let set = folder.path().join("set");
    let pack = ["pack", str_of(&input), "-o", str_of(&set)];
    assert!(tapeloop(pack).output().unwrap().status.success());
    let out = folder.path().join("out");
    let run = |input: &Path, more: &[&str]| {
        let args = [str_of(input), "-v", "-o", str_of(&out), "--overwrite"];
        let said = text(&run_well(&[&args, more].concat()).stderr);
        (said.contains(note), record(&out))
    };
    for input in [&input, &set] {
        let (is_noted, record) = run(input, &[]);
        assert!(is_noted);
        assert_eq!(record["counts"]["unnamed_plddt"], 3);
    }
    assert!(!run(&input, &["--set", "b_factor=b"]).0);
}
