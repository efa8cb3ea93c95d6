//! A made-up run of the benchmark with figures like those of an H200. It has every kind of record
//! that a report has to show, and is the same each time.
#![allow(dead_code, reason = "each test binary uses its part")]

use crate::random::Random;
use tapeloop_bench::record::{
    Amounts, FORMAT, Figures, Latency, MachineLimits, Open, Outcome, PointFacts, Record, Reference,
    Run, Share, SpanFacts, Stages,
};

const UP: f64 = 55.3e9;
const DOWN: f64 = 55.0e9;
const BOTH: f64 = 50.1e9;
const FMA: f64 = 30.4e12;

pub(crate) const REPETITIONS: usize = 9;

fn around(random: &mut Random, median: f64, noise: f64) -> Vec<f64> {
    let mut one = || median * (1.0 + noise * (random.unit() + random.unit() - 1.0));
    (0..REPETITIONS).map(|_| one()).collect()
}

fn run() -> Run {
    Run {
        id: "2026-03-14T09:26:53-1f0c".to_owned(),
        started_unix_s: 1_773_480_413.0,
        version: "0.1.0".to_owned(),
        commit: "9067787c2d41".to_owned(),
        backend: "cuda".to_owned(),
        device: "NVIDIA H200".to_owned(),
        driver: "580.95.05".to_owned(),
        cpu: "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz".to_owned(),
        cores: 16,
        os: "Linux 6.8.0-1021".to_owned(),
        config: "[engine]\nslots = 4\nmode = \"graph\"\n\n[batch]\nresidues = 16384\n".to_owned(),
        limits: MachineLimits {
            upload_bytes_per_s: Some(UP),
            download_bytes_per_s: Some(DOWN),
            upload_both_bytes_per_s: Some(BOTH),
            download_both_bytes_per_s: Some(49.8e9),
            device_bytes_per_s: Some(3.92e12),
            host_bytes_per_s: Some(188e9),
            launch_ns: Some(3_310.0),
            graph_launch_ns: Some(1_430.0),
            fma_per_s: Some(FMA),
        },
        is_partial: false,
    }
}

/// The base point of a workload of made-up batches.
fn facts(workload: &str, mode: &str) -> PointFacts {
    let launch = workload == "launch";
    PointFacts {
        workload: workload.to_owned(),
        axis: "base".to_owned(),
        front: "ring".to_owned(),
        mode: mode.to_owned(),
        removed: None,
        transfer: "copy".to_owned(),
        slots: 4,
        batch: if launch { 4096 } else { 2_097_152 },
        unit: "elements".to_owned(),
        kernels: if launch { 12 } else { 1 },
        rounds: 0,
        buckets: 1,
        fill: "full".to_owned(),
        input: String::new(),
        threads: 1,
        upload_bytes: if launch { 16_384 } else { 8_388_608 },
        download_bytes: if launch { 16_384 } else { 8_388_608 },
    }
}

fn sized(mut facts: PointFacts, bytes: u64) -> PointFacts {
    facts.axis = "batch".to_owned();
    facts.batch = bytes / 4;
    (facts.upload_bytes, facts.download_bytes) = (bytes, bytes);
    facts
}

/// Nanoseconds per batch: the larger of the host's launches and the transfers counts most.
fn period(facts: &PointFacts) -> f64 {
    let host = match facts.mode.as_str() {
        "stream" => 9_000.0 + 4_250.0 * facts.kernels as f64,
        "resident" => 8_000.0 + 160.0 * facts.kernels as f64,
        _ => 7_800.0 + 155.0 * facts.kernels as f64,
    };
    let link = facts.upload_bytes as f64 / BOTH * 1e9;
    let slots = 1.0 + 1.4 / facts.slots.max(1) as f64 - 0.35;
    (host.powi(4) + link.powi(4)).powf(0.25) * slots
}

