//! Torsions of the backbone.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::cpu;
use super::feature::{About, Feature};
use super::kernels::{THREADS, kernel};
use super::layout::RESIDUES;
use super::recording::{Recording, args};
use crate::record::Kernel;

/// Torsions of the backbone; they have no settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Torsions {}

pub(super) fn torsions() -> Kernel {
    kernel("torsions")
        .block(THREADS)
        .reads::<u32>("header")
        .reads::<u32>("residues")
        .reads::<i32>("backbone")
        .writes::<f32>("angles")
        .twin(cpu::torsions)
}

impl Feature for Torsions {
    fn about(&self) -> About {
        About {
            summary: "Phi, psi and omega of the backbone.",
            formula: "dihedrals in (-180, 180], positive clockwise: phi of C(i-1), N, CA, C; psi \
                      of N, CA, C, N(i+1); omega of CA, C, N(i+1), CA(i+1); null across a break",
            source: "IUPAC-IUB 1970, Biochemistry 9:3471",
            needs: &[],
        }
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let column = |(name, atoms): (&str, &str)| {
            let about = format!("Dihedral of {atoms}, in (-180, 180].");
            ColumnDecl::residue(name, ColumnKind::Real, "degrees", about)
        };
        [
            ("phi", "C(i-1), N, CA and C"),
            ("psi", "N, CA, C and N(i+1)"),
            ("omega", "CA, C, N(i+1) and CA(i+1)"),
        ]
        .map(column)
        .to_vec()
    }

    fn record(&self, r: &mut Recording<'_>) {
        let angles = r.results::<f32>(TableName::Residues, "torsions", 3);
        let args = args![r.header(), r.residues(), r.backbone(), angles];
        r.launch_threads(torsions(), RESIDUES, &args);
        (0..3).for_each(|at| r.column(angles, at));
    }
}
