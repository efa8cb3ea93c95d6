//! Fills a [`Structure`] residue by residue.

use super::components::Component;
use super::limits::reserve;
use super::model::{BFactorKind, Chain, LooseSpan, MISSING, Residue, Structure, Uniprot};
use super::references::{OfChain, References};
use super::select::{LINK, is_within};
use super::table::{Atom, AtomTable, NO_NAME, Run};
use super::template::Templates;
use crate::Result;

/// Where C and N are not both there, alpha carbons closer than this are linked,
/// in 0.001 A.
const CA_LINK: i64 = 4_300;

/// A structure in the making: rows first, then [`Builder::end_rows`], then the
/// atoms that have none.
pub(super) struct Builder<'a> {
    table: &'a AtomTable,
    templates: &'static Templates,
    structure: Structure,
    in_rows: bool,
    references: &'a References,
    /// The chain of the last row in the file's numbering, and the references of it.
    chain: Option<u32>,
    of_chain: OfChain<'a>,
    /// The structure's index of each chain and accession of the file, once used.
    chains: PerModel<u32>,
    accessions: PerModel<u32>,
}

/// A value for some chains or accessions of a file, forgotten from model to model at a
/// cost that does not grow with the file.
#[derive(Default)]
pub(super) struct PerModel<T> {
    /// The model that set a value, and the value.
    values: Vec<(u32, T)>,
    model: u32,
}

impl<T: Copy + Default> PerModel<T> {
    /// Makes room for `len` values, none of them set.
    pub(super) fn resize(&mut self, len: usize) {
        self.values.clear();
        self.values.resize(len, (0, T::default()));
        self.model = 1;
    }

    /// Forgets all values.
    pub(super) fn clear(&mut self) {
        self.model += 1;
    }

    /// The value at `at`, if it is set.
    #[inline]
    pub(super) fn get(&self, at: u32) -> Option<T> {
        let (model, value) = self.values[at as usize];
        (model == self.model).then_some(value)
    }

    #[inline]
    pub(super) fn set(&mut self, at: u32, value: T) {
        self.values[at as usize] = (self.model, value);
    }
}

impl<'a> Builder<'a> {
    /// A structure without residues. `places` are those of the chains and of the
    /// accessions, and come back from [`Builder::finish`].
    pub(super) fn new(
        table: &'a AtomTable,
        references: &'a References,
        model: u32,
        places: [PerModel<u32>; 2],
    ) -> Self {
        let structure = Structure {
            entry_id: table.entry_id.clone(),
            model: table.models[model as usize],
            truncation: table.truncation,
            ..Structure::default()
        };
        let [mut chains, mut accessions] = places;
        chains.clear();
        accessions.clear();
        Builder {
            table,
            templates: Templates::table(),
            structure,
            in_rows: true,
            references,
            chain: None,
            of_chain: OfChain::default(),
            chains,
            accessions,
        }
    }

    /// Makes room for so many residues and atoms.
    pub(super) fn reserve(&mut self, residues: usize, atoms: usize) -> Result<()> {
        let structure = &mut self.structure;
        reserve(&mut structure.residues, residues)?;
        reserve(&mut structure.atom_start, residues + 1)?;
        structure.reserve_atoms(atoms)
    }

    /// Adds a residue with its atoms, none of them hydrogen.
    pub(super) fn add(&mut self, run: &Run, component: Component, atoms: &[Atom]) {
        let start = self.structure.xyz.len() as u32;
        self.structure.xyz.extend(atoms.iter().map(|atom| atom.xyz));
        self.structure
            .element
            .extend(atoms.iter().map(|atom| atom.element));
        let template = self.templates.of(component.template);
        let backbone = template.apply(atoms, &mut self.structure.class);
        self.structure
            .b_factor
            .extend(atoms.iter().map(|atom| atom.b_factor));
        let rounded = atoms.iter().map(|atom| u32::from(atom.rounded));
        self.structure.rounded_atoms += rounded.sum::<u32>();
        if atoms.is_empty() {
            return;
        }
        if !self.in_rows {
            self.add_loose(run.chain, atoms.len() as u32);
            return;
        }
        let place = |at: u32| if at == MISSING { MISSING } else { start + at };
        let [n, ca, c, o, cb] = backbone.map(place);
        if self.chain != Some(run.chain) {
            self.start_chain(run.chain);
        }
        let mut residue = Residue {
            chain: self.chain_index(run.chain),
            auth_seq_id: run.seq.unwrap_or_default(),
            ins_code: run.ins_code,
            label_seq_id: run.label_seq,
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
        };
        residue.break_before = !self.is_linked_to_last(&residue);
        self.structure.residues.push(residue);
        self.structure.atom_start.push(start);
    }

    /// Counts atoms without a row to their chain.
    fn add_loose(&mut self, chain: u32, atom_count: u32) {
        let chain = self.chain_index(chain);
        match self.structure.loose.last_mut() {
            Some(span) if span.chain == chain => span.atom_count += atom_count,
            _ => self.structure.loose.push(LooseSpan { chain, atom_count }),
        }
    }

    /// What is added from now on has no row.
    pub(super) fn end_rows(&mut self) {
        self.structure
            .atom_start
            .push(self.structure.xyz.len() as u32);
        self.in_rows = false;
    }

    /// The structure, whose B factors are what `kind` says or, where it leaves
    /// that open, the file.
    pub(super) fn finish(mut self, kind: Option<BFactorKind>) -> (Structure, [PerModel<u32>; 2]) {
        if kind.map_or(self.table.plddt, |kind| kind == BFactorKind::Plddt) {
            self.take_as_plddt();
        }
        // Hydrogens and other conformers were counted in; a queue of structures
        // should not hold on to that.
        let structure = &mut self.structure;
        structure.xyz.shrink_to_fit();
        structure.element.shrink_to_fit();
        structure.class.shrink_to_fit();
        structure.b_factor.shrink_to_fit();
        structure.residues.shrink_to_fit();
        structure.atom_start.shrink_to_fit();
        (self.structure, [self.chains, self.accessions])
    }

    fn take_as_plddt(&mut self) {
        let structure = &mut self.structure;
        structure.b_factor_kind = BFactorKind::Plddt;
        // NaN is no maximum, but where nothing else is there.
        let most = structure.b_factor.iter().copied().fold(f32::NAN, f32::max);
        structure.plddt_scaled = most <= 1.0;
        if structure.plddt_scaled {
            structure.b_factor.iter_mut().for_each(|b| *b *= 100.0);
        }
    }

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
        self.of_chain = self.references.of_chain(raw);
        self.chain = Some(chain);
    }

    fn chain_index(&mut self, chain: u32) -> u32 {
        if let Some(index) = self.chains.get(chain) {
            return index;
        }
        let (table, structure) = (self.table, &mut self.structure);
        let raw = &table.chains[chain as usize];
        let given = |name| (name != NO_NAME).then(|| table.names.get(name));
        structure.chains.push(Chain {
            auth_asym_id: table.names.get(raw.auth),
            label_asym_id: given(raw.label),
            entity_id: given(raw.entity),
        });
        let index = structure.chains.len() as u32 - 1;
        self.chains.set(chain, index);
        index
    }

    fn uniprot(&mut self, run: &Run) -> Option<Uniprot> {
        let by_reference = || self.references.find(self.of_chain, run);
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
