//! What the run says, in words: only what its figures bear out.

use super::charts::{bases, capital, is_of_files, launch_slopes, workload};
use super::sweeps::{Sweep, by_size, pairs};
use crate::bench::points::{Point, size, title};
use crate::bench::record::{Figures, PointFacts, Reference, Run, Share};
use crate::bench::statistics::{Change, Told, median};
use crate::bench::units;

pub(super) struct Words {
    pub(super) headline: String,
    pub(super) says: Vec<String>,
}

/// From this share of a limit on it is what bounds a point.
const BOUND: f64 = 0.5;

/// How many times as fast the engine is as another program; more than 1 is faster.
pub(super) fn against(own: &Figures, other: &Reference) -> Option<Change> {
    Change::of(&own.period_ns, &other.period_ns)
}

pub(super) fn words(run: &Run, points: &[Point]) -> Words {
    let sweeps = by_size(points);
    let replay = replay(run, points);
    let bound: Vec<(String, String)> = copy_bound(&sweeps);
    let mut says = Vec::new();
    // The first of either makes the headline.
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
        says.push("On the CPU a graph is the same calls as launches are.".to_owned());
    }
    says.extend(launches(points));
    says.extend(latency(points));
    says.extend(bounds(points));
    says.extend(others(points));
    says.extend(files(points));
    Words { headline, says }
}

/// Where there is nothing to compare: what was measured.
fn plain(points: &[Point]) -> String {
    let best = bases(points).into_iter().find_map(|base| {
        let period = base.period()?;
        let rate = units::count(period.rate(1.0).median);
        Some(format!("{}: {rate} batches/s", title(&base.facts)))
    });
    best.unwrap_or_else(|| "no point has figures".to_owned())
}

/// What a point is of, without its mode.
fn what(facts: &PointFacts) -> String {
    let kernels = match facts.kernels {
        0 => String::new(),
        1 => "1 kernel, ".to_owned(),
        many => format!("{many} kernels, "),
    };
    format!("{kernels}{}", size(facts))
}

/// Graphs against launches: of base points, or of the first pairs of their workloads.
/// Launches come first, since they are what a graph saves.
fn replay(run: &Run, points: &[Point]) -> Vec<(String, String)> {
    let pairs = pairs(points);
    let mut chosen: Vec<&(&Point, &Point)> = Vec::new();
    for pair in &pairs {
        let workload = &pair.0.facts.workload;
        let base = |pair: &&(&Point, &Point)| pair.0.is_base() || pair.1.is_base();
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
    let sentence = |pair: &&(&Point, &Point)| {
        let (graph, stream) = (pair.0.figures()?, pair.1.figures()?);
        let change = Change::of(&graph.period_ns, &stream.period_ns)?;
        let name = workload(&pair.0.facts.workload);
        let of = match name.as_str() {
            "launch" => String::new(),
            name => format!("{name}, "),
        };
        let words = carries(run, &change);
        Some((name, format!("{of}{}: {words}", what(&pair.0.facts))))
    };
    chosen.iter().filter_map(sentence).collect()
}

fn carries(run: &Run, change: &Change) -> String {
    let times = units::times;
    let within = units::times_within(change.ratio, change.low, change.high);
    let range = format!("{} to {}", times(change.low), times(change.high));
    let same = "no difference between replay and launches that can be told";
    match change.told {
        Told::More => format!("replay carries {within}"),
        Told::Less => format!("replay carries only {within}"),
        Told::Same if run.backend == "cpu" => {
            format!("{same} ({range}), as it should be on the CPU")
        }
        Told::Same => format!("{same} ({range})"),
        Told::Unclear => format!("replay against launches is unclear: {range}"),
    }
}

/// What is the largest of the limits' shares.
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

/// From which size on the link is what bounds; of each workload the first sweep.
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
        // From there on without an exception.
        let free = bound
            .iter()
            .rposition(|bound| !bound)
            .map_or(0, |last| last + 1);
        let words = match free {
            0 => format!(
                "you are copy-bound at every size measured, from {}",
                size(0)
            ),
            all if all == bound.len() => {
                format!("you are not copy-bound up to {}", size(all - 1))
            }
            from => format!("you are copy-bound from {}", size(from)),
        };
        said.push((name, words));
    }
    // What launches do is the headline's.
    said.sort_by_key(|(name, _)| name != "launch");
    said
}

fn launches(points: &[Point]) -> Option<String> {
    let (graph, stream) = launch_slopes(points)?;
    Some(format!(
        "A further kernel adds {} to a batch that is launched, {} to one that is replayed.",
        units::time(stream),
        units::time(graph.max(0.0))
    ))
}

