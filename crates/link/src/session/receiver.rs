//! The receiver's side of a session.

use std::cmp::Ordering;
use std::time::Duration;
use unitape_model::{FrameHeader, LINE, Position, frame::KIND_PAD};

use super::{SessionOptions, UNIT_BYTES_MAX};
use crate::error::Error;
use crate::wire::{
    Acknowledge, Announce, Data, Hello, Message, PROTOCOL_VERSION, Raw, Refusal, RefusalReason, SessionId,
    Welcome, WireFault, decode_session,
};

/// The tape of a receiver.
pub trait UnitSink {
    /// Returns the end of the tape.
    fn end_position(&self) -> Position;

    /// Appends a unit: whole frames without stamps, the last with the flag `LAST`.
    ///
    /// # Errors
    /// Fails if the tape takes nothing more.
    fn append(&mut self, unit: &[u8]) -> Result<(), Error>;

    /// Returns the length of the raw log of quarantine.
    fn raw_bytes(&self) -> u64;

    /// Appends to the raw log.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    fn append_raw(&mut self, bytes: &[u8]) -> Result<(), Error>;
}

/// What a receiver has of a tape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldTape {
    /// The end of the tape.
    pub committed: Position,
    /// What comes before this survives a power loss.
    pub durable: Position,
    /// The length of the raw log of quarantine.
    pub raw_bytes: u64,
}

/// The result of a message for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum ReceiverStep {
    /// Nothing to do.
    Nothing,
    /// The sender has accepted. The caller opens its tape, then calls [`ReceiverSession::begin_following`].
    Welcomed(Welcome),
    /// The sender has refused, or has ended the session because of a failure.
    Refused(Refusal),
    /// The sender has ended the session.
    Finished,
}

/// The receiver's side of a link. It lasts as long as its process; each question is a session of its own.
#[derive(Debug)]
pub struct ReceiverSession {
    id: SessionId,
    options: SessionOptions,
    receiver_state: ReceiverState,
    /// The position of the last hello.
    asked_position: Position,
    hello_sent: Option<Duration>,
    /// Frames after the end of the tape that are no whole unit yet.
    unit_bytes: Vec<u8>,
    /// Bytes of whole frames in `pending`.
    scanned: usize,
    announced_end: Option<Announce>,
    /// Since when something is missing that the sender has announced.
    missing_since: Option<Duration>,
    last_heard: Duration,
    last_acknowledge: Option<(Duration, Acknowledge)>,
    received_bytes: u64,
    figures: ReceiverFigures,
    scratch: Vec<u8>,
}

/// What a receiver has counted since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverFigures {
    /// Sessions that were begun.
    pub sessions: u64,
    /// Messages that were dropped: of strangers, damaged, of an older session, or doubled.
    pub dropped_messages: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceiverState {
    Asking,
    Following,
    Leaving { since: Duration },
    Ended,
}

impl ReceiverSession {
    /// Makes the session of a receiver that has chosen the number `receiver` at random.
    pub fn new(receiver: u64, options: SessionOptions) -> Self {
        Self {
            id: SessionId { receiver, number: 1 },
            options,
            receiver_state: ReceiverState::Asking,
            asked_position: Position(0),
            hello_sent: None,
            unit_bytes: Vec::new(),
            scanned: 0,
            announced_end: None,
            missing_since: None,
            last_heard: Duration::ZERO,
            last_acknowledge: None,
            received_bytes: 0,
            figures: ReceiverFigures::default(),
            scratch: Vec::new(),
        }
    }

    /// Returns the present session.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Returns the counts.
    pub fn figures(&self) -> ReceiverFigures {
        self.figures
    }

    /// Returns the last report of the sender in this session.
    pub fn announced(&self) -> Option<Announce> {
        self.announced_end
    }

    /// Returns whether the receiver follows the sender's tape: its question was answered.
    pub fn is_following(&self) -> bool {
        self.receiver_state == ReceiverState::Following
    }

    /// Returns whether the receiver asks and has no answer yet.
    pub fn is_asking(&self) -> bool {
        self.receiver_state == ReceiverState::Asking
    }

    /// Returns whether the session is over, after [`ReceiverSession::leave`].
    pub fn is_ended(&self) -> bool {
        self.receiver_state == ReceiverState::Ended
    }

    /// Returns whether all of the sender's tape is here, durable up to `durable`, and the sender's tape has no writer.
    pub fn is_complete(&self, committed: Position, durable: Position) -> bool {
        let is_end =
            |announced: Announce| announced.is_closed && announced.end == committed && announced.offset == 0;
        self.announced_end.is_some_and(is_end) && self.unit_bytes.is_empty() && durable >= committed
    }

