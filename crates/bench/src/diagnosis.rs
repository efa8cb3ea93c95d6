//! What bounds a point, and warnings about its figures.

use super::format;
use super::record::{Figures, MachineLimits, PointFacts, Share};
use super::statistics::{DETECTABLE, median, median_of_sorted};

/// The smallest share of a period that an activity must take to explain the period: below half, all else
/// takes longer.
const EXPLAINED_MIN: f64 = 0.5;

/// The smallest share of a limit that bounds a point, however long the stages take: stage times
/// include the time in which stages wait for each other. Less than 1, as limits are the best of several
/// measurements, and those of copies are of one direction alone.
const EXHAUSTED_MIN: f64 = 0.8;

/// How many times as long batches with timestamps may take for their stage times to be valid. A
/// timestamp costs microseconds. At this bound a share of 0.5 may be one of 0.4 without them.
const SLOWDOWN_MAX: f64 = 1.25;

/// The smallest share of the time in which a spinning thread runs if it does not sleep: all but interrupts,
/// in its best repetition.
const BUSY_MIN: f64 = 0.9;

/// The time of a batch, divided by the number of slots: measured with one slot, or the sum of its stages.
pub(crate) const BATCH_LATENCY: &str = "batch latency";

/// The largest interquartile range of repetitions, as a share of their median, without a warning. Half of
/// it, to either side, is the difference of 10% that a comparison must be able to detect.
pub(crate) const SPREAD_MAX: f64 = 2.0 * DETECTABLE;

/// The smallest share of the arrivals that an open loop in a steady state completes in time. The last batches
/// end after the last arrival, so even then the rates differ a little.
const KEPT_UP_MIN: f64 = 0.95;

/// The smallest number of arrivals that is judged: with fewer, the last batches dominate the mean.
const ARRIVALS_MIN: u64 = 200;

/// The facts besides the figures that the diagnosis of a point needs.
pub(super) struct PointContext<'a> {
    pub(super) point: &'a PointFacts,
    pub(super) limits: &'a MachineLimits,
    /// The number of devices, each with the limits of the first.
    pub(super) devices: usize,
    /// Whether the backend has memory of its own, so that uploads and downloads are copies.
    pub(super) on_device: bool,
}

/// Fills in the shares of the limits, what bounds the point, and the warnings.
pub(super) fn diagnose(figures: &mut Figures, facts: &PointContext<'_>) {
    let period_ns = median(&figures.period_ns).unwrap_or_default();
    figures.shares = shares(figures, facts, period_ns);
    figures.bound = bound_words(figures, facts.point);
    figures.flags = warnings(figures, facts.point);
}

/// A part of the machine or a stage of a batch, and how much of a point's time it is busy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Activity {
    pub(crate) name: &'static str,
    /// 0 to 1.
    pub(crate) share: f64,
    /// The value that was reached, the largest possible value, and the unit, as in [`Share`]. `None`
    /// for a stage, whose share is measured in the batches with timestamps.
    pub(crate) reached: Option<(f64, f64, String)>,
}

impl Activity {
    /// Whether the activity is a copy between host and device.
    pub(crate) fn is_copying(&self) -> bool {
        ["upload link", "download link", "uploads", "downloads"].contains(&self.name)
    }
}

/// What bounds a point: a limit that is nearly reached, otherwise the activity with the largest
/// share of the time. `None` if no measured activity takes at least half of the time.
pub(crate) fn bound(figures: &Figures, point: &PointFacts) -> Option<Activity> {
    let activities = activities(figures, point);
    let largest = |only_limits: bool| {
        let wanted = activities.iter();
        let is_limit =
            |activity: &&Activity| activity.reached.is_some() && activity.name != BATCH_LATENCY;
        let wanted = wanted.filter(|activity| !only_limits || is_limit(activity));
        wanted.max_by(|a, b| a.share.total_cmp(&b.share))
    };
    let limit = largest(true).filter(|activity| activity.share >= EXHAUSTED_MIN);
    let bound = limit.or_else(|| largest(false));
    bound
        .filter(|activity| activity.share >= EXPLAINED_MIN)
        .cloned()
}

