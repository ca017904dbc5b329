//! The one writer of a ring tape.

use std::path::Path;
use std::sync::atomic::Ordering;

use unitape_model::{FrameHeader, LINE, Position, TopicMessage, frame::KIND_PAD};

use super::file::{RingFile, RingOptions, check_capacity, offset};
use crate::disk::frames::check_frames;
use crate::disk::layout::{HEADER_PAGE, TapeId};
use crate::disk::lock::boot_id;
use crate::error::{Error, Result};
use crate::lockfree::ring::{RingWriter, UnitMark};

/// The state of a ring, as a writer found it on opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingRecovery {
    /// The ring was made just now.
    pub created: bool,
    /// The last writer closed the ring (also true for a new one).
    pub clean: bool,
    /// The machine was restarted since a writer that had not closed: its content is not trusted, and the ring starts
    /// over, empty, at a later position.
    pub emptied: bool,
    /// Where the writer continues.
    pub end: Position,
    /// Non-META frames before it.
    pub ordinal: u64,
    /// Openings of the ring by a writer, this one included.
    pub epoch: u64,
}

/// The one writer of a ring tape: never waits for readers, and overwrites what is oldest.
///
/// ```
/// use unitape_model::{FrameHeader, LINE, flags};
/// use unitape_tape::{Error, RingOptions, RingTapeReader, RingTapeWriter, StartPosition, TapeId};
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("quotes"); // below /dev/shm for speed
/// let options = RingOptions { capacity_bytes: 16 << 10 };
/// let (mut writer, _) = RingTapeWriter::open(&path, TapeId(1), options)?;
/// let mut reader = RingTapeReader::open(&path, StartPosition::Oldest)?;
///
/// let mut frame = [7u8; LINE];
/// FrameHeader::new_unstamped(20, flags::LAST, 1).write(&mut frame);
/// writer.append(&frame)?;
/// assert_eq!(reader.next()?.expect("a frame").bytes[8..], frame[8..]);
///
/// for _ in 0..1000 {
///     writer.append(&frame)?; // almost four laps
/// }
/// let lost = match reader.next() {
///     Err(Error::Overrun { lost_events, .. }) => lost_events,
///     _ => unreachable!("the reader was overrun"),
/// };
/// let mut seen = 0;
/// while reader.next()?.is_some() {
///     seen += 1;
/// }
/// assert_eq!(lost + seen, 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RingTapeWriter {
    core: RingWriter<RingFile>,
    epoch: u64,
}

