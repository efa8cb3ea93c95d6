//! Where the text of a file holds its B factors, for programs that replace them and keep the rest
//! of the file.

use super::atom_table::{AtomTable, BFactorField};
use super::format::Format;
use super::joined_models::JoinedNames;
use super::model::Chain;
use super::read_limits::ReadLimits;
use super::read_options::{Models, ReadOptions};
use super::residue_runs::{ModelRuns, ResidueRuns};
use crate::{Error, Result};

/// The B factors in the text of a file, of all atoms, polymer or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BFactorFields {
    /// One model after the other; the residues of a model in the order of their first atoms.
    pub residues: Vec<ResidueBFactors>,
    /// The fields of atoms that the reader does not read, in file order: those in data blocks after the
    /// first one with atoms in an mmCIF file.
    pub unread: Vec<BFactorField>,
    /// Offsets where an mmCIF file needs the item `_atom_site.B_iso_or_equiv`, because its atoms
    /// have no B factors. Their fields are then at the ends of the rows.
    pub items_missing_at: Vec<usize>,
}

/// A residue and the B factors of its atoms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResidueBFactors {
    /// Index of the model in the file, from 0.
    pub model: usize,
    /// The chain's names.
    pub chain: Chain,
    /// Like [`Residue::auth_seq_id`](super::Residue::auth_seq_id); `None` if the file gives no
    /// number.
    pub auth_seq_id: Option<i32>,
    /// Insertion code, 0 for none.
    pub ins_code: u8,
    /// Component id, padded with spaces.
    pub comp_id: [u8; 8],
    /// The field of each atom, in file order.
    pub atoms: Vec<BFactorField>,
    /// The position of each atom in 0.001 A, `[atoms, 3]`.
    pub positions: Vec<[i32; 3]>,
}

impl BFactorFields {
    /// Finds the B factors of all models in the text of a file.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if the text is malformed or its format is
    /// binary, [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if it exceeds `limits`.
    pub fn find(text: &[u8], format: Format, limits: ReadLimits) -> Result<Self> {
        limits.check_text(text.len() as u64)?;
        let text = &*format.with_line_feeds(text);
        let mut table = AtomTable::default();
        table.clear(limits, text.len());
        let options = ReadOptions {
            models: Models::All,
            ..ReadOptions::default()
        };
        format.read(text, options, &mut table)?;
        let found = format.b_factors(text).unwrap_or_else(|| {
            let name = format.name();
            let message = format!("{name} is not text, so B factors cannot be replaced in it");
            Err(Error::input(message).fix("give the structure as PDB or mmCIF"))
        })?;
        assert_eq!(
            found.atoms.len(),
            table.atoms.len(),
            "a field for each atom"
        );
        Ok(BFactorFields {
            residues: by_residue(&mut table, &found.atoms),
            unread: found.unread,
            items_missing_at: found.items_missing_at,
        })
    }

    /// Makes the models one, as [`Models::Joined`] does: the chains have the names that they have there.
    pub fn join_models(&mut self) {
        let residues = self.residues.iter();
        let chains = residues.map(|residue| (residue.model, &residue.chain.auth_asym_id));
        let names = JoinedNames::new(chains);
        for residue in &mut self.residues {
            let chain = &mut residue.chain;
            let (auth, label) = (&mut chain.auth_asym_id, &mut chain.label_asym_id);
            names.rename(residue.model, auth, label);
            residue.model = 0;
        }
    }
}

/// Gathers the fields of B factors by model and residue, in the order in which tables have
/// residues.
fn by_residue(table: &mut AtomTable, fields: &[BFactorField]) -> Vec<ResidueBFactors> {
    table.runs.sort_by_key(|run| run.model);
    let table = &*table;
    let mut gathered = ResidueRuns::default();
    gathered.start_file(table.chains.len());
    let mut out = Vec::new();
    for runs in table.runs.chunk_by(|a, b| a.model == b.model) {
        let model = ModelRuns { table, runs };
        gathered.gather(model, |_| Some(()));
        for residue in &gathered.residues {
            let head = &runs[residue.head as usize];
            let runs = gathered.runs(model, residue);
            let atoms = runs.flat_map(|run| run.atoms.start as usize..run.atoms.end as usize);
            let (fields, positions) = atoms
                .map(|atom| (fields[atom].clone(), table.atoms[atom].xyz))
                .unzip();
            out.push(ResidueBFactors {
                model: head.model as usize,
                chain: table.chain_names(head.chain),
                auth_seq_id: head.seq,
                ins_code: head.ins_code,
                comp_id: head.comp,
                atoms: fields,
                positions,
            });
        }
    }
    out
}
