//! The neighbours of an atom as half spaces, and the test points that they do not bury.

use super::super::cpu::simd::{LANES_MAX, first_lanes, lanes_of, load, vectors};
use super::super::grid::Grid;
use super::super::kernels::Cells;
use super::super::layout::{Atom, AtomTag};
use super::lee_richards::{Arcs, Slices};
use super::others::Others;
use super::shrake_rupley::{Sphere, Surface};
use bytemuck::cast_slice;
use fearless_simd::prelude::*;

/// Number of vectors of test points that are tested together; they fit the registers.
pub(super) const BLOCK: usize = 4;

/// A half space is near if its plane is closer to the atom than this, in 0.001 A. An atom has about
/// ten near half spaces, which bury nine of ten points, so they are tested first. The results do
/// not depend on it, nor on the next.
const NEAR: f32 = 2_440.0;

/// After this many half spaces the test stops if they have buried all points of the vector.
const HALF_SPACES_PER_CHECK: usize = 4;

/// Arguments of `Neighbours::near_pass`: whether open points are only counted, or marked too.
const COUNTING: bool = false;
const MARKING: bool = true;

/// Searches reach this much beyond the farthest neighbour, which is more than the rounding errors.
const SLACK: i32 = 1;

/// A group of consecutive atoms that lie in a small box.
pub(super) struct AtomGroup {
    /// The number of atoms.
    pub(super) len: usize,
    low: [i32; 3],
    high: [i32; 3],
}

impl AtomGroup {
    /// The first of `atoms`, and those after it as long as no edge of the box exceeds `edge`.
    pub(super) fn first_of(atoms: &[Atom], edge: i32) -> Self {
        let first = atoms[0].position.into();
        let mut group = AtomGroup {
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
            group = AtomGroup {
                len: group.len + 1,
                low,
                high,
            };
        }
        group
    }
}

/// Columns of 32-bit values that are compacted from lanes of vectors, with room for a whole vector
/// behind the last value.
struct Compacted<const N: usize> {
    /// Columns one after the other, each of `room` values.
    values: Vec<u32>,
    room: usize,
    len: usize,
}

/// Appends values to [`Compacted`] columns.
struct Appender<'a, const N: usize> {
    values: &'a mut [u32],
    room: usize,
    len: usize,
}

impl<const N: usize> Compacted<N> {
    fn new() -> Self {
        Compacted {
            values: Vec::new(),
            room: 0,
            len: 0,
        }
    }

    /// An appender behind the first `len` values, with room for `more`. The caller sets the
    /// columns' `len` to the appender's when all values are appended.
    #[inline(always)]
    fn appender(&mut self, len: usize, more: usize) -> Appender<'_, N> {
        let room = len + more + LANES_MAX;
        if room > self.room {
            self.grow(len, 2 * room);
        }
        Appender {
            values: &mut self.values,
            room: self.room,
            len,
        }
    }

    /// Makes room for `room` values in each column, which are stored one column after the other,
    /// and keeps the first `len`.
    #[cold]
    fn grow(&mut self, len: usize, room: usize) {
        let mut values = vec![0; N * room];
        for column in 0..N {
            let old = &self.values[column * self.room..][..len];
            values[column * room..][..len].copy_from_slice(old);
        }
        (self.values, self.room) = (values, room);
    }

    /// The vector of a column from `first` on.
    #[inline(always)]
    fn load<S: Simd>(&self, simd: S, column: usize, first: usize) -> S::u32s {
        let values = &self.values[column * self.room + first..];
        S::u32s::from_slice(simd, &values[..S::u32s::LEN])
    }
}

impl Compacted<1> {
    fn get(&self) -> &[u32] {
        &self.values[..self.len]
    }
}

impl<const N: usize> Appender<'_, N> {
    /// Appends the wanted lanes of one vector to each column.
    #[inline(always)]
    fn push<S: Simd>(&mut self, vectors: [S::u32s; N], wanted: S::mask32s) {
        for (column, vector) in vectors.into_iter().enumerate() {
            let place = &mut self.values[column * self.room + self.len..];
            let packed = vector.compress(wanted);
            packed.store_slice(&mut place[..S::u32s::LEN]);
        }
        self.len += wanted.to_bitmask().count_ones() as usize;
    }
}

impl Appender<'_, 1> {
    /// Repeats the last value up to a multiple of [`HALF_SPACES_PER_CHECK`], and returns the
    /// length.
    #[inline(always)]
    fn pad(self) -> usize {
        let end = self.len.next_multiple_of(HALF_SPACES_PER_CHECK);
        let last = self.values[self.len.saturating_sub(1)];
        self.values[self.len..end].fill(last);
        end
    }
}

