//! Publishing messages: one at a time, built in place, or many at once.
//!
//! ```text
//!            committed end
//!                 │  claim(100 bytes)
//!  … frame frame  ▼ ┌ 0 ┬ length, topic ┬ the draft: written in place ┬ 0 ┐ 0 0 0 …
//!                   └─▲─┴───────────────┴────────────────────────────┴───┘
//!                     commit() stores the header word, last
//! ```
//!
//! Invariant: the bytes after the committed end are zero, except in the range of the one open draft or batch. A draft
//! that is given up zeroes its range, and the next one looks for a draft that was forgotten. So a reader past the end
//! never meets bytes that were not to be published.

use std::ops::{Deref, DerefMut};
use std::path::Path;

use unitape_model::message::{MESSAGE_BYTES_MAX, MESSAGE_HEAD};
use unitape_model::{FrameHeader, LINE, Position, TopicMessage};

use crate::disk::layout::{TapeId, TapeManifest};
use crate::disk::map::MappedSegment;
use crate::error::{Error, Result};
use crate::write::options::WriterOptions;
use crate::write::origin::TapeOrigin;
use crate::write::recover::RecoveryReport;
use crate::write::writer::Writer;

/// The publishing end of a tape: messages of bytes, each under a topic.
///
/// It is a [`Writer`] that knows how a frame holds a message; events and other frames go through
/// [`Publication::writer`] onto the same tape.
///
/// ```
/// use unitape_tape::{WriterOptions, Publication, StartPosition, Subscription};
///
/// let dir = tempfile::tempdir()?;
/// let options = WriterOptions { segment_bytes: 1 << 20, ..WriterOptions::default() };
/// let mut prices = Publication::open(dir.path(), options)?;
/// prices.offer(1, b"EURUSD 1.0850")?; // copied onto the tape
///
/// let mut draft = prices.claim(1, 13)?; // written in place
/// draft.copy_from_slice(b"EURUSD 1.0851");
/// draft.commit()?;
///
/// let mut batch = prices.batch(); // seen together
/// for price in ["EURUSD 1.0852", "GBPUSD 1.2710"] {
///     batch.push(1, price.as_bytes())?;
/// }
/// batch.commit()?;
///
/// let mut subscription = Subscription::open(dir.path(), StartPosition::Oldest)?;
/// let mut seen = Vec::new();
/// while let Some(frame) = subscription.next()? {
///     seen.extend(frame.message().map(|message| message.bytes.to_vec()));
/// }
/// assert_eq!(seen.len(), 4);
/// assert_eq!(seen[3], b"GBPUSD 1.2710");
/// prices.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Publication {
    writer: Writer,
}

impl Publication {
    /// Opens the tape in `dir` for publishing: continues at its end, or makes it with an identity of its own.
    ///
    /// # Errors
    /// Fails as [`Writer::open`] does.
    pub fn open(dir: &Path, options: WriterOptions) -> Result<Self> {
        Self::open_recovered(dir, options).map(|(publication, _)| publication)
    }

    /// Opens the tape for publishing, and reports whether the last publisher closed, and where it ended.
    ///
    /// # Errors
    /// Fails as [`Writer::open`] does.
    pub fn open_recovered(dir: &Path, options: WriterOptions) -> Result<(Self, RecoveryReport)> {
        let id = match TapeManifest::load(dir) {
            Ok(meta) => meta.id,
            Err(Error::NotATape { .. }) => TapeId::random()?,
            Err(e) => return Err(e),
        };
        let (writer, recovery) = Writer::open(dir, id, options)?;
        Ok((Self { writer }, recovery))
    }

    /// Opens the tape for publishing that begins at an origin.
    ///
    /// # Errors
    /// Fails as [`Writer::open_at`] does.
    pub fn open_at(
        dir: &Path,
        id: TapeId,
        origin: &TapeOrigin<'_>,
        options: WriterOptions,
    ) -> Result<(Self, RecoveryReport)> {
        let (writer, recovery) = Writer::open_at(dir, id, origin, options)?;
        Ok((Self { writer }, recovery))
    }

    /// Returns the tape's writer, for frames that are no messages: events without a source, and the names that they
    /// use. The writer accepts every kind, because unitape writes a tape's account (kinds 3, 8 and 40) with it. You
    /// must not write those kinds. `docs/formats-events.md` says who writes which kind.
    pub fn writer(&mut self) -> &mut Writer {
        &mut self.writer
    }

