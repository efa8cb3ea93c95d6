//! What bounds a point, and warnings about its figures.

use super::record::{Figures, Limits, PointFacts, Share};
use super::statistics::{median, middle};

/// The largest share of a period that may be unaccounted for without a warning.
const UNEXPLAINED_MAX: f64 = 0.5;

/// The smallest share of the time that a spinning thread runs, unless it sleeps.
const BUSY_MIN: f64 = 0.9;

/// The largest interquartile range of repetitions, as a share of their median, without a warning.
const SPREAD_MAX: f64 = 0.2;

/// The smallest share of the arrivals that an open loop in a steady state completes in time.
const KEPT_UP_MIN: f64 = 0.95;

/// Minimum number of arrivals; below it the tail dominates the mean.
const ARRIVALS_MIN: u64 = 200;

/// What a point is judged by, besides its figures.
pub(super) struct Facts<'a> {
    pub(super) point: &'a PointFacts,
    pub(super) limits: &'a Limits,
    /// Whether uploads and downloads are copies at all.
    pub(super) on_device: bool,
}

/// Fills in the shares of the limits, what bounds the point, and the warnings.
pub(super) fn judge(figures: &mut Figures, facts: &Facts<'_>) {
    let period_ns = median(&figures.period_ns).unwrap_or_default();
    figures.shares = shares(figures, facts, period_ns);
    let activities = activities(figures, facts, period_ns);
    let largest = activities.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let (name, share) = largest.copied().unwrap_or(("nothing", 0.0));
    let explained = share >= 1.0 - UNEXPLAINED_MAX;
    figures.bound = match (explained, &figures.stages) {
        (true, _) => format!("{name}, {:.0}%", 100.0 * share.min(1.0)),
        (false, Some(_)) => "nothing measured".to_owned(),
        // This front does not report its stages.
        (false, None) => String::new(),
    };
    figures.flags = warnings(figures, facts, explained, share);
}

/// The shares of the machine's limits that a point reaches, largest first.
fn shares(figures: &Figures, facts: &Facts<'_>, period_ns: f64) -> Vec<Share> {
    let (limits, amounts) = (facts.limits, figures.amounts);
    let mut shares = Vec::new();
    let mut add_rate = |limit: &str, amount: f64, of: Option<f64>, unit: &str| {
        let Some(of) = of.filter(|of| *of > 0.0) else {
            return;
        };
        let reached = amount / period_ns * 1e9;
        if amount > 0.0 && reached.is_finite() {
            shares.push(Share {
                limit: limit.to_owned(),
                share: reached / of,
                reached,
                of,
                unit: unit.to_owned(),
            });
        }
    };
    if facts.on_device {
        // Against the rate of one way alone, which is the higher.
        add_rate(
            "upload",
            amounts.upload_bytes,
            limits.upload_bytes_per_s,
            "B/s",
        );
        add_rate(
            "download",
            amounts.download_bytes,
            limits.download_bytes_per_s,
            "B/s",
        );
        add_rate("arithmetic", amounts.fma, limits.fma_per_s, "FMA/s");
    } else {
        add_rate(
            "host memory",
            kernel_bytes(facts.point),
            limits.host_bytes_per_s,
            "B/s",
        );
    }
    let launches_ns = match (
        facts.point.mode.as_str(),
        limits.launch_ns,
        limits.graph_launch_ns,
    ) {
        ("stream", Some(launch_ns), _) => Some(launch_ns * facts.point.kernels as f64),
        (_, _, Some(graph_ns)) => Some(graph_ns),
        _ => None,
    };
    if let Some(of) = launches_ns.filter(|ns| *ns > 0.0) {
        shares.push(Share {
            limit: "launches".to_owned(),
            share: of / period_ns,
            reached: period_ns,
            of,
            unit: "ns".to_owned(),
        });
    }
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    shares
}

/// Bytes that the kernels of a batch read and write; 0 if the workload does not define it.
fn kernel_bytes(point: &PointFacts) -> f64 {
    let between = point.batch as f64 * 4.0;
    match point.workload.as_str() {
        // Each step reads a vector and writes one; the first reads what was uploaded.
        "launch" | "copy" => {
            point.upload_bytes as f64 + (2 * point.kernels) as f64 * between - between
        }
        _ => 0.0,
    }
}

