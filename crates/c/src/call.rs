//! The way into this crate and out of it: handles that refuse to be used twice at once, and panics that stay here.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::Error;

/// Runs the body of a function of the header. Returns its value, or the code of its error.
pub(crate) fn run<R: From<i32>>(body: impl FnOnce() -> Result<R, Error>) -> R {
    // AssertUnwindSafe: any object that a panic left half changed is behind a handle, and `Handle::with` leaves that
    // handle broken.
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return value,
        Ok(Err(error)) => error,
        Err(panic) => Error::Panic(panic_text(&*panic)),
    };
    R::from(error.store_and_code())
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|&text| text.to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "of another kind".to_owned())
}

/// The object that a C pointer refers to.
#[derive(Debug)]
pub struct Handle<T> {
    state: AtomicU8,
    inner: UnsafeCell<T>,
}

const READY: u8 = 0;
const BUSY: u8 = 1;
const BROKEN: u8 = 2;

impl<T> Handle<T> {
    /// Hands `inner` to C.
    pub(crate) fn give(inner: T) -> *mut Self {
        Box::into_raw(Box::new(Self { state: AtomicU8::new(READY), inner: UnsafeCell::new(inner) }))
    }

    /// Calls a function with the object of `handle`.
    ///
    /// # Safety
    /// - `handle` is null or came from [`Handle::give`] and was not taken since.
    /// - No other thread uses it meanwhile.
    #[inline]
    pub(crate) unsafe fn with<R>(
        handle: *const Self,
        action: impl FnOnce(&mut T) -> Result<R, Error>,
    ) -> Result<R, Error> {
        // SAFETY: null or alive, as the caller vouches; only shared references to the handle itself are ever made.
        let this = unsafe { handle.as_ref() }.ok_or(Error::Null("the handle"))?;
        this.enter()?;
        let mut leaving = HandleStateGuard { state: &this.state, becomes: BROKEN };
        // SAFETY: `enter` found nobody in it, a callback of this thread included; other threads are excluded by
        // the caller.
        let result = action(unsafe { &mut *this.inner.get() });
        leaving.becomes = READY;
        result
    }

    /// Takes the object of `handle` back, whole or broken. Returns `None` for null.
    ///
    /// # Safety
    /// The caller must uphold the contract of [`Handle::with`]. The handle is gone unless this is an error.
    pub(crate) unsafe fn take_object(handle: *mut Self) -> Result<Option<(T, bool)>, Error> {
        // SAFETY: as in `with`.
        let Some(this) = (unsafe { handle.as_ref() }) else { return Ok(None) };
        let broken = match this.enter() {
            Ok(()) => false,
            Err(Error::Panic(_)) => true,
            Err(e) => return Err(e),
        };
        // SAFETY: it came from a box, nobody is in it (`enter`), and the caller gives it up.
        let handle = unsafe { Box::from_raw(handle) };
        Ok(Some((handle.inner.into_inner(), broken)))
    }

    #[inline]
    fn enter(&self) -> Result<(), Error> {
        // Relaxed: one thread at a time uses a handle. Other states come from the same thread, in a callback, or from
        // an earlier panic. Meeting two threads here is luck.
        match self.state.load(Ordering::Relaxed) {
            READY => {
                self.state.store(BUSY, Ordering::Relaxed);
                Ok(())
            }
            BUSY => Err(Error::Misuse(
                "the handle is in use: by a callback that is running, or by another thread",
            )),
            _ => Err(Error::Panic("an earlier call ended in the middle".to_owned())),
        }
    }
}

/// Sets the state of a handle when the call is over, however that ends.
struct HandleStateGuard<'a> {
    state: &'a AtomicU8,
    becomes: u8,
}

impl Drop for HandleStateGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.state.store(self.becomes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::code;

    /// Fails if a panic crosses into C, which is undefined, or if the handle can be used afterwards.
    #[test]
    fn a_panic_becomes_a_code_and_breaks_its_handle() {
        let handle = Handle::give(7);
        let call = |panics: bool| {
            // SAFETY: the handle is alive, and this is the only thread.
            run(|| unsafe {
                Handle::with(handle, |n| {
                    assert!(!panics, "number {n}");
                    Ok(*n)
                })
            })
        };
        assert_eq!(call(false), 7);
        assert_eq!(call(true), code::PANIC);
        assert_eq!(call(false), code::PANIC);
        // SAFETY: as above; it is taken once.
        assert!(matches!(unsafe { Handle::take_object(handle) }, Ok(Some((7, true)))));
    }

    /// Fails if a callback can call into its own subscription, because one reader would have two owners.
    #[test]
    fn a_handle_in_use_is_refused() {
        let handle = Handle::give(7);
        // SAFETY: the handle is alive, and this is the only thread.
        let inner = run(|| unsafe {
            Handle::with(handle, |_| {
                let nested_result = run(|| Handle::with(handle, |n| Ok(*n)));
                assert!(matches!(Handle::take_object(handle), Err(Error::Misuse(_))));
                Ok(nested_result)
            })
        });
        assert_eq!(inner, code::MISUSE);
        // SAFETY: as above; it is taken once.
        assert!(matches!(unsafe { Handle::take_object(handle) }, Ok(Some((7, false)))));
    }
}
