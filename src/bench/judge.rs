//! What bounds a point, and what makes its figures doubtful.

use super::limits::median;
use super::record::{Figures, Limits, PointFacts, Share};

/// Where more of the period than this is explained by nothing, something is wrong.
const UNEXPLAINED_MAX: f64 = 0.5;

/// A thread that spins is on a core; less than this, and something sleeps.
const BUSY_MIN: f64 = 0.9;

/// Repetitions that differ by more tell little.
const SPREAD_MAX: f64 = 0.2;

/// An open loop that gets less than this of what arrives has no steady state.
const KEPT_UP_MIN: f64 = 0.95;

/// Of fewer arrivals the last one's latency is much of the time.
const TELLING: u64 = 200;

/// What the figures are judged by.
pub(super) struct Facts<'a> {
    pub(super) point: &'a PointFacts,
    pub(super) limits: &'a Limits,
    /// Whether uploads and downloads are copies at all.
    pub(super) on_device: bool,
}

/// Fills in shares, what bounds it, and flags.
pub(super) fn judge(figures: &mut Figures, facts: &Facts<'_>) {
    let period_ns = median(&mut figures.period_ns.clone());
    figures.shares = shares(figures, facts, period_ns);
    let parts = parts(figures, facts, period_ns);
    let largest = parts.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let (name, share) = largest.copied().unwrap_or(("nothing", 0.0));
    let explained = share >= 1.0 - UNEXPLAINED_MAX;
    figures.bound = match (explained, &figures.stages) {
        (true, _) => format!("{name}, {:.0}%", 100.0 * share.min(1.0)),
        (false, Some(_)) => "nothing that was measured".to_owned(),
        // Of this front the stages are not known.
        (false, None) => String::new(),
    };
    figures.flags = flags(figures, facts, explained, share);
}

/// Shares of the machine's limits, the largest first.
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
        // Each way by itself, the most that there can be.
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

/// Bytes that the kernels of a batch read and write, where the workload tells.
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

/// What takes time, each as a share of the period.
fn parts(figures: &Figures, facts: &Facts<'_>, period_ns: f64) -> Vec<(&'static str, f64)> {
    let mut parts = vec![(
        "host calls",
        median(&mut figures.host_ns.clone()) / period_ns,
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
        parts.push((name, share.share));
    }
    if let Some(stages) = &figures.stages {
        parts.push(("uploads", stages.upload_ns / period_ns));
        parts.push(("kernels", stages.kernels_ns / period_ns));
        parts.push(("downloads", stages.download_ns / period_ns));
        // One after the other in a slot, as where there is only one.
        let sum = stages.upload_ns + stages.kernels_ns + stages.download_ns;
        parts.push((
            "the stages of a slot, one after the other",
            sum / (period_ns * facts.point.slots as f64),
        ));
    }
    // Of two names of one thing the limit is said.
    parts.retain(|(_, share)| share.is_finite());
    parts
}

fn flags(figures: &Figures, facts: &Facts<'_>, explained: bool, share: f64) -> Vec<String> {
    let mut flags = Vec::new();
    let spins = facts.point.front != "engine";
    if spins && figures.busy < BUSY_MIN {
        flags.push(format!(
            "nothing ran for {} of the time, though the loop spins: something sleeps, or other \
             programs take the cores",
            percent(1.0 - figures.busy)
        ));
    }
    // Of the others the stages are not known.
    if figures.stages.is_some() && !explained {
        flags.push(format!(
            "nothing that was measured takes more than {} of the time",
            percent(share)
        ));
    }
    flags.extend(spread_flag(&figures.period_ns));
    for open in &figures.open {
        let tells = open.load < 1.0 && open.latency.count >= TELLING;
        if tells && open.done_per_s < KEPT_UP_MIN * open.arrivals_per_s {
            flags.push(format!(
                "of batches that arrive at {} of the closed loop's rate, {} are done as fast",
                percent(open.load),
                percent(open.done_per_s / open.arrivals_per_s)
            ));
        }
    }
    for reference in &figures.references {
        if reference.agrees == Some(false) {
            flags.push(format!("{} comes to other outputs", reference.name));
        }
    }
    flags
}

/// What is to be said of repetitions that differ much: the middle half of them, since
/// one that something came in between of is what the median is for.
pub(crate) fn spread_flag(period_ns: &[f64]) -> Option<String> {
    let mut sorted = period_ns.to_vec();
    let middle = median(&mut sorted);
    let last = sorted.len().checked_sub(1)?;
    let spread = (sorted[last - last / 4] - sorted[last / 4]) / middle;
    let told = || {
        format!(
            "the middle half of the repetitions differ by {}",
            percent(spread)
        )
    };
    (spread > SPREAD_MAX).then(told)
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
    fn what_is_doubtful_is_said() {
        let flag = |figures: Figures| judged(figures).flags.join("; ");
        let slept = flag(Figures {
            busy: 0.5,
            ..figures()
        });
        assert!(slept.contains("nothing ran for 50%"), "{slept}");
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
        assert!(spread.contains("differ by 36%"), "{spread}");
        let one = flag(Figures {
            period_ns: vec![10_000.0, 10_100.0, 30_000.0, 10_000.0, 10_000.0],
            ..figures()
        });
        assert_eq!(one, "", "what came in between once");
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
        assert_eq!(late(20), "", "too few to tell");
        let disagrees = flag(Figures {
            references: vec![Reference {
                name: "other".to_owned(),
                agrees: Some(false),
                ..Reference::default()
            }],
            ..figures()
        });
        assert!(
            disagrees.contains("other comes to other outputs"),
            "{disagrees}"
        );
    }
}
