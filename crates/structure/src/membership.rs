//! Which HETATM residues, and which residues of unknown components, belong to a polymer chain in a file
//! without entities.
//!
//! Amino acids and nucleotides are linked if C-N or O3'-P of neighbours in the file are closer than
//! 2.0 A. Neighbours are of one chain and of one segment: TER ends the segment of its chain. A
//! HETATM residue is polymer if links lead from it to a residue that is certain: one of ATOM
//! records, one that MODRES names, selenomethionine, or one of a component of the chain's SEQRES
//! that is not standard, before TER. In a chain without any certain residue the residues that are
//! linked to each other are polymer, in the first of its segments. All others are ligands.
//!
//! A residue of an unknown component with the atoms N, CA and C is an amino acid if a peptide bond
//! joins it to a neighbour on each side, or on one side if the file marks it as part of a polymer.
//! With a bond on one side alone it may be a covalent inhibitor; it is a ligand, and counted.

use std::collections::HashMap;

use super::disjoint_sets::DisjointSets;
use super::polymer::{Candidate, NeededLink};
use super::residue_runs::{ModelRuns, RESIDUE_ATOMS_MAX, ResidueNumber, ResidueRuns};
use super::structure_builder::{LINK, is_within};
use super::text8::Text8;

/// The most residues in a row that are compared because they have the same number, which bounds the
/// time. A site has a few components.
pub(super) const SITE_RESIDUES_MAX: usize = 8;

/// The facts on a chain that decide whether its candidates are certain.
#[derive(Clone, Copy)]
struct ChainState {
    /// Whether the chain has a residue that is certain.
    has_certain: bool,
    /// The first segment with a candidate.
    first_segment: u32,
}

/// Residues that were dropped although a peptide bond joins them to the polymer.
#[derive(Clone, Copy, Default)]
pub(super) struct DroppedResidues {
    pub count: u32,
    /// The first run of the first such residue.
    pub first: Option<u32>,
}

/// Drops the candidates that need a link and do not belong to a chain.
pub(super) fn drop_others(
    candidates: &mut ResidueRuns<Candidate>,
    model: ModelRuns,
) -> DroppedResidues {
    let mut dropped = DroppedResidues::default();
    if !candidates
        .residues
        .iter()
        .any(|residue| residue.data.link != NeededLink::None)
    {
        return dropped;
    }
    let mut belongs = membership(candidates, model).into_iter();
    candidates.residues.retain(|residue| {
        let belongs = belongs.next().unwrap_or(Membership::Other);
        if belongs == Membership::Linked {
            dropped.count += 1;
            dropped.first.get_or_insert(residue.head);
        }
        belongs == Membership::Member
    });
    dropped
}

/// Whether a candidate belongs to a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Membership {
    /// The candidate belongs to a chain.
    Member,
    /// The candidate belongs to no chain, although a peptide bond joins it to one.
    Linked,
    /// The candidate belongs to no chain.
    Other,
}

/// Whether each candidate belongs to a chain.
fn membership(candidates: &ResidueRuns<Candidate>, model: ModelRuns) -> Vec<Membership> {
    let residues = &candidates.residues;
    let run_of = |index: usize| &model.runs[residues[index].head as usize];
    let mut chains: HashMap<u32, ChainState> = HashMap::new();
    for (index, residue) in residues.iter().enumerate() {
        let run = run_of(index);
        let state = chains.entry(run.chain).or_insert(ChainState {
            has_certain: false,
            first_segment: run.segment,
        });
        state.has_certain |= residue.data.link == NeededLink::None;
        state.first_segment = state.first_segment.min(run.segment);
    }
    // Residues that links join are a group.
    let mut groups = DisjointSets::new(residues.len());
    let mut sides = vec![0u8; residues.len()];
    for index in 0..residues.len() {
        if residues[index].data.link != NeededLink::None {
            let before = neighbours(candidates, model, index, (0..index).rev());
            let after = neighbours(candidates, model, index, index + 1..residues.len());
            let before = before
                .into_iter()
                .filter(|&other| is_bonded(candidates, model, other, index));
            let after = after
                .into_iter()
                .filter(|&other| is_bonded(candidates, model, index, other));
            let (before, after): (Vec<_>, Vec<_>) = (before.collect(), after.collect());
            sides[index] = u8::from(!before.is_empty()) + u8::from(!after.is_empty());
            for other in before.into_iter().chain(after) {
                groups.join(index as u32, other as u32);
            }
        }
    }
    let mut sizes = vec![0u32; residues.len()];
    let mut is_certain = vec![false; residues.len()];
    let group_of: Vec<usize> = (0..residues.len())
        .map(|index| groups.root(index as u32) as usize)
        .collect();
    for (residue, &group) in residues.iter().zip(&group_of) {
        sizes[group] += 1;
        is_certain[group] |= residue.data.link == NeededLink::None;
    }
    let membership = |(index, &group): (usize, &usize)| {
        let run = run_of(index);
        let chain = chains[&run.chain];
        let alone = !chain.has_certain && run.segment == chain.first_segment;
        let is_of_chain = is_certain[group] || (alone && sizes[group] > 1);
        let has_links = match residues[index].data.link {
            NeededLink::None | NeededLink::Any => true,
            NeededLink::OneSide => sides[index] >= 1,
            NeededLink::BothSides => sides[index] == 2,
        };
        match (is_of_chain, has_links) {
            (true, true) => Membership::Member,
            (true, false) => Membership::Linked,
            (false, _) => Membership::Other,
        }
    };
    group_of.iter().enumerate().map(membership).collect()
}

/// The candidates of the same chain and segment with the number that follows in `order`. There are
/// several if they differ only in the component.
fn neighbours(
    candidates: &ResidueRuns<Candidate>,
    model: ModelRuns,
    residue: usize,
    order: impl Iterator<Item = usize>,
) -> Vec<usize> {
    let segment_of =
        |residue: usize| model.runs[candidates.residues[residue].head as usize].segment;
    let number_of = |residue: usize| -> ResidueNumber { candidates.number(model, residue) };
    let own_number = number_of(residue);
    // Those of the same site as the residue count too.
    let mut others = order
        .take(SITE_RESIDUES_MAX)
        .take_while(|&other| {
            number_of(other).0 == own_number.0 && segment_of(other) == segment_of(residue)
        })
        .skip_while(|&other| number_of(other) == own_number)
        .peekable();
    let next = others.peek().map(|&other| number_of(other));
    others
        .take_while(|&other| Some(number_of(other)) == next)
        .collect()
}

/// Whether a backbone bond joins the end of one candidate to the start of another.
pub(super) fn is_bonded(
    candidates: &ResidueRuns<Candidate>,
    model: ModelRuns,
    from: usize,
    to: usize,
) -> bool {
    const BONDS: [(Text8, Text8); 3] = [
        (*b"C       ", *b"N       "),
        (*b"O3'     ", *b"P       "),
        (*b"O3*     ", *b"P       "),
    ];
    let named = |residue: usize, name: Text8| {
        let atoms = candidates.atoms(model, &candidates.residues[residue]);
        let atoms = atoms.take(RESIDUE_ATOMS_MAX);
        atoms.filter(move |atom| atom.name == name)
    };
    BONDS.iter().any(|&(end, start)| {
        named(from, end).any(|a| named(to, start).any(|b| is_within(a.xyz, b.xyz, LINK)))
    })
}
