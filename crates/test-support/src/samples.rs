//! The sample structures, for tests.

use crate::repository;
use std::path::{Path, PathBuf};
use tapeloop_structure::{ReadOptions, Reader, Structure};

/// The first model of a sample.
pub fn sample(name: &str) -> Structure {
    first_model(&repository("samples").join(name))
}

/// The first model of every sample, by name.
pub fn samples() -> Vec<(String, Structure)> {
    let entries = std::fs::read_dir(repository("samples")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension != "md"));
    files.sort();
    let named = |file: &PathBuf| {
        let name = file.file_name().unwrap().to_str().unwrap();
        (name.to_owned(), first_model(file))
    };
    files.iter().map(named).collect()
}

fn first_model(path: &Path) -> Structure {
    let models = Reader::new(ReadOptions::default()).read_path(path);
    let mut models = models.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    models.swap_remove(0)
}
