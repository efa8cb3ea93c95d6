//! The reader for PDB files, which passes over the text once.
//!
//! It reads the columns of format 3.3, and customs of other programs: chain ids of two characters and
//! components of four ([`chain_columns`]), residue numbers above 9999 (five digits, hybrid-36 and
//! hexadecimal), lines whose fields are too wide or separated by tabs ([`shifted_line`]), files without
//! elements, without MODEL records, and that end after the coordinates. What follows END is the next
//! model, as trajectories of VMD have their frames. Serial numbers are read for CONECT alone, so they may
//! be anything.
//!
//! Errors are [`ErrorKind::Input`](crate::ErrorKind::Input) with the line that cannot be read, and
//! [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) over a limit.

mod b_factors;
mod chain_columns;
mod chain_records;
mod columns;
mod conect;
mod models;
mod records;
mod remark350;
mod seqres;
mod shifted_line;

use std::collections::HashSet;

pub(super) use self::b_factors::b_factor_fields;
use self::chain_columns::ChainColumns;
pub(super) use self::columns::B_FACTOR;
use self::columns::{
    ATOM, COORDINATES, COORDINATES_END, Columns, HETATM, NO_SEGID, ResidueKey, atom_name, b_factor,
    coordinate_fields, is_left_aligned, is_word, line_end, number_of, occupancy, padded,
    residue_number, segid, take, text_start, upper_case,
};
use self::records::{header_text, resolution_after};
pub(super) use self::records::{is_atom_line, is_record};
use self::remark350::Remark350;
use self::seqres::Seqres;
use self::shifted_line::{LastResidue, ShiftedLine};
use crate::atom_table::{AtomLine, AtomRun, AtomTable, NameId};
use crate::checks::Check;
use crate::decimal::{self, fixed8, int};
use crate::model::{Assembly, Truncation};
use crate::text::{FilePlace, at_line, quoted};
use crate::text8::{Text8, text8};
use crate::{Error, Result};
use crate::{Models, ReadOptions, components, element};

/// Reads the text of a PDB file into `table`, which is empty.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind::Input) for a line that cannot be read, or no atoms;
/// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) for more than a limit allows.
pub(super) fn read(text: &[u8], options: ReadOptions, table: &mut AtomTable) -> Result<()> {
    let limits = table.limits;
    let assembly = || Remark350::new(text, limits);
    let mut reader = PdbReader {
        text,
        table,
        models: options.models,
        assembly: (options.assembly == Assembly::First).then(assembly),
        master_atoms: None,
        is_in_model: false,
        model_number: None,
        highest_model: 0,
        segments: Vec::new(),
        key: None,
        segid: NO_SEGID,
        modified: HashSet::new(),
        half_reference: None,
        resolutions: [None; 2],
        seqres: Seqres::default(),
        keeps_links: options.ligands,
        chain_letters: None,
        chain_columns: None,
        has_wide_number: false,
        compares_more: false,
        is_polymer: None,
        is_left_aligned: None,
    };
    reader.table.may_split_chains = true;
    let mut line_start = text_start(text);
    loop {
        let mut goes_on = true;
        while line_start < text.len() && goes_on {
            let end = line_end(text, line_start);
            goes_on = reader.read_line(line_start, end)?;
            line_start = end + 1;
        }
        if line_start >= text.len() || reader.is_complete() {
            break;
        }
        line_start = models::next_model(text, line_start);
    }
    if reader.table.peeks_at_second_model {
        let rest = &text[line_start.min(text.len())..];
        reader.table.second_model = models::read_first_atoms(rest, limits);
    }
    let [remark_2, remark_3] = reader.resolutions;
    reader.table.header.resolution = remark_2.or(remark_3);
    if let Some(assembly) = reader.assembly {
        reader.table.generators = assembly.finish()?;
    }
    if reader.table.atoms.is_empty() {
        return Err(Error::input("no ATOM or HETATM records"));
    }
    if let Some(columns) = reader.chain_columns.take() {
        let place = || {
            let first = columns.first_contradiction.unwrap_or_default();
            FilePlace::Line(text, first as u32).to_string()
        };
        let (check, count) = (Check::ContradictoryNames, columns.contradictions);
        reader.table.findings.add(check, count, place);
    }
    let sequences = options.sequences;
    reader.seqres.number(reader.table, text.len(), sequences);
    if options.chemistry {
        reader.table.stated_bonds = conect::read(text);
    }
    let read = reader.table.atoms.len() as u32;
    reader.table.truncation = match reader.master_atoms {
        _ if reader.is_in_model && text.last() != Some(&b'\n') => Some(Truncation::LineBrokenOff),
        _ if reader.is_in_model => Some(Truncation::NoEnd),
        Some(master) if read < master => Some(Truncation::AtomsMissing { master, read }),
        _ => None,
    };
    Ok(())
}

