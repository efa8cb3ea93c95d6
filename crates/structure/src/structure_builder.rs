//! Builds a [`Structure`] residue by residue.

use std::collections::VecDeque;

use super::atom_table::{AtomLine, AtomRun, AtomTable};
use super::checks::Check;
use super::components::Component;
use super::model::{
    BFactorKind, LooseResidue, LooseSpan, MISSING, Residue, ResidueFlags, Structure, Uniprot,
};
use super::read_limits::reserve;
use super::read_options::ReadOptions;
use super::references::{ChainReferences, UniprotReferences};
use super::residue_atoms::{ResidueAtoms, UnusualAtoms, cap_component, cap_id};
use super::residue_runs::PerModel;
use super::residue_template::ResidueTemplates;
use super::text8::Text8;
use crate::{Error, Result};

/// Atoms of a bond of the backbone are closer than this, in 0.001 A (docs/METHODS.md).
pub(super) const LINK: i64 = 2_000;

/// Atoms closer than this are in one place, in 0.001 A: they are alternates or copies of each other. No bond
/// of heavy atoms is as short.
pub(super) const SAME_PLACE: i64 = 1_000;

/// Residues without both C and N are linked if their alpha carbons are closer than this, in
/// 0.001 A (docs/METHODS.md): those of a peptide bond are 3.8 A apart.
pub(super) const CA_LINK: i64 = 4_300;

/// The site of a residue, and what was chosen or left out there.
#[derive(Clone, Copy)]
pub(super) struct Site {
    /// The index of the site's first candidate.
    pub index: usize,
    /// The site's chain, as an index into the table's chains: the chain of its runs, or a part of it.
    pub chain: u32,
    /// Whether the atoms are of one alternate location, or of one of several components.
    pub is_alternate: bool,
    /// The virtual sites that were left out.
    pub virtual_sites: UnusualAtoms,
}

impl Site {
    /// The site of one candidate of which every atom is taken, as there was nothing to choose or to leave out.
    /// The residue itself may be incomplete.
    pub(super) fn plain(index: usize, chain: u32) -> Self {
        Site {
            index,
            chain,
            is_alternate: false,
            virtual_sites: UnusualAtoms::default(),
        }
    }

    fn flags(&self) -> ResidueFlags {
        let chosen = ResidueFlags::ALTERNATE_CHOSEN.when(self.is_alternate);
        chosen.with(ResidueFlags::ATOMS_LEFT_OUT.when(self.virtual_sites.count > 0))
    }
}

/// Builds a structure: first the residues with rows, then [`StructureBuilder::end_rows`], then the
/// atoms without a row.
pub(super) struct StructureBuilder<'a> {
    table: &'a AtomTable,
    templates: &'static ResidueTemplates,
    structure: Structure,
    in_rows: bool,
    /// Whether the structure gets [`Structure::atom_details`].
    keeps_details: bool,
    /// Whether it gets [`Structure::loose_residues`].
    keeps_loose_residues: bool,
    /// The atoms of the last residue that did not match its template. The memory is for reuse.
    resolved: ResidueAtoms,
    /// Atoms of caps that files have among those of a residue: the residue's site, its chain, whether
    /// the cap starts the chain, and the atoms.
    caps: VecDeque<(usize, u32, bool, Vec<AtomLine>)>,
    references: &'a UniprotReferences,
    /// The chain of the last row, as an index into the file's, and its references.
    chain: Option<u32>,
    chain_references: ChainReferences<'a>,
    /// For each chain and each accession of the file, its index in the structure once it is used.
    chains: PerModel<u32>,
    accessions: PerModel<u32>,
}

impl<'a> StructureBuilder<'a> {
    /// A structure without residues. `indices` is memory for the indices of chains and of accessions, which
    /// [`StructureBuilder::finish`] returns.
    pub(super) fn new(
        table: &'a AtomTable,
        references: &'a UniprotReferences,
        model: u32,
        options: ReadOptions,
        indices: [PerModel<u32>; 2],
    ) -> Self {
        let structure = Structure {
            entry_id: table.entry_id.clone(),
            method: table.header.method.get(),
            resolution: table.header.resolution,
            title: table.header.title.get(),
            model: table.models[model as usize],
            truncation: table.truncation,
            radii: options.radii,
            ..Structure::default()
        };
        let [mut chains, mut accessions] = indices;
        chains.clear();
        accessions.clear();
        StructureBuilder {
            table,
            templates: ResidueTemplates::table(),
            structure,
            in_rows: true,
            keeps_details: options.atom_details || options.chemistry,
            keeps_loose_residues: options.chemistry,
            resolved: ResidueAtoms::default(),
            caps: VecDeque::new(),
            references,
            chain: None,
            chain_references: ChainReferences::default(),
            chains,
            accessions,
        }
    }

