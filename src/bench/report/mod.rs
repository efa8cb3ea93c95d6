//! A run as one page of HTML: a verdict in words, charts, tables. It needs no network
//! and no script, and is drawn for wide and narrow rooms, on light and dark grounds.

mod axis;
mod charts;
mod figure;
mod layout;
mod page;
mod plot;
mod rows;
mod slots;
mod style;
mod sweeps;
mod tables;
mod text;
mod verdict;

pub use text::text;

use super::merged::{last_run, merge};
use super::record::Record;
use crate::error::Result;

/// The page of the last run among `records`.
///
/// # Errors
/// No records.
pub fn html(records: &[Record]) -> Result<String> {
    let (run, records) = last_run(records)?;
    let points = merge(&records);
    let content = page::Content {
        run,
        records: &records,
        points: &points,
        words: verdict::words(run, &points),
        sections: charts::sections(&points, &run.limits),
    };
    Ok(page::page(&content).into_string())
}
