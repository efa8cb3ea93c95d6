//! Builds the kernels: joins the files of `kernels/` into one source for NVRTC, compiles it to a
//! fat binary if nvcc is found, and generates for each kernel a Rust module with its parameters by
//! name (`src/features/kernels.rs` includes it).

#[path = "src/record/signature/mod.rs"]
#[allow(dead_code, reason = "the crate uses the rest")]
mod signature;

use sha2::{Digest, Sha256};
use signature::struct_layout::vector;
use signature::{CudaType, Declarations, Number, Parameter, PointerAccess, Signature};
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CUDA_VERSIONS: [&str; 6] = ["12040", "12050", "12060", "12080", "12090", "13000"];

/// The fat binary has machine code for these GPUs, Turing to Blackwell, if nvcc supports them.
const MACHINES: [&str; 7] = [
    "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120",
];
/// The fat binary has PTX for this GPU, which the driver compiles for newer ones.
const PTX: &str = "compute_75";
/// The CPU twins do the same arithmetic, so multiplications and additions must not be contracted.
const OPTIONS: [&str; 3] = ["-O3", "-std=c++17", "--fmad=false"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=kernels");
    println!("cargo::rerun-if-changed=src/record/signature");
    for variable in ["NVCC", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    if let Err(message) = check_cuda_features().and_then(|()| build_kernels()) {
        for line in message.lines() {
            println!("cargo::error={line}");
        }
    }
}

fn feature(name: &str) -> bool {
    env::var_os(format!("CARGO_FEATURE_{name}")).is_some()
}

fn check_cuda_features() -> Result<(), String> {
    let chosen = CUDA_VERSIONS
        .iter()
        .filter(|v| feature(&format!("CUDA_{v}")));
    // With `cuda` alone another crate of the build chooses the version, which cudarc checks.
    let chosen: Vec<String> = chosen.map(|version| format!("cuda-{version}")).collect();
    if chosen.len() < 2 {
        return Ok(());
    }
    Err(format!(
        "the features {} exclude each other; the program chooses one of them, with \
         default-features = false, as cuda-12040 is a default, and libraries choose `cuda`",
        chosen.join(" and ")
    ))
}

fn build_kernels() -> Result<(), String> {
    if !feature("FEATURES") {
        return Ok(());
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let folder = Path::new("kernels");
    let names = kernel_files(folder)?;
    let declared = Unity::of_files(folder, names.iter().filter(|name| *name != BENCH))?;
    let signatures = Declarations::of(&declared.text).kernels();
    let signatures =
        signatures.map_err(|e| format!("{}: {}", declared.place(e.line), e.message))?;
    let generated = out.join("kernels.rs");
    let modules = rust_of(&signatures)?;
    fs::write(&generated, modules).map_err(|e| format!("{}: {e}", generated.display()))?;

    let mut unity = Unity::of_files(folder, names.iter())?;
    unity.add_fused(folder, &names, &signatures)?;
    let source = out.join("kernels.cu");
    fs::write(&source, &unity.text).map_err(|e| format!("{}: {e}", source.display()))?;
    let digest = Sha256::digest(&unity.text);
    let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=TAPELOOP_KERNELS_HASH={hash}");

    let fatbin = out.join("kernels.fatbin");
    let built = match feature("CUDA") {
        true => compile(&source, &fatbin)?,
        false => None,
    };
    if built.is_none() {
        fs::write(&fatbin, b"").map_err(|e| format!("{}: {e}", fatbin.display()))?;
    }
    let built = built.unwrap_or_default();
    println!("cargo::rustc-env=TAPELOOP_NVCC={}", built.version);
    println!("cargo::rustc-env=TAPELOOP_KERNEL_TARGETS={}", built.targets);
    Ok(())
}

/// The fused kernel, which calls all other kernels as functions.
const FUSED: &str = "fused.cu";

/// The kernels of `tapeloop bench`, which belong to no feature.
const BENCH: &str = "bench.cu";

/// The files with kernels, without the fused one, sorted.
fn kernel_files(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let names = entries.flatten().map(|entry| entry.file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    let mut names: Vec<String> = names
        .filter(|name| name.ends_with(".cu") && name != FUSED)
        .collect();
    names.sort();
    Ok(names)
}

/// Several sources joined to one text. Each header occurs once, and `#line` directives make
/// compilers cite the original files.
#[derive(Default)]
struct Unity {
    text: String,
    seen: BTreeSet<String>,
}

impl Unity {
    fn of_files<'a>(
        folder: &Path,
        names: impl Iterator<Item = &'a String>,
    ) -> Result<Unity, String> {
        let mut unity = Unity::default();
        unity.text.push_str("namespace kernels {\n");
        for name in names {
            unity.add(folder, name)?;
        }
        unity.text.push_str("}\n");
        Ok(unity)
    }

    /// Adds the fused kernel: the sources of all kernels a second time, the list of them, and its
    /// own source.
    fn add_fused(
        &mut self,
        folder: &Path,
        names: &[String],
        steps: &[Signature],
    ) -> Result<(), String> {
        self.seen.clear();
        self.text.push_str("#define FUSED\nnamespace fused {\n");
        for name in names.iter().filter(|name| *name != BENCH) {
            self.add(folder, name)?;
        }
        let list: String = steps
            .iter()
            .map(|step| format!(" STEP({})", step.name))
            .collect();
        writeln!(self.text, "#define STEPS(STEP){list}").expect("writing to a string");
        self.add(folder, FUSED)?;
        self.text.push_str("}\n");
        Ok(())
    }

    /// The file and the line where a line of the text comes from.
    fn place(&self, line: usize) -> String {
        let before = self.text.lines().take(line).enumerate();
        let directives = before.filter_map(|(at, text)| {
            let (number, file) = text.strip_prefix("#line ")?.split_once(' ')?;
            Some((at, number.parse::<usize>().ok()?, file.trim_matches('"')))
        });
        match directives.last() {
            Some((at, number, file)) => format!("{file}:{}", number + line - at - 2),
            None => format!("line {line}"),
        }
    }

    fn add(&mut self, folder: &Path, name: &str) -> Result<(), String> {
        self.seen.insert(name.to_owned());
        let path = folder.join(name);
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let shown = format!("kernels/{name}");
        self.line(1, &shown);
        for (index, line) in text.lines().enumerate() {
            let directive = line.trim_start().strip_prefix('#').map(str::trim_start);
            let included = directive.and_then(|text| text.strip_prefix("include"));
            if let Some(included) = included {
                let header = included
                    .trim()
                    .strip_prefix('"')
                    .and_then(|text| text.split('"').next());
                let header = header.ok_or_else(|| {
                    format!("{shown}:{}: kernels include only headers of their folder, as NVRTC has no others", index + 1)
                })?;
                if !self.seen.contains(header) {
                    self.add(folder, header)?;
                }
                self.line(index + 2, &shown);
            } else if directive == Some("pragma once") {
                self.text.push('\n');
            } else {
                self.text.push_str(line);
                self.text.push('\n');
            }
        }
        Ok(())
    }

    fn line(&mut self, number: usize, file: &str) {
        writeln!(self.text, "#line {number} \"{file}\"").expect("writing to a string");
    }
}

/// Generates a Rust module for each kernel, and a list of all kernels.
fn rust_of(kernels: &[Signature]) -> Result<String, String> {
    let mut rust = String::new();
    let mut groups: BTreeMap<&str, Vec<&Parameter>> = BTreeMap::new();
    for kernel in kernels {
        rust += &module_of(kernel)?;
        for fields in fields_of(kernel) {
            if let Field::Group(name, parameters) = fields {
                groups.insert(name, parameters);
            }
        }
    }
    for (name, parameters) in &groups {
        let (prefix, group) = (
            name.trim_end_matches("PARAMS").to_lowercase(),
            group_type(name),
        );
        let name_of = |parameter: &Parameter| -> String {
            let name = &parameter.name;
            name.strip_prefix(&prefix).unwrap_or(name).to_owned()
        };
        let list = |line: &dyn Fn(&Parameter) -> String| -> String {
            parameters.iter().map(|parameter| line(parameter)).collect()
        };
        let of_field = |of: fn(&Parameter) -> String| -> String {
            list(&|it| format!("    pub(in crate::features) {}: {},\n", name_of(it), of(it)))
        };
        let members = list(&|it| format!("self.{}.into(), ", name_of(it)));
        let taken = list(&|it| format!("{}: {}, ", name_of(it), taken(it)));
        let count = parameters.len();
        write!(
            rust,
            "/// The buffers of `{name}`.\n#[derive(Clone, Copy, Debug)]\n\
             pub(super) struct {group}Buffers {{\n{}}}\n\
             impl {group}Buffers {{\n    fn args(self) -> [Arg; {count}] {{ [{members}] }}\n}}\n\
             /// What a twin sees of `{name}`.\n#[derive(Clone, Copy)]\n\
             pub(super) struct {group}s<'a> {{\n{}}}\n\
             impl<'a> {group}s<'a> {{\n    fn take(launch: &mut TwinLaunch<'a>) -> Self {{\n        \
             Self {{ {taken} }}\n    }}\n}}\n",
            of_field(handle),
            of_field(view),
        )
        .expect("writing to a string");
    }
    let list: String = kernels
        .iter()
        .map(|kernel| format!("{}::Args::kernel, ", kernel.name))
        .collect();
    let count = kernels.len();
    let all = "/// All kernels, in the order in which the fused kernel numbers them.\n";
    writeln!(
        rust,
        "{all}pub(super) const ALL: [fn() -> Kernel; {count}] = [{list}];"
    )
    .expect("writing to a string");
    Ok(rust)
}

/// A field of a kernel's arguments: one parameter, or those of a macro such as `CELL_PARAMS`.
enum Field<'a> {
    One(&'a Parameter),
    Group(&'a str, Vec<&'a Parameter>),
}

fn fields_of(kernel: &Signature) -> Vec<Field<'_>> {
    let mut fields: Vec<Field<'_>> = Vec::new();
    for parameter in &kernel.parameters {
        match (&parameter.macro_name, fields.last_mut()) {
            (Some(name), Some(Field::Group(last, parameters))) if last == name => {
                parameters.push(parameter);
            }
            (Some(name), _) => fields.push(Field::Group(name, vec![parameter])),
            (None, _) => fields.push(Field::One(parameter)),
        }
    }
    fields
}

/// The name that the Rust types are built from: `CELL_PARAMS` becomes `CellBuffers` in `Args`, and
/// `Cells` in `Views`.
fn group_type(name: &str) -> String {
    let name = name.trim_end_matches("_PARAMS").to_lowercase();
    name[..1].to_uppercase() + &name[1..]
}

fn module_of(kernel: &Signature) -> Result<String, String> {
    let name = &kernel.name;
    let Some(threads) = kernel.block_threads else {
        return Err(format!(
            "kernels/{name}.cu: KERNEL needs the threads of a block"
        ));
    };
    let (mut args, mut views, mut declared) = (String::new(), String::new(), String::new());
    let (mut listed, mut taken_fields) = (String::new(), String::new());
    for field in fields_of(kernel) {
        let (field, handle_type, view_type, list, take) = match field {
            Field::One(parameter) => (
                parameter.name.clone(),
                handle(parameter),
                view(parameter),
                format!("[self.{}.into()]", parameter.name),
                taken(parameter).to_owned(),
            ),
            Field::Group(of, _) => {
                let group = group_type(of);
                let field = group.to_lowercase() + "s";
                let list = format!("self.{field}.args()");
                let (buffers, take) =
                    (format!("{group}Buffers"), format!("{group}s::take(launch)"));
                (field, buffers, format!("{group}s<'a>"), list, take)
            }
        };
        args += &format!("    pub(in crate::features) {field}: {handle_type},\n");
        views += &format!("    pub(in crate::features) {field}: {view_type},\n");
        listed += &format!("            .chain({list})\n");
        taken_fields += &format!("            {field}: {take},\n");
    }
    for parameter in &kernel.parameters {
        let (name, element) = (&parameter.name, rust_type(&parameter.element));
        let method = match parameter.pointer {
            None => "scalar",
            Some(PointerAccess::Read) => "reads",
            Some(PointerAccess::Write) => "writes",
            Some(PointerAccess::Update) => "updates",
        };
        declared += &format!("            .{method}::<{element}>(\"{name}\")\n");
    }
    Ok(format!(
        "pub(super) mod {name} {{\n    use super::*;\n\
         /// Arguments of a launch of `kernels/{name}.cu`.\n#[derive(Clone, Copy)]\n\
         pub(in crate::features) struct Args {{\n{args}}}\n\
         /// What the twin of `kernels/{name}.cu` sees.\n\
         #[allow(dead_code, reason = \"a twin may not need every parameter\")]\n\
         pub(in crate::features) struct Views<'a> {{\n{views}}}\n\
         impl BuiltIn for Args {{\n    fn kernel() -> Kernel {{\n        \
         Kernel::new(\"{name}\")\n            .block({threads})\n{declared}            .twin(twin)\n    }}\n    \
         fn args(self) -> Vec<Arg> {{\n        std::iter::empty()\n{listed}            .collect()\n    }}\n}}\n\
         fn twin(launch: &mut TwinLaunch<'_>) {{\n        Twin::run(Views {{\n{taken_fields}        }});\n    }}\n}}\n"
    ))
}

/// The type of a parameter in a launch's arguments.
fn handle(parameter: &Parameter) -> String {
    let element = rust_type(&parameter.element);
    match parameter.pointer {
        None => element,
        Some(_) => format!("Buffer<{element}>"),
    }
}

/// The type of a parameter as a twin sees it.
fn view(parameter: &Parameter) -> String {
    let element = rust_type(&parameter.element);
    match parameter.pointer {
        None => element,
        Some(PointerAccess::Read) => format!("&'a [{element}]"),
        Some(_) => format!("&'a mut [{element}]"),
    }
}

/// The call that takes a parameter from a twin's launch.
fn taken(parameter: &Parameter) -> &'static str {
    match parameter.pointer {
        None => "launch.scalar()",
        Some(PointerAccess::Read) => "launch.read()",
        Some(_) => "launch.write()",
    }
}

