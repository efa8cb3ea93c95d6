//! Sweeps: points that differ in one setting, which make a line of a chart.

use crate::bench::merged::MergedPoint;
use crate::bench::record::{Figures, PointFacts, Reference};

/// Points that differ in one setting only, sorted by it.
pub(super) struct Sweep<'a> {
    pub(super) facts: &'a PointFacts,
    pub(super) points: Vec<(u64, &'a MergedPoint, &'a Figures)>,
}

/// Sweeps over the size of batches: in bytes if the workload has any.
pub(super) fn by_size(points: &[MergedPoint]) -> Vec<Sweep<'_>> {
    let key = |facts: &PointFacts| match facts.unit.as_str() {
        "elements" if facts.upload_bytes > 0 => facts.upload_bytes,
        _ => facts.batch,
    };
    let clear = |facts: &mut PointFacts| {
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

/// Whether two points differ at most in the mode, and in the build and scope that only graphs have.
pub(super) fn alike_but_for_mode(one: &PointFacts, other: &PointFacts) -> bool {
    PointFacts {
        mode: other.mode.clone(),
        axis: other.axis.clone(),
        build: other.build.clone(),
        scope: other.scope.clone(),
        ..one.clone()
    } == *other
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
