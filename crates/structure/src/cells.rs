//! Points in cubic cells, among which those near a place are found in constant time.

use std::collections::HashMap;

use super::structure_builder::is_within;

/// The edge of a cell is 2^11 units of 0.001 A, which no distance that is searched exceeds.
const SHIFT: u32 = 11;

/// The most points of a cell: atoms as near as bonded ones, 1.2 A, fill one with 28. Further points are
/// dropped, which bounds the time for hostile files.
const POINTS_MAX: usize = 32;

/// Points, each with a value of type `T`, by their cells.
pub(super) struct Cells<T>(HashMap<[i32; 3], Vec<([i32; 3], T)>>);

impl<T> Default for Cells<T> {
    fn default() -> Self {
        Cells(HashMap::new())
    }
}

impl<T> Cells<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a point, unless its cell is full.
    pub(super) fn add(&mut self, xyz: [i32; 3], data: T) {
        let cell = self.0.entry(cell_of(xyz)).or_default();
        if cell.len() < POINTS_MAX {
            cell.push((xyz, data));
        }
    }

    /// All points, in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = &([i32; 3], T)> {
        self.0.values().flatten()
    }

    /// The points closer to `xyz` than `distance`, which is at most the edge of a cell.
    pub(super) fn near(
        &self,
        xyz: [i32; 3],
        distance: i64,
    ) -> impl Iterator<Item = &([i32; 3], T)> {
        debug_assert!(distance <= 1 << SHIFT);
        let [x, y, z] = cell_of(xyz);
        let around = (0..27).map(move |i| [x + i % 3 - 1, y + i / 3 % 3 - 1, z + i / 9 - 1]);
        let points = around.filter_map(|cell| self.0.get(&cell)).flatten();
        points.filter(move |(point, _)| is_within(xyz, *point, distance))
    }
}

fn cell_of(xyz: [i32; 3]) -> [i32; 3] {
    xyz.map(|milli| milli >> SHIFT)
}
