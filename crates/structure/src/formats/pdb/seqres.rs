//! SEQRES and REMARK 465: which position of its chain's sequence each residue has.
//!
//! SEQRES lists the components of a chain, observed or not, and REMARK 465 those that were not
//! observed, with their numbers. So the residues of the file and those of the remark, merged, are
//! the sequence. A merge that gives SEQRES exactly is searched for; where both lists have the
//! component that comes next, the lower number goes first. Numbers alone would not do: they may
//! jump and go back.

use std::collections::{BTreeMap, HashMap};

use crate::atom_table::{AtomTable, NameId, NameTable, RawChain};
use crate::decimal::int;
use crate::model::SequenceResidue;
use crate::text8::{Text8, text8};

/// The most pairs of an observed and an unobserved residue that the search looks at for one chain, and
/// the most bytes that it takes. The longest chains have some 35,000 residues, and hundreds of them are
/// not observed.
const PAIRS_MAX: usize = 1 << 24;

/// The most of these pairs, and residues that are looked at for a model, for each byte of the file: many
/// models may have one long sequence. Of chains and models beyond it no residue has a position. A chain of
/// alpha carbons with a thousand unobserved residues takes 13.
const PAIRS_PER_BYTE: usize = 64;

/// What SEQRES and REMARK 465 list for each chain.
#[derive(Default)]
pub(super) struct Seqres {
    chains: HashMap<NameId, ChainSequence>,
}

#[derive(Default)]
struct ChainSequence {
    components: Vec<Text8>,
    unobserved: Vec<Remark465Residue>,
}

/// A residue of REMARK 465.
struct Remark465Residue {
    /// The model that lacks it; `None` for all.
    model: Option<i32>,
    number: SiteNumber,
    component: Text8,
}

/// Residue number and insertion code.
type SiteNumber = (i32, u8);

/// Runs with one number, which follow each other: a residue, or several that share a site.
struct NumberedSite {
    number: Option<SiteNumber>,
    /// Indices into the table's runs.
    runs: std::ops::Range<usize>,
}

impl Seqres {
    /// Adds a component of SEQRES to its chain.
    pub(super) fn add(&mut self, chain: NameId, component: Text8) {
        let known = self.chains.entry(chain).or_default();
        known.components.push(component);
    }

    /// Reads a line of REMARK 465. Lines of its heading have text before the component, or no
    /// number.
    pub(super) fn read_remark_line(&mut self, line: &[u8], names: &mut NameTable) {
        let Some(number) = line.get(21..26).and_then(|field| int(field.trim_ascii())) else {
            return;
        };
        let model = match line[10..15].trim_ascii() {
            b"" => None,
            model => match int(model) {
                Some(model) => Some(model),
                None => return,
            },
        };
        let (component, chain) = (line[15..18].trim_ascii(), line[18..20].trim_ascii());
        if component.is_empty() {
            return;
        }
        let ins_code = line.get(26).copied().filter(|&code| code != b' ');
        let unobserved = Remark465Residue {
            model,
            number: (number, ins_code.unwrap_or(0)),
            component: text8(component),
        };
        let chain = self.chains.entry(names.intern(chain)).or_default();
        chain.unobserved.push(unobserved);
    }

    /// The records of a chain; `None` if it has no sequence.
    fn sequence_of(&self, raw: &RawChain) -> Option<&ChainSequence> {
        let known = self.chains.get(&raw.auth)?;
        (!known.components.is_empty()).then_some(known)
    }

    /// Sets the positions of the table's runs, from 1. Runs of chains whose residues and REMARK 465
    /// do not add up to SEQRES keep none. Gives each chain its sequence if `has_sequences`. The file has
    /// `text_bytes` of text.
    pub(super) fn number(&self, table: &mut AtomTable, text_bytes: usize, has_sequences: bool) {
        if self
            .chains
            .values()
            .all(|chain| chain.components.is_empty())
        {
            return;
        }
        let mut sequences: HashMap<u32, Vec<SequenceResidue>> = HashMap::new();
        for (chain, raw) in (0..).zip(&table.chains).filter(|_| has_sequences) {
            if let Some(known) = self.sequence_of(raw) {
                let components = known.components.iter();
                let residues = components.map(|comp| SequenceResidue::unnumbered(*comp));
                sequences.insert(chain, residues.collect());
            }
        }
        // In order: where models number a residue of the sequence differently, the first model counts.
        let mut runs_of_chain: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
        for (index, run) in table.runs.iter().enumerate() {
            let runs = runs_of_chain.entry((run.model, run.chain)).or_default();
            runs.push(index);
        }
        let mut pairs_left = PAIRS_PER_BYTE.saturating_mul(text_bytes);
        for ((model, chain), runs) in runs_of_chain {
            let Some(known) = self.sequence_of(&table.chains[chain as usize]) else {
                continue;
            };
            let sites = sites(table, &runs);
            let model = table.models[model as usize];
            let positions = known.positions(table, model, &runs, &sites, &mut pairs_left);
            let Some(positions) = positions else {
                continue;
            };
            for (site, &position) in sites.iter().zip(&positions) {
                for &run in &runs[site.runs.clone()] {
                    table.runs[run].seqres = Some(position);
                }
            }
            if let Some(sequence) = sequences.get_mut(&chain) {
                known.number_sequence(model, &sites, &positions, sequence);
            }
        }
        let sequences = sequences.into_iter();
        table.whole_sequences = sequences
            .map(|(chain, residues)| (chain, residues.into()))
            .collect();
    }
}

