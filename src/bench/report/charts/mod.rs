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
use crate::bench::record::Limits;

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
