//! Twins of the kernels of contacts. Those by a cutoff count each residue's contacts with later
//! residues first, from which the kernels of pairs find the place of its rows, and write rows then.

use super::super::columns::NULL_COUNT;
use super::super::cpu::simd;
use super::super::cpu::simd::{first_lanes, in_same_chain, lanes_of, load, squared, vectors_of};
use super::super::cpu::split::{TASK_ROWS, for_row_ranges, parts};
use super::super::grid::corners;
use super::super::kernels::{
    Cells, Twin, contact_degrees, contact_rows, near_residue_degrees, near_residue_rows,
    nearest_points, nearest_residues,
};
use super::super::layout::{Atom, Position, REACH, RESIDUES, ResidueSpan, StructureSpan};
use super::super::pairs::listed_rows;
use fearless_simd::dispatch;
use fearless_simd::prelude::*;
use rayon::prelude::*;

/// The distance in A whose square is `squared_distance`, in (0.001 A)^2.
fn angstrom(squared_distance: u64) -> f32 {
    ((squared_distance as f64).sqrt() / 1000.0) as f32
}

/// The squared distance of two positions.
fn squared_apart(one: Position, other: Position) -> u64 {
    let differences = [one.x - other.x, one.y - other.y, one.z - other.z];
    let squares = differences.map(|difference| u64::from(difference.unsigned_abs()).pow(2));
    squares.iter().sum()
}

/// The least squared distance of an atom of one residue and one of another; `u64::MAX` if one has
/// none. Differences are clamped to [`REACH`] at first, in 32 bits, which nearly always suffices.
fn least_squared(atoms: &[Atom], one: &ResidueSpan, other: &ResidueSpan) -> u64 {
    let pairs = || {
        let first_atoms = atoms[one.atoms()].iter();
        first_atoms.flat_map(|one| {
            let others = atoms[other.atoms()].iter();
            others.map(|other| (one.position, other.position))
        })
    };
    let near = pairs().map(|(one, other)| one.squared_to(other)).min();
    match near.filter(|&near| near < REACH.pow(2)) {
        Some(near) => u64::from(near),
        None => {
            let all = pairs().map(|(one, other)| squared_apart(one, other));
            all.min().unwrap_or(u64::MAX)
        }
    }
}

/// A search for the residues near a residue.
trait NeighbourSearch: Sync {
    fn structures(&self) -> &[StructureSpan];

    fn residues(&self) -> &[ResidueSpan];

    /// Whether a search from a residue can find others: it has a position, and its structure's
    /// cells are not empty.
    fn is_searchable(&self, residue: usize) -> bool;

    /// Whether `other`, of the same structure, counts as a neighbour if it is near enough.
    fn is_wanted(&self, residue: usize, other: usize) -> bool;

    /// The squared distance of two residues.
    fn squared_distance(&self, residue: usize, other: usize) -> u64;

    /// Puts the residues that are nearer than `reach` to one that is searchable into `found`, each
    /// once, in any order. The residue itself may be among them. `reach` is at most [`REACH`].
    fn find<S: Simd>(&self, simd: S, residue: usize, reach: u32, found: &mut Vec<u32>);

    fn structure(&self, residue: usize) -> &StructureSpan {
        &self.structures()[self.residues()[residue].structure as usize]
    }
}

/// Measures distances between the points of residues.
struct ByPoints<'a> {
    structures: &'a [StructureSpan],
    residues: &'a [ResidueSpan],
    points: &'a [Atom],
    cells: Cells<'a>,
    own_chain: bool,
}

impl NeighbourSearch for ByPoints<'_> {
    fn structures(&self) -> &[StructureSpan] {
        self.structures
    }

    fn residues(&self) -> &[ResidueSpan] {
        self.residues
    }

    fn is_searchable(&self, residue: usize) -> bool {
        let grid = &self.structure(residue).residue_grid;
        self.points[residue].is_present() && !self.cells.are_empty(grid)
    }

    fn is_wanted(&self, residue: usize, other: usize) -> bool {
        let [here, there] = [residue, other].map(|residue| &self.points[residue]);
        let is_same = here.tag.chain() == there.tag.chain();
        other != residue && there.is_present() && (is_same || !self.own_chain)
    }

    fn squared_distance(&self, residue: usize, other: usize) -> u64 {
        squared_apart(self.points[residue].position, self.points[other].position)
    }

    #[inline(always)]
    fn find<S: Simd>(&self, simd: S, residue: usize, reach: u32, found: &mut Vec<u32>) {
        let point = &self.points[residue];
        let grid = &self.structure(residue).residue_grid;
        let runs = self.cells.runs(grid, point.position.into(), reach as i32);
        found.clear();
        let take = |other| found.push(other);
        self.cells
            .each_within(simd, runs, point, reach, self.own_chain, take);
    }
}

