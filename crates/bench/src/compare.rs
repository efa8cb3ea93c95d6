//! Compares two runs: which points became significantly faster or slower.
//!
//! A difference is significant if two conditions hold. First, the repetitions differ by the exact
//! rank test of Mann and Whitney at 1%; with three or four repetitions, which cannot reach that
//! level, the two sets must not overlap. Second, the medians differ by more than 2%, and by more
//! than the spread within the runs (three times the spread with few repetitions). Both hold for
//! less than one in fifty points that did not change; a test draws such runs.
//!
//! A difference that involves a noisy measurement is unclear, whatever the test says: the report
//! warns of the same points.

mod table;

use super::format;
use super::merged::{self, MergedPoint, last_run, names};
use super::record::{MachineLimits, Outcome, PointFacts, Record, Run};
use super::statistics::{ChangeFinding, DETECTABLE, FLOOR, PeriodChange, median};
use serde::Serialize;
use tapeloop_engine::error::{Error, Result};
use tapeloop_error::internal::cut;

/// The most bytes of a name of a history's, such as a device's or a point's, and of a warning or a reason. A
/// history may come from anywhere.
const NAME_BYTES_MAX: usize = 256;
const TEXT_BYTES_MAX: usize = 4096;

/// Which machines may be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machines {
    /// Only machines of the same kind.
    Same,
    /// Any two machines, to compare machines instead of programs.
    Any,
}

/// The result for a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Measured in the baseline run, and refused now: an output is wrong, or the point failed.
    Refused,
    /// Significantly slower.
    Slower,
    /// Significantly faster.
    Faster,
    /// Refused in the baseline run, and measured now.
    Mended,
    /// No significant difference, though one of 10% would have been significant.
    Same,
    /// Too few repetitions or too much spread to detect a difference of 10%, or a noisy measurement.
    Unclear,
    /// Refused in both runs.
    StillRefused,
}

/// The identity of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// The run's id.
    pub id: String,
    /// When the run started.
    pub date: String,
    /// The version of tapeloop.
    pub version: String,
    /// The commit; empty if unknown.
    pub commit: String,
    /// Device, backend and processor.
    pub machine: String,
}

/// A point of both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The workload, and the settings that differ from other points.
    pub name: String,
    /// The point.
    pub facts: PointFacts,
    /// The result.
    pub verdict: Verdict,
    /// Nanoseconds per batch in the baseline run, the median.
    pub old_ns: Option<f64>,
    /// Nanoseconds per batch in the candidate run, the median.
    pub new_ns: Option<f64>,
    /// `new_ns` divided by `old_ns`; more than 1 is slower.
    pub ratio: Option<f64>,
    /// The 99% interval of the ratio, or its range if there are few repetitions.
    pub interval: Option<(f64, f64)>,
    /// The smallest difference that counts, as a share.
    pub floor: Option<f64>,
    /// The ratio divided by the change of the other programs, which a change of the machine explains.
    pub ratio_corrected: Option<f64>,
    /// Why the point is refused, or which runs are too noisy to conclude from.
    pub reason: Option<String>,
}

/// Changes of the machine: medians of new times divided by old times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MachineChange {
    /// The change of the other programs' periods.
    pub references: Option<f64>,
    /// The number of those periods.
    pub references_count: usize,
    /// The median change of the limits, as a ratio of times.
    pub limits: Option<f64>,
}

/// Two runs, point by point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The baseline run.
    pub old: Side,
    /// The candidate run.
    pub new: Side,
    /// Differences that make the runs less comparable.
    pub warnings: Vec<String>,
    /// Points of both runs, in the order of the candidate run.
    pub points: Vec<Compared>,
    /// Points of the baseline run only.
    pub only_old: Vec<String>,
    /// Points of the candidate run only.
    pub only_new: Vec<String>,
    /// How other programs and the limits changed.
    pub machine: MachineChange,
}

