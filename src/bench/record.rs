//! What a benchmark writes down: one line of JSON for each point, complete in itself,
//! so that a history is a file that only grows.

use crate::error::{Context, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::ops::{Add, Mul};
use std::path::Path;

/// The format of the lines.
pub const FORMAT: u32 = 1;

/// One point, where and when it was measured, and what came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`].
    pub format: u32,
    /// What all points of a run share.
    pub run: Run,
    /// What was measured.
    pub point: PointFacts,
    /// What came out.
    pub outcome: Outcome,
}

/// A run of the benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Tells a run from any other.
    pub id: String,
    /// When it started, in seconds since 1970.
    pub started_unix_s: f64,
    /// Of tapeloop.
    pub version: String,
    /// The commit that the program was built of, where that is known.
    pub commit: String,
    /// `cuda` or `cpu`.
    pub backend: String,
    /// The device's product name.
    pub device: String,
    /// The driver's version; empty on the CPU.
    pub driver: String,
    /// The processor's product name.
    pub cpu: String,
    /// Cores that the process may use.
    pub cores: usize,
    /// Kernel and its version.
    pub os: String,
    /// The config as resolved, in TOML.
    pub config: String,
    /// What the machine can do, measured in this run.
    pub limits: Limits,
}

/// What the machine can do; `None` for what it has not or was not measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Pinned memory to the device, nothing else going on, in bytes a second.
    pub upload_bytes_per_s: Option<f64>,
    /// The other way.
    pub download_bytes_per_s: Option<f64>,
    /// To the device while as much comes back, in bytes a second.
    pub upload_both_bytes_per_s: Option<f64>,
    /// Back while as much goes up.
    pub download_both_bytes_per_s: Option<f64>,
    /// Within the device's memory, bytes read and written a second.
    pub device_bytes_per_s: Option<f64>,
    /// Within the host's memory by all threads, bytes read and written a second.
    pub host_bytes_per_s: Option<f64>,
    /// Host time of a kernel launch, in nanoseconds.
    pub launch_ns: Option<f64>,
    /// Host time of a launch of a graph of 12 kernels, in nanoseconds.
    pub graph_launch_ns: Option<f64>,
    /// Fused multiply-adds a second, in single precision.
    pub fma_per_s: Option<f64>,
}

/// What was measured, in names. Two records are of the same point if all but `axis`
/// is the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PointFacts {
    /// `launch`, `copy`, `compute`, `features`; or a part of the work on files, as
    /// other programs do it: `read`, `contacts`, `sasa_kernel`, `sasa_files`, `all_files`.
    pub workload: String,
    /// Which setting this varies from the base point of its workload; `base` there.
    pub axis: String,
    /// Who drives it: `ring`, `pipeline`, `engine`, or `program` for the whole program.
    pub front: String,
    /// `graph`, `stream`, `auto`.
    pub mode: String,
    /// `capture`, `explicit`.
    pub build: String,
    /// `batch`, `kernels`.
    pub scope: String,
    /// `per_slot`, `per_stage`.
    pub streams: String,
    /// `copy`, `mapped`, `auto`.
    pub transfer: String,
    /// Batches on the way at once.
    pub slots: usize,
    /// The largest batch, in units of the workload.
    pub batch: u64,
    /// That unit: `elements`, `residues`, `structures`.
    pub unit: String,
    /// Kernel launches a batch.
    pub kernels: usize,
    /// Rounds of the one kernel of `compute`; 0 elsewhere.
    #[serde(default)]
    pub rounds: usize,
    /// Sizes of batches that graphs are made for.
    pub buckets: usize,
    /// How full batches are: `full`, or `mixed` from an eighth to all.
    pub fill: String,
    /// What it is over, where that is no matter of the other settings:
    /// `24 structures, 53312 atoms`.
    #[serde(default)]
    pub input: String,
    /// Threads of the host that compute, pack and read.
    pub threads: usize,
    /// What a full batch copies to the device.
    pub upload_bytes: u64,
    /// And back.
    pub download_bytes: u64,
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Figures, of outputs that were right before and after.
    Measured(Box<Figures>),
    /// None, and why.
    Refused(String),
}

/// Figures of a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Nanoseconds a batch, in a closed loop; of each repetition, in their order.
    pub period_ns: Vec<f64>,
    /// Batches of all repetitions.
    pub batches: u64,
    /// What a batch holds on average.
    pub amounts: Amounts,
    /// From a batch's submission to its end, in the closed loop.
    pub closed: Latency,
    /// The same from its arrival, where batches arrive at a set rate.
    pub open: Vec<Open>,
    /// Host time of a submission, in nanoseconds; of each repetition.
    pub host_ns: Vec<f64>,
    /// Driver calls a batch.
    pub calls: f64,
    /// Time on the device by stage.
    pub stages: Option<Stages>,
    /// Time that the thread which submits was on a core, or on the CPU backend all threads,
    /// by the time that went by; of the best repetition. It spins while it waits, so below
    /// 1 something slept.
    pub busy: f64,
    /// What of its limits it reaches, the largest share first.
    pub shares: Vec<Share>,
    /// What bounds it, in words.
    pub bound: String,
    /// What mode auto chose, a sentence for each bucket.
    #[serde(default)]
    pub chosen: Vec<String>,
    /// What makes the figures doubtful, in sentences.
    pub flags: Vec<String>,
    /// Other programs, measured between the repetitions.
    pub references: Vec<Reference>,
    /// Some batches in a row, slot by slot and stage by stage; of base points.
    pub spans: Vec<SpanFacts>,
}

