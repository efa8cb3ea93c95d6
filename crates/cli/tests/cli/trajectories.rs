//! Trajectories as inputs. MDAnalysis wrote those of `tests/data/trajectories`.

use super::*;

const FRAMES: usize = 3;
const ATOMS: usize = 683;
const STEP_PS: usize = 2;

const TRAJECTORIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/trajectories");

fn trajectory(ending: &str) -> PathBuf {
    Path::new(TRAJECTORIES).join(format!("1ubi.{ending}"))
}

fn topology() -> PathBuf {
    Path::new(SAMPLES).join("1ubi.pdb")
}

/// The PDB file of a frame; see `tests/data/trajectories/README.md`.
fn pdb_of(frame: usize) -> String {
    let text = fs::read_to_string(topology()).unwrap();
    let mut atom = 0;
    let mut pdb = String::new();
    for line in text.lines() {
        if !line.starts_with("ATOM") && !line.starts_with("HETATM") {
            pdb += &format!("{line}\n");
            continue;
        }
        let shift = 10 * ((7 * atom + 3 * frame) % 5) + 1000 * frame;
        let moved = [30, 38, 46].map(|at| {
            let angstrom: f64 = line[at..at + 8].trim().parse().unwrap();
            let milli = (angstrom * 1000.0).round() as i64;
            let milli = (milli + 5).div_euclid(10) * 10 + shift as i64;
            format!("{:8.3}", milli as f64 / 1000.0)
        });
        pdb += &format!("{}{}{}\n", &line[..30], moved.concat(), &line[54..]);
        atom += 1;
    }
    pdb
}

/// The residues of a run, as lines of CSV.
fn residues(args: &[&str]) -> Vec<String> {
    let output = run_well(&[args, &["-o", "-", "--format", "csv"]].concat());
    text(&output.stdout).lines().map(str::to_owned).collect()
}

fn with_topology<'a>(input: &'a Path, topology: &'a Path) -> [&'a str; 3] {
    [str_of(input), "--topology", str_of(topology)]
}

#[test]
fn frames_have_the_values_of_pdb_files_with_their_coordinates() {
    let folder = tempfile::tempdir().unwrap();
    for frame in 0..FRAMES {
        let name = format!("1ubi-{frame:06}.pdb");
        fs::write(folder.path().join(name), pdb_of(frame)).unwrap();
    }
    let sheets = ["--set", "sheets=true"];
    let expected = residues(&[&[str_of(folder.path())][..], &sheets].concat());
    let without_source = |line: &String| line.split_once(',').unwrap().1.to_owned();
    for ending in ["xtc", "dcd"] {
        let (input, topology) = (trajectory(ending), topology());
        let args = with_topology(&input, &topology);
        let found = residues(&[&args[..], &sheets].concat());
        assert!(found[0].starts_with("source,structure,model,frame,time_ps,res_index"));
        assert!(found[1].starts_with(&format!("{}/1ubi-000000.{ending},", as_named(&input))));
        // The columns of the frame, and all others but the source.
        let (frames, others): (Vec<String>, Vec<String>) = found
            .iter()
            .map(|line| {
                let cells: Vec<&str> = line.split(',').collect();
                (
                    cells[3..5].join(","),
                    [&cells[1..3], &cells[5..]].concat().join(","),
                )
            })
            .unzip();
        let expected: Vec<String> = expected.iter().map(without_source).collect();
        assert!(others == expected, "{ending}");
        let rows = (found.len() - 1) / FRAMES;
        let numbers = (0..FRAMES).flat_map(|frame| vec![frame; rows]);
        for (found, frame) in frames[1..].iter().zip(numbers) {
            let (index, time) = found.split_once(',').unwrap();
            assert_eq!(index, frame.to_string());
            let time: f64 = time.parse().unwrap();
            assert!((time - (frame * STEP_PS) as f64).abs() < 1e-5, "{time}");
        }
    }
}

#[test]
fn a_condition_chooses_frames_and_times() {
    let (input, topology) = (trajectory("xtc"), topology());
    let args = with_topology(&input, &topology);
    let with = |condition: &str| residues(&[&args[..], &["--where", condition]].concat());
    let whole = residues(&args);
    let rows = (whole.len() - 1) / FRAMES;
    assert!(with("frame == 1")[1..] == whole[1 + rows..1 + 2 * rows]);
    assert!(with("time_ps < 4 and frame in (1, 2)")[1..] == whole[1 + rows..1 + 2 * rows]);
    // A structure file has neither.
    let file = str_of(&topology);
    let of_file =
        |condition: &str| residues(&[file, "--topology", file, "--where", condition]).len() - 1;
    assert_eq!([of_file("frame is null"), of_file("frame >= 0")], [rows, 0]);
    let (output, code) = run(&[file, "-o", "-", "--where", "time_ps > 1"]);
    assert_eq!(code, 2);
    let said = text(&output.stderr);
    assert!(
        said.contains("no column `time_ps`") && said.contains("`topology`"),
        "{said}"
    );
}

