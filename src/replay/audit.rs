//! Whether a graph holds what was lowered, and nothing but addresses that are the
//! slot's to use.
//!
//! A graph replays addresses that were baked in once. One that is stale by then, or
//! was never the slot's, corrupts memory in silence, and a mistake between the
//! lowering and the driver shows as a wrong result at best. So what is lowered is
//! checked against the memory that may be used, and what the device holds after a
//! capture, a build or an update against what was lowered.

use super::Lowered;
use super::declared::Declared;
use crate::backend::{Addresses, AllocationView, Op};
use crate::error::{Error, ErrorKind, Result};
use crate::record::{Command, Launch, Recording, Target};
use std::fmt;

/// What an audit looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Operations, copies outside of the graph among them.
    pub operations: usize,
    /// Addresses in them.
    pub addresses: usize,
    /// Kernels that follow pointers in device memory, which nobody can check.
    pub out_of_reach: Vec<String>,
}

/// The memory that a bucket's operations may use.
pub(super) struct Memory<'a> {
    pub(super) recording: &'a Recording,
    /// The slot's own, by buffer.
    pub(super) own: Vec<Addresses>,
    /// What buffers are bound to instead.
    pub(super) bound: Vec<&'a AllocationView>,
    pub(super) declared: &'a Declared,
}

impl Memory<'_> {
    /// Whether an address of a buffer, with so many bytes from there, is the slot's.
    fn holds(&self, address: u64, bytes: usize) -> bool {
        // What a buffer stands for is its start, whatever addresses are to a slot.
        let is_own = |own: &Addresses| {
            (own.device == address || own.host == Some(address)) && bytes <= own.bytes
        };
        let is_bound = |view: &&AllocationView| view.address() == address && bytes <= view.bytes();
        self.own.iter().any(is_own) || self.bound.iter().any(is_bound)
    }

    fn is_declared(&self, address: u64) -> bool {
        let mut views = self.declared.views().iter();
        views.any(|view| {
            let start = view.address();
            address >= start && address - start < view.bytes() as u64
        })
    }

    /// What is at an address, as far as it can be told.
    fn what_is(&self, address: u64) -> String {
        let is_own = |own: &Addresses| own.device == address || own.host == Some(address);
        let names = self.recording.buffers().iter().map(|decl| &decl.name);
        if let Some((name, _)) = names.zip(&self.own).find(|(_, own)| is_own(own)) {
            return format!("buffer {name}");
        }
        if self.bound.iter().any(|view| view.address() == address) {
            return "memory that a buffer is bound to".to_owned();
        }
        if self.is_declared(address) {
            return "declared memory".to_owned();
        }
        match self.declared.was_known(address) {
            true => "stale: the memory there was bound or declared before, and is no more".into(),
            false => "foreign: nothing of this slot, bound or declared is there".to_owned(),
        }
    }
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::Mismatch, message)
}

/// Checks every address of lowered operations, each with the place of its command.
///
/// # Errors
/// [`ErrorKind::Mismatch`], with the command, and the kernel and its parameter.
pub(super) fn check_lowered<'a>(
    ops: impl Iterator<Item = (usize, &'a Op)>,
    memory: &Memory<'_>,
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
                    match memory.holds(address, bytes) {
                        true => Ok(()),
                        false => Err(refused(address, memory).within(side)),
                    }
                })
            }
        };
        checked.map_err(|error| error.within(format!("command {command}")))?;
    }
    Ok(audit)
}

fn check_pointers(launch: &Launch, args: &[u64], memory: &Memory<'_>) -> Result<()> {
    let mut targets = Vec::new();
    launch.visit_targets(|target, _| targets.push(target));
    for (pointer, target) in launch.kernel.pointers().zip(targets) {
        let address = args[pointer.word];
        let fits = match target {
            Target::Buffer(_) => memory.holds(address, 1),
            // What depends on what was derived without it, so a buffer is no answer.
            Target::Address(_) => memory.is_declared(address),
        };
        if !fits {
            let error = refused(address, memory);
            return Err(error.within(word_place(launch, pointer.word)));
        }
    }
    Ok(())
}

fn refused(address: u64, memory: &Memory<'_>) -> Error {
    let what = memory.what_is(address);
    wrong(format!("the address {address:#x} is {what}"))
        .fix("declare the memory to the executor, or point to memory that is")
}

