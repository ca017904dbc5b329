//! The sender's side of a session.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;
use unitape_model::{FrameHeader, Position, frames};

use super::SessionOptions;
use crate::error::Error;
use crate::wire::{Acknowledge, Announce, Data, Hello, Message, RAW_HEAD_BYTES, Raw, SessionId, Welcome};

/// The sender's side of a session with one receiver.
#[derive(Debug)]
pub struct SenderSession {
    id: SessionId,
    reply_to: SocketAddr,
    options: SessionOptions,
    welcome: Welcome,
    is_welcomed: bool,
    /// Frames without stamps that are not sent yet; those before `queue_start` are sent.
    queue: Vec<u8>,
    queue_start: usize,
    /// The ends of the units in `queue`: the offset there, and the position on the tape.
    unit_ends: VecDeque<(usize, Position)>,
    /// Bytes of the raw log that are not sent yet; those before `raw_start` are sent.
    raw_queue: Vec<u8>,
    raw_start: usize,
    /// The length of the raw log that is sent, and the one that the frames in `queue` need.
    raw_sent: u64,
    raw_needed: u64,
    raw_acknowledged: u64,
    /// Where the next byte belongs: the end of the tape before its unit, and the bytes of the unit that are sent.
    unit_position: Position,
    unit_offset: u64,
    last_acknowledge: Option<Acknowledge>,
    is_closed: bool,
    is_announce_due: bool,
    last_heard: Duration,
    last_sent: Duration,
    scratch: Vec<u8>,
}

impl SenderSession {
    /// Begins the session `id`, which answers `hello` with `welcome`.
    pub fn new(
        id: SessionId,
        hello: &Hello,
        welcome: Welcome,
        options: SessionOptions,
        now: Duration,
    ) -> Self {
        let raw_bytes = hello.tape.as_ref().map_or(0, |tape| tape.raw.bytes);
        Self {
            id,
            reply_to: hello.reply_to,
            options,
            welcome,
            is_welcomed: false,
            queue: Vec::new(),
            queue_start: 0,
            unit_ends: VecDeque::new(),
            raw_queue: Vec::new(),
            raw_start: 0,
            raw_sent: raw_bytes,
            raw_needed: raw_bytes,
            raw_acknowledged: raw_bytes,
            unit_position: welcome.position,
            unit_offset: 0,
            last_acknowledge: None,
            is_closed: false,
            is_announce_due: false,
            last_heard: now,
            last_sent: now,
            scratch: Vec::new(),
        }
    }

    /// Returns the session.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Returns the address of the receiver.
    pub fn reply_to(&self) -> SocketAddr {
        self.reply_to
    }

    /// Returns the last report of the receiver.
    pub fn last_acknowledge(&self) -> Option<Acknowledge> {
        self.last_acknowledge
    }

    /// Returns whether the receiver was silent for too long.
    pub fn is_silent(&self, now: Duration) -> bool {
        now.saturating_sub(self.last_heard) >= self.options.receiver_silence
    }

    /// Takes a report of the receiver. Late and doubled reports change nothing.
    pub fn acknowledge(&mut self, now: Duration, acknowledge: Acknowledge) {
        self.last_heard = now;
        let last_sent = self.last_acknowledge.get_or_insert(acknowledge);
        let is_newer =
            (acknowledge.committed, acknowledge.pending) >= (last_sent.committed, last_sent.pending);
        let durable = last_sent.durable.max(acknowledge.durable);
        if is_newer {
            *last_sent = acknowledge;
        }
        last_sent.durable = durable;
        self.raw_acknowledged = self.raw_acknowledged.max(acknowledge.raw_bytes);
    }

    /// Returns whether the session can take more frames: all before are sent, and the window has room.
    pub fn has_room(&self) -> bool {
        self.is_welcomed
            && self.queue_start == self.queue.len()
            && self.unacknowledged_bytes() < self.options.window_bytes
    }

    /// Takes the frames that follow on the tape; the first one is at `position`. `raw_needed` bytes of the raw log come before them.
    ///
    /// # Errors
    /// Fails if a unit has more bytes than a link carries.
    pub fn push(&mut self, position: Position, run: &[u8], raw_needed: u64) -> Result<(), Error> {
        assert!(self.queue_start == self.queue.len(), "frames are pushed when all before are sent");
        self.queue.clear();
        self.queue_start = 0;
        self.raw_needed = self.raw_needed.max(raw_needed);
        self.queue.extend_from_slice(run);
        for (offset, header, frame) in frames(run) {
            let unstamped = FrameHeader::new_unstamped(header.kind(), header.flags(), header.lines());
            unstamped.write(&mut self.queue[offset..]);
            if header.is_last() {
                let frame_end = offset + frame.len();
                self.unit_ends.push_back((frame_end, position.plus(frame_end as u64)));
            }
        }
        if self.unit_ends.is_empty() && self.unit_offset + self.queue.len() as u64 > super::UNIT_BYTES_MAX {
            return Err(Error::LargeUnit { position: self.unit_position, limit: super::UNIT_BYTES_MAX });
        }
        Ok(())
    }

    /// Returns the part of the raw log that the session needs next: where it begins, and how many bytes. `None` if it needs nothing.
    pub fn missing_raw(&self) -> Option<(u64, usize)> {
        let is_sent = self.raw_start == self.raw_queue.len();
        let bytes = (self.raw_needed - self.raw_sent).min(RAW_PIECE_BYTES) as usize;
        (is_sent && bytes > 0).then_some((self.raw_sent, bytes))
    }