/// The Rust type of an element. Structs have the same name in Rust and in CUDA.
fn rust_type(element: &CudaType) -> String {
    match element {
        CudaType::Number(number) => match number {
            Number::U8 => "u8",
            Number::I8 => "i8",
            Number::U16 => "u16",
            Number::I16 => "i16",
            Number::U32 => "u32",
            Number::I32 => "i32",
            Number::U64 => "u64",
            Number::I64 => "i64",
            Number::F16 => "half::f16",
            Number::BF16 => "half::bf16",
            Number::F32 => "f32",
            Number::F64 => "f64",
        }
        .to_owned(),
        CudaType::Struct(name) => match vector(name) {
            Some((number, count)) => format!("[{}; {count}]", rust_type(&CudaType::Number(number))),
            None => name.clone(),
        },
    }
}

/// The version of nvcc that built a fat binary, and its targets.
#[derive(Default)]
struct Built {
    version: String,
    targets: String,
}

/// Compiles with nvcc. Returns `None`, with a warning, if no nvcc works; an error if a kernel does
/// not compile, or if `NVCC` names an nvcc that does not work.
fn compile(source: &Path, fatbin: &Path) -> Result<Option<Built>, String> {
    let without = "kernels are compiled with NVRTC at run time, if it is there";
    let named = env::var("NVCC").ok();
    let nvcc = match named.as_deref().map(str::trim) {
        Some("" | "none") => {
            println!("cargo::warning=NVCC is none: {without}");
            return Ok(None);
        }
        Some(path) => PathBuf::from(path),
        None => match find_nvcc() {
            Some(path) => path,
            None => {
                println!("cargo::warning=no nvcc found (set NVCC to its path): {without}");
                return Ok(None);
            }
        },
    };
    match run_nvcc(&nvcc, source, fatbin) {
        Ok(built) => Ok(Some(built)),
        Err(message) if named.is_some() || cites_a_kernel(&message) => Err(message),
        Err(message) => {
            let line = message.lines().next().unwrap_or_default();
            println!("cargo::warning=nvcc does not work ({line}): {without}");
            Ok(None)
        }
    }
}

