//! Twin of `kernels/contact_list.cu`.

use super::super::centrality::CONTACTS_MAX;
use super::super::layout::{Atom, RESIDUES, ResidueSpan};
use super::cells::Cells;
use super::simd::{self, first_lanes, lanes_of, load, of_chain, squared, vectors_of};
use super::split::{for_each_row_of_two, structures};
use crate::record::TwinLaunch;
use fearless_simd::{dispatch, prelude::*};
use std::ops::Range;

/// Contacts of each residue within its chain, and their number.
pub(in super::super) fn contact_list(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let residues: &[ResidueSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let cells = Cells::take(launch);
    let lists: &mut [u32] = launch.write();
    let degrees: &mut [u32] = launch.write();
    let radius: u32 = launch.scalar();

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

/// Adds to `found` the others of the chain within the radius.
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
