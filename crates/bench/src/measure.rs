//! Measures points: alternates repetitions of all points and of other programs. Figures count only
//! if all outputs are right.

use super::benchmark::Benchmark;
use super::diagnosis::{PointContext, diagnose};
use super::point::Point;
use super::record::{
    FORMAT, Figures, Latency, Open, Outcome, PointFacts, Record, Reference, Run, SpanFacts, Stages,
};
use super::reference::ReferenceProgram;
use super::runner::{self, BatchFacts, Machine, Runner, TimedBatch, latencies};
use super::statistics::{median, median_of_sorted};
use hdrhistogram::Histogram;
use std::sync::Arc;
use std::time::Duration;
use tapeloop_engine::error::{Error, ErrorKind, Result};

/// The number of batches per slot whose times on the device are measured: a few, of which medians are taken,
/// and of the last repetition alone, as timestamps take time on the device.
const TIMED_PER_SLOT: usize = 8;

/// The number of batches per slot that the drawing of a timeline shows: each slot is used again twice, and
/// the bars stay wide enough for their numbers.
const DRAWN_PER_SLOT: usize = 3;

/// The least and the largest number of arrivals in an open loop: one of slow batches has a few to show, and
/// one of fast batches does not keep the times of millions.
const ARRIVALS: (f64, f64) = (8.0, 20_000.0);

/// The number of halvings in a latency curve: it has the quantiles 0, 50%, 75%, 87.5% and so on, to
/// 1 - 2^-14, the last one that [`ARRIVALS`] latencies of one repetition resolve.
const CURVE_STEPS: i32 = (ARRIVALS.1 as u64).ilog2() as i32;

/// How often and how long to measure.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The number of repetitions of each point.
    pub rounds: usize,
    /// The length of a repetition.
    pub repetition: Duration,
    /// The loads of open loops, as shares of the closed loop's rate.
    pub loads: Vec<f64>,
    /// The loads at base points.
    pub base_loads: Vec<f64>,
}

/// A run of the benchmark.
pub struct Session {
    /// What points run on.
    pub machine: Machine,
    /// How often and how long to measure.
    pub settings: Settings,
    /// The description that all records share.
    pub run: Run,
    /// Other programs to measure.
    pub references: Vec<ReferenceProgram>,
}

/// The results of a point so far.
struct PointResults {
    point: Point,
    /// Its amounts are zeros before the first closed loop has ended.
    batch_facts: BatchFacts,
    input: String,
    figures: Figures,
    closed: Histogram<u64>,
    calls: u64,
    open: Vec<OpenLoop>,
    timed: Vec<TimedBatch>,
    /// The request to other programs and the hash of the expected outputs, once they are computed.
    request: Option<Option<(String, u64)>>,
    refused: Option<String>,
}