/// The columns of `Neighbours::candidates`; points have the first three.
const X: usize = 0;
const Y: usize = 1;
const Z: usize = 2;
const RADIUS2: usize = 3;
const SOURCE: usize = 4;
const TAG: usize = 5;

/// The buffers of a task: the neighbours of a group of atoms, and of one of its atoms.
pub(super) struct Neighbours {
    /// The low corner of the group's box; candidates' positions are relative to it.
    low: [i32; 3],
    /// Atoms that may be neighbours: position, squared radius, index and tag.
    candidates: Compacted<6>,
    /// A half space u . d + t >= 0 for each candidate: vectors of x, y and z of d, and of t, one
    /// after the other.
    half_spaces: Vec<f32>,
    /// The half spaces that can bury points, as indices of their x: near and far ones, and those of
    /// the other atoms.
    near: Compacted<1>,
    far: Compacted<1>,
    other: Compacted<1>,
    /// Test points that the near half spaces do not bury.
    remaining: Compacted<3>,
    /// A bit for each test point, set for those in `remaining`, if they were asked for.
    marks: Vec<u32>,
    /// What the half spaces bury of circles.
    arcs: Arcs,
}

impl Neighbours {
    pub(super) fn new() -> Self {
        Neighbours {
            low: [0; 3],
            candidates: Compacted::new(),
            half_spaces: Vec::new(),
            near: Compacted::new(),
            far: Compacted::new(),
            other: Compacted::new(),
            remaining: Compacted::new(),
            marks: Vec::new(),
            arcs: Arcs::default(),
        }
    }

    /// Finds all atoms that may be neighbours of the group's atoms.
    #[inline(always)]
    pub(super) fn gather<S: Simd, O: Others>(
        &mut self,
        simd: S,
        cells: &Cells<'_>,
        grid: &Grid,
        group: &AtomGroup,
        surface: &impl Surface,
        others: O,
    ) {
        let reach = 2 * surface.radius_max() as i32 + SLACK;
        let reach2 = (reach as f32).powi(2);
        let (low, high) = (group.low, group.high);
        let edges = [0, 1, 2].map(|axis| (high[axis] - low[axis]) as f32);
        let (tags, sources) = (cast_slice(cells.tag), cast_slice(cells.source));
        let mut len = 0;
        for run in cells.runs_around(grid, low, high, reach) {
            let mut found = self.candidates.appender(len, run.len());
            for (first, lanes) in vectors(simd, run) {
                let place = |axis: usize, values: &[i32]| -> S::f32s {
                    (load(simd, values, first, lanes) - low[axis]).to_float()
                };
                let (x, y, z) = (place(0, cells.x), place(1, cells.y), place(2, cells.z));
                // The distance from the box.
                let out = |axis: usize, v: S::f32s| v - v.max(0.0).min(edges[axis]);
                let (dx, dy, dz) = (out(0, x), out(1, y), out(2, z));
                let d2 = dx * dx + dy * dy + dz * dz;
                let tags = load(simd, tags, first, lanes);
                let radius: S::f32s =
                    ((tags & AtomTag::RADIUS as i32) + surface.probe() as i32).to_float();
                let sources = load(simd, sources, first, lanes).bitcast();
                let columns = [
                    x.bitcast(),
                    y.bitcast(),
                    z.bitcast(),
                    (radius * radius).bitcast(),
                    sources,
                    tags.bitcast(),
                ];
                let near = d2.simd_lt(reach2) & first_lanes(simd, lanes);
                found.push::<S>(columns, others.present::<S>(near, tags.bitcast(), sources));
            }
            len = found.len;
        }
        (self.low, self.candidates.len) = (low, len);
        self.half_spaces.resize(4 * self.candidates.room, 0.0);
    }

    /// Numbers of an atom's points that are open without the other atoms, and in the model.
    #[inline(always)]
    pub(super) fn open_points<S: Simd, O: Others>(
        &mut self,
        simd: S,
        index: usize,
        atom: &Atom,
        sphere: &Sphere,
        others: O,
    ) -> [u64; 2] {
        self.find(simd, index, atom, sphere, others);
        self.near_pass::<S, COUNTING>(simd, sphere);
        self.far_pass::<S, O>(simd)
    }

