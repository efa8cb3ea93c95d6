//! Eigenvector centrality.

mod eigenvector;

use self::eigenvector::{ChainVector, ContactGraph};
use super::cell_kind::CellKind;
use super::columns::{ColumnDecl, ColumnKind, TableName, Tolerance};
use super::constants;
use super::cpu::simd;
use super::cpu::split::for_row_ranges_of_two;
use super::cutoff::Cutoff;
use super::feature::{About, Feature, SettingField};
use super::kernels::{self, Twin, contact_list};
use super::layout::{CHAINS, ChainSpan, RESIDUES, StructureSpan};
use super::recorder::FeatureRecorder;
use fearless_simd::dispatch;
use rayon::prelude::*;
use std::borrow::Cow;

/// C-alphas closer than this are in contact (docs/METHODS.md).
const CONTACT: Cutoff = Cutoff::of_angstrom(8);

/// The largest number of contacts in a residue's list.
const CONTACTS_MAX: usize = constants::CONTACTS_MAX as usize;

/// Words of the kernel's scratch memory for a residue's contacts: a word of bits and the list, as
/// whole quadruples, which a thread loads at once.
const CONTACT_WORDS: usize = CONTACTS_MAX + 4;
/// Doubles of the kernel's scratch memory for a residue.
const SCRATCH: usize = constants::EIGEN_SCRATCH as usize;

/// Settings of eigenvector centrality.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Centrality {
    /// The number of products of the contact matrix and a vector after which no further round of
    /// the iteration begins.
    pub steps: u32,
}

/// The largest number of steps: hundreds of times what any protein was seen to take, and an end for
/// contact networks that never converge.
const STEPS_MAX: i64 = 100_000;

impl Default for Centrality {
    /// 2,000 steps, of which chains of proteins need 20 to 200.
    fn default() -> Self {
        Centrality { steps: 2000 }
    }
}

impl Feature for Centrality {
    fn about(&self) -> About {
        About {
            summary: "How central the residue is in the network of its chain's contacts.",
            formula: "v with A v = lambda v, |v| = 1 and no negative value, for the largest lambda; \
                      A the contacts of the chain's C-alphas within 8 A. Two vectors by \
                      Chebyshev-filtered subspace iteration, until |A v - lambda v| is at most 5e-7 \
                      lambda and the error of v about 3e-5; residual: |A v - (v . A v) v|",
            source: "Bonacich 1972; del Sol et al. 2006, Mol Syst Biol 2:2006.0019; Zhou et al. 2006, \
                     J Comput Phys 219:172",
            needs: &[],
        }
    }

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![(
            "centrality.steps",
            SettingField::Integer(&mut self.steps, 1..=STEPS_MAX),
        )]
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let vector = format!(
            "Eigenvector centrality in the network of the chain's C-alphas within {} A. Null in \
             chains whose two largest eigenvalues differ by less than 1e-6 of the larger, or that \
             have not converged after {} products of matrix and vector.",
            CONTACT.angstrom(),
            self.steps
        );
        let residual = "How far the vector is from an eigenvector, |A v - (v . A v) v|, also where \
                        the vector is null: at most 1e-6 of the eigenvalue if that has converged.";
        let residual = ColumnDecl::residue("eigenvector_residual", ColumnKind::Real, "", residual);
        let vector = ColumnDecl::residue("eigenvector", ColumnKind::Real, "", vector);
        vec![
            vector
                // Three times the error of the iteration. A rotation may add or remove a contact.
                .reference(Tolerance::absolute(1e-4))
                .rotation(Tolerance::absolute(0.01).but_for(5)),
            residual
                .in_table(TableName::Chains)
                // 1e-6 and 5e-7 of an eigenvalue, which is at most the most contacts, some 20.
                .reference(Tolerance::absolute(2e-5))
                .rotation(Tolerance::absolute(1e-5)),
        ]
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        let lists = r.device::<u32>("centrality_lists", RESIDUES, CONTACTS_MAX);
        let degrees = r.device::<u32>("centrality_degrees", RESIDUES, 1);
        let (ca, cells) = (r.ca(), r.cells(CellKind::Ca));
        let radius = CONTACT.milli_angstrom();
        let args = contact_list::Args {
            header: r.header(),
            structures: r.structures(),
            residues: r.residues(),
            atoms: ca,
            cells,
            lists,
            degrees,
            radius,
        };
        r.launch_warps(RESIDUES, args);

