//! The records of a benchmark: one line of JSON for each point. Each line is self-contained, so a
//! history is a file to append to.

use serde::{Deserialize, Serialize};
use std::io::Write;
use std::ops::{Add, Mul};
use std::path::Path;
use tapeloop_engine::error::{Context, Error, ErrorKind, Result};
use tapeloop_files::{Existing, open_file, open_to_write, read_text, shown};

/// The version of the format.
pub const FORMAT: u32 = 1;

/// One measured point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The version, [`FORMAT`].
    pub format: u32,
    /// The run.
    pub run: Run,
    /// The point.
    pub point: PointFacts,
    /// The result.
    pub outcome: Outcome,
}

/// A run of the benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Identifies the run.
    pub id: String,
    /// When it started, in seconds since 1970.
    pub started_unix_s: f64,
    /// The version of tapeloop.
    pub version: String,
    /// The commit that the program was built from; empty if unknown.
    pub commit: String,
    /// `cuda` or `cpu`.
    pub backend: String,
    /// The product name of the device, or of the devices: `2 x NVIDIA H200`.
    pub device: String,
    /// The driver's version; empty on the CPU.
    pub driver: String,
    /// The processor's product name.
    pub cpu: String,
    /// Cores that the process may use.
    pub cores: usize,
    /// The operating system's kernel and its version.
    pub os: String,
    /// The resolved config, in TOML.
    pub config: String,
    /// The limits of the machine, measured in this run.
    pub limits: MachineLimits,
    /// Whether it was stopped before its last point. A history does not tell.
    #[serde(skip)]
    pub is_partial: bool,
}

/// The limits of a machine. The limits of a device are those of the first device. A limit that was
/// not measured or does not apply is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineLimits {
    /// Upload from pinned memory alone, in bytes per second.
    pub upload_bytes_per_s: Option<f64>,
    /// Download to pinned memory alone, in bytes per second.
    pub download_bytes_per_s: Option<f64>,
    /// Upload during a download of the same size, in bytes per second.
    pub upload_both_bytes_per_s: Option<f64>,
    /// Download during an upload of the same size, in bytes per second.
    pub download_both_bytes_per_s: Option<f64>,
    /// Copies within device memory: bytes read and written per second.
    pub device_bytes_per_s: Option<f64>,
    /// Copies within host memory by all threads: bytes read and written per second.
    pub host_bytes_per_s: Option<f64>,
    /// Host time of a kernel launch, in nanoseconds.
    pub launch_ns: Option<f64>,
    /// Host time of launching a graph of 12 kernels, in nanoseconds.
    pub graph_launch_ns: Option<f64>,
    /// Fused multiply-adds per second, in single precision.
    pub fma_per_s: Option<f64>,
}

/// The settings of a point. Two records are of the same point if all fields but `axis` are equal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PointFacts {
    /// `launch`, `copy`, `compute` or `features`; or work on files on the CPU, that other programs
    /// do too: `read`, `contacts`, `sasa_kernel`, `sasa_files` or `all_files`; or whole runs on a
    /// GPU: `sasa_files_cuda` or `all_files_cuda`.
    pub workload: String,
    /// The setting that is varied from the base point of the workload, the first one if several are; `base` at
    /// that point, and at all work on files.
    pub axis: String,
    /// The front: `ring`, `pipeline`, `engine`, or `program` for the whole program.
    pub front: String,
    /// `graph`, `stream`, `resident`.
    pub mode: String,
    /// A setting of an earlier version, such as `scope`, whose value in this point is no longer
    /// supported. `None` for a point that this version can measure.
    #[serde(skip)]
    pub removed: Option<&'static str>,
    /// `copy`, `mapped`, `auto`.
    pub transfer: String,
    /// The number of slots.
    pub slots: usize,
    /// The largest batch, in `unit`.
    pub batch: u64,
    /// The unit of `batch`: `elements`, `residues` or `files`.
    pub unit: String,
    /// Kernel launches per batch.
    pub kernels: usize,
    /// Rounds of the kernel of `compute`; 0 for other workloads.
    #[serde(default)]
    pub rounds: usize,
    /// The number of buckets.
    pub buckets: usize,
    /// How full batches are: `full`, or `mixed` from one eighth to full.
    pub fill: String,
    /// The input, such as `24 structures, 53312 atoms`; empty for synthetic workloads.
    #[serde(default)]
    pub input: String,
    /// The number of host threads that compute, pack and read.
    pub threads: usize,
    /// Bytes uploaded for a full batch.
    pub upload_bytes: u64,
    /// Bytes downloaded for a full batch.
    pub download_bytes: u64,
}