/// Of the first base point that has latencies.
fn latency(points: &[Point]) -> Option<String> {
    let base = bases(points).into_iter().find(|base| {
        base.figures()
            .is_some_and(|figures| figures.closed.count > 0)
    })?;
    let figures = base.figures()?;
    let closed = format!(
        "{}: half of the batches are back within {}, 99 of 100 within {}",
        capital(&title(&base.facts)),
        units::time(figures.closed.p50_ns as f64),
        units::time(figures.closed.p99_ns as f64),
    );
    let open = figures.open.iter().rfind(|open| open.load < 0.95);
    let open = open.map(|open| {
        let p99 = units::time(open.latency.p99_ns as f64);
        format!(
            "; where they arrive at random at {} of that rate, within {p99}",
            units::percent(open.load)
        )
    });
    Some(format!("{closed}{}.", open.unwrap_or_default()))
}

/// What bounds the base points.
fn bounds(points: &[Point]) -> Option<String> {
    let mut seen: Vec<&str> = Vec::new();
    let mut says: Vec<String> = Vec::new();
    for base in bases(points) {
        let name = base.facts.workload.as_str();
        let share = base.figures().and_then(largest);
        if let (Some(share), false) = (share, seen.contains(&name)) {
            seen.push(name);
            let percent = units::percent(share.share);
            says.push(format!("{} {percent} of {}", workload(name), share.limit));
        }
    }
    (!says.is_empty()).then(|| {
        format!(
            "Largest shares of a limit, at the base points: {}.",
            says.join("; ")
        )
    })
}

/// Work on files, beside the fastest other program at it: a sentence for each work.
fn files(points: &[Point]) -> Vec<String> {
    let mut said: Vec<(String, Vec<String>)> = Vec::new();
    for point in points.iter().filter(|point| is_of_files(&point.facts)) {
        let name = capital(&workload(&point.facts.workload));
        let Some(words) = beside_the_fastest(point) else {
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
            "{name}, beside the fastest other program: {}.",
            words.join("; ")
        )
    })
    .collect()
}

fn beside_the_fastest(point: &Point) -> Option<String> {
    let figures = point.figures()?;
    let changes = figures.references.iter();
    let changes = changes.filter_map(|reference| Some((reference, against(figures, reference)?)));
    let (reference, change) =
        changes.min_by(|(_, one), (_, other)| one.ratio.total_cmp(&other.ratio))?;
    let words = match change.told {
        Told::More | Told::Less => {
            let within = units::times_within(change.ratio, change.low, change.high);
            format!("{within} as fast as {}", reference.name)
        }
        Told::Same => format!("no difference to {} that can be told", reference.name),
        Told::Unclear => format!("unclear beside {}", reference.name),
    };
    Some(match point.facts.threads {
        1 => format!("on one thread {words}"),
        threads => format!("on {threads} threads {words}"),
    })
}

/// Other programs over all points that they were measured beside, but for files, and for
/// launches where there are graphs: those are there to compare with.
fn others(points: &[Point]) -> Vec<String> {
    let mut names: Vec<(&str, Vec<Change>, bool)> = Vec::new();
    let replayed = points.iter().any(|point| point.facts.mode != "stream");
    let points = points
        .iter()
        .filter(|point| !(is_of_files(&point.facts) || replayed && point.facts.mode == "stream"));
    for figures in points.filter_map(Point::figures) {
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
        let told = |told| changes.iter().filter(|change| change.told == told).count();
        let ratios: Vec<f64> = changes.iter().map(|change| change.ratio).collect();
        let ratio = median(&ratios)?;
        let wrong = if *wrong { " Its outputs differ." } else { "" };
        let words = match changes.as_slice() {
            [one] => match one.told {
                Told::Same => "no difference that can be told".to_owned(),
                Told::Unclear => "unclear".to_owned(),
                _ => {
                    let within = units::times_within(ratio, one.low, one.high);
                    format!("tapeloop is {within} as fast")
                }
            },
            many => {
                let slower = match told(Told::Less) {
                    0 => String::new(),
                    slower => format!(", slower at {slower}"),
                };
                format!(
                    "tapeloop is faster at {} of {} points{slower}; {} as fast in the median",
                    told(Told::More),
                    many.len(),
                    units::times(ratio)
                )
            }
        };
        Some(format!("Beside {name}: {words}.{wrong}"))
    };
    names.iter().filter_map(sentence).collect()
}
