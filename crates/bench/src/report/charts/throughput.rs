//! Charts of the throughput against the size of batches, with a line for each mode.

use super::super::axis::{AxisScale, ChartAxis};
use super::super::figure::Figure;
use super::super::plot::{Dot, Gap, Line, Plot};
use super::super::style::Look;
use super::super::sweeps::{Sweep, by_size, program, programs, workloads};
use super::super::verdict::replay_change;
use crate::format::{self, capital};
use crate::merged::{MergedPoint, names, size, workload};
use crate::record::{Figures, MachineLimits, PointFacts};
use crate::statistics::{ChangeFinding, Spread};

/// The quantity whose rate is a workload's throughput.
struct Measure {
    axis: ChartAxis,
    text: fn(f64) -> String,
    amount: fn(&Figures) -> f64,
}

const ATOMS: Measure = Measure {
    axis: axis("atoms per second", format::per_s_tick),
    text: |value| format!("{} atoms/s", format::count(value)),
    amount: |figures| figures.amounts.atoms,
};

const BYTES: Measure = Measure {
    axis: axis("bytes per second to the device", format::bytes_per_s_tick),
    text: format::bytes_per_s,
    amount: |figures| figures.amounts.upload_bytes,
};

const BATCHES: Measure = Measure {
    axis: axis("batches per second", format::per_s_tick),
    text: |value| format!("{} batches/s", format::count(value)),
    amount: |_| 1.0,
};

const fn axis(title: &'static str, tick: fn(f64) -> String) -> ChartAxis {
    let scale = AxisScale::Decades;
    ChartAxis { title, scale, tick }
}

/// A sentence on why other programs differ at small batches.
const OF_OTHER_PROGRAMS: &str = " Other programs replay graphs of the same work. Small batches show \
     what each program adds to it: PyTorch and CuPy make their calls from Python, PyTorch computes \
     with torch.add, and tapeloop copies small batches by a kernel.";

/// A chart for each workload that was measured over the size of batches.
pub(super) fn figures(points: &[MergedPoint], limits: &MachineLimits) -> Vec<Figure> {
    let sweeps = by_size(points);
    let of_workload = |name: &&str| {
        let group = sweeps.iter().filter(|sweep| sweep.facts.workload == **name);
        figure(name, &group.collect::<Vec<_>>(), limits)
    };
    workloads(&sweeps).iter().filter_map(of_workload).collect()
}

