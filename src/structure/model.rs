//! One model of one structure: heavy polymer atoms, one conformer a residue.

use super::class::AtomClass;
use super::limits::reserve;
use crate::Result;
use std::fmt;
use std::sync::Arc;

/// The atom index that says that a residue lacks the atom.
pub const MISSING: u32 = u32::MAX;

/// One model of one structure, as columns.
///
/// Atoms come in the order of [`Structure::residues`]: residue `r` owns atoms
/// `atom_start[r]..atom_start[r + 1]`. Polymer atoms that belong to no row
/// (nucleotides, caps) follow after the last residue's, up to the end, in the
/// spans of [`Structure::loose`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Structure {
    /// The entry's id as the file gives it (`1ABC`), if it does.
    pub entry_id: Option<Arc<str>>,
    /// The model's number as the file gives it, 1 where it gives none.
    pub model: i32,
    /// What the chains are: deposited, too, where the assembly that was asked
    /// for is not in the file.
    pub assembly: Assembly,
    /// Atom positions in 0.001 A.
    pub xyz: Vec<[i32; 3]>,
    /// Atomic numbers; 0 where the file's element is unknown.
    pub element: Vec<u8>,
    /// Radius and kind of each atom.
    pub class: Vec<AtomClass>,
    /// The file's B factors, NaN where it gives none: temperature factors in
    /// A^2, or pLDDT from 0 to 100.
    pub b_factor: Vec<f32>,
    /// What the B factors are.
    pub b_factor_kind: BFactorKind,
    /// Whether the file's pLDDT went from 0 to 1, and was taken times 100.
    pub plddt_scaled: bool,
    /// Amino-acid residues, one a row of the output, in file order.
    pub residues: Vec<Residue>,
    /// First atom of each residue, and one past the last residue's last atom:
    /// `residues.len() + 1` entries.
    pub atom_start: Vec<u32>,
    /// The atoms after the last residue's, as spans of one chain each.
    pub loose: Vec<LooseSpan>,
    /// Chains in order of first appearance, first those that have rows, then
    /// those of loose atoms alone. [`Residue::chain`] and [`LooseSpan::chain`]
    /// index them.
    pub chains: Vec<Chain>,
    /// UniProt accessions that residues refer to.
    pub uniprot: Vec<Arc<str>>,
    /// Deposited atoms whose coordinates had more than three decimals and were
    /// rounded.
    pub rounded_atoms: u32,
    /// Why the file may be cut short, if it may.
    pub truncation: Option<Truncation>,
    /// Annotations of residues from elsewhere, such as conservation. Readers give
    /// none.
    pub channels: Vec<Channel>,
}

/// An annotation of residues.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Channel {
    /// Its name, part of a column's: `conservation`.
    pub name: String,
    /// A value for each of [`Structure::residues`], NaN for none.
    pub values: Vec<f32>,
}

/// Which chains a structure is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Assembly {
    /// Those that the file deposits.
    #[default]
    Deposited,
    /// Those of the biological assembly `1`, as mmCIF's
    /// `_pdbx_struct_assembly_gen` or PDB's REMARK 350 says. The first copy of a
    /// chain keeps its names, the second of `A` is `A-2`.
    First,
}

/// Why a PDB file may be cut short. An mmCIF file that is cut within a row is an error;
/// one that is cut between two rows cannot be recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Truncation {
    /// Neither END nor ENDMDL follows the last atom.
    NoEnd,
    /// The file has fewer atoms than its MASTER record counts.
    AtomsMissing {
        /// Atoms that the MASTER record counts.
        master: u32,
        /// ATOM and HETATM records that were read.
        read: u32,
    },
}

impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Truncation::NoEnd => f.write_str("neither END nor ENDMDL follows the last atom"),
            Truncation::AtomsMissing { master, read } => {
                write!(f, "MASTER counts {master} atoms, and the file has {read}")
            }
        }
    }
}

/// What the column of the B factors holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BFactorKind {
    /// Temperature factors, of a structure by experiment.
    #[default]
    Temperature,
    /// The confidence of a predicted model, by residue or by atom.
    Plddt,
}

/// A chain's names. The models of a file share them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// The author's id; where the file lacks it, the label id.
    pub auth_asym_id: Arc<str>,
    /// `label_asym_id`, which only mmCIF has.
    pub label_asym_id: Option<Arc<str>>,
    /// `label_entity_id`, which only mmCIF has.
    pub entity_id: Option<Arc<str>>,
}

/// A stretch of atoms that belong to no row, all of one chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LooseSpan {
    /// Index into [`Structure::chains`].
    pub chain: u32,
    /// How many atoms.
    pub atom_count: u32,
}

/// One amino-acid residue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residue {
    /// Index into [`Structure::chains`].
    pub chain: u32,
    /// The author's residue number; where the file lacks it, the label's.
    pub auth_seq_id: i32,
    /// Insertion code, 0 for none.
    pub ins_code: u8,
    /// `label_seq_id`, which only mmCIF has.
    pub label_seq_id: Option<i32>,
    /// Component id (residue name), space-padded: `b"MSE     "`.
    pub comp_id: [u8; 8],
    /// The standard component that this one is a variant of (MSE: MET), itself
    /// where it is standard, blank where none is known.
    pub parent_comp_id: [u8; 8],
    /// One-letter code of the parent, `X` where there is none.
    pub aa: u8,
    /// Whether the residue is not linked to the row before it. True at the
    /// first residue of a chain. Linked: C(i-1)-N(i) under 2.0 A or, where
    /// either is missing, CA-CA under 4.3 A, within one chain.
    pub break_before: bool,
    /// Index of the atom N, or [`MISSING`].
    pub n: u32,
    /// Index of the atom CA, or [`MISSING`].
    pub ca: u32,
    /// Index of the atom C, or [`MISSING`].
    pub c: u32,
    /// Index of the atom O, or [`MISSING`].
    pub o: u32,
    /// Index of the atom CB, or [`MISSING`].
    pub cb: u32,
    /// The UniProt residue, where the file says.
    pub uniprot: Option<Uniprot>,
}

/// A residue of a UniProt sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uniprot {
    /// Index into [`Structure::uniprot`].
    pub accession: u32,
    /// Position in the sequence, from 1.
    pub position: i32,
}

impl Structure {
    /// The position of an atom index, `None` for [`MISSING`].
    pub fn position(&self, atom: u32) -> Option<[i32; 3]> {
        self.xyz.get(atom as usize).copied()
    }

    /// Makes room for so many atoms.
    pub(super) fn reserve_atoms(&mut self, atoms: usize) -> Result<()> {
        reserve(&mut self.xyz, atoms)?;
        reserve(&mut self.element, atoms)?;
        reserve(&mut self.class, atoms)?;
        reserve(&mut self.b_factor, atoms)
    }

    /// The chains that have rows: the first of [`Structure::chains`].
    pub fn row_chains(&self) -> &[Chain] {
        let last = self.residues.iter().map(|residue| residue.chain).max();
        let count = last.map_or(0, |last| last as usize + 1);
        &self.chains[..count.min(self.chains.len())]
    }
}
