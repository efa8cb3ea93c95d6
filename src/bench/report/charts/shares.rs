//! The shares of the limits that the base points reach.

use super::super::axis::{Axis, Scale};
use super::super::figure::{Drawing, Figure};
use super::super::rows::{Row, Rows};
use super::super::style::Look;
use crate::bench::format::{self, capital};
use crate::bench::merged::{MergedPoint, bases, title, workload};
use crate::bench::record::Share;
use crate::svg::Ink;

pub(super) fn figures(points: &[MergedPoint]) -> Vec<Figure> {
    let mut rows = Vec::new();
    let mut bounds = Vec::new();
    for base in bases(points) {
        let Some(figures) = base.figures() else {
            continue;
        };
        let shares = figures
            .shares
            .iter()
            .filter(|share| share.share.is_finite());
        for (place, share) in shares.enumerate() {
            rows.push(Row {
                heading: (place == 0).then(|| heading(base, &figures.bound)),
                label: share.limit.clone(),
                look: Look::solid(if place == 0 { Ink::Blue } else { Ink::Sky }),
                value: share.share,
                low: share.share,
                high: share.share,
                text: text(share),
            });
            let named = |known: &(String, String)| known.0 == base.facts.workload;
            if place == 0 && !bounds.iter().any(named) {
                let limit = &share.limit;
                let percent = format::percent(share.share);
                let workload = base.facts.workload.clone();
                bounds.push((workload, format!("{percent} of {limit}")));
            }
        }
    }
    let says = bounds
        .iter()
        .map(|(name, share)| format!("{} {share}", workload(name)));
    let says: Vec<String> = says.collect();
    let rows = Rows {
        axis: Axis {
            title: "share of the limit measured in this run",
            scale: Scale::Linear,
            tick: format::percent_tick,
        },
        bars: true,
        rule: Some(1.0),
        holds: vec![1.0],
        rows,
    };
    let figure = Figure {
        id: "shares".to_owned(),
        title: "How close the base points come to the machine's limits".to_owned(),
        caption: format!("Largest shares: {}.", says.join("; ")),
        legend: Vec::new(),
        drawing: Drawing::Rows(rows),
    };
    match &figure.drawing {
        Drawing::Rows(rows) if rows.is_empty() => Vec::new(),
        _ => vec![figure],
    }
}

fn heading(base: &MergedPoint, bound: &str) -> (String, String) {
    let bound = match bound {
        "" => String::new(),
        bound => format!(": {bound}"),
    };
    (capital(&title(&base.facts)), bound)
}

fn text(share: &Share) -> String {
    let value = |value: f64| match share.unit.as_str() {
        "B/s" => format::bytes_per_s(value),
        "FMA/s" => format::fma_per_s(value),
        "ns" => format::time(value),
        unit => format!("{} {unit}", format::digits(value)),
    };
    let (reached, of) = (value(share.reached), value(share.of));
    format!("{}: {reached} of {of}", format::percent(share.share))
}
