//! The run in a terminal: what it says, and a line a point.

use super::verdict::{against, words};
use crate::bench::points::{difference, full_title, last_run, points, title};
use crate::bench::record::{Figures, Outcome, PointFacts, Record};
use crate::bench::statistics::Spread;
use crate::bench::units;
use crate::error::Result;

/// Doubts that are said here; the page has all.
const FLAGS_MAX: usize = 8;

/// The last run among `records`, in lines.
///
/// # Errors
/// No records.
pub fn text(records: &[Record]) -> Result<String> {
    let (run, records) = last_run(records)?;
    let points = points(&records);
    let said = words(run, &points);
    let base = |facts: &PointFacts| {
        let mut of_work = points.iter().map(|point| &point.facts);
        of_work
            .find(|base| base.workload == facts.workload)
            .cloned()
    };
    let name = |facts: &PointFacts| {
        let differs = base(facts).map(|base| difference(facts, &base));
        match differs.as_deref() {
            None | Some("") => title(facts),
            Some(differs) => format!("  {differs}"),
        }
    };
    let head = ["", "a batch", "batches", "p50", "p99", "bound by", "beside"];
    let mut rows = vec![head.map(str::to_owned)];
    let (mut refused, mut flagged) = (Vec::new(), Vec::new());
    for point in &points {
        let name = name(&point.facts);
        match &point.outcome {
            Outcome::Measured(figures) => {
                let title = full_title(&point.facts, &points);
                flagged.extend(
                    figures
                        .flags
                        .iter()
                        .map(|flag| format!("! {title}: {flag}")),
                );
                rows.push(row(name, figures));
            }
            Outcome::Refused(reason) => refused.push(format!("REFUSED {name}: {reason}")),
        }
    }
    let mut text = table(&rows);
    let more = flagged.len().saturating_sub(FLAGS_MAX);
    flagged.truncate(FLAGS_MAX);
    if more > 0 {
        flagged.push(format!("! and {more} more doubts, in the report"));
    }
    let told = [said.headline].into_iter().chain(said.says);
    for line in told.chain(refused).chain(flagged) {
        text += &format!("\n{line}");
    }
    Ok(text + "\n")
}

fn row(name: String, figures: &Figures) -> [String; 7] {
    let period = Spread::of(&figures.period_ns);
    let references = figures.references.iter().filter_map(|reference| {
        let change = against(figures, reference)?;
        Some(format!("{} {}", reference.name, units::times(change.ratio)))
    });
    let latency = |ns: u64| match figures.closed.count {
        0 => String::new(),
        _ => units::time(ns as f64),
    };
    let doubtful = if figures.flags.is_empty() { "" } else { " !" };
    [
        name + doubtful,
        period.map_or_else(
            || units::NONE.to_owned(),
            |period| units::time(period.median),
        ),
        period.map_or_else(String::new, |period| units::per_s(period.rate(1.0).median)),
        latency(figures.closed.p50_ns),
        latency(figures.closed.p99_ns),
        figures.bound.clone(),
        references.collect::<Vec<_>>().join(", "),
    ]
}

/// Rows with their columns aligned.
fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..N).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let padded = cells.map(|(cell, width)| format!("{cell:<width$}"));
        text += padded.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}
