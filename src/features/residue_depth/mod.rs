//! Residue depth: how far atoms are from the outer surface.
//!
//! The exposed points of [`sasa`](super::sasa) are listed in a buffer of data-dependent length.
//! Points that are near each other are joined to connected components, and so are atoms whose
//! spheres overlap, which are bodies. The component that has the end of a body along x is its outer
//! surface; the others bound its cavities.

mod nearest;
mod points;
mod surface;

use super::cell_kind::CellKind;
use super::columns::{ColumnDecl, ColumnKind, TableName, Tolerance};
use super::feature::{About, Feature, SettingField, choice};
use super::kernels::{
    PointBuffers, Twin, exposed_list, exposed_spans, join_surface, outer_surface, raise_depths,
    residue_depth, surface_ends,
};
use super::layout::{ATOMS, PAIR_ROOM, RADIUS_MAX, RESIDUES, STRUCTURES};
use super::recorder::FeatureRecorder;
use super::sasa::{Sasa, exposed_bits, radius_excess};
use crate::structure::CheckedStructure;
use crate::workload::Extent;
pub(super) use points::PointTotals;

/// Settings of residue depth. The test points and the probe are those of [`Sasa`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResidueDepth {
    /// The chains whose surface depths are measured from.
    pub chains: DepthChains,
}

/// The chains whose surface depths are measured from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DepthChains {
    /// None: there are no depths.
    #[default]
    None,
    /// All chains of the model.
    All,
    /// The atom's own chain, as if it were alone.
    Own,
}

choice!(DepthChains: None "none", All "all", Own "own");

/// The largest distance of points that are joined, in 0.001 A. It bounds the search for neighbours:
/// one point on the sphere of the largest probe would be joined over 95 A.
const JOIN_DISTANCE_MAX: f64 = 10_000.0;

/// Test points do not rotate with the structure. Depths change by more near pockets whose necks are
/// as narrow as the distance of the points.
const DEPTH_ROTATION: Tolerance = Tolerance::absolute(0.3).but_for(50);

impl Feature for ResidueDepth {
    fn about(&self) -> About {
        About {
            summary: "How deep the residue lies below the outer surface; only where \
                      residue_depth.chains is chosen.",
            formula: "depth of an atom = its distance from the nearest exposed point of the outer \
                      surface - probe, which is the atom's radius if it has such a point itself; \
                      exposed points: those of sasa that no other atom buries; two are joined where \
                      they are closer than 1.5 (1.9 A + probe) sqrt(4 pi / N), at most 10 A (the \
                      largest radius of the set in place of 1.9 A if that is more), and, if \
                      of two atoms, neither is below the other's tangent plane; atoms are joined to \
                      bodies where their spheres R overlap; a body's outer surface is the component \
                      of points that has its largest x, and the others bound cavities, which do not \
                      count",
            source: "Chakravarty and Varadarajan 1999, Structure 7:723; columns as Biopython's \
                     ResidueDepth, Hamelryck and Manderick 2003, Bioinformatics 19:2308, from the \
                     accessible surface less the probe instead of MSMS",
            needs: &["sasa"],
        }
    }

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![(
            "residue_depth.chains",
            SettingField::Choice(&mut self.chains),
        )]
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let surface = match self.chains {
            DepthChains::None => return Vec::new(),
            DepthChains::All => "the model's outer surface",
            DepthChains::Own => "the outer surface of its chain alone",
        };
        let column = |name: &str, what: &str| {
            let about = format!("{what} below {surface}.");
            ColumnDecl::residue(name, ColumnKind::Real, "A", about).rotation(DEPTH_ROTATION)
        };
        vec![
            column("residue_depth", "Mean depth of the residue's heavy atoms"),
            column("ca_depth", "Depth of the C-alpha"),
        ]
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        if self.chains == DepthChains::None {
            return;
        }
        let settings: &Sasa = r.settings();
        let (count, probe) = (settings.points, settings.kernel_probe());
        let excess = radius_excess(settings.radii);
        let own_chain = u32::from(self.chains == DepthChains::Own);
        let exposed = exposed_bits(r, own_chain != 0);
        let (words, first) = (exposed.words as u32, exposed.points as u32);
        let (header, structures, chains) = (r.header(), r.structures(), r.chains());
        let (atoms, cells) = (r.atoms(), r.cells(CellKind::Atoms));

        let per_unit = points_per_unit(count, probe);
        let rooms = r.pair_rooms("depth_rooms", per_unit);
        let starts = r.device("depth_point_starts", ATOMS, 1);
        let counts = r.device("depth_point_counts", ATOMS, 1);
        let totals = r.results(TableName::Structures, "depth_point_totals", 1);
        let args = exposed_spans::Args {
            header,
            structures,
            atoms,
            bits: exposed.bits,
            rooms,
            starts,
            counts,
            totals: totals.buffer,
            words,
        };
        r.launch_blocks(STRUCTURES, args);