    /// Publishes a message and returns its position. Makes no system call and no allocation while the message fits the
    /// segment.
    ///
    /// # Errors
    /// Fails if the message is longer than [`MESSAGE_BYTES_MAX`] or a segment, and as [`Writer::append`] does. Then
    /// nothing was published, and the publication can continue.
    #[inline]
    pub fn offer(&mut self, topic: u32, bytes: &[u8]) -> Result<Position> {
        let (header, word) = frame_header(topic, bytes.len())?;
        if let Some((segment, offset)) = self.writer.fast_path(header.len_bytes() as u64) {
            // SAFETY: `fast_path` found the frame's bytes in the segment; they lie after the committed end, and the
            // writer is borrowed here alone.
            unsafe { fill_frame(segment, offset, header, word, bytes) };
            return Ok(self.writer.publish_frames(offset, header, header.len_bytes() as u64, 1));
        }
        self.offer_slowly(topic, bytes)
    }

    /// Offers a message where something else has to be looked at, or a new segment begins with it.
    #[inline(never)] // would take the registers of the short way
    fn offer_slowly(&mut self, topic: u32, bytes: &[u8]) -> Result<Position> {
        let (header, word) = frame_header(topic, bytes.len())?;
        self.writer.discard_forgotten();
        let Some(offset) = self.writer.find_room(header.len_bytes() as u64)? else {
            let mut draft = self.claim(topic, bytes.len())?;
            draft.copy_from_slice(bytes);
            return draft.commit();
        };
        // SAFETY: `room` found the frame's bytes in the segment; they lie after the committed end, and the writer
        // is borrowed here alone.
        unsafe { fill_frame(self.writer.current_segment(), offset, header, word, bytes) };
        Ok(self.writer.publish_frames(offset, header, header.len_bytes() as u64, 1))
    }

    /// Claims zeroed space for a message of `length` bytes, to be written and then committed.
    ///
    /// # Errors
    /// Fails as [`Publication::offer`] does.
    #[inline(always)] // a draft that is moved costs more than all of this
    pub fn claim(&mut self, topic: u32, length: usize) -> Result<FrameDraft<'_>> {
        let (header, word) = frame_header(topic, length)?;
        let mut draft = self.writer.draft(header)?;
        draft[..8].copy_from_slice(&word.to_le_bytes());
        draft.payload_start = MESSAGE_HEAD as u32;
        draft.payload_end = (MESSAGE_HEAD + length) as u32;
        Ok(draft)
    }

    /// Begins a batch: messages that are committed together with one store, so that readers are not at the
    /// publisher's heels meanwhile.
    pub fn batch(&mut self) -> MessageBatch<'_> {
        self.writer.discard_forgotten();
        MessageBatch { writer: &mut self.writer, first_header: None, bytes: 0, count: 0, is_aside: false }
    }

    /// Returns the position after the last message.
    pub fn end(&self) -> Position {
        self.writer.end()
    }

    /// Flushes everything and ends the publication; as [`Writer::close`].
    ///
    /// # Errors
    /// Fails as [`Writer::close`] does.
    pub fn close(self) -> Result<()> {
        self.writer.close()
    }
}

impl From<Writer> for Publication {
    fn from(writer: Writer) -> Self {
        Self { writer }
    }
}

/// A frame that is being written in its place on the tape. Dropped without [`FrameDraft::commit`] it was never there.
#[derive(Debug)]
pub struct FrameDraft<'w> {
    writer: &'w mut Writer,
    header: FrameHeader,
    /// Data offset in the segment that is being written, or [`ASIDE`].
    offset: u64,
    /// The user's part of the frame.
    payload_start: u32,
    payload_end: u32,
}

/// The segment has no room left: the frame is made in the writer's `backup`, and copied when it is committed.
const ASIDE: u64 = u64::MAX;

impl FrameDraft<'_> {
    /// Publishes the frame and returns its position.
    ///
    /// # Errors
    /// Fails only at the end of a segment, as [`Writer::append`] does; then nothing was published.
    #[inline]
    pub fn commit(self) -> Result<Position> {
        // Committed, it is not given up.
        let mut this = std::mem::ManuallyDrop::new(self);
        let (header, offset) = (this.header, this.offset);
        if offset == ASIDE {
            return this.writer.append_aside(header);
        }
        if !this.writer.is_ours() {
            return this.writer.refuse_child();
        }
        let ordinals = u64::from(!header.is_meta());
        Ok(this.writer.publish_frames(offset, header, header.len_bytes() as u64, ordinals))
    }
}

