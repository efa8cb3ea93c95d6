//! Trajectories, whose frames are read one by one.
//!
//! The thread that lists inputs finds where each frame starts, which takes one short read of an XTC
//! frame and none of a DCD frame. A frame is read and unpacked by the thread that needs it, so that
//! all cores unpack, and a trajectory takes the memory of the frames that are being read.

mod dcd;
mod file;
mod frame_range;
mod xtc;

use dcd::Dcd;
use file::{FramePlace, TrajectoryFile};
pub use frame_range::FrameRange;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tapeloop_error::{Error, Result};
use tapeloop_structure::internal::Compression;
use tapeloop_structure::{Frame, Reader, Structure, Topology};
use xtc::Xtc;

/// How trajectories among the inputs are treated.
#[derive(Clone, Debug, Default)]
pub enum Trajectories {
    /// Trajectories in folders are skipped; others are taken for structure files.
    #[default]
    Unknown,
    /// Each trajectory is one source.
    Whole,
    /// The frames of trajectories are sources.
    Read(Arc<Topology>, FrameRange),
}

/// The formats of trajectories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrajectoryKind {
    /// The compressed format of GROMACS.
    Xtc,
    /// The format of CHARMM and NAMD.
    Dcd,
}

impl TrajectoryKind {
    /// The format that a file's name shows by its ending, in either case.
    pub fn of_name(name: &OsStr) -> Option<Self> {
        let ending = Path::new(name).extension()?;
        let is = |known: &str| ending.eq_ignore_ascii_case(known);
        if is("xtc") {
            Some(TrajectoryKind::Xtc)
        } else {
            is("dcd").then_some(TrajectoryKind::Dcd)
        }
    }
}

impl Trajectories {
    /// The same files without their frames.
    pub fn whole(&self) -> Self {
        match self {
            Trajectories::Unknown => Trajectories::Unknown,
            Trajectories::Whole | Trajectories::Read(..) => Trajectories::Whole,
        }
    }

    /// Whether a file of this name is a trajectory that is an input. One that is compressed is
    /// rejected, and not skipped.
    pub fn include(&self, name: &OsStr) -> bool {
        !matches!(self, Trajectories::Unknown) && is_trajectory_name(&name.to_string_lossy())
    }
}

/// Whether a file of this name is a trajectory, plain or compressed.
pub fn is_trajectory_name(name: &str) -> bool {
    let plain = Compression::unpacked_name(name);
    TrajectoryKind::of_name(OsStr::new(plain)).is_some()
}

/// An open trajectory whose frames are being listed.
pub struct Trajectory {
    path: PathBuf,
    frames: Frames,
    topology: Arc<Topology>,
    range: FrameRange,
    /// Number of the next frame.
    next: u32,
    /// Frames in the range so far.
    taken: u32,
}

enum Frames {
    Xtc(Xtc),
    Dcd(Arc<Dcd>),
}

/// Where the bytes of a frame are, and how they are read.
pub struct FrameBytes {
    place: FramePlace,
    /// The header of the trajectory, if it is a DCD file.
    dcd: Option<Arc<Dcd>>,
    frame: Frame,
    topology: Arc<Topology>,
}

impl Trajectory {
    /// Opens the trajectory at `path`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): the file cannot be read.
    /// [`ErrorKind::Input`](tapeloop_error::ErrorKind::Input): it is damaged, or has another number of atoms than
    /// the topology.
    pub fn open(
        path: &Path,
        kind: TrajectoryKind,
        topology: &Arc<Topology>,
        range: FrameRange,
    ) -> Result<Self> {
        let file = TrajectoryFile::open(path)?;
        Ok(Trajectory {
            path: path.to_owned(),
            frames: match kind {
                TrajectoryKind::Xtc => Frames::Xtc(Xtc::new(file)),
                TrajectoryKind::Dcd => Frames::Dcd(Arc::new(Dcd::open(file, topology)?)),
            },
            topology: Arc::clone(topology),
            range,
            next: 0,
            taken: 0,
        })
    }

    /// Goes to the next frame of the range; `None` at the end.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](tapeloop_error::ErrorKind::Input): the trajectory is damaged or cut short here, or no
    /// frame is in the range. [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): it cannot be read.
    #[allow(clippy::should_implement_trait, reason = "an error ends it")]
    pub fn next(&mut self) -> Result<Option<FrameBytes>> {
        while !self.range.ends_before(self.next) {
            let index = self.next;
            let place = match &mut self.frames {
                Frames::Xtc(xtc) => xtc.next(index, self.topology.file_atoms())?,
                Frames::Dcd(dcd) => dcd.frame(index)?,
            };
            let Some((place, time_ps)) = place else {
                break;
            };
            // The column of the tables has 32 bits with a sign.
            if index == i32::MAX as u32 {
                return Err(Error::input(format!("there are more than {index} frames")));
            }
            self.next += 1;
            if self.range.contains(index) {
                self.taken += 1;
                let dcd = match &self.frames {
                    Frames::Dcd(dcd) => Some(Arc::clone(dcd)),
                    Frames::Xtc(_) => None,
                };
                return Ok(Some(FrameBytes {
                    place,
                    dcd,
                    frame: Frame { index, time_ps },
                    topology: Arc::clone(&self.topology),
                }));
            }
        }
        if self.taken > 0 {
            return Ok(None);
        }
        Err(match self.next {
            0 => Error::input("the trajectory has no frame").fix("write it again"),
            frames => Error::input(format!(
                "frames = \"{}\" chooses none of the {frames} frames that were read",
                self.range
            ))
            .fix("choose frames that the trajectory has; they are counted from 0"),
        })
    }

    /// The path of the trajectory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a frame, whose file name is unlike those of other frames and trajectories.
    pub fn path_of(&self, frame: Frame) -> PathBuf {
        let mut name = self.path.file_stem().unwrap_or_default().to_owned();
        name.push(format!("-{:06}.", frame.index));
        name.push(self.path.extension().unwrap_or_default());
        self.path.join(name)
    }
}

impl FrameBytes {
    /// The number and the time of the frame.
    pub fn frame(&self) -> Frame {
        self.frame
    }

    /// The size of the frame in the file, in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.place.bytes
    }

    /// Reads the structure at this frame.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](tapeloop_error::ErrorKind::Input): the frame is damaged.
    /// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): it cannot be read. And those of [`Topology::at_frame`].
    pub fn read(&self, reader: &mut Reader) -> Result<Structure> {
        let FramePlace {
            file,
            offset,
            bytes,
        } = &self.place;
        let index = self.frame.index;
        reader.with_bytes(
            *bytes,
            |buffer| file.read(buffer, *offset, &format!("frame {index}")),
            |bytes| match &self.dcd {
                None => xtc::read(bytes, &self.topology, self.frame),
                Some(dcd) => dcd.read(bytes, &self.topology, self.frame),
            },
        )
    }
}
