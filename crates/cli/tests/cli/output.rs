//! The dry run, the lists of features, and the output folder.

use super::*;
use tapeloop::features::FeatureName;

#[test]
fn a_dry_run_prints_the_config_and_the_memory_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let plan = run_well(&[
        "-i",
        SAMPLES,
        "-o",
        str_of(&out),
        "--dry-run",
        "--verbose",
        "--slots",
        "4",
    ])
    .stdout;
    let plan = text(&plan);
    assert!(!out.exists());
    assert!(plan.contains("\nhse_a.radius = 12.0\n"), "{plan}");
    let lines = [
        "slots = 4",
        "mode = \"graph\"",
        " features (",
        "on the CPU",
        "B for 4 batches in flight",
        "4 slots: ",
        "B per slot",
    ];
    for line in lines {
        assert!(plan.contains(line), "{plan}");
    }
    let again = folder.path().join("again.toml");
    fs::write(&again, &plan).unwrap();
    let args = [str_of(&again), "--dry-run", "--verbose"];
    assert_eq!(text(&run_well(&args).stdout), plan);
    // Internal buffers are for `--verbose`.
    let short = text(&run_well(&args[..2]).stdout);
    assert!(
        !short.contains("B per slot") && short.contains("B for 4 batches"),
        "{short}"
    );
}

#[test]
fn the_manual_has_the_output_of_tapeloop_features() {
    let listed = tapeloop(["features", "--markdown"]).output().unwrap();
    let listed = text(&listed.stdout);
    let manual = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/config/feature-reference.md"
    ));
    let manual = manual.unwrap();
    let (_, rest) = manual
        .split_once("--markdown`, as a test checks. -->\n")
        .unwrap();
    let (section, _) = rest.split_once("<!-- end -->").unwrap();
    assert!(
        section == listed,
        "docs/config/feature-reference.md is not of these features; put the output of `tapeloop features \
         --markdown` between its two comments"
    );
}

#[test]
fn a_preset_a_feature_and_a_column_are_explained_by_their_names() {
    let listed = tapeloop(["features", "exposure"]).output().unwrap();
    let listed = text(&listed.stdout);
    let longest = listed.lines().map(|line| line.chars().count()).max();
    assert!(longest <= Some(100), "{listed}");
    for words in [
        "hse_a.radius = 12.0 (A, 0.001 to 37)",
        "Hamelryck",
        "hse_a_down",
    ] {
        assert!(listed.contains(words), "{listed}");
    }
    assert!(!listed.contains("rg_ca"), "{listed}");
    let listed = tapeloop(["features", "psi"]).output().unwrap();
    let listed = text(&listed.stdout);
    assert!(
        listed.contains("torsions") && listed.contains("psi "),
        "{listed}"
    );
    assert!(!listed.contains("omega  "), "{listed}");
    let listed = tapeloop(["features", "psi", "--json"]).output().unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let columns = listed[0]["columns"].as_array().unwrap();
    let names: Vec<&str> = columns
        .iter()
        .filter_map(|column| column["name"].as_str())
        .collect();
    assert_eq!(names, ["psi"]);
    // Naming it switches it on, so that it has columns to explain.
    let listed = tapeloop(["features", "interfaces"]).output().unwrap();
    let listed = text(&listed.stdout);
    assert!(listed.contains("interfaces = true"), "{listed}");
    assert!(listed.contains("backbone_hydrogen_bonds"), "{listed}");
}

#[test]
fn without_a_name_each_feature_has_its_whole_summary_in_lines_that_fit_a_terminal() {
    let listed = tapeloop(["features"]).output().unwrap();
    let listed = text(&listed.stdout);
    let (features, rest) = listed.split_once("\nPresets:\n").unwrap();
    assert!(
        features.lines().all(|line| line.chars().count() <= 80),
        "{features}"
    );
    assert!(!features.contains("..."), "{features}");
    let names: Vec<&str> = features
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| !name.is_empty())
        .collect();
    let expected: Vec<&str> = FeatureName::ALL
        .iter()
        .map(|feature| feature.name())
        .collect();
    assert_eq!(names, expected);
    assert!(rest.contains("exposure"), "{rest}");
}

