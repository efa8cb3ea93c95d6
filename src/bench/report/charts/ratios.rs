//! The engine compared with other programs at the same work.

use super::super::axis::{Axis, Scale};
use super::super::figure::{Drawing, Figure};
use super::super::rows::{Row, Rows};
use super::super::style::Look;
use super::super::sweeps::against;
use crate::bench::format::{self, capital};
use crate::bench::merged::{MergedPoint, bases, is_of_files, title};
use crate::bench::statistics::Finding;

pub(super) fn figures(points: &[MergedPoint]) -> Vec<Figure> {
    let mut rows = Vec::new();
    let (mut faster, mut slower, mut total) = (0, 0, 0);
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
            total += 1;
            faster += usize::from(change.finding == Finding::More);
            slower += usize::from(change.finding == Finding::Less);
            let wrong = match reference.agrees {
                Some(false) => ", outputs differ",
                _ => "",
            };
            rows.push(Row {
                heading: first.then(|| (capital(&title(&base.facts)), String::new())),
                label: reference.name.clone(),
                look: Look::own(&base.facts.mode, &[]),
                value: change.ratio,
                low: change.low,
                high: change.high,
                text: format!("{}{wrong}", format::times(change.ratio)),
            });
            first = false;
        }
    }
    let rest = total - faster - slower;
    let mut says = vec![format!("faster than {faster} of {total}")];
    if slower > 0 {
        says.push(format!("slower than {slower}"));
    }
    if rest > 0 {
        says.push(format!("not significantly different from {rest}"));
    }
    let rows = Rows {
        axis: Axis {
            title: "times as fast as the other program",
            scale: Scale::Decades,
            tick: format::times_tick,
        },
        bars: false,
        rule: Some(1.0),
        holds: Vec::new(),
        rows,
    };
    if rows.is_empty() {
        return Vec::new();
    }
    vec![Figure {
        id: "ratios".to_owned(),
        title: "Speed compared with other programs at the same work".to_owned(),
        caption: format!(
            "The base points are {}. To the right of 1x tapeloop is faster. Bars show the 99% \
             interval of the ratio, or its range if there are few repetitions.",
            says.join(", ")
        ),
        legend: Vec::new(),
        drawing: Drawing::Rows(rows),
    }]
}
