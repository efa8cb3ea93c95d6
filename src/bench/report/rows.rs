//! Bars or dots in rows, under headings.

use super::axis::{Axis, Ruler};
use super::canvas::{Canvas, LETTER, Room, Stand, cut, svg};
use super::style::{Ink, Look};
use crate::error::Result;

pub(super) struct Row {
    /// Stands above the row, and what is added where there is room.
    pub(super) heading: Option<(String, String)>,
    pub(super) label: String,
    pub(super) look: Look,
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// The value in words, at the row's end.
    pub(super) text: String,
}

pub(super) struct Rows {
    pub(super) axis: Axis,
    /// Bars from the axis' beginning, or dots.
    pub(super) bars: bool,
    /// A line across all rows.
    pub(super) rule: Option<f64>,
    /// What the axis has to hold besides the rows.
    pub(super) holds: Vec<f64>,
    pub(super) rows: Vec<Row>,
}

const FOOT: f64 = 46.0;
const HEADING: f64 = 28.0;

/// Where rows stand, in pixels.
struct Frame {
    axis: Axis,
    ruler: Ruler,
    room: Room,
    left: f64,
    right: f64,
    /// Where the texts at the ends begin or, in little room, end.
    end: f64,
}

impl Frame {
    fn at(&self, value: f64) -> Option<f64> {
        let part = (self.axis.place(value)? - self.ruler.low) / (self.ruler.high - self.ruler.low);
        Some(self.left + part * (self.right - self.left))
    }

    fn row(&self) -> f64 {
        self.room.choose(25.0, 40.0)
    }

    /// Of a bar.
    fn half(&self) -> f64 {
        self.room.choose(7.0, 6.0)
    }
}

impl Rows {
    /// Whether anything can be drawn.
    pub(super) fn is_empty(&self) -> bool {
        self.rows
            .iter()
            .all(|row| self.axis.place(row.value).is_none())
    }

    pub(super) fn svg(&self, room: Room, label: &str) -> Result<String> {
        let frame = self.frame(room);
        let headings = self.rows.iter().filter(|row| row.heading.is_some()).count();
        let row = room.choose(25.0, 40.0);
        let height = FOOT + 4.0 + headings as f64 * HEADING + self.rows.len() as f64 * row;
        svg((room.width(), height), Some(label), |canvas| match frame {
            None => Ok(()),
            Some(frame) => self.draw(canvas, &frame, height),
        })
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
        let left = (longest(|row| &row.label) + 12.0).clamp(80.0, 290.0);
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

    fn draw(&self, canvas: &Canvas<'_>, frame: &Frame, height: f64) -> Result<()> {
        let bottom = height - FOOT;
        let part = |place: f64| (place - frame.ruler.low) / (frame.ruler.high - frame.ruler.low);
        let x = |place: f64| frame.left + part(place) * (frame.right - frame.left);
        let ticks: Vec<(f64, &String)> = frame
            .ruler
            .ticks
            .iter()
            .map(|(place, text)| (x(*place), text))
            .collect();
        for (x, text) in &ticks {
            canvas.text(
                (x.max(12.0), bottom + 12.0),
                text,
                Stand::Middle,
                Ink::Quiet,
            )?;
        }
        let under = ((frame.left + frame.right) / 2.0, height - 9.0);
        canvas.text(under, self.axis.title, Stand::Middle, Ink::Text)?;
        let mut y = 4.0;
        let mut marks = Vec::new();
        for row in &self.rows {
            if let Some((heading, more)) = &row.heading {
                let heading = frame
                    .room
                    .choose(format!("{heading}{more}"), heading.clone());
                let heading = cut(&heading, frame.room.choose(100, 44));
                canvas.heading((2.0, y + HEADING / 2.0 + 3.0), &heading)?;
                y += HEADING;
            }
            marks.push((row, self.words(canvas, frame, row, y)?));
            y += frame.row();
        }
        let rule = self.rule.and_then(|rule| frame.at(rule));
        for (row, middle) in marks {
            // Not through words.
            let half = frame.room.choose(12.5, 9.0);
            let across = |x: f64| [(x, middle - half), (x, middle + half)];
            for (x, _) in &ticks {
                canvas.line(&across(*x), Ink::Grid, 1.0)?;
            }
            // Above bars, which would hide it, and below dots, which it would hide.
            if self.bars {
                self.mark(canvas, frame, row, middle)?;
            }
            if let Some(x) = rule {
                canvas.line(&across(x), Ink::Quiet, 1.6)?;
            }
            if !self.bars {
                self.mark(canvas, frame, row, middle)?;
            }
        }
        Ok(())
    }

    /// What a row says, and its track; returns where its middle is.
    fn words(&self, canvas: &Canvas<'_>, frame: &Frame, row: &Row, top: f64) -> Result<f64> {
        let middle = match frame.room {
            Room::Wide => {
                let middle = top + frame.row() / 2.0;
                let letters = ((frame.left - 12.0) / LETTER) as usize + 1;
                let label = cut(&row.label, letters);
                canvas.text((frame.left - 10.0, middle), &label, Stand::Left, Ink::Text)?;
                canvas.text((frame.end, middle), &row.text, Stand::Right, Ink::Quiet)?;
                middle
            }
            Room::Narrow => {
                let words = top + 11.0;
                let letters = 46_usize.saturating_sub(row.text.chars().count());
                let label = cut(&row.label, letters);
                canvas.text((frame.left, words), &label, Stand::Right, Ink::Text)?;
                canvas.text((frame.end, words), &row.text, Stand::Left, Ink::Quiet)?;
                top + 27.0
            }
        };
        let half = if self.bars { frame.half() } else { 1.0 };
        let (from, to) = ((frame.left, middle - half), (frame.right, middle + half));
        canvas.bar(from, to, Ink::Track)?;
        Ok(middle)
    }

    fn mark(&self, canvas: &Canvas<'_>, frame: &Frame, row: &Row, middle: f64) -> Result<()> {
        let Some(x) = frame.at(row.value) else {
            return Ok(());
        };
        if self.bars {
            let (up, down) = (middle - frame.half(), middle + frame.half());
            let end = x.max(frame.left + 1.0);
            return canvas.bar((frame.left, up), (end, down), row.look.ink);
        }
        if let (Some(low), Some(high)) = (frame.at(row.low), frame.at(row.high)) {
            canvas.line(&[(low, middle), (high, middle)], row.look.ink, 2.0)?;
        }
        canvas.marker((x, middle), row.look)
    }
}
