//! A chart of some consecutive batches over time, by slot and stage.

use super::super::figure::{ChartDrawing, Figure};
use super::super::slots::SlotChart;
use crate::format::{self, capital};
use crate::merged::{MergedPoint, title, workload};
use crate::record::Figures;

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

fn caption(point: &MergedPoint, figures: &Figures) -> String {
    let mut batches: Vec<u64> = figures.spans.iter().map(|span| span.batch).collect();
    batches.sort_unstable();
    batches.dedup();
    let end = figures.spans.iter().map(|span| span.end_ns).max();
    let (count, end) = (batches.len(), end.unwrap_or(0) as f64);
    let slowed = point.period().map(|period| {
        format!(
            " These batches have timestamps, which slow them to {} each; the other charts are of \
             batches without, which take {}.",
            format::time(end / count as f64),
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
        slowed.unwrap_or_default(),
        at_once.unwrap_or_default(),
    )
}
