//! The table of atoms, with the area of each.

use super::super::cell_kind::CellKind;
use super::super::columns::{ColumnDecl, ColumnKind, TableName};
use super::super::cpu::simd;
use super::super::cpu::split::parts;
use super::super::feature::{About, Feature, SettingField};
use super::super::kernels::{Twin, atom_sasa, atom_sasa_slices};
use super::super::layout::{LIGANDS, RESIDUES};
use super::super::recorder::FeatureRecorder;
use super::super::results::KernelResults;
use super::lee_richards::Slices;
use super::neighbours::{AtomGroup, Neighbours};
use super::others::NoneOfChain;
use super::shrake_rupley::{GROUP_EDGE, Sphere, Surface};
use super::{
    AREA_ROTATION, AREA_TOLERANCE, Sasa, SasaAlgorithm, area_twins, test_points, with_area_args,
};
use fearless_simd::dispatch;
use rayon::prelude::*;

/// Settings of the table of atoms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Atoms {
    /// Whether there is a table of atoms. If not, the feature has no columns.
    pub keep: bool,
}

impl Feature for Atoms {
    fn about(&self) -> About {
        About {
            summary: "The table of atoms: name, radius, position and area of each; only with \
                      `atoms = true`.",
            formula: "sasa = the atom's term in the sum over a residue's atoms, by sasa.algorithm; \
                      sasa_bound: the same in the model with ligands, ions and glycans, only with \
                      `ligands = \"keep\"`",
            // That of `sasa`: see `FeatureConfig::about`.
            source: "",
            needs: &["sasa"],
        }
    }

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![("atoms", SettingField::Flag(&mut self.keep))]
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        if !self.keep {
            return Vec::new();
        }
        vec![atom_area(
            "sasa",
            "Solvent-accessible area of the atom, in the model or, with `sasa.chains = \"own\"`, in its \
             chain alone; null for atoms of ligands.",
        )]
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        if self.keep {
            let settings: &Sasa = r.settings();
            let areas = r.nulls_unless_written(TableName::Atoms, "atom_areas", 1);
            record_areas(
                r,
                areas,
                MeasuredAtoms::Residues(CellKind::Atoms),
                settings.own_chain,
            );
            r.column(areas, 0);
        }
    }
}

/// A column of areas in the table of atoms.
fn atom_area(name: &str, about: &str) -> ColumnDecl {
    ColumnDecl::residue(name, ColumnKind::Real, "A^2", about)
        .in_table(TableName::Atoms)
        .reference(AREA_TOLERANCE)
        .rotation(AREA_ROTATION)
}

/// The column of [`bound_atom_areas`].
pub(in crate::features) fn bound_atom_area() -> ColumnDecl {
    atom_area(
        "sasa_bound",
        "Solvent-accessible area of the atom in the model with its ligands, ions and glycans.",
    )
}

/// Areas of the atoms of residues and of ligands in the model with ligands, ions and glycans,
/// `[atoms]` in A^2; null for atoms of neither.
pub(in crate::features) fn bound_atom_areas(r: &mut FeatureRecorder<'_>) -> KernelResults<f32> {
    let areas = r.nulls_unless_written(TableName::Atoms, "bound_atom_areas", 1);
    record_areas(
        r,
        areas,
        MeasuredAtoms::Residues(CellKind::BoundAtoms),
        false,
    );
    record_areas(r, areas, MeasuredAtoms::Ligands, false);
    areas
}

/// The atoms whose areas a launch computes.
enum MeasuredAtoms {
    /// Those of residues, among these atoms.
    Residues(CellKind),
    /// Those of ligands.
    Ligands,
}

/// Launches the kernel that computes the areas of some atoms, in the model or in their chain alone.
fn record_areas(
    r: &mut FeatureRecorder<'_>,
    areas: KernelResults<f32>,
    part: MeasuredAtoms,
    own_chain: bool,
) {
    let (axis, kind) = match part {
        MeasuredAtoms::Residues(kind) => (RESIDUES, kind),
        MeasuredAtoms::Ligands => (LIGANDS, CellKind::BoundAtoms),
    };
    let cells = r.cells(kind);
    let residues = match part {
        MeasuredAtoms::Residues(_) => r.residues(),
        MeasuredAtoms::Ligands => r.ligands(),
    };
    let atoms = match kind {
        CellKind::BoundAtoms => r.bound_atoms(),
        _ => r.atoms(),
    };
    with_area_args!(r, [atom_sasa, atom_sasa_slices] {
        header: r.header(),
        structures: r.structures(),
        residues,
        atoms,
        cells,
        areas: areas.buffer,
        axis: axis as u32,
        own_chain: u32::from(own_chain)
    }, |args| r.launch_warps(axis, args));
}

// Computes the areas of the atoms of residues or of ligands.
area_twins!([atom_sasa, atom_sasa_slices], |views, surface| {
    let mut residues: Vec<_> = views.residues[..views.header[views.axis as usize] as usize]
        .iter()
        .collect();
    // The atoms of glycans come before those of other ligands.
    residues.sort_by_key(|residue| residue.atom_start);
    let ranges = residues.iter().map(|residue| residue.atoms());
    let of_residues = parts(views.areas, ranges).zip(residues);
    of_residues.for_each_init(Neighbours::new, |scratch, (areas, residue)| {
        let grid = &views.structures[residue.structure as usize].atom_grid;
        let others = NoneOfChain {
            chain: (views.own_chain != 0).then_some(residue.chain),
        };
        let first = residue.atoms().start;
        dispatch!(simd::level(), simd => {
            let mut rest = residue.atoms();
            while !rest.is_empty() {
                let group = AtomGroup::first_of(&views.atoms[rest.clone()], GROUP_EDGE);
                scratch.gather(simd, &views.cells, grid, &group, &surface, others);
                for index in rest.start..rest.start + group.len {
                    let atom = &views.atoms[index];
                    let [_, open] = surface.open(simd, index, atom, others, scratch);
                    let unit = u64::from(atom.tag.radius_milli() + surface.probe()).pow(2);
                    areas[index - first] = surface.angstrom2(unit * open);
                }
                rest.start += group.len;
            }
        });
    });
});
