//! The folder of the timeline.

use std::fs;
use std::path::{Path, PathBuf};
use tapeloop::error::{Context, Result};
use tapeloop::pipeline::{Statistics, Timeline};
use tapeloop_files::check_name;
use tapeloop_files::shown;

const FILES: [&str; 2] = ["timeline.json", "timeline.svg"];

/// An existing folder for `timeline.json` and `timeline.svg`.
pub(super) struct TimelineFolder(PathBuf);

impl TimelineFolder {
    /// Creates the folder, before the run starts.
    ///
    /// # Errors
    /// The folder cannot be created, or a link or a FIFO has the name of one of the files.
    pub(super) fn make(path: &Path) -> Result<Self> {
        fs::create_dir_all(path).within(|| format!("timeline {}", shown(path)))?;
        FILES
            .iter()
            .try_for_each(|name| check_name(&path.join(name)))?;
        Ok(TimelineFolder(path.to_owned()))
    }

    /// Writes both files, over existing ones.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop::ErrorKind::Io) if a file cannot be written.
    pub(super) fn write(
        &self,
        timeline: &Timeline,
        statistics: &Statistics,
        title: &str,
    ) -> Result<()> {
        let texts = [
            timeline.to_chrome_json(),
            timeline.to_svg(statistics, title),
        ];
        for (name, text) in FILES.iter().zip(texts) {
            let path = self.0.join(name);
            tapeloop_files::replace(&path, text.as_bytes())?;
        }
        Ok(())
    }
}
