//! The images of the built-in kernels: the texts of `kernels/`, and what the build script compiled
//! of them.

use crate::record::{CudaSource, Image};
use std::sync::{Arc, OnceLock};

/// SHA-256 of all files in `kernels/`, with their names, in hexadecimal. It is that of the whole
/// folder, whichever kernels a program compiles or runs.
pub const KERNELS_HASH: &str = env!("TAPELOOP_KERNELS_HASH");

/// The version of the nvcc that compiled the kernels; empty if none did.
pub const NVCC_VERSION: &str = env!("TAPELOOP_NVCC");

/// The targets that nvcc compiled the kernels for, by its names for them; empty if it did not.
pub const KERNEL_TARGETS: &str = env!("TAPELOOP_KERNEL_TARGETS");

/// A `.cu` file with its headers, which is compiled by itself.
struct TranslationUnit {
    /// The file's name without its extension.
    name: &'static str,
    /// The files that it includes.
    headers: &'static [&'static str],
    /// A fat binary, if the build had nvcc.
    binary: Option<&'static [u8]>,
}

include!(concat!(env!("OUT_DIR"), "/units.rs"));

/// The image of `kernels/NAME.cu`. It has a fat binary if the build had nvcc, or else the text,
/// which NVRTC compiles at run time. `None` if there is no such file.
pub fn image(name: &str) -> Option<Arc<Image>> {
    static IMAGES: [OnceLock<Arc<Image>>; UNITS.len()] = [const { OnceLock::new() }; UNITS.len()];
    let index = UNITS.binary_search_by_key(&name, |unit| unit.name).ok()?;
    let image = IMAGES[index].get_or_init(|| {
        let TranslationUnit {
            name,
            headers,
            binary,
        } = &UNITS[index];
        let file = format!("{name}.cu");
        let text = text(&file).to_owned();
        // Messages on compiling name the image.
        let more = match binary {
            Some(_) => "",
            None => ", which a build with nvcc contains compiled",
        };
        Arc::new(Image {
            name: format!("kernels/{file}{more}"),
            binary: binary.map(<[u8]>::to_vec),
            source: Some(source(file, text, headers)),
        })
    });
    Some(Arc::clone(image))
}

/// The images of all files in `kernels/` that are compiled by themselves, and the file's name
/// without its extension.
pub fn images() -> impl Iterator<Item = (&'static str, Arc<Image>)> {
    UNITS
        .iter()
        .filter_map(|unit| Some((unit.name, image(unit.name)?)))
}

/// The image of the fused kernel, of which `steps` are the kernels that it calls, in the order of
/// their numbers. NVRTC compiles it, in every build: it takes longer than all others together, and
/// few runs use it.
pub(super) fn fused_image(steps: &[&str]) -> Arc<Image> {
    let included = steps.iter().map(|step| format!("#include \"{step}.cu\"\n"));
    let listed: String = steps.iter().map(|step| format!(" STEP({step})")).collect();
    let text = format!(
        "#define FUSED\n{}#define STEPS(STEP){listed}\n#include \"fused.cu\"\n",
        included.collect::<String>()
    );
    let files = FILES.map(|(name, _)| name);
    Arc::new(Image {
        name: "kernels/fused.cu, which fusion = \"on\" needs and no build contains".to_owned(),
        binary: None,
        source: Some(source("all_kernels.cu".to_owned(), text, &files)),
    })
}

/// The text of a file of `kernels/`.
fn text(file: &str) -> &'static str {
    let index = FILES.binary_search_by_key(&file, |(name, _)| name);
    FILES[index.expect("the build script lists all files")].1
}

/// The text of a file with those of its headers and the options for NVRTC, which are those that the
/// build gives nvcc. Without contraction kernels round as their twins do.
fn source(file: String, text_of_file: String, headers: &[&str]) -> CudaSource {
    let header = |name: &&str| ((*name).to_owned(), text(name).to_owned());
    CudaSource {
        file,
        text: text_of_file,
        headers: headers.iter().map(header).collect(),
        // The kernels' lambdas have no `__device__` annotation.
        options: [
            "--std=c++17",
            "--fmad=false",
            "--device-as-default-execution-space",
        ]
        .map(str::to_owned)
        .to_vec(),
    }
}
