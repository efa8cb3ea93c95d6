//! The scripts that make a release, as far as they work without building one.

use super::*;

fn script(name: &str, args: &[&str]) -> (Output, i32) {
    let path = Path::new(ROOT).join("scripts").join(name);
    let output = Command::new("sh").arg(path).args(args).output().unwrap();
    let code = output.status.code().expect("not killed by a signal");
    (output, code)
}

#[test]
#[ignore = "needs readelf"]
fn a_program_that_starts_only_on_new_distributions_is_not_packed() {
    // The tests' program is linked to the libraries of this machine.
    let program = env!("CARGO_BIN_EXE_tapeloop");
    let (output, code) = script("check_glibc.sh", &[program, "2.0"]);
    let said = text(&output.stderr);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("may need 2.0 at most"), "{said}");
    let (output, code) = script("check_glibc.sh", &[program, "99.0"]);
    let said = text(&output.stderr);
    assert!(code == 0 || said.contains("needs lib"), "{said}");

    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    fs::write(&empty, "").unwrap();
    let release = folder.path().join("release");
    let args = [str_of(&release), "x86_64", str_of(&empty)];
    let (output, code) = script("build_release.sh", &args);
    assert_eq!(code, 1, "{}", text(&output.stdout));
    assert_eq!(fs::read_dir(&release).unwrap().count(), 0);
}

#[test]
fn the_script_for_releases_describes_itself_and_names_the_architectures() {
    let (output, code) = script("build_release.sh", &[]);
    assert_eq!(code, 2);
    let said = text(&output.stdout);
    assert!(said.contains("build_release.sh FOLDER"), "{said}");
    assert!(said.ends_with("libc6-arm64-cross).\n"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let (output, code) = script("build_release.sh", &[str_of(folder.path()), "sparc"]);
    assert_eq!(code, 2);
    let said = text(&output.stderr);
    assert!(said.contains("x86_64 and aarch64"), "{said}");
}

#[test]
fn the_wheel_and_the_archive_hold_the_same_build_of_the_program() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    // Programs in place of cargo and the tools, which only note what is asked of them.
    let tools = folder.path().join("release-tools");
    let note = "#!/bin/sh\necho \"$TAPELOOP_COMMIT $*\" >> \"$CARGO_TARGET_DIR/builds\"\nexit 1\n";
    for name in [
        "zig/bin/cargo",
        "zig/bin/cargo-zigbuild",
        "wheel/bin/maturin",
    ] {
        let path = tools.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, note).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    for name in ["build_release.sh", "build_wheel.sh"] {
        let mut script = Command::new("sh");
        script.arg(Path::new(ROOT).join("scripts").join(name));
        script.arg(folder.path().join("release")).arg("x86_64");
        script.env(
            "PATH",
            format!("{}:{path}", tools.join("zig/bin").display()),
        );
        script.env("CARGO_TARGET_DIR", folder.path());
        script.env("NVCC", "none").env_remove("TAPELOOP_COMMIT");
        assert_eq!(script.output().unwrap().status.code(), Some(1));
    }
    let builds = fs::read_to_string(folder.path().join("builds")).unwrap();
    let builds: Vec<&str> = builds.lines().collect();
    assert_eq!(builds.len(), 2, "{builds:?}");
    assert!(builds[0].contains("zigbuild"), "{builds:?}");
    assert_eq!(builds[0], builds[1]);
}

#[test]
fn the_rehearsal_of_a_release_says_what_it_could_not_run_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let release = folder.path().join("release");
    fs::create_dir(&release).unwrap();
    // A machine without debootstrap.
    let tools = folder.path().join("bin");
    fs::create_dir(&tools).unwrap();
    for tool in
        "awk bash cat cp dirname grep head id mkdir mktemp realpath rm sed tail uname".split(' ')
    {
        let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
        let found = found.iter().find(|path| path.exists()).expect(tool);
        std::os::unix::fs::symlink(found, tools.join(tool)).unwrap();
    }
    let rehearse = |args: &[&str]| {
        let script = Path::new(ROOT).join("scripts/rehearse_release.sh");
        let mut command = Command::new(tools.join("bash"));
        let command = command.arg(script).args(args).env("PATH", &tools);
        let output = command.output().unwrap();
        let said = text(&output.stdout) + &text(&output.stderr);
        (said, output.status.code())
    };
    let (said, code) = rehearse(&["--help"]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("scripts/rehearse_release.sh --install FOLDER"),
        "{said}"
    );
    assert!(said.ends_with("binfmt-support).\n"), "{said}");
    assert_eq!(rehearse(&["--install", "folder", "sparc"]).1, Some(2));

    let args = ["--install", str_of(&release), "x86_64"];
    let (said, code) = rehearse(&args);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("_x86_64.whl: missing"), "{said}");
    for (name, ending) in [
        ("pytapeloop-1-abi3-manylinux", "_x86_64.whl"),
        ("tapeloop-1", "-x86_64-linux.tar.gz"),
        ("tapeloop_1", "_amd64.deb"),
    ] {
        fs::write(release.join(format!("{name}{ending}")), "").unwrap();
    }
    let (said, code) = rehearse(&args);
    assert_eq!(code, Some(3), "{said}");
    let why = ["needs root", "debootstrap is missing"];
    let why = why.iter().filter(|why| said.contains(**why));
    assert_eq!(why.count(), 1, "{said}");
    assert!(said.contains("the installations: "), "{said}");
}

