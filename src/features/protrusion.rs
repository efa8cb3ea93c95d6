//! Protrusion.

use super::cell_kind::CellKind;
use super::columns::{ColumnDecl, ColumnKind, TableName, Tolerance};
use super::cpu::simd;
use super::cpu::simd::{first_lanes, load, squared, vectors_of};
use super::cpu::split::for_row_ranges;
use super::cutoff::Cutoff;
use super::feature::{About, Feature, SettingField, own_chain};
use super::kernels::Cells;
use super::kernels::{Twin, protrusion, protrusion_own_chain};
use super::layout::{Atom, Position, REACH, RESIDUES, ResidueSpan, StructureSpan};
use super::recorder::FeatureRecorder;
use fearless_simd::dispatch;
use fearless_simd::prelude::*;
use std::ops::Range;

/// The mean volume of an atom in proteins, in A^3 (Pintar et al. 2002).
const ATOM_VOLUME: f64 = 20.1;

/// Settings of protrusion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protrusion {
    /// Radius of the sphere around each atom.
    pub radius: Cutoff,
    /// Whether only atoms of the same chain fill the sphere.
    pub own_chain: bool,
}

impl Default for Protrusion {
    /// 10 A, all chains.
    fn default() -> Self {
        Protrusion {
            radius: Cutoff::of_angstrom(10),
            own_chain: false,
        }
    }
}

impl Feature for Protrusion {
    fn about(&self) -> About {
        About {
            summary: "How little of a sphere around each atom other atoms fill.",
            formula: "cx = (V - n V_a) / (n V_a), V the volume of the sphere, n the heavy atoms \
                      of the model in it, itself included, V_a = 20.1 A^3",
            source: "Pintar et al. 2002, Bioinformatics 18:980",
            needs: &[],
        }
    }

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![
            (
                "protrusion.radius",
                SettingField::Length(&mut self.radius, Cutoff::MAX_ANGSTROM),
            ),
            ("protrusion.chains", own_chain(&mut self.own_chain)),
        ]
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let column = |(name, which): (&str, &str)| {
            let radius = self.radius.angstrom();
            let filled = if self.own_chain {
                "volume filled by the chain"
            } else {
                "filled volume"
            };
            let about = format!(
                "{which} over the residue's heavy atoms of the free over the {filled} \
                 within {radius} A (Pintar et al. 2002)."
            );
            // An atom more or less in a sphere of hundreds changes its ratio by about 0.01.
            ColumnDecl::residue(name, ColumnKind::Real, "", about)
                .rotation(Tolerance::absolute(0.03).but_for(5))
        };
        [("cx_mean", "Mean"), ("cx_max", "Maximum")]
            .map(column)
            .to_vec()
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        let cx = r.results::<f32>(TableName::Residues, "cx", 2);
        let (structures, residues, atoms) = (r.structures(), r.residues(), r.atoms());
        let sphere_volume = 4.0 / 3.0 * std::f64::consts::PI * self.radius.angstrom().powi(3);
        let (header, cells) = (r.header(), r.cells(CellKind::Atoms));
        let radius = self.radius.milli_angstrom();
        if self.own_chain {
            let args = protrusion_own_chain::Args {
                header,
                structures,
                residues,
                atoms,
                cells,
                cx: cx.buffer,
                radius,
                sphere_volume,
                atom_volume: ATOM_VOLUME,
            };
            r.launch_warps(RESIDUES, args);
        } else {
            let args = protrusion::Args {
                header,
                structures,
                residues,
                atoms,
                cells,
                cx: cx.buffer,
                radius,
                sphere_volume,
                atom_volume: ATOM_VOLUME,
            };
            r.launch_warps(RESIDUES, args);
        }
        r.column(cx, 0);
        r.column(cx, 1);
    }
}

/// For each residue the mean and the largest ratio of free to filled volume around its atoms.
impl Twin for protrusion::Views<'_> {
    fn run(self) {
        let spheres = Spheres {
            structures: StructureSpan::live(self.header, self.structures),
            residues: self.residues,
            atoms: self.atoms,
            cells: &self.cells,
            radius: self.radius,
            volumes: [self.sphere_volume, self.atom_volume],
        };
        spheres.write::<ALL_CHAINS>(&mut self.cx[..self.header[RESIDUES] as usize * 2]);
    }
}

