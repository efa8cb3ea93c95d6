//! A structure's features along its sequence, as a drawing.
//!
//! A line of the drawing has up to [`PER_LINE`] residues, and under them a track
//! a column. Colours are classes of a style sheet ([`style`]), so that one file
//! is readable on light and on dark ground.

mod style;

use super::values::{numbers, range, words};
use crate::features::{Column, ColumnDecl, ColumnKind};
use crate::structure::Structure;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use style::{COLOURS, STEPS};

const PER_LINE: usize = 100;
/// The header takes as much room as this many.
const CELLS_MIN: usize = 45;

// In pixels.
const CELL: usize = 9;
const TRACK: usize = 13;
const TRACK_STEP: usize = 16;
const MARGIN: usize = 16;
const HEADER: usize = 66;
/// Above the tracks of a line: its chains and its sequence.
const ABOVE: usize = 32;
/// Below them: residue numbers, and room.
const BELOW: usize = 44;
/// Right of them: what the colours mean.
const LEGEND: usize = 230;
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
    pub(super) fn new(decl: &ColumnDecl, column: &Column, structure: &Structure) -> Self {
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

    /// `no`, and no structure in `ss8` and `ss3`, are hardly more than the ground;
    /// other words have a colour each.
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

fn colour_class(word: usize) -> String {
    format!("k{}", word % COLOURS.len())
}

/// Draws a structure's tracks.
pub(super) fn draw(name: &str, structure: &Structure, tracks: &[Track]) -> String {
    let residues = structure.residues.len();
    let cells = residues.min(PER_LINE);
    let longest = tracks.iter().map(|track| track.name.len()).max();
    let left = MARGIN + (longest.unwrap_or(0) as f64 * LETTER) as usize + 10;
    let tracks_height = tracks.len() * TRACK_STEP;
    let line_height = ABOVE + tracks_height + BELOW;
    let width = left + cells.max(CELLS_MIN) * CELL + LEGEND;
    let height = HEADER + residues.div_ceil(PER_LINE) * line_height;
    let mut drawing = Drawing {
        structure,
        left,
        names_chains: tracks
            .iter()
            .any(|track| track.is_chains && track.range.is_some()),
        svg: String::new(),
    };
    drawing.header(name, width, height);
    for (line, first) in (0..residues).step_by(PER_LINE).enumerate() {
        let rows = first..residues.min(first + PER_LINE);
        let top = HEADER + line * line_height;
        drawing.chains(&rows, top);
        drawing.sequence(&rows, top + 26);
        for (at, track) in tracks.iter().enumerate() {
            let y = top + ABOVE + at * TRACK_STEP;
            drawing.track(track, &rows, y);
            if line == 0 {
                drawing.legend(track, left + cells * CELL + 12, y);
            }
        }
        let bottom = top + ABOVE + tracks_height;
        drawing.boundaries(&rows, top, bottom);
        drawing.numbers(&rows, bottom);
    }
    drawing.svg.push_str("</svg>\n");
    drawing.svg
}

/// The drawing so far. Writing to a string cannot fail, so results are dropped.
struct Drawing<'a> {
    structure: &'a Structure,
    /// Where the first residue of a line is.
    left: usize,
    /// Whether a track shows chains by colours.
    names_chains: bool,
    svg: String,
}

