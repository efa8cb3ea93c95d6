//! A chart of how busy the parts of the machine are at the base point of each workload.

use super::super::axis::{AxisScale, ChartAxis};
use super::super::figure::Figure;
use super::super::rows::{ChartRow, RowChart};
use super::super::style::Look;
use crate::diagnosis::{Activity, BATCH_LATENCY, activities, bound, why_not_determined};
use crate::format::{self, capital};
use crate::merged::{MergedPoint, bases, is_of_files, title, workload};
use tapeloop_svg::Ink;

/// Smaller shares are left out: their bars would not be seen.
const SHARE_MIN: f64 = 0.01;

const NOT_DETERMINED: &str = "nothing that was measured takes half of the time";

/// The chart of how busy the parts of the machine were at base points, and what bounded them.
pub(super) fn figure(points: &[MergedPoint]) -> Option<Figure> {
    let mut rows = Vec::new();
    let mut caption = "The darker bar is what bounds the workload: a limit that is used to 80% or more, \
         otherwise the largest share. \
         Host calls are calls to the driver. Rates are compared with the limits as measured in this \
         run."
        .to_owned();
    let synthetic = bases(points).into_iter();
    for base in synthetic.filter(|base| !is_of_files(&base.facts)) {
        let Some(figures) = base.figures() else {
            continue;
        };
        let bound = bound(figures, &base.facts);
        if let Some(why) = why_not_determined(figures, &base.facts) {
            let name = capital(&workload(&base.facts.workload));
            caption += &format!(" {name}: {NOT_DETERMINED}; {why}.");
        }
        let mut activities = activities(figures, &base.facts);
        // Stages are left out, except one that bounds the point: they overlap the limits, and include
        // the time in which batches wait for each other.
        let name = bound.as_ref().map(|activity| activity.name);
        activities.retain(|activity| activity.reached.is_some() || name == Some(activity.name));
        activities.retain(|activity| activity.share >= SHARE_MIN);
        activities.sort_by(|one, other| other.share.total_cmp(&one.share));
        for (place, activity) in activities.iter().enumerate() {
            let is_bound = Some(activity.name) == name;
            rows.push(ChartRow {
                heading: (place == 0).then(|| heading(base, bound.as_ref())),
                label: activity.name.to_owned(),
                look: Look::solid(if is_bound { Ink::Blue } else { Ink::Sky }),
                value: activity.share,
                low: activity.share,
                high: activity.share,
                text: text(activity),
            });
        }
    }
    if rows.iter().any(|row| row.label == BATCH_LATENCY) {
        caption += " Batch latency is the time of a batch, divided by the slots: measured with one \
                    slot, or as the sum of its stages. Where it bounds, more slots raise the rate.";
    }
    let rows = RowChart {
        axis: ChartAxis {
            title: "share of the time of a batch, or of the limit",
            scale: AxisScale::Linear,
            tick: format::percent_tick,
        },
        bars: true,
        rule: Some(1.0),
        holds: vec![1.0],
        rows,
    };
    Figure::rows(
        "shares".to_owned(),
        "How busy the parts of the machine are".to_owned(),
        caption,
        rows,
    )
}

fn heading(base: &MergedPoint, bound: Option<&Activity>) -> (String, String) {
    let bound = match bound {
        Some(bound) => format!(": bound by {}", bound.name),
        None => ": bound not determined".to_owned(),
    };
    (capital(&title(&base.facts)), bound)
}

/// The share, the value that was reached and the largest possible value: `94%: 52.1 of 55.3 GB/s`.
fn text(activity: &Activity) -> String {
    let percent = format::percent(activity.share);
    let Some((reached, possible, unit)) = &activity.reached else {
        return format!("{percent} of the time, by timestamps");
    };
    let value = |value: f64| match unit.as_str() {
        "B/s" => format::bytes_per_s(value),
        "FMA/s" => format::fma_per_s(value),
        "ns" => format::time(value),
        unit => format!("{} {unit}", format::digits(value)),
    };
    format!("{percent}: {} of {}", value(*reached), value(*possible))
}