fn latency(median: f64, tail: f64, count: u64) -> Latency {
    let latency_at = |share: f64| {
        let far = -(1.0 - share).max(0.5 / count as f64).ln() / std::f64::consts::LN_2;
        (median * (0.9 + 0.1 * far) * (1.0 + tail * (far / 8.0).powi(3))).round() as u64
    };
    let steps = (0..60).map(|step| 1.0 - 10_f64.powf(-f64::from(step) / 10.0));
    Latency {
        count,
        p50_ns: latency_at(0.5),
        p90_ns: latency_at(0.9),
        p99_ns: latency_at(0.99),
        max_ns: latency_at(1.0),
        curve: steps
            .chain([1.0])
            .map(|share| (share, latency_at(share)))
            .collect(),
    }
}

fn share(limit: &str, reached: f64, limit_value: f64, unit: &str) -> Share {
    Share {
        limit: limit.to_owned(),
        share: reached / limit_value,
        reached,
        of: limit_value,
        unit: unit.to_owned(),
    }
}

fn figures(random: &mut Random, facts: &PointFacts, noise: f64) -> Figures {
    let period = period(facts);
    let (up, down) = (facts.upload_bytes as f64, facts.download_bytes as f64);
    let host = if facts.mode == "stream" {
        period * 0.96
    } else {
        1_900.0
    };
    let rate = 1e9 / period;
    let launches = if facts.mode == "stream" {
        3_310.0 * facts.kernels as f64
    } else {
        1_430.0
    };
    let mut shares = vec![
        share("upload", up * rate, BOTH, "B/s"),
        share("download", down * rate, 49.8e9, "B/s"),
        share("launches", launches, period, "ns"),
        share(
            "device memory",
            2.0 * up * rate * facts.kernels as f64,
            3.92e12,
            "B/s",
        ),
    ];
    shares.sort_by(|one, other| other.share.total_cmp(&one.share));
    Figures {
        period_ns: around(random, period, noise),
        batches: 90_000,
        amounts: Amounts {
            upload_bytes: up,
            download_bytes: down,
            ..Amounts::default()
        },
        closed: latency(period * 3.4, 0.6, 90_000),
        open: Vec::new(),
        host_ns: around(random, host, noise),
        calls: if facts.mode == "stream" {
            facts.kernels as f64 + 3.0
        } else {
            2.0
        },
        stages: Some(Stages {
            upload_ns: 1_900.0 + up / UP * 1e9,
            kernels_ns: 2_100.0 * facts.kernels as f64,
            download_ns: 1_800.0 + down / DOWN * 1e9,
            overlap: 2.1,
            batches: 64,
        }),
        busy: 1.02,
        bound: format!("bound by {}", shares[0].limit),
        shares,
        ..Figures::default()
    }
}

fn opens(median: f64, period: f64) -> Vec<Open> {
    let open_at = |load: f64| Open {
        load,
        arrivals_per_s: load * 1e9 / period,
        done_per_s: load * 1e9 / period,
        latency: latency(
            median * (0.5 + 0.25 / (1.0 - load)),
            0.4 / (1.0 - load),
            40_000,
        ),
    };
    [0.3, 0.5, 0.7, 0.9].into_iter().map(open_at).collect()
}

fn spans(facts: &PointFacts) -> Vec<SpanFacts> {
    let mut spans = Vec::new();
    let period = period(facts);
    let up = 1_900.0 + facts.upload_bytes as f64 / UP * 1e9;
    for batch in 0..12_u64 {
        let start = batch as f64 * period;
        let mut stage_start = start;
        let mut add = |stage: &str, from: f64, long: f64| {
            spans.push(SpanFacts {
                slot: batch as usize % facts.slots,
                batch: batch + 1_000,
                stage: stage.to_owned(),
                start_ns: from as u64,
                end_ns: (from + long) as u64,
            });
        };
        add("submit", start, 1_900.0);
        stage_start += 2_400.0;
        let kernels = 24_000.0_f64.min(period * 2.0);
        for (stage, long) in [("upload", up), ("kernels", kernels), ("download", up)] {
            add(stage, stage_start, long);
            stage_start += long + 300.0;
        }
    }
    spans
}

