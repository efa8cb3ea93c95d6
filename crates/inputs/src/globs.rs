//! Globs, split into a segment for each level of folders.

use glob::Pattern;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use tapeloop_error::{Error, Result};

/// A glob, without the folders before its first pattern.
#[derive(Debug)]
pub(super) struct Glob {
    segments: Vec<GlobSegment>,
    /// Whether the glob ends in `/`, and so matches folders only.
    folders_only: bool,
}

/// What one component of a path must match.
#[derive(Debug)]
pub(super) enum GlobSegment {
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
    /// [`ErrorKind::Input`](tapeloop_error::ErrorKind::Input): a segment is not a valid pattern.
    pub(super) fn parse(glob: &Path) -> Result<(PathBuf, Self)> {
        let mut start = PathBuf::new();
        let mut segments = Vec::new();
        for component in glob.components() {
            let name = component.as_os_str();
            match component {
                Component::CurDir => {}
                _ if name == "**" => {
                    // Several `**` in a row match the same as one.
                    if !matches!(segments.last(), Some(GlobSegment::Folders)) {
                        segments.push(GlobSegment::Folders);
                    }
                }
                _ if is_pattern(name) => segments.push(GlobSegment::Pattern(pattern(name)?)),
                _ if segments.is_empty() => start.push(component),
                _ => segments.push(GlobSegment::Name(name.to_owned())),
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
    pub(super) fn segment(&self, depth: usize) -> Option<&GlobSegment> {
        self.segments.get(depth)
    }

    /// The depths of the segments that the entries of `name` are matched with, where the entries
    /// next to `name` are matched with those at `depths`. A `**` may stand for some folders in
    /// several ways, so there may be several.
    pub(super) fn depths_within(
        &self,
        depths: &[usize],
        name: &OsStr,
        is_folder: bool,
    ) -> Vec<usize> {
        let mut within = Vec::new();
        for &depth in depths {
            let is_any_depth = matches!(self.segment(depth), Some(GlobSegment::Folders));
            // `**` may stand for no folder; then the next segment matches.
            let next = depth + usize::from(is_any_depth);
            let matches = (self.segment(next)).is_some_and(|segment| segment.matches(name));
            let goes_on = (is_any_depth && is_folder).then_some(depth);
            within.extend(goes_on.into_iter().chain(matches.then_some(next + 1)));
        }
        within.sort_unstable();
        within.dedup();
        within
    }

    /// Whether everything within a folder matches whose entries are matched with the segment at
    /// `depth`.
    pub(super) fn takes_all(&self, depth: usize) -> bool {
        let is_any_depth = matches!(self.segment(depth), Some(GlobSegment::Folders));
        is_any_depth && self.segment(depth + 1).is_none()
    }

    /// Whether it matches folders only.
    pub(super) fn folders_only(&self) -> bool {
        self.folders_only
    }
}

impl GlobSegment {
    /// Whether a name matches. In a name that is not UTF-8, each sequence of invalid bytes counts
    /// as one character.
    pub(super) fn matches(&self, name: &OsStr) -> bool {
        match self {
            GlobSegment::Name(expected) => expected == name,
            GlobSegment::Pattern(pattern) => pattern.matches(&name.to_string_lossy()),
            GlobSegment::Folders => true,
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
