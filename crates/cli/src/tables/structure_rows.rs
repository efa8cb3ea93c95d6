//! The rows of one structure in the tables.

use super::super::config::OutputTable;
use super::atom_owner::AtomOwner;
use super::atom_rows::{AtomRows, selected_in};
use super::coordinates::Coordinates;
use super::interaction_rows::InteractionRows;
use arrow_buffer::BooleanBuffer;
use std::ops::Range;
use std::sync::Arc;
use tapeloop::features::{Column, FeatureTable, RowKind, TableName};
use tapeloop::structure::{Chain, Ligand, MISSING, Residue, ResidueFlags, Structure};
use tapeloop_annotations::{Joined, JoinedVariants, VariantKey, text_bytes_max};
use tapeloop_inputs::structure_name;
use tapeloop_structure::internal::UnobservedResidue;

/// What the rows of a structure are made from: the structure without its atoms, its features, and what
/// identifies it.
#[derive(Debug)]
pub struct StructureRows {
    pub(super) source: String,
    /// The structure's name.
    pub(super) name: String,
    /// The structure without its atoms: they take most of its memory, and one table alone has them.
    pub(super) structure: Arc<Structure>,
    /// The atoms, if the table of atoms is computed.
    atom_rows: Option<AtomRows>,
    /// The names of atoms, if the structure has interactions.
    interaction_rows: Option<InteractionRows>,
    /// The indices of both atoms of each bridge of water.
    water_bridges: [Vec<i32>; 2],
    /// The number of atoms of polymers.
    pub(super) atoms: u32,
    /// The number of atoms of each ligand.
    pub(super) ligand_atoms: Vec<u32>,
    pub(super) features: Arc<FeatureTable>,
    /// The coordinates that are columns.
    pub(super) coordinates: Coordinates,
    /// The chains that have rows, in the structure's order.
    pub(super) chains: Arc<[ChainRow]>,
    /// By chain, if there are pairs of residues: its first position in the sequence, where it has positions.
    first_positions: Vec<Option<i32>>,
    /// Residues that were not observed, if they have rows: their indices are those after the
    /// structure's residues.
    unobserved: Vec<UnobservedResidue>,
    /// The residues that have rows; `None` for all.
    pub(super) selected: Option<BooleanBuffer>,
    /// What the annotations bring.
    pub(super) joined: Joined,
}

/// One of the two residues or chains of each row of a table of pairs: the first is `side` 0.
#[derive(Clone, Copy)]
pub(super) struct PairSide {
    pub(super) table: OutputTable,
    pub(super) side: usize,
}

/// Some rows of a structure.
pub(super) struct RowRange {
    pub(super) record: Arc<StructureRows>,
    pub(super) rows: Range<usize>,
}

/// Number of rows in these ranges.
pub(super) fn row_count(ranges: &[RowRange]) -> usize {
    ranges.iter().map(|range| range.rows.len()).sum()
}

/// Upper bounds of the bytes of text in a structure's rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextBytes {
    /// Texts that all rows share, which a dictionary holds once.
    pub(super) once: usize,
    pub(super) each_row: usize,
}

/// A chain that has residues.
#[derive(Clone, Debug)]
pub(super) struct ChainRow {
    /// Index among the structure's chains.
    pub(super) index: u32,
    pub(super) residues: u32,
    /// Residues that are not linked to the residue before them in the chain.
    pub(super) breaks: u32,
    /// The one-letter codes of the residues that it has.
    pub(super) sequence: String,
    /// The one-letter codes of the whole sequence, if that is known.
    pub(super) seqres: Option<String>,
}

