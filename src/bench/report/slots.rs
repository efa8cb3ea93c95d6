//! Slots over time: what the host and the device did of each batch.

use super::axis::{Axis, Scale};
use super::canvas::{Canvas, Room, Stand, svg};
use super::style::{Ink, Look};
use crate::bench::record::SpanFacts;
use crate::bench::units;
use crate::error::Result;

pub(super) struct Slots {
    pub(super) spans: Vec<SpanFacts>,
}

/// The rows of a slot, from the top.
pub(super) const STAGES: [(&str, &str, Ink); 4] = [
    ("submit", "submission, on the host", Ink::Navy),
    ("upload", "upload", Ink::Sky),
    ("kernels", "kernels", Ink::Orange),
    ("download", "download", Ink::Green),
];

const ROW: f64 = 15.0;
const GAP: f64 = 10.0;
const FOOT: f64 = 46.0;

const AXIS: Axis = Axis {
    title: "time",
    scale: Scale::Linear,
    tick: units::time_tick,
};

impl Slots {
    pub(super) fn legend() -> Vec<(Look, String)> {
        let stages = STAGES.into_iter();
        stages
            .map(|(_, words, ink)| (Look::solid(ink), words.to_owned()))
            .collect()
    }

    /// Slots that have spans, in their order.
    pub(super) fn slots(&self) -> Vec<usize> {
        let mut slots: Vec<usize> = self.spans.iter().map(|span| span.slot).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    pub(super) fn svg(&self, room: Room, label: &str) -> Result<String> {
        let slots = self.slots();
        let slot_height = ROW * STAGES.len() as f64 + GAP;
        let height = FOOT + slots.len() as f64 * slot_height;
        let end = self.spans.iter().map(|span| span.end_ns).max().unwrap_or(0);
        let ruler = AXIS.ruler([end as f64].into_iter(), room.choose(8, 4));
        svg((room.width(), height), Some(label), |canvas| {
            let Some(ruler) = ruler else { return Ok(()) };
            let (left, right) = (room.choose(56.0, 44.0), room.width() - 18.0);
            let at = |ns: f64| left + ns / end.max(1) as f64 * (right - left);
            let bottom = height - FOOT;
            for (place, slot) in slots.iter().enumerate() {
                let top = place as f64 * slot_height + GAP / 2.0;
                let rows = ROW * STAGES.len() as f64;
                canvas.bar((left, top), (right, top + rows), Ink::Track)?;
                let name = format!("slot {slot}");
                let middle = top + rows / 2.0;
                canvas.text((left - 6.0, middle), &name, Stand::Left, Ink::Text)?;
            }
            for (place, text) in ruler.ticks.iter().filter(|(p, _)| *p <= end as f64) {
                canvas.line(&[(at(*place), 0.0), (at(*place), bottom)], Ink::Grid, 1.0)?;
                canvas.text((at(*place), bottom + 12.0), text, Stand::Middle, Ink::Quiet)?;
            }
            let under = ((left + right) / 2.0, height - 9.0);
            canvas.text(under, AXIS.title, Stand::Middle, Ink::Text)?;
            for span in &self.spans {
                let slot = slots.iter().position(|slot| *slot == span.slot);
                let row = STAGES.iter().position(|(name, ..)| *name == span.stage);
                if let (Some(slot), Some(row)) = (slot, row) {
                    let top = slot as f64 * slot_height + GAP / 2.0 + row as f64 * ROW;
                    let x = (at(span.start_ns as f64), at(span.end_ns as f64));
                    draw(canvas, span, row, x, top)?;
                }
            }
            Ok(())
        })
    }
}

fn draw(
    canvas: &Canvas<'_>,
    span: &SpanFacts,
    row: usize,
    (from, to): (f64, f64),
    top: f64,
) -> Result<()> {
    let (stage, _, ink) = STAGES[row];
    let to = to.max(from + 1.0);
    canvas.bar((from, top + 1.0), (to, top + ROW - 1.0), ink)?;
    let text = span.batch.to_string();
    if stage == "kernels" && to - from > 8.0 * text.len() as f64 + 2.0 {
        // Dark on orange on either ground.
        let middle = ((from + to) / 2.0, top + ROW / 2.0);
        return canvas.number(middle, &text, 11.5, Ink::Number);
    }
    Ok(())
}
