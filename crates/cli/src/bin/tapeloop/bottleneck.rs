//! What bounds a run, and what would help.

use super::waits::SingleThread;
use std::thread::available_parallelism;
use std::time::Duration;
use tapeloop::pipeline::{Stage, Statistics};
use tapeloop_cli::core_time::MachineTime;

/// The smallest share of busy threads with which the processors count as what bounds a run: not all
/// of them, as threads wait for each other at times, and at the start and the end of a run.
const BUSY_SHARE_MIN: f64 = 0.85;

/// The smallest number of cores that other processes keep busy, as a share of the run's threads, with which they
/// count as what bounds a run.
const OTHERS_SHARE_MIN: f64 = 0.25;

/// Shorter runs are not compared with other processes: the machine's clock counts hundredths of a
/// second.
const CLOCK_TIME_MIN: Duration = Duration::from_secs(1);

/// The smallest ratio of wall time to processor time with which reading counts as waiting for
/// files: more than half of its time.
const WAITING_FACTOR_MIN: f64 = 2.0;

/// The processor time of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Cores {
    /// Threads of the pool.
    pub(super) threads: usize,
    /// Wall time of the run.
    pub(super) elapsed: Duration,
    /// Wall time of reading, summed over the threads that read.
    pub(super) read_wall: Duration,
    /// Reading.
    pub(super) read: Duration,
    /// Gathering and encoding the rows of the tables.
    pub(super) tables: Duration,
    /// All threads of the process; 0 if the process has no clock.
    pub(super) all: Duration,
    /// That of all cores of the machine, where it is known.
    pub(super) machine: Option<MachineTime>,
    /// Wall time of compiling kernels, before the first batch.
    pub(super) compiling: Duration,
    /// The threads that do a work which no other thread does.
    pub(super) single: Vec<SingleThread>,
}

