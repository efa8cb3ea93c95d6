//! Selects the polymer atoms of a file and turns them into structures.
//!
//! The rules, in the order in which they apply to each model:
//!
//! 1. *Residues.* Runs are gathered into residues; see [`super::residue_runs`].
//! 2. *Polymer.* `_entity.type` decides if the file has it. Otherwise the component table and the
//!    chain's SEQRES decide, and HETATM residues and amino acids of unknown components have to belong
//!    to their chain; see [`super::membership`].
//! 3. *Chains.* A chain of a PDB file that holds several molecules is split; see
//!    [`super::chain_split`].
//! 4. *Sites.* Consecutive residues that differ only in the component, and share no altloc, are one
//!    site: the molecule has one of them at a time (microheterogeneity).
//! 5. *Conformer.* One for each site; see [`super::conformer`].
//! 6. *Rows.* Amino acids in file order, then the atoms of all other residues; see
//!    [`super::structure_builder`].
//!
//! Atoms are of one chain if the author's id, the label id and the entity agree: if one of the ids
//! is missing, or the same everywhere, the others still separate the chains. In PDB files all lines
//! with one chain id are one chain, wherever they are, unless it is split.

use std::collections::HashSet;
use std::ops::Range;

use super::ReadOptions;
use super::atom_table::{AtomLine, AtomRun, AtomTable, Entity, PolymerKind};
use super::chain_split::{ChainSplitter, SplitChain};
use super::checks::{Check, Findings};
use super::components::{self, Component};
use super::conformer::Conformers;
use super::element::is_heavy;
use super::ligands::LigandSelector;
use super::membership::{self, SITE_RESIDUES_MAX};
use super::model::Structure;
use super::read_options::ChainSplit;
use super::references::UniprotReferences;
use super::residue_runs::{ModelRuns, PerModel, RESIDUE_ATOMS_MAX, ResidueRuns};
use super::structure_builder::{Site, StructureBuilder};
use super::text::FilePlace;
use super::text8::Text8;
use crate::{Error, Result};

/// Selects polymers, and keeps its buffers from file to file.
#[derive(Default)]
pub(super) struct PolymerSelector {
    /// The residues that may be polymer.
    candidates: ResidueRuns<Candidate>,
    splitter: ChainSplitter,
    /// For each chain and each accession of the file, its index in the structure once it is used.
    indices: [PerModel<u32>; 2],
    conformers: Conformers,
    ligands: LigandSelector,
}

/// A residue that may be polymer.
pub(super) struct Candidate {
    component: &'static Component,
    pub link: NeededLink,
    /// The chain, or the part of it, as an index into the table's.
    chain: u32,
}

impl Candidate {
    /// The kind of the component.
    pub(super) fn kind(&self) -> PolymerKind {
        self.component.kind
    }
}

/// Which links make a residue part of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NeededLink {
    /// No link: the residue is polymer without one.
    None,
    /// A link that leads to a chain.
    Any,
    /// A peptide bond on one side, as the file marks the residue ([`AtomRun::is_marked`]) and its component
    /// is not known.
    OneSide,
    /// A peptide bond on both sides, as only its atoms N, CA and C suggest that it is an amino acid.
    BothSides,
}

