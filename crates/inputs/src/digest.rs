//! Digests of the inputs, by which a resumed run checks that they are the same.

use super::Sources;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use tapeloop_error::{Error, Result};

/// A digest of each input that was listed: of its name, its size and its time of change. The run removes the
/// digests of inputs whose part is complete.
#[derive(Clone, Debug, Default)]
pub struct InputDigests(Arc<Mutex<VecDeque<InputDigest>>>);

type InputDigest = [u8; 8];

/// Consecutive inputs: how many they are, and a digest of their digests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputRange {
    /// Number of inputs.
    pub inputs: u64,
    digest: String,
}

impl InputDigests {
    /// Removes the digests of the next `inputs` inputs, and combines them.
    ///
    /// # Panics
    /// If fewer inputs were listed.
    pub fn take(&self, inputs: u64) -> InputRange {
        let mut all = Sha256::new();
        for digest in self.0.lock().drain(..inputs as usize) {
            all.update(digest);
        }
        // Eight bytes are enough to notice inputs that have changed by accident.
        let digest = all.finalize();
        let digest = digest[..8].iter().map(|byte| format!("{byte:02x}"));
        InputRange {
            inputs,
            digest: digest.collect(),
        }
    }
}

impl Sources {
    /// Computes digests of the inputs; that of the first input also depends on `other_files`.
    pub fn digests(&mut self, other_files: &[PathBuf]) -> InputDigests {
        let digester = Digester::new(other_files);
        let digests = digester.digests.clone();
        self.digester = Some(digester);
        digests
    }

    /// Skips the first inputs, which must be those of `ranges`: those that an interrupted run computed.
    /// [`Sources::digests`] has to be called before. Removes the digests of these inputs.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](tapeloop_error::ErrorKind::Usage): they are other inputs, or were changed.
    pub fn skip_computed(&mut self, ranges: &[InputRange]) -> Result<()> {
        // Members of archives are listed, and not decompressed.
        self.reads_members = false;
        let skipped = ranges.iter().try_for_each(|range| self.skip(range));
        self.reads_members = true;
        skipped.map_err(|message| {
            let error = Error::usage(message);
            error.fix(
                "restore the files, with their names and times, or start anew with --overwrite",
            )
        })
    }

    /// Lists a range of inputs without returning them, and takes their digests. The error is a message.
    ///
    /// # Errors
    /// There are fewer inputs, or others.
    fn skip(&mut self, range: &InputRange) -> Result<(), String> {
        let first = self.next_ordinal;
        let end = first + range.inputs;
        while self.next_ordinal < end && self.next().is_some() {}
        if self.next_ordinal < end {
            let found = self.next_ordinal;
            return Err(format!(
                "there are {found} inputs, and at least {end} were computed"
            ));
        }
        let found = self
            .digester
            .as_ref()
            .map(|digester| digester.digests.take(range.inputs));
        if found.as_ref() != Some(range) {
            let first = first + 1;
            return Err(format!(
                "inputs {first} to {end} are not those that were computed"
            ));
        }
        Ok(())
    }
}

/// Computes the digests of inputs, one after the other.
pub(super) struct Digester {
    /// The hash of the current input.
    open: Sha256,
    pub(super) digests: InputDigests,
}

impl Digester {
    /// Digests of inputs, of which the first also depends on the files `besides`.
    pub(super) fn new(besides: &[PathBuf]) -> Self {
        let mut digester = Digester {
            open: Sha256::new(),
            digests: InputDigests::default(),
        };
        besides.iter().for_each(|path| digester.add_file(path));
        digester
    }

    /// Adds the name, the size and the time of change of a file: an input, or one that inputs follow from,
    /// such as their archive. A file that cannot be read has constants in their place, so that its digest
    /// changes once it can. The byte behind each name keeps files, members and chains apart.
    pub(super) fn add_file(&mut self, path: &Path) {
        let meta = path.metadata().ok();
        let bytes = meta.as_ref().map_or(u64::MAX, |meta| meta.len());
        let changed = meta.and_then(|meta| meta.modified().ok());
        let changed = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let changed = changed.map_or(0, |time| time.as_nanos());
        self.open.update(path.as_os_str().as_encoded_bytes());
        self.open.update([0]);
        self.open.update(bytes.to_le_bytes());
        self.open.update(changed.to_le_bytes());
    }

    /// Adds the name and the size of an input without a file of its own.
    pub(super) fn add_member(&mut self, path: &Path, bytes: u64) {
        self.open.update(path.as_os_str().as_encoded_bytes());
        self.open.update([1]);
        self.open.update(bytes.to_le_bytes());
    }

    /// Ends an input, of which all or one chain is read, and adds its digest to those that a run takes.
    pub(super) fn end_input(&mut self, chain: Option<&str>) {
        if let Some(chain) = chain {
            self.open.update([2]);
            self.open.update(chain);
        }
        let digest = self.open.finalize_reset();
        let mut short = InputDigest::default();
        short.copy_from_slice(&digest[..8]);
        self.digests.0.lock().push_back(short);
    }
}