impl Deref for FrameDraft<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let (start, end) = (self.payload_start as usize, self.payload_end as usize);
        if self.offset == ASIDE {
            return &self.writer.overflow_frames[start..end];
        }
        // SAFETY: `Writer::draft` found the frame's room, `start..end` lies in the frame after its header word,
        // and the writer is borrowed by this draft alone.
        unsafe { self.writer.current_segment().draft(self.offset + start as u64, end - start) }
    }
}

impl DerefMut for FrameDraft<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        let (start, end) = (self.payload_start as usize, self.payload_end as usize);
        if self.offset == ASIDE {
            return &mut self.writer.overflow_frames[start..end];
        }
        // SAFETY: as in `deref`.
        unsafe { self.writer.current_segment().draft(self.offset + start as u64, end - start) }
    }
}

impl Drop for FrameDraft<'_> {
    fn drop(&mut self) {
        self.writer.discard_open();
    }
}

/// Messages that are committed together. Dropped without [`MessageBatch::commit`] they were never there.
#[derive(Debug)]
pub struct MessageBatch<'w> {
    writer: &'w mut Writer,
    /// Header of the first message, stored last.
    first_header: Option<FrameHeader>,
    /// Bytes of frames after the committed end.
    bytes: u64,
    count: u64,
    /// The segment has no room for the batch: its frames are in the writer's `backup`.
    is_aside: bool,
}

impl MessageBatch<'_> {
    /// Adds a message.
    ///
    /// # Errors
    /// Fails as [`Publication::offer`] does; the batch is then unchanged.
    #[inline]
    pub fn push(&mut self, topic: u32, bytes: &[u8]) -> Result<()> {
        let (header, word) = frame_header(topic, bytes.len())?;
        let length = header.len_bytes();
        let room_start =
            if self.is_aside { None } else { self.writer.find_room(self.bytes + length as u64)? };
        let Some(start) = room_start else { return self.push_aside(header, word, bytes) };
        self.writer.set_open_bytes(self.bytes + length as u64);
        let offset = start + self.bytes;
        let segment = self.writer.current_segment();
        // SAFETY: `room` found the batch's bytes and these in the segment; they lie after the committed end, and
        // the writer is borrowed by this batch alone.
        unsafe { fill_frame(segment, offset, header, word, bytes) };
        match self.first_header {
            None => self.first_header = Some(header),
            Some(_) => segment.stamp_header(offset, header),
        }
        self.bytes += length as u64;
        self.count += 1;
        Ok(())
    }

    /// Messages that wait for [`MessageBatch::commit`].
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Returns whether no message waits.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Publishes the messages. Returns the position of the first message, or the tape's end if there are no messages.
    ///
    /// # Errors
    /// Fails only at the end of a segment, as [`Writer::append`] does; then nothing was published.
    #[inline]
    pub fn commit(mut self) -> Result<Position> {
        if std::mem::take(&mut self.is_aside) {
            return self.writer.append_all_aside();
        }
        if !self.writer.is_ours() {
            return self.writer.refuse_child();
        }
        let Some(first_header) = self.first_header.take() else { return Ok(self.writer.end()) };
        let offset = self.writer.end().0 - self.writer.current_segment().base_position.0;
        Ok(self.writer.publish_frames(offset, first_header, self.bytes, self.count))
    }

    #[cold]
    fn push_aside(&mut self, header: FrameHeader, word: u64, bytes: &[u8]) -> Result<()> {
        if header.len_bytes() as u64 > self.writer.meta().segment_bytes {
            return Err(TOO_LONG);
        }
        if let Some(first_header) = self.first_header.take() {
            let segment = self.writer.current_segment();
            let offset = self.writer.end().0 - segment.base_position.0;
            // SAFETY: the batch wrote this range, and the writer is borrowed by it alone.
            let frames = unsafe { segment.draft(offset + 8, self.bytes as usize - 8) }.to_vec();
            self.writer.discard_open();
            self.writer.overflow_frames.extend_from_slice(&first_header.0.to_le_bytes());
            self.writer.overflow_frames.extend_from_slice(&frames);
        }
        self.is_aside = true;
        self.writer.set_open_bytes(0);
        let overflow = &mut self.writer.overflow_frames;
        let message_start = overflow.len();
        overflow.resize(message_start + header.len_bytes(), 0);
        let frame = &mut overflow[message_start..];
        header.write(frame);
        frame[8..16].copy_from_slice(&word.to_le_bytes());
        frame[16..16 + bytes.len()].copy_from_slice(bytes);
        self.count += 1;
        Ok(())
    }
}

