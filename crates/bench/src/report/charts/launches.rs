//! The period against the number of kernels: what replay saves for each launch.

use super::super::axis::{AxisScale, ChartAxis};
use super::super::figure::Figure;
use super::super::plot::{Dot, Line, Plot};
use super::super::style::Look;
use super::super::sweeps::{Sweep, by_kernels, goes_with, medians, slope};
use crate::format::{self, capital};
use crate::merged::{MergedPoint, workload};

/// A chart for each workload that was measured over the number of kernels with graphs and with
/// launches.
pub(super) fn figures(points: &[MergedPoint]) -> Vec<Figure> {
    let sweeps = by_kernels(points);
    let mut figures: Vec<Figure> = Vec::new();
    for graph in sweeps.iter().filter(|sweep| sweep.facts.mode == "graph") {
        let id = format!("launches-{}", graph.facts.workload);
        // A workload has one chart, for its first pair of sweeps.
        if figures.iter().any(|figure| figure.id == id) {
            continue;
        }
        let stream = sweeps.iter().find(|stream| goes_with(graph, stream));
        figures.extend(stream.and_then(|stream| figure(id, graph, stream)));
    }
    figures
}

/// The chart of a workload, with the time that graph replay saves; `None` if the sweeps share no number of
/// kernels.
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
        line("stream: launches", stream, Look::for_mode("stream", &[])),
        line("graph: replay", graph, Look::for_mode("graph", &[])),
    ];
    let (of_graph, of_stream) = (medians(graph), medians(stream));
    let saved = of_graph.iter().filter_map(|(kernels, graph)| {
        let (_, stream) = of_stream.iter().find(|(known, _)| known == kernels)?;
        Some((*kernels, stream - graph))
    });
    let saved: Vec<(f64, f64)> = saved.collect();
    let (most, time) = *saved.last()?;
    let each = slope(&of_stream)? - slope(&of_graph)?;
    let is_noisy = [graph, stream].iter().any(|sweep| {
        let mut points = sweep.points.iter();
        points.any(|(_, point, _)| point.is_noisy())
    });
    let each = if each > 0.0 {
        format!("{} for each additional kernel", format::time(each))
    } else {
        "nothing for an additional kernel".to_owned()
    };
    let caption = if is_noisy {
        "Some of these points are too noisy to tell what graph replay saves.".to_owned()
    } else if time > 0.0 {
        let time = format::time(time);
        format!(
            "Graph replay saves {time} per batch of {most} kernels: {each}. The shaded area is the time saved."
        )
    } else {
        let time = format::time(-time);
        format!("Graph replay costs {time} more per batch of {most} kernels.")
    };
    let plot = Plot {
        x: ChartAxis {
            title: "kernels per batch",
            scale: AxisScale::Linear,
            tick: format::plain,
        },
        y: ChartAxis {
            title: "time per batch",
            scale: AxisScale::Linear,
            tick: format::time_tick,
        },
        lines,
        shaded: Some((0, 1)),
        gap: None,
    };
    let name = capital(&workload(&graph.facts.workload));
    Figure::plot(
        id,
        format!("{name}: time per batch against the number of kernels"),
        caption,
        plot,
    )
}
