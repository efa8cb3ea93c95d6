//! Clusters of selected residues.

use super::cell_kind::CellKind;
use super::columns::{ColumnDecl, ColumnKind, NULL_COUNT, TableName};
use super::cpu::forest::{Forest, NO_TREE, root_of};
use super::cpu::simd;
use super::cpu::split::parts;
use super::cutoff::Cutoff;
use super::feature::{About, Feature, SettingField, own_chain};
use super::kernels::Cells;
use super::kernels::{Twin, cluster_join, cluster_number, cluster_start};
use super::layout::{Atom, RESIDUES, STRUCTURES, StructureSpan};
use super::recorder::FeatureRecorder;
use crate::error::{Error, Result};
use fearless_simd::dispatch;
use fearless_simd::prelude::*;
use rayon::prelude::*;

/// C-alphas closer than this are in contact (docs/METHODS.md).
const CONTACT: Cutoff = Cutoff::of_angstrom(8);

/// Settings of clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// The selected residues: one-letter codes (`H`), or names of residues or of their standard
    /// parents (`MSE`, `HIS`). If empty, the feature has no columns.
    pub select: Vec<String>,
    /// Whether only residues of the same chain are neighbours.
    pub own_chain: bool,
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

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![
            ("cluster.select", SettingField::Texts(&mut self.select)),
            ("cluster.chains", own_chain(&mut self.own_chain)),
        ]
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        if self.select.is_empty() {
            return Vec::new();
        }
        let selected = self.select.join(", ");
        let scope = if self.own_chain { " of its chain" } else { "" };
        let about = format!(
            "Cluster of the residue among {selected}{scope}: C-alphas within {} A, one from another.",
            CONTACT.angstrom()
        );
        let count = |table, part: &str| {
            let about = format!("Clusters among {selected} that have a residue of the {part}.");
            ColumnDecl::residue("clusters", ColumnKind::Count, "", about).in_table(table)
        };
        let columns = [
            ColumnDecl::residue("cluster", ColumnKind::Count, "", about),
            count(TableName::Chains, "chain"),
            count(TableName::Structures, "structure"),
        ];
        let idle = |column: ColumnDecl| column.idle_when("no selected residue was read");
        columns.map(idle).to_vec()
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        if self.select.is_empty() {
            return;
        }
        let parents = r.device::<u32>("cluster_parents", RESIDUES, 1);
        let (ca, cells) = (r.ca(), r.cells(CellKind::Ca));
        let args = cluster_start::Args {
            header: r.header(),
            selected: r.selected(&self.select),
            ca,
            parents,
        };
        r.launch_threads(RESIDUES, args);
        let args = cluster_join::Args {
            header: r.header(),
            structures: r.structures(),
            residues: r.residues(),
            ca,
            cells,
            parents,
            radius: CONTACT.milli_angstrom(),
            own_chain: u32::from(self.own_chain),
        };
        r.launch_warps(RESIDUES, args);

        let numbers = r.device::<u32>("cluster_numbers", RESIDUES, 1);
        let stamps = r.zeros("cluster_stamps", RESIDUES, 1);
        let clusters = r.results::<i32>(TableName::Residues, "cluster", 1);
        let in_chains = r.results::<i32>(TableName::Chains, "clusters_in_chains", 1);
        let in_structures = r.results::<i32>(TableName::Structures, "clusters", 1);
        let args = cluster_number::Args {
            header: r.header(),
            structures: r.structures(),
            chains: r.chains(),
            members: r.members(),
            parents,
            numbers,
            stamps,
            clusters: clusters.buffer,
            in_chains: in_chains.buffer,
            in_structures: in_structures.buffer,
        };
        r.launch_blocks(STRUCTURES, args);
        for results in [clusters, in_chains, in_structures] {
            r.column(results, 0);
        }
    }

    fn check(&self) -> Result<()> {
        let is_name = |name: &&String| {
            // Names of components have at most eight bytes.
            let is_allowed = |c: u8| c.is_ascii_uppercase() || c.is_ascii_digit();
            (1..=8).contains(&name.len()) && name.bytes().all(is_allowed)
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

/// Makes each selected residue with a C-alpha a tree of its own.
impl Twin for cluster_start::Views<'_> {
    fn run(self) {
        let Self {
            header,
            selected,
            ca,
            parents,
        } = self;
        let residues = (0..header[RESIDUES]).zip(selected).zip(ca).zip(parents);
        for (((residue, selected), ca), parent) in residues {
            let is_node = *selected != 0 && ca.is_present();
            *parent = if is_node { residue } else { NO_TREE };
        }
    }
}

/// Joins the trees of residues whose C-alphas are closer than the radius.
impl Twin for cluster_join::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            ca,
            cells,
            parents,
            radius,
            own_chain,
            ..
        } = self;
        let within = (radius, own_chain != 0);
        let structures = StructureSpan::live(header, structures);

        let parents = parts(parents, structures.iter().map(StructureSpan::residues));
        structures
            .par_iter()
            .zip(parents)
            .for_each(|(structure, parents)| {
                dispatch!(simd::level(), simd => {
                    join_near(simd, structure, &cells, ca, parents, within);
                });
            });
    }
}

/// Joins the trees of residues of a structure whose C-alphas are closer than `radius`. Residues
/// without a tree are left out.
#[inline(always)]
fn join_near<S: Simd>(
    simd: S,
    structure: &StructureSpan,
    cells: &Cells<'_>,
    ca: &[Atom],
    parents: &mut [u32],
    (radius, own_chain): (u32, bool),
) {
    let start = structure.residues().start;
    let mut trees = Forest { parents, start };
    for residue in structure.residues() {
        if trees.parents[residue - start] == NO_TREE {
            continue;
        }
        let atom = &ca[residue];
        let runs = cells.runs(&structure.residue_grid, atom.position.into(), radius as i32);
        cells.each_within(simd, runs, atom, radius, own_chain, |other| {
            let other = other as usize;
            if other < residue && trees.parents[other - start] != NO_TREE {
                trees.join(residue, other);
            }
        });
    }
}

/// Numbers the trees of each structure, and counts those of each structure and of each chain.
impl Twin for cluster_number::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            chains,
            members,
            parents,
            numbers,
            stamps,
            clusters,
            in_chains,
            in_structures,
        } = self;
        let structures = StructureSpan::live(header, structures);

        for (structure, in_structure) in structures.iter().zip(in_structures) {
            *in_structure = 0;
            for residue in structure.residues() {
                clusters[residue] = match parents[residue] {
                    NO_TREE => NULL_COUNT,
                    parent if parent as usize == residue => {
                        numbers[residue] = *in_structure as u32;
                        *in_structure += 1;
                        numbers[residue] as i32
                    }
                    // A root is the first residue of its tree.
                    parent => numbers[root_of(parents, parent as usize)] as i32,
                };
            }
            let first = structure.chain_start;
            for chain in first..first + structure.chain_count {
                let members = chains[chain as usize].members(members).iter();
                let trees = members.filter(|&&residue| parents[residue as usize] != NO_TREE);
                let roots = trees.map(|&residue| root_of(parents, residue as usize));
                // A chain counts a tree once, and stamps its root; 0 is the stamp of no chain.
                let is_new =
                    |root: usize| std::mem::replace(&mut stamps[root], chain + 1) != chain + 1;
                in_chains[chain as usize] =
                    roots.map(is_new).filter(|is_new| *is_new).count() as i32;
            }
        }
    }
}
