//! Half-sphere exposure.

use super::cell_kind::CellKind;
use super::columns::{ColumnDecl, ColumnKind, NULL_COUNT, TableName, Tolerance};
use super::cpu::simd;
use super::cpu::simd::{first_lanes, in_same_chain, load, squared, vectors_of};
use super::cpu::split::for_row_ranges;
use super::cpu::vector::{Vector, cross, difference, dot};
use super::cutoff::Cutoff;
use super::feature::{About, Feature, SettingField, own_chain};
use super::kernels::Cells;
use super::kernels::{Twin, half_sphere_exposure, half_sphere_normal_a, half_sphere_normal_b};
use super::layout::{Atom, Backbone, RESIDUES, ResidueSpan, StructureSpan};
use super::recorder::FeatureRecorder;
use crate::record::Buffer;
use fearless_simd::dispatch;
use fearless_simd::prelude::*;
use std::ops::Range;

/// Settings of half-sphere exposure from C-alphas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HalfSphereA {
    /// Radius of the half spheres.
    pub radius: Cutoff,
    /// Whether only residues of the same chain are counted.
    pub own_chain: bool,
}

/// Settings of half-sphere exposure from C-betas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HalfSphereB {
    /// Radius of the half spheres.
    pub radius: Cutoff,
    /// Whether only residues of the same chain are counted.
    pub own_chain: bool,
}

/// The default of Biopython's `HSExposureCA` and `HSExposureCB`, which the columns are compared
/// with.
const RADIUS: Cutoff = Cutoff::of_angstrom(12);

impl Default for HalfSphereA {
    /// 12 A, all chains.
    fn default() -> Self {
        HalfSphereA {
            radius: RADIUS,
            own_chain: false,
        }
    }
}

impl Default for HalfSphereB {
    /// 12 A, all chains.
    fn default() -> Self {
        HalfSphereB {
            radius: RADIUS,
            own_chain: false,
        }
    }
}

/// Records the counts on either side of the planes, two columns.
fn record_counts(
    r: &mut FeatureRecorder<'_>,
    name: &str,
    normals: Buffer<f64>,
    (radius, own_chain): (Cutoff, bool),
) {
    let counts = r.results::<i32>(TableName::Residues, name, 2);
    let (ca, cells) = (r.ca(), r.cells(CellKind::Ca));
    let args = half_sphere_exposure::Args {
        header: r.header(),
        structures: r.structures(),
        residues: r.residues(),
        atoms: ca,
        cells,
        normals,
        counts: counts.buffer,
        radius: radius.milli_angstrom(),
        own_chain: u32::from(own_chain),
    };
    r.launch_warps(RESIDUES, args);
    r.column(counts, 0);
    r.column(counts, 1);
}

/// The columns of the counts on either side of a plane, of which a rotation of the structure may
/// change `turned` rows per thousand.
fn columns(
    name: &str,
    (radius, own_chain): (Cutoff, bool),
    plane: &str,
    turned: u32,
) -> Vec<ColumnDecl> {
    let column = |(side, what): (&str, &str)| {
        let scope = if own_chain { " of the chain" } else { "" };
        let about = format!(
            "C-alphas{scope} closer than {} A on the {what} side of the plane normal to {plane} \
             (Hamelryck 2005).",
            radius.angstrom()
        );
        ColumnDecl::residue(format!("{name}_{side}"), ColumnKind::Count, "", about)
            .rotation(Tolerance::EXACT.but_for(turned))
    };
    [("up", "side chain's"), ("down", "other")]
        .map(column)
        .to_vec()
}

impl Feature for HalfSphereA {
    fn about(&self) -> About {
        About {
            summary: "C-alphas near, on either side of the plane that bisects the directions \
                      from the neighbouring C-alphas.",
            formula: "up: d < R and d . (u + v) > 0, with u and v the unit vectors from CA(i-1) \
                      and CA(i+1) to CA(i); down: the others with d < R",
            source: "Hamelryck 2005, Proteins 59:38",
            needs: &[],
        }
    }

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![
            (
                "hse_a.radius",
                SettingField::Length(&mut self.radius, Cutoff::MAX_ANGSTROM),
            ),
            ("hse_a.chains", own_chain(&mut self.own_chain)),
        ]
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        columns(
            "hse_a",
            (self.radius, self.own_chain),
            "the bisector of the neighbouring C-alphas",
            5,
        )
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        let normals = r.device::<f64>("hse_a_normals", RESIDUES, 3);
        let args = half_sphere_normal_a::Args {
            header: r.header(),
            structures: r.structures(),
            residues: r.residues(),
            atoms: r.ca(),
            normals,
        };
        r.launch_threads(RESIDUES, args);
        record_counts(r, "hse_a", normals, (self.radius, self.own_chain));
    }
}

