//! Frames of DCD trajectories, the format of CHARMM, NAMD and X-PLOR.
//!
//! A file is a sequence of Fortran records: the bytes between two copies of their number, which is 32
//! bits wide, in either byte order. Three records make the header: 84 bytes that start with `CORD`
//! and hold 20 words, the title, and the number of atoms. If some atoms are fixed, a fourth lists the
//! others, and only the first frame has all atoms. A frame is a record of x, one of y and one of z in
//! A, with a record for the cell before them and one for a fourth dimension after them if the header
//! says so. All frames but the first have one size, so that no frame is read to find the next.

use super::file::{FramePlace, TrajectoryFile, check_atoms, cut_short_error, damaged_error};
use tapeloop_error::{Error, Result};
use tapeloop_structure::{Frame, Structure, Topology};

/// Bytes of the first record.
const START_BYTES: u32 = 84;

/// Bytes of the record of the cell.
const CELL_BYTES: u32 = 48;

/// Bytes of the two markers of a record.
const MARKERS_BYTES: u64 = 8;

/// The most bytes of the title, of which programs write some lines of 80: it is skipped, and a longer one shows that
/// the file is damaged.
const TITLE_BYTES_MAX: u32 = 1 << 20;

/// The unit of time of CHARMM (AKMA) in picoseconds.
const AKMA_PS: f64 = 0.048_888_21;

/// The header of a DCD file.
#[derive(Debug)]
pub(super) struct Dcd {
    file: TrajectoryFile,
    is_big_endian: bool,
    has_cell: bool,
    has_fourth_axis: bool,
    /// The first frame's step, and the steps between two frames.
    steps: [u32; 2],
    /// The time of a step in picoseconds; `None` if the file gives none.
    step_ps: Option<f64>,
    atoms: u32,
    fixed: Option<FixedAtoms>,
    /// Where the first frame starts.
    frames_start: u64,
}

/// The atoms that the first frame alone has.
#[derive(Debug)]
struct FixedAtoms {
    /// For each atom, its place in the records of later frames; `None` if it is fixed.
    place: Vec<Option<u32>>,
    /// Atoms in the records of later frames.
    free: u32,
    /// The bytes of the first frame.
    first: Vec<u8>,
}

/// Reads records from the start of a file.
struct FortranRecords<'a> {
    file: &'a TrajectoryFile,
    is_big_endian: bool,
    offset: u64,
}

/// The number in the first four bytes.
fn word_of(bytes: &[u8], is_big_endian: bool) -> u32 {
    let word = bytes[..4].try_into().expect("four bytes");
    if is_big_endian {
        u32::from_be_bytes(word)
    } else {
        u32::from_le_bytes(word)
    }
}

impl FortranRecords<'_> {
    const WHAT: &'static str = "the header";

    fn word(&self, offset: u64) -> Result<u32> {
        let mut word = [0; 4];
        self.file.read(&mut word, offset, Self::WHAT)?;
        Ok(word_of(&word, self.is_big_endian))
    }

    /// Skips the next record, which has at most `max` bytes. Returns where its bytes start, and their number.
    /// An error of kind `Input` for a longer record, or one whose two markers differ.
    fn skip(&mut self, max: u32) -> Result<(u64, u32)> {
        let (start, bytes) = (self.offset + 4, self.word(self.offset)?);
        let damaged_record = |defect| Err(damaged_error("the record", self.offset, defect));
        if bytes > max {
            return damaged_record("is too long for the header");
        }
        let end = start + u64::from(bytes);
        if self.word(end)? != bytes {
            return damaged_record("does not end where it should");
        }
        self.offset = end + 4;
        Ok((start, bytes))
    }

    /// Reads the next record, which has `bytes` bytes.
    fn take(&mut self, bytes: u32) -> Result<Vec<u8>> {
        let offset = self.offset;
        let (start, found) = self.skip(bytes)?;
        if found != bytes {
            return Err(damaged_error(
                "the record",
                offset,
                "is too short for the header",
            ));
        }
        let mut record = vec![0; bytes as usize];
        self.file.read(&mut record, start, Self::WHAT)?;
        Ok(record)
    }
}

