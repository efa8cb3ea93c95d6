//! Lines over two axes.

use super::axis::{Axis, Ruler};
use super::canvas::{Canvas, LETTER, LETTERS, Room, Stand, colour, drawn, font, sharp, svg, wrap};
use super::style::{Ink, Look};
use crate::error::Result;
use plotters::prelude::*;

/// A point with its spread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dot {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Dot {
    pub(super) fn bare(x: f64, y: f64) -> Self {
        let (low, high) = (y, y);
        Dot { x, y, low, high }
    }
}

pub(super) struct Line {
    pub(super) name: String,
    pub(super) look: Look,
    pub(super) dots: Vec<Dot>,
}

pub(super) struct Plot {
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Line>,
    /// Two of the lines, between which the chart is shaded.
    pub(super) shaded: Option<(usize, usize)>,
}

/// With more points than this a line is a curve, whose points are not marked.
const MARKED_MAX: usize = 24;

const LINE_STEP: f64 = 15.0;

const LABEL_LETTERS: usize = 24;

/// A chart being drawn: where its values stand, in pixels.
struct Frame {
    x: Axis,
    y: Axis,
    across: Ruler,
    up: Ruler,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    fn at(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        let part = |place: f64, ruler: &Ruler| (place - ruler.low) / (ruler.high - ruler.low);
        let across = part(self.x.place(x)?, &self.across);
        let up = part(self.y.place(y)?, &self.up);
        Some((
            self.left + across * (self.right - self.left),
            self.bottom - up * (self.bottom - self.top),
        ))
    }
}

impl Plot {
    /// Whether anything can be drawn.
    pub(super) fn is_empty(&self) -> bool {
        self.dots().next().is_none()
    }

    fn dots(&self) -> impl Iterator<Item = &Dot> {
        let dots = self.lines.iter().flat_map(|line| &line.dots);
        dots.filter(|dot| self.x.place(dot.x).is_some() && self.y.place(dot.y).is_some())
    }

    pub(super) fn svg(&self, room: Room, label: &str) -> Result<String> {
        let size = (room.width(), room.choose(360.0, 300.0));
        let frame = self.frame(room, size);
        svg(size, Some(label), |canvas| {
            let Some(frame) = frame else { return Ok(()) };
            self.grid(canvas, &frame, size)?;
            if let Some((one, other)) = self.shaded {
                self.shade(canvas, &frame, one, other)?;
            }
            for line in &self.lines {
                self.line(canvas, &frame, line)?;
            }
            match room {
                Room::Wide => self.names(canvas, &frame),
                Room::Narrow => Ok(()),
            }
        })
    }

