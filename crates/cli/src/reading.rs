//! Reads sources into structures, several at once, in the order of the sources.

use super::run_counters::RunCounters;
use super::thread_times::TimedIterator;
use rayon::ThreadPool;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;
use tapeloop::error::{Error, ErrorKind, Result};
use tapeloop::features::Input;
use tapeloop::pipeline::OrderedMap;
use tapeloop::structure::{ReadBudget, ReadOptions, Reader, Structure};
use tapeloop_annotations::Annotations;
use tapeloop_error::internal::{catch, excerpt};
use tapeloop_files::text_of;
use tapeloop_inputs::{Content, Source, explained, structure_name};

/// Files that are read ahead of the engine, for each thread of the pool, so that the other threads
/// have work while one reads a large file.
const FILES_AHEAD: usize = 8;

/// How many of [`FILES_AHEAD`] a group of sources counts as at most. A group is a record batch of a packed
/// set, and each thread of the pool needs another one while it reads one.
const RECORD_BATCH_FILES: usize = FILES_AHEAD / 2;

/// Threads drop larger buffers. Otherwise a series of large files would leave every thread with
/// buffers for the largest; new buffers cost little compared with reading such a file.
const KEPT_BUFFER_BYTES_MAX: usize = 16 << 20;

/// The path of an archive and of a member in it, of 4,096 bytes each. CSV and Arrow files repeat it
/// in each row, so that without a limit a short archive could fill a disk.
const SOURCE_BYTES_MAX: usize = 8192;

thread_local! {
    // Each thread keeps its reader's buffers from file to file.
    static READER: RefCell<Option<Reader>> = const { RefCell::new(None) };
}

/// Reads groups of sources on `pool`, each group on one thread. Each model of a file becomes an input,
/// and a file that cannot be read becomes one input with the error. `budget` bounds the files and text
/// in memory. Structures get the channels that `annotations` have for them, and are checked then, each
/// on the thread that read it.
pub fn inputs<S>(
    sources: S,
    options: ReadOptions,
    budget: &Arc<ReadBudget>,
    pool: &Arc<ThreadPool>,
    counters: &Arc<RunCounters>,
    annotations: Option<&Arc<Annotations>>,
) -> impl Iterator<Item = Input> + Send + use<S>
where
    S: Iterator<Item = Vec<Source>> + Send,
{
    let window = FILES_AHEAD * pool.current_num_threads();
    let thread_counters = Arc::clone(counters);
    let counters = Arc::clone(counters);
    let annotations = annotations.map(Arc::clone);
    let budget = Arc::clone(budget);
    let read_source = move |source: Source| {
        let start = Instant::now();
        let read_one = || {
            let mut structures = read(&source, options, &budget)?;
            if let Some(chain) = &source.chain {
                let mut each = structures.iter_mut();
                each.try_for_each(|structure| structure.keep_chain(chain))?;
            }
            if let Some(annotations) = &annotations {
                let path = text_of(&source.path);
                let name = structure_name(&path);
                let matches = annotations.attach(name, &mut structures)?;
                counters.add_matches(source.ordinal, matches);
            }
            Ok(structures)
        };
        let inputs = counters.read_cores.measure(|| {
            let structures = rejecting_panics("reading", read_one);
            by_model(&source, structures)
        });
        counters.add_read(start.elapsed());
        inputs
    };
    let work = move |group: Vec<Source>| -> Vec<Input> {
        group.into_iter().flat_map(&read_source).collect()
    };
    let inputs = OrderedMap::new(sources, Arc::clone(pool), window, work)
        .weighing(|group| group.len().min(RECORD_BATCH_FILES))
        .flatten();
    TimedIterator::new(inputs, move |time, waited| {
        thread_counters.set_submit_thread(time, waited)
    })
}

/// Turns a panic of `work` on a file into an error, so that it rejects only this file. `doing` names
/// the work in the message.
pub fn rejecting_panics<T>(doing: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch(work).unwrap_or_else(|panic| {
        let message = format!(
            "a bug in tapeloop: {doing} the file panicked: {}",
            excerpt(&panic)
        );
        Err(Error::input(message).fix("report this with the file; the other inputs are unaffected"))
    })
}

/// Reads a source on this thread, with the thread's reader. The reader is kept for the next source
/// unless its buffers have become large; after an error or a panic the next source gets a new one.
fn read(source: &Source, options: ReadOptions, budget: &Arc<ReadBudget>) -> Result<Vec<Structure>> {
    let content = source.content.as_ref().map_err(Error::clone)?;
    let name_bytes = source.path.as_os_str().len();
    if name_bytes > SOURCE_BYTES_MAX {
        let message =
            format!("the path has {name_bytes} bytes, and the most is {SOURCE_BYTES_MAX}");
        let error = Error::new(ErrorKind::Capacity, message);
        return Err(
            error.fix("shorten the name of the file, of its folders or of the archive's member")
        );
    }
    READER.with_borrow_mut(|kept| {
        let new = || Reader::with_budget(options, Arc::clone(budget));
        // That of another run on the same threads has another budget.
        let usable = kept.take().filter(|kept| kept.reads_with(&options, budget));
        let mut reader = usable.unwrap_or_else(new);
        let structures = content.read(&source.path, &mut reader);
        let structures = structures.map_err(|error| match content {
            Content::Frame(_) | Content::Packed(_) => error,
            _ => explained(&source.path, error),
        })?;
        if reader.buffer_bytes() <= KEPT_BUFFER_BYTES_MAX {
            *kept = Some(reader);
        }
        if structures.is_empty() {
            return Err(Error::input("the file has no model"));
        }
        Ok(structures)
    })
}