impl StructureRows {
    /// The rows of a structure, which was read from `source`.
    pub fn new(source: String, mut structure: Structure, features: FeatureTable) -> Self {
        let atoms = structure.xyz.len() as u32;
        let ligand_atoms = structure.ligands.iter();
        let ligand_atoms = ligand_atoms.map(|ligand| ligand.atoms.len() as u32);
        let ligand_atoms = ligand_atoms.collect();
        let water_bridges = water_bridges(&structure);
        let has_interactions =
            features.rows(TableName::Interactions) > 0 || !water_bridges[0].is_empty();
        let interaction_rows = has_interactions.then(|| InteractionRows::new(&structure));
        let has_atoms = features.columns(TableName::Atoms).len() > 0;
        let atom_rows = has_atoms.then(|| AtomRows::take(&mut structure));
        let without_atoms = |ligand| Ligand {
            atoms: Arc::default(),
            bonds: Arc::default(),
            ..ligand
        };
        let structure = Structure {
            ligands: structure.ligands.into_iter().map(without_atoms).collect(),
            waters: structure.waters.into_iter().map(without_atoms).collect(),
            xyz: Vec::new(),
            element: Vec::new(),
            class: Vec::new(),
            atom_name: Vec::new(),
            atom_details: Vec::new(),
            b_factor: Vec::new(),
            atom_start: Vec::new(),
            loose: Vec::new(),
            channels: Vec::new(),
            ..structure
        };
        StructureRows {
            name: structure_name(&source).to_owned(),
            source,
            chains: chain_rows(&structure),
            first_positions: {
                let mut tables = OutputTable::ALL.into_iter();
                if tables.any(|table| has_pairs(table, &features)) {
                    structure.first_positions()
                } else {
                    Vec::new()
                }
            },
            structure: Arc::new(structure),
            atom_rows,
            interaction_rows,
            water_bridges,
            atoms,
            ligand_atoms,
            features: Arc::new(features),
            coordinates: Coordinates::default(),
            unobserved: Vec::new(),
            selected: None,
            joined: Joined::default(),
        }
    }

    /// The same rows with what the annotations bring.
    pub fn with_annotations(self, joined: Joined) -> Self {
        StructureRows { joined, ..self }
    }

    /// The same rows with those of residues that were not observed.
    pub fn with_unobserved(self) -> Self {
        StructureRows {
            unobserved: self.structure.unobserved(),
            ..self
        }
    }

    /// The same rows with these coordinates.
    pub fn with_coordinates(self, coordinates: Coordinates) -> Self {
        StructureRows {
            coordinates,
            ..self
        }
    }

    /// The file that the structure was read from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The structure's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The structure without its atoms.
    pub fn structure(&self) -> &Structure {
        &self.structure
    }

    /// Rows of the table of variants alone: a structure with many variants has them written in
    /// pieces, and its other rows once.
    pub(super) fn with_variants(&self, variants: JoinedVariants) -> Self {
        StructureRows {
            source: self.source.clone(),
            name: self.name.clone(),
            structure: Arc::clone(&self.structure),
            atom_rows: None,
            interaction_rows: None,
            water_bridges: [Vec::new(), Vec::new()],
            atoms: self.atoms,
            ligand_atoms: Vec::new(),
            features: Arc::clone(&self.features),
            coordinates: Coordinates::default(),
            unobserved: Vec::new(),
            chains: Arc::clone(&self.chains),
            first_positions: Vec::new(),
            selected: self.selected.clone(),
            joined: Joined {
                variants,
                ..Joined::default()
            },
        }
    }

    /// Whether these are rows of variants alone: they have at least one.
    fn is_of_variants(&self) -> bool {
        !self.joined.variants.residues.is_empty()
    }

    /// The rows in a table, as ranges of consecutive ones.
    pub(super) fn rows(&self, table: OutputTable) -> Vec<Range<usize>> {
        let count = match table {
            OutputTable::Variants => self.joined.variants.residues.len(),
            _ if self.is_of_variants() => 0,
            OutputTable::WaterBridges => match &self.selected {
                Some(selected) => return self.selected_atom_pairs(table, selected),
                None => self.atom_pair_count(table),
            },
            OutputTable::Features(name) => match (name.decl().rows, &self.selected) {
                (RowKind::Residue, None) => return self.residue_ranges(),
                (RowKind::Residue, Some(selected)) => {
                    let all = self.residue_ranges().into_iter();
                    return all.flat_map(|range| selected_in(selected, range)).collect();
                }
                (RowKind::Chain, _) => self.chains.len(),
                (RowKind::Structure, _) => 1,
                (RowKind::Ligand, _) => self.ligand_atoms.len(),
                (RowKind::Atom, selected) => {
                    let atoms = self.atom_rows.as_ref();
                    return atoms.map_or(Vec::new(), |atoms| atoms.ranges(selected.as_ref()));
                }
                (RowKind::ResiduePair(_), Some(selected)) => {
                    return self.selected_pairs(name, selected);
                }
                (RowKind::AtomPair, Some(selected)) => {
                    return self.selected_atom_pairs(table, selected);
                }
                (RowKind::ResiduePair(_) | RowKind::AtomPair, None) | (RowKind::ChainPair, _) => {
                    self.features.rows(name)
                }
            },
        };
        std::iter::once(0..count).collect()
    }