impl Cores {
    /// Processor seconds by the kind of work. The engine fills, submits and unpacks batches, and
    /// on the CPU backend it computes.
    pub(super) fn seconds(&self) -> [(&'static str, f64); 3] {
        // The clocks of threads may have counted slightly more than that of the process.
        let engine = self.all.saturating_sub(self.read + self.tables);
        let parts = [
            ("reading", self.read),
            ("tables", self.tables),
            ("engine", engine),
        ];
        parts.map(|(name, time)| (name, time.as_secs_f64()))
    }

    /// The average number of cores that `seconds` of processor time keep busy.
    fn cores(&self, seconds: f64) -> f64 {
        seconds / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// How many cores were busy, and with what.
    pub(super) fn sentence(&self) -> String {
        let parts = self.seconds();
        let parts = parts.map(|(name, seconds)| format!("{name} {:.1}", self.cores(seconds)));
        let busy = self.cores(self.all.as_secs_f64());
        format!("cores busy: {busy:.1} on average ({})", parts.join(", "))
    }

    /// What bounds the run and what would help, in a sentence. What concerns all stages comes
    /// before the stage that the engine found, which may be slow for that reason: compiling,
    /// processors that are all busy, other processes, and a thread that all others wait for.
    pub(super) fn bound(&self, statistics: &Statistics) -> String {
        if 2 * self.compiling > self.elapsed {
            return self.compiling_bound();
        }
        let on_cpu = statistics.on_cpu;
        let busy_share = self.cores(self.all.as_secs_f64()) / self.threads.max(1) as f64;
        if statistics.bound.is_some() && busy_share >= BUSY_SHARE_MIN {
            return self.processors_bound(on_cpu);
        }
        if let (Some(others), Some(_)) = (self.other_programs(), statistics.bound) {
            return self.others_bound(others);
        }
        if let (Some(thread), Some(_)) = (self.busiest_single(), statistics.bound) {
            return self.thread_bound(thread);
        }
        let sentence = statistics.sentence();
        let busy_workers =
            statistics.slots_filling + statistics.slots_unpacking + statistics.threads_mapping;
        let has_idle_workers = statistics.slots_awaiting_worker > 0.0
            && busy_workers < BUSY_SHARE_MIN * statistics.workers as f64;
        let help = match statistics.bound {
            None => return sentence,
            Some(Stage::Input) if self.waits_for_files() => "faster storage for the input",
            Some(Stage::Input) => "more cores, or a larger setting `threads`",
            Some(Stage::Fill | Stage::Unpack) if has_idle_workers => "a larger setting `slots`",
            Some(Stage::Fill | Stage::Unpack) => "faster cores and memory",
            Some(Stage::Device) if on_cpu => "a GPU, more cores, or fewer features",
            Some(Stage::Device) => "a faster GPU, or fewer features",
            Some(Stage::Output) => "a faster disk, or fewer features",
        };
        format!("{sentence}. What would help: {help}")
    }

    /// How many cores other processes kept busy, if they left this run none that were idle.
    fn other_programs(&self) -> Option<f64> {
        let machine = self.machine.filter(|_| self.elapsed >= CLOCK_TIME_MIN);
        let MachineTime { busy, all } = machine?;
        let others = self.cores(busy) - self.cores(self.all.as_secs_f64());
        let is_full = busy >= BUSY_SHARE_MIN * all;
        (is_full && others >= OTHERS_SHARE_MIN * self.threads as f64).then_some(others)
    }

    /// The sentence of a run that other processes slowed down. `others` is the number of cores that
    /// they kept busy.
    fn others_bound(&self, others: f64) -> String {
        format!(
            "bound by other processes: they kept {others:.1} cores busy, and this run {:.1} with {} threads \
             set. What would help: a machine that does less at the same time",
            self.cores(self.all.as_secs_f64()),
            self.threads
        )
    }

    /// The busiest single thread, if others can only wait for it.
    fn busiest_single(&self) -> Option<&SingleThread> {
        let by_share =
            |a: &&SingleThread, b: &&SingleThread| a.busy_share().total_cmp(&b.busy_share());
        let busiest = self.single.iter().max_by(by_share)?;
        (busiest.busy_share() >= BUSY_SHARE_MIN).then_some(busiest)
    }

    /// The sentence of a run that waited for a thread which no other one can help.
    fn thread_bound(&self, thread: &SingleThread) -> String {
        let busy = self.cores(self.all.as_secs_f64());
        format!(
            "thread-bound: the only thread that {} was busy {:.0}% of the time, and the others waited \
             for it, with {busy:.1} of {} cores busy. What would help: several runs side by side, each \
             with a part of the inputs (`--shard`)",
            thread.does,
            100.0 * thread.busy_share().min(1.0),
            self.threads
        )
    }

    /// The sentence of a run that mostly compiled kernels.
    fn compiling_bound(&self) -> String {
        let share = self.compiling.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9);
        format!(
            "compile-bound: compiling kernels took {:.0}% of the time. Later runs on this kind of \
             GPU take them from the cache, which `tapeloop doctor --warm` fills ahead",
            100.0 * share.min(1.0)
        )
    }

    /// Whether threads that read mostly wait for storage.
    fn waits_for_files(&self) -> bool {
        let read = self.read.as_secs_f64();
        read > 0.0 && self.read_wall.as_secs_f64() > WAITING_FACTOR_MIN * read
    }

    /// The sentence of a run that kept all of its cores busy: which part took most of them, and
    /// what would help.
    fn processors_bound(&self, on_cpu: bool) -> String {
        let parts = self.seconds();
        let most = parts.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let (most, seconds) = *most.expect("there are three");
        // The threads' clocks may have counted slightly more than the process's.
        let of_all = (100.0 * seconds / self.all.as_secs_f64().max(1e-9)).min(100.0);
        let machine = available_parallelism().map_or(0, usize::from);
        let more = if machine > self.threads {
            format!("threads = {machine}, as many as this machine has cores")
        } else {
            "more cores".to_owned()
        };
        let also = match most {
            "tables" => ", fewer features, or tables.compression = \"lz4\"",
            "engine" if on_cpu => ", a GPU, or fewer features",
            _ => "",
        };
        let busy = self.cores(self.all.as_secs_f64());
        let threads = match self.threads {
            1 => "1 thread".to_owned(),
            threads => format!("{threads} threads"),
        };
        format!(
            "processor-bound: {busy:.1} cores were busy with {threads} set, and {most} took \
             {of_all:.0}% of that. What would help: {more}{also}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::waits::single_threads;
    use super::*;
    use tapeloop::pipeline::Counters;
    use tapeloop_cli::thread_times::{SingleThreads, ThreadTime};

    fn cores(read: u64, tables: u64, all: u64) -> Cores {
        Cores {
            threads: 1,
            elapsed: Duration::from_secs(10),
            read_wall: Duration::from_secs(read),
            read: Duration::from_secs(read),
            tables: Duration::from_secs(tables),
            all: Duration::from_secs(all),
            machine: None,
            compiling: Duration::ZERO,
            single: Vec::new(),
        }
    }

    fn bound(stage: Stage) -> Statistics {
        let mut statistics = Statistics::default();
        statistics.bound = Some(stage);
        statistics
    }

    fn bound_on_cpu(stage: Stage) -> Statistics {
        let mut statistics = bound(stage);
        statistics.on_cpu = true;
        statistics
    }

    #[test]
    fn busy_threads_bound_and_the_largest_work_is_named() {
        let (stage, on_cpu) = (bound(Stage::Input), bound_on_cpu(Stage::Input));
        let said = cores(2, 6, 9).bound(&stage);
        for part in ["processor-bound: 0.9 cores", "tables took 67%", "lz4"] {
            assert!(said.contains(part), "{said}");
        }
        let said = cores(2, 1, 10).bound(&on_cpu);
        for part in ["engine took 70%", "a GPU"] {
            assert!(said.contains(part), "{said}");
        }
        assert!(!cores(2, 1, 10).bound(&stage).contains("a GPU"));
        let said = cores(8, 1, 10).bound(&on_cpu);
        assert!(said.contains("reading took 80%"), "{said}");
        let said = cores(99, 1, 10).bound(&on_cpu);
        assert!(said.contains("reading took 100%"), "{said}");
        assert_eq!(
            cores(2, 6, 9).sentence(),
            "cores busy: 0.9 on average (reading 0.2, tables 0.6, engine 0.1)"
        );
    }

    #[test]
    fn with_idle_threads_the_stage_bounds_and_reading_may_wait_for_files() {
        let idle = cores(2, 1, 4);
        let waiting = Cores {
            read_wall: Duration::from_secs(9),
            ..idle.clone()
        };
        for (cores, stage, help) in [
            (&idle, Stage::Input, "threads"),
            (&waiting, Stage::Input, "storage"),
            (&idle, Stage::Device, "a faster GPU"),
            (&idle, Stage::Output, "disk"),
        ] {
            let said = cores.bound(&bound(stage));
            assert!(said.contains(&format!("{}-bound", stage.name())), "{said}");
            assert!(said.contains(help), "{said}");
        }
        let said = idle.bound(&bound_on_cpu(Stage::Device));
        assert!(said.starts_with("compute-bound"), "{said}");
        assert!(said.contains("a GPU") && !said.contains("device"), "{said}");
        let none = Statistics::default();
        assert_eq!(idle.bound(&none), none.sentence());
    }

    #[test]
    fn other_programs_bound_a_run_if_they_leave_no_core_idle() {
        let among = |busy, all| Cores {
            threads: 4,
            machine: Some(MachineTime { busy, all }),
            ..cores(2, 1, 20)
        };
        let statistics = bound_on_cpu(Stage::Device);
        let said = among(39.0, 40.0).bound(&statistics);
        for part in ["other processes: they kept 1.9 cores busy", "this run 2.0"] {
            assert!(said.contains(part), "{said}");
        }
        for cores in [among(39.0, 80.0), among(25.0, 28.0), cores(2, 1, 20)] {
            let said = cores.bound(&statistics);
            assert!(!said.contains("other processes"), "{said}");
        }
    }

    #[test]
    fn a_run_that_compiled_most_of_the_time_names_that() {
        let statistics = bound(Stage::Output);
        let with = |seconds| Cores {
            compiling: Duration::from_secs(seconds),
            ..cores(2, 1, 4)
        };
        let said = with(8).bound(&statistics);
        assert!(
            said.starts_with("compile-bound: compiling kernels took 80%"),
            "{said}"
        );
        assert!(said.contains("doctor --warm"), "{said}");
        assert!(with(4).bound(&statistics).starts_with("output-bound"));
    }

    #[test]
    fn a_busy_single_thread_bounds_while_cores_are_idle() {
        let times = SingleThreads {
            list: ThreadTime {
                wall: Duration::from_secs(10),
                busy: Duration::from_secs(9),
            },
            ..SingleThreads::default()
        };
        let cores_of = |threads, all| Cores {
            threads,
            single: single_threads(&times, &Counters::default(), Duration::from_secs(10)),
            ..cores(2, 1, all)
        };
        let statistics = bound(Stage::Fill);
        let said = cores_of(16, 60).bound(&statistics);
        for part in [
            "thread-bound",
            "lists inputs",
            "90%",
            "6.0 of 16 cores",
            "--shard",
        ] {
            assert!(said.contains(part), "{said}");
        }
        let said = cores_of(1, 10).bound(&statistics);
        assert!(said.starts_with("processor-bound"), "{said}");
    }

    #[test]
    fn more_slots_help_while_workers_are_idle() {
        let mut statistics = bound(Stage::Fill);
        (statistics.workers, statistics.slots_filling) = (16, 5.0);
        let said = cores(0, 0, 0).bound(&statistics);
        assert!(
            said.ends_with("faster cores and memory"),
            "no worker fills: {said}"
        );
        statistics.slots_awaiting_worker = 0.1;
        let said = cores(0, 0, 0).bound(&statistics);
        assert!(said.ends_with("a larger setting `slots`"), "{said}");
        statistics.slots_unpacking = 9.0;
        let said = cores(0, 0, 0).bound(&statistics);
        assert!(said.ends_with("faster cores and memory"), "{said}");
    }

    #[test]
    fn without_a_clock_of_the_process_the_stage_is_named() {
        let said = cores(0, 0, 0).bound(&bound_on_cpu(Stage::Fill));
        assert!(said.starts_with("fill-bound"), "{said}");
    }
}
