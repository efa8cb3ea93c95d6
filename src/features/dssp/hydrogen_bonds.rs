//! Twin of `kernels/hydrogen_bonds.cu`.

use super::super::columns::NULL_COUNT;
use super::super::constants::{BOND_ENERGY, BOND_REACH, ENERGY_MIN};
use super::super::cpu::simd::{self, LANES_MAX, first_lanes, load, squared, vectors};
use super::super::grid::Grid;
use super::super::kernels::Cells;
use super::super::kernels::{Twin, hydrogen_bonds};
use super::super::layout::{Atom, Backbone, Position, RESIDUES, ResidueSpan, StructureSpan};
use super::bonds::{DONOR, Hydrogen, INCOMPLETE};
use bytemuck::{cast_slice, cast_slice_mut};
use fearless_simd::{dispatch, prelude::*};
use rayon::prelude::*;
use std::ops::Range;

const NO_BOND: u64 = u64::MAX;

/// The two best bonds so far, each as its energy above the minimum in cal/mol (upper 32 bits) and
/// its partner (lower 32 bits). Of equally strong bonds the one with the lower partner is better.
#[derive(Clone, Copy)]
struct BestBonds([u64; 2]);

impl BestBonds {
    const NONE: BestBonds = BestBonds([NO_BOND; 2]);

    /// Keeps a bond of `energy` cal/mol if it is better than one of the two.
    fn add(&mut self, energy: i32, partner: usize) {
        let bond = ((energy - ENERGY_MIN) as u64) << 32 | partner as u64;
        let [first, second] = self.0;
        self.0 = [first.min(bond), second.min(first.max(bond))];
    }

    /// Partner, counted from `first`, and energy in kcal/mol of each; null where there is none.
    fn results(self, first: u32) -> [(i32, f32); 2] {
        self.0.map(|bond| {
            if bond == NO_BOND {
                return (NULL_COUNT, f32::NAN);
            }
            let energy = (bond >> 32) as i32 + ENERGY_MIN;
            ((bond as u32 - first) as i32, energy as f32 / 1000.0)
        })
    }
}

/// The atoms that take part in hydrogen bonds.
#[derive(Clone, Copy)]
pub(in super::super) struct Peptides<'a> {
    pub(in super::super) backbone: &'a [Backbone],
    pub(in super::super) hydrogens: &'a [Hydrogen],
}

/// One coordinate of several residues, one residue per lane.
type Lanes<T> = [T; LANES_MAX];

/// The atoms of several residues by axis, in 0.001 A: the positions of N, C and O, and the offsets of
/// the amide hydrogens from N.
#[derive(Default)]
struct ResidueLanes {
    n: [Lanes<i32>; 3],
    c: [Lanes<i32>; 3],
    o: [Lanes<i32>; 3],
    hydrogen: [Lanes<f32>; 3],
}

impl ResidueLanes {
    /// Loads the atoms of the residues at these indices in the batch, at most [`LANES_MAX`] of them.
    #[inline(always)]
    fn fill(&mut self, peptides: Peptides<'_>, indices: &[i32]) {
        for (lane, &residue) in indices.iter().enumerate().take(LANES_MAX) {
            let Backbone { n, c, o, .. } = &peptides.backbone[residue as usize];
            let hydrogen = &peptides.hydrogens[residue as usize];
            (self.n[0][lane], self.n[1][lane], self.n[2][lane]) = (n.x, n.y, n.z);
            (self.c[0][lane], self.c[1][lane], self.c[2][lane]) = (c.x, c.y, c.z);
            (self.o[0][lane], self.o[1][lane], self.o[2][lane]) = (o.x, o.y, o.z);
            self.hydrogen[0][lane] = hydrogen[0];
            self.hydrogen[1][lane] = hydrogen[1];
            self.hydrogen[2][lane] = hydrogen[2];
        }
    }
}

/// Rows of a task. The bonds of two residues of one task are computed together, and those of
/// residues of two tasks twice, so a task has more rows than in twins whose rows share no work.
const ROWS: usize = 512;

