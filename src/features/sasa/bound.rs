//! Areas in the model with ligands, ions and glycans.

use super::super::cell_kind::CellKind;
use super::super::columns::TableName;
use super::super::cpu::simd;
use super::super::cpu::split::for_row_ranges;
use super::super::kernels::{Twin, glycan_sasa_delta, ligand_areas, sasa};
use super::super::layout::{LIGANDS, RESIDUES, StructureSpan};
use super::super::recorder::FeatureRecorder;
use super::super::results::Results;
use super::neighbours::Neighbours;
use super::others::{AllExcept, Glycans};
use super::shrake_rupley::{AreaInputs, Areas, Sphere, areas_of};
use super::{Sasa, shared_areas};
use fearless_simd::dispatch;

/// Areas in the model with the atoms of ligands, ions and glycans, `[residues, 3]` in A^2: of all
/// atoms, of the side chain and of the polar atoms; NaN for a residue without atoms.
pub(in crate::features) fn bound_areas(r: &mut FeatureRecorder<'_>) -> Results<f32> {
    let points = shared_areas(r).points;
    let settings: &Sasa = r.settings();
    let cells = r.cells(CellKind::BoundAtoms);
    let areas = r.results(TableName::Residues, "bound_areas", 3);
    let args = sasa::Args {
        header: r.header(),
        structures: r.structures(),
        residues: r.residues(),
        atoms: r.bound_atoms(),
        cells,
        areas: areas.buffer,
        first: points as u32,
        points: settings.points,
        probe: settings.kernel_probe(),
    };
    r.launch_warps(RESIDUES, args);
    areas
}

/// The area that glycans bury, `[residues]` in A^2: the area in the polymer less the area in the
/// polymer with its glycans; NaN for a residue without atoms.
pub(in crate::features) fn glycan_deltas(r: &mut FeatureRecorder<'_>) -> Results<f32> {
    let points = shared_areas(r).points;
    let settings: &Sasa = r.settings();
    let cells = r.cells(CellKind::BoundAtoms);
    let deltas = r.results(TableName::Residues, "glycan_deltas", 1);
    let args = glycan_sasa_delta::Args {
        header: r.header(),
        structures: r.structures(),
        residues: r.residues(),
        atoms: r.bound_atoms(),
        cells,
        deltas: deltas.buffer,
        first: points as u32,
        points: settings.points,
        probe: settings.kernel_probe(),
    };
    r.launch_warps(RESIDUES, args);
    deltas
}

/// The area of each ligand alone, and the part of it that the rest of the model buries, `[ligands,
/// 2]` in A^2; NaN for a ligand without atoms.
pub(in crate::features) fn ligand_areas(r: &mut FeatureRecorder<'_>) -> Results<f32> {
    let points = shared_areas(r).points;
    let settings: &Sasa = r.settings();
    let cells = r.cells(CellKind::BoundAtoms);
    let areas = r.results(TableName::Ligands, "ligand_areas", 2);
    let args = ligand_areas::Args {
        header: r.header(),
        structures: r.structures(),
        ligands: r.ligands(),
        atoms: r.bound_atoms(),
        cells,
        areas: areas.buffer,
        first: points as u32,
        points: settings.points,
        probe: settings.kernel_probe(),
    };
    r.launch_warps(LIGANDS, args);
    areas
}

/// Computes the areas of residues that glycans bury.
impl Twin for glycan_sasa_delta::Views<'_> {
    fn run(self) {
        let structures = StructureSpan::live(self.header, self.structures);
        let inputs = AreaInputs {
            structures: self.structures,
            residues: self.residues,
            atoms: self.atoms,
            cells: self.cells,
        };
        let sphere = Sphere::in_header(self.header, self.first, self.points, self.probe);
        let deltas = &mut self.deltas[..self.header[RESIDUES] as usize];
        for_row_ranges(deltas, 1, |rows, deltas| {
            let mut scratch = Neighbours::new();
            dispatch!(simd::level(), simd => {
                for (row, delta) in rows.zip(deltas) {
                    let residue = &inputs.residues[row];
                    let glycans = structures[residue.structure as usize].glycan_atoms();
                    *delta = if residue.atom_count > 0 && glycans.is_empty() {
                        0.0
                    } else {
                        let glycans = Glycans::new(glycans);
                        areas_of(simd, &inputs, &sphere, row, glycans, &mut scratch).delta
                    };
                }
            });
        });
    }
}

/// Computes the areas of ligands alone, and what the rest of the model buries of them.
impl Twin for ligand_areas::Views<'_> {
    fn run(self) {
        let inputs = AreaInputs {
            structures: self.structures,
            residues: self.ligands,
            atoms: self.atoms,
            cells: self.cells,
        };
        let sphere = Sphere::in_header(self.header, self.first, self.points, self.probe);
        let areas = &mut self.areas[..2 * self.header[LIGANDS] as usize];
        for_row_ranges(areas, 2, |rows, areas| {
            let mut scratch = Neighbours::new();
            dispatch!(simd::level(), simd => {
                for (residue, areas) in rows.zip(areas.chunks_exact_mut(2)) {
                    let others = AllExcept::new(inputs.residues[residue].atoms());
                    let Areas { alone, delta, .. } =
                        areas_of(simd, &inputs, &sphere, residue, others, &mut scratch);
                    areas.copy_from_slice(&[alone, delta]);
                }
            });
        });
    }
}
