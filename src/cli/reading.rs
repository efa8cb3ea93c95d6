//! Reads sources into structures, several at once, in the order of the sources.

use super::annotations::Annotations;
use super::inputs::{Source, structure_name};
use super::path_text::text_of;
use super::run_counters::RunCounters;
use crate::error::{Error, Result, catch, excerpt};
use crate::features::Input;
use crate::pipeline::OrderedMap;
use crate::structure::{ReadBudget, ReadOptions, Reader, Structure};
use rayon::ThreadPool;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

/// Files that are read ahead of the engine, for each thread of the pool, so that the other threads
/// have work while one reads a large file.
const FILES_AHEAD: usize = 8;

/// Threads drop the buffers of larger files. Otherwise a series of large files would leave every
/// thread with buffers for the largest; new buffers cost little compared with reading such a file.
const KEEP_FILE_BYTES_MAX: u64 = 4 << 20;

thread_local! {
    // Each thread keeps its reader's buffers from file to file.
    static READER: RefCell<Option<Reader>> = const { RefCell::new(None) };
}

/// Reads `sources` on `pool`. Each model of a file becomes an input, and a file that cannot be read
/// becomes one input with the error. `budget` bounds the files and text in memory. Structures get
/// their `annotations`.
pub(super) fn inputs<S>(
    sources: S,
    options: ReadOptions,
    budget: &Arc<ReadBudget>,
    pool: &Arc<ThreadPool>,
    counters: &Arc<RunCounters>,
    annotations: Option<&Arc<Annotations>>,
) -> impl Iterator<Item = Input> + Send + use<S>
where
    S: Iterator<Item = Source> + Send,
{
    let window = FILES_AHEAD * pool.current_num_threads();
    let counters = Arc::clone(counters);
    let annotations = annotations.map(Arc::clone);
    let budget = Arc::clone(budget);
    let work = move |source: Source| {
        let start = Instant::now();
        let read_one = || {
            let mut structures = read(&source, options, &budget)?;
            if let Some(annotations) = &annotations {
                let path = text_of(&source.path);
                let name = structure_name(&path);
                annotations.attach(name, source.ordinal, &mut structures);
            }
            Ok(structures)
        };
        let structures = counters.read_cores.of(|| rejecting_panics(read_one));
        counters.add_read(start.elapsed());
        by_model(&source, structures)
    };
    OrderedMap::new(sources, Arc::clone(pool), window, work).flatten()
}

/// Turns a panic into an error, so that it rejects only the file that is being read.
fn rejecting_panics<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    catch(read).unwrap_or_else(|panic| {
        let message = format!("reading it panicked: {}", excerpt(&panic));
        Err(Error::input(message).fix("report this with the file; the other inputs are unaffected"))
    })
}

fn read(source: &Source, options: ReadOptions, budget: &Arc<ReadBudget>) -> Result<Vec<Structure>> {
    if let Some(problem) = &source.problem {
        return Err(problem.clone());
    }
    READER.with_borrow_mut(|kept| {
        let new = || Reader::with_budget(options, Arc::clone(budget));
        let mut reader = kept.take().unwrap_or_else(new);
        let structures = reader.read_path(&source.path)?;
        let file_bytes = source.path.metadata().map_or(0, |meta| meta.len());
        if file_bytes <= KEEP_FILE_BYTES_MAX {
            *kept = Some(reader);
        }
        if structures.is_empty() {
            return Err(Error::input("the file has no model"));
        }
        Ok(structures)
    })
}

fn by_model(source: &Source, structures: Result<Vec<Structure>>) -> Vec<Input> {
    let name = text_of(&source.path);
    let input = |structure| Input {
        source: name.clone(),
        ordinal: source.ordinal,
        structure,
    };
    match structures {
        Ok(structures) => structures.into_iter().map(|s| input(Ok(s))).collect(),
        Err(error) => vec![input(Err(error))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_while_a_file_is_read_rejects_that_file() {
        assert_eq!(rejecting_panics(|| Ok(1)).unwrap(), 1);
        let error = rejecting_panics(|| -> Result<()> { panic!("an atom\tis gone") }).unwrap_err();
        assert_eq!(error.message(), "reading it panicked: an atom\\tis gone");
        assert_eq!(error.scope(), crate::ErrorScope::Item);
    }
}
