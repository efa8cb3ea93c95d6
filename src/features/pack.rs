//! Packs a structure into its part of a batch.

use super::density;
use super::grid::{ATOM_CELL_SHIFT, Grid, RESIDUE_CELL_SHIFT};
use super::inputs::{B_CA, Inputs, PLDDT};
use super::layout::{
    ATOMS, AXES, Atom, AtomTag, Backbone, CELLS, CHAINS, COORDINATE_MAX, ChainSpan, LIGANDS,
    PAIR_ROOM, Position, RADIUS_MAX, RESIDUES, ResidueSpan, STRUCTURES, StructureSpan, TILE, TILES,
    Tile,
};
use super::side_chain_atoms::side_chain;
use crate::error::{Error, ErrorKind, Result};
use crate::structure::{
    BFactorKind, CheckedStructure, Ligand, LigandAtom, LigandKind, Residue, Structure,
};
use crate::workload::{Extent, WriteViews};

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
    lengths[CELLS] = Grid::cells_max(lengths[ATOMS] as usize).saturating_add(1);
    lengths[PAIR_ROOM] = lengths[RESIDUES];
    lengths[LIGANDS] = length(structure.ligands.len(), LIGANDS)?;
    Ok(Extent::from(lengths))
}

/// Writes the structure into all inputs that the recording has.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind::Input) if points lie too densely for the neighbour
/// search.
pub(super) fn write(
    inputs: &Inputs,
    structure: &Structure,
    at: Extent,
    views: &mut WriteViews<'_>,
) -> Result<()> {
    let residues = &structure.residues;
    let span = structure_span(structure, at);
    if let Some(buffer) = inputs.structures {
        views.take(buffer)[0] = span;
    }
    if let Some(buffer) = inputs.residues {
        write_residues(views.take(buffer), structure, at);
    }
    if let Some(buffer) = inputs.tiles {
        write_tiles(views.take(buffer), residues.len() as u32, at);
    }
    if let Some(buffer) = inputs.atoms {
        write_atoms(views.take(buffer), structure, at);
        density::check(&span.atom_grid, structure.xyz.iter().copied(), "atoms")?;
    }
    if let Some(buffer) = inputs.bound_atoms {
        let atoms = views.take(buffer);
        write_atoms(atoms, structure, at);
        write_ligand_atoms(&mut atoms[structure.xyz.len()..], structure, at);
        let points = atoms.iter().map(|atom| atom.position.into());
        density::check(&span.atom_grid, points, "atoms")?;
    }
    if let Some(buffer) = inputs.ligand_of {
        let (of_atoms, of_ligands) = views.take(buffer).split_at_mut(structure.xyz.len());
        of_atoms.fill(u32::MAX);
        let ligands = ligand_atoms(structure).map(|(ligand, _)| ligand);
        let of_ligands = of_ligands.iter_mut().zip(ligands);
        of_ligands.for_each(|(of, ligand)| *of = ligand);
    }
    if let Some(buffer) = inputs.ligands {
        write_ligands(views.take(buffer), structure, at);
    }
    let one_a_residue = |atoms: &mut [Atom], of: &dyn Fn(&Residue) -> Option<Placed>| {
        for (atom, residue) in atoms.iter_mut().zip(residues) {
            *atom = of(residue).map_or(Atom::NONE, |(position, is_side)| Atom {
                position: position.into(),
                tag: AtomTag::new(RADIUS_MAX, is_side, false, at[CHAINS] + residue.chain),
            });
        }
        let present = atoms.iter().filter(|atom| atom.is_present());
        let points = present.map(|atom| atom.position.into());
        density::check(&span.residue_grid, points, "residues")
    };
    if let Some(buffer) = inputs.ca {
        let atoms = views.take(buffer);
        one_a_residue(atoms, &|residue| {
            Some((structure.position(residue.ca)?, false))
        })?;
    }
    if let Some(buffer) = inputs.cb {
        let atoms = views.take(buffer);
        one_a_residue(atoms, &|residue| c_beta(structure, residue))?;
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
    if let Some(buffer) = inputs.side_chains {
        let rows = views.take(buffer).iter_mut().zip(residues).enumerate();
        rows.for_each(|(row, (to, residue))| {
            *to = side_chain(structure, row, is_standard(residue));
        });
    }
    if let Some(buffer) = inputs.b {
        let b = views.take(buffer).iter_mut().zip(residues);
        b.for_each(|(b, residue)| {
            let b_factor = structure.b_factor.get(residue.ca as usize);
            *b = b_factor.copied().unwrap_or(f32::NAN);
        });
    }
    if let Some(buffer) = inputs.atom_b {
        let (of_atoms, of_ligands) = views.take(buffer).split_at_mut(structure.xyz.len());
        of_atoms.copy_from_slice(&structure.b_factor);
        of_ligands.fill(f32::NAN);
    }
    if let Some(buffer) = inputs.sequence {
        let first = structure.first_positions();
        let rows = (1..).zip(residues);
        let positions = rows.map(|(row, residue)| {
            let first = first[residue.chain as usize].zip(residue.sequence_position);
            first.map_or(row, |(first, position)| position - first + 1)
        });
        let values = views.take(buffer).iter_mut();
        values.zip(positions).for_each(|(to, from)| *to = from);
    }
    if let Some(buffer) = inputs.row_numbers {
        let rows = views.take(buffer).iter_mut();
        rows.zip(1..).for_each(|(number, row)| *number = row);
    }
    if let Some(buffer) = inputs.loose {
        write_loose(bytemuck::cast_slice_mut(views.take(buffer)), structure, at);
    }
    if let Some((buffer, names)) = &inputs.selected {
        let rows = views.take(*buffer).iter_mut().zip(residues);
        rows.for_each(|(selected, residue)| *selected = u8::from(is_named(residue, names)));
    }
    for &(buffer, rows_per_unit) in &inputs.pair_rooms {
        let rows = |units: u32| units.saturating_mul(rows_per_unit as u32);
        let room = [at[PAIR_ROOM], views.extent()[PAIR_ROOM]];
        views.take(buffer).copy_from_slice(&room.map(rows));
    }
    if let Some(buffer) = inputs.rooms {
        let room = [at[PAIR_ROOM], views.extent()[PAIR_ROOM]];
        views.take(buffer).copy_from_slice(&room);
    }
    for (name, values) in &inputs.channels {
        write_channel(views.take(*values), structure, name);
    }
    let chains = inputs.chains.map(|buffer| views.take(buffer));
    let members = inputs.members.map(|buffer| views.take(buffer));
    if let Some(chains) = chains {
        write_chains(chains, members, residues, at);
    }
    Ok(())
}

fn structure_span(structure: &Structure, at: Extent) -> StructureSpan {
    let atom_count = structure.xyz.len();
    let of_ligands = ligand_atoms(structure).map(|(_, atom)| atom.xyz);
    let ligand_atom_count = ligand_atoms(structure).count();
    let glycans = structure.ligands.iter().filter(|ligand| is_glycan(ligand));
    let glycan_atom_count: usize = glycans.map(|ligand| ligand.atoms.len()).sum();
    let of_residues = structure.residues.iter().flat_map(|residue| {
        let ca = structure.position(residue.ca);
        let cb = c_beta(structure, residue).map(|(position, _)| position);
        ca.into_iter().chain(cb)
    });
    let first = at[CELLS];
    StructureSpan {
        residue_start: at[RESIDUES],
        residue_count: structure.residues.len() as u32,
        atom_start: at[ATOMS],
        atom_count: atom_count as u32,
        chain_start: at[CHAINS],
        chain_count: structure.chains.len() as u32,
        predicted: u32::from(structure.b_factor_kind == BFactorKind::Plddt),
        tile_start: at[TILES],
        ligand_atom_count: ligand_atom_count as u32,
        glycan_atom_count: glycan_atom_count as u32,
        ligand_start: at[LIGANDS],
        ligand_count: structure.ligands.len() as u32,
        atom_grid: Grid {
            first,
            ..Grid::over(
                structure.xyz.iter().copied().chain(of_ligands),
                atom_count + ligand_atom_count,
                ATOM_CELL_SHIFT,
            )
        },
        residue_grid: Grid {
            first,
            ..Grid::over(of_residues, atom_count, RESIDUE_CELL_SHIFT)
        },
    }
}

fn write_residues(spans: &mut [ResidueSpan], structure: &Structure, at: Extent) {
    let atoms = structure.atom_start.windows(2);
    for ((span, residue), atoms) in spans.iter_mut().zip(&structure.residues).zip(atoms) {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        *span = ResidueSpan {
            structure: at[STRUCTURES],
            chain: at[CHAINS] + residue.chain,
            atom_start: at[ATOMS] + atoms[0],
            atom_count: (atoms[1] - atoms[0]) as u16,
            aa: residue.aa,
            flags: ResidueSpan::PRESENT
                | flag(!residue.break_before, ResidueSpan::LINKED)
                | flag(is_standard(residue), ResidueSpan::STANDARD),
        };
    }
}

/// Whether the residue is one of the twenty standard amino acids, or selenomethionine.
fn is_standard(residue: &Residue) -> bool {
    is_standard_letter(residue.aa) && (residue.is_standard() || &residue.comp_id == b"MSE     ")
}

/// Whether the letter is that of one of the twenty standard amino acids.
fn is_standard_letter(aa: u8) -> bool {
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

/// The ligands with their indices, in the order of their atoms: glycans come first.
fn ligands_by_atoms(structure: &Structure) -> impl Iterator<Item = (u32, &Ligand)> {
    let ligands = |glycans: bool| {
        let all = (0..).zip(&structure.ligands);
        all.filter(move |(_, ligand)| is_glycan(ligand) == glycans)
    };
    ligands(true).chain(ligands(false))
}

/// The atoms of ligands, each with the index of its ligand.
fn ligand_atoms(structure: &Structure) -> impl Iterator<Item = (u32, &LigandAtom)> {
    let ligands = ligands_by_atoms(structure);
    ligands.flat_map(|(at, ligand)| ligand.atoms.iter().map(move |atom| (at, atom)))
}

/// Writes the spans of ligands in their order; the chain is the structure's first.
fn write_ligands(spans: &mut [ResidueSpan], structure: &Structure, at: Extent) {
    let mut atom_start = at[ATOMS] + structure.xyz.len() as u32;
    for (index, ligand) in ligands_by_atoms(structure) {
        spans[index as usize] = ResidueSpan {
            structure: at[STRUCTURES],
            chain: at[CHAINS],
            atom_start,
            atom_count: ligand.atoms.len() as u16,
            aa: b'X',
            flags: ResidueSpan::PRESENT,
        };
        atom_start += ligand.atoms.len() as u32;
    }
}

/// Writes the atoms of ligands. Of their tags, "side chain" stands for an atom of a ligand, which
/// those of ions and glycans are not, and "polar" for a metal; the chain is the structure's first.
fn write_ligand_atoms(atoms: &mut [Atom], structure: &Structure, at: Extent) {
    for (to, (ligand, atom)) in atoms.iter_mut().zip(ligand_atoms(structure)) {
        let kind = structure.ligands[ligand as usize].kind;
        *to = Atom {
            position: atom.xyz.into(),
            tag: AtomTag::new(
                atom.class.radius_milli_angstrom(),
                kind == LigandKind::Ligand,
                atom.is_metal(),
                at[CHAINS],
            ),
        };
    }
}

/// Writes the atoms of the polymer; those of ligands become absent.
fn write_atoms(atoms: &mut [Atom], structure: &Structure, at: Extent) {
    atoms[structure.xyz.len()..].fill(Atom::NONE);
    let starts = structure.atom_start.windows(2);
    let of_rows = structure.residues.iter().zip(starts);
    let of_rows = of_rows.map(|(residue, starts)| (residue.chain, starts[1] - starts[0]));
    let loose = structure.loose.iter();
    let spans = of_rows.chain(loose.map(|span| (span.chain, span.atom_count)));
    let columns = structure.xyz.iter().zip(&structure.class);
    let mut rest = atoms.iter_mut().zip(columns);
    for (chain, count) in spans {
        for (atom, (&position, class)) in rest.by_ref().take(count as usize) {
            *atom = Atom {
                position: position.into(),
                tag: AtomTag::new(
                    class.radius_milli_angstrom(),
                    class.is_side(),
                    class.is_polar(),
                    at[CHAINS] + chain,
                ),
            };
        }
    }
}

/// Whether one of `names` is the residue's one-letter code, its name or its parent's name.
fn is_named(residue: &Residue, names: &[String]) -> bool {
    let is = |name: &[u8], id: &[u8; 8]| id.trim_ascii_end() == name;
    names.iter().any(|name| match name.as_bytes() {
        [letter] => residue.aa == *letter,
        name => is(name, &residue.comp_id) || is(name, &residue.parent_comp_id),
    })
}

/// The structure's values of a channel; NaN for a value that is missing or not finite.
fn write_channel(values: &mut [f32], structure: &Structure, name: &str) {
    let of_file = match structure.b_factor_kind {
        BFactorKind::Temperature => B_CA,
        BFactorKind::Plddt => PLDDT,
    };
    let own = |row: usize| match structure.channels.iter().find(|own| own.name == name) {
        Some(channel) => channel.values.get(row).copied(),
        None if name == of_file => {
            let ca = structure.residues[row].ca;
            structure.b_factor.get(ca as usize).copied()
        }
        None => None,
    };
    for (row, value) in values.iter_mut().enumerate() {
        *value = own(row)
            .filter(|value| value.is_finite())
            .unwrap_or(f32::NAN);
    }
}

fn write_tiles(tiles: &mut [Tile], residue_count: u32, at: Extent) {
    for (index, tile) in tiles.iter_mut().enumerate() {
        let first = index as u32 * TILE;
        *tile = Tile {
            residue_start: at[RESIDUES],
            residue_count,
            first,
            count: TILE.min(residue_count - first),
        };
    }
}

/// Writes the residues sorted by chain, in order within a chain: a file may list the residues of a
/// chain in several places.
fn write_chains(
    chains: &mut [ChainSpan],
    members: Option<&mut [u32]>,
    residues: &[Residue],
    at: Extent,
) {
    chains.fill(ChainSpan {
        structure: at[STRUCTURES],
        member_start: at[RESIDUES],
        count: 0,
        unused: 0,
    });
    for residue in residues {
        chains[residue.chain as usize].count += 1;
    }
    let mut start = at[RESIDUES];
    for chain in chains.iter_mut() {
        chain.member_start = start;
        start += chain.count;
    }
    let Some(members) = members else {
        return;
    };
    let mut next: Vec<u32> = chains.iter().map(|chain| chain.member_start).collect();
    for (index, residue) in (at[RESIDUES]..).zip(residues) {
        let next = &mut next[residue.chain as usize];
        members[(*next - at[RESIDUES]) as usize] = index;
        *next += 1;
    }
}

/// Writes for each chain the first of its loose atoms in the batch, and the number of loose atoms
/// up to its last.
fn write_loose(chains: &mut [[u32; 2]], structure: &Structure, at: Extent) {
    chains.fill([0; 2]);
    let mut next = at[ATOMS] + structure.atom_start.last().copied().unwrap_or(0);
    for span in &structure.loose {
        let [first, count] = &mut chains[span.chain as usize];
        if *count == 0 {
            *first = next;
        }
        next += span.atom_count;
        *count = next - *first;
    }
}

/// A position, and whether it is an atom of a side chain.
type Placed = ([i32; 3], bool);

/// The residue's C-beta, and whether the file has it. For glycine, and if it is missing, it is
/// built from N, C-alpha and C.
fn c_beta(structure: &Structure, residue: &Residue) -> Option<Placed> {
    let atom = |index: u32| structure.position(index);
    let glycine = &residue.parent_comp_id == b"GLY     ";
    match atom(residue.cb).filter(|_| !glycine) {
        Some(real) => Some((real, true)),
        // The C-beta of a broken backbone can be beyond the bounds of coordinates.
        None => {
            let [n, ca, c] = [atom(residue.n)?, atom(residue.ca)?, atom(residue.c)?];
            let built = virtual_c_beta(n, ca, c);
            is_within_bounds(&built).then_some((built, false))
        }
    }
}

fn is_within_bounds(position: &[i32; 3]) -> bool {
    position
        .iter()
        .all(|coordinate| coordinate.unsigned_abs() <= COORDINATE_MAX)
}

/// The position of an ideal C-beta: -0.58273431 a + 0.56802827 b - 0.54067466 c + CA in A, with b =
/// CA - N, c = C - CA and a = b x c, its distance from CA along each axis rounded to 0.001 A,
/// halves away from zero. Arguments and result are in 0.001 A.
pub fn virtual_c_beta(n: [i32; 3], ca: [i32; 3], c: [i32; 3]) -> [i32; 3] {
    let difference = |p: [i32; 3], q: [i32; 3]| {
        std::array::from_fn::<f64, 3, _>(|axis| f64::from(p[axis] - q[axis]) / 1000.0)
    };
    let (b, c) = (difference(ca, n), difference(c, ca));
    let a = [
        b[1] * c[2] - b[2] * c[1],
        b[2] * c[0] - b[0] * c[2],
        b[0] * c[1] - b[1] * c[0],
    ];
    std::array::from_fn(|axis| {
        let angstrom = -0.58273431 * a[axis] + 0.56802827 * b[axis] - 0.54067466 * c[axis];
        ca[axis].saturating_add((angstrom * 1000.0).round() as i32)
    })
}