        let places = r.device::<u32>("centrality_places", RESIDUES, 1);
        let neighbours = r.device::<u32>("centrality_neighbours", RESIDUES, CONTACT_WORDS);
        let scratch = r.device::<f64>("centrality_scratch", RESIDUES, SCRATCH);
        let vectors = r.results::<f32>(TableName::Residues, "eigenvector", 1);
        let residuals = r.results::<f32>(TableName::Chains, "eigenvector_residual", 1);
        let args = kernels::eigenvector::Args {
            header: r.header(),
            structures: r.structures(),
            chains: r.chains(),
            members: r.members(),
            atoms: ca,
            cells,
            lists,
            degrees,
            places,
            neighbours,
            scratch,
            vectors: vectors.buffer,
            residuals: residuals.buffer,
            radius,
            steps: self.steps,
        };
        r.launch_blocks(CHAINS, args);
        r.column(vectors, 0);
        r.column(residuals, 0);
    }
}

/// Lists the contacts of each residue in its chain, and counts them.
impl Twin for contact_list::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            residues,
            atoms,
            cells,
            lists,
            degrees,
            radius,
        } = self;
        let structures = StructureSpan::live(header, structures);

        let count = header[RESIDUES] as usize;
        let lists = (&mut lists[..count * CONTACTS_MAX], CONTACTS_MAX);
        let degrees = (&mut degrees[..count], 1);
        for_row_ranges_of_two(lists, degrees, |rows, lists, degrees| {
            dispatch!(simd::level(), simd => {
                let mut found = Vec::with_capacity(CONTACTS_MAX);
                let lists = lists.chunks_exact_mut(CONTACTS_MAX);
                for ((residue, list), degree) in rows.zip(lists).zip(degrees) {
                    found.clear();
                    let atom = &atoms[residue];
                    if atom.is_present() {
                        let grid = &structures[residues[residue].structure as usize].residue_grid;
                        let runs = cells.runs(grid, atom.position.into(), radius as i32);
                        let other = |other: u32| {
                            if other as usize != residue {
                                found.push(other);
                            }
                        };
                        cells.each_within(simd, runs, atom, radius, true, other);
                    }
                    found.sort_unstable();
                    let length = found.len().min(CONTACTS_MAX);
                    list[..length].copy_from_slice(&found[..length]);
                    *degree = found.len() as u32;
                }
            });
        });
    }
}

/// Computes the eigenvector of each chain's contact matrix, and its residual.
impl Twin for kernels::eigenvector::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            chains,
            members,
            atoms,
            cells,
            lists,
            degrees,
            places,
            vectors,
            residuals,
            radius,
            steps,
            ..
        } = self;
        let structures = StructureSpan::live(header, structures);

        let chains = &chains[..header[CHAINS] as usize];
        for chain in chains {
            for (place, &residue) in (0..).zip(chain.members(members)) {
                places[residue as usize] = place;
            }
        }
        // A residue's contacts: from its list or, if they exceed it, from the cells in any order.
        let contacts = |residue: u32| -> (Cow<'_, [u32]>, bool) {
            let (row, degree) = (residue as usize, degrees[residue as usize] as usize);
            if degree <= CONTACTS_MAX {
                let list = &lists[row * CONTACTS_MAX..][..degree];
                return (Cow::Borrowed(list), true);
            }
            let atom = &atoms[row];
            let chain = &chains[atom.tag.chain() as usize];
            let grid = &structures[chain.structure as usize].residue_grid;
            let runs = cells.runs(grid, atom.position.into(), radius as i32);
            let near = runs.flatten().filter(|&other| {
                let apart = [
                    cells.x[other] - atom.position.x,
                    cells.y[other] - atom.position.y,
                    cells.z[other] - atom.position.z,
                ];
                let d2: i64 = apart.map(|d| i64::from(d).pow(2)).iter().sum();
                d2 < i64::from(radius).pow(2)
                    && cells.source[other] != residue
                    && cells.tag[other].chain() == atom.tag.chain()
            });
            (near.map(|other| cells.source[other]).collect(), false)
        };
        let compute = |chain: &ChainSpan| {
            let mut graph = ContactGraph::default();
            for &residue in chain.members(members) {
                let (near, is_listed) = contacts(residue);
                let near = near.iter().map(|&other| places[other as usize]);
                graph.push(atoms[residue as usize].is_present(), near, !is_listed);
            }
            graph.eigenvector(steps)
        };
        let results: Vec<ChainVector> = chains.par_iter().map(compute).collect();
        // The residues of chains may interleave, so one thread stores the results of all chains.
        for ((chain, residual), found) in chains.iter().zip(residuals).zip(results) {
            *residual = found.residual as f32;
            for (&residue, value) in chain.members(members).iter().zip(found.vector) {
                vectors[residue as usize] = value as f32;
            }
        }
    }
}
