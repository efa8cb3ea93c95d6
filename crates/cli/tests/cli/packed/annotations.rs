//! Annotations of several packed sets, and of sets that lists name.

use super::*;

const CHANNEL: [&str; 4] = ["--features", "smooth", "--set", "smooth.channels=[\"x\"]"];

/// Writes a table of annotations with a value of `x` for residue 3 of these structures, and returns
/// the setting that names it.
fn table(path: &Path, structures: &[(&str, &str)]) -> String {
    let rows = structures
        .iter()
        .map(|(name, value)| format!("{name}\tA\t3\t{value}\n"));
    let rows: String = rows.collect();
    fs::write(path, format!("structure\tchain\tresidue\tx\n{rows}")).unwrap();
    format!("annotations={}", path.display())
}

/// A set of a sample, with annotations if a setting names them.
fn set_of(folder: &Path, name: &str, sample: &str, annotations: Option<&str>) -> PathBuf {
    let (set, sample) = (folder.join(name), format!("{SAMPLES}/{sample}"));
    let mut args = vec![sample.as_str(), "-o", str_of(&set)];
    if let Some(setting) = annotations {
        args.extend(["--set", setting, CHANNEL[2], CHANNEL[3]]);
    }
    pack(&args, 0);
    set
}

#[test]
fn annotations_of_a_set_in_a_list_or_a_nested_folder_are_those_of_the_set() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let setting = table(&at("x.tsv"), &[("1ubi", "1.5")]);
    fs::create_dir(at("sets")).unwrap();
    let set = set_of(&at("sets"), "a", "1ubi.pdb", Some(&setting));
    let expected = results(str_of(&set), &at("whole"), &CHANNEL);
    fs::write(at("list"), "sets/a\n").unwrap();
    let list = format!("@{}", str_of(&at("list")));
    assert!(results(&list, &at("of-list"), &CHANNEL) == expected);
    assert!(results(str_of(&at("sets")), &at("of-folder"), &CHANNEL) == expected);
    // Packed again from the list, the structures keep them.
    pack(&[&list, "-o", str_of(&at("again"))], 0);
    assert_eq!(
        inspect(&at("again"), &[])["annotations"],
        serde_json::json!(["x"])
    );
    assert!(results(str_of(&at("again")), &at("of-again"), &CHANNEL) == expected);
}

#[test]
fn sets_of_a_run_need_the_same_annotations() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let setting = table(&at("x.tsv"), &[("1ubi", "1.5")]);
    let with = set_of(folder.path(), "with", "1ubi.pdb", Some(&setting));
    let without = set_of(folder.path(), "without", "1yjp.cif", None);
    let [with, without] = [&with, &without].map(|set| str_of(set));
    for inputs in [[with, without], [without, with]] {
        let (output, code) = run(&[&inputs, &["-o", str_of(&at("out"))], &CHANNEL[..]].concat());
        let said = text(&output.stderr);
        assert_eq!(code, 2, "{said}");
        let place = format!("{without}/structures-00000.arrow: `smooth.channels` names \"x\"");
        assert!(said.contains(&place), "{said}");
        let said = pack(&[&inputs, &["-o", str_of(&at("set"))][..]].concat(), 2);
        assert!(said.contains("annotations"), "{said}");
    }
    // What a pipe names is known only when it is read.
    let lines = format!("{without}\n{with}\n");
    let (output, written) = run_piped(["pack", "@-", "-o", str_of(&at("piped"))], lines);
    written.unwrap();
    let said = text(&output.stderr);
    assert!(has_parts(&said, "1ubi.pdb: .. [\"x\"]"), "{said}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn annotations_of_a_run_replace_those_of_the_set_in_all_structures() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let of_set = table(&at("x.tsv"), &[("1ubi", "1.5")]);
    let set = set_of(folder.path(), "set", "1ubi.pdb", Some(&of_set));
    // The new table has no row for the structure.
    let other = table(&at("y.tsv"), &[("1yjp", "2.5")]);
    let allow = ["--set", "annotations_unmatched=allow"];
    let args = [&["--set", &other], &allow, &CHANNEL[..]].concat();
    let files = results(&format!("{SAMPLES}/1ubi.pdb"), &at("files"), &args);
    assert!(results(str_of(&set), &at("packed"), &args) == files);
}

#[test]
fn a_set_is_not_packed_into_itself() {
    let folder = tempfile::tempdir().unwrap();
    let set = set_of(folder.path(), "set", "1ubi.pdb", None);
    let file = set.join("structures-00000.arrow");
    let list = folder.path().join("list");
    fs::write(&list, "set/structures-00000.arrow\n").unwrap();
    let (glob, list) = (set.join("*.arrow"), format!("@{}", str_of(&list)));
    for input in [str_of(&file), str_of(&glob), &list] {
        let said = pack(&[input, "-o", str_of(&set)], 2);
        assert!(said.contains("set"), "{said}");
    }
    assert_eq!(inspect(&set, &[])["inputs"], 1);
}