/// What a batch holds on average; zero where that is not its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Amounts {
    /// Structures.
    pub structures: f64,
    /// Residues.
    pub residues: f64,
    /// Atoms.
    pub atoms: f64,
    /// Bytes that copies move to the device.
    pub upload_bytes: f64,
    /// And back.
    pub download_bytes: f64,
    /// Fused multiply-adds.
    pub fma: f64,
}

impl Add for Amounts {
    type Output = Amounts;

    fn add(self, other: Amounts) -> Amounts {
        Amounts {
            structures: self.structures + other.structures,
            residues: self.residues + other.residues,
            atoms: self.atoms + other.atoms,
            upload_bytes: self.upload_bytes + other.upload_bytes,
            download_bytes: self.download_bytes + other.download_bytes,
            fma: self.fma + other.fma,
        }
    }
}

impl Mul<f64> for Amounts {
    type Output = Amounts;

    fn mul(self, factor: f64) -> Amounts {
        Amounts {
            structures: self.structures * factor,
            residues: self.residues * factor,
            atoms: self.atoms * factor,
            upload_bytes: self.upload_bytes * factor,
            download_bytes: self.download_bytes * factor,
            fma: self.fma * factor,
        }
    }
}

/// Latencies in nanoseconds, kept to three digits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How many.
    pub count: u64,
    /// Half of them are no longer.
    pub p50_ns: u64,
    /// Nine of ten.
    pub p90_ns: u64,
    /// 99 of 100.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Their distribution: shares from 0 to 1, rising, and the latency that each does
    /// not exceed.
    pub curve: Vec<(f64, u64)>,
}

/// Batches that arrive at a set rate, whether or not a slot is free.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Open {
    /// The rate by that of the closed loop.
    pub load: f64,
    /// Arrivals a second, at random as in a Poisson process, the same ones each time.
    pub arrivals_per_s: f64,
    /// Batches done a second.
    pub done_per_s: f64,
    /// From arrival to end.
    pub latency: Latency,
}

/// Time on the device by stage, in nanoseconds a batch: medians over some batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stages {
    /// Uploads.
    pub upload_ns: f64,
    /// Kernels, with what else the graph holds.
    pub kernels_ns: f64,
    /// Downloads.
    pub download_ns: f64,
    /// All three of all batches, by the time from the first to the last: 1 is one
    /// after the other, 3 all three always.
    pub overlap: f64,
    /// How many batches.
    pub batches: usize,
}

/// A share of a limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Which: `upload`, `download`, `device memory`, `host memory`, `launches`, `arithmetic`.
    pub limit: String,
    /// Of it, 0 to 1.
    pub share: f64,
    /// What was reached.
    pub reached: f64,
    /// Of what.
    pub of: f64,
    /// The unit of both: `B/s`, `FMA/s`, `ns`.
    pub unit: String,
}

/// Another program at the same work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// Its name and version.
    pub name: String,
    /// Nanoseconds a batch; of each repetition, in their order.
    pub period_ns: Vec<f64>,
    /// Whether its outputs are the same in every bit; `None` where they are not of a
    /// kind to compare.
    pub agrees: Option<bool>,
    /// What else there is to say.
    pub note: String,
}

/// A stretch of time on one slot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SpanFacts {
    /// Which slot.
    pub slot: usize,
    /// Which batch.
    pub batch: u64,
    /// `submit` on the host; `upload`, `kernels`, `download` on the device.
    pub stage: String,
    /// From the first span's start.
    pub start_ns: u64,
    /// As `start_ns`.
    pub end_ns: u64,
}

impl Record {
    /// The figures, if there are any.
    pub fn figures(&self) -> Option<&Figures> {
        match &self.outcome {
            Outcome::Measured(figures) => Some(figures),
            Outcome::Refused(_) => None,
        }
    }
}

/// The records of a file, line by line.
///
/// # Errors
/// A file that cannot be read, a line that is no record, with its number.
pub fn read(path: &Path) -> Result<Vec<Record>> {
    let place = || path.display().to_string();
    let text = fs::read_to_string(path).within(place)?;
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            parse(line).within(|| format!("{}, line {}", path.display(), index + 1))
        })
        .collect()
}

fn parse(line: &str) -> Result<Record> {
    let wrong = |message: String| {
        Error::config(message).fix("give a file that `tapeloop bench` wrote, by this version")
    };
    let record: Record =
        serde_json::from_str(line).map_err(|error| wrong(format!("no record: {error}")))?;
    match record.format {
        FORMAT => Ok(record),
        other => Err(wrong(format!("format {other}, not {FORMAT}"))),
    }
}

/// Adds records to a file, which is made where it is not there.
///
/// # Errors
/// A file that cannot be written.
pub fn append(path: &Path, records: &[Record]) -> Result<()> {
    let mut text = String::new();
    for record in records {
        let line = serde_json::to_string(record);
        text += &line.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
        text.push('\n');
    }
    // In one write, so that what is interrupted leaves whole lines.
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .within(|| path.display().to_string())
}