        let [x, y, z] =
            ["x", "y", "z"].map(|axis| r.device(&format!("depth_{axis}"), PAIR_ROOM, per_unit));
        let parents = r.device("depth_parents", PAIR_ROOM, per_unit);
        let bodies = r.device("depth_bodies", ATOMS, 1);
        let args = exposed_list::Args {
            header,
            structures,
            atoms,
            bits: exposed.bits,
            starts,
            counts,
            x,
            y,
            z,
            parents,
            bodies,
            words,
            first,
            points: count,
            probe,
        };
        r.launch_warps(ATOMS, args);

        let points = PointBuffers {
            start: starts,
            count: counts,
            x,
            y,
            z,
        };
        let radius_max = RADIUS_MAX + probe;
        let args = join_surface::Args {
            header,
            structures,
            chains,
            atoms,
            cells,
            points,
            parents,
            bodies,
            probe,
            radius_max,
            apart: join_distance(count, radius_max),
            own_chain,
        };
        r.launch_warps(ATOMS, args);
        let ends = r.zeros("depth_ends", ATOMS, 2);
        let args = surface_ends::Args {
            header,
            structures,
            chains,
            atoms,
            points,
            bodies,
            ends,
        };
        r.launch_warps(ATOMS, args);
        let args = outer_surface::Args {
            header,
            structures,
            atoms,
            starts,
            counts,
            x,
            parents,
            bodies,
            ends,
        };
        r.launch_warps(ATOMS, args);

        let depths = r.results::<f32>(TableName::Residues, "depths", 2);
        let args = residue_depth::Args {
            header,
            structures,
            residues: r.residues(),
            atoms,
            ca: r.ca(),
            cells,
            points,
            depths: depths.buffer,
            probe,
            radius_max,
            reach: 2 * radius_max + FIRST_REACH,
            own_chain,
        };
        r.launch_warps(RESIDUES, args);
        if excess > 0 {
            // The kernel subtracts its probe, which is larger than the probe by the excess.
            let args = raise_depths::Args {
                header,
                depths: depths.buffer,
                milli_angstrom: excess,
            };
            r.launch_threads(RESIDUES, args);
        }
        (0..2).for_each(|i| r.column(depths, i));
        r.buffers.depth_points = Some(PointTotals {
            totals: totals.buffer,
            per_unit,
        });
    }
}

/// Adds a length to the depths that residues have: what radii exceed `RADIUS_MAX` by, which kernels
/// count as part of the probe.
impl Twin for raise_depths::Views<'_> {
    fn run(self) {
        let length = f64::from(self.milli_angstrom) * 0.001;
        for depth in &mut self.depths[..2 * self.header[RESIDUES] as usize] {
            if !depth.is_nan() {
                *depth = (f64::from(*depth) + length) as f32;
            }
        }
    }
}

/// What the first search for the nearest point adds to the reach of two spheres, in 0.001 A. The
/// results do not depend on it: a search that may have missed a point is repeated over more atoms.
const FIRST_REACH: u32 = 1_000;

/// The residues of a structure that get half a unit of room more each, because small structures expose
/// more of their residues.
const SMALL_RESIDUES: u32 = 64;
/// The atoms without a residue that share a unit of room.
const ATOMS_PER_UNIT: u32 = 8;

/// The extent of a structure with room for its exposed points: a unit for each residue, and more.
pub(super) fn with_point_room(extent: Extent, structure: &CheckedStructure) -> Extent {
    // The loose atoms follow the residues', and the extent has checked that all fit 32 bits.
    let residue_atom_count = structure.atom_start.last().copied().unwrap_or(0);
    let loose = structure.xyz.len() as u32 - residue_atom_count;
    let more = extent[RESIDUES].min(SMALL_RESIDUES).div_ceil(2) + loose.div_ceil(ATOMS_PER_UNIT);
    // Interactions may have asked for more already.
    let room = extent[PAIR_ROOM].max(extent[RESIDUES] + more);
    extent.with(PAIR_ROOM, room)
}

/// The exposed points that fit into a unit of room. With the usual probe they cover 135 A^2; proteins
/// expose 40 to 100 A^2 a residue. A probe of less than 1 A gets between the atoms, and exposes a third of
/// all points.
fn points_per_unit(count: u32, probe: u32) -> usize {
    let count = count as usize;
    match probe {
        1_000.. => count,
        _ => 3 * count,
    }
}

/// The distance below which points are joined, in 0.001 A, of spheres with `count` points. Every
/// point of the sphere of the largest radius is within 0.75 sqrt(4 pi / N) radii of a test point.
/// Where the exposed patches of two spheres meet, each has a test point within that distance of the
/// meeting point.
fn join_distance(count: u32, radius_max: u32) -> u32 {
    let spacing = (4.0 * std::f64::consts::PI / f64::from(count)).sqrt();
    (1.5 * spacing * f64::from(radius_max)).min(JOIN_DISTANCE_MAX) as u32
}
