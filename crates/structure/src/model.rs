//! The protein model: heavy polymer atoms, one conformer for each residue.

use super::atom_class::AtomClass;
use super::atom_name::AtomName;
use super::checks::Findings;
use super::chemistry::Chemistry;
use super::radii::Radii;
use super::read_limits::reserve;
use crate::Result;
use std::fmt;
use std::sync::Arc;

/// The atom index of an atom that a residue lacks.
pub const MISSING: u32 = u32::MAX;

/// One model of a file, as columns.
///
/// Atoms come in the order of [`Structure::residues`]: residue `r` has the atoms
/// `atom_start[r]..atom_start[r + 1]`. Polymer atoms without a row (nucleotides, caps) follow after
/// those of the last residue, in the spans of [`Structure::loose`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Structure {
    /// The entry's id (`1ABC`); `None` if the file has none.
    pub entry_id: Option<Arc<str>>,
    /// The experimental method, as PDB's EXPDTA or mmCIF's `_exptl.method` state it (several joined
    /// by `; `); `None` if the file states none. Up to 1,024 bytes, with one blank between words.
    pub method: Option<Arc<str>>,
    /// The resolution in angstrom, above 0: PDB's REMARK 2, else REMARK 3; mmCIF's
    /// `_refine.ls_d_res_high`, else `_em_3d_reconstruction.resolution`. `None` if the file states
    /// none.
    pub resolution: Option<f32>,
    /// The title, as PDB's TITLE or mmCIF's `_struct.title` state it; `None` if the file has none.
    /// Up to 1,024 bytes, with one blank between words.
    pub title: Option<Arc<str>>,
    /// The model's number in the file; if the file gives none, 1, or the next that is free.
    pub model: i32,
    /// The frame that the coordinates are from, if they are from a trajectory.
    pub frame: Option<Frame>,
    /// Whether the chains are those of the assembly. They are the deposited ones if the file does
    /// not define the assembly that was wanted.
    pub assembly: Assembly,
    /// Positions in 0.001 A, `[atoms, 3]`, each from -100,000 A to 100,000 A.
    pub xyz: Vec<[i32; 3]>,
    /// Atomic numbers, `[atoms]`; 0 if the element is unknown.
    pub element: Vec<u8>,
    /// The set that the classes of atoms are of.
    pub radii: Radii,
    /// Radius and part of the surface, `[atoms]`.
    pub class: Vec<AtomClass>,
    /// Names, `[atoms]`. Empty in a structure that has none, from a packed set of an earlier version
    /// or a program's own: its side chains have no torsions.
    pub atom_name: Vec<AtomName>,
    /// What the file states of each atom besides, `[atoms]`. Empty unless
    /// [`ReadOptions::atom_details`](super::ReadOptions::atom_details) asks for it.
    pub atom_details: Vec<AtomDetails>,
    /// B factors, `[atoms]`: temperature factors in A^2, or pLDDT from 0 to 100. NaN if the file
    /// gives none.
    pub b_factor: Vec<f32>,
    /// What the B factors are.
    pub b_factor_kind: BFactorKind,
    /// Whether the file's pLDDT is from 0 to 1, and was multiplied by 100.
    pub plddt_scaled: bool,
    /// Amino-acid residues in file order, each a row of the output: `[residues]`.
    pub residues: Vec<Residue>,
    /// Index of the first atom of each residue, then the end of the last residue's atoms:
    /// `[residues + 1]`.
    pub atom_start: Vec<u32>,
    /// The atoms after those of the last residue, as spans of one chain each.
    pub loose: Vec<LooseSpan>,
    /// The residues that these atoms are of, in their order. Empty unless
    /// [`ReadOptions::chemistry`](super::ReadOptions::chemistry) asks for it.
    pub loose_residues: Vec<LooseResidue>,
    /// What the atoms can take part in. `None` unless
    /// [`ReadOptions::chemistry`](super::ReadOptions::chemistry) asks for it.
    pub chemistry: Option<Arc<Chemistry>>,
    /// Chains in order of first appearance: those with rows, then those of loose atoms only.
    /// [`Residue::chain`] and [`LooseSpan::chain`] index them.
    pub chains: Vec<Chain>,
    /// UniProt accessions, which [`Uniprot::accession`] indexes.
    pub uniprot: Vec<Arc<str>>,
    /// How many deposited atoms had coordinates of more than three decimals, which were rounded.
    pub rounded_atoms: u32,
    /// Why the file may be cut short, if it may.
    pub truncation: Option<Truncation>,
    /// What readers found unusual about the names and fields of the file, and read all the same. What
    /// concerns the whole file is in its first structure.
    pub findings: Findings,
    /// Annotations of residues from other files, such as conservation. Readers add none.
    pub channels: Vec<Channel>,
    /// The residues that are no polymer, in file order, if [`ReadOptions`](super::ReadOptions)
    /// keeps them. No other column has their atoms.
    pub ligands: Vec<Ligand>,
    /// Water in file order, each with its oxygen alone, if [`ReadOptions::water_reach`] asks for it. No other
    /// column has these atoms, and no feature but bridges of water sees them.
    ///
    /// [`ReadOptions::water_reach`]: super::ReadOptions::water_reach
    pub waters: Vec<Ligand>,
}

