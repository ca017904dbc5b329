//! A hint to the processor, for x86-64; elsewhere nothing.

/// Brings the line of a value near; a hint without effect on what the program computes.
#[inline]
pub(super) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch touches no memory that the program can see; any address will do, and this is a reference.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
            std::ptr::from_ref(value).cast(),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Prefetches the value at `at`, which may also be after the end of `values`.
#[inline(always)]
pub(super) fn prefetch_behind<T>(values: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch touches no memory that the program can see; any address will do.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
            values.as_ptr().wrapping_add(at).cast(),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, at);
}
