//! All points in tables, by workload and by the setting that is varied.

use super::sweeps::against;
use crate::diagnosis::bound_words;
use crate::format::{self, capital};
use crate::merged::{difference, is_of_files, title, workload};
use crate::record::{Figures, Latency, Outcome, PointFacts, Record};
use crate::statistics::{Spread, median};
use maud::{Markup, html};

/// The text of a cell, and the small text under it.
type TableCell = (String, String);

/// The heading, the small text under it, and the function that makes the cells.
type FigureColumn = (
    &'static str,
    &'static str,
    fn(&Figures, &PointFacts) -> TableCell,
);

fn plain_cell(text: String) -> TableCell {
    (text, String::new())
}

fn empty_cell() -> TableCell {
    plain_cell(String::new())
}

/// A rate; an empty cell if the amount is 0.
fn rate(figures: &Figures, amount: f64, text: fn(f64) -> String) -> TableCell {
    match Spread::from_values(&figures.period_ns) {
        Some(period) if amount > 0.0 => plain_cell(text(period.rate(amount).median)),
        _ => empty_cell(),
    }
}

fn latency(figures: &Figures, ns: fn(&Latency) -> u64) -> TableCell {
    match figures.closed.count {
        0 => empty_cell(),
        _ => plain_cell(format::time(ns(&figures.closed) as f64)),
    }
}

/// The cell of the time per batch, with the range of the repetitions.
fn period(figures: &Figures) -> TableCell {
    match Spread::from_values(&figures.period_ns) {
        None => plain_cell(format::NONE.to_owned()),
        Some(spread) => {
            let (low, high) = (format::time(spread.low), format::time(spread.high));
            let median = format::time(spread.median);
            (median, format!("{low} to {high}"))
        }
    }
}

fn host(figures: &Figures) -> TableCell {
    median(&figures.host_ns).map_or_else(empty_cell, |ns| plain_cell(format::time(ns)))
}

fn stage(figures: &Figures, ns: fn(&crate::record::Stages) -> f64) -> TableCell {
    let stages = figures.stages.as_ref();
    // A device may give both ends of a short stage one time, or the end before the start.
    let measured = stages.map(ns).filter(|ns| *ns > 0.0);
    measured.map_or_else(empty_cell, |ns| plain_cell(format::time(ns)))
}

/// The cell of processor time per million atoms, with its parts.
fn cores(figures: &Figures) -> TableCell {
    if figures.cores.is_empty() {
        return empty_cell();
    }
    let all: f64 = figures
        .cores
        .iter()
        .map(|part| part.per_million_atoms)
        .sum();
    let parts = figures.cores.iter();
    let parts =
        parts.map(|part| format!("{} {}", part.work, format::digits(part.per_million_atoms)));
    (format::digits(all), parts.collect::<Vec<_>>().join(", "))
}

const COLUMNS: [FigureColumn; 19] = [
    ("time per batch", "median and range", |f, _| period(f)),
    ("batches", "per second", |f, _| rate(f, 1.0, format::per_s)),
    ("structures", "per second", |f, _| {
        rate(f, f.amounts.structures, format::per_s)
    }),
    ("atoms", "per second", |f, _| {
        rate(f, f.amounts.atoms, format::per_s)
    }),
    ("bound by", "", |f, facts| plain_cell(bound_words(f, facts))),
    ("up", "", |f, _| {
        rate(f, f.amounts.upload_bytes, format::bytes_per_s)
    }),
    ("down", "", |f, _| {
        rate(f, f.amounts.download_bytes, format::bytes_per_s)
    }),
    ("latency", "p50", |f, _| latency(f, |l| l.p50_ns)),
    ("latency", "p90", |f, _| latency(f, |l| l.p90_ns)),
    ("latency", "p99", |f, _| latency(f, |l| l.p99_ns)),
    ("latency", "maximum", |f, _| latency(f, |l| l.max_ns)),
    ("host", "per batch", |f, _| host(f)),
    ("upload", "by timestamps", |f, _| stage(f, |s| s.upload_ns)),
    ("kernels", "by timestamps", |f, _| {
        stage(f, |s| s.kernels_ns)
    }),
    ("download", "by timestamps", |f, _| {
        stage(f, |s| s.download_ns)
    }),
    ("stages", "at the same time", |f, _| {
        f.stages
            .map_or_else(empty_cell, |s| plain_cell(format::digits(s.overlap)))
    }),
    ("calls", "per batch", |f, _| {
        if f.calls > 0.0 {
            plain_cell(format::digits(f.calls))
        } else {
            empty_cell()
        }
    }),
    ("processor", "cores busy", |f, _| {
        if f.busy > 0.0 {
            plain_cell(format::digits(f.busy))
        } else {
            empty_cell()
        }
    }),
    ("processor", "s per million atoms", |f, _| cores(f)),
];

