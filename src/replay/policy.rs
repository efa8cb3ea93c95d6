//! The ways to replay, and which of them go together.

use crate::backend::Streams;
use crate::error::{Error, Result};
use std::fmt;
use std::time::Duration;

/// Declares an enum with the names that configs and reports use.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// All of them.
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
    Mode {
        /// One graph launch.
        #[default]
        Graph = "graph",
        /// One call for each command.
        Stream = "stream",
        /// Whichever of the two, with whichever [`Scope`], is fastest with the first
        /// batch of each bucket; see [`Chosen`](super::Chosen).
        Auto = "auto",
    }
}

named! {
    /// How a graph is made of the commands.
    Build {
        /// By capturing them on a stream, in their order.
        #[default]
        Capture = "capture",
        /// Node by node, each after those that its buffers depend on: what is
        /// independent runs side by side.
        Explicit = "explicit",
    }
}

named! {
    /// What a graph holds.
    Scope {
        /// The whole batch. Copies are of the bucket's size.
        #[default]
        Batch = "batch",
        /// Kernels and memsets. Copies are calls beside it, of the live size.
        Kernels = "kernels",
    }
}

named! {
    /// How kernels come to the host's buffers.
    Transfer {
        /// By copies to and from the device.
        #[default]
        Copy = "copy",
        /// In place, in pinned memory, where a single launch touches the buffer,
        /// and reads or writes it only; the others are copied.
        Mapped = "mapped",
        /// In place up to [`Policy::mapped_bytes_max`], by copies beyond.
        Auto = "auto",
    }
}

named! {
    /// What becomes of a batch whose graph the device refuses, and that no larger
    /// bucket can take.
    Fallback {
        /// It fails.
        #[default]
        None = "none",
        /// It runs as launches, and the graph is tried again later.
        Launches = "launches",
    }
}

named! {
    /// Whether the first batch of each bucket of a slot runs as launches too, and
    /// the results are compared bit by bit. It takes as long as both, and is waited
    /// for where it is submitted.
    Verify {
        /// Where a graph is something else than the same calls: not on the CPU.
        #[default]
        Auto = "auto",
        /// It does.
        First = "first",
        /// It does not.
        Off = "off",
    }
}

/// What [`Mode::Auto`] chooses: calls or a graph, and which bytes are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// [`Mode::Graph`] or [`Mode::Stream`].
    pub mode: Mode,
    /// As [`Policy::scope`].
    pub scope: Scope,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.mode.name(), self.scope.name())
    }
}

/// How batches are replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Graph or plain calls.
    pub mode: Mode,
    /// How graphs are made; without meaning to [`Mode::Stream`].
    pub build: Build,
    /// What a graph holds; [`Mode::Stream`] moves the same bytes. Without meaning to
    /// [`Mode::Auto`], which chooses it.
    pub scope: Scope,
    /// Which streams work goes to.
    pub streams: Streams,
    /// How kernels come to the host's buffers.
    pub transfer: Transfer,
    /// The largest buffer in bytes that [`Transfer::Auto`] leaves on the host.
    pub mapped_bytes_max: usize,
    /// The most buckets that a slot keeps ready; beyond, the least recently used
    /// one is dropped. At least 1.
    pub ready_max: usize,
    /// Makes all buckets ready when the engine is built, up to
    /// [`Policy::ready_max`]; otherwise each at its first batch, as under
    /// [`Mode::Auto`] those for which nothing is chosen yet.
    pub warm_up: bool,
    /// The longest that a batch may take from its submission on, batches before it
    /// included. A device that takes longer is given up: it is started again where
    /// it is supervised, and lost otherwise. A kernel of the CPU that never ends
    /// can only be given up from outside its process.
    pub deadline: Option<Duration>,
    /// Where batches go whose graph cannot be made; without meaning to
    /// [`Mode::Stream`].
    pub fallback: Fallback,
    /// Whether the first batch of a graph is compared with its launches; without
    /// meaning to [`Mode::Stream`].
    pub verify: Verify,
    /// Every so many batches of a slot run twice, as launches and as they are
    /// replayed, and are compared; none if it is 0.
    pub shadow_every: u32,
}

/// Up to this size a mapped buffer is faster than a copied one each way, by a
/// third and more; docs/ARCHITECTURE.md has the measurement. The upload of twice
/// as much gains nothing.
pub const MAPPED_BYTES_MAX: usize = 128 << 10;

impl Default for Policy {
    fn default() -> Self {
        Policy {
            mode: Mode::default(),
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

    /// Every combination of settings that go together, with the other fields at
    /// their defaults. Without [`Mode::Auto`], which is one or the other of them.
    pub fn legal() -> impl Iterator<Item = Policy> {
        let all = [Mode::Graph, Mode::Stream].into_iter().flat_map(|mode| {
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

    /// Whether the settings go together.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config), naming the legal choices.
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
        if self.ready_max == 0 {
            return refused("ready_max = 0 keeps no bucket ready", "set at least 1");
        }
        Ok(())
    }

    fn streams_take(&self, scope: Scope) -> bool {
        self.streams != Streams::PerStage || scope == Scope::Kernels
    }

    /// The way that a bucket is replayed; under [`Mode::Auto`] unless another is
    /// faster.
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

    /// What [`Mode::Auto`] chooses among, its [`Policy::first_way`] first.
    pub(super) fn ways(&self) -> impl Iterator<Item = Way> {
        let scopes = Scope::ALL.iter().copied();
        let scopes = scopes.filter(|scope| self.streams_take(*scope));
        let of = |mode| scopes.clone().map(move |scope| Way { mode, scope });
        of(Mode::Graph).chain(of(Mode::Stream))
    }

    /// Whether a buffer of this size may stay on the host.
    pub(super) fn maps(&self, bytes: usize) -> bool {
        match (self.streams, self.transfer) {
            (Streams::PerStage, _) | (_, Transfer::Copy) => false,
            (_, Transfer::Mapped) => true,
            (_, Transfer::Auto) => bytes <= self.mapped_bytes_max,
        }
    }
}