    /// The indices of all residues in the order in which the table has them. An unobserved residue stands before
    /// the observed one with the index [`UnobservedResidue::before`].
    fn residue_ranges(&self) -> Vec<Range<usize>> {
        let observed = self.structure.residues.len();
        let mut ranges = Vec::new();
        let (mut next_observed, mut next_unobserved) = (0, observed);
        for group in self.unobserved.chunk_by(|a, b| a.before == b.before) {
            let end = next_unobserved + group.len();
            ranges.extend([next_observed..group[0].before, next_unobserved..end]);
            (next_observed, next_unobserved) = (group[0].before, end);
        }
        ranges.push(next_observed..observed);
        ranges.retain(|range| !range.is_empty());
        ranges
    }

    /// Number of residues, those that were not observed included.
    pub(super) fn all_residues(&self) -> usize {
        self.structure.residues.len() + self.unobserved.len()
    }

    /// Whether a residue was observed.
    pub(super) fn is_observed(&self, row: usize) -> bool {
        row < self.structure.residues.len()
    }

    /// The author's number of a residue; `None` if the file states none.
    pub(super) fn number(&self, row: usize) -> Option<i32> {
        let unobserved = row.checked_sub(self.structure.residues.len());
        let is_numbered = unobserved.is_none_or(|index| self.unobserved[index].is_numbered);
        is_numbered.then_some(self.residue(row).auth_seq_id)
    }

    /// The pairs of residues that both have rows, as ranges of their rows.
    fn selected_pairs(&self, table: TableName, selected: &BooleanBuffer) -> Vec<Range<usize>> {
        let pairs = self.features.rows(table);
        let both = BooleanBuffer::collect_bool(pairs, |row| {
            self.pair(OutputTable::Features(table), row)
                .iter()
                .all(|&residue| selected.value(residue))
        });
        both.set_slices().map(|(start, end)| start..end).collect()
    }

    /// The number of rows of a table of pairs of atoms.
    fn atom_pair_count(&self, table: OutputTable) -> usize {
        match table {
            OutputTable::Features(table) => self.features.rows(table),
            _ => self.water_bridges[0].len(),
        }
    }

    /// The pairs of atoms whose residues have rows. Ligands, nucleotides and caps count as having one.
    fn selected_atom_pairs(
        &self,
        table: OutputTable,
        selected: &BooleanBuffer,
    ) -> Vec<Range<usize>> {
        let both = BooleanBuffer::collect_bool(self.atom_pair_count(table), |row| {
            let owners = self.atom_owners(table, row);
            owners.iter().all(|owner| match owner {
                AtomOwner::Residue(residue) => selected.value(*residue),
                AtomOwner::Loose(_) | AtomOwner::Ligand(_) => true,
            })
        });
        both.set_slices().map(|(start, end)| start..end).collect()
    }

    /// The kind of an interaction, as an index.
    pub(super) fn interaction_kind(&self, row: usize) -> usize {
        match self.features.column(TableName::Interactions, 2) {
            Column::Count(kinds) => kinds[row] as usize,
            Column::Real(_) => unreachable!("kinds are words"),
        }
    }

    /// The names of atoms.
    ///
    /// # Panics
    /// If the structure has no interaction.
    pub(super) fn interaction_rows(&self) -> &InteractionRows {
        let rows = self.interaction_rows.as_ref();
        rows.expect("rows of interactions have the names of atoms")
    }

    /// The residues, chains or atoms of a row of a table of pairs.
    pub(super) fn pair(&self, table: OutputTable, row: usize) -> [usize; 2] {
        [0, 1].map(|side| self.pair_side(table, side)[row] as usize)
    }

    /// The first (`side` 0) or the second residues or chains of all rows of a table of pairs.
    fn pair_side(&self, table: OutputTable, side: usize) -> &[i32] {
        let OutputTable::Features(table) = table else {
            return &self.water_bridges[side];
        };
        match self.features.column(table, side) {
            Column::Count(indices) => indices,
            Column::Real(_) => unreachable!("the sides of pairs are indices"),
        }
    }