    /// Makes room for residues and atoms.
    ///
    /// # Errors
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if there is no memory for them.
    pub(super) fn reserve(&mut self, residues: usize, atoms: usize) -> Result<()> {
        let structure = &mut self.structure;
        reserve(&mut structure.residues, residues)?;
        reserve(&mut structure.atom_start, residues + 1)?;
        structure.reserve_atoms(atoms)
    }

    /// Adds the residue of a site with its atoms, none of them hydrogen. Nearly all match the
    /// template of their component; what was added for one that does not is taken back.
    pub(super) fn add(
        &mut self,
        site: Site,
        run: &AtomRun,
        component: &'static Component,
        atoms: &[AtomLine],
    ) {
        let structure = &mut self.structure;
        let start = structure.xyz.len() as u32;
        let template = self.templates.get(component.template);
        let applied = template.apply(atoms, &mut structure.class, &mut structure.atom_name);
        if applied.is_subset && !component.is_simulation_name && site.virtual_sites.count == 0 {
            self.push(
                site.chain,
                run,
                component,
                atoms,
                applied.backbone,
                site.flags(),
            );
        } else {
            structure.class.truncate(start as usize);
            structure.atom_name.truncate(start as usize);
            self.add_unusual(site, run, component, atoms);
        }
    }

    /// Adds a residue whose atoms or names do not match its component's template. Counts in the
    /// findings what is unusual, and keeps the atoms of caps for [`StructureBuilder::add_caps`], as
    /// they have no row.
    #[cold]
    fn add_unusual(
        &mut self,
        site: Site,
        run: &AtomRun,
        component: &'static Component,
        atoms: &[AtomLine],
    ) {
        let mut resolved = std::mem::take(&mut self.resolved);
        let component = resolved.resolve(run.comp, component, atoms);
        let renamed = ResidueFlags::SIMULATION_NAME.when(component.is_simulation_name);
        let flags = resolved.flags.with(renamed).with(site.flags());
        for (check, found) in [
            (Check::LeftOutAtoms, site.virtual_sites),
            (Check::LeftOutAtoms, resolved.repeated),
            (Check::UnknownAtoms, resolved.unknown),
            (Check::CorrectedElements, resolved.other_elements),
        ] {
            let place = || {
                format!(
                    "{}: atom {}",
                    self.table.residue_text(run),
                    text(&found.first)
                )
            };
            let findings = &mut self.structure.findings;
            findings.add(check, found.count, place);
        }
        for (cap, is_start) in resolved.caps.iter().zip([true, false]) {
            if !cap.is_empty() {
                let cap = (site.index, site.chain, is_start, cap.clone());
                self.caps.push_back(cap);
            }
        }
        let template = self.templates.get(component.template);
        let structure = &mut self.structure;
        let atoms = &resolved.atoms;
        let applied = template.apply(atoms, &mut structure.class, &mut structure.atom_name);
        self.push(site.chain, run, component, atoms, applied.backbone, flags);
        self.resolved = resolved;
    }

    /// Adds the atoms of caps that the file has among those of the residue of a site.
    #[inline]
    pub(super) fn add_caps(&mut self, site: usize) {
        while self.caps.front().is_some_and(|cap| cap.0 == site) {
            self.add_first_cap();
        }
    }

    /// Adds the first of the caps that wait as atoms without a residue.
    fn add_first_cap(&mut self) {
        let Some((_, chain, is_start, atoms)) = self.caps.pop_front() else {
            return;
        };
        let template = self.templates.get(cap_component(is_start).template);
        let structure = &mut self.structure;
        template.apply(&atoms, &mut structure.class, &mut structure.atom_name);
        let comp_id = cap_id(is_start);
        self.push_atoms(&atoms, [comp_id; 2]);
        let chain = self.add_loose(chain, atoms.len() as u32);
        self.add_loose_residue(LooseResidue {
            chain,
            atom_count: atoms.len() as u32,
            auth_seq_id: None,
            ins_code: 0,
            comp_id,
            parent_comp_id: *b"        ",
        });
    }