impl RingTapeWriter {
    /// Opens the ring at `path`: makes it, or continues where the last writer closed or died.
    ///
    /// Positions continue; the epoch grows by one. Readers need do nothing.
    ///
    /// # Errors
    /// Another writer, another tape, another capacity, a file that is no ring or a damaged one, a foreign version,
    /// or the system's refusal.
    pub fn open(path: &Path, id: TapeId, options: RingOptions) -> Result<(Self, RingRecovery)> {
        check_capacity(options.capacity_bytes)?;
        for _ in 0..100 {
            if let Some(ring) = RingFile::open(path, true)? {
                check_same(&ring, id, &options)?;
                ring.lock()?;
                // Removed and created again between opening and locking: that one is meant.
                if ring.is_in_place() {
                    return Self::take_over(ring, false);
                }
            } else if let Some(ring) = RingFile::create(path, id, &options)? {
                return Self::take_over(ring, true);
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Err(Error::Locked { path: path.into(), holder: 0 })
    }

    /// Opens the ring with the identity that the ring at `path` has; a ring that is made gets one of its own.
    ///
    /// # Errors
    /// As [`RingTapeWriter::open`].
    pub fn open_or_make(path: &Path, options: RingOptions) -> Result<(Self, RingRecovery)> {
        let id = match RingFile::open(path, false)? {
            Some(ring) => ring.id,
            None => TapeId::random()?,
        };
        match Self::open(path, id, options) {
            // Somebody else made it meanwhile.
            Err(Error::ForeignTape { found, .. }) => Self::open(path, found, options),
            other => other,
        }
    }

    fn take_over(ring: RingFile, created: bool) -> Result<(Self, RingRecovery)> {
        // Relaxed, all of it: only the holder of the lock writes these words, readers take them as hints.
        let get = |at| ring.word(at).load(Ordering::Relaxed);
        let set = |at, value| ring.word(at).store(value, Ordering::Relaxed);
        let boot = u128::from_str_radix(&boot_id().replace('-', ""), 16).unwrap_or(0);
        let boot = [(boot >> 64) as u64, boot as u64];
        let clean = created || get(offset::CLOSED) == 1;
        let emptied = !clean && boot != [get(offset::BOOT), get(offset::BOOT + 8)];
        let epoch = get(offset::EPOCH) + 1;
        set(offset::PID, u64::from(std::process::id()));
        set(offset::BOOT, boot[0]);
        set(offset::BOOT + 8, boot[1]);
        set(offset::CLOSED, 0);
        let (path, shape) = (ring.path.clone(), ring.shape);
        let core = if emptied {
            // Positions do not repeat as far as the page on the disk records: start beyond all that it mentions.
            let intent = get(crate::lockfree::ring::place::INTENT).min(1 << 61);
            let position = (intent + 2 * shape.capacity).next_multiple_of(shape.capacity);
            // The page on the disk may be an old one, and positions come back after all: by the epoch a reader that
            // kept its place knows.
            set_word(&ring, offset::EMPTIED_AT, position);
            set_word(&ring, offset::EMPTIED_EPOCH, epoch);
            RingWriter::begin(ring, shape, UnitMark { position: Position(position), ordinal: 0 })
        } else {
            RingWriter::recover(ring, shape).map_err(|(at, what)| {
                Error::damage(&path, at, format!("{what}; remove the ring and let its writer make it again"))
            })?
        };
        set_word(core.memory(), offset::EPOCH, epoch);
        // Before anything is appended: an epoch does not come a second time, whenever the power fails.
        core.memory().flush_page()?;
        let recovery =
            RingRecovery { created, clean, emptied, end: core.end(), ordinal: core.ordinal(), epoch };
        Ok((Self { core, epoch }, recovery))
    }

    /// Appends one unit of whole unstamped frames, the last with the flag `LAST`; gives the position of the first.
    /// Without system call or allocation, and without waiting for anybody.
    ///
    /// # Errors
    /// Bytes that are not such a unit, or more than a quarter of the ring; nothing was appended then.
    #[inline]
    pub fn append(&mut self, unit: &[u8]) -> Result<Position> {
        let unit_max = self.core.shape().unit_max;
        if unit.len() as u64 > unit_max {
            return Err(Error::BadUnit { offset: 0, what: TOO_LONG });
        }
        let (ordinals, last) = check_frames(unit, unit_max)?;
        if !last {
            return Err(Error::BadUnit { offset: 0, what: "the unit does not end with the flag LAST" });
        }
        Ok(self.core.append(unit, ordinals))
    }

    /// Appends a message under a topic, as [`crate::Publication::offer`] does onto a tape; gives its position.
    ///
    /// # Errors
    /// A message longer than a quarter of the ring; nothing was appended then.
    #[inline]
    pub fn offer(&mut self, topic: u32, bytes: &[u8]) -> Result<Position> {
        let too_long = Error::BadUnit { offset: 0, what: TOO_LONG };
        let (header, word) = TopicMessage::header_words(topic, bytes.len()).ok_or(too_long)?;
        let mut draft = self.draft(header)?;
        draft.push(&word.to_le_bytes())?;
        draft.push(bytes)?;
        Ok(draft.commit())
    }

    /// Begins a unit of one frame that is written in place, from front to back, and then committed. `header` is
    /// unstamped and has the flag `LAST`.
    ///
    /// # Errors
    /// A header that no such frame can have.
    #[inline]
    pub fn draft(&mut self, header: FrameHeader) -> Result<RingDraft<'_>> {
        if !header.is_last() || header.lines() == 0 || header.kind() <= KIND_PAD {
            return Err(Error::BadUnit { offset: 0, what: "no frame of a whole unit has such a header" });
        }
        let bytes = header.len_bytes() as u64;
        if bytes > self.core.shape().unit_max {
            return Err(Error::BadUnit { offset: 0, what: TOO_LONG });
        }
        let start = self.core.open(bytes);
        Ok(RingDraft { writer: self, header, start, written: 8, pending: [0; 8] })
    }

    /// Position after the last unit.
    pub fn end(&self) -> Position {
        self.core.end()
    }

    /// Non-META frames before [`RingTapeWriter::end`].
    pub fn ordinal(&self) -> u64 {
        self.core.ordinal()
    }

    /// Identity of the tape.
    pub fn id(&self) -> TapeId {
        self.core.memory().id
    }

    /// Bytes of frames in the ring.
    pub fn capacity_bytes(&self) -> u64 {
        self.core.shape().capacity
    }

    /// Openings of the ring by a writer, this one included.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Flushes the ring and says that it was closed: the next writer trusts it, even after a restart of the
    /// machine. The file stays, and readers may continue.
    ///
    /// # Errors
    /// The system's refusal; the ring is then as after a kill. [`Error::Forked`] in a child of the process that
    /// opened it, and nothing happens.
    pub fn close(self) -> Result<()> {
        let ring = self.core.memory();
        ring.check_process()?;
        ring.flush()?;
        // Relaxed: read by the next holder of the lock.
        ring.word(offset::CLOSED).store(1, Ordering::Relaxed);
        ring.flush()
    }
}

/// Stores a word that readers look at without the lock.
fn set_word(ring: &RingFile, at: u64, value: u64) {
    // Release: pairs with the Acquire in `RingTapeReader::word`.
    ring.word(at).store(value, Ordering::Release);
}

const TOO_LONG: &str = "the unit is longer than a quarter of the ring";
const _: () = assert!(HEADER_PAGE.is_multiple_of(LINE as u64));

/// A frame that is being written in place. Dropped without [`RingDraft::commit`] it was never there.
///
/// There is no slice to write to: a reader of the lap before may be copying from here, and then throws away what
/// it got, but only words that are stored atomically may be copied meanwhile.
#[derive(Debug)]
pub struct RingDraft<'w> {
    writer: &'w mut RingTapeWriter,
    header: FrameHeader,
    start: Position,
    /// Bytes of the frame that are written, or wait in `pending`.
    written: usize,
    /// The word that is not full yet.
    pending: [u8; 8],
}

