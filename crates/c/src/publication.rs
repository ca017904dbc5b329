//! Publications for C.
//!
//! Invariant: while a draft or a batch is open it owns the publication below it; every other function that would
//! touch it is refused until then.

use std::ffi::{c_char, c_void};
use std::ptr::NonNull;
use std::time::Duration;

use unitape_model::Position;
use unitape_tape::{Error as Tape, FrameDraft, MessageBatch, Publication};

use crate::call::{Handle, run};
use crate::error::{Error, code};
use crate::frames;
use crate::gate::GateStanding;
use crate::options::{self, Options};
use crate::text;

/// A publication and what is open on it.
#[derive(Debug)]
pub struct OpenPublication {
    open: PendingPublication,
    /// From a box of ours. Not a box, because what is open borrows from it while this value moves.
    publication: NonNull<Publication>,
}

#[derive(Debug)]
enum PendingPublication {
    Nothing,
    Draft(FrameDraft<'static>),
    Batch(MessageBatch<'static>),
}

// SAFETY: it owns its publication, which may be sent (asserted), and what is open borrows from nothing else.
unsafe impl Send for OpenPublication {}

const _: () = {
    const fn may_be_sent<T: Send>() {}
    may_be_sent::<Publication>();
};

impl OpenPublication {
    fn new(publication: Publication) -> Self {
        let publication = NonNull::from(Box::leak(Box::new(publication)));
        Self { open: PendingPublication::Nothing, publication }
    }

    /// The publication, when nothing is open on it.
    #[inline]
    fn free(&mut self) -> Result<&'static mut Publication, Error> {
        match self.open {
            // SAFETY: it is alive until this value is dropped, which drops what is open first; nothing else borrows
            // it, since nothing is open and every caller either keeps the borrow in `open` or lets it go.
            PendingPublication::Nothing => Ok(unsafe { self.publication.as_mut() }),
            PendingPublication::Draft(_) => Err(Error::Misuse("a claim is open: commit or abort it first")),
            PendingPublication::Batch(_) => Err(Error::Misuse("a batch is open: commit or abort it first")),
        }
    }

    /// Gives up what is open, and the publication.
    fn into_inner(mut self) -> Publication {
        self.open = PendingPublication::Nothing;
        let publication = self.publication;
        std::mem::forget(self);
        // SAFETY: from a box (`new`), nothing borrows it, and `self` does not drop it any more.
        *unsafe { Box::from_raw(publication.as_ptr()) }
    }
}

impl Drop for OpenPublication {
    fn drop(&mut self) {
        self.open = PendingPublication::Nothing;
        // SAFETY: from a box (`new`), nothing borrows it, and this is the last of it.
        drop(unsafe { Box::from_raw(self.publication.as_ptr()) });
    }
}

type PublicationHandle = Handle<OpenPublication>;

/// `unitape_publication_open` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_publication_open(
    dir: *const c_char,
    options: *const Options,
    publication: *mut *mut PublicationHandle,
) -> i32 {
    run(|| {
        // SAFETY: all three as the header asks.
        let (place, dir, options) = unsafe {
            (
                text::require_place(publication, "publication")?,
                text::path(dir, "dir")?,
                options::read(options)?,
            )
        };
        let opened = Publication::open(dir, options)?;
        // SAFETY: as above.
        unsafe { text::put(place, Handle::give(OpenPublication::new(opened))) };
        Ok(code::OK)
    })
}

/// `unitape_publication_close` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_publication_close(publication: *mut PublicationHandle) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `publication` is null or a live handle, which only this thread uses now.
        match unsafe { Handle::take(publication) }? {
            None => Ok(code::OK),
            Some((publishing, false)) => {
                publishing.into_inner().close()?;
                Ok(code::OK)
            }
            Some((_, true)) => Err(Error::Panic("closed as if its process had died".to_owned())),
        }
    })
}

