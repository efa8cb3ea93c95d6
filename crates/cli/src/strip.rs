//! A structure's features along its sequence, as a drawing: of a structure with its results, or of its rows
//! in a table of residues ([`draw_table`]).
//!
//! The sequence is cut into blocks of equal length, of up to 100 residues. Below the
//! residues of a block is a track for each column, under the heading of its group. Columns that are
//! null or equal at all residues, those of indices, and those of more words than there are colours
//! are named in the header instead. Colours are classes of a style
//! sheet, so that one file is readable on light and on dark ground.

mod of_table;
mod style;
mod track;

pub use of_table::draw_table;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use style::{STEPS, WORDS};
use tapeloop::features::ColumnKind;
use tapeloop::structure::Structure;
use tapeloop_svg::{Ink, Svg};
use track::with_unit;
pub use track::{Meaning, Track};

/// The most residues of a block: with the names and the legend they are about as wide as a screen.
const PER_BLOCK: usize = 100;
/// The cells at least that a drawing is as wide as: the header needs their width.
const CELLS_MIN: usize = 45;

// Lengths in pixels, as the font of 11 pixels in `style.rs` needs them. Small offsets in the code
// put texts in the middle of their lines and apart from their neighbours.
const CELL: f64 = 9.0;
const TRACK: f64 = 13.0;
const TRACK_STEP: f64 = 16.0;
const MARGIN: f64 = 16.0;
const HEADER: f64 = 66.0;
/// The height of a line of notes, and of the heading of a group of tracks.
const NOTE: f64 = 16.0;
const HEADING: f64 = 19.0;
/// Height above the tracks of a block, for its chains and its sequence.
const ABOVE: f64 = 32.0;
/// Height below the tracks of a block, for residue numbers and a gap.
const BELOW: f64 = 44.0;
/// Width right of the tracks, for what their colours mean.
const LEGEND: f64 = 230.0;
/// Width of a letter.
const LETTER: f64 = 6.7;

/// The class of a drawing, within which its styles apply.
const SCOPE: &str = "tapeloop-sequence";

/// Half a turn in degrees.
const HALF_TURN: f64 = 180.0;

/// A residue of a [`Sequence`].
struct StripResidue {
    /// Its index in [`Sequence::chains`].
    chain: usize,
    /// The author's number; `None` for a residue that was not observed.
    number: Option<i32>,
    /// 0 for none.
    ins_code: u8,
    aa: u8,
    break_before: bool,
}

/// The residues along which columns are drawn.
pub struct Sequence {
    /// The name of the structure.
    name: String,
    model: i32,
    /// Names of the chains.
    chains: Vec<String>,
    residues: Vec<StripResidue>,
}

impl Sequence {
    /// The residues of a structure that is called `name`.
    pub fn of_structure(name: &str, structure: &Structure) -> Self {
        let chains = structure.distinct_chain_names();
        let residues = structure.residues.iter();
        let residues = residues.map(|residue| StripResidue {
            chain: residue.chain as usize,
            number: Some(residue.auth_seq_id),
            ins_code: residue.ins_code,
            aa: residue.aa,
            break_before: residue.break_before,
        });
        Sequence {
            name: name.to_owned(),
            model: structure.model,
            chains: chains.into_iter().map(str::to_owned).collect(),
            residues: residues.collect(),
        }
    }
}

/// What the header says about columns that are not drawn.
fn notes(tracks: &[Track]) -> Vec<(&'static str, String)> {
    let empty = tracks.iter().filter(|track| track.range.is_none());
    let empty: Vec<&str> = empty.map(|track| track.name.as_str()).collect();
    let constant = tracks.iter().filter_map(|track| {
        let value = track.constant()?;
        Some(format!("{} {}", track.name, track.text(value)))
    });
    let constant: Vec<String> = constant.collect();
    let others = tracks
        .iter()
        .filter(|track| track.range.is_some() && track.constant().is_none() && !track.is_drawn());
    let (indices, many): (Vec<&Track>, Vec<&Track>) = others.partition(|track| track.is_indices);
    let indices: Vec<&str> = indices.iter().map(|track| track.name.as_str()).collect();
    let many = many
        .iter()
        .map(|track| format!("{} {}", track.name, track.words.len()));
    let many: Vec<String> = many.collect();
    let notes = [
        ("No values:", empty.join(", ")),
        ("The same at each residue:", constant.join(", ")),
        ("Indices, which are not drawn:", indices.join(", ")),
        ("More words than colours, not drawn:", many.join(", ")),
    ];
    notes
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .collect()
}