    /// The indices of the residues or chains that the values of a column are of: the rows themselves, or
    /// one side of the pairs in these rows.
    pub(super) fn indices_of(
        &self,
        pair: Option<PairSide>,
        rows: Range<usize>,
    ) -> impl Iterator<Item = usize> {
        // A structure without rows may have no columns of the table.
        let indices = pair
            .filter(|_| !rows.is_empty())
            .map(|PairSide { table, side }| self.pair_side(table, side));
        rows.map(move |row| indices.map_or(row, |indices| indices[row] as usize))
    }

    /// Whether the residues of a chain have positions in its sequence. The structure has pairs of residues.
    pub(super) fn is_numbered(&self, chain: u32) -> bool {
        self.first_positions[chain as usize].is_some()
    }

    /// Whether a residue has a row.
    pub(super) fn is_selected(&self, residue: usize) -> bool {
        let selected = self.selected.as_ref();
        selected.is_none_or(|selected| selected.value(residue))
    }

    /// Number of residues, those without a row included.
    #[cfg(any(fuzzing, test))]
    pub fn residues(&self) -> u64 {
        self.structure.residues.len() as u64
    }

    /// Number of residues without a row.
    pub fn left_out(&self) -> u64 {
        let left_out = |selected: &BooleanBuffer| selected.len() - selected.count_set_bits();
        self.selected.as_ref().map_or(0, left_out) as u64
    }

    /// The number of atoms that a condition was applied to, and of those that meet it; `None` without a
    /// condition on atoms.
    pub fn tested_atoms(&self) -> Option<(u64, u64)> {
        self.atom_rows.as_ref()?.tested()
    }

    /// Upper bounds of the bytes of text in the rows of a table, by which a table ends its row groups. Residue
    /// names, one-letter codes and words of features are left out, as they are too short to matter.
    pub(super) fn text_bytes_max(&self, table: OutputTable) -> TextBytes {
        fn longest<T>(items: &[T], bytes: impl Fn(&T) -> usize) -> usize {
            items.iter().map(bytes).max().unwrap_or(0)
        }
        let bytes = |text: &Option<Arc<str>>| text.as_ref().map_or(0, |text| text.len());
        let once = self.source.len() + self.name.len() + bytes(&self.structure.entry_id);
        let chain_bytes = longest(&self.structure.chains, |chain| {
            let (auth, label) = (chain.auth_asym_id.len(), bytes(&chain.label_asym_id));
            // A column of features names a second chain, such as `iface_chain`.
            auth + label + auth.max(label) + bytes(&chain.entity_id)
        });
        let residue_bytes = chain_bytes + longest(&self.structure.uniprot, |name| name.len());
        let joined = &self.joined;
        let each_row = match table {
            OutputTable::Features(name) => match name.decl().rows {
                RowKind::Residue => residue_bytes + text_bytes_max(&joined.residues),
                RowKind::ChainPair => 2 * chain_bytes,
                RowKind::Chain => {
                    chain_bytes
                        + longest(&self.chains, |chain| {
                            chain.sequence.len() + chain.seqres.as_ref().map_or(0, String::len)
                        })
                }
                RowKind::ResiduePair(_) => {
                    2 * longest(&self.structure.chains, |chain| chain.auth_asym_id.len())
                }
                RowKind::Ligand => longest(&self.structure.ligands, |ligand| {
                    ligand.auth_asym_id.len() + bytes(&ligand.label_asym_id)
                }),
                RowKind::Atom => {
                    let of_ligands =
                        longest(&self.structure.ligands, |ligand| ligand.auth_asym_id.len());
                    chain_bytes.max(of_ligands)
                }
                RowKind::AtomPair => self.atom_pair_bytes(chain_bytes),
                RowKind::Structure => {
                    let (method, title) = (&self.structure.method, &self.structure.title);
                    bytes(method) + bytes(title) + text_bytes_max(&joined.structures)
                }
            },
            OutputTable::WaterBridges => self.atom_pair_bytes(chain_bytes),
            OutputTable::Variants => {
                // A variant whose residue is not in the structure has the chain of its annotation.
                let key_bytes = longest(&joined.variants.keys, |key| key.chain.len());
                residue_bytes.max(key_bytes) + text_bytes_max(&joined.variants.columns)
            }
        };
        TextBytes { once, each_row }
    }

    /// The most bytes of text in a row of a table of pairs of atoms, which names the chains of both sides, and of
    /// a bridge's water. Chains of residues have `chain_bytes`.
    fn atom_pair_bytes(&self, chain_bytes: usize) -> usize {
        let others = self.structure.ligands.iter().chain(&self.structure.waters);
        let of_others = others.map(|ligand| ligand.auth_asym_id.len()).max();
        let names = self.interaction_rows.as_ref();
        let names = names.map_or(0, InteractionRows::text_bytes_max);
        3 * chain_bytes.max(of_others.unwrap_or(0)) + 2 * names
    }

