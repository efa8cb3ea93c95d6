//! Settings of the C library's allocator.

/// Returns large allocations to the system as soon as they are freed.
///
/// glibc returns only allocations above a threshold, which it raises to the largest size freed so
/// far, up to 32 MiB. One thread allocates a structure or a row group and another frees it, so
/// every thread's arena keeps some, which doubles the peak of a run. A fixed threshold prevents
/// that.
pub(super) fn return_large_allocations() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const LARGE_BYTES: libc::c_int = 128 << 10;
        // SAFETY: `mallopt` accepts any values, and at the start of the program no other thread
        // allocates.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES) };
    }
}
