//! The settings of a replay.

use crate::backend::Residency;
use crate::error::{Error, Result};
use std::num::NonZeroU32;
use std::time::Duration;
use tapeloop_error::internal::LaterFields;

/// Declares an enum with the names that configs and reports use.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// All variants.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// The name in configs and reports.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}

named! {
    /// How a batch reaches the device.
    ///
    /// ```
    /// use tapeloop_engine::{EngineConfig, Mode};
    ///
    /// let mut config = EngineConfig::new([1 << 20]);
    /// assert_eq!(config.policy.mode, Mode::Graph);
    /// config.policy.mode = Mode::Stream;
    /// assert_eq!(config.policy.mode.name(), "stream");
    /// ```
    Mode {
        /// One graph launch. The graph's copies have the size of the batch's bucket.
        #[default]
        Graph = "graph",
        /// One call for each command. Copies have the size of what the batch uses.
        Stream = "stream",
        /// A loop on the device replays the graph of each slot and bucket. The host announces
        /// batches through pinned memory, without a call to the driver. Devices whose launches
        /// make no call replay as with [`Mode::Graph`]. A GPU in a worker process has no loops: see
        /// [`Policy::fallback`].
        Resident = "resident",
    }
}

named! {
    /// How a graph is made. For commands that depend on each other in one chain both are equally
    /// fast.
    ///
    /// ```
    /// use tapeloop_engine::{Build, EngineConfig};
    ///
    /// let mut config = EngineConfig::new([1 << 20]);
    /// assert_eq!(config.policy.build, Build::Capture);
    /// config.policy.build = Build::Explicit;
    /// assert_eq!(config.policy.build.name(), "explicit");
    /// ```
    Build {
        /// The commands are captured on a stream, in their order.
        #[default]
        Capture = "capture",
        /// Each command is added as a node with edges from those that it depends on, so that
        /// independent commands run at the same time: the choice for recordings that branch.
        Explicit = "explicit",
    }
}

named! {
    /// How kernels access the host's buffers.
    Transfer {
        /// Through copies to and from the device.
        #[default]
        Copy = "copy",
        /// In place, in pinned memory, if exactly one kernel reads or writes the buffer; other
        /// buffers are copied.
        Mapped = "mapped",
        /// In place up to [`Policy::mapped_bytes_max`], and through copies above.
        Auto = "auto",
    }
}

named! {
    /// What happens to a batch if the device refuses its graph and no larger bucket has one.
    Fallback {
        /// It fails.
        #[default]
        None = "none",
        /// It runs as single launches, and the graph is tried again later.
        Launches = "launches",
    }
}

/// Which batches also run as single launches before they run as the policy says, to compare the
/// results bit by bit. That takes the time of both, and submitting such a batch waits for it.
///
/// A batch that changes its inputs, so that it cannot run twice, is not compared; a log line says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// No batch.
    Off,
    /// In each slot the first batch of each bucket with a graph. No batch in [`Mode::Stream`] and on
    /// the CPU, where a graph is the same calls.
    #[default]
    First,
    /// Like [`Verify::First`], and every N-th batch of a slot, in every mode and on every backend.
    Every(NonZeroU32),
}

