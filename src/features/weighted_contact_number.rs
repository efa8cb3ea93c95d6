//! Weighted contact number.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::cpu;
use super::feature::{About, Feature};
use super::kernels::{BLOCK, kernel};
use super::layout::{RESIDUES, STRUCTURES, TILE, TILES};
use super::recording::{Recording, args};
use crate::record::Kernel;

/// Weighted contact number; it has no settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WeightedContactNumber {}

pub(super) fn weighted_contact_number() -> Kernel {
    kernel("weighted_contact_number")
        .block(TILE)
        .reads::<u32>("header")
        .reads::<u32>("structures")
        .reads::<u32>("residues")
        .reads::<u32>("tiles")
        .reads::<i32>("atoms")
        .writes::<f32>("sums")
        .writes::<u32>("coincident")
        .twin(cpu::weighted_contact_number)
}

pub(super) fn coincident_pairs() -> Kernel {
    kernel("coincident_pairs")
        .block(BLOCK)
        .reads::<u32>("header")
        .reads::<u32>("structures")
        .reads::<u32>("coincident")
        .writes::<i32>("pairs")
        .twin(cpu::coincident_pairs)
}

impl Feature for WeightedContactNumber {
    fn about(&self) -> About {
        About {
            summary: "How densely the model's C-alphas surround the C-alpha, near ones most.",
            formula: "wcn_i = sum over j != i of 1 / d(i, j)^2, without a cutoff; pairs with d = 0 \
                      are left out and counted",
            source: "Lin et al. 2008, Proteins 72:929",
            needs: &[],
        }
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let about = "Sum of 1/d^2 over the other C-alphas of the model (Lin et al. 2008).";
        let wcn = ColumnDecl::residue("wcn", ColumnKind::Real, "1/A^2", about);
        let about = "Pairs of C-alphas in one place, which wcn leaves out.";
        let pairs = ColumnDecl::residue("wcn_coincident", ColumnKind::Count, "", about);
        let pairs = pairs.idle_when("no two C-alphas in one place were read");
        vec![wcn, pairs.of(TableName::Structures)]
    }

    fn record(&self, r: &mut Recording<'_>) {
        let sums = r.results::<f32>(TableName::Residues, "wcn", 1);
        let coincident = r.device::<u32>("wcn_coincident_with", RESIDUES, 1);
        let (structures, residues, tiles) = (r.structures(), r.residues(), r.tiles());
        let args = args![
            r.header(),
            structures,
            residues,
            tiles,
            r.ca(),
            sums,
            coincident
        ];
        r.launch_blocks(weighted_contact_number(), TILES, &args);
        r.column(sums, 0);
        let pairs = r.results::<i32>(TableName::Structures, "wcn_coincident", 1);
        let args = args![r.header(), structures, coincident, pairs];
        r.launch_blocks(coincident_pairs(), STRUCTURES, &args);
        r.column(pairs, 0);
    }
}