/// Finds the best two acceptors of each residue's N-H and the best two donors to its O.
impl Twin for hydrogen_bonds::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            residues,
            atoms,
            cells,
            backbone,
            hydrogens,
            partners,
            energies,
            own_chain,
        } = self;
        let count = header[RESIDUES] as usize;
        let inputs = BondInputs {
            structures: StructureSpan::live(header, structures),
            residues,
            atoms,
            cells,
            peptides: Peptides {
                backbone,
                hydrogens,
            },
            own_chain: own_chain != 0,
        };
        let partners: &mut [[i32; 4]] = cast_slice_mut(partners);
        let energies: &mut [[f32; 4]] = cast_slice_mut(energies);

        let partners = partners[..count].par_chunks_mut(ROWS);
        let energies = energies[..count].par_chunks_mut(ROWS);
        let tasks = partners.zip(energies).enumerate();
        tasks.for_each(|(task, (partners, energies))| {
            let start = task * ROWS;
            let best = inputs.best_bonds(start..start + partners.len());
            let rows = partners.iter_mut().zip(energies).zip(best);
            for (residue, ((partners, energies), best)) in (start..).zip(rows) {
                let first = inputs.structure(residue).residue_start;
                let [donor, acceptor] = best.map(|best| best.results(first));
                let all = [donor[0], donor[1], acceptor[0], acceptor[1]];
                (*partners, *energies) = (all.map(|bond| bond.0), all.map(|bond| bond.1));
            }
        });
    }
}

/// The inputs of kernels that search for hydrogen bonds.
pub(in super::super) struct BondInputs<'a> {
    pub(in super::super) structures: &'a [StructureSpan],
    pub(in super::super) residues: &'a [ResidueSpan],
    /// The C-alphas.
    pub(in super::super) atoms: &'a [Atom],
    pub(in super::super) cells: Cells<'a>,
    pub(in super::super) peptides: Peptides<'a>,
    /// Whether only residues of the same chain are bonded.
    pub(in super::super) own_chain: bool,
}

impl BondInputs<'_> {
    pub(super) fn structure(&self, residue: usize) -> &StructureSpan {
        &self.structures[self.residues[residue].structure as usize]
    }

    /// The best bonds of each of a task's rows, as donor and as acceptor. A residue looks at all
    /// but the earlier ones of the task, whose searches have added their bonds to both.
    fn best_bonds(&self, rows: Range<usize>) -> Vec<[BestBonds; 2]> {
        let mut best = vec![[BestBonds::NONE; 2]; rows.len()];
        dispatch!(simd::level(), simd => {
            let (mut search, mut lanes_of_others) = (BondSearch::default(), ResidueLanes::default());
            for residue in rows.clone() {
                if self.peptides.hydrogens[residue][3] == INCOMPLETE {
                    continue;
                }
                let near = self.near(simd, &mut search, residue, rows.start..residue);
                add_bonds(simd, self.peptides, residue, near, &mut lanes_of_others, rows.start, &mut best);
            }
        });
        best
    }

    /// The residues that a residue may be bonded to: those whose C-alphas are within reach, of its
    /// chain if `own_chain`, except those in `done`, a range that ends before the residue.
    #[inline(always)]
    fn near<'a, S: Simd>(
        &self,
        simd: S,
        search: &'a mut BondSearch,
        residue: usize,
        done: Range<usize>,
    ) -> &'a [i32] {
        let (structure, point) = (self.structure(residue), self.atoms[residue].position.into());
        search.begin(&self.cells, &structure.residue_grid, point);
        let mut count = if is_followed(simd, &self.cells, structure) {
            search.find::<_, WHOLE_VECTORS>(simd, &self.cells, point, done)
        } else {
            search.find::<_, PARTIAL_VECTORS>(simd, &self.cells, point, done)
        };
        if self.own_chain {
            let chain = |residue: i32| self.residues[residue as usize].chain;
            let found = count;
            count = 0;
            for index in 0..found {
                if chain(search.near[index]) == chain(residue as i32) {
                    search.near[count] = search.near[index];
                    count += 1;
                }
            }
        }
        &search.near[..count]
    }
}

