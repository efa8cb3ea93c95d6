//! The scripts that make a release, as far as they work without building one.

use super::*;

fn script(name: &str, args: &[&str]) -> (Output, i32) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("scripts")
        .join(name);
    let output = Command::new("sh").arg(path).args(args).output().unwrap();
    let code = output.status.code().expect("not killed by a signal");
    (output, code)
}

#[test]
fn a_program_that_starts_only_on_new_distributions_is_not_packed() {
    if Command::new("readelf").arg("--version").output().is_err() {
        println!("skipped: there is no readelf");
        return;
    }
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
