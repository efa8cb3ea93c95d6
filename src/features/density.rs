//! The limit on how densely a structure's points lie.
//!
//! Features compare a point with all points in the cells around it, so the time grows with the
//! square of the number of points in one cell. A structure with too many points in a cell is no
//! molecule, and is rejected.

#[cfg(test)]
use super::grid::ATOM_CELL_SHIFT;
use super::grid::Grid;
use crate::error::{Error, Result};
use std::cell::RefCell;

/// The largest number of points in one cell: twice what molecules could form. Bonded heavy atoms
/// are 1.2 A apart, and the densest packing of spheres of that diameter, sqrt(2) / 1.2^3 per A^3,
/// has at most 122 centres in a cell of 4.096 A and half a sphere around it. C-alphas are 2.8 A
/// apart, and spheres 2.4 A apart have as many centres in a cell of 8.192 A. Proteins have about 14
/// atoms in a cell. Cells that share an index in a grid that wraps count together, which gives over
/// 100 atoms for a long rod along its diagonal.
pub(super) const CELL_POINTS_MAX: u16 = 256;

/// The largest number of points in the cell of a point, on average over a structure's points. No
/// molecule is as dense in all of its cells as the densest one could be.
const MEAN_CELL_POINTS_MAX: u16 = 128;

thread_local! {
    /// The number of points in each cell of the structure that this thread checks.
    static COUNTS: RefCell<Vec<u16>> = const { RefCell::new(Vec::new()) };
}

/// Checks that no cell of `grid` holds too many of `points`; `what` names them in the message.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind::Input) if a cell holds more than [`CELL_POINTS_MAX`], or
/// the cells of all points more than [`MEAN_CELL_POINTS_MAX`] on average.
pub(super) fn check(grid: &Grid, points: impl Iterator<Item = [i32; 3]>, what: &str) -> Result<()> {
    COUNTS.with_borrow_mut(|counts| {
        let cells = grid.cell_count() as usize;
        counts.clear();
        counts.resize(cells, 0);
        let mut add = |cell: usize| counts[cell] = counts[cell].saturating_add(1);
        match grid.wraps() {
            true => points.for_each(|point| add(grid.cell_of(point) - grid.first as usize)),
            false => {
                let [nx, ny, _] = grid.wrap.map(usize::from);
                let axis = |point: [i32; 3], axis: usize| {
                    ((point[axis] - grid.origin[axis]) as u32 >> grid.shift) as usize
                };
                points.for_each(|point| {
                    add((axis(point, 2) * ny + axis(point, 1)) * nx + axis(point, 0));
                });
            }
        }
        let most = counts.iter().copied().max().unwrap_or(0);
        if most > CELL_POINTS_MAX {
            return Err(too_dense(grid, CELL_POINTS_MAX, what, ""));
        }
        // The mean is at most the maximum.
        if most > MEAN_CELL_POINTS_MAX {
            let counts = || counts.iter().map(|&count| u64::from(count));
            let (points, pairs) = (counts().sum::<u64>(), counts().map(|n| n * n).sum::<u64>());
            if pairs > points * u64::from(MEAN_CELL_POINTS_MAX) {
                return Err(too_dense(grid, MEAN_CELL_POINTS_MAX, what, " on average"));
            }
        }
        Ok(())
    })
}

fn too_dense(grid: &Grid, most: u16, what: &str, mean: &str) -> Error {
    let edge = f64::from(1u32 << grid.shift) / 1000.0;
    let message = format!(
        "more than {most} {what} lie within {edge} A of each other{mean}, which no molecule has"
    );
    Error::input(message)
        .fix("see whether the coordinates are all the same, or in another unit than A")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(points: &[[i32; 3]]) -> Result<()> {
        let grid = Grid::over(points.iter().copied(), points.len(), ATOM_CELL_SHIFT);
        check(&grid, points.iter().copied(), "atoms")
    }

    #[test]
    fn one_point_too_many_in_a_cell_is_refused_wherever_the_cell_is() {
        let most = usize::from(CELL_POINTS_MAX);
        // Other cells with an atom each, so that the mean is low.
        let mut points: Vec<_> = (0..512)
            .map(|n| [n % 8, n / 8 % 8, n / 64].map(|cells| 4_096 * cells))
            .collect();
        points.extend(std::iter::repeat_n([40_000, 4_000, 4_095], most));
        checked(&points).unwrap();
        checked(&points).expect("no count is left from the call before");
        points.push([40_000, 4_000, 4_095]);
        let error = checked(&points).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Input);
        let text = "256 atoms";
        assert!(error.to_string().contains(text), "{error}");
    }

    #[test]
    fn cells_that_are_all_dense_are_refused_before_the_densest_is_full() {
        let mean = usize::from(MEAN_CELL_POINTS_MAX);
        let cells = |count: usize| -> Vec<[i32; 3]> {
            let cell = |cell| std::iter::repeat_n([8_192 * cell, 0, 0], count);
            (0..50).flat_map(cell).collect()
        };
        checked(&cells(mean)).unwrap();
        let error = checked(&cells(mean + 1)).unwrap_err();
        let text = "on average";
        assert!(error.to_string().contains(text), "{error}");
    }

    #[test]
    fn the_tightest_lattice_that_molecules_could_form_passes() {
        // Face-centred cubic, with 1.2 A between neighbours.
        let half = 849;
        let points: Vec<[i32; 3]> = (0..20 * 20 * 20)
            .map(|n| [n % 20, n / 20 % 20, n / 400])
            .filter(|at| at.iter().sum::<i32>() % 2 == 0)
            .map(|at| at.map(|steps| steps * half))
            .collect();
        assert_eq!(points.len(), 4_000);
        checked(&points).unwrap();
    }

    #[test]
    fn cells_far_apart_that_share_a_place_count_together() {
        // A lattice so wide that its grid wraps, with points a multiple of the wrap apart.
        let wide = |n: i32| [n % 20, n / 20 % 20, n / 400];
        let corners = [[0; 3], [90_000_000; 3]];
        let count = 8_000;
        let grid = Grid::over(corners.into_iter(), count, ATOM_CELL_SHIFT);
        assert!(grid.wraps());
        let wrap = grid.wrap.map(|cells| i32::from(cells) << ATOM_CELL_SHIFT);
        let points = (0..count as i32).map(|n| {
            let at = wide(n);
            std::array::from_fn(|axis| at[axis] * wrap[axis])
        });
        assert!(check(&grid, points, "atoms").is_err());
    }
}