    /// Asks again, as a new session.
    pub fn ask(&mut self) {
        self.id.number += 1;
        self.receiver_state = ReceiverState::Asking;
        self.hello_sent = None;
        self.unit_bytes.clear();
        self.scanned = 0;
        (self.announced_end, self.missing_since, self.last_acknowledge) = (None, None, None);
    }

    /// Ends the session after [`ReceiverStep::Refused`], as [`ReceiverSession::leave`] does.
    pub fn leave_refused(&mut self, now: Duration) {
        self.receiver_state = ReceiverState::Leaving { since: now };
        self.last_acknowledge = None;
    }

    /// Ends the session. The receiver repeats this to the sender until it answers, for a limited time.
    pub fn leave(&mut self, now: Duration) {
        if self.is_following() {
            self.receiver_state = ReceiverState::Leaving { since: now };
            self.last_acknowledge = None;
        } else if self.receiver_state == ReceiverState::Asking {
            self.receiver_state = ReceiverState::Ended;
        }
    }

    /// Returns whether a hello is to be sent, also after a silence of the sender.
    pub fn is_hello_due(&mut self, now: Duration) -> bool {
        if self.is_following() {
            let is_silent = now.saturating_sub(self.last_heard) >= self.options.silence;
            let is_lost = |since| now.saturating_sub(since) >= self.options.hello_interval;
            if is_silent || self.missing_since.is_some_and(is_lost) {
                self.ask();
            }
        }
        let is_unanswered = |sent| now.saturating_sub(sent) >= self.options.hello_interval;
        self.receiver_state == ReceiverState::Asking && self.hello_sent.is_none_or(is_unanswered)
    }

    /// Sends a hello. A hello that the transport does not take is due again at once.
    ///
    /// # Errors
    /// Passes on the errors of `send`.
    pub fn send_hello(
        &mut self,
        now: Duration,
        hello: &Hello,
        send: &mut dyn FnMut(&[u8]) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        self.asked_position = hello.tape.as_ref().map_or(Position(0), |tape| tape.position);
        Message::Hello(hello.clone()).encode(self.id, &mut self.scratch);
        let is_sent = send(&self.scratch)?;
        if is_sent {
            self.hello_sent = Some(now);
        }
        Ok(is_sent)
    }

    /// Begins to follow after [`ReceiverStep::Welcomed`], with a tape that ends at `end`. If the tape does not end where the hello
    /// said, the receiver asks again.
    pub fn begin_following(&mut self, now: Duration, end: Position) {
        if self.receiver_state != ReceiverState::Asking {
            return;
        }
        if end != self.asked_position {
            return self.ask();
        }
        self.receiver_state = ReceiverState::Following;
        self.last_heard = now;
        self.figures.sessions += 1;
    }

    /// Takes a message, and appends the units that it completes to `sink`, which is the tape that was opened after
    /// [`ReceiverStep::Welcomed`].
    ///
    /// # Errors
    /// Fails if the sender's bytes are no frames, and passes on the errors of `sink`.
    pub fn receive_message(
        &mut self,
        now: Duration,
        bytes: &[u8],
        sink: Option<&mut dyn UnitSink>,
    ) -> Result<ReceiverStep, Error> {
        let message = match Message::decode(bytes) {
            Ok((session, message)) if session == self.id => message,
            Err(WireFault::Version(version)) if decode_session(bytes) == Some(self.id) => {
                let text = format!(
                    "it speaks version {version} of the protocol, this build speaks version {PROTOCOL_VERSION}"
                );
                return Ok(ReceiverStep::Refused(Refusal { reason: RefusalReason::Version, text }));
            }
            _ => {
                self.figures.dropped_messages += 1;
                return Ok(ReceiverStep::Nothing);
            }
        };
        self.last_heard = now;
        match (message, self.receiver_state) {
            (Message::Finish, ReceiverState::Leaving { .. }) => {
                self.receiver_state = ReceiverState::Ended;
                Ok(ReceiverStep::Nothing)
            }
            (_, ReceiverState::Leaving { .. } | ReceiverState::Ended) => Ok(ReceiverStep::Nothing),
            (Message::Refuse(refusal), _) => Ok(ReceiverStep::Refused(refusal)),
            (Message::Welcome(welcome), ReceiverState::Asking) => Ok(ReceiverStep::Welcomed(welcome)),
            (Message::Finish, ReceiverState::Following) => Ok(ReceiverStep::Finished),
            (Message::Data(data), ReceiverState::Following) => {
                if let Some(sink) = sink {
                    self.receive_data(&data, sink)?;
                }
                Ok(ReceiverStep::Nothing)
            }
            (Message::Raw(raw), ReceiverState::Following) => {
                if let Some(sink) = sink {
                    self.receive_raw(&raw, sink)?;
                }
                Ok(ReceiverStep::Nothing)
            }
            (Message::Announce(announce), ReceiverState::Following) => {
                let sent_end = (announce.end, announce.offset);
                // A late one says less than is known.
                if self.announced_end.is_none_or(|latest| (latest.end, latest.offset) <= sent_end) {
                    self.announced_end = Some(announce);
                    let (end, raw_bytes) =
                        sink.map_or((Position(0), 0), |sink| (sink.end_position(), sink.raw_bytes()));
                    let has_all =
                        sent_end <= (end, self.unit_bytes.len() as u64) && announce.raw_bytes <= raw_bytes;
                    if has_all {
                        self.missing_since = None;
                    } else {
                        self.missing_since.get_or_insert(now);
                    }
                }
                Ok(ReceiverStep::Nothing)
            }
            _ => {
                self.figures.dropped_messages += 1;
                Ok(ReceiverStep::Nothing)
            }
        }
    }

