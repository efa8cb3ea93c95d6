//! One structure into its part of a batch.

use super::FeatureBuffers;
use super::layout::{
    ATOMS, AXES, CHAINS, COORDINATE_MAX, ChainSpan, Position, RESIDUES, STRUCTURES, StructureSpan,
    TILE, TILES, Tile,
};
use crate::error::{Error, ErrorKind, Result};
use crate::structure::{Residue, Structure};
use crate::workload::{Extent, WriteViews};

/// What a structure takes of a batch.
///
/// Readers give no other, but anyone may make a [`Structure`]: one whose atoms
/// lie beyond bounds, or whose residues are of chains that it does not list, is
/// refused here, since kernels rely on both.
pub(super) fn extent(structure: &Structure) -> Result<Extent> {
    if !structure.xyz.iter().all(is_within_bounds) {
        return Err(Error::input(
            "an atom is farther than 100000 A from the origin",
        ));
    }
    if structure
        .residues
        .iter()
        .any(|residue| residue.chain as usize >= structure.chains.len())
    {
        return Err(Error::input(
            "a residue is of a chain that the structure does not list",
        ));
    }
    let length = |count: usize, axis: usize| {
        u32::try_from(count).map_err(|_| {
            Error::new(
                ErrorKind::Capacity,
                format!("{count} {} are too many", AXES[axis]),
            )
        })
    };
    let mut lengths = [0; AXES.len()];
    lengths[RESIDUES] = length(structure.residues.len(), RESIDUES)?;
    lengths[ATOMS] = length(structure.xyz.len(), ATOMS)?;
    lengths[STRUCTURES] = 1;
    lengths[TILES] = lengths[RESIDUES].div_ceil(TILE);
    lengths[CHAINS] = length(structure.row_chains().len(), CHAINS)?;
    Ok(Extent::from(lengths))
}

/// Writes all views of the structure that the recording has.
pub(super) fn write(
    buffers: &FeatureBuffers,
    structure: &Structure,
    at: Extent,
    views: &mut WriteViews<'_>,
) {
    let residues = &structure.residues;
    let position = |atom: u32| {
        structure
            .position(atom)
            .map_or(Position::NONE, Position::from)
    };
    if let Some(buffer) = buffers.structures {
        let span = StructureSpan {
            residue_start: at[RESIDUES],
            residue_count: residues.len() as u32,
            atom_start: at[ATOMS],
            atom_count: structure.xyz.len() as u32,
        };
        bytemuck::cast_slice_mut::<_, StructureSpan>(views.take(buffer))[0] = span;
    }
    if let Some(buffer) = buffers.tiles {
        write_tiles(
            bytemuck::cast_slice_mut(views.take(buffer)),
            residues.len() as u32,
            at,
        );
    }
    if let Some(buffer) = buffers.ca {
        let ca: &mut [Position] = bytemuck::cast_slice_mut(views.take(buffer));
        ca.iter_mut()
            .zip(residues)
            .for_each(|(ca, residue)| *ca = position(residue.ca));
    }
    if let Some(buffer) = buffers.cb {
        let cb: &mut [Position] = bytemuck::cast_slice_mut(views.take(buffer));
        cb.iter_mut()
            .zip(residues)
            .for_each(|(cb, residue)| *cb = c_beta(structure, residue));
    }
    if let Some(buffer) = buffers.atoms {
        views
            .take(buffer)
            .copy_from_slice(bytemuck::cast_slice(&structure.xyz));
    }
    if let Some(buffer) = buffers.links {
        let links = views.take(buffer).iter_mut().zip(residues);
        links.for_each(|(link, residue)| *link = u8::from(!residue.break_before));
    }
    if let Some(buffer) = buffers.b {
        let b = views.take(buffer).iter_mut().zip(residues);
        b.for_each(|(b, residue)| {
            *b = structure
                .b_factor
                .get(residue.ca as usize)
                .copied()
                .unwrap_or(f32::NAN);
        });
    }
    if let (Some(chains), Some(members)) = (buffers.chains, buffers.members) {
        let chains = bytemuck::cast_slice_mut(views.take(chains));
        write_chains(chains, views.take(members), residues, at);
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

/// Residues sorted by chain, each chain's in their order: the residues of a
/// chain need not stand together in a file.
fn write_chains(chains: &mut [ChainSpan], members: &mut [u32], residues: &[Residue], at: Extent) {
    chains.fill(ChainSpan {
        residue_start: at[RESIDUES],
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
        chain.count = 0;
    }
    for (index, residue) in residues.iter().enumerate() {
        let chain = &mut chains[residue.chain as usize];
        members[(chain.member_start - at[RESIDUES] + chain.count) as usize] = index as u32;
        chain.count += 1;
    }
}

/// The residue's C-beta; glycine's, and one that is missing, where its backbone
/// says. A residue without C-alpha has none, and counts for no other.
fn c_beta(structure: &Structure, residue: &Residue) -> Position {
    let atom = |index: u32| structure.position(index);
    let built = |ca| Some(virtual_c_beta(atom(residue.n)?, ca, atom(residue.c)?));
    let find = |ca| {
        let glycine = &residue.parent_comp_id == b"GLY     ";
        let real = if glycine { None } else { atom(residue.cb) };
        // A backbone torn apart puts it beyond what differences can bear.
        real.or_else(|| built(ca)).filter(is_within_bounds)
    };
    atom(residue.ca)
        .and_then(find)
        .map_or(Position::NONE, Position::from)
}

fn is_within_bounds(position: &[i32; 3]) -> bool {
    position
        .iter()
        .all(|coordinate| coordinate.unsigned_abs() <= COORDINATE_MAX)
}

/// Where an ideal C-beta lies: -0.58273431 a + 0.56802827 b - 0.54067466 c + CA
/// in A, with b = CA - N, c = C - CA and a = b x c, rounded to 0.001 A, halves
/// away from zero. Arguments and result are in 0.001 A.
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
        let ca = f64::from(ca[axis]) / 1000.0;
        let angstrom = -0.58273431 * a[axis] + 0.56802827 * b[axis] - 0.54067466 * c[axis] + ca;
        (angstrom * 1000.0).round() as i32
    })
}
