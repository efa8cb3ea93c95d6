//! Where the chains of a PDB file are split, because they hold several molecules.
//!
//! Programs write several molecules under one chain id, or without one, and separate them by TER, by
//! segment ids, or by residue numbers that start anew. [`ChainSplitter::find`] looks at the residues of
//! the polymer alone, so that ligands and water split nothing. With [`ChainSplit::Auto`] a chain is
//! split, in this order:
//!
//! 1. at another segment id, if the chain has no id, its residue numbers repeat, or no bond joins the two
//!    residues. A residue without a segment id is in another segment only if no bond joins the two;
//! 2. at TER, if no bond joins the two residues, and the second number is lower, equal or one more. A
//!    larger step is a gap in one molecule: programs write TER there too;
//! 3. within a part whose residue numbers still repeat, where the number falls without a bond.
//!
//! A number repeats if two residues have it, others lie between them but none of this number, and both have an
//! atom of one name and altloc, or one is an amino acid and the other a nucleotide. So residues that differ in the
//! component at one site do not count.
//!
//! The model holds copies, such as the models of an ensemble without MODEL records, if numbers of a chain
//! repeat, in one part or in several, and atoms of equal numbers and names are in one place. It does too if
//! any atoms of two parts are in one place that nothing but rule 3 separates.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::atom_table::{AtomLine, AtomRun, NO_NAME, PolymerKind};
use super::cells::Cells;
use super::element::is_heavy;
use super::membership::is_bonded;
use super::polymer::Candidate;
use super::read_options::ChainSplit;
use super::residue_runs::{ModelRuns, PerModel, RESIDUE_ATOMS_MAX, ResidueRuns};
use super::structure_builder::{CA_LINK, SAME_PLACE, is_within};
use super::text8::Text8;

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
pub(super) struct OverlappingCopies {
    /// [`AtomRun::offset`] of the second residue.
    pub offset: u32,
    pub message: String,
}

impl ChainSplitter {
    /// Prepares for the models of a file with `chains` chains.
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
    ) -> Result<Vec<SplitChain>, OverlappingCopies> {
        let mut chains = self.unusual_chains(candidates, model, rule);
        if chains.is_empty() {
            return Ok(Vec::new());
        }
        for (index, residue) in (0..).zip(&candidates.residues) {
            if let Some(chain) = chains.get_mut(&model.runs[residue.head as usize].chain) {
                chain.residues.push(index);
            }
        }
        let mut split = Vec::new();
        for (number, chain) in chains {
            let chain = ChainResidues::new(candidates, model, number, chain);
            let starts = chain.starts(rule)?;
            if let Some(&(_, reason)) = starts.first() {
                split.push(SplitChain {
                    chain: chain.number,
                    residues: chain.residues,
                    starts: starts.into_iter().map(|(index, _)| index).collect(),
                    reason,
                });
            }
        }
        Ok(split)
    }

    /// The chains that a rule may split: those with a residue that has another segment id or a lower number
    /// than the residue before it in the chain, or follows TER; with [`ChainSplit::Auto`] not TER at a gap.
    /// Their lists of residues are empty.
    fn unusual_chains(
        &mut self,
        candidates: &ResidueRuns<Candidate>,
        model: ModelRuns,
        rule: ChainSplit,
    ) -> BTreeMap<u32, UnusualChain> {
        self.last.clear();
        let mut found: BTreeMap<u32, UnusualChain> = BTreeMap::new();
        let mut before: Option<(u32, &AtomRun)> = None;
        for (index, residue) in (0..).zip(&candidates.residues) {
            let run = &model.runs[residue.head as usize];
            let last = match before {
                Some((_, last)) if last.chain == run.chain => Some(last),
                Some((last_index, last)) => {
                    self.last.set(last.chain, last_index);
                    let last = self.last.get(run.chain);
                    last.map(|index| &model.runs[candidates.residues[index as usize].head as usize])
                }
                None => None,
            };
            if let Some(last) = last {
                let number = |run: &AtomRun| (run.seq.unwrap_or_default(), run.ins_code);
                let is_lower = number(last) > number(run);
                let has_ter = last.segment != run.segment
                    && (rule != ChainSplit::Auto || !leaves_gap(last, run));
                if is_lower || has_ter || last.segid != run.segid {
                    found.entry(run.chain).or_default().has_lower |= is_lower;
                }
            }
            before = Some((index, run));
        }
        found
    }
}

/// Whether residues are missing between two residues: the second number is higher by two or more.
fn leaves_gap(before: &AtomRun, this: &AtomRun) -> bool {
    let numbers = before.seq.zip(this.seq);
    numbers.is_some_and(|(before, this)| i64::from(this) - i64::from(before) > 1)
}