/// The chart of one workload, with a line for each setting that was varied, and for other programs.
fn figure(name: &str, sweeps: &[&Sweep<'_>], limits: &MachineLimits) -> Option<Figure> {
    let first = sweeps.first()?;
    let all = || sweeps.iter().flat_map(|sweep| &sweep.points);
    let measure = match name {
        "copy" => BYTES,
        _ if all().all(|(.., figures)| figures.amounts.atoms > 0.0) => ATOMS,
        _ => BATCHES,
    };
    let facts: Vec<PointFacts> = sweeps
        .iter()
        .map(|sweep| without_size(sweep.facts))
        .collect();
    let names = names(&facts.iter().collect::<Vec<_>>(), "tapeloop");
    let mut lines: Vec<Line> = Vec::new();
    for (sweep, name) in sweeps.iter().zip(names) {
        let used: Vec<Look> = lines.iter().map(|line| line.look).collect();
        let dots = sweep.points.iter().filter_map(|(key, point, figures)| {
            let rate = point.period()?.rate((measure.amount)(figures));
            Some(dot(*key, rate))
        });
        lines.push(Line {
            name,
            look: Look::for_mode(&sweep.facts.mode, &used),
            dots: dots.collect(),
        });
    }
    let mut caption = caption(&measure, first, &lines);
    let gap = gap(sweeps);
    // Only programs in the mode of the first line are shown: graphs and launches do not make one line.
    let programs = programs(first.points.iter().map(|(.., figures)| *figures));
    if name == "launch"
        && programs
            .iter()
            .any(|program| program.starts_with("PyTorch"))
    {
        caption.push_str(OF_OTHER_PROGRAMS);
    }
    for (place, program) in programs.into_iter().enumerate() {
        lines.push(reference(program, place, first, &measure));
    }
    if let ("copy", Some(roof)) = (name, limits.upload_bytes_per_s) {
        let keys: Vec<u64> = all().map(|(key, ..)| *key).collect();
        let ends = [keys.iter().min()?, keys.iter().max()?];
        lines.push(Line {
            name: format!("limit, {}", format::bytes_per_s(roof)),
            look: Look::LIMIT,
            dots: ends.map(|key| Dot::bare(*key as f64, roof)).to_vec(),
        });
    }
    let bytes = first.facts.is_sized_in_bytes();
    let x = match (bytes, first.facts.unit.as_str()) {
        (true, _) => (
            "size of a batch, to the device",
            format::bytes as fn(f64) -> String,
        ),
        (false, "residues") => ("residues per batch", format::plain as fn(f64) -> String),
        (false, "structures") => ("structures per batch", format::plain as fn(f64) -> String),
        (false, _) => ("size of a batch", format::plain as fn(f64) -> String),
    };
    let plot = Plot {
        x: ChartAxis {
            title: x.0,
            scale: AxisScale::Doublings,
            tick: x.1,
        },
        y: measure.axis,
        lines,
        shaded: None,
        gap,
    };
    let title = format!(
        "{}: throughput against batch size",
        capital(&workload(name))
    );
    Figure::plot(format!("throughput-{name}"), title, caption, plot)
}

/// The smallest ratio that is marked: at smaller ratios the text has no room between the lines.
const GAP_MIN: f64 = 2.0;

/// A mark at the base point of how many times as fast the first sweep of graphs is as the first
/// sweep of stream launches; `None` if it is not significantly faster or too little.
fn gap(sweeps: &[&Sweep<'_>]) -> Option<Gap> {
    let place = |mode: &str| sweeps.iter().position(|sweep| sweep.facts.mode == mode);
    let (graph, stream) = (place("graph")?, place("stream")?);
    let (key, base, _) = sweeps[graph]
        .points
        .iter()
        .find(|(_, point, _)| point.is_base())?;
    let (_, launched, _) = sweeps[stream]
        .points
        .iter()
        .find(|(known, ..)| known == key)?;
    let change = replay_change(&(base, launched))?;
    (change.finding == ChangeFinding::More && change.ratio >= GAP_MIN).then(|| Gap {
        lines: (graph, stream),
        x: *key as f64,
        text: format!("{} times", format::factor(change.ratio)),
    })
}

/// The facts of a point without its size, which the points of a line differ in.
fn without_size(facts: &PointFacts) -> PointFacts {
    PointFacts {
        batch: 0,
        upload_bytes: 0,
        download_bytes: 0,
        ..facts.clone()
    }
}

/// A dot with the range of its repetitions.
fn dot(key: u64, rate: Spread) -> Dot {
    Dot {
        x: key as f64,
        y: rate.median,
        low: rate.low,
        high: rate.high,
    }
}

/// The line of another program over the sizes of a sweep.
fn reference(program_name: &str, place: usize, sweep: &Sweep<'_>, measure: &Measure) -> Line {
    let dots = sweep.points.iter().filter_map(|(key, _, figures)| {
        let reference = program(figures, program_name)?;
        let period = Spread::from_values(&reference.period_ns)?;
        Some(dot(*key, period.rate((measure.amount)(figures))))
    });
    Line {
        name: format!("{program_name}, {}", sweep.facts.mode),
        look: Look::reference(place),
        dots: dots.collect(),
    }
}

/// A caption with the rates of the fastest and the slowest line at the smallest and the largest batch.
fn caption(measure: &Measure, first: &Sweep<'_>, lines: &[Line]) -> String {
    let rates_at = |facts: &PointFacts, dot: fn(&Line) -> Option<&Dot>| {
        let rates = lines
            .iter()
            .filter_map(|line| Some((dot(line)?.y, &line.name)));
        let mut rates: Vec<(f64, &String)> = rates.collect();
        rates.sort_by(|one, other| other.0.total_cmp(&one.0));
        let text = |(rate, name): &(f64, &String)| format!("{} ({name})", (measure.text)(*rate));
        let words = match rates.as_slice() {
            [] => format::NONE.to_owned(),
            [one] => (measure.text)(one.0),
            [most, .., least] => {
                let link = if rates.len() > 2 { "to" } else { "and" };
                format!("{} {link} {}", text(most), text(least))
            }
        };
        format!("at {}: {words}", size(facts))
    };
    let (Some(small), Some(large)) = (first.points.first(), first.points.last()) else {
        return String::new();
    };
    let small = rates_at(&small.1.facts, |line| line.dots.first());
    let large = rates_at(&large.1.facts, |line| line.dots.last());
    let spread = "Vertical lines are the range of the repetitions.";
    format!("{}; {large}. {spread}", capital(&small))
}