    /// Sets a bit of `bits` for each open point of an atom, and clears the bits of all other
    /// points. `O` must select no other atoms; `others` only tells which atoms are present.
    #[inline(always)]
    pub(super) fn mark_open<S: Simd, O: Others>(
        &mut self,
        simd: S,
        index: usize,
        atom: &Atom,
        sphere: &Sphere,
        others: O,
        bits: &mut [u32],
    ) {
        const { assert!(!O::ANY) };
        self.marks.clear();
        self.marks.resize(bits.len(), 0);
        self.find(simd, index, atom, sphere, others);
        self.near_pass::<S, MARKING>(simd, sphere);
        bits.copy_from_slice(&self.marks);
        // The marked points are those of `remaining`, in their order.
        let words = self.marks.iter().enumerate();
        let mut marked =
            words.flat_map(|(word, &marks)| lanes_of(u64::from(marks)).map(move |bit| (word, bit)));
        for (first, lanes) in vectors(simd, 0..self.remaining.len) {
            let axis = |axis: usize| self.remaining.load(simd, axis, first).bitcast();
            let point = [axis(X), axis(Y), axis(Z)];
            let open = self.outside(simd, &self.far, &point, first_lanes(simd, lanes));
            let open = open.to_bitmask();
            for (lane, (word, bit)) in marked.by_ref().take(lanes).enumerate() {
                bits[word] &= !(u32::from(open >> lane & 1 == 0) << bit);
            }
        }
    }

    /// The numbers of parts of an atom's circles that are open without the other atoms, and in the model.
    #[inline(always)]
    pub(super) fn open_arcs<S: Simd, O: Others>(
        &mut self,
        simd: S,
        index: usize,
        atom: &Atom,
        slices: &Slices,
        others: O,
    ) -> [u64; 2] {
        self.find(simd, index, atom, slices, others);
        let all = &self.half_spaces;
        let near = self.near.get().iter().chain(self.far.get());
        let selected = near.map(|place| half_space::<S>(all, *place));
        let other = self.other.get().iter();
        let other = other.map(|place| half_space::<S>(all, *place));
        slices.open_parts(selected, other, &mut self.arcs)
    }

    /// Computes the half spaces of an atom, one of the group that [`Self::gather`] was called for,
    /// and lists those that can bury points.
    #[inline(always)]
    fn find<S: Simd, O: Others>(
        &mut self,
        simd: S,
        index: usize,
        atom: &Atom,
        surface: &impl Surface,
        others: O,
    ) {
        let point: [i32; 3] = atom.position.into();
        let point = [0, 1, 2].map(|axis| (point[axis] - self.low[axis]) as f32);
        let radius = (atom.tag.radius_milli() + surface.probe()) as f32;
        let inverse = 1.0 / (2.0 * radius);
        let farthest = -(radius + (surface.radius_max() as i32 + SLACK) as f32);
        let lane_numbers = S::u32s::from_fn(simd, |lane| lane as u32);
        let candidates = &self.candidates;
        let count = candidates.len;
        let lists = [&mut self.near, &mut self.far, &mut self.other];
        let [mut near, mut far, mut other] = lists.map(|list| list.appender(0, count));
        let half_spaces = self.half_spaces.chunks_exact_mut(4 * S::f32s::LEN);
        for ((first, lanes), half_spaces) in vectors(simd, 0..count).zip(half_spaces) {
            let column = |column: usize| candidates.load(simd, column, first);
            let dx = column(X).bitcast::<S::f32s>() - point[0];
            let dy = column(Y).bitcast::<S::f32s>() - point[1];
            let dz = column(Z).bitcast::<S::f32s>() - point[2];
            let t = column(RADIUS2).bitcast::<S::f32s>() - radius * radius;
            let t = (-dx).mul_add_precise(dx, t);
            let t = (-dy).mul_add_precise(dy, t);
            let t = (-dz).mul_add_precise(dz, t) * inverse;
            let vectors = half_spaces.chunks_exact_mut(S::f32s::LEN);
            for (place, values) in vectors.zip([dx, dy, dz, t]) {
                values.store_slice(place);
            }
            // All zeros: the atom itself, or one of the same radius at the same position, of which
            // an earlier one buries the atom.
            let [dx, dy, dz, bits] = [dx, dy, dz, t].map(|v| v.bitcast::<S::u32s>());
            let counts = (dx | dy | dz | bits).simd_ne(0) | column(SOURCE).simd_lt(index as u32);
            let mut buries = t.simd_gt(farthest) & counts & first_lanes(simd, lanes);
            let place = [lane_numbers + 4 * first as u32];
            if O::ANY {
                let is_own = !others.is_other::<S>(atom.tag, column(TAG), column(SOURCE));
                other.push::<S>(place, buries & !is_own);
                buries &= is_own;
            }
            let is_near = t.simd_gt(-NEAR);
            near.push::<S>(place, buries & is_near);
            far.push::<S>(place, buries & !is_near);
        }
        let counts = [near.len, far.pad(), other.pad()];
        [self.near.len, self.far.len, self.other.len] = counts;
    }