struct PdbReader<'a> {
    text: &'a [u8],
    table: &'a mut AtomTable,
    models: Models,
    /// The assembly, if it is wanted.
    assembly: Option<Remark350<'a>>,
    /// How many coordinate records the MASTER record counts. The wwPDB does not count hydrogens and
    /// some altlocs.
    master_atoms: Option<u32>,
    /// Whether atoms of the current model have been read.
    is_in_model: bool,
    /// The number on the last MODEL record, until its first atom.
    model_number: Option<i32>,
    /// The highest number of a model so far.
    highest_model: i32,
    /// How often TER has ended each chain of the current model; zeros at the end are left out.
    segments: Vec<u32>,
    /// The residue of the last atom of this model.
    key: Option<ResidueKey>,
    /// The segment id of the last residue.
    segid: [u8; 4],
    /// Residues named by MODRES.
    modified: HashSet<ResidueKey>,
    /// Chain and residue numbers of a DBREF1 whose DBREF2 has not been read.
    half_reference: Option<(NameId, i32, i32)>,
    /// The resolutions of REMARK 2 and of REMARK 3.
    resolutions: [Option<f32>; 2],
    seqres: Seqres,
    /// Whether LINK records are read.
    keeps_links: bool,
    /// Columns 21 and 22 of the last run, whose chain is that of these columns; `None` if the line has
    /// its fields in other columns.
    chain_letters: Option<[u8; 2]>,
    /// What columns 21 and 22 are, once a residue has a letter in column 21.
    chain_columns: Option<ChainColumns>,
    /// Whether the number of the last residue has five digits or more, so that columns 28 to 30 may
    /// belong to it.
    has_wide_number: bool,
    /// Whether more than the key tells the last residue from others: its number is wide, or it has a
    /// segment id.
    compares_more: bool,
    /// Whether the component of the last residue is one of polymers, once an atom lacks its element.
    is_polymer: Option<bool>,
    /// Whether names of atoms start in their first column whatever the element, once that matters.
    is_left_aligned: Option<bool>,
}

// Errors in a line name it. Starting a run or adding an atom fails if a limit is exceeded.
impl<'a> PdbReader<'a> {
    /// Reads the line from `start` to `end`; false at END, and if the rest of the file is not needed.
    #[inline]
    fn read_line(&mut self, start: usize, end: usize) -> Result<bool> {
        let line = &self.text[start..end];
        let Some(first4) = line.first_chunk::<4>() else {
            if is_word(line, b"TER") {
                self.end_chain();
            }
            let is_end = is_word(line, b"END");
            if is_end {
                self.end_model();
            }
            return Ok(!is_end);
        };
        // Nearly all lines of a file are of these two records, which may be in lower case.
        match upper_case(first4) {
            ATOM => self.read_atom(line, start, false).map(|()| true),
            HETATM => self.read_atom(line, start, true).map(|()| true),
            _ => self.read_other_record(line, start),
        }
    }

    /// Reads an atom line at `offset` of the text. A line that ends before the coordinates is a
    /// mistake, or has its fields in other columns.
    #[inline]
    fn read_atom(&mut self, line: &[u8], offset: usize, is_hetero: bool) -> Result<()> {
        let len = line.len() - usize::from(line.last() == Some(&b'\r'));
        if len < COORDINATES_END {
            return self.read_short_line(&line[..len], offset, is_hetero);
        }
        // Columns after the end of a short line are those of the next line. That saves a copy, but
        // they must not be read.
        match self.text[offset..].first_chunk::<80>() {
            Some(columns) => self.add_atom(columns, len, offset, is_hetero),
            None => self.add_atom(&padded(line), len, offset, is_hetero),
        }
    }

    /// Adds an atom. The line ends after `len` columns.
    #[inline]
    fn add_atom(
        &mut self,
        columns: &Columns,
        len: usize,
        offset: usize,
        is_hetero: bool,
    ) -> Result<()> {
        let fields: [u64; 3] = COORDINATES.map(|first| u64::from_le_bytes(take(columns, first)));
        let Some(xyz) = fixed8(fields) else {
            return self.read_unusual_line(columns, len, offset, is_hetero);
        };
        let key: ResidueKey = take(columns, 17);
        if self.key != Some(key) || (self.compares_more && self.may_be_another(columns)) {
            self.start_run(key, (columns, len), offset, is_hetero)?;
        }
        self.push(columns, len, xyz, false)
    }

