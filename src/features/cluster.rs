//! Clusters of selected residues.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::config::Cutoff;
use super::cpu;
use super::feature::{About, Feature, Setting, unknown};
use super::kernels::{BLOCK, THREADS, around_residues, kernel};
use super::layout::{RESIDUES, STRUCTURES};
use super::recording::{Recording, args};
use crate::error::{Error, Result};
use crate::record::Kernel;

/// C-alphas nearer than this are in contact.
const CONTACT: Cutoff = Cutoff::of_angstrom(8);

/// Settings of clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// Which residues: a letter is the one-letter code (`H`), a longer word the
    /// name of the residue or of the standard one that it is a variant of (`MSE`,
    /// `HIS`). With none there are no columns.
    pub select: Vec<String>,
}

pub(super) fn cluster_start() -> Kernel {
    kernel("cluster_start")
        .block(THREADS)
        .reads::<u32>("header")
        .reads::<u8>("selected")
        .reads::<i32>("atoms")
        .writes::<u32>("parents")
        .twin(cpu::cluster_start)
}

pub(super) fn cluster_join() -> Kernel {
    around_residues("cluster_join")
        .updates::<u32>("parents")
        .scalar::<u32>("radius")
        .twin(cpu::cluster_join)
}

pub(super) fn cluster_number() -> Kernel {
    kernel("cluster_number")
        .block(BLOCK)
        .reads::<u32>("header")
        .reads::<u32>("structures")
        .reads::<u32>("chains")
        .reads::<u32>("members")
        .reads::<u32>("parents")
        .writes::<u32>("numbers")
        .updates::<u32>("stamps")
        .writes::<i32>("clusters")
        .writes::<i32>("in_chains")
        .writes::<i32>("in_structures")
        .twin(cpu::cluster_number)
}

impl Feature for Cluster {
    fn about(&self) -> About {
        About {
            summary: "Which selected residues lie together; only where some are selected.",
            formula: "connected components of the selected residues of the model, neighbours \
                      where their C-alphas are within 8 A; numbered from 0 by their first residue",
            source: "",
            needs: &[],
        }
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        vec![("cluster.select", Setting::Texts(self.select.clone()))]
    }

    fn set(&mut self, key: &str, value: &Setting) -> Result<()> {
        match (key, value) {
            ("cluster.select", Setting::Texts(select)) => self.select.clone_from(select),
            _ => return Err(unknown(key)),
        }
        Ok(())
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        if self.select.is_empty() {
            return Vec::new();
        }
        let selected = self.select.join(", ");
        let about = format!(
            "Cluster of the residue among {selected}: C-alphas within {} A, one from another.",
            CONTACT.angstrom()
        );
        let count = |table, of: &str| {
            let about = format!("Clusters among {selected} that have a residue of the {of}.");
            ColumnDecl::residue("clusters", ColumnKind::Count, "", about).of(table)
        };
        let columns = [
            ColumnDecl::residue("cluster", ColumnKind::Count, "", about),
            count(TableName::Chains, "chain"),
            count(TableName::Structures, "structure"),
        ];
        let idle = |column: ColumnDecl| column.idle_when("no selected residue was read");
        columns.map(idle).to_vec()
    }

    fn record(&self, r: &mut Recording<'_>) {
        if self.select.is_empty() {
            return;
        }
        let parents = r.device::<u32>("cluster_parents", RESIDUES, 1);
        let (ca, cells) = (r.ca(), r.ca_cells());
        let args = args![r.header(), r.selected(&self.select), ca, parents];
        r.launch_threads(cluster_start(), RESIDUES, &args);
        let args = args![r.header(), r.structures(), r.residues(), ca; cells;
            parents, CONTACT.milli_angstrom()];
        r.launch_warps(cluster_join(), RESIDUES, &args);

        let numbers = r.device::<u32>("cluster_numbers", RESIDUES, 1);
        let stamps = r.zeros("cluster_stamps", RESIDUES, 1);
        let clusters = r.results::<i32>(TableName::Residues, "cluster", 1);
        let in_chains = r.results::<i32>(TableName::Chains, "clusters_in_chains", 1);
        let in_structures = r.results::<i32>(TableName::Structures, "clusters", 1);
        let args = args![
            r.header(),
            r.structures(),
            r.chains(),
            r.members(),
            parents,
            numbers,
            stamps,
            clusters,
            in_chains,
            in_structures,
        ];
        r.launch_blocks(cluster_number(), STRUCTURES, &args);
        for results in [clusters, in_chains, in_structures] {
            r.column(results, 0);
        }
    }

    fn check(&self) -> Result<()> {
        let is_name = |name: &&String| {
            let known = |c: u8| c.is_ascii_uppercase() || c.is_ascii_digit();
            (1..=8).contains(&name.len()) && name.bytes().all(known)
        };
        match self.select.iter().find(|name| !is_name(name)) {
            Some(name) => Err(Error::config(format!(
                "cluster.select: {name:?} is neither a letter nor a residue's name"
            ))
            .fix("give one-letter codes or names in capitals: \"H\", \"MSE\"")),
            None => Ok(()),
        }
    }
}
