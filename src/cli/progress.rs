//! Progress: a bar on a terminal, a line every few seconds elsewhere.

use super::inputs::{Archives, Shard, Sources, Trajectories};
use super::run_counters::{RunCounters, RunCounts};
use super::terminal::{complain, short};
use crate::bench::format;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const BAR_EVERY: Duration = Duration::from_millis(100);
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows progress until it is dropped.
pub(super) struct Progress {
    // Dropped to end the threads.
    stop: Option<Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Progress {
    /// Shows the progress of `counters`. Meanwhile a thread lists `items` a second time to count
    /// all inputs, for the remaining time.
    pub(super) fn start(
        counters: &Arc<RunCounters>,
        items: &[String],
        trajectories: &Trajectories,
        shard: Shard,
    ) -> Self {
        let (stop, stopped) = bounded::<()>(0);
        let mut threads = Vec::new();
        let mut spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let builder = std::thread::Builder::new().name(name.to_owned());
            // Without the thread the run shows no progress.
            threads.extend(builder.spawn(work).ok());
        };
        if Sources::can_walk_twice(items) {
            let (counters, stopped) = (Arc::clone(counters), stopped.clone());
            let sources = Sources::new(items.to_vec(), Archives::Whole, shard)
                .with_trajectories(trajectories.whole());
            spawn(
                "tapeloop-count",
                Box::new(move || count(sources, &counters, &stopped)),
            );
        }
        let shown = Arc::clone(counters);
        let show = move || {
            let mut display = Display::new();
            let next = |every| stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout);
            while next(display.every()) {
                display.show(&shown.counts());
            }
            display.clear();
        };
        spawn("tapeloop-show", Box::new(show));
        Progress {
            stop: Some(stop),
            threads,
        }
    }
}

/// Counts all inputs, unless the run ends before, or there are archives: their members are not
/// known until they have been read.
fn count(mut sources: Sources, counters: &RunCounters, stopped: &Receiver<()>) {
    let mut total = 0;
    while sources.next().is_some() {
        let has_ended = stopped.try_recv() == Err(TryRecvError::Disconnected);
        if has_ended || sources.has_members() {
            return;
        }
        total += 1;
    }
    counters.set_total(total);
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.stop = None;
        for thread in self.threads.drain(..) {
            // A panic while showing progress does not concern the run.
            let _ = thread.join();
        }
    }
}

enum Display {
    Bar(ProgressBar),
    Lines(Instant),
}

impl Display {
    fn new() -> Self {
        if !std::io::stderr().is_terminal() {
            return Display::Lines(Instant::now());
        }
        let bar = ProgressBar::new_spinner();
        bar.set_style(style("{spinner} {elapsed} {pos} inputs, {msg}"));
        Display::Bar(bar)
    }

    fn every(&self) -> Duration {
        match self {
            Display::Bar(_) => BAR_EVERY,
            Display::Lines(_) => LINE_EVERY,
        }
    }

    fn show(&mut self, counts: &RunCounts) {
        match self {
            Display::Bar(bar) => {
                bar.set_message(rates(counts, bar.elapsed()));
                if let (None, Some(total)) = (bar.length(), counts.inputs_total) {
                    bar.set_length(total);
                    bar.set_style(style("{elapsed} [{bar:20}] {pos}/{len}, {msg}, ETA {eta}"));
                }
                bar.set_position(counts.inputs);
            }
            Display::Lines(started) => {
                let of = counts.inputs_total.map_or(String::new(), |total| {
                    format!(" of {}", format::whole(total))
                });
                let elapsed = started.elapsed();
                complain(&format!(
                    "{:>6} s: {}{of} inputs, {}{}",
                    elapsed.as_secs(),
                    format::whole(counts.inputs),
                    rates(counts, elapsed),
                    remaining(counts, elapsed)
                ));
            }
        }
    }

    fn clear(&self) {
        if let Display::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates here are well formed")
}

fn rates(counts: &RunCounts, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(1e-3);
    let rejected = match counts.rejected {
        0 => String::new(),
        rejected => format!(", {} rejected", format::whole(rejected)),
    };
    format!(
        "{} structures/s, {} residues/s{rejected}",
        short(counts.structures as f64 / seconds),
        short(counts.residues as f64 / seconds)
    )
}

fn remaining(counts: &RunCounts, elapsed: Duration) -> String {
    match counts.inputs_total {
        Some(total) if counts.inputs > 0 => {
            let left = total.saturating_sub(counts.inputs) as f64;
            let seconds = elapsed.as_secs_f64() * left / counts.inputs as f64;
            format!(", ETA {seconds:.0} s")
        }
        _ => String::new(),
    }
}