    /// Adds atoms, whose classes and names have been added, of a component and of the one that it is a
    /// variant of.
    #[inline(always)]
    fn push_atoms(&mut self, atoms: &[AtomLine], components: [Text8; 2]) {
        let structure = &mut self.structure;
        let radii = structure.radii;
        let names = atoms.iter().map(|atom| (atom.name, atom.element));
        radii.classify(components, names, &mut structure.class);
        structure.xyz.extend(atoms.iter().map(|atom| atom.xyz));
        structure
            .element
            .extend(atoms.iter().map(|atom| atom.element));
        structure
            .b_factor
            .extend(atoms.iter().map(|atom| atom.b_factor));
        if self.keeps_details {
            structure
                .atom_details
                .extend(atoms.iter().map(AtomLine::details));
        }
        let rounded = atoms.iter().map(|atom| u32::from(atom.rounded));
        structure.rounded_atoms += rounded.sum::<u32>();
    }

    /// Adds a residue whose classes and names of atoms have been added.
    #[inline(always)]
    fn push(
        &mut self,
        chain: u32,
        run: &AtomRun,
        component: &'static Component,
        atoms: &[AtomLine],
        backbone: [u32; 5],
        flags: ResidueFlags,
    ) {
        let start = self.structure.xyz.len() as u32;
        self.push_atoms(atoms, [run.comp, component.parent]);
        // All atoms are of caps, or hydrogen by their names.
        if atoms.is_empty() {
            return;
        }
        if !self.in_rows {
            let chain = self.add_loose(chain, atoms.len() as u32);
            self.add_loose_residue(LooseResidue {
                chain,
                atom_count: atoms.len() as u32,
                auth_seq_id: run.seq,
                ins_code: run.ins_code,
                comp_id: run.comp,
                parent_comp_id: component.parent,
            });
            return;
        }
        let index = |atom: u32| {
            if atom == MISSING {
                MISSING
            } else {
                start + atom
            }
        };
        let [n, ca, c, o, cb] = backbone.map(index);
        if self.chain != Some(chain) {
            self.start_chain(chain);
        }
        let mut residue = Residue {
            chain: self.chain_index(chain),
            auth_seq_id: run.seq.unwrap_or_default(),
            ins_code: run.ins_code,
            label_seq_id: run.label_seq,
            sequence_position: run.label_seq.or(run.seqres),
            comp_id: run.comp,
            parent_comp_id: component.parent,
            aa: component.aa,
            break_before: true,
            n,
            ca,
            c,
            o,
            cb,
            uniprot: self.uniprot(run),
            flags,
        };
        residue.break_before = !self.is_linked_to_last(&residue);
        self.structure.residues.push(residue);
        self.structure.atom_start.push(start);
    }

    fn add_loose_residue(&mut self, residue: LooseResidue) {
        if self.keeps_loose_residues {
            self.structure.loose_residues.push(residue);
        }
    }

    /// Adds atoms without a row to the last span, or to a new one if their chain is another. Returns the
    /// chain's index in the structure.
    fn add_loose(&mut self, chain: u32, atom_count: u32) -> u32 {
        let chain = self.chain_index(chain);
        match self.structure.loose.last_mut() {
            Some(span) if span.chain == chain => span.atom_count += atom_count,
            _ => self.structure.loose.push(LooseSpan { chain, atom_count }),
        }
        chain
    }

    /// Residues that are added from now on have no row.
    pub(super) fn end_rows(&mut self) {
        let end = self.structure.xyz.len() as u32;
        self.structure.atom_start.push(end);
        self.in_rows = false;
    }

    /// The structure, and the memory that [`StructureBuilder::new`] took. `kind` is what the B factors are;
    /// `None` if the file decides.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if the B factors are pLDDT, and one is not from
    /// 0 to 100.
    pub(super) fn finish(
        mut self,
        kind: Option<BFactorKind>,
    ) -> Result<(Structure, [PerModel<u32>; 2])> {
        let by_file = || self.table.header.declares_plddt();
        if kind.map_or_else(by_file, |kind| kind == BFactorKind::Plddt) {
            self.take_as_plddt()?;
        }
        // Memory was reserved for hydrogens and all conformers. Structures may wait in a queue.
        let structure = &mut self.structure;
        structure.xyz.shrink_to_fit();
        structure.element.shrink_to_fit();
        structure.class.shrink_to_fit();
        structure.atom_name.shrink_to_fit();
        structure.atom_details.shrink_to_fit();
        structure.b_factor.shrink_to_fit();
        structure.residues.shrink_to_fit();
        structure.atom_start.shrink_to_fit();
        Ok((self.structure, [self.chains, self.accessions]))
    }

