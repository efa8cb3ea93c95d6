//! No file installs this project by its name from a package registry, which lacks it or has another
//! project of that name, or names a file of a release, as there is none to fetch.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program, the Python package and their crates.
const NAMES: &[&str] = &[
    "tapeloop",
    "pytapeloop",
    "tapeloop-engine",
    "tapeloop-python",
    "tapeloop-structure",
];

/// What installs or fetches the packages that are named after it.
const INSTALLERS: &[&str] = &[
    "apt install",
    "apt-get install",
    "brew install",
    "cargo add",
    "cargo binstall",
    "cargo install",
    "conda install",
    "mamba install",
    "micromamba install",
    "pip download",
    "dnf install",
    "pdm add",
    "pip install",
    "pipx install",
    "pipx run",
    "pixi add",
    "poetry add",
    "uv add",
    "uv tool install",
    "uvx",
];

/// The endings of a release's files.
const RELEASE_FILES: &[&str] = &[".deb", ".tar.gz", ".whl"];

/// Returns the words of a line, without quotes, commas and other marks between them, so that the
/// arguments in `["pip", "install", "x"]` and `!pip install x` are those in `pip install x`.
fn words(line: &str) -> Vec<&str> {
    let is_between = |c: char| c.is_whitespace() || "\"',!%(*".contains(c);
    let words = line.split(is_between);
    words.filter(|word| !word.is_empty()).collect()
}

/// Whether the word is a name alone, or with extras or a version.
fn is_bare_name(word: &str) -> bool {
    let word = word.trim_end_matches(['.', ':']);
    NAMES.iter().any(|name| {
        let rest = word.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(|c| "[=<>~!@\\".contains(c)))
    })
}

/// Whether these words end with a command that installs what follows.
fn installs(words: &[&str]) -> bool {
    INSTALLERS.iter().any(|installer| {
        let parts: Vec<&str> = installer.split(' ').collect();
        let Some(start) = words.len().checked_sub(parts.len()) else {
            return false;
        };
        // `pip3.11` is `pip`, and `>pip` starts a quote.
        let is_part = |(word, part): (&&str, &&str)| {
            let word = word.trim_start_matches('>');
            let rest = word.strip_prefix(part);
            rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
        };
        words[start..].iter().zip(&parts).all(is_part)
    })
}

/// Whether a command in the text installs this project by its name.
fn installs_by_name(text: &str) -> bool {
    let ends = |c: char| "`&|#;)".contains(c);
    text.split(ends).any(|command| {
        let words = words(command);
        let has_source = words.iter().any(|word| ["--path", "--git"].contains(word));
        let installs = |at: usize| installs(&words[..at]);
        let arguments = (1..words.len())
            .find(|&at| installs(at))
            .unwrap_or(words.len());
        !has_source && words[arguments..].iter().any(|word| is_bare_name(word))
    })
}

