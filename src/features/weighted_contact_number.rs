//! Weighted contact number.

use super::columns::{ColumnDecl, ColumnKind, TableName, Tolerance};
use super::constants;
use super::cpu::simd;
use super::cpu::split::parts;
use super::feature::{About, Feature, SettingField, neighbours_of, own_chain};
use super::grid::Grid;
use super::kernels::{Twin, coincident_pairs, weighted_contact_number};
use super::layout::{Atom, RESIDUES, STRUCTURES, StructureSpan, TILES, Tile};
use super::recorder::FeatureRecorder;
use fearless_simd::dispatch;
use fearless_simd::prelude::*;
use rayon::prelude::*;

/// Settings of the weighted contact number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WeightedContactNumber {
    /// Whether only residues of the same chain are counted; by default those of all chains are.
    pub own_chain: bool,
}

impl Feature for WeightedContactNumber {
    fn about(&self) -> About {
        About {
            summary: "How densely the model's C-alphas surround the C-alpha, near ones most.",
            formula: "wcn_i = sum over j != i of 1 / d(i, j)^2, without a cutoff; pairs with d = 0 \
                      are left out and counted",
            source: "Lin et al. 2008, Proteins 72:929",
            needs: &[],
        }
    }

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![("wcn.chains", own_chain(&mut self.own_chain))]
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let about = format!(
            "Sum of 1/d^2 over the other C-alphas of the {} (Lin et al. 2008).",
            neighbours_of(self.own_chain)
        );
        let wcn = ColumnDecl::residue("wcn", ColumnKind::Real, "1/A^2", about)
            .rotation(Tolerance::relative(1e-3));
        let about = "Pairs of C-alphas in one place, which wcn leaves out.";
        let pairs = ColumnDecl::residue("wcn_coincident", ColumnKind::Count, "", about);
        let pairs = pairs.idle_when("no two C-alphas in one place were read");
        vec![wcn, pairs.in_table(TableName::Structures)]
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        let sums = r.results::<f32>(TableName::Residues, "wcn", 1);
        let coincident = r.device::<u32>("wcn_coincident_with", RESIDUES, 1);
        let (structures, residues, tiles) = (r.structures(), r.residues(), r.tiles());
        r.residue_grids();
        let args = weighted_contact_number::Args {
            header: r.header(),
            structures,
            residues,
            tiles,
            atoms: r.ca(),
            sums: sums.buffer,
            coincident,
            own_chain: u32::from(self.own_chain),
        };
        r.launch_blocks(TILES, args);
        r.column(sums, 0);
        let pairs = r.results::<i32>(TableName::Structures, "wcn_coincident", 1);
        let args = coincident_pairs::Args {
            header: r.header(),
            structures,
            coincident,
            pairs: pairs.buffer,
        };
        r.launch_blocks(STRUCTURES, args);
        r.column(pairs, 0);
    }
}

/// Number of terms that are added in single precision before they are added to the sum in double
/// precision.
const GROUP: usize = constants::GROUP as usize;

/// Upper limit of a group's sum of 1/d^2, for distances of at least 0.001 A: terms are at most 1 in
/// this unit. A larger sum has a term of distance 0, so the group is summed again without these.
const SUM_MAX: f32 = 2.0 * GROUP as f32;

/// Number of vectors of residues whose sums are computed together, so that the positions of others
/// are broadcast once for all of them.
const VECTORS: usize = 2;