    /// Whether an atom with the key of the last residue may be of another one. [`PdbReader::start_run`]
    /// decides: after a short line the segment id here is of the next line.
    #[inline(always)]
    fn may_be_another(&self, columns: &Columns) -> bool {
        self.has_wide_number || take::<4>(columns, 72) != self.segid
    }

    /// Adds an atom to the last run.
    #[inline(always)]
    fn push(&mut self, columns: &Columns, len: usize, xyz: [i32; 3], rounded: bool) -> Result<()> {
        let name: [u8; 4] = take(columns, 12);
        let mut element = match len {
            78.. => element::from_symbol(take(columns, 76)),
            77 => element::from_symbol([columns[76], b' ']),
            _ => 0,
        };
        if element == 0 {
            element = self.element_of_name(name);
        }
        self.table.push(AtomLine {
            xyz,
            b_factor: b_factor(columns, len),
            occupancy: occupancy(columns, len),
            name: atom_name(name),
            element,
            altloc: if columns[16] == b' ' { 0 } else { columns[16] },
            rounded,
        })
    }

    /// Adds the atom of a line that ends before its coordinates do, in the columns of the format.
    #[cold]
    fn read_short_line(&mut self, line: &[u8], offset: usize, is_hetero: bool) -> Result<()> {
        if line.contains(&b'\t') {
            return self
                .read_shifted_line(line, offset, is_hetero)?
                .ok_or_else(|| self.cut_short_error(offset));
        }
        Err(self.cut_short_error(offset))
    }

    /// The [`ErrorKind::Input`](crate::ErrorKind::Input) error of an atom's line without
    /// coordinates.
    fn cut_short_error(&self, offset: usize) -> Error {
        let message = "the atom line ends before its coordinates do";
        at_line(self.text, offset, message).fix("fetch the file again, or drop the line")
    }

    /// Adds the atom of a line whose coordinates are not of the usual form, or not in their columns.
    #[cold]
    #[inline(never)]
    fn read_unusual_line(
        &mut self,
        columns: &Columns,
        len: usize,
        offset: usize,
        is_hetero: bool,
    ) -> Result<()> {
        let texts = coordinate_fields(columns);
        let has_tabs = columns[..len.min(columns.len())].contains(&b'\t');
        match decimal::coordinates(texts) {
            Ok((xyz, rounded)) if !has_tabs => {
                let key: ResidueKey = take(columns, 17);
                if self.key != Some(key) || (self.compares_more && self.may_be_another(columns)) {
                    self.start_run(key, (columns, len), offset, is_hetero)?;
                }
                self.push(columns, len, xyz, rounded)
            }
            found => {
                let line = &self.text[offset..offset + len];
                self.read_shifted_line(line, offset, is_hetero)?
                    .ok_or_else(|| match found {
                        Ok(_) => self.cut_short_error(offset),
                        Err((axis, bad)) => {
                            let (name, text) = (["x", "y", "z"][axis], quoted(texts[axis]));
                            at_line(self.text, offset, format!("{name} coordinate {text} {bad}"))
                        }
                    })
            }
        }
    }

