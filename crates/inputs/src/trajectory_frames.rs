//! Steps through the frames of the trajectories among the inputs.

use super::{Content, OpenItem, Source, Sources, Trajectories, Trajectory};
use std::path::Path;
use tapeloop_error::Result;
use tapeloop_trajectory::TrajectoryKind;

impl Sources {
    /// Reads the frames of trajectories, or takes them for sources.
    pub fn with_trajectories(mut self, trajectories: Trajectories) -> Self {
        self.trajectories = trajectories;
        self
    }

    /// Opens a file if it is a trajectory whose frames are sources; they follow in the next steps. `None`
    /// for any other file.
    pub(super) fn open_trajectory(&mut self, path: &Path) -> Option<Result<()>> {
        let kind = TrajectoryKind::of_name(path.file_name()?)?;
        self.has_members |= !matches!(self.trajectories, Trajectories::Unknown);
        let Trajectories::Read(topology, range) = &self.trajectories else {
            return None;
        };
        let opened = Trajectory::open(path, kind, topology, *range).map(|trajectory| {
            if let Some(digester) = &mut self.digester {
                digester.add_file(path);
            }
            self.open.push(OpenItem::Trajectory(Box::new(trajectory)));
        });
        Some(opened)
    }

    /// Goes to the next frame of the innermost level, which is a trajectory.
    pub(super) fn step_trajectory(&mut self) -> Option<Source> {
        let Some(OpenItem::Trajectory(trajectory)) = self.open.last_mut() else {
            return None;
        };
        match trajectory.next() {
            Ok(Some(frame)) => {
                let path = trajectory.path_of(frame.frame());
                let takes = self.takes_next();
                let bytes = frame.size_bytes();
                takes.then(|| self.new_source(path, Some(bytes), Ok(Content::Frame(frame))))
            }
            Ok(None) => {
                self.open.pop();
                None
            }
            Err(error) => {
                let path = trajectory.path().to_owned();
                self.open.pop();
                self.source(path, Some(error))
            }
        }
    }
}

#[cfg(test)]
mod tests;