/// The class of a word or a chain, by its index. Indices beyond the colours have them again.
fn colour_class(index: usize) -> String {
    WORDS[index % WORDS.len()].to_string()
}

/// Draws tracks along a sequence, as an SVG file. Later shapes cover earlier ones, so the lines
/// between chains are drawn after the tracks that they cross.
pub fn draw(sequence: &Sequence, tracks: &[Track]) -> String {
    let residues = sequence.residues.len();
    let blocks = residues.div_ceil(PER_BLOCK);
    let cells = residues.div_ceil(blocks.max(1));
    let notes = notes(tracks);
    let drawn: Vec<&Track> = tracks.iter().filter(|track| track.is_drawn()).collect();
    let mut groups: Vec<(&str, Vec<&Track>)> = Vec::new();
    for track in drawn {
        match groups.iter_mut().find(|(name, _)| *name == track.group) {
            Some((_, group)) => group.push(track),
            None => groups.push((track.group, vec![track])),
        }
    }
    // Headings stand left of the residues too, where no line of a chain crosses them.
    let headings = groups.iter().map(|(heading, _)| heading.len());
    let longest = tracks
        .iter()
        .map(|track| track.name.len())
        .chain(headings)
        .max();
    let left = MARGIN + (longest.unwrap_or(0) as f64 * LETTER).floor() + 10.0;
    let tracks_height: f64 = groups
        .iter()
        .map(|(_, group)| HEADING + group.len() as f64 * TRACK_STEP)
        .sum();
    let block_height = ABOVE + tracks_height + BELOW;
    let width = left + cells.max(CELLS_MIN) as f64 * CELL + LEGEND;
    let mut drawing = StripDrawing {
        sequence,
        left,
        names_chains: tracks
            .iter()
            .any(|track| track.is_chains && track.range.is_some()),
        svg: Svg::default(),
    };
    drawing.write_header();
    let header = HEADER + drawing.write_notes(&notes, width);
    for block in 0..blocks {
        let first = block * cells;
        let rows = first..residues.min(first + cells);
        let top = header + block as f64 * block_height;
        drawing.draw_chains(&rows, top);
        drawing.write_sequence(&rows, top + 26.0);
        let mut y = top + ABOVE;
        for (heading, group) in &groups {
            drawing.svg.text("text strong", (MARGIN, y + 13.0), heading);
            y += HEADING;
            for track in group {
                drawing.draw_track(track, &rows, y);
                drawing.write_legend(track, left + rows.len() as f64 * CELL + 12.0, y);
                y += TRACK_STEP;
            }
        }
        let bottom = top + ABOVE + tracks_height;
        drawing.draw_boundaries(&rows, top, bottom);
        drawing.write_numbers(&rows, bottom);
    }
    let size = (width, header + blocks as f64 * block_height);
    drawing.svg.file(
        size,
        SCOPE,
        &sequence.name,
        &style::css_rules(),
        style::PATTERNS,
    )
}

/// A drawing so far. The `rows` of its methods are the residues of one block.
struct StripDrawing<'a> {
    sequence: &'a Sequence,
    /// The x of the first residue of a block.
    left: f64,
    /// Whether a track colours residues by chain.
    names_chains: bool,
    svg: Svg,
}

