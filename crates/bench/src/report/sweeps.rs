//! Sweeps: points that differ in one setting, which make a line of a chart; the slopes of such lines.

use crate::merged::MergedPoint;
use crate::record::{Figures, PointFacts, Reference};
use crate::statistics::PeriodChange;

/// Points that differ in one setting only, sorted by it.
pub(super) struct Sweep<'a> {
    /// Those of one of the points.
    pub(super) facts: &'a PointFacts,
    /// The value of the setting, the point, and its figures.
    pub(super) points: Vec<(u64, &'a MergedPoint, &'a Figures)>,
}

/// Sweeps over the size of batches, in bytes for workloads of plain elements.
pub(super) fn by_size(points: &[MergedPoint]) -> Vec<Sweep<'_>> {
    let key = |facts: &PointFacts| {
        if facts.is_sized_in_bytes() {
            facts.upload_bytes
        } else {
            facts.batch
        }
    };
    let clear = |facts: &mut PointFacts| {
        // Bytes follow from the size.
        facts.batch = 0;
        facts.upload_bytes = 0;
        facts.download_bytes = 0;
    };
    sweeps(points, key, clear)
}

/// Sweeps over the number of kernels.
pub(super) fn by_kernels(points: &[MergedPoint]) -> Vec<Sweep<'_>> {
    let key = |facts: &PointFacts| facts.kernels as u64;
    sweeps(points, key, |facts| facts.kernels = 0)
}

/// Groups points that differ in `key` alone, which `clear` takes out of their facts. A sweep has at
/// least two points.
fn sweeps(
    points: &[MergedPoint],
    key: fn(&PointFacts) -> u64,
    clear: fn(&mut PointFacts),
) -> Vec<Sweep<'_>> {
    let mut groups: Vec<(PointFacts, Sweep<'_>)> = Vec::new();
    for point in points {
        let Some(figures) = point.figures().filter(|_| point.period().is_some()) else {
            continue;
        };
        let mut cleared = point.facts.clone();
        cleared.axis = String::new();
        clear(&mut cleared);
        let entry = (key(&point.facts), point, figures);
        match groups.iter_mut().find(|(facts, _)| *facts == cleared) {
            Some((_, sweep)) => sweep.points.push(entry),
            None => {
                let facts = &point.facts;
                let points = vec![entry];
                groups.push((cleared, Sweep { facts, points }));
            }
        }
    }
    let mut sweeps: Vec<Sweep<'_>> = groups.into_iter().map(|(_, sweep)| sweep).collect();
    for sweep in &mut sweeps {
        sweep.points.sort_by_key(|(key, ..)| *key);
        // A line has one point for a value: the first that was measured.
        sweep.points.dedup_by_key(|(key, ..)| *key);
    }
    sweeps.retain(|sweep| sweep.points.len() > 1);
    sweeps
}

/// The workloads of sweeps, each once, in order.
pub(super) fn workloads<'a>(sweeps: &[Sweep<'a>]) -> Vec<&'a str> {
    let mut workloads: Vec<&str> = Vec::new();
    for sweep in sweeps {
        if !workloads.contains(&sweep.facts.workload.as_str()) {
            workloads.push(&sweep.facts.workload);
        }
    }
    workloads
}

/// Pairs of points that differ only in the mode: graph replay and stream launches.
pub(super) fn pairs(points: &[MergedPoint]) -> Vec<(&MergedPoint, &MergedPoint)> {
    let graphs = points.iter().filter(|point| point.facts.mode == "graph");
    let pair = |graph| {
        let stream = points.iter().find(|stream: &&MergedPoint| {
            let graph: &MergedPoint = graph;
            stream.facts.mode == "stream" && alike_but_for_mode(&graph.facts, &stream.facts)
        });
        Some((graph, stream?))
    };
    graphs.filter_map(pair).collect()
}

/// Whether two points differ at most in the mode.
pub(super) fn alike_but_for_mode(one: &PointFacts, other: &PointFacts) -> bool {
    PointFacts {
        mode: other.mode.clone(),
        axis: other.axis.clone(),
        ..one.clone()
    } == *other
}

/// Whether `stream` launches what `graph` replays, at two or more numbers of kernels.
pub(super) fn goes_with(graph: &Sweep<'_>, stream: &Sweep<'_>) -> bool {
    let both: Vec<MergedPoint> = [graph, stream]
        .iter()
        .flat_map(|sweep| sweep.points.iter().map(|(_, point, _)| (*point).clone()))
        .collect();
    stream.facts.mode == "stream" && pairs(&both).len() > 1
}

/// The numbers of kernels, each with the median time per batch in nanoseconds.
pub(super) fn medians(sweep: &Sweep<'_>) -> Vec<(f64, f64)> {
    let points = sweep.points.iter();
    points
        .filter_map(|(kernels, point, _)| Some((*kernels as f64, point.period()?.median)))
        .collect()
}

/// The median of the slopes between any two points, by Theil and Sen. One outlier does not change it.
pub(super) fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let pairs = points.iter().enumerate();
    let slopes = pairs.flat_map(|(index, (x0, y0))| {
        let after = points[index + 1..].iter();
        after.map(move |(x1, y1)| (y1 - y0) / (x1 - x0))
    });
    let mut slopes: Vec<f64> = slopes.filter(|slope| slope.is_finite()).collect();
    slopes.sort_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).copied()
}

/// Nanoseconds that each additional kernel of the launch-bound workload costs with graph replay and
/// with stream launches; `None` if not both were measured over the number of kernels.
pub(super) fn launch_slopes(points: &[MergedPoint]) -> Option<(f64, f64)> {
    let sweeps = by_kernels(points);
    let graph = sweeps
        .iter()
        .find(|sweep| sweep.facts.mode == "graph" && sweep.facts.workload == "launch")?;
    let stream = sweeps.iter().find(|stream| goes_with(graph, stream))?;
    Some((slope(&medians(graph))?, slope(&medians(stream))?))
}

/// The names of the other programs in these figures, each once.
pub(super) fn programs<'a>(figures: impl Iterator<Item = &'a Figures>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for reference in figures.flat_map(|figures| &figures.references) {
        if !names.contains(&reference.name.as_str()) {
            names.push(&reference.name);
        }
    }
    names
}

/// A program's figures at a point.
pub(super) fn program<'a>(figures: &'a Figures, name: &str) -> Option<&'a Reference> {
    figures.references.iter().find(|r| r.name == name)
}

/// How many times as fast the engine is as another program; more than 1 is faster.
pub(super) fn against(figures: &Figures, other: &Reference) -> Option<PeriodChange> {
    PeriodChange::between(&figures.period_ns, &other.period_ns)
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