#[test]
fn the_number_of_threads_does_not_change_the_tables() {
    let folder = tempfile::tempdir().unwrap();
    let (input, topology) = (PathBuf::from(TRAJECTORIES), topology());
    let tables = |threads: &str| {
        let out = folder.path().join(threads);
        let args = with_topology(&input, &topology);
        run_well(&[&args[..], &["-o", str_of(&out), "--threads", threads]].concat());
        let counts = &record(&out)["counts"];
        assert_eq!(counts["structures"], 2 * FRAMES as u64, "{counts}");
        parts(&out)
    };
    assert!(tables("1") == tables("2"));
}

#[test]
fn frames_are_chosen_and_sharded() {
    let folder = tempfile::tempdir().unwrap();
    let (input, topology) = (trajectory("xtc"), topology());
    let args = with_topology(&input, &topology);
    let with = |more: &[&str]| residues(&[&args, more].concat());
    let whole = with(&[]);
    let rows = (whole.len() - 1) / FRAMES;
    assert!(with(&["--frames", "1:2"])[1..] == whole[1 + rows..1 + 2 * rows]);
    let ends = with(&["--frames", "::2"]);
    assert!(ends[1..1 + rows] == whole[1..1 + rows] && ends[1 + rows..] == whole[1 + 2 * rows..]);
    assert!(with(&["--shard", "2/3"])[1..] == whole[1 + rows..1 + 2 * rows]);
    // A run goes on only with the same topology.
    let (out, other) = (folder.path().join("out"), folder.path().join("other.pdb"));
    fs::write(&other, pdb_of(1)).unwrap();
    run_well(&[&args[..], &["-o", str_of(&out)]].concat());
    let resumed = ["-o", str_of(&out), "--resume"];
    let (output, code) = run(&[&with_topology(&input, &other)[..], &resumed].concat());
    assert_eq!(code, 2, "{}", text(&output.stderr));
}

/// The inputs that a run rejects, each with its line of `rejected.jsonl`, and the number of structures.
fn outcome(args: &[&str], out: &Path) -> (Vec<(String, String)>, u64) {
    run(&[args, &["-o", str_of(out), "--overwrite"]].concat());
    let text = |line: &serde_json::Value, key: &str| line[key].as_str().unwrap().to_owned();
    let of = |line: &serde_json::Value| (text(line, "source"), line.to_string());
    let structures = record(out)["counts"]["structures"].as_u64().unwrap();
    (rejected(out).iter().map(of).collect(), structures)
}

#[test]
fn a_trajectory_that_is_cut_short_keeps_the_frames_before() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    for ending in ["xtc", "dcd"] {
        let bytes = fs::read(trajectory(ending)).unwrap();
        let path = folder.path().join(format!("cut.{ending}"));
        fs::write(&path, &bytes[..bytes.len() - 10]).unwrap();
        let (rejected, structures) = outcome(&with_topology(&path, &topology()), &out);
        assert_eq!((rejected.len(), structures), (1, 2), "{rejected:?}");
        let (source, error) = &rejected[0];
        assert_eq!(source, str_of(&path));
        let end = bytes.len() - 10;
        assert!(
            error.contains("frame 2 at byte") && error.contains("cut short"),
            "{error}"
        );
        assert!(error.contains(&format!("{end}")), "{error}");
    }
}

