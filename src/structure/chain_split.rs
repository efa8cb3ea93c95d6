//! Where the chains of a PDB file are split, because they hold several molecules.
//!
//! Programs write several molecules under one chain id, or without one, and separate them by TER, by
//! segment ids, or by residue numbers that start anew. [`ChainSplitter::find`] looks at the residues of
//! the polymer alone, so that ligands and water split nothing. With [`ChainSplit::Auto`] a chain is
//! split, in this order:
//!
//! 1. at another segment id, if the chain has no id, its residue numbers repeat, or no bond joins the two
//!    residues;
//! 2. at TER, if no bond joins the two residues, and the second number is lower, equal or one more. A
//!    larger step is a gap in one molecule: programs write TER there too;
//! 3. within a part whose residue numbers still repeat, where the number falls without a bond.
//!
//! A number repeats if two residues have it, others lie between them, and both have an atom of one name
//! and altloc. So residues that differ in the component at one site do not count.
//!
//! If numbers repeat, and atoms of equal numbers and names are in one place, or atoms of two parts by
//! rule 3, the model holds copies, such as the models of an ensemble without MODEL records.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::atom_table::{Atom, NO_NAME, Run};
use super::cells::Cells;
use super::element::is_heavy;
use super::membership::is_bonded;
use super::polymer::Candidate;
use super::read_options::ChainSplit;
use super::residue_runs::{ModelRuns, PerModel, RESIDUE_ATOMS_MAX, ResidueRuns};
use super::structure_builder::{CA_LINK, is_within};
use super::text8::Text8;

/// Atoms closer than this are in one place, in 0.001 A. No bond of heavy atoms is as short.
pub(super) const SAME_PLACE: i64 = 1_000;

/// Why a chain is split, in messages.
const TER: &str = "TER";
const OTHER_SEGID: &str = "another segment id";
const LOWER_NUMBER: &str = "a lower number";

/// Finds the chains that are split. The memory is for reuse.
#[derive(Default)]
pub(super) struct ChainSplitter {
    /// The last residue of each chain.
    last: PerModel<u32>,
}

/// A chain that is split.
#[derive(Debug)]
pub(super) struct SplitChain {
    /// Index into the table's chains.
    pub chain: u32,
    /// Its residues, as indices into the candidates, in file order.
    pub residues: Vec<u32>,
    /// Where the second part and those after it start, as indices into `residues`.
    pub starts: Vec<usize>,
    /// Why the second part starts.
    pub reason: &'static str,
}

/// Two residues in one place.
#[derive(Debug)]
pub(super) struct Copies {
    /// [`Run::offset`] of the second residue.
    pub offset: u32,
    pub message: String,
}

impl ChainSplitter {
    /// Prepares for the models of a file with so many chains.
    pub(super) fn start_file(&mut self, chains: usize) {
        self.last.resize(chains);
    }

    /// The chains of a model that are split by `rule`.
    ///
    /// # Errors
    /// The model holds copies of residues, with [`ChainSplit::Auto`].
    pub(super) fn find(
        &mut self,
        candidates: &ResidueRuns<Candidate>,
        model: ModelRuns,
        rule: ChainSplit,
    ) -> Result<Vec<SplitChain>, Copies> {
        let mut chains = self.unusual_chains(candidates, model);
        if chains.is_empty() {
            return Ok(Vec::new());
        }
        for (at, residue) in (0..).zip(&candidates.residues) {
            if let Some(chain) = chains.get_mut(&model.runs[residue.head as usize].chain) {
                chain.residues.push(at);
            }
        }
        let mut split = Vec::new();
        for (number, chain) in chains {
            let chain = Chain::new(candidates, model, number, chain);
            let starts = chain.starts(rule)?;
            if let Some(&(_, reason)) = starts.first() {
                split.push(SplitChain {
                    chain: chain.number,
                    residues: chain.residues,
                    starts: starts.into_iter().map(|(at, _)| at).collect(),
                    reason,
                });
            }
        }
        Ok(split)
    }

    /// The chains that rules may apply to: of one residue and the one before it in the chain, the
    /// second is in another segment, or its number is lower. They have room for their residues.
    fn unusual_chains(
        &mut self,
        candidates: &ResidueRuns<Candidate>,
        model: ModelRuns,
    ) -> BTreeMap<u32, UnusualChain> {
        self.last.clear();
        let mut found: BTreeMap<u32, UnusualChain> = BTreeMap::new();
        let mut before: Option<(u32, &Run)> = None;
        for (at, residue) in (0..).zip(&candidates.residues) {
            let run = &model.runs[residue.head as usize];
            let last = match before {
                Some((_, last)) if last.chain == run.chain => Some(last),
                Some((last_at, last)) => {
                    self.last.set(last.chain, last_at);
                    let last = self.last.get(run.chain);
                    last.map(|at| &model.runs[candidates.residues[at as usize].head as usize])
                }
                None => None,
            };
            if let Some(last) = last {
                let is_lower = (last.seq, last.ins_code) > (run.seq, run.ins_code);
                if is_lower || (last.segment, last.segid) != (run.segment, run.segid) {
                    found.entry(run.chain).or_default().has_lower |= is_lower;
                }
            }
            before = Some((at, run));
        }
        found
    }
}

