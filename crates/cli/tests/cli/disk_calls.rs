//! Runs a program and stops it at a call that changes what the disk holds for good: a rename or a
//! flush. Knows then what a power failure at this moment could lose.

use libc::{SYS_fdatasync, SYS_fsync, SYS_renameat, SYS_renameat2, c_int, c_long, pid_t};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the disk holds for good.
#[derive(Default)]
pub(crate) struct Disk {
    /// Files that were flushed, with the bytes that they had then.
    flushed: BTreeMap<PathBuf, u64>,
    /// Renames whose folder was not flushed since.
    renames: Vec<Rename>,
}

struct Rename {
    from: PathBuf,
    to: PathBuf,
    /// The bytes that the file `to` had before.
    replaced: Option<Vec<u8>>,
}

/// A call that has begun.
enum Call {
    Flush(PathBuf, u64),
    Rename(Rename),
    Other,
}

impl Disk {
    /// Changes `folder` as a power failure may: renames without a flush of their folder are undone,
    /// and files have the bytes that were flushed.
    pub(crate) fn lose_power(mut self, folder: &Path) {
        while let Some(rename) = self.renames.pop() {
            fs::rename(&rename.to, &rename.from).unwrap();
            if let Some(flushed) = self.flushed.remove(&rename.to) {
                self.flushed.insert(rename.from, flushed);
            }
            if let Some(bytes) = rename.replaced {
                self.flushed.insert(rename.to.clone(), bytes.len() as u64);
                fs::write(&rename.to, bytes).unwrap();
            }
        }
        for path in files_in(folder) {
            let flushed = self.flushed.get(&path).copied().unwrap_or(0);
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            if file.metadata().unwrap().len() > flushed {
                file.set_len(flushed).unwrap();
            }
        }
    }

    fn end(&mut self, call: Call) {
        match call {
            Call::Flush(path, _) if path.is_dir() => {
                let is_elsewhere = |rename: &Rename| rename.to.parent() != Some(&path);
                self.renames.retain(is_elsewhere);
            }
            Call::Flush(path, bytes) => {
                self.flushed.insert(path, bytes);
            }
            Call::Rename(rename) => {
                if let Some(bytes) = self.flushed.remove(&rename.from) {
                    self.flushed.insert(rename.to.clone(), bytes);
                }
                self.renames.push(rename);
            }
            Call::Other => {}
        }
    }
}

/// The files in a folder and in its folders.
pub(crate) fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten();
    let files = |path: PathBuf| {
        if path.is_dir() {
            files_in(&path)
        } else {
            vec![path]
        }
    };
    entries
        .flat_map(|entry| files(entry.unwrap().path()))
        .collect()
}

/// Runs `command`, which writes into `folder`, and kills it before the `point`-th rename or flush.
/// `None`: it ended before.
pub(crate) fn kill_at(command: &mut Command, folder: &Path, point: usize) -> Option<Disk> {
    // SAFETY: the call is one that may be made between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    let mut disk = Disk::default();
    for path in files_in(folder) {
        let bytes = path.metadata().unwrap().len();
        disk.flushed.insert(path, bytes);
    }
    let child = command.spawn().unwrap().id() as pid_t;
    let mut calls: BTreeMap<pid_t, Call> = BTreeMap::new();
    let (mut points, mut is_killed) = (0, false);
    wait_for(child).expect("it stops before its first instruction");
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
    // SAFETY: the child is stopped; the option is a number.
    let set = unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, child, 0, options) };
    assert_eq!(set, 0);
    go_on(child, 0);
    // Threads of the child, until the last has ended.
    while let Some((thread, status)) = wait_for(-1) {
        if !libc::WIFSTOPPED(status) {
            continue;
        }
        let signal = libc::WSTOPSIG(status);
        if signal != libc::SIGTRAP | 0x80 {
            let is_of_ptrace = matches!(signal, libc::SIGTRAP | libc::SIGSTOP);
            go_on(thread, if is_of_ptrace { 0 } else { signal });
            continue;
        }
        match (calls.remove(&thread), state_of(thread)) {
            (None, State::Begins(number, args)) => {
                let call = call_of(thread, number, args);
                points += usize::from(!matches!(call, Call::Other));
                if points == point && !is_killed && !matches!(call, Call::Other) {
                    is_killed = true;
                    // SAFETY: the process is this one's child, and was not waited for.
                    unsafe { libc::kill(child, libc::SIGKILL) };
                }
                calls.insert(thread, call);
            }
            (Some(call), State::Ends(true)) if !is_killed => disk.end(call),
            _ => {}
        }
        go_on(thread, 0);
    }
    // A rename of another thread may have been done already.
    for call in calls.into_values() {
        if let Call::Rename(rename) = call
            && !rename.from.exists()
        {
            disk.end(Call::Rename(rename));
        }
    }
    is_killed.then_some(disk)
}