impl PolymerSelector {
    /// The structures of a file, one for each model. `place` turns the offset of a run into its place
    /// in the file, for errors. Sorts the table's runs by model, and adds the parts of split chains to it.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if no model has polymer, a residue of one has no number, a
    /// model holds copies, or a B factor is no pLDDT; [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if there
    /// are too many chains, or there is no memory.
    pub(super) fn select<'a>(
        &mut self,
        table: &mut AtomTable,
        place: impl Fn(u32) -> FilePlace<'a>,
        options: ReadOptions,
    ) -> Result<Vec<Structure>> {
        // The sort is stable: a model whose lines are scattered keeps their order.
        if !table.runs.is_sorted_by_key(|run| run.model) {
            table.runs.sort_by_key(|run| run.model);
        }
        self.candidates.start_file(table.chains.len());
        self.splitter.start_file(table.chains.len());
        self.ligands.start_file(table.chains.len());
        self.indices[0].resize(table.chains.len());
        self.indices[1].resize(table.accessions.len());
        let references = UniprotReferences::new(&table.references);
        let mut structures = Vec::with_capacity(table.models.len());
        let mut has_polymer = false;
        let models = table.runs.chunk_by(|a, b| a.model == b.model);
        let lengths: Vec<usize> = models.map(<[AtomRun]>::len).collect();
        let mut first = 0;
        for len in lengths {
            let range = first..first + len;
            first = range.end;
            let model = ModelRuns::new(table, range.clone());
            self.candidates.gather(model, |run| classify(table, run));
            let dropped = membership::drop_others(&mut self.candidates, model);
            let residues = self.candidates.residues.iter();
            let mut heads = residues.map(|residue| &model.runs[residue.head as usize]);
            if let Some(run) = heads.find(|run| run.seq.is_none()) {
                return Err(place(run.offset).error("a polymer residue has no number of 32 bits"));
            }
            has_polymer |= self.has_heavy_atoms(model);
            let mut findings = Findings::default();
            if let Some(first) = dropped.first {
                let place = || table.residue_text(&model.runs[first as usize]);
                findings.add(Check::DroppedResidues, dropped.count, place);
            }
            if table.may_split_chains && options.chain_split != ChainSplit::Id {
                let split = self
                    .splitter
                    .find(&self.candidates, model, options.chain_split);
                let split = split.map_err(|copies| {
                    let error = place(copies.offset).error(copies.message);
                    error.fix(
                        "write MODEL and ENDMDL around each copy, or read all of it as one model with \
                         chains.split = \"id\"",
                    )
                })?;
                if options.chain_split == ChainSplit::Auto {
                    for split in &split {
                        self.note_split(split, model, &mut findings);
                    }
                }
                for split in &split {
                    self.name_parts(split, table)?;
                }
                self.indices[0].grow(table.chains.len());
            }
            let model = ModelRuns::new(table, range);
            let mut structure = self.build(model, &references, options)?;
            structure.findings.extend(&findings);
            if options.ligands {
                let residues = self.candidates.residues.iter();
                let runs = residues.flat_map(|residue| self.candidates.runs(model, residue));
                let polymer: HashSet<u32> = runs.map(|run| run.offset).collect();
                self.ligands
                    .add(model, &polymer, options.agents, &mut structure);
            }
            if options.chemistry && options.water_reach > 0 {
                self.ligands.add_waters(model, &mut structure);
            }
            structures.push(structure);
        }
        if !has_polymer {
            let message = "no polymer residues: only water, ligands or unknown components";
            return Err(Error::input(message));
        }
        Ok(structures)
    }

    /// Counts where a chain is split.
    fn note_split(&self, split: &SplitChain, model: ModelRuns, findings: &mut Findings) {
        let count = split.starts.len() as u32;
        findings.add(Check::SplitChains, count, || {
            let start = split.starts[0];
            let [before, first] = [start - 1, start].map(|index| {
                let residue = &self.candidates.residues[split.residues[index] as usize];
                model.table.residue_text(&model.runs[residue.head as usize])
            });
            format!("between {before} and {first} ({})", split.reason)
        });
    }

    /// Gives the residues of a chain that is split the chains of its parts.
    fn name_parts(&mut self, split: &SplitChain, table: &mut AtomTable) -> Result<()> {
        let ends = split.starts.iter().copied();
        let ends = ends.chain([split.residues.len()]);
        let mut first = 0;
        for (number, end) in (1..).zip(ends) {
            let chain = table.chain_part(split.chain, number)?;
            for &residue in &split.residues[first..end] {
                self.candidates.residues[residue as usize].data.chain = chain;
            }
            first = end;
        }
        Ok(())
    }

    fn has_heavy_atoms(&self, model: ModelRuns) -> bool {
        let residues = self.candidates.residues.iter();
        let mut atoms = residues.flat_map(|residue| self.candidates.atoms(model, residue));
        atoms.any(|atom| is_heavy(atom.element))
    }

    /// Builds the structure of a model from its candidates, which must belong to the polymer, in
    /// two passes: amino acids get rows, and the atoms of all others follow. Caps that files have
    /// among the atoms of a residue come at the place of that residue.
    fn build(
        &mut self,
        model: ModelRuns,
        references: &UniprotReferences,
        options: ReadOptions,
    ) -> Result<Structure> {
        let residues = &self.candidates.residues;
        let count = residues.len();
        let atoms = residues.iter().map(|residue| residue.atoms).sum();
        let number = model.runs[0].model;
        let indices = std::mem::take(&mut self.indices);
        let mut builder = StructureBuilder::new(model.table, references, number, options, indices);
        builder.reserve(count, atoms)?;
        for rows in [true, false] {
            let mut next = 0;
            while next < count {
                let site = self.site(model, next);
                next = site.end;
                let wanted = match self.candidates.residues[site.start].data.component.kind {
                    PolymerKind::Amino => rows,
                    PolymerKind::Nucleotide => !rows && options.nucleic,
                    PolymerKind::Cap => !rows,
                };
                let first = site.start;
                if wanted {
                    self.add_site(model, site, &mut builder);
                } else if !rows {
                    builder.add_caps(first);
                }
            }
            if rows {
                builder.end_rows();
            }
        }
        let (structure, indices) = builder.finish(options.b_factor_kind)?;
        self.indices = indices;
        Ok(structure)
    }

    /// The candidates of the site that starts with candidate `first`: those after it with its
    /// number and chain, while none of them shares an altloc with another.
    fn site(&self, model: ModelRuns, first: usize) -> Range<usize> {
        let number = self.candidates.number(model, first);
        let chain = |candidate: usize| self.candidates.residues[candidate].data.chain;
        let same_number = (first + 1..self.candidates.residues.len())
            .take(SITE_RESIDUES_MAX)
            .take_while(|&other| self.candidates.number(model, other) == number)
            .take_while(|&other| chain(other) == chain(first))
            .count();
        let mut end = first + 1;
        if same_number > 0 {
            let mut taken = self.altlocs(model, first);
            while end <= first + same_number {
                let altlocs = self.altlocs(model, end);
                if taken
                    .iter()
                    .zip(altlocs)
                    .any(|(taken, more)| taken & more != 0)
                {
                    break;
                }
                for (taken, more) in taken.iter_mut().zip(altlocs) {
                    *taken |= more;
                }
                end += 1;
            }
        }
        first..end
    }

    /// The altlocs of a candidate's atoms, one bit each. No altloc counts as one.
    fn altlocs(&self, model: ModelRuns, candidate: usize) -> [u64; 4] {
        let mut bits = [0; 4];
        for atom in self
            .candidates
            .atoms(model, &self.candidates.residues[candidate])
        {
            bits[usize::from(atom.altloc / 64)] |= 1 << (atom.altloc % 64);
        }
        bits
    }

    /// Adds the chosen conformer of a site.
    fn add_site(&mut self, model: ModelRuns, site: Range<usize>, builder: &mut StructureBuilder) {
        let residues = &self.candidates.residues;
        let first = &residues[site.start];
        let run = &model.runs[first.head as usize];
        if site.len() == 1 && first.is_one_run() && run.is_plain {
            let atoms = model.table.atoms_of(run);
            let site = Site::plain(site.start, first.data.chain);
            builder.add(site, run, first.data.component, atoms);
            return;
        }
        self.conformers.clear();
        for (index, residue) in residues[site.clone()].iter().enumerate() {
            let atoms = self.candidates.atoms(model, residue);
            self.conformers.add(index, atoms);
        }
        let found = Site {
            index: site.start,
            chain: first.data.chain,
            is_alternate: self.conformers.has_alternates(),
            virtual_sites: self.conformers.virtual_sites(),
        };
        if let Some((index, atoms)) = self.conformers.choose() {
            let chosen = &residues[site.start + index];
            let run = &model.runs[chosen.head as usize];
            builder.add(found, run, chosen.data.component, atoms);
        }
    }
}