impl StripDrawing<'_> {
    /// Writes a text in the colour of notes.
    fn write_quiet(&mut self, x: f64, y: f64, text: &str) {
        self.svg.text(Ink::Quiet, (x, y), text);
    }

    /// Draws a vertical line.
    fn draw_vertical(&mut self, class: &str, x: f64, top: f64, bottom: f64) {
        self.svg.line(class, &[(x, top), (x, bottom)]);
    }

    /// The left edge of a residue's cell.
    fn x_of(&self, rows: &Range<usize>, residue: usize) -> f64 {
        self.left + (residue - rows.start) as f64 * CELL
    }

    /// Writes the name, what is drawn, and what the signs mean.
    fn write_header(&mut self) {
        let sequence = self.sequence;
        self.svg.text("text name", (MARGIN, 28.0), &sequence.name);
        let residues = sequence.residues.len();
        let noun = if residues == 1 { "residue" } else { "residues" };
        let about = format!("model {}, {residues} {noun}", sequence.model);
        self.write_quiet(MARGIN, 46.0, &about);
        let x = self.left + 130.0;
        self.write_quiet(x, 46.0, "low");
        for step in 0..STEPS {
            let corner = (x + 26.0 + step as f64 * 6.0, 36.0);
            self.svg
                .rect(format_args!("v{step}"), corner, (6.0, TRACK - 1.0));
        }
        let x = x + 26.0 + STEPS as f64 * 6.0;
        self.write_quiet(x + 6.0, 46.0, "high");
        self.svg
            .rect("null", (x + 52.0, 36.0), (2.0 * CELL, TRACK - 1.0));
        self.write_quiet(x + 76.0, 46.0, "no value");
        self.draw_vertical("text chain", x + 144.0, 35.0, 50.0);
        self.write_quiet(x + 152.0, 46.0, "chain");
        self.draw_vertical("text break", x + 204.0, 35.0, 50.0);
        self.write_quiet(x + 212.0, 46.0, "break");
    }

    /// Writes what is not drawn, in lines that fit `width`, and returns their height.
    fn write_notes(&mut self, notes: &[(&str, String)], width: f64) -> f64 {
        let letters = ((width - 2.0 * MARGIN) / LETTER) as usize;
        let mut height = 0.0;
        for (about, names) in notes {
            let mut line = (*about).to_owned();
            for name in names.split_inclusive(", ") {
                if line.chars().count() + name.chars().count() > letters {
                    self.write_quiet(MARGIN, HEADER + height, line.trim_end());
                    height += NOTE;
                    line = "   ".to_owned();
                }
                line.push(' ');
                line.push_str(name.trim_end());
            }
            self.write_quiet(MARGIN, HEADER + height, &line);
            height += NOTE;
        }
        if height > 0.0 { height + NOTE } else { height }
    }

    /// Draws the chains above the residues, each with its name, and with its colour if a track
    /// shows chains.
    fn draw_chains(&mut self, rows: &Range<usize>, top: f64) {
        let sequence = self.sequence;
        let mut first = rows.start;
        let residues = &sequence.residues[rows.clone()];
        for (index, stretch) in residues.chunk_by(|a, b| a.chain == b.chain).enumerate() {
            let number = stretch[0].chain;
            let chain = &sequence.chains[number];
            let (x, width) = (self.x_of(rows, first), stretch.len() as f64 * CELL);
            let class = if index % 2 == 0 { "bar" } else { "bar other" };
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
    fn write_sequence(&mut self, rows: &Range<usize>, y: f64) {
        let letters = self.sequence.residues[rows.clone()].iter();
        let letters: String = letters.map(|residue| char::from(residue.aa)).collect();
        let middle = |row| self.x_of(rows, row) + (CELL / 2.0).floor();
        let xs: Vec<f64> = rows.clone().map(middle).collect();
        self.svg.letters("text small middle", &xs, y, &letters);
    }

    /// Draws a track: its name, and its residues as one path for each colour.
    fn draw_track(&mut self, track: &Track, rows: &Range<usize>, y: f64) {
        let name = (self.left - 8.0, y + 10.0);
        self.svg.text("text end", name, &track.name);
        let classes: Vec<Option<String>> = rows.clone().map(|row| track.class(row)).collect();
        let mut paths: BTreeMap<&str, String> = BTreeMap::new();
        let mut first = rows.start;
        for stretch in classes.chunk_by(|a, b| a == b) {
            let (x, width) = (self.x_of(rows, first), stretch.len() as f64 * CELL);
            let class = stretch[0].as_deref().unwrap_or("null");
            let path = paths.entry(class).or_default();
            // Writing to a string cannot fail.
            let _ = write!(path, "M{x} {y}h{width}v{TRACK}H{x}z");
            first += stretch.len();
        }
        for (class, path) in paths {
            self.svg.path(class, &path);
        }
    }

    /// Writes what the colours of a track mean.
    fn write_legend(&mut self, track: &Track, x: f64, y: f64) {
        let Some((min, max)) = track.range else {
            return;
        };
        if track.is_angle {
            let text = format!("-{HALF_TURN} to {HALF_TURN} {}", track.unit);
            self.draw_scale('a', 5.0, (x, y), &text);
            return;
        }
        if track.is_energy() && min < max {
            let range = format!("{} to {}", short(max), short(min));
            self.draw_scale('v', 2.5, (x, y), &with_unit(&range, &track.unit));
            return;
        }
        if track.words.is_empty() {
            let range = if min == max {
                format!("{} throughout", with_unit(&short(min), &track.unit))
            } else {
                let range = format!("{} to {}", short(min), short(max));
                with_unit(&range, &track.unit)
            };
            self.write_quiet(x, y + 10.0, &range);
            return;
        }
        let (mut left, end) = (x, x + LEGEND - MARGIN - 12.0);
        for word in track.occurring_words() {
            let text = &track.words[word];
            let width = 12.0 + (text.len() as f64 * LETTER).floor() + 7.0;
            if left + width > end {
                self.write_quiet(left, y + 10.0, "...");
                return;
            }
            self.svg
                .rect(track.word_class(word), (left, y + 2.0), (9.0, 9.0));
            self.write_quiet(left + 12.0, y + 10.0, text);
            left += width;
        }
    }

    /// Draws the colours of a scale from its first to its last, each `width` wide, and then `text`.
    fn draw_scale(&mut self, class: char, width: f64, (x, y): (f64, f64), text: &str) {
        for step in 0..STEPS {
            let corner = (x + step as f64 * width, y + 2.0);
            self.svg
                .rect(format_args!("{class}{step}"), corner, (width, 9.0));
        }
        self.write_quiet(x + STEPS as f64 * width + 5.0, y + 10.0, text);
    }

    /// Draws where chains begin, and where a chain is broken.
    fn draw_boundaries(&mut self, rows: &Range<usize>, top: f64, bottom: f64) {
        let sequence = self.sequence;
        for row in rows.clone().filter(|&row| row > 0) {
            let residue = &sequence.residues[row];
            let x = self.x_of(rows, row);
            if sequence.residues[row - 1].chain != residue.chain {
                self.draw_vertical("text chain", x, top, bottom);
            } else if residue.break_before {
                self.draw_vertical("text break", x, top + ABOVE - 3.0, bottom);
            }
        }
    }

    /// Writes residue numbers: the first of a block and of a chain, and every tenth. One without room has
    /// its tick alone.
    fn write_numbers(&mut self, rows: &Range<usize>, bottom: f64) {
        let sequence = self.sequence;
        let mut free = 0.0;
        for row in rows.clone() {
            let residue = &sequence.residues[row];
            let is_first = row == rows.start || sequence.residues[row - 1].chain != residue.chain;
            let Some(number) = residue.number else {
                continue;
            };
            let is_tenth = number % 10 == 0 && residue.ins_code == 0;
            let x = self.x_of(rows, row) + (CELL / 2.0).floor();
            if !(is_first || is_tenth) {
                continue;
            }
            self.draw_vertical("quiet", x, bottom, bottom + 4.0);
            let mut number = number.to_string();
            if residue.ins_code != 0 {
                number.push(char::from(residue.ins_code));
            }
            let half = (number.len() as f64 * LETTER / 2.0).floor();
            if x >= free + half {
                let position = (x, bottom + 15.0);
                self.svg.text("quiet small middle", position, &number);
                free = x + half + 4.0;
            }
        }
    }
}

/// The smallest and the largest of the values that are not null; `None` if all are. No value is NaN.
pub fn range(values: impl IntoIterator<Item = Option<f64>>) -> Option<(f64, f64)> {
    let mut values = values.into_iter().flatten();
    let first = values.next()?;
    Some(values.fold((first, first), |(min, max), value| {
        (min.min(value), max.max(value))
    }))
}

/// The words that the numbers of a column stand for; empty if they are plain numbers, or indices into what a
/// structure has.
pub fn words(kind: ColumnKind) -> &'static [&'static str] {
    match kind {
        ColumnKind::Flag => &["no", "yes"],
        ColumnKind::Text(words) => words,
        ColumnKind::Count | ColumnKind::Real | ColumnKind::Half | ColumnKind::Chain => &[],
        ColumnKind::LigandComponent | ColumnKind::LigandNumber => &[],
    }
}