/// `unitape_publication_offer` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_publication_offer(
    publication: *mut PublicationHandle,
    topic: u32,
    bytes: *const c_void,
    length: usize,
    position: *mut u64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `publication` is null or a live handle, which only this thread uses now; `bytes` has
        // `length` bytes; `position` is null or has room for its value.
        unsafe {
            Handle::with(publication, |p| {
                let at = p.free()?.offer(topic, text::bytes(bytes, length)?)?;
                text::put(position, at.0);
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_publication_append` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_publication_append(
    publication: *mut PublicationHandle,
    unit: *const c_void,
    length: usize,
    position: *mut u64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `publication` is null or a live handle, which only this thread uses now; `unit` has
        // `length` bytes; `position` is null or has room for its value.
        unsafe {
            Handle::with(publication, |p| {
                let publication = p.free()?;
                let unit = text::bytes(unit, length)?;
                frames::check(unit)?;
                let at = publication.writer().append(unit)?;
                text::put(position, at.0);
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_publication_claim` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_publication_claim(
    publication: *mut PublicationHandle,
    topic: u32,
    length: usize,
    bytes: *mut *mut c_void,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `publication` is null or a live handle, which only this thread uses now; `bytes` is
        // null or has room for its value.
        unsafe {
            Handle::with(publication, |p| {
                let place = text::require_place(bytes, "bytes")?;
                p.open = PendingPublication::Draft(p.free()?.claim(topic, length)?);
                let PendingPublication::Draft(draft) = &mut p.open else { unreachable!("set above") };
                text::put(place, draft.as_mut_ptr().cast());
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_publication_commit` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_publication_commit(
    publication: *mut PublicationHandle,
    position: *mut u64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `publication` is null or a live handle, which only this thread uses now; `position` is
        // null or has room for its value.
        unsafe {
            Handle::with(publication, |p| {
                let at: Position = match std::mem::replace(&mut p.open, PendingPublication::Nothing) {
                    PendingPublication::Draft(draft) => draft.commit()?,
                    PendingPublication::Batch(batch) => batch.commit()?,
                    PendingPublication::Nothing => {
                        return Err(Error::Misuse("neither a claim nor a batch is open"));
                    }
                };
                text::put(position, at.0);
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_publication_abort` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_publication_abort(publication: *mut PublicationHandle) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `publication` is null or a live handle, which only this thread uses now.
        unsafe {
            Handle::with(publication, |p| {
                p.open = PendingPublication::Nothing;
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_publication_batch` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_publication_batch(publication: *mut PublicationHandle) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `publication` is null or a live handle, which only this thread uses now.
        unsafe {
            Handle::with(publication, |p| {
                p.open = PendingPublication::Batch(p.free()?.batch());
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_publication_push` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_publication_push(
    publication: *mut PublicationHandle,
    topic: u32,
    bytes: *const c_void,
    length: usize,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `publication` is null or a live handle, which only this thread uses now; `bytes` has
        // `length` bytes.
        unsafe {
            Handle::with(publication, |p| {
                let PendingPublication::Batch(batch) = &mut p.open else {
                    return Err(Error::Misuse("no batch is open"));
                };
                batch.push(topic, text::bytes(bytes, length)?)?;
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_publication_end` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_publication_end(
    publication: *mut PublicationHandle,
    position: *mut u64,
    ordinal: *mut u64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `publication` is null or a live handle, which only this thread uses now; `position`
        // and `ordinal` are null or have room for their values.
        unsafe {
            Handle::with(publication, |p| {
                let publication = p.free()?;
                text::put(position, publication.end().0);
                text::put(ordinal, publication.writer().ordinal());
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_publication_recorded` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_publication_recorded(
    publication: *mut PublicationHandle,
    position: *mut u64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `publication` is null or a live handle, which only this thread uses now; `position` is
        // null or has room for its value.
        unsafe {
            Handle::with(publication, |p| {
                let place = text::require_place(position, "position")?;
                text::put(place, p.free()?.writer().recorded().0);
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_publication_gate` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_publication_gate(
    publication: *mut PublicationHandle,
    reader: *const c_char,
    standing: *mut GateStanding,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `publication` is null or a live handle, which only this thread uses now; `reader` is
        // null or a C string; `standing` is null or has room for its value.
        unsafe {
            Handle::with(publication, |p| {
                let (place, reader) =
                    (text::require_place(standing, "standing")?, text::word(reader, "reader")?);
                let gates = p.free()?.writer().gates();
                let found = gates.into_iter().find(|gate| gate.reader == reader);
                text::put(place, found.ok_or_else(|| Tape::NoGate { path: reader.into() })?.into());
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_publication_wait_durable` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_publication_wait_durable(
    publication: *mut PublicationHandle,
    position: u64,
    timeout_ns: u64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `publication` is null or a live handle, which only this thread uses now.
        unsafe {
            Handle::with(publication, |p| {
                p.free()?.writer().wait_durable(Position(position), Duration::from_nanos(timeout_ns))?;
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_publication_durable` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_publication_durable(
    publication: *mut PublicationHandle,
    position: *mut u64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `publication` is null or a live handle, which only this thread uses now; `position` is
        // null or has room for its value.
        unsafe {
            Handle::with(publication, |p| {
                let place = text::require_place(position, "position")?;
                text::put(place, p.free()?.writer().durable().0);
                Ok(code::OK)
            })
        }
    })
}
