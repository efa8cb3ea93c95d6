//! Lists of inputs, with a path in each line, and a chain where one is chosen.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use tapeloop_error::{Error, Result};
use tapeloop_structure::Format;

/// Maximum length of a line. The longest path on Linux has 4,096 bytes; a file that is no list, such as a device,
/// may have lines without end.
const LIST_LINE_BYTES_MAX: u64 = 64 << 10;

/// A file that a line of a list names.
#[derive(Debug, PartialEq)]
pub(super) struct ListedInput {
    pub(super) path: PathBuf,
    /// The only chain that is read.
    pub(super) chain: Option<String>,
}

impl ListedInput {
    fn whole(path: PathBuf) -> Self {
        ListedInput { path, chain: None }
    }
}

/// A list that is being read.
pub(super) struct InputList {
    pub(super) path: PathBuf,
    /// The folder that relative paths start from.
    folder: PathBuf,
    lines: Box<dyn BufRead + Send>,
    is_at_start: bool,
}

impl InputList {
    /// A list that reads `lines`. Relative paths start from `folder`.
    pub(super) fn new(path: PathBuf, folder: PathBuf, lines: impl Read + Send + 'static) -> Self {
        InputList {
            path,
            folder,
            lines: Box::new(BufReader::new(lines)),
            is_at_start: true,
        }
    }

    /// Returns the item of the next line, `Some(None)` for an empty line or a comment, and `None`
    /// after the last line.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop_error::ErrorKind::Io): the list cannot be read.
    /// [`ErrorKind::Input`](tapeloop_error::ErrorKind::Input): a line is too long, or the list is in UTF-16.
    pub(super) fn next(&mut self) -> Result<Option<Option<ListedInput>>> {
        let mut line = Vec::new();
        let limit = LIST_LINE_BYTES_MAX + 1;
        self.lines
            .by_ref()
            .take(limit)
            .read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.len() as u64 == limit && !line.ends_with(b"\n") {
            let error = Error::input(format!(
                "a line of the list has more than {LIST_LINE_BYTES_MAX} bytes"
            ));
            return Err(error.fix("a list has one path a line"));
        }
        let mut line = line.as_slice();
        if std::mem::take(&mut self.is_at_start) {
            if line.starts_with(b"\xff\xfe") || line.starts_with(b"\xfe\xff") {
                let error = Error::input("the list is in UTF-16");
                return Err(error.fix("save it as UTF-8"));
            }
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = line.trim_ascii();
        if text.is_empty() || text.starts_with(b"#") {
            return Ok(Some(None));
        }
        Ok(Some(Some(self.item(line, text))))
    }

    /// The item in a line. Blanks and quotes around it are removed, unless a file has them in its
    /// name.
    fn item(&self, line: &[u8], text: &[u8]) -> ListedInput {
        let path = |bytes: &[u8]| self.folder.join(path_of_bytes(bytes));
        let is_there = |path: &Path| path.symlink_metadata().is_ok();
        if line.len() != text.len() && is_there(&path(line)) {
            return ListedInput::whole(path(line));
        }
        let whole_line = path(text);
        if !is_there(&whole_line)
            && let Some(item) = self.chain_of(text)
        {
            return item;
        }
        let quoted = [b'"', b'\''].into_iter().find_map(|quote| {
            let inner = text.strip_prefix(&[quote])?.strip_suffix(&[quote])?;
            (!inner.is_empty()).then_some(inner)
        });
        ListedInput::whole(match quoted {
            Some(inner) if !is_there(&whole_line) => path(inner),
            _ => whole_line,
        })
    }

    /// The file and the chain of a line like `1abc.cif,A`, or `1abc,A` if a structure file in the
    /// folder has this name and an ending.
    fn chain_of(&self, text: &[u8]) -> Option<ListedInput> {
        let comma = memchr::memrchr(b',', text)?;
        let (name, chain) = (text[..comma].trim_ascii(), text[comma + 1..].trim_ascii());
        let chain = str::from_utf8(chain)
            .ok()
            .filter(|chain| !chain.is_empty())?;
        let path = self.folder.join(path_of_bytes(name));
        let with = |ending: &str| {
            let mut path = path.clone().into_os_string();
            path.push(ending);
            PathBuf::from(path)
        };
        let endings = Format::ALL.iter().flat_map(|format| format.endings());
        let packed = endings.flat_map(|ending| {
            ["", ".gz", ".zst"].map(|packed_ending| format!(".{ending}{packed_ending}"))
        });
        let mut named = std::iter::once(String::new())
            .chain(packed)
            .map(|ending| with(&ending));
        let path = named.find(|path| path.is_file())?;
        Some(ListedInput {
            path,
            chain: Some(chain.to_owned()),
        })
    }
}

#[cfg(unix)]
pub(super) fn path_of_bytes(bytes: &[u8]) -> PathBuf {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
pub(super) fn path_of_bytes(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}
