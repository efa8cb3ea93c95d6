//! Globs, split into a segment for each level of folders.

use crate::error::{Error, Result};
use glob::Pattern;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// A glob, without the folders before its first pattern.
#[derive(Debug)]
pub(super) struct Glob {
    segments: Vec<Segment>,
    /// Whether the glob ends in `/`, and so matches folders only.
    folders_only: bool,
}

/// What one component of a path must match.
#[derive(Debug)]
pub(super) enum Segment {
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

    /// Splits a glob into the folder that it starts from, and the segments.
    ///
    /// # Errors
    /// A segment is not a valid pattern.
    pub(super) fn parse(glob: &Path) -> Result<(PathBuf, Self)> {
        let mut start = PathBuf::new();
        let mut segments = Vec::new();
        for component in glob.components() {
            let name = component.as_os_str();
            match component {
                Component::CurDir => {}
                _ if name == "**" => {
                    // Several `**` in a row match the same as one.
                    if !matches!(segments.last(), Some(Segment::Folders)) {
                        segments.push(Segment::Folders);
                    }
                }
                _ if is_pattern(name) => segments.push(Segment::Pattern(pattern(name)?)),
                _ if segments.is_empty() => start.push(component),
                _ => segments.push(Segment::Name(name.to_owned())),
            }
        }
        let folders_only = glob.as_os_str().as_encoded_bytes().ends_with(b"/");
        let glob = Glob {
            segments,
            folders_only,
        };
        Ok((start, glob))
    }

    /// The segment at `depth`; `None` after the last.
    pub(super) fn segment(&self, depth: usize) -> Option<&Segment> {
        self.segments.get(depth)
    }

    /// Whether it matches folders only.
    pub(super) fn folders_only(&self) -> bool {
        self.folders_only
    }
}

impl Segment {
    /// Whether a name matches. In a name that is not UTF-8, each sequence of invalid bytes counts
    /// as one character.
    pub(super) fn matches(&self, name: &OsStr) -> bool {
        match self {
            Segment::Name(own) => own == name,
            Segment::Pattern(pattern) => pattern.matches(&name.to_string_lossy()),
            Segment::Folders => true,
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
