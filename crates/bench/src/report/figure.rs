//! A chart on the page: heading, caption, legend, and the drawing for wide and narrow screens.

use super::layout::{ScreenWidth, bar};
use super::plot::Plot;
use super::rows::RowChart;
use super::slots::SlotChart;
use super::style::{Look, Marker};
use maud::{Markup, PreEscaped, html};
use tapeloop_svg::Svg;

pub(super) enum ChartDrawing {
    Plot(Plot),
    RowChart(RowChart),
    SlotChart(SlotChart),
}

pub(super) struct Figure {
    /// The element's id on the page, for links and tests.
    pub(super) id: String,
    pub(super) title: String,
    /// What the chart shows, in a sentence or two.
    pub(super) caption: String,
    pub(super) drawing: ChartDrawing,
    /// The looks of the chart, each with what it stands for.
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
            drawing: ChartDrawing::Plot(plot),
            legend,
        })
    }

    /// A figure of rows without a legend, if there is something to draw.
    pub(super) fn rows(id: String, title: String, caption: String, rows: RowChart) -> Option<Self> {
        (!rows.is_empty()).then_some(Figure {
            id,
            title,
            caption,
            drawing: ChartDrawing::RowChart(rows),
            legend: Vec::new(),
        })
    }

    /// The drawing for this width of screen.
    fn svg(&self, room: ScreenWidth) -> String {
        let label = format!("{}. {}", self.title, self.caption);
        match &self.drawing {
            ChartDrawing::Plot(plot) => plot.svg(room, &label),
            ChartDrawing::RowChart(rows) => rows.svg(room, &label),
            ChartDrawing::SlotChart(slots) => slots.svg(room, &label),
        }
    }

    /// The figure with its title and caption, and drawings for wide and for narrow screens, of
    /// which CSS shows one.
    pub(super) fn markup(&self) -> Markup {
        // A wide plot writes the names at the ends of its lines, and needs no legend.
        let only_narrow = matches!(self.drawing, ChartDrawing::Plot(_));
        html! {
            figure id=(self.id) {
                h3 { (self.title) }
                figcaption { (self.caption) }
                @if !self.legend.is_empty() {
                    ul.legend.narrow[only_narrow] {
                        @for (look, name) in &self.legend {
                            li { (PreEscaped(swatch(*look))) (name) }
                        }
                    }
                }
                div.wide-drawing { (PreEscaped(self.svg(ScreenWidth::Wide))) }
                div.narrow { (PreEscaped(self.svg(ScreenWidth::Narrow))) }
            }
        }
    }
}

/// A sample of a look for the legend: a piece of a line or of a bar, as SVG of 28 by 14 pixels, the size that
/// the style sheet gives it.
fn swatch(look: Look) -> String {
    let mut svg = Svg::default();
    match look.marker {
        Marker::Block => bar(&mut svg, look.ink, (6.0, 1.0), (22.0, 13.0)),
        Marker::None if !look.is_dashed => {}
        _ => look.line(&mut svg, &[(1.0, 7.0), (27.0, 7.0)]),
    }
    look.draw_marker(&mut svg, (14.0, 7.0));
    svg.element((28.0, 14.0), None)
}
