//! Structures that are larger than any batch, which run alone.

use super::*;

const SMALL: [&str; 4] = [
    "--set",
    "batch.residues=16",
    "--set",
    "batch.residues_max=16",
];

#[test]
fn structures_that_ran_alone_are_counted_between_others() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let junk = folder.path().join("junk.pdb");
    fs::write(&junk, "junk").unwrap();
    let ubiquitin = format!("{SAMPLES}/1ubi.pdb");
    let small = folder.path().join("small.pdb");
    let lines = fs::read_to_string(&ubiquitin).unwrap();
    let first = lines
        .lines()
        .filter(|line| line.starts_with("ATOM"))
        .take(60);
    fs::write(
        &small,
        first.map(|line| format!("{line}\n")).collect::<String>(),
    )
    .unwrap();
    let copies = folder.path().join("copies");
    let large_copy = copy_of("1ubi.pdb", &copies);
    let small_copy = copies.join("small.pdb");
    fs::copy(&small, &small_copy).unwrap();
    let inputs = [
        str_of(&small),
        &ubiquitin,
        str_of(&junk),
        str_of(&small_copy),
        str_of(&large_copy),
    ];
    let args = [
        &inputs[..],
        &["-o", str_of(&out), "-v", "--format", "csv"],
        &SMALL,
    ]
    .concat();
    let (output, code) = run(&args);
    let said = text(&output.stderr);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("which ran alone: 2\n"), "{said}");
    let counts = &record(&out)["counts"];
    assert_eq!(
        (&counts["structures"], &counts["alone"]),
        (&4.into(), &2.into())
    );
    let mut sources = formats::texts(&out.join("structures/part-00000.csv"), "structure");
    assert_eq!(sources, ["small", "1ubi", "small", "1ubi"]);
    sources = formats::texts(&out.join("residues/part-00000.csv"), "structure");
    sources.dedup();
    assert_eq!(sources, ["small", "1ubi", "small", "1ubi"]);
}

#[test]
fn a_structure_of_few_residues_and_many_atoms_runs_alone() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.pdb");
    let sample = fs::read_to_string(format!("{SAMPLES}/1ubi.pdb")).unwrap();
    let protein = sample
        .lines()
        .filter(|line| line.starts_with("ATOM"))
        .take(8);
    let mut text: String = protein.map(|line| format!("{line}\n")).collect();
    for number in 0..300 {
        let (residue, x) = (number + 1, number * 3);
        let atom = number + 100;
        text += &format!(
            "ATOM  {atom:5}  P     A B{residue:4}    {x:8.3}  20.000  20.000  1.00  5.00           P\n"
        );
    }
    fs::write(&input, text + "END\n").unwrap();
    let run_into = |name: &str, more: &[&str]| {
        let out = folder.path().join(name);
        run_well(&[&[str_of(&input), "-o", str_of(&out)], more].concat());
        (parts(&out), record(&out)["counts"].clone())
    };
    let (whole, _) = run_into("whole", &[]);
    let (alone, counts) = run_into("alone", &SMALL);
    assert!(whole == alone);
    assert_eq!(
        (&counts["residues"], &counts["alone"]),
        (&1.into(), &1.into())
    );
    assert_eq!(counts["atoms"], 308);
    // Points of atoms that are of no residue take room for pairs.
    let depth = [
        "--features",
        "residue_depth",
        "--set",
        "residue_depth.chains=all",
    ];
    let (whole, _) = run_into("whole depth", &depth);
    let (alone, counts) = run_into("alone depth", &[&depth[..], &SMALL].concat());
    assert!(whole == alone);
    assert_eq!(counts["alone"], 1);
}

#[test]
fn paint_paints_structures_that_are_larger_than_a_batch() {
    let folder = tempfile::tempdir().unwrap();
    let paint = |name: &str, more: &[&str]| {
        let out = folder.path().join(name);
        let sample = format!("{SAMPLES}/1ubi.pdb");
        let args = [
            "paint",
            &sample,
            "sasa",
            "-o",
            str_of(&out),
            "--backend",
            "cpu",
        ];
        let output = tapeloop([&args[..], more].concat()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        fs::read(out).unwrap()
    };
    assert!(paint("whole.pdb", &[]) == paint("alone.pdb", &SMALL));
}

#[test]
fn a_dry_run_states_the_memory_of_a_structure_that_runs_alone() {
    let plan = |more: &[&str]| {
        let args = [SAMPLES, "--dry-run", "--features", "rg"];
        text(&run_well(&[&args[..], more].concat()).stdout)
    };
    let said = plan(&[]);
    let line = "32,768 residues .. runs alone .. up to ";
    assert!(has_parts(&said, line), "{said}");
    let said = plan(&["--set", "limits.structure_residues_max=1000"]);
    assert!(!said.contains("runs alone"), "{said}");
    assert!(
        said.contains("\nbatch.residues = 1000\nbatch.residues_max = 1000\n"),
        "{said}"
    );
}

/// The worker processes of the batches and of the large structures.
#[cfg(target_os = "linux")]
#[test]
fn a_worker_process_computes_large_structures_in_a_supervised_run() {
    let folder = tempfile::tempdir().unwrap();
    let sample = format!("{SAMPLES}/1ubi.pdb");
    let copy = copy_of("1ubi.pdb", folder.path());
    let run_into = |name: &str, more: &[&str]| {
        let out = folder.path().join(name);
        let args = [&sample, str_of(&copy), "-o", str_of(&out)];
        let (output, code) = run(&[&args[..], more].concat());
        (out, code, text(&output.stderr))
    };
    let supervised = [&SMALL[..], &["--set", "supervise=true"]].concat();
    let (whole, _, _) = run_into("whole", &[]);
    let (alone, code, said) = run_into("alone", &supervised);
    assert_eq!(code, 0, "{said}");
    assert!(parts(&whole) == parts(&alone));
    assert_eq!(record(&alone)["counts"]["alone"], 2);
    // One after the other of another size, as a pipeline has its worker to itself.
    let larger = format!("{SAMPLES}/1hvr.pdb.gz");
    let sizes = [&sample, &larger, str_of(&copy)];
    let of_sizes = |name: &str, more: &[&str]| {
        let out = folder.path().join(name);
        let (output, code) = run(&[&sizes[..], &["-o", str_of(&out)], more].concat());
        assert_eq!(code, 0, "{}", text(&output.stderr));
        parts(&out)
    };
    assert!(of_sizes("sizes", &[]) == of_sizes("sizes alone", &supervised));
    // The largest sample takes far longer than a millisecond on any machine, and the deadline is a
    // supervised device's on the CPU.
    let huge = format!("{SAMPLES}/6wg6.cif.gz");
    let huge_copy = copy_of("6wg6.cif.gz", folder.path());
    let late = folder.path().join("late");
    let args = [&huge, str_of(&huge_copy), "-o", str_of(&late)];
    let points = ["--features", "sasa", "--set", "sasa.points=1024"];
    let deadline = ["--set", "batch.deadline_ms=1"];
    let (output, code) = run(&[&args[..], &supervised, &points, &deadline].concat());
    assert_eq!(code, 1, "{}", text(&output.stderr));
    let rejected = rejected(&late);
    assert_eq!(rejected.len(), 2);
    let reason = rejected[0]["reason"].as_str().unwrap();
    assert!(reason.contains("lost twice"), "{reason}");
    let counts = &record(&late)["counts"];
    assert!(counts["restarts"].as_u64().unwrap() >= 4, "{counts}");
    assert_eq!(counts["quarantined"], 2);
}