/// The component of a run that may be polymer; `None` for any other run.
fn classify(table: &AtomTable, run: &AtomRun) -> Option<Candidate> {
    let known = components::lookup(run.comp);
    let (component, link) = match table.chains[run.chain as usize].entity_type {
        Entity::Other => return None,
        Entity::Unknown => component_without_entity(table, run, known)?,
        Entity::Polymer(units) => {
            let declared = || table.components.get(&run.comp).copied();
            // In a polymer of neither kind: atoms without a row.
            let unknown = || Component::unknown(declared().or(units).unwrap_or(PolymerKind::Cap));
            (known.unwrap_or_else(unknown), NeededLink::None)
        }
    };
    Some(Candidate {
        component,
        link,
        chain: run.chain,
    })
}

/// The component of a run without an entity, and the link that the residue needs; `None` if it is
/// not polymer. Components of the chain's SEQRES that are not standard need none before TER.
fn component_without_entity(
    table: &AtomTable,
    run: &AtomRun,
    known: Option<&'static Component>,
) -> Option<(&'static Component, NeededLink)> {
    let needed = |needs: bool| {
        if needs {
            NeededLink::Any
        } else {
            NeededLink::None
        }
    };
    let is_standard = known.is_some_and(|known| known.parent == run.comp);
    if is_standard || (known.is_some() && !run.is_hetero) {
        // Lipids and beads of coarse models have names of amino acids too: DPP.
        let known = known.filter(|known| is_standard || is_possible(known, table.atoms_of(run)));
        return Some((known?, needed(run.is_hetero)));
    }
    let chain = table.chains[run.chain as usize].auth;
    let is_listed = table.sequences.has(chain, run.comp);
    let by_sequence = || Some(Component::unknown(table.sequences.kind(chain)?));
    let component = match known {
        None if is_listed => by_sequence()?,
        None => {
            let link = if run.is_marked {
                NeededLink::OneSide
            } else {
                NeededLink::BothSides
            };
            return has_backbone(table, run)
                .then_some((Component::unknown(PolymerKind::Amino), link));
        }
        Some(known) => known,
    };
    let is_certain = run.comp == *b"MSE     " || (is_listed && run.segment == 0);
    Some((component, needed(run.is_hetero && !is_certain)))
}

/// Whether a residue with these atoms can be of a component that is not standard: an amino acid has an
/// atom of the backbone, or those of a chromophore with their numbers.
fn is_possible(component: &'static Component, atoms: &[AtomLine]) -> bool {
    const NAMES: [Text8; 5] = [
        *b"N       ",
        *b"CA      ",
        *b"C       ",
        *b"CA1     ",
        *b"CA3     ",
    ];
    let mut atoms = atoms.iter().take(RESIDUE_ATOMS_MAX);
    component.kind != PolymerKind::Amino || atoms.any(|atom| NAMES.contains(&atom.name))
}

/// Whether a run has the atoms N, CA and C, as amino acids do.
fn has_backbone(table: &AtomTable, run: &AtomRun) -> bool {
    const NAMES: [Text8; 3] = [*b"N       ", *b"CA      ", *b"C       "];
    if run.atoms.len() < NAMES.len() {
        return false;
    }
    let atoms = table.atoms_of(run);
    let atoms = &atoms[..atoms.len().min(RESIDUE_ATOMS_MAX)];
    let has = |name: &Text8| atoms.iter().any(|atom| atom.name == *name);
    NAMES.iter().all(has)
}