/// How batches are replayed. Later versions may add fields: end a literal with
/// `..Policy::default()`.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/double.rs"));
/// # use tapeloop_engine::*;
/// # fn main() -> Result<()> {
/// let config = EngineConfig {
///     policy: Policy {
///         mode: Mode::Stream,
///         ..Policy::default()
///     },
///     ..EngineConfig::new([100])
/// };
/// let engine = Engine::auto(Double::new()?, &config)?;
/// assert_eq!(engine.submit(vec![1.0])?.wait()?.result?, [2.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Graphs or single calls.
    pub mode: Mode,
    /// When the loops of [`Mode::Resident`] end, to be launched again by the next batch.
    pub residency: Residency,
    /// How graphs are made; ignored by [`Mode::Stream`].
    pub build: Build,
    /// How kernels access the host's buffers.
    pub transfer: Transfer,
    /// The largest buffer in bytes that [`Transfer::Auto`] accesses in place.
    pub mapped_bytes_max: usize,
    /// The most buckets that a slot keeps ready, at least 1. To make another ready, the least
    /// recently used one is dropped.
    pub ready_max: usize,
    /// Whether buckets are made ready when the engine is built, up to [`Policy::ready_max`];
    /// otherwise each is at its first batch.
    pub warm_up: bool,
    /// The longest time from the submission of a batch to its end, including the batches before
    /// it. A device that takes longer counts as lost; a supervised device is restarted. On the CPU
    /// nothing interrupts a kernel: a batch with 64 KiB of uploads or more that takes longer counts as
    /// lost, and its kernel goes on; a smaller one is computed by the thread that would look at the
    /// clock, so its deadline is not noticed, and a kernel that never ends is never noticed.
    pub deadline: Option<Duration>,
    /// What happens to batches whose graph cannot be made; ignored by [`Mode::Stream`]. With
    /// [`Fallback::Launches`], [`Mode::Resident`] launches graphs that cannot be resident, as on a
    /// GPU in a worker process.
    pub fallback: Fallback,
    /// Which batches are compared with single launches.
    pub verify: Verify,
    #[doc(hidden)]
    pub later: LaterFields,
}

/// The largest buffer in bytes that is worth mapping. Up to this size mapping is at least a third
/// faster than copying, in both directions; at twice the size an upload gains nothing
/// (the crate's DECISIONS.md has the measurement).
pub const MAPPED_BYTES_MAX: usize = 128 << 10;

impl Default for Policy {
    fn default() -> Self {
        Policy {
            mode: Mode::default(),
            residency: Residency::default(),
            build: Build::default(),
            transfer: Transfer::default(),
            mapped_bytes_max: MAPPED_BYTES_MAX,
            ready_max: usize::MAX,
            warm_up: true,
            deadline: None,
            fallback: Fallback::default(),
            verify: Verify::default(),
            later: LaterFields::NONE,
        }
    }
}

impl Policy {
    /// The default policy in another mode.
    pub fn new(mode: Mode) -> Self {
        Policy {
            mode,
            ..Policy::default()
        }
    }

    /// Every combination of [`Policy::mode`], [`Policy::build`] and [`Policy::transfer`], with the
    /// other fields at their defaults. [`Mode::Stream`] makes no graph, and comes with one build.
    pub fn combinations() -> impl Iterator<Item = Policy> {
        let modes = Mode::ALL.iter().flat_map(|&mode| {
            let builds = Build::ALL.iter().map(move |&build| (mode, build));
            builds.filter(|pair| *pair != (Mode::Stream, Build::Explicit))
        });
        modes.flat_map(|(mode, build)| {
            Transfer::ALL.iter().map(move |&transfer| Policy {
                mode,
                build,
                transfer,
                ..Policy::default()
            })
        })
    }

    /// Refuses values that make no sense.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config), with the values to choose from.
    pub fn check(&self) -> Result<()> {
        let config_error = |message: &str, fix: &str| Err(Error::config(message).fix(fix));
        if self.residency.idle.max(self.residency.busy) > Residency::MAX {
            return config_error(
                "a loop on the device may wait for at most a second",
                "set resident_idle_us and resident_busy_us to at most 1000000",
            );
        }
        if self.ready_max == 0 {
            return config_error("ready_max = 0 keeps no bucket ready", "set at least 1");
        }
        Ok(())
    }

    /// Whether a graph that cannot be resident is an error.
    #[doc(hidden)]
    pub fn requires_loops(&self) -> bool {
        self.mode == Mode::Resident && self.fallback == Fallback::None
    }

    /// Whether kernels may access a buffer of this size in place.
    pub(super) fn maps(&self, bytes: usize) -> bool {
        match self.transfer {
            Transfer::Copy => false,
            Transfer::Mapped => true,
            Transfer::Auto => bytes <= self.mapped_bytes_max,
        }
    }
}
