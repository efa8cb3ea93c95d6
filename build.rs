//! Builds the kernels: compiles each file of `kernels/` to a fat binary if nvcc is found, and
//! generates for each kernel a Rust module with its parameters by name (`src/features/kernels.rs`
//! includes it), and the constants that kernels and their twins share
//! (`src/features/constants.rs`).

#[path = "build/nvcc.rs"]
mod nvcc;
#[path = "build/units.rs"]
mod units;

use nvcc::{Jobs, Nvcc, READ_BY_NVCC, TARGETS_VARIABLE};
use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use tapeloop_signature::{CudaType, NumberType, Parameter, PointerAccess, Signature, vector};
use units::{Sources, TranslationUnit};

/// The fused kernel, which calls all other kernels as functions. NVRTC compiles it where it is used.
const FUSED: &str = "fused.cu";

fn main() {
    // SAFETY: cargo has started the build script, and this is its first line.
    let jobs = unsafe { Jobs::from_cargo() };
    for file in ["build.rs", "build", "kernels"] {
        println!("cargo::rerun-if-changed={file}");
    }
    let named = [
        "NVCC",
        TARGETS_VARIABLE,
        "CUDA_HOME",
        "CUDA_PATH",
        "VIRTUAL_ENV",
    ];
    for variable in named.iter().chain(&READ_BY_NVCC) {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    if let Err(message) = build_kernels(&jobs) {
        for line in message.lines() {
            println!("cargo::error={line}");
        }
    }
}

fn feature(name: &str) -> bool {
    env::var_os(format!("CARGO_FEATURE_{name}")).is_some()
}

fn build_kernels(jobs: &Jobs) -> Result<(), String> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let write = |name: &str, text: String| {
        let path = out.join(name);
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
    };
    let sources = Sources::read(Path::new("kernels"))?;
    let files = sources
        .names()
        .filter(|name| name.ends_with(".cu") && *name != FUSED);
    let units: Vec<TranslationUnit> = files
        .map(|file| sources.unit(file))
        .collect::<Result<_, _>>()?;
    units.iter().try_for_each(|unit| sources.check_wait(unit))?;
    let signatures: Vec<Signature> = units
        .iter()
        .map(|unit| sources.signature(unit))
        .collect::<Result<_, _>>()?;
    write("kernels.rs", rust_of(&signatures)?)?;
    write("constants.rs", sources.constants())?;

    let binaries = out.join("units");
    let nvcc = if feature("CUDA") { Nvcc::find()? } else { None };
    let nvcc = match nvcc {
        Some(nvcc) => nvcc
            .compile(&sources, &units, &binaries, jobs)?
            .then_some(nvcc),
        None => None,
    };
    let binary = |unit: &TranslationUnit| match &nvcc {
        Some(_) => {
            let path = nvcc::fat_binary(&binaries, unit);
            format!("Some(include_bytes!({:?}))", path.display().to_string())
        }
        None => "None".to_owned(),
    };
    write("units.rs", units_rust(&sources, &units, &binary))?;
    // Of all files, whichever are compiled and run, so that equal tables have equal metadata.
    let hash = sources.digest(sources.names(), []);
    println!("cargo::rustc-env=TAPELOOP_KERNELS_HASH={hash}");
    let (version, targets) = match nvcc {
        Some(nvcc) => (nvcc.version, nvcc.targets.join(" ")),
        None => Default::default(),
    };
    println!("cargo::rustc-env=TAPELOOP_NVCC={version}");
    println!("cargo::rustc-env=TAPELOOP_KERNEL_TARGETS={targets}");
    Ok(())
}

/// Generates the list of all files of `kernels/`, and that of the units.
fn units_rust(
    sources: &Sources,
    units: &[TranslationUnit],
    binary: &dyn Fn(&TranslationUnit) -> String,
) -> String {
    let files: String = sources
        .names()
        .map(|name| {
            let path = format!("/kernels/{name}");
            format!("({name:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {path:?}))), ")
        })
        .collect();
    let unit = |unit: &TranslationUnit| {
        let (name, headers, binary) = (&unit.name, &unit.headers, binary(unit));
        format!("TranslationUnit {{ name: {name:?}, headers: &{headers:?}, binary: {binary} }}, ")
    };
    let list: String = units.iter().map(unit).collect();
    let (all, count) = (sources.names().count(), units.len());
    format!(
        "/// The files of `kernels/`: name and text, sorted by name.\n\
         const FILES: [(&str, &str); {all}] = [{files}];\n\
         /// The units, sorted by name.\n\
         const UNITS: [TranslationUnit; {count}] = [{list}];\n"
    )
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
        let fields = |type_of: fn(&Parameter) -> String| -> String {
            list(&|parameter| {
                let (name, field_type) = (name_of(parameter), type_of(parameter));
                format!("    pub(in crate::features) {name}: {field_type},\n")
            })
        };
        let members = list(&|parameter| format!("self.{}.into(), ", name_of(parameter)));
        let taken = list(&|parameter| format!("{}: {}, ", name_of(parameter), taken(parameter)));
        let count = parameters.len();
        write!(
            rust,
            "/// The buffers of `{name}`.\n#[derive(Clone, Copy, Debug)]\n\
             pub(super) struct {group}Buffers {{\n{}}}\n\
             impl {group}Buffers {{\n    fn args(self) -> [Arg; {count}] {{ [{members}] }}\n}}\n\
             /// `{name}` as a twin gets them.\n#[derive(Clone, Copy)]\n\
             pub(super) struct {group}s<'a> {{\n{}}}\n\
             impl<'a> {group}s<'a> {{\n    fn take(launch: &mut TwinLaunch<'a>) -> Self {{\n        \
             Self {{ {taken} }}\n    }}\n}}\n",
            fields(handle),
            fields(view),
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
            Field::Group(name, _) => {
                let group = group_type(name);
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
         /// The arguments of `kernels/{name}.cu` as its twin gets them.\n\
         #[allow(dead_code, reason = \"a twin may not need every parameter\")]\n\
         pub(in crate::features) struct Views<'a> {{\n{views}}}\n\
         impl BuiltIn for Args {{\n    fn kernel() -> Kernel {{\n        \
         Kernel::new(\"{name}\")\n            .block({threads})\n            .waits_for_dependencies()\n{declared}            .twin(twin)\n    }}\n    \
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

/// The type of a parameter in a twin's views.
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
            NumberType::U8 => "u8",
            NumberType::I8 => "i8",
            NumberType::U16 => "u16",
            NumberType::I16 => "i16",
            NumberType::U32 => "u32",
            NumberType::I32 => "i32",
            NumberType::U64 => "u64",
            NumberType::I64 => "i64",
            NumberType::F16 => "half::f16",
            NumberType::BF16 => "half::bf16",
            NumberType::F32 => "f32",
            NumberType::F64 => "f64",
        }
        .to_owned(),
        CudaType::Struct(name) => match vector(name) {
            Some((number, count)) => format!("[{}; {count}]", rust_type(&CudaType::Number(number))),
            None => name.clone(),
        },
    }
}
