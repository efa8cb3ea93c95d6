//! Steps through the frames of the trajectories among the inputs.

use super::super::{Content, Level, Source, Sources};
use super::{Trajectories, Trajectory, TrajectoryKind};
use crate::error::Result;
use std::path::Path;

impl Sources {
    /// Reads the frames of trajectories, or takes them for sources.
    pub(in crate::cli) fn with_trajectories(mut self, trajectories: Trajectories) -> Self {
        self.trajectories = trajectories;
        self
    }

    /// Opens a file if it is a trajectory whose frames are sources.
    pub(in crate::cli::inputs) fn open_trajectory(&mut self, path: &Path) -> Option<Result<()>> {
        let kind = TrajectoryKind::of_name(path.file_name()?)?;
        self.has_members |= !matches!(self.trajectories, Trajectories::Unknown);
        let Trajectories::Read(topology, range) = &self.trajectories else {
            return None;
        };
        let opened = Trajectory::open(path, kind, topology, *range).map(|trajectory| {
            if let Some(digester) = &mut self.digester {
                digester.add_file(path);
            }
            self.open.push(Level::Trajectory(Box::new(trajectory)));
        });
        Some(opened)
    }

    /// Goes to the next frame of the innermost level, which is a trajectory.
    pub(in crate::cli::inputs) fn step_trajectory(&mut self) -> Option<Source> {
        let Some(Level::Trajectory(trajectory)) = self.open.last_mut() else {
            return None;
        };
        match trajectory.next() {
            Ok(Some(frame)) => {
                let path = trajectory.path_of(frame.frame);
                let takes = self.takes_next();
                let bytes = frame.place.bytes;
                takes.then(|| self.taken(path, Some(bytes), Ok(Content::Frame(frame))))
            }
            Ok(None) => {
                self.open.pop();
                None
            }
            Err(error) => {
                let path = std::mem::take(&mut trajectory.path);
                self.open.pop();
                self.source(path, Some(error))
            }
        }
    }
}