/// The activities that take time, each as a share of the period. They overlap.
fn activities(figures: &Figures, facts: &Facts<'_>, period_ns: f64) -> Vec<(&'static str, f64)> {
    let mut activities = vec![(
        "host calls",
        median(&figures.host_ns).unwrap_or_default() / period_ns,
    )];
    for share in &figures.shares {
        let name = match share.limit.as_str() {
            "upload" => "upload link",
            "download" => "download link",
            "arithmetic" => "arithmetic",
            "host memory" => "host memory",
            // Part of the host's calls.
            _ => continue,
        };
        activities.push((name, share.share));
    }
    if let Some(stages) = &figures.stages {
        activities.push(("uploads", stages.upload_ns / period_ns));
        activities.push(("kernels", stages.kernels_ns / period_ns));
        activities.push(("downloads", stages.download_ns / period_ns));
        // What a single slot waits for: its stages do not overlap each other.
        let sum = stages.upload_ns + stages.kernels_ns + stages.download_ns;
        activities.push((
            "the stages of a slot in sequence",
            sum / (period_ns * facts.point.slots as f64),
        ));
    }
    activities.retain(|(_, share)| share.is_finite());
    activities
}

fn warnings(figures: &Figures, facts: &Facts<'_>, explained: bool, share: f64) -> Vec<String> {
    let mut warnings = Vec::new();
    let spins = facts.point.front != "engine";
    if spins && figures.busy < BUSY_MIN {
        warnings.push(format!(
            "the submitting thread spins, but was not running {} of the time: it slept, or other \
             programs took its core",
            percent(1.0 - figures.busy)
        ));
    }
    // Only some fronts report their stages.
    if figures.stages.is_some() && !explained {
        warnings.push(format!(
            "no measured activity accounts for more than {} of the time",
            percent(share)
        ));
    }
    warnings.extend(spread_warning(&figures.period_ns));
    for open in &figures.open {
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

/// Warns when the interquartile range of the repetitions exceeds [`SPREAD_MAX`].
pub(crate) fn spread_warning(period_ns: &[f64]) -> Option<String> {
    let mut sorted = period_ns.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let median = middle(&sorted)?;
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
    use crate::bench::record::{Amounts, Latency, Open, Reference, Stages};

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

    fn judged(mut figures: Figures) -> Figures {
        let point = PointFacts {
            front: "ring".to_owned(),
            mode: "graph".to_owned(),
            slots: 4,
            ..PointFacts::default()
        };
        let limits = Limits {
            upload_bytes_per_s: Some(50e9),
            graph_launch_ns: Some(1_500.0),
            ..Limits::default()
        };
        let facts = Facts {
            point: &point,
            limits: &limits,
            on_device: true,
        };
        judge(&mut figures, &facts);
        figures
    }

    #[test]
    fn the_largest_share_bounds() {
        let judged = judged(figures());
        assert_eq!(judged.bound, "upload link, 80%");
        let limits: Vec<&str> = judged.shares.iter().map(|share| &*share.limit).collect();
        assert_eq!(limits, ["upload", "launches"]);
        assert_eq!(judged.shares[0].reached, 40e9);
        assert!(judged.flags.is_empty(), "{:?}", judged.flags);
    }

    #[test]
    fn stages_explain_what_one_slot_waits_for() {
        let stages = Stages {
            upload_ns: 5_000.0,
            kernels_ns: 30_000.0,
            download_ns: 1_000.0,
            ..Stages::default()
        };
        let of_slots = Figures {
            amounts: Amounts::default(),
            stages: Some(stages),
            ..figures()
        };
        assert_eq!(judged(of_slots).bound, "kernels, 100%");
    }

    #[test]
    fn unstable_measurements_get_warnings() {
        let flag = |figures: Figures| judged(figures).flags.join("; ");
        let slept = flag(Figures {
            busy: 0.5,
            ..figures()
        });
        assert!(slept.contains("was not running 50%"), "{slept}");
        let unexplained = flag(Figures {
            amounts: Amounts::default(),
            stages: Some(Stages::default()),
            ..figures()
        });
        assert!(
            unexplained.contains("more than 20% of the time"),
            "{unexplained}"
        );
        let spread = flag(Figures {
            period_ns: vec![10_000.0, 14_000.0, 30_000.0, 9_000.0, 11_000.0],
            ..figures()
        });
        assert!(spread.contains("is 36% of their median"), "{spread}");
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
        assert!(
            disagrees.contains("the outputs of other differ"),
            "{disagrees}"
        );
    }
}