    /// Takes the bytes of [`SenderSession::missing_raw`].
    pub fn push_raw(&mut self, bytes: &[u8]) {
        assert!(self.raw_start == self.raw_queue.len(), "raw bytes are pushed when all before are sent");
        self.raw_queue.clear();
        self.raw_queue.extend_from_slice(bytes);
        self.raw_start = 0;
    }

    /// Sets whether the tape has no writer and ends after the frames that were pushed.
    pub fn set_closed(&mut self, is_closed: bool) {
        self.is_announce_due |= is_closed != self.is_closed;
        self.is_closed = is_closed;
    }

    /// Returns whether the tape is closed, and the receiver has reported all of it as durable.
    pub fn is_complete(&self) -> bool {
        let is_durable = self.last_acknowledge.is_some_and(|last| last.durable >= self.unit_position);
        self.is_closed && self.is_drained() && is_durable
    }

    /// Sends what is due. `send` returns false if the transport takes nothing now. Returns whether something was sent.
    ///
    /// # Errors
    /// Passes on the errors of `send`.
    pub fn poll(
        &mut self,
        now: Duration,
        send: &mut dyn FnMut(&[u8]) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let mut has_sent = false;
        if !self.is_welcomed {
            if !self.send_message(now, &Message::Welcome(self.welcome), send)? {
                return Ok(false);
            }
            (self.is_welcomed, has_sent) = (true, true);
        }
        while self.raw_start < self.raw_queue.len() && self.unacknowledged_bytes() < self.options.window_bytes
        {
            let length =
                (self.raw_queue.len() - self.raw_start).min(self.options.data_bytes - RAW_HEAD_BYTES);
            let mut scratch = std::mem::take(&mut self.scratch);
            let bytes = &self.raw_queue[self.raw_start..self.raw_start + length];
            Message::Raw(Raw { offset: self.raw_sent, bytes }).encode(self.id, &mut scratch);
            let was_sent = send(&scratch);
            self.scratch = scratch;
            if !was_sent? {
                return Ok(has_sent);
            }
            self.raw_start += length;
            self.raw_sent += length as u64;
            (self.last_sent, has_sent) = (now, true);
        }
        while self.raw_sent >= self.raw_needed
            && self.queue_start < self.queue.len()
            && self.unacknowledged_bytes() < self.options.window_bytes
        {
            let length = self.next_length();
            let mut scratch = std::mem::take(&mut self.scratch);
            let bytes = &self.queue[self.queue_start..self.queue_start + length];
            let (position, offset, raw_bytes) = (self.unit_position, self.unit_offset, self.raw_needed);
            let data = Data { position, offset, raw_bytes, frames: bytes };
            Message::Data(data).encode(self.id, &mut scratch);
            let was_sent = send(&scratch);
            self.scratch = scratch;
            if !was_sent? {
                return Ok(has_sent);
            }
            self.advance_position(length);
            (self.last_sent, has_sent) = (now, true);
        }
        let is_idle = now.saturating_sub(self.last_sent) >= self.options.alive_interval;
        if is_idle || self.is_announce_due && self.is_drained() {
            let (end, offset, raw_bytes) = (self.unit_position, self.unit_offset, self.raw_sent);
            let announce =
                Announce { end, offset, raw_bytes, is_closed: self.is_closed && self.is_drained() };
            let is_sent = self.send_message(now, &Message::Announce(announce), send)?;
            self.is_announce_due &= !is_sent;
            has_sent |= is_sent;
        }
        Ok(has_sent)
    }

    fn send_message(
        &mut self,
        now: Duration,
        message: &Message<'_>,
        send: &mut dyn FnMut(&[u8]) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        message.encode(self.id, &mut self.scratch);
        let is_sent = send(&self.scratch)?;
        if is_sent {
            self.last_sent = now;
        }
        Ok(is_sent)
    }

    /// Bytes of the next data message: whole units if one fits, else a part of a unit.
    fn next_length(&self) -> usize {
        let limit = self.queue.len().min(self.queue_start + self.options.data_bytes);
        let unit_end = self.unit_ends.iter().map(|(end, _)| *end).take_while(|end| *end <= limit).last();
        unit_end.unwrap_or(limit) - self.queue_start
    }

    fn advance_position(&mut self, length: usize) {
        self.queue_start += length;
        self.unit_offset += length as u64;
        while let Some((end, position)) = self.unit_ends.front().copied()
            && end <= self.queue_start
        {
            self.unit_ends.pop_front();
            (self.unit_position, self.unit_offset) = (position, (self.queue_start - end) as u64);
        }
    }

    fn is_drained(&self) -> bool {
        self.queue_start == self.queue.len() && self.unit_offset == 0
    }

    /// Bytes that were sent and not acknowledged, those of the raw log included. Pads of segments count as well.
    fn unacknowledged_bytes(&self) -> u64 {
        let raw = self.raw_sent.saturating_sub(self.raw_acknowledged);
        let acknowledged_end =
            self.last_acknowledge.map_or(self.welcome.position.0, |last| last.committed.0 + last.pending);
        (self.unit_position.0 + self.unit_offset).saturating_sub(acknowledged_end) + raw
    }
}

/// Bytes of the raw log that are read at once.
const RAW_PIECE_BYTES: u64 = 256 << 10;
