//! Packs a structure into its part of a batch.

use super::grid::{ATOM_CELL_SHIFT, Grid};
use super::inputs::{B_CA, PLDDT, StructureInputs};
use super::interactions::{chemistry_of, write_frames, write_roles};
use super::layout::{
    ATOMS, AXES, Atom, AtomTag, Backbone, CELLS, CHAINS, ChainSpan, LIGANDS, PAIR_ROOM, Position,
    RESIDUES, ResidueSpan, STRUCTURES, StructureSpan, TILE, TILES, Tile,
};
use super::sasa::radius_excess;
use crate::error::{Error, ErrorKind, Result};
use crate::structure::{
    AtomClass, BFactorKind, CheckedStructure, Ligand, LigandAtom, LigandKind, Radii, Residue,
    Structure,
};
use crate::workload::{Extent, WriteViews};
use bytemuck::Zeroable;
use std::ops::Range;

/// The extent of a structure, by counts alone.
///
/// # Errors
/// [`ErrorKind::Capacity`] if a count does not fit 32 bits.
pub(super) fn extent(structure: &CheckedStructure) -> Result<Extent> {
    let length = |count: usize, axis: usize| {
        u32::try_from(count).map_err(|_| {
            Error::new(
                ErrorKind::Capacity,
                format!(
                    "the structure has {count} {}, and the most is 4294967295",
                    AXES[axis]
                ),
            )
        })
    };
    let atoms = structure.xyz.len() + structure.ligand_atom_count();
    let mut lengths = [0; AXES.len()];
    lengths[RESIDUES] = length(structure.residues.len(), RESIDUES)?;
    lengths[ATOMS] = length(atoms, ATOMS)?;
    lengths[STRUCTURES] = 1;
    lengths[TILES] = lengths[RESIDUES].div_ceil(TILE);
    lengths[CHAINS] = length(structure.chains.len(), CHAINS)?;
    // One more for the end of the last cell.
    lengths[CELLS] = Grid::cells_max(lengths[ATOMS] as usize).saturating_add(1);
    lengths[PAIR_ROOM] = lengths[RESIDUES];
    lengths[LIGANDS] = length(structure.ligands.len(), LIGANDS)?;
    Ok(Extent::from(lengths))
}

