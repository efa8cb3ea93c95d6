//! A chart on the page: heading, sentence, legend, and the chart for either room.

use super::canvas::{Room, svg};
use super::plot::Plot;
use super::rows::Rows;
use super::slots::Slots;
use super::style::{Look, Shape};
use crate::error::Result;
use maud::{Markup, PreEscaped, html};

pub(super) enum Drawing {
    Plot(Plot),
    Rows(Rows),
    Slots(Slots),
}

pub(super) struct Figure {
    /// Its place on the page, for links and tests.
    pub(super) id: String,
    pub(super) title: String,
    /// What is to be seen, in a sentence or two.
    pub(super) caption: String,
    pub(super) drawing: Drawing,
    /// Beside the names that the drawing has.
    pub(super) legend: Vec<(Look, String)>,
}

impl Figure {
    /// A figure of lines, if there is something to draw.
    pub(super) fn plot(id: String, title: String, caption: String, plot: Plot) -> Option<Self> {
        let named = plot.lines.iter().filter(|line| !line.dots.is_empty());
        let legend = named.map(|line| (line.look, line.name.clone())).collect();
        (!plot.is_empty()).then_some(Figure {
            id,
            title,
            caption,
            drawing: Drawing::Plot(plot),
            legend,
        })
    }

    fn svg(&self, room: Room) -> Result<String> {
        let label = format!("{}. {}", self.title, self.caption);
        match &self.drawing {
            Drawing::Plot(plot) => plot.svg(room, &label),
            Drawing::Rows(rows) => rows.svg(room, &label),
            Drawing::Slots(slots) => slots.svg(room, &label),
        }
    }

    pub(super) fn markup(&self) -> Result<Markup> {
        let (wide, narrow) = (self.svg(Room::Wide)?, self.svg(Room::Narrow)?);
        // In a wide room lines have their names at their ends.
        let named = matches!(self.drawing, Drawing::Plot(_));
        let mut swatches = Vec::new();
        for (look, name) in &self.legend {
            swatches.push((swatch(*look)?, name));
        }
        Ok(html! {
            figure id=(self.id) {
                h3 { (self.title) }
                figcaption { (self.caption) }
                @if !swatches.is_empty() {
                    ul.legend.narrow[named] {
                        @for (swatch, name) in &swatches {
                            li { (PreEscaped(swatch)) (name) }
                        }
                    }
                }
                div.wide-drawing { (PreEscaped(wide)) }
                div.narrow { (PreEscaped(narrow)) }
            }
        })
    }
}

/// A piece of a line.
fn swatch(look: Look) -> Result<String> {
    svg((28.0, 14.0), None, |canvas| {
        let line = [(1.0, 7.0), (27.0, 7.0)];
        match (look.dashed, look.shape) {
            (true, _) => canvas.dashes(&line, look.ink, 1.8)?,
            (false, Shape::None) => {}
            (false, Shape::Block) => return canvas.bar((6.0, 1.0), (22.0, 13.0), look.ink),
            (false, _) => canvas.line(&line, look.ink, 2.2)?,
        }
        canvas.marker((14.0, 7.0), look)
    })
}