/// Measures distances between the nearest heavy atoms of residues.
struct ByAtoms<'a> {
    structures: &'a [StructureSpan],
    residues: &'a [ResidueSpan],
    atoms: &'a [Atom],
    cells: Cells<'a>,
    /// The residue of each atom plus one; zero for an atom of no residue.
    residue_of: &'a [u32],
    own_chain: bool,
}

impl NeighbourSearch for ByAtoms<'_> {
    fn structures(&self) -> &[StructureSpan] {
        self.structures
    }

    fn residues(&self) -> &[ResidueSpan] {
        self.residues
    }

    fn is_searchable(&self, residue: usize) -> bool {
        let grid = &self.structure(residue).atom_grid;
        self.residues[residue].atom_count > 0 && !self.cells.are_empty(grid)
    }

    fn is_wanted(&self, residue: usize, other: usize) -> bool {
        let [here, there] = [residue, other].map(|residue| &self.residues[residue]);
        let is_same = here.chain == there.chain;
        other != residue && there.atom_count > 0 && (is_same || !self.own_chain)
    }

    fn squared_distance(&self, one: usize, other: usize) -> u64 {
        let [one, other] = [one, other].map(|residue| &self.residues[residue]);
        least_squared(self.atoms, one, other)
    }

    #[inline(always)]
    fn find<S: Simd>(&self, simd: S, residue: usize, reach: u32, found: &mut Vec<u32>) {
        let atoms = &self.atoms[self.residues[residue].atoms()];
        let (low, high) = corners(atoms.iter().map(|atom| atom.position.into()));
        let grid = &self.structure(residue).atom_grid;
        let runs = self.cells.runs_around(grid, low, high, reach as i32);
        found.clear();
        for (first, lanes) in vectors_of(simd, runs) {
            let x = load(simd, self.cells.x, first, lanes);
            let y = load(simd, self.cells.y, first, lanes);
            let z = load(simd, self.cells.z, first, lanes);
            let mut d2 = S::u32s::splat(simd, u32::MAX);
            for atom in atoms {
                let point = atom.position;
                let (dx, dy, dz) = (x - point.x, y - point.y, z - point.z);
                d2 = d2.min(squared::<S>(dx, dy, dz, reach as i32));
            }
            let mut within = d2.simd_lt(reach * reach) & first_lanes(simd, lanes);
            if self.own_chain {
                within &= in_same_chain(simd, self.cells.tag, first, lanes, atoms[0].tag);
            }
            for lane in lanes_of(within.to_bitmask()) {
                let number = self.residue_of[self.cells.source[first + lane] as usize];
                let other = number.checked_sub(1);
                // The atoms of a residue are mostly next to each other.
                found.extend(other.filter(|other| found.last() != Some(other)));
            }
        }
        found.sort_unstable();
        found.dedup();
    }
}

/// Counts for each residue the later residues within `cutoff`.
fn count_later(search: &impl NeighbourSearch, cutoff: u32, degrees: &mut [i32]) {
    for_row_ranges(degrees, 1, |rows, degrees| {
        let mut found = Vec::new();
        dispatch!(simd::level(), simd => {
            for (residue, degree) in rows.zip(degrees) {
                *degree = 0;
                if search.is_searchable(residue) {
                    search.find(simd, residue, cutoff, &mut found);
                    let later = found.iter().filter(|&&other| other as usize > residue);
                    *degree = later.count() as i32;
                }
            }
        });
    });
}

/// Lists the later residues within `cutoff` of a residue in `found`, in ascending order. The residue has rows, so
/// it was searchable when they were counted.
fn list_later(search: &impl NeighbourSearch, residue: usize, cutoff: u32, found: &mut Vec<u32>) {
    dispatch!(simd::level(), simd => search.find(simd, residue, cutoff, &mut *found));
    found.retain(|&other| other as usize > residue);
    found.sort_unstable();
}

