//! Publications for C.
//!
//! Invariant: while a draft or a batch is open it owns the publication below it; every other function that would
//! touch it is refused until then.

use std::ffi::{c_char, c_void};
use std::ptr::NonNull;
use std::time::Duration;

use unitape_model::Position;
use unitape_tape::{Error as Tape, FrameDraft, MessageBatch, Publication};

use crate::argument::{HandlePointer, Input, Output, exported};
use crate::call::Handle;
use crate::error::{Error, code};
use crate::frames;
use crate::gate::GateStanding;
use crate::options::Options;

/// A publication and the claim or batch that is open on it.
#[derive(Debug)]
pub struct OpenPublication {
    open: PendingPublication,
    /// From a box. Not kept as a box, because an open claim borrows from it while this value moves.
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

    /// Returns the publication if nothing is open on it.
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

    /// Drops the open claim or batch and returns the publication.
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

exported! {
    fn unitape_publication_open(
        dir: Input<c_char>,
        options: Input<Options>,
        handle: Output<*mut Handle<OpenPublication>>,
    ) -> i32 {
        handle.require("publication")?;
        let publication = Publication::open(dir.path("dir")?, options.writer_options()?)?;
        handle.write(Handle::give(OpenPublication::new(publication)));
        Ok(code::OK)
    }

    fn unitape_publication_close(handle: HandlePointer<OpenPublication>) -> i32 {
        match handle.take_object()? {
            None => Ok(code::OK),
            Some((open, false)) => {
                open.into_inner().close()?;
                Ok(code::OK)
            }
            Some((_, true)) => Err(Error::Panic("closed as if its process had died".to_owned())),
        }
    }

    fn unitape_publication_offer(
        handle: &mut OpenPublication,
        topic: u32,
        bytes: Input<c_void>,
        length: usize,
        position: Output<u64>,
    ) -> i32 {
        let publication = handle.free()?;
        // SAFETY: by unitape.h, `bytes` has `length` bytes.
        let message_position = publication.offer(topic, unsafe { bytes.bytes(length) }?)?;
        position.write(message_position.0);
        Ok(code::OK)
    }

    fn unitape_publication_append(
        handle: &mut OpenPublication,
        unit: Input<c_void>,
        length: usize,
        position: Output<u64>,
    ) -> i32 {
        let publication = handle.free()?;
        // SAFETY: by unitape.h, `unit` has `length` bytes.
        let unit = unsafe { unit.bytes(length) }?;
        frames::check(unit)?;
        position.write(publication.writer().append(unit)?.0);
        Ok(code::OK)
    }

    fn unitape_publication_claim(
        handle: &mut OpenPublication,
        topic: u32,
        length: usize,
        bytes: Output<*mut c_void>,
    ) -> i32 {
        bytes.require("bytes")?;
        handle.open = PendingPublication::Draft(handle.free()?.claim(topic, length)?);
        let PendingPublication::Draft(draft) = &mut handle.open else { unreachable!("set above") };
        bytes.write(draft.as_mut_ptr().cast());
        Ok(code::OK)
    }

    fn unitape_publication_commit(handle: &mut OpenPublication, position: Output<u64>) -> i32 {
        let message_position: Position = match std::mem::replace(&mut handle.open, PendingPublication::Nothing) {
            PendingPublication::Draft(draft) => draft.commit()?,
            PendingPublication::Batch(batch) => batch.commit()?,
            PendingPublication::Nothing => {
                return Err(Error::Misuse("neither a claim nor a batch is open"));
            }
        };
        position.write(message_position.0);
        Ok(code::OK)
    }

    fn unitape_publication_abort(handle: &mut OpenPublication) -> i32 {
        handle.open = PendingPublication::Nothing;
        Ok(code::OK)
    }

    fn unitape_publication_batch(handle: &mut OpenPublication) -> i32 {
        handle.open = PendingPublication::Batch(handle.free()?.batch());
        Ok(code::OK)
    }

    fn unitape_publication_push(
        handle: &mut OpenPublication,
        topic: u32,
        bytes: Input<c_void>,
        length: usize,
    ) -> i32 {
        let PendingPublication::Batch(batch) = &mut handle.open else {
            return Err(Error::Misuse("no batch is open"));
        };
        // SAFETY: by unitape.h, `bytes` has `length` bytes.
        batch.push(topic, unsafe { bytes.bytes(length) }?)?;
        Ok(code::OK)
    }

    fn unitape_publication_end(
        handle: &mut OpenPublication,
        position: Output<u64>,
        ordinal: Output<u64>,
    ) -> i32 {
        let publication = handle.free()?;
        position.write(publication.end().0);
        ordinal.write(publication.writer().ordinal());
        Ok(code::OK)
    }

    fn unitape_publication_recorded(handle: &mut OpenPublication, position: Output<u64>) -> i32 {
        position.require("position")?;
        position.write(handle.free()?.writer().recorded().0);
        Ok(code::OK)
    }

    fn unitape_publication_gate(
        handle: &mut OpenPublication,
        reader: Input<c_char>,
        standing: Output<GateStanding>,
    ) -> i32 {
        standing.require("standing")?;
        let reader = reader.word("reader")?;
        let gates = handle.free()?.writer().gates();
        let gate = gates.into_iter().find(|gate| gate.reader == reader);
        standing.write(gate.ok_or_else(|| Tape::NoGate { path: reader.into() })?.into());
        Ok(code::OK)
    }

    fn unitape_publication_wait_durable(handle: &mut OpenPublication, position: u64, timeout_ns: u64) -> i32 {
        handle.free()?.writer().wait_durable(Position(position), Duration::from_nanos(timeout_ns))?;
        Ok(code::OK)
    }

    fn unitape_publication_durable(handle: &mut OpenPublication, position: Output<u64>) -> i32 {
        position.require("position")?;
        position.write(handle.free()?.writer().durable().0);
        Ok(code::OK)
    }
}
