//! Fills a [`Structure`] residue by residue.

use super::components::Component;
use super::model::{BFactorKind, Chain, LooseSpan, MISSING, Residue, Structure, Uniprot};
use super::select::{LINK, is_within};
use super::table::{Atom, AtomTable, NO_NAME, Reference, Run};
use super::template::Templates;

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
    /// The chain of the last row in the file's numbering, and what the file
    /// says of its UniProt sequence.
    chain: Option<u32>,
    references: Vec<&'a Reference>,
    /// The structure's index of each chain and accession of the file, once used.
    chains: Vec<Option<u32>>,
    accessions: Vec<Option<u32>>,
}

impl<'a> Builder<'a> {
    /// A structure of at most so many residues and atoms.
    pub(super) fn new(table: &'a AtomTable, model: u32, residues: usize, atoms: usize) -> Self {
        let mut structure = Structure {
            entry_id: table.entry_id.clone(),
            model: table.models[model as usize],
            ..Structure::default()
        };
        structure.residues.reserve_exact(residues);
        structure.atom_start.reserve_exact(residues + 1);
        structure.xyz.reserve_exact(atoms);
        structure.element.reserve_exact(atoms);
        structure.class.reserve_exact(atoms);
        structure.b_factor.reserve_exact(atoms);
        Builder {
            table,
            templates: Templates::table(),
            structure,
            in_rows: true,
            chain: None,
            references: Vec::new(),
            chains: vec![None; table.chains.len()],
            accessions: vec![None; table.accessions.len()],
        }
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
    pub(super) fn finish(mut self, kind: Option<BFactorKind>) -> Structure {
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
        self.structure
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
        let is = |reference: &&Reference| {
            (reference.chain == NO_NAME || reference.chain == raw.auth)
                && (reference.entity == NO_NAME || reference.entity == raw.entity)
        };
        self.references.clear();
        self.references
            .extend(self.table.references.iter().filter(is));
        self.chain = Some(chain);
    }

    fn chain_index(&mut self, chain: u32) -> u32 {
        let (table, structure) = (self.table, &mut self.structure);
        *self.chains[chain as usize].get_or_insert_with(|| {
            let raw = &table.chains[chain as usize];
            let given = |name| (name != NO_NAME).then(|| table.names.get(name));
            structure.chains.push(Chain {
                auth_asym_id: table.names.get(raw.auth),
                label_asym_id: given(raw.label),
                entity_id: given(raw.entity),
            });
            structure.chains.len() as u32 - 1
        })
    }

    fn uniprot(&mut self, run: &Run) -> Option<Uniprot> {
        let find =
            |reference: &&Reference| Some((reference.accession, reference.position_of(run)?));
        let (accession, position) = run
            .uniprot
            .or_else(|| self.references.iter().find_map(find))?;
        let (table, structure) = (self.table, &mut self.structure);
        let accession = *self.accessions[accession as usize].get_or_insert_with(|| {
            structure
                .uniprot
                .push(table.names.get(table.accessions[accession as usize]));
            structure.uniprot.len() as u32 - 1
        });
        Some(Uniprot {
            accession,
            position,
        })
    }
}