/// Groups the records by key. The groups are in the order of their first records.
fn groups<'a, K: PartialEq>(
    records: &[&'a Record],
    key: impl Fn(&'a Record) -> K,
) -> Vec<(K, Vec<&'a Record>)> {
    let mut groups: Vec<(K, Vec<&'a Record>)> = Vec::new();
    for record in records {
        let key = key(record);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(record),
            None => groups.push((key, vec![record])),
        }
    }
    groups
}

/// The tables of all records of a run.
pub(super) fn tables(records: &[&Record]) -> Markup {
    html! {
        @for (name, group) in groups(records, |record| &record.point.workload) {
            section id={ "table-" (name) } {
                h3 { (capital(&workload(name))) @if let Some(base) = base(&group) { ": " (about(base)) } }
                @for (axis, group_of_axis) in groups(&group, |record| &record.point.axis) {
                    (table(axis, &group_of_axis, base(&group)))
                }
            }
        }
    }
}

/// The first base point of a workload's records, or their first point if none is marked. Work on files has
/// several.
fn base<'a>(records: &[&'a Record]) -> Option<&'a PointFacts> {
    let mut points = records.iter().map(|record| &record.point);
    let base = points.clone().find(|facts| facts.axis == "base");
    base.or_else(|| points.next())
}

/// The settings of the base point, in words. Rows name only the settings in which they differ.
fn about(base: &PointFacts) -> String {
    if is_of_files(base) {
        let threads = format::counted(base.threads as u64, "thread");
        return format!("{threads}, unless a row differs");
    }
    let title = title(base);
    let settings = title.split_once(", ").map_or("", |(_, settings)| settings);
    let slots = format!("{} slots", base.slots);
    let all = [settings, &slots, &base.front];
    let all: Vec<&str> = all.into_iter().filter(|words| !words.is_empty()).collect();
    format!("{}, unless a row differs", all.join(", "))
}

/// Names a row by the settings in which it differs from the base point.
fn row_name(facts: &PointFacts, base: Option<&PointFacts>) -> String {
    let differs = base.map(|base| difference(facts, base));
    match differs.as_deref() {
        None | Some("") => "as in the heading".to_owned(),
        Some(differs) => differs.to_owned(),
    }
}

/// The table of the points of one axis. Columns without a value are left out.
fn table(axis: &str, records: &[&Record], base: Option<&PointFacts>) -> Markup {
    let names = records.iter().map(|record| row_name(&record.point, base));
    let figures = || records.iter().filter_map(|record| record.figures());
    let with_facts = || {
        let records = records.iter();
        records.filter_map(|record| Some((record.figures()?, &record.point)))
    };
    let has_cells =
        |column: &&FigureColumn| with_facts().any(|(f, facts)| !column.2(f, facts).0.is_empty());
    let columns: Vec<&FigureColumn> = COLUMNS.iter().filter(has_cells).collect();
    let programs = super::sweeps::programs(figures());
    html! {
        // The region scrolls sideways; with a tab index the keyboard reaches it.
        div.scroll tabindex="0" role="region" aria-label={ "Points by " (heading(axis)) } {
            table {
                thead {
                    tr {
                        th { (heading(axis)) }
                        @for (head, under, _) in &columns {
                            th { (head) @if !under.is_empty() { small { (under) } } }
                        }
                        @for program in &programs {
                            th { "times as fast as" small { (program) } }
                        }
                        @if columns.is_empty() && programs.is_empty() {
                            th { "result" }
                        }
                    }
                }
                tbody {
                    @for (record, name) in records.iter().zip(names) {
                        (row(record, &name, &columns, &programs))
                    }
                }
            }
        }
    }
}

fn heading(axis: &str) -> String {
    match axis {
        "base" | "" => "point".to_owned(),
        "front" => "interface".to_owned(),
        axis => axis.replace('_', " "),
    }
}

/// The row of a point.
fn row(record: &Record, name: &str, columns: &[&FigureColumn], programs: &[&str]) -> Markup {
    // Where every point was refused there are no figures, and one column has the reasons.
    let width = (columns.len() + programs.len()).max(1);
    match &record.outcome {
        Outcome::Refused(reason) => html! {
            tr.refused-point {
                td { (name) }
                td.words colspan=(width) { "refused: " (reason) }
            }
        },
        Outcome::Measured(figures) => html! {
            tr {
                td { (name) }
                @for (.., cell) in columns {
                    @let (text, small) = cell(figures, &record.point);
                    td { (text) @if !small.is_empty() { small { (small) } } }
                }
                @for program in programs {
                    @let (text, small) = against_program(figures, program);
                    td { (text) @if !small.is_empty() { small { (small) } } }
                }
            }
        },
    }
}

/// A cell with how many times as fast the engine is as another program, with the interval and
/// whether the outputs agree.
fn against_program(figures: &Figures, program: &str) -> TableCell {
    let Some(reference) = super::sweeps::program(figures, program) else {
        return empty_cell();
    };
    let Some(change) = against(figures, reference) else {
        return empty_cell();
    };
    let agrees = match reference.agrees {
        Some(true) => ", same outputs",
        Some(false) => ", OUTPUTS DIFFER",
        None => "",
    };
    let (low, high) = (format::times(change.low), format::times(change.high));
    let ratio = format::times(change.ratio);
    (ratio, format!("{low} to {high}{agrees}"))
}
