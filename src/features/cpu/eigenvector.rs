//! Twin of `kernels/eigenvector.cu`.

use super::super::centrality::CONTACTS_MAX;
use super::super::layout::{Atom, CHAINS, ChainSpan, Position, REACH};
use super::tree_sum;
use crate::record::TwinLaunch;
use rayon::prelude::*;

/// Threads of the kernel's block, whose partial sums are added as a tree.
const THREADS: usize = 256;

/// The eigenvector of each chain's contacts, and what is left of it.
pub(in super::super) fn eigenvector(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let chains: &[ChainSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let members: &[u32] = launch.read();
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
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
    let contacts_of = |residue: u32| {
        let (residue, degree) = (residue as usize, degrees[residue as usize] as usize);
        let list = &lists[residue * CONTACTS_MAX..][..CONTACTS_MAX];
        (degree <= CONTACTS_MAX).then(|| &list[..degree])
    };
    let compute = |chain: &ChainSpan| {
        let own = chain.members(members);
        let contacts = |residue| contacts_of(residue);
        Graph::new(own, atoms, contacts, places, radius).eigenvector(steps)
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

/// The contacts of a chain's residues, by their places in the chain, in order.
struct Graph {
    present: Vec<bool>,
    starts: Vec<usize>,
    contacts: Vec<u32>,
}

impl Graph {
    fn new<'a>(
        members: &[u32],
        atoms: &[Atom],
        contacts_of: impl Fn(u32) -> Option<&'a [u32]>,
        places: &[u32],
        radius: u32,
    ) -> Self {
        let atom = |place: u32| &atoms[members[place as usize] as usize];
        let is_near = |a: Position, b: Position| {
            let apart = [a.x - b.x, a.y - b.y, a.z - b.z].map(|d| d.unsigned_abs().min(REACH));
            apart.map(|d| d * d).iter().sum::<u32>() < radius * radius
        };
        let mut graph = Graph {
            present: members
                .iter()
                .map(|&r| atoms[r as usize].is_present())
                .collect(),
            starts: vec![0],
            contacts: Vec::new(),
        };
        let all = 0..members.len() as u32;
        for own in all.clone() {
            match contacts_of(members[own as usize]) {
                Some(list) => {
                    let near = list.iter().map(|&residue| places[residue as usize]);
                    graph.contacts.extend(near);
                }
                // Too many for a list: far beyond what proteins have.
                None => {
                    let others = all.clone().filter(|&other| other != own);
                    let there = others.filter(|&other| atom(other).is_present());
                    let near = |other: &u32| is_near(atom(own).position, atom(*other).position);
                    graph.contacts.extend(there.filter(near));
                }
            }
            graph.starts.push(graph.contacts.len());
        }
        graph
    }

    /// `sum` and the values of a residue's contacts, added in their order.
    fn add_contacts(&self, sum: f64, values: &[f64], own: usize) -> f64 {
        let contacts = &self.contacts[self.starts[own]..self.starts[own + 1]];
        contacts
            .iter()
            .fold(sum, |sum, &contact| sum + values[contact as usize])
    }

    /// After `steps` steps of A + I; and the length of A v - (v . A v) v. NaN
    /// where there is no C-alpha.
    fn eigenvector(&self, steps: u32) -> (Vec<f64>, f64) {
        let count = self.present.len();
        let one = |&present: &bool| f64::from(u8::from(present));
        let mut values: Vec<f64> = self.present.iter().map(one).collect();
        let mut next = vec![0.0; count];
        let inverse_root = |squares: f64| 1.0 / squares.sqrt();
        // Values are scaled when they are read next.
        let mut scale = inverse_root(block_sum(values.iter().copied()));
        for _ in 0..steps {
            for (own, next) in next.iter_mut().enumerate() {
                *next = self.add_contacts(values[own], &values, own) * scale;
            }
            scale = inverse_root(block_sum(next.iter().map(|value| value * value)));
            std::mem::swap(&mut values, &mut next);
        }
        values.iter_mut().for_each(|value| *value *= scale);
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
        let any = scale < f64::INFINITY && count > 0;
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
