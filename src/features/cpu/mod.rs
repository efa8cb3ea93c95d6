//! The kernels' CPU twins, a file each, named as in `kernels/`. A twin does the
//! same arithmetic in the same order, and every operation in use is rounded
//! correctly on both sides, so that results are equal in every bit.

mod amide_hydrogens;
mod angles;
mod atom_residue;
mod b_factors;
mod bonds;
mod bridge_partners;
mod ca_geometry;
mod cell_count;
mod cell_fill;
mod cell_scan;
mod cells;
mod chain_radius_of_gyration;
mod chain_range;
mod class_fractions;
mod cluster_join;
mod cluster_number;
mod cluster_start;
mod coincident_pairs;
mod contact_list;
mod contact_number;
mod contact_order;
mod eigenvector;
mod fused;
mod half_sphere_exposure;
mod half_sphere_normal_a;
mod half_sphere_normal_b;
mod hydrogen_bonds;
mod ladders;
mod narrow;
mod narrow_bf16;
mod narrow_f16;
mod nearest_chain;
mod neighbours;
mod plddt;
mod protrusion;
mod radius;
mod radius_of_gyration;
mod relative_contact_order;
mod rows;
mod rsa;
mod sasa;
mod sasa_delta;
mod secondary_structure;
mod shrake_rupley;
mod simd;
mod smooth;
mod split;
mod sum_of_rows;
mod torsions;
mod vector;
mod weighted_contact_number;

pub(super) use amide_hydrogens::amide_hydrogens;
pub(super) use atom_residue::atom_residue;
pub(super) use b_factors::b_factors;
pub(super) use bridge_partners::bridge_partners;
pub(super) use ca_geometry::ca_geometry;
pub(super) use cell_count::cell_count;
pub(super) use cell_fill::cell_fill;
pub(super) use cell_scan::cell_scan;
pub(super) use chain_radius_of_gyration::chain_radius_of_gyration;
pub(super) use chain_range::chain_range;
pub(super) use class_fractions::class_fractions;
pub(super) use cluster_join::cluster_join;
pub(super) use cluster_number::cluster_number;
pub(super) use cluster_start::cluster_start;
pub(super) use coincident_pairs::coincident_pairs;
pub(super) use contact_list::contact_list;
pub(super) use contact_number::contact_number;
pub(super) use contact_order::contact_order;
pub(super) use eigenvector::eigenvector;
pub(super) use fused::fused;
pub(super) use half_sphere_exposure::half_sphere_exposure;
pub(super) use half_sphere_normal_a::half_sphere_normal_a;
pub(super) use half_sphere_normal_b::half_sphere_normal_b;
pub(super) use hydrogen_bonds::hydrogen_bonds;
pub(super) use ladders::ladders;
pub(super) use narrow_bf16::narrow_bf16;
pub(super) use narrow_f16::narrow_f16;
pub(super) use nearest_chain::nearest_chain;
pub(super) use plddt::plddt;
pub(super) use protrusion::protrusion;
pub(super) use radius_of_gyration::radius_of_gyration;
pub(super) use relative_contact_order::relative_contact_order;
pub(super) use rsa::rsa;
pub(super) use sasa::sasa;
pub(super) use sasa_delta::sasa_delta;
pub(super) use secondary_structure::secondary_structure;
pub(super) use smooth::smooth;
pub(super) use sum_of_rows::sum_of_rows;
pub(super) use torsions::torsions;
pub(super) use weighted_contact_number::weighted_contact_number;

use super::grid::Grid;
use super::layout::{ATOMS, StructureSpan, TILES, Tile};

/// The grid over a structure's atoms, or over those that are one a residue.
fn grid_of(structure: &StructureSpan, axis: u32) -> &Grid {
    match axis as usize {
        ATOMS => &structure.atom_grid,
        _ => &structure.residue_grid,
    }
}

/// A structure's part of what is one an atom, or one a residue.
fn atoms_of(structure: &StructureSpan, axis: u32) -> std::ops::Range<usize> {
    match axis as usize {
        ATOMS => structure.atoms(),
        _ => structure.residues(),
    }
}

/// The batch's tiles.
fn tiles<'a>(header: &[u32], words: &'a [u32]) -> &'a [Tile] {
    &bytemuck::cast_slice(words)[..header[TILES] as usize]
}

/// The sum in the order of the kernels' `block_sum`.
fn tree_sum<const N: usize>(partial: &mut [f64; N]) -> f64 {
    let mut stride = N / 2;
    while stride > 0 {
        for lane in 0..stride {
            partial[lane] += partial[lane + stride];
        }
        stride /= 2;
    }
    partial[0]
}
