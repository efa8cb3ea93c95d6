//! The engine compared with other programs at the same work.

use super::super::figure::Figure;
use super::super::rows::{ChartRow, RowChart};
use super::super::style::Look;
use super::super::sweeps::against;
use super::super::verdict::by_program;
use crate::format::{self, capital};
use crate::merged::{MergedPoint, bases, is_of_files, title};
use crate::statistics::Spread;

/// The chart of how many times as fast tapeloop is as each other program, by workload and over all
/// points.
pub(super) fn figure(points: &[MergedPoint]) -> Option<Figure> {
    let mut rows = Vec::new();
    for base in bases(points)
        .into_iter()
        .filter(|base| !is_of_files(&base.facts))
    {
        let Some(figures) = base.figures() else {
            continue;
        };
        let mut first = true;
        for reference in &figures.references {
            let Some(change) = against(figures, reference) else {
                continue;
            };
            let wrong = match reference.agrees {
                Some(false) => ", outputs differ",
                _ => "",
            };
            rows.push(ChartRow {
                heading: first.then(|| (capital(&title(&base.facts)), String::new())),
                label: reference.name.clone(),
                look: Look::for_mode(&base.facts.mode, &[]),
                value: change.ratio,
                low: change.low,
                high: change.high,
                text: format!("{}{wrong}", format::times(change.ratio)),
            });
            first = false;
        }
    }
    let mut first = true;
    for (name, changes) in by_program(points) {
        let ratios: Vec<f64> = changes.iter().map(|change| change.ratio).collect();
        if let (Some(all), 2..) = (Spread::from_values(&ratios), ratios.len()) {
            rows.push(ChartRow {
                heading: first.then(|| {
                    let heading = "All but stream: median and range";
                    (heading.to_owned(), String::new())
                }),
                label: name.to_owned(),
                look: Look::for_mode("graph", &[]),
                value: all.median,
                low: all.low,
                high: all.high,
                text: format!("{}, {} points", format::times(all.median), ratios.len()),
            });
            first = false;
        }
    }
    Figure::rows(
        "ratios".to_owned(),
        "Speed compared with other programs at the same work".to_owned(),
        "To the right of 1x tapeloop is faster. The line through a dot is the 99% interval of the \
         ratio, or its range if there are few repetitions: where it crosses 1x, the difference is \
         not significant. The last rows have the median of the ratios of all points, and a line \
         over their range."
            .to_owned(),
        RowChart::of_ratios("times as fast as the other program", rows),
    )
}
