//! The run's results in sentences: only what its figures support.

use super::sweeps::{Sweep, against, by_size, launch_slopes, pairs};
use crate::bench::format::{self, capital};
use crate::bench::merged::{MergedPoint, bases, is_of_files, size, title, workload};
use crate::bench::record::{Figures, PointFacts, Run, Share};
use crate::bench::statistics::{Change, Finding, median};

pub(super) struct Words {
    pub(super) headline: String,
    pub(super) says: Vec<String>,
}

/// The smallest share of a limit that bounds a point.
const BOUND: f64 = 0.5;

pub(super) fn words(run: &Run, points: &[MergedPoint]) -> Words {
    let sweeps = by_size(points);
    let replay = replay(run, points);
    let bound: Vec<(String, String)> = copy_bound(&sweeps);
    let mut says = Vec::new();
    // The first sentence of each kind makes the headline.
    let headline = match (replay.first(), bound.first()) {
        (Some((one, replay)), Some((other, bound))) if one == other => {
            format!("{replay}; {bound}")
        }
        (Some((_, replay)), Some((name, bound))) => format!("{replay}; {name}: {bound}"),
        (Some((_, replay)), None) => replay.clone(),
        (None, Some((name, bound))) => format!("{name}: {bound}"),
        (None, None) => plain(points),
    };
    let more = replay.iter().skip(1);
    says.extend(more.map(|(_, words)| capital(&format!("{words}."))));
    let rest = bound.iter().skip(1);
    let rest: Vec<String> = rest
        .map(|(name, words)| format!("{name}: {words}"))
        .collect();
    if !rest.is_empty() {
        says.push(capital(&format!("{}.", rest.join("; "))));
    }
    if run.backend == "cpu" && !replay.is_empty() {
        says.push("On the CPU a graph makes the same calls as stream launches.".to_owned());
    }
    says.extend(launches(points));
    says.extend(latency(points));
    says.extend(bounds(points));
    says.extend(others(points));
    says.extend(files(points));
    Words { headline, says }
}

/// The highest rate of a whole run, of all features if there is one.
fn whole_runs(points: &[MergedPoint]) -> Option<String> {
    let of_files = points.iter().filter(|point| is_of_files(&point.facts));
    let rates = of_files.filter_map(|point| {
        let is_all = point.facts.workload.starts_with("all_files");
        let rate = point.period()?.rate(point.figures()?.amounts.atoms).median;
        Some((is_all, rate, &point.facts))
    });
    let (_, rate, facts) = rates.max_by(|a, b| (a.0.cmp(&b.0)).then(a.1.total_cmp(&b.1)))?;
    let name = capital(&workload(&facts.workload));
    Some(format!("{name}: {} atoms/s", format::count(rate)))
}

/// The rate of a whole run, or else of the first base point, for runs that compare nothing.
fn plain(points: &[MergedPoint]) -> String {
    if let Some(words) = whole_runs(points) {
        return words;
    }
    let best = bases(points).into_iter().find_map(|base| {
        let period = base.period()?;
        let rate = format::count(period.rate(1.0).median);
        Some(format!("{}: {rate} batches/s", title(&base.facts)))
    });
    best.unwrap_or_else(|| "no point has figures".to_owned())
}

/// A point's kernels and size.
fn what(facts: &PointFacts) -> String {
    let kernels = match facts.kernels {
        0 => String::new(),
        1 => "1 kernel, ".to_owned(),
        many => format!("{many} kernels, "),
    };
    format!("{kernels}{}", size(facts))
}

/// Graph replay against stream launches: at the base point of each workload, or at its first pair
/// of points. The launch-bound workload comes first.
fn replay(run: &Run, points: &[MergedPoint]) -> Vec<(String, String)> {
    let pairs = pairs(points);
    let mut chosen: Vec<&(&MergedPoint, &MergedPoint)> = Vec::new();
    for pair in &pairs {
        let workload = &pair.0.facts.workload;
        let base = |pair: &&(&MergedPoint, &MergedPoint)| pair.0.is_base() || pair.1.is_base();
        let group = || {
            pairs
                .iter()
                .filter(|pair| pair.0.facts.workload == *workload)
        };
        if chosen.iter().all(|pair| pair.0.facts.workload != *workload) {
            chosen.extend(group().find(base).or_else(|| group().next()));
        }
    }
    chosen.sort_by_key(|pair| pair.0.facts.workload != "launch");
    let sentence = |pair: &&(&MergedPoint, &MergedPoint)| {
        let (graph, stream) = (pair.0.figures()?, pair.1.figures()?);
        let change = Change::of(&graph.period_ns, &stream.period_ns)?;
        let name = workload(&pair.0.facts.workload);
        let of = match name.as_str() {
            "launch" => String::new(),
            name => format!("{name}: "),
        };
        let words = compared(run, &change, &what(&pair.0.facts));
        Some((name, of + &words))
    };
    chosen.iter().filter_map(sentence).collect()
}

