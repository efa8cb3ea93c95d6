//! Which tiles of a structure can hold anything within a cutoff of a tile.

use super::super::layout::{Atom, TILE, Tile};
use rayon::prelude::*;
use std::ops::Range;

/// The boxes around the tiles of a batch.
pub(super) struct TileBoxes<'a> {
    tiles: &'a [Tile],
    boxes: Vec<Bounds>,
}

/// A box around the atoms of a tile; inside out where there is none.
#[derive(Clone, Copy)]
struct Bounds {
    min: [i64; 3],
    max: [i64; 3],
}

impl Bounds {
    fn of(atoms: &[Atom]) -> Self {
        let nothing = Bounds {
            min: [i64::from(i32::MAX); 3],
            max: [i64::from(i32::MIN); 3],
        };
        let present = atoms.iter().filter(|atom| atom.is_present());
        present.fold(nothing, |bounds, atom| {
            let point = <[i32; 3]>::from(atom.position).map(i64::from);
            Bounds {
                min: std::array::from_fn(|axis| bounds.min[axis].min(point[axis])),
                max: std::array::from_fn(|axis| bounds.max[axis].max(point[axis])),
            }
        })
    }

    /// The squared distance that points of the two boxes have at least.
    fn distance2(&self, other: &Bounds) -> i64 {
        let gap2 = |axis: usize| {
            let gap = (self.min[axis] - other.max[axis]).max(other.min[axis] - self.max[axis]);
            gap.max(0).saturating_pow(2)
        };
        (0..3).map(gap2).fold(0, i64::saturating_add)
    }
}

impl<'a> TileBoxes<'a> {
    pub(super) fn new(tiles: &'a [Tile], atoms: &[Atom]) -> Self {
        let of_tile = |tile: &Tile| Bounds::of(&atoms[tile.range()]);
        TileBoxes {
            tiles,
            boxes: tiles.par_iter().map(of_tile).collect(),
        }
    }

    /// The residues of those tiles of the same structure that are not too far
    /// from tile `index`, in order.
    pub(super) fn near(&self, index: usize, cutoff2: u32) -> impl Iterator<Item = Range<usize>> {
        let tile = &self.tiles[index];
        let first = index - (tile.first / TILE) as usize;
        let count = tile.residue_count.div_ceil(TILE) as usize;
        let own = self.boxes[index];
        (first..first + count)
            .filter(move |&other| own.distance2(&self.boxes[other]) < i64::from(cutoff2))
            .map(|other| self.tiles[other].range())
    }
}