impl Drop for MessageBatch<'_> {
    fn drop(&mut self) {
        if self.first_header.is_some() || self.is_aside {
            self.writer.discard_open();
        }
    }
}

impl Writer {
    /// Claims space for a single frame that is its own unit, zeroed after its header word, to be written and then
    /// committed. `header` is unstamped and has the flag `LAST`.
    ///
    /// # Errors
    /// Fails if no such frame can have the header, and as [`Writer::append`] does.
    #[inline(always)] // a draft that is moved costs more than all of this
    pub fn draft(&mut self, header: FrameHeader) -> Result<FrameDraft<'_>> {
        if !header.is_last() || header.lines() == 0 || header.kind() <= unitape_model::frame::KIND_PAD {
            return Err(Error::BadUnit { offset: 0, reason: "no frame of a whole unit has such a header" });
        }
        self.discard_forgotten();
        let bytes = header.len_bytes() as u64;
        let offset = match self.find_room(bytes)? {
            Some(start) => {
                self.set_open_bytes(bytes);
                start
            }
            None => self.make_aside(bytes)?,
        };
        Ok(FrameDraft {
            writer: self,
            header,
            offset,
            payload_start: 8,
            payload_end: header.len_bytes() as u32,
        })
    }

    /// Commits the frames of `bytes` bytes at data offset `offset`, which is the end, by the header word of the first.
    #[inline]
    fn publish_frames(&mut self, offset: u64, first: FrameHeader, bytes: u64, ordinals: u64) -> Position {
        let position = self.end();
        self.open_bytes = 0;
        self.current_segment().commit(offset, first);
        self.advance(bytes, ordinals);
        position
    }

    #[cold]
    fn make_aside(&mut self, bytes: u64) -> Result<u64> {
        if bytes > self.meta().segment_bytes {
            return Err(TOO_LONG);
        }
        self.set_open_bytes(0);
        self.overflow_frames.resize(bytes as usize, 0);
        Ok(ASIDE)
    }

    #[cold]
    fn append_aside(&mut self, header: FrameHeader) -> Result<Position> {
        header.write(&mut self.overflow_frames);
        self.append_all_aside()
    }

    #[cold]
    fn append_all_aside(&mut self) -> Result<Position> {
        let frames = std::mem::take(&mut self.overflow_frames);
        self.append(&frames)
    }
}

/// Writes the message's frame at data offset `offset`, all but its header word.
///
/// # Safety
/// The frame lies in the segment after the committed end, and nobody else writes there.
#[inline]
unsafe fn fill_frame(segment: &MappedSegment, offset: u64, header: FrameHeader, word: u64, bytes: &[u8]) {
    // SAFETY: the frame is in the segment after the committed end, and by the contract nobody else writes there; the range
    // begins after the header word, which is the one that a reader looks at.
    let frame = unsafe { segment.draft(offset + 8, header.len_bytes() - 8) };
    frame[..8].copy_from_slice(&word.to_le_bytes());
    frame[8..8 + bytes.len()].copy_from_slice(bytes);
}

const TOO_LONG: Error = Error::BadUnit { offset: 0, reason: "the frame is longer than a segment" };

#[inline]
fn frame_header(topic: u32, length: usize) -> Result<(FrameHeader, u64)> {
    const _: () = assert!(MESSAGE_BYTES_MAX + MESSAGE_HEAD == u16::MAX as usize * LINE);
    // Made where it is needed: an error that is not is dropped each time.
    TopicMessage::header_words(topic, length).ok_or_else(too_long)
}

#[cold]
fn too_long() -> Error {
    Error::BadUnit { offset: 0, reason: "a message has 4 MiB at most (65,535 lines of 64 bytes)" }
}