/// Writes the structure into all inputs that the recording has. `views` are of its part of the
/// batch, which starts at `offset`.
pub(super) fn write(
    inputs: &StructureInputs,
    tags: &ClassTags,
    structure: &CheckedStructure,
    offset: Extent,
    views: &mut WriteViews<'_>,
) {
    let residues = &structure.residues;
    let span = structure_span(structure, offset);
    if let Some(buffer) = inputs.structures {
        views.take(buffer)[0] = span;
    }
    if let Some(buffer) = inputs.residues {
        write_residues(views.take(buffer), structure, offset);
    }
    if let Some(buffer) = inputs.tiles {
        write_tiles(views.take(buffer), residues.len() as u32, offset);
    }
    let atoms = inputs
        .atoms
        .map(|buffer| write_atoms(views.take(buffer), tags, structure, offset));
    if let Some(buffer) = inputs.bound_atoms {
        let bound = views.take(buffer);
        match atoms {
            Some(atoms) => bound.copy_from_slice(atoms),
            None => drop(write_atoms(bound, tags, structure, offset)),
        }
        write_ligand_atoms(&mut bound[structure.xyz.len()..], tags, structure, offset);
    }
    if let Some(buffer) = inputs.ligand_of {
        let (polymer, others) = views.take(buffer).split_at_mut(structure.xyz.len());
        polymer.fill(u32::MAX);
        let ligands = ligand_atoms(structure).map(|(ligand, _)| ligand);
        let indices = others.iter_mut().zip(ligands);
        indices.for_each(|(index, ligand)| *index = ligand);
    }
    if let Some(buffer) = inputs.ligands {
        write_ligands(views.take(buffer), structure, offset);
    }
    if let (Some(roles), Some(frames)) = (inputs.roles, inputs.frames) {
        let chemistry = chemistry_of(structure, inputs.components);
        write_roles(views.take(roles), &chemistry);
        write_frames(views.take(frames), &chemistry, structure);
    }
    if let Some(buffer) = inputs.backbone {
        let position = |atom| structure.position(atom).map_or(Position::NONE, Into::into);
        for (backbone, residue) in views.take(buffer).iter_mut().zip(residues) {
            *backbone = Backbone {
                n: position(residue.n),
                ca: position(residue.ca),
                c: position(residue.c),
                o: position(residue.o),
            };
        }
    }
    if let Some(buffer) = inputs.betas {
        for (beta, residue) in views.take(buffer).iter_mut().zip(residues) {
            // One that a file gives to glycine does not count: kernels build it, as for all
            // glycines.
            let is_glycine = &residue.parent_comp_id == b"GLY     ";
            let real = structure.position(residue.cb).filter(|_| !is_glycine);
            *beta = real.map_or(Position::NONE, Into::into);
        }
    }
    if let Some(buffer) = inputs.names {
        let names: &[u8] = bytemuck::cast_slice(&structure.atom_name);
        let (polymer, others) = views.take(buffer).split_at_mut(names.len());
        polymer.copy_from_slice(names);
        others.fill(0);
    }
    if let Some(buffer) = inputs.b {
        let b = views.take(buffer).iter_mut().zip(residues);
        b.for_each(|(b, residue)| {
            let b_factor = structure.b_factor.get(residue.ca as usize);
            *b = b_factor.copied().unwrap_or(f32::NAN);
        });
    }
    if let Some(buffer) = inputs.atom_b {
        let (polymer, others) = views.take(buffer).split_at_mut(structure.xyz.len());
        polymer.copy_from_slice(&structure.b_factor);
        others.fill(f32::NAN);
    }
    if let Some(buffer) = inputs.sequence {
        let first = structure.first_positions();
        let rows = (1..).zip(residues);
        let positions = rows.map(|(row, residue)| {
            let first = first[residue.chain as usize].zip(residue.sequence_position);
            first.map_or(row, |(first, position)| position - first + 1)
        });
        let values = views.take(buffer).iter_mut();
        values
            .zip(positions)
            .for_each(|(value, position)| *value = position);
    }
    if let Some(buffer) = inputs.row_numbers {
        let rows = views.take(buffer).iter_mut();
        rows.zip(1..).for_each(|(number, row)| *number = row);
    }
    if let Some(buffer) = inputs.loose {
        write_loose(
            bytemuck::cast_slice_mut(views.take(buffer)),
            structure,
            offset,
        );
    }
    if let Some((buffer, names)) = &inputs.selected {
        let rows = views.take(*buffer).iter_mut().zip(residues);
        rows.for_each(|(selected, residue)| *selected = u8::from(is_named(residue, names)));
    }
    for &(buffer, rows_per_unit) in &inputs.pair_rooms {
        let rows = |units: u32| units.saturating_mul(rows_per_unit as u32);
        let room = [offset[PAIR_ROOM], views.extent()[PAIR_ROOM]];
        views.take(buffer).copy_from_slice(&room.map(rows));
    }
    if let Some(buffer) = inputs.rooms {
        let room = [offset[PAIR_ROOM], views.extent()[PAIR_ROOM]];
        views.take(buffer).copy_from_slice(&room);
    }
    for (name, values) in &inputs.channels {
        write_channel(views.take(*values), structure, name);
    }
    // A recorder that asks for the members asks for the chains too.
    let chains = inputs.chains.map(|buffer| views.take(buffer));
    let members = inputs.members.map(|buffer| views.take(buffer));
    if let Some(chains) = chains {
        write_chains(chains, members, residues, offset);
    }
}

/// The span of a structure whose parts of the batch start at `offset`.
fn structure_span(structure: &CheckedStructure, offset: Extent) -> StructureSpan {
    let atom_count = structure.xyz.len();
    let ligand_atom_count = structure.ligand_atom_count();
    let glycans = structure.ligands.iter().filter(|ligand| is_glycan(ligand));
    let glycan_atom_count: usize = glycans.map(|ligand| ligand.atoms.len()).sum();
    StructureSpan {
        residue_start: offset[RESIDUES],
        residue_count: structure.residues.len() as u32,
        atom_start: offset[ATOMS],
        atom_count: atom_count as u32,
        chain_start: offset[CHAINS],
        chain_count: structure.chains.len() as u32,
        predicted: u32::from(structure.b_factor_kind == BFactorKind::Plddt),
        tile_start: offset[TILES],
        ligand_atom_count: ligand_atom_count as u32,
        glycan_atom_count: glycan_atom_count as u32,
        ligand_start: offset[LIGANDS],
        ligand_count: structure.ligands.len() as u32,
        atom_grid: Grid {
            first: offset[CELLS],
            ..Grid::within(
                structure.corners(),
                atom_count + ligand_atom_count,
                ATOM_CELL_SHIFT,
            )
        },
        // A kernel computes it if a feature asked for it.
        residue_grid: Grid::zeroed(),
    }
}

