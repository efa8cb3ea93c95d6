//! Biological assemblies: copies of chains, each moved by an operator.
//!
//! The reader of a format finds the [`Generators`] of assembly 1, and [`build_all`] applies them to
//! the deposited structures. Copies come in the order of the generators and of their operators.
//! Residues keep their order within a copy. [`extract_chains`] makes one copy of some chains, and moves
//! nothing, and [`concatenate`] joins all chains of several structures.

mod copier;
mod ligands;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::decimal::LIMIT_MILLI;
use super::model::{Assembly, Chain, LooseSpan, Structure};
use super::read_limits::{ReadLimits, check};
use crate::{Error, Result};
use copier::{ChainCopier, GeneratorCopies};

/// The fix for a file whose assembly cannot be built.
pub(super) const FIX: &str = "correct the file, or read the deposited structure";

/// The generators of an assembly. A generator lists chains and has operators; each operator makes
/// one copy of all listed chains.
#[derive(Default)]
pub(super) struct Generators {
    /// The operators of each generator.
    operators: Vec<Vec<Operator>>,
    /// For each chain, the generators that list it, ascending. The key is the chain's
    /// `label_asym_id`, or its chain id in a format without label ids.
    by_chain: HashMap<String, Vec<u32>>,
    /// Whether the format has no label ids. Those of its structures name the parts of chains.
    by_chain_id: bool,
    /// Chains that the generators list in total.
    listed: u64,
}

impl Generators {
    /// No generators, for a format without label ids.
    pub(super) fn by_chain_id() -> Self {
        Generators {
            by_chain_id: true,
            ..Generators::default()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.operators.is_empty()
    }

    /// Adds a generator that lists no chains.
    pub(super) fn add(&mut self, operators: Vec<Operator>) {
        self.operators.push(operators);
    }

    /// The operators of the last generator.
    pub(super) fn operators(&mut self) -> Option<&mut Vec<Operator>> {
        self.operators.last_mut()
    }

    /// Adds chains to the last generator. A chain that it lists twice is copied once.
    ///
    /// # Errors
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if the generators together list more
    /// than `max` chains.
    pub(super) fn add_chains<'a>(
        &mut self,
        chains: impl Iterator<Item = Cow<'a, str>>,
        max: u32,
    ) -> Result<()> {
        let generator = self.operators.len() as u32 - 1;
        for chain in chains {
            let generators = match self.by_chain.get_mut(&*chain) {
                Some(known) => known,
                None => self.by_chain.entry(chain.into_owned()).or_default(),
            };
            if generators.last() != Some(&generator) {
                generators.push(generator);
                self.listed += 1;
                let what = || "the generators of assembly 1 list too many chains";
                check("chains_max", max, self.listed, what)?;
            }
        }
        Ok(())
    }
}

/// Refuses more operators than an assembly may have, with an
/// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) error.
pub(super) fn check_operators(count: usize, limits: &ReadLimits) -> Result<()> {
    let what = || "assembly 1 has too many operators";
    check("operators_max", limits.operators_max, count as u64, what)
}

/// A rotation followed by a shift.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Operator {
    rotation: [[f64; 3]; 3],
    /// In 0.001 A.
    shift: [f64; 3],
}

impl Operator {
    const IDENTITY: Operator = Operator {
        rotation: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        shift: [0.0; 3],
    };

    /// The operator of three rows: three elements of the rotation and the shift in A. `None` if a
    /// number is not finite or the matrix is not a rotation.
    pub(super) fn new(rows: [[f64; 4]; 3]) -> Option<Self> {
        let operator = Operator {
            rotation: rows.map(|[x, y, z, _]| [x, y, z]),
            shift: rows.map(|row| row[3] * 1000.0),
        };
        let finite = operator.shift.iter().all(|shift| shift.is_finite());
        (finite && operator.is_rotation()).then_some(operator)
    }

    /// Whether the rows have length one, are at right angles, and are right-handed. Files round
    /// the elements to six digits or more.
    fn is_rotation(&self) -> bool {
        // Far above rounding; right angles are within 0.6 degrees. Mirrors and scales differ by
        // much more.
        const TOLERANCE: f64 = 0.01;
        let [x, y, z] = self.rotation;
        let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        let cross = [
            x[1] * y[2] - x[2] * y[1],
            x[2] * y[0] - x[0] * y[2],
            x[0] * y[1] - x[1] * y[0],
        ];
        let ones = [dot(x, x), dot(y, y), dot(z, cross)];
        let zeros = [dot(x, y), dot(y, z), dot(z, x)];
        ones.iter().all(|one| (one - 1.0).abs() < TOLERANCE)
            && zeros.iter().all(|zero| zero.abs() < TOLERANCE)
    }

    /// The operator that applies `first` and then `self`.
    pub(super) fn after(&self, first: &Operator) -> Operator {
        let column = |axis: usize| first.rotation.map(|row| row[axis]);
        let columns = [0, 1, 2].map(|axis| self.rotate(column(axis)));
        let turned = self.rotate(first.shift);
        Operator {
            rotation: [0, 1, 2].map(|row| columns.map(|column| column[row])),
            shift: [0, 1, 2].map(|axis| turned[axis] + self.shift[axis]),
        }
    }

