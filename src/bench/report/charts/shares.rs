//! How much of each limit the base points reach.

use super::super::axis::{Axis, Scale};
use super::super::figure::{Drawing, Figure};
use super::super::rows::{Row, Rows};
use super::super::style::{Ink, Look};
use super::{bases, capital};
use crate::bench::points::{Point, title};
use crate::bench::record::Share;
use crate::bench::units;

pub(super) fn figures(points: &[Point]) -> Vec<Figure> {
    let mut rows = Vec::new();
    let mut bounds = Vec::new();
    for base in bases(points) {
        let Some(figures) = base.figures() else {
            continue;
        };
        let shares = figures.shares.iter().filter(|share| share.share.is_finite());
        for (place, share) in shares.enumerate() {
            rows.push(Row {
                heading: (place == 0).then(|| heading(base, &figures.bound)),
                label: share.limit.clone(),
                // The largest says what to look at.
                look: Look::solid(if place == 0 { Ink::Blue } else { Ink::Sky }),
                value: share.share,
                low: share.share,
                high: share.share,
                text: text(share),
            });
            if place == 0 {
                let limit = &share.limit;
                let percent = units::percent(share.share);
                bounds.push(format!("{} {percent} of {limit}", base.facts.workload));
            }
        }
    }
    let rows = Rows {
        axis: Axis {
            title: "share of the limit as measured in this run",
            scale: Scale::Linear,
            tick: units::percent_tick,
        },
        bars: true,
        rule: Some(1.0),
        holds: vec![1.0],
        rows,
    };
    let figure = Figure {
        id: "shares".to_owned(),
        title: "What the base points reach of what the machine can do".to_owned(),
        caption: format!("The largest shares: {}.", bounds.join("; ")),
        legend: Vec::new(),
        drawing: Drawing::Rows(rows),
    };
    match &figure.drawing {
        Drawing::Rows(rows) if rows.is_empty() => Vec::new(),
        _ => vec![figure],
    }
}

fn heading(base: &Point, bound: &str) -> String {
    let title = capital(&title(&base.facts));
    match bound {
        "" => title,
        bound => format!("{title}: {bound}"),
    }
}

fn text(share: &Share) -> String {
    let value = |value: f64| match share.unit.as_str() {
        "B/s" => units::bytes_per_s(value),
        "FMA/s" => units::fma_per_s(value),
        "ns" => units::time(value),
        unit => format!("{} {unit}", units::digits(value)),
    };
    let (reached, of) = (value(share.reached), value(share.of));
    format!("{}: {reached} of {of}", units::percent(share.share))
}