/// How replay compares with launches, as a sentence without its end; `what` is the batch.
fn compared(run: &Run, change: &Change, what: &str) -> String {
    let times = format::factor(change.ratio);
    let interval = interval(change);
    let of_batch = match (interval.as_str(), change.finding) {
        ("", _) => format!("({what} per batch)"),
        (interval, Finding::Same | Finding::Less | Finding::More) => {
            format!("({what} per batch; {interval})")
        }
        (interval, Finding::Unclear) => format!("({what} per batch): {interval}"),
    };
    match change.finding {
        Finding::More => {
            format!("graph replay is {times} times as fast as stream launches {of_batch}")
        }
        Finding::Less => {
            format!("graph replay is only {times} times as fast as stream launches {of_batch}")
        }
        Finding::Same => {
            let expected = if run.backend == "cpu" {
                ", as expected on the CPU"
            } else {
                ""
            };
            format!("graph replay is as fast as stream launches{expected} {of_batch}")
        }
        Finding::Unclear => {
            format!("no conclusion on graph replay against stream launches {of_batch}")
        }
    }
}

/// The interval of a ratio, unless its ends are the same in writing.
pub(super) fn interval(change: &Change) -> String {
    let (low, high) = (format::factor(change.low), format::factor(change.high));
    match low == high {
        true => String::new(),
        false => format!("{} {low} to {high}", change.interval_name()),
    }
}

/// `3.1 times as fast as gemmi (99% interval 3.0 to 3.2)`.
fn as_fast_as(change: &Change, program: &str) -> String {
    let interval = interval(change);
    let within = match interval.as_str() {
        "" => String::new(),
        interval => format!(" ({interval})"),
    };
    let times = format::factor(change.ratio);
    match change.finding {
        Finding::More | Finding::Less => format!("{times} times as fast as {program}{within}"),
        Finding::Same => format!("not significantly different from {program}{within}"),
        Finding::Unclear => format!("no faster or slower than {program} with confidence{within}"),
    }
}

/// The largest share of a limit.
fn largest(figures: &Figures) -> Option<&Share> {
    let shares = figures
        .shares
        .iter()
        .filter(|share| share.share.is_finite());
    shares.max_by(|one, other| one.share.total_cmp(&other.share))
}

fn is_copy_bound(figures: &Figures) -> Option<bool> {
    let share = largest(figures)?;
    let copies = ["upload", "download"].contains(&share.limit.as_str());
    Some(copies && share.share >= BOUND)
}

