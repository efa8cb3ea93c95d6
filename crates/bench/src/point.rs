//! Points: a workload with its settings.
//!
//! A run varies one setting at a time from the base point of each workload, some of them in several
//! modes. A full run takes every combination.

use super::record::PointFacts;
use std::collections::HashSet;
use std::fmt;
use tapeloop_engine::error::{Error, Result};
use tapeloop_engine::replay::{Build, Mode, Policy, Transfer};

/// The largest number of points in a run that is not full: the default ones of all workloads fit, which a
/// test counts, and a list of values by mistake does not run for hours.
pub const POINTS_MAX: usize = 96;

/// What a batch does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Many small kernels: bound by launches.
    Launch,
    /// Large copies and few kernels: bound by the link to the device.
    Copy,
    /// One long kernel: bound by arithmetic.
    Compute,
    /// Features of structures.
    Features,
}

impl Work {
    /// All kinds of work.
    pub const ALL: [Work; 4] = [Work::Launch, Work::Copy, Work::Compute, Work::Features];

    /// The name in configs and reports.
    pub fn name(self) -> &'static str {
        match self {
            Work::Launch => "launch",
            Work::Copy => "copy",
            Work::Compute => "compute",
            Work::Features => "features",
        }
    }

    /// The unit of a batch's size.
    pub fn unit(self) -> &'static str {
        match self {
            Work::Features => "residues",
            _ => "elements",
        }
    }
}

/// A setting that a run varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Graph replay or stream launches.
    Mode,
    /// Copies or mapped memory.
    Transfer,
    /// The number of batches in flight at once.
    Slots,
    /// The size of a batch.
    Batch,
    /// Kernel launches per batch; for [`Work::Compute`], rounds of its kernel.
    Kernels,
    /// The number of buckets.
    Buckets,
    /// The front.
    Front,
}

impl Axis {
    /// All axes.
    pub const ALL: [Axis; 7] = [
        Axis::Mode,
        Axis::Transfer,
        Axis::Slots,
        Axis::Batch,
        Axis::Kernels,
        Axis::Buckets,
        Axis::Front,
    ];

    /// The name in configs and reports.
    pub fn name(self) -> &'static str {
        match self {
            Axis::Mode => "mode",
            Axis::Transfer => "transfer",
            Axis::Slots => "slots",
            Axis::Batch => "batch",
            Axis::Kernels => "kernels",
            Axis::Buckets => "buckets",
            Axis::Front => "front",
        }
    }
}

/// The front that runs batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Front {
    /// [`Ring`](tapeloop_engine::pipeline::Ring): batches are packed once and submitted again and again,
    /// which measures the device and the replay only.
    #[default]
    Ring,
    /// [`Pipeline`](tapeloop_engine::pipeline::Pipeline): items in and results out, on the caller's thread.
    Pipeline,
    /// [`Engine`](tapeloop_engine::Engine): items in and results out, through the engine's threads.
    Engine,
}

impl Front {
    /// All fronts.
    pub const ALL: [Front; 3] = [Front::Ring, Front::Pipeline, Front::Engine];

    /// The name in configs and reports.
    pub fn name(self) -> &'static str {
        match self {
            Front::Ring => "ring",
            Front::Pipeline => "pipeline",
            Front::Engine => "engine",
        }
    }
}

/// A point: a workload and all of its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// What a batch does.
    pub work: Work,
    /// The setting that is varied from the base point; in a full run, which varies several at once, the
    /// first of these. `None` for the base point.
    pub axis: Option<Axis>,
    /// The front.
    pub front: Front,
    /// How batches are replayed.
    pub policy: Policy,
    /// The number of batches in flight at once.
    pub slots: usize,
    /// The largest batch, in the workload's unit.
    pub batch: u32,
    /// Kernel launches per batch; for [`Work::Compute`], rounds of its kernel. Ignored by
    /// [`Work::Features`].
    pub kernels: usize,
    /// The number of buckets: the batch, its half, its quarter and so on.
    pub buckets: usize,
    /// Whether batches are one eighth to completely full, depending on the slot.
    pub is_mixed: bool,
}

impl Point {
    /// The settings as text, for records.
    pub fn facts(&self) -> PointFacts {
        let Point { policy, .. } = self;
        let is_long = self.work == Work::Compute;
        PointFacts {
            workload: self.work.name().to_owned(),
            axis: self.axis.map_or("base", Axis::name).to_owned(),
            front: self.front.name().to_owned(),
            mode: policy.mode.name().to_owned(),
            transfer: policy.transfer.name().to_owned(),
            slots: self.slots,
            batch: self.batch.into(),
            unit: self.work.unit().to_owned(),
            kernels: if is_long { 1 } else { self.kernels },
            rounds: if is_long { self.kernels } else { 0 },
            buckets: self.buckets,
            fill: if self.is_mixed { "mixed" } else { "full" }.to_owned(),
            ..PointFacts::default()
        }
    }

