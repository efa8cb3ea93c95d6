//! The limit on how densely a structure's points lie.
//!
//! Features compare a point with all points in the cells around it, so the time grows with the
//! square of the number of points in one cell. A structure with too many points in a cell is no
//! molecule, and is rejected: `cell_scan` flags it, and leaves its cells empty, so that a search
//! finds nothing at once. Its results are not read.

use super::cell_kind::CELL_KINDS;
use super::constants::{self, TOO_MANY, TOO_MANY_ON_AVERAGE};
use super::grid::{ATOM_CELL_SHIFT, RESIDUE_CELL_SHIFT};
use crate::error::{Error, Result};

/// The largest number of points in one cell: twice what molecules could form. Bonded heavy atoms
/// are 1.2 A apart, and the densest packing of spheres of that diameter, sqrt(2) / 1.2^3 per A^3,
/// has at most 122 centres in a cell of 4.096 A and half a sphere around it. C-alphas are 2.8 A
/// apart, and spheres 2.4 A apart have as many centres in a cell of 8.192 A. Proteins have about 14
/// atoms in a cell. Cells that share an index in a grid that wraps count together, which gives over
/// 100 atoms for a long rod along its diagonal.
pub(super) const CELL_POINTS_MAX: u32 = constants::CELL_POINTS_MAX;

/// The largest number of points in the cell of a point, on average over a structure's points. No
/// molecule is as dense in all of its cells as the densest one could be.
pub(super) const MEAN_CELL_POINTS_MAX: u32 = constants::MEAN_CELL_POINTS_MAX;

/// The flags of a structure's points, from the number of points in each cell: [`TOO_MANY`] if a
/// cell has more than [`CELL_POINTS_MAX`], [`TOO_MANY_ON_AVERAGE`] if the cell of a point has more
/// than [`MEAN_CELL_POINTS_MAX`] on average; 0 otherwise.
pub(super) fn flags_of(counts: &[u32]) -> u32 {
    let most = counts.iter().copied().max().unwrap_or(0);
    if most > CELL_POINTS_MAX {
        return TOO_MANY;
    }
    // The mean is at most the maximum.
    if most > MEAN_CELL_POINTS_MAX {
        let counts = || counts.iter().map(|&count| u64::from(count));
        let (points, pairs) = (counts().sum::<u64>(), counts().map(|n| n * n).sum::<u64>());
        if pairs > points * u64::from(MEAN_CELL_POINTS_MAX) {
            return TOO_MANY_ON_AVERAGE;
        }
    }
    0
}

/// Checks a structure's flags of all kinds of points.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind::Input) if one is set.
pub(super) fn check(flags: u32) -> Result<()> {
    for kind in CELL_KINDS {
        let flags_of_kind = flags >> kind.flag_shift();
        if flags_of_kind & TOO_MANY != 0 {
            return Err(too_dense_error(kind.is_of_residues(), CELL_POINTS_MAX, ""));
        }
        if flags_of_kind & TOO_MANY_ON_AVERAGE != 0 {
            let most = MEAN_CELL_POINTS_MAX;
            return Err(too_dense_error(kind.is_of_residues(), most, " on average"));
        }
    }
    Ok(())
}

/// The error of a structure with more points in a cell than any molecule has, which would make
/// searches take the square of their number.
#[cold]
fn too_dense_error(is_of_residues: bool, most: u32, mean: &str) -> Error {
    let (what, shift) = if is_of_residues {
        ("residues", RESIDUE_CELL_SHIFT)
    } else {
        ("atoms", ATOM_CELL_SHIFT)
    };
    let edge = f64::from(1u32 << shift) / 1000.0;
    let message = format!(
        "more than {most} {what} lie within {edge} A of each other{mean}, which no molecule has"
    );
    Error::input(message)
        .fix("see whether the coordinates are all the same, or in another unit than A")
}

#[cfg(test)]
mod tests {
    use super::super::cell_kind::FLAG_BITS;
    use super::super::grid::Grid;
    use super::*;

    fn flags(points: &[[i32; 3]]) -> u32 {
        flags_in(
            &Grid::over(points.iter().copied(), points.len(), ATOM_CELL_SHIFT),
            points,
        )
    }

    fn flags_in(grid: &Grid, points: &[[i32; 3]]) -> u32 {
        let mut counts = vec![0; grid.cell_count() as usize];
        points
            .iter()
            .for_each(|point| counts[grid.cell_of(*point)] += 1);
        flags_of(&counts)
    }

    #[test]
    fn one_point_too_many_in_a_cell_is_flagged_wherever_the_cell_is() {
        let most = CELL_POINTS_MAX as usize;
        // Other cells with an atom each, so that the mean is low.
        let mut points: Vec<_> = (0..512)
            .map(|n| [n % 8, n / 8 % 8, n / 64].map(|cells| 4_096 * cells))
            .collect();
        points.extend(std::iter::repeat_n([40_000, 4_000, 4_095], most));
        assert_eq!(flags(&points), 0);
        points.push([40_000, 4_000, 4_095]);
        assert_eq!(flags(&points), TOO_MANY);
    }

    #[test]
    fn cells_that_are_all_dense_are_flagged_before_the_densest_is_full() {
        let mean = MEAN_CELL_POINTS_MAX as usize;
        let cells = |count: usize| -> Vec<[i32; 3]> {
            let cell = |cell| std::iter::repeat_n([8_192 * cell, 0, 0], count);
            (0..50).flat_map(cell).collect()
        };
        assert_eq!(flags(&cells(mean)), 0);
        assert_eq!(flags(&cells(mean + 1)), TOO_MANY_ON_AVERAGE);
    }

    #[test]
    fn the_tightest_lattice_that_molecules_could_form_passes() {
        // Face-centred cubic, with 1.2 A between neighbours.
        let half = 849;
        let points: Vec<[i32; 3]> = (0..20 * 20 * 20)
            .map(|n| [n % 20, n / 20 % 20, n / 400])
            .filter(|steps| steps.iter().sum::<i32>() % 2 == 0)
            .map(|steps| steps.map(|steps| steps * half))
            .collect();
        assert_eq!(points.len(), 4_000);
        assert_eq!(flags(&points), 0);
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
            let cell = wide(n);
            std::array::from_fn(|axis| cell[axis] * wrap[axis])
        });
        assert_eq!(flags_in(&grid, &points.collect::<Vec<_>>()), TOO_MANY);
    }

    #[test]
    fn the_message_names_the_first_kind_of_points_that_is_flagged() {
        assert!(check(0).is_ok());
        for (kind, what) in CELL_KINDS
            .into_iter()
            .zip(["atoms", "atoms", "residues", "residues"])
        {
            for (flag, number) in [(TOO_MANY, "256"), (TOO_MANY_ON_AVERAGE, "128")] {
                let later = u32::MAX << kind.flag_shift() << FLAG_BITS;
                let error = check(flag << kind.flag_shift() | later & 0xff).unwrap_err();
                assert_eq!(error.kind(), crate::ErrorKind::Input);
                let text = error.to_string();
                assert!(text.contains(&format!("{number} {what}")), "{text}");
                assert_eq!(text.contains("average"), flag == TOO_MANY_ON_AVERAGE);
            }
        }
    }
}