/// Because of the `#line` directives, compiler messages about a kernel begin with its file.
fn cites_a_kernel(message: &str) -> bool {
    message.lines().any(|line| line.starts_with("kernels/"))
}

fn run_nvcc(nvcc: &Path, source: &Path, fatbin: &Path) -> Result<Built, String> {
    let version = output(nvcc, &["--version"])?;
    let version = version
        .split(", V")
        .nth(1)
        .and_then(|text| text.split_whitespace().next());
    let version = version.ok_or_else(|| format!("{} prints no version", nvcc.display()))?;
    let known = output(nvcc, &["--list-gpu-code"])?;
    let known: BTreeSet<&str> = known.split_whitespace().collect();
    let machines = MACHINES.iter().filter(|machine| known.contains(**machine));
    let mut targets: Vec<&str> = machines.copied().collect();
    targets.push(PTX);

    let jobs = env::var("NUM_JOBS").unwrap_or_else(|_| "1".to_owned());
    let mut args = OPTIONS.map(str::to_owned).to_vec();
    args.extend(["--fatbin".to_owned(), format!("--threads={jobs}")]);
    for target in &targets {
        let arch = target.replace("sm_", "compute_");
        args.push(format!("--generate-code=arch={arch},code={target}"));
    }
    args.extend(["-o".to_owned(), fatbin.display().to_string()]);
    args.push(source.display().to_string());
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    output(nvcc, &args)?;
    Ok(Built {
        version: version.to_owned(),
        targets: targets.join(" "),
    })
}

