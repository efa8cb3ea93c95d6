//! A structure's features along its sequence, as a drawing.
//!
//! A line of the drawing has up to [`PER_LINE`] residues, and under them a track a column. Colours
//! are classes of a style sheet ([`style`]), so that one file is readable on light and on dark
//! ground.

mod style;

use super::values::{numbers, range, words};
use crate::features::{Column, ColumnDecl, ColumnKind};
use crate::structure::Structure;
use crate::svg::{Ink, Svg};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use style::{STEPS, WORDS};

const PER_LINE: usize = 100;
/// The header takes as much room as this many.
const CELLS_MIN: usize = 45;

// In pixels.
const CELL: f64 = 9.0;
const TRACK: f64 = 13.0;
const TRACK_STEP: f64 = 16.0;
const MARGIN: f64 = 16.0;
const HEADER: f64 = 66.0;
/// Above the tracks of a line: its chains and its sequence.
const ABOVE: f64 = 32.0;
/// Below them: residue numbers, and room.
const BELOW: f64 = 44.0;
/// Right of them: what the colours mean.
const LEGEND: f64 = 230.0;
/// Width of a letter.
const LETTER: f64 = 6.7;

/// In degrees.
const HALF_TURN: f64 = 180.0;

/// A column along the sequence.
pub(super) struct Track {
    name: String,
    unit: &'static str,
    values: Vec<Option<f64>>,
    range: Option<(f64, f64)>,
    /// What the numbers stand for, none where they are numbers.
    words: Vec<String>,
    /// Whether the words are chains.
    is_chains: bool,
}

impl Track {
    pub(super) fn new(decl: &ColumnDecl, column: Column<'_>, structure: &Structure) -> Self {
        let words = match decl.kind {
            ColumnKind::Chain => {
                let chains = structure.chains.iter();
                chains.map(|chain| chain.auth_asym_id.to_string()).collect()
            }
            kind => words(kind).iter().map(|word| (*word).to_owned()).collect(),
        };
        let values = numbers(column);
        Track {
            name: decl.name.clone(),
            unit: decl.unit,
            range: range(values.iter().copied()),
            values,
            words,
            is_chains: decl.kind == ColumnKind::Chain,
        }
    }

    /// The style of a residue's cell, `None` without a value.
    fn class(&self, residue: usize) -> Option<String> {
        let (value, (min, max)) = (self.values[residue]?, self.range?);
        if !self.words.is_empty() {
            return Some(self.word_class(value as usize));
        }
        if self.is_angle() {
            let turn = (value + HALF_TURN).rem_euclid(2.0 * HALF_TURN) / (2.0 * HALF_TURN);
            return Some(format!("a{}", (turn * STEPS as f64) as usize % STEPS));
        }
        let share = if max > min {
            (value - min) / (max - min)
        } else {
            0.5
        };
        let step = (share * STEPS as f64) as usize;
        Some(format!("v{}", step.min(STEPS - 1)))
    }

    /// Whether values are on a circle, where -180 is 180.
    fn is_angle(&self) -> bool {
        self.unit == "degrees" && self.range.is_some_and(|(min, _)| min < 0.0)
    }

    /// `no`, and no structure in `ss8` and `ss3`, are hardly more than the ground; other words have
    /// a colour each.
    fn word_class(&self, word: usize) -> String {
        match self.words[word].as_str() {
            "-" | "C" | "no" if !self.is_chains => "plain".to_owned(),
            _ => colour_class(word),
        }
    }

    /// The words that there are, by their index.
    fn words_there(&self) -> Vec<usize> {
        let is_there = |word: &usize| self.values.contains(&Some(*word as f64));
        (0..self.words.len()).filter(is_there).collect()
    }
}

/// The class of a word or a chain, by its index.
fn colour_class(index: usize) -> String {
    WORDS[index % WORDS.len()].to_string()
}