/// Waits for a change of a thread of this thread's children. `None` if there are none.
fn wait_for(thread: pid_t) -> Option<(pid_t, c_int)> {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    let changed = unsafe { libc::waitpid(thread, &mut status, libc::__WALL | libc::__WNOTHREAD) };
    (changed > 0).then_some((changed, status))
}

/// Lets a stopped thread run to the begin or end of its next call.
fn go_on(thread: pid_t, signal: c_int) {
    // SAFETY: the thread is this one's to trace. One that was killed meanwhile is no error.
    unsafe { libc::ptrace(libc::PTRACE_SYSCALL, thread, 0, signal) };
}

enum State {
    Begins(c_long, [u64; 6]),
    /// Whether it succeeded.
    Ends(bool),
    Unknown,
}

fn state_of(thread: pid_t) -> State {
    // SAFETY: zero is a value of every field of this struct of integers.
    let mut info: libc::ptrace_syscall_info = unsafe { zeroed() };
    let bytes = size_of::<libc::ptrace_syscall_info>();
    // SAFETY: the struct outlives the call and has this size; the union's field is the one that `op`
    // names.
    unsafe {
        let got = libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, bytes, &raw mut info);
        match info.op {
            _ if got <= 0 => State::Unknown,
            libc::PTRACE_SYSCALL_INFO_ENTRY => {
                State::Begins(info.u.entry.nr as c_long, info.u.entry.args)
            }
            libc::PTRACE_SYSCALL_INFO_EXIT => State::Ends(info.u.exit.is_error == 0),
            _ => State::Unknown,
        }
    }
}

fn call_of(thread: pid_t, number: c_long, args: [u64; 6]) -> Call {
    let rename = |from, to| {
        let [from, to] = [from, to].map(|at| path_at(thread, at));
        let replaced = fs::read(&to).ok();
        Call::Rename(Rename { from, to, replaced })
    };
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_rename {
        return rename(args[0], args[1]);
    }
    if number == SYS_renameat || number == SYS_renameat2 {
        return rename(args[1], args[3]);
    }
    if number == SYS_fsync || number == SYS_fdatasync {
        let path = fs::read_link(format!("/proc/{thread}/fd/{}", args[0])).unwrap();
        let bytes = path.metadata().map_or(0, |meta| meta.len());
        return Call::Flush(path, bytes);
    }
    Call::Other
}

/// The absolute path at an address of the thread's memory.
fn path_at(thread: pid_t, address: u64) -> PathBuf {
    let memory = File::open(format!("/proc/{thread}/mem")).unwrap();
    let mut bytes = vec![0; libc::PATH_MAX as usize];
    // A path at the end of a mapping is followed by less.
    let read = memory.read_at(&mut bytes, address).unwrap();
    let end = bytes[..read].iter().position(|&byte| byte == 0).unwrap();
    let path = PathBuf::from(std::str::from_utf8(&bytes[..end]).unwrap());
    assert!(path.is_absolute(), "{}", path.display());
    path
}
