//! What the threads of a run waited for, and what its slots were used for.

use serde_json::{Value as Json, json};
use std::time::Duration;
use tapeloop::pipeline::{Counters, Statistics};
use tapeloop_cli::thread_times::{SingleThreads, ThreadTime};

/// The times of a thread that does a work alone, such as listing inputs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SingleThread {
    /// Its work as messages name it, such as `lists inputs`.
    pub(super) does: &'static str,
    name: &'static str,
    time: ThreadTime,
    waits: Vec<(&'static str, Duration)>,
    /// The time of the run.
    run: Duration,
}

impl SingleThread {
    /// The share of the run in which it was busy.
    pub(super) fn busy_share(&self) -> f64 {
        self.share(self.time.busy)
    }

    fn share(&self, time: Duration) -> f64 {
        time.as_secs_f64() / self.run.as_secs_f64().max(1e-9)
    }
}

/// The single threads of a run of this length that have ended, in the order in which an input passes
/// them.
pub(super) fn single_threads(
    times: &SingleThreads,
    counters: &Counters,
    run: Duration,
) -> Vec<SingleThread> {
    let thread = |name, does, time: ThreadTime, waits: &[(&'static str, Duration)]| {
        // A measured wait includes the thread's own steps around it, which the clock of the
        // processor counts as busy.
        let mut left = time.wall.saturating_sub(time.busy);
        let mut part = |&(what, waited): &(&'static str, Duration)| {
            let waited = waited.min(left);
            left -= waited;
            (what, waited)
        };
        SingleThread {
            does,
            name,
            time,
            waits: waits.iter().map(&mut part).collect(),
            run,
        }
    };
    let room = Duration::from_nanos(counters.room_ns);
    let (taken, results) = (times.results_taken, times.results);
    // `taken` is wall time on results: what it was not busy of that, it waited for tables.
    let for_results = results.wall.saturating_sub(taken);
    let for_tables = taken.saturating_sub(results.busy);
    let threads = [
        thread(
            "list",
            "lists inputs",
            times.list,
            &[("room", times.list_room)],
        ),
        thread(
            "submit",
            "submits structures",
            times.submit,
            &[("a slot", room), ("files", times.submit_files)],
        ),
        thread(
            "results",
            "takes results",
            results,
            &[("results", for_results), ("tables", for_tables)],
        ),
    ];
    threads
        .into_iter()
        .filter(|thread| !thread.time.wall.is_zero())
        .collect()
}

/// What each thread did for how much of the run.
pub(super) fn threads_line(threads: &[SingleThread]) -> String {
    let percent = |share: f64| format!("{:.0}%", 100.0 * share.min(1.0));
    let thread = |thread: &SingleThread| {
        let waits = thread.waits.iter();
        let waits = waits
            .map(|(what, time)| format!(", waits for {what} {}", percent(thread.share(*time))));
        let (name, busy) = (thread.name, percent(thread.busy_share()));
        format!("{name} busy {busy}{}", waits.collect::<String>())
    };
    let threads: Vec<String> = threads.iter().map(thread).collect();
    format!("single threads: {}", threads.join("; "))
}

/// What the slots were used for, on average, and how many of the workers were busy.
pub(super) fn slots_line(statistics: &Statistics) -> String {
    let Statistics {
        slots,
        workers,
        slots_filling,
        slots_in_flight,
        slots_unpacking,
        slots_awaiting_worker,
        threads_mapping,
        ..
    } = *statistics;
    let busy = slots_filling + slots_unpacking + threads_mapping;
    let workers = match workers {
        0 => String::new(),
        workers => format!(
            "; busy workers: {:.1} of {workers}",
            busy.min(workers as f64)
        ),
    };
    format!(
        "slots: {slots}, on average {slots_filling:.1} being filled, {slots_in_flight:.1} in flight, \
         {slots_unpacking:.1} being unpacked, {slots_awaiting_worker:.1} waiting for a worker{workers}"
    )
}

/// The threads in `run.json`, in seconds.
pub(super) fn threads_json(threads: &[SingleThread]) -> Json {
    let thread = |thread: &SingleThread| {
        let waits = thread.waits.iter();
        let waits = waits.map(|(what, time)| json!({ "for": what, "seconds": time.as_secs_f64() }));
        json!({
            "name": thread.name,
            "seconds": thread.time.wall.as_secs_f64(),
            "busy": thread.time.busy.as_secs_f64(),
            "waits": waits.collect::<Vec<_>>(),
        })
    };
    threads.iter().map(thread).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of 10 s, whose threads were busy for these seconds.
    fn run(list: u64, submit: u64, results: u64) -> (SingleThreads, Counters) {
        let time = |busy| ThreadTime {
            wall: Duration::from_secs(10),
            busy: Duration::from_secs(busy),
        };
        let times = SingleThreads {
            list: time(list),
            list_room: Duration::from_secs(3),
            submit: time(submit),
            submit_files: Duration::from_secs(9),
            results: time(results),
            results_taken: Duration::from_secs(4),
        };
        let mut counters = Counters::default();
        counters.room_ns = 1_000_000_000;
        (times, counters)
    }

    #[test]
    fn a_thread_is_busy_or_waits_and_both_are_no_more_than_its_time() {
        let (times, counters) = run(5, 2, 1);
        let threads = single_threads(&times, &counters, Duration::from_secs(10));
        assert_eq!(
            threads_line(&threads),
            "single threads: list busy 50%, waits for room 30%; submit busy 20%, waits for a slot 10%, \
             waits for files 70%; results busy 10%, waits for results 60%, waits for tables 30%"
        );
        let json = threads_json(&threads);
        assert_eq!(
            json[1]["waits"][1],
            json!({ "for": "files", "seconds": 7.0 })
        );
    }

    #[test]
    fn a_thread_that_a_signal_left_behind_is_left_out() {
        let (mut times, counters) = run(5, 2, 1);
        times.list = ThreadTime::default();
        let names = single_threads(&times, &counters, Duration::from_secs(10));
        assert_eq!(
            names.iter().map(|thread| thread.name).collect::<Vec<_>>(),
            ["submit", "results"]
        );
    }

    #[test]
    fn slots_and_workers_are_averages() {
        let mut statistics = Statistics::default();
        (statistics.slots, statistics.workers) = (6, 16);
        (statistics.slots_filling, statistics.slots_unpacking) = (2.04, 0.9);
        (statistics.slots_in_flight, statistics.slots_awaiting_worker) = (1.5, 0.1);
        statistics.threads_mapping = 0.3;
        assert_eq!(
            slots_line(&statistics),
            "slots: 6, on average 2.0 being filled, 1.5 in flight, 0.9 being unpacked, 0.1 waiting for \
             a worker; busy workers: 3.2 of 16"
        );
        statistics.workers = 0;
        assert!(!slots_line(&statistics).contains("workers"));
    }
}