    /// Adds the atom of a line whose fields are not in their columns; `None` if they are in no others
    /// that are known.
    fn read_shifted_line(
        &mut self,
        line: &[u8],
        offset: usize,
        is_hetero: bool,
    ) -> Result<Option<()>> {
        let run = self.table.runs.last().filter(|_| self.key.is_some());
        let chain = run.map(|run| {
            self.table
                .names
                .get(self.table.chains[run.chain as usize].auth)
        });
        let last = LastResidue {
            chain: chain.as_deref().unwrap_or_default().as_bytes(),
            number: run.and_then(|run| run.seq),
        };
        let shifted = ShiftedLine::read(line, last).map_err(|cause| {
            let fix = "write the fields into the columns of the format, or write mmCIF";
            at_line(self.text, offset, cause).fix(fix)
        })?;
        let Some(shifted) = shifted else {
            return Ok(None);
        };
        let columns = &shifted.columns;
        let texts = coordinate_fields(columns);
        let (xyz, rounded) =
            decimal::coordinates(texts).map_err(|_| self.cut_short_error(offset))?;
        let key: ResidueKey = take(columns, 17);
        let (comp, chain) = match &shifted.chain {
            Some(chain) => (&key[..3], &chain[..]),
            None => self.names(&key),
        };
        let comp = shifted.comp.unwrap_or_else(|| text8(comp.trim_ascii()));
        let chain = chain.trim_ascii();
        self.table.limits.check_name("the chain", chain)?;
        let chain = self.table.chain(chain, b"", b"")?;
        let number = shifted.number.or_else(|| residue_number(&key[5..9]));
        let segid = segid(columns, shifted.len);
        let is_same = self.table.runs.last().is_some_and(|run| {
            let is_residue = (run.comp, run.chain, run.seq) == (comp, chain, number);
            is_residue && self.key == Some(key) && self.segid == segid
        });
        if !is_same {
            self.count_repaired(offset);
            self.segid = segid;
            let ins_code = if key[9] == b' ' { 0 } else { key[9] };
            self.add_run(key, chain, comp, (number, ins_code), offset, is_hetero)?;
            // The key has four digits of a number in a field that is too wide.
            self.has_wide_number = shifted.number.is_some();
            self.compares_more = self.has_wide_number || segid != NO_SEGID;
        }
        self.push(columns, shifted.len, xyz, rounded || shifted.rounded)?;
        Ok(Some(()))
    }

    /// Counts a residue whose fields are not in the columns of the format.
    fn count_repaired(&mut self, offset: usize) {
        let line = || FilePlace::Line(self.text, offset as u32).to_string();
        self.table.findings.add(Check::RepairedFields, 1, line);
    }

    /// The element of an atom whose line names none: by the columns of its name, the file's habit, and
    /// whether the residue is one of a polymer. Notes in the table that elements were guessed.
    #[inline(never)]
    fn element_of_name(&mut self, name: [u8; 4]) -> u8 {
        self.table.guesses_elements = true;
        let comp = self.table.runs.last().map(|run| run.comp);
        let is_known = || comp.is_some_and(|comp| components::lookup(comp).is_some());
        let is_polymer = *self.is_polymer.get_or_insert_with(is_known);
        if element::is_virtual_site(name.trim_ascii(), is_polymer) {
            return element::VIRTUAL_SITE;
        }
        let text = self.text;
        let left_aligned = &mut self.is_left_aligned;
        if is_polymer || *left_aligned.get_or_insert_with(|| is_left_aligned(text)) {
            element::from_name_columns(name)
        } else {
            element::from_columns(name)
        }
    }

