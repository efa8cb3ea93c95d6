//! Counters of a run, which several threads update.

use super::core_time::CoreTime;
use super::thread_times::{SingleThreads, ThreadTime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tapeloop::pipeline::Counters;
use tapeloop::structure::{Assembly, Check, Findings, Structure};
use tapeloop_annotations::Matches;
use tapeloop_bench::internal::format::whole;
use tapeloop_error::internal::printable;
use tapeloop_files::shown;
use tapeloop_inputs::Skipped;
use tapeloop_structure::internal::has_listed_none_so_far;

/// Structures from files that may be cut short which a list has.
const TRUNCATED_LISTED_MAX: usize = 10;

/// The counts of a run.
#[derive(Debug, Default)]
pub struct RunCounters {
    /// Inputs of the whole run; 0 until they have been counted.
    inputs_total: AtomicU64,
    atomic: AtomicCounts,
    /// See [`RunCounters::first_truncated`].
    first_truncated: Mutex<Vec<String>>,
    /// See [`RunCounters::first_endless`].
    first_endless: Mutex<Option<String>>,
    findings: Mutex<FindingCounts>,
    first_others: Mutex<Vec<String>>,
    first_repeated: Mutex<Option<String>>,
    /// What the annotations matched.
    matches: Mutex<MatchesSoFar>,
    /// Reading, on all threads.
    pub read_cores: CoreTime,
    read_ns: AtomicU64,
    write_ns: AtomicU64,
    threads: Mutex<SingleThreads>,
    losses_alone: Mutex<LossesAlone>,
    /// See [`RunCounters::earlier`].
    earlier: Mutex<RunCounts>,
}

/// The losses of supervised devices in structures that ran alone, which the engine does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossesAlone {
    pub restarts: u64,
    /// Structures that the device fails on.
    pub quarantined: u64,
}

/// What the checks of files found, by the name of the check.
pub type FindingCounts = BTreeMap<String, FindingCount>;

/// A line about what a check found, with the first file; `None` if it found nothing.
pub fn finding_line(check: Check, findings: &FindingCounts) -> Option<String> {
    let found = findings.get(check.name())?;
    let more = if found.structures > 1 { ", ..." } else { "" };
    let (about, count) = (check.about(), whole(found.count));
    Some(format!("{about}: {count} ({}{more})", found.first))
}

/// What a check found in all files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FindingCount {
    /// How often it applied, as [`Check::about`] counts.
    pub count: u64,
    /// In how many structures.
    pub structures: u64,
    /// The first file, and where it applied there.
    pub first: String,
}

/// What a run counts of a structure and its rows do not keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StructureCounts {
    atoms: u64,
    may_have_plddt: bool,
    /// Whether the file of `sasa.radii` has listed no atom of this structure, nor of any that the run read
    /// before it.
    none_listed_so_far: bool,
    unnumbered_broken_chains: u64,
}

impl StructureCounts {
    /// The counts of a structure as it was read, before its atoms are dropped.
    pub fn new(structure: &Structure) -> Self {
        StructureCounts {
            atoms: structure.xyz.len() as u64,
            may_have_plddt: structure.may_have_plddt(),
            none_listed_so_far: has_listed_none_so_far(structure.radii),
            unnumbered_broken_chains: structure.unnumbered_broken_chains(),
        }
    }
}