/// A chain that rules may apply to.
#[derive(Default)]
struct UnusualChain {
    /// Whether a residue's number is lower than that of the residue before it. If none is, no number
    /// repeats.
    has_lower: bool,
    /// Like [`ChainResidues::residues`].
    residues: Vec<u32>,
}

/// The residues of a chain.
struct ChainResidues<'a> {
    candidates: &'a ResidueRuns<Candidate>,
    model: ModelRuns<'a>,
    /// Index into the table's chains.
    number: u32,
    /// Indices into the candidates, in file order.
    residues: Vec<u32>,
    /// For each residue, the number of its site. Consecutive residues with the same number are one site.
    sites: Vec<u32>,
    /// Like [`UnusualChain::has_lower`].
    has_lower: bool,
}

/// An atom of a residue, an index into [`ChainResidues::residues`].
#[derive(Clone, Copy)]
struct PlacedAtom {
    residue: usize,
    name: Text8,
    altloc: u8,
}

impl<'a> ChainResidues<'a> {
    /// The residues of a chain of `candidates`, with the numbers of their sites.
    fn new(
        candidates: &'a ResidueRuns<Candidate>,
        model: ModelRuns<'a>,
        number: u32,
        chain: UnusualChain,
    ) -> Self {
        let sites = Vec::with_capacity(chain.residues.len());
        let mut chain = ChainResidues {
            candidates,
            model,
            number,
            residues: chain.residues,
            sites,
            has_lower: chain.has_lower,
        };
        let mut site = 0;
        for residue in 0..chain.residues.len() {
            site += u32::from(residue > 0 && chain.number(residue) != chain.number(residue - 1));
            chain.sites.push(site);
        }
        chain
    }

    /// The residues before which the chain is split by `rule`, ascending, each with the reason.
    ///
    /// # Errors
    /// The chain holds copies of residues, with [`ChainSplit::Auto`].
    fn starts(&self, rule: ChainSplit) -> Result<Vec<(usize, &'static str)>, OverlappingCopies> {
        let starts = |splits: &dyn Fn(usize) -> bool, reason| {
            let starts = (1..self.residues.len()).filter(|&residue| splits(residue));
            starts.map(|residue| (residue, reason)).collect()
        };
        Ok(match rule {
            ChainSplit::Auto => return self.automatic_starts(),
            ChainSplit::Id => Vec::new(),
            ChainSplit::Ter => starts(&|residue| self.is_other_segment(residue), TER),
            ChainSplit::Segid => starts(&|residue| self.is_other_segid(residue), OTHER_SEGID),
            ChainSplit::Number => starts(&|residue| self.starts_anew(residue), LOWER_NUMBER),
        })
    }

