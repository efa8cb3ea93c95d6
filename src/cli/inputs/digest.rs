//! Digests of the inputs, which tell whether they are the same when a run goes on.

use super::Sources;
use crate::error::{Error, Result};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// The digests of ranges of inputs that are complete: of names, sizes and times of change.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct InputDigests(Arc<Mutex<Vec<String>>>);

impl InputDigests {
    /// The digests of the first ranges.
    pub(in crate::cli) fn first(&self, ranges: u64) -> Vec<String> {
        let digests = self.0.lock();
        digests.iter().take(ranges as usize).cloned().collect()
    }
}

impl Sources {
    /// Computes digests of ranges of so many inputs, which also depend on the files `besides`.
    pub(in crate::cli) fn digests(
        &mut self,
        inputs_per_range: u64,
        besides: &[PathBuf],
    ) -> InputDigests {
        let digester = Digester::new(inputs_per_range, besides);
        let digests = digester.digests.clone();
        self.digester = Some(digester);
        digests
    }

    /// Skips the first `inputs`, whose ranges must have these digests.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): they are other inputs, or were changed.
    pub(in crate::cli) fn skip_computed(&mut self, inputs: u64, digests: &[String]) -> Result<()> {
        self.reads = false;
        while self.next_ordinal < inputs && self.next().is_some() {}
        self.reads = true;
        let ranges = digests.len() as u64;
        let found = self.digester.as_ref().map(|it| it.digests.first(ranges));
        let found = found.unwrap_or_default();
        let differs = |&at: &usize| found.get(at) != digests.get(at);
        let range = (0..digests.len()).find(differs);
        let range = range.or((self.next_ordinal < inputs).then_some(0));
        let Some(range) = range else {
            return Ok(());
        };
        let size = inputs / ranges.max(1);
        let (first, last) = (range as u64 * size + 1, (range as u64 + 1) * size);
        let message = match self.next_ordinal < inputs {
            true => format!(
                "there are {} inputs, and {inputs} were computed",
                self.next_ordinal
            ),
            false => format!("inputs {first} to {last} are not those that were computed"),
        };
        Err(Error::usage(message)
            .fix("restore the files, with their names and times, or start anew with --overwrite"))
    }
}

/// Takes inputs one by one.
pub(super) struct Digester {
    /// Inputs of a range.
    inputs_per_range: u64,
    inputs: u64,
    open: Sha256,
    pub(super) digests: InputDigests,
}

impl Digester {
    /// Digests of ranges of so many inputs, which also depend on the files `besides`.
    pub(super) fn new(inputs_per_range: u64, besides: &[PathBuf]) -> Self {
        let mut digester = Digester {
            inputs_per_range,
            inputs: 0,
            open: Sha256::new(),
            digests: InputDigests::default(),
        };
        besides.iter().for_each(|path| digester.add_file(path));
        digester
    }

    /// Adds the name, the size and the time of change of a file, which is no input of its own.
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

    /// Adds a part of an input without a file of its own.
    pub(super) fn add_member(&mut self, path: &Path, bytes: u64) {
        self.open.update(path.as_os_str().as_encoded_bytes());
        self.open.update([1]);
        self.open.update(bytes.to_le_bytes());
    }

    /// Ends an input, of which all or one chain is read.
    pub(super) fn end_input(&mut self, chain: Option<&str>) {
        if let Some(chain) = chain {
            self.open.update([2]);
            self.open.update(chain);
        }
        self.inputs += 1;
        if self.inputs.is_multiple_of(self.inputs_per_range) {
            let digest = self.open.finalize_reset();
            let text = digest[..8].iter().map(|byte| format!("{byte:02x}"));
            self.digests.0.lock().push(text.collect());
        }
    }
}