fn reference(random: &mut Random, name: &str, period: f64, agrees: Option<bool>) -> Reference {
    Reference {
        name: name.to_owned(),
        period_ns: around(random, period, 0.03),
        agrees,
        note: String::new(),
    }
}

fn references(random: &mut Random, facts: &PointFacts) -> Vec<Reference> {
    let link = facts.upload_bytes as f64 / BOTH * 1e9;
    let with_link = |host: f64| (host.powi(4) + link.powi(4)).powf(0.25);
    vec![
        reference(
            random,
            "PyTorch 2.9.1, eager, 4 streams",
            with_link(123_000.0),
            Some(true),
        ),
        reference(
            random,
            "PyTorch 2.9.1, CUDA graphs, 4 streams",
            with_link(21_000.0),
            Some(true),
        ),
        reference(random, "CUDA C++ by hand", with_link(9_750.0), Some(true)),
    ]
}

/// A point on features of structures, with batches of this many residues.
fn features(random: &mut Random, mode: &str, residues: u64) -> (PointFacts, Figures) {
    let mut point = facts("features", mode);
    point.front = "engine".to_owned();
    point.axis = if residues == 16_384 { "base" } else { "batch" }.to_owned();
    point.unit = "residues".to_owned();
    point.batch = residues;
    point.kernels = 14;
    point.threads = 16;
    let atoms = residues as f64 * 7.8;
    (point.upload_bytes, point.download_bytes) = (residues * 117, residues * 52);
    let period = 48_000.0 + atoms / 0.86 + if mode == "stream" { 55_000.0 } else { 0.0 };
    let mut measured = figures(random, &point, 0.02);
    measured.period_ns = around(random, period, 0.02);
    measured.amounts.structures = residues as f64 / 310.0;
    measured.amounts.residues = residues as f64 * 0.96;
    measured.amounts.atoms = atoms;
    measured.amounts.fma = atoms * 2_100.0;
    let rate = 1e9 / period;
    let moved = point.upload_bytes as f64 * rate;
    measured.shares = vec![
        share("arithmetic", measured.amounts.fma * rate, FMA, "FMA/s"),
        share("upload", moved, BOTH, "B/s"),
        share("host memory", moved * 4.0, 188e9, "B/s"),
    ];
    measured
        .shares
        .sort_by(|one, other| other.share.total_cmp(&one.share));
    measured.bound = "bound by the kernels".to_owned();
    (point, measured)
}

