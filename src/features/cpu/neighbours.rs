//! The neighbours of an atom as half spaces, and the test points that they leave
//! open.

use super::super::grid::Grid;
use super::super::layout::{Atom, AtomTag, RADIUS_MAX};
use super::cells::Cells;
use super::shrake_rupley::Sphere;
use super::simd::{first_lanes, load, vectors};
use bytemuck::cast_slice;
use fearless_simd::prelude::*;

/// Vectors of test points that are held against the near neighbours at once: as
/// many as registers hold.
const BLOCK: usize = 4;

/// A half space whose plane is nearer to the atom than this comes first: some ten
/// neighbours of an atom, which bury nine of ten points.
const NEAR: f32 = 2_440.0;

/// Searches reach this much farther than the farthest neighbour, which is more
/// than rounding takes away.
const SLACK: i32 = 1;

/// Atoms one after the other that lie in a small box.
pub(super) struct Group {
    /// How many.
    pub(super) len: usize,
    low: [i32; 3],
    high: [i32; 3],
}

impl Group {
    /// The first of `atoms`, and those after it, as long as the box has no edge
    /// longer than `edge`.
    pub(super) fn first_of(atoms: &[Atom], edge: i32) -> Self {
        let first = atoms[0].position.into();
        let mut group = Group {
            len: 1,
            low: first,
            high: first,
        };
        for atom in &atoms[1..] {
            let point: [i32; 3] = atom.position.into();
            let low = std::array::from_fn(|axis| group.low[axis].min(point[axis]));
            let high = std::array::from_fn(|axis| group.high[axis].max(point[axis]));
            if (0..3).any(|axis| high[axis] - low[axis] > edge) {
                break;
            }
            group = Group {
                len: group.len + 1,
                low,
                high,
            };
        }
        group
    }
}

/// Values that vectors are packed into, with room for a whole vector behind them.
#[derive(Default)]
struct Packed<T> {
    values: Vec<T>,
    len: usize,
}

impl<T: Copy + Default> Packed<T> {
    /// Adds the lanes that are wanted.
    #[inline(always)]
    fn push<S: Simd, V: SimdBase<S, Element = T>>(&mut self, vector: V, wanted: V::Mask) {
        let end = self.len + V::LEN;
        if end + V::LEN > self.values.len() {
            self.values.resize(2 * (end + V::LEN), T::default());
        }
        vector
            .compress(wanted)
            .store_slice(&mut self.values[self.len..end]);
        self.len += wanted.to_bitmask().count_ones() as usize;
    }

    /// The vector of values from `at` on.
    #[inline(always)]
    fn load<S: Simd, V: SimdBase<S, Element = T>>(&self, simd: S, at: usize) -> V {
        V::from_slice(simd, &self.values[at..at + V::LEN])
    }

    fn get(&self) -> &[T] {
        &self.values[..self.len]
    }
}

/// The neighbours of a group of atoms, then of one of them; a task's memory.
#[derive(Default)]
pub(super) struct Neighbours {
    /// Where the group's box begins, from which candidates count.
    low: [i32; 3],
    /// Atoms that may be neighbours: x, y, z and the squared radius.
    candidates: [Packed<f32>; 4],
    /// Which atoms they are, and their tags.
    sources: Packed<u32>,
    tags: Packed<u32>,
    /// A half space u . d + t >= 0 for each candidate: d and t.
    half_spaces: [Vec<f32>; 4],
    /// Candidates that bury: the own chain's near and far ones, and the others'.
    near: Packed<u32>,
    far: Packed<u32>,
    other: Packed<u32>,
    /// Test points that the near ones leave open.
    living: [Packed<f32>; 3],
}

