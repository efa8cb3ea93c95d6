//! `tapeloop methods`: what a publication says of a run.

use super::*;

/// What the command prints of a run into `out`.
fn described(out: &Path) -> String {
    let output = tapeloop(["methods", str_of(out)]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    text(&output.stdout)
}

#[test]
fn a_run_is_described_with_its_settings_counts_and_references() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let files = ["1hvr.pdb.gz", "1ubi.pdb"].map(|name| format!("{SAMPLES}/{name}"));
    let features = ["--features", "sasa,phi,interfaces,plddt"];
    let changed = ["--set", "sasa.points=100", "--threads", "1"];
    let inputs = [&*files[0], &files[1], "-o", str_of(&out)];
    run_well(&[&inputs[..], &features, &changed].concat());
    let described_run = described(&out);
    let words = described_run
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    for part in [
        concat!("computed with tapeloop ", env!("CARGO_PKG_VERSION"), " ("),
        "(The tapeloop developers 2026) on the CPU",
        "2 structures with 274 residues and 2,116 atoms, read from 2 inputs.",
        "The features are backbone torsions (IUPAC-IUB 1970), solvent-accessible surface area (Shrake and",
        concat!(
            "version = {",
            env!("CARGO_PKG_VERSION"),
            "}, year = {2026} }"
        ),
        "sasa: sum over the residue's atoms of 4 pi R^2 n / N",
        "(Shrake and Rupley 1973, J Mol Biol 79:351;",
        "Of files with several models the first was read.",
        "Settings: sasa.algorithm = \"shrake-rupley\"; sasa.points = 100; sasa.slices = 20; sasa.probe = 1.4; \
         sasa.chains = \"all\"; sasa.radii = \"protor\".",
        "radii: Tsai et al. 1999, J Mol Biol 290:253",
        "@article{tsai1999,",
        concat!(
            "differ from the defaults of tapeloop ",
            env!("CARGO_PKG_VERSION"),
            ": sasa.points = 100. Formulas"
        ),
        "@article{shrake1973,",
        "@article{iupaciub1970,",
        "doi = {10.1016/j.jmb.2007.05.022}",
    ] {
        assert!(words.contains(part), "{part}: {described_run}");
    }
    // The first paragraph is prose; formulas stand below it.
    let (prose, rest) = described_run.split_once("\n\n").unwrap();
    assert!(prose.ends_with('.') && !prose.contains('^'), "{prose}");
    assert!(rest.starts_with("Formulas and settings of the features."));
    for other in ["threads", "kabsch1983", "plddt", "rejected", "not ended"] {
        assert!(!words.contains(other), "{other}: {described_run}");
    }
    let paragraph = described_run.split("References").next().unwrap();
    assert!(paragraph.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn a_folder_that_no_run_wrote_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str| {
        let path = folder.path().join(name);
        let output = tapeloop(["methods", str_of(&path)]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        text(&output.stderr)
    };
    assert!(refused("nothing").contains("`tapeloop run` wrote"));
    fs::create_dir(folder.path().join("other")).unwrap();
    fs::write(folder.path().join("other/run.json"), "{}").unwrap();
    assert!(refused("other").contains("lacks `config`"));
}

#[test]
fn a_record_that_was_edited_or_is_of_another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    run_well(&[&format!("{SAMPLES}/1ubi.pdb"), "-o", str_of(&out)]);
    let path = out.join("run.json");
    let whole: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let refused = |edit: &dyn Fn(&mut serde_json::Value)| {
        let mut record = whole.clone();
        edit(&mut record);
        fs::write(&path, record.to_string()).unwrap();
        let output = tapeloop(["methods", str_of(&out)]).output().unwrap();
        let code = output.status.code().unwrap();
        assert!((1..=2).contains(&code), "{output:?}");
        text(&output.stderr)
    };
    let said = refused(&|record| drop(record["config"].as_object_mut().unwrap().remove("models")));
    assert!(said.contains("lacks `models`"), "{said}");
    let said = refused(&|record| record["backend"] = serde_json::Value::Null);
    assert!(said.contains("lacks `backend`"), "{said}");
    let said = refused(&|record| record["config"]["sasa.brand_new"] = 5.into());
    assert!(
        said.contains("`sasa.brand_new`") && said.contains("use tapeloop"),
        "{said}"
    );
}

#[test]
fn settings_and_sources_of_what_a_feature_needs_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let file = format!("{SAMPLES}/1hvr.pdb.gz");
    let changed = ["--set", "sasa.points=100", "--set", "interfaces=true"];
    let inputs = [&*file, "-o", str_of(&out), "--features", "interfaces"];
    run_well(&[&inputs[..], &changed].concat());
    let words = described(&out);
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        concat!(
            "differ from the defaults of tapeloop ",
            env!("CARGO_PKG_VERSION"),
            ": sasa.points = 100"
        ),
        "sasa: sum over the residue's atoms of 4 pi R^2 n / N",
        "@article{shrake1973,",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
}
