//! Keeps the C library from hoarding memory.

/// Makes large blocks go back to the system when they are freed.
///
/// glibc raises the size from which it does that to the largest block freed so
/// far, up to 32 MiB. Structures and row groups are such blocks, allocated by
/// one thread and freed by another, and what is hoarded for each thread doubles
/// the peak of a run.
pub(super) fn give_back_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const LARGE_BYTES: libc::c_int = 128 << 10;
        // SAFETY: `mallopt` takes any values, and this is the program's start:
        // no other thread allocates meanwhile.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES) };
    }
}
