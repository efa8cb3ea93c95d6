//! The settings of a replay, and which of them exclude each other.

use crate::backend::{Residency, Streams};
use crate::error::{Error, Result};
use crate::later_fields::LaterFields;
use std::fmt;
use std::time::Duration;

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
    /// use tapeloop::replay::Policy;
    /// use tapeloop::{EngineConfig, Mode};
    ///
    /// let mut config = EngineConfig::new([1 << 20]);
    /// assert_eq!(config.policy.mode, Mode::Graph);
    /// // Every bucket measures which is faster with its first batch.
    /// config.policy = Policy { mode: Mode::Auto, ..Policy::default() };
    /// assert_eq!(config.policy.mode.name(), "auto");
    /// ```
    Mode {
        /// One graph launch.
        #[default]
        Graph = "graph",
        /// One call for each command.
        Stream = "stream",
        /// A loop on the device replays the graph of each slot and bucket. The host announces
        /// batches through pinned memory, without a call to the driver. Devices whose launches
        /// make no call replay as with [`Mode::Graph`].
        Resident = "resident",
        /// The faster of [`Mode::Graph`] and [`Mode::Stream`], with either [`Scope`], measured with
        /// the first batch of each bucket; see [`Chosen`](super::Chosen).
        Auto = "auto",
    }
}

named! {
    /// How a graph is made.
    Build {
        /// The commands are captured on a stream, in their order.
        #[default]
        Capture = "capture",
        /// Each command is added as a node with edges from those that it depends on, so that
        /// independent commands run at the same time.
        Explicit = "explicit",
    }
}

named! {
    /// The commands that a graph holds.
    Scope {
        /// The whole batch. Copies have the size of the bucket.
        #[default]
        Batch = "batch",
        /// Kernels and memsets. Copies are calls of their own, of the live size.
        Kernels = "kernels",
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

named! {
    /// Whether the first batch of each bucket of a slot also runs as single launches, and the
    /// results are compared bit by bit. That takes the time of both, and submitting the batch
    /// waits for it.
    Verify {
        /// Not on the CPU, where a graph is the same calls.
        #[default]
        Auto = "auto",
        /// On every device.
        First = "first",
        /// Never.
        Off = "off",
    }
}

/// A way to replay, as [`Mode::Auto`] chooses one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Any mode but [`Mode::Auto`].
    pub mode: Mode,
    /// What a graph holds, and the size of copies.
    pub scope: Scope,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.mode.name(), self.scope.name())
    }
}

/// How batches are replayed. Later versions may add fields: end a literal with
/// `..Policy::default()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Graphs or single calls.
    pub mode: Mode,
    /// When the loops of [`Mode::Resident`] end, to be launched again by the next batch.
    pub residency: Residency,
    /// How graphs are made; ignored by [`Mode::Stream`].
    pub build: Build,
    /// What a graph holds; [`Mode::Stream`] copies the same bytes. Ignored by [`Mode::Auto`],
    /// which chooses it.
    pub scope: Scope,
    /// The streams that work goes to.
    pub streams: Streams,
    /// How kernels access the host's buffers.
    pub transfer: Transfer,
    /// The largest buffer in bytes that [`Transfer::Auto`] accesses in place.
    pub mapped_bytes_max: usize,
    /// The most buckets that a slot keeps ready, at least 1. To make another ready, the least
    /// recently used one is dropped.
    pub ready_max: usize,
    /// Whether buckets are made ready when the engine is built, up to [`Policy::ready_max`];
    /// otherwise each is at its first batch. [`Mode::Auto`] makes a bucket ready only after its
    /// way is chosen.
    pub warm_up: bool,
    /// The longest time from the submission of a batch to its end, including the batches before
    /// it. A device that takes longer counts as lost; a supervised device is started again. A
    /// CPU kernel that never ends can only be stopped from outside of its process.
    pub deadline: Option<Duration>,
    /// What happens to batches whose graph cannot be made; ignored by [`Mode::Stream`]. With
    /// [`Fallback::Launches`], [`Mode::Resident`] launches graphs that cannot be resident.
    pub fallback: Fallback,
    /// Whether the first batch of a graph is compared with single launches; ignored by
    /// [`Mode::Stream`].
    pub verify: Verify,
    /// Compares every `shadow_every`-th batch of a slot with single launches; none if 0.
    pub shadow_every: u32,
    #[doc(hidden)]
    pub later: LaterFields,
}

/// The largest buffer in bytes that is worth mapping. Up to this size mapping is at least a third
/// faster than copying, in both directions; at twice the size an upload gains nothing
/// (docs/ARCHITECTURE.md has the measurement).
pub const MAPPED_BYTES_MAX: usize = 128 << 10;