/// Searches for the acceptors of N-H.
#[derive(Default)]
pub(in super::super) struct Acceptors {
    search: BondSearch,
    lanes_of_others: ResidueLanes,
    /// Acceptors and energies in cal/mol.
    found: Vec<(usize, i32)>,
}

impl Acceptors {
    /// The acceptors of a residue's N-H, in their order, each with the energy of the bond in
    /// cal/mol; none if it has no hydrogen.
    pub(in super::super) fn acceptors_of(
        &mut self,
        inputs: &BondInputs<'_>,
        residue: usize,
    ) -> &[(usize, i32)] {
        self.found.clear();
        if inputs.peptides.hydrogens[residue][3] == DONOR {
            dispatch!(simd::level(), simd => self.find(simd, inputs, residue));
        }
        self.found.sort_unstable();
        &self.found
    }

    /// Appends the acceptors of a residue's N-H and the energies of these bonds to `found`. The O
    /// of the residue before it is none, as its C is bonded to N.
    #[inline(always)]
    fn find<S: Simd>(&mut self, simd: S, inputs: &BondInputs<'_>, residue: usize) {
        let peptides = inputs.peptides;
        let [x, y, z, _] = peptides.hydrogens[residue].map(|value| S::f32s::splat(simd, value));
        let (n, hydrogen) = (
            splat(simd, peptides.backbone[residue].n),
            PositionLanes { x, y, z },
        );
        let near = inputs.near(simd, &mut self.search, residue, residue..residue);
        for others in near.chunks(S::i32s::LEN) {
            self.lanes_of_others.fill(peptides, others);
            let (c, o) = (
                points(simd, &self.lanes_of_others.c),
                points(simd, &self.lanes_of_others.o),
            );
            let energies = bond_energies(simd, n, hydrogen, c, o);
            let wanted = first_lanes(simd, others.len());
            for_each_bond(simd, energies, wanted, |lane, energy| {
                let acceptor = others[lane] as usize;
                let can_accept =
                    peptides.hydrogens[acceptor][3] != INCOMPLETE && residue != acceptor + 1;
                if can_accept && energy < BOND_ENERGY {
                    self.found.push((acceptor, energy));
                }
            });
        }
    }
}

/// Whether a whole vector may be loaded from any of the structure's sorted atoms on.
#[inline(always)]
fn is_followed<S: Simd>(_: S, cells: &Cells<'_>, structure: &StructureSpan) -> bool {
    let end = structure.residue_start + structure.residue_count;
    end as usize + S::i32s::LEN <= cells.x.len()
}

/// Arguments of [`BondSearch::find`]: whether a whole vector of elements may be loaded from any sorted atom on.
const WHOLE_VECTORS: bool = true;
const PARTIAL_VECTORS: bool = false;

/// A search for residues.
#[derive(Default)]
struct BondSearch {
    /// The sorted C-alphas to look at.
    runs: Vec<Range<usize>>,
    /// The indices of the residues that were found, followed by unused elements.
    near: Vec<i32>,
}

impl BondSearch {
    /// Prepares the search: room for all candidates, and for a whole vector stored at their end.
    /// This is not part of `find`, because calls between its vector operations would spill
    /// registers.
    fn begin(&mut self, cells: &Cells<'_>, grid: &Grid, point: [i32; 3]) {
        self.runs.clear();
        self.runs.extend(cells.runs(grid, point, BOND_REACH));
        let candidates: usize = self.runs.iter().map(Range::len).sum();
        self.near
            .resize(self.near.len().max(candidates + LANES_MAX), 0);
    }

