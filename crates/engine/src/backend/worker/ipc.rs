//! Length-prefixed messages over a socket. File descriptors travel with one byte each.
//!
//! All errors are of [`ErrorKind::Device`]: where one message is lost the next cannot be found, so the
//! worker is lost.

use crate::error::{Error, ErrorKind, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, send, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// The largest message in bytes: kernel images are the largest.
const MESSAGE_BYTES_MAX: usize = 1 << 30;
/// The most bytes that are read at once, and so the most that a wrong length makes a reader allocate.
const READ_BYTES_MAX: usize = 1 << 20;

/// One end of the connection.
pub(super) struct Link {
    socket: UnixStream,
    buffer: Vec<u8>,
}

impl Link {
    pub(super) fn new(socket: UnixStream) -> Link {
        Link {
            socket,
            buffer: Vec::new(),
        }
    }

    pub(super) fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// Whether the other end is closed, as when its process has ended. Earlier messages may still
    /// be unread.
    pub(super) fn is_hung_up(&self) -> bool {
        let mut ends = [PollFd::new(&self.socket, PollFlags::empty())];
        let polled = retry_on_intr(|| poll(&mut ends, Some(&Timespec::default())));
        let closed = PollFlags::HUP | PollFlags::ERR;
        polled.is_ok() && ends[0].revents().intersects(closed)
    }

    /// Sends a message, and blocks while the socket is full, up to its timeout.
    pub(super) fn send(&mut self, message: &impl Serialize) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.extend([0; 4]);
        let mut buffer = postcard::to_extend(message, buffer).map_err(broken_link_error)?;
        let bytes = buffer.len() - 4;
        if bytes > MESSAGE_BYTES_MAX {
            return Err(broken_link_error(format!(
                "a message has {bytes} bytes, over {MESSAGE_BYTES_MAX}"
            )));
        }
        buffer[..4].copy_from_slice(&(bytes as u32).to_le_bytes());
        let mut rest = &buffer[..];
        while !rest.is_empty() {
            // No signal is raised if the other end is closed: the error reports it.
            match send(&self.socket, rest, SendFlags::NOSIGNAL) {
                Ok(sent) => rest = &rest[sent..],
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(broken_link_error(errno)),
            }
        }
        self.buffer = buffer;
        Ok(())
    }

    /// The next message; `None` if the other end is closed.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        let mut length = [0; 4];
        match self.socket.read_exact(&mut length) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return Ok(None),
            Err(error) => return Err(broken_link_error(error)),
        }
        let length = u32::from_le_bytes(length) as usize;
        if length > MESSAGE_BYTES_MAX {
            return Err(broken_link_error(format!(
                "a message has {length} bytes, over {MESSAGE_BYTES_MAX}"
            )));
        }
        // Grows as data arrives, so that a wrong length allocates nothing.
        self.buffer.clear();
        while self.buffer.len() < length {
            let arrived = self.buffer.len();
            let next = (length - arrived).min(READ_BYTES_MAX);
            self.buffer.resize(arrived + next, 0);
            let into = &mut self.buffer[arrived..];
            self.socket.read_exact(into).map_err(broken_link_error)?;
        }
        postcard::from_bytes(&self.buffer)
            .map(Some)
            .map_err(broken_link_error)
    }

    /// Sends a duplicate of a file descriptor. The other end receives it with
    /// [`Link::receive_file`] at the same place among the messages.
    pub(super) fn send_file(&mut self, file: BorrowedFd<'_>) -> Result<()> {
        let files = [file];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fits = control.push(SendAncillaryMessage::ScmRights(&files));
        debug_assert!(fits, "the space is for one file");
        let byte = [IoSlice::new(&[0])];
        retry_on_intr(|| sendmsg(&self.socket, &byte, &mut control, SendFlags::NOSIGNAL))
            .map(|_| ())
            .map_err(broken_link_error)
    }

    /// Receives a file descriptor, for which it blocks up to the socket's timeout. A child of this
    /// process does not inherit it.
    pub(super) fn receive_file(&mut self) -> Result<OwnedFd> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let mut into = [IoSliceMut::new(&mut byte)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        retry_on_intr(|| recvmsg(&self.socket, &mut into, &mut control, flags))
            .map_err(broken_link_error)?;
        let mut files = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        files
            .next()
            .ok_or_else(|| broken_link_error("a file descriptor did not come with its message"))
    }
}

/// The error of every function here: the worker is lost with its link, and its device with it.
fn broken_link_error(error: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Device,
        format!("the link to the worker process broke: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::worker::Arena;
    use std::io::Write;

    fn pair() -> (Link, Link) {
        let (here, there) = UnixStream::pair().unwrap();
        (Link::new(here), Link::new(there))
    }

    #[test]
    fn messages_and_files_arrive_in_order() {
        let (mut here, mut there) = pair();
        let arena = Arena::new(100).unwrap();
        here.send(&"first".to_owned()).unwrap();
        here.send_file(arena.file()).unwrap();
        here.send(&vec![1_u32, 2]).unwrap();
        assert_eq!(there.receive::<String>().unwrap().unwrap(), "first");
        let file = there.receive_file().unwrap();
        assert!(Arena::of_file(file, 100).is_ok());
        assert_eq!(there.receive::<Vec<u32>>().unwrap().unwrap(), [1, 2]);
        assert!(!there.is_hung_up());
        drop(here);
        assert!(there.is_hung_up());
        assert!(there.receive::<String>().unwrap().is_none());
        assert!(there.send(&1_u32).is_err());
    }

    #[test]
    fn a_message_of_several_reads_arrives_whole() {
        let (mut here, mut there) = pair();
        let message = vec![7_u8; 2 * READ_BYTES_MAX + 3];
        std::thread::scope(|scope| {
            scope.spawn(|| here.send(&message).unwrap());
            assert_eq!(there.receive::<Vec<u8>>().unwrap().unwrap(), message);
        });
    }

    #[test]
    fn a_length_without_a_message_allocates_no_more_than_one_read() {
        for length in [MESSAGE_BYTES_MAX, MESSAGE_BYTES_MAX + 1] {
            let (mut here, mut there) = pair();
            here.socket
                .write_all(&(length as u32).to_le_bytes())
                .unwrap();
            drop(here);
            let error = there.receive::<String>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Device);
            assert!(there.buffer.capacity() <= 2 * READ_BYTES_MAX);
        }
    }

    #[test]
    fn a_file_that_does_not_come_is_an_error() {
        let (mut here, mut there) = pair();
        here.socket.write_all(&[0]).unwrap();
        let error = there.receive_file().unwrap_err();
        assert!(error.to_string().contains("did not come"), "{error}");
        drop(here);
        let error = there.receive_file().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device);
    }

    #[test]
    fn bytes_that_are_no_message_are_an_error() {
        let (mut here, mut there) = pair();
        here.socket.write_all(&4_u32.to_le_bytes()).unwrap();
        here.socket.write_all(&[0xff; 4]).unwrap();
        let error = there.receive::<Vec<String>>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device);
    }
}
