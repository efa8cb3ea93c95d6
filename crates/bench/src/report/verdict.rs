//! The run's results in sentences, which say only what its figures support.

use super::sweeps::{against, launch_slopes, pairs, program, programs};
use crate::diagnosis::{BATCH_LATENCY, SPREAD_MAX, bound, is_noisy, why_not_determined};
use crate::format::{self, capital};
use crate::merged::{MergedPoint, bases, is_of_files, size, title, workload};
use crate::record::{Figures, P99_BATCHES_MIN, PointFacts, Run};
use crate::statistics::{ChangeFinding, PeriodChange, median};

/// The results in words.
pub(super) struct ReportWords {
    pub(super) headline: String,
    /// How far to trust the run, in a sentence.
    pub(super) trust: String,
    pub(super) claims: Vec<Claim>,
}

/// A sentence, and the id of the chart that shows it.
pub(super) struct Claim {
    pub(super) words: String,
    pub(super) figure: String,
}

/// A run with this share of noisy points or more is too noisy for a headline.
const NOISY_MAX: f64 = 0.5;

/// A ratio whose whole interval is above this, or below its inverse, is a difference even between noisy
/// points, whose repetitions spread by more than [`SPREAD_MAX`].
const NOISE: f64 = 1.0 + SPREAD_MAX;

/// Loads from here on are left out of the sentence on latencies: near the closed loop's rate a queue grows as
/// 1 / (1 - load), so its latencies show the load.
const QUEUEING_LOAD: f64 = 0.95;

/// A point in mode graph, and the same point in mode stream.
type ModePair<'a> = (&'a MergedPoint, &'a MergedPoint);

/// The headline, the line about trust and the claims, each with the chart that shows it.
pub(super) fn words(run: &Run, points: &[MergedPoint]) -> ReportWords {
    let pairs = pairs(points);
    let chosen = chosen(&pairs);
    let chosen = chosen.iter().filter_map(|pair| compared(run, points, pair));
    let mut comparisons: Vec<ReplayComparison> = chosen.collect();
    let are_compared = !comparisons.is_empty();
    // On the CPU a graph makes the same calls as stream launches, so their ratio is no result.
    let of_features = if run.backend == "cpu" {
        features_rate(points)
    } else {
        None
    };
    if of_features.is_some() {
        comparisons.clear();
    }
    let mut comparisons = comparisons.into_iter();
    let first = comparisons.next();
    let headline = match &first {
        Some(first) => {
            let is_faster = first.finding == ChangeFinding::More;
            let more = is_faster.then(|| equal_at(&first.name, &pairs));
            format!("{}{}", first.headline(), more.flatten().unwrap_or_default())
        }
        None => of_features.unwrap_or_else(|| plain(points)),
    };
    let mut claims = Vec::new();
    let mut claim = |words: String, figure: &str| {
        let (words, figure) = (capital(&words), figure.to_owned());
        claims.push(Claim { words, figure });
    };
    comparisons.for_each(|one| claim(one.claim(), "replay"));
    if run.backend == "cpu" && are_compared {
        let words = "On the CPU a graph makes the same calls as stream launches.";
        claim(words.to_owned(), "");
    }
    let is_of_graphs = run.backend != "cpu" && !is_noisy_run(points);
    if let Some((graph, stream)) = launch_slopes(points).filter(|_| is_of_graphs) {
        let words = format!(
            "Each additional kernel costs {} per batch with stream launches, {} with graph replay.",
            format::time(stream),
            // Noise makes a slope near 0 negative.
            format::time(graph.max(0.0))
        );
        claim(words, "launches-launch");
    }
    if let Some(words) = fronts(points) {
        // The chart of fronts is there only if the ring was measured.
        let has_ring = words.contains("ring");
        let figure = if has_ring {
            "fronts"
        } else {
            "throughput-features"
        };
        claim(words + ".", figure);
    }
    if let Some((words, figure)) = latency(points) {
        claim(words, &figure);
    }
    if let Some(words) = bounds(points) {
        claim(words, "shares");
    }
    if let Some(words) = others(points) {
        claim(words, "ratios");
    }
    for (words, threads) in files(points) {
        claim(words, &format!("files-{threads}"));
    }
    ReportWords {
        headline,
        trust: trust(run, points, first.as_ref()),
        claims,
    }
}

