//! Checks that a graph holds what was lowered, and only addresses that the slot may use.
//!
//! A graph replays addresses that were fixed when it was made. A stale or foreign address
//! corrupts memory in silence, and a mistake between the lowering and the driver shows as a wrong
//! result at best. So every lowered address is checked against the memory that the slot may use,
//! and what the device holds after a capture, a build or an update is compared with what was
//! lowered.

use super::declared_memory::{DeclaredMemory, is_inside};
use super::{Bindings, Lowered};
use crate::backend::{Addresses, AllocationView, DeviceSlot, Op};
use crate::error::{Error, ErrorKind, Result};
use crate::record::{Command, HEADER_LEN, Launch, Recording, Target};
use std::fmt;

/// What an audit covered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Audit {
    /// Number of operations.
    pub operations: usize,
    /// Number of addresses in them.
    pub addresses: usize,
    /// Names of kernels that follow pointers in device memory. Those pointers are not checked.
    pub out_of_reach: Vec<String>,
}

/// The memory that the operations of a bucket may use.
pub(super) struct AllowedMemory<'a> {
    pub(super) recording: &'a Recording,
    /// The slot's own buffers.
    own: Vec<Addresses>,
    /// The device address of the header, if there is one.
    header: Option<u64>,
    /// Memory that buffers are bound to instead.
    bound: Vec<&'a AllocationView>,
    declared: &'a DeclaredMemory,
}

impl<'a> AllowedMemory<'a> {
    /// The buffers of `slot`, the memory that `bindings` has in their place, and the declared
    /// memory.
    pub(super) fn new(
        slot: &dyn DeviceSlot,
        bindings: &'a Bindings,
        declared: &'a DeclaredMemory,
    ) -> Self {
        let recording = bindings.recording();
        let buffers = recording.buffers_by_id();
        AllowedMemory {
            recording,
            own: buffers.map(|(id, _)| slot.addresses(id)).collect(),
            header: recording.header().map(|header| bindings.device(header)),
            bound: bindings.views().collect(),
            declared,
        }
    }

    /// Whether a buffer of at least `bytes` bytes starts at `address`.
    fn holds(&self, address: u64, bytes: usize) -> bool {
        let is_own = |buffer: &Addresses| {
            (buffer.device == address || buffer.host == Some(address)) && bytes <= buffer.bytes
        };
        let is_bound = |view: &&AllocationView| view.address() == address && bytes <= view.bytes();
        self.own.iter().any(is_own) || self.bound.iter().any(is_bound)
    }

    /// Whether `address` is `offset` bytes into a buffer.
    fn holds_within(&self, address: u64, offset: usize) -> bool {
        let start = address.checked_sub(offset as u64);
        start.is_some_and(|start| self.holds(start, offset + 1))
    }

    fn is_declared(&self, address: u64) -> bool {
        let mut views = self.declared.views().iter();
        views.any(|view| is_inside(address, view.address(), view.bytes()))
    }

    /// The name of the value in the header at an address.
    fn uniform_at(&self, address: u64) -> Option<&str> {
        let offset = address.checked_sub(self.header?)? / size_of::<u32>() as u64;
        let index = usize::try_from(offset).ok()?.checked_sub(HEADER_LEN)?;
        let declared = self.recording.uniforms().get(index)?;
        Some(&declared.name)
    }

    /// Describes the memory that an address is in, for messages.
    fn what_is(&self, address: u64) -> String {
        // Before the buffers: uniforms are in the header, which is one of them.
        if let Some(name) = self.uniform_at(address) {
            return format!("uniform {name}");
        }
        let is_in = |start: u64, bytes: usize| is_inside(address, start, bytes);
        let is_own = |buffer: &Addresses| {
            let mut starts = [Some(buffer.device), buffer.host].into_iter().flatten();
            starts.any(|start| is_in(start, buffer.bytes))
        };
        let names = self.recording.buffers().iter().map(|decl| &decl.name);
        if let Some((name, _)) = names.zip(&self.own).find(|(_, buffer)| is_own(buffer)) {
            return format!("buffer {name}");
        }
        let text = if (self.bound.iter()).any(|view| is_in(view.address(), view.bytes())) {
            "memory that a buffer is bound to"
        } else if self.is_declared(address) {
            "declared memory"
        } else if self.declared.was_known(address) {
            "stale: in memory that was bound or declared before, and no longer is"
        } else {
            "foreign: not in memory that belongs to this slot, is bound or is declared"
        };
        text.to_owned()
    }
}

