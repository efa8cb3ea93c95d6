//! Where the text of a file holds its B factors, for a program that writes others
//! in their place and keeps everything else.

use super::ReadLimits;
use super::cif_lexer::{Lexer, Rows, Token};
use super::model::Chain;
use super::reader::{Format, Models, ReadOptions};
use super::select::RESIDUE_ATOMS;
use super::table::{AtomTable, NO_NAME, Run};
use super::{atom_site, mmcif, pdb};
use crate::Result;
use memchr::memchr;
use std::collections::HashMap;
use std::ops::Range;

/// The residues of a file as its text names them, all of them, whatever is polymer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BFactorPlaces {
    /// In the order of their first atoms, one model after the other.
    pub residues: Vec<ResiduePlaces>,
    /// Where atoms of an mmCIF file without B factors need the item
    /// `_atom_site.B_iso_or_equiv`; their places are then at the ends of the rows.
    pub items_missing_at: Vec<usize>,
}

/// One residue and the places of its atoms' B factors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResiduePlaces {
    /// The place of the model among the file's, from 0.
    pub model: usize,
    /// The chain's names.
    pub chain: Chain,
    /// As [`Residue::auth_seq_id`](super::Residue::auth_seq_id); `None` where the
    /// file gives no number.
    pub auth_seq_id: Option<i32>,
    /// Insertion code, 0 for none.
    pub ins_code: u8,
    /// Component id, space-padded.
    pub comp_id: [u8; 8],
    /// A place an atom, in the order of the atoms.
    pub atoms: Vec<BFactorPlace>,
}

/// Where an atom's B factor is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BFactorPlace {
    /// Bytes of the text, none where the atom has no B factor.
    pub bytes: Range<usize>,
    /// Columns of a PDB line that are missing before its B factor.
    pub columns_missing: usize,
}

impl BFactorPlaces {
    /// Finds the B factors of all models in the text of a file that is within `limits`.
    ///
    /// # Errors
    /// What is wrong with the text, as when it is read.
    pub fn find(text: &[u8], format: Format, limits: ReadLimits) -> Result<Self> {
        limits.check_text(text.len() as u64)?;
        let mut table = AtomTable::default();
        table.clear(limits);
        let options = ReadOptions {
            models: Models::All,
            ..ReadOptions::default()
        };
        let (places, items_missing_at) = match format {
            Format::Pdb => {
                pdb::read(text, options, &mut table)?;
                (of_lines(text, table.atoms.len()), Vec::new())
            }
            Format::Mmcif => {
                mmcif::read(text, options, &mut table, &mut Vec::new())?;
                of_rows(text)?
            }
        };
        assert_eq!(places.len(), table.atoms.len(), "a place for each atom");
        Ok(BFactorPlaces {
            residues: by_residue(&table, &places),
            items_missing_at,
        })
    }
}

/// The places of a PDB file's first `count` atoms.
fn of_lines(text: &[u8], count: usize) -> Vec<BFactorPlace> {
    const B_FACTOR: Range<usize> = 60..66;
    let mut places = Vec::with_capacity(count);
    let mut at = 0;
    while places.len() < count && at < text.len() {
        let end = memchr(b'\n', &text[at..]).map_or(text.len(), |len| at + len);
        let line = &text[at..end];
        if pdb::is_atom(line) {
            let len = line.len() - usize::from(line.last() == Some(&b'\r'));
            places.push(BFactorPlace {
                bytes: at + B_FACTOR.start.min(len)..at + B_FACTOR.end.min(len),
                columns_missing: B_FACTOR.start.saturating_sub(len),
            });
        }
        at = end + 1;
    }
    places
}