    /// The residues at which a chain has to be split, and why: a change of the segment identifier,
    /// a TER, or numbers that repeat. Chains whose copies overlap are refused, as no split tells
    /// them apart.
    fn automatic_starts(&self) -> Result<Vec<(usize, &'static str)>, OverlappingCopies> {
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
        let reason = |residue: usize| {
            let [before, this] = [residue - 1, residue].map(|residue| self.run(residue));
            let have_segids = ![before.segid, this.segid].contains(b"    ");
            let separates = have_segids && (has_no_id || repeats);
            if self.is_other_segid(residue) && (separates || !self.is_linked(residue)) {
                return Some(OTHER_SEGID);
            }
            let is_next = self.is_other_segment(residue) && !leaves_gap(before, this);
            (is_next && !self.is_linked(residue)).then_some(TER)
        };
        let starts = (1..count).filter_map(|residue| Some((residue, reason(residue)?)));
        let mut starts: Vec<(usize, &'static str)> = starts.collect();
        if repeats {
            let ends: Vec<usize> = starts
                .iter()
                .map(|&(residue, _)| residue)
                .chain([count])
                .collect();
            let mut first = 0;
            for end in ends {
                self.split_part(first..end, &mut starts)?;
                first = end;
            }
            starts.sort_unstable_by_key(|&(residue, _)| residue);
        }
        Ok(starts)
    }

    /// If residue numbers repeat in a part, adds to `starts` where they start anew.
    ///
    /// # Errors
    /// The stretches that only their numbers separate overlap.
    fn split_part(
        &self,
        part: Range<usize>,
        starts: &mut Vec<(usize, &'static str)>,
    ) -> Result<(), OverlappingCopies> {
        if !self.repeats(part.clone()) {
            return Ok(());
        }
        let inner = part.start + 1..part.end;
        let lower: Vec<usize> = inner.filter(|&start| self.starts_anew(start)).collect();
        let stretch = |residue: usize| lower.partition_point(|&start| start <= residue);
        self.refuse_copies(part, |one, other| {
            stretch(one.residue) != stretch(other.residue)
        })?;
        starts.extend(lower.iter().map(|&start| (start, LOWER_NUMBER)));
        Ok(())
    }

    /// The first run of a residue.
    fn run(&self, residue: usize) -> &AtomRun {
        let candidate = &self.candidates.residues[self.residues[residue] as usize];
        &self.model.runs[candidate.head as usize]
    }

    /// Number and insertion code.
    fn number(&self, residue: usize) -> (Option<i32>, u8) {
        let run = self.run(residue);
        (run.seq, run.ins_code)
    }

    /// Whether TER is between a residue and the one before.
    fn is_other_segment(&self, residue: usize) -> bool {
        self.run(residue - 1).segment != self.run(residue).segment
    }

    fn is_other_segid(&self, residue: usize) -> bool {
        self.run(residue - 1).segid != self.run(residue).segid
    }

    /// The atoms of a residue, at most [`RESIDUE_ATOMS_MAX`].
    fn atoms(&self, residue: usize) -> impl Iterator<Item = &AtomLine> {
        let candidate = &self.candidates.residues[self.residues[residue] as usize];
        let atoms = self.candidates.atoms(self.model, candidate);
        atoms.take(RESIDUE_ATOMS_MAX)
    }

    /// Whether the number of a residue is lower than that of the one before, and no bond joins them.
    fn starts_anew(&self, residue: usize) -> bool {
        self.run(residue).seq < self.run(residue - 1).seq && !self.is_linked(residue)
    }

    /// Whether a bond of the backbone joins a residue to the one before, or the alpha carbons are near
    /// if an atom of a peptide bond is missing.
    fn is_linked(&self, residue: usize) -> bool {
        let [from, to] = [residue - 1, residue].map(|residue| self.residues[residue] as usize);
        let named = |residue, name: &'static Text8| {
            let atoms = self.atoms(residue);
            atoms.filter(move |atom| atom.name == *name)
        };
        let has = |residue, name| named(residue, name).next().is_some();
        is_bonded(self.candidates, self.model, from, to)
            || ((!has(residue - 1, b"C       ") || !has(residue, b"N       "))
                && named(residue - 1, b"CA      ").any(|one| {
                    named(residue, b"CA      ").any(|other| is_within(one.xyz, other.xyz, CA_LINK))
                }))
    }

    /// Whether a number repeats in a part.
    fn repeats(&self, part: Range<usize>) -> bool {
        // The last residue of each number. Each is compared with that one alone, so that the time is linear:
        // where several components share a site a repetition may be missed, but a copy has other numbers too.
        let mut seen: HashMap<(Option<i32>, u8), usize> = HashMap::new();
        part.into_iter().any(|residue| {
            let last = seen.insert(self.number(residue), residue);
            last.is_some_and(|last| {
                self.sites[last] != self.sites[residue] && self.exclude_each_other(last, residue)
            })
        })
    }

    /// Whether two residues of one number have an atom of equal name and altloc, or are an amino acid and a
    /// nucleotide. Two of one component have such an atom: a run that repeats none
    /// continues the residue.
    fn exclude_each_other(&self, one: usize, other: usize) -> bool {
        let name = |atom: &AtomLine| (atom.name, atom.altloc);
        let kind = |residue: usize| {
            self.candidates.residues[self.residues[residue] as usize]
                .data
                .kind()
        };
        let kinds = [kind(one), kind(other)];
        self.run(one).comp == self.run(other).comp
            || (kinds.contains(&PolymerKind::Amino) && kinds.contains(&PolymerKind::Nucleotide))
            || (self.atoms(one)).any(|one| self.atoms(other).any(|other| name(one) == name(other)))
    }

    /// Refuses a part with two atoms in one place for which `are_copies` is true.
    fn refuse_copies(
        &self,
        part: Range<usize>,
        are_copies: impl Fn(&PlacedAtom, &PlacedAtom) -> bool,
    ) -> Result<(), OverlappingCopies> {
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
                    return Err(self.overlap_error(other, &placed));
                }
                earlier.add(atom.xyz, placed);
            }
        }
        Ok(())
    }

    /// The error of two atoms that are copies of one, nearly at the same position.
    fn overlap_error(&self, one: &PlacedAtom, other: &PlacedAtom) -> OverlappingCopies {
        let text = |atom: &PlacedAtom| {
            let name = String::from_utf8_lossy(atom.name.trim_ascii_end()).into_owned();
            format!(
                "{} of {}",
                name,
                self.model.table.residue_text(self.run(atom.residue))
            )
        };
        OverlappingCopies {
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
