//! Torsions of the side chains.

use super::columns::{ColumnDecl, ColumnKind, NULL_COUNT, TableName, Tolerance};
use super::cpu::angles::Angle;
use super::cpu::split::for_row_ranges_of_two;
use super::feature::{About, Feature};
use super::kernels::{Twin, side_chains};
use super::layout::{Backbone, RESIDUES, SideChain};
use super::recorder::FeatureRecorder;

/// Torsions of the side chains; they have no settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SideChains {}

/// The bins of Lovell et al., in the kernel's order.
const BINS: &[&str] = &["p", "t", "m"];

impl Feature for SideChains {
    fn about(&self) -> About {
        About {
            summary: "Torsions of the side chain, their rotamer bins, and missing atoms.",
            formula: "dihedrals in (-180, 180]: chi1 of N, CA, CB and the next atom (CG, CG1, OG, \
                      OG1 or SG), and so on along CD, CD1, OD1, ND1, SD, CE, NE, OE1, NZ, CZ and \
                      NH1; bins p in [0, 120), m in [-120, 0), t the rest, of a chi between \
                      tetrahedral atoms; selenomethionine's SE stands for SD",
            source: "IUPAC-IUB 1970, Biochemistry 9:3471; bins: Lovell et al. 2000, Proteins 40:389",
            needs: &[],
        }
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let chi = |number: usize| {
            let about = format!(
                "Dihedral chi{number} of the side chain, in (-180, 180]; null where it has none, or \
                 an atom is missing."
            );
            ColumnDecl::residue(format!("chi{number}"), ColumnKind::Real, "degrees", about)
                .reference(Tolerance::absolute(0.01))
                // Rounding moves an atom by up to 0.0009 A, which turns a bond of 1.5 A by 0.03
                // degrees, and a dihedral about it by some times as much.
                .rotation(Tolerance::absolute(0.2))
                .idle_when("no side chain is as long")
        };
        let bin = |number: usize| {
            let about = format!(
                "Rotamer bin of chi{number}, for standard residues but proline, where chi{number} \
                 is about a bond between tetrahedral atoms (Lovell et al. 2000)."
            );
            let name = format!("chi{number}_bin");
            ColumnDecl::residue(name, ColumnKind::Text(BINS), "", about)
                .idle_when("no side chain is as long")
        };
        let count = |name: &str, about: &str, idle_when| {
            ColumnDecl::residue(name, ColumnKind::Count, "", about).idle_when(idle_when)
        };
        let mut columns: Vec<ColumnDecl> = (1..=5).map(chi).collect();
        columns.extend((1..=4).map(bin));
        columns.push(count(
            "chi_symmetric",
            "The chi that half a turn changes in names of atoms alone: 2 of ASP, PHE and TYR, 3 of \
             GLU; null of all others.",
            "no side chain is symmetric",
        ));
        columns.push(count(
            "side_missing",
            "Heavy atoms of the side chain that the chosen conformer lacks, for standard residues \
             and selenomethionine.",
            "no atom of a side chain is missing",
        ));
        columns
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        // Five chis; their four bins and the other two counts.
        let angles = r.results::<f32>(TableName::Residues, "side_chain_angles", 5);
        let counts = r.results::<i32>(TableName::Residues, "side_chain_counts", 6);
        let args = side_chains::Args {
            header: r.header(),
            backbone: r.backbone(),
            sides: r.side_chains(),
            angles: angles.buffer,
            counts: counts.buffer,
        };
        r.launch_threads(RESIDUES, args);
        (0..5).for_each(|i| r.column(angles, i));
        (0..6).for_each(|i| r.column(counts, i));
    }
}

/// Computes chi1 to chi5, the bins of chi1 to chi4, which chi is symmetric, and how many atoms are
/// missing.
impl Twin for side_chains::Views<'_> {
    fn run(self) {
        let Self {
            header,
            backbone,
            sides,
            angles,
            counts,
        } = self;
        let count = header[RESIDUES] as usize;
        let backbone: &[Backbone] = &backbone[..count];
        let sides: &[SideChain] = &sides[..count];
        let outputs = ((&mut angles[..count * 5], 5), (&mut counts[..count * 6], 6));
        for_row_ranges_of_two(outputs.0, outputs.1, |rows, angles, counts| {
            let results = angles.chunks_exact_mut(5).zip(counts.chunks_exact_mut(6));
            for (residue, (angles, counts)) in rows.zip(results) {
                let side = &sides[residue];
                let [gamma, delta, epsilon, zeta, eta] = side.chain;
                let Backbone { n, ca, .. } = backbone[residue];
                let atoms = [n, ca, side.beta, gamma, delta, epsilon, zeta, eta];
                for (chi, points) in atoms.windows(4).enumerate() {
                    let points = [points[0], points[1], points[2], points[3]];
                    let angle = if points.iter().all(|point| point.is_present()) {
                        Angle::dihedral(points).degrees()
                    } else {
                        f32::NAN
                    };
                    angles[chi] = angle;
                    if chi < 4 {
                        counts[chi] = match side.bins >> chi & 1 {
                            1 => rotamer_bin(angle),
                            _ => NULL_COUNT,
                        };
                    }
                }
                counts[4] = side.symmetric;
                counts[5] = side.missing;
            }
        });
    }
}

/// The bin of an angle in degrees, as an index of [`BINS`].
fn rotamer_bin(angle: f32) -> i32 {
    match angle {
        angle if angle.is_nan() => NULL_COUNT,
        angle if (0.0..120.0).contains(&angle) => 0,
        angle if (-120.0..0.0).contains(&angle) => 2,
        _ => 1,
    }
}
