//! Kernels of the user's own: `[[kernel]]` and `tapeloop kernel new`.

use super::*;

fn new_in(folder: &Path) -> (PathBuf, PathBuf) {
    let path = folder.join("near");
    let made = tapeloop(["kernel", "new", str_of(&path)]).output().unwrap();
    let text = text(&made.stdout);
    assert!(
        text.contains("near.cu") && text.contains("near.toml"),
        "{text}"
    );
    (path.with_extension("cu"), path.with_extension("toml"))
}

fn fails(args: &[&str], parts: &[&str]) {
    let output = tapeloop(args).output().unwrap();
    let said = text(&output.stderr);
    assert!(!output.status.success(), "{args:?}");
    for part in parts {
        assert!(has_parts(&said, part), "{said:?} lacks {part:?}");
    }
}

#[test]
fn what_kernel_new_writes_is_refused_without_a_gpu_or_trust() {
    let folder = tempfile::tempdir().unwrap();
    let (text, config) = new_in(folder.path());
    let again = folder.path().join("near");
    fails(
        &["kernel", "new", str_of(&again)],
        &["near.cu", "exists", "name"],
    );
    let half = folder.path().join("half");
    fs::write(half.with_extension("toml"), "").unwrap();
    fails(
        &["kernel", "new", str_of(&half)],
        &["half.toml", "exists", "name"],
    );
    assert!(!half.with_extension("cu").exists(), "of no use alone");
    for name in ["8-near", "int"] {
        let named = folder.path().join(name);
        let refused = ["name of a function", "no word of CUDA"];
        fails(&["kernel", "new", str_of(&named)], &refused);
    }

    let sample = format!("{SAMPLES}/1ubi.pdb");
    let out = folder.path().join("out");
    let run = ["run", str_of(&config), &sample, "-o", str_of(&out)];
    fails(&run, &["near.toml:4: .. `kernel`", "--trust-config"]);
    let trusted = [&run[..], &["--trust-config", "--set", "backend=cpu"]].concat();
    let reason = ["`kernel`: near of ", "near.cu .. GPU"];
    fails(&trusted, &reason);
    assert!(!out.exists());

    let dry = [&trusted[..], &["--dry-run"]].concat();
    fails(&dry, &reason);
    fs::write(
        &text,
        "extern \"C\" __global__ void near(const float* far, float* y) {}",
    )
    .unwrap();
    fails(&trusted, &["near.cu", "kernel near, parameter far"]);
    fs::remove_file(&text).unwrap();
    fails(&trusted, &["near.cu", "near.cu"]);
}

#[test]
fn tables_of_kernels_with_mistakes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (text, _) = new_in(folder.path());
    let config = folder.path().join("own.toml");
    let sample = format!("{SAMPLES}/1ubi.pdb");
    let check = |table: &str, part: &str| {
        fs::write(&config, format!("[[kernel]]\n{table}\n")).unwrap();
        let out = folder.path().join("out");
        let run = [
            "run",
            str_of(&config),
            &sample,
            "-o",
            str_of(&out),
            "--trust-config",
        ];
        fails(&run, &["own.toml:1: `kernel`: ", part]);
    };
    check("entry = \"near\"", "missing field `file`");
    check(
        "file = \"near.cu\"\nthread = \"atom\"",
        "unknown field `thread`",
    );
    check(
        "file = \"near.cu\"\nthreads = \"model\"",
        "\"residue\", \"chain\"",
    );
    check("file = \"near.cu\"", "parameter radius .. value");
    check(
        "file = \"near.cu\"\nvalues = { radius = 1.5 }",
        "1.5 .. i32",
    );
    check("file = \"near.cu\"\nentry = \"far\"", "far .. near");
    let columns = "values = { radius = 1 }\ncolumns = { near = { per = \"atom\" } }";
    check(&format!("file = \"near.cu\"\n{columns}"), "per is \"atom\"");
    let many = "\n[[kernel]]\nfile = \"near.cu\"\n".repeat(300);
    check(
        &format!("file = \"near.cu\"\n{many}"),
        "301 kernels .. at most 208",
    );
    fs::write(&text, vec![b' '; (1 << 20) + 1]).unwrap();
    check("file = \"near.cu\"", "over 1048576");
}

#[test]
fn a_column_that_a_feature_or_another_kernel_has_is_named_with_its_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("own.toml");
    let out = folder.path().join("out");
    let sample = format!("{SAMPLES}/1ubi.pdb");
    let kernel = |file: &str, column: &str| {
        let text = format!(
            "extern \"C\" __global__ void own(const unsigned* header, float* {column}) {{}}"
        );
        fs::write(folder.path().join(file), text).unwrap();
        format!("[[kernel]]\nfile = \"{file}\"\nentry = \"own\"\n")
    };
    let sasa = kernel("one.cu", "sasa");
    let twice = kernel("two.cu", "mine") + &kernel("three.cu", "mine");
    for (tables, kernel, column) in [(sasa, "one.cu", "sasa"), (twice, "three.cu", "mine")] {
        fs::write(&config, tables).unwrap();
        let run = [
            "run",
            str_of(&config),
            &sample,
            "-o",
            str_of(&out),
            "--trust-config",
        ];
        let column = format!("own of .. {kernel} has the column \"{column}\"");
        fails(&run, &[&column, "rename the kernel's parameter"]);
    }
}

/// nvcc compiles what `tapeloop kernel new` writes. NVCC names it, as for the build.
#[test]
#[ignore = "needs nvcc, which NVCC names"]
fn what_kernel_new_writes_compiles() {
    let nvcc = std::env::var("NVCC").unwrap_or_else(|_| "nvcc".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let (kernel, _) = new_in(folder.path());
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/layout.cuh");
    fs::copy(header, folder.path().join("tapeloop.cuh")).unwrap();
    let compiled = Command::new(nvcc)
        .args(["-ptx", "-arch=sm_90", "--std=c++17", "-o", "near.ptx"])
        .arg(kernel)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", text(&compiled.stderr));
    let ptx = fs::read_to_string(folder.path().join("near.ptx")).unwrap();
    assert!(ptx.contains(".entry near"), "the function of the config");
}
