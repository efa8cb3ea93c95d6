//! Planned faults of the simulated device.

use super::random::Random;
use tapeloop_engine::error::{Error, ErrorKind};

/// A fault. All numbers are counted from 0, over all slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An allocation fails with [`ErrorKind::OutOfMemory`].
    OutOfMemory {
        /// The index of the allocation. Opening slots makes two, one of device and one of pinned
        /// memory.
        allocation: u64,
    },
    /// Allocations larger than a limit fail.
    Scarce {
        /// The limit in bytes. Opening slots allocates the device memory of all slots at once, and
        /// then their pinned memory.
        bytes_max: usize,
    },
    /// A call that submits work or a fence fails, without effect.
    Submission {
        /// The index of the call that fails.
        submission: u64,
    },
    /// The device is lost: from this call on every call fails.
    Lost {
        /// The index of the call.
        call: u64,
    },
    /// Another process kills the process that holds the device: from this call on every call fails.
    Killed {
        /// The index of the call.
        call: u64,
    },
    /// A kernel faults while it runs, and the device is lost.
    Kernel {
        /// The index of the kernel, in the order in which kernels ran.
        launch: u64,
    },
    /// A kernel never ends. Waiting for it returns an error.
    Endless {
        /// The index of the kernel, in the order in which kernels ran.
        launch: u64,
    },
    /// A kernel ends only after the host has made a number of calls, polls included.
    Slow {
        /// The index of the kernel, in the order in which kernels ran.
        launch: u64,
        /// The number of calls.
        calls: u64,
    },
    /// Another thread of the process captures in CUDA's global mode: allocations and calls that
    /// submit work or change graphs fail with code 900, without effect, and polls report that work
    /// is not done.
    ForeignCapture {
        /// The index of the first call that is affected.
        call: u64,
        /// The number of affected calls.
        calls: u64,
    },
    /// A lost device cannot be revived.
    Revival {
        /// The index of the attempt.
        revival: u64,
    },
    /// The process that is to hold the device is killed while it starts.
    KilledStart {
        /// The index of the attempt to revive the device.
        revival: u64,
    },
    /// A copy moves its bytes in many small parts.
    SlowCopy {
        /// The index of the copy, in the order in which copies ran.
        copy: u64,
        /// The number of parts.
        parts: u32,
    },
    /// A capture is refused when it ends.
    Capture {
        /// The index of the call that fails.
        capture: u64,
    },
    /// Making a graph fails with [`ErrorKind::OutOfMemory`].
    Graph {
        /// The index of the call that fails.
        graph: u64,
    },
    /// A change of the parameters of one operation fails.
    Params {
        /// The index of the change.
        change: u64,
    },
    /// An update of a whole graph fails although the topology is the same.
    Update {
        /// The index of the update.
        update: u64,
    },
    /// Kernels do not wait for their dependencies, although they are declared to. Tests plant it to show
    /// that it is found.
    NoWaits,
    /// Loops on the device, or the host that rings them, make a mistake. Tests plant it to show
    /// that it is found.
    Loop(LoopMistake),
}

/// A mistake in the protocol of a loop on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopMistake {
    /// The loop announces a batch before the batch runs.
    AnnouncesEarly,
    /// The loop announces a batch without ordering its results before that.
    AnnouncesUnfenced,
    /// The loop takes a batch without ordering its data behind the ring.
    TakesUnfenced,
    /// A loop that has parked takes one more batch.
    TakesAfterParking,
    /// The host rings without ordering the batch's data before that.
    RingsUnreleased,
    /// The host rings twice for a batch.
    RingsTwice,
    /// The host looks once after it rang whether the loop has parked, and not again.
    LooksOnce,
    /// The host rings for another graph of the slot while a batch runs.
    SwitchesEarly,
    /// A loop is not told to stop.
    StopIsLost,
}