fn files(random: &mut Random) -> Vec<(PointFacts, Figures)> {
    type Peer = (&'static str, f64);
    let peers: [(Peer, &[Peer]); 3] = [
        (
            ("read", 25.6),
            &[
                ("Biopython 1.86", 0.09),
                ("pdbtbx 0.12", 0.82),
                ("gemmi 0.7.3", 5.2),
            ],
        ),
        (
            ("contacts", 22.0),
            &[("Biotite 1.6.0, cell list", 3.1), ("MDAnalysis 2.10", 2.2)],
        ),
        (
            ("sasa_files", 2.9),
            &[
                ("FreeSASA 2.2.1", 0.17),
                ("RustSASA 0.9.2", 0.24),
                ("zsasa 0.2", 3.0),
            ],
        ),
    ];
    let mut points = Vec::new();
    for threads in [1, 16] {
        for ((workload, own_period), others) in peers {
            let mut point = facts(workload, "");
            point.front = "program".to_owned();
            point.unit = "structures".to_owned();
            (point.kernels, point.batch, point.threads) = (0, 460, threads);
            let atoms = 0.96e6;
            let many = (threads as f64).powf(0.9);
            let period = |rate: f64| atoms / (rate * 1e6 * many) * 1e9;
            let references = others
                .iter()
                .map(|(name, rate)| reference(random, name, period(*rate), None));
            let references = references.collect();
            let measured = Figures {
                period_ns: around(random, period(own_period), 0.02),
                batches: 9,
                amounts: Amounts {
                    structures: 460.0,
                    atoms,
                    ..Amounts::default()
                },
                references,
                ..Figures::default()
            };
            points.push((point, measured));
        }
    }
    points
}

/// All records of the run, with the points in the order in which they would be measured.
pub(crate) fn full() -> Vec<Record> {
    let mut random = Random::new(7);
    let mut points = Vec::new();
    for mode in ["graph", "stream", "resident"] {
        let mut base = facts("launch", mode);
        let mut measured = figures(&mut random, &base, 0.015);
        measured.open = opens(period(&base) * 3.0, period(&base));
        if mode == "graph" {
            measured.spans = spans(&base);
        } else {
            base.axis = "mode".to_owned();
        }
        measured.references = references(&mut random, &base);
        points.push((base, measured));
    }
    for mode in ["graph", "stream"] {
        for power in 10..=24 {
            let point = sized(facts("launch", mode), 1 << power);
            let mut measured = figures(&mut random, &point, 0.02);
            if mode == "graph" && power % 2 == 0 {
                measured.references = references(&mut random, &point);
            }
            points.push((point, measured));
        }
        for kernels in [1, 2, 4, 8, 12, 24, 48] {
            let mut point = facts("launch", mode);
            point.axis = "kernels".to_owned();
            point.kernels = kernels;
            let measured = figures(&mut random, &point, 0.02);
            points.push((point, measured));
        }
        for power in (14..=26).step_by(2) {
            let point = sized(facts("copy", mode), 1 << power);
            points.push((point.clone(), figures(&mut random, &point, 0.01)));
        }
    }
    for slots in [1, 2, 3, 4, 8] {
        let mut point = facts("launch", "graph");
        point.axis = "slots".to_owned();
        point.slots = slots;
        points.push((point.clone(), figures(&mut random, &point, 0.02)));
    }
    let base = facts("copy", "graph");
    let mut measured = figures(&mut random, &base, 0.01);
    measured.spans = spans(&base);
    points.push((base, measured));
    for step in 0..9 {
        let mut point = facts("compute", "graph");
        point.axis = "work".to_owned();
        point.kernels = 1 << step;
        let mut measured = figures(&mut random, &point, 0.01);
        let fma = point.batch as f64 * 24.0 * f64::from(1 << (2 * step));
        let link = period(&point);
        let period = (link.powi(4) + (fma / (FMA * 0.93) * 1e9).powi(4)).powf(0.25);
        measured.period_ns = around(&mut random, period, 0.01);
        measured.amounts.fma = fma;
        points.push((point, measured));
    }
    for mode in ["graph", "stream"] {
        for power in 11..=17 {
            points.push(features(&mut random, mode, 1 << power));
        }
    }
    points.extend(files(&mut random));
    records(points)
}

/// Records of these points.
pub(crate) fn records(points: Vec<(PointFacts, Figures)>) -> Vec<Record> {
    let record = |(point, figures)| Record {
        format: FORMAT,
        run: run(),
        point,
        outcome: Outcome::Measured(Box::new(figures)),
    };
    points.into_iter().map(record).collect()
}

/// The record of one point, with its periods and no other figures.
pub(crate) fn single() -> Vec<Record> {
    let point = facts("launch", "graph");
    let figures = Figures {
        period_ns: vec![9.7e3, 9.8e3, 9.6e3],
        ..Figures::default()
    };
    records(vec![(point, figures)])
}

/// The figures of a record that has some.
pub(crate) fn figures_of(record: &mut Record) -> &mut Figures {
    match &mut record.outcome {
        Outcome::Measured(figures) => figures,
        Outcome::Refused(reason) => panic!("refused: {reason}"),
    }
}

/// The full run with a point refused and two points flagged.
pub(crate) fn troubled() -> Vec<Record> {
    let mut records = full();
    records[5].outcome =
        Outcome::Refused("element 1,337 of batch 12 is 3.25, not 3.5, after the run".to_owned());
    for place in [8, 9] {
        let flag = "The clock fell from 1,980 to 1,755 MHz during the repetitions.";
        figures_of(&mut records[place]).flags.push(flag.to_owned());
    }
    records
}
