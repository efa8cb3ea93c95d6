//! A sheet to draw on: plotters, in fractions of a pixel and the page's inks.

use super::style::{Ink, Look, Shape};
use crate::error::{Error, ErrorKind, Result};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// plotters places things at whole pixels; this many of them make one of the page.
const SHARP: f64 = 8.0;

/// Of the letters of charts, in pixels.
pub(super) const LETTERS: f64 = 12.5;

/// What a letter takes on average, in the widest of the fonts asked for.
pub(super) const LETTER: f64 = 7.4;

/// What the reader's screen has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Wide,
    Narrow,
}

impl Room {
    pub(super) fn width(self) -> f64 {
        match self {
            Room::Wide => 900.0,
            Room::Narrow => 360.0,
        }
    }

    pub(super) fn choose<T>(self, wide: T, narrow: T) -> T {
        match self {
            Room::Wide => wide,
            Room::Narrow => narrow,
        }
    }
}

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub(super) struct Canvas<'a> {
    pub(super) area: Area<'a>,
}

/// Where a text stands by its place.
#[derive(Clone, Copy)]
pub(super) enum Stand {
    Right,
    Left,
    Middle,
}

/// What drawing to memory may say.
pub(super) fn drawn<T, E: std::fmt::Display>(result: Result<T, E>) -> Result<T> {
    result.map_err(|error| Error::new(ErrorKind::Io, format!("drawing a chart: {error}")))
}

pub(super) fn sharp(pixels: f64) -> i32 {
    (pixels * SHARP).round() as i32
}

/// A font of so many pixels: plotters counts sizes by another measure than SVG does.
pub(super) fn font(pixels: f64, ink: Ink) -> TextStyle<'static> {
    let font = ("sans-serif", pixels * SHARP * 1.24).into_font();
    TextStyle {
        color: colour(ink).to_backend_color(),
        ..TextStyle::from(font)
    }
}

pub(super) fn colour(ink: Ink) -> RGBColor {
    let (r, g, b) = ink.light();
    RGBColor(r, g, b)
}

pub(super) fn stroke(ink: Ink, width: f64) -> ShapeStyle {
    colour(ink).stroke_width(sharp(width) as u32)
}

