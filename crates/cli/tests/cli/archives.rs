//! Archives as inputs.

use super::makers::{TarMaker, ZipMaker};
use super::*;
use rawzip::CompressionMethod;

/// The names and bytes of the sample structures, sorted by name.
fn samples() -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(SAMPLES)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<(String, Vec<u8>)> = files
        .filter(|path| path.extension().is_none_or(|ending| ending != "md"))
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

pub(super) fn tar_of(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let add = |maker: TarMaker, (name, bytes): &(String, Vec<u8>)| maker.file(name, bytes);
    files.iter().fold(TarMaker::default(), add).finish()
}

fn zip_of(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let maker = ZipMaker::new(CompressionMethod::STORE);
    let add = |maker: ZipMaker, (name, bytes): &(String, Vec<u8>)| maker.file(name, bytes);
    files.iter().fold(maker, add).finish()
}

/// The residues of a run, as lines of CSV without the first column, which is the source.
fn residues(output: &Output) -> Vec<String> {
    let text = text(&output.stdout);
    let lines = text.lines().map(|line| line.split_once(',').unwrap().1);
    lines.map(str::to_owned).collect()
}

/// One feature, as all of them would take most of the time.
const TO_STDOUT: [&str; 6] = ["-o", "-", "--format", "csv", "--features", "b_factor"];

fn residues_of(args: &[&str]) -> Vec<String> {
    residues(&run_well(&[args, &TO_STDOUT].concat()))
}

/// The arguments of a run over standard input.
const FROM_STDIN: [&str; 4] = ["run", "--backend", "cpu", "-"];

#[test]
fn a_pipe_with_more_text_than_the_limit_is_refused_without_a_wrong_size() {
    let (_, bytes) = samples().swap_remove(0);
    let limit = ["--set", "limits.text_bytes_max=1000"];
    let args = FROM_STDIN.iter().chain(&TO_STDOUT).chain(&limit);
    // The program ends before it has read all.
    let (output, _) = run_piped(args, bytes);
    let message = text(&output.stderr);
    assert!(
        message.contains("has over 1000 bytes of text: limits.text_bytes_max is 1000"),
        "{message}"
    );
}

#[test]
fn an_archive_has_the_residues_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let expected = residues_of(&[SAMPLES]);
    assert!(expected.len() > 3000);
    let files = samples();
    let tar = tar_of(&files);
    let archives = [
        ("set.tar", tar.clone()),
        ("set.tar.zst", zstd::encode_all(&tar[..], 3).unwrap()),
        ("set.zip", zip_of(&files)),
    ];
    for (name, bytes) in &archives {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        assert!(residues_of(&[str_of(&path)]) == expected, "{name}");
    }
    // A tar archive is also read from a pipe, plain and compressed.
    for (name, bytes) in &archives[..2] {
        let args = FROM_STDIN.iter().chain(&TO_STDOUT);
        let (output, written) = run_piped(args, bytes.as_slice());
        written.unwrap();
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        assert!(residues(&output) == expected, "{name}");
    }
    // A folder may hold files and archives.
    let mixed = folder.path().join("mixed");
    fs::create_dir(&mixed).unwrap();
    let (first, rest) = files.split_first().unwrap();
    fs::write(mixed.join(&first.0), &first.1).unwrap();
    fs::write(mixed.join("rest.tar"), tar_of(rest)).unwrap();
    assert!(residues_of(&[str_of(&mixed)]) == expected);
}

#[test]
fn shards_of_files_and_archives_together_are_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let tar = folder.path().join("set.tar");
    fs::write(&tar, tar_of(&samples())).unwrap();
    let mut whole = residues_of(&[SAMPLES]);
    whole.sort();
    for input in [SAMPLES, str_of(&tar)] {
        let mut shards: Vec<String> = Vec::new();
        for shard in ["1/3", "2/3", "3/3"] {
            let part = residues_of(&[input, "--shard", shard]);
            assert!(part.len() > 1);
            let is_first = shards.is_empty();
            shards.extend(part.into_iter().skip(usize::from(!is_first)));
        }
        shards.sort();
        assert!(shards == whole, "{input}");
    }
    let (output, code) = run(&[SAMPLES, "--shard", "4/3"]);
    assert_eq!(code, 2);
    let said = text(&output.stderr);
    assert!(said.contains("--shard") && said.contains("3/16"), "{said}");
}

#[test]
fn members_are_chosen_counted_and_rejected_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] =
        ["1ubi.pdb", "1yjp.cif"].map(|name| fs::read(Path::new(SAMPLES).join(name)).unwrap());
    let tar = folder.path().join("set.tar");
    let file = |name: &str, bytes: &[u8]| (name.to_owned(), bytes.to_vec());
    let files = [
        file("a/x.pdb", &one),
        file("a/x.cif", &two),
        file("a/x.json", b"{}"),
        file("../up.pdb", &one),
        file("broken.pdb", b"junk"),
    ];
    fs::write(&tar, tar_of(&files)).unwrap();
    let out = folder.path().join("out");
    let (output, code) = run(&[str_of(&tar), "-o", str_of(&out), "-v"]);
    assert_eq!(code, 3);
    let said = text(&output.stderr);
    assert!(said.contains("skipped files"), "{said}");
    assert!(said.contains("earlier member"), "{said}");
    let counts = &record(&out)["counts"];
    assert_eq!(counts["structures"], 2, "{counts}");
    assert_eq!(counts["others_skipped"], 1);
    assert_eq!(counts["names_repeated"], 1);
    let rejected = rejected(&out);
    let sources: Vec<&str> = rejected
        .iter()
        .map(|it| it["source"].as_str().unwrap())
        .collect();
    assert!(sources[0].ends_with("set.tar/../up.pdb"), "{sources:?}");
    assert!(sources[1].ends_with("set.tar/broken.pdb"), "{sources:?}");
    let chosen = residues_of(&[str_of(&tar), "--members", "x.c*"]);
    let alone = residues_of(&[&format!("{SAMPLES}/1yjp.cif")]);
    assert_eq!(chosen.len(), alone.len());
}

#[test]
fn an_archive_where_none_is_read_is_named_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner.tar");
    fs::write(&inner, tar_of(&samples()[..1])).unwrap();
    let outer = folder.path().join("outer.zip");
    let files = [("inner.tar".to_owned(), fs::read(&inner).unwrap())];
    fs::write(&outer, zip_of(&files)).unwrap();
    let (output, code) = run(&[str_of(&outer), "--members", "*.tar", "-o", "-"]);
    assert_eq!(code, 1);
    let said = text(&output.stderr);
    assert!(said.contains("an archive"), "{said}");
    let out = folder.path().join("painted");
    let args = [
        "paint",
        str_of(&inner),
        "rsa",
        "-o",
        str_of(&out),
        "--backend",
        "cpu",
    ];
    let said = text(&tapeloop(args).output().unwrap().stderr);
    assert!(said.contains("an archive"), "{said}");
}
