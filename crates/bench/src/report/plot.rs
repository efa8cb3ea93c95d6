//! A chart of lines over two axes. Lengths are in pixels, chosen by eye; `tests/bench/screenshot.rs` finds
//! texts that overlap or leave the drawing.

use super::axis::{ChartAxis, Ruler};
use super::layout::{LETTER, ScreenWidth, TextSide, text, wrap};
use super::style::Look;
use tapeloop_svg::{Ink, Svg, Xy};

/// A point of a line, with the range of its `y` value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dot {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Dot {
    /// A point without a range.
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
    pub(super) x: ChartAxis,
    pub(super) y: ChartAxis,
    pub(super) lines: Vec<Line>,
    /// Two lines between which the chart is shaded.
    pub(super) shaded: Option<(usize, usize)>,
    pub(super) gap: Option<Gap>,
}

/// A mark of the distance between two lines at one `x` value, with its text.
pub(super) struct Gap {
    pub(super) lines: (usize, usize),
    pub(super) x: f64,
    pub(super) text: String,
}

/// The most points of a line that all have markers: those of a sweep. A line of more points is a curve: only
/// its last point has a marker.
const MARKED_MAX: usize = 24;

/// The distance between two rows of a name.
const LINE_STEP: f64 = 15.0;

/// The most letters in a row of a name, so that names take a quarter of a wide drawing at most.
const LABEL_LETTERS: usize = 24;

/// The axes of a chart and its area in pixels.
struct PlotFrame {
    x: ChartAxis,
    y: ChartAxis,
    across: Ruler,
    up: Ruler,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl PlotFrame {
    fn position(&self, x: f64, y: f64) -> Option<Xy> {
        Some((self.across(self.x.place(x)?), self.up(self.y.place(y)?)))
    }

    fn across(&self, place: f64) -> f64 {
        self.across.between(place, self.left, self.right)
    }

    fn up(&self, place: f64) -> f64 {
        self.up.between(place, self.bottom, self.top)
    }

    /// The positions of a line's points, without those that the axes cannot show.
    fn along(&self, line: &Line) -> Vec<Xy> {
        let dots = line.dots.iter();
        dots.filter_map(|dot| self.position(dot.x, dot.y)).collect()
    }
}

impl Plot {
    /// Whether there is nothing to draw.
    pub(super) fn is_empty(&self) -> bool {
        self.dots().next().is_none()
    }

    /// The dots that the axes can show.
    fn dots(&self) -> impl Iterator<Item = &Dot> {
        let dots = self.lines.iter().flat_map(|line| &line.dots);
        dots.filter(|dot| self.x.place(dot.x).is_some() && self.y.place(dot.y).is_some())
    }

    /// Draws the plot. Without a dot the drawing is empty.
    pub(super) fn svg(&self, room: ScreenWidth, label: &str) -> String {
        let size = (room.width(), room.choose(360.0, 300.0));
        let mut svg = Svg::default();
        if let Some(frame) = self.frame(room, size) {
            self.draw_grid(&mut svg, &frame, size);
            if let Some((one, other)) = self.shaded {
                let mut around = frame.along(&self.lines[one]);
                around.extend(frame.along(&self.lines[other]).into_iter().rev());
                svg.polygon(format_args!("{} shade", Ink::Sky), &around);
            }
            if let Some(gap) = &self.gap {
                self.draw_gap(&mut svg, &frame, gap);
            }
            for line in &self.lines {
                draw(&mut svg, &frame, line);
            }
            if room == ScreenWidth::Wide {
                self.write_names(&mut svg, &frame);
            }
        }
        svg.element(size, Some(label))
    }

    /// Draws a line from one line of the chart to another, with a text to its right; nothing if either has no
    /// dot there.
    fn draw_gap(&self, svg: &mut Svg, frame: &PlotFrame, gap: &Gap) {
        let end = |line: usize| {
            let mut dots = self.lines.get(line)?.dots.iter();
            let dot = dots.find(|dot| dot.x == gap.x)?;
            frame.position(dot.x, dot.y)
        };
        if let (Some(one), Some(other)) = (end(gap.lines.0), end(gap.lines.1)) {
            svg.line(format_args!("{} dashed", Ink::Text), &[one, other]);
            let middle = (one.0 + 8.0, (one.1 + other.1) / 2.0);
            svg.text(
                format_args!("{} strong", Ink::Text),
                (middle.0, middle.1 + 4.4),
                &gap.text,
            );
        }
    }

