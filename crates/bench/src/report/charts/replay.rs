//! How many times as fast graph replay is as stream launches, wherever both were measured.

use super::super::figure::Figure;
use super::super::rows::{ChartRow, RowChart};
use super::super::style::Look;
use super::super::sweeps::pairs;
use super::super::verdict::replay_change;
use crate::format::{self, capital};
use crate::merged::{MergedPoint, full_title, workload};
use crate::record::PointFacts;
use crate::statistics::ChangeFinding;
use tapeloop_svg::Ink;

/// The chart of how many times as fast graph replay is as stream launches, for each pair of points
/// that differ in nothing else.
pub(super) fn figure(points: &[MergedPoint]) -> Option<Figure> {
    let mut pairs = pairs(points);
    let mut workloads: Vec<&str> = Vec::new();
    for (graph, _) in &pairs {
        if !workloads.contains(&graph.facts.workload.as_str()) {
            workloads.push(&graph.facts.workload);
        }
    }
    pairs.sort_by_key(|(graph, _)| {
        let facts = &graph.facts;
        let group = workloads.iter().position(|name| *name == facts.workload);
        (group, facts.kernels, facts.rounds, facts.batch)
    });
    let mut rows = Vec::new();
    for name in workloads {
        let group = pairs.iter().filter(|pair| pair.0.facts.workload == name);
        let labels = group.clone().map(|pair| label(&pair.0.facts, points));
        let (shared, labels) = without_shared_start(labels.collect());
        let group_start = rows.len();
        for (pair, label) in group.zip(labels) {
            let Some(change) = replay_change(pair) else {
                continue;
            };
            let (ink, about) = match change.finding {
                ChangeFinding::More => (Ink::Blue, ""),
                ChangeFinding::Less => (Ink::Vermilion, ", slower"),
                ChangeFinding::Same => (Ink::Quiet, ", equal"),
                ChangeFinding::Unclear => (Ink::Quiet, ", too noisy"),
            };
            rows.push(ChartRow {
                heading: (rows.len() == group_start).then(|| {
                    let heading = format!("{}{shared}", capital(&workload(name)));
                    (heading, String::new())
                }),
                label,
                look: Look {
                    ink,
                    ..Look::for_mode("graph", &[])
                },
                value: change.ratio,
                low: change.low,
                high: change.high,
                text: format!("{}{about}", format::times(change.ratio)),
            });
        }
    }
    Figure::rows(
        "replay".to_owned(),
        "Graph replay compared with stream launches".to_owned(),
        "To the right of 1x graph replay is faster. The line through a dot is the 99% interval of \
         the ratio, or its range if there are few repetitions. Ratios are of the time per batch; batches of \
         structures differ a little in what they hold."
            .to_owned(),
        RowChart::of_ratios("times as fast as stream launches", rows),
    )
}

/// Removes the first part of the labels if there are several labels, and all begin with the same
/// part and have more after it. Returns the part as text for the heading, `, 48 kernels`, and the
/// labels.
fn without_shared_start(labels: Vec<String>) -> (String, Vec<String>) {
    let starts: Option<Vec<(&str, &str)>> =
        labels.iter().map(|label| label.split_once(", ")).collect();
    match starts.as_deref() {
        Some([(start, _), others @ ..])
            if !others.is_empty() && others.iter().all(|(other, _)| other == start) =>
        {
            let rests = starts.iter().flatten().map(|(_, rest)| (*rest).to_owned());
            (format!(", {start}"), rests.collect())
        }
        _ => (String::new(), labels),
    }
}

/// A point's title without its workload and mode.
fn label(facts: &PointFacts, points: &[MergedPoint]) -> String {
    let title = full_title(facts, points);
    let parts = title.split(", ").skip(1).filter(|part| *part != facts.mode);
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::without_shared_start;

    #[test]
    fn the_first_part_that_all_labels_share_stands_in_the_heading() {
        let split = |labels: &[&str]| {
            without_shared_start(labels.iter().map(|&label| label.to_owned()).collect())
        };
        let (shared, labels) = split(&["4 kernels, 2 MiB", "4 kernels, 8 MiB, explicit nodes"]);
        assert_eq!(shared, ", 4 kernels");
        assert_eq!(labels, ["2 MiB", "8 MiB, explicit nodes"]);
        for kept in [
            &["1 kernel, 2 MiB", "4 kernels, 2 MiB"][..],
            &["4 kernels, 2 MiB"],
            &["4 kernels", "4 kernels, 2 MiB"],
            &[],
        ] {
            assert_eq!(
                split(kept),
                (
                    String::new(),
                    kept.iter().map(|&label| label.to_owned()).collect()
                )
            );
        }
    }
}