/// A chain that rules may apply to.
#[derive(Default)]
struct UnusualChain {
    /// Whether a number is lower than the one before. Otherwise no number repeats.
    has_lower: bool,
    /// As [`Chain::residues`].
    residues: Vec<u32>,
}

/// The residues of a chain.
struct Chain<'a> {
    candidates: &'a ResidueRuns<Candidate>,
    model: ModelRuns<'a>,
    /// Index into the table's chains.
    number: u32,
    /// Indices into the candidates, in file order.
    residues: Vec<u32>,
    /// For each residue the number of its site: consecutive residues of one number are one.
    sites: Vec<u32>,
    /// As [`UnusualChain::has_lower`].
    has_lower: bool,
}

/// An atom of a residue, an index into [`Chain::residues`].
#[derive(Clone, Copy)]
struct PlacedAtom {
    residue: usize,
    name: Text8,
    altloc: u8,
}

impl<'a> Chain<'a> {
    fn new(
        candidates: &'a ResidueRuns<Candidate>,
        model: ModelRuns<'a>,
        number: u32,
        chain: UnusualChain,
    ) -> Self {
        let sites = Vec::with_capacity(chain.residues.len());
        let mut chain = Chain {
            candidates,
            model,
            number,
            residues: chain.residues,
            sites,
            has_lower: chain.has_lower,
        };
        let mut site = 0;
        for at in 0..chain.residues.len() {
            site += u32::from(at > 0 && chain.number(at) != chain.number(at - 1));
            chain.sites.push(site);
        }
        chain
    }

    /// The residues before which the chain is split, ascending, and why.
    fn starts(&self, rule: ChainSplit) -> Result<Vec<(usize, &'static str)>, Copies> {
        let reason = |at: usize| match rule {
            ChainSplit::Auto | ChainSplit::Id => None,
            ChainSplit::Ter => self.is_other_segment(at).then_some(TER),
            ChainSplit::Segid => self.is_other_segid(at).then_some(OTHER_SEGID),
            ChainSplit::Number => self.starts_anew(at).then_some(LOWER_NUMBER),
        };
        if rule == ChainSplit::Auto {
            return self.automatic_starts();
        }
        let starts = 1..self.residues.len();
        Ok(starts.filter_map(|at| Some((at, reason(at)?))).collect())
    }