impl Session {
    /// Measures points of one workload, and returns a record for each point that was begun. Calls
    /// `keep_going` before each repetition, with the repetition's number, the number of all
    /// repetitions and the point. If it returns false, the run ends.
    pub fn measure<S: Benchmark>(
        &mut self,
        points: &[Point],
        benchmark: impl Fn(&Point) -> Arc<S>,
        mut keep_going: impl FnMut(usize, usize, &Point) -> bool,
    ) -> Vec<Record> {
        let mut measured: Vec<PointResults> = points.iter().map(PointResults::new).collect();
        let all = points.len() * self.settings.rounds;
        let mut number = 0;
        'rounds: for round in 0..self.settings.rounds {
            for index in 0..points.len() {
                // Every other round goes backwards, so that no point always follows the same point.
                let index = match round % 2 {
                    0 => index,
                    _ => points.len() - 1 - index,
                };
                let measured = &mut measured[index];
                if !keep_going(number, all, &measured.point) {
                    break 'rounds;
                }
                number += 1;
                let benchmark = benchmark(&measured.point);
                let is_last = round + 1 == self.settings.rounds;
                if measured.refused.is_none()
                    && let Err(error) = self.repeat(measured, &benchmark, is_last)
                {
                    measured.refuse(&error);
                }
            }
        }
        let begun = measured.into_iter();
        begun.filter_map(|measured| self.record(measured)).collect()
    }

    /// Runs one repetition of a point, and of the other programs, and adds to `measured`; the last one also
    /// times stages. Each repetition sets the point up anew, so that their spread has that of allocations and
    /// of graphs too.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for settings that do not go together, [`ErrorKind::Mismatch`] for a wrong output,
    /// and the errors of the device.
    fn repeat<S: Benchmark>(
        &mut self,
        measured: &mut PointResults,
        benchmark: &Arc<S>,
        is_last: bool,
    ) -> Result<()> {
        let point = measured.point;
        if measured.batch_facts.kernels == 0 {
            // Before anything can be refused: a comparison finds the point of another run by these.
            measured.input = benchmark.describe();
            measured.batch_facts = runner::batch_facts(&self.machine, benchmark, &point)?;
        }
        let mut runner = runner::open(&self.machine, benchmark, &point)?;
        let batches = self.warm_up(&mut *runner, point.slots)?;
        let closed = runner.run_closed_loop(batches)?;
        let per_batch = |time: Duration| time.as_nanos() as f64 / closed.batches as f64;
        let figures = &mut measured.figures;
        figures.period_ns.push(per_batch(closed.elapsed));
        figures.host_ns.push(per_batch(closed.host));
        figures.batches += closed.batches;
        // Other programs take the core in some repetitions only; a thread that sleeps leaves it in
        // every repetition. So the best repetition shows whether the thread slept.
        figures.busy = figures.busy.max(closed.busy);
        measured.calls += closed.calls;
        measured.batch_facts = runner.batch_facts();
        // This fails only for histograms with different bounds.
        let _ = measured.closed.add(&closed.latencies);
        if is_last {
            measured.timed = runner.run_timed((1 + TIMED_PER_SLOT) * point.slots)?;
        }
        let loads = match point.axis {
            None => &self.settings.base_loads,
            Some(_) => &self.settings.loads,
        };
        for (index, &load) in loads.iter().enumerate() {
            if measured.open.len() == index {
                measured.open.push(OpenLoop::new(load));
            }
            let period_ns = median(&measured.figures.period_ns).unwrap_or_default();
            measured.open[index].run(&mut *runner, self.settings.repetition, period_ns)?;
        }
        runner.check()?;
        // Frees the slots before other programs run on the same device.
        drop(runner);
        // The protocol of other programs has full batches alone.
        if !point.is_mixed {
            self.measure_references(measured, &**benchmark);
        }
        Ok(())
    }

    /// Warms up with more and more batches, until they take a quarter of a repetition, which is long enough to
    /// estimate from, and returns the number of batches in a repetition: two for each slot at least, so that
    /// slots are used again.
    fn warm_up(&self, runner: &mut dyn Runner, slots: usize) -> Result<u64> {
        let wanted = self.settings.repetition;
        // The doubling makes up for any start.
        let mut batches = 4 * slots as u64;
        loop {
            let closed = runner.run_closed_loop(batches)?;
            if closed.elapsed >= wanted / 4 {
                let fitting = closed.batches as f64 * wanted.as_secs_f64()
                    / closed.elapsed.as_secs_f64().max(1e-9);
                return Ok((fitting as u64).max(2 * slots as u64));
            }
            batches *= 2;
        }
    }

    /// Measures the other programs at the same work, and leaves out those that do not do it. The request and
    /// the hash are computed once for all repetitions.
    fn measure_references<S: Benchmark>(&mut self, measured: &mut PointResults, benchmark: &S) {
        let slots = measured.point.slots;
        let request = measured
            .request
            .get_or_insert_with(|| benchmark.request(slots));
        let Some((request, hash)) = request else {
            return;
        };
        let mode = measured.point.policy.mode.name();
        let millis = self.settings.repetition.as_millis();
        let request = format!("period {request} mode={mode} millis={millis}");
        for program in &mut self.references {
            let answer = program.ask(&request);
            let (Some(period_ns), found) = (answer.number("period_ns"), answer.text("hash")) else {
                continue;
            };
            let agrees = found.map(|found| found == format!("{hash:016x}"));
            let known = &mut measured.figures.references;
            let index = known.iter().position(|known| known.name == program.name());
            let index = index.unwrap_or_else(|| {
                known.push(Reference {
                    name: program.name().to_owned(),
                    agrees,
                    ..Reference::default()
                });
                known.len() - 1
            });
            let reference = &mut known[index];
            reference.period_ns.push(period_ns);
            // One different output counts, whatever other repetitions gave.
            if agrees == Some(false) {
                reference.agrees = agrees;
            }
        }
    }

    /// The record of a point; `None` if the point was not begun.
    fn record(&self, measured: PointResults) -> Option<Record> {
        let device = self.machine.first().device();
        let batch_facts = measured.batch_facts;
        let point = PointFacts {
            kernels: batch_facts.kernels,
            upload_bytes: batch_facts.upload_bytes,
            download_bytes: batch_facts.download_bytes,
            input: measured.input,
            threads: self.machine.pool.current_num_threads(),
            ..measured.point.facts()
        };
        let outcome = match (measured.refused, measured.figures) {
            (Some(reason), _) => Outcome::Refused(reason),
            (None, figures) if figures.period_ns.is_empty() => return None,
            (None, mut figures) => {
                figures.amounts = batch_facts.amounts;
                figures.calls = measured.calls as f64 / figures.batches as f64;
                figures.closed = latency(&measured.closed);
                figures.open = measured.open.iter().filter_map(OpenLoop::figures).collect();
                figures.stages = stages(&measured.timed, measured.point.slots);
                if measured.point.axis.is_none() {
                    figures.spans = spans(&measured.timed, measured.point.slots);
                }
                let facts = PointContext {
                    point: &point,
                    limits: &self.run.limits,
                    devices: self.machine.devices_of(measured.point.front),
                    on_device: !device.shares_host_memory,
                };
                diagnose(&mut figures, &facts);
                Outcome::Measured(Box::new(figures))
            }
        };
        Some(Record {
            format: FORMAT,
            run: self.run.clone(),
            point,
            outcome,
        })
    }
}