impl Neighbours {
    /// Finds all that may be neighbours of the group's atoms.
    #[inline(always)]
    pub(super) fn gather<S: Simd>(
        &mut self,
        simd: S,
        cells: &Cells<'_>,
        grid: &Grid,
        group: &Group,
        sphere: &Sphere,
    ) {
        let reach = 2 * sphere.radius_max() as i32 + SLACK;
        let probe = (sphere.radius_max() - RADIUS_MAX) as i32;
        let (low, high) = (group.low, group.high);
        self.low = low;
        self.candidates.iter_mut().for_each(|column| column.len = 0);
        (self.sources.len, self.tags.len) = (0, 0);
        let edges: [f32; 3] = [0, 1, 2].map(|axis| (high[axis] - low[axis]) as f32);
        let runs = cells.runs_around(grid, low, high, reach);
        for (at, lanes) in runs.flat_map(|run| vectors(simd, run)) {
            let place = |axis: usize, values: &[i32]| -> S::f32s {
                (load(simd, values, at, lanes) - low[axis]).to_float()
            };
            let (x, y, z) = (place(0, cells.x), place(1, cells.y), place(2, cells.z));
            // How far out of the box.
            let out = |axis: usize, v: S::f32s| v - v.max(0.0).min(edges[axis]);
            let (dx, dy, dz) = (out(0, x), out(1, y), out(2, z));
            let d2 = dx * dx + dy * dy + dz * dz;
            let wanted = d2.simd_lt((reach as f32).powi(2)) & first_lanes(simd, lanes);
            let tags = load(simd, cast_slice(cells.tag), at, lanes);
            let radius: S::f32s = ((tags & AtomTag::RADIUS as i32) + probe).to_float();
            let columns = self.candidates.iter_mut();
            for (column, values) in columns.zip([x, y, z, radius * radius]) {
                column.push(values, wanted);
            }
            let sources: S::i32s = load(simd, cast_slice(cells.source), at, lanes);
            self.sources.push(sources.bitcast::<S::u32s>(), wanted);
            self.tags.push(tags.bitcast::<S::u32s>(), wanted);
        }
        let room = self.sources.values.len();
        for column in &mut self.half_spaces {
            if column.len() < room {
                column.resize(room, 0.0);
            }
        }
    }

    /// Points of an atom of the group that its own chain leaves open, and that all
    /// do. Where `BY_CHAIN` is false, all chains are one.
    #[inline(always)]
    pub(super) fn open_points<S: Simd, const BY_CHAIN: bool>(
        &mut self,
        simd: S,
        own: usize,
        atom: &Atom,
        sphere: &Sphere,
    ) -> [u64; 2] {
        self.find::<S, BY_CHAIN>(simd, own, atom, sphere);
        self.living.iter_mut().for_each(|column| column.len = 0);
        for (at, _) in vectors(simd, 0..sphere.count).step_by(BLOCK) {
            self.near_pass(simd, sphere, at);
        }
        self.far_pass::<S, BY_CHAIN>(simd)
    }

    /// Makes the half spaces of an atom, and the lists of those that bury.
    #[inline(always)]
    fn find<S: Simd, const BY_CHAIN: bool>(
        &mut self,
        simd: S,
        own: usize,
        atom: &Atom,
        sphere: &Sphere,
    ) {
        let point: [i32; 3] = atom.position.into();
        let point = [0, 1, 2].map(|axis| (point[axis] - self.low[axis]) as f32);
        let radius = sphere.radius(atom.tag);
        let inverse = 1.0 / (2.0 * radius);
        let far = -(radius + sphere.radius_max() as f32 + SLACK as f32);
        let lane_numbers = S::u32s::from_fn(simd, |lane| lane as u32);
        (self.near.len, self.far.len, self.other.len) = (0, 0, 0);
        for (at, lanes) in vectors(simd, 0..self.sources.len) {
            let [x, y, z, r2] = &self.candidates;
            let dx = x.load::<S, S::f32s>(simd, at) - point[0];
            let dy = y.load::<S, S::f32s>(simd, at) - point[1];
            let dz = z.load::<S, S::f32s>(simd, at) - point[2];
            let t = r2.load::<S, S::f32s>(simd, at) - radius * radius;
            let t = (-dx).mul_add_precise(dx, t);
            let t = (-dy).mul_add_precise(dy, t);
            let t = (-dz).mul_add_precise(dz, t) * inverse;
            for (column, values) in self.half_spaces.iter_mut().zip([dx, dy, dz, t]) {
                values.store_slice(&mut column[at..at + S::f32s::LEN]);
            }
            let sources: S::u32s = self.sources.load(simd, at);
            let is_other_atom = sources.simd_ne(own as u32) & first_lanes(simd, lanes);
            let (buries, is_near) = (t.simd_gt(far) & is_other_atom, t.simd_gt(-NEAR));
            let index = lane_numbers + at as u32;
            let own_chain = if BY_CHAIN {
                let chains = self.tags.load::<S, S::u32s>(simd, at) >> AtomTag::CHAIN_SHIFT;
                let is_own = chains.simd_eq(atom.tag.chain());
                self.other.push(index, buries & !is_own);
                buries & is_own
            } else {
                buries
            };
            self.near.push(index, own_chain & is_near);
            self.far.push(index, own_chain & !is_near);
        }
    }