/// An SVG element of that size for a page, in which `draw` draws. Readers who do not
/// see it have `label`.
pub(super) fn svg(
    (width, height): (f64, f64),
    label: Option<&str>,
    draw: impl FnOnce(&Canvas<'_>) -> Result<()>,
) -> Result<String> {
    let mut text = String::new();
    let size = (sharp(width) as u32, sharp(height) as u32);
    let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
    let canvas = Canvas { area };
    draw(&canvas)?;
    drawn(canvas.area.present())?;
    drop(canvas);
    // The element's head is the page's: without a name space, which HTML knows, and
    // without a size, which the style sheet has.
    let body = text.split_once('>').map_or("", |(_, body)| body);
    let role = match label {
        Some(label) => maud::html! { (label) }.into_string(),
        None => String::new(),
    };
    let role = match role.as_str() {
        "" => "aria-hidden=\"true\"".to_owned(),
        label => format!("role=\"img\" aria-label=\"{label}\""),
    };
    Ok(format!(
        "<svg viewBox=\"0 0 {} {}\" {role}>{body}",
        size.0, size.1
    ))
}

/// Cut to so many letters.
pub(super) fn cut(text: &str, letters: usize) -> String {
    match text.chars().count() {
        count if count <= letters => text.to_owned(),
        _ => {
            let kept: String = text.chars().take(letters.saturating_sub(1)).collect();
            format!("{}\u{2026}", kept.trim_end_matches([' ', ',']))
        }
    }
}

/// Lines of at most so many letters, at most two, broken at spaces.
pub(super) fn wrap(text: &str, letters: usize) -> Vec<String> {
    if text.chars().count() <= letters {
        return vec![text.to_owned()];
    }
    let mut first = String::new();
    let mut rest = text;
    while let Some((word, after)) = rest.split_once(' ') {
        if first.chars().count() + word.chars().count() > letters {
            break;
        }
        first.push_str(word);
        first.push(' ');
        rest = after;
    }
    match first.trim_end() {
        "" => vec![cut(text, letters)],
        first => vec![first.to_owned(), cut(rest, letters)],
    }
}

impl Canvas<'_> {
    pub(super) fn line(&self, points: &[(f64, f64)], ink: Ink, width: f64) -> Result<()> {
        let points: Vec<(i32, i32)> = points.iter().map(|(x, y)| (sharp(*x), sharp(*y))).collect();
        drawn(
            self.area
                .draw(&PathElement::new(points, stroke(ink, width))),
        )
    }

    pub(super) fn dashes(&self, points: &[(f64, f64)], ink: Ink, width: f64) -> Result<()> {
        let points: Vec<(i32, i32)> = points.iter().map(|(x, y)| (sharp(*x), sharp(*y))).collect();
        let (dash, gap) = (sharp(6.0), sharp(4.0));
        let series = DashedLineSeries::new(points, dash, gap, stroke(ink, width));
        for dash in series {
            drawn(self.area.draw(&dash))?;
        }
        Ok(())
    }

    pub(super) fn bar(&self, from: (f64, f64), to: (f64, f64), ink: Ink) -> Result<()> {
        let corners = [(sharp(from.0), sharp(from.1)), (sharp(to.0), sharp(to.1))];
        drawn(
            self.area
                .draw(&Rectangle::new(corners, colour(ink).filled())),
        )
    }

    pub(super) fn shade(&self, points: &[(f64, f64)], ink: Ink) -> Result<()> {
        let points: Vec<(i32, i32)> = points.iter().map(|(x, y)| (sharp(*x), sharp(*y))).collect();
        drawn(
            self.area
                .draw(&Polygon::new(points, colour(ink).mix(0.16).filled())),
        )
    }

    pub(super) fn text(
        &self,
        (x, y): (f64, f64),
        text: &str,
        stand: Stand,
        ink: Ink,
    ) -> Result<()> {
        self.write((x, y), text, stand, font(LETTERS, ink))
    }

    pub(super) fn heading(&self, (x, y): (f64, f64), text: &str) -> Result<()> {
        let bold = ("sans-serif", LETTERS * SHARP * 1.24, FontStyle::Bold).into_font();
        let style = TextStyle {
            font: bold,
            ..font(LETTERS, Ink::Text)
        };
        self.write((x, y), text, Stand::Right, style)
    }

    /// Small figures, of which the first batch is drawn on a bar.
    pub(super) fn number(&self, at: (f64, f64), text: &str, size: f64, ink: Ink) -> Result<()> {
        self.write(at, text, Stand::Middle, font(size, ink))
    }

    fn write(
        &self,
        (x, y): (f64, f64),
        text: &str,
        stand: Stand,
        style: TextStyle<'_>,
    ) -> Result<()> {
        let across = match stand {
            Stand::Right => HPos::Left,
            Stand::Left => HPos::Right,
            Stand::Middle => HPos::Center,
        };
        let style = style.pos(Pos::new(across, VPos::Center));
        drawn(self.area.draw_text(text, &style, (sharp(x), sharp(y))))
    }

    pub(super) fn marker(&self, (x, y): (f64, f64), look: Look) -> Result<()> {
        let filled = colour(look.ink).filled();
        let r = 4.0;
        let polygon = |points: &[(f64, f64)]| {
            let place = |(dx, dy): &(f64, f64)| (sharp(x + dx * r), sharp(y + dy * r));
            let points: Vec<(i32, i32)> = points.iter().map(place).collect();
            drawn(self.area.draw(&Polygon::new(points, filled)))
        };
        match look.shape {
            Shape::None | Shape::Block => Ok(()),
            Shape::Disc => {
                let disc = Circle::new((sharp(x), sharp(y)), sharp(r), filled);
                drawn(self.area.draw(&disc))
            }
            Shape::Square => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            Shape::Triangle => polygon(&[(0.0, -1.2), (1.15, 0.85), (-1.15, 0.85)]),
            Shape::Diamond => polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            Shape::Cross => {
                let stroke = stroke(look.ink, 2.0);
                let cross = [((-1.0, -1.0), (1.0, 1.0)), ((-1.0, 1.0), (1.0, -1.0))];
                for ((x0, y0), (x1, y1)) in cross {
                    let line = vec![
                        (sharp(x + x0 * r), sharp(y + y0 * r)),
                        (sharp(x + x1 * r), sharp(y + y1 * r)),
                    ];
                    drawn(self.area.draw(&PathElement::new(line, stroke)))?;
                }
                Ok(())
            }
        }
    }
}
