//! Progress: a bar on a terminal, a line every few seconds elsewhere, or JSON for programs.

use super::run_counters::{RunCounters, RunCounts};
use super::terminal::{complain, short};
use crate::backend::{Backend, Compilation};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::io::IsTerminal;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tapeloop_bench::internal::format;
use tapeloop_inputs::{Archives, Shard, Sources, Trajectories};

const BAR_EVERY: Duration = Duration::from_millis(100);
const LINE_EVERY: Duration = Duration::from_secs(5);
const JSON_EVERY: Duration = Duration::from_millis(500);

/// Whom progress is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// A bar on a terminal, lines elsewhere.
    Reader,
    /// Lines of JSON.
    Program,
}

/// Shows progress until it is dropped.
pub(super) struct Progress {
    _count: Option<InputCount>,
    _display: Option<Stoppable>,
}

impl Progress {
    /// Shows the progress of `counters`. Meanwhile a thread lists `items` a second time to count
    /// all inputs, for the remaining time.
    pub(super) fn start(
        audience: Audience,
        counters: &Arc<RunCounters>,
        items: &[String],
        trajectories: &Trajectories,
        shard: Shard,
    ) -> Self {
        let shown = Arc::clone(counters);
        let show = move |stopped: Receiver<()>| {
            let mut display = Display::new(audience);
            let next = |every| stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout);
            while next(display.every()) {
                display.show(&shown.counts());
            }
            display.clear();
        };
        Progress {
            _count: InputCount::start(counters, items, trajectories, shard),
            _display: Stoppable::start("tapeloop-show", show),
        }
    }
}

/// Shows how far backends are with compiling, until it is dropped. Most compile nothing, and then
/// nothing is shown.
pub(super) struct CompilingProgress {
    _display: Option<Stoppable>,
}

impl CompilingProgress {
    /// `None` shows nothing.
    pub(super) fn start(audience: Option<Audience>, backends: &[Arc<dyn Backend>]) -> Self {
        let start = |audience| {
            let backends = backends.to_vec();
            let show = move |stopped| show_compilations(audience, &backends, &stopped);
            Stoppable::start("tapeloop-show", show)
        };
        CompilingProgress {
            _display: audience.and_then(start),
        }
    }
}

fn show_compilations(audience: Audience, backends: &[Arc<dyn Backend>], stopped: &Receiver<()>) {
    let every = match audience {
        Audience::Reader => BAR_EVERY,
        Audience::Program => JSON_EVERY,
    };
    let mut display = None;
    while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        let compiling = backends.iter().map(|backend| backend.compilation()).sum();
        show_compiling(audience, &mut display, compiling);
    }
    if let Some(display) = display {
        display.clear();
    }
}

/// Shows a compilation that goes on. `display` is made when there is one.
fn show_compiling(audience: Audience, display: &mut Option<Display>, compiling: Compilation) {
    let Compilation {
        images, done, ns, ..
    } = compiling;
    if done == images {
        return;
    }
    let is_first = display.is_none();
    match display.get_or_insert_with(|| Display::new(audience)) {
        Display::Bar(bar) => {
            if is_first {
                bar.set_style(style(
                    "{elapsed} compiling kernels for this GPU [{bar:20}] {pos}/{len}",
                ));
            }
            bar.set_length(images);
            bar.set_position(done);
        }
        Display::Lines(_) if is_first => complain(&format!(
            "compiling {} for this GPU",
            format::counted(images, "kernel")
        )),
        Display::Lines(_) => {}
        Display::Json(_) => {
            let compiling = json!({
                "kernels": images,
                "compiled": done,
                "seconds": ns as f64 / 1e9,
            });
            complain(&json!({ "compiling": compiling }).to_string());
        }
    }
}

/// A thread that counts all inputs, until it is dropped.
pub(super) struct InputCount {
    _thread: Stoppable,
}

impl InputCount {
    /// Lists `items` to set the total of `counters`. `None` if they can be listed only once.
    pub(super) fn start(
        counters: &Arc<RunCounters>,
        items: &[String],
        trajectories: &Trajectories,
        shard: Shard,
    ) -> Option<Self> {
        if !Sources::can_walk_twice(items) {
            return None;
        }
        let counters = Arc::clone(counters);
        let sources = Sources::new(items.to_vec(), Archives::Whole, shard)
            .with_trajectories(trajectories.whole());
        let work = move |stopped: Receiver<()>| count(sources, &counters, &stopped);
        let thread = Stoppable::start("tapeloop-count", work)?;
        Some(InputCount { _thread: thread })
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

/// A thread that dropping ends.
struct Stoppable {
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Stoppable {
    /// `None` if the thread cannot be started: without it the run shows no progress.
    fn start(name: &str, work: impl FnOnce(Receiver<()>) + Send + 'static) -> Option<Self> {
        let (stop, stopped) = bounded(0);
        let builder = std::thread::Builder::new().name(name.to_owned());
        let thread = builder.spawn(move || work(stopped)).ok()?;
        Some(Stoppable {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Stoppable {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic while showing progress does not concern the run.
            let _ = thread.join();
        }
    }
}

enum Display {
    Bar(ProgressBar),
    Lines(Instant),
    Json(Instant),
}

impl Display {
    fn new(audience: Audience) -> Self {
        if audience == Audience::Program {
            return Display::Json(Instant::now());
        }
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
            Display::Json(_) => JSON_EVERY,
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
            Display::Json(started) => {
                let counts = json!({
                    "seconds": started.elapsed().as_secs_f64(),
                    "inputs": counts.inputs,
                    "inputs_total": counts.inputs_total,
                    "structures": counts.structures,
                    "residues": counts.residues,
                    "rejected": counts.rejected,
                });
                complain(&json!({ "progress": counts }).to_string());
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