/// The files that `scripts/write_addresses.py` reads and writes.
const FILES_WITH_ADDRESSES: &[&str] = &[
    "CITATION.cff",
    "Cargo.toml",
    "README.md",
    "addresses.toml",
    "python/pyproject.toml",
];

/// Runs the script of the addresses over the files of a folder.
fn write_addresses(root: &Path, args: &[&str]) -> (String, i32) {
    let script = root.join("scripts/write_addresses.py");
    let output = Command::new("python3").arg(script).args(args).output();
    let output = output.unwrap();
    let code = output.status.code().expect("not killed by a signal");
    (text(&output.stdout) + &text(&output.stderr), code)
}

#[test]
#[ignore = "needs Python"]
fn the_addresses_that_a_maintainer_fills_in_are_those_of_all_files() {
    let root = Path::new(ROOT);
    let (said, code) = write_addresses(root, &["--check"]);
    assert_eq!(code, 0, "{said}");

    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in ["python", "scripts"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    for name in FILES_WITH_ADDRESSES
        .iter()
        .chain(&["scripts/write_addresses.py"])
    {
        fs::copy(root.join(name), folder.join(name)).unwrap();
    }
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let fill_in = |page: &str| {
        let mut lines = String::new();
        for key in ["repository", "homepage", "issues", "clone"] {
            let address = match page {
                "" => String::new(),
                _ => format!("https://{page}.example/{key}"),
            };
            lines += &format!("{key} = \"{address}\"\n");
        }
        fs::write(folder.join("addresses.toml"), lines).unwrap();
    };

    fill_in("first");
    let (said, code) = write_addresses(folder, &["--check"]);
    assert_eq!(code, 1);
    for name in [
        "CITATION.cff",
        "Cargo.toml",
        "README.md",
        "python/pyproject.toml",
    ] {
        assert!(said.contains(&format!("{name}: ")), "{said}");
    }
    let (said, code) = write_addresses(folder, &[]);
    assert_eq!(code, 0, "{said}");
    // Later addresses take the place of the first ones.
    fill_in("second");
    assert_eq!(write_addresses(folder, &[]).1, 0);
    assert_eq!(write_addresses(folder, &["--check"]).1, 0);
    let address = |key: &str| format!("https://second.example/{key}");
    let cargo: toml::Table = toml::from_str(&read("Cargo.toml")).unwrap();
    for key in ["repository", "homepage"] {
        assert_eq!(cargo["package"][key].as_str(), Some(&*address(key)));
    }
    let project: toml::Table = toml::from_str(&read("python/pyproject.toml")).unwrap();
    let urls = &project["project"]["urls"];
    for key in ["Repository", "Homepage", "Issues"] {
        assert_eq!(urls[key].as_str(), Some(&*address(&key.to_lowercase())));
    }
    assert!(
        project["project"]["optional-dependencies"]
            .get("ray")
            .is_some()
    );
    let readme = read("README.md");
    assert!(readme.contains(&format!("git clone {} tapeloop", address("clone"))));
    for key in ["repository", "homepage", "issues"] {
        assert!(readme.contains(&format!("]({})", address(key))), "{key}");
    }
    let citation = read("CITATION.cff");
    assert!(citation.contains(&format!(
        "\nrepository-code: \"{}\"\n",
        address("repository")
    )));
    assert!(citation.contains(&format!("\nurl: \"{}\"\n", address("homepage"))));

    // Without addresses no file has one.
    fill_in("");
    assert_eq!(write_addresses(folder, &[]).1, 0);
    for name in FILES_WITH_ADDRESSES {
        assert!(!read(name).contains("second.example"), "{name}");
    }
}