/// Whether a run is too noisy for a headline ([`NOISY_MAX`]).
pub(super) fn is_noisy_run(points: &[MergedPoint]) -> bool {
    let noisy = noisy(points);
    noisy > 0 && noisy as f64 >= NOISY_MAX * measured(points) as f64
}

fn measured(points: &[MergedPoint]) -> usize {
    points.iter().filter_map(MergedPoint::figures).count()
}

/// The number of noisy points.
fn noisy(points: &[MergedPoint]) -> usize {
    points.iter().filter(|point| point.is_noisy()).count()
}

/// How far to trust the run.
fn trust(run: &Run, points: &[MergedPoint], headline: Option<&ReplayComparison>) -> String {
    let steady = steady(points, headline);
    if run.is_partial {
        format!("The run was stopped before its last point. {steady}")
    } else {
        steady
    }
}

/// How many points are noisy, and how certain the headline is.
fn steady(points: &[MergedPoint], headline: Option<&ReplayComparison>) -> String {
    let all = measured(points);
    let noisy = noisy(points);
    let steady = match (all, noisy) {
        (0, _) => return "Nothing was measured".to_owned(),
        (1, 0) => "The measurement is steady".to_owned(),
        (1, _) => "The measurement is noisy".to_owned(),
        (all, 0) => format!("All {all} measurements are steady"),
        (all, noisy) => {
            let verb = if noisy == 1 { "is" } else { "are" };
            format!("{noisy} of {all} measurements {verb} noisy")
        }
    };
    match headline {
        Some(ReplayComparison { interval, .. }) if !interval.is_empty() => {
            format!("{steady}; the speedup of replay in the headline has a {interval}")
        }
        _ => steady,
    }
}

/// The name and the rate of the fastest whole run. A run that computes all features comes first. `None` if
/// there was none.
fn whole_run(points: &[MergedPoint]) -> Option<String> {
    // These go from files to results; other workloads are parts of that.
    let is_whole = |facts: &PointFacts| is_of_files(facts) && facts.workload.contains("_files");
    let of_files = points.iter().filter(|point| is_whole(&point.facts));
    let rates = of_files.filter_map(|point| {
        let is_all = point.facts.workload.starts_with("all_files");
        let rate = point.period()?.rate(point.figures()?.amounts.atoms).median;
        Some((is_all, rate, &point.facts))
    });
    let (_, rate, facts) = rates.max_by(|a, b| (a.0.cmp(&b.0)).then(a.1.total_cmp(&b.1)))?;
    let name = workload(&facts.workload);
    let threads = match facts.threads {
        1 => "one thread".to_owned(),
        threads => format!("{threads} threads"),
    };
    Some(format!(
        "{name}, {threads}: {} atoms/s from start to end",
        format::count(rate)
    ))
}

/// The headline of a run that compares nothing: the rate of a whole run, otherwise the rates of the
/// fronts, otherwise the rate of the first base point.
fn plain(points: &[MergedPoint]) -> String {
    let base = || {
        bases(points).into_iter().find_map(|base| {
            let rate = format::count(base.period()?.rate(1.0).median);
            Some(format!("{}: {rate} batches/s", title(&base.facts)))
        })
    };
    let none = || "no point has figures".to_owned();
    features_rate(points).or_else(base).unwrap_or_else(none)
}

/// The rate of a whole run, otherwise the rates of the fronts.
fn features_rate(points: &[MergedPoint]) -> Option<String> {
    whole_run(points).or_else(|| fronts(points))
}

/// A point's work in words: `12 small kernels with 16 KiB batches`.
fn size_words(facts: &PointFacts) -> String {
    let small = if facts.workload == "launch" {
        "small "
    } else {
        ""
    };
    let kernels = match facts.kernels {
        0 => workload(&facts.workload),
        1 => format!("1 {small}kernel"),
        many => format!("{many} {small}kernels"),
    };
    let batches = if facts.is_sized_in_bytes() {
        format!("{} batches", size(facts))
    } else {
        format!("batches of {}", size(facts))
    };
    format!("{kernels} with {batches}")
}