    /// Whether the settings are valid together: only the ring mixes batches.
    pub fn is_legal(&self) -> bool {
        self.front == Front::Ring || !self.is_mixed
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = self.facts();
        write!(
            f,
            "{} {} {}/{}, {} slots, {} {}",
            facts.workload,
            facts.front,
            facts.mode,
            facts.transfer,
            facts.slots,
            facts.batch,
            facts.unit
        )?;
        match self.work {
            Work::Features => {}
            Work::Compute => write!(f, ", {} rounds", facts.rounds)?,
            Work::Launch | Work::Copy => write!(f, ", {} kernels", facts.kernels)?,
        }
        write!(f, ", {} buckets, {}", facts.buckets, facts.fill)
    }
}

/// A base point, and the values of each setting.
#[derive(Clone, Debug)]
pub struct PointSpace {
    /// The point that variations start from.
    pub base: Point,
    /// Modes to measure.
    pub modes: Vec<Mode>,
    /// Transfers to measure.
    pub transfers: Vec<Transfer>,
    /// Numbers of slots.
    pub slots: Vec<usize>,
    /// Sizes of a batch, in the workload's unit.
    pub batches: Vec<u32>,
    /// Numbers of kernels per batch.
    pub kernels: Vec<usize>,
    /// Numbers of buckets.
    pub buckets: Vec<usize>,
    /// Fronts to measure.
    pub fronts: Vec<Front>,
}

/// The modes in which each value of `axis` is measured: those whose difference changes with it. Replay saves
/// time by the launch, so next to stream launches where batches or their launches grow; mode resident saves
/// the host's calls, so where slots or fronts change what the host does. An empty list means the mode of the
/// base point alone.
fn compared_modes(work: Work, axis: Axis) -> &'static [Mode] {
    match (work, axis) {
        (Work::Features, Axis::Batch) => &[Mode::Graph, Mode::Stream, Mode::Resident],
        (_, Axis::Batch) | (Work::Launch, Axis::Kernels) => &[Mode::Graph, Mode::Stream],
        (Work::Launch, Axis::Slots | Axis::Front) => &[Mode::Graph, Mode::Resident],
        _ => &[],
    }
}

impl PointSpace {
    /// The default space of a workload, for a GPU or for the CPU, where batches are smaller, as each takes
    /// longer. Sizes are such that the base point is bound by what its [`Work`] says.
    pub fn for_work(work: Work, on_device: bool) -> Self {
        const KIB: u32 = 1024 / size_of::<f32>() as u32;
        let pick = |device, cpu| if on_device { device } else { cpu };
        let (slots, batch, kernels) = match work {
            Work::Launch => (4, 16 * KIB, 12),
            Work::Copy => (3, pick(4096, 1024) * KIB, 4),
            Work::Compute => (3, pick(1024, 64) * KIB, pick(4096, 512)),
            Work::Features => (3, pick(16_384, 2_048), 0),
        };
        let base = Point {
            work,
            axis: None,
            front: Front::Ring,
            policy: Policy {
                // The default of `tapeloop run`.
                build: match work {
                    Work::Features => Build::Explicit,
                    _ => Build::Capture,
                },
                ..Policy::default()
            },
            slots,
            batch,
            kernels: kernels as usize,
            buckets: 1,
            is_mixed: false,
        };
        let sizes = |sizes: &[u32], unit: u32| sizes.iter().map(|size| size * unit).collect();
        PointSpace {
            modes: match work {
                // On the CPU mode resident runs as mode graph.
                Work::Launch | Work::Features if on_device => {
                    vec![Mode::Graph, Mode::Stream, Mode::Resident]
                }
                _ => vec![Mode::Graph, Mode::Stream],
            },
            transfers: match work {
                Work::Compute => Vec::new(),
                _ => vec![Transfer::Copy, Transfer::Mapped],
            },
            slots: match work {
                Work::Launch => vec![1, 2, 4, 8, pick(24, 8) as usize],
                Work::Copy | Work::Features => vec![1, 2, 3],
                Work::Compute => vec![1, 3],
            },
            batches: match work {
                Work::Launch => sizes(&[1, 4, 16, 64, 256, 1024, 4096], KIB),
                Work::Copy => sizes(&[256, 1024, pick(16_384, 4096)], KIB),
                Work::Compute => Vec::new(),
                Work::Features => sizes(&[1, pick(4, 2), pick(16, 4), pick(64, 8)], 1024),
            },
            kernels: match work {
                Work::Launch => vec![1, 3, 12, 24, 48, 96],
                Work::Compute => [64, 16, 4, 1]
                    .iter()
                    .map(|part| base.kernels / part)
                    .collect(),
                _ => Vec::new(),
            },
            buckets: match work {
                Work::Launch | Work::Copy => vec![1, 2, 4],
                Work::Features => vec![1, 4],
                Work::Compute => Vec::new(),
            },
            fronts: match work {
                Work::Launch | Work::Features => Front::ALL.to_vec(),
                _ => vec![Front::Ring],
            },
            base,
        }
    }