/// What bounds a point, as `upload link, 94%`; empty for a front that does not report its stages.
pub(crate) fn bound_words(figures: &Figures, point: &PointFacts) -> String {
    // The record of a whole run already has the words.
    if point.front == "program" {
        return figures.bound.clone();
    }
    match bound(figures, point) {
        Some(bound) => format!("{}, {}", bound.name, percent(bound.share)),
        None if figures.stages.is_some() => "not determined".to_owned(),
        None => String::new(),
    }
}

/// Why the bound of a point is not determined, in words; `None` if it is, or for a front that does
/// not report its stages.
pub(crate) fn why_not_determined(figures: &Figures, point: &PointFacts) -> Option<String> {
    figures.stages?;
    if point.front == "program" || bound(figures, point).is_some() {
        return None;
    }
    let largest = activities(figures, point)
        .into_iter()
        .max_by(|one, other| one.share.total_cmp(&other.share))?;
    let slowed = timestamp_slowdown(figures).filter(|_| !has_valid_stages(figures));
    let slowed = slowed.map_or_else(String::new, |by| {
        format!(
            ", and the times of its stages are unknown, as their timestamps make a batch take {} \
             times as long",
            format::factor(by)
        )
    });
    Some(format!(
        "the largest measured share, of {}, is {}{slowed}",
        largest.name,
        percent(largest.share)
    ))
}

/// How many times as long the batches with timestamps take as those of the closed loop. `None` if
/// no batches had timestamps.
pub(crate) fn timestamp_slowdown(figures: &Figures) -> Option<f64> {
    let stages = figures.stages.filter(|stages| stages.overlap > 0.0)?;
    let sum = stages.upload_ns + stages.kernels_ns + stages.download_ns;
    Some(sum / stages.overlap / median(&figures.period_ns)?)
}

/// Whether the stage times of the batches with timestamps are valid for the closed loop too.
fn has_valid_stages(figures: &Figures) -> bool {
    figures.stages.is_some() && timestamp_slowdown(figures).is_none_or(|by| by <= SLOWDOWN_MAX)
}

/// Whether the repetitions of a point are too noisy to compare it with another.
pub(crate) fn is_noisy(figures: &Figures, point: &PointFacts) -> bool {
    // 0 means that it was not measured.
    let slept = waits_by_spinning(point) && (f64::MIN_POSITIVE..BUSY_MIN).contains(&figures.busy);
    slept || spread_warning(&figures.period_ns).is_some()
}

/// Whether the submitting thread of a point's front spins while it waits.
fn waits_by_spinning(point: &PointFacts) -> bool {
    ["ring", "pipeline"].contains(&point.front.as_str())
}

/// The shares of the machine's limits that a point reaches, largest first.
fn shares(figures: &Figures, facts: &PointContext<'_>, period_ns: f64) -> Vec<Share> {
    let (limits, amounts) = (facts.limits, figures.amounts);
    let mut shares = Vec::new();
    let mut add_rate = |limit: &str, amount: f64, limit_value: Option<f64>, unit: &str| {
        let Some(limit_value) = limit_value.filter(|limit_value| *limit_value > 0.0) else {
            return;
        };
        let reached = amount / period_ns * 1e9;
        if amount > 0.0 && reached.is_finite() {
            shares.push(Share {
                limit: limit.to_owned(),
                share: reached / limit_value,
                reached,
                of: limit_value,
                unit: unit.to_owned(),
            });
        }
    };
    if facts.on_device {
        let for_all_devices = |limit: Option<f64>| limit.map(|rate| rate * facts.devices as f64);
        // The limit is the rate of one direction alone, which is higher than that of both at once.
        add_rate(
            "upload",
            amounts.upload_bytes,
            for_all_devices(limits.upload_bytes_per_s),
            "B/s",
        );
        add_rate(
            "download",
            amounts.download_bytes,
            for_all_devices(limits.download_bytes_per_s),
            "B/s",
        );
        add_rate(
            "arithmetic",
            amounts.fma,
            for_all_devices(limits.fma_per_s),
            "FMA/s",
        );
    } else {
        add_rate(
            "host memory",
            kernel_bytes(facts.point),
            limits.host_bytes_per_s,
            "B/s",
        );
    }
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    shares
}