impl Feature for HalfSphereB {
    fn about(&self) -> About {
        About {
            summary: "C-alphas near, on either side of the plane normal to the direction from \
                      C-alpha to C-beta.",
            formula: "up: d < R and d . (CB - CA) > 0; down: the others with d < R; for glycine \
                      N turned by -120 degrees about the axis from CA to C stands for CB; null \
                      for others without CB",
            source: "Hamelryck 2005, Proteins 59:38",
            needs: &[],
        }
    }

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![
            (
                "hse_b.radius",
                SettingField::Length(&mut self.radius, Cutoff::MAX_ANGSTROM),
            ),
            ("hse_b.chains", own_chain(&mut self.own_chain)),
        ]
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        // The direction of a bond of 1.5 A decides the sides, and rounding to 0.001 A changes it
        // most.
        let plane = "the direction from C-alpha to C-beta";
        columns("hse_b", (self.radius, self.own_chain), plane, 10)
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        let normals = r.device::<f64>("hse_b_normals", RESIDUES, 3);
        let args = half_sphere_normal_b::Args {
            header: r.header(),
            residues: r.residues(),
            backbones: r.backbone(),
            betas: r.cb(),
            normals,
        };
        r.launch_threads(RESIDUES, args);
        record_counts(r, "hse_b", normals, (self.radius, self.own_chain));
    }
}

/// Computes directions from the C-alphas of the two neighbours: the sum of both unit vectors, times
/// both lengths, as only the direction counts. NaN across a break, and where a C-alpha is missing.
impl Twin for half_sphere_normal_a::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            residues,
            atoms,
            normals,
        } = self;
        let structures = StructureSpan::live(header, structures);

        let normal = |residue: usize| -> Option<Vector> {
            let all = structures[residues[residue].structure as usize].residues();
            let inside = residue > all.start && residue + 1 < all.end;
            let is_linked = |residue: usize| residues[residue].is(ResidueSpan::LINKED);
            if !inside || !is_linked(residue) || !is_linked(residue + 1) {
                return None;
            }
            let around = &atoms[residue - 1..=residue + 1];
            if !around.iter().all(Atom::is_present) {
                return None;
            }
            let [before, after] =
                [0, 2].map(|other| difference(around[1].position, around[other].position));
            let before_norm = dot(before, before).sqrt();
            let after_norm = dot(after, after).sqrt();
            let sum = |axis: usize| before[axis] * after_norm + after[axis] * before_norm;
            (before_norm > 0.0 && after_norm > 0.0).then(|| std::array::from_fn(sum))
        };
        let normals = &mut normals[..header[RESIDUES] as usize * 3];
        for_row_ranges(normals, 3, |rows, normals| {
            for (residue, out) in rows.zip(normals.chunks_exact_mut(3)) {
                out.copy_from_slice(&normal(residue).unwrap_or([f64::NAN; 3]));
            }
        });
    }
}

/// The sine of -120 degrees.
const SINE: f64 = -0.8660254037844386;

/// Computes directions from C-alpha to C-beta; NaN where there is none.
impl Twin for half_sphere_normal_b::Views<'_> {
    fn run(self) {
        let Self {
            header,
            residues,
            backbones,
            betas,
            normals,
        } = self;
        let normal = |residue: usize| -> Option<Vector> {
            let backbone = &backbones[residue];
            if !residues[residue].is(ResidueSpan::PRESENT) || !backbone.ca.is_present() {
                return None;
            }
            let up = if residues[residue].aa == b'G' {
                turned(backbone)?
            } else {
                // A C-beta that the file has is of a side chain; a built one is not.
                let beta =
                    Some(&betas[residue]).filter(|beta| beta.is_present() && beta.tag.is_side())?;
                difference(beta.position, backbone.ca)
            };
            (dot(up, up) > 0.0).then_some(up)
        };
        let normals = &mut normals[..header[RESIDUES] as usize * 3];
        for_row_ranges(normals, 3, |rows, normals| {
            for (residue, out) in rows.zip(normals.chunks_exact_mut(3)) {
                out.copy_from_slice(&normal(residue).unwrap_or([f64::NAN; 3]));
            }
        });
    }
}