/// Compares the last run of `new` with the last run of `old`.
///
/// # Errors
/// [`ErrorKind::Config`](tapeloop_engine::ErrorKind::Config) if there are no records, if the runs share no
/// point, or if they are from different machines, unless `machines` allows that.
pub fn compare(old: &[Record], new: &[Record], machines: Machines) -> Result<Comparison> {
    let (old_run, old_records) = last_run(old)?;
    let (new_run, new_records) = last_run(new)?;
    if machines == Machines::Same {
        check_same_machine(old_run, new_run)?;
    }
    let old_points = merged::merge(&old_records);
    let new_points = merged::merge(&new_records);
    let names = PointNames::new(&old_points, &new_points);
    let machine = machine_change(old_run, new_run, &old_points, &new_points);
    let mut compared = Vec::new();
    let mut only_new = Vec::new();
    for point in &new_points {
        match find(&old_points, point) {
            Some(before) => {
                compared.push(compare_point(before, point, names.name(point), &machine))
            }
            None => only_new.push(names.name(point)),
        }
    }
    let notes = [
        removed_note("old", old_run, old),
        removed_note("new", new_run, new),
    ];
    if compared.is_empty() {
        let notes = notes.iter().flatten().map(|note| format!("; {note}"));
        let message = format!("the two runs share no point{}", notes.collect::<String>());
        return Err(Error::config(message)
            .fix("compare runs of the same sweep, or run one with the other's settings"));
    }
    let removed = old_points
        .iter()
        .filter(|point| find(&new_points, point).is_none());
    Ok(Comparison {
        old: Side::from_run(old_run),
        new: Side::from_run(new_run),
        warnings: warnings(old_run, new_run)
            .into_iter()
            .chain(notes.into_iter().flatten())
            .collect(),
        points: compared,
        only_old: removed.map(|point| names.name(point)).collect(),
        only_new,
        machine,
    })
}

fn find<'a>(points: &'a [MergedPoint], like: &MergedPoint) -> Option<&'a MergedPoint> {
    points
        .iter()
        .find(|point| merged::is_same_point(&point.facts, &like.facts))
}

/// The names of points within their workload: see [`names`].
struct PointNames(Vec<(PointFacts, String)>);

impl PointNames {
    /// Names the points of `new`, and those of `old` that `new` has no longer.
    fn new(old: &[MergedPoint], new: &[MergedPoint]) -> Self {
        let gone = old.iter().filter(|point| find(new, point).is_none());
        let all: Vec<&PointFacts> = new.iter().chain(gone).map(|point| &point.facts).collect();
        let mut point_names = Vec::new();
        let mut workloads: Vec<&str> = Vec::new();
        for facts in &all {
            if workloads.contains(&facts.workload.as_str()) {
                continue;
            }
            workloads.push(&facts.workload);
            let group = all.iter().filter(|f| f.workload == facts.workload);
            let group: Vec<&PointFacts> = group.copied().collect();
            let names = names(&group, "");
            point_names.extend(group.into_iter().zip(names).map(|(facts, name)| {
                let name = format!("{} {name}", facts.workload);
                (facts.clone(), short(name.trim_end()))
            }));
        }
        PointNames(point_names)
    }

    /// The name of a point, which tells it from the others of its workload.
    fn name(&self, point: &MergedPoint) -> String {
        let found = self
            .0
            .iter()
            .find(|(facts, _)| merged::is_same_point(facts, &point.facts));
        found.map_or_else(
            || short(&merged::title(&point.facts)),
            |(_, name)| name.clone(),
        )
    }
}

/// A name as a comparison has it.
fn short(name: &str) -> String {
    cut(name.to_owned(), NAME_BYTES_MAX)
}

/// An error of kind `Config` for two runs whose times cannot be compared, as another device, backend or
/// processor measured them.
fn check_same_machine(old: &Run, new: &Run) -> Result<()> {
    let pairs = [
        ("devices", &old.device, &new.device),
        ("backends", &old.backend, &new.backend),
        ("processors", &old.cpu, &new.cpu),
    ];
    match pairs.into_iter().find(|(_, old, new)| old != new) {
        None => Ok(()),
        Some((what, old, new)) => Err(Error::config(format!(
            "the runs are from different {what}: {:?} and {:?}",
            short(old),
            short(new)
        ))
        .fix("compare runs of one machine, or pass --any-machine")),
    }
}

/// What differs between two runs and may explain changes.
fn warnings(old: &Run, new: &Run) -> Vec<String> {
    let cores = (old.cores.to_string(), new.cores.to_string());
    let pairs = [
        ("device", &old.device, &new.device),
        ("backend", &old.backend, &new.backend),
        ("processor", &old.cpu, &new.cpu),
        ("driver", &old.driver, &new.driver),
        ("number of cores", &cores.0, &cores.1),
        ("operating system", &old.os, &new.os),
    ];
    let differ = pairs.into_iter().filter(|(_, old, new)| old != new);
    let mut warnings: Vec<String> = differ
        .map(|(what, old, new)| {
            let (old, new) = (short(old), short(new));
            format!("the {what} differs: {old:?}, now {new:?}")
        })
        .collect();
    let changed = changed_keys(&old.config, &new.config);
    if !changed.is_empty() {
        let warning = format!("the configs differ: {}", changed.join(", "));
        warnings.push(cut(warning, TEXT_BYTES_MAX));
    }
    warnings
}