impl PointFacts {
    /// Whether the size of a batch is given in bytes: that of plain elements, whose uploads follow from it. A point
    /// that was refused before its workload was recorded has no bytes.
    pub(crate) fn is_sized_in_bytes(&self) -> bool {
        self.unit == "elements" && self.upload_bytes > 0
    }
}

/// The result of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The figures. The outputs were right before and after.
    Measured(Box<Figures>),
    /// The reason why there are no figures.
    Refused(String),
}

/// Figures of a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Nanoseconds per batch in a closed loop, for each repetition in order.
    pub period_ns: Vec<f64>,
    /// The number of batches in all repetitions.
    pub batches: u64,
    /// What a batch holds on average.
    pub amounts: Amounts,
    /// Latencies in the closed loop, from submission to the end of the batch.
    pub closed: Latency,
    /// Open loops, in which batches arrive at a set rate.
    pub open: Vec<Open>,
    /// Host time of a submission in nanoseconds, for each repetition.
    pub host_ns: Vec<f64>,
    /// Driver calls per batch.
    pub calls: f64,
    /// Time on the device, by stage.
    pub stages: Option<Stages>,
    /// CPU time divided by wall time in the best repetition. The CPU time is that of the submitting
    /// thread for a ring on a GPU, else of all threads. The thread of a ring or a pipeline spins while it
    /// waits, so less than 1 means that it slept or that another program took its core.
    pub busy: f64,
    /// Processor time by the kind of work, for whole runs from files to tables; empty for other
    /// points.
    #[serde(default)]
    pub cores: Vec<CoreSeconds>,
    /// The shares of the limits that the point reaches, largest first.
    pub shares: Vec<Share>,
    /// What bounds the point, in words.
    pub bound: String,
    /// Warnings about the figures, in sentences.
    pub flags: Vec<String>,
    /// Other programs, which were measured between the repetitions.
    pub references: Vec<Reference>,
    /// The timeline of some consecutive batches; empty except for base points.
    pub spans: Vec<SpanFacts>,
    /// Nanoseconds per batch of the same work with one slot, where the run measured that too. The
    /// report fills it in from the other records.
    #[serde(skip)]
    pub one_slot_ns: Option<f64>,
}

/// What a batch holds on average; 0 for what its workload does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Amounts {
    /// Structures.
    pub structures: f64,
    /// Residues.
    pub residues: f64,
    /// Atoms.
    pub atoms: f64,
    /// Bytes uploaded.
    pub upload_bytes: f64,
    /// Bytes downloaded.
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

/// The fewest batches whose [`Latency::p99_ns`] is reported: of fewer it is that of the slowest.
pub(crate) const P99_BATCHES_MIN: u64 = 100;

/// Latencies in nanoseconds, kept to three digits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The number of latencies.
    pub count: u64,
    /// The median, in nanoseconds.
    pub p50_ns: u64,
    /// The 90th percentile, in nanoseconds.
    pub p90_ns: u64,
    /// The 99th percentile, in nanoseconds.
    pub p99_ns: u64,
    /// The longest latency, in nanoseconds.
    pub max_ns: u64,
    /// The distribution: rising shares of the batches, from 0 to 1, each with the latency in
    /// nanoseconds that this share does not exceed.
    pub curve: Vec<(f64, u64)>,
}

/// Batches that arrive at a set rate, whether or not a slot is free.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Open {
    /// The rate of arrivals divided by the rate of the closed loop.
    pub load: f64,
    /// Arrivals per second, from a Poisson process with a fixed seed.
    pub arrivals_per_s: f64,
    /// Batches completed per second.
    pub done_per_s: f64,
    /// Latencies, from arrival to the end of the batch.
    pub latency: Latency,
}

/// Time on the device by stage, in nanoseconds per batch: medians over some batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stages {
    /// Uploads.
    pub upload_ns: f64,
    /// Kernels and memsets.
    pub kernels_ns: f64,
    /// Downloads.
    pub download_ns: f64,
    /// The stages of all batches together, divided by the wall time: 1 if they run in sequence, 3
    /// if all three are always busy.
    pub overlap: f64,
    /// The number of batches.
    pub batches: usize,
}

/// The processor time of one kind of work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreSeconds {
    /// `reading`, `tables` or `engine`.
    pub work: String,
    /// Seconds of all threads together, for a million atoms.
    pub per_million_atoms: f64,
}

