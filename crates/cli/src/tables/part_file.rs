//! One file of a table, in any format. The pool encodes its row groups, a few at a time, and a thread
//! writes them in order. The file gets its name once the files of all tables are on the disk.

use super::super::config::TableCompression;
use super::super::core_time::CoreTime;
use super::column::TableColumn;
use super::row_group::RowGroup;
use super::schema::ColumnSpec;
use super::statistics::ValueStatistics;
use crossbeam_channel::{Receiver, Sender, bounded};
use rayon::ThreadPool;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use tapeloop::error::{Context, Error, ErrorKind, Result};
use tapeloop_error::internal::{catch, thread, thread_error};
use tapeloop_files::Temporary;
use tapeloop_files::shown;

/// The most row groups of a table that `threads` threads encode at the same time, while another one
/// is filled. The last columns of one keep few threads busy, so there are two, and more for many
/// threads; each holds its rows in memory until they are encoded.
pub(super) fn groups_encoding_max(threads: usize) -> usize {
    2 + threads / 8
}

/// What the files of a table have in common.
pub(super) struct FileSpec {
    pub(super) columns: Arc<[TableColumn]>,
    /// A compression that the format supports.
    pub(super) compression: TableCompression,
    /// What decides the values, for formats whose files can hold it.
    pub(super) metadata: Vec<(&'static str, String)>,
    /// Whether Arrow files have dictionaries of the texts, which then are not repeated in each row.
    pub(super) shares_texts: bool,
    /// Gathers and encodes.
    pub(super) pool: Arc<ThreadPool>,
    /// Processor time of gathering and encoding.
    pub(super) cores: CoreTime,
}

impl FileSpec {
    pub(super) fn columns(&self) -> impl Iterator<Item = &ColumnSpec> {
        self.columns.iter().map(|column| &column.spec)
    }
}

/// A format of files.
pub(super) trait FileFormat: RowGroupFormat {
    /// Begins a file.
    ///
    /// # Errors
    /// The file cannot be written.
    fn start(file: File, spec: &FileSpec) -> Result<Self>;
}

/// How row groups are stored.
pub(super) trait RowGroupFormat: Sized + Send {
    /// What a task makes of its share of a row group.
    type Encoded: Send + 'static;

    /// The tasks that encode the next row group, which has at least one row. The pool runs them in any order.
    ///
    /// # Errors
    /// The format cannot store another row group.
    fn tasks(&mut self, group: &RowGroup) -> Result<Vec<EncodeTask<Self::Encoded>>>;

    /// Writes a row group. `encoded` is what its tasks returned, in the order of the tasks.
    ///
    /// # Errors
    /// The file cannot be written.
    fn write(&mut self, encoded: Vec<Self::Encoded>) -> Result<()>;

    /// Writes what follows the last row group. Returns the file, if there is one.
    ///
    /// # Errors
    /// The file cannot be written.
    fn finish(self) -> Result<Option<File>>;
}

/// Encodes a share of a row group, such as a column.
pub(super) struct EncodeTask<T> {
    /// The share, for messages.
    pub(super) share: String,
    pub(super) encode: Box<Encode<T>>,
}

/// Encodes a share of a row group.
type Encode<T> = dyn FnOnce(&RowGroup) -> Result<Encoded<T>> + Send;

/// What a task returns.
pub(super) struct Encoded<T> {
    pub(super) data: T,
    /// The statistics of the values in the share, with the index of their column.
    pub(super) statistics: Vec<(usize, ValueStatistics)>,
}

/// A file that is being written, on a thread of its own. Dropping it before it is published waits for the
/// thread's step, and removes the file.
pub(super) struct PartFile {
    /// To the thread; `None` to end it.
    steps: Option<Sender<PartStep>>,
    /// Gives the complete file, or `None` if the steps ended before it was. `None` once it was joined.
    thread: Option<JoinHandle<Result<Option<CompletePart>>>>,
}

/// What the thread of a part does next.
enum PartStep {
    Group(RowGroup),
    Finish,
}

impl PartFile {
    /// Starts the thread that writes the part. A panic there becomes an [`ErrorKind::Io`] error.
    fn start<F: RowGroupFormat + 'static>(part: OpenPartFile<F>) -> Result<Self> {
        // The channel has no room, so that the thread that fills row groups waits while this one is behind.
        let (sender, steps) = bounded(0);
        let thread = thread("tapeloop-write")
            .spawn(move || {
                catch(|| part.write(&steps)).unwrap_or_else(|panic| {
                    Err(Error::new(
                        ErrorKind::Io,
                        format!("writing panicked: {panic}"),
                    ))
                })
            })
            .map_err(thread_error)?;
        Ok(PartFile {
            steps: Some(sender),
            thread: Some(thread),
        })
    }