    /// The base point and its valid variations along `axes`, in the modes that are compared along each
    /// axis; each point once.
    pub fn one_at_a_time(&self, axes: &[Axis]) -> Vec<Point> {
        let mut points = vec![self.base];
        for &axis in axes {
            let first = self.base;
            let mut varied = self.varied(axis, &[first]);
            let compared = compared_modes(first.work, axis);
            let modes = self.modes.iter().filter(|mode| compared.contains(mode));
            let modes: Vec<Mode> = modes.copied().collect();
            varied = each(&varied, &modes, |point, mode| point.policy.mode = mode);
            for point in varied {
                let point = Point {
                    axis: Some(axis),
                    ..point
                };
                let is_new = |known: &Point| {
                    Point {
                        axis: known.axis,
                        ..point
                    } != *known
                };
                if point.is_legal() && points.iter().all(is_new) {
                    points.push(point);
                }
            }
        }
        points
    }

    /// Every valid combination along `axes`, each once. The base point keeps no axis; the others are noted
    /// under the first one, as they vary several.
    pub fn product(&self, axes: &[Axis]) -> Vec<Point> {
        let mut points = vec![self.base];
        for &axis in axes {
            points = self.varied(axis, &points);
        }
        points.retain(Point::is_legal);
        // The text of a point has every setting that an axis varies.
        let mut seen = HashSet::new();
        points.retain(|point| seen.insert(point.to_string()));
        for point in &mut points {
            point.axis = (*point != self.base)
                .then(|| axes.first().copied())
                .flatten();
        }
        points
    }

    /// Each of `points` with each value of `axis`; unchanged if the axis has no values.
    fn varied(&self, axis: Axis, points: &[Point]) -> Vec<Point> {
        match axis {
            Axis::Mode => each(points, &self.modes, |point, mode| {
                point.policy.mode = mode;
            }),
            Axis::Transfer => each(points, &self.transfers, |point, transfer| {
                point.policy.transfer = transfer;
            }),
            Axis::Slots => each(points, &self.slots, |point, slots| point.slots = slots),
            Axis::Batch => each(points, &self.batches, |point, batch| point.batch = batch),
            Axis::Kernels => each(points, &self.kernels, |point, kernels| {
                point.kernels = kernels;
            }),
            Axis::Buckets => each(points, &self.buckets, |point, buckets| {
                // Batches of one size would all be of one bucket.
                (point.buckets, point.is_mixed) = (buckets, true);
            }),
            Axis::Front => each(points, &self.fronts, |point, front| point.front = front),
        }
    }
}

/// Each of `points` with each of `values`; unchanged if there are no values.
fn each<T: Copy>(points: &[Point], values: &[T], set: impl Fn(&mut Point, T)) -> Vec<Point> {
    if values.is_empty() {
        return points.to_vec();
    }
    let with = |point: &Point, value: T| {
        let mut point = *point;
        set(&mut point, value);
        point
    };
    let pairs = points
        .iter()
        .flat_map(|point| values.iter().map(move |value| (point, value)));
    pairs.map(|(point, value)| with(point, *value)).collect()
}

/// Checks the number of points in a run that is not full.
///
/// # Errors
/// [`ErrorKind::Config`](tapeloop_engine::ErrorKind::Config) for more than [`POINTS_MAX`] points.
pub fn check_count(points: usize) -> Result<()> {
    if points <= POINTS_MAX {
        return Ok(());
    }
    Err(Error::config(format!(
        "{points} points, but a run has at most {POINTS_MAX}"
    ))
    .fix("leave out some workloads, axes or values, or pass --full to measure all"))
}
