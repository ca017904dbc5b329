//! Ring tapes for C.

use std::ffi::{c_char, c_void};
use std::path::Path;
use std::time::Duration;

use unitape_model::Position;
use unitape_tape::{Error as Tape, RingOptions, RingTapeReader, RingTapeWriter, StartPosition};

use crate::call::{Handle, run};
use crate::error::{Error, code};
use crate::frames;
use crate::subscription::{Frame, start_of, wait_of};
use crate::text;

/// The writer of a ring tape behind a handle.
#[derive(Debug)]
pub struct OpenRingWriter {
    ring: RingTapeWriter,
}

/// A reader of a ring tape behind a handle.
#[derive(Debug)]
pub struct OpenRingReader {
    ring: RingTapeReader,
}

const _: () = {
    const fn may_be_sent<T: Send>() {}
    may_be_sent::<OpenRingWriter>();
    may_be_sent::<OpenRingReader>();
};

/// `unitape_losses` of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)] // documented in the header
pub struct Losses {
    pub overruns: u64,
    pub bytes: u64,
    pub events: u64,
}

type RingWriterHandle = Handle<OpenRingWriter>;
type RingReaderHandle = Handle<OpenRingReader>;

/// The capacity asked for; where none is, that of the ring that is there.
fn options_of(path: &Path, capacity_bytes: u64) -> Result<RingOptions, Error> {
    if capacity_bytes > 0 {
        return Ok(RingOptions { capacity_bytes });
    }
    match RingTapeReader::open(path, StartPosition::Oldest) {
        Ok(ring) => Ok(RingOptions { capacity_bytes: ring.capacity_bytes() }),
        // Nothing, or something else, about which opening it will say what there is to say.
        Err(Tape::NotATape { .. }) => Ok(RingOptions::default()),
        Err(e) => Err(e.into()),
    }
}

/// `unitape_ring_open` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_ring_open(
    path: *const c_char,
    capacity_bytes: u64,
    ring: *mut *mut RingWriterHandle,
) -> i32 {
    run(|| {
        // SAFETY: all as the header asks.
        let (place, path) = unsafe { (text::require_place(ring, "ring")?, text::path(path, "path")?) };
        let (ring, _) = RingTapeWriter::open_or_make(path, options_of(path, capacity_bytes)?)?;
        // SAFETY: as above.
        unsafe { text::put(place, Handle::give(OpenRingWriter { ring })) };
        Ok(code::OK)
    })
}

/// `unitape_ring_close` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_ring_close(ring: *mut RingWriterHandle) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `ring` is null or a live handle, which only this thread uses now.
        match unsafe { Handle::take(ring) }? {
            None => Ok(code::OK),
            Some((writing, false)) => {
                writing.ring.close()?;
                Ok(code::OK)
            }
            Some((_, true)) => Err(Error::Panic("closed as if its process had died".to_owned())),
        }
    })
}