/// The results of an open loop, summed over all repetitions.
struct OpenLoop {
    load: f64,
    /// The number of repetitions so far.
    runs: u64,
    /// From the start of each repetition to its last arrival.
    arriving: Duration,
    /// From the start of each repetition to the end of its last batch.
    elapsed: Duration,
    latencies: Histogram<u64>,
}

impl OpenLoop {
    fn new(load: f64) -> Self {
        OpenLoop {
            load,
            runs: 0,
            arriving: Duration::ZERO,
            elapsed: Duration::ZERO,
            latencies: latencies(),
        }
    }

    /// Runs one more repetition, if the runner has open loops. `length` is that of a repetition, and `period_ns`
    /// the time of a batch in the closed loop, whose rate `load` is a share of.
    ///
    /// # Errors
    /// The errors of the device.
    fn run(&mut self, runner: &mut dyn Runner, length: Duration, period_ns: f64) -> Result<()> {
        let wanted = length.as_nanos() as f64 * self.load / period_ns;
        let count = wanted.clamp(ARRIVALS.0, ARRIVALS.1) as usize;
        // Each repetition has arrivals of its own.
        let arrivals = poisson(self.runs, count, period_ns / self.load);
        if let Some(opened) = runner.run_open_loop(&arrivals)? {
            self.runs += 1;
            self.arriving += arrivals.last().copied().unwrap_or_default();
            self.elapsed += opened.elapsed;
            // This fails only for histograms with different bounds.
            let _ = self.latencies.add(&opened.latencies);
        }
        Ok(())
    }

    /// The figures of this load; `None` before its first run.
    fn figures(&self) -> Option<Open> {
        let count = self.latencies.len() as f64;
        let per_s = |time: Duration| count / time.as_secs_f64().max(1e-9);
        (self.runs > 0).then(|| Open {
            load: self.load,
            arrivals_per_s: per_s(self.arriving),
            done_per_s: per_s(self.elapsed),
            latency: latency(&self.latencies),
        })
    }
}

impl PointResults {
    fn new(point: &Point) -> Self {
        PointResults {
            point: *point,
            batch_facts: BatchFacts::default(),
            input: String::new(),
            figures: Figures::default(),
            closed: latencies(),
            calls: 0,
            open: Vec::new(),
            timed: Vec::new(),
            request: None,
            refused: None,
        }
    }

    fn refuse(&mut self, error: &Error) {
        tracing::warn!(point = %self.point, %error, "refused");
        self.refused = Some(match error.kind() {
            ErrorKind::Mismatch => format!("wrong outputs: {error}"),
            _ => error.to_string(),
        });
    }
}

/// `count` arrival times of a Poisson process whose arrivals are `mean_ns` nanoseconds apart on
/// average. The same seed gives the same times.
fn poisson(seed: u64, count: usize, mean_ns: f64) -> Vec<Duration> {
    // SplitMix64 (Steele, Lea and Flood, 2014). Seeds are small numbers: in the upper half, the sequences of
    // two of them start at least 2^32 draws apart.
    let mut state = seed << 32;
    let mut uniform = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut at_ns = 0.0;
    let arrivals = (0..count).map(|_| {
        at_ns -= mean_ns * (1.0 - uniform()).ln();
        Duration::from_nanos(at_ns as u64)
    });
    arrivals.collect()
}

/// The quantiles of a histogram, as far as its number of latencies resolves them.
fn latency(histogram: &Histogram<u64>) -> Latency {
    let value_at = |quantile| histogram.value_at_quantile(quantile);
    let curve = (0..=CURVE_STEPS).map(|power| 1.0 - 0.5_f64.powi(power));
    // Higher quantiles are not resolved by this number of latencies.
    let resolved = curve.filter(|quantile| (1.0 - quantile) * histogram.len() as f64 >= 1.0);
    Latency {
        count: histogram.len(),
        p50_ns: value_at(0.5),
        p90_ns: value_at(0.9),
        p99_ns: value_at(0.99),
        max_ns: histogram.max(),
        curve: resolved
            .map(|quantile| (quantile, value_at(quantile)))
            .collect(),
    }
}

