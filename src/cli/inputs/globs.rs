//! Globs, taken apart into one pattern for each folder on the way.

use crate::error::{Error, Result};
use glob::Pattern;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// A glob, without the folders in front of its first pattern.
#[derive(Debug)]
pub(super) struct Glob {
    parts: Vec<Part>,
    /// Whether it ends in `/`, and so matches folders only.
    folders_only: bool,
}

/// What one component of a path has to match.
#[derive(Debug)]
pub(super) enum Part {
    Name(OsString),
    Pattern(Pattern),
    /// `**`: any number of folders.
    Folders,
}

impl Glob {
    /// Whether a path has characters of a glob.
    pub(super) fn is_in(path: &Path) -> bool {
        is_pattern(path.as_os_str())
    }

    /// Takes a glob apart: the folder that it starts from, and the rest.
    ///
    /// # Errors
    /// The characters do not form a pattern.
    pub(super) fn parse(glob: &Path) -> Result<(PathBuf, Self)> {
        let mut start = PathBuf::new();
        let mut parts = Vec::new();
        for component in glob.components() {
            let name = component.as_os_str();
            match component {
                Component::CurDir => {}
                _ if name == "**" => {
                    // Several in a row match what one does.
                    if !matches!(parts.last(), Some(Part::Folders)) {
                        parts.push(Part::Folders);
                    }
                }
                _ if is_pattern(name) => parts.push(Part::Pattern(pattern(name)?)),
                _ if parts.is_empty() => start.push(component),
                _ => parts.push(Part::Name(name.to_owned())),
            }
        }
        let folders_only = glob.as_os_str().as_encoded_bytes().ends_with(b"/");
        let glob = Glob {
            parts,
            folders_only,
        };
        Ok((start, glob))
    }

    /// What the component at `depth` behind the start has to match; `None` behind the last.
    pub(super) fn part(&self, depth: usize) -> Option<&Part> {
        self.parts.get(depth)
    }

    /// Whether it matches folders only.
    pub(super) fn folders_only(&self) -> bool {
        self.folders_only
    }
}

impl Part {
    /// Whether a name matches. In a name that is not UTF-8 each run of other bytes counts as
    /// a character.
    pub(super) fn matches(&self, name: &OsStr) -> bool {
        match self {
            Part::Name(own) => own == name,
            Part::Pattern(pattern) => pattern.matches(&name.to_string_lossy()),
            Part::Folders => true,
        }
    }
}

fn is_pattern(name: &OsStr) -> bool {
    let mut bytes = name.as_encoded_bytes().iter();
    bytes.any(|byte| matches!(byte, b'*' | b'?' | b'['))
}

fn pattern(name: &OsStr) -> Result<Pattern> {
    Pattern::new(&name.to_string_lossy())
        .map_err(|error| Error::input(format!("not a glob: {error}")))
}
