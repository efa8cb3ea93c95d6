//! A chart of some consecutive batches over time, by slot and stage.

use super::super::figure::{ChartDrawing, Figure};
use super::super::slots::SlotChart;
use crate::format::{self, capital};
use crate::merged::{MergedPoint, title, workload};
use crate::record::{Figures, SpanFacts};
use std::collections::BTreeMap;

/// A chart of the stages of batches over time for each point that has measured them.
pub(super) fn figures(points: &[MergedPoint]) -> Vec<Figure> {
    let mut figures: Vec<Figure> = Vec::new();
    for point in points {
        let name = &point.facts.workload;
        let id = format!("timeline-{name}");
        let known = figures
            .iter()
            .filter(|figure| figure.id.starts_with(&id))
            .count();
        let Some(measured) = point.figures().filter(|f| has_spans(f)) else {
            continue;
        };
        let id = match known {
            0 => id,
            more => format!("{id}-{}", more + 1),
        };
        figures.push(Figure {
            id,
            title: format!("{}: slots over time", capital(&workload(name))),
            caption: caption(point, measured),
            drawing: ChartDrawing::SlotChart(SlotChart {
                spans: measured.spans.clone(),
            }),
            legend: SlotChart::legend(),
        });
    }
    figures
}

fn has_spans(figures: &Figures) -> bool {
    figures.spans.iter().any(|span| span.end_ns > 0)
}

/// What the chart of a point shows, and how its time per batch compares with the measurement
/// without timestamps.
fn caption(point: &MergedPoint, figures: &Figures) -> String {
    let mut batches: Vec<u64> = figures.spans.iter().map(|span| span.batch).collect();
    batches.sort_unstable();
    batches.dedup();
    let end = figures.spans.iter().map(|span| span.end_ns).max();
    let (count, end) = (batches.len(), end.unwrap_or(0) as f64);
    let timed = time_per_batch(&figures.spans).zip(point.period());
    let timed = timed.map(|(timed, period)| {
        format!(
            " From the end of the first to the end of the last they take {} each, with the timestamps \
             that this chart needs. The other charts are of batches without, which take {}.",
            format::time(timed),
            format::time(period.median)
        )
    });
    let at_once = figures.stages.map(|stages| {
        let busy = format::digits(stages.overlap);
        format!(" On average {busy} stages run at the same time.")
    });
    format!(
        "{}: {count} batches, numbered, in {}.{}{}",
        capital(&title(&point.facts)),
        format::time(end),
        timed.unwrap_or_default(),
        at_once.unwrap_or_default(),
    )
}

/// The time from the end of the first batch to the end of the last, for each batch between; `None` for one
/// batch. The time before is that of filling the slots.
fn time_per_batch(spans: &[SpanFacts]) -> Option<f64> {
    let mut ends: BTreeMap<u64, u64> = BTreeMap::new();
    for span in spans {
        let end = ends.entry(span.batch).or_default();
        *end = (*end).max(span.end_ns);
    }
    let (first, last) = (ends.values().min()?, ends.values().max()?);
    (ends.len() > 1).then(|| (last - first) as f64 / (ends.len() - 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_per_batch_leaves_out_how_long_the_slots_take_to_fill() {
        let span = |batch, end_ns| SpanFacts {
            batch,
            end_ns,
            ..SpanFacts::default()
        };
        let spans = [span(0, 900), span(0, 1_000), span(1, 1_100), span(2, 1_200)];
        assert_eq!(time_per_batch(&spans), Some(100.0));
        assert_eq!(time_per_batch(&spans[..2]), None);
    }
}
