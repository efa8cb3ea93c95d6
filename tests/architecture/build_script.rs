//! The part of the build script that compiles the kernels, with a made-up nvcc.

#[path = "../../build/nvcc.rs"]
#[allow(dead_code, reason = "the build script uses the rest")]
mod nvcc;
#[path = "../../build/units.rs"]
#[allow(dead_code, reason = "the build script uses the rest")]
mod units;

use nvcc::{Jobs, Nvcc};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;
use units::{Sources, TranslationUnit};

/// Files like those of `kernels/`, an nvcc that notes what it is asked to compile, and what it made.
struct Folder(TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        fs::create_dir(folder.path("kernels")).unwrap();
        for (name, text) in files {
            folder.write(name, text);
        }
        let (log, args) = (folder.path("log"), folder.path("args"));
        let script = format!(
            "#!/bin/sh\nset -e\nfor last; do :; done\n\
             case $last in */broken.cu) echo \"kernels/broken.cu(1): error\" >&2; exit 2;; esac\n\
             echo \"$*\" >{args:?}\n\
             while [ \"$1\" != -o ]; do shift; done\necho code >\"$2\"\necho \"$last\" >>{log:?}\n"
        );
        fs::write(folder.path("nvcc"), script).unwrap();
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path("nvcc"), executable).unwrap();
        folder
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path("kernels").join(name), text).unwrap();
    }

    fn sources(&self) -> (Sources, Vec<TranslationUnit>) {
        let sources = Sources::read(&self.path("kernels")).unwrap();
        let files = sources.names().filter(|name| name.ends_with(".cu"));
        let units = files.map(|file| sources.unit(file).unwrap()).collect();
        (sources, units)
    }

    /// What nvcc compiles now, sorted.
    fn compile(&self, targets: &[&str]) -> Result<Vec<String>, String> {
        fs::write(self.path("log"), "").unwrap();
        let (sources, units) = self.sources();
        let nvcc = Nvcc {
            path: self.path("nvcc"),
            is_named: true,
            version: "13.0".to_owned(),
            targets: targets.iter().map(|&target| target.to_owned()).collect(),
        };
        let jobs = Jobs {
            client: None,
            max: 3,
        };
        nvcc.compile(&sources, &units, &self.path("units"), &jobs)?;
        let log = fs::read_to_string(self.path("log")).unwrap();
        let name = |line: &str| {
            Path::new(line)
                .file_stem()
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        };
        let mut compiled: Vec<String> = log.lines().map(name).collect();
        compiled.sort();
        Ok(compiled)
    }
}

#[test]
fn a_change_compiles_the_units_that_include_it() {
    let folder = Folder::new(&[
        ("base.cuh", "#pragma once\n"),
        ("more.cuh", "#pragma once\n#include \"base.cuh\"\n"),
        ("a.cu", "#include \"base.cuh\"\n"),
        ("b.cu", "#include \"more.cuh\"\n#include \"base.cuh\"\n"),
        ("c.cu", "void c();\n"),
    ]);
    let (_, units) = folder.sources();
    assert_eq!(
        units[1].headers,
        ["base.cuh", "more.cuh"],
        "each after those that it includes"
    );
    let targets = ["sm_90", "compute_75"];
    assert_eq!(folder.compile(&targets).unwrap(), ["a", "b", "c"]);
    assert!(folder.compile(&targets).unwrap().is_empty());
    folder.write("c.cu", "void c(int);\n");
    assert_eq!(folder.compile(&targets).unwrap(), ["c"]);
    folder.write(
        "more.cuh",
        "#pragma once\n#include \"base.cuh\"\n// changed\n",
    );
    assert_eq!(folder.compile(&targets).unwrap(), ["b"]);
    folder.write("base.cuh", "#pragma once\n// changed\n");
    assert_eq!(folder.compile(&targets).unwrap(), ["a", "b"]);
    fs::remove_file(folder.path("units/a.fatbin")).unwrap();
    assert_eq!(folder.compile(&targets).unwrap(), ["a"]);
    assert_eq!(folder.compile(&["sm_90"]).unwrap(), ["a", "b", "c"]);
}

#[test]
fn a_kernel_that_does_not_compile_is_an_error_and_is_compiled_again() {
    let folder = Folder::new(&[("broken.cu", "\n"), ("c.cu", "void c();\n")]);
    for _ in 0..2 {
        let error = folder.compile(&["sm_90"]).unwrap_err();
        assert!(error.contains("kernels/broken.cu(1): error"), "{error}");
    }
    fs::remove_file(folder.path("kernels/broken.cu")).unwrap();
    folder.compile(&["sm_90"]).unwrap();
    assert!(folder.path("units/c.fatbin").is_file());
}

#[test]
fn what_kernels_may_not_include_or_declare_is_named_with_its_place() {
    let folder = Folder::new(&[
        ("a.cu", "\n#include <cuda.h>\n"),
        ("b.cuh", "\n\n__global__ void b(unknown* x) {}\n"),
        ("b.cu", "#include \"b.cuh\"\n"),
        ("c.cu", "extern \"C\" __global__ void d(float* x) {}\n"),
    ]);
    let sources = Sources::read(&folder.path("kernels")).unwrap();
    let error = sources.unit("a.cu").err().unwrap();
    assert!(error.starts_with("kernels/a.cu:2: "), "{error}");
    let b = sources.unit("b.cu").unwrap();
    assert_eq!(b.headers, ["b.cuh"]);
    let error = sources
        .signature(&sources.unit("c.cu").unwrap())
        .unwrap_err();
    assert!(
        error.starts_with("kernels/c.cu: a file declares one kernel"),
        "{error}"
    );
}

/// A wait is in the code from compute capability 9.0 on.
#[test]
fn a_target_from_9_0_on_is_compiled_from_ptx_of_9_0_or_later() {
    let folder = Folder::new(&[("a.cu", "void a();\n")]);
    folder.compile(&["sm_89", "sm_90", "sm_120"]).unwrap();
    let args = fs::read_to_string(folder.path("args")).unwrap();
    for pair in [
        "arch=compute_80,code=[sm_89]",
        "arch=compute_90,code=[sm_90]",
        "arch=compute_100,code=[sm_120]",
    ] {
        assert!(args.contains(pair), "{args}");
    }
}

#[test]
fn a_kernel_that_does_not_wait_first_is_refused() {
    let kernel =
        |first: &str| format!("KERNEL(256)\na(float* x)\n{{\n    {first}\n    x[0] = 1;\n}}\n");
    let folder = Folder::new(&[("a.cu", &kernel("wait_for_dependencies();"))]);
    let check = || {
        let (sources, units) = folder.sources();
        sources.check_wait(&units[0])
    };
    assert_eq!(check(), Ok(()));
    for first in [
        "",
        "x[1] = 1; wait_for_dependencies();",
        "// wait_for_dependencies();",
    ] {
        folder.write("a.cu", &kernel(first));
        let error = check().unwrap_err();
        assert!(error.contains("kernels/a.cu"), "{error}");
    }
}