/// Writes the spans of a structure's residues, none of which has more than 65,535 atoms.
fn write_residues(spans: &mut [ResidueSpan], structure: &Structure, offset: Extent) {
    let atoms = structure.atom_start.windows(2);
    let has_names = !structure.atom_name.is_empty();
    for ((span, residue), atoms) in spans.iter_mut().zip(&structure.residues).zip(atoms) {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        *span = ResidueSpan {
            structure: offset[STRUCTURES],
            chain: offset[CHAINS] + residue.chain,
            atom_start: offset[ATOMS] + atoms[0],
            atom_count: (atoms[1] - atoms[0]) as u16,
            aa: residue.aa,
            flags: ResidueSpan::PRESENT
                | flag(!residue.break_before, ResidueSpan::LINKED)
                | flag(is_standard(residue), ResidueSpan::STANDARD)
                | flag(has_names, ResidueSpan::NAMED),
        };
    }
}

/// Whether the residue is one of the twenty standard amino acids, or selenomethionine.
fn is_standard(residue: &Residue) -> bool {
    is_standard_letter(residue.aa) && (residue.is_standard() || &residue.comp_id == b"MSE     ")
}

/// Whether the letter is that of one of the twenty standard amino acids.
fn is_standard_letter(aa: u8) -> bool {
    // A table, as packing asks for each residue, and a search of the letters takes longer.
    const LETTERS: [bool; 256] = {
        let standard = b"ACDEFGHIKLMNPQRSTVWY";
        let mut letters = [false; 256];
        let mut index = 0;
        while index < standard.len() {
            letters[standard[index] as usize] = true;
            index += 1;
        }
        letters
    };
    LETTERS[aa as usize]
}

fn is_glycan(ligand: &Ligand) -> bool {
    ligand.kind == LigandKind::Glycan
}

/// The atoms of ligands, each with the index of its ligand.
fn ligand_atoms(structure: &Structure) -> impl Iterator<Item = (u32, &LigandAtom)> {
    let ligands = structure.ligands_by_atoms();
    ligands.flat_map(|(index, ligand)| ligand.atoms.iter().map(move |atom| (index as u32, atom)))
}

/// Writes the spans of ligands in their order, none of which has more than 65,535 atoms; the chain
/// is the structure's first.
fn write_ligands(spans: &mut [ResidueSpan], structure: &Structure, offset: Extent) {
    let mut atom_start = offset[ATOMS] + structure.xyz.len() as u32;
    for (index, ligand) in structure.ligands_by_atoms() {
        spans[index] = ResidueSpan {
            structure: offset[STRUCTURES],
            chain: offset[CHAINS],
            atom_start,
            atom_count: ligand.atoms.len() as u16,
            aa: b'X',
            flags: ResidueSpan::PRESENT,
        };
        atom_start += ligand.atoms.len() as u32;
    }
}

/// Writes the atoms of ligands, ions and glycans. The chain in their tags is the structure's first,
/// from which kernels find the structure.
fn write_ligand_atoms(atoms: &mut [Atom], tags: &ClassTags, structure: &Structure, offset: Extent) {
    for (packed, (ligand, atom)) in atoms.iter_mut().zip(ligand_atoms(structure)) {
        let kind = structure.ligands[ligand as usize].kind;
        *packed = Atom {
            position: atom.xyz.into(),
            tag: AtomTag::of_ligand_atom(
                tags.of(atom.class).radius_milli(),
                kind == LigandKind::Ligand,
                atom.is_metal(),
                offset[CHAINS],
            ),
        };
    }
}

/// Writes the atoms of the polymer, and marks those of ligands as absent. Returns `atoms`.
fn write_atoms<'a>(
    atoms: &'a mut [Atom],
    tags: &ClassTags,
    structure: &Structure,
    offset: Extent,
) -> &'a [Atom] {
    let mut write = |chain: u32, range: Range<usize>| {
        let classes = &structure.class[range.clone()];
        let columns = structure.xyz[range.clone()].iter().zip(classes);
        for (atom, (&position, &class)) in atoms[range].iter_mut().zip(columns) {
            *atom = Atom {
                position: position.into(),
                tag: tags.of(class).with_chain(offset[CHAINS] + chain),
            };
        }
    };
    // Most residues follow another one of their chain, so their atoms are written together.
    let mut row = 0;
    for residues in (structure.residues).chunk_by(|one, next| one.chain == next.chain) {
        let starts = [row, row + residues.len()].map(|row| structure.atom_start[row] as usize);
        write(residues[0].chain, starts[0]..starts[1]);
        row += residues.len();
    }
    let mut start = structure.atom_start[row] as usize;
    for span in &structure.loose {
        let end = start + span.atom_count as usize;
        write(span.chain, start..end);
        start = end;
    }
    atoms[start..].fill(Atom::NONE);
    atoms
}