    /// Writes the residues whose C-alphas are within reach into `near`, and returns their number.
    /// The residue itself, `done.end`, and those in `done` are left out.
    #[inline(always)]
    fn find<S: Simd, const LOADS_WHOLE_VECTORS: bool>(
        &mut self,
        simd: S,
        cells: &Cells<'_>,
        [x, y, z]: [i32; 3],
        done: Range<usize>,
    ) -> usize {
        let sources: &[i32] = cast_slice(cells.source);
        let (first, residue) = (done.start as i32, done.end as i32);
        let load = |values: &[i32], first_lane: usize, lanes: usize| {
            if LOADS_WHOLE_VECTORS {
                S::i32s::from_slice(simd, &values[first_lane..first_lane + S::i32s::LEN])
            } else {
                load(simd, values, first_lane, lanes)
            }
        };
        let mut len = 0;
        for run in &self.runs {
            for (first_lane, lanes) in vectors(simd, run.clone()) {
                let dx = load(cells.x, first_lane, lanes) - x;
                let dy = load(cells.y, first_lane, lanes) - y;
                let dz = load(cells.z, first_lane, lanes) - z;
                let source = load(sources, first_lane, lanes);
                let within =
                    squared::<S>(dx, dy, dz, BOND_REACH).simd_lt((BOND_REACH * BOND_REACH) as u32);
                let is_wanted = source.simd_gt(residue) | source.simd_lt(first);
                let found = within & is_wanted & first_lanes(simd, lanes);
                source
                    .compress(found)
                    .store_slice(&mut self.near[len..len + S::i32s::LEN]);
                len += found.to_bitmask().count_ones() as usize;
            }
        }
        len
    }
}

/// Adds the bonds between `residue` and the residues `near` to the best bonds of both. `best` has
/// the bonds of the residues from `start` on; it does not change for partners before or behind
/// those, where the index wraps and is too large. The N-H of a residue and the O of the residue
/// before it are never bonded.
#[inline(always)]
fn add_bonds<S: Simd>(
    simd: S,
    peptides: Peptides<'_>,
    residue: usize,
    near: &[i32],
    lanes_of_others: &mut ResidueLanes,
    start: usize,
    best: &mut [[BestBonds; 2]],
) {
    let Backbone { n, c, o, .. } = peptides.backbone[residue];
    let [hx, hy, hz, kind] = peptides.hydrogens[residue];
    let (n, c, o) = (splat(simd, n), splat(simd, c), splat(simd, o));
    let hydrogen = PositionLanes {
        x: S::f32s::splat(simd, hx),
        y: S::f32s::splat(simd, hy),
        z: S::f32s::splat(simd, hz),
    };
    let kind_of = |residue: usize| peptides.hydrogens[residue][3];
    for others in near.chunks(S::i32s::LEN) {
        lanes_of_others.fill(peptides, others);
        let wanted = first_lanes(simd, others.len());
        if kind == DONOR {
            let (c, o) = (
                points(simd, &lanes_of_others.c),
                points(simd, &lanes_of_others.o),
            );
            let energies = bond_energies(simd, n, hydrogen, c, o);
            for_each_bond(simd, energies, wanted, |lane, energy| {
                let acceptor = others[lane] as usize;
                if kind_of(acceptor) != INCOMPLETE && residue != acceptor + 1 {
                    best[residue - start][0].add(energy, acceptor);
                    // The index of one before `start` wraps to one beyond the rows.
                    if let Some(best) = best.get_mut(acceptor.wrapping_sub(start)) {
                        best[1].add(energy, residue);
                    }
                }
            });
        }
        let others_hydrogens = PositionLanes {
            x: S::f32s::from_slice(simd, &lanes_of_others.hydrogen[0][..S::f32s::LEN]),
            y: S::f32s::from_slice(simd, &lanes_of_others.hydrogen[1][..S::f32s::LEN]),
            z: S::f32s::from_slice(simd, &lanes_of_others.hydrogen[2][..S::f32s::LEN]),
        };
        let energies = bond_energies(
            simd,
            points(simd, &lanes_of_others.n),
            others_hydrogens,
            c,
            o,
        );
        for_each_bond(simd, energies, wanted, |lane, energy| {
            let donor = others[lane] as usize;
            if kind_of(donor) == DONOR && donor != residue + 1 {
                best[residue - start][1].add(energy, donor);
                if let Some(best) = best.get_mut(donor.wrapping_sub(start)) {
                    best[0].add(energy, residue);
                }
            }
        });
    }
}

