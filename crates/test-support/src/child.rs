//! A child of this process that a fork makes, for tests of what a library leaves to a process without its threads.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::Read;
use std::os::fd::FromRawFd;

/// How long a child may take: far longer than any does, as a child that waits for a thread of its parent never ends.
const TIMEOUT_S: i64 = 60;

/// Runs `work` in a child process, which has this thread alone and ends after it.
///
/// # Panics
/// `work` returns an error, panics or does not end.
pub fn in_child(work: impl FnOnce() -> Result<(), String>) {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for both.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: the child runs `work`, writes to the pipe and ends without the destructors of this process.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        let text = match outcome {
            Ok(Ok(())) => "done".to_owned(),
            Ok(Err(wrong)) => wrong,
            Err(_) => "the child panicked".to_owned(),
        };
        // SAFETY: the text outlives the call.
        unsafe {
            libc::write(ends[1], text.as_ptr().cast(), text.len());
            libc::_exit(0);
        }
    }
    // SAFETY: the ends are this function's own.
    let mut reader = unsafe {
        libc::close(ends[1]);
        std::fs::File::from_raw_fd(ends[0])
    };
    let timeout = Timespec {
        tv_sec: TIMEOUT_S,
        tv_nsec: 0,
    };
    // Before reading, which would wait for a child that hangs. The text is shorter than what a pipe holds.
    let ready = poll(&mut [PollFd::new(&reader, PollFlags::IN)], Some(&timeout)).unwrap();
    // SAFETY: the child is this function's own, and not waited for yet.
    unsafe { libc::kill(child, libc::SIGKILL) };
    // SAFETY: as above; no status is asked for.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    assert!(ready > 0, "the child did not end");
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "done");
}
