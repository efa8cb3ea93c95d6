//! Frames of XTC trajectories, the compressed format of GROMACS.
//!
//! All numbers are big-endian. A frame has a header, the box and the number of atoms; then, for more
//! than nine atoms, compressed coordinates, and plain ones for fewer. Lengths are in nanometres.

use super::file::{FramePlace, TrajectoryFile, check_atoms, cut_short_error, damaged_error};
use molly::selection::AtomSelection;
use molly::{Magic, XTCReader};
use std::cell::RefCell;
use tapeloop_error::{Error, Result};
use tapeloop_files::quietly;
use tapeloop_structure::{Frame, Structure, Topology};

/// Bytes of the header of a frame.
const HEADER_BYTES: usize = 4 * (4 + 9 + 1);

/// Bytes that follow in a frame with compressed coordinates: the precision, the smallest and largest
/// coordinates, and the size that differences are coded with.
const CODING_BYTES: usize = 4 * (1 + 3 + 3 + 1);

/// Frames of more atoms have compressed coordinates.
const PLAIN_ATOMS_MAX: u32 = 9;

/// The most bytes of the size of the compressed coordinates, which follows.
const SIZE_BYTES_MAX: usize = size_of::<u64>();

/// Bytes of the plain coordinates of an atom.
const PLAIN_BYTES: u64 = size_of::<[f32; 3]>() as u64;

/// The most bytes of an atom with compressed coordinates: three whole numbers of 32 bits, a flag and the
/// length of a run.
const ATOM_BYTES_MAX: u64 = 13;

/// From nanometres to 0.001 A.
const MILLI: f64 = 10_000.0;

/// The frames of an XTC file.
pub(super) struct Xtc {
    file: TrajectoryFile,
    /// Where the next frame starts.
    offset: u64,
}

impl Xtc {
    pub(super) fn new(file: TrajectoryFile) -> Self {
        Xtc { file, offset: 0 }
    }

    /// Goes to the next frame, which has the number `index`, and returns its place and time. `None`
    /// is the end.
    ///
    /// # Errors
    /// Of kind `Input`, or `Io` if the file cannot be read: the frame is damaged or cut short, or has not `atoms`
    /// atoms.
    pub(super) fn next(
        &mut self,
        index: u32,
        atoms: u32,
    ) -> Result<Option<(FramePlace, Option<f32>)>> {
        let offset = self.offset;
        let left = self.file.bytes - offset;
        if left == 0 {
            return Ok(None);
        }
        let name = || format!("frame {index}");
        let short = || cut_short_error(&name(), offset, self.file.bytes);
        let mut header = [0; HEADER_BYTES + CODING_BYTES + SIZE_BYTES_MAX];
        let here = header.len().min(left as usize);
        self.file.read(&mut header[..here], offset, &name())?;
        let word = |index: usize| header[4 * index..][..4].try_into().expect("four bytes");
        let magic = i32::from_be_bytes(word(0));
        if here >= 4 && ![Magic::XTC_1995, Magic::XTC_2023].contains(&magic) {
            return Err(match index {
                0 => Error::input("this is not an XTC file")
                    .fix("give trajectories their own endings"),
                _ => damaged_error(&name(), offset, "does not begin as a frame does"),
            });
        }
        if here < HEADER_BYTES {
            return Err(short());
        }
        check_atoms(u32::from_be_bytes(word(1)).into(), atoms)?;
        // The words of the header: magic number, atoms, step, time, nine of the box, and atoms again.
        if word(1) != word(13) {
            return Err(damaged_error(&name(), offset, "has two numbers of atoms"));
        }
        let time = f32::from_be_bytes(word(3));
        let bytes = if atoms <= PLAIN_ATOMS_MAX {
            HEADER_BYTES as u64 + u64::from(atoms) * PLAIN_BYTES
        } else {
            let (size, start) = packed_size(&header[..here]).ok_or_else(short)?;
            if size > ATOM_BYTES_MAX * u64::from(atoms) {
                return Err(damaged_error(
                    &name(),
                    offset,
                    "is longer than its atoms can be",
                ));
            }
            start + size.next_multiple_of(4)
        };
        if bytes > left {
            return Err(short());
        }
        self.offset += bytes;
        let place = FramePlace {
            file: self.file.clone(),
            offset,
            bytes,
        };
        Ok(Some((place, time.is_finite().then_some(time))))
    }
}

/// The bytes of the compressed coordinates and where they start in a frame, of which `frame` is the
/// beginning, at least the magic number; `None` if it ends before them.
fn packed_size(frame: &[u8]) -> Option<(u64, u64)> {
    let offset = HEADER_BYTES + CODING_BYTES;
    let is_long = frame[..4] == Magic::XTC_2023.to_be_bytes();
    let size = frame.get(
        offset
            ..offset
                + if is_long {
                    SIZE_BYTES_MAX
                } else {
                    size_of::<u32>()
                },
    )?;
    let start = (offset + size.len()) as u64;
    let size = size.iter();
    Some((
        size.fold(0, |size, &byte| size << 8 | u64::from(byte)),
        start,
    ))
}

thread_local! {
    // Each thread keeps the memory that it unpacks into, as most frames of a run have one size.
    static UNPACKED: RefCell<(molly::Frame, Vec<u8>)> = RefCell::default();
}

/// Reads the structure at a frame from its bytes, which [`Xtc::next`] has checked.
///
/// # Errors
/// Of kind `Input`: the compressed coordinates are damaged. And those of [`Topology::at_frame`].
pub(super) fn read(bytes: &[u8], topology: &Topology, frame: Frame) -> Result<Structure> {
    // The file may have been changed since its frames were listed, and this sizes memory.
    let fits = |(size, start): (u64, u64)| size <= bytes.len() as u64 - start;
    if topology.file_atoms() > PLAIN_ATOMS_MAX && !packed_size(bytes).is_some_and(fits) {
        return Err(Error::input("the trajectory has changed").fix("run again"));
    }
    // Water, which comes last, is not unpacked.
    let atoms = topology.atoms().iter().max().map_or(0, |&last| last + 1);
    UNPACKED.with_borrow_mut(|(unpacked, scratch)| {
        let selection = AtomSelection::Until(atoms);
        let read = quietly(|| {
            XTCReader::new(bytes).read_frame_with_scratch(unpacked, scratch, &selection)
        });
        let read = read.and_then(|read| read.map_err(|error| error.to_string()));
        if let Err(how) = read {
            let index = frame.index;
            let message = format!("the coordinates of frame {index} are damaged: {how}");
            return Err(Error::input(message).fix("copy or write the trajectory again"));
        }
        topology.at_frame(frame, |atom| {
            let place = &unpacked.positions[3 * atom..][..3];
            [0, 1, 2].map(|axis| f64::from(place[axis]) * MILLI)
        })
    })
}
