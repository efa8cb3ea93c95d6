//! Some consecutive batches, slot by slot and stage by stage.

use super::super::figure::{Drawing, Figure};
use super::super::slots::Slots;
use crate::bench::format::{self, capital};
use crate::bench::merged::{MergedPoint, title, workload};
use crate::bench::record::Figures;

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
            drawing: Drawing::Slots(Slots {
                spans: measured.spans.clone(),
            }),
            legend: Slots::legend(),
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
    let stages = figures.stages.map(|stages| {
        let parts = [
            ("uploads", stages.upload_ns),
            ("kernels", stages.kernels_ns),
            ("downloads", stages.download_ns),
        ];
        let longest = parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let (name, ns) = longest.unwrap_or(("", 0.0));
        format!(
            " On average {} stages are busy at once; the longest stage is the {name}, {} per batch.",
            format::digits(stages.overlap),
            format::time(ns),
        )
    });
    format!(
        "{}: {} batches in {}, numbered.{}",
        capital(&title(&point.facts)),
        batches.len(),
        format::time(end.unwrap_or(0) as f64),
        stages.unwrap_or_default(),
    )
}