impl Drawing<'_> {
    fn text(&mut self, class: &str, x: usize, y: usize, text: &str) {
        let text = escaped(text);
        let _ = writeln!(
            self.svg,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>"
        );
    }

    fn rect(&mut self, class: &str, x: usize, y: usize, width: usize, height: usize) {
        let _ = writeln!(
            self.svg,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        );
    }

    fn line(&mut self, class: &str, x: usize, top: usize, bottom: usize) {
        let _ = writeln!(
            self.svg,
            "<line class=\"{class}\" x1=\"{x}\" y1=\"{top}\" x2=\"{x}\" y2=\"{bottom}\"/>"
        );
    }

    fn x_of(&self, rows: &Range<usize>, residue: usize) -> usize {
        self.left + (residue - rows.start) * CELL
    }

    /// The name, what is drawn, and what the signs mean.
    fn header(&mut self, name: &str, width: usize, height: usize) {
        let _ = write!(
            self.svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\">\n<title>{}</title>\n<style>\n{}</style>\n",
            escaped(name),
            style::sheet(),
        );
        self.rect("ground", 0, 0, width, height);
        self.text("name", MARGIN, 28, name);
        let residues = self.structure.residues.len();
        let noun = if residues == 1 { "residue" } else { "residues" };
        let about = format!("model {}, {residues} {noun}", self.structure.model);
        self.text("quiet", MARGIN, 46, &about);
        let x = self.left + 130;
        self.text("quiet", x, 46, "low");
        for step in 0..STEPS {
            self.rect(&format!("v{step}"), x + 26 + step * 6, 36, 6, TRACK - 1);
        }
        let x = x + 26 + STEPS * 6;
        self.text("quiet", x + 6, 46, "high");
        self.rect("null", x + 52, 42, 2 * CELL, 1);
        self.text("quiet", x + 76, 46, "no value");
        self.line("chain", x + 144, 35, 50);
        self.text("quiet", x + 152, 46, "chain");
        self.line("break", x + 204, 35, 50);
        self.text("quiet", x + 212, 46, "break");
    }

    /// The stretches of chains, each with its name, and with its colour where a
    /// track shows chains.
    fn chains(&mut self, rows: &Range<usize>, top: usize) {
        let structure = self.structure;
        let mut first = rows.start;
        let residues = &structure.residues[rows.clone()];
        for (at, stretch) in residues.chunk_by(|a, b| a.chain == b.chain).enumerate() {
            let number = stretch[0].chain as usize;
            let chain = &structure.chains[number].auth_asym_id;
            let (x, width) = (self.x_of(rows, first), stretch.len() * CELL);
            self.rect(
                if at % 2 == 0 { "bar" } else { "bar other" },
                x,
                top,
                width,
                14,
            );
            let shown: String = chain
                .chars()
                .take(((width as f64 - 2.0) / LETTER) as usize)
                .collect();
            self.text("small", x + 2, top + 11, &shown);
            if self.names_chains {
                self.rect(&colour_class(number), x, top - 3, width, 3);
            }
            first += stretch.len();
        }
    }

    /// The sequence, a letter over each cell.
    fn sequence(&mut self, rows: &Range<usize>, y: usize) {
        let letters = self.structure.residues[rows.clone()].iter();
        let letters: String = letters.map(|residue| char::from(residue.aa)).collect();
        let xs = rows
            .clone()
            .map(|row| (self.x_of(rows, row) + CELL / 2).to_string());
        let xs: Vec<String> = xs.collect();
        let _ = writeln!(
            self.svg,
            "<text class=\"letters\" x=\"{}\" y=\"{y}\">{}</text>",
            xs.join(" "),
            escaped(&letters)
        );
    }

    /// A track: its name, and a block for each stretch of one colour, those of a
    /// colour as one path.
    fn track(&mut self, track: &Track, rows: &Range<usize>, y: usize) {
        let right = self.left - 8;
        self.text("label", right, y + 10, &track.name);
        let classes: Vec<Option<String>> = rows.clone().map(|row| track.class(row)).collect();
        let mut paths: BTreeMap<&str, String> = BTreeMap::new();
        let mut first = rows.start;
        for stretch in classes.chunk_by(|a, b| a == b) {
            let (x, width) = (self.x_of(rows, first), stretch.len() * CELL);
            let (class, y, height) = match &stretch[0] {
                Some(class) => (class.as_str(), y, TRACK),
                None => ("null", y + TRACK / 2, 1),
            };
            let path = paths.entry(class).or_default();
            let _ = write!(path, "M{x} {y}h{width}v{height}H{x}z");
            first += stretch.len();
        }
        for (class, path) in paths {
            let _ = writeln!(self.svg, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }

    /// What the colours of a track mean.
    fn legend(&mut self, track: &Track, x: usize, y: usize) {
        let Some((min, max)) = track.range else {
            self.text("quiet", x, y + 10, "no values");
            return;
        };
        if track.is_angle() {
            for step in 0..STEPS {
                self.rect(&format!("a{step}"), x + step * 5, y + 2, 5, 9);
            }
            let text = format!("-{HALF_TURN} to {HALF_TURN} {}", track.unit);
            self.text("quiet", x + STEPS * 5 + 5, y + 10, &text);
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
            self.text("quiet", x, y + 10, &range);
            return;
        }
        let (mut at, end) = (x, x + LEGEND - MARGIN - 12);
        for word in track.words_there() {
            let text = track.words[word].clone();
            let width = 12 + (text.len() as f64 * LETTER) as usize + 7;
            if at + width > end {
                self.text("quiet", at, y + 10, "...");
                return;
            }
            self.rect(&track.word_class(word), at, y + 2, 9, 9);
            self.text("quiet", at + 12, y + 10, &text);
            at += width;
        }
    }

    /// Where chains begin, and where a chain is broken.
    fn boundaries(&mut self, rows: &Range<usize>, top: usize, bottom: usize) {
        let structure = self.structure;
        for row in rows.clone().filter(|&row| row > 0) {
            let residue = &structure.residues[row];
            let x = self.x_of(rows, row);
            if structure.residues[row - 1].chain != residue.chain {
                self.line("chain", x, top, bottom);
            } else if residue.break_before {
                self.line("break", x, top + ABOVE - 3, bottom);
            }
        }
    }

    /// Residue numbers: the first of a line and of a chain, and every tenth.
    fn numbers(&mut self, rows: &Range<usize>, bottom: usize) {
        let structure = self.structure;
        let mut free = 0;
        for row in rows.clone() {
            let residue = &structure.residues[row];
            let is_first = row == rows.start || structure.residues[row - 1].chain != residue.chain;
            let is_tenth = residue.auth_seq_id % 10 == 0 && residue.ins_code == 0;
            let x = self.x_of(rows, row) + CELL / 2;
            if !(is_first || is_tenth) {
                continue;
            }
            self.line("tick", x, bottom, bottom + 4);
            let mut number = residue.auth_seq_id.to_string();
            if residue.ins_code != 0 {
                number.push(char::from(residue.ins_code));
            }
            let half = (number.len() as f64 * LETTER / 2.0) as usize;
            if x >= free + half {
                self.text("number", x, bottom + 15, &number);
                free = x + half + 4;
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

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // XML has no way to write these.
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}
