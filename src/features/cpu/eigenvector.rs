//! Twin of `kernels/eigenvector.cu`.

use super::super::centrality::CONTACTS_MAX;
use super::super::layout::{Atom, CHAINS, ChainSpan};
use super::cells::Cells;
use super::split::structures;
use super::tree_sum;
use crate::record::TwinLaunch;
use rayon::prelude::*;
use std::borrow::Cow;

/// Steps from one scaling to the next, where every residue has a list.
const UNSCALED: u32 = 8;

/// Threads of the kernel whose partial sums are added as a tree.
const THREADS: usize = 256;

/// Values as whole numbers: so many make 1.
const WHOLE: f64 = 4_194_304.0;

/// The eigenvector of each chain's contacts, and what is left of it.
pub(in super::super) fn eigenvector(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let chains: &[ChainSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let members: &[u32] = launch.read();
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let cells = Cells::take(launch);
    let lists: &[u32] = launch.read();
    let degrees: &[u32] = launch.read();
    let places: &mut [u32] = launch.write();
    let _neighbours: &mut [u32] = launch.write();
    let _scratch: &mut [f64] = launch.write();
    let vectors: &mut [f32] = launch.write();
    let residuals: &mut [f32] = launch.write();
    let radius: u32 = launch.scalar();
    let steps: u32 = launch.scalar();

    let chains = &chains[..header[CHAINS] as usize];
    for chain in chains {
        for (place, &residue) in (0..).zip(chain.members(members)) {
            places[residue as usize] = place;
        }
    }
    // A residue's contacts from its list or, where they are too many for one, from
    // the cells, in any order.
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
    // Chains may interleave, so their results are put in place by one thread.
    for ((chain, residual), (vector, rest)) in chains.iter().zip(residuals).zip(results) {
        *residual = rest as f32;
        for (&residue, value) in chain.members(members).iter().zip(vector) {
            vectors[residue as usize] = value as f32;
        }
    }
}

/// The contacts of a chain's residues, by their places in the chain.
struct Graph {
    present: Vec<bool>,
    starts: Vec<usize>,
    contacts: Vec<u32>,
    /// Whether a residue's contacts are in their order.
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

    /// `sum` and the values of a residue's contacts: added in their order or,
    /// where they have none, as whole numbers, whose order is all one.
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

    /// After `steps` steps of A + I; and the length of A v - (v . A v) v. NaN
    /// where there is no C-alpha.
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

/// The sum in the order of the kernel's block.
fn block_sum(values: impl Iterator<Item = f64>) -> f64 {
    let mut sums = [0.0; THREADS];
    for (lane, value) in (0..THREADS).cycle().zip(values) {
        sums[lane] += value;
    }
    tree_sum(&mut sums)
}