fn mismatch_error(message: String) -> Error {
    Error::new(ErrorKind::Mismatch, message)
}

/// Checks every address of operations, each given with the index of its command.
///
/// # Errors
/// [`ErrorKind::Mismatch`] for an address outside of `memory`, with the command, and for a
/// launch the kernel and its parameter.
pub(super) fn check_lowered<'a>(
    ops: impl Iterator<Item = (usize, &'a Op)>,
    memory: &AllowedMemory<'_>,
) -> Result<Audit> {
    let mut audit = Audit::default();
    for (command, op) in ops {
        audit.operations += 1;
        let checked = match (op, &memory.recording.commands()[command]) {
            (Op::Launch { args, .. }, Command::Launch(launch)) => {
                let name = &launch.kernel.name;
                let known = audit.out_of_reach.contains(name);
                if launch.kernel.follows_device_pointers && !known {
                    audit.out_of_reach.push(name.clone());
                }
                audit.addresses += launch.kernel.pointers().count();
                check_pointers(launch, args, memory)
            }
            _ => {
                let sides = sides(op);
                audit.addresses += sides.len();
                sides.into_iter().try_for_each(|(side, address, bytes)| {
                    if memory.holds(address, bytes) {
                        Ok(())
                    } else {
                        Err(refused_address_error(address, memory).within(side))
                    }
                })
            }
        };
        checked.map_err(|error| error.within(format!("command {command}")))?;
    }
    Ok(audit)
}

/// Checks that each pointer of a launch points to what was recorded for it: to a buffer, to that uniform's
/// place, or into declared memory.
///
/// # Errors
/// [`ErrorKind::Mismatch`], with the kernel and its parameter.
fn check_pointers(launch: &Launch, args: &[u64], memory: &AllowedMemory<'_>) -> Result<()> {
    let mut targets = Vec::new();
    launch.visit_targets(|target, _| targets.push(target));
    for (pointer, target) in launch.kernel.pointers().zip(targets) {
        let address = args[pointer.word];
        let fits = match target {
            Target::Buffer(_) => memory.holds(address, 1),
            Target::Uniform(id) => memory.holds_within(address, id.offset_bytes()),
            // The edges between commands were derived without this address, so it must not
            // be a buffer's.
            Target::Address(_) => memory.is_declared(address),
        };
        if !fits {
            let error = refused_address_error(address, memory);
            return Err(error.within(word_place(launch, pointer.word)));
        }
    }
    Ok(())
}

fn refused_address_error(address: u64, memory: &AllowedMemory<'_>) -> Error {
    let location = memory.what_is(address);
    mismatch_error(format!("the address {address:#x} is {location}"))
        .fix("declare the memory to the executor, or point to memory that is")
}

/// The addresses of a copy or memset, each with its name and size in bytes.
fn sides(op: &Op) -> Vec<(&'static str, u64, usize)> {
    match *op {
        Op::Upload {
            host,
            device,
            bytes,
        }
        | Op::Download {
            device,
            host,
            bytes,
        } => vec![("host side", host, bytes), ("device side", device, bytes)],
        Op::Memset { device, bytes, .. } => vec![("device side", device, bytes)],
        Op::Copy { .. } | Op::Launch { .. } | Op::Timestamp { .. } => Vec::new(),
    }
}

/// Names the parameter that a word of a launch belongs to.
fn word_place(launch: &Launch, word: usize) -> String {
    let (kernel, mut start) = (&launch.kernel, 0);
    for param in &kernel.params {
        let words = param.kind.words();
        if word < start + words {
            let inside = match words {
                1 => String::new(),
                _ => format!(", offset {}", (word - start) * crate::record::WORD_BYTES),
            };
            return format!("kernel {}, parameter {}{inside}", kernel.name, param.name);
        }
        start += words;
    }
    format!("kernel {}, word {word}", kernel.name)
}