impl Dcd {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// Of kind `Input`, or `Io` if the file cannot be read: it is damaged or cut short, or has another number of
    /// atoms than the topology.
    pub(super) fn open(file: TrajectoryFile, topology: &Topology) -> Result<Self> {
        let mut start = [0; 8];
        file.read(&mut start, 0, FortranRecords::WHAT)?;
        let is_big_endian = word_of(&start, true) == START_BYTES;
        let is_dcd = is_big_endian || word_of(&start, false) == START_BYTES;
        if !is_dcd || &start[4..] != b"CORD" {
            let error =
                Error::input("this is not a DCD file of coordinates with markers of 32 bits");
            return Err(error.fix("convert it, for example with MDAnalysis or catdcd"));
        }
        let mut records = FortranRecords {
            file: &file,
            is_big_endian,
            offset: 0,
        };
        let start = records.take(START_BYTES)?;
        // CHARMM's array ICNTRL, after `CORD`, from 0: 1 is the step of the first frame, 2 the steps from
        // one frame to the next, 8 the number of fixed atoms, 9 the length of a step, 10 whether frames
        // have a cell, 11 whether they have a fourth axis, and 19 the version of the program, which X-PLOR
        // leaves 0.
        let from_word = |word: usize| &start[4 + 4 * word..];
        let word = |number: usize| word_of(from_word(number), is_big_endian);
        let is_charmm = word(19) != 0;
        let delta = if is_charmm {
            f64::from(f32::from_bits(word(9)))
        } else {
            // X-PLOR writes 64 bits, and neither cells nor a fourth axis.
            let bits = from_word(9)[..8].try_into().expect("eight bytes");
            f64::from_bits(if is_big_endian {
                u64::from_be_bytes(bits)
            } else {
                u64::from_le_bytes(bits)
            })
        };
        let has_step = delta.is_finite() && delta > 0.0;
        records.skip(TITLE_BYTES_MAX)?;
        let atoms = word_of(&records.take(4)?, is_big_endian);
        check_atoms(atoms.into(), topology.file_atoms())?;
        let fixed = word(8);
        let free = match fixed {
            0 => None,
            _ if fixed >= atoms => return Err(damaged_error("the header", 0, "fixes all atoms")),
            _ => Some(records.take(4 * (atoms - fixed))?),
        };
        let (is_cell, is_fourth_axis) = (word(10) != 0, word(11) != 0);
        let steps = [word(1), word(2)];
        let frames_start = records.offset;
        let mut dcd = Dcd {
            file,
            is_big_endian,
            has_cell: is_charmm && is_cell,
            has_fourth_axis: is_charmm && is_fourth_axis,
            steps,
            step_ps: has_step.then_some(delta * AKMA_PS),
            atoms,
            fixed: None,
            frames_start,
        };
        if let Some(free) = free {
            dcd.fixed = Some(dcd.read_fixed_atoms(&free)?);
        }
        Ok(dcd)
    }

    /// Reads the positions of all atoms from frame 0, as later frames have those of the free atoms
    /// alone. `free` lists these, from 1.
    fn read_fixed_atoms(&self, free: &[u8]) -> Result<FixedAtoms> {
        let mut place = vec![None; self.atoms as usize];
        let free = free.chunks_exact(4);
        let count = free.len() as u32;
        for (index, atom) in (0..).zip(free) {
            // 0, which names no atom, becomes a number that is too large.
            let atom = word_of(atom, self.is_big_endian).wrapping_sub(1);
            let Some(place) = place.get_mut(atom as usize) else {
                return Err(damaged_error(
                    "the header",
                    0,
                    "frees an atom that is not there",
                ));
            };
            *place = Some(index);
        }
        let bytes = self.frame_bytes(self.atoms);
        // Checked before the memory is allocated.
        if bytes > self.file.bytes - self.frames_start {
            return Err(cut_short_error(
                "frame 0",
                self.frames_start,
                self.file.bytes,
            ));
        }
        let mut first = vec![0; bytes as usize];
        self.file.read(&mut first, self.frames_start, "frame 0")?;
        Ok(FixedAtoms {
            place,
            free: count,
            first,
        })
    }

