//! A chart of slots over time: when the host submitted each batch, and when the device ran its stages. Lengths
//! are in pixels, chosen by eye; `tests/bench/screenshot.rs` finds texts that overlap or leave the drawing.

use super::axis::{AxisScale, ChartAxis};
use super::layout::{ScreenWidth, TextSide, bar, text};
use super::style::Look;
use crate::format;
use crate::record::SpanFacts;
use tapeloop_svg::{Ink, Svg};

pub(super) struct SlotChart {
    pub(super) spans: Vec<SpanFacts>,
}

/// The rows of a slot from the top: the stage's name in records, its name in the legend, and its
/// colour.
const STAGES: [(&str, &str, Ink); 4] = [
    ("submit", "submission, on the host", Ink::Navy),
    ("upload", "upload", Ink::Sky),
    ("kernels", "kernels", Ink::Orange),
    ("download", "download", Ink::Green),
];

/// The height of a stage, which holds a number.
const ROW: f64 = 15.0;

/// The distance between two slots.
const GAP: f64 = 10.0;

/// The room for ticks and the title of the axis.
const FOOT: f64 = 46.0;

const AXIS: ChartAxis = ChartAxis {
    title: "time",
    scale: AxisScale::Linear,
    tick: format::time_tick,
};

impl SlotChart {
    pub(super) fn legend() -> Vec<(Look, String)> {
        let entry = |(_, words, ink): (_, &str, _)| (Look::solid(ink), words.to_owned());
        STAGES.map(entry).to_vec()
    }

    /// The slots that have spans, in order.
    fn slots(&self) -> Vec<usize> {
        let mut slots: Vec<usize> = self.spans.iter().map(|span| span.slot).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Draws the spans, a row for each stage of each slot.
    pub(super) fn svg(&self, room: ScreenWidth, label: &str) -> String {
        let mut svg = Svg::default();
        let slots = self.slots();
        let rows = ROW * STAGES.len() as f64;
        let top = |place: usize| place as f64 * (rows + GAP) + GAP / 2.0;
        let bottom = slots.len() as f64 * (rows + GAP);
        let size = (room.width(), bottom + FOOT);
        let end = self.spans.iter().map(|span| span.end_ns).max().unwrap_or(0) as f64;
        let (left, right) = (room.choose(56.0, 44.0), room.width() - 18.0);
        let x = |ns: f64| left + ns / end.max(1.0) * (right - left);
        for (place, slot) in slots.iter().enumerate() {
            let top = top(place);
            bar(&mut svg, Ink::Track, (left, top), (right, top + rows));
            let label_end = (left - 6.0, top + rows / 2.0);
            text(
                &mut svg,
                Ink::Text,
                label_end,
                TextSide::Left,
                &format!("slot {slot}"),
            );
        }
        let ruler = AXIS.ruler([end].into_iter(), room.choose(8, 4));
        let ticks = ruler.iter().flat_map(|ruler| &ruler.ticks);
        for (ns, tick) in ticks.filter(|(ns, _)| *ns <= end) {
            svg.line(Ink::Grid, &[(x(*ns), 0.0), (x(*ns), bottom)]);
            text(
                &mut svg,
                Ink::Quiet,
                (x(*ns), bottom + 12.0),
                TextSide::Middle,
                tick,
            );
        }
        let under = ((left + right) / 2.0, size.1 - 9.0);
        text(&mut svg, Ink::Text, under, TextSide::Middle, AXIS.title);
        for span in &self.spans {
            let slot = slots.iter().position(|slot| *slot == span.slot);
            let row = STAGES.iter().position(|(name, ..)| *name == span.stage);
            // A stage of an unknown name, in a record of another version, is left out.
            if let (Some(slot), Some(row)) = (slot, row) {
                let top = top(slot) + row as f64 * ROW;
                let from = x(span.start_ns as f64);
                // A bar is one pixel wide at least, to be seen.
                let to = x(span.end_ns as f64).max(from + 1.0);
                bar(
                    &mut svg,
                    STAGES[row].2,
                    (from, top + 1.0),
                    (to, top + ROW - 1.0),
                );
                // The number is left out where its digits, of 8 pixels at most, have no room.
                let number = span.batch.to_string();
                if span.stage == "kernels" && to - from > 8.0 * number.len() as f64 + 2.0 {
                    let middle = ((from + to) / 2.0, top + ROW / 2.0);
                    text(&mut svg, Ink::OnBar, middle, TextSide::Middle, &number);
                }
            }
        }
        svg.element(size, Some(label))
    }
}
