//! The shape of the C-alpha trace.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::cpu;
use super::feature::{About, Feature};
use super::kernels::{THREADS, kernel};
use super::layout::RESIDUES;
use super::recording::{Recording, args};
use crate::record::Kernel;

/// Angles of the C-alpha trace; they have no settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaGeometry {}

pub(super) fn ca_geometry() -> Kernel {
    kernel("ca_geometry")
        .block(THREADS)
        .reads::<u32>("header")
        .reads::<u32>("residues")
        .reads::<i32>("ca")
        .writes::<f32>("angles")
        .twin(cpu::ca_geometry)
}

impl Feature for CaGeometry {
    fn about(&self) -> About {
        About {
            summary: "Dihedral and angle of the C-alpha trace.",
            formula: "ca_dihedral of C-alphas i-1, i, i+1, i+2, in (-180, 180], positive \
                      clockwise; ca_angle of i-1, i, i+1; null across a break",
            source: "Levitt 1976, J Mol Biol 104:59",
            needs: &[],
        }
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let column = |(name, about): (&str, &str)| {
            ColumnDecl::residue(name, ColumnKind::Real, "degrees", about)
        };
        [
            (
                "ca_dihedral",
                "Dihedral of the C-alphas i-1, i, i+1 and i+2, in (-180, 180].",
            ),
            ("ca_angle", "Angle at the C-alpha, between i-1 and i+1."),
        ]
        .map(column)
        .to_vec()
    }

    fn record(&self, r: &mut Recording<'_>) {
        let angles = r.results::<f32>(TableName::Residues, "ca_geometry", 2);
        let args = args![r.header(), r.residues(), r.ca(), angles];
        r.launch_threads(ca_geometry(), RESIDUES, &args);
        (0..2).for_each(|at| r.column(angles, at));
    }
}
