//! Latencies: their distribution, and how they rise with the load.

use super::super::axis::{AxisScale, ChartAxis, share};
use super::super::figure::Figure;
use super::super::plot::{Dot, Line, Plot};
use super::super::style::{Look, Marker};
use super::super::sweeps::alike_but_for_mode;
use crate::format::{self, capital};
use crate::merged::{MergedPoint, bases, names, title, workload};
use crate::record::{Figures, Latency, P99_BATCHES_MIN, PointFacts};

const TIME: ChartAxis = ChartAxis {
    title: "latency",
    scale: AxisScale::Decades,
    tick: format::time_tick,
};

/// Explains the axis of a distribution.
const STRETCHED: &str =
    "The horizontal axis is stretched towards 100%, where the slowest batches are.";

const CLOSED_LOOP: &str = "In a closed loop a new batch starts as soon as a slot is free.";

/// The charts of latencies: of each workload with arrivals over the load and as a distribution, and
/// one of all workloads without.
pub(super) fn figures(points: &[MergedPoint]) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut closed = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for base in bases(points) {
        let Some(measured) = base.figures() else {
            continue;
        };
        if seen.contains(&base.facts.workload.as_str()) {
            continue;
        }
        seen.push(&base.facts.workload);
        if measured.open.is_empty() {
            closed.push((base, measured));
            continue;
        }
        figures.extend(load(base, points));
        figures.extend(distribution(base, measured));
    }
    figures.extend(closed_loops(&closed));
    figures
}

/// The distributions of workloads that were measured in a closed loop only.
fn closed_loops(bases: &[(&MergedPoint, &Figures)]) -> Option<Figure> {
    let lines = bases
        .iter()
        .enumerate()
        .map(|(place, (base, figures))| Line {
            name: workload(&base.facts.workload),
            look: Look::nth(place),
            dots: curve(&figures.closed),
        });
    let lines: Vec<Line> = lines.filter(|line| !line.dots.is_empty()).collect();
    let latencies = bases.iter().filter(|(_, figures)| figures.closed.count > 0);
    let latencies = latencies.map(|(base, figures)| {
        let p99 = format::time(figures.closed.p99_ns as f64);
        format!("{} {p99}", title(&base.facts))
    });
    let latencies: Vec<String> = latencies.collect();
    let caption = format!(
        "99% of the batches finish within: {}. {CLOSED_LOOP} {STRETCHED}",
        latencies.join("; ")
    );
    let plot = distributions(lines);
    let title = "Distribution of latencies in a closed loop".to_owned();
    Figure::plot("latency-closed".to_owned(), title, caption, plot)
}

/// A plot of latencies over the share of batches within them, in which the slow ones have as much
/// room as the others.
fn distributions(lines: Vec<Line>) -> Plot {
    Plot {
        x: ChartAxis {
            title: "share of batches within this latency",
            scale: AxisScale::Tail,
            tick: share,
        },
        y: TIME,
        lines,
        shaded: None,
        gap: None,
    }
}

/// The points of a latency curve, up to the last share that the number of latencies resolves.
fn curve(latency: &Latency) -> Vec<Dot> {
    let last = 1.0 - 0.5 / latency.count.max(1) as f64;
    let dots = latency.curve.iter();
    let dots = dots.filter(|(_, ns)| *ns > 0);
    dots.map(|(share, ns)| Dot::bare(share.clamp(0.0, last), *ns as f64))
        .collect()
}

/// The distribution of a base point's latencies, in a closed loop and at each load.
fn distribution(base: &MergedPoint, figures: &Figures) -> Option<Figure> {
    let closed = Line {
        name: "closed loop".to_owned(),
        look: Look::for_mode("graph", &[]),
        dots: curve(&figures.closed),
    };
    let mut lines = vec![closed];
    for (place, open) in figures.open.iter().enumerate() {
        lines.push(Line {
            name: format!("arrivals at {}", format::percent(open.load)),
            look: Look {
                is_dashed: true,
                ..Look::nth(place + 1)
            },
            dots: curve(&open.latency),
        });
    }
    let closed = &figures.closed;
    let p99 = (closed.count >= P99_BATCHES_MIN)
        .then(|| format!(" 99% within {},", format::time(closed.p99_ns as f64)));
    let p99 = p99.unwrap_or_default();
    let caption = format!(
        "{}: in a closed loop half of the batches finish within {},{} and the slowest of {} within {}. \
         {CLOSED_LOOP} The other lines are of batches that arrive at random, at a share of the closed \
         loop's rate; their latency counts from the arrival. \
         {STRETCHED}",
        capital(&title(&base.facts)),
        format::time(closed.p50_ns as f64),
        p99,
        format::whole(closed.count),
        format::time(closed.max_ns as f64),
    );
    let plot = distributions(lines);
    let name = &base.facts.workload;
    let title = format!("{}: distribution of latencies", capital(&workload(name)));
    Figure::plot(format!("latency-{name}"), title, caption, plot)
}

/// Latency against load, with lines for the base point and for points that differ only in the mode.
fn load(base: &MergedPoint, points: &[MergedPoint]) -> Option<Figure> {
    let alike = points.iter().filter(|point| {
        let open = point
            .figures()
            .is_some_and(|figures| figures.open.len() > 1);
        open && alike_but_for_mode(&point.facts, &base.facts)
    });
    let alike: Vec<&MergedPoint> = alike.collect();
    let facts: Vec<&PointFacts> = alike.iter().map(|point| &point.facts).collect();
    let mut lines = Vec::new();
    for (point, name) in alike.iter().zip(names(&facts, "")) {
        let open = &point.figures()?.open;
        let line = |words: &str, ns: fn(&Latency) -> u64, look| {
            let dots = open.iter().filter(|open| open.load > 0.0);
            let dots = dots.map(|open| Dot::bare(open.load, ns(&open.latency) as f64));
            Line {
                name: format!("{name} {words}").trim().to_owned(),
                look,
                dots: dots.collect(),
            }
        };
        let look = Look::for_mode(&point.facts.mode, &[]);
        let hollow = Look {
            is_dashed: true,
            marker: Marker::Diamond,
            ..look
        };
        lines.push(line("p99", |latency| latency.p99_ns, look));
        lines.push(line("median", |latency| latency.p50_ns, hollow));
    }
    let open = &base.figures()?.open;
    let (least, most) = (open.first()?, open.last()?);
    let mut earlier = open[..open.len() - 1].iter();
    let falls = earlier.any(|open| open.latency.p99_ns > most.latency.p99_ns);
    let waking = if falls {
        " Where batches are rare, cores and the device rest between them and take time to wake, so the \
         tail can be longer than at a higher load."
    } else {
        ""
    };
    let caption = format!(
        "Batches arrive at random. At {} of the closed loop's rate 99% of them finish within {} of \
         their arrival (p99), at {} within {}. {CLOSED_LOOP}{waking}",
        format::percent(least.load),
        format::time(least.latency.p99_ns as f64),
        format::percent(most.load),
        format::time(most.latency.p99_ns as f64),
    );
    let plot = Plot {
        x: ChartAxis {
            title: "rate of arrivals, as a share of the closed loop's rate",
            scale: AxisScale::Linear,
            tick: format::percent_tick,
        },
        y: TIME,
        lines,
        shaded: None,
        gap: None,
    };
    let name = &base.facts.workload;
    let title = format!("{}: latency against load", capital(&workload(name)));
    Figure::plot(format!("load-{name}"), title, caption, plot)
}
