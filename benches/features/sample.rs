//! Structures, and batches of them.

use std::path::{Path, PathBuf};
use tapeloop::features::{Features, Input};
use tapeloop::structure::{MISSING, ReadOptions, Reader, Residue, Structure};
use tapeloop::workload::{Extent, Workload};

/// Batches of a ring.
pub(crate) const SLOTS: usize = 3;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

pub(crate) fn structures() -> Vec<Structure> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let folder = std::env::var_os("TAPELOOP_STRUCTURES").map_or(samples, PathBuf::from);
    let mut found = Vec::new();
    files(&folder, &mut found);
    let mut reader = Reader::new(ReadOptions::default());
    let read = found.iter().filter_map(|file| reader.read_path(file).ok());
    read.flatten().collect()
}

/// Batches of up to `residues`, going through the structures over and over.
pub(crate) fn batches(structures: &[Structure], residues: u32) -> Vec<Vec<Input>> {
    let fitting = structures
        .iter()
        .filter(|s| s.residues.len() <= residues as usize);
    let mut round = fitting.cycle();
    let (workload, capacity) = (
        Features::new(super::usual()).unwrap(),
        Features::capacity(residues),
    );
    let mut next = round.next();
    let batch = |number| {
        let (mut batch, mut total) = (Vec::new(), Extent::default());
        while let Some(structure) = next {
            let input = Input::new("", number as u64, Ok(structure.clone()));
            let own = workload.extent(&input).unwrap();
            match total.checked_add(own).filter(|total| total.fits(capacity)) {
                Some(sum) => total = sum,
                None => break,
            }
            batch.push(input);
            next = round.next();
        }
        batch
    };
    (0..SLOTS).map(batch).collect()
}

pub(crate) fn atoms(batches: &[Vec<Input>]) -> u64 {
    let atoms = |input: &Input| input.structure.as_ref().map_or(0, |s| s.xyz.len() as u64);
    batches.iter().flatten().map(atoms).sum()
}

/// A protein of about `atoms` atoms: copies of a structure side by side, the chains
/// of each its own.
pub(crate) fn tiled(one: &Structure, atoms: usize) -> Structure {
    let copies = atoms.div_ceil(one.xyz.len()).max(1);
    let (edge, size) = ((copies as f64).cbrt().ceil() as usize, |axis: usize| {
        let along = || one.xyz.iter().map(|p| p[axis]);
        along().max().unwrap_or(0) - along().min().unwrap_or(0) + 2_000
    });
    let mut whole = Structure {
        residues: Vec::new(),
        chains: Vec::new(),
        xyz: Vec::new(),
        element: Vec::new(),
        class: Vec::new(),
        b_factor: Vec::new(),
        atom_name: Vec::new(),
        atom_start: vec![0],
        loose: Vec::new(),
        ..one.clone()
    };
    for copy in 0..copies {
        let at = [copy % edge, copy / edge % edge, copy / edge / edge];
        let moved =
            |p: &[i32; 3]| std::array::from_fn(|axis| p[axis] + at[axis] as i32 * size(axis));
        let (atoms, chains) = (whole.xyz.len() as u32, whole.chains.len() as u32);
        let row_atoms = one.atom_start[one.residues.len()] as usize;
        whole.xyz.extend(one.xyz[..row_atoms].iter().map(moved));
        whole.element.extend(&one.element[..row_atoms]);
        whole.class.extend(&one.class[..row_atoms]);
        whole.atom_name.extend(&one.atom_name[..row_atoms]);
        whole.b_factor.extend(&one.b_factor[..row_atoms]);
        whole.chains.extend(one.chains.iter().cloned());
        whole
            .atom_start
            .extend(one.atom_start[1..].iter().map(|start| start + atoms));
        let index = |atom: u32| {
            if atom == MISSING {
                MISSING
            } else {
                atom + atoms
            }
        };
        whole
            .residues
            .extend(one.residues.iter().map(|residue| Residue {
                chain: residue.chain + chains,
                n: index(residue.n),
                ca: index(residue.ca),
                c: index(residue.c),
                o: index(residue.o),
                cb: index(residue.cb),
                ..*residue
            }));
    }
    whole
}

/// The first residues of a structure, all of one chain.
pub(crate) fn peptide(whole: &Structure, residues: usize) -> Option<Structure> {
    let of_chain = |residue: &Residue| residue.chain == whole.residues[0].chain;
    let first = whole.residues.get(..residues)?;
    let atoms = whole.atom_start[residues] as usize;
    first.iter().all(of_chain).then(|| Structure {
        residues: first.to_vec(),
        chains: whole.chains[..=first[0].chain as usize].to_vec(),
        xyz: whole.xyz[..atoms].to_vec(),
        element: whole.element[..atoms].to_vec(),
        class: whole.class[..atoms].to_vec(),
        atom_name: whole.atom_name[..atoms].to_vec(),
        b_factor: whole.b_factor[..atoms].to_vec(),
        atom_start: whole.atom_start[..=residues].to_vec(),
        loose: Vec::new(),
        ..whole.clone()
    })
}