    /// Takes B factors for pLDDT, and multiplies those of a structure that are all from 0 to 1 by
    /// 100. An [`ErrorKind::Input`](crate::ErrorKind::Input) error if one is not from 0 to 100.
    fn take_as_plddt(&mut self) -> Result<()> {
        let structure = &mut self.structure;
        structure.b_factor_kind = BFactorKind::Plddt;
        // `min` and `max` ignore NaN unless all values are NaN, and then nothing is scaled.
        let values = || structure.b_factor.iter().copied();
        let least = values().fold(f32::NAN, f32::min);
        let most = values().fold(f32::NAN, f32::max);
        if least < 0.0 || most > 100.0 {
            let message =
                format!("the B factors are from {least} to {most}, and pLDDT is from 0 to 100");
            return Err(
                Error::input(message).fix("read them as temperature factors with b_factor = \"b\"")
            );
        }
        structure.plddt_scaled = most <= 1.0;
        if structure.plddt_scaled {
            structure.b_factor.iter_mut().for_each(|b| *b *= 100.0);
        }
        Ok(())
    }

    /// Whether a residue is bonded to the one that was added last: by the distance of C and N, or
    /// of the C-alphas if one of them is missing.
    fn is_linked_to_last(&self, residue: &Residue) -> bool {
        let Some(last) = self.structure.residues.last() else {
            return false;
        };
        let position = |atom| self.structure.position(atom);
        if last.chain != residue.chain {
            return false;
        }
        if let (Some(c), Some(n)) = (position(last.c), position(residue.n)) {
            return is_within(c, n, LINK);
        }
        match (position(last.ca), position(residue.ca)) {
            (Some(last), Some(this)) => is_within(last, this, CA_LINK),
            _ => false,
        }
    }

    fn start_chain(&mut self, chain: u32) {
        let raw = &self.table.chains[chain as usize];
        self.chain_references = self.references.of_chain(raw);
        self.chain = Some(chain);
    }

    /// The index of a chain in the structure. Adds the chain if the structure does not have it.
    fn chain_index(&mut self, chain: u32) -> u32 {
        if let Some(index) = self.chains.get(chain) {
            return index;
        }
        let structure = &mut self.structure;
        structure.chains.push(self.table.chain_names(chain));
        let index = structure.chains.len() as u32 - 1;
        self.chains.set(chain, index);
        index
    }

    /// The position of a residue in UniProt, as the file states it for its atoms or else for a
    /// range of its chain.
    #[inline]
    fn uniprot(&mut self, run: &AtomRun) -> Option<Uniprot> {
        let by_reference = || self.references.find(self.chain_references, run);
        let (accession, position) = run.uniprot.or_else(by_reference)?;
        let index = self.accessions.get(accession).unwrap_or_else(|| {
            let name = self.table.accessions[accession as usize];
            let uniprot = &mut self.structure.uniprot;
            uniprot.push(self.table.names.get(name));
            let index = uniprot.len() as u32 - 1;
            self.accessions.set(accession, index);
            index
        });
        Some(Uniprot {
            accession: index,
            position,
        })
    }
}

/// Whether two positions are closer than `distance`, all in 0.001 A. Exact.
pub(super) fn is_within(a: [i32; 3], b: [i32; 3], distance: i64) -> bool {
    let square = |axis: usize| (i64::from(a[axis]) - i64::from(b[axis])).pow(2);
    square(0) + square(1) + square(2) < distance * distance
}

/// The distance of two positions, all in 0.001 A.
pub(super) fn distance(a: [i32; 3], b: [i32; 3]) -> f64 {
    let squares = [0, 1, 2].map(|axis| (f64::from(a[axis]) - f64::from(b[axis])).powi(2));
    squares.iter().sum::<f64>().sqrt()
}

/// A padded name without its padding, for messages.
fn text(name: &[u8; 8]) -> String {
    String::from_utf8_lossy(name.trim_ascii_end()).into_owned()
}
