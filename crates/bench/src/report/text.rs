//! The report for a terminal: a headline, a line for each point, and sentences on what the figures
//! show.

use super::sweeps::against;
use super::verdict::words;
use crate::diagnosis::{bound_words, is_noisy};
use crate::format::{self, capital};
use crate::merged::{difference, full_title, last_run, merge, title, with_one_slot};
use crate::record::{Figures, Outcome, PointFacts, Record};
use crate::statistics::Spread;
use tapeloop_engine::error::Result;

/// The largest number of warnings that are printed, so that the headline stays on the screen; the page has all
/// of them.
const WARNINGS_MAX: usize = 8;

/// Formats the last run in `records` for a terminal.
///
/// # Errors
/// [`ErrorKind::Config`](tapeloop_engine::ErrorKind::Config) if there are no records.
pub fn text(records: &[Record]) -> Result<String> {
    let (run, records) = last_run(records)?;
    let records = with_one_slot(&records);
    let records: Vec<&Record> = records.iter().collect();
    let points = merge(&records);
    let results = words(run, &points);
    let base = |facts: &PointFacts| {
        let mut all = points.iter().map(|point| &point.facts);
        all.find(|base| base.workload == facts.workload).cloned()
    };
    let name = |facts: &PointFacts| {
        let differs = base(facts).map(|base| difference(facts, &base));
        match differs.as_deref() {
            None | Some("") => title(facts),
            Some(differs) => format!("  {differs}"),
        }
    };
    let head = [
        "",
        "per batch",
        "batches",
        "p50",
        "p99",
        "bound by",
        "times as fast as",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    let (mut refused, mut warnings) = (Vec::new(), Vec::new());
    for point in &points {
        let title = full_title(&point.facts, &points);
        match &point.outcome {
            Outcome::Measured(figures) => {
                warnings.extend(
                    figures
                        .flags
                        .iter()
                        .map(|flag| format!("! {title}: {flag}")),
                );
                rows.push(row(name(&point.facts), figures, &point.facts));
            }
            Outcome::Refused(reason) => refused.push(format!("REFUSED {title}: {reason}")),
        }
    }
    let mut text = format!("{}\n\n{}", capital(&results.headline), table(&rows));
    let more = warnings.len().saturating_sub(WARNINGS_MAX);
    warnings.truncate(WARNINGS_MAX);
    if more > 0 {
        let more = format::counted(more as u64, "more warning");
        warnings.push(format!("! {more} in the report"));
    }
    let claims = results.claims.into_iter().map(|claim| claim.words);
    let claims = std::iter::once(format!("{}.", results.trust)).chain(claims);
    for line in claims.chain(refused).chain(warnings) {
        text += &format!("\n{line}");
    }
    Ok(text + "\n")
}

/// The cells of a point's row on the terminal.
fn row(name: String, figures: &Figures, facts: &PointFacts) -> [String; 7] {
    let period = Spread::from_values(&figures.period_ns);
    let references = figures.references.iter().filter_map(|reference| {
        let change = against(figures, reference)?;
        Some(format!(
            "{} {}",
            reference.name,
            format::times(change.ratio)
        ))
    });
    let latency = |ns: u64| match figures.closed.count {
        0 => String::new(),
        _ => format::time(ns as f64),
    };
    // The sign of the warnings below the table.
    let noisy = if is_noisy(figures, facts) { " !" } else { "" };
    [
        name + noisy,
        period.map_or_else(
            || format::NONE.to_owned(),
            |period| format::time(period.median),
        ),
        period.map_or_else(String::new, |period| format::per_s(period.rate(1.0).median)),
        latency(figures.closed.p50_ns),
        latency(figures.closed.p99_ns),
        bound_words(figures, facts),
        references.collect::<Vec<_>>().join(", "),
    ]
}

/// Formats rows with aligned columns.
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