impl LoopMistake {
    /// All mistakes.
    pub const ALL: &'static [LoopMistake] = &[
        LoopMistake::AnnouncesEarly,
        LoopMistake::AnnouncesUnfenced,
        LoopMistake::TakesUnfenced,
        LoopMistake::TakesAfterParking,
        LoopMistake::RingsUnreleased,
        LoopMistake::RingsTwice,
        LoopMistake::LooksOnce,
        LoopMistake::SwitchesEarly,
        LoopMistake::StopIsLost,
    ];
}

impl Fault {
    /// A fault that `seed` chooses, at one of the first `horizon` opportunities.
    #[must_use]
    pub fn seeded(seed: u64, horizon: u64) -> Fault {
        let mut random = Random::new(seed);
        let kind = random.below(9);
        let index = random.below(horizon.max(1));
        match kind {
            // Allocations, captures, graphs and kernels are few, so that their index is kept small. The
            // numbers of parts and calls are small against those of a test, so that the rest runs on.
            0 => Fault::OutOfMemory {
                allocation: index % 4,
            },
            1 => Fault::Submission { submission: index },
            2 => Fault::Lost { call: index },
            3 => Fault::Kernel { launch: index },
            4 => Fault::SlowCopy {
                copy: index,
                parts: 8 + random.below(56) as u32,
            },
            5 => Fault::Capture { capture: index % 8 },
            6 => Fault::Slow {
                launch: index % 16,
                calls: 1 + random.below(40),
            },
            7 => Fault::ForeignCapture {
                call: index,
                calls: 1 + random.below(12),
            },
            _ => Fault::Graph { graph: index % 8 },
        }
    }
}

/// The planned faults, and the counters that trigger them.
pub(super) struct FaultPlan {
    faults: Vec<Fault>,
    allocations: u64,
    submissions: u64,
    calls: u64,
    launches: u64,
    copies: u64,
    captures: u64,
    graphs: u64,
    changes: u64,
    updates: u64,
    revivals: u64,
}

impl FaultPlan {
    pub(super) fn new(faults: Vec<Fault>) -> Self {
        FaultPlan {
            faults,
            allocations: 0,
            submissions: 0,
            calls: 0,
            launches: 0,
            copies: 0,
            captures: 0,
            graphs: 0,
            changes: 0,
            updates: 0,
            revivals: 0,
        }
    }

    /// Counts an allocation. Returns the error that is planned for it.
    pub(super) fn count_allocation(&mut self, bytes: usize) -> Option<Error> {
        let allocation = take(&mut self.allocations);
        let planned = self.faults.iter().any(|fault| match *fault {
            Fault::OutOfMemory { allocation: at } => at == allocation,
            Fault::Scarce { bytes_max } => bytes > bytes_max,
            _ => false,
        });
        planned.then(|| {
            let message = format!("{bytes} bytes of memory were refused, as planned");
            Error::new(ErrorKind::OutOfMemory, message).with_code(2)
        })
    }

    /// Counts a submission. Returns the error that is planned for it.
    pub(super) fn count_submission(&mut self) -> Option<Error> {
        let submission = take(&mut self.submissions);
        let planned = self.faults.contains(&Fault::Submission { submission });
        planned.then(|| device("the launch was refused, as planned", 701))
    }

    /// Counts a call. Returns the loss that is planned for it.
    pub(super) fn count_call(&mut self) -> Option<Error> {
        let call = take(&mut self.calls);
        if self.faults.contains(&Fault::Killed { call }) {
            return Some(killed_error());
        }
        let planned = self.faults.contains(&Fault::Lost { call });
        planned.then(|| device("the device was lost, as planned", 719))
    }

    /// Whether another thread captures, as of the last call.
    pub(super) fn is_captured_elsewhere(&self) -> bool {
        // The last call was counted already.
        let now = self.calls.saturating_sub(1);
        self.faults.iter().any(|fault| match *fault {
            Fault::ForeignCapture { call, calls } => (call..call + calls).contains(&now),
            _ => false,
        })
    }

