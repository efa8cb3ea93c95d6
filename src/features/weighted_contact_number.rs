//! Weighted contact number.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::cpu;
use super::feature::{About, Feature};
use super::kernels::kernel;
use super::layout::{TILE, TILES};
use super::recording::Recording;
use crate::record::Kernel;

/// Weighted contact number; it has no settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WeightedContactNumber {}

fn weighted_contact_number() -> Kernel {
    kernel("weighted_contact_number")
        .block(TILE)
        .reads::<u32>("header")
        .reads::<u32>("tiles")
        .reads::<i32>("atoms")
        .writes::<f32>("sums")
        .twin(cpu::weighted_contact_number)
}

impl Feature for WeightedContactNumber {
    fn about(&self) -> About {
        About {
            summary: "How densely the model's C-alphas surround the C-alpha, near ones most.",
            formula: "wcn_i = sum over j != i of 1 / d(i, j)^2, without a cutoff",
            source: "Lin et al. 2008, Proteins 72:929",
            needs: &[],
        }
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let about = "Sum of 1/d^2 over the other C-alphas of the model (Lin et al. 2008).";
        vec![ColumnDecl::residue("wcn", ColumnKind::Real, "1/A^2", about)]
    }

    fn record(&self, r: &mut Recording<'_>) {
        let sums = r.results::<f32>(TableName::Residues, "wcn", 1);
        let args = [
            r.header().into(),
            r.tiles().into(),
            r.ca().into(),
            sums.into(),
        ];
        r.launch_blocks(weighted_contact_number(), TILES, &args);
        r.column(sums, 0);
    }
}