/// Computes the sum of 1/d^2 over the other residues of the structure.
impl Twin for weighted_contact_number::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            residues,
            tiles,
            atoms,
            sums,
            coincident,
            own_chain,
        } = self;
        let structures = StructureSpan::live(header, structures);
        let tiles = Tile::live(header, tiles);

        let ranges = || tiles.iter().map(Tile::range);
        let outputs = parts(sums, ranges()).zip(parts(coincident, ranges()));
        let present = tiles
            .par_iter()
            .zip(outputs)
            .filter(|(tile, _)| tile.count > 0);
        present.for_each(|(tile, (sums, coincident))| {
            let structure = residues[tile.range().start].structure as usize;
            let grid = &structures[structure].residue_grid;
            let all = &atoms[tile.structure_range()];
            // The grid has 2^shift of 0.001 A in a cell. Floats hold integers up to 2^24 exactly.
            let is_compact = grid
                .extent
                .iter()
                .all(|&cells| u32::from(cells) <= 1 << (24 - grid.shift));
            dispatch!(simd::level(), simd => {
                let block = VECTORS * simd_lanes(simd);
                let outputs = sums.chunks_mut(block).zip(coincident.chunks_mut(block));
                for (centres, outputs) in atoms[tile.range()].chunks(block).zip(outputs) {
                    match (is_compact, own_chain != 0) {
                        (true, false) => weighted_sums::<_, COMPACT, ALL_CHAINS>(simd, centres, all, grid, outputs),
                        (false, false) => weighted_sums::<_, LARGE, ALL_CHAINS>(simd, centres, all, grid, outputs),
                        (true, true) => weighted_sums::<_, COMPACT, OWN_CHAIN>(simd, centres, all, grid, outputs),
                        (false, true) => weighted_sums::<_, LARGE, OWN_CHAIN>(simd, centres, all, grid, outputs),
                    }
                }
            });
        });
    }
}

/// Arguments of [`weighted_sums`]: whether the structure's grid is so small that floats hold positions
/// from its corner exactly, and which C-alphas count.
const COMPACT: bool = true;
const LARGE: bool = false;
const OWN_CHAIN: bool = true;
const ALL_CHAINS: bool = false;

/// Number of 32-bit elements of a vector.
fn simd_lanes<S: Simd>(_: S) -> usize {
    S::f32s::LEN
}

/// The positions of some C-alphas, a vector for each axis: as integers, and as floats relative to
/// the corner of the structure's grid, which are exact if the grid is small.
struct PositionVectors<S: Simd> {
    floats: [S::f32s; 3],
    integers: [S::i32s; 3],
    /// The chain of each.
    chains: S::u32s,
}

impl<S: Simd> PositionVectors<S> {
    /// The vectors of `atoms`, at most as many as a vector has lanes. Lanes without a C-alpha lie at `corner`,
    /// that of the structure's grid, in any chain: their sums are not used.
    #[inline(always)]
    fn new(simd: S, atoms: &[Atom], corner: [i32; 3]) -> Self {
        let coordinate = |lane: usize, axis: usize| {
            let atom = atoms.get(lane).filter(|atom| atom.is_present());
            atom.map_or(corner[axis], |atom| <[i32; 3]>::from(atom.position)[axis])
        };
        let [x, y, z] = [0, 1, 2].map(|axis| S::i32s::from_fn(simd, |lane| coordinate(lane, axis)));
        let from_corner = [x - corner[0], y - corner[1], z - corner[2]];
        PositionVectors {
            floats: from_corner.map(|vector| vector.to_float()),
            integers: [x, y, z],
            chains: S::u32s::from_fn(simd, |lane| {
                atoms.get(lane).map_or(0, |atom| atom.tag.chain())
            }),
        }
    }

    /// The squared distances from the residue at `place`, in 0.001 A, or `from_corner` relative to the
    /// grid's corner.
    #[inline(always)]
    fn squared_distance<const IS_COMPACT: bool>(
        &self,
        place: [i32; 3],
        from_corner: [f32; 3],
    ) -> S::f32s {
        let [x, y, z] = [0, 1, 2].map(|axis| {
            if IS_COMPACT {
                self.floats[axis] - from_corner[axis]
            } else {
                (self.integers[axis] - place[axis]).to_float()
            }
        });
        z.mul_add_precise(z, y.mul_add_precise(y, x * x))
    }
}

/// 1/x with an error of up to 6e-7, in the operations of the kernel: a guess from the bits, and two
/// Newton steps whose constants spread the error evenly. The result for 0 is not below [`SUM_MAX`].
#[inline(always)]
fn reciprocal<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let bits: S::u32s = x.bitcast();
    let guess: S::f32s = (S::u32s::splat(simd, 0x7ee8_0000) - bits).bitcast();
    let better = guess * (x * guess).mul_add_precise(-1.114_922_2, 2.112_799_4);
    (-x).mul_add_precise(better, 1.000_000_5)
        .mul_add_precise(better, better)
}

