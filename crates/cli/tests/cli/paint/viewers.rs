//! The commands that colour by the result.

use super::*;

/// What is printed after the lines about files.
fn commands(said: &str) -> &str {
    let (_, commands) = said.split_once("to colour by these B factors:\n").unwrap();
    commands
}

#[test]
fn the_commands_of_viewers_are_printed_once_with_the_range_of_all_files() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list.txt");
    let files = ["1ubi.pdb", "1a8o.pdb"].map(|name| format!("{SAMPLES}/{name}"));
    fs::write(&list, files.join("\n")).unwrap();
    let out = folder.path().join("painted");
    let input = format!("@{}", list.display());
    let args = [&*input, "cn_ca_8", "-o", str_of(&out), "--verbose"];
    let said = paint_well(&args);
    assert_eq!(said.matches("to colour by").count(), 1, "{said}");
    let values = |name: &str| {
        let atoms = models(&out.join(name)).remove(0).b_factor.into_iter();
        atoms.filter(|value| *value >= 0.0)
    };
    let all: Vec<f32> = values("1ubi.pdb").chain(values("1a8o.pdb")).collect();
    let min = all.iter().copied().fold(f32::MAX, f32::min);
    let max = all.iter().copied().fold(f32::MIN, f32::max);
    let first = out.join("1ubi.pdb").display().to_string();
    let expected = format!(
        "  PyMOL     load {first}\n            \
         spectrum b, blue_white_red, minimum={min}, maximum={max}\n  \
         ChimeraX  open {first}\n            \
         color byattribute bfactor palette blue-white-red range {min},{max}\n  \
         Mol*      open {first}\n            \
         Components > ... > Set Coloring > Atom Property > Uncertainty/Disorder; then \
         Representation > Color Theme > Domain: {min} to {max}\n"
    );
    assert_eq!(commands(&said), expected);
    for silent in [&args[..4], &[&args[..4], &["--quiet"]].concat()] {
        let said = paint_well(&[silent, &["--overwrite"]].concat());
        assert_eq!(said, "");
    }
}

#[test]
fn paths_with_blanks_and_quotes_are_in_quotes_and_standard_output_has_no_path() {
    let folder = tempfile::tempdir().unwrap();
    let input = format!("{SAMPLES}/1ubi.pdb");
    for (name, quote) in [("a b.pdb", '"'), ("it's.pdb", '"'), ("the \"x\".pdb", '\'')] {
        let out = folder.path().join(name);
        let said = paint_well(&[&input, "wcn", "-o", str_of(&out), "--verbose"]);
        let path = format!("{quote}{}{quote}\n", out.display());
        for command in ["load", "open"] {
            let line = format!("  {command} {path}");
            assert!(commands(&said).contains(&line), "{said} lacks {line}");
        }
    }
    let (output, code) = paint(&[&input, "wcn", "-o", "-", "--verbose"]);
    let said = text(&output.stderr);
    assert_eq!(code, 0, "{said}");
    let commands = commands(&said);
    assert!(commands.starts_with("  PyMOL     spectrum b, "), "{said}");
    assert!(
        !commands.contains("load") && !commands.contains("open"),
        "{said}"
    );
}

#[test]
fn values_that_are_all_equal_have_no_range_to_colour_by() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.pdb");
    let input = format!("{SAMPLES}/1ubi.pdb");
    // Ubiquitin has one chain, and is no predicted model.
    for column in ["iface", "plddt"] {
        let args = [
            &*input,
            column,
            "-o",
            str_of(&out),
            "--verbose",
            "--overwrite",
        ];
        let said = paint_well(&args);
        assert!(
            said.contains(column) && !said.contains("to colour by"),
            "{said}"
        );
    }
}