/// Bytes that the kernels of a batch read and write; 0 if the workload does not define it.
fn kernel_bytes(point: &PointFacts) -> f64 {
    let between = point.batch as f64 * size_of::<f32>() as f64;
    match point.workload.as_str() {
        // Each step reads a vector and writes one; the first reads what was uploaded.
        "launch" | "copy" => {
            point.upload_bytes as f64 + (2 * point.kernels) as f64 * between - between
        }
        _ => 0.0,
    }
}

/// The activities that take time, each with its share of the period. They overlap.
pub(crate) fn activities(figures: &Figures, point: &PointFacts) -> Vec<Activity> {
    let Some(period_ns) = median(&figures.period_ns) else {
        return Vec::new();
    };
    let host_ns = median(&figures.host_ns).unwrap_or_default();
    let mut activities = vec![Activity {
        name: "host calls",
        share: host_ns / period_ns,
        reached: Some((host_ns, period_ns, "ns".to_owned())),
    }];
    for share in &figures.shares {
        let name = match share.limit.as_str() {
            "upload" => "upload link",
            "download" => "download link",
            "arithmetic" => "arithmetic",
            "host memory" => "host memory",
            "device memory" => "device memory",
            // Part of the host's calls, in records of earlier versions.
            _ => continue,
        };
        activities.push(Activity {
            name,
            share: share.share,
            reached: Some((share.reached, share.of, share.unit.clone())),
        });
    }
    // A limit that is exceeded by 5% or more does not apply: small batches stay in the processor's caches. By
    // less it is exceeded by errors of measurement, and counts as reached.
    activities.retain(|activity| activity.share.is_finite() && activity.share < 1.05);
    let slots = point.slots.max(1) as f64;
    // The stages of a batch follow each other, so a slot returns a batch at most once in the time
    // that a batch takes alone.
    let mut latency = figures.one_slot_ns.map(|ns| Activity {
        name: BATCH_LATENCY,
        share: ns / slots / period_ns,
        reached: Some((ns / slots, period_ns, "ns".to_owned())),
    });
    if let Some(stages) = figures.stages.filter(|_| has_valid_stages(figures)) {
        let stage = |name, ns: f64| Activity {
            name,
            share: ns / period_ns,
            reached: None,
        };
        activities.extend([
            stage("uploads", stages.upload_ns),
            stage("kernels", stages.kernels_ns),
            stage("downloads", stages.download_ns),
        ]);
        let sum = stages.upload_ns + stages.kernels_ns + stages.download_ns;
        latency = latency.or_else(|| Some(stage(BATCH_LATENCY, sum / slots)));
    }
    activities.extend(latency);
    activities.retain(|activity| activity.share.is_finite());
    for activity in &mut activities {
        activity.share = activity.share.clamp(0.0, 1.0);
    }
    activities
}