impl RingDraft<'_> {
    /// Bytes that still fit.
    pub fn room(&self) -> usize {
        self.header.len_bytes() - self.written
    }

    /// Writes `bytes` after the bytes written before.
    ///
    /// # Errors
    /// More than [`RingDraft::room`]; nothing was written then.
    #[inline]
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        if bytes.len() > self.room() {
            return Err(Error::BadUnit {
                offset: self.written as u64,
                what: "more than the frame has room for",
            });
        }
        let begun = self.written % 8;
        if begun > 0 {
            let part = bytes.len().min(8 - begun);
            self.pending[begun..begun + part].copy_from_slice(&bytes[..part]);
            self.written += part;
            bytes = &bytes[part..];
            if self.written.is_multiple_of(8) {
                self.writer.core.write(self.start.plus(self.written as u64 - 8), &self.pending);
            }
        }
        let whole = bytes.len() & !7;
        self.writer.core.write(self.start.plus(self.written as u64), &bytes[..whole]);
        let rest = &bytes[whole..];
        if !rest.is_empty() {
            self.pending[..rest.len()].copy_from_slice(rest);
        }
        self.written += bytes.len();
        Ok(())
    }

    /// Fills the rest of the frame with zeros and publishes it; gives its position.
    #[inline]
    pub fn commit(mut self) -> Position {
        let begun = self.written % 8;
        if begun > 0 {
            self.pending[begun..].fill(0);
            self.written += 8 - begun;
            self.writer.core.write(self.start.plus(self.written as u64 - 8), &self.pending);
        }
        while self.written < self.header.len_bytes() {
            self.writer.core.write(self.start.plus(self.written as u64), &[0; 8]);
            self.written += 8;
        }
        let ordinals = u64::from(!self.header.is_meta());
        self.writer.core.publish(self.start, self.header.len_bytes() as u64, self.header, ordinals);
        self.start
    }
}

fn check_same(ring: &RingFile, id: TapeId, options: &RingOptions) -> Result<()> {
    if ring.id != id {
        return Err(Error::ForeignTape { path: ring.path.clone(), found: ring.id, wanted: id });
    }
    let (found, wanted) = (ring.shape.capacity, options.capacity_bytes);
    if found != wanted {
        return Err(Error::RingCapacity { path: ring.path.clone(), found, wanted });
    }
    Ok(())
}