/// Runs a command and returns its standard output. If it fails, the error is the text of both
/// outputs.
fn output(program: &Path, args: &[&str]) -> Result<String, String> {
    let run = Command::new(program).args(args).output();
    let run = run.map_err(|error| format!("{}: {error}", program.display()))?;
    let stdout = String::from_utf8_lossy(&run.stdout);
    if run.status.success() {
        return Ok(stdout.into_owned());
    }
    let stderr = String::from_utf8_lossy(&run.stderr);
    let text = format!("{stdout}{stderr}");
    match text.trim() {
        "" => Err(format!("{}: {}", program.display(), run.status)),
        text => Err(text.to_owned()),
    }
}

/// Finds nvcc: in the toolkit that the environment names, on the path, or in NVIDIA's Python
/// packages.
fn find_nvcc() -> Option<PathBuf> {
    let toolkits = ["CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(env::var_os);
    let toolkits = toolkits.map(|home| PathBuf::from(home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = toolkits.chain(env::split_paths(&path));
    let mut candidates = folders.map(|folder| folder.join("nvcc"));
    candidates
        .find(|candidate| candidate.is_file())
        .or_else(|| site_packages().iter().find_map(|folder| pip_nvcc(folder)))
}

fn site_packages() -> Vec<PathBuf> {
    let environment = env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    let libraries = environment.and_then(|home| fs::read_dir(home.join("lib")).ok());
    let mut folders: Vec<PathBuf> = libraries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("site-packages"))
        .collect();
    let script = "import sysconfig; print(sysconfig.get_paths()['purelib'])";
    let python = output(Path::new("python3"), &["-c", script]);
    folders.extend(python.ok().map(|line| PathBuf::from(line.trim())));
    folders
}

/// Since CUDA 13 the packages share the folder `nvidia/cu13`; before, each had its own.
fn pip_nvcc(site_packages: &Path) -> Option<PathBuf> {
    let folders = fs::read_dir(site_packages.join("nvidia")).ok()?;
    let mut nvccs: Vec<PathBuf> = folders
        .flatten()
        .map(|entry| entry.path().join("bin/nvcc"))
        .filter(|nvcc| nvcc.is_file())
        .collect();
    nvccs.sort();
    nvccs.pop()
}