    /// Holds a block of points from `at` on against the near half spaces, and adds
    /// those that none buries to the living.
    #[inline(always)]
    fn near_pass<S: Simd>(&mut self, simd: S, sphere: &Sphere, at: usize) {
        let lanes = S::f32s::LEN;
        let mut points = [[S::f32s::splat(simd, 0.0); 3]; BLOCK];
        for (index, point) in points.iter_mut().enumerate() {
            let at = at + index * lanes;
            for (values, axis) in point.iter_mut().zip(&sphere.axes) {
                if let Some(axis) = axis.get(at..at + lanes) {
                    *values = S::f32s::from_slice(simd, axis);
                }
            }
        }
        let mut open = [S::i32s::splat(simd, -1); BLOCK];
        for &index in self.near.get() {
            let half_space = self.half_space(index);
            for (open, point) in open.iter_mut().zip(&points) {
                *open &= depth::<S>(half_space, point);
            }
        }
        for (index, (open, point)) in open.into_iter().zip(points).enumerate() {
            let wanted = sphere.count.saturating_sub(at + index * lanes).min(lanes);
            let living = open.simd_lt(0) & first_lanes(simd, wanted);
            for (column, values) in self.living.iter_mut().zip(point) {
                column.push(values, living);
            }
        }
    }

    /// How many of the living points the far half spaces of the own chain leave
    /// open, and how many of those the other chains'.
    #[inline(always)]
    fn far_pass<S: Simd, const BY_CHAIN: bool>(&self, simd: S) -> [u64; 2] {
        let (mut alone, mut model) = (0, 0);
        for (at, lanes) in vectors(simd, 0..self.living[0].len) {
            let mut point = [S::f32s::splat(simd, 0.0); 3];
            for (values, column) in point.iter_mut().zip(&self.living) {
                *values = column.load(simd, at);
            }
            let open = self.outside(simd, &self.far, &point, first_lanes(simd, lanes));
            alone += u64::from(open.to_bitmask().count_ones());
            let open = match BY_CHAIN {
                true => self.outside(simd, &self.other, &point, open),
                false => open,
            };
            model += u64::from(open.to_bitmask().count_ones());
        }
        [alone, model]
    }

    /// Which of the points `open` none of the listed half spaces buries.
    #[inline(always)]
    fn outside<S: Simd>(
        &self,
        simd: S,
        list: &Packed<u32>,
        point: &[S::f32s; 3],
        mut open: S::mask32s,
    ) -> S::mask32s {
        // A look at whether any is left costs as much as a half space.
        for few in list.get().chunks(4) {
            let mut still = S::i32s::splat(simd, -1);
            for &index in few {
                still &= depth::<S>(self.half_space(index), point);
            }
            open &= still.simd_lt(0);
            if open.all_false() {
                break;
            }
        }
        open
    }

    #[inline(always)]
    fn half_space(&self, index: u32) -> [f32; 4] {
        let [x, y, z, t] = &self.half_spaces;
        let index = index as usize;
        [x[index], y[index], z[index], t[index]]
    }
}

/// The bits of u . d + t, which has its sign bit set outside of the half space, and not on its
/// plane: t begins as a positive zero at least, and sums that cancel are positive.
#[inline(always)]
fn depth<S: Simd>([dx, dy, dz, t]: [f32; 4], [x, y, z]: &[S::f32s; 3]) -> S::i32s {
    let depth = z.mul_add_precise(dz, t);
    let depth = y.mul_add_precise(dy, depth);
    x.mul_add_precise(dx, depth).bitcast()
}