    /// Has the pool gather and encode a row group. Waits while it encodes [`groups_encoding_max`], or
    /// while that many wait to be written.
    ///
    /// # Errors
    /// An earlier row group cannot be encoded or written.
    pub(super) fn write_group(&mut self, group: RowGroup) -> Result<()> {
        self.step(PartStep::Group(group))
    }

    /// Has the last row groups and the end of the file written. Waits until the thread takes the step, and not for
    /// the writing.
    ///
    /// # Errors
    /// A row group cannot be encoded or written.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.step(PartStep::Finish)
    }

    /// Whether the file is complete, or cannot be written.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the file is complete, which [`PartFile::finish`] has asked for.
    ///
    /// # Errors
    /// The file cannot be encoded, written, or flushed to the disk.
    pub(super) fn complete(mut self) -> Result<CompletePart> {
        let part = self.join()?;
        Ok(part.expect("`finish` comes before `complete`"))
    }

    /// Sends a step to the thread, and waits until it takes it. Returns the thread's error if it
    /// has ended.
    fn step(&mut self, step: PartStep) -> Result<()> {
        let steps = self.steps.as_ref();
        let steps = steps.expect("the channel is there until `join`, which comes last");
        match steps.send(step) {
            Ok(()) => Ok(()),
            // The thread ends before its last step only if it fails.
            Err(_) => Err(self.join().err().expect("the thread has failed")),
        }
    }

    /// Ends the thread after the step that it is at, and returns its outcome. Once that was taken,
    /// it is an [`ErrorKind::Io`] error.
    fn join(&mut self) -> Result<Option<CompletePart>> {
        self.steps = None;
        let Some(thread) = self.thread.take() else {
            return Err(Error::new(ErrorKind::Io, "the part was not written"));
        };
        thread.join().expect("its panics are caught")
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if self.thread.is_some() {
            // The part is dropped without `complete`, so no caller takes its error.
            let _ = self.join();
        }
    }
}

/// Creates a file, which will be renamed to `path`. Without a path the rows go to standard output.
///
/// # Errors
/// [`ErrorKind::Io`] if the file cannot be created.
pub(super) fn create<F: FileFormat + 'static>(
    path: Option<PathBuf>,
    spec: &FileSpec,
) -> Result<PartFile> {
    let (place, file) = match path {
        Some(path) => {
            let (temporary, file) = Temporary::fixed(&path)?;
            (PartPlace::File { path, temporary }, file)
        }
        None => (PartPlace::Stdout, stdout().within(|| STDOUT)?),
    };
    let format = F::start(file, spec).within(|| place.shown())?;
    open(place, format, spec)
}

/// Rows that stay in memory: `format` gives them away.
pub(super) fn in_memory<F: RowGroupFormat + 'static>(
    format: F,
    spec: &FileSpec,
) -> Result<PartFile> {
    open(PartPlace::Memory, format, spec)
}

/// Opens a part at its place. The file is made by its first step.
fn open<F: RowGroupFormat + 'static>(
    place: PartPlace,
    format: F,
    spec: &FileSpec,
) -> Result<PartFile> {
    PartFile::start(OpenPartFile {
        place,
        format,
        encoding: VecDeque::new(),
        pool: Arc::clone(&spec.pool),
        cores: spec.cores.clone(),
        statistics: vec![ValueStatistics::default(); spec.columns.len()],
    })
}

/// Standard output, in messages.
pub(super) const STDOUT: &str = "standard output";

/// Standard output as a file, which the formats write to without a buffer in between.
#[cfg(unix)]
fn stdout() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

/// Standard output as a file, which the formats write to without a buffer in between.
#[cfg(windows)]
fn stdout() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(io::stdout().as_handle().try_clone_to_owned()?.into())
}

/// Where a file is written.
enum PartPlace {
    /// A file with its name, and with a temporary one until it is complete.
    File {
        path: PathBuf,
        temporary: Temporary,
    },
    Stdout,
    Memory,
}

impl PartPlace {
    /// The file, for messages.
    fn shown(&self) -> String {
        match self {
            PartPlace::File { temporary, .. } => shown(temporary.path()),
            PartPlace::Stdout => STDOUT.to_owned(),
            PartPlace::Memory => "record batches".to_owned(),
        }
    }
}

struct OpenPartFile<F: RowGroupFormat> {
    place: PartPlace,
    format: F,
    /// The row groups that the pool is encoding, the oldest first.
    encoding: VecDeque<EncodingGroup<F::Encoded>>,
    pool: Arc<ThreadPool>,
    cores: CoreTime,
    /// The statistics of each column.
    statistics: Vec<ValueStatistics>,
}

