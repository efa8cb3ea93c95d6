//! Interfaces between chains.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::config::{Cutoff, FeatureName};
use super::cpu;
use super::feature::{About, Feature, Setting, unknown};
use super::kernels::{THREADS, around_residues, kernel};
use super::layout::{ATOMS, CELLS, RESIDUES};
use super::recording::{Recording, args};
use crate::error::{Error, Result};
use crate::record::Kernel;

/// Beyond this the nearest atom of another chain is not looked for, in 0.001 A.
pub(super) const CHAIN_REACH: u32 = 12_000;
/// It is first looked for within this, in 0.001 A.
pub(super) const CHAIN_NEARBY: u32 = 5_000;

/// Settings of interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// A residue nearer than this to another chain is of an interface; at most
    /// 12 A.
    pub cutoff: Cutoff,
}

impl Default for Interface {
    /// 5 A.
    fn default() -> Self {
        Interface {
            cutoff: Cutoff::of_angstrom(5),
        }
    }
}

pub(super) fn chain_range() -> Kernel {
    kernel("chain_range")
        .block(THREADS)
        .reads::<u32>("header")
        .reads::<u32>("structures")
        .reads::<u32>("chains")
        .reads::<i32>("atoms")
        .updates::<u32>("ranges")
        .twin(cpu::chain_range)
}

pub(super) fn nearest_chain() -> Kernel {
    around_residues("nearest_chain")
        .reads::<u32>("ranges")
        .writes::<f32>("distances")
        .writes::<i32>("contacts")
        .scalar::<u32>("cutoff")
        .twin(cpu::nearest_chain)
}

impl Feature for Interface {
    fn about(&self) -> About {
        About {
            summary: "How near another chain is, and which.",
            formula: "iface_dmin = min of d(a, b), a a heavy atom of the residue, b one of \
                      another chain, null at 12 A and beyond; iface: iface_dmin < R; \
                      iface_chain: the chain of b, of equally near ones the first; sasa_delta: \
                      the sasa of the chain alone, less that in the model",
            source: "",
            needs: &[FeatureName::Sasa],
        }
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        vec![("iface.cutoff", Setting::Length(self.cutoff))]
    }

    fn set(&mut self, key: &str, value: &Setting) -> Result<()> {
        match (key, value) {
            ("iface.cutoff", Setting::Length(cutoff)) => self.cutoff = *cutoff,
            _ => return Err(unknown(key)),
        }
        Ok(())
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let near = format!(
            "Whether a heavy atom of another chain is within {} A.",
            self.cutoff.angstrom()
        );
        let distance = "Distance from the residue to the nearest heavy atom of another chain, \
                        null from 12 A on.";
        let chain = "The chain of the nearest heavy atom of another chain within 12 A.";
        let delta = "Solvent-accessible area with nothing but the own chain, less that in the \
                     model.";
        let columns = [
            ColumnDecl::residue("iface_dmin", ColumnKind::Real, "A", distance),
            ColumnDecl::residue("iface", ColumnKind::Flag, "", near),
            ColumnDecl::residue("iface_chain", ColumnKind::Chain, "", chain),
            ColumnDecl::residue("sasa_delta", ColumnKind::Real, "A^2", delta),
        ];
        let idle = |column: ColumnDecl| column.idle_when("no two chains near each other were read");
        columns.map(idle).to_vec()
    }

    fn record(&self, r: &mut Recording<'_>) {
        let (structures, residues, atoms) = (r.structures(), r.residues(), r.atoms());
        let ranges = r.zeros("iface_chain_ranges", CELLS, 2);
        let args = args![r.header(), structures, r.chains(), atoms, ranges];
        r.launch_threads(chain_range(), ATOMS, &args);
        let distances = r.results::<f32>(TableName::Residues, "iface_dmin", 1);
        let contacts = r.results::<i32>(TableName::Residues, "iface", 2);
        let args = args![r.header(), structures, residues, atoms; r.atom_cells();
            ranges, distances, contacts, self.cutoff.milli_angstrom()];
        r.launch_warps(nearest_chain(), RESIDUES, &args);
        r.column(distances, 0);
        r.column(contacts, 0);
        r.column(contacts, 1);
        let deltas = r.area_deltas();
        r.column(deltas, 0);
    }

    fn check(&self) -> Result<()> {
        if self.cutoff.milli_angstrom() > CHAIN_REACH {
            return Err(Error::config("iface.cutoff is more than 12 A"));
        }
        Ok(())
    }
}