    fn rotate(&self, p: [f64; 3]) -> [f64; 3] {
        self.rotation
            .map(|[x, y, z]| x * p[0] + y * p[1] + z * p[2])
    }

    /// Moves a position and rounds it to 0.001 A, halves away from zero; `None` if it gets beyond
    /// the limit of coordinates.
    fn apply(&self, xyz: [i32; 3]) -> Option<[i32; 3]> {
        let turned = self.rotate(xyz.map(f64::from));
        let moved = [0, 1, 2].map(|axis| (turned[axis] + self.shift[axis]).round());
        let limit = f64::from(LIMIT_MILLI);
        let inside = moved.iter().all(|value| value.abs() <= limit);
        inside.then(|| moved.map(|value| value as i32))
    }
}

/// The assemblies of the models of a file.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind::Input) if no chain of a model is in the assembly or an
/// atom gets too far out, [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if an assembly, or all
/// of them, exceed a limit.
pub(super) fn build_all(
    deposited: &[Structure],
    generators: &Generators,
    limits: &ReadLimits,
) -> Result<Vec<Structure>> {
    let (mut atoms, mut residues) = (0, 0);
    let mut build = |structure: &Structure| {
        let built = build(structure, generators, limits)?;
        let ligands = built.ligands.iter().chain(&built.waters);
        let ligand_atoms = ligands.map(|ligand| ligand.atoms.len());
        atoms += (built.xyz.len() + ligand_atoms.sum::<usize>()) as u64;
        residues += built.residues.len() as u64;
        let what = |unit| move || format!("the assemblies of all models have too many {unit}");
        check("atoms_max", limits.atoms_max, atoms, what("atoms"))?;
        check(
            "residues_max",
            limits.residues_max,
            residues,
            what("residues"),
        )?;
        Ok(built)
    };
    deposited.iter().map(&mut build).collect()
}

/// Builds assembly 1 of a deposited structure: a copy of each chain for each operator of its
/// generators, then of ligands and waters. Checks the size of the chains before they are copied. An
/// [`ErrorKind::Input`](crate::ErrorKind::Input) error if no atom is copied.
fn build(deposited: &Structure, generators: &Generators, limits: &ReadLimits) -> Result<Structure> {
    let contents = contents_of_chains(deposited);
    let mut total = AssemblySize::default();
    let mut generated = Vec::new();
    let copied = copied_chains(deposited, generators, limits)?;
    for copied in copied.chunk_by(|a, b| a.0 == b.0) {
        let operators = &generators.operators[copied[0].0 as usize];
        let chains: Vec<u32> = copied.iter().map(|&(_, chain)| chain).collect();
        total.add(&contents, &chains, operators.len());
        total.check(limits)?;
        generated.push(GeneratorCopies::new(0, &contents, chains, operators));
    }
    if total.atoms == 0 && !deposited.xyz.is_empty() {
        return Err(Error::input("no atom is in a chain of assembly 1").fix(FIX));
    }
    let mut built = ChainCopier::new(&[deposited], total)?.copy(&generated)?;
    let mut atoms = built.xyz.len();
    built.ligands = ligands::copies(&deposited.ligands, generators, limits, atoms)?;
    atoms += built
        .ligands
        .iter()
        .map(|ligand| ligand.atoms.len())
        .sum::<usize>();
    built.waters = ligands::copies(&deposited.waters, generators, limits, atoms)?;
    Ok(Structure {
        assembly: Assembly::First,
        ..built
    })
}

/// The structure of some `chains` of `structure`, which are ascending.
///
/// # Errors
/// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if there is no memory for it.
pub(super) fn extract_chains(structure: &Structure, chains: Vec<u32>) -> Result<Structure> {
    let contents = contents_of_chains(structure);
    let mut total = AssemblySize::default();
    total.add(&contents, &chains, 1);
    let copied = GeneratorCopies::new(0, &contents, chains, &[Operator::IDENTITY]);
    ChainCopier::new(&[structure], total)?.copy(&[copied])
}

/// All chains of several structures, one structure after the other. What concerns a structure as a whole is
/// that of the first; UniProt accessions must have the same indices in all.
///
/// # Errors
/// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if there is no memory for them.
pub(super) fn concatenate(structures: &[Structure]) -> Result<Structure> {
    let mut total = AssemblySize::default();
    let mut copied = Vec::new();
    for (source, structure) in structures.iter().enumerate() {
        let contents = contents_of_chains(structure);
        let chains: Vec<u32> = (0..structure.chains.len() as u32).collect();
        total.add(&contents, &chains, 1);
        copied.push(GeneratorCopies::new(
            source,
            &contents,
            chains,
            &[Operator::IDENTITY],
        ));
    }
    let sources: Vec<&Structure> = structures.iter().collect();
    ChainCopier::new(&sources, total)?.copy(&copied)
}

