//! The charts. Each is left out if the records lack its data.

mod files;
mod latency;
mod launches;
mod ratios;
mod roofline;
mod shares;
mod throughput;
mod timeline;

use super::figure::Figure;
use crate::bench::merged::MergedPoint;
use crate::bench::record::{Limits, PointFacts};

pub(super) use launches::slopes as launch_slopes;

/// A heading with its charts.
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) figures: Vec<Figure>,
}

/// All charts of a run.
pub(super) fn sections(points: &[MergedPoint], limits: &Limits) -> Vec<Section> {
    let sections = [
        ("Throughput", throughput::figures(points, limits)),
        ("Launches saved", launches::figures(points)),
        ("Latency", latency::figures(points)),
        ("Slots and stages", timeline::figures(points)),
        ("Share of the limits", {
            let mut figures = shares::figures(points);
            figures.extend(roofline::figures(points, limits));
            figures
        }),
        ("Other programs", ratios::figures(points)),
        ("Files", files::figures(points)),
    ];
    let sections = sections.into_iter();
    sections
        .map(|(title, figures)| Section { title, figures })
        .filter(|section| !section.figures.is_empty())
        .collect()
}

/// The name of a workload, in words.
pub(super) fn workload(name: &str) -> String {
    match name {
        "read" => "reading files".to_owned(),
        "sasa_kernel" => "areas, kernel alone".to_owned(),
        "sasa_files" => "areas, files to results".to_owned(),
        "all_files" => "all features, files to results".to_owned(),
        other => other.replace('_', " "),
    }
}

/// The text with a capital first letter.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// Whether a point is work on files.
pub(super) fn is_of_files(facts: &PointFacts) -> bool {
    let of_files = ["read", "contacts", "sasa_kernel", "sasa_files", "all_files"];
    of_files.contains(&facts.workload.as_str())
}

/// The base point of each workload, or its first point if none is marked.
pub(super) fn bases(points: &[MergedPoint]) -> Vec<&MergedPoint> {
    let mut bases: Vec<&MergedPoint> = Vec::new();
    for point in points {
        let workload = &point.facts.workload;
        let marked = points
            .iter()
            .any(|point| point.facts.workload == *workload && point.is_base());
        let first = !bases.iter().any(|base| base.facts.workload == *workload);
        if point.is_base() || (!marked && first) {
            bases.push(point);
        }
    }
    bases
}
