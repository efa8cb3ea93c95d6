//! Eigenvector centrality.

use super::columns::{ColumnDecl, ColumnKind, TableName, Tolerance};
use super::cpu::simd::{first_lanes, lanes_of, load, of_chain, squared, vectors_of};
use super::cpu::split::for_each_row_of_two;
use super::cpu::{simd, tree_sum};
use super::cutoff::Cutoff;
use super::feature::{About, Feature, Setting, unknown};
use super::kernels::Cells;
use super::kernels::{Twin, contact_list, eigenvector};
use super::layout::{Atom, CHAINS, ChainSpan, RESIDUES, StructureSpan};
use super::recorder::FeatureRecorder;
use crate::error::Result;
use fearless_simd::dispatch;
use fearless_simd::prelude::*;
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// C-alphas closer than this are in contact.
const CONTACT: Cutoff = Cutoff::of_angstrom(8);

/// The largest number of contacts in a residue's list.
pub(super) const CONTACTS_MAX: usize = 32;

/// Settings of eigenvector centrality.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Centrality {
    /// Steps of the power iteration.
    pub steps: u32,
}

/// The largest number of steps.
const STEPS_MAX: i64 = 100_000;

impl Default for Centrality {
    /// 200 steps.
    fn default() -> Self {
        Centrality { steps: 200 }
    }
}

impl Feature for Centrality {
    fn about(&self) -> About {
        About {
            summary: "How central the residue is in the network of its chain's contacts.",
            formula: "v after so many steps v <- (A + I) v / |(A + I) v| from a uniform vector, \
                      A the contacts of the chain's C-alphas within 8 A; residual: \
                      |A v - (v . A v) v|",
            source: "Bonacich 1972; del Sol et al. 2006, Mol Syst Biol 2:2006.0019",
            needs: &[],
        }
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let steps = Setting::Integer(i64::from(self.steps), 1..=STEPS_MAX);
        vec![("centrality.steps", steps)]
    }

