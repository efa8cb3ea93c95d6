//! A chart of bars or dots in rows, under headings. Lengths are in pixels, chosen by eye;
//! `tests/bench/screenshot.rs` finds texts that overlap or leave the drawing.

use super::axis::{AxisScale, ChartAxis, Ruler};
use super::layout::{LETTER, ScreenWidth, TextSide, bar, cut, text};
use super::style::Look;
use crate::format;
use tapeloop_svg::{Ink, Svg};

pub(super) struct ChartRow {
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

pub(super) struct RowChart {
    pub(super) axis: ChartAxis,
    /// Whether rows have bars; otherwise they have dots.
    pub(super) bars: bool,
    /// A value with a line across all rows.
    pub(super) rule: Option<f64>,
    /// More values that the axis must include.
    pub(super) holds: Vec<f64>,
    pub(super) rows: Vec<ChartRow>,
}

/// The room for ticks and the title of the axis.
const FOOT: f64 = 46.0;

/// The height of a heading.
const HEADING: f64 = 28.0;

/// The layout of the rows, in pixels.
struct RowFrame {
    axis: ChartAxis,
    ruler: Ruler,
    room: ScreenWidth,
    left: f64,
    right: f64,
    /// Where the text at the end of a row begins or, on a narrow screen, ends.
    end: f64,
}

impl RowFrame {
    fn position(&self, value: f64) -> Option<f64> {
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

impl RowChart {
    /// A chart of ratios, with a line at 1. `title` says what a ratio above 1 means.
    pub(super) fn of_ratios(title: &'static str, rows: Vec<ChartRow>) -> Self {
        RowChart {
            axis: ChartAxis {
                title,
                scale: AxisScale::Decades,
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

    /// Draws the rows. Without a value the drawing is empty.
    pub(super) fn svg(&self, room: ScreenWidth, label: &str) -> String {
        let headings = self.rows.iter().filter(|row| row.heading.is_some()).count();
        let row = room.choose(25.0, 40.0);
        let height = FOOT + 4.0 + headings as f64 * HEADING + self.rows.len() as f64 * row;
        let mut svg = Svg::default();
        if let Some(frame) = self.frame(room) {
            self.draw(&mut svg, &frame, height);
        }
        svg.element((room.width(), height), Some(label))
    }

    /// Where labels end and values begin. In a narrow drawing labels are above the values. `None` without a
    /// value.
    fn frame(&self, room: ScreenWidth) -> Option<RowFrame> {
        let rows = self.rows.iter();
        let values = rows.flat_map(|row| [row.low, row.value, row.high]);
        let values = values.chain(self.rule).chain(self.holds.iter().copied());
        let ruler = self.axis.ruler(values, room.choose(7, 4))?;
        let longest = |text: fn(&ChartRow) -> &str| {
            let lengths = self.rows.iter().map(|row| text(row).chars().count());
            lengths.max().unwrap_or(0) as f64 * LETTER
        };
        // Both leave at least a third of a wide drawing to the values; longer labels are cut.
        let left = (longest(|row| &row.label) + 12.0).clamp(80.0, 310.0);
        let end = (longest(|row| &row.text) + 14.0).clamp(60.0, 250.0);
        let (left, right) = room.choose((left, room.width() - end), (4.0, room.width() - 24.0));
        Some(RowFrame {
            axis: self.axis,
            ruler,
            room,
            left,
            right,
            end: room.choose(right + 12.0, room.width() - 2.0),
        })
    }

    /// Draws the axis and the rows from the top.
    fn draw(&self, svg: &mut Svg, frame: &RowFrame, height: f64) {
        let bottom = height - FOOT;
        let ticks = frame.ruler.ticks.iter();
        let ticks: Vec<(f64, &String)> =
            ticks.map(|(place, text)| (frame.x(*place), text)).collect();
        for (x, tick) in &ticks {
            let under = (x.max(12.0), bottom + 12.0);
            text(svg, Ink::Quiet, under, TextSide::Middle, tick);
        }
        let under = ((frame.left + frame.right) / 2.0, height - 9.0);
        text(svg, Ink::Text, under, TextSide::Middle, &self.axis.label());
        let rule = self.rule.and_then(|rule| frame.position(rule));
        let mut y = 4.0;
        for row in &self.rows {
            if let Some((heading, more)) = &row.heading {
                let both = format!("{heading}{more}");
                // As many letters as have room.
                let heading = frame.room.choose(cut(&both, 100), cut(heading, 47));
                let class = format_args!("{} strong", Ink::Text);
                svg.text(class, (2.0, y + HEADING / 2.0 + 7.4), &heading);
                y += HEADING;
            }
            let middle = self.write_words(svg, frame, row, y);
            y += frame.row();
            // The lines across a row end before the words above and below it.
            let half = frame.room.choose(12.5, 9.0);
            let across = |x: f64| [(x, middle - half), (x, middle + half)];
            for (x, _) in &ticks {
                svg.line(Ink::Grid, &across(*x));
            }
            // The rule is drawn over a bar, which would hide it, and under a dot.
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
    fn write_words(&self, svg: &mut Svg, frame: &RowFrame, row: &ChartRow, top: f64) -> f64 {
        let middle = match frame.room {
            ScreenWidth::Wide => {
                let middle = top + frame.row() / 2.0;
                let letters = ((frame.left - 12.0) / LETTER) as usize + 1;
                let label = cut(&row.label, letters);
                text(
                    svg,
                    Ink::Text,
                    (frame.left - 10.0, middle),
                    TextSide::Left,
                    &label,
                );
                text(
                    svg,
                    Ink::Quiet,
                    (frame.end, middle),
                    TextSide::Right,
                    &row.text,
                );
                middle
            }
            ScreenWidth::Narrow => {
                let words = top + 11.0;
                // The label and the value share a row of 46 letters.
                let letters = 46_usize.saturating_sub(row.text.chars().count());
                let label = cut(&row.label, letters);
                text(svg, Ink::Text, (frame.left, words), TextSide::Right, &label);
                text(
                    svg,
                    Ink::Quiet,
                    (frame.end, words),
                    TextSide::Left,
                    &row.text,
                );
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

/// Draws the value as a bar from the left, one pixel long at least.
fn mark_bar(svg: &mut Svg, frame: &RowFrame, row: &ChartRow, middle: f64) {
    if let Some(x) = frame.position(row.value) {
        let (up, down) = (middle - frame.half(), middle + frame.half());
        let end = x.max(frame.left + 1.0);
        bar(svg, row.look.ink, (frame.left, up), (end, down));
    }
}

/// Draws the value as a dot on the line of its interval.
fn mark_dot(svg: &mut Svg, frame: &RowFrame, row: &ChartRow, middle: f64) {
    if let Some(x) = frame.position(row.value) {
        if let (Some(low), Some(high)) = (frame.position(row.low), frame.position(row.high)) {
            let class = format_args!("{} thick", row.look.ink);
            svg.line(class, &[(low, middle), (high, middle)]);
        }
        row.look.draw_marker(svg, (x, middle));
    }
}