    /// Where the axes are: ticks to the left of them, and in a wide drawing the names of lines to
    /// the right. `None` without a dot.
    fn frame(&self, room: ScreenWidth, (width, height): (f64, f64)) -> Option<PlotFrame> {
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
        Some(PlotFrame {
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

    /// Draws the lines of the grid, the ticks and the axes' labels.
    fn draw_grid(&self, svg: &mut Svg, frame: &PlotFrame, size: Xy) {
        let &PlotFrame {
            left,
            right,
            top,
            bottom,
            ..
        } = frame;
        for (place, tick) in &frame.across.ticks {
            let x = frame.across(*place);
            svg.line(Ink::Grid, &[(x, top), (x, bottom)]);
            text(svg, Ink::Quiet, (x, bottom + 12.0), TextSide::Middle, tick);
        }
        for (place, tick) in &frame.up.ticks {
            let y = frame.up(*place);
            svg.line(Ink::Grid, &[(left, y), (right, y)]);
            text(svg, Ink::Quiet, (left - 8.0, y), TextSide::Left, tick);
        }
        svg.line(Ink::Quiet, &[(left, bottom), (right, bottom)]);
        text(
            svg,
            Ink::Text,
            (2.0, 13.0),
            TextSide::Right,
            &self.y.label(),
        );
        let under = ((left + right) / 2.0, size.1 - 9.0);
        text(svg, Ink::Text, under, TextSide::Middle, &self.x.label());
    }

    /// Writes the names of the lines on the right, each with a sample of its line. A name stands next
    /// to the end of its line, or as near to it as the other names allow.
    fn write_names(&self, svg: &mut Svg, frame: &PlotFrame) {
        let mut names: Vec<(f64, f64, &Line)> = Vec::new();
        for line in &self.lines {
            let places = frame.along(line);
            if let Some(end) = places.iter().max_by(|one, other| one.0.total_cmp(&other.0)) {
                // Names of lines that end together are sorted by where the lines start.
                names.push((end.1 + 0.05 * places[0].1, end.1, line));
            }
        }
        names.sort_by(|one, other| one.0.total_cmp(&other.0));
        let rows = names
            .iter()
            .map(|(.., line)| wrap(&line.name, LABEL_LETTERS));
        let rows: Vec<Vec<String>> = rows.collect();
        let heights = rows.iter().map(|rows| rows.len() as f64 * LINE_STEP + 3.0);
        let heights: Vec<f64> = heights.collect();
        let ends: Vec<f64> = names.iter().map(|(_, end, _)| *end).collect();
        let middles = spread_out(&ends, &heights, frame.top - 10.0, frame.bottom + 14.0);
        for (((.., line), rows), middle) in names.iter().zip(rows).zip(middles) {
            let x = frame.right + 38.0;
            line.look
                .line(svg, &[(x - 28.0, middle), (x - 6.0, middle)]);
            line.look.draw_marker(svg, (x - 17.0, middle));
            let first = middle - (rows.len() - 1) as f64 * LINE_STEP / 2.0;
            for (place, row) in rows.iter().enumerate() {
                let y = first + place as f64 * LINE_STEP;
                text(svg, Ink::Text, (x, y), TextSide::Right, row);
            }
        }
    }
}

/// Draws a line with the markers of its points, and the range of each.
fn draw(svg: &mut Svg, frame: &PlotFrame, line: &Line) {
    for dot in &line.dots {
        let ends = (
            frame.position(dot.x, dot.low),
            frame.position(dot.x, dot.high),
        );
        if let (Some(low), Some(high)) = ends
            // The marker would hide a shorter range.
            && low.1 - high.1 > 8.0
        {
            svg.line(line.look.ink, &[low, high]);
        }
    }
    let places = frame.along(line);
    if places.len() > 1 {
        line.look.line(svg, &places);
    }
    let marked = match places.len() {
        count if count > MARKED_MAX => &places[count - 1..],
        _ => &places[..],
    };
    for place in marked {
        line.look.draw_marker(svg, *place);
    }
}

/// Moves boxes of the given heights apart so that they do not overlap and lie between `top` and
/// `bottom`, and returns their middles. `wanted` are the middles that they would have, in order.
/// Pushes the boxes down from the top, then up from the bottom.
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
