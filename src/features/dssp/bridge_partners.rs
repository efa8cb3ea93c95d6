//! Twin of `kernels/bridge_partners.cu`.

use super::super::cpu::split::for_row_ranges;
use super::super::kernels::{Twin, bridge_partners};
use super::super::layout::{BRIDGES_MAX, Bridges, RESIDUES, ResidueSpan, StructureSpan};
use super::bonds::{Bonds, NO_BRIDGE, bridge_to, is_joined};

/// Finds the residues that each residue forms a bridge with.
impl Twin for bridge_partners::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            residues,
            hydrogens,
            partners,
            energies,
            bridges,
        } = self;
        let count = header[RESIDUES] as usize;
        let structures = StructureSpan::live(header, structures);
        let residues: &[ResidueSpan] = &residues[..count];
        let bonds = Bonds::new(partners, energies);

        let hydrogens = &hydrogens[..count];
        let can_bridge =
            |residue: usize| is_joined(hydrogens, residue) && is_joined(hydrogens, residue + 1);
        for_row_ranges(&mut bridges[..count], 1, |rows, bridges| {
            for (residue, bridges) in rows.zip(bridges) {
                *bridges = Bridges([NO_BRIDGE; BRIDGES_MAX]);
                if can_bridge(residue) {
                    let structure = residues[residue].structure as usize;
                    let first = structures[structure].residue_start as usize;
                    find(residue, first, bonds, &can_bridge, bridges);
                }
            }
        });
    }
}

/// Finds the bridges of a residue that can have some; its structure starts at residue `first`. Each
/// pattern of a bridge (docs/METHODS.md) consists of a bond of the residue's or the next residue's
/// N-H, and one more bond.
fn find(
    residue: usize,
    first: usize,
    bonds: Bonds<'_>,
    can_bridge: &impl Fn(usize) -> bool,
    bridges: &mut Bridges,
) {
    let mut count = 0;
    // `can_bridge` comes before the bond: it shows that residue `partner + 1` exists.
    let mut test = |partner: usize, donor: usize, acceptor: usize, is_antiparallel: bool| {
        if residue.abs_diff(partner) >= 3
            && can_bridge(partner)
            && bonds.between(donor, acceptor, first)
        {
            add(bridges, &mut count, bridge_to(partner, is_antiparallel));
        }
    };
    for acceptor in bonds.acceptors(residue, first).into_iter().flatten() {
        test(acceptor, acceptor, residue, true);
        test(acceptor + 1, acceptor + 2, residue, false);
    }
    for acceptor in bonds.acceptors(residue + 1, first).into_iter().flatten() {
        test(acceptor, acceptor, residue - 1, false);
        test(acceptor + 1, acceptor + 2, residue - 1, true);
    }
}

/// Inserts a bridge sorted by partner, which is the order of ladders. A bridge that is parallel and
/// antiparallel counts as parallel, as in DSSP. A residue never has more than `BRIDGES_MAX`.
fn add(bridges: &mut Bridges, count: &mut usize, bridge: u32) {
    let Bridges(bridges) = bridges;
    let place = bridges[..*count].partition_point(|other| other / 2 < bridge / 2);
    if place < *count && bridges[place] / 2 == bridge / 2 {
        bridges[place] = bridges[place].min(bridge);
        return;
    }
    bridges.copy_within(place..*count, place + 1);
    bridges[place] = bridge;
    *count += 1;
}
