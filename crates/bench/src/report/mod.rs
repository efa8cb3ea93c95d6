//! The report of a run: an HTML page with the results in words, charts and tables. The page needs
//! no network and no script, and suits wide and narrow screens, and light and dark grounds.

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

use super::merged::{last_run, merge, with_one_slot};
use super::record::Record;
use tapeloop_engine::error::Result;

/// Makes the page of the last run in `records`.
///
/// # Errors
/// [`ErrorKind::Config`](tapeloop_engine::ErrorKind::Config) if there are no records.
pub fn html(records: &[Record]) -> Result<String> {
    let (run, records) = last_run(records)?;
    let records = with_one_slot(&records);
    let records: Vec<&Record> = records.iter().collect();
    let points = merge(&records);
    let content = page::PageContent {
        run,
        records: &records,
        points: &points,
        words: verdict::words(run, &points),
        sections: charts::sections(&points, &run.limits),
    };
    Ok(page::page(&content).into_string())
}