/// An input for each structure of a source; one with the error if it could not be read.
fn by_model(source: &Source, structures: Result<Vec<Structure>>) -> Vec<Input> {
    let name = text_of(&source.path);
    let input = |structure| Input::new(name.clone(), source.ordinal, structure);
    match structures {
        Ok(structures) => structures.into_iter().map(|s| input(Ok(s))).collect(),
        Err(error) => vec![input(Err(error))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::fmt::Write as _;
    use std::io::Write as _;
    use tapeloop_structure::Models;
    use tapeloop_structure::internal::BudgetShare;

    #[test]
    fn a_thread_drops_its_buffers_after_a_small_file_with_much_text() {
        let folder = tempfile::tempdir().unwrap();
        let read_gzipped = |remarks: usize| {
            let mut text = "ATOM      1  CA  ALA A   1      11.104   6.134  -6.504\n".to_owned();
            for number in 0..remarks {
                writeln!(text, "REMARK {number}").unwrap();
            }
            let path = folder.path().join(format!("{remarks}.pdb.gz"));
            let file = std::fs::File::create(&path).unwrap();
            let mut packed = GzEncoder::new(file, Compression::fast());
            packed.write_all(text.as_bytes()).unwrap();
            packed.finish().unwrap();
            let source = Source {
                ordinal: 0,
                path,
                content: Ok(Content::File),
                chain: None,
            };
            let budget = Arc::new(ReadBudget::new(1 << 30));
            let structures = read(&source, ReadOptions::default(), &budget).unwrap();
            assert_eq!(structures.len(), 1);
            (text.len(), READER.take().is_some())
        };
        let (_, is_kept) = read_gzipped(10);
        assert!(is_kept);
        let (bytes, is_kept) = read_gzipped(1_300_000);
        assert!(bytes > KEPT_BUFFER_BYTES_MAX && !is_kept);
    }

    #[test]
    fn a_thread_reads_with_the_options_and_the_budget_of_each_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pdb");
        let atom = "ATOM      1  CA  ALA A   1      11.104   6.134  -6.504\n";
        std::fs::write(
            &path,
            format!("MODEL 1\n{atom}ENDMDL\nMODEL 2\n{atom}ENDMDL\n"),
        )
        .unwrap();
        let source = Source {
            ordinal: 0,
            path,
            content: Ok(Content::File),
            chain: None,
        };
        let first = ReadOptions::default();
        let all = ReadOptions {
            models: Models::All,
            ..first
        };
        for (options, models) in [(first, 1), (all, 2)] {
            let budget = Arc::new(ReadBudget::new(1 << 20));
            assert_eq!(read(&source, options, &budget).unwrap().len(), models);
            let kept = READER.take().unwrap();
            assert!(kept.reads_with(&options, &budget));
            READER.set(Some(kept));
        }
    }

    #[test]
    fn a_path_that_rows_would_repeat_too_often_is_rejected() {
        let bytes = b"ATOM      1  CA  ALA A   1      11.104   6.134  -6.504\n".to_vec();
        let read_as = |name_bytes: usize| {
            let content = Content::Bytes {
                bytes: bytes.clone(),
                _share: BudgetShare::new(None),
            };
            let source = Source {
                ordinal: 0,
                path: format!("{}.pdb", "a".repeat(name_bytes - 4)).into(),
                content: Ok(content),
                chain: None,
            };
            read(
                &source,
                ReadOptions::default(),
                &Arc::new(ReadBudget::new(1 << 30)),
            )
        };
        assert_eq!(read_as(SOURCE_BYTES_MAX).unwrap().len(), 1);
        let error = read_as(SOURCE_BYTES_MAX + 1).unwrap_err();
        assert!(error.message().contains("8193 bytes"), "{error}");
    }

    #[test]
    fn a_model_that_fails_the_check_is_refused_alone_and_keeps_its_number() {
        let line = b"ATOM      1  CA  ALA A   1      11.104   6.134  -6.504\n";
        let models = [1, 2, 3].map(|number| {
            let read = Reader::new(ReadOptions::default()).read_auto("x.pdb", line);
            let mut structure = read.unwrap().remove(0);
            structure.model = number;
            structure
        });
        let mut models = Vec::from(models);
        models[1].xyz[0][2] = 100_000_001;
        let source = Source {
            ordinal: 4,
            path: "x.pdb".into(),
            content: Ok(Content::File),
            chain: None,
        };
        let inputs = by_model(&source, Ok(models));
        let numbers: Vec<_> = inputs.iter().map(|input| input.model).collect();
        assert_eq!(numbers, [Some(1), Some(2), Some(3)]);
        assert!(inputs[0].structure.is_ok() && inputs[2].structure.is_ok());
        assert_eq!(
            inputs[1].structure.as_ref().unwrap_err().to_string(),
            "an atom is farther than 100000 A from the origin"
        );
    }

    #[test]
    fn a_panic_while_a_file_is_read_rejects_that_file() {
        assert_eq!(rejecting_panics("reading", || Ok(1)).unwrap(), 1);
        let gone = || -> Result<()> { panic!("an atom\tis gone") };
        let error = rejecting_panics("reading", gone).unwrap_err();
        assert!(
            error.message().ends_with("panicked: an atom\\tis gone"),
            "{error}"
        );
        assert_eq!(error.scope(), tapeloop::ErrorScope::Item);
    }
}