/// Compares what a graph holds with what was lowered for it.
///
/// # Errors
/// [`ErrorKind::Mismatch`] at the first difference, with the command, the kernel and its
/// parameter, and both values.
pub(super) fn check_held(body: &[Lowered], held: &[Op], memory: &AllowedMemory<'_>) -> Result<()> {
    for (lowered, held) in body.iter().zip(held) {
        compare(lowered, held, memory)
            .map_err(|error| error.within(format!("command {}", lowered.command())))?;
    }
    match (held.len(), body.len()) {
        (held, lowered) if held == lowered => Ok(()),
        (held, lowered) => Err(mismatch_error(format!(
            "the graph holds {held} operations, and {lowered} were lowered"
        ))),
    }
}

/// Compares an operation that a graph holds with the one that was lowered for it. The error names
/// the first difference.
///
/// # Errors
/// [`ErrorKind::Mismatch`].
fn compare(lowered: &Lowered, held: &Op, memory: &AllowedMemory<'_>) -> Result<()> {
    let meant = lowered.op();
    if meant == held {
        return Ok(());
    }
    if let (Op::Launch { .. }, Op::Launch { .. }, Command::Launch(launch)) =
        (meant, held, &memory.recording.commands()[lowered.command()])
    {
        return Err(launch_difference_error(launch, meant, held, memory));
    }
    let (held_kind, meant_kind) = (held.kind_name(), meant.kind_name());
    if held_kind != meant_kind {
        return Err(mismatch_error(format!(
            "the graph holds {held_kind}, and {meant_kind} was lowered"
        )));
    }
    let both = sides(held).into_iter().zip(sides(meant));
    for ((side, found, bytes), (_, wanted, wanted_bytes)) in both {
        if found != wanted {
            return Err(address_difference_error(found, wanted, memory).within(side));
        }
        if bytes != wanted_bytes {
            return Err(difference_error("bytes", &bytes, &wanted_bytes));
        }
    }
    Err(difference_error("byte", held, meant))
}

/// The error that names the first difference between two launches. `meant` was lowered, `held` is
/// what the graph holds.
fn launch_difference_error(
    launch: &Launch,
    meant: &Op,
    held: &Op,
    memory: &AllowedMemory<'_>,
) -> Error {
    let (
        Op::Launch {
            function,
            grid,
            block,
            shared_bytes,
            args,
        },
        Op::Launch {
            function: held_function,
            grid: held_grid,
            block: held_block,
            shared_bytes: held_shared_bytes,
            args: held_args,
        },
    ) = (meant, held)
    else {
        unreachable!("the caller matched on the kinds");
    };
    let found = if function != held_function {
        difference_error("function", &held_function.0, &function.0)
    } else if grid != held_grid {
        difference_error("grid", held_grid, grid)
    } else if block != held_block {
        difference_error("block", held_block, block)
    } else if shared_bytes != held_shared_bytes {
        difference_error("shared bytes", held_shared_bytes, shared_bytes)
    } else {
        let differs = |word: &usize| args.get(*word) != held_args.get(*word);
        let word = (0..args.len().max(held_args.len())).find(differs);
        let word = word.expect("the operations differ in something");
        let place = word_place(launch, word);
        let mut pointers = launch.kernel.pointers();
        return match (held_args.get(word), args.get(word)) {
            (Some(&found), Some(&wanted)) if pointers.any(|pointer| pointer.word == word) => {
                address_difference_error(found, wanted, memory).within(place)
            }
            (Some(found), Some(wanted)) => difference_error("value", found, wanted).within(place),
            _ => difference_error("words", &held_args.len(), &args.len()).within(place),
        };
    };
    found.within(format!("kernel {}", launch.kernel.name))
}

fn difference_error(field: &str, held: &dyn fmt::Debug, meant: &dyn fmt::Debug) -> Error {
    mismatch_error(format!(
        "the graph holds {field} {held:?}, and {meant:?} was lowered"
    ))
}

fn address_difference_error(held: u64, meant: u64, memory: &AllowedMemory<'_>) -> Error {
    let (found, wanted) = (memory.what_is(held), memory.what_is(meant));
    mismatch_error(format!(
        "the graph holds the address {held:#x} ({found}), and {meant:#x} ({wanted}) was lowered"
    ))
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operations, addresses) = (self.operations, self.addresses);
        write!(f, "{operations} operations, {addresses} addresses")?;
        if self.out_of_reach.is_empty() {
            Ok(())
        } else {
            write!(
                f,
                "; out of reach: pointers in device memory that {} follows",
                self.out_of_reach.join(", ")
            )
        }
    }
}
