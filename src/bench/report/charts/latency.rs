//! Latencies: their distribution, and how they rise with the load.

use super::super::axis::{Axis, Scale, share};
use super::super::figure::Figure;
use super::super::plot::{Dot, Line, Plot};
use super::super::style::{Look, Shape};
use super::super::sweeps::alike_but_for_mode;
use super::{bases, capital, workload};
use crate::bench::points::{Point, names, title};
use crate::bench::record::{Figures, Latency, PointFacts};
use crate::bench::units;

const TIME: Axis = Axis {
    title: "latency",
    scale: Scale::Decades,
    tick: units::time_tick,
};

pub(super) fn figures(points: &[Point]) -> Vec<Figure> {
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
        figures.extend(distribution(base, measured));
        figures.extend(load(base, points));
    }
    figures.extend(closed_loops(&closed));
    figures
}

/// Workloads that have been measured in a closed loop alone.
fn closed_loops(bases: &[(&Point, &Figures)]) -> Option<Figure> {
    let lines = bases
        .iter()
        .enumerate()
        .map(|(place, (base, figures))| Line {
            name: workload(&base.facts.workload),
            look: Look::nth(place),
            dots: curve(&figures.closed),
        });
    let lines: Vec<Line> = lines.filter(|line| !line.dots.is_empty()).collect();
    let says = bases.iter().filter(|(_, figures)| figures.closed.count > 0);
    let says = says.map(|(base, figures)| {
        let p99 = units::time(figures.closed.p99_ns as f64);
        format!("{} {p99}", title(&base.facts))
    });
    let says: Vec<String> = says.collect();
    let caption = format!(
        "99 of 100 batches take no longer than this: {}.",
        says.join("; ")
    );
    let plot = distributions(lines);
    let title = "Distribution of latencies in a closed loop".to_owned();
    Figure::plot("latency-closed".to_owned(), title, caption, plot)
}

fn distributions(lines: Vec<Line>) -> Plot {
    Plot {
        x: Axis {
            title: "share of the batches that are no slower",
            scale: Scale::Tail,
            tick: share,
        },
        y: TIME,
        lines,
        shaded: None,
    }
}

/// Up to the last share that a count of latencies can tell.
fn curve(latency: &Latency) -> Vec<Dot> {
    let last = 1.0 - 0.5 / latency.count.max(1) as f64;
    let dots = latency.curve.iter();
    let dots = dots.filter(|(_, ns)| *ns > 0);
    dots.map(|(share, ns)| Dot::bare(share.clamp(0.0, last), *ns as f64))
        .collect()
}

fn distribution(base: &Point, figures: &Figures) -> Option<Figure> {
    let closed = Line {
        name: "closed loop".to_owned(),
        look: Look::own("graph", &[]),
        dots: curve(&figures.closed),
    };
    let mut lines = vec![closed];
    for (place, open) in figures.open.iter().enumerate() {
        lines.push(Line {
            name: format!("load {}", units::percent(open.load)),
            look: Look {
                dashed: true,
                ..Look::nth(place + 1)
            },
            dots: curve(&open.latency),
        });
    }
    let closed = &figures.closed;
    let caption = format!(
        "{}: in a closed loop half of the batches take at most {}, 99 of 100 at most {}, and the \
         slowest of {} took {}. Where batches arrive at random, from their arrival.",
        capital(&title(&base.facts)),
        units::time(closed.p50_ns as f64),
        units::time(closed.p99_ns as f64),
        units::whole(closed.count),
        units::time(closed.max_ns as f64),
    );
    let plot = distributions(lines);
    let name = &base.facts.workload;
    let title = format!("{}: distribution of latencies", capital(&workload(name)));
    Figure::plot(format!("latency-{name}"), title, caption, plot)
}

/// Points that differ from the base point in the mode alone have lines of their own.
fn load(base: &Point, points: &[Point]) -> Option<Figure> {
    let alike = points.iter().filter(|point| {
        let open = point
            .figures()
            .is_some_and(|figures| figures.open.len() > 1);
        open && alike_but_for_mode(&point.facts, &base.facts)
    });
    let alike: Vec<&Point> = alike.collect();
    let facts: Vec<&PointFacts> = alike.iter().map(|point| &point.facts).collect();
    let mut lines = Vec::new();
    for (point, name) in alike.iter().zip(names(&facts, "")) {
        let open = &point.figures()?.open;
        let of = |words: &str, ns: fn(&Latency) -> u64, look| {
            let dots = open.iter().filter(|open| open.load > 0.0);
            let dots = dots.map(|open| Dot::bare(open.load, ns(&open.latency) as f64));
            Line {
                name: format!("{name} {words}").trim().to_owned(),
                look,
                dots: dots.collect(),
            }
        };
        let look = Look::own(&point.facts.mode, &[]);
        let hollow = Look {
            dashed: true,
            shape: Shape::Diamond,
            ..look
        };
        lines.push(of("99%", |latency| latency.p99_ns, look));
        lines.push(of("median", |latency| latency.p50_ns, hollow));
    }
    let open = &base.figures()?.open;
    let (least, most) = (open.first()?, open.last()?);
    let caption = format!(
        "Batches arrive at random; at {} of the closed loop's rate 99 of 100 are done within {} \
         of their arrival, at {} within {}.",
        units::percent(least.load),
        units::time(least.latency.p99_ns as f64),
        units::percent(most.load),
        units::time(most.latency.p99_ns as f64),
    );
    let plot = Plot {
        x: Axis {
            title: "load, by the rate of the closed loop",
            scale: Scale::Linear,
            tick: units::percent_tick,
        },
        y: TIME,
        lines,
        shaded: None,
    };
    let name = &base.facts.workload;
    let title = format!("{}: latency against load", capital(&workload(name)));
    Figure::plot(format!("load-{name}"), title, caption, plot)
}
