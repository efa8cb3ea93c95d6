//! The folder of a run's timeline.

use crate::error::{Context, Result};
use crate::pipeline::{Statistics, Timeline};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder that is there, for `timeline.json` and `timeline.svg`.
pub(super) struct TimelineFolder(PathBuf);

impl TimelineFolder {
    /// Makes the folder, before the run takes its time.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn make(path: &Path) -> Result<Self> {
        fs::create_dir_all(path).within(|| format!("timeline {}", path.display()))?;
        Ok(TimelineFolder(path.to_owned()))
    }

    /// Writes both, over those that are there.
    ///
    /// # Errors
    /// One cannot be written.
    pub(super) fn write(
        &self,
        timeline: &Timeline,
        statistics: &Statistics,
        title: &str,
    ) -> Result<()> {
        let files = [
            ("timeline.json", timeline.to_chrome_json()),
            ("timeline.svg", timeline.to_svg(statistics, title)),
        ];
        for (name, text) in files {
            let path = self.0.join(name);
            fs::write(&path, text).within(|| path.display().to_string())?;
        }
        Ok(())
    }
}