impl Default for Policy {
    fn default() -> Self {
        Policy {
            mode: Mode::default(),
            residency: Residency::default(),
            build: Build::default(),
            scope: Scope::default(),
            streams: Streams::default(),
            transfer: Transfer::default(),
            mapped_bytes_max: MAPPED_BYTES_MAX,
            ready_max: usize::MAX,
            warm_up: true,
            deadline: None,
            fallback: Fallback::default(),
            verify: Verify::default(),
            shadow_every: 0,
            later: LaterFields::NONE,
        }
    }
}

impl Policy {
    /// The default policy in another mode.
    pub fn of(mode: Mode) -> Self {
        Policy {
            mode,
            ..Policy::default()
        }
    }

    /// Every legal combination of settings, with the other fields at their defaults. Without
    /// [`Mode::Auto`], which chooses one of them.
    pub fn legal() -> impl Iterator<Item = Policy> {
        let modes = [Mode::Graph, Mode::Stream, Mode::Resident];
        let all = modes.into_iter().flat_map(|mode| {
            Build::ALL.iter().flat_map(move |&build| {
                Scope::ALL.iter().flat_map(move |&scope| {
                    Streams::ALL.iter().flat_map(move |&streams| {
                        Transfer::ALL.iter().map(move |&transfer| Policy {
                            mode,
                            build,
                            scope,
                            streams,
                            transfer,
                            ..Policy::default()
                        })
                    })
                })
            })
        });
        all.filter(|policy| policy.check().is_ok())
    }

    /// Refuses settings that exclude each other.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config), with the legal choices.
    pub fn check(&self) -> Result<()> {
        let refused = |message: &str, fix: &str| Err(Error::config(message).fix(fix));
        if self.mode != Mode::Auto && !self.streams_take(self.scope) {
            return refused(
                "streams = \"per_stage\" with scope = \"batch\": a whole batch is one graph on \
                 one stream",
                "set scope = \"kernels\", or streams = \"per_slot\"",
            );
        }
        if self.streams == Streams::PerStage && self.transfer == Transfer::Mapped {
            return refused(
                "streams = \"per_stage\" with transfer = \"mapped\": there are no copies to give \
                 streams of their own",
                "set transfer = \"copy\" or \"auto\", or streams = \"per_slot\"",
            );
        }
        if self.mode == Mode::Stream && self.build == Build::Explicit {
            return refused(
                "build = \"explicit\" with mode = \"stream\": there is no graph to build",
                "set mode = \"graph\" or \"auto\", or leave build out",
            );
        }
        if self.mode == Mode::Resident && self.scope == Scope::Kernels {
            return refused(
                "scope = \"kernels\" with mode = \"resident\": a loop on the device replays whole \
                 batches",
                "set scope = \"batch\", or mode = \"graph\"",
            );
        }
        if self.residency.idle.max(self.residency.busy) > Residency::MAX {
            return refused(
                "a loop on the device would stay for more than a second",
                "set resident_idle_us and resident_busy_us to at most 1000000",
            );
        }
        if self.ready_max == 0 {
            return refused("ready_max = 0 keeps no bucket ready", "set at least 1");
        }
        Ok(())
    }

    fn streams_take(&self, scope: Scope) -> bool {
        self.streams != Streams::PerStage || scope == Scope::Kernels
    }

    /// The way that buckets are replayed; with [`Mode::Auto`] unless another is faster.
    pub(super) fn first_way(&self) -> Way {
        match (self.mode, self.streams) {
            (Mode::Auto, Streams::PerSlot) => Way {
                mode: Mode::Graph,
                scope: Scope::Batch,
            },
            (Mode::Auto, Streams::PerStage) => Way {
                mode: Mode::Graph,
                scope: Scope::Kernels,
            },
            (mode, _) => Way {
                mode,
                scope: self.scope,
            },
        }
    }

    /// The ways that [`Mode::Auto`] chooses from, [`Policy::first_way`] first.
    pub(super) fn ways(&self) -> impl Iterator<Item = Way> {
        let scopes = Scope::ALL.iter().copied();
        let scopes = scopes.filter(|scope| self.streams_take(*scope));
        let of = |mode| scopes.clone().map(move |scope| Way { mode, scope });
        let resident = of(Mode::Resident).filter(|way| way.scope == Scope::Batch);
        of(Mode::Graph).chain(of(Mode::Stream)).chain(resident)
    }

    /// Whether kernels may access a buffer of this size in place.
    pub(super) fn maps(&self, bytes: usize) -> bool {
        match (self.streams, self.transfer) {
            (Streams::PerStage, _) | (_, Transfer::Copy) => false,
            (_, Transfer::Mapped) => true,
            (_, Transfer::Auto) => bytes <= self.mapped_bytes_max,
        }
    }
}