#[test]
fn columns_and_version_are_listed() {
    let set = "contact_number.ca=[7]";
    let output = tapeloop(["features", "contact_number,wcn,rg", "--set", set])
        .output()
        .unwrap();
    assert!(output.status.success());
    let listed = text(&output.stdout);
    for word in ["cn_ca_7 ", "wcn", "1/A^2", "rg_ca", "C-alpha"] {
        assert!(listed.contains(word), "{listed}");
    }
    let output = tapeloop(["--version"]).output().unwrap();
    assert_eq!(
        text(&output.stdout),
        format!("tapeloop {}\n", env!("CARGO_PKG_VERSION"))
    );
    let output = tapeloop(["doctor"]).output().unwrap();
    let printed = text(&output.stdout);
    let verdict = printed.lines().last().unwrap();
    assert!(
        verdict.starts_with("Ready: runs compute on the "),
        "{printed}"
    );
    if verdict.contains("CPU") {
        assert!(
            !printed.contains("!!"),
            "nothing that the CPU needs is missing: {printed}"
        );
    }
    let output = tapeloop(["doctor", "--backend", "cuda"])
        .env("CUDA_VISIBLE_DEVICES", "")
        .output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("\nNot ready: "));
    let warm = ["doctor", "--warm", "--json", "--backend", "cpu"];
    let output = tapeloop(warm).output().unwrap();
    let findings: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let compiled = findings.last().unwrap();
    assert_eq!(compiled["label"], "compiled");
    assert_eq!(compiled["detail"], "the CPU needs no kernels");
    assert!(output.status.success());
    let without = tapeloop(["doctor", "--warm"])
        .env("CUDA_VISIBLE_DEVICES", "")
        .output();
    let without = without.unwrap();
    assert_eq!(without.status.code(), Some(1), "{}", text(&without.stdout));
    assert!(text(&without.stdout).contains("no GPU"));
    assert!(!text(&tapeloop(["doctor"]).output().unwrap().stdout).contains("compiled   "));
}

#[test]
fn results_are_replaced_only_with_overwrite_and_other_files_never() {
    let folder = tempfile::tempdir().unwrap();
    let input = format!("{SAMPLES}/1ubi.pdb");
    let copies = tempfile::tempdir().unwrap();
    let copy = copy_of("1ubi.pdb", copies.path());
    let (copy, out) = (str_of(&copy), str_of(folder.path()));
    let args = ["-i", &input, "-i", copy, "-o", out];
    run_well(&[&args[..], &["--set", "tables.inputs_per_part=1"]].concat());
    assert_eq!(parts(folder.path()).len(), 2 * TABLES.len());

    let (output, code) = run(&args);
    let said = text(&output.stderr);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("--overwrite"), "{said}");
    assert_eq!(parts(folder.path()).len(), 2 * TABLES.len());

    let others = [
        "notes.txt",
        "residues/mine.parquet",
        "residues/part-1.parquet",
    ];
    for name in others {
        fs::write(folder.path().join(name), "mine").unwrap();
    }
    let left = folder.path().join("chains/.part-00007.parquet.tmp");
    fs::write(&left, "left by a crash").unwrap();
    run_well(&[&args[..], &["--overwrite"]].concat());
    assert!(!left.exists());
    assert_eq!(
        parts(folder.path()).len(),
        TABLES.len() + 2,
        "and two others"
    );
    for name in others {
        assert_eq!(fs::read(folder.path().join(name)).unwrap(), b"mine");
    }
}

#[test]
fn temporary_files_of_a_killed_run_do_not_stop_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("residues")).unwrap();
    let left = folder.path().join("residues/.part-00000.parquet.tmp");
    fs::write(&left, "left by a crash").unwrap();
    let input = format!("{SAMPLES}/1ubi.pdb");
    run_well(&["-i", &input, "-o", str_of(folder.path())]);
    assert!(!left.exists());
}