#[test]
fn frames_that_do_not_fit_are_rejected_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let (xtc, dcd) = (trajectory("xtc"), trajectory("dcd"));
    // Without water there are fewer atoms.
    let protein = folder.path().join("protein.pdb");
    let is_protein = |line: &&str| !line.starts_with("HETATM");
    let text_of_protein: Vec<String> = pdb_of(0)
        .lines()
        .filter(is_protein)
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(&protein, text_of_protein.concat()).unwrap();
    for input in [&xtc, &dcd] {
        let (rejected, structures) = outcome(&with_topology(input, &protein), &out);
        assert_eq!((rejected.len(), structures), (1, 0));
        let error = &rejected[0].1;
        assert!(has_parts(error, "683 atoms .. 602"), "{error}");
        assert!(error.contains("topology"), "{error}");
    }
    // A molecule that crosses the border of its cell: the coordinates of a DCD file are plain.
    let mut bytes = fs::read(&dcd).unwrap();
    // Each frame has a record of the cell and three of coordinates.
    let frame = 56 + 3 * (8 + 4 * ATOMS);
    let x_of_second = bytes.len() - 2 * frame + 56 + 4;
    for atom in 0..100 {
        let at = x_of_second + 4 * atom;
        let x = f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) + 60.0;
        bytes[at..at + 4].copy_from_slice(&x.to_le_bytes());
    }
    let wrapped = folder.path().join("wrapped.dcd");
    fs::write(&wrapped, bytes).unwrap();
    let (rejected, structures) = outcome(&with_topology(&wrapped, &topology()), &out);
    assert_eq!((rejected.len(), structures), (1, 2), "{rejected:?}");
    let (source, error) = &rejected[0];
    assert!(
        source.ends_with("wrapped.dcd/wrapped-000001.dcd"),
        "{source}"
    );
    assert!(
        has_parts(error, "wrapped .. residue A 14 .. C-N"),
        "{error}"
    );
    let (rejected, _) = outcome(
        &[&with_topology(&xtc, &topology())[..], &["--frames", "7:"]].concat(),
        // The results of a run without any structure do not replace others.
        &folder.path().join("none"),
    );
    assert!(rejected[0].1.contains("3 frames"), "{rejected:?}");
    // Mistakes of the command line.
    let topology = topology();
    let args = with_topology(&xtc, &topology);
    for (more, said) in [
        (&["--models", "all"][..], "models"),
        (&["--set", "assembly=1"], "assembly"),
        (&["--frames", "x"], "\"x\""),
    ] {
        let (output, code) = run(&[&args[..], more].concat());
        let found = text(&output.stderr);
        assert!(code == 2 && found.contains(said), "{code}: {found}");
    }
    let (output, code) = run(&[str_of(&xtc), "--frames", "1:"]);
    assert!(code == 2 && text(&output.stderr).contains("`topology`"));
    let (output, _) = run(&[str_of(&xtc), "-o", "-", "--format", "csv"]);
    assert!(text(&output.stderr).contains("--topology"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_topology_from_a_pipe_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let digest = |out: &str, from: &Path| {
        let out = folder.path().join(out);
        let input = trajectory("xtc");
        let start = ["run", "--backend", "cpu", "-o", str_of(&out)];
        let mut command = tapeloop(start.iter().chain(&with_topology(&input, from)));
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // The program closes the pipe at once if it reads the file.
        let _ = std::io::Write::write_all(&mut pipe, &fs::read(topology()).unwrap());
        drop(pipe);
        assert!(child.wait().unwrap().success());
        let digest = &record(&out)["values_follow_from"]["tapeloop.topology_sha256"];
        digest.as_str().unwrap().to_owned()
    };
    let of_file = digest("file", &topology());
    assert_eq!(digest("pipe", Path::new("/dev/stdin")), of_file);
}

#[test]
fn a_trajectory_that_is_compressed_or_in_an_archive_is_rejected_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, out) = (folder.path().join("in"), folder.path().join("out"));
    fs::create_dir(&inputs).unwrap();
    let bytes = fs::read(trajectory("xtc")).unwrap();
    let members = ["md.xtc", "md.dcd.zst", "1ubi.pdb"].map(|name| {
        let bytes = if name.ends_with("pdb") {
            fs::read(topology()).unwrap()
        } else {
            bytes.clone()
        };
        (name.to_owned(), bytes)
    });
    fs::write(inputs.join("a.tar"), archives::tar_of(&members)).unwrap();
    fs::write(inputs.join("md.xtc.gz"), &bytes).unwrap();
    fs::write(inputs.join("md.dcd.zst"), &bytes).unwrap();
    let topology = topology();
    let (rejected, structures) = outcome(&with_topology(&inputs, &topology), &out);
    let names = [
        "a.tar/md.xtc",
        "a.tar/md.dcd.zst",
        "md.dcd.zst",
        "md.xtc.gz",
    ];
    assert_eq!((rejected.len(), structures), (names.len(), 1));
    for ((source, line), name) in rejected.iter().zip(names) {
        assert!(source.ends_with(name), "{source}");
        assert!(line.contains("unpack"), "{line}");
    }
    // Without a topology no trajectory is an input.
    let (rejected, structures) = outcome(&[str_of(&inputs)], &out);
    assert_eq!((rejected.len(), structures), (0, 1));
}