/// Counts for each residue the later residues whose points are within the cutoff.
impl Twin for contact_degrees::Views<'_> {
    fn run(self) {
        let search = ByPoints {
            structures: StructureSpan::live(self.header, self.structures),
            residues: self.residues,
            points: self.points,
            cells: self.cells,
            own_chain: self.own_chain != 0,
        };
        let count = self.header[RESIDUES] as usize;
        count_later(&search, self.cutoff, &mut self.degrees[..count]);
    }
}

/// Counts for each residue the later residues with a heavy atom within the cutoff.
impl Twin for near_residue_degrees::Views<'_> {
    fn run(self) {
        let search = ByAtoms {
            structures: StructureSpan::live(self.header, self.structures),
            residues: self.residues,
            atoms: self.atoms,
            cells: self.cells,
            residue_of: self.residue_of,
            own_chain: self.own_chain != 0,
        };
        let count = self.header[RESIDUES] as usize;
        count_later(&search, self.cutoff, &mut self.degrees[..count]);
    }
}

/// Writes the rows of each residue that [`contact_degrees`] has counted, by ascending partner: the
/// partner, the distance of the points, and that of the nearest heavy atoms. Structures that exceed
/// their room have none.
impl Twin for contact_rows::Views<'_> {
    fn run(self) {
        let search = ByPoints {
            structures: StructureSpan::live(self.header, self.structures),
            residues: self.residues,
            points: self.points,
            cells: self.cells,
            own_chain: self.own_chain != 0,
        };
        let rows = listed_rows(search.structures, self.rooms, self.ends);
        let ranges = || rows.iter().map(|(_, range)| range.clone());
        let columns = parts(self.partners, ranges())
            .zip(parts(self.distances, ranges()))
            .zip(parts(self.min_distances, ranges()));
        let residues_with_rows = rows.par_iter().zip(columns).with_min_len(TASK_ROWS);
        residues_with_rows.for_each_init(
            Vec::new,
            |found, (&(residue, _), ((partners, distances), least))| {
                list_later(&search, residue, self.cutoff, found);
                let start = search.structure(residue).residue_start;
                let one = &self.residues[residue];
                let columns = partners.iter_mut().zip(distances).zip(least);
                for (&other, ((partner, distance), least)) in found.iter().zip(columns) {
                    let partner_span = &self.residues[other as usize];
                    *partner = (other - start) as i32;
                    *distance = angstrom(search.squared_distance(residue, other as usize));
                    *least = angstrom(least_squared(self.atoms, one, partner_span));
                }
            },
        );
    }
}

/// Writes the rows of each residue that [`near_residue_degrees`] has counted, by ascending partner.
/// Structures that exceed their room have none.
impl Twin for near_residue_rows::Views<'_> {
    fn run(self) {
        let search = ByAtoms {
            structures: StructureSpan::live(self.header, self.structures),
            residues: self.residues,
            atoms: self.atoms,
            cells: self.cells,
            residue_of: self.residue_of,
            own_chain: self.own_chain != 0,
        };
        let rows = listed_rows(search.structures, self.rooms, self.ends);
        let ranges = || rows.iter().map(|(_, range)| range.clone());
        let columns = parts(self.partners, ranges()).zip(parts(self.min_distances, ranges()));
        let residues_with_rows = rows.par_iter().zip(columns).with_min_len(TASK_ROWS);
        residues_with_rows.for_each_init(
            Vec::new,
            |found, (&(residue, _), (partners, distances))| {
                list_later(&search, residue, self.cutoff, found);
                let start = search.structure(residue).residue_start;
                let columns = partners.iter_mut().zip(distances);
                for (&other, (partner, distance)) in found.iter().zip(columns) {
                    *partner = (other - start) as i32;
                    *distance = angstrom(search.squared_distance(residue, other as usize));
                }
            },
        );
    }
}

/// Searches for the nearest residues.
#[derive(Default)]
struct NearestSearch {
    found: Vec<u32>,
    /// The nearest residues as (squared distance, residue), sorted.
    nearest: Vec<(u64, u32)>,
}