#[test]
fn the_graph_is_drawn_by_stages_within_the_width_of_a_page() {
    let graph = |more: &[&str]| {
        let start = ["graph", "--backend", "cpu", "--format", "svg"];
        let output = tapeloop(start.iter().chain(more)).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        text(&output.stdout)
    };
    let all = graph(&[]);
    let places: Vec<usize> = [">Upload<", ">Clear<", ">Kernels<", ">step 2<", ">Download<"]
        .iter()
        .map(|part| all.find(part).unwrap_or_else(|| panic!("{part}")))
        .collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(all.contains(" torsions<") && all.contains(", after "));
    let size = "A batch has up to 16384 residues, 262144 atoms, 1024 structures, ";
    assert!(all.contains("bucket 3: explicit graph") && all.contains(size));
    let number = |line: &str, name: &str| -> Option<f64> {
        let (_, rest) = line.split_once(&format!(" {name}=\""))?;
        rest.split('"').next()?.parse().ok()
    };
    for line in all.lines().filter(|line| line.starts_with("<rect")) {
        let right = number(line, "x").unwrap() + number(line, "width").unwrap();
        assert!(right <= 960.0, "{line}");
    }
    // Launches run one after the other.
    let line = graph(&["--features", "rg", "--mode", "stream"]);
    assert!(!line.contains(", after ") && !line.contains(">step 1<"));
    // One loop for usual batches and one for large structures.
    let none = [
        "graph",
        "--backend",
        "cpu",
        "--mode",
        "resident",
        "--bucket",
        "2",
    ];
    let errors = text(&tapeloop(none).output().unwrap().stderr);
    assert!(has_parts(&errors, "bucket 2 .. 0 to 1"), "{errors}");
    let wrong = tapeloop(["graph", "--format", "png"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        text(&wrong.stderr).contains("png"),
        "{}",
        text(&wrong.stderr)
    );
}

#[test]
fn the_graph_of_a_bucket_is_drawn_with_its_kernels_and_buffers() {
    let graph = |more: &[&str]| {
        let start = ["graph", "--backend", "cpu", "--features", "rg"];
        let output = tapeloop(start.iter().chain(more)).output().unwrap();
        (
            text(&output.stdout),
            text(&output.stderr),
            output.status.code(),
        )
    };
    let (dot, errors, code) = graph(&[]);
    assert_eq!((errors.as_str(), code), ("", Some(0)));
    assert!(
        dot.starts_with("digraph replay {\n") && dot.ends_with("}\n"),
        "{dot}"
    );
    for part in [
        "bucket 3 of 16384 residues, 262144 atoms, 1024 structures, ",
        "explicit graph",
        "upload header",
        "radius_of_gyration\\n",
        " KiB",
    ] {
        assert!(dot.contains(part), "{part:?} is not in {dot}");
    }
    let (smallest, _, _) = graph(&["--bucket", "0"]);
    assert!(smallest.contains("bucket 0 of 2048 residues"), "{smallest}");
    let (dot, errors, code) = graph(&["--bucket", "7"]);
    assert_eq!((dot.as_str(), code), ("", Some(2)));
    assert!(has_parts(&errors, "bucket 7 .. 0 to 4"), "{errors}");
}

#[test]
fn a_run_whose_batches_are_compared_writes_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, more: &[&str]| {
        let out = folder.path().join(name);
        let small = [
            "--set",
            "batch.residues=300",
            "-i",
            SAMPLES,
            "-o",
            str_of(&out),
        ];
        run_well(&[&small[..], more].concat());
        let record = record(&out);
        let count = |name: &str| record["counts"][name].as_u64().unwrap();
        (parts(&out), count("verified_batches"), count("batches"))
    };
    let (plain, none, _) = write("plain", &[]);
    assert_eq!(none, 0, "on a CPU a graph is the same calls");
    let (twice, all, batches) = write("twice", &["--set", "verify=1"]);
    assert!(batches > 3 && all == batches, "{all} of {batches}");
    assert!(twice == plain);
    let third = ["--set", "verify=3", "--slots", "1", "--mode", "stream"];
    let (third, compared, batches) = write("third", &third);
    assert_eq!(compared, batches / 3);
    assert!(third == plain);
}

#[test]
fn a_folder_shows_its_first_three_structures_and_what_to_type_next() {
    let shown = tapeloop([SAMPLES, "--features", "sasa"]).output().unwrap();
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    let (table, next) = (text(&shown.stdout), text(&shown.stderr));
    assert!(table.contains("1a1p") && !table.contains("1ubi"), "{table}");
    for words in [
        "first 3 structures",
        "tapeloop run",
        "samples -o out",
        "--format csv",
    ] {
        assert!(next.contains(words), "{next}");
    }
    let one = format!("{SAMPLES}/1ubi.pdb");
    let args = [&*one, "--features", "sasa", "--threads", "1", "-v"];
    let shown = tapeloop(args).output().unwrap();
    let next = text(&shown.stderr);
    assert!(shown.status.success() && !next.contains("first"), "{next}");
    assert!(next.contains("76 residues"), "the summary of -v: {next}");
}

#[test]
fn a_list_of_features_goes_on_after_a_space_unless_a_file_has_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out = str_of(&out);
    let args = [
        "-i",
        SAMPLES,
        "-o",
        out,
        "--dry-run",
        "--features",
        "phi, psi",
        "sasa",
    ];
    // `--dry-run` stands between the inputs and the names.
    let (output, code) = run(&args);
    assert_eq!(code, 0, "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(
        said.contains("features = [\"torsions\",\"sasa\"]"),
        "{said}"
    );
}
