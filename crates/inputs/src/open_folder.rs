//! Directories among the inputs.

use super::archive::ArchiveKind;
use super::folder::structures_in;
use super::{Archives, OpenItem, Source, Sources};
use crate::packed;
use std::ffi::OsStr;
use std::path::PathBuf;

impl Sources {
    /// Opens a directory, whose entries follow in the next steps. Returns a source with an error if it
    /// cannot be listed, or if a file of the packed set in it is missing.
    pub(super) fn open_folder(&mut self, folder: PathBuf) -> Option<Source> {
        let has_archives = !matches!(self.archives, Archives::Unknown);
        let is_other = |name: &OsStr| {
            let is_archive = || ArchiveKind::of_name(&name.to_string_lossy()).is_some();
            has_archives && is_archive() || self.trajectories.include(name)
        };
        match structures_in(&folder, is_other, &mut self.skipped) {
            Ok(entries) => {
                let names = entries.iter().map(|entry| &*entry.name);
                let complete = if has_archives {
                    packed::check_names(&folder, names)
                } else {
                    Ok(())
                };
                let entries = entries.into_iter();
                self.open.push(OpenItem::Folder(folder.clone(), entries));
                match complete {
                    Ok(()) => None,
                    Err(error) => self.source(folder, Some(error)),
                }
            }
            Err(error) => self.source(folder, Some(error.into())),
        }
    }
}
