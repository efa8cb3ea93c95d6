//! A chart of the share of the ring's rate that each front reaches: packing and reading items costs
//! the host time.

use super::super::axis::{AxisScale, ChartAxis};
use super::super::figure::Figure;
use super::super::rows::{ChartRow, RowChart};
use super::super::style::Look;
use crate::format::{self, capital};
use crate::merged::{MergedPoint, bases, is_of_files, title};
use crate::record::PointFacts;
use tapeloop_svg::Ink;

/// The chart of each front's rate, as a share of the ring's; `None` if no workload measured the
/// ring and another front.
pub(super) fn figure(points: &[MergedPoint]) -> Option<Figure> {
    let mut rows = Vec::new();
    for base in bases(points)
        .into_iter()
        .filter(|base| !is_of_files(&base.facts))
    {
        let mut fronts: Vec<&MergedPoint> = points
            .iter()
            .filter(|point| differs_in_front(&point.facts, &base.facts))
            .collect();
        fronts.sort_by_key(|point| order(&point.facts.front));
        let ring = fronts.iter().find(|point| point.facts.front == "ring");
        let (Some(ring), 2..) = (ring.and_then(|ring| ring.period()), fronts.len()) else {
            continue;
        };
        let mut first = true;
        for point in fronts {
            let (Some(figures), Some(period)) = (point.figures(), point.period()) else {
                continue;
            };
            let share = ring.median / period.median;
            let (amount, what) = match figures.amounts.atoms {
                atoms if atoms > 0.0 => (atoms, "atoms/s"),
                _ => (1.0, "batches/s"),
            };
            let rate = format::count(period.rate(amount).median);
            let (ink, name) = match point.facts.front.as_str() {
                "ring" => (Ink::Sky, "ring, batches packed beforehand"),
                "pipeline" => (Ink::Blue, "Pipeline, items in and out"),
                "engine" => (Ink::Blue, "Engine, items in and out"),
                other => (Ink::Blue, other),
            };
            rows.push(ChartRow {
                heading: first.then(|| (capital(&title(&base.facts)), String::new())),
                label: name.to_owned(),
                look: Look::solid(ink),
                value: share,
                low: share,
                high: share,
                text: format!("{rate} {what}"),
            });
            first = false;
        }
    }
    let rows = RowChart {
        axis: ChartAxis {
            title: "rate, as a share of the ring's",
            scale: AxisScale::Linear,
            tick: format::percent_tick,
        },
        bars: true,
        rule: None,
        holds: vec![1.0],
        rows,
    };
    Figure::rows(
        "fronts".to_owned(),
        "Rates of Engine, Pipeline and the ring".to_owned(),
        "A program that gives items and takes results reaches the rate of Engine, or of \
         Pipeline, which works when its caller asks. The ring replays batches that were packed beforehand: \
         the other charts show its rates, except where they name Engine or Pipeline."
            .to_owned(),
        rows,
    )
}

fn order(front: &str) -> usize {
    let order = ["engine", "pipeline", "ring"];
    order.iter().position(|name| *name == front).unwrap_or(3)
}

fn differs_in_front(one: &PointFacts, other: &PointFacts) -> bool {
    PointFacts {
        front: other.front.clone(),
        axis: other.axis.clone(),
        ..one.clone()
    } == *other
}
