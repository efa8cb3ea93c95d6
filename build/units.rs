//! The translation units: each `kernels/*.cu` with the headers that it includes.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tapeloop_signature::{Declarations, Signature};

/// The files of `kernels/` by name.
pub(crate) struct Sources(BTreeMap<String, String>);

/// Types of the constants that Rust takes from the kernels, in CUDA and in Rust. A type comes
/// before those that its name begins with.
const INTEGER_TYPES: [(&str, &str); 3] =
    [("unsigned char", "u8"), ("unsigned", "u32"), ("int", "i32")];

/// A file that is compiled by itself.
pub(crate) struct TranslationUnit {
    /// The file's name without its extension. A feature's kernel has the same name.
    pub(crate) name: String,
    /// The headers that it includes, and those that they include. Each comes after those that it
    /// includes.
    pub(crate) headers: Vec<String>,
}

impl TranslationUnit {
    pub(crate) fn file(&self) -> String {
        format!("{}.cu", self.name)
    }
}

impl Sources {
    pub(crate) fn read(folder: &Path) -> Result<Sources, String> {
        let place = |path: &Path, error| format!("{}: {error}", path.display());
        let entries = fs::read_dir(folder).map_err(|error| place(folder, error))?;
        let names = entries.flatten().map(|entry| entry.file_name());
        let names = names.filter_map(|name| name.into_string().ok());
        let names = names.filter(|name| name.ends_with(".cu") || name.ends_with(".cuh"));
        let read = |name: String| {
            let path = folder.join(&name);
            let text = fs::read_to_string(&path).map_err(|error| place(&path, error))?;
            Ok((name, text))
        };
        names.map(read).collect::<Result<_, String>>().map(Sources)
    }

    /// The names of all files, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        &self.0[name]
    }

    /// Rust declarations of the integer constants that files declare once, on a line of their own,
    /// as a plain number.
    pub(crate) fn constants(&self) -> String {
        let mut declarations: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (file, text) in &self.0 {
            for line in text.lines() {
                let Some((cuda_type, list)) = INTEGER_TYPES.iter().find_map(|(cuda, rust)| {
                    let list = line.strip_prefix(&format!("constexpr {cuda} "))?;
                    Some((rust, list.split(';').next()?))
                }) else {
                    continue;
                };
                let pairs = list.split(',').filter_map(|pair| pair.split_once('='));
                for (name, value) in pairs.map(|(name, value)| (name.trim(), value.trim())) {
                    if value.parse::<i64>().is_ok() {
                        declarations.entry(name).or_default().push(format!(
                            "/// Of `kernels/{file}`.\npub(super) const {name}: {cuda_type} = {value};\n"
                        ));
                    }
                }
            }
        }
        let unique = declarations.into_values().filter(|list| list.len() == 1);
        unique.flatten().collect()
    }

    /// The unit of a `.cu` file.
    pub(crate) fn unit(&self, file: &str) -> Result<TranslationUnit, String> {
        let mut headers = Vec::new();
        self.add_headers(file, &mut headers)?;
        Ok(TranslationUnit {
            name: file.trim_end_matches(".cu").to_owned(),
            headers,
        })
    }

    fn add_headers(&self, file: &str, headers: &mut Vec<String>) -> Result<(), String> {
        for (index, line) in self.text(file).lines().enumerate() {
            let directive = line.trim_start().strip_prefix('#').map(str::trim_start);
            let Some(included) = directive.and_then(|text| text.strip_prefix("include")) else {
                continue;
            };
            let header = included.trim().strip_prefix('"');
            let header = header.and_then(|text| text.split('"').next());
            let header = header.filter(|header| self.0.contains_key(*header));
            let header = header.ok_or_else(|| {
                let line = index + 1;
                format!(
                    "kernels/{file}:{line}: kernels include only headers of their folder, as \
                     NVRTC has no others"
                )
            })?;
            if !headers.iter().any(|listed| listed == header) {
                self.add_headers(header, headers)?;
                headers.push(header.to_owned());
            }
        }
        Ok(())
    }

    /// The kernel that a unit declares.
    pub(crate) fn signature(&self, unit: &TranslationUnit) -> Result<Signature, String> {
        let file = unit.file();
        let parts: Vec<&str> = unit
            .headers
            .iter()
            .map(String::as_str)
            .chain([&*file])
            .collect();
        let text: String = parts.iter().map(|part| self.text(part)).collect();
        let declared = Declarations::parse(&text).kernels().map_err(|error| {
            let mut line = error.line;
            let place = parts.iter().find_map(|part| {
                let lines = self.text(part).lines().count();
                let is_here = line <= lines;
                line -= if is_here { 0 } else { lines };
                is_here.then(|| format!("kernels/{part}:{line}"))
            });
            format!("{}: {}", place.unwrap_or_default(), error.message)
        })?;
        let mut declared = declared.into_iter();
        match (declared.next(), declared.next()) {
            (Some(kernel), None) if kernel.name == unit.name => Ok(kernel),
            _ => Err(format!(
                "kernels/{file}: a file declares one kernel, which has the name of the file"
            )),
        }
    }

    /// Refuses a kernel that does not begin with the wait that its declaration promises.
    pub(crate) fn check_wait(&self, unit: &TranslationUnit) -> Result<(), String> {
        const WAIT: &str = "wait_for_dependencies();";
        let file = unit.file();
        let kernel = self.text(&file).split_once("KERNEL(");
        let body = kernel.and_then(|(_, kernel)| kernel.split_once('{'));
        match body {
            Some((_, body)) if body.trim_start().starts_with(WAIT) => Ok(()),
            _ => Err(format!(
                "kernels/{file}: the first line of the kernel has to be {WAIT}"
            )),
        }
    }

    /// SHA-256 of these files, in hexadecimal, with `context`.
    pub(crate) fn digest<'a>(
        &self,
        files: impl Iterator<Item = &'a str>,
        context: impl IntoIterator<Item = &'a str>,
    ) -> String {
        let mut hasher = Sha256::new();
        let mut add = |part: &str| {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        };
        context.into_iter().for_each(&mut add);
        for file in files {
            add(file);
            add(self.text(file));
        }
        let digest = hasher.finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
