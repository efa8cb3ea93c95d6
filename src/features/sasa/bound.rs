//! Areas in the model with ligands, ions and glycans.

use super::super::cell_kind::CellKind;
use super::super::columns::TableName;
use super::super::cpu::simd;
use super::super::cpu::split::for_row_ranges;
use super::super::kernels::{
    Twin, glycan_sasa_delta, glycan_sasa_delta_slices, ligand_areas, ligand_areas_slices, sasa,
    sasa_slices,
};
use super::super::layout::{LIGANDS, RESIDUES, StructureSpan};
use super::super::recorder::FeatureRecorder;
use super::super::results::KernelResults;
use super::lee_richards::Slices;
use super::neighbours::Neighbours;
use super::others::{AllExcept, Glycans};
use super::shrake_rupley::{AreaInputs, Areas, Sphere, areas_of};
use super::{Sasa, SasaAlgorithm, area_twins, test_points, with_area_args};
use fearless_simd::dispatch;

/// Records the launch that computes areas in the model with the atoms of ligands, ions and glycans,
/// `[residues, 3]` in A^2: of all atoms, of the side chain and of the polar atoms; NaN for a
/// residue without atoms.
pub(in crate::features) fn bound_areas(r: &mut FeatureRecorder<'_>) -> KernelResults<f32> {
    let cells = r.cells(CellKind::BoundAtoms);
    let areas = r.results(TableName::Residues, "bound_areas", 3);
    with_area_args!(r, [sasa, sasa_slices] {
        header: r.header(),
        structures: r.structures(),
        residues: r.residues(),
        atoms: r.bound_atoms(),
        cells,
        areas: areas.buffer
    }, |args| r.launch_warps(RESIDUES, args));
    areas
}

/// Records the launch that computes the area that glycans bury, `[residues]` in A^2: the area in
/// the polymer less the area in the polymer with its glycans; NaN for a residue without atoms.
pub(in crate::features) fn glycan_deltas(r: &mut FeatureRecorder<'_>) -> KernelResults<f32> {
    let cells = r.cells(CellKind::BoundAtoms);
    let deltas = r.results(TableName::Residues, "glycan_deltas", 1);
    with_area_args!(r, [glycan_sasa_delta, glycan_sasa_delta_slices] {
        header: r.header(),
        structures: r.structures(),
        residues: r.residues(),
        atoms: r.bound_atoms(),
        cells,
        deltas: deltas.buffer
    }, |args| r.launch_warps(RESIDUES, args));
    deltas
}

/// Records the launch that computes the area of each ligand alone, and the part of it that the rest
/// of the model buries, `[ligands, 2]` in A^2; NaN for a ligand without atoms.
pub(in crate::features) fn ligand_areas(r: &mut FeatureRecorder<'_>) -> KernelResults<f32> {
    let cells = r.cells(CellKind::BoundAtoms);
    let areas = r.results(TableName::Ligands, "ligand_areas", 2);
    with_area_args!(r, [ligand_areas, ligand_areas_slices] {
        header: r.header(),
        structures: r.structures(),
        ligands: r.ligands(),
        atoms: r.bound_atoms(),
        cells,
        areas: areas.buffer
    }, |args| r.launch_warps(LIGANDS, args));
    areas
}

// Computes the areas of residues that glycans bury.
area_twins!(
    [glycan_sasa_delta, glycan_sasa_delta_slices],
    |views, surface| {
        let structures = StructureSpan::live(views.header, views.structures);
        let inputs = AreaInputs {
            structures: views.structures,
            residues: views.residues,
            atoms: views.atoms,
            cells: views.cells,
        };
        let deltas = &mut views.deltas[..views.header[RESIDUES] as usize];
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
                        areas_of(simd, &inputs, &surface, row, glycans, &mut scratch).delta
                    };
                }
            });
        });
    }
);

// Computes the areas of ligands alone, and what the rest of the model buries of them.
area_twins!([ligand_areas, ligand_areas_slices], |views, surface| {
    let inputs = AreaInputs {
        structures: views.structures,
        residues: views.ligands,
        atoms: views.atoms,
        cells: views.cells,
    };
    let areas = &mut views.areas[..2 * views.header[LIGANDS] as usize];
    for_row_ranges(areas, 2, |rows, areas| {
        let mut scratch = Neighbours::new();
        dispatch!(simd::level(), simd => {
            for (residue, areas) in rows.zip(areas.chunks_exact_mut(2)) {
                let others = AllExcept::new(inputs.residues[residue].atoms());
                let Areas { alone, delta, .. } =
                    areas_of(simd, &inputs, &surface, residue, others, &mut scratch);
                areas.copy_from_slice(&[alone, delta]);
            }
        });
    });
});