    /// Bytes of a frame with these atoms.
    fn frame_bytes(&self, atoms: u32) -> u64 {
        let axis = MARKERS_BYTES + 4 * u64::from(atoms);
        let axes = if self.has_fourth_axis { 4 } else { 3 };
        self.cell_bytes() + axes * axis
    }

    /// Bytes of the record of the cell of a frame, 0 if there is none.
    fn cell_bytes(&self) -> u64 {
        if self.has_cell {
            MARKERS_BYTES + u64::from(CELL_BYTES)
        } else {
            0
        }
    }

    /// Atoms in the records of a frame.
    fn atoms_of(&self, index: u32) -> u32 {
        match &self.fixed {
            Some(fixed) if index > 0 => fixed.free,
            _ => self.atoms,
        }
    }

    /// The place and the time of frame `index`; `None` behind the last. The size of the file decides
    /// how many frames there are: a simulation that was ended has not written their number.
    ///
    /// # Errors
    /// Of kind `Input`: the frame is cut short.
    pub(super) fn frame(&self, index: u32) -> Result<Option<(FramePlace, Option<f32>)>> {
        let later = u64::from(index.saturating_sub(1)) * self.frame_bytes(self.atoms_of(1));
        let first = match index {
            0 => 0,
            _ => self.frame_bytes(self.atoms),
        };
        let offset = self.frames_start + first + later;
        let bytes = self.frame_bytes(self.atoms_of(index));
        let left = self.file.bytes.saturating_sub(offset);
        if left == 0 {
            return Ok(None);
        }
        if bytes > left {
            let name = format!("frame {index}");
            return Err(cut_short_error(&name, offset, self.file.bytes));
        }
        let [start, every] = self.steps.map(f64::from);
        let time = |step_ps: f64| ((start + f64::from(index) * every) * step_ps) as f32;
        let place = FramePlace {
            file: self.file.clone(),
            offset,
            bytes,
        };
        let time = self.step_ps.map(time).filter(|time| time.is_finite());
        Ok(Some((place, time)))
    }

    /// Reads the structure at a frame from its bytes.
    ///
    /// # Errors
    /// Of kind `Input`: the frame is damaged. And those of [`Topology::at_frame`].
    pub(super) fn read(
        &self,
        bytes: &[u8],
        topology: &Topology,
        frame: Frame,
    ) -> Result<Structure> {
        let axes = self.axes(bytes, self.atoms_of(frame.index), frame.index)?;
        let coordinate = |axis: &[u8], atom: usize| {
            let bits = word_of(&axis[4 * atom..], self.is_big_endian);
            // From A to 0.001 A.
            f64::from(f32::from_bits(bits)) * 1000.0
        };
        let Some(fixed) = self.fixed.as_ref().filter(|_| frame.index > 0) else {
            return topology.at_frame(frame, |atom| axes.map(|axis| coordinate(axis, atom)));
        };
        let first = self.axes(&fixed.first, self.atoms, 0)?;
        topology.at_frame(frame, |atom| match fixed.place[atom] {
            Some(place) => axes.map(|axis| coordinate(axis, place as usize)),
            None => first.map(|axis| coordinate(axis, atom)),
        })
    }

    /// The records of x, y and z in the bytes of a frame, which are as many as the header states.
    ///
    /// # Errors
    /// Of kind `Input`: a record has another size.
    fn axes<'a>(&self, bytes: &'a [u8], atoms: u32, index: u32) -> Result<[&'a [u8]; 3]> {
        let mut rest = bytes;
        let mut take = |bytes: u32| {
            let (record, after) = rest.split_at(bytes as usize + MARKERS_BYTES as usize);
            rest = after;
            let markers = [record, &record[bytes as usize + 4..]];
            let is = |marker: &[u8]| word_of(marker, self.is_big_endian) == bytes;
            if markers.into_iter().all(is) {
                Ok(&record[4..][..bytes as usize])
            } else {
                Err(())
            }
        };
        let mut records = || {
            if self.has_cell {
                take(CELL_BYTES)?;
            }
            Ok([take(4 * atoms)?, take(4 * atoms)?, take(4 * atoms)?])
        };
        records().map_err(|()| {
            let message = format!(
                "frame {index} is damaged: a record does not have the size that the header states"
            );
            Error::input(message).fix("copy or write the trajectory again")
        })
    }
}
