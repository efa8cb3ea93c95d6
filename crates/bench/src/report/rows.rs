//! A chart of bars or dots in rows, under headings.

use super::axis::{Axis, Ruler, Scale};
use super::layout::{LETTER, Room, Stand, bar, cut, text};
use super::style::Look;
use crate::format;
use tapeloop_svg::{Ink, Svg};

pub(super) struct Row {
    /// The heading above the row, and what a wide screen adds to it.
    pub(super) heading: Option<(String, String)>,
    pub(super) label: String,
    pub(super) look: Look,
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// The value as text, at the end of the row.
    pub(super) text: String,
}

pub(super) struct Rows {
    pub(super) axis: Axis,
    /// Whether rows have bars, or dots.
    pub(super) bars: bool,
    /// A value with a line across all rows.
    pub(super) rule: Option<f64>,
    /// More values that the axis must include.
    pub(super) holds: Vec<f64>,
    pub(super) rows: Vec<Row>,
}

const FOOT: f64 = 46.0;
const HEADING: f64 = 28.0;

/// The layout of the rows, in pixels.
struct Frame {
    axis: Axis,
    ruler: Ruler,
    room: Room,
    left: f64,
    right: f64,
    /// Where the text at the end of a row begins or, on a narrow screen, ends.
    end: f64,
}

impl Frame {
    fn at(&self, value: f64) -> Option<f64> {
        Some(self.x(self.axis.place(value)?))
    }

    fn x(&self, place: f64) -> f64 {
        self.ruler.between(place, self.left, self.right)
    }

    fn row(&self) -> f64 {
        self.room.choose(25.0, 40.0)
    }

    /// Half the height of a bar.
    fn half(&self) -> f64 {
        self.room.choose(7.0, 6.0)
    }
}

impl Rows {
    /// Rows of ratios, with a line at 1. `title` says what more than 1 means.
    pub(super) fn of_ratios(title: &'static str, rows: Vec<Row>) -> Self {
        Rows {
            axis: Axis {
                title,
                scale: Scale::Decades,
                tick: format::times_tick,
            },
            bars: false,
            rule: Some(1.0),
            holds: Vec::new(),
            rows,
        }
    }

    /// Whether there is nothing to draw.
    pub(super) fn is_empty(&self) -> bool {
        self.rows
            .iter()
            .all(|row| self.axis.place(row.value).is_none())
    }

    pub(super) fn svg(&self, room: Room, label: &str) -> String {
        let headings = self.rows.iter().filter(|row| row.heading.is_some()).count();
        let row = room.choose(25.0, 40.0);
        let height = FOOT + 4.0 + headings as f64 * HEADING + self.rows.len() as f64 * row;
        let mut svg = Svg::default();
        if let Some(frame) = self.frame(room) {
            self.draw(&mut svg, &frame, height);
        }
        svg.element((room.width(), height), Some(label))
    }

    fn frame(&self, room: Room) -> Option<Frame> {
        let rows = self.rows.iter();
        let values = rows.flat_map(|row| [row.low, row.value, row.high]);
        let values = values.chain(self.rule).chain(self.holds.iter().copied());
        let ruler = self.axis.ruler(values, room.choose(7, 4))?;
        let longest = |text: fn(&Row) -> &str| {
            let lengths = self.rows.iter().map(|row| text(row).chars().count());
            lengths.max().unwrap_or(0) as f64 * LETTER
        };
        let left = (longest(|row| &row.label) + 12.0).clamp(80.0, 310.0);
        let end = (longest(|row| &row.text) + 14.0).clamp(60.0, 250.0);
        let (left, right) = room.choose((left, room.width() - end), (4.0, room.width() - 24.0));
        Some(Frame {
            axis: self.axis,
            ruler,
            room,
            left,
            right,
            end: room.choose(right + 12.0, room.width() - 2.0),
        })
    }

    fn draw(&self, svg: &mut Svg, frame: &Frame, height: f64) {
        let bottom = height - FOOT;
        let ticks = frame.ruler.ticks.iter();
        let ticks: Vec<(f64, &String)> = ticks.map(|(at, text)| (frame.x(*at), text)).collect();
        for (x, tick) in &ticks {
            let under = (x.max(12.0), bottom + 12.0);
            text(svg, Ink::Quiet, under, Stand::Middle, tick);
        }
        let under = ((frame.left + frame.right) / 2.0, height - 9.0);
        text(svg, Ink::Text, under, Stand::Middle, &self.axis.label());
        let rule = self.rule.and_then(|rule| frame.at(rule));
        let mut y = 4.0;
        for row in &self.rows {
            if let Some((heading, more)) = &row.heading {
                let both = format!("{heading}{more}");
                let heading = frame.room.choose(cut(&both, 100), cut(heading, 47));
                let class = format_args!("{} strong", Ink::Text);
                svg.text(class, (2.0, y + HEADING / 2.0 + 7.4), &heading);
                y += HEADING;
            }
            let middle = self.words(svg, frame, row, y);
            y += frame.row();
            // Short of the words above and below.
            let half = frame.room.choose(12.5, 9.0);
            let across = |x: f64| [(x, middle - half), (x, middle + half)];
            for (x, _) in &ticks {
                svg.line(Ink::Grid, &across(*x));
            }
            // Over a bar, which would hide it, and under a dot.
            if self.bars {
                mark_bar(svg, frame, row, middle);
            }
            if let Some(x) = rule {
                svg.line(Ink::Quiet, &across(x));
            }
            if !self.bars {
                mark_dot(svg, frame, row, middle);
            }
        }
    }

    /// Writes a row's label and its value, and draws its track. Returns the middle of the track.
    fn words(&self, svg: &mut Svg, frame: &Frame, row: &Row, top: f64) -> f64 {
        let middle = match frame.room {
            Room::Wide => {
                let middle = top + frame.row() / 2.0;
                let letters = ((frame.left - 12.0) / LETTER) as usize + 1;
                let label = cut(&row.label, letters);
                text(
                    svg,
                    Ink::Text,
                    (frame.left - 10.0, middle),
                    Stand::Left,
                    &label,
                );
                text(
                    svg,
                    Ink::Quiet,
                    (frame.end, middle),
                    Stand::Right,
                    &row.text,
                );
                middle
            }
            Room::Narrow => {
                let words = top + 11.0;
                let letters = 46_usize.saturating_sub(row.text.chars().count());
                let label = cut(&row.label, letters);
                text(svg, Ink::Text, (frame.left, words), Stand::Right, &label);
                text(svg, Ink::Quiet, (frame.end, words), Stand::Left, &row.text);
                top + 27.0
            }
        };
        let half = if self.bars { frame.half() } else { 1.0 };
        bar(
            svg,
            Ink::Track,
            (frame.left, middle - half),
            (frame.right, middle + half),
        );
        middle
    }
}

fn mark_bar(svg: &mut Svg, frame: &Frame, row: &Row, middle: f64) {
    if let Some(x) = frame.at(row.value) {
        let (up, down) = (middle - frame.half(), middle + frame.half());
        let end = x.max(frame.left + 1.0);
        bar(svg, row.look.ink, (frame.left, up), (end, down));
    }
}

fn mark_dot(svg: &mut Svg, frame: &Frame, row: &Row, middle: f64) {
    if let Some(x) = frame.at(row.value) {
        if let (Some(low), Some(high)) = (frame.at(row.low), frame.at(row.high)) {
            let class = format_args!("{} thick", row.look.ink);
            svg.line(class, &[(low, middle), (high, middle)]);
        }
        row.look.marker(svg, (x, middle));
    }
}