/// A number in about four digits.
pub fn short(value: f64) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use tapeloop::features::FeatureName;

    fn sequence(chains: &[usize]) -> Sequence {
        let residue = |&chain: &usize| StripResidue {
            chain,
            number: Some(1),
            ins_code: 0,
            aa: b'A',
            break_before: false,
        };
        Sequence {
            name: "1abc".to_owned(),
            model: 1,
            chains: vec!["A".to_owned(), "B".to_owned()],
            residues: chains.iter().map(residue).collect(),
        }
    }

    fn words_of(count: usize) -> Track {
        let words = (0..count).map(|word| format!("W{word}")).collect();
        let values = (0..count).map(|word| Some(word as f64)).collect();
        Track::new("comp_id", None, "", values, Meaning::Words(words))
    }

    #[test]
    fn two_words_never_have_one_colour() {
        let eight = words_of(WORDS.len());
        let mut classes: Vec<_> = (0..8).map(|row| eight.class(row).unwrap()).collect();
        classes.sort();
        classes.dedup();
        assert_eq!((classes.len(), eight.is_drawn()), (8, true));
        let nine = words_of(WORDS.len() + 1);
        assert!(!nine.is_drawn());
        let drawn = draw(&sequence(&[0; 9]), &[nine]);
        assert!(
            drawn.contains(">More words than colours, not drawn: comp_id 9<"),
            "{drawn}"
        );
        // The first and the tenth ligand have names of their own, and the others touch no residue.
        let ligands = (0..10).map(|ligand| format!("L{ligand}")).collect();
        let values = vec![Some(0.0), Some(8.0), None];
        let ligands = Track::new("ligand_comp", None, "", values, Meaning::Words(ligands));
        assert!(ligands.is_drawn() && ligands.class(0) != ligands.class(1));
        assert_eq!(ligands.text(1.0), "L8");
    }

    #[test]
    fn partners_of_hydrogen_bonds_are_not_drawn_and_strong_energies_have_the_strong_colour() {
        let values = vec![Some(-3.0), Some(-0.5), None];
        let dssp = Some(FeatureName::Dssp);
        let energy = Track::new("hb_nho1_energy", dssp, "kcal/mol", values, Meaning::Numbers);
        let strongest = format!("v{}", STEPS - 1);
        assert_eq!(energy.class(0), Some(strongest));
        assert_eq!(energy.class(1).as_deref(), Some("v0"));
        let partner = vec![Some(7.0), Some(2.0), None];
        let partner = Track::new("hb_nho1", dssp, "", partner, Meaning::Numbers);
        let bridge = vec![Some(7.0), Some(2.0), None];
        let sheets = Some(FeatureName::Sheets);
        let bridge = Track::new("bridge1", sheets, "", bridge, Meaning::Numbers);
        let drawn = draw(&sequence(&[0, 0, 0]), &[energy, partner, bridge]);
        assert!(drawn.contains(">Indices, which are not drawn: hb_nho1, bridge1<"));
        assert!(drawn.contains(">-0.5 to -3 kcal/mol<"), "{drawn}");
    }

    #[test]
    fn torsions_have_the_colours_of_a_circle_even_if_none_is_negative() {
        let feature = Some(FeatureName::Torsions);
        let values = vec![Some(179.0), Some(10.0)];
        let omega = Track::new(
            "omega",
            feature,
            "degrees",
            values.clone(),
            Meaning::Numbers,
        );
        assert_eq!(omega.class(0).as_deref(), Some("a15"));
        let feature = Some(FeatureName::CaGeometry);
        let angle = Track::new("ca_angle", feature, "degrees", values, Meaning::Numbers);
        assert_eq!(angle.class(0).as_deref(), Some("v15"));
    }

    #[test]
    fn the_line_of_a_chain_stands_right_of_the_headings() {
        let values: Vec<Option<f64>> = (0..150).map(|row| Some(f64::from(row))).collect();
        let sasa = Some(FeatureName::Sasa);
        let track = Track::new("sasa", sasa, "A^2", values, Meaning::Numbers);
        // Chain B starts at the first residue of the second block.
        let chains: Vec<usize> = (0..150).map(|row| row / 75).collect();
        let drawn = draw(&sequence(&chains), &[track]);
        let lines = drawn
            .split("<polyline class=\"text chain\" points=\"")
            .skip(2);
        let xs: Vec<f64> = lines
            .map(|line| line.split(',').next().unwrap().parse().unwrap())
            .collect();
        let end = MARGIN + "Solvent accessibility".len() as f64 * LETTER;
        assert!(xs.len() == 1 && xs[0] > end, "{xs:?} {end}");
    }

    #[test]
    fn the_range_ignores_nulls() {
        assert_eq!(range([None, Some(2.0), Some(-1.0)]), Some((-1.0, 2.0)));
        assert_eq!(range([None]), None);
    }
}
