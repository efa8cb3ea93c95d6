//! All points in tables, by workload and by the setting that is varied.

use super::sweeps::against;
use crate::bench::format::{self, capital};
use crate::bench::merged::{names, workload};
use crate::bench::record::{Figures, Latency, Outcome, PointFacts, Record};
use crate::bench::statistics::{Spread, median};
use maud::{Markup, html};

/// The text of a cell, and the small text under it.
type Cell = (String, String);

type Column = (&'static str, &'static str, fn(&Figures) -> Cell);

fn one(text: String) -> Cell {
    (text, String::new())
}

fn nothing() -> Cell {
    one(String::new())
}

/// A rate; an empty cell if the amount is 0.
fn rate(figures: &Figures, amount: f64, text: fn(f64) -> String) -> Cell {
    match Spread::of(&figures.period_ns) {
        Some(period) if amount > 0.0 => one(text(period.rate(amount).median)),
        _ => nothing(),
    }
}

fn latency(figures: &Figures, ns: fn(&Latency) -> u64) -> Cell {
    match figures.closed.count {
        0 => nothing(),
        _ => one(format::time(ns(&figures.closed) as f64)),
    }
}

fn period(figures: &Figures) -> Cell {
    match Spread::of(&figures.period_ns) {
        None => one(format::NONE.to_owned()),
        Some(spread) => {
            let (low, high) = (format::time(spread.low), format::time(spread.high));
            let median = format::time(spread.median);
            (median, format!("{low} to {high}"))
        }
    }
}

fn host(figures: &Figures) -> Cell {
    median(&figures.host_ns).map_or_else(nothing, |ns| one(format::time(ns)))
}

fn stage(figures: &Figures, ns: fn(&crate::bench::record::Stages) -> f64) -> Cell {
    let stages = figures.stages.as_ref();
    stages.map_or_else(nothing, |stages| one(format::time(ns(stages))))
}

fn largest_share(figures: &Figures) -> Cell {
    let share = figures.shares.first();
    share.map_or_else(nothing, |share| {
        (format::percent(share.share), share.limit.clone())
    })
}

fn cores(figures: &Figures) -> Cell {
    if figures.cores.is_empty() {
        return nothing();
    }
    let all: f64 = figures.cores.iter().map(|it| it.per_million_atoms).sum();
    let parts = figures.cores.iter();
    let parts = parts.map(|it| format!("{} {}", it.work, format::digits(it.per_million_atoms)));
    (format::digits(all), parts.collect::<Vec<_>>().join(", "))
}

const COLUMNS: [Column; 20] = [
    ("batches", "per second", |f| rate(f, 1.0, format::per_s)),
    ("structures", "per second", |f| {
        rate(f, f.amounts.structures, format::per_s)
    }),
    ("atoms", "per second", |f| {
        rate(f, f.amounts.atoms, format::per_s)
    }),
    ("up", "", |f| {
        rate(f, f.amounts.upload_bytes, format::bytes_per_s)
    }),
    ("down", "", |f| {
        rate(f, f.amounts.download_bytes, format::bytes_per_s)
    }),
    ("time per batch", "range", period),
    ("latency", "p50", |f| latency(f, |l| l.p50_ns)),
    ("latency", "p90", |f| latency(f, |l| l.p90_ns)),
    ("latency", "p99", |f| latency(f, |l| l.p99_ns)),
    ("latency", "maximum", |f| latency(f, |l| l.max_ns)),
    ("host", "per batch", host),
    ("upload", "on the device", |f| stage(f, |s| s.upload_ns)),
    ("kernels", "on the device", |f| stage(f, |s| s.kernels_ns)),
    ("download", "on the device", |f| stage(f, |s| s.download_ns)),
    ("overlap", "stages at once", |f| {
        f.stages
            .map_or_else(nothing, |s| one(format::digits(s.overlap)))
    }),
    ("calls", "per batch", |f| match f.calls > 0.0 {
        true => one(format::digits(f.calls)),
        false => nothing(),
    }),
    ("processor", "cores busy", |f| match f.busy > 0.0 {
        true => one(format::digits(f.busy)),
        false => nothing(),
    }),
    ("processor", "s per million atoms", cores),
    ("largest share", "of a limit", largest_share),
    ("bound by", "", |f| (f.bound.clone(), f.chosen.join("; "))),
];

/// The records by key, in the order of the first record of each.
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
                h3 { (capital(&workload(name))) }
                @for (axis, group) in groups(&group, |record| &record.point.axis) {
                    (table(axis, &group))
                }
            }
        }
    }
}

fn table(axis: &str, records: &[&Record]) -> Markup {
    let facts: Vec<&PointFacts> = records.iter().map(|record| &record.point).collect();
    let alone = |facts: &PointFacts| {
        let title = crate::bench::merged::title(facts);
        let short = title.split_once(", ");
        short.map_or_else(String::new, |(_, short)| short.to_owned())
    };
    let names = names(&facts, "");
    let names = names
        .into_iter()
        .zip(&facts)
        .map(|(name, facts)| match name.as_str() {
            "" => alone(facts),
            _ => name,
        });
    let figures = || records.iter().filter_map(|record| record.figures());
    let says = |column: &&Column| figures().any(|figures| !column.2(figures).0.is_empty());
    let columns: Vec<&Column> = COLUMNS.iter().filter(says).collect();
    let programs = super::sweeps::programs(figures());
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "Points by " (axis) } {
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
        "base" => "base point".to_owned(),
        "" => "point".to_owned(),
        axis => axis.replace('_', " "),
    }
}

fn row(record: &Record, name: &str, columns: &[&Column], programs: &[&str]) -> Markup {
    match &record.outcome {
        Outcome::Refused(reason) => html! {
            tr.refused-point {
                td { (name) }
                td.words colspan=(columns.len() + programs.len()) { "refused: " (reason) }
            }
        },
        Outcome::Measured(figures) => html! {
            tr {
                td { (name) }
                @for (.., cell) in columns {
                    @let (text, small) = cell(figures);
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

/// How many times as fast as a program, with the interval and whether the outputs agree.
fn against_program(figures: &Figures, program: &str) -> Cell {
    let Some(reference) = super::sweeps::program(figures, program) else {
        return nothing();
    };
    let Some(change) = against(figures, reference) else {
        return nothing();
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