/// The kind of a residue that is no polymer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LigandKind {
    /// A molecule of several heavy atoms.
    Ligand,
    /// A single heavy atom.
    Ion,
    /// An agent of crystallisation, which is read only if [`ReadOptions::agents`] keeps it.
    ///
    /// [`ReadOptions::agents`]: super::ReadOptions::agents
    Agent,
    /// A saccharide that a covalent link joins to the polymer, or to such a saccharide.
    Glycan,
}

impl LigandKind {
    /// The name in tables: `ligand`, `ion`, `agent` or `glycan`.
    pub fn name(self) -> &'static str {
        match self {
            LigandKind::Ligand => "ligand",
            LigandKind::Ion => "ion",
            LigandKind::Agent => "agent",
            LigandKind::Glycan => "glycan",
        }
    }
}

/// A residue that is no polymer: heavy atoms of one conformer.
#[derive(Clone, Debug, PartialEq)]
pub struct Ligand {
    /// The author's chain id.
    pub auth_asym_id: Arc<str>,
    /// `label_asym_id`; `None` in a PDB file.
    pub label_asym_id: Option<Arc<str>>,
    /// The author's residue number; `None` if the file has no number.
    pub auth_seq_id: Option<i32>,
    /// Insertion code, 0 for none.
    pub ins_code: u8,
    /// Component id, padded with spaces: `b"HEM     "`.
    pub comp_id: [u8; 8],
    /// Whether it is a ligand, an ion, an agent or a glycan.
    pub kind: LigandKind,
    /// The molecule that it is part of: the residues of [`Structure::ligands`] that covalent links
    /// join have one number, from 0 in the order of their first residues.
    pub molecule: u32,
    /// The heavy atoms, `[atoms]`.
    pub atoms: Arc<[LigandAtom]>,
    /// The bonds between them that CONECT records of a PDB file state, as indices of both atoms, `[bonds]`;
    /// empty if there are none, or without [`ReadOptions::chemistry`](crate::ReadOptions::chemistry).
    pub bonds: Arc<[[u32; 2]]>,
}

impl Ligand {
    /// The component id without the spaces at its end; empty if it is not ASCII.
    pub fn component(&self) -> &str {
        std::str::from_utf8(self.comp_id.trim_ascii_end()).unwrap_or_default()
    }
}

/// What a file states of an atom besides its element, position and B factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtomDetails {
    /// The atom's name, padded with spaces: `b"CA      "`. It is the component's name for the atom where
    /// the file has another one that is known: O for OT1.
    pub name: [u8; 8],
    /// The occupancy; 1 if the file gives none.
    pub occupancy: f32,
    /// The alternate location, 0 for none.
    pub altloc: u8,
}

impl Default for AtomDetails {
    /// No name, an occupancy of 1, and no alternate location.
    fn default() -> Self {
        AtomDetails {
            name: *b"        ",
            occupancy: 1.0,
            altloc: 0,
        }
    }
}