/// The places of the atoms that an mmCIF file's reader reads, and where the item
/// is missing.
fn of_rows(text: &[u8]) -> Result<(Vec<BFactorPlace>, Vec<usize>)> {
    let mut lexer = Lexer::new(text);
    let (mut places, mut items_missing_at) = (Vec::new(), Vec::new());
    // The end of the last tag, the end of its value, and the B factor, of an
    // atom_site without a loop.
    let mut single: Option<(usize, Option<Range<usize>>)> = None;
    loop {
        let (span, token) = lexer.next()?;
        match token {
            Token::End => break,
            Token::Data(_) if !places.is_empty() || single.is_some() => break,
            Token::Tag(tag) => {
                let (value, _) = lexer.next()?;
                if atom_site::is_item(tag) {
                    let known = single.take().and_then(|(_, b_factor)| b_factor);
                    let own = atom_site::is_b_factor(tag).then_some(value);
                    single = Some((lexer.pos(), own.or(known)));
                }
            }
            Token::Loop => {
                let tags = lexer.tags(span.start)?;
                let mut edges = Vec::new();
                let mut rows = Rows::new(text, lexer.pos(), tags.len(), &mut edges);
                let is_atoms = atom_site::is_item(tags[0]);
                let column = tags.iter().position(|tag| atom_site::is_b_factor(tag));
                if is_atoms && column.is_none() {
                    items_missing_at.push(lexer.pos());
                }
                while rows.next()? {
                    if is_atoms {
                        let bytes = match column {
                            Some(column) => value_at(rows.edges(), column),
                            None => rows.end()..rows.end(),
                        };
                        places.push(place(bytes));
                    }
                }
                lexer.seek(rows.pos());
            }
            Token::Data(_) | Token::Other | Token::Value(_) => {}
        }
    }
    if let Some((end, b_factor)) = single {
        if b_factor.is_none() {
            items_missing_at.push(end);
        }
        places.push(place(b_factor.unwrap_or(end..end)));
    }
    Ok((places, items_missing_at))
}

fn place(bytes: Range<usize>) -> BFactorPlace {
    BFactorPlace {
        bytes,
        columns_missing: 0,
    }
}

fn value_at(edges: &[u32], column: usize) -> Range<usize> {
    edges[2 * column] as usize..edges[2 * column + 1] as usize
}

/// What tells the residues of a file apart.
type Key = (u32, u32, Option<i32>, u8, [u8; 8]);

/// Gathers runs into residues, as the selection does: a run that repeats an atom
/// of its residue is another one's, and one that makes it too large.
fn by_residue(table: &AtomTable, places: &[BFactorPlace]) -> Vec<ResiduePlaces> {
    let mut residues: Vec<ResiduePlaces> = Vec::new();
    let mut runs_of: Vec<Vec<&Run>> = Vec::new();
    let mut latest: HashMap<Key, usize> = HashMap::new();
    let mut runs: Vec<&Run> = table.runs.iter().collect();
    runs.sort_by_key(|run| run.model);
    for run in runs {
        let key = (run.model, run.chain, run.seq, run.ins_code, run.comp);
        let repeats = |other: &Run| {
            let mut atoms = table.atoms_of(run).iter();
            atoms.any(|atom| {
                let mut others = table.atoms_of(other).iter();
                others.any(|other| (other.name, other.altloc) == (atom.name, atom.altloc))
            })
        };
        let has_room = |&known: &usize| {
            residues[known].atoms.len() + run.atoms.len() <= RESIDUE_ATOMS
                && !runs_of[known].iter().any(|other| repeats(other))
        };
        let known = latest.get(&key).copied().filter(has_room);
        let at = known.unwrap_or_else(|| {
            residues.push(new_residue(table, run));
            runs_of.push(Vec::new());
            residues.len() - 1
        });
        latest.insert(key, at);
        runs_of[at].push(run);
        let atoms = run.atoms.start as usize..run.atoms.end as usize;
        residues[at].atoms.extend_from_slice(&places[atoms]);
    }
    residues
}

fn new_residue(table: &AtomTable, run: &Run) -> ResiduePlaces {
    let chain = &table.chains[run.chain as usize];
    let given = |name| (name != NO_NAME).then(|| table.names.get(name));
    ResiduePlaces {
        model: run.model as usize,
        chain: Chain {
            auth_asym_id: table.names.get(chain.auth),
            label_asym_id: given(chain.label),
            entity_id: given(chain.entity),
        },
        auth_seq_id: run.seq,
        ins_code: run.ins_code,
        comp_id: run.comp,
        atoms: Vec::new(),
    }
}
