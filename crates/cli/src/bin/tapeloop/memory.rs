//! Settings of the C library's allocator.

/// Returns large allocations to the system as soon as they are freed, and keeps small ones.
///
/// glibc returns only allocations above a threshold, which it raises to the largest size freed so
/// far, up to 32 MiB. One thread allocates a structure or a row group and another frees it, so
/// every thread's arena keeps some, which doubles the peak of a run. A fixed threshold prevents
/// that. A page of a Parquet file is below it, as every page of memory that is taken from the
/// system is a page fault.
///
/// The end of an arena would go back to the system too once 128 KiB of it are free: with sixteen
/// threads the page faults that follow take a tenth of a run. So arenas keep their end, and grow by
/// megabytes.
pub(super) fn set_up_allocator() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const LARGE_BYTES: libc::c_int = 1 << 20;
        const GROWTH_BYTES: libc::c_int = 4 << 20;
        // SAFETY: `mallopt` accepts any values, and at the start of the program no other thread
        // allocates.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
            libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
            libc::mallopt(libc::M_TOP_PAD, GROWTH_BYTES);
        }
    }
}
