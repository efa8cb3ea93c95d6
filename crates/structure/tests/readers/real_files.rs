//! The readers on a larger set of real files: folders `pdb`, `cif` (some of the
//! same structures), `complexes` and `awkward` under `TAPELOOP_STRUCTURES`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tapeloop_structure::ErrorKind;
use tapeloop_structure::{Assembly, MISSING, Models, Radii, ReadOptions, Reader, Structure};

fn structures() -> PathBuf {
    let folder = std::env::var_os("TAPELOOP_STRUCTURES");
    folder.expect("TAPELOOP_STRUCTURES names a folder").into()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
#[ignore = "needs TAPELOOP_STRUCTURES, a folder of structures"]
fn every_file_is_read_or_refused_with_a_reason() {
    let root = structures();
    let mut reader = Reader::new(ReadOptions {
        models: Models::All,
        ..ReadOptions::default()
    });
    for (folder, rejected_max) in [("pdb", 0), ("cif", 0), ("complexes", 0), ("awkward", 40)] {
        let (mut residues, mut atoms, mut rejected) = (0, 0, 0);
        for path in files(&root.join(folder)) {
            match reader.read_path(&path) {
                Ok(all) => {
                    for structure in &all {
                        check(structure, &path);
                        residues += structure.residues.len();
                        atoms += structure.xyz.len();
                    }
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Input, "{path:?}: {error}");
                    println!("{}: {error}", path.display());
                    rejected += 1;
                }
            }
        }
        println!("{folder}: {residues} residues, {atoms} atoms, {rejected} files rejected");
        assert!(
            residues > 0 && rejected <= rejected_max,
            "{folder}: {rejected} rejected"
        );
    }
}

/// What holds for every structure.
fn check(structure: &Structure, path: &Path) {
    let atoms = structure.xyz.len();
    assert_eq!(structure.element.len(), atoms, "{path:?}");
    assert_eq!(structure.b_factor.len(), atoms, "{path:?}");
    assert_eq!(structure.class.len(), atoms, "{path:?}");
    let mut radii = structure
        .class
        .iter()
        .map(|c| Radii::default().milli_angstrom(*c));
    assert!(
        radii.all(|radius| radius > 0),
        "{path:?}: an atom without radius"
    );
    assert_eq!(
        structure.atom_start.len(),
        structure.residues.len() + 1,
        "{path:?}"
    );
    let loose: u32 = structure.loose.iter().map(|span| span.atom_count).sum();
    let in_rows = structure.atom_start[structure.residues.len()];
    assert_eq!((in_rows + loose) as usize, atoms, "{path:?}");
    let chains = structure.chains.len() as u32;
    assert!(
        structure.loose.iter().all(|span| span.chain < chains),
        "{path:?}"
    );
    assert!(
        structure.element.iter().all(|&element| element != 1),
        "{path:?}: hydrogen"
    );
    for (residue, span) in structure
        .residues
        .iter()
        .zip(structure.atom_start.windows(2))
    {
        assert!(
            span[0] < span[1] && span[1] as usize <= atoms,
            "{path:?}: empty residue"
        );
        assert!(
            (residue.chain as usize) < structure.chains.len(),
            "{path:?}"
        );
        for atom in [residue.n, residue.ca, residue.c, residue.o, residue.cb] {
            assert!(
                atom == MISSING || (span[0]..span[1]).contains(&atom),
                "{path:?}: an atom of another residue"
            );
        }
        let alpha = structure.element.get(residue.ca as usize);
        assert!(
            alpha.is_none_or(|element| matches!(element, 0 | 6)),
            "{path:?}: {alpha:?}"
        );
    }
}

#[test]
#[ignore = "needs TAPELOOP_STRUCTURES, a folder of structures"]
fn assemblies_hold_what_structures_hold() {
    let root = structures();
    let mut reader = Reader::new(ReadOptions {
        assembly: Assembly::First,
        ..ReadOptions::default()
    });
    let mut built = 0;
    for path in files(&root.join("awkward")) {
        let Ok(all) = reader.read_path(&path) else {
            continue;
        };
        for structure in &all {
            check(structure, &path);
            built += usize::from(structure.assembly == Assembly::First);
        }
    }
    println!("{built} assemblies");
    assert!(built > 0);
}

/// Chain, number, insertion code, component.
type Name = (String, i32, u8, [u8; 8]);

/// The atoms of each residue.
fn by_name(structure: &Structure) -> BTreeMap<Name, Vec<[i32; 3]>> {
    let mut out = BTreeMap::<Name, Vec<_>>::new();
    for (residue, span) in structure
        .residues
        .iter()
        .zip(structure.atom_start.windows(2))
    {
        let chain = structure.chains[residue.chain as usize]
            .auth_asym_id
            .to_string();
        let name = (
            chain,
            residue.auth_seq_id,
            residue.ins_code,
            residue.comp_id,
        );
        let atoms = &structure.xyz[span[0] as usize..span[1] as usize];
        out.entry(name).or_default().extend_from_slice(atoms);
    }
    out
}

#[test]
#[ignore = "needs TAPELOOP_STRUCTURES, a folder of structures"]
fn pdb_and_mmcif_of_a_structure_agree() {
    let root = structures();
    let mut reader = Reader::new(ReadOptions::default());
    let (mut pairs, mut shared) = (0, 0);
    for path in files(&root.join("cif")) {
        let name = path
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .replace(".cif", ".pdb");
        let [cif, pdb] = [path.clone(), root.join("pdb").join(name)]
            .map(|path| by_name(&reader.read_path(&path).unwrap().remove(0)));
        for (residue, atoms) in &cif {
            // The mmCIF side lacks incomplete residues, but has no others.
            assert_eq!(pdb.get(residue), Some(atoms), "{path:?}: {residue:?}");
            shared += 1;
        }
        pairs += 1;
    }
    println!("{pairs} pairs agree on {shared} residues");
    assert!(pairs > 0);
}