/// What makes the figures of a point doubtful. Few arrivals are not judged, as the last batches
/// dominate their rate.
fn warnings(figures: &Figures, point: &PointFacts) -> Vec<String> {
    let mut warnings = Vec::new();
    if waits_by_spinning(point) && figures.busy < BUSY_MIN {
        warnings.push(format!(
            "the submitting thread spins, but was not running {} of the time: it slept, or other \
             programs took its core",
            percent(1.0 - figures.busy)
        ));
    }
    let explained = activities(figures, point)
        .into_iter()
        .map(|activity| activity.share);
    let explained = explained.fold(0.0, f64::max);
    if has_valid_stages(figures) && explained < EXPLAINED_MIN {
        warnings.push(format!(
            "no measured activity accounts for more than {} of the time",
            percent(explained)
        ));
    }
    warnings.extend(spread_warning(&figures.period_ns));
    for open in &figures.open {
        // At the closed loop's rate or above it batches queue up by design.
        let counts = open.load < 1.0 && open.latency.count >= ARRIVALS_MIN;
        if counts && open.done_per_s < KEPT_UP_MIN * open.arrivals_per_s {
            warnings.push(format!(
                "batches that arrive at {} of the closed loop's rate queue up: {} of them are done \
                 in time",
                percent(open.load),
                percent(open.done_per_s / open.arrivals_per_s)
            ));
        }
    }
    for reference in &figures.references {
        if reference.agrees == Some(false) {
            warnings.push(format!("the outputs of {} differ", reference.name));
        }
    }
    warnings
}

/// Warns when the interquartile range of the repetitions exceeds `SPREAD_MAX`; `None` if it does not, or if
/// there are none.
pub fn spread_warning(period_ns: &[f64]) -> Option<String> {
    let mut sorted = period_ns.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let median = median_of_sorted(&sorted)?;
    let last = sorted.len().checked_sub(1)?;
    let spread = (sorted[last - last / 4] - sorted[last / 4]) / median;
    let warning = || {
        format!(
            "the interquartile range of the repetitions is {} of their median",
            percent(spread)
        )
    };
    (spread > SPREAD_MAX).then(warning)
}