    /// Tests all points against the near half spaces, and keeps the open ones in `remaining`. With
    /// [`MARKING`] also sets their bits in `marks`.
    #[inline(always)]
    fn near_pass<S: Simd, const MARKS: bool>(&mut self, simd: S, sphere: &Sphere) {
        let lanes = S::f32s::LEN;
        let near = self.near.get();
        let mut remaining = self.remaining.appender(0, sphere.count);
        for block_start in (0..sphere.count).step_by(BLOCK * lanes) {
            let mut points = [[S::f32s::splat(simd, 0.0); 3]; BLOCK];
            for (index, point) in points.iter_mut().enumerate() {
                let block_start = block_start + index * lanes;
                for (values, axis) in point.iter_mut().zip(&sphere.axes) {
                    *values = S::f32s::from_slice(simd, &axis[block_start..block_start + lanes]);
                }
            }
            let mut open = [S::i32s::splat(simd, -1); BLOCK];
            for &index in near {
                let half_space = half_space::<S>(&self.half_spaces, index);
                for (open, point) in open.iter_mut().zip(&points) {
                    *open &= depth::<S>(half_space, point);
                }
            }
            for (index, (open, point)) in open.into_iter().zip(points).enumerate() {
                let wanted = sphere
                    .count
                    .saturating_sub(block_start + index * lanes)
                    .min(lanes);
                let is_open = open.simd_lt(0) & first_lanes(simd, wanted);
                if MARKS && wanted > 0 {
                    let first = block_start + index * lanes;
                    self.marks[first / 32] |= (is_open.to_bitmask() as u32) << (first % 32);
                }
                let [x, y, z] = point;
                remaining.push::<S>([x.bitcast(), y.bitcast(), z.bitcast()], is_open);
            }
        }
        self.remaining.len = remaining.len;
    }

    /// The number of open points that the far half spaces do not bury without the other atoms, and
    /// the number of those that the other atoms do not bury either.
    #[inline(always)]
    fn far_pass<S: Simd, O: Others>(&self, simd: S) -> [u64; 2] {
        let (mut alone, mut model) = (0, 0);
        for (first, lanes) in vectors(simd, 0..self.remaining.len) {
            let axis = |axis: usize| self.remaining.load(simd, axis, first).bitcast();
            let point = [axis(X), axis(Y), axis(Z)];
            let open = self.outside(simd, &self.far, &point, first_lanes(simd, lanes));
            alone += u64::from(open.to_bitmask().count_ones());
            let open = if O::ANY {
                self.outside(simd, &self.other, &point, open)
            } else {
                open
            };
            model += u64::from(open.to_bitmask().count_ones());
        }
        [alone, model]
    }

    /// The points of `open` that none of the listed half spaces buries.
    #[inline(always)]
    fn outside<S: Simd>(
        &self,
        simd: S,
        list: &Compacted<1>,
        point: &[S::f32s; 3],
        mut open: S::mask32s,
    ) -> S::mask32s {
        for few in list.get().chunks_exact(HALF_SPACES_PER_CHECK) {
            let mut still = S::i32s::splat(simd, -1);
            for &index in few {
                still &= depth::<S>(half_space::<S>(&self.half_spaces, index), point);
            }
            open &= still.simd_lt(0);
            if open.all_false() {
                break;
            }
        }
        open
    }
}

/// The half space whose x is at index `place`.
#[inline(always)]
fn half_space<S: Simd>(half_spaces: &[f32], place: u32) -> [f32; 4] {
    let lanes = S::f32s::LEN;
    let values = &half_spaces[place as usize..][..3 * lanes + 1];
    [
        values[0],
        values[lanes],
        values[2 * lanes],
        values[3 * lanes],
    ]
}

/// The bits of u . d + t, whose sign bit is set outside of the half space. On its plane the sum is
/// a positive zero: t is never a negative zero, and terms that cancel give a positive one.
#[inline(always)]
fn depth<S: Simd>([dx, dy, dz, t]: [f32; 4], [x, y, z]: &[S::f32s; 3]) -> S::i32s {
    let depth = z.mul_add_precise(dz, t);
    let depth = y.mul_add_precise(dy, depth);
    x.mul_add_precise(dx, depth).bitcast()
}
