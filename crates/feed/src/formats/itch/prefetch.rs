//! A hint to the processor, for x86-64; elsewhere nothing.

/// Prefetches the cache line of a value; a hint without effect on results.
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

/// Prefetches the value at `index`, which may also be after the end of `values`.
#[inline(always)]
pub(super) fn prefetch_behind<T>(values: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch touches no memory that the program can see; any address will do.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
            values.as_ptr().wrapping_add(index).cast(),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, index);
}