/// Calls `add` with each wanted lane whose energy is negative, and the energy: others attract
/// nothing, and are in no column.
#[inline(always)]
fn for_each_bond<S: Simd>(
    _: S,
    energies: S::i32s,
    wanted: S::mask32s,
    mut add: impl FnMut(usize, i32),
) {
    let mut energy_of = [0; LANES_MAX];
    energies.store_slice(&mut energy_of[..S::i32s::LEN]);
    let mut found = (energies.simd_lt(0) & wanted).to_bitmask();
    while found != 0 {
        let lane = found.trailing_zeros() as usize;
        add(lane, energy_of[lane]);
        found &= found - 1;
    }
}

/// Positions as vectors. The axes are written out, because closures would not be compiled for the
/// vectors in use.
#[derive(Clone, Copy)]
struct PositionLanes<V> {
    x: V,
    y: V,
    z: V,
}

#[inline(always)]
fn splat<S: Simd>(simd: S, position: Position) -> PositionLanes<S::i32s> {
    PositionLanes {
        x: S::i32s::splat(simd, position.x),
        y: S::i32s::splat(simd, position.y),
        z: S::i32s::splat(simd, position.z),
    }
}

#[inline(always)]
fn points<S: Simd>(simd: S, lanes: &[Lanes<i32>; 3]) -> PositionLanes<S::i32s> {
    PositionLanes {
        x: S::i32s::from_slice(simd, &lanes[0][..S::i32s::LEN]),
        y: S::i32s::from_slice(simd, &lanes[1][..S::i32s::LEN]),
        z: S::i32s::from_slice(simd, &lanes[2][..S::i32s::LEN]),
    }
}

/// Energies of hydrogen bonds in cal/mol, rounded half away from zero where they are negative:
/// 27.888 kcal/mol A (1/ON + 1/CH - 1/OH - 1/CN) (Kabsch and Sander 1983), and the lowest energy if
/// one of the four distances is below 0.5 A.
#[inline(always)]
fn bond_energies<S: Simd>(
    simd: S,
    n: PositionLanes<S::i32s>,
    hydrogen: PositionLanes<S::f32s>,
    c: PositionLanes<S::i32s>,
    o: PositionLanes<S::i32s>,
) -> S::i32s {
    let (no, ho) = squared_distances(simd, n, hydrogen, o);
    let (nc, hc) = squared_distances(simd, n, hydrogen, c);
    let too_close = no.min(nc).min(ho.min(hc)).simd_lt(500.0 * 500.0);
    // In cal/mol times 0.001 A.
    let coupling = S::f32s::splat(simd, -27_888_000.0);
    let energy =
        coupling / ho.sqrt() - coupling / hc.sqrt() + coupling / nc.sqrt() - coupling / no.sqrt();
    let rounded = S::i32s::truncate_from(energy - 0.5).max(ENERGY_MIN);
    too_close.select(S::i32s::splat(simd, ENERGY_MIN), rounded)
}

/// Squared distances of N, and of its hydrogen, from an atom. `hydrogen` is relative to N.
#[inline(always)]
fn squared_distances<S: Simd>(
    _: S,
    n: PositionLanes<S::i32s>,
    hydrogen: PositionLanes<S::f32s>,
    atom: PositionLanes<S::i32s>,
) -> (S::f32s, S::f32s) {
    let x = S::f32s::float_from(n.x - atom.x);
    let y = S::f32s::float_from(n.y - atom.y);
    let z = S::f32s::float_from(n.z - atom.z);
    let (hx, hy, hz) = (x + hydrogen.x, y + hydrogen.y, z + hydrogen.z);
    (x * x + y * y + z * z, hx * hx + hy * hy + hz * hz)
}