/// Whether the line names the package with an extra, as only a registry's is named.
fn names_extra(line: &str) -> bool {
    let mut rests = line.split("tapeloop[").skip(1);
    rests.any(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// Whether the line is a dependency of Cargo that would be fetched by its name.
fn depends_by_name(line: &str) -> bool {
    let Some((name, value)) = line.split_once('=') else {
        return false;
    };
    let value = value.trim();
    let is_version = |c: char| c.is_ascii_digit() || c == '*';
    let is_version = value.starts_with(['"', '{']) && value.contains(is_version);
    let name = name.trim();
    let is_named = name == "pytapeloop" || name == "tapeloop" || name.starts_with("tapeloop-");
    is_named && is_version && !value.contains("path =") && !value.contains("git =")
}

/// Whether the line names a file of a release, with its version.
fn names_release_file(line: &str) -> bool {
    let is_between = |c: char| !c.is_alphanumeric() && !"-_.".contains(c);
    line.split(is_between).any(|word| {
        let rest = NAMES.iter().find_map(|name| word.strip_prefix(name));
        let has_version = rest.is_some_and(|rest| {
            let version = rest.strip_prefix(['-', '_']);
            version.is_some_and(|it| it.starts_with(|c: char| c.is_ascii_digit()))
        });
        let word = word.trim_end_matches('.');
        has_version && RELEASE_FILES.iter().any(|ending| word.ends_with(ending))
    })
}

/// Returns the numbers of the lines that are wrong.
fn wrong_lines(text: &str) -> Vec<usize> {
    let mut wrong = Vec::new();
    let mut command = String::new();
    let mut lines = (1..).zip(text.lines()).peekable();
    while let Some((number, line)) = lines.next() {
        command += line.strip_suffix('\\').unwrap_or(line);
        // A command may go on in the next line.
        let goes_on = line.ends_with('\\') || installs(&words(&line.replace('`', " ")));
        if goes_on && lines.peek().is_some() {
            command.push(' ');
            continue;
        }
        let checks = [
            installs_by_name,
            names_extra,
            depends_by_name,
            names_release_file,
        ];
        if command.contains("tapeloop") && checks.iter().any(|is_wrong| is_wrong(&command)) {
            wrong.push(number);
        }
        command.clear();
    }
    wrong
}

/// The files that git tracks.
fn tracked_files(root: &Path) -> Vec<PathBuf> {
    let mut git = Command::new("git");
    let listed = git.args(["ls-files", "-z"]).current_dir(root).output();
    let names = String::from_utf8(listed.unwrap().stdout).unwrap();
    assert!(names.contains("Cargo.toml"), "git tracks these sources");
    names.split_terminator('\0').map(PathBuf::from).collect()
}

/// Far above the largest sample, and below a program that was added by mistake.
const FILE_BYTES_MAX: u64 = 4 << 20;

#[test]
#[ignore = "needs git and a clone"]
fn no_tracked_file_is_a_product_of_the_build() {
    let root = Path::new(super::ROOT);
    for name in tracked_files(root) {
        let bytes = fs::metadata(root.join(&name)).map_or(0, |found| found.len());
        assert!(
            bytes <= FILE_BYTES_MAX,
            "{} has {bytes} bytes",
            name.display()
        );
    }
}

#[test]
#[ignore = "needs git and a clone"]
fn nothing_is_installed_by_a_name_that_is_not_published() {
    let root = Path::new(super::ROOT);
    let mut wrong = Vec::new();
    for name in tracked_files(root) {
        // Other files are binary, or deleted.
        let Ok(text) = fs::read_to_string(root.join(&name)) else {
            continue;
        };
        let lines = wrong_lines(&text);
        wrong.extend(
            lines
                .iter()
                .map(|line| format!("{}:{line}", name.display())),
        );
    }
    assert!(
        wrong.is_empty(),
        "these lines install what is not published, or name a file of a release:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn the_scan_finds_lines_that_install_by_name() {
    // NAME and PY stand for the names, so that the scan finds nothing in this file.
    let text = |line: &str| line.replace("PY", "pytapeloop").replace("NAME", "tapeloop");
    for wrong in [
        "pip install PY",
        "pip install -U NAME",
        "It needs `pip install NAME pandas` and no GPU.",
        "python3 -m pip install --quiet 'PY[ray]'",
        "pip install numpy \\\n  PY==0.1.0",
        "subprocess.run([\"pip\", \"install\", \"PY\"])",
        "    \"pip install PY\\n\",",
        "uv pip install PY.",
        "!pip install PY",
        ">pip3.11 install PY",
        "(pip install PY)",
        "It needs `pip install\nPY`.",
        "pip install PY \\",
        "PY = \"*\"",
        "NAME=\"0.1\"",
        "uvx PY --help",
        "The extra `PY[ray]` installs Ray.",
        "conda install -c conda-forge NAME",
        "cargo install NAME",
        "cargo install --locked NAME@0.1.0 && NAME run",
        "`cargo add NAME --no-default-features`",
        "NAME = \"0.1\"",
        "NAME = { version = \"0.1\", features = [\"cuda\"] }",
        "tar -xzf NAME-0.1.0-x86_64-linux.tar.gz",
        "apt install ./NAME_0.1.0_amd64.deb",
        "pip install PY-0.1.0-cp310-abi3-manylinux_2_28_x86_64.whl.",
    ] {
        assert_eq!(wrong_lines(&text(wrong)).len(), 1, "{wrong}");
    }
    for right in [
        "pip install wheels/PY-*.whl 'ray[data]'",
        "pip install \"$wheel[ray]\"    # PY",
        "pip uninstall NAME",
        "pip install pandas && NAME run samples",
        "pip install nvidia-cuda-nvrtc) or build NAME with nvcc",
        "`cargo install --path crates/cli` installs NAME",
        "cargo add NAME --path ../NAME",
        "NAME = { path = \"../NAME\", features = [\"cuda-12040\"] }",
        "tar -xzf release/NAME-*-linux.tar.gz",
        "the package NAME on PyPI",
    ] {
        assert!(wrong_lines(&text(right)).is_empty(), "{right}");
    }
}