/// The sites of a chain's runs, which are indices into the table's.
fn sites(table: &AtomTable, runs: &[usize]) -> Vec<NumberedSite> {
    let number = |index: &usize| {
        let run = &table.runs[*index];
        run.seq.map(|seq| (seq, run.ins_code))
    };
    let mut end = 0;
    let site = |group: &[usize]| {
        let start = end;
        end += group.len();
        NumberedSite {
            number: number(&group[0]),
            runs: start..end,
        }
    };
    runs.chunk_by(|a, b| number(a) == number(b))
        .map(site)
        .collect()
}

impl ChainSequence {
    /// Numbers the residues of a sequence in which the first sites of a model have these positions,
    /// from 1.
    fn number_sequence(
        &self,
        model: i32,
        sites: &[NumberedSite],
        positions: &[i32],
        sequence: &mut [SequenceResidue],
    ) {
        let mut number = |place: usize, number: Option<SiteNumber>| {
            let residue = &mut sequence[place];
            if let (None, Some((seq, ins_code))) = (residue.auth_seq_id, number) {
                (residue.auth_seq_id, residue.ins_code) = (Some(seq), ins_code);
            }
        };
        let mut unobserved = self.unobserved_in(model);
        let mut next = 0;
        for (site, &position) in sites.iter().zip(positions) {
            let place = position as usize - 1;
            (next..place).for_each(|position| {
                number(position, unobserved.next().map(|residue| residue.number))
            });
            number(place, site.number);
            next = place + 1;
        }
        (next..self.components.len())
            .for_each(|position| number(position, unobserved.next().map(|residue| residue.number)));
    }

    /// The residues that a model lacks.
    fn unobserved_in(&self, model: i32) -> impl Iterator<Item = &Remark465Residue> {
        let all = self.unobserved.iter();
        all.filter(move |residue| residue.model.is_none_or(|lacking| lacking == model))
    }

    /// The positions of the first sites, which are the polymer; water and ligands follow. `None` if
    /// sites and unobserved residues are not the sequence, or the search takes more than [`PAIRS_MAX`] or
    /// than is left.
    fn positions(
        &self,
        table: &AtomTable,
        model: i32,
        runs: &[usize],
        sites: &[NumberedSite],
        pairs_left: &mut usize,
    ) -> Option<Vec<i32>> {
        let sequence = &self.components;
        let mut take = |pairs: usize| {
            *pairs_left = pairs_left.checked_sub(pairs)?;
            Some(())
        };
        take(sequence.len() + self.unobserved.len())?;
        let unobserved: Vec<_> = self.unobserved_in(model).collect();
        let observed = sites.get(..sequence.len().checked_sub(unobserved.len())?)?;
        let (rows, columns) = (observed.len() + 1, unobserved.len() + 1);
        let pairs = rows
            .checked_mul(columns)
            .filter(|&pairs| pairs <= PAIRS_MAX)?;
        take(pairs)?;
        let is_next = |i: usize, j: usize| {
            let wanted = sequence[i + j];
            let in_site = || {
                let mut runs = runs[observed[i].runs.clone()].iter();
                runs.any(|&run| table.runs[run].comp == wanted)
            };
            let is_site = i < observed.len() && in_site();
            let is_unobserved = j < unobserved.len() && unobserved[j].component == wanted;
            (is_site, is_unobserved)
        };
        // Whether the sites from i on and the unobserved residues from j on merge to the rest of
        // the sequence.
        let mut merges = vec![false; rows * columns];
        for i in (0..rows).rev() {
            for j in (0..columns).rev() {
                merges[i * columns + j] = i + j == sequence.len() || {
                    let (is_site, is_unobserved) = is_next(i, j);
                    (is_site && merges[(i + 1) * columns + j])
                        || (is_unobserved && merges[i * columns + j + 1])
                };
            }
        }
        if !merges[0] {
            return None;
        }
        let mut positions = Vec::with_capacity(observed.len());
        let mut j = 0;
        while positions.len() < observed.len() {
            let i = positions.len();
            let (is_site, is_unobserved) = is_next(i, j);
            let takes_site = is_site && merges[(i + 1) * columns + j];
            let takes_unobserved = is_unobserved && merges[i * columns + j + 1];
            let is_before = |residue: &&Remark465Residue| {
                observed[i]
                    .number
                    .is_some_and(|number| residue.number < number)
            };
            let is_lower = unobserved.get(j).is_some_and(is_before);
            if takes_unobserved && (!takes_site || is_lower) {
                j += 1;
            } else {
                positions.push((i + j + 1) as i32);
            }
        }
        Some(positions)
    }
}
