//! What a run has done so far, counted from several threads.

use crate::error::printable;
use crate::structure::{Assembly, Structure};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Truncated structures that the log names.
const NAMED_MAX: usize = 10;

/// The counts of a run.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Inputs that will be there in all, 0 while nobody knows.
    inputs_total: AtomicU64,
    inputs: AtomicU64,
    structures: AtomicU64,
    residues: AtomicU64,
    atoms: AtomicU64,
    rounded_atoms: AtomicU64,
    scaled_plddt: AtomicU64,
    assemblies: AtomicU64,
    truncated: AtomicU64,
    /// Where the first truncated structures came from, and why they are that.
    first_truncated: Mutex<Vec<String>>,
    rejected: AtomicU64,
    specials_skipped: AtomicU64,
    read_ns: AtomicU64,
    write_ns: AtomicU64,
}

/// A [`Tally`] at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) inputs_total: Option<u64>,
    /// Inputs that results have come out of.
    pub(super) inputs: u64,
    pub(super) structures: u64,
    pub(super) residues: u64,
    pub(super) atoms: u64,
    /// Atoms whose coordinates had more than three decimals.
    pub(super) rounded_atoms: u64,
    /// Structures whose pLDDT went from 0 to 1 and was taken times 100.
    pub(super) scaled_plddt: u64,
    /// Structures that are an assembly.
    pub(super) assemblies: u64,
    /// Structures whose files may be cut short.
    pub(super) truncated: u64,
    /// Files, or single models of files.
    pub(super) rejected: u64,
    /// FIFOs, sockets and devices that the walk skipped in folders and globs.
    pub(super) specials_skipped: u64,
    /// Summed over the threads that read.
    pub(super) read: Duration,
    pub(super) write: Duration,
}

impl Tally {
    pub(super) fn set_total(&self, inputs: u64) {
        self.inputs_total.store(inputs, Relaxed);
    }

    pub(super) fn set_inputs(&self, inputs: u64) {
        self.inputs.store(inputs, Relaxed);
    }

    pub(super) fn add_structure(&self, source: &str, structure: &Structure) {
        if let Some(truncation) = structure.truncation {
            self.truncated.fetch_add(1, Relaxed);
            let mut first = self
                .first_truncated
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if first.len() < NAMED_MAX {
                first.push(format!("{} ({truncation})", printable(source)));
            }
        }
        self.structures.fetch_add(1, Relaxed);
        self.residues
            .fetch_add(structure.residues.len() as u64, Relaxed);
        self.atoms.fetch_add(structure.xyz.len() as u64, Relaxed);
        let rounded = u64::from(structure.rounded_atoms);
        self.rounded_atoms.fetch_add(rounded, Relaxed);
        let scaled = u64::from(structure.plddt_scaled);
        self.scaled_plddt.fetch_add(scaled, Relaxed);
        let assembly = u64::from(structure.assembly != Assembly::Deposited);
        self.assemblies.fetch_add(assembly, Relaxed);
    }

    /// The first structures whose files may be cut short: where they came from, and why.
    pub(super) fn first_truncated(&self) -> Vec<String> {
        let first = self.first_truncated.lock();
        first.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn add_rejected(&self) {
        self.rejected.fetch_add(1, Relaxed);
    }

    pub(super) fn set_specials_skipped(&self, files: u64) {
        self.specials_skipped.store(files, Relaxed);
    }

    pub(super) fn add_read(&self, time: Duration) {
        self.read_ns.fetch_add(time.as_nanos() as u64, Relaxed);
    }

    pub(super) fn add_write(&self, time: Duration) {
        self.write_ns.fetch_add(time.as_nanos() as u64, Relaxed);
    }

    pub(super) fn counts(&self) -> Counts {
        let total = self.inputs_total.load(Relaxed);
        Counts {
            inputs_total: (total > 0).then_some(total),
            inputs: self.inputs.load(Relaxed),
            structures: self.structures.load(Relaxed),
            residues: self.residues.load(Relaxed),
            atoms: self.atoms.load(Relaxed),
            rounded_atoms: self.rounded_atoms.load(Relaxed),
            scaled_plddt: self.scaled_plddt.load(Relaxed),
            assemblies: self.assemblies.load(Relaxed),
            truncated: self.truncated.load(Relaxed),
            rejected: self.rejected.load(Relaxed),
            specials_skipped: self.specials_skipped.load(Relaxed),
            read: Duration::from_nanos(self.read_ns.load(Relaxed)),
            write: Duration::from_nanos(self.write_ns.load(Relaxed)),
        }
    }
}
