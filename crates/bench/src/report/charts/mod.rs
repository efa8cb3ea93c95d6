//! The charts. Each is left out if the records lack its data.

mod files;
mod fronts;
mod latency;
mod launches;
mod ratios;
mod replay;
mod shares;
mod throughput;
mod timeline;

use super::figure::Figure;
use crate::merged::MergedPoint;
use crate::record::MachineLimits;

/// A heading with its charts.
pub(super) struct ChartSection {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) figures: Vec<Figure>,
    /// Charts of the same kind for other workloads, which are folded.
    pub(super) more: Vec<Figure>,
}

/// All charts of a run.
pub(super) fn sections(points: &[MergedPoint], limits: &MachineLimits) -> Vec<ChartSection> {
    let throughput = throughput::figures(points, limits);
    let is_replay = |figure: &Figure| figure.id == "throughput-launch";
    let (mut replay, sizes): (Vec<Figure>, Vec<Figure>) =
        throughput.into_iter().partition(is_replay);
    replay.extend(replay::figure(points));
    replay.extend(launches::figures(points));
    let mut latency = latency::figures(points);
    // The first workload's two charts are shown; the others are folded.
    let other_latency = latency.split_off(latency.len().min(2));
    let mut work = Vec::from_iter(shares::figure(points));
    let mut timeline = timeline::figures(points);
    let other_work = timeline.split_off(timeline.len().min(1));
    work.extend(timeline);
    let none = Vec::new;
    let sections = [
        (
            "replay-section",
            "Graph replay against stream launches",
            replay,
            none(),
        ),
        (
            "fronts-section",
            "What Pipeline and Engine reach",
            Vec::from_iter(fronts::figure(points)),
            none(),
        ),
        ("size-section", "Batch size", sizes, none()),
        ("latency-section", "Latency", latency, other_latency),
        (
            "bounds-section",
            "What bounds each workload",
            work,
            other_work,
        ),
        (
            "others-section",
            "Other programs",
            Vec::from_iter(ratios::figure(points)),
            none(),
        ),
        ("files-section", "Files", files::figures(points), none()),
    ];
    let sections = sections.into_iter();
    let sections = sections.map(|(id, title, figures, more)| ChartSection {
        id,
        title,
        figures,
        more,
    });
    sections
        .filter(|section| !section.figures.is_empty())
        .collect()
}