/// A row group that the pool is encoding.
struct EncodingGroup<T> {
    /// The share of each task.
    shares: Vec<String>,
    /// What the tasks return, in any order, each with the task's index.
    results: Receiver<(usize, Result<Encoded<T>>)>,
}

impl<F: RowGroupFormat> OpenPartFile<F> {
    /// Takes steps until the last one; `None` if the part is dropped before it. Row groups are
    /// encoded while it waits for a step, and are written in order.
    fn write(mut self, steps: &Receiver<PartStep>) -> Result<Option<CompletePart>> {
        let most = groups_encoding_max(self.pool.current_num_threads());
        loop {
            match steps.recv() {
                Ok(PartStep::Group(group)) => self.encode(group)?,
                Ok(PartStep::Finish) => return self.finish().map(Some),
                Err(_) => return Ok(None),
            }
            while self.encoding.len() >= most || self.is_oldest_encoded() {
                self.write_oldest()?;
            }
        }
    }

    /// Has the pool encode a row group, and does not wait for it. A panic in a task becomes an
    /// [`ErrorKind::Io`] error among the group's results.
    fn encode(&mut self, group: RowGroup) -> Result<()> {
        let tasks = self.format.tasks(&group)?;
        let (sender, results) = bounded(tasks.len());
        let mut shares = Vec::with_capacity(tasks.len());
        let group = Arc::new(group);
        for (index, EncodeTask { share, encode }) in tasks.into_iter().enumerate() {
            shares.push(share);
            let (group, sender, cores) = (Arc::clone(&group), sender.clone(), self.cores.clone());
            self.pool.spawn(move || {
                let encoded = cores.measure(|| catch(|| encode(&group)));
                // The last task frees the rows.
                drop(group);
                let encoded = encoded.unwrap_or_else(|panic| {
                    let message = format!("encoding panicked: {panic}");
                    Err(Error::new(ErrorKind::Io, message))
                });
                // Dropping the part drops the receiver.
                let _ = sender.send((index, encoded));
            });
        }
        self.encoding.push_back(EncodingGroup { shares, results });
        Ok(())
    }

    /// Writes what is left, ends the file, and flushes it to the disk. A file gets its name when
    /// all parts of its number are complete.
    fn finish(mut self) -> Result<CompletePart> {
        while !self.encoding.is_empty() {
            self.write_oldest()?;
        }
        let OpenPartFile {
            place,
            format,
            statistics,
            ..
        } = self;
        let file = format.finish().within(|| place.shown())?;
        if let (PartPlace::File { .. }, Some(file)) = (&place, file) {
            file.sync_all().within(|| place.shown())?;
        }
        Ok(CompletePart { place, statistics })
    }

    /// Whether all tasks of the oldest row group have returned, so that writing it does not wait.
    fn is_oldest_encoded(&self) -> bool {
        let oldest = self.encoding.front();
        oldest.is_some_and(|group| group.results.len() == group.shares.len())
    }

    /// Writes the oldest row group, once the pool has encoded it, and adds up its statistics.
    fn write_oldest(&mut self) -> Result<()> {
        let Some(EncodingGroup { shares, results }) = self.encoding.pop_front() else {
            return Ok(());
        };
        let mut encoded: Vec<Option<Encoded<F::Encoded>>> = Vec::new();
        encoded.resize_with(shares.len(), || None);
        for (index, result) in results {
            encoded[index] = Some(result.within(|| shares[index].as_str())?);
        }
        let mut group = Vec::with_capacity(shares.len());
        for Encoded { data, statistics } in encoded.into_iter().flatten() {
            for (column, statistics) in statistics {
                self.statistics[column].add(statistics);
            }
            group.push(data);
        }
        let written = self.format.write(group);
        written.within(|| self.place.shown())
    }
}

/// A complete file, flushed to the disk under its temporary name. Dropping it removes it.
pub(super) struct CompletePart {
    place: PartPlace,
    /// The statistics of each column.
    pub(super) statistics: Vec<ValueStatistics>,
}

/// Renames the files of all tables to their names, and returns these.
///
/// # Errors
/// [`ErrorKind::Io`] if a file cannot be renamed. Then no file keeps its final name.
pub(super) fn publish(parts: Vec<CompletePart>) -> Result<Vec<PathBuf>> {
    let mut published: Vec<PathBuf> = Vec::new();
    for part in parts {
        let PartPlace::File { path, temporary } = part.place else {
            continue;
        };
        if let Err(error) = temporary.rename(&path) {
            for path in published {
                // The run ends with the first error.
                let _ = fs::remove_file(path);
            }
            return Err(error).within(|| shown(&path));
        }
        published.push(path);
    }
    Ok(published)
}