    /// The error of the last call, if another thread captures.
    pub(super) fn captured_elsewhere(&self) -> Option<Error> {
        let message = "another thread captures, as planned";
        self.is_captured_elsewhere().then(|| device(message, 900))
    }

    /// The number of calls that delay the kernel of the next launch, if planned.
    pub(super) fn slow(&self) -> Option<u64> {
        self.faults.iter().find_map(|fault| match *fault {
            Fault::Slow { launch, calls } if launch == self.launches => Some(calls),
            _ => None,
        })
    }

    /// Counts a revival. Returns the error that is planned for it.
    pub(super) fn count_revival(&mut self) -> Option<Error> {
        let revival = take(&mut self.revivals);
        if self.faults.contains(&Fault::KilledStart { revival }) {
            return Some(killed_error());
        }
        let planned = self.faults.contains(&Fault::Revival { revival });
        planned.then(|| {
            let message = "the device did not come back, as planned";
            Error::new(ErrorKind::Device, message)
        })
    }

    /// Counts a launch. Returns the error that is planned for it.
    pub(super) fn count_launch(&mut self) -> Option<Error> {
        let launch = take(&mut self.launches);
        let planned = self.faults.contains(&Fault::Kernel { launch });
        planned.then(|| device("a kernel met an illegal address, as planned", 700))
    }

    /// Whether the next kernel never ends, as planned. If so, counts its launch.
    pub(super) fn count_endless(&mut self) -> bool {
        let launch = self.launches;
        let planned = self.faults.contains(&Fault::Endless { launch });
        self.launches += u64::from(planned);
        planned
    }

    /// Counts a copy. Returns the number of its parts, if planned.
    pub(super) fn count_copy(&mut self) -> Option<u32> {
        let copy = take(&mut self.copies);
        self.faults.iter().find_map(|fault| match *fault {
            Fault::SlowCopy { copy: at, parts } if at == copy => Some(parts),
            _ => None,
        })
    }

    /// Counts a capture. Returns the error that is planned for it.
    pub(super) fn count_capture(&mut self) -> Option<Error> {
        let capture = take(&mut self.captures);
        let planned = self.faults.contains(&Fault::Capture { capture });
        planned.then(|| device("the capture was invalidated, as planned", 901))
    }

    /// Counts a graph. Returns the error that is planned for it.
    pub(super) fn count_graph(&mut self) -> Option<Error> {
        let graph = take(&mut self.graphs);
        let planned = self.faults.contains(&Fault::Graph { graph });
        planned.then(|| {
            let message = "the memory of a graph was refused, as planned";
            Error::new(ErrorKind::OutOfMemory, message).with_code(2)
        })
    }

    /// Counts a change of parameters. Returns the error that is planned for it.
    pub(super) fn count_params(&mut self) -> Option<Error> {
        let change = take(&mut self.changes);
        let planned = self.faults.contains(&Fault::Params { change });
        planned.then(|| device("the parameters were refused, as planned", 1))
    }

    /// Whether kernels do not wait although they are declared to.
    pub(super) fn has_no_waits(&self) -> bool {
        self.faults.contains(&Fault::NoWaits)
    }

    pub(super) fn makes(&self, mistake: LoopMistake) -> bool {
        self.faults.contains(&Fault::Loop(mistake))
    }

    /// Counts an update of a graph. Returns the error that is planned for it.
    pub(super) fn count_update(&mut self) -> Option<Error> {
        let update = take(&mut self.updates);
        let planned = self.faults.contains(&Fault::Update { update });
        planned.then(|| device("the update was refused, as planned", 910))
    }
}

fn take(counter: &mut u64) -> u64 {
    *counter += 1;
    *counter - 1
}

fn killed_error() -> Error {
    Error::new(ErrorKind::Worker, "the process was killed, as planned")
}

fn device(message: &str, code: i32) -> Error {
    Error::new(ErrorKind::Device, message).with_code(code)
}