    fn frame(&self, room: Room, (width, height): (f64, f64)) -> Option<Frame> {
        let x = self.dots().map(|dot| dot.x);
        let y = self.dots().flat_map(|dot| [dot.low, dot.y, dot.high]);
        let across = self.x.ruler(x, room.choose(8, 4))?;
        let up = self.y.ruler(y, room.choose(6, 5))?;
        let longest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0) as f64;
        let ticks = longest(&mut up.ticks.iter().map(|(_, text)| text.chars().count()));
        let names = self
            .lines
            .iter()
            .flat_map(|line| wrap(&line.name, LABEL_LETTERS));
        let names = longest(&mut names.map(|name| name.chars().count()));
        let right = room.choose(names * LETTER + 42.0, 20.0);
        Some(Frame {
            x: self.x,
            y: self.y,
            across,
            up,
            left: ticks * LETTER + 14.0,
            right: width - right.max(26.0),
            top: 32.0,
            bottom: height - 48.0,
        })
    }

    fn grid(&self, canvas: &Canvas<'_>, frame: &Frame, size: (f64, f64)) -> Result<()> {
        let Frame { across, up, .. } = frame;
        let mut chart = ChartBuilder::on(&canvas.area);
        chart
            .margin_top(sharp(frame.top))
            .margin_right(sharp(size.0 - frame.right))
            .margin_bottom(sharp(size.1 - frame.bottom - 24.0))
            .x_label_area_size(sharp(24.0))
            .y_label_area_size(sharp(frame.left));
        let mut chart = drawn(chart.build_cartesian_2d(across.clone(), up.clone()))?;
        let mesh = chart
            .configure_mesh()
            .axis_style(TRANSPARENT)
            .set_all_tick_mark_size(sharp(6.0))
            .bold_line_style(colour(Ink::Grid).stroke_width(sharp(1.0) as u32))
            .light_line_style(TRANSPARENT)
            .x_labels(across.ticks.len())
            .y_labels(up.ticks.len())
            .label_style(font(LETTERS, Ink::Quiet))
            .draw();
        drawn(mesh)?;
        let floor = [(frame.left, frame.bottom), (frame.right, frame.bottom)];
        canvas.line(&floor, Ink::Quiet, 1.0)?;
        canvas.text((2.0, 13.0), self.y.title, Stand::Right, Ink::Text)?;
        let under = ((frame.left + frame.right) / 2.0, size.1 - 9.0);
        canvas.text(under, self.x.title, Stand::Middle, Ink::Text)
    }

    fn shade(&self, canvas: &Canvas<'_>, frame: &Frame, one: usize, other: usize) -> Result<()> {
        let along = |line: &Line| -> Vec<(f64, f64)> {
            let dots = line.dots.iter();
            dots.filter_map(|dot| frame.at(dot.x, dot.y)).collect()
        };
        let mut around = along(&self.lines[one]);
        around.extend(along(&self.lines[other]).into_iter().rev());
        canvas.shade(&around, Ink::Sky)
    }

    fn line(&self, canvas: &Canvas<'_>, frame: &Frame, line: &Line) -> Result<()> {
        let dots = line.dots.iter();
        let places: Vec<(f64, f64)> = dots.filter_map(|dot| frame.at(dot.x, dot.y)).collect();
        for dot in &line.dots {
            let ends = (frame.at(dot.x, dot.low), frame.at(dot.x, dot.high));
            if let (Some(low), Some(high)) = ends {
                // A marker covers what is shorter.
                if low.1 - high.1 > 8.0 {
                    canvas.line(&[low, high], line.look.ink, 1.4)?;
                }
            }
        }
        if places.len() > 1 {
            match line.look.dashed {
                true => canvas.dashes(&places, line.look.ink, 1.8)?,
                false => canvas.line(&places, line.look.ink, 2.2)?,
            }
        }
        let marked = match places.len() {
            count if count > MARKED_MAX => &places[count - 1..],
            _ => &places[..],
        };
        marked
            .iter()
            .try_for_each(|place| canvas.marker(*place, line.look))
    }

    /// Names to the right, with their signs, each beside its line's end or as near as the
    /// others allow.
    fn names(&self, canvas: &Canvas<'_>, frame: &Frame) -> Result<()> {
        let mut names: Vec<(f64, (f64, f64), &Line)> = Vec::new();
        for line in &self.lines {
            let places = line.dots.iter().filter_map(|dot| frame.at(dot.x, dot.y));
            if let Some(end) = places.max_by(|one, other| one.0.total_cmp(&other.0)) {
                // Lines that end together stand in the order that they come in.
                let start = line.dots.iter().find_map(|dot| frame.at(dot.x, dot.y));
                let start = start.map_or(end.1, |start| start.1);
                names.push((end.1 + 0.05 * start, end, line));
            }
        }
        names.sort_by(|one, other| one.0.total_cmp(&other.0));
        let heights = names
            .iter()
            .map(|(_, _, line)| wrap(&line.name, LABEL_LETTERS).len() as f64 * LINE_STEP + 3.0);
        let heights: Vec<f64> = heights.collect();
        let middles: Vec<f64> = names.iter().map(|(_, end, _)| end.1).collect();
        let middles = spread_out(&middles, &heights, frame.top - 10.0, frame.bottom + 14.0);
        for ((.., line), middle) in names.iter().zip(middles) {
            let x = frame.right + 38.0;
            let sign = [(x - 28.0, middle), (x - 6.0, middle)];
            match line.look.dashed {
                true => canvas.dashes(&sign, line.look.ink, 1.8)?,
                false => canvas.line(&sign, line.look.ink, 2.2)?,
            }
            canvas.marker((x - 17.0, middle), line.look)?;
            let lines = wrap(&line.name, LABEL_LETTERS);
            let first = middle - (lines.len() - 1) as f64 * LINE_STEP / 2.0;
            for (place, text) in lines.iter().enumerate() {
                let y = first + place as f64 * LINE_STEP;
                canvas.text((x, y), text, Stand::Right, Ink::Text)?;
            }
        }
        Ok(())
    }
}

/// Middles of things of some heights that do not overlap: in their order, each as near
/// to where it would stand alone as a push down and one up again leave it.
fn spread_out(wanted: &[f64], heights: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut middles = wanted.to_vec();
    let mut free = top;
    for (middle, height) in middles.iter_mut().zip(heights) {
        *middle = middle.max(free + height / 2.0);
        free = *middle + height / 2.0;
    }
    let mut free = bottom;
    for (middle, height) in middles.iter_mut().zip(heights).rev() {
        *middle = middle.min(free - height / 2.0);
        free = *middle - height / 2.0;
    }
    middles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_apart_and_inside() {
        let middles = spread_out(&[50.0, 52.0, 199.0], &[18.0; 3], 0.0, 200.0);
        assert_eq!(middles, [50.0, 68.0, 191.0]);
    }
}