/// The pair of each workload that the words are about: the pair of its base point, or its first. The
/// launch-bound workload comes first.
fn chosen<'a>(pairs: &[ModePair<'a>]) -> Vec<ModePair<'a>> {
    let mut chosen: Vec<ModePair<'a>> = Vec::new();
    for pair in pairs {
        let workload = &pair.0.facts.workload;
        let mut group = pairs
            .iter()
            .filter(|pair| pair.0.facts.workload == *workload);
        if chosen.iter().all(|pair| pair.0.facts.workload != *workload) {
            let base = group.find(|pair| pair.0.is_base() || pair.1.is_base());
            chosen.push(*base.unwrap_or(pair));
        }
    }
    chosen.sort_by_key(|pair| pair.0.facts.workload != "launch");
    chosen
}

/// Graph replay compared with stream launches.
struct ReplayComparison {
    /// The workload.
    name: String,
    /// Its kernels and batches, in words.
    size: String,
    times: String,
    /// The uncertainty of the ratio; empty if it is not written.
    interval: String,
    /// Whether no difference is expected, as on the CPU.
    is_expected: bool,
    finding: ChangeFinding,
}

/// The comparison of a pair of points; `None` if a time is missing.
fn compared(run: &Run, points: &[MergedPoint], pair: &ModePair<'_>) -> Option<ReplayComparison> {
    let change = replay_change(pair)?;
    let facts = &pair.0.facts;
    let finding = match change.finding {
        _ if is_noisy_run(points) => ChangeFinding::Unclear,
        finding => finding,
    };
    Some(ReplayComparison {
        name: facts.workload.clone(),
        size: size_words(facts),
        times: format::factor(change.ratio),
        interval: interval(&change),
        is_expected: run.backend == "cpu",
        finding,
    })
}

impl ReplayComparison {
    /// The comparison as a headline, with both sides.
    fn headline(&self) -> String {
        let ReplayComparison { size, times, .. } = self;
        let than = "as stream launches";
        match self.finding {
            ChangeFinding::More => format!("graph replay runs {size} {times} times as fast {than}"),
            ChangeFinding::Less => {
                format!("graph replay runs {size} only {times} times as fast {than}")
            }
            ChangeFinding::Same if self.is_expected => {
                format!("graph replay runs {size} as fast {than}, as expected on the CPU")
            }
            ChangeFinding::Same => format!("graph replay runs {size} as fast {than}"),
            ChangeFinding::Unclear => {
                format!("too noisy to compare graph replay with stream launches: {size}")
            }
        }
    }

    /// The comparison as a claim below the headline.
    fn claim(&self) -> String {
        let times = &self.times;
        let words = match self.finding {
            ChangeFinding::More => {
                format!("graph replay is {times} times as fast as stream launches")
            }
            ChangeFinding::Less => {
                format!("graph replay is only {times} times as fast as stream launches")
            }
            ChangeFinding::Same => "graph replay and stream launches are equally fast".to_owned(),
            ChangeFinding::Unclear => "too noisy to compare".to_owned(),
        };
        let name = workload(&self.name);
        let within = in_brackets(&self.interval);
        format!("{name}, {}: {words}{within}.", self.size)
    }
}

/// How many times as fast graph replay is as stream launches. The finding is unclear if either is
/// noisy, unless they differ by more than noise.
pub(super) fn replay_change((graph, stream): &ModePair<'_>) -> Option<PeriodChange> {
    let (replayed, launched) = (graph.figures()?, stream.figures()?);
    let change = PeriodChange::between(&replayed.period_ns, &launched.period_ns)?;
    let noisy = is_noisy(replayed, &graph.facts) || is_noisy(launched, &stream.facts);
    // A difference that is larger than the noise keeps its finding.
    let apart = change.low > NOISE || change.high < 1.0 / NOISE;
    Some(if noisy && !apart {
        change.unclear()
    } else {
        change
    })
}