fn percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Amounts, Latency, Open, Reference, Stages};

    fn figures() -> Figures {
        Figures {
            period_ns: vec![10_000.0, 10_100.0, 9_900.0],
            host_ns: vec![2_000.0; 3],
            busy: 1.0,
            amounts: Amounts {
                upload_bytes: 400_000.0,
                ..Amounts::default()
            },
            ..Figures::default()
        }
    }

    fn diagnosed(mut figures: Figures) -> Figures {
        let point = PointFacts {
            front: "ring".to_owned(),
            mode: "graph".to_owned(),
            slots: 4,
            ..PointFacts::default()
        };
        let limits = MachineLimits {
            upload_bytes_per_s: Some(50e9),
            ..MachineLimits::default()
        };
        let facts = PointContext {
            point: &point,
            limits: &limits,
            devices: 1,
            on_device: true,
        };
        diagnose(&mut figures, &facts);
        figures
    }

    #[test]
    fn the_largest_share_bounds() {
        let diagnosed = diagnosed(figures());
        assert_eq!(diagnosed.bound, "upload link, 80%");
        let limits: Vec<&str> = diagnosed.shares.iter().map(|share| &*share.limit).collect();
        assert_eq!(limits, ["upload"]);
        assert_eq!(diagnosed.shares[0].reached, 40e9);
        assert!(diagnosed.flags.is_empty(), "{:?}", diagnosed.flags);
    }

    #[test]
    fn stages_explain_what_one_slot_waits_for() {
        let stages = Stages {
            upload_ns: 5_000.0,
            kernels_ns: 30_000.0,
            download_ns: 1_000.0,
            ..Stages::default()
        };
        let with_stages = Figures {
            amounts: Amounts::default(),
            stages: Some(stages),
            ..figures()
        };
        assert_eq!(diagnosed(with_stages).bound, "kernels, 100%");
    }

    #[test]
    fn stages_of_batches_that_timestamps_slow_explain_nothing() {
        let stages = |overlap: f64| Stages {
            upload_ns: 5_000.0,
            kernels_ns: 30_000.0,
            download_ns: 1_000.0,
            overlap,
            ..Stages::default()
        };
        let with_overlap = |overlap| Figures {
            amounts: Amounts::default(),
            host_ns: vec![6_500.0; 3],
            stages: Some(stages(overlap)),
            ..figures()
        };
        // A batch takes 10 us; sampled 10 us, and then 18 us.
        assert_eq!(diagnosed(with_overlap(3.6)).bound, "kernels, 100%");
        let slowed = diagnosed(with_overlap(2.0));
        assert_eq!(slowed.bound, "host calls, 65%");
        assert_eq!(timestamp_slowdown(&slowed), Some(1.8));
        let unknown = diagnosed(Figures {
            host_ns: vec![1_000.0; 3],
            ..with_overlap(2.0)
        });
        assert_eq!(
            (&*unknown.bound, &*unknown.flags),
            ("not determined", &[][..])
        );
        let why = why_not_determined(&unknown, &PointFacts::default()).unwrap();
        assert!(why.contains("of host calls, is 10%"), "{why}");
        assert!(why.contains("take 1.80 times as long"), "{why}");
    }

    #[test]
    fn the_same_work_with_one_slot_shows_that_latency_bounds() {
        let point = PointFacts {
            slots: 4,
            ..PointFacts::default()
        };
        let with_one_slot = |host_ns| Figures {
            amounts: Amounts::default(),
            host_ns: vec![host_ns; 3],
            one_slot_ns: Some(33_200.0),
            ..figures()
        };
        // 33.2 us in four slots are 8.3 us of the 10 us per batch.
        let idle = bound_words(&with_one_slot(2_000.0), &point);
        assert_eq!(idle, "batch latency, 83%");
        // A limit that is nearly reached comes first.
        assert_eq!(
            bound_words(&with_one_slot(8_100.0), &point),
            "host calls, 81%"
        );
    }

    #[test]
    fn no_share_exceeds_the_whole() {
        let mut diagnosed = diagnosed(figures());
        let cached = Share {
            limit: "host memory".to_owned(),
            share: 3.2,
            ..diagnosed.shares[0].clone()
        };
        diagnosed.shares.push(cached);
        diagnosed.host_ns = vec![10_200.0; 3];
        let activities = activities(&diagnosed, &PointFacts::default());
        let names: Vec<&str> = activities.iter().map(|activity| activity.name).collect();
        assert_eq!(names, ["host calls", "upload link"]);
        assert_eq!(activities[0].share, 1.0);
    }

    #[test]
    fn unstable_measurements_get_warnings() {
        let flag = |figures: Figures| diagnosed(figures).flags.join("; ");
        let slept = flag(Figures {
            busy: 0.5,
            ..figures()
        });
        assert!(slept.contains("50%"), "{slept}");
        let unexplained = flag(Figures {
            amounts: Amounts::default(),
            stages: Some(Stages::default()),
            ..figures()
        });
        assert!(unexplained.contains("20%"), "{unexplained}");
        let spread = flag(Figures {
            period_ns: vec![10_000.0, 14_000.0, 30_000.0, 9_000.0, 11_000.0],
            ..figures()
        });
        assert!(spread.contains("36%"), "{spread}");
        let one = flag(Figures {
            period_ns: vec![10_000.0, 10_100.0, 30_000.0, 10_000.0, 10_000.0],
            ..figures()
        });
        assert_eq!(one, "", "one outlier does not move the quartiles");
        let late = |count| {
            flag(Figures {
                open: vec![Open {
                    load: 0.8,
                    arrivals_per_s: 1_000.0,
                    done_per_s: 700.0,
                    latency: Latency {
                        count,
                        ..Latency::default()
                    },
                }],
                ..figures()
            })
        };
        assert!(late(1_000).contains("80%") && late(1_000).contains("70%"));
        assert_eq!(late(20), "", "too few arrivals");
        let disagrees = flag(Figures {
            references: vec![Reference {
                name: "other".to_owned(),
                agrees: Some(false),
                ..Reference::default()
            }],
            ..figures()
        });
        assert!(disagrees.contains("other"), "{disagrees}");
    }
}