/// Leaves out the first batch of each slot, because it also makes the graph that has timestamps.
fn without_warm_up(timed: &[TimedBatch], slots: usize) -> &[TimedBatch] {
    timed.get(slots..).unwrap_or_default()
}

/// The times of stages on the device, and how many of them ran at the same time on average; `None` without
/// times.
fn stages(timed: &[TimedBatch], slots: usize) -> Option<Stages> {
    let timed = without_warm_up(timed, slots);
    let first = timed.iter().map(|batch| batch.timestamps_ns[0]).min()?;
    let last = timed.iter().map(|batch| batch.timestamps_ns[3]).max()?;
    let stage = |index: usize| {
        let times = timed.iter().map(|batch| {
            // A device may put the end of a short stage before its start.
            let [from, to] = [batch.timestamps_ns[index], batch.timestamps_ns[index + 1]];
            to.saturating_sub(from) as f64
        });
        times.collect::<Vec<f64>>()
    };
    let mut each = [0, 1, 2].map(stage);
    let sum: f64 = each.iter().flatten().sum();
    let [upload_ns, kernels_ns, download_ns] = each.each_mut().map(|times| {
        times.sort_unstable_by(f64::total_cmp);
        median_of_sorted(times).unwrap_or_default()
    });
    Some(Stages {
        upload_ns,
        kernels_ns,
        download_ns,
        overlap: sum / last.saturating_sub(first).max(1) as f64,
        batches: timed.len(),
    })
}

/// The spans of the last batches for the drawing, with times from the start of the first.
fn spans(timed: &[TimedBatch], slots: usize) -> Vec<SpanFacts> {
    let timed = without_warm_up(timed, slots);
    let drawn = &timed[timed.len().saturating_sub(DRAWN_PER_SLOT * slots)..];
    let starts = drawn
        .iter()
        .map(|batch| batch.submit_ns.0.min(batch.timestamps_ns[0]));
    let Some(start) = starts.min() else {
        return Vec::new();
    };
    let mut spans = Vec::new();
    for (number, batch) in drawn.iter().enumerate() {
        let [begun, uploaded, computed, downloaded] = batch.timestamps_ns;
        let stages = [
            ("submit", batch.submit_ns.0, batch.submit_ns.1),
            ("upload", begun, uploaded),
            ("kernels", uploaded, computed),
            ("download", computed, downloaded),
        ];
        spans.extend(stages.map(|(stage, from, to)| SpanFacts {
            slot: batch.slot,
            batch: number as u64,
            stage: stage.to_owned(),
            // A device's clock may be off, and put an end before the first start.
            start_ns: from.saturating_sub(start),
            end_ns: to.saturating_sub(start),
        }));
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_have_the_mean_and_the_spread_of_a_poisson_process() {
        let arrivals = poisson(1, 20_000, 1_000.0);
        assert!(arrivals.is_sorted());
        let gaps = arrivals
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).as_nanos() as f64);
        let gaps: Vec<f64> = gaps.collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1_000.0).abs() < 30.0, "{mean}");
        assert!((variance.sqrt() - mean).abs() < 50.0, "{}", variance.sqrt());
    }

    #[test]
    fn a_curve_ends_where_there_are_too_few_to_tell() {
        let mut histogram = latencies();
        (1..=100).for_each(|ns| histogram.record(ns).unwrap());
        let latency = latency(&histogram);
        assert_eq!(
            (latency.p50_ns, latency.p99_ns, latency.max_ns),
            (50, 99, 100)
        );
        assert_eq!(latency.curve.len(), 7, "to 1 - 1/64");
        assert!(latency.curve.is_sorted());
    }

    #[test]
    fn stages_are_what_lies_between_timestamps() {
        let batch = |slot, start: u64| TimedBatch {
            slot,
            submit_ns: (start, start + 5),
            timestamps_ns: [start + 10, start + 20, start + 50, start + 60],
        };
        let timed: Vec<_> = (0..6)
            .map(|n| batch(n % 2, 1_000 + 25 * n as u64))
            .collect();
        let stages = stages(&timed, 2).unwrap();
        let found = (stages.upload_ns, stages.kernels_ns, stages.download_ns);
        assert_eq!(found, (10.0, 30.0, 10.0));
        assert_eq!(stages.batches, 4);
        assert_eq!(stages.overlap, 200.0 / 125.0);
        let spans = spans(&timed, 2);
        assert_eq!(spans.len(), 16);
        assert_eq!((spans[0].start_ns, spans[1].start_ns), (0, 10));
        assert!(super::stages(&[], 2).is_none());
    }
}