/// The sizes of batches from which replay is no longer faster, in words. At these sizes, up to the
/// largest, the point is bound by copies and both modes are equally fast. `None` if not even the largest is.
fn equal_at(name: &str, pairs: &[ModePair<'_>]) -> Option<String> {
    let of_workload = pairs.iter().filter(|pair| pair.0.facts.workload == name);
    let base = of_workload.clone().find(|pair| pair.0.is_base())?;
    let alike = |pair: &&ModePair<'_>| {
        let (one, other) = (&pair.0.facts, &base.0.facts);
        one.kernels == other.kernels && one.slots == other.slots
    };
    let mut sizes: Vec<&ModePair<'_>> = of_workload.filter(alike).collect();
    sizes.sort_by_key(|pair| pair.0.facts.batch);
    let is_equal = |pair: &&&ModePair<'_>| {
        let same = replay_change(pair).is_some_and(|change| change.finding == ChangeFinding::Same);
        let figures = pair.0.figures();
        let bound = figures.and_then(|figures| bound(figures, &pair.0.facts));
        same && bound.is_some_and(|bound| bound.is_copying())
    };
    let equal = sizes.iter().rev().take_while(is_equal).count();
    let first = sizes.get(sizes.len() - equal)?;
    let preposition = if equal == 1 { "at" } else { "from" };
    let words = "the link to the GPU is the limit and both are equally fast";
    Some(format!("; {preposition} {} {words}", size(&first.0.facts)))
}

/// The interval of a ratio, in words; empty if both of its ends are written alike.
pub(super) fn interval(change: &PeriodChange) -> String {
    let (low, high) = (format::factor(change.low), format::factor(change.high));
    if low == high {
        String::new()
    } else {
        format!("{} of {low} to {high}", change.interval_name())
    }
}

fn in_brackets(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!(" ({text})"),
    }
}

/// `3.1 times as fast as gemmi (99% interval of 3.0 to 3.2)`.
fn as_fast_as(change: &PeriodChange, program: &str) -> String {
    let within = in_brackets(&interval(change));
    let times = format::factor(change.ratio);
    match change.finding {
        ChangeFinding::More | ChangeFinding::Less => {
            format!("{times} times as fast as {program}{within}")
        }
        ChangeFinding::Same => format!("not significantly different from {program}{within}"),
        ChangeFinding::Unclear => format!("too noisy to compare with {program}{within}"),
    }
}

/// The rates that whole runs and the fronts reach with features of structures, in words. The ring
/// alone does less work, since its batches are packed beforehand.
fn fronts(points: &[MergedPoint]) -> Option<String> {
    let rate = |front: &str| {
        let is_front = |facts: &PointFacts| facts.workload == "features" && facts.front == front;
        let mut of_front = points.iter().filter(|point| is_front(&point.facts));
        let point = of_front.find(|point| point.is_base() || point.facts.axis == "front")?;
        let rate = point.period()?.rate(point.figures()?.amounts.atoms).median;
        (rate > 0.0).then(|| format!("{} atoms/s", format::count(rate)))
    };
    let mut sentences: Vec<String> = whole_run(points).into_iter().collect();
    let streamed = [("engine", "Engine"), ("pipeline", "Pipeline")];
    let streamed = streamed.into_iter().filter_map(|(front, name)| {
        rate(front).map(|rate| format!("{name} {rate} from structures in memory"))
    });
    sentences.extend(streamed);
    if sentences.is_empty() {
        return None;
    }
    sentences.extend(rate("ring").map(|rate| format!("the ring alone {rate} from packed batches")));
    Some(format!("features of structures: {}", sentences.join("; ")))
}

/// The latencies of the first base point that has any, and the chart that shows them.
fn latency(points: &[MergedPoint]) -> Option<(String, String)> {
    let base = bases(points).into_iter().find(|base| {
        base.figures()
            .is_some_and(|figures| figures.closed.count > 0)
    })?;
    let figures = base.figures()?;
    let closed = format!(
        "{}: half of the batches finish within {}, {} within {}",
        title(&base.facts),
        format::time(figures.closed.p50_ns as f64),
        if figures.closed.count < P99_BATCHES_MIN {
            "the slowest"
        } else {
            "99% (p99)"
        },
        format::time(figures.closed.p99_ns as f64),
    );
    let open = figures.open.iter().rfind(|open| open.load < QUEUEING_LOAD);
    let open = open.map(|open| {
        let p99 = format::time(open.latency.p99_ns as f64);
        format!(
            " with every slot in use; p99 {p99} when batches arrive at random at {} of that rate",
            format::percent(open.load)
        )
    });
    let figure = match open {
        Some(_) => format!("load-{}", base.facts.workload),
        None => "latency-closed".to_owned(),
    };
    Some((format!("{closed}{}.", open.unwrap_or_default()), figure))
}