/// Gives a chain the names of copy `number`; the first keeps its names.
pub(super) fn name_copy(auth: &mut Arc<str>, label: &mut Option<Arc<str>>, number: u32) {
    if number > 1 {
        *auth = copy_name(auth, number);
        if let Some(label) = label {
            *label = copy_name(label, number);
        }
    }
}

/// The name of copy `number` of a chain.
pub(super) fn copy_name(name: &str, number: u32) -> Arc<str> {
    format!("{name}-{number}").into()
}

/// Pairs of a generator and a chain of the deposited structure that it copies, ascending. The time
/// is linear in the chains and the pairs, so generators that copy nothing cost nothing.
///
/// # Errors
/// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if there are more pairs than chains that an assembly may
/// have.
fn copied_chains(
    deposited: &Structure,
    generators: &Generators,
    limits: &ReadLimits,
) -> Result<Vec<(u32, u32)>> {
    let copied_by = |chain: &Chain| {
        let label = chain.label_asym_id.as_ref();
        let label = label.filter(|_| !generators.by_chain_id);
        let id = label.unwrap_or(&chain.auth_asym_id);
        generators
            .by_chain
            .get(&**id)
            .map_or(&[][..], Vec::as_slice)
    };
    let counts = deposited.chains.iter().map(|chain| copied_by(chain).len());
    let count: usize = counts.sum();
    // Each generator has at least one operator.
    let what = || format!("assembly 1 has at least {count} chains");
    check("chains_max", limits.chains_max, count as u64, what)?;
    let mut copied = Vec::with_capacity(count);
    for (index, chain) in (0..).zip(&deposited.chains) {
        copied.extend(copied_by(chain).iter().map(|&generator| (generator, index)));
    }
    copied.sort_unstable();
    Ok(copied)
}

/// The residues and atoms of a chain of the deposited structure.
#[derive(Default)]
struct ChainContents {
    residues: Vec<usize>,
    /// Each after its first atom.
    loose: Vec<(u32, LooseSpan)>,
    atom_count: usize,
}

/// The residues and the loose atoms of each chain.
fn contents_of_chains(deposited: &Structure) -> Vec<ChainContents> {
    let mut chains = Vec::new();
    chains.resize_with(deposited.chains.len(), ChainContents::default);
    for (index, residue) in deposited.residues.iter().enumerate() {
        let chain = &mut chains[residue.chain as usize];
        chain.residues.push(index);
        chain.atom_count += atoms_of(deposited, index).len();
    }
    let mut first = deposited.atom_start[deposited.residues.len()];
    for &span in &deposited.loose {
        let chain = &mut chains[span.chain as usize];
        chain.loose.push((first, span));
        chain.atom_count += span.atom_count as usize;
        first += span.atom_count;
    }
    chains
}

/// The size of an assembly.
#[derive(Clone, Copy, Default)]
struct AssemblySize {
    atoms: u64,
    residues: u64,
    chains: u64,
}

impl AssemblySize {
    /// Adds `copies` of some chains. Each factor is below 2^32, so a product fits; sums of many
    /// saturate, and [`AssemblySize::check`] refuses them.
    fn add(&mut self, contents: &[ChainContents], chains: &[u32], copies: usize) {
        let sum = |count: fn(&ChainContents) -> usize| -> u64 {
            let counts = chains.iter().map(|&chain| count(&contents[chain as usize]));
            (counts.sum::<usize>() as u64).saturating_mul(copies as u64)
        };
        self.atoms = self.atoms.saturating_add(sum(|chain| chain.atom_count));
        let residues = sum(|chain| chain.residues.len());
        self.residues = self.residues.saturating_add(residues);
        self.chains = self.chains.saturating_add(sum(|_| 1));
    }

    /// Checks the size of an assembly against the limits, before it takes memory; else an
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) error.
    fn check(&self, limits: &ReadLimits) -> Result<()> {
        let (atoms_max, residues_max) = (limits.assembly_atoms_max, limits.assembly_residues_max);
        let what = |count, unit| move || format!("assembly 1 has {count} {unit}");
        check(
            "assembly_atoms_max",
            atoms_max,
            self.atoms,
            what(self.atoms, "atoms"),
        )?;
        let residues = what(self.residues, "residues");
        check(
            "assembly_residues_max",
            residues_max,
            self.residues,
            residues,
        )?;
        check(
            "chains_max",
            limits.chains_max,
            self.chains,
            what(self.chains, "chains"),
        )
    }
}

/// The position of an atom of the assembly.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind::Input) if it is beyond the limit of coordinates.
fn moved(operator: &Operator, xyz: [i32; 3]) -> Result<[i32; 3]> {
    operator.apply(xyz).ok_or_else(|| {
        let limit = LIMIT_MILLI / 1000;
        let message = format!("assembly 1 has an atom beyond {limit} A");
        Error::input(message).fix(FIX)
    })
}

/// The atoms of a residue.
fn atoms_of(structure: &Structure, residue: usize) -> Range<u32> {
    structure.atom_start[residue]..structure.atom_start[residue + 1]
}