/// Draws a structure's tracks.
pub(super) fn draw(name: &str, structure: &Structure, tracks: &[Track]) -> String {
    let residues = structure.residues.len();
    let cells = residues.min(PER_LINE);
    let longest = tracks.iter().map(|track| track.name.len()).max();
    let left = MARGIN + (longest.unwrap_or(0) as f64 * LETTER).floor() + 10.0;
    let tracks_height = tracks.len() as f64 * TRACK_STEP;
    let line_height = ABOVE + tracks_height + BELOW;
    let width = left + cells.max(CELLS_MIN) as f64 * CELL + LEGEND;
    let height = HEADER + residues.div_ceil(PER_LINE) as f64 * line_height;
    let mut drawing = Drawing {
        structure,
        left,
        names_chains: tracks
            .iter()
            .any(|track| track.is_chains && track.range.is_some()),
        svg: Svg::default(),
    };
    drawing.header(name);
    for (line, first) in (0..residues).step_by(PER_LINE).enumerate() {
        let rows = first..residues.min(first + PER_LINE);
        let top = HEADER + line as f64 * line_height;
        drawing.chains(&rows, top);
        drawing.sequence(&rows, top + 26.0);
        for (at, track) in tracks.iter().enumerate() {
            let y = top + ABOVE + at as f64 * TRACK_STEP;
            drawing.track(track, &rows, y);
            if line == 0 {
                drawing.legend(track, left + cells as f64 * CELL + 12.0, y);
            }
        }
        let bottom = top + ABOVE + tracks_height;
        drawing.boundaries(&rows, top, bottom);
        drawing.numbers(&rows, bottom);
    }
    drawing.svg.file((width, height), name, &style::rules(), "")
}

struct Drawing<'a> {
    structure: &'a Structure,
    /// The x of the first residue of a line.
    left: f64,
    /// Whether a track colours residues by chain.
    names_chains: bool,
    svg: Svg,
}