/// A sentence on what bounds each workload at its base point. Work on files has sentences of its own
/// ([`files`]).
fn bounds(points: &[MergedPoint]) -> Option<String> {
    let mut bounded: Vec<String> = Vec::new();
    for base in bases(points) {
        let name = base.facts.workload.as_str();
        if is_of_files(&base.facts) {
            continue;
        }
        let Some(figures) = base.figures() else {
            continue;
        };
        if let Some(bound) = bound(figures, &base.facts) {
            let share = format::percent(bound.share);
            let of = match bound.reached {
                Some((.., unit)) if unit != "ns" => "its limit",
                _ if bound.name == BATCH_LATENCY => "the time (more slots raise the rate)",
                _ => "the time",
            };
            bounded.push(format!(
                "{} by {}, {share} of {of}",
                workload(name),
                bound.name
            ));
        } else if let Some(why) = why_not_determined(figures, &base.facts) {
            bounded.push(format!("{} not determined: {why}", workload(name)));
        }
    }
    (!bounded.is_empty()).then(|| format!("What bounds each workload: {}.", bounded.join("; ")))
}

/// Work on files compared with the fastest other program: for each workload a sentence, and the
/// number of threads of its first point.
fn files(points: &[MergedPoint]) -> Vec<(String, usize)> {
    let mut groups: Vec<(String, usize, Vec<String>)> = Vec::new();
    for point in points.iter().filter(|point| is_of_files(&point.facts)) {
        let name = capital(&workload(&point.facts.workload));
        let Some(words) = against_the_fastest(point) else {
            continue;
        };
        match groups.iter_mut().find(|(known, ..)| *known == name) {
            Some((.., all)) => all.push(words),
            None => groups.push((name, point.facts.threads, vec![words])),
        }
    }
    let groups = groups.into_iter();
    groups
        .map(|(name, threads, words)| {
            let words = words.join("; ");
            let words = format!("{name}, compared with the fastest other program: {words}.");
            (words, threads)
        })
        .collect()
}

/// How fast tapeloop is compared with the fastest of the other programs, which has the smallest ratio; `None`
/// if no other program ran.
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

/// The other programs, each with its comparisons at all points that it measured. Leaves out points
/// on files. Leaves out stream launches too if there are graphs, since they are only the baseline.
pub(super) fn by_program(points: &[MergedPoint]) -> Vec<(&str, Vec<PeriodChange>)> {
    let replayed = points.iter().any(|point| point.facts.mode != "stream");
    let points = points
        .iter()
        .filter(|point| !(is_of_files(&point.facts) || replayed && point.facts.mode == "stream"));
    let figures: Vec<&Figures> = points.filter_map(MergedPoint::figures).collect();
    let compared = |name: &str| {
        let each = figures
            .iter()
            .filter_map(|figures| against(figures, program(figures, name)?));
        each.collect()
    };
    let names = programs(figures.iter().copied()).into_iter();
    names.map(|name| (name, compared(name))).collect()
}

/// A sentence that compares the engine with the other programs at the same work.
fn others(points: &[MergedPoint]) -> Option<String> {
    let differs = |name: &str| {
        let mut figures = points.iter().filter_map(MergedPoint::figures);
        figures
            .any(|figures| program(figures, name).is_some_and(|other| other.agrees == Some(false)))
    };
    let has_graphs = points.iter().any(|point| point.facts.mode != "stream");
    let but = if has_graphs {
        " without stream launches"
    } else {
        ""
    };
    let words = |(name, changes): (&str, Vec<PeriodChange>)| {
        let wrong = if differs(name) {
            "; its outputs differ"
        } else {
            ""
        };
        if let [one] = changes.as_slice() {
            return Some(as_fast_as(one, name) + wrong);
        }
        let finding = |finding| {
            changes
                .iter()
                .filter(|change| change.finding == finding)
                .count()
        };
        let ratios: Vec<f64> = changes.iter().map(|change| change.ratio).collect();
        Some(format!(
            "{} times as fast as {name} (median of {} points{but}: faster at {}, slower at {}{wrong})",
            format::factor(median(&ratios)?),
            changes.len(),
            finding(ChangeFinding::More),
            finding(ChangeFinding::Less),
        ))
    };
    let all: Vec<String> = by_program(points).into_iter().filter_map(words).collect();
    (!all.is_empty()).then(|| format!("at the same work tapeloop is {}.", all.join("; ")))
}
