//! The period against the number of kernels: what replay saves for each launch.

use super::super::axis::{Axis, Scale};
use super::super::figure::Figure;
use super::super::plot::{Dot, Line, Plot};
use super::super::style::Look;
use super::super::sweeps::{Sweep, by_kernels};
use super::{capital, workload};
use crate::bench::format;
use crate::bench::merged::MergedPoint;

pub(super) fn figures(points: &[MergedPoint]) -> Vec<Figure> {
    let sweeps = by_kernels(points);
    let mut figures: Vec<Figure> = Vec::new();
    for graph in sweeps.iter().filter(|sweep| sweep.facts.mode == "graph") {
        let id = format!("launches-{}", graph.facts.workload);
        // One chart a workload, of its first pair.
        if figures.iter().any(|figure| figure.id == id) {
            continue;
        }
        let stream = sweeps.iter().find(|stream| goes_with(graph, stream));
        figures.extend(stream.and_then(|stream| figure(id, graph, stream)));
    }
    figures
}

/// Whether `stream` launches what `graph` replays, at two or more numbers of kernels.
pub(super) fn goes_with(graph: &Sweep<'_>, stream: &Sweep<'_>) -> bool {
    let pairs = super::super::sweeps::pairs;
    let both: Vec<MergedPoint> = [graph, stream]
        .iter()
        .flat_map(|sweep| sweep.points.iter().map(|(_, point, _)| (*point).clone()))
        .collect();
    stream.facts.mode == "stream" && pairs(&both).len() > 1
}

/// Medians in nanoseconds by the number of kernels.
fn medians(sweep: &Sweep<'_>) -> Vec<(f64, f64)> {
    let points = sweep.points.iter();
    points
        .filter_map(|(kernels, point, _)| Some((*kernels as f64, point.period()?.median)))
        .collect()
}

/// The median of the slopes between any two points (Theil-Sen), which one outlier does not move.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let pairs = points.iter().enumerate();
    let slopes = pairs.flat_map(|(at, (x0, y0))| {
        let after = points[at + 1..].iter();
        after.map(move |(x1, y1)| (y1 - y0) / (x1 - x0))
    });
    let mut slopes: Vec<f64> = slopes.filter(|slope| slope.is_finite()).collect();
    slopes.sort_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).copied()
}

/// Nanoseconds that each additional kernel costs with graph replay and with stream launches.
pub(in crate::bench::report) fn slopes(points: &[MergedPoint]) -> Option<(f64, f64)> {
    let sweeps = by_kernels(points);
    let graph = sweeps
        .iter()
        .find(|sweep| sweep.facts.mode == "graph" && sweep.facts.workload == "launch")?;
    let stream = sweeps.iter().find(|stream| goes_with(graph, stream))?;
    Some((slope(&medians(graph))?, slope(&medians(stream))?))
}

fn figure(id: String, graph: &Sweep<'_>, stream: &Sweep<'_>) -> Option<Figure> {
    let line = |name: &str, sweep: &Sweep<'_>, look| {
        let dots = sweep.points.iter().filter_map(|(kernels, point, _)| {
            let period = point.period()?;
            Some(Dot {
                x: *kernels as f64,
                y: period.median,
                low: period.low,
                high: period.high,
            })
        });
        Line {
            name: name.to_owned(),
            look,
            dots: dots.collect(),
        }
    };
    let lines = vec![
        line("stream: launches", stream, Look::own("stream", &[])),
        line("graph: replay", graph, Look::own("graph", &[])),
    ];
    let (of_graph, of_stream) = (medians(graph), medians(stream));
    let saved = of_graph.iter().filter_map(|(kernels, graph)| {
        let (_, stream) = of_stream.iter().find(|(known, _)| known == kernels)?;
        Some((*kernels, stream - graph))
    });
    let saved: Vec<(f64, f64)> = saved.collect();
    let (most, time) = *saved.last()?;
    let each = slope(&saved)?;
    let what = match time > 0.0 {
        true => format!("Graph replay saves {} per batch", format::time(time)),
        false => format!("Graph replay costs {} more per batch", format::time(-time)),
    };
    let each = match each > 0.0 {
        true => format!("{} for each launch", format::time(each)),
        false => "nothing for a further launch".to_owned(),
    };
    let caption = format!("{what} of {most} kernels: {each}. The shaded area is the time saved.");
    let plot = Plot {
        x: Axis {
            title: "kernels per batch",
            scale: Scale::Linear,
            tick: format::plain,
        },
        y: Axis {
            title: "time per batch",
            scale: Scale::Linear,
            tick: format::time_tick,
        },
        lines,
        shaded: Some((0, 1)),
    };
    let name = capital(&workload(&graph.facts.workload));
    Figure::plot(
        id,
        format!("{name}: time per batch against the number of kernels"),
        caption,
        plot,
    )
}

#[cfg(test)]
mod tests {
    use super::slope;

    #[test]
    fn one_bad_point_does_not_tilt_a_slope() {
        let mut points: Vec<(f64, f64)> = (0..9).map(|x| (x.into(), 2.0 * f64::from(x))).collect();
        points[4].1 = 100.0;
        assert_eq!(slope(&points), Some(2.0));
        assert_eq!(slope(&points[..1]), None);
        assert_eq!(slope(&[(1.0, 1.0), (1.0, 2.0)]), None);
    }
}
