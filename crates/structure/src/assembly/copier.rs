//! Copies chains of structures into a new one.

use std::ops::Range;

use super::{AssemblySize, ChainContents, Operator, atoms_of, moved, name_copy};
use crate::Result;
use crate::model::{Channel, LooseResidue, LooseSpan, MISSING, Residue, Structure};
use crate::read_limits::reserve;

/// The chains that each operator of a generator copies.
pub(super) struct GeneratorCopies<'a> {
    /// The index of the structure whose chains are copied.
    source: usize,
    operators: &'a [Operator],
    /// Chains of the source, ascending.
    chains: Vec<u32>,
    residues: Vec<usize>,
    /// Each after its first atom.
    loose: Vec<(u32, LooseSpan)>,
}

impl<'a> GeneratorCopies<'a> {
    /// The copies of `chains`, each with its residues and loose atoms from `contents`.
    pub(super) fn new(
        source: usize,
        contents: &[ChainContents],
        chains: Vec<u32>,
        operators: &'a [Operator],
    ) -> Self {
        let contents = || chains.iter().map(|&chain| &contents[chain as usize]);
        let residues = contents().flat_map(|chain| chain.residues.iter().copied());
        let loose = contents().flat_map(|chain| chain.loose.iter().copied());
        let (mut residues, mut loose): (Vec<usize>, Vec<_>) = (residues.collect(), loose.collect());
        // Chains may alternate in the file, whose order is kept.
        residues.sort_unstable();
        loose.sort_unstable_by_key(|&(first, _)| first);
        GeneratorCopies {
            source,
            operators,
            chains,
            residues,
            loose,
        }
    }

    fn copies(&self) -> impl Iterator<Item = GeneratedCopy<'_>> {
        self.operators.iter().map(|operator| GeneratedCopy {
            generator: self,
            operator,
            chains: vec![None; self.chains.len()],
        })
    }
}

/// One copy that a generator makes.
struct GeneratedCopy<'a> {
    generator: &'a GeneratorCopies<'a>,
    operator: &'a Operator,
    /// For each chain of the generator, its index in the assembly once it is used.
    chains: Vec<Option<u32>>,
}

/// Builds a structure of copies of chains.
pub(super) struct ChainCopier<'a> {
    /// The structures whose chains are copied.
    sources: &'a [&'a Structure],
    built: Structure,
    /// For each chain of each source, its copies so far.
    copies: Vec<Vec<u32>>,
    /// The first atom of each residue without a row, for each source.
    loose_starts: Vec<Vec<u32>>,
}