/// The tag of an atom of each class, without its chain.
pub(super) struct ClassTags([AtomTag; 256]);

impl ClassTags {
    /// The tags for the classes of a set of radii, which lack [`radius_excess`]: kernels have it as
    /// part of the probe.
    pub(super) fn new(radii: Radii) -> Self {
        let excess = radius_excess(radii);
        ClassTags(std::array::from_fn(|class| {
            let class: AtomClass = bytemuck::cast(class as u8);
            match radii.milli_angstrom(class) {
                0 => AtomTag::default(),
                radius => AtomTag::new(radius - excess, class.is_side(), class.is_polar(), 0),
            }
        }))
    }

    #[inline]
    fn of(&self, class: AtomClass) -> AtomTag {
        self.0[usize::from(bytemuck::cast::<_, u8>(class))]
    }
}

/// Whether one of `names` is the residue's one-letter code, its name or its parent's name.
fn is_named(residue: &Residue, names: &[String]) -> bool {
    let is_id = |name: &[u8], id: &[u8; 8]| id.trim_ascii_end() == name;
    names.iter().any(|name| match name.as_bytes() {
        [letter] => residue.aa == *letter,
        name => is_id(name, &residue.comp_id) || is_id(name, &residue.parent_comp_id),
    })
}

/// Writes the structure's values of a channel; NaN for a value that is missing or not finite. An
/// annotation comes before the file's B factors or pLDDT of the same name.
fn write_channel(values: &mut [f32], structure: &Structure, name: &str) {
    let channel_of_file = match structure.b_factor_kind {
        BFactorKind::Temperature => B_CA,
        BFactorKind::Plddt => PLDDT,
    };
    let value_of = |row: usize| match structure
        .channels
        .iter()
        .find(|channel| channel.name == name)
    {
        Some(channel) => channel.values.get(row).copied(),
        None if name == channel_of_file => {
            let ca = structure.residues[row].ca;
            structure.b_factor.get(ca as usize).copied()
        }
        None => None,
    };
    for (row, value) in values.iter_mut().enumerate() {
        *value = value_of(row)
            .filter(|value| value.is_finite())
            .unwrap_or(f32::NAN);
    }
}

/// Writes the tiles of a structure: its residues cut into pieces that a thread block computes.
fn write_tiles(tiles: &mut [Tile], residue_count: u32, offset: Extent) {
    for (index, tile) in tiles.iter_mut().enumerate() {
        let first = index as u32 * TILE;
        *tile = Tile {
            residue_start: offset[RESIDUES],
            residue_count,
            first,
            count: TILE.min(residue_count - first),
        };
    }
}

/// Writes the spans of chains, and the residues sorted by chain, in order within a chain: a file
/// may list the residues of a chain in several places.
fn write_chains(
    chains: &mut [ChainSpan],
    members: Option<&mut [u32]>,
    residues: &[Residue],
    offset: Extent,
) {
    chains.fill(ChainSpan {
        structure: offset[STRUCTURES],
        member_start: offset[RESIDUES],
        count: 0,
        unused: 0,
    });
    for residue in residues {
        chains[residue.chain as usize].count += 1;
    }
    let mut start = offset[RESIDUES];
    for chain in chains.iter_mut() {
        chain.member_start = start;
        start += chain.count;
    }
    let Some(members) = members else {
        return;
    };
    let mut next: Vec<u32> = chains.iter().map(|chain| chain.member_start).collect();
    for (index, residue) in (offset[RESIDUES]..).zip(residues) {
        let next = &mut next[residue.chain as usize];
        members[(*next - offset[RESIDUES]) as usize] = index;
        *next += 1;
    }
}

/// Writes for each chain the first of its loose atoms in the batch, and the number of loose atoms
/// up to its last.
fn write_loose(chains: &mut [[u32; 2]], structure: &Structure, offset: Extent) {
    chains.fill([0; 2]);
    let mut next = offset[ATOMS] + structure.atom_start.last().copied().unwrap_or(0);
    for span in &structure.loose {
        let [first, count] = &mut chains[span.chain as usize];
        if *count == 0 {
            *first = next;
        }
        next += span.atom_count;
        *count = next - *first;
    }
}