    fn set(&mut self, key: &str, value: &Setting) -> Result<()> {
        match (key, value) {
            ("centrality.steps", Setting::Integer(steps, _)) => {
                self.steps = u32::try_from(*steps).map_err(|_| unknown(key))?;
            }
            _ => return Err(unknown(key)),
        }
        Ok(())
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let vector = format!(
            "Eigenvector centrality in the network of the chain's C-alphas within {} A, after {} \
             steps.",
            CONTACT.angstrom(),
            self.steps
        );
        let residual = "How far the eigenvector still is from one: |A v - (v . A v) v|.";
        let residual = ColumnDecl::residue("eigenvector_residual", ColumnKind::Real, "", residual);
        let vector = ColumnDecl::residue("eigenvector", ColumnKind::Real, "", vector);
        vec![
            vector
                .reference(Tolerance::absolute(1e-4))
                .rotation(Tolerance::absolute(0.01).but_for(5)),
            residual
                .of(TableName::Chains)
                .reference(Tolerance::absolute(1e-4))
                .rotation(Tolerance::absolute(1e-5)),
        ]
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        let lists = r.device::<u32>("centrality_lists", RESIDUES, CONTACTS_MAX);
        let degrees = r.device::<u32>("centrality_degrees", RESIDUES, 1);
        let (ca, cells) = (r.ca(), r.ca_cells());
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
        let neighbours = r.device::<u32>("centrality_neighbours", RESIDUES, CONTACTS_MAX + 1);
        let scratch = r.device::<f64>("centrality_scratch", RESIDUES, 3);
        let vectors = r.results::<f32>(TableName::Residues, "eigenvector", 1);
        let residuals = r.results::<f32>(TableName::Chains, "eigenvector_residual", 1);
        let args = eigenvector::Args {
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
        for_each_row_of_two(lists, degrees, |rows, lists, degrees| {
            dispatch!(simd::level(), simd => {
                let mut found = Vec::with_capacity(CONTACTS_MAX);
                let lists = lists.chunks_exact_mut(CONTACTS_MAX);
                for ((own, list), degree) in rows.zip(lists).zip(degrees) {
                    found.clear();
                    let atom = &atoms[own];
                    if atom.is_present() {
                        let grid = &structures[residues[own].structure as usize].residue_grid;
                        let runs = cells.runs(grid, atom.position.into(), radius as i32);
                        find(simd, &cells, runs, (own as u32, atom), radius, &mut found);
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

/// Adds to `found` the other residues of the chain within the radius.
#[inline(always)]
fn find<S: Simd>(
    simd: S,
    cells: &Cells<'_>,
    runs: impl Iterator<Item = Range<usize>>,
    (own, atom): (u32, &Atom),
    radius: u32,
    found: &mut Vec<u32>,
) {
    let point = atom.position;
    for (at, lanes) in vectors_of(simd, runs) {
        let dx = load(simd, cells.x, at, lanes) - point.x;
        let dy = load(simd, cells.y, at, lanes) - point.y;
        let dz = load(simd, cells.z, at, lanes) - point.z;
        let d2 = squared::<S>(dx, dy, dz, radius as i32);
        let within = d2.simd_lt(radius * radius) & first_lanes(simd, lanes);
        let within = within & of_chain(simd, cells.tag, at, lanes, atom.tag);
        let contacts = lanes_of(within.to_bitmask()).map(|lane| cells.source[at + lane]);
        found.extend(contacts.filter(|&source| source != own));
    }
}

/// Steps between two normalisations of a vector, if every residue has a list.
const UNSCALED: u32 = 8;

/// Threads of the kernel's block; their partial sums are added as a tree.
const THREADS: usize = 256;

/// The fixed-point representation of 1.
const WHOLE: f64 = 4_194_304.0;

/// Computes the eigenvector of each chain's contact matrix, and its residual.
impl Twin for eigenvector::Views<'_> {
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
            let (own, degree) = (residue as usize, degrees[residue as usize] as usize);
            if degree <= CONTACTS_MAX {
                let list = &lists[own * CONTACTS_MAX..][..degree];
                return (Cow::Borrowed(list), true);
            }
            let atom = &atoms[own];
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
            let own = chain.members(members);
            Graph::new(own, atoms, contacts, places).eigenvector(steps)
        };
        let results: Vec<(Vec<f64>, f64)> = chains.par_iter().map(compute).collect();
        // The residues of chains may interleave, so one thread stores the results of all chains.
        for ((chain, residual), (vector, rest)) in chains.iter().zip(residuals).zip(results) {
            *residual = rest as f32;
            for (&residue, value) in chain.members(members).iter().zip(vector) {
                vectors[residue as usize] = value as f32;
            }
        }
    }
}

/// The contacts of a chain's residues, as indices into the chain.
struct Graph {
    present: Vec<bool>,
    starts: Vec<usize>,
    contacts: Vec<u32>,
    /// Whether a residue's contacts are sorted.
    in_order: Vec<bool>,
}

impl Graph {
    fn new<'a>(
        members: &[u32],
        atoms: &[Atom],
        contacts_of: impl Fn(u32) -> (Cow<'a, [u32]>, bool),
        places: &[u32],
    ) -> Self {
        let is_present = |&residue: &u32| atoms[residue as usize].is_present();
        let mut graph = Graph {
            present: members.iter().map(is_present).collect(),
            starts: vec![0],
            contacts: Vec::new(),
            in_order: Vec::with_capacity(members.len()),
        };
        for &residue in members {
            let (near, in_order) = contacts_of(residue);
            let near = near.iter().map(|&other| places[other as usize]);
            graph.contacts.extend(near);
            graph.starts.push(graph.contacts.len());
            graph.in_order.push(in_order);
        }
        graph
    }

    /// `sum` plus the values of a residue's contacts. Sorted contacts are added in order, others in
    /// fixed point, whose sum does not depend on the order.
    fn add_contacts(&self, sum: f64, values: &[f64], own: usize) -> f64 {
        let contacts = &self.contacts[self.starts[own]..self.starts[own + 1]];
        let values = contacts.iter().map(|&contact| values[contact as usize]);
        if self.in_order[own] {
            values.fold(sum, |sum, value| sum + value)
        } else {
            let whole = |value: f64| (value * WHOLE).round_ties_even() as i64;
            sum + values.map(whole).sum::<i64>() as f64 / WHOLE
        }
    }

    /// The vector v after `steps` steps of the power iteration with A + I, and the residual, which
    /// is the length of A v - (v . A v) v. NaN for a residue without C-alpha.
    fn eigenvector(&self, steps: u32) -> (Vec<f64>, f64) {
        let count = self.present.len();
        let one = |&present: &bool| f64::from(u8::from(present));
        let mut values: Vec<f64> = self.present.iter().map(one).collect();
        let mut next = vec![0.0; count];
        let scale = |values: &mut [f64]| {
            let squares = block_sum(values.iter().map(|value| value * value));
            let factor = 1.0 / squares.sqrt();
            values.iter_mut().for_each(|value| *value *= factor);
            factor
        };
        let is_crowded = self.in_order.contains(&false);
        let unscaled = if is_crowded { 1 } else { UNSCALED };
        let mut factor = scale(&mut values);
        for taken in 1..=steps {
            for (own, next) in next.iter_mut().enumerate() {
                *next = self.add_contacts(values[own], &values, own);
            }
            std::mem::swap(&mut values, &mut next);
            if taken % unscaled == 0 || taken == steps {
                factor = scale(&mut values);
            }
        }
        for (own, next) in next.iter_mut().enumerate() {
            *next = self.add_contacts(0.0, &values, own);
        }
        let products = values.iter().zip(&next).map(|(value, image)| value * image);
        let eigenvalue = block_sum(products);
        let rest = values.iter().zip(&next).map(|(value, image)| {
            let rest = image - eigenvalue * value;
            rest * rest
        });
        let rest = block_sum(rest).sqrt();
        for (value, present) in values.iter_mut().zip(&self.present) {
            *value = if *present { *value } else { f64::NAN };
        }
        let any = factor < f64::INFINITY && count > 0;
        (values, if any { rest } else { f64::NAN })
    }
}

/// The sum, in the order in which the kernel's block adds.
fn block_sum(values: impl Iterator<Item = f64>) -> f64 {
    let mut sums = [0.0; THREADS];
    for (lane, value) in (0..THREADS).cycle().zip(values) {
        sums[lane] += value;
    }
    tree_sum(&mut sums)
}
