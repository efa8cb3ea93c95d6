//! The work on files, compared with programs that do the same work.

use super::super::axis::{AxisScale, ChartAxis};
use super::super::figure::Figure;
use super::super::rows::{ChartRow, RowChart};
use super::super::style::Look;
use crate::format::{self, capital};
use crate::merged::{MergedPoint, is_of_files, workload};
use crate::statistics::Spread;

/// A chart of the work on files for each number of threads.
pub(super) fn figures(points: &[MergedPoint]) -> Vec<Figure> {
    let mut figures: Vec<Figure> = Vec::new();
    let mut threads: Vec<usize> = Vec::new();
    for point in points.iter().filter(|point| is_of_files(&point.facts)) {
        if !threads.contains(&point.facts.threads) {
            threads.push(point.facts.threads);
        }
    }
    threads.sort_unstable();
    for threads in threads {
        let of_threads =
            |point: &&MergedPoint| is_of_files(&point.facts) && point.facts.threads == threads;
        let of_threads: Vec<&MergedPoint> = points.iter().filter(of_threads).collect();
        figures.extend(figure(threads, &of_threads));
    }
    figures
}

/// The row of a program, with its rate and how many times as fast tapeloop is.
fn row(label: &str, look: Look, rate: Spread, ratio: Option<f64>) -> ChartRow {
    let ratio = ratio.map(|ratio| format!(", {}", format::times(ratio)));
    ChartRow {
        heading: None,
        label: label.to_owned(),
        look,
        value: rate.median,
        low: rate.low,
        high: rate.high,
        text: format!(
            "{}{}",
            format::per_s(rate.median),
            ratio.unwrap_or_default()
        ),
    }
}

/// The chart of one number of threads: the rates of tapeloop and of other programs by task, the
/// fastest first.
fn figure(threads: usize, points: &[&MergedPoint]) -> Option<Figure> {
    let mut rows = Vec::new();
    let mut fastest = Vec::new();
    let mut has_others = false;
    for point in points {
        let (Some(figures), Some(period)) = (point.figures(), point.period()) else {
            continue;
        };
        let atoms = figures.amounts.atoms;
        // A record of nothing has no rate.
        if atoms.is_nan() || atoms <= 0.0 {
            continue;
        }
        let own_rate = period.rate(atoms);
        let name = workload(&point.facts.workload);
        let backend = match point.facts.mode.as_str() {
            "" => "tapeloop".to_owned(),
            mode => format!("tapeloop, {mode}"),
        };
        let mut group = vec![row(&backend, Look::for_mode("graph", &[]), own_rate, None)];
        has_others |= !figures.references.is_empty();
        // Other programs have no run of all features.
        let does_less = if point.facts.workload.starts_with("all_files") {
            ", areas alone"
        } else {
            ""
        };
        for reference in &figures.references {
            if let Some(spread) = Spread::from_values(&reference.period_ns) {
                let rate = spread.rate(atoms);
                let ratio = own_rate.median / rate.median;
                let label = format!("{}{does_less}", reference.name);
                group.push(row(&label, Look::OTHER, rate, Some(ratio)));
            }
        }
        group.sort_by(|one, other| other.value.total_cmp(&one.value));
        if let Some(first) = group.first_mut() {
            fastest.push(format!("{name}: {}", first.label));
            first.heading = Some((capital(&name), String::new()));
        }
        rows.extend(group);
    }
    let rows = RowChart {
        axis: ChartAxis {
            title: "atoms per second",
            scale: AxisScale::Decades,
            tick: format::per_s_tick,
        },
        bars: false,
        rule: None,
        holds: Vec::new(),
        rows,
    };
    let words = match threads {
        1 => "one thread".to_owned(),
        threads => format!("{threads} threads"),
    };
    Figure::rows(
        format!("files-{threads}"),
        format!("The work on files, {words}"),
        if has_others {
            format!(
                "The fastest at {}. Ratios are tapeloop's rate divided by the program's; bars show \
             the range of the repetitions.",
                fastest.join("; ")
            )
        } else {
            "Each from start to end; bars show the range of the repetitions.".to_owned()
        },
        rows,
    )
}
