//! Contact order.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::config::Cutoff;
use super::cpu;
use super::feature::{About, Feature, Setting, unknown};
use super::kernels::around_residues;
use super::layout::RESIDUES;
use super::recording::{Recording, args};
use super::summary;
use crate::error::Result;
use crate::record::Kernel;

/// Settings of contact order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContactOrder {
    /// Atoms nearer than this are in contact.
    pub cutoff: Cutoff,
}

impl Default for ContactOrder {
    /// 6 A.
    fn default() -> Self {
        ContactOrder {
            cutoff: Cutoff::of_angstrom(6),
        }
    }
}

pub(super) fn contact_order() -> Kernel {
    around_residues("contact_order")
        .reads::<u32>("residue_of")
        .writes::<f32>("means")
        .writes::<u64>("sums")
        .scalar::<u32>("radius")
        .twin(cpu::contact_order)
}

pub(super) fn relative_contact_order() -> Kernel {
    summary::of_rows("relative_contact_order")
        .reads::<u64>("sums")
        .writes::<f32>("orders")
        .scalar::<u32>("axis")
        .twin(cpu::relative_contact_order)
}

impl Feature for ContactOrder {
    fn about(&self) -> About {
        About {
            summary: "How far apart in the chain residues in contact are.",
            formula: "co_i = mean of |i - j| over pairs of heavy atoms nearer than R, one of \
                      residue i, one of another residue j of the chain; relative: the mean over \
                      all such pairs, over the number of residues",
            source: "Plaxco et al. 1998, J Mol Biol 277:985",
            needs: &[],
        }
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        vec![("contact_order.cutoff", Setting::Length(self.cutoff))]
    }

    fn set(&mut self, key: &str, value: &Setting) -> Result<()> {
        match (key, value) {
            ("contact_order.cutoff", Setting::Length(cutoff)) => self.cutoff = *cutoff,
            _ => return Err(unknown(key)),
        }
        Ok(())
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let about = format!(
            "Mean difference of res_index over contacts of heavy atoms within {} A in the chain.",
            self.cutoff.angstrom()
        );
        let relative = |table, of: &str| {
            let about = format!(
                "Relative contact order: mean difference of res_index over all contacts in \
                 chains, over the residues of the {of}."
            );
            ColumnDecl::residue("co_relative", ColumnKind::Real, "", about).of(table)
        };
        vec![
            ColumnDecl::residue("co", ColumnKind::Real, "", about),
            relative(TableName::Chains, "chain"),
            relative(TableName::Structures, "structure"),
        ]
    }

    fn record(&self, r: &mut Recording<'_>) {
        let means = r.results::<f32>(TableName::Residues, "co", 1);
        let sums = r.device::<u64>("co_sums", RESIDUES, 2);
        let (structures, residues, atoms) = (r.structures(), r.residues(), r.atoms());
        let (cells, residue_of) = (r.atom_cells(), r.atom_residue());
        let args = args![r.header(), structures, residues, atoms; cells;
            residue_of, means, sums, self.cutoff.milli_angstrom()];
        r.launch_warps(contact_order(), RESIDUES, &args);
        r.column(means, 0);
        summary::summarise(
            r,
            relative_contact_order,
            "co_relative",
            sums.into(),
            1,
            &[],
        );
    }
}
