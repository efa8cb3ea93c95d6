//! A run beside another: which points became faster or slower, beyond what noise does.
//!
//! A point is finding to be faster or slower where two things hold. The repetitions of the
//! two runs differ by the rank test of Mann and Whitney, exact, at 1%: with three or
//! four repetitions, which cannot reach that, they have to be apart completely. And the
//! medians differ by more than a floor of 2%, or of the spread within the runs where
//! that is more (three times that, with few repetitions). Both hold for less than one of
//! fifty points that did not change; a test draws such runs.

mod table;

use super::format;
use super::merged::{self, MergedPoint, last_run, names};
use super::record::{Limits, Outcome, PointFacts, Record, Run};
use super::statistics::{Change, Finding, median};
use crate::error::{Error, Result};
use serde::Serialize;

/// Which machines may be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machines {
    /// Only one and the same kind.
    Same,
    /// Any two, to compare machines rather than programs.
    Any,
}

/// What became of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Its outputs were right and are wrong now.
    Refused,
    /// Less of it in the same time.
    Slower,
    /// More of it in the same time.
    Faster,
    /// Its outputs were wrong and are right now.
    Mended,
    /// No difference that can be finding, and one of 10% could have been.
    Same,
    /// Too few repetitions, or too much spread to tell a difference of 10%.
    Unclear,
    /// Refused both times.
    StillRefused,
}

/// A run, as far as a comparison says which it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// Of the run.
    pub id: String,
    /// When it started.
    pub date: String,
    /// Of tapeloop.
    pub version: String,
    /// The commit, where that is known.
    pub commit: String,
    /// Where it ran.
    pub machine: String,
}

/// A point of both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Its workload, and in what it differs from the others.
    pub name: String,
    /// Which it is.
    pub facts: PointFacts,
    /// What became of it.
    pub verdict: Verdict,
    /// Nanoseconds a batch, the median.
    pub old_ns: Option<f64>,
    /// As `old_ns`.
    pub new_ns: Option<f64>,
    /// New by old; more than 1 is slower.
    pub ratio: Option<f64>,
    /// Where the ratio lies at 99%, or at all with few repetitions.
    pub interval: Option<(f64, f64)>,
    /// What the ratio has to exceed, as a share.
    pub floor: Option<f64>,
    /// The ratio, if what other programs changed by is the machine's doing.
    pub ratio_corrected: Option<f64>,
    /// Why a point is refused.
    pub reason: Option<String>,
}

/// What changed that is not the program: medians of new by old, of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MachineChange {
    /// Of the other programs' periods.
    pub references: Option<f64>,
    /// Of how many.
    pub references_count: usize,
    /// Of the limits, as times.
    pub limits: Option<f64>,
}

/// Two runs, point by point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// What was.
    pub old: Side,
    /// What is.
    pub new: Side,
    /// What makes the two less comparable.
    pub warnings: Vec<String>,
    /// Points of both, in the order of the new run.
    pub points: Vec<Compared>,
    /// Points of the old run alone.
    pub only_old: Vec<String>,
    /// Points of the new run alone.
    pub only_new: Vec<String>,
    /// What other programs and limits did meanwhile.
    pub machine: MachineChange,
}

/// The last run of `new` beside the last run of `old`.
///
/// # Errors
/// No records; runs on machines of different kinds, unless `machines` allows them; runs
/// that share no point.
pub fn compare(old: &[Record], new: &[Record], machines: Machines) -> Result<Comparison> {
    let (old_run, old_records) = last_run(old)?;
    let (new_run, new_records) = last_run(new)?;
    if machines == Machines::Same {
        same_machine(old_run, new_run)?;
    }
    let old_points = merged::merge(&old_records);
    let new_points = merged::merge(&new_records);
    let named = Names::of(&old_points, &new_points);
    let machine = machine_change(old_run, new_run, &old_points, &new_points);
    let mut compared = Vec::new();
    let mut only_new = Vec::new();
    for point in &new_points {
        match find(&old_points, point) {
            Some(before) => compared.push(one(before, point, named.of_point(point), &machine)),
            None => only_new.push(named.of_point(point)),
        }
    }
    if compared.is_empty() {
        return Err(Error::config("the two runs share no point")
            .fix("compare runs of the same sweep, or run one with the other's settings"));
    }
    let gone = old_points
        .iter()
        .filter(|point| find(&new_points, point).is_none());
    Ok(Comparison {
        old: Side::of(old_run),
        new: Side::of(new_run),
        warnings: warnings(old_run, new_run),
        points: compared,
        only_old: gone.map(|point| named.of_point(point)).collect(),
        only_new,
        machine,
    })
}

fn find<'a>(points: &'a [MergedPoint], like: &MergedPoint) -> Option<&'a MergedPoint> {
    points
        .iter()
        .find(|point| merged::same(&point.facts, &like.facts))
}

/// Points by the names that tell them from the others of their workload.
struct Names(Vec<(PointFacts, String)>);

impl Names {
    fn of(old: &[MergedPoint], new: &[MergedPoint]) -> Self {
        let gone = old.iter().filter(|point| find(new, point).is_none());
        let all: Vec<&PointFacts> = new.iter().chain(gone).map(|point| &point.facts).collect();
        let mut named = Vec::new();
        let mut workloads: Vec<&str> = Vec::new();
        for facts in &all {
            if workloads.contains(&facts.workload.as_str()) {
                continue;
            }
            workloads.push(&facts.workload);
            let group = all.iter().filter(|f| f.workload == facts.workload);
            let group: Vec<&PointFacts> = group.copied().collect();
            let names = names(&group, "");
            named.extend(group.into_iter().zip(names).map(|(facts, name)| {
                let name = format!("{} {name}", facts.workload);
                (facts.clone(), name.trim_end().to_owned())
            }));
        }
        Names(named)
    }