/// The addresses of a copy or memset, with what they are and the bytes from there.
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
        Op::Launch { .. } | Op::Timestamp { .. } => Vec::new(),
    }
}

/// Which parameter a word of a launch is of.
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
/// [`ErrorKind::Mismatch`], with the command, the kernel and its parameter, and both
/// values.
pub(super) fn check_held(body: &[Lowered], held: &[Op], memory: &Memory<'_>) -> Result<()> {
    for (lowered, held) in body.iter().zip(held) {
        compare(lowered, held, memory)
            .map_err(|error| error.within(format!("command {}", lowered.command())))?;
    }
    match (held.len(), body.len()) {
        (held, lowered) if held == lowered => Ok(()),
        (held, lowered) => Err(wrong(format!(
            "the graph holds {held} operations, and {lowered} were lowered"
        ))),
    }
}

fn compare(lowered: &Lowered, held: &Op, memory: &Memory<'_>) -> Result<()> {
    let meant = lowered.op();
    if meant == held {
        return Ok(());
    }
    if let (Op::Launch { .. }, Op::Launch { .. }, Command::Launch(launch)) =
        (meant, held, &memory.recording.commands()[lowered.command()])
    {
        return Err(launch_difference(launch, meant, held, memory));
    }
    if kind(meant) != kind(held) {
        let (held, meant) = (kind(held), kind(meant));
        return Err(wrong(format!(
            "the graph holds {held}, and {meant} was lowered"
        )));
    }
    for ((side, at, bytes), (_, wanted, _)) in sides(held).into_iter().zip(sides(meant)) {
        if at != wanted {
            return Err(address_difference(at, wanted, memory).within(side));
        }
        let wanted = sides(meant)[0].2;
        if bytes != wanted {
            return Err(difference("bytes", &bytes, &wanted));
        }
    }
    Err(difference("byte", held, meant))
}

fn launch_difference(launch: &Launch, meant: &Op, held: &Op, memory: &Memory<'_>) -> Error {
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
        difference("function", &held_function.0, &function.0)
    } else if grid != held_grid {
        difference("grid", held_grid, grid)
    } else if block != held_block {
        difference("block", held_block, block)
    } else if shared_bytes != held_shared_bytes {
        difference("shared bytes", held_shared_bytes, shared_bytes)
    } else {
        let differs = |word: &usize| args.get(*word) != held_args.get(*word);
        let word = (0..args.len().max(held_args.len())).find(differs);
        let word = word.expect("the operations differ in something");
        let place = word_place(launch, word);
        let mut pointers = launch.kernel.pointers();
        return match (held_args.get(word), args.get(word)) {
            (Some(&at), Some(&wanted)) if pointers.any(|pointer| pointer.word == word) => {
                address_difference(at, wanted, memory).within(place)
            }
            (Some(at), Some(wanted)) => difference("value", at, wanted).within(place),
            _ => difference("words", &held_args.len(), &args.len()).within(place),
        };
    };
    found.within(format!("kernel {}", launch.kernel.name))
}

fn difference(what: &str, held: &dyn fmt::Debug, meant: &dyn fmt::Debug) -> Error {
    wrong(format!(
        "the graph holds {what} {held:?}, and {meant:?} was lowered"
    ))
}

fn address_difference(held: u64, meant: u64, memory: &Memory<'_>) -> Error {
    let (found, wanted) = (memory.what_is(held), memory.what_is(meant));
    wrong(format!(
        "the graph holds the address {held:#x} ({found}), and {meant:#x} ({wanted}) was lowered"
    ))
}

fn kind(op: &Op) -> &'static str {
    match op {
        Op::Upload { .. } => "an upload",
        Op::Download { .. } => "a download",
        Op::Memset { .. } => "a memset",
        Op::Launch { .. } => "a launch",
        Op::Timestamp { .. } => "a timestamp",
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operations, addresses) = (self.operations, self.addresses);
        write!(f, "{operations} operations, {addresses} addresses")?;
        match self.out_of_reach.is_empty() {
            true => Ok(()),
            false => write!(
                f,
                "; out of reach: pointers in device memory that {} follows",
                self.out_of_reach.join(", ")
            ),
        }
    }
}