/// `unitape_ring_offer` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_ring_offer(
    ring: *mut RingWriterHandle,
    topic: u32,
    bytes: *const c_void,
    length: usize,
    position: *mut u64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `ring` is null or a live handle, which only this thread uses now; `bytes` has `length`
        // bytes; `position` is null or has room for its value.
        unsafe {
            Handle::with(ring, |r| {
                let at = r.ring.offer(topic, text::bytes(bytes, length)?)?;
                text::put(position, at.0);
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_ring_append` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_ring_append(
    ring: *mut RingWriterHandle,
    unit: *const c_void,
    length: usize,
    position: *mut u64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `ring` is null or a live handle, which only this thread uses now; `unit` has `length`
        // bytes; `position` is null or has room for its value.
        unsafe {
            Handle::with(ring, |r| {
                let unit = text::bytes(unit, length)?;
                frames::check(unit)?;
                let at = r.ring.append(unit)?;
                text::put(position, at.0);
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_ring_end` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_ring_end(
    ring: *mut RingWriterHandle,
    position: *mut u64,
    ordinal: *mut u64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `ring` is null or a live handle, which only this thread uses now; `position` and
        // `ordinal` are null or have room for their values.
        unsafe {
            Handle::with(ring, |r| {
                text::put(position, r.ring.end().0);
                text::put(ordinal, r.ring.ordinal());
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_ring_reader_open` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_ring_reader_open(
    path: *const c_char,
    start: u32,
    position: u64,
    reader: *mut *mut RingReaderHandle,
) -> i32 {
    run(|| {
        // SAFETY: all as the header asks.
        let (place, path) = unsafe { (text::require_place(reader, "reader")?, text::path(path, "path")?) };
        let ring = RingTapeReader::open(path, start_of(start, position)?)?;
        // SAFETY: as above.
        unsafe { text::put(place, Handle::give(OpenRingReader { ring })) };
        Ok(code::OK)
    })
}

/// `unitape_ring_reader_close` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_ring_reader_close(reader: *mut RingReaderHandle) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `reader` is null or a live handle, which only this thread uses now.
        drop(unsafe { Handle::take(reader) }?);
        Ok(code::OK)
    })
}

/// `unitape_ring_reader_next` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_ring_reader_next(reader: *mut RingReaderHandle, frame: *mut Frame) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `reader` is null or a live handle, which only this thread uses now; `frame` is null or
        // has room for its value.
        unsafe {
            Handle::with(reader, |r| {
                let place = text::require_place(frame, "frame")?;
                let Some(found) = r.ring.next()? else { return Ok(0) };
                text::put(place, found.into());
                Ok(1)
            })
        }
    })
}

/// `unitape_ring_reader_wait` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_ring_reader_wait(
    reader: *mut RingReaderHandle,
    strategy: u32,
    timeout_ns: u64,
) -> i32 {
    run(|| {
        let wait = wait_of(strategy)?;
        // SAFETY: by unitape.h, `reader` is null or a live handle, which only this thread uses now.
        unsafe {
            Handle::with(reader, |r| Ok(i32::from(r.ring.wait_as(wait, Duration::from_nanos(timeout_ns))?)))
        }
    })
}

/// `unitape_ring_reader_seek` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_ring_reader_seek(reader: *mut RingReaderHandle, position: u64) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `reader` is null or a live handle, which only this thread uses now.
        unsafe {
            Handle::with(reader, |r| {
                r.ring.seek(Position(position))?;
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_ring_reader_position` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_ring_reader_position(
    reader: *mut RingReaderHandle,
    position: *mut u64,
    ordinal: *mut u64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `reader` is null or a live handle, which only this thread uses now; `position` and
        // `ordinal` are null or have room for their values.
        unsafe {
            Handle::with(reader, |r| {
                text::put(position, r.ring.position().0);
                text::put(ordinal, r.ring.ordinal());
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_ring_reader_lag` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_ring_reader_lag(
    reader: *mut RingReaderHandle,
    bytes: *mut u64,
    capacity_bytes: *mut u64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `reader` is null or a live handle, which only this thread uses now; `bytes` and
        // `capacity_bytes` are null or have room for their values.
        unsafe {
            Handle::with(reader, |r| {
                text::put(bytes, r.ring.lag_bytes());
                text::put(capacity_bytes, r.ring.capacity_bytes());
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_ring_reader_losses` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_ring_reader_losses(
    reader: *mut RingReaderHandle,
    losses: *mut Losses,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `reader` is null or a live handle, which only this thread uses now; `losses` is null
        // or has room for its value.
        unsafe {
            Handle::with(reader, |r| {
                let place = text::require_place(losses, "losses")?;
                let unitape_tape::RingLosses { overruns, bytes, events } = r.ring.losses();
                text::put(place, Losses { overruns, bytes, events });
                Ok(code::OK)
            })
        }
    })
}