/// A share of a limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The limit: `upload`, `download`, `host memory` or `arithmetic`.
    pub limit: String,
    /// The share, 0 to 1.
    pub share: f64,
    /// The value that was reached.
    pub reached: f64,
    /// The value of the limit.
    pub of: f64,
    /// The unit of `reached` and `of`: `B/s` or `FMA/s`.
    pub unit: String,
}

/// Another program that does the same work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// Its name and version.
    pub name: String,
    /// Nanoseconds per batch, for each repetition in order.
    pub period_ns: Vec<f64>,
    /// Whether its outputs are equal in every bit; `None` if they cannot be compared.
    pub agrees: Option<bool>,
    /// What went wrong in its work at this point, for the report: `3 structures failed`; empty if nothing did.
    pub note: String,
}

/// An activity of one slot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SpanFacts {
    /// The slot.
    pub slot: usize,
    /// The batch.
    pub batch: u64,
    /// `submit` on the host; `upload`, `kernels`, `download` on the device.
    pub stage: String,
    /// The start, in nanoseconds from the start of the first span.
    pub start_ns: u64,
    /// The end, in nanoseconds from the start of the first span.
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

/// The largest history in bytes: some 65,000 records of 4 kB. A larger file is refused before it is in memory.
const HISTORY_BYTES_MAX: u64 = 1 << 28;

/// Reads the records of a file.
///
/// # Errors
/// [`ErrorKind::Io`] for a file that cannot be read, [`ErrorKind::Config`] for a line that is not a
/// record, with its number.
pub fn read(path: &Path) -> Result<Vec<Record>> {
    let place = || shown(path);
    let text = open_file(path).and_then(|file| read_text(file, HISTORY_BYTES_MAX));
    let text = text.within(place)?;
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| parse(line).within(|| format!("{}, line {}", place(), index + 1)))
        .collect()
}

/// Parses a line of a history. Settings of earlier versions that this one no longer offers are
/// noted.
///
/// # Errors
/// [`ErrorKind::Config`] for a line that is not a record of this [`FORMAT`].
fn parse(line: &str) -> Result<Record> {
    let format_error = |message: String| {
        Error::config(message).fix("give a file that `tapeloop bench` wrote, by this version")
    };
    let parse_error = |error: serde_json::Error| format_error(format!("not a record: {error}"));
    let mut record: Record = serde_json::from_str(line).map_err(parse_error)?;
    if record.format != FORMAT {
        let other = record.format;
        return Err(format_error(format!("format {other}, not {FORMAT}")));
    }
    let earlier: EarlierRecord = serde_json::from_str(line).map_err(parse_error)?;
    record.point.removed = earlier.point.removed(&record.point);
    Ok(record)
}

/// The settings of a record that only earlier versions had. They are empty in records of this
/// version.
#[derive(Deserialize)]
struct EarlierRecord {
    point: EarlierFacts,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EarlierFacts {
    build: String,
    scope: String,
    streams: String,
}

impl EarlierFacts {
    /// A setting of an earlier version under which the point was measured and which this version no longer
    /// offers; `None` if this version measures the point in the same way.
    fn removed(&self, point: &PointFacts) -> Option<&'static str> {
        // `PointSpace::for_work` has the build that each workload still has.
        let removed_build = match point.workload.as_str() {
            "features" => "capture",
            _ => "explicit",
        };
        // Versions with a scope copied whole buckets in mode stream; only what a batch fills is copied now.
        let is_earlier = !self.scope.is_empty();
        let is_stream = point.mode == "stream";
        if point.mode == "auto" {
            Some("mode = \"auto\"")
        } else if self.streams == "per_stage" {
            Some("streams")
        } else if self.scope == "kernels" {
            Some("scope")
        } else if self.build == removed_build && !is_stream {
            Some("build")
        } else if is_earlier && is_stream && point.fill == "mixed" {
            Some("mode stream with copies of the bucket's size")
        } else {
            None
        }
    }
}

/// Appends records to a file, which is created if it does not exist.
///
/// # Errors
/// [`ErrorKind::Io`] for a file that cannot be written.
pub fn append(path: &Path, records: &[Record]) -> Result<()> {
    let mut text = String::new();
    for record in records {
        let line = serde_json::to_string(record);
        text += &line.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
        text.push('\n');
    }
    // One write, so that an interruption leaves whole lines.
    let mut file = open_to_write(path, Existing::Appended)?;
    let written = file.write_all(text.as_bytes());
    written.within(|| shown(path))
}