/// Calls `each` with the squared distances between each present residue of a group and each vector
/// of positions, and the residue's chain.
#[inline(always)]
fn for_each_distance<S: Simd, const IS_COMPACT: bool>(
    places: &[PositionVectors<S>; VECTORS],
    group: &[Atom],
    corner: [i32; 3],
    mut each: impl FnMut(usize, S::f32s, u32),
) {
    for other in group.iter().filter(|other| other.is_present()) {
        let place = <[i32; 3]>::from(other.position);
        let from_corner = [0, 1, 2].map(|axis| (place[axis] - corner[axis]) as f32);
        for (v, vector) in places.iter().enumerate() {
            let d2 = vector.squared_distance::<IS_COMPACT>(place, from_corner);
            each(v, d2, other.tag.chain());
        }
    }
}

/// Writes the sums over `all`, or over those in a residue's chain, for the residues `centres`, at most
/// [`VECTORS`] vectors of them, and for each the number of other residues at its position.
#[inline(always)]
fn weighted_sums<S: Simd, const IS_COMPACT: bool, const IS_OWN_CHAIN: bool>(
    simd: S,
    centres: &[Atom],
    all: &[Atom],
    grid: &Grid,
    (sums, coincident): (&mut [f32], &mut [u32]),
) {
    let lanes = S::f32s::LEN;
    let corner = grid.origin;
    let places: [PositionVectors<S>; VECTORS] = std::array::from_fn(|v| {
        PositionVectors::new(simd, centres.get(v * lanes..).unwrap_or(&[]), corner)
    });
    let zero = S::f64s::splat(simd, 0.0);
    let mut totals = [(zero, zero); VECTORS];
    let mut at_zero = [S::u32s::splat(simd, 0); VECTORS];
    let nothing = S::f32s::splat(simd, 0.0);
    for group in all.chunks(GROUP) {
        let mut partial = [nothing; VECTORS];
        for_each_distance::<S, IS_COMPACT>(&places, group, corner, |v, d2, chain| {
            let term = reciprocal(simd, d2);
            partial[v] += if IS_OWN_CHAIN {
                places[v].chains.simd_eq(chain).select(term, nothing)
            } else {
                term
            };
        });
        if partial.iter().any(|sum| sum.simd_lt(SUM_MAX).any_false()) {
            partial = [nothing; VECTORS];
            for_each_distance::<S, IS_COMPACT>(&places, group, corner, |v, d2, chain| {
                let (mut apart, mut together) = (d2.simd_gt(0.0), d2.simd_le(0.0));
                if IS_OWN_CHAIN {
                    let same = places[v].chains.simd_eq(chain);
                    (apart, together) = (apart & same, together & same);
                }
                partial[v] += apart.select(reciprocal(simd, d2), nothing);
                at_zero[v] += together.select(S::u32s::splat(simd, 1), S::u32s::splat(simd, 0));
            });
        }
        for (total, partial) in totals.iter_mut().zip(partial) {
            let (low, high) = partial.widen();
            *total = (total.0 + low, total.1 + high);
        }
    }
    let outputs = centres.iter().zip(sums).zip(coincident).enumerate();
    for (lane, ((atom, sum), coincident)) in outputs {
        let (v, lane) = (lane / lanes, lane % lanes);
        let halves = [totals[v].0, totals[v].1];
        let total = halves[lane / S::f64s::LEN][lane % S::f64s::LEN];
        (*sum, *coincident) = if atom.is_present() {
            // Leaves out the residue itself, which is at distance 0.
            ((total * 1e6) as f32, at_zero[v][lane] - 1)
        } else {
            (f32::NAN, 0)
        };
    }
}

/// Counts the pairs of each structure: half the sum over its residues, as both residues count a
/// pair.
impl Twin for coincident_pairs::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            coincident,
            pairs,
        } = self;
        let structures = StructureSpan::live(header, structures);

        for (structure, pairs) in structures.iter().zip(pairs) {
            let counts = coincident[structure.residues()].iter();
            let sum: u64 = counts.copied().map(u64::from).sum();
            *pairs = i32::try_from(sum / 2).unwrap_or(i32::MAX);
        }
    }
}