/// Keys that say where files lie, and have no influence on what is measured.
const PATH_KEYS: [&str; 5] = ["input", "output", "references", "nvrtc", "kernel_cache"];

/// The keys whose values differ between two configs in TOML, which have a line for each key.
fn changed_keys<'a>(old: &'a str, new: &'a str) -> Vec<&'a str> {
    let only_in = |one: &'a str, other: &'a str| {
        let lines = one.lines().filter(|line| !line.starts_with('#'));
        let lines = lines.filter(|line| other.lines().all(|other| other != *line));
        lines.filter_map(|line| Some(line.split_once(" = ")?.0))
    };
    let mut keys: Vec<&str> = only_in(old, new).chain(only_in(new, old)).collect();
    keys.retain(|key| !PATH_KEYS.contains(key));
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// A note on the records of `run` whose settings were removed from the program; `None` if it has no
/// such records.
fn removed_note(side: &str, run: &Run, records: &[Record]) -> Option<String> {
    let of_run = records.iter().filter(|record| record.run.id == run.id);
    let mut removed: Vec<&str> = of_run.filter_map(|record| record.point.removed).collect();
    let count = format::counted(removed.len() as u64, "record");
    removed.sort_unstable();
    removed.dedup();
    (!removed.is_empty()).then(|| {
        format!(
            "{count} of the {side} run left out: settings that were removed ({}); \
             docs/PERFORMANCE.md, \"What did not help\", has what they measured",
            removed.join(", ")
        )
    })
}

/// Compares a point of two runs. A noisy measurement gives no verdict.
fn compare_point(
    old: &MergedPoint,
    new: &MergedPoint,
    name: String,
    machine: &MachineChange,
) -> Compared {
    let mut compared = Compared {
        name,
        facts: new.facts.clone(),
        verdict: Verdict::Unclear,
        old_ns: old.period().map(|period| period.median),
        new_ns: new.period().map(|period| period.median),
        ratio: None,
        interval: None,
        floor: None,
        ratio_corrected: None,
        reason: None,
    };
    let noisy = noisy(old, new);
    match (&old.outcome, &new.outcome) {
        (Outcome::Measured(old), Outcome::Measured(new)) => {
            if let Some(change) = PeriodChange::between(&old.period_ns, &new.period_ns) {
                compared.verdict = match change.finding {
                    _ if noisy.is_some() => Verdict::Unclear,
                    ChangeFinding::Less => Verdict::Faster,
                    ChangeFinding::More => Verdict::Slower,
                    ChangeFinding::Same => Verdict::Same,
                    ChangeFinding::Unclear => Verdict::Unclear,
                };
                compared.ratio = Some(change.ratio);
                compared.interval = Some((change.low, change.high));
                compared.floor = Some(change.floor);
                compared.ratio_corrected = machine.references.map(|by| change.ratio / by);
                compared.reason = noisy;
            }
        }
        (Outcome::Measured(_), Outcome::Refused(reason)) => {
            compared.verdict = Verdict::Refused;
            compared.reason = Some(cut(reason.clone(), TEXT_BYTES_MAX));
        }
        (Outcome::Refused(_), Outcome::Measured(_)) => compared.verdict = Verdict::Mended,
        (Outcome::Refused(_), Outcome::Refused(reason)) => {
            compared.verdict = Verdict::StillRefused;
            compared.reason = Some(cut(reason.clone(), TEXT_BYTES_MAX));
        }
    }
    compared
}

/// Says which of the two measurements of a point are noisy; `None` if neither is.
fn noisy(old: &MergedPoint, new: &MergedPoint) -> Option<String> {
    let which = match (old.is_noisy(), new.is_noisy()) {
        (false, false) => return None,
        (true, true) => "both runs are",
        (true, false) => "the old run is",
        (false, true) => "the new run is",
    };
    Some(format!("{which} noisy here"))
}

/// How the speed of the machine itself has changed: by the other programs that both runs measured,
/// and by the limits.
fn machine_change(
    old: &Run,
    new: &Run,
    before: &[MergedPoint],
    after: &[MergedPoint],
) -> MachineChange {
    // One ratio for each program and point.
    let mut ratios = Vec::new();
    for point in after {
        let Some(old) = find(before, point).and_then(MergedPoint::figures) else {
            continue;
        };
        for reference in point.figures().iter().flat_map(|f| &f.references) {
            let known = old.references.iter().find(|r| r.name == reference.name);
            let change = known
                .and_then(|known| PeriodChange::between(&known.period_ns, &reference.period_ns));
            ratios.extend(change.map(|change| change.ratio));
        }
    }
    MachineChange {
        references: median(&ratios),
        references_count: ratios.len(),
        limits: limits_change(&old.limits, &new.limits),
    }
}

/// The median change of the limits, as a ratio of times: rates are inverted. `None` if the runs share none.
fn limits_change(old: &MachineLimits, new: &MachineLimits) -> Option<f64> {
    let rates = [
        (old.upload_bytes_per_s, new.upload_bytes_per_s),
        (old.download_bytes_per_s, new.download_bytes_per_s),
        (old.device_bytes_per_s, new.device_bytes_per_s),
        (old.host_bytes_per_s, new.host_bytes_per_s),
        (old.fma_per_s, new.fma_per_s),
    ];
    let times = [
        (new.launch_ns, old.launch_ns),
        (new.graph_launch_ns, old.graph_launch_ns),
    ];
    let ratios = rates.into_iter().chain(times);
    let ratios: Vec<f64> = ratios
        .filter_map(|(one, other)| Some(one? / other?))
        .collect();
    median(&ratios)
}

impl Side {
    /// The facts of a run that the head of a comparison names.
    fn from_run(run: &Run) -> Self {
        Side {
            id: run.id.clone(),
            date: format::date(run.started_unix_s),
            version: short(&run.version),
            commit: short(&run.commit),
            machine: short(&format!("{} ({}), {}", run.device, run.backend, run.cpu)),
        }
    }
}

/// Whether a ratio of times is as near to 1 as that of two runs without a change.
fn is_steady(ratio: f64) -> bool {
    (1.0 - FLOOR..=1.0 + FLOOR).contains(&ratio)
}

impl Comparison {
    /// The number of points with a verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        let points = self.points.iter();
        points.filter(|point| point.verdict == verdict).count()
    }

    /// The exit code: 1 if a point became slower or is now refused, otherwise 0.
    pub fn exit_code(&self) -> u8 {
        let worse = self.count(Verdict::Slower) + self.count(Verdict::Refused);
        u8::from(worse > 0)
    }

    /// The change of the machine, if all points changed as other programs or the limits did: their median
    /// within 3% of it, little beyond the floor of 2%, and each, with its own noise, within the 10% that a
    /// comparison must detect.
    fn machine_moved(&self) -> Option<f64> {
        let ratios: Vec<f64> = self.points.iter().filter_map(|point| point.ratio).collect();
        let all = median(&ratios)?;
        let machine = self.machine.references.or(self.machine.limits)?;
        let has_moved = !is_steady(machine);
        let moved_alike = (0.97..=1.03).contains(&(all / machine));
        let each_alike = 1.0 - DETECTABLE..=1.0 + DETECTABLE;
        let all_alike = ratios.iter().all(|r| each_alike.contains(&(r / all)));
        (has_moved && moved_alike && all_alike).then_some(machine)
    }

    /// The summary, in sentences.
    pub fn words(&self) -> String {
        let counts = [
            (Verdict::Refused, "now refused"),
            (Verdict::Slower, "slower"),
            (Verdict::Faster, "faster"),
            (Verdict::Mended, "measured again"),
            (Verdict::Same, "not significantly different"),
            (Verdict::Unclear, "inconclusive"),
            (Verdict::StillRefused, "refused in both runs"),
        ];
        let counts: Vec<String> = counts
            .into_iter()
            .map(|(verdict, words)| (self.count(verdict), words))
            .filter(|(count, _)| *count > 0)
            .map(|(count, words)| format!("{count} {words}"))
            .collect();
        let total = match self.points.len() {
            1 => "Of 1 point".to_owned(),
            total => format!("Of {total} points"),
        };
        let mut words = format!("{total}: {}.", counts.join(", "));
        if let Some(by) = self.machine_moved() {
            let reference = match self.machine.references {
                Some(_) => "other programs in the same runs",
                None => "the machine's limits",
            };
            words += &format!(
                " All times changed as {reference} did ({}): the machine changed, not the program.",
                format::change(by)
            );
        } else if let Some(by) = self.machine.references {
            let change = format::change(by);
            words += &if is_steady(by) {
                format!(" The times of other programs in the same runs stayed the same ({change}).")
            } else {
                format!(" The times of other programs in the same runs changed by {change}.")
            };
        }
        words
    }
}

#[cfg(test)]
mod tests;