/// The size from which copies bound, for the first sweep of each workload.
fn copy_bound(sweeps: &[Sweep<'_>]) -> Vec<(String, String)> {
    let mut said: Vec<(String, String)> = Vec::new();
    for sweep in sweeps.iter().filter(|sweep| sweep.facts.mode != "stream") {
        let name = workload(&sweep.facts.workload);
        if said.iter().any(|(known, _)| *known == name) {
            continue;
        }
        let bound: Option<Vec<bool>> = sweep
            .points
            .iter()
            .map(|(.., figures)| is_copy_bound(figures))
            .collect();
        let Some(bound) = bound else { continue };
        let size = |place: usize| size(&sweep.points[place].1.facts);
        // All sizes from there on are bound.
        let free = bound
            .iter()
            .rposition(|bound| !bound)
            .map_or(0, |last| last + 1);
        let words = match free {
            0 => format!("copy-bound at every size measured, from {}", size(0)),
            all if all == bound.len() => format!("not copy-bound up to {}", size(all - 1)),
            from => format!("copy-bound from {}", size(from)),
        };
        said.push((name, words));
    }
    // The launch-bound workload comes first.
    said.sort_by_key(|(name, _)| name != "launch");
    said
}

fn launches(points: &[MergedPoint]) -> Option<String> {
    let (graph, stream) = launch_slopes(points)?;
    Some(format!(
        "Each additional kernel costs {} per batch with stream launches, {} with graph replay.",
        format::time(stream),
        format::time(graph.max(0.0))
    ))
}

/// The latencies of the first base point that has any.
fn latency(points: &[MergedPoint]) -> Option<String> {
    let base = bases(points).into_iter().find(|base| {
        base.figures()
            .is_some_and(|figures| figures.closed.count > 0)
    })?;
    let figures = base.figures()?;
    let closed = format!(
        "{}: median latency {}, p99 {}",
        capital(&title(&base.facts)),
        format::time(figures.closed.p50_ns as f64),
        format::time(figures.closed.p99_ns as f64),
    );
    let open = figures.open.iter().rfind(|open| open.load < 0.95);
    let open = open.map(|open| {
        let p99 = format::time(open.latency.p99_ns as f64);
        format!(
            "; p99 {p99} when batches arrive at random at {} of that rate",
            format::percent(open.load)
        )
    });
    Some(format!("{closed}{}.", open.unwrap_or_default()))
}

/// The largest share of a limit at each base point.
fn bounds(points: &[MergedPoint]) -> Option<String> {
    let mut seen: Vec<&str> = Vec::new();
    let mut says: Vec<String> = Vec::new();
    for base in bases(points) {
        let name = base.facts.workload.as_str();
        let share = base.figures().and_then(largest);
        if let (Some(share), false) = (share, seen.contains(&name)) {
            seen.push(name);
            let percent = format::percent(share.share);
            says.push(format!("{} {percent} of {}", workload(name), share.limit));
        }
    }
    (!says.is_empty()).then(|| {
        format!(
            "Largest share of a limit at the base points: {}.",
            says.join("; ")
        )
    })
}

/// Work on files compared with the fastest other program: a sentence for each work.
fn files(points: &[MergedPoint]) -> Vec<String> {
    let mut said: Vec<(String, Vec<String>)> = Vec::new();
    for point in points.iter().filter(|point| is_of_files(&point.facts)) {
        let name = capital(&workload(&point.facts.workload));
        let Some(words) = against_the_fastest(point) else {
            continue;
        };
        match said.iter_mut().find(|(known, _)| *known == name) {
            Some((_, all)) => all.push(words),
            None => said.push((name, vec![words])),
        }
    }
    let said = said.into_iter();
    said.map(|(name, words)| {
        format!(
            "{name}, compared with the fastest other program: {}.",
            words.join("; ")
        )
    })
    .collect()
}

fn against_the_fastest(point: &MergedPoint) -> Option<String> {
    let figures = point.figures()?;
    let changes = figures.references.iter();
    let changes = changes.filter_map(|reference| Some((reference, against(figures, reference)?)));
    let (reference, change) =
        changes.min_by(|(_, one), (_, other)| one.ratio.total_cmp(&other.ratio))?;
    let words = as_fast_as(&change, &reference.name);
    Some(match point.facts.threads {
        1 => format!("on one thread {words}"),
        threads => format!("on {threads} threads {words}"),
    })
}

/// Other programs over all points that they measured. Leaves out files, and stream launches if
/// there are graphs, since those are only the baseline.
fn others(points: &[MergedPoint]) -> Vec<String> {
    let mut names: Vec<(&str, Vec<Change>, bool)> = Vec::new();
    let replayed = points.iter().any(|point| point.facts.mode != "stream");
    let points = points
        .iter()
        .filter(|point| !(is_of_files(&point.facts) || replayed && point.facts.mode == "stream"));
    for figures in points.filter_map(MergedPoint::figures) {
        for reference in &figures.references {
            let Some(change) = against(figures, reference) else {
                continue;
            };
            let wrong = reference.agrees == Some(false);
            match names.iter_mut().find(|(name, ..)| *name == reference.name) {
                Some((_, changes, any)) => {
                    changes.push(change);
                    *any |= wrong;
                }
                None => names.push((&reference.name, vec![change], wrong)),
            }
        }
    }
    let sentence = |(name, changes, wrong): &(&str, Vec<Change>, bool)| {
        let finding = |finding| {
            changes
                .iter()
                .filter(|change| change.finding == finding)
                .count()
        };
        let ratios: Vec<f64> = changes.iter().map(|change| change.ratio).collect();
        let ratio = median(&ratios)?;
        let wrong = if *wrong { " Its outputs differ." } else { "" };
        let words = match changes.as_slice() {
            [one] => format!("tapeloop is {}", as_fast_as(one, name)),
            many => {
                let slower = match finding(Finding::Less) {
                    0 => String::new(),
                    slower => format!(", slower at {slower}"),
                };
                format!(
                    "tapeloop is faster than {name} at {} of {} points{slower}; the median is {} \
                     times as fast",
                    finding(Finding::More),
                    many.len(),
                    format::factor(ratio)
                )
            }
        };
        Some(format!("{}.{wrong}", capital(&words)))
    };
    names.iter().filter_map(sentence).collect()
}