    fn of_point(&self, point: &MergedPoint) -> String {
        let named = self
            .0
            .iter()
            .find(|(facts, _)| merged::same(facts, &point.facts));
        named.map_or_else(|| merged::title(&point.facts), |(_, name)| name.clone())
    }
}

fn same_machine(old: &Run, new: &Run) -> Result<()> {
    let pairs = [
        ("devices", &old.device, &new.device),
        ("backends", &old.backend, &new.backend),
        ("processors", &old.cpu, &new.cpu),
    ];
    match pairs.into_iter().find(|(_, old, new)| old != new) {
        None => Ok(()),
        Some((what, old, new)) => Err(Error::config(format!(
            "the runs are from different {what}, {old:?} and {new:?}, so they say nothing about the program"
        ))
        .fix("compare runs of one machine, or pass --any-machine")),
    }
}

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
        .map(|(what, old, new)| format!("the {what} differs: {old:?}, now {new:?}"))
        .collect();
    if old.config != new.config {
        warnings.push("the configs differ".to_owned());
    }
    warnings
}

fn one(old: &MergedPoint, new: &MergedPoint, name: String, machine: &MachineChange) -> Compared {
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
    match (&old.outcome, &new.outcome) {
        (Outcome::Measured(old), Outcome::Measured(new)) => {
            if let Some(change) = Change::of(&old.period_ns, &new.period_ns) {
                compared.verdict = match change.finding {
                    Finding::Less => Verdict::Faster,
                    Finding::More => Verdict::Slower,
                    Finding::Same => Verdict::Same,
                    Finding::Unclear => Verdict::Unclear,
                };
                compared.ratio = Some(change.ratio);
                compared.interval = Some((change.low, change.high));
                compared.floor = Some(change.floor);
                compared.ratio_corrected = machine.references.map(|by| change.ratio / by);
            }
        }
        (Outcome::Measured(_), Outcome::Refused(reason)) => {
            compared.verdict = Verdict::Refused;
            compared.reason = Some(reason.clone());
        }
        (Outcome::Refused(_), Outcome::Measured(_)) => compared.verdict = Verdict::Mended,
        (Outcome::Refused(_), Outcome::Refused(reason)) => {
            compared.verdict = Verdict::StillRefused;
            compared.reason = Some(reason.clone());
        }
    }
    compared
}

fn machine_change(
    old: &Run,
    new: &Run,
    before: &[MergedPoint],
    after: &[MergedPoint],
) -> MachineChange {
    let mut ratios = Vec::new();
    for point in after {
        let Some(old) = find(before, point).and_then(MergedPoint::figures) else {
            continue;
        };
        for reference in point.figures().iter().flat_map(|f| &f.references) {
            let known = old.references.iter().find(|r| r.name == reference.name);
            let change = known.and_then(|known| Change::of(&known.period_ns, &reference.period_ns));
            ratios.extend(change.map(|change| change.ratio));
        }
    }
    MachineChange {
        references: median(&ratios),
        references_count: ratios.len(),
        limits: limits_change(&old.limits, &new.limits),
    }
}

/// The median change of the limits, as times: rates the other way round.
fn limits_change(old: &Limits, new: &Limits) -> Option<f64> {
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
    let ratios: Vec<f64> = ratios.filter_map(|(top, by)| Some(top? / by?)).collect();
    median(&ratios)
}

impl Side {
    fn of(run: &Run) -> Self {
        Side {
            id: run.id.clone(),
            date: format::date(run.started_unix_s),
            version: run.version.clone(),
            commit: run.commit.clone(),
            machine: format!("{} ({}), {}", run.device, run.backend, run.cpu),
        }
    }
}

/// What is no more than two runs of anything differ by.
fn is_steady(ratio: f64) -> bool {
    (0.98..=1.02).contains(&ratio)
}

impl Comparison {
    /// How many points have a verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        let points = self.points.iter();
        points.filter(|point| point.verdict == verdict).count()
    }

    /// 1 where a point became slower or is refused now, as the exit status of a gate.
    pub fn exit_code(&self) -> u8 {
        let worse = self.count(Verdict::Slower) + self.count(Verdict::Refused);
        u8::from(worse > 0)
    }

    /// Whether all points moved as the other programs, or the limits, did.
    fn machine_moved(&self) -> Option<f64> {
        let ratios: Vec<f64> = self.points.iter().filter_map(|point| point.ratio).collect();
        let all = median(&ratios)?;
        let machine = self.machine.references.or(self.machine.limits)?;
        let moved = !is_steady(machine);
        let with = (0.97..=1.03).contains(&(all / machine));
        let each = ratios.iter().all(|r| (0.9..=1.1).contains(&(r / all)));
        (moved && with && each).then_some(machine)
    }

    /// The sum, in sentences.
    pub fn words(&self) -> String {
        let counts = [
            (Verdict::Refused, "now refused for wrong outputs"),
            (Verdict::Slower, "slower"),
            (Verdict::Faster, "faster"),
            (Verdict::Mended, "right again"),
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
            let what = match self.machine.references {
                Some(_) => "other programs in the same runs",
                None => "the machine's limits",
            };
            words += &format!(
                " All times changed as {what} did ({}): the machine changed, not the program.",
                format::change(by)
            );
        } else if let Some(by) = self.machine.references {
            let change = format::change(by);
            words += &match is_steady(by) {
                true => format!(
                    " The times of other programs in the same runs stayed the same ({change})."
                ),
                false => {
                    format!(" The times of other programs in the same runs changed by {change}.")
                }
            };
        }
        words
    }
}

#[cfg(test)]
mod tests;