    /// Acknowledges what the tape has, if that is due.
    ///
    /// # Errors
    /// Passes on the errors of `send`.
    pub fn poll(
        &mut self,
        now: Duration,
        held_tape: HeldTape,
        send: &mut dyn FnMut(&[u8]) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let is_leaving = match self.receiver_state {
            ReceiverState::Following => false,
            ReceiverState::Leaving { since } if now.saturating_sub(since) >= self.options.leave_wait => {
                self.receiver_state = ReceiverState::Ended;
                return Ok(false);
            }
            ReceiverState::Leaving { .. } => true,
            ReceiverState::Asking | ReceiverState::Ended => return Ok(false),
        };
        let HeldTape { committed, durable, raw_bytes } = held_tape;
        let pending = self.unit_bytes.len() as u64;
        let acknowledge = Acknowledge { committed, durable, pending, raw_bytes, is_leaving };
        let is_due = self.last_acknowledge.is_none_or(|(sent, last)| {
            let waited = now.saturating_sub(sent);
            let is_much = self.received_bytes >= self.options.window_bytes / 4;
            let is_news = last != acknowledge && (is_much || waited >= self.options.acknowledge_interval);
            is_news || waited >= self.options.alive_interval
        });
        if !is_due {
            return Ok(false);
        }
        Message::Acknowledge(acknowledge).encode(self.id, &mut self.scratch);
        let is_sent = send(&self.scratch)?;
        if is_sent {
            self.last_acknowledge = Some((now, acknowledge));
            self.received_bytes = 0;
        }
        Ok(is_sent)
    }

    fn receive_raw(&mut self, raw: &Raw<'_>, sink: &mut dyn UnitSink) -> Result<(), Error> {
        match raw.offset.cmp(&sink.raw_bytes()) {
            Ordering::Less => self.figures.dropped_messages += 1,
            Ordering::Greater => self.ask(),
            Ordering::Equal => {
                self.missing_since = None;
                self.received_bytes += raw.bytes.len() as u64;
                sink.append_raw(raw.bytes)?;
            }
        }
        Ok(())
    }

    fn receive_data(&mut self, data: &Data<'_>, sink: &mut dyn UnitSink) -> Result<(), Error> {
        let expected = (sink.end_position(), self.unit_bytes.len() as u64);
        if (data.position, data.offset) < expected {
            self.figures.dropped_messages += 1;
            return Ok(());
        }
        if (data.position, data.offset) > expected || data.raw_bytes > sink.raw_bytes() {
            self.ask();
            return Ok(());
        }
        self.missing_since = None;
        self.received_bytes += data.frames.len() as u64;
        self.unit_bytes.extend_from_slice(data.frames);
        let mut unit_start = 0;
        while let Some(header) = self.next_frame(sink.end_position())? {
            self.scanned += header.len_bytes();
            if header.is_last() {
                sink.append(&self.unit_bytes[unit_start..self.scanned])?;
                unit_start = self.scanned;
            }
        }
        self.unit_bytes.drain(..unit_start);
        self.scanned -= unit_start;
        if self.unit_bytes.len() as u64 > UNIT_BYTES_MAX {
            return Err(Error::LargeUnit { position: sink.end_position(), limit: UNIT_BYTES_MAX });
        }
        Ok(())
    }

    /// Returns the header of the next frame in `pending` that is whole.
    fn next_frame(&self, position: Position) -> Result<Option<FrameHeader>, Error> {
        let unscanned_bytes = &self.unit_bytes[self.scanned..];
        if unscanned_bytes.len() < LINE {
            return Ok(None);
        }
        let header = FrameHeader::read(unscanned_bytes);
        if header.lines() == 0 || header.kind() <= KIND_PAD || header.stamp() != 0 {
            return Err(Error::BadFrames { position, reason: format!("no frame begins with {header}") });
        }
        Ok((header.len_bytes() <= unscanned_bytes.len()).then_some(header))
    }
}