/// The same, where only atoms of the residue's chain fill the volume.
impl Twin for protrusion_own_chain::Views<'_> {
    fn run(self) {
        let spheres = Spheres {
            structures: StructureSpan::live(self.header, self.structures),
            residues: self.residues,
            atoms: self.atoms,
            cells: &self.cells,
            radius: self.radius,
            volumes: [self.sphere_volume, self.atom_volume],
        };
        spheres.write::<OWN_CHAIN>(&mut self.cx[..self.header[RESIDUES] as usize * 2]);
    }
}

/// Arguments of [`Spheres::write`]: which atoms fill a sphere.
const OWN_CHAIN: bool = true;
const ALL_CHAINS: bool = false;

/// Arguments of [`atoms_within`]: whether differences of coordinates are clamped before they are squared.
const CLAMPED: bool = true;
const UNCLAMPED: bool = false;

/// The spheres around atoms.
struct Spheres<'a> {
    structures: &'a [StructureSpan],
    residues: &'a [ResidueSpan],
    atoms: &'a [Atom],
    cells: &'a Cells<'a>,
    radius: u32,
    /// The volume of a sphere, and that of an atom.
    volumes: [f64; 2],
}

impl Spheres<'_> {
    /// Writes the mean and the largest ratio of each residue, `[residues, 2]`.
    fn write<const IS_OWN_CHAIN: bool>(&self, cx: &mut [f32]) {
        let (cells, radius) = (self.cells, self.radius);
        let [sphere_volume, atom_volume] = self.volumes;
        for_row_ranges(cx, 2, |rows, cx| {
            dispatch!(simd::level(), simd => {
                for (row, cx) in rows.zip(cx.chunks_exact_mut(2)) {
                    let residue = &self.residues[row];
                    if residue.atom_count == 0 {
                        cx.fill(f32::NAN);
                        continue;
                    }
                    let grid = &self.structures[residue.structure as usize].atom_grid;
                    // In a grid that does not wrap a candidate is within the radius and a cell, and the squares
                    // of such short differences do not overflow.
                    let is_clamped = grid.wraps() || radius + (1 << grid.shift) > REACH;
                    let (mut sum, mut largest) = (0.0, f64::NEG_INFINITY);
                    for atom in &self.atoms[residue.atoms()] {
                        let point = atom.position;
                        let runs = cells.runs(grid, point.into(), radius as i32);
                        let near = if IS_OWN_CHAIN {
                            let mut near = 0;
                            cells.each_within(simd, runs, atom, radius, true, |_| near += 1);
                            near
                        } else if is_clamped {
                            atoms_within::<_, CLAMPED>(simd, cells, runs, point, radius)
                        } else {
                            atoms_within::<_, UNCLAMPED>(simd, cells, runs, point, radius)
                        };
                        let filled = f64::from(near) * atom_volume;
                        let free_to_filled = (sphere_volume - filled) / filled;
                        sum += free_to_filled;
                        largest = free_to_filled.max(largest);
                    }
                    let mean = sum / f64::from(residue.atom_count);
                    cx.copy_from_slice(&[mean as f32, largest as f32]);
                }
            });
        });
    }
}

/// The number of atoms in `runs` that are closer than `radius` to `point`, in 0.001 A.
#[inline(always)]
fn atoms_within<S: Simd, const IS_CLAMPED: bool>(
    simd: S,
    cells: &Cells<'_>,
    runs: impl Iterator<Item = Range<usize>>,
    point: Position,
    radius: u32,
) -> u32 {
    let mut near = 0;
    for (first, lanes) in vectors_of(simd, runs) {
        let dx = load(simd, cells.x, first, lanes) - point.x;
        let dy = load(simd, cells.y, first, lanes) - point.y;
        let dz = load(simd, cells.z, first, lanes) - point.z;
        let d2 = if IS_CLAMPED {
            squared::<S>(dx, dy, dz, radius as i32)
        } else {
            (dx * dx + dy * dy + dz * dz).bitcast()
        };
        let within = d2.simd_lt(radius * radius) & first_lanes(simd, lanes);
        near += within.to_bitmask().count_ones();
    }
    near
}