impl<'a> ChainCopier<'a> {
    /// Starts an empty copy, with room for `total`. The fields of the structure as a whole, such as the
    /// title, are those of the first source.
    ///
    /// # Errors
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if there is no memory for `total`.
    pub(super) fn new(sources: &'a [&'a Structure], total: AssemblySize) -> Result<Self> {
        let first = sources[0];
        let mut built = Structure {
            entry_id: first.entry_id.clone(),
            method: first.method.clone(),
            resolution: first.resolution,
            title: first.title.clone(),
            model: first.model,
            frame: first.frame,
            assembly: first.assembly,
            radii: first.radii,
            b_factor_kind: first.b_factor_kind,
            plddt_scaled: first.plddt_scaled,
            uniprot: first.uniprot.clone(),
            rounded_atoms: first.rounded_atoms,
            truncation: first.truncation,
            findings: first.findings.clone(),
            channels: first.channels.iter().map(without_values).collect(),
            ..Structure::default()
        };
        built.reserve_atoms(total.atoms as usize)?;
        reserve(&mut built.residues, total.residues as usize)?;
        reserve(&mut built.atom_start, total.residues as usize + 1)?;
        Ok(ChainCopier {
            sources,
            built,
            copies: sources
                .iter()
                .map(|source| vec![0; source.chains.len()])
                .collect(),
            loose_starts: sources.iter().map(|source| loose_starts(source)).collect(),
        })
    }

    /// Makes all copies: their residues first, and then the atoms without a row.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if an operator moves an atom beyond the limit of coordinates.
    pub(super) fn copy(mut self, generated: &[GeneratorCopies]) -> Result<Structure> {
        let mut copies: Vec<GeneratedCopy> =
            generated.iter().flat_map(GeneratorCopies::copies).collect();
        for copy in &mut copies {
            self.add_residues(copy)?;
        }
        let rows_end = self.built.xyz.len() as u32;
        self.built.atom_start.push(rows_end);
        for copy in &mut copies {
            self.add_loose(copy)?;
        }
        Ok(self.built)
    }

    /// Adds the residues of a copy. Chain breaks stay as they are: a residue that is linked to the
    /// previous row has the same chain, so that row is copied too.
    fn add_residues(&mut self, copy: &mut GeneratedCopy) -> Result<()> {
        let source = self.sources[copy.generator.source];
        for &index in &copy.generator.residues {
            let residue = source.residues[index];
            let chain = self.chain(copy, residue.chain);
            let from = atoms_of(source, index);
            let to = self.built.xyz.len() as u32;
            let moved = |atom: u32| match atom {
                MISSING => MISSING,
                _ => atom - from.start + to,
            };
            self.built.atom_start.push(to);
            self.built.residues.push(Residue {
                chain,
                n: moved(residue.n),
                ca: moved(residue.ca),
                c: moved(residue.c),
                o: moved(residue.o),
                cb: moved(residue.cb),
                ..residue
            });
            let channels = self.built.channels.iter_mut().zip(&source.channels);
            channels.for_each(|(to, from)| to.values.push(from.values[index]));
            self.add_atoms(source, copy.operator, from)?;
        }
        Ok(())
    }

    /// Copies the atoms without a residue of the copied chains, as they are, to the end of the
    /// structure.
    fn add_loose(&mut self, copy: &mut GeneratedCopy) -> Result<()> {
        let source = self.sources[copy.generator.source];
        for &(first, span) in &copy.generator.loose {
            let chain = self.chain(copy, span.chain);
            self.built.loose.push(LooseSpan { chain, ..span });
            let starts = &self.loose_starts[copy.generator.source];
            let [from, to] = [first, first + span.atom_count]
                .map(|atom| starts.partition_point(|&start| start < atom));
            let residues = &source.loose_residues[from..to];
            let copied = residues
                .iter()
                .map(|&residue| LooseResidue { chain, ..residue });
            self.built.loose_residues.extend(copied);
            self.add_atoms(source, copy.operator, first..first + span.atom_count)?;
        }
        Ok(())
    }

    /// Copies atoms with all that is known of each, and moves their positions.
    fn add_atoms(
        &mut self,
        from: &Structure,
        operator: &Operator,
        atoms: Range<u32>,
    ) -> Result<()> {
        let atoms = atoms.start as usize..atoms.end as usize;
        for &xyz in &from.xyz[atoms.clone()] {
            self.built.xyz.push(moved(operator, xyz)?);
        }
        let to = &mut self.built;
        to.element.extend_from_slice(&from.element[atoms.clone()]);
        to.class.extend_from_slice(&from.class[atoms.clone()]);
        if let Some(names) = from.atom_name.get(atoms.clone()) {
            to.atom_name.extend_from_slice(names);
        }
        if let Some(details) = from.atom_details.get(atoms.clone()) {
            to.atom_details.extend_from_slice(details);
        }
        to.b_factor.extend_from_slice(&from.b_factor[atoms]);
        Ok(())
    }

    /// The index in the assembly of a chain's copy. The first copy keeps the chain's names, the
    /// second copy of `A` is `A-2`.
    fn chain(&mut self, copy: &mut GeneratedCopy, chain: u32) -> u32 {
        let index = copy.generator.chains.binary_search(&chain);
        let index = index.expect("the residue's chain is copied");
        let chain = chain as usize;
        *copy.chains[index].get_or_insert_with(|| {
            let source = copy.generator.source;
            self.copies[source][chain] += 1;
            let number = self.copies[source][chain];
            let mut names = self.sources[source].chains[chain].clone();
            name_copy(&mut names.auth_asym_id, &mut names.label_asym_id, number);
            self.built.chains.push(names);
            self.built.chains.len() as u32 - 1
        })
    }
}

/// The first atom of each residue without a row.
fn loose_starts(structure: &Structure) -> Vec<u32> {
    let mut next = structure.atom_start.last().copied().unwrap_or(0);
    let starts = structure.loose_residues.iter().map(|residue| {
        let start = next;
        next += residue.atom_count;
        start
    });
    starts.collect()
}

fn without_values(channel: &Channel) -> Channel {
    Channel {
        name: channel.name.clone(),
        values: Vec::new(),
    }
}
