//! Copies of ligands.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Generators, Operator, moved, name_copy};
use crate::Result;
use crate::model::{Ligand, LigandAtom};
use crate::read_limits::{ReadLimits, check};

/// Returns copies of those ligands, or waters, whose chains the generators list, in the order of the chains'
/// copies and, within a copy, of the deposited ones. A ligand's molecule is copied with it. The assembly
/// has `atoms` other atoms.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind::Input) if an atom gets too far out,
/// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if the assembly has too many atoms.
pub(super) fn copies(
    ligands: &[Ligand],
    generators: &Generators,
    limits: &ReadLimits,
    atoms: usize,
) -> Result<Vec<Ligand>> {
    // The generators may be many more than the models' atoms.
    if ligands.is_empty() {
        return Ok(Vec::new());
    }
    check_atoms(ligands, generators, limits, atoms)?;
    let mut built = Vec::new();
    let pairs = ligands.iter().enumerate().flat_map(|(index, ligand)| {
        let generators = generators.by_chain.get(chain_id(ligand));
        let generators = generators.map_or(&[][..], Vec::as_slice);
        generators.iter().map(move |&generator| (generator, index))
    });
    let mut pairs: Vec<(u32, usize)> = pairs.collect();
    pairs.sort_unstable();
    // The copies so far of each chain, and the number of each copy of a molecule.
    let mut copies: HashMap<&str, u32> = HashMap::new();
    let mut molecules = HashMap::new();
    for pairs in pairs.chunk_by(|a, b| a.0 == b.0) {
        for operator in &generators.operators[pairs[0].0 as usize] {
            let mut chains: HashMap<&str, ChainCopy> = HashMap::new();
            for &(_, index) in pairs {
                let ligand = &ligands[index];
                let id = chain_id(ligand);
                let chain = chains.entry(id).or_insert_with(|| {
                    let number = copies.entry(id).or_insert(0);
                    *number += 1;
                    ChainCopy::new(ligand, *number)
                });
                let next = molecules.len() as u32;
                let molecule = (ligand.molecule, chain.number);
                built.push(Ligand {
                    auth_asym_id: Arc::clone(&chain.auth_asym_id),
                    label_asym_id: chain.label_asym_id.clone(),
                    molecule: *molecules.entry(molecule).or_insert(next),
                    atoms: atoms_of_copy(ligand, operator)?,
                    ..ligand.clone()
                });
            }
        }
    }
    Ok(built)
}

/// Refuses an assembly of more atoms than the limit with an
/// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) error, without listing the copies. It has
/// `other_atoms` atoms already.
fn check_atoms(
    ligands: &[Ligand],
    generators: &Generators,
    limits: &ReadLimits,
    other_atoms: usize,
) -> Result<()> {
    let copies_of = |id: &str| -> u64 {
        let listing = generators.by_chain.get(id).into_iter().flatten();
        let operators =
            listing.map(|&generator| generators.operators[generator as usize].len() as u64);
        operators.sum()
    };
    // Of the chains of these ligands alone: each model asks, and generators may list many others.
    let mut copies: HashMap<&str, u64> = HashMap::new();
    let atoms = ligands.iter().fold(other_atoms as u64, |sum, ligand| {
        let id = chain_id(ligand);
        let copies = *copies.entry(id).or_insert_with(|| copies_of(id));
        sum.saturating_add(copies.saturating_mul(ligand.atoms.len() as u64))
    });
    check(
        "assembly_atoms_max",
        limits.assembly_atoms_max,
        atoms,
        || format!("assembly 1 has {atoms} atoms with its ligands"),
    )
}

/// The id by which generators list the ligand's chain.
fn chain_id(ligand: &Ligand) -> &str {
    ligand
        .label_asym_id
        .as_deref()
        .unwrap_or(&ligand.auth_asym_id)
}

/// A copy of a chain. The first keeps the names, the second of `A` is `A-2`.
struct ChainCopy {
    number: u32,
    auth_asym_id: Arc<str>,
    label_asym_id: Option<Arc<str>>,
}

impl ChainCopy {
    /// The names of copy `number`, from 1, of the ligand's chain.
    fn new(ligand: &Ligand, number: u32) -> Self {
        let (mut auth_asym_id, mut label_asym_id) = (
            Arc::clone(&ligand.auth_asym_id),
            ligand.label_asym_id.clone(),
        );
        name_copy(&mut auth_asym_id, &mut label_asym_id, number);
        ChainCopy {
            number,
            auth_asym_id,
            label_asym_id,
        }
    }
}

fn atoms_of_copy(ligand: &Ligand, operator: &Operator) -> Result<Arc<[LigandAtom]>> {
    let atoms = ligand.atoms.iter().map(|atom| {
        let xyz = moved(operator, atom.xyz)?;
        Ok(LigandAtom { xyz, ..*atom })
    });
    atoms.collect()
}
