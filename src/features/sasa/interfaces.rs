//! The part of a residue's area that a single other chain buries.

use super::super::cell_kind::CellKind;
use super::super::cpu::simd;
use super::super::cpu::split::parts;
use super::super::entries::{Entries, PARTNERS_PER_UNIT};
use super::super::kernels::{Twin, interface_areas, interface_areas_slices};
use super::super::layout::{PAIR_ROOM, RESIDUES, StructureSpan};
use super::super::recorder::FeatureRecorder;
use super::lee_richards::Slices;
use super::neighbours::Neighbours;
use super::others::OneChain;
use super::shrake_rupley::{AreaInputs, Sphere, sums_of};
use super::{Sasa, SasaAlgorithm, area_twins, test_points, with_area_args};
use crate::record::Buffer;
use fearless_simd::dispatch;
use rayon::prelude::*;

/// The partners of residues, which are the other chains near them. A residue has a place in
/// `partners` for each of its partners.
#[derive(Clone, Copy)]
pub(in crate::features) struct PartnerBuffers {
    pub(in crate::features) rooms: Buffer<u32>,
    /// Where the places of each residue end.
    pub(in crate::features) ends: Buffer<i32>,
    /// The chain of the partner at each place.
    pub(in crate::features) partners: Buffer<u32>,
}

/// Records the launch that computes the part of a residue's area in its own chain that each of its
/// partners buries. A value for each place: a sum of parts of spheres, each with the square of its
/// atom's radius and the probe.
pub(in crate::features) fn partner_areas(
    r: &mut FeatureRecorder<'_>,
    buffers: PartnerBuffers,
) -> Buffer<u64> {
    let buried = r.device("interface_buried", PAIR_ROOM, PARTNERS_PER_UNIT);
    with_area_args!(r, [interface_areas, interface_areas_slices] {
        header: r.header(),
        structures: r.structures(),
        residues: r.residues(),
        atoms: r.atoms(),
        cells: r.cells(CellKind::Atoms),
        rooms: buffers.rooms,
        ends: buffers.ends,
        partners: buffers.partners,
        buried
    }, |args| r.launch_warps(RESIDUES, args));
    buried
}

// Computes what each partner of a residue buries.
area_twins!(
    [interface_areas, interface_areas_slices],
    |views, surface| {
        let structures = StructureSpan::live(views.header, views.structures);
        let inputs = AreaInputs {
            structures: views.structures,
            residues: views.residues,
            atoms: views.atoms,
            cells: views.cells,
        };
        let entries = Entries {
            ends: views.ends,
            rooms: views.rooms,
            per_unit: PARTNERS_PER_UNIT,
        };
        let entries = entries.all(structures, StructureSpan::residues);
        let buried = parts(
            views.buried,
            entries.iter().map(|(_, places)| places.clone()),
        );
        // Fewer than `TASK_ROWS`: few residues have entries, and each takes a search per partner.
        let rows = entries.par_iter().zip(buried).with_min_len(8);
        rows.for_each_init(Neighbours::new, |scratch, ((residue, places), buried)| {
            let partners = &views.partners[places.clone()];
            dispatch!(simd::level(), simd => {
                for (&other, buried) in partners.iter().zip(buried) {
                    let own_chain = inputs.residues[*residue].chain;
                    let others = OneChain { own_chain, other };
                    (_, *buried) = sums_of(simd, &inputs, &surface, *residue, others, scratch);
                }
            });
        });
    }
);