    /// Selects atoms: `selected` has a value for each atom in these ranges, one after the other, and
    /// no other atom is selected.
    pub(super) fn select_atoms(&mut self, ranges: &[Range<usize>], selected: &BooleanBuffer) {
        if let Some(atoms) = &mut self.atom_rows {
            atoms.select(ranges, selected);
        }
    }

    /// The atoms, which rows of the table of atoms have.
    ///
    /// # Panics
    /// If that table is not computed.
    pub(super) fn atom_rows(&self) -> &AtomRows {
        let atoms = self.atom_rows.as_ref();
        atoms.expect("rows of atoms have the atoms")
    }

    pub(super) fn residue(&self, row: usize) -> &Residue {
        let residues = &self.structure.residues;
        residues
            .get(row)
            .unwrap_or_else(|| &self.unobserved[row - residues.len()].residue)
    }

    /// Which rules changed, chose or built something of a residue: the bits of [`ResidueFlags`], and the next
    /// one for a C-beta that was built although the residue is no glycine.
    pub(super) fn flags(&self, row: usize) -> u8 {
        const CB_BUILT: u8 = ResidueFlags::ALL.bits() + 1;
        let residue = self.residue(row);
        let is_missing = residue.cb == MISSING && residue.aa != b'G';
        let has_backbone = [residue.n, residue.ca, residue.c]
            .iter()
            .all(|&atom| atom != MISSING);
        let built = if is_missing && has_backbone {
            CB_BUILT
        } else {
            0
        };
        residue.flags.bits() | built
    }

    /// The residue of a variant's row, by its index.
    pub(super) fn variant_residue(&self, row: usize) -> Option<usize> {
        Some(self.joined.variants.residues[row]? as usize)
    }

    /// The residue of a variant's row, as the annotation names it.
    pub(super) fn variant_key(&self, row: usize) -> &VariantKey {
        &self.joined.variants.keys[row]
    }

    /// The ligand of a row.
    pub(super) fn ligand(&self, row: usize) -> &Ligand {
        &self.structure.ligands[row]
    }

    /// The chain of a residue's row.
    pub(super) fn chain_of(&self, row: usize) -> &Chain {
        &self.structure.chains[self.residue(row).chain as usize]
    }

    /// The chain of a chain's row.
    pub(super) fn chain(&self, row: usize) -> &Chain {
        &self.structure.chains[self.chains[row].index as usize]
    }

    /// Breaks inside all chains.
    pub(super) fn breaks(&self) -> u32 {
        self.chains.iter().map(|chain| chain.breaks).sum()
    }
}

/// The rows of a structure's chains, without those that have no residue.
fn chain_rows(structure: &Structure) -> Arc<[ChainRow]> {
    let new = |index| ChainRow {
        index,
        residues: 0,
        breaks: 0,
        sequence: String::new(),
        seqres: None,
    };
    let mut chains: Vec<ChainRow> = (0..structure.chains.len() as u32).map(new).collect();
    let mut last = None;
    for residue in &structure.residues {
        let chain = &mut chains[residue.chain as usize];
        chain.residues += 1;
        chain.sequence.push(char::from(residue.aa));
        // The first residue of a chain is no break.
        chain.breaks += u32::from(residue.break_before && last == Some(residue.chain));
        last = Some(residue.chain);
    }
    chains.retain(|chain| chain.residues > 0);
    for chain in &mut chains {
        chain.seqres = structure.chains[chain.index as usize].sequence_letters();
    }
    chains.into()
}

/// Whether a table has rows that are pairs of residues.
fn has_pairs(table: OutputTable, features: &FeatureTable) -> bool {
    let rows = table.features().map_or(0, |name| features.rows(name));
    table.is_pair() && rows > 0
}

/// The indices of both atoms of each bridge of water.
fn water_bridges(structure: &Structure) -> [Vec<i32>; 2] {
    let chemistry = structure.chemistry.as_ref();
    let bridges = chemistry.map_or(&[][..], |chemistry| chemistry.water_bridges());
    [0, 1].map(|side| {
        bridges
            .iter()
            .map(|bridge| bridge.atoms[side] as i32)
            .collect()
    })
}
