//! BinaryCIF files give the structures of their mmCIF files.

use std::fs;
use std::path::{Path, PathBuf};

use tapeloop_structure::{
    Assembly, BFactorFields, Format, Models, ReadLimits, ReadOptions, Reader, text_of,
};
use tapeloop_test_support::repository;

/// The folder with a file of each format, in the repository.
const FIXTURES: &str = "crates/structure/tests/readers/fixtures";

/// The mmCIF file of an entry.
fn mmcif_of(name: &str) -> PathBuf {
    let places = ["tests/data/small", FIXTURES, "samples"];
    let endings = ["cif", "cif.gz"];
    let paths = places.iter().flat_map(|place| {
        let folder = repository(place);
        endings.map(|ending| folder.join(format!("{name}.{ending}")))
    });
    let found: Vec<PathBuf> = paths.filter(|path| path.exists()).collect();
    assert_eq!(found.len(), 1, "{name}: {found:?}");
    found[0].clone()
}

/// What a file gives with each choice of models and assembly, errors included.
fn outcomes(path: &Path) -> Vec<String> {
    let mut outcomes = Vec::new();
    for models in [Models::First, Models::All] {
        for assembly in [Assembly::Deposited, Assembly::First] {
            let options = ReadOptions {
                models,
                assembly,
                ligands: true,
                ..ReadOptions::default()
            };
            let outcome = Reader::new(options).read_path(path);
            outcomes.push(format!("{outcome:?}"));
        }
    }
    outcomes
}

#[test]
fn every_encoding_type_and_mask_gives_the_structures_of_the_mmcif_file() {
    let mut compared = 0;
    for entry in fs::read_dir(repository("tests/data/binary_cif")).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap();
        if !file.ends_with(".bcif.gz") {
            continue;
        }
        let name = file.split('.').next().unwrap();
        let (found, wanted) = (outcomes(&path), outcomes(&mmcif_of(name)));
        assert!(wanted[0].starts_with("Ok"), "{file}: {}", wanted[0]);
        for (found, wanted) in found.iter().zip(&wanted) {
            let pairs = found.bytes().zip(wanted.bytes());
            let same = pairs.take_while(|(a, b)| a == b).count();
            let near = |text: &str| text[same.saturating_sub(40)..].chars().take(120).collect();
            let [found_near, wanted_near]: [String; 2] = [near(found), near(wanted)];
            assert!(
                found == wanted,
                "{file}: found {found_near}, wanted {wanted_near}"
            );
        }
        compared += 1;
    }
    assert!(compared >= 28, "{compared} files");
}

#[test]
fn binary_cif_is_recognised_under_any_name() {
    let path = repository(FIXTURES).join("two_models.bcif");
    let bytes = fs::read(path).unwrap();
    for name in ["a.bcif", "a.BCIF", "a", "a.cif", "a.pdb"] {
        let (_, format) = text_of(name, bytes.clone(), &ReadLimits::default()).unwrap();
        assert_eq!(format, Format::BinaryCif, "{name}");
    }
}

#[test]
fn there_is_no_text_of_b_factors_to_replace() {
    let path = repository(FIXTURES).join("two_models.bcif");
    let bytes = fs::read(path).unwrap();
    let limits = ReadLimits::default();
    let error = BFactorFields::find(&bytes, Format::BinaryCif, limits).unwrap_err();
    assert!(error.message().contains("BinaryCIF"), "{error}");
    assert!(error.fix_text().unwrap().contains("mmCIF"), "{error}");
    assert_eq!(Format::BinaryCif.b_factor_width(), None);
}