/// Declares the counts of a run: their atomic counters, and [`RunCounts`], their values.
macro_rules! run_counts {
    (
        continued: { $($(#[$about:meta])* $count:ident,)* }
        counted_anew: { $($(#[$about_anew:meta])* $anew:ident,)* }
    ) => {
        #[derive(Debug, Default)]
        struct AtomicCounts {
            $($count: AtomicU64,)*
            $($anew: AtomicU64,)*
        }

        impl AtomicCounts {
            /// Sets the counts that a resumed run continues.
            fn resume(&self, counts: &RunCounts) {
                $(self.$count.store(counts.$count, Relaxed);)*
            }
        }

        /// The values of [`RunCounters`].
        #[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
        pub struct RunCounts {
            pub inputs_total: Option<u64>,
            $($(#[$about])* pub $count: u64,)*
            $($(#[$about_anew])* pub $anew: u64,)*
            /// Wall time of reading, the sum over the reading threads.
            pub read: Duration,
            /// Wall time of the thread that takes results, with its waits for the tables, whose files others
            /// write.
            pub write: Duration,
        }

        impl RunCounters {
            /// The counts so far, each read by itself. The thread that takes results adds the `continued` ones,
            /// so for that thread they are exactly those of the inputs that it has taken, and a resumed run goes
            /// on from them.
            pub fn counts(&self) -> RunCounts {
                let total = self.inputs_total.load(Relaxed);
                RunCounts {
                    inputs_total: (total > 0).then_some(total),
                    $($count: self.atomic.$count.load(Relaxed),)*
                    $($anew: self.atomic.$anew.load(Relaxed),)*
                    read: Duration::from_nanos(self.read_ns.load(Relaxed)),
                    write: Duration::from_nanos(self.write_ns.load(Relaxed)),
                }
            }
        }
    };
}

run_counts! {
    continued: {
        /// Inputs with results.
        inputs,
        structures,
        residues,
        /// Residues that do not meet `tables.where`; `residues` counts them too.
        residues_left_out,
        atoms,
        /// Atoms that `tables.where_atoms` was applied to.
        #[serde(default)]
        atoms_tested,
        /// Of them, those that meet it.
        #[serde(default)]
        atoms_chosen,
        /// Structures that were read before the file of `sasa.radii` listed any atom.
        #[serde(default)]
        without_listed_atoms,
        /// Atoms whose coordinates had more than three decimals.
        rounded_atoms,
        /// Structures whose pLDDT was from 0 to 1, and was multiplied by 100.
        scaled_plddt,
        /// Structures with B factors that look like pLDDT, which their files do not name.
        #[serde(default)]
        unnamed_plddt,
        /// Chains with breaks whose residues have no positions in the sequence.
        #[serde(default)]
        unnumbered_chains,
        /// Structures that are an assembly.
        assemblies,
        /// Structures that no bucket of the engine held, which ran alone.
        alone,
        /// Structures whose files may be cut short.
        truncated,
        /// Structures for which more than a missing END suggests that; `truncated` counts them too.
        truncated_likely,
        /// Rejected files, and models of files.
        rejected,
    }
    counted_anew: {
        /// FIFOs, sockets and devices in folders and globs.
        specials_skipped,
        /// Files in folders and archives whose names have the ending of no structure file.
        others_skipped,
        /// Members of archives that have the name of an earlier one.
        names_repeated,
        /// Files that were named before and are read once.
        #[serde(default)]
        files_repeated,
    }
}

/// What the annotations matched, which is known once an input has been read.
#[derive(Debug, Default)]
struct MatchesSoFar {
    /// In all inputs with results.
    done: Matches,
    /// In each input that was read ahead, by its ordinal.
    ahead: BTreeMap<u64, Matches>,
}

/// The parts that every table has, which a killed run leaves behind.
#[derive(Clone, Copy, Debug, Default)]
pub struct WrittenParts {
    pub parts: u64,
    /// The run's counts at the end of the last part.
    pub counts: RunCounts,
}

impl RunCounters {
    /// Continues the counts of an interrupted run. What is skipped is counted anew.
    pub fn resume(
        &self,
        counts: &RunCounts,
        matches: &Matches,
        truncated: &[String],
        endless: Option<&str>,
        findings: &FindingCounts,
    ) {
        self.atomic.resume(counts);
        *locked(&self.earlier) = *counts;
        locked(&self.matches).done = matches.clone();
        *locked(&self.first_truncated) = truncated.to_vec();
        *locked(&self.first_endless) = endless.map(str::to_owned);
        locked(&self.findings).clone_from(findings);
    }

    /// The counts that an interrupted run had when this one went on with it, which rates leave out; zeros without
    /// one.
    pub fn earlier(&self) -> RunCounts {
        *locked(&self.earlier)
    }

    pub fn set_total(&self, inputs: u64) {
        self.inputs_total.store(inputs, Relaxed);
    }

    /// Sets the number of inputs that have results, and counts what the annotations matched in
    /// those that have some now. What was read ahead must not be in the counts of a part that ends
    /// before it.
    pub fn set_inputs(&self, inputs: u64) {
        self.atomic.inputs.store(inputs, Relaxed);
        let MatchesSoFar { done, ahead } = &mut *locked(&self.matches);
        while let Some(next) = ahead.first_entry()
            && *next.key() < inputs
        {
            done.add(next.remove());
        }
    }

    /// Adds what the annotations matched in the input `ordinal`.
    pub fn add_matches(&self, ordinal: u64, matches: Matches) {
        locked(&self.matches).ahead.insert(ordinal, matches);
    }

    /// What the annotations matched in the inputs with results.
    pub fn matches(&self) -> Matches {
        locked(&self.matches).done.clone()
    }

    /// Counts a structure, and what readers found wrong with it. Takes locks only for names of such
    /// structures.
    pub fn add_structure(&self, source: &str, structure: &Structure, counts: StructureCounts) {
        if let Some(truncation) = structure.truncation {
            self.atomic.truncated.fetch_add(1, Relaxed);
            if truncation.is_likely() {
                self.atomic.truncated_likely.fetch_add(1, Relaxed);
                let mut first = locked(&self.first_truncated);
                if first.len() < TRUNCATED_LISTED_MAX {
                    first.push(format!("{} ({truncation})", printable(source)));
                }
            } else {
                locked(&self.first_endless).get_or_insert_with(|| printable(source).into_owned());
            }
        }
        self.add_findings(source, &structure.findings);
        let atomic = &self.atomic;
        for (counter, more) in [
            (&atomic.structures, 1),
            (&atomic.residues, structure.residues.len() as u64),
            (&atomic.atoms, counts.atoms),
            (&atomic.rounded_atoms, u64::from(structure.rounded_atoms)),
            (&atomic.scaled_plddt, u64::from(structure.plddt_scaled)),
            (&atomic.unnamed_plddt, u64::from(counts.may_have_plddt)),
            (
                &atomic.without_listed_atoms,
                u64::from(counts.none_listed_so_far),
            ),
            (&atomic.unnumbered_chains, counts.unnumbered_broken_chains),
            (
                &atomic.assemblies,
                u64::from(structure.assembly != Assembly::Deposited),
            ),
        ] {
            counter.fetch_add(more, Relaxed);
        }
    }

    /// Adds what the checks found in a file.
    pub fn add_findings(&self, source: &str, findings: &Findings) {
        for finding in findings.iter() {
            let mut all = locked(&self.findings);
            let known = all.entry(finding.check.name().to_owned()).or_default();
            if known.structures == 0 {
                known.first = format!("{}, {}", printable(source), finding.first);
            }
            // Saturating, as a run that goes on begins with numbers from `run.json`, which may be
            // any.
            known.count = known.count.saturating_add(u64::from(finding.count));
            known.structures = known.structures.saturating_add(1);
        }
    }

    /// What the checks found so far.
    pub fn findings(&self) -> FindingCounts {
        locked(&self.findings).clone()
    }

    /// The first structures whose files are likely cut short: their source, and what is missing.
    pub fn first_truncated(&self) -> Vec<String> {
        locked(&self.first_truncated).clone()
    }

    /// The first source whose file ends in a whole line but without END.
    pub fn first_endless(&self) -> Option<String> {
        locked(&self.first_endless).clone()
    }

    /// Adds residues that do not meet `tables.where`.
    pub fn add_left_out(&self, residues: u64) {
        self.atomic.residues_left_out.fetch_add(residues, Relaxed);
    }

    /// Adds atoms that `tables.where_atoms` was applied to, and those of them that meet it.
    pub fn add_tested_atoms(&self, tested: u64, chosen: u64) {
        self.atomic.atoms_tested.fetch_add(tested, Relaxed);
        self.atomic.atoms_chosen.fetch_add(chosen, Relaxed);
    }

    pub fn add_alone(&self) {
        self.atomic.alone.fetch_add(1, Relaxed);
    }

    pub fn add_rejected(&self) {
        self.atomic.rejected.fetch_add(1, Relaxed);
    }

    /// Stores the counts of files that were skipped. Takes a lock only if there are more names.
    pub fn set_skipped(&self, skipped: &Skipped) {
        self.atomic
            .specials_skipped
            .store(skipped.specials, Relaxed);
        let others = self.atomic.others_skipped.swap(skipped.others, Relaxed);
        if others != skipped.others {
            let names = skipped.first_others.iter().map(|path| shown(path));
            *locked(&self.first_others) = names.collect();
        }
        let repeated = self.atomic.files_repeated.swap(skipped.repeated, Relaxed);
        if repeated != skipped.repeated {
            let first = skipped.first_repeated.as_deref();
            *locked(&self.first_repeated) = first.map(shown);
        }
    }

    pub fn set_names_repeated(&self, count: u64) {
        self.atomic.names_repeated.store(count, Relaxed);
    }

    /// The first files that were skipped for their names.
    pub fn first_others_skipped(&self) -> Vec<String> {
        locked(&self.first_others).clone()
    }

    /// The first file that was named again.
    pub fn first_repeated(&self) -> Option<String> {
        locked(&self.first_repeated).clone()
    }

    pub fn add_read(&self, time: Duration) {
        self.read_ns.fetch_add(time.as_nanos() as u64, Relaxed);
    }

    pub fn add_write(&self, time: Duration) {
        self.write_ns.fetch_add(time.as_nanos() as u64, Relaxed);
    }

    /// Notes the time of the thread that lists inputs, and its wait for room.
    pub fn set_list_thread(&self, time: ThreadTime, room_wait: Duration) {
        let mut threads = locked(&self.threads);
        (threads.list, threads.list_room) = (time, room_wait);
    }

    /// Notes the time of the thread that submits structures, and its wait for files.
    pub fn set_submit_thread(&self, time: ThreadTime, files_wait: Duration) {
        let mut threads = locked(&self.threads);
        (threads.submit, threads.submit_files) = (time, files_wait);
    }

    /// Notes the time of the thread that takes results, after the last one.
    pub fn set_results_thread(&self, time: ThreadTime) {
        let taken = Duration::from_nanos(self.write_ns.load(Relaxed));
        let mut threads = locked(&self.threads);
        (threads.results, threads.results_taken) = (time, taken);
    }

    /// The times of the single threads that have ended.
    pub fn threads(&self) -> SingleThreads {
        *locked(&self.threads)
    }

    pub fn set_losses_alone(&self, losses: LossesAlone) {
        *locked(&self.losses_alone) = losses;
    }

    /// Adds the losses in structures that ran alone to those of the engine.
    pub fn with_losses_alone(&self, engine: Counters) -> Counters {
        let losses = *locked(&self.losses_alone);
        let mut all = engine;
        all.restarts += losses.restarts;
        all.items_quarantined += losses.quarantined;
        all
    }
}

/// Takes a lock that a thread may have held when a file made it panic: counts stay usable.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