    /// Component and chain id of a residue, with blanks around them. The first key with a letter in
    /// column 21 has the whole text searched for what that column is.
    #[inline]
    fn names<'k>(&mut self, key: &'k ResidueKey) -> (&'k [u8], &'k [u8]) {
        if key[3] == b' ' {
            return (&key[..3], &key[4..5]);
        }
        let text = self.text;
        let columns = self
            .chain_columns
            .get_or_insert_with(|| ChainColumns::of_text(text));
        columns.names(key)
    }

    /// Starts the run of the residue `key`, unless it is the last one. Not inlined: it runs once for
    /// each residue.
    #[inline(never)]
    fn start_run(
        &mut self,
        key: ResidueKey,
        (columns, len): (&Columns, usize),
        offset: usize,
        is_hetero: bool,
    ) -> Result<()> {
        // Most residues have the segment id of the one before.
        let has_same_segid = len >= 76 && take::<4>(columns, 72) == self.segid;
        let segid = if has_same_segid {
            self.segid
        } else {
            segid(columns, len)
        };
        let last = self.table.runs.last().and_then(|run| run.seq);
        let is_same_chain = || self.key.is_some_and(|last_key| last_key[4] == key[4]);
        let (number, is_wide) = number_of(&key, columns, last, is_same_chain);
        if self.key == Some(key) && last == number.0 && self.segid == segid {
            return Ok(());
        }
        let letters = [key[3], key[4]];
        let (comp, chain_id) = self.names(&key);
        let chain = match self.table.runs.last() {
            Some(run) if self.chain_letters == Some(letters) => run.chain,
            _ => self.table.chain(chain_id.trim_ascii(), b"", b"")?,
        };
        let comp = text8(comp.trim_ascii());
        if is_wide {
            self.count_repaired(offset);
        }
        self.segid = segid;
        self.add_run(key, chain, comp, number, offset, is_hetero)?;
        self.chain_letters = Some(letters);
        self.has_wide_number = is_wide;
        self.compares_more = is_wide || segid != NO_SEGID;
        Ok(())
    }

    /// Starts a run of atoms of a residue, and the model if it is the first of one. `segid` has to be set
    /// before. `chain_letters`, `compares_more` and `is_polymer` start anew: a caller that knows the first
    /// two sets them after.
    #[inline(always)]
    fn add_run(
        &mut self,
        key: ResidueKey,
        chain: u32,
        comp: Text8,
        (seq, ins_code): (Option<i32>, u8),
        offset: usize,
        is_hetero: bool,
    ) -> Result<()> {
        if !self.is_in_model {
            let number = self.model_number.take();
            let number = number.filter(|&number| self.table.model(number).is_none());
            let number = number.unwrap_or_else(|| self.next_model_number());
            self.highest_model = self.highest_model.max(number);
            self.table.add_model(number)?;
            self.is_in_model = true;
        }
        let is_marked = !self.modified.is_empty() && self.modified.contains(&key);
        let run = AtomRun {
            model: self.table.models.len() as u32 - 1,
            chain,
            seq,
            ins_code,
            comp,
            is_hetero: is_hetero && !is_marked,
            is_marked,
            segment: self.segments.get(chain as usize).copied().unwrap_or(0),
            segid: self.segid,
            offset: offset as u32,
            ..AtomRun::default()
        };
        (self.key, self.chain_letters) = (Some(key), None);
        (self.compares_more, self.is_polymer) = (false, None);
        self.table.start_run(run)
    }

    /// Reads a record other than an atom, or ignores it; false at END, and if the rest of the file
    /// is not needed. Columns are those of version 3.3 of the format, counted from 0.
    fn read_other_record(&mut self, line: &'a [u8], offset: usize) -> Result<bool> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match line.first_chunk::<6>().unwrap_or(b"      ") {
            b"HEADER" if self.table.entry_id.is_none() => {
                self.table.set_entry_id(padded(line)[62..66].trim_ascii());
            }
            b"MODRES" => {
                let columns = padded(line);
                // A blank separates the chain and the number here, and not in lines of atoms.
                let mut key: ResidueKey = [b' '; 10];
                key[..5].copy_from_slice(&columns[12..17]);
                key[5..].copy_from_slice(&columns[18..23]);
                self.modified.insert(key);
            }
            b"LINK  " | b"LINKR " if self.keeps_links => self.read_link(&padded(line))?,
            b"SEQRES" => self.read_sequence(line),
            b"TITLE " => self.table.header.title.add_words(header_text(line)),
            b"EXPDTA" => self.table.header.method.add_words(header_text(line)),
            b"MASTER" => {
                let count = int(padded(line)[50..55].trim_ascii());
                self.master_atoms = count.and_then(|count| u32::try_from(count).ok());
            }
            b"DBREF " | b"DBREF1" | b"DBREF2" => self.read_reference(&padded(line)),
            _ if is_word(line, b"MODEL") || is_word(line, b"ENDMDL") => {
                self.end_model();
                // The second word, as programs write numbers above 9,999 beyond their columns.
                let mut words = line.split(u8::is_ascii_whitespace).skip(1);
                self.model_number = words.find(|word| !word.is_empty()).and_then(int);
                return Ok(!self.is_complete());
            }
            b"REMARK" => {
                let text = line.get(10..).unwrap_or_default();
                match (line.get(6..10), &mut self.assembly) {
                    (Some(b" 350"), Some(assembly)) => assembly.read_line(text, offset)?,
                    (Some(b"   2"), _) => {
                        let found = resolution_after(text, b"RESOLUTION.");
                        self.resolutions[0] = self.resolutions[0].or(found);
                    }
                    (Some(b"   3"), _) => {
                        let found = resolution_after(text, b"RESOLUTION RANGE HIGH (ANGSTROMS) :");
                        self.resolutions[1] = self.resolutions[1].or(found);
                    }
                    (Some(b" 465"), _) => {
                        self.seqres.read_remark_line(line, &mut self.table.names);
                    }
                    _ => {}
                }
            }
            _ if is_word(line, b"TER") => self.end_chain(),
            _ if is_word(line, b"END") => {
                self.end_model();
                return Ok(false);
            }
            _ => {}
        }
        Ok(true)
    }

    /// Ends the chain of the last atom. The next atom starts a run, also of the same residue.
    fn end_chain(&mut self) {
        let ended = self.key.take().and(self.table.runs.last());
        if let Some(run) = ended {
            let chain = run.chain as usize;
            let len = self.segments.len().max(chain + 1);
            self.segments.resize(len, 0);
            self.segments[chain] += 1;
        }
    }
}