impl Drawing<'_> {
    fn quiet(&mut self, x: f64, y: f64, text: &str) {
        self.svg.text(Ink::Quiet, (x, y), text);
    }

    fn vertical(&mut self, class: &str, x: f64, top: f64, bottom: f64) {
        self.svg.line(class, &[(x, top), (x, bottom)]);
    }

    fn x_of(&self, rows: &Range<usize>, residue: usize) -> f64 {
        self.left + (residue - rows.start) as f64 * CELL
    }

    /// Writes the name, what is drawn, and what the signs mean.
    fn header(&mut self, name: &str) {
        self.svg.text("text name", (MARGIN, 28.0), name);
        let residues = self.structure.residues.len();
        let noun = if residues == 1 { "residue" } else { "residues" };
        let about = format!("model {}, {residues} {noun}", self.structure.model);
        self.quiet(MARGIN, 46.0, &about);
        let x = self.left + 130.0;
        self.quiet(x, 46.0, "low");
        for step in 0..STEPS {
            let at = (x + 26.0 + step as f64 * 6.0, 36.0);
            self.svg
                .rect(format_args!("v{step}"), at, (6.0, TRACK - 1.0));
        }
        let x = x + 26.0 + STEPS as f64 * 6.0;
        self.quiet(x + 6.0, 46.0, "high");
        self.svg
            .rect("quiet null", (x + 52.0, 42.0), (2.0 * CELL, 1.0));
        self.quiet(x + 76.0, 46.0, "no value");
        self.vertical("text chain", x + 144.0, 35.0, 50.0);
        self.quiet(x + 152.0, 46.0, "chain");
        self.vertical("text break", x + 204.0, 35.0, 50.0);
        self.quiet(x + 212.0, 46.0, "break");
    }

    /// Draws the chains above the residues, each with its name, and with its colour if a track
    /// shows chains.
    fn chains(&mut self, rows: &Range<usize>, top: f64) {
        let structure = self.structure;
        let mut first = rows.start;
        let residues = &structure.residues[rows.clone()];
        for (at, stretch) in residues.chunk_by(|a, b| a.chain == b.chain).enumerate() {
            let number = stretch[0].chain as usize;
            let chain = &structure.chains[number].auth_asym_id;
            let (x, width) = (self.x_of(rows, first), stretch.len() as f64 * CELL);
            let class = if at % 2 == 0 { "bar" } else { "bar other" };
            self.svg.rect(class, (x, top), (width, 14.0));
            let letters = ((width - 2.0) / LETTER) as usize;
            let shown: String = chain.chars().take(letters).collect();
            self.svg.text("text small", (x + 2.0, top + 11.0), &shown);
            if self.names_chains {
                self.svg
                    .rect(colour_class(number), (x, top - 3.0), (width, 3.0));
            }
            first += stretch.len();
        }
    }

    /// Writes the sequence, a letter above each cell.
    fn sequence(&mut self, rows: &Range<usize>, y: f64) {
        let letters = self.structure.residues[rows.clone()].iter();
        let letters: String = letters.map(|residue| char::from(residue.aa)).collect();
        let middle = |row| self.x_of(rows, row) + (CELL / 2.0).floor();
        let xs: Vec<f64> = rows.clone().map(middle).collect();
        self.svg.letters("text small middle", &xs, y, &letters);
    }

    /// Draws a track: its name, and its residues as one path for each colour.
    fn track(&mut self, track: &Track, rows: &Range<usize>, y: f64) {
        let name = (self.left - 8.0, y + 10.0);
        self.svg.text("text end", name, &track.name);
        let classes: Vec<Option<String>> = rows.clone().map(|row| track.class(row)).collect();
        let mut paths: BTreeMap<&str, String> = BTreeMap::new();
        let mut first = rows.start;
        for stretch in classes.chunk_by(|a, b| a == b) {
            let (x, width) = (self.x_of(rows, first), stretch.len() as f64 * CELL);
            let (class, y, height) = match &stretch[0] {
                Some(class) => (class.as_str(), y, TRACK),
                None => ("quiet null", y + (TRACK / 2.0).floor(), 1.0),
            };
            let path = paths.entry(class).or_default();
            // Writing to a string cannot fail.
            let _ = write!(path, "M{x} {y}h{width}v{height}H{x}z");
            first += stretch.len();
        }
        for (class, path) in paths {
            self.svg.path(class, &path);
        }
    }

    /// Writes what the colours of a track mean.
    fn legend(&mut self, track: &Track, x: f64, y: f64) {
        let Some((min, max)) = track.range else {
            self.quiet(x, y + 10.0, "no values");
            return;
        };
        if track.is_angle() {
            for step in 0..STEPS {
                let at = (x + step as f64 * 5.0, y + 2.0);
                self.svg.rect(format_args!("a{step}"), at, (5.0, 9.0));
            }
            let text = format!("-{HALF_TURN} to {HALF_TURN} {}", track.unit);
            self.quiet(x + STEPS as f64 * 5.0 + 5.0, y + 10.0, &text);
            return;
        }
        if track.words.is_empty() {
            let unit = match track.unit {
                "" => String::new(),
                unit => format!(" {unit}"),
            };
            let range = if min == max {
                format!("{}{unit} throughout", short(min))
            } else {
                format!("{} to {}{unit}", short(min), short(max))
            };
            self.quiet(x, y + 10.0, &range);
            return;
        }
        let (mut at, end) = (x, x + LEGEND - MARGIN - 12.0);
        for word in track.words_there() {
            let text = &track.words[word];
            let width = 12.0 + (text.len() as f64 * LETTER).floor() + 7.0;
            if at + width > end {
                self.quiet(at, y + 10.0, "...");
                return;
            }
            self.svg
                .rect(track.word_class(word), (at, y + 2.0), (9.0, 9.0));
            self.quiet(at + 12.0, y + 10.0, text);
            at += width;
        }
    }

    /// Draws where chains begin, and where a chain is broken.
    fn boundaries(&mut self, rows: &Range<usize>, top: f64, bottom: f64) {
        let structure = self.structure;
        for row in rows.clone().filter(|&row| row > 0) {
            let residue = &structure.residues[row];
            let x = self.x_of(rows, row);
            if structure.residues[row - 1].chain != residue.chain {
                self.vertical("text chain", x, top, bottom);
            } else if residue.break_before {
                self.vertical("text break", x, top + ABOVE - 3.0, bottom);
            }
        }
    }

    /// Writes residue numbers: the first of a line and of a chain, and every tenth.
    fn numbers(&mut self, rows: &Range<usize>, bottom: f64) {
        let structure = self.structure;
        let mut free = 0.0;
        for row in rows.clone() {
            let residue = &structure.residues[row];
            let is_first = row == rows.start || structure.residues[row - 1].chain != residue.chain;
            let is_tenth = residue.auth_seq_id % 10 == 0 && residue.ins_code == 0;
            let x = self.x_of(rows, row) + (CELL / 2.0).floor();
            if !(is_first || is_tenth) {
                continue;
            }
            self.vertical("quiet", x, bottom, bottom + 4.0);
            let mut number = residue.auth_seq_id.to_string();
            if residue.ins_code != 0 {
                number.push(char::from(residue.ins_code));
            }
            let half = (number.len() as f64 * LETTER / 2.0).floor();
            if x >= free + half {
                let at = (x, bottom + 15.0);
                self.svg.text("quiet small middle", at, &number);
                free = x + half + 4.0;
            }
        }
    }
}

/// A number in about four digits.
pub(super) fn short(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    if text == "-0" { "0" } else { text }.to_owned()
}