impl NearestSearch {
    /// The `count` nearest residues of a residue as (squared distance, residue), sorted; fewer if
    /// the structure has fewer, and none if the residue is not searchable. The first search looks
    /// within `reach`; if it finds `count`, the nearest are among them.
    fn nearest_to(
        &mut self,
        search: &impl NeighbourSearch,
        residue: usize,
        count: usize,
        reach: u32,
    ) -> &[(u64, u32)] {
        self.nearest.clear();
        if !search.is_searchable(residue) {
            return &self.nearest;
        }
        let found = &mut self.found;
        let mut radius = reach;
        loop {
            dispatch!(simd::level(), simd => search.find(simd, residue, radius, &mut *found));
            found.retain(|&other| other as usize != residue);
            if found.len() >= count {
                break;
            }
            // Beyond `REACH` searches compare clamped differences, so all residues of the structure are
            // compared by their exact distances.
            if radius == REACH {
                let all = search.structure(residue).residues();
                let wanted = all.filter(|&other| search.is_wanted(residue, other));
                found.clear();
                found.extend(wanted.map(|other| other as u32));
                break;
            }
            radius = REACH.min(2 * radius);
        }
        let with_square = |&other: &u32| (search.squared_distance(residue, other as usize), other);
        self.nearest.extend(found.iter().map(with_square));
        if self.nearest.len() > count {
            self.nearest.select_nth_unstable(count);
            self.nearest.truncate(count);
        }
        self.nearest.sort_unstable();
        &self.nearest
    }
}

/// Writes the partners of one residue, as indices from residue `start` on, and null in the rows
/// behind the last one.
fn fill_partners(partners: &mut [i32], nearest: &[(u64, u32)], start: u32) {
    partners.fill(NULL_COUNT);
    for (partner, (_, other)) in partners.iter_mut().zip(nearest) {
        *partner = (other - start) as i32;
    }
}

/// Writes the distances of one residue's partners, and NaN in the rows behind the last one.
fn fill_distances(distances: &mut [f32], squares: impl Iterator<Item = u64>) {
    distances.fill(f32::NAN);
    for (distance, squared_distance) in distances.iter_mut().zip(squares) {
        *distance = angstrom(squared_distance);
    }
}

/// The parts of `values` that belong to each residue, of `count` rows each.
fn rows_of<T: Send>(
    values: &mut [T],
    residues: usize,
    count: usize,
) -> rayon::slice::ChunksExactMut<'_, T> {
    values[..residues * count].par_chunks_exact_mut(count)
}

/// Writes the nearest residues of each, by points: partners, distances of the points and of the
/// nearest heavy atoms; null behind the last one.
impl Twin for nearest_points::Views<'_> {
    fn run(self) {
        let search = ByPoints {
            structures: StructureSpan::live(self.header, self.structures),
            residues: self.residues,
            points: self.points,
            cells: self.cells,
            own_chain: self.own_chain != 0,
        };
        let (residues, count) = (self.header[RESIDUES] as usize, self.count as usize);
        let columns = rows_of(self.partners, residues, count)
            .zip(rows_of(self.distances, residues, count))
            .zip(rows_of(self.min_distances, residues, count));
        let columns = columns.enumerate().with_min_len(TASK_ROWS);
        columns.for_each_init(
            NearestSearch::default,
            |nearest_search, (residue, ((partners, distances), least))| {
                let nearest = nearest_search.nearest_to(&search, residue, count, self.reach);
                fill_partners(partners, nearest, search.structure(residue).residue_start);
                fill_distances(
                    distances,
                    nearest
                        .iter()
                        .map(|(squared_distance, _)| *squared_distance),
                );
                let one = &self.residues[residue];
                let squares = nearest.iter().map(|(_, other)| {
                    least_squared(self.atoms, one, &self.residues[*other as usize])
                });
                fill_distances(least, squares);
            },
        );
    }
}

/// Writes the nearest residues of each, by heavy atoms: partners and distances; null behind the
/// last one.
impl Twin for nearest_residues::Views<'_> {
    fn run(self) {
        let search = ByAtoms {
            structures: StructureSpan::live(self.header, self.structures),
            residues: self.residues,
            atoms: self.atoms,
            cells: self.cells,
            residue_of: self.residue_of,
            own_chain: self.own_chain != 0,
        };
        let (residues, count) = (self.header[RESIDUES] as usize, self.count as usize);
        let columns = rows_of(self.partners, residues, count).zip(rows_of(
            self.min_distances,
            residues,
            count,
        ));
        let columns = columns.enumerate().with_min_len(TASK_ROWS);
        columns.for_each_init(
            NearestSearch::default,
            |nearest_search, (residue, (partners, distances))| {
                let nearest = nearest_search.nearest_to(&search, residue, count, self.reach);
                fill_partners(partners, nearest, search.structure(residue).residue_start);
                fill_distances(
                    distances,
                    nearest
                        .iter()
                        .map(|(squared_distance, _)| *squared_distance),
                );
            },
        );
    }
}