/// A heavy atom of a residue that is no polymer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LigandAtom {
    /// Position in 0.001 A, from -100,000 A to 100,000 A.
    pub xyz: [i32; 3],
    /// Atomic number; 0 if the element is unknown.
    pub element: u8,
    /// Radius and whether it is polar, in the set [`Structure::radii`]. With ProtOr the radius is the
    /// element's: C 1.88, N 1.64, O 1.46, S 1.77, Se 1.90, others 1.80 A.
    pub class: AtomClass,
    /// As [`Structure::b_factor`].
    pub b_factor: f32,
    /// What the file states of the atom besides.
    pub details: AtomDetails,
}

impl LigandAtom {
    /// Whether the element is a metal. B, Si, Ge, As, Sb and Te are none.
    pub fn is_metal(&self) -> bool {
        super::element::is_metal(self.element)
    }
}

/// An annotation of residues.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Channel {
    /// The name, which is part of a column's name: `conservation`.
    pub name: String,
    /// A value for each of [`Structure::residues`]; NaN for none.
    pub values: Vec<f32>,
}

/// A frame of a trajectory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Its number in the trajectory, from 0.
    pub index: u32,
    /// The time in picoseconds; `None` if the trajectory gives none.
    pub time_ps: Option<f32>,
}

/// Which chains a structure has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Assembly {
    /// The chains of the file's atoms.
    #[default]
    Deposited,
    /// The chains of biological assembly 1, which mmCIF's `_pdbx_struct_assembly_gen` or PDB's
    /// REMARK 350 defines. The first copy of a chain keeps its names, the second copy of `A` is
    /// `A-2`.
    First,
}

/// Why a PDB file may be cut short. An mmCIF file that is cut within a row is an error; a cut between
/// two rows cannot be recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Truncation {
    /// Neither END nor ENDMDL follows the last atom. The last line is whole: many programs write
    /// files without END, so this alone is weak evidence.
    NoEnd,
    /// Neither END nor ENDMDL follows the last atom, and the last line has no line break.
    LineBrokenOff,
    /// The file has fewer atoms than its MASTER record counts.
    AtomsMissing {
        /// Atoms that the MASTER record counts.
        master: u32,
        /// ATOM and HETATM records that were read.
        read: u32,
    },
}

impl Truncation {
    /// Whether more than a missing END suggests that the file is cut short. Such files deserve a
    /// warning.
    pub fn is_likely(self) -> bool {
        self != Truncation::NoEnd
    }
}

impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Truncation::NoEnd => f.write_str("neither END nor ENDMDL follows the last atom"),
            Truncation::LineBrokenOff => f.write_str(
                "neither END nor ENDMDL follows the last atom, and the last line is broken off",
            ),
            Truncation::AtomsMissing { master, read } => {
                write!(f, "MASTER counts {master} atoms, and the file has {read}")
            }
        }
    }
}

/// What B factors are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BFactorKind {
    /// Temperature factors of an experimental structure, in A^2.
    #[default]
    Temperature,
    /// The confidence of a predicted model for each residue or atom, from 0 to 100.
    Plddt,
}

/// The names of a chain. The models of a file share their memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// The author's id; the label id if the file has no author's id.
    pub auth_asym_id: Arc<str>,
    /// `label_asym_id`; `None` in a PDB file, unless the chain is a part of one that was split.
    pub label_asym_id: Option<Arc<str>>,
    /// `label_entity_id`; `None` in a PDB file.
    pub entity_id: Option<Arc<str>>,
    /// The residues of the whole chain, also those that were not observed: SEQRES of a PDB file, or
    /// the `_entity_poly_seq` of the entity, of which the first component of each position. `None`
    /// if the file states none, or [`ReadOptions::sequences`](super::ReadOptions::sequences) is not
    /// set.
    pub sequence: Option<Arc<[SequenceResidue]>>,
}

/// A residue of a chain's sequence, observed or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceResidue {
    /// Component id, padded with spaces.
    pub comp_id: [u8; 8],
    /// The author's residue number: of the observed residue or of REMARK 465 in a PDB file, and of
    /// `_pdbx_poly_seq_scheme` in an mmCIF file. `None` if the file states none.
    pub auth_seq_id: Option<i32>,
    /// Insertion code, 0 for none.
    pub ins_code: u8,
}