/// N turned by -120 degrees about the axis from C-alpha to C, seen from C-alpha, by Rodrigues'
/// formula with a cosine of -0.5; `None` if N or C is missing, or C lies on C-alpha.
fn turned(backbone: &Backbone) -> Option<Vector> {
    if !backbone.n.is_present() || !backbone.c.is_present() {
        return None;
    }
    let n = difference(backbone.n, backbone.ca);
    let axis = difference(backbone.c, backbone.ca);
    let square = dot(axis, axis);
    let across = SINE / square.sqrt();
    let along = 1.5 * dot(axis, n) / square;
    let turn = cross(axis, n);
    let turned = |i: usize| -0.5 * n[i] + across * turn[i] + along * axis[i];
    (square > 0.0).then(|| std::array::from_fn(turned))
}

/// Counts the C-alphas within the radius on either side of the residue's plane.
impl Twin for half_sphere_exposure::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            residues,
            atoms,
            cells,
            normals,
            counts,
            radius,
            own_chain,
        } = self;
        let structures = StructureSpan::live(header, structures);

        let counts = &mut counts[..header[RESIDUES] as usize * 2];
        for_row_ranges(counts, 2, |rows, counts| {
            dispatch!(simd::level(), simd => {
                for (residue, counts) in rows.zip(counts.chunks_exact_mut(2)) {
                    let normal = [normals[3 * residue], normals[3 * residue + 1], normals[3 * residue + 2]];
                    if !atoms[residue].is_present() || normal[0].is_nan() {
                        counts.fill(NULL_COUNT);
                        continue;
                    }
                    let grid = &structures[residues[residue].structure as usize].residue_grid;
                    let atom = &atoms[residue];
                    let runs = cells.runs(grid, atom.position.into(), radius as i32);
                    let within = (radius, own_chain != 0);
                    let (near, above) = count(simd, &cells, runs, atom, normal, within);
                    // Leaves out the residue itself, which is near and not above.
                    counts.copy_from_slice(&[above, near - above - 1]);
                }
            });
        });
    }
}

/// The numbers of atoms that are within `radius` of an atom, and of those above the plane through
/// it with normal `n`.
#[inline(always)]
fn count<S: Simd>(
    simd: S,
    cells: &Cells<'_>,
    runs: impl Iterator<Item = Range<usize>>,
    atom: &Atom,
    [nx, ny, nz]: [f64; 3],
    (radius, own_chain): (u32, bool),
) -> (i32, i32) {
    let point = atom.position;
    let (mut near, mut above) = (0, 0);
    for (first, lanes) in vectors_of(simd, runs) {
        let dx = load(simd, cells.x, first, lanes) - point.x;
        let dy = load(simd, cells.y, first, lanes) - point.y;
        let dz = load(simd, cells.z, first, lanes) - point.z;
        let d2 = squared::<S>(dx, dy, dz, radius as i32);
        let mut within = d2.simd_lt(radius * radius) & first_lanes(simd, lanes);
        if own_chain {
            within &= in_same_chain(simd, cells.tag, first, lanes, atom.tag);
        }
        let within = within.to_bitmask();
        if within == 0 {
            continue;
        }
        // The differences are exact within the radius.
        let [x, y, z] = [dx, dy, dz].map(|d| d.to_float::<S::f32s>().widen());
        let up = |x: S::f64s, y: S::f64s, z: S::f64s| {
            (x * nx + y * ny + z * nz).simd_gt(0.0).to_bitmask()
        };
        let up = up(x.0, y.0, z.0) | up(x.1, y.1, z.1) << S::f64s::LEN;
        near += within.count_ones() as i32;
        above += (within & up).count_ones() as i32;
    }
    (near, above)
}
