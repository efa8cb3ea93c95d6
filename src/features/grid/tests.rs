use super::*;

/// Pseudo-random numbers of low quality.
fn numbers(seed: u64) -> impl FnMut(i32) -> i32 {
    let mut state = seed;
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % below as u64) as i32
    }
}

fn cloud(count: usize, size: i32, seed: u64) -> Vec<[i32; 3]> {
    let mut next = numbers(seed);
    let point = |_| std::array::from_fn(|_| next(size) - size / 2);
    (0..count).map(point).collect()
}

fn assert_finds_all(points: &[[i32; 3]], shift: u32, reach: i32) {
    let mut grid = Grid::over(points.iter().copied(), points.len(), shift);
    grid.first = 17;
    for &point in points {
        let places: Vec<usize> = grid.runs(point, reach).flatten().collect();
        let mut unique = places.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), places.len(), "a place comes up twice");
        assert!(unique.iter().all(|cell| grid.cells().contains(cell)));
        for &other in points {
            let is_within = (0..3).all(|axis| (other[axis] - point[axis]).abs() <= reach);
            if is_within {
                assert!(unique.binary_search(&grid.cell_of(other)).is_ok());
            }
        }
    }
}

#[test]
fn every_point_within_reach_is_in_a_run_and_no_place_comes_twice() {
    for (seed, size) in [(1, 1), (2, 9_000), (3, 40_000), (4, 90_000)] {
        let points = cloud(300, size, seed);
        for reach in [1_000, 6_600, 12_000, 37_000] {
            assert_finds_all(&points, ATOM_CELL_SHIFT, reach);
            assert_finds_all(&points, RESIDUE_CELL_SHIFT, reach);
        }
    }
}

#[test]
fn a_far_away_part_wraps_the_grid_and_loses_nothing() {
    let mut points = cloud(200, 30_000, 5);
    let far = cloud(20, 30_000, 6);
    points.extend(
        far.iter()
            .map(|p| [p[0] + 150_000_000, p[1], p[2] - 90_000_000]),
    );
    let grid = Grid::over(points.iter().copied(), points.len(), ATOM_CELL_SHIFT);
    assert!(grid.cell_count() <= 220);
    assert_ne!(grid.wrap, grid.extent);
    assert_finds_all(&points, ATOM_CELL_SHIFT, 10_000);
}

#[test]
fn a_structure_without_points_has_one_cell() {
    let grid = Grid::over(std::iter::empty(), 0, ATOM_CELL_SHIFT);
    assert_eq!(grid.cell_count(), 1);
}