impl SequenceResidue {
    /// A residue without a number.
    pub(super) fn unnumbered(comp_id: [u8; 8]) -> Self {
        SequenceResidue {
            comp_id,
            auth_seq_id: None,
            ins_code: 0,
        }
    }
}

/// Consecutive atoms without a row, all of one chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LooseSpan {
    /// Index into [`Structure::chains`].
    pub chain: u32,
    /// Number of atoms.
    pub atom_count: u32,
}

/// A residue without a row: a nucleotide or a cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LooseResidue {
    /// Index into [`Structure::chains`].
    pub chain: u32,
    /// Number of atoms.
    pub atom_count: u32,
    /// The author's residue number; `None` if the file has no number.
    pub auth_seq_id: Option<i32>,
    /// Insertion code, 0 for none.
    pub ins_code: u8,
    /// Component id, padded with spaces.
    pub comp_id: [u8; 8],
    /// As [`Residue::parent_comp_id`].
    pub parent_comp_id: [u8; 8],
}

/// One amino-acid residue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residue {
    /// Index into [`Structure::chains`].
    pub chain: u32,
    /// The author's residue number; `label_seq_id` if the file has no author's number.
    pub auth_seq_id: i32,
    /// Insertion code, 0 for none.
    pub ins_code: u8,
    /// `label_seq_id`; `None` in a PDB file.
    pub label_seq_id: Option<i32>,
    /// The position in the chain's sequence, unobserved residues counted: `label_seq_id`, or in a
    /// PDB file the position in SEQRES, from 1, if the residues and REMARK 465 add up to SEQRES.
    /// `None` otherwise.
    pub sequence_position: Option<i32>,
    /// Component id (residue name), padded with spaces: `b"MSE     "`.
    pub comp_id: [u8; 8],
    /// The standard component that this one is a variant of (MET for MSE), or the component itself if
    /// it is standard; the first of several for a chromophore that was made of several residues;
    /// blank if none is known.
    pub parent_comp_id: [u8; 8],
    /// One-letter code of the parent; `X` for none.
    pub aa: u8,
    /// Whether the residue is not linked to the previous row, as the first residue of a chain is not.
    /// Two residues of a chain are linked if C and N are closer than 2.0 A or, if either is missing,
    /// if the two CA are closer than 4.3 A.
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
    /// The UniProt residue, if the file names it.
    pub uniprot: Option<Uniprot>,
    /// Which rules of the readers changed or chose something of the residue.
    pub flags: ResidueFlags,
}

/// Which rules of the readers changed or chose something of a residue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResidueFlags(u8);

impl ResidueFlags {
    /// No rule.
    pub const NONE: ResidueFlags = ResidueFlags(0);
    /// The component's name is a simulation program's: HID, which is HIS.
    pub const SIMULATION_NAME: ResidueFlags = ResidueFlags(1);
    /// Atoms have names of the component that the file calls otherwise, or are a cap's: OT1, which is
    /// O.
    pub const RENAMED_ATOMS: ResidueFlags = ResidueFlags(2);
    /// Atoms were left out: virtual sites, or atoms whose name another one has.
    pub const ATOMS_LEFT_OUT: ResidueFlags = ResidueFlags(4);
    /// Atoms have names that the component does not have.
    pub const UNKNOWN_ATOMS: ResidueFlags = ResidueFlags(8);
    /// The atoms are those of one alternate location, or of one of several components at the site.
    pub const ALTERNATE_CHOSEN: ResidueFlags = ResidueFlags(16);

    /// All flags.
    pub const ALL: ResidueFlags = ResidueFlags(31);

    /// Whether all flags of `other` are set.
    pub const fn contains(self, other: ResidueFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags if `is_set`, else none.
    pub const fn when(self, is_set: bool) -> Self {
        if is_set { self } else { Self::NONE }
    }

    /// The flags of both.
    pub const fn with(self, other: ResidueFlags) -> Self {
        ResidueFlags(self.0 | other.0)
    }

    /// The flags as bits, in the order of the constants.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The flags of [`ResidueFlags::bits`]; bits without a flag are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        ResidueFlags(bits & Self::ALL.0)
    }
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
    /// The position of an atom in 0.001 A; `None` for [`MISSING`].
    pub fn position(&self, atom: u32) -> Option<[i32; 3]> {
        self.xyz.get(atom as usize).copied()
    }

