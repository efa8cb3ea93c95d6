//! Opens files for reading: regular files, or streams where a stream is meant.

use crate::files::kind_of;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The longest time in which a program has to open a FIFO for writing: a shell's does at once, and without any the
/// wait would never end.
const WRITER_TIMEOUT: Duration = Duration::from_secs(10);

/// The time between two looks at a FIFO that is empty: little next to starting the program that writes.
const EMPTY_FOR: Duration = Duration::from_millis(2);

/// Opens a regular file. Opening never waits, as it would for a FIFO.
///
/// # Errors
/// The file cannot be opened, or it is a FIFO, a device or a folder.
pub fn open_file(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    Err(io::Error::other(format!(
        "it is {}, and a file is read here",
        kind_of(kind)
    )))
}

/// Opens a regular file or a stream: a FIFO, such as the shell's `<(...)`, or a device.
///
/// # Errors
/// The file cannot be opened, or it is a folder.
pub fn open_stream(path: &Path) -> io::Result<OpenStream> {
    let file = open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::Error::from(ErrorKind::IsADirectory));
    }
    let is_file = kind.is_file();
    Ok(OpenStream {
        file,
        no_writer_after: (!is_file).then(|| Instant::now() + WRITER_TIMEOUT),
    })
}

/// Opens without waiting for a program that writes to a FIFO; regular files do not care.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    options.open(path)
}

/// A file, a FIFO or a device. Reading waits for the programs that write to a FIFO.
#[derive(Debug)]
pub struct OpenStream {
    file: File,
    /// When to stop waiting for a program that opens the FIFO. `None` for a file, and once a program has.
    no_writer_after: Option<Instant>,
}

impl OpenStream {
    /// The length of a file in bytes; 0 for a FIFO or a device.
    ///
    /// # Errors
    /// The system does not say.
    pub fn bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}

impl Read for OpenStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(bytes) {
                // Some program has opened the FIFO, and writes nothing at the moment.
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.no_writer_after = None,
                Ok(0) if !bytes.is_empty() && is_fifo(&self.file) => match self.no_writer_after {
                    None => return Ok(0),
                    Some(end) if Instant::now() > end => {
                        let seconds = WRITER_TIMEOUT.as_secs();
                        let text = format!("no program has written to the FIFO for {seconds} s");
                        return Err(io::Error::new(ErrorKind::TimedOut, text));
                    }
                    Some(_) => {}
                },
                read => {
                    self.no_writer_after = None;
                    return read;
                }
            }
            sleep(EMPTY_FOR);
        }
    }
}

fn is_fifo(file: &File) -> bool {
    let kind = file.metadata().map(|meta| meta.file_type());
    kind.is_ok_and(|kind| kind_of(kind) == "a FIFO")
}

/// All bytes of a file or a stream of at most `bytes_max` bytes.
///
/// # Errors
/// The bytes cannot be read, or there are more.
pub fn read_all(source: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let text = format!("it has over {bytes_max} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// [`read_all`] for UTF-8.
///
/// # Errors
/// Those of [`read_all`], and for bytes that are not UTF-8.
pub fn read_text(source: impl Read, bytes_max: u64) -> io::Result<String> {
    let text = String::from_utf8(read_all(source, bytes_max)?);
    text.map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::process::Command;

    #[test]
    fn a_fifo_is_no_file_and_a_stream_while_a_program_writes() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(
            Command::new("mkfifo")
                .arg(&fifo)
                .status()
                .unwrap()
                .success()
        );
        let refused = open_file(&fifo).unwrap_err().to_string();
        assert!(refused.contains("a FIFO"), "{refused}");
        // Without a writer.
        let mut stream = open_stream(&fifo).unwrap();
        stream.no_writer_after = Some(Instant::now());
        let silent = read_all(stream, 100).unwrap_err();
        assert_eq!(silent.kind(), ErrorKind::TimedOut);
        // With one that writes now and then.
        let stream = open_stream(&fifo).unwrap();
        let writer = std::thread::spawn(move || {
            let mut writer = File::options().write(true).open(fifo).unwrap();
            for _ in 0..3 {
                sleep(Duration::from_millis(50));
                writer.write_all(b"slots = 3\n").unwrap();
            }
        });
        assert_eq!(read_text(stream, 30).unwrap(), "slots = 3\n".repeat(3));
        writer.join().unwrap();
    }

    #[test]
    fn what_has_no_end_is_over_the_limit() {
        let zeros = || open_stream(Path::new("/dev/zero")).unwrap();
        assert_eq!(
            read_all(zeros(), 1000).unwrap_err().kind(),
            ErrorKind::FileTooLarge
        );
        open_file(Path::new("/dev/zero")).unwrap_err();
        open_file(Path::new("/")).unwrap_err();
        open_stream(Path::new("/")).unwrap_err();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_all(open_file(&path).unwrap(), 5).unwrap(), b"12345");
        read_all(open_file(&path).unwrap(), 4).unwrap_err();
        fs::write(&path, b"\xff").unwrap();
        read_text(open_stream(&path).unwrap(), 4).unwrap_err();
    }
}