    fn automatic_starts(&self) -> Result<Vec<(usize, &'static str)>, Copies> {
        let count = self.residues.len();
        let repeats = self.has_lower && self.repeats(0..count);
        if repeats {
            let is_copy = |one: &PlacedAtom, other: &PlacedAtom| {
                let names = |atom: &PlacedAtom| (self.number(atom.residue), atom.name, atom.altloc);
                names(one) == names(other) && self.sites[one.residue] != self.sites[other.residue]
            };
            self.refuse_copies(0..count, is_copy)?;
        }
        let has_no_id = self.model.table.chains[self.number as usize].auth == NO_NAME;
        let reason = |at: usize| {
            if self.is_other_segid(at) && (has_no_id || repeats || !self.is_linked(at)) {
                return Some(OTHER_SEGID);
            }
            let step = || Some(i64::from(self.run(at).seq?) - i64::from(self.run(at - 1).seq?));
            let goes_on = || step().is_some_and(|step| step > 1);
            (self.is_other_segment(at) && !goes_on() && !self.is_linked(at)).then_some(TER)
        };
        let starts = (1..count).filter_map(|at| Some((at, reason(at)?)));
        let mut starts: Vec<(usize, &'static str)> = starts.collect();
        if repeats {
            let ends: Vec<usize> = starts.iter().map(|&(at, _)| at).chain([count]).collect();
            let mut first = 0;
            for end in ends {
                self.split_part(first..end, &mut starts)?;
                first = end;
            }
            starts.sort_unstable_by_key(|&(at, _)| at);
        }
        Ok(starts)
    }

    /// Adds where residue numbers start anew in a part in which they repeat.
    fn split_part(
        &self,
        part: Range<usize>,
        starts: &mut Vec<(usize, &'static str)>,
    ) -> Result<(), Copies> {
        if !self.repeats(part.clone()) {
            return Ok(());
        }
        let inner = part.start + 1..part.end;
        let lower: Vec<usize> = inner.filter(|&at| self.starts_anew(at)).collect();
        let stretch = |residue: usize| lower.partition_point(|&start| start <= residue);
        self.refuse_copies(part, |one, other| {
            stretch(one.residue) != stretch(other.residue)
        })?;
        starts.extend(lower.iter().map(|&at| (at, LOWER_NUMBER)));
        Ok(())
    }

    /// The first run of a residue.
    fn run(&self, at: usize) -> &Run {
        let residue = &self.candidates.residues[self.residues[at] as usize];
        &self.model.runs[residue.head as usize]
    }

    /// Number and insertion code.
    fn number(&self, at: usize) -> (Option<i32>, u8) {
        let run = self.run(at);
        (run.seq, run.ins_code)
    }

    /// Whether TER is between a residue and the one before.
    fn is_other_segment(&self, at: usize) -> bool {
        self.run(at - 1).segment != self.run(at).segment
    }

    fn is_other_segid(&self, at: usize) -> bool {
        self.run(at - 1).segid != self.run(at).segid
    }

    fn atoms(&self, at: usize) -> impl Iterator<Item = &Atom> {
        let residue = &self.candidates.residues[self.residues[at] as usize];
        let atoms = self.candidates.atoms(self.model, residue);
        atoms.take(RESIDUE_ATOMS_MAX)
    }

    /// Whether the number of a residue is lower than that of the one before, and no bond joins them.
    fn starts_anew(&self, at: usize) -> bool {
        self.run(at).seq < self.run(at - 1).seq && !self.is_linked(at)
    }

    /// Whether a bond of the backbone joins a residue to the one before, or the alpha carbons are near
    /// if an atom of a peptide bond is missing.
    fn is_linked(&self, at: usize) -> bool {
        let [from, to] = [at - 1, at].map(|at| self.residues[at] as usize);
        let named = |at, name: &'static Text8| self.atoms(at).filter(move |it| it.name == *name);
        let has = |at, name| named(at, name).next().is_some();
        is_bonded(self.candidates, self.model, from, to)
            || ((!has(at - 1, b"C       ") || !has(at, b"N       "))
                && named(at - 1, b"CA      ").any(|one| {
                    named(at, b"CA      ").any(|other| is_within(one.xyz, other.xyz, CA_LINK))
                }))
    }

    /// Whether a number repeats in a part.
    fn repeats(&self, part: Range<usize>) -> bool {
        // The last residue of each number.
        let mut seen: HashMap<(Option<i32>, u8), usize> = HashMap::new();
        part.into_iter().any(|at| {
            let last = seen.insert(self.number(at), at);
            last.is_some_and(|last| self.sites[last] != self.sites[at] && self.share_atom(last, at))
        })
    }

    /// Whether two residues of one number have an atom of equal name and altloc. Two of one component
    /// have: they would be one residue otherwise.
    fn share_atom(&self, one: usize, other: usize) -> bool {
        let name = |atom: &Atom| (atom.name, atom.altloc);
        self.run(one).comp == self.run(other).comp
            || (self.atoms(one)).any(|one| self.atoms(other).any(|other| name(one) == name(other)))
    }

    /// Refuses two atoms of a part in one place for which `are_copies` holds.
    fn refuse_copies(
        &self,
        part: Range<usize>,
        are_copies: impl Fn(&PlacedAtom, &PlacedAtom) -> bool,
    ) -> Result<(), Copies> {
        let mut earlier: Cells<PlacedAtom> = Cells::default();
        for residue in part {
            for atom in self.atoms(residue).filter(|atom| is_heavy(atom.element)) {
                let placed = PlacedAtom {
                    residue,
                    name: atom.name,
                    altloc: atom.altloc,
                };
                let copy = earlier
                    .near(atom.xyz, SAME_PLACE)
                    .find(|(_, other)| are_copies(other, &placed));
                if let Some((_, other)) = copy {
                    return Err(self.copies(other, &placed));
                }
                earlier.add(atom.xyz, placed);
            }
        }
        Ok(())
    }

    fn copies(&self, one: &PlacedAtom, other: &PlacedAtom) -> Copies {
        let text = |atom: &PlacedAtom| {
            let name = String::from_utf8_lossy(atom.name.trim_ascii_end()).into_owned();
            format!(
                "{} of {}",
                name,
                self.model.table.residue_text(self.run(atom.residue))
            )
        };
        Copies {
            offset: self.run(other.residue).offset,
            message: format!(
                "residue numbers of a chain repeat, and atom {} and atom {} are less than 1 A apart: the \
                 model holds copies of its molecules",
                text(one),
                text(other)
            ),
        }
    }
}