    /// The ligands with their indices, in the order in which results of features have their atoms: glycans
    /// come first.
    pub fn ligands_by_atoms(&self) -> impl Iterator<Item = (usize, &Ligand)> {
        let of_kind = |glycans: bool| {
            let ligands = self.ligands.iter().enumerate();
            ligands.filter(move |(_, ligand)| (ligand.kind == LigandKind::Glycan) == glycans)
        };
        of_kind(true).chain(of_kind(false))
    }

    /// Makes room for atoms.
    pub(super) fn reserve_atoms(&mut self, atoms: usize) -> Result<()> {
        reserve(&mut self.xyz, atoms)?;
        reserve(&mut self.element, atoms)?;
        reserve(&mut self.class, atoms)?;
        reserve(&mut self.atom_name, atoms)?;
        reserve(&mut self.b_factor, atoms)
    }

    /// Bytes of the names of all residues: of their entry, chain, entity and accession.
    pub(super) fn row_names_bytes(&self) -> u64 {
        let optional = |name: &Option<Arc<str>>| name.as_ref().map_or(0, |name| name.len());
        let chain_bytes = |chain: &Chain| {
            chain.auth_asym_id.len() + optional(&chain.label_asym_id) + optional(&chain.entity_id)
        };
        let chain_bytes: Vec<usize> = self.chains.iter().map(chain_bytes).collect();
        let residue_bytes = |residue: &Residue| {
            let accession = residue
                .uniprot
                .map_or(0, |uniprot| self.uniprot[uniprot.accession as usize].len());
            (chain_bytes[residue.chain as usize] + accession) as u64
        };
        let entry = (self.residues.len() * optional(&self.entry_id)) as u64;
        entry + self.residues.iter().map(residue_bytes).sum::<u64>()
    }

    /// Residues of the sequences of all chains.
    pub(super) fn sequence_residues(&self) -> u64 {
        let chains = self.chains.iter();
        let sequences = chains.filter_map(|chain| chain.sequence.as_ref());
        sequences.map(|sequence| sequence.len() as u64).sum()
    }

    /// Whether B factors that the file does not name look like pLDDT. They are temperature factors,
    /// the file states neither a method nor a resolution, they differ and are from 0 to 100, and
    /// either all are from 0 to 1, some in between, or the atoms of each residue have one value.
    #[doc(hidden)]
    pub fn may_have_plddt(&self) -> bool {
        let is_named = self.b_factor_kind == BFactorKind::Plddt;
        if is_named || self.method.is_some() || self.resolution.is_some() {
            return false;
        }
        let in_range = |most: f32| self.b_factor.iter().all(|b| (0.0..=most).contains(b));
        if !in_range(100.0) {
            return false;
        }
        let is_share = |b: &f32| *b > 0.0 && *b < 1.0;
        if in_range(1.0) {
            return self.b_factor.iter().any(is_share);
        }
        let residue_b_factors = self.atom_start.windows(2).map(|ends| {
            let range = ends[0] as usize..ends[1] as usize;
            self.b_factor.get(range).unwrap_or_default()
        });
        // Residues of one atom, as in a trace of alpha carbons, always have one value.
        let larger = residue_b_factors.filter(|values| values.len() > 1);
        let mut first = None;
        let mut differ = false;
        for values in larger {
            if values.iter().any(|value| *value != values[0]) {
                return false;
            }
            differ |= *first.get_or_insert(values[0]) != values[0];
        }
        differ
    }

    /// The chains with rows, which are the first of [`Structure::chains`].
    pub fn row_chains(&self) -> &[Chain] {
        let last = self.residues.iter().map(|residue| residue.chain).max();
        let count = last.map_or(0, |last| last as usize + 1);
        &self.chains[..count.min(self.chains.len())]
    }
}
