//! Progress: a bar on a terminal, a line every few seconds elsewhere, or JSON for programs.

use crossbeam_channel::{Receiver, RecvTimeoutError};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop::backend::{Backend, Compilation};
use tapeloop::error::Result;
use tapeloop::features::{Features, TableName};
use tapeloop::pipeline::Engine;
use tapeloop_bench::internal::format;
use tapeloop_cli::input_count::{InputCount, Stoppable};
use tapeloop_cli::plan::Plan;
use tapeloop_cli::run_counters::{RunCounters, RunCounts};
use tapeloop_cli::terminal::{complain, short};
use tapeloop_inputs::{Shard, Trajectories};

/// Often enough for a bar that moves.
const BAR_EVERY: Duration = Duration::from_millis(100);
/// Seldom enough for a log that is kept.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// Twice a second, as the help of `--progress-json` says.
const JSON_EVERY: Duration = Duration::from_millis(500);

/// Whom progress is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// A bar on a terminal, lines elsewhere.
    Reader,
    /// Lines of JSON.
    Program,
}

/// Shows progress until it is dropped. A thread that cannot be started shows nothing.
pub(super) struct ProgressDisplay {
    _count: Option<InputCount>,
    _display: Option<Stoppable>,
}

impl ProgressDisplay {
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
                display.show(&shown.counts(), &shown.earlier());
            }
            display.clear();
        };
        ProgressDisplay {
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

/// Starts the engine of a plan, and shows the audience how far the compilation of kernels is.
pub(super) fn start_engine(
    plan: &Plan,
    tables: &[TableName],
    audience: Option<Audience>,
) -> Result<Engine<Features>> {
    let _shown = CompilingProgress::start(audience, &plan.backends);
    plan.start(tables)
}

/// Shows the compilation of kernels until `stopped` is disconnected or gets a message.
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
        Display::Lines(..) if is_first => complain(&format!(
            "compiling {} for this GPU",
            format::counted(images, "kernel")
        )),
        Display::Lines(..) => {}
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

enum Display {
    Bar(ProgressBar),
    /// The start, and the last time at which there was no result yet.
    Lines(Instant, Instant),
    Json(Instant),
}

impl Display {
    /// Progress as JSON for a program; for a person as a bar, or as lines where stderr is not a
    /// terminal.
    fn new(audience: Audience) -> Self {
        if audience == Audience::Program {
            return Display::Json(Instant::now());
        }
        if !std::io::stderr().is_terminal() {
            return Display::Lines(Instant::now(), Instant::now());
        }
        let bar = ProgressBar::new_spinner();
        bar.set_style(style("{spinner} {elapsed} {pos} inputs, {msg}"));
        Display::Bar(bar)
    }

    fn every(&self) -> Duration {
        match self {
            Display::Bar(_) => BAR_EVERY,
            Display::Lines(..) => LINE_EVERY,
            Display::Json(_) => JSON_EVERY,
        }
    }

    /// Shows the progress of a run on standard error: as a bar, a line of text or a line of JSON. Rates leave out the
    /// counts of an `earlier` run that this one goes on with.
    fn show(&mut self, counts: &RunCounts, earlier: &RunCounts) {
        if counts.inputs == earlier.inputs {
            self.start_anew(earlier.inputs);
        }
        match self {
            Display::Bar(bar) => {
                bar.set_message(rates(counts, earlier, bar.elapsed()));
                if let (None, Some(total)) = (bar.length(), counts.inputs_total) {
                    bar.set_length(total);
                    bar.set_style(style("{elapsed} [{bar:20}] {pos}/{len}, {msg}, ETA {eta}"));
                }
                bar.set_position(counts.inputs);
            }
            Display::Lines(started, without_results) => {
                let of_total = counts.inputs_total.map_or(String::new(), |total| {
                    format!(" of {}", format::whole(total))
                });
                let elapsed = without_results.elapsed();
                complain(&format!(
                    "{:>6} s: {}{of_total} inputs, {}{}",
                    started.elapsed().as_secs(),
                    format::whole(counts.inputs),
                    rates(counts, earlier, elapsed),
                    remaining(counts, earlier, elapsed)
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

    /// The time before the first result is that of starting, which rates and remaining time leave out.
    fn start_anew(&mut self, inputs: u64) {
        match self {
            Display::Bar(bar) => {
                bar.set_position(inputs);
                bar.reset_eta();
                bar.reset_elapsed();
            }
            Display::Lines(_, without_results) => *without_results = Instant::now(),
            // Programs get the time of the run.
            Display::Json(_) => {}
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

/// The rates for a progress line: `1.20 k structures/s`.
fn rates(counts: &RunCounts, earlier: &RunCounts, elapsed: Duration) -> String {
    // A run has just begun at first.
    let seconds = elapsed.as_secs_f64().max(1e-3);
    let rejected = match counts.rejected {
        0 => String::new(),
        rejected => format!(", {} rejected", format::whole(rejected)),
    };
    format!(
        "{} structures/s, {} residues/s{rejected}",
        short(counts.structures.saturating_sub(earlier.structures) as f64 / seconds),
        short(counts.residues.saturating_sub(earlier.residues) as f64 / seconds)
    )
}

/// The estimated time that is left, if the number of inputs is known.
fn remaining(counts: &RunCounts, earlier: &RunCounts, elapsed: Duration) -> String {
    let done = counts.inputs.saturating_sub(earlier.inputs);
    match counts.inputs_total {
        Some(total) if done > 0 => {
            let left = total.saturating_sub(counts.inputs) as f64;
            let seconds = elapsed.as_secs_f64() * left / done as f64;
            format!(", ETA {seconds:.0} s")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_the_time_that_is_left_are_those_of_this_run_and_not_of_the_one_before() {
        let of = |inputs: u64| RunCounts {
            inputs,
            inputs_total: Some(1000),
            structures: inputs,
            residues: 100 * inputs,
            ..RunCounts::default()
        };
        let elapsed = Duration::from_secs(10);
        let said = rates(&of(900), &of(800), elapsed);
        assert_eq!(said, "10.0 structures/s, 1000 residues/s");
        assert_eq!(remaining(&of(900), &of(800), elapsed), ", ETA 10 s");
        assert_eq!(remaining(&of(800), &of(800), elapsed), "");
    }
}
