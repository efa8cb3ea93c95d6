//! B factors.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::cpu;
use super::feature::{About, Feature};
use super::kernels::kernel;
use super::layout::CHAINS;
use super::recording::Recording;
use crate::record::Kernel;

/// B factors; they have no settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BFactor {}

fn b_factor_z() -> Kernel {
    kernel("b_factor_z")
        .block(128)
        .reads::<u32>("header")
        .reads::<u32>("chains")
        .reads::<u32>("members")
        .reads::<f32>("b")
        .writes::<f32>("z")
        .twin(cpu::b_factor_z)
}

impl Feature for BFactor {
    fn about(&self) -> About {
        About {
            summary: "B factor of the C-alpha relative to its chain.",
            formula: "b_z = (b - mean) / sd over the chain's C-alphas, sd of the population",
            source: "Parthasarathy and Murthy 1997",
            needs: &[],
        }
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let about = "B factor of the C-alpha less the chain's mean, over the chain's population \
                     standard deviation.";
        vec![ColumnDecl::residue("b_z", ColumnKind::Real, "", about)]
    }

    fn record(&self, r: &mut Recording<'_>) {
        let z = r.results::<f32>(TableName::Residues, "b_z", 1);
        let args = [
            r.header().into(),
            r.chains().into(),
            r.members().into(),
            r.b().into(),
            z.into(),
        ];
        r.launch_blocks(b_factor_z(), CHAINS, &args);
        r.column(z, 0);
    }
}
