//! Replay measured: the engine's side of the comparison with the programs in
//! `benches/reference`, one line of JSON for each case.
//!
//! ```sh
//! cargo bench --no-default-features --features cuda-12040 --bench replay
//! cargo bench --bench replay -- --cases period,latency --reps 9
//! scripts/compare_replay.sh            # beside the other programs, with verdicts
//! ```
//!
//! Every case checks its output, bit for bit, before it is timed and after. On a
//! machine without a GPU the cases run briefly on the CPU backend, which shows
//! that they work; their times mean nothing then.

mod caller;
mod engine;
mod host;
mod ladder;
mod latency;
mod period;
mod report;
mod slots;
#[cfg(all(feature = "supervise", target_os = "linux"))]
mod supervised;
mod work;

use rayon::ThreadPool;
use report::Line;
use slots::Slots;
use std::cell::Cell;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop::backend::{Backend, Choice, select};
use tapeloop::replay::Policy;
use tapeloop::{Error, ErrorKind, Result};
use work::Shape;

/// What every case needs.
pub(crate) struct Bench {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) pool: Arc<ThreadPool>,
    /// Repetitions of a loop, of which the median counts.
    pub(crate) reps: usize,
    /// Length of one.
    pub(crate) rep: Duration,
    /// Samples of a latency.
    pub(crate) samples: usize,
    failed: Cell<bool>,
}

impl Bench {
    /// Runs a case. One that fails is named, and the others run all the same.
    pub(crate) fn attempt(&self, case: &str, run: impl FnOnce() -> Result<()>) {
        if let Err(error) = run() {
            eprintln!("{case}: {error}");
            self.failed.set(true);
        }
    }
}

type Group = (&'static str, fn(&Bench) -> Result<()>);

// Latencies come first: once a process has replayed on several streams at once,
// each batch on one takes 2 us longer.
const GROUPS: &[Group] = &[
    ("latency", latency::latency),
    ("caller", caller::latency),
    ("sweep", latency::sweep),
    ("host", host::host),
    ("ladder", ladder::ladder),
    ("period", period::small),
    ("pipeline", caller::period),
    ("sampling", caller::sampling),
    ("large", period::large),
    ("engine", engine::engine),
    ("timeline", engine::timeline),
    #[cfg(all(feature = "supervise", target_os = "linux"))]
    ("supervised", supervised::supervised),
];

struct Options {
    cases: Option<String>,
    reps: usize,
    millis: u64,
    samples: usize,
}

fn parse(mut args: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options {
        cases: None,
        reps: 5,
        millis: 20,
        samples: 5_000,
    };
    while let Some(name) = args.next() {
        match name.as_str() {
            // What cargo adds.
            "--bench" => {}
            "--cases" => options.cases = Some(args.next()?),
            "--reps" => options.reps = args.next()?.parse().ok()?,
            "--millis" => options.millis = args.next()?.parse().ok()?,
            "--samples" => options.samples = args.next()?.parse().ok()?,
            _ => return None,
        }
    }
    (options.reps > 0 && options.millis > 0 && options.samples > 0).then_some(options)
}

fn open(options: &Options) -> Result<Bench> {
    let pool = rayon::ThreadPoolBuilder::new().build();
    let pool = Arc::new(pool.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?);
    let selected = select(Choice::Auto, &pool)?;
    let device = selected.backend.device();
    let mut bench = Bench {
        backend: Arc::clone(&selected.backend),
        pool,
        reps: options.reps,
        rep: Duration::from_millis(options.millis),
        samples: options.samples,
        failed: Cell::new(false),
    };
    if device.backend == "cpu" {
        eprintln!("skipped: no device: {}", selected.reason);
        eprintln!("each case runs briefly on the CPU backend instead; the times mean nothing");
        (bench.reps, bench.rep, bench.samples) = (1, Duration::from_millis(1), 20);
    }
    Line::new("device")
        .text("backend", device.backend)
        .text("device", &device.name)
        .number("driver", device.driver_version)
        .text(
            "commit",
            option_env!("TAPELOOP_COMMIT").unwrap_or("unknown"),
        )
        .print();
    Ok(bench)
}

/// The clocks of an idle card are low.
fn warm_up(bench: &Bench) -> Result<()> {
    let mut slots = Slots::open(bench, Shape::small(12), 1, &Policy::default())?;
    let start = Instant::now();
    while start.elapsed() < 10 * bench.rep {
        slots.closed_loop(100, false)?;
    }
    Ok(())
}

/// Whether all cases were right.
fn run(options: &Options) -> Result<bool> {
    let bench = open(options)?;
    warm_up(&bench)?;
    for (name, group) in GROUPS {
        let chosen = options.cases.as_ref();
        if chosen.is_none_or(|cases| cases.split(',').any(|case| case == *name)) {
            bench.attempt(name, || group(&bench));
        }
    }
    Ok(!bench.failed.get())
}

fn main() -> ExitCode {
    #[cfg(all(feature = "supervise", target_os = "linux"))]
    if std::env::args().nth(1).as_deref() == Some(supervised::WORKER) {
        return supervised::serve();
    }
    let Some(options) = parse(std::env::args().skip(1)) else {
        let names: Vec<&str> = GROUPS.iter().map(|(name, _)| *name).collect();
        eprintln!("usage: replay [--cases A,B] [--reps N] [--millis N] [--samples N]");
        eprintln!("cases: {}", names.join(", "));
        return ExitCode::from(2);
    };
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
