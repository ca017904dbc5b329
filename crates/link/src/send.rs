//! The sender of a tape: serves the receivers that ask, each from a reader of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use unitape_model::{ErrorCause, Position};
use unitape_tape::{Reader, StartPosition, TapeManifest, oldest_position, writer_pid};

use crate::error::Error;
use crate::fingerprint::{Comparison, compare};
use crate::raw_log::RawSource;
use crate::session::{SenderSession, SessionOptions};
use crate::transport::Transport;
use crate::wire::{
    Acknowledge, DATA_HEAD_BYTES, Hello, Message, Refusal, RefusalReason, SessionId, Welcome, WireFault,
    decode_foreign_hello,
};

/// How a sender serves.
#[derive(Clone, Debug, Default)]
pub struct SenderOptions {
    /// Limits and times.
    pub session: SessionOptions,
    /// End when the tape has no writer and a receiver has all of it durable.
    pub once: bool,
}

/// What a sender has done since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderFigures {
    /// Sessions that were begun.
    pub sessions: u64,
    /// Hellos that were refused.
    pub refused: u64,
    /// Receivers that had all of the closed tape durable.
    pub completed: u64,
    /// Bytes of frames that were read for receivers.
    pub read_bytes: u64,
    /// Messages that were dropped: of strangers, damaged, or of an older session.
    pub dropped_messages: u64,
    /// Receivers that were forgotten because of their silence.
    pub silent: u64,
}

/// An event of a sender, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SenderEvent {
    /// A receiver was accepted.
    Accepted {
        /// Its address.
        receiver: SocketAddr,
        /// The end of its tape.
        position: Position,
    },
    /// A receiver was refused.
    Refused {
        /// Its address.
        receiver: SocketAddr,
        /// The reason.
        refusal: Refusal,
    },
    /// A receiver has all of the closed tape, durable.
    Completed {
        /// Its address.
        receiver: SocketAddr,
        /// The end of the tape.
        position: Position,
    },
    /// A receiver has left, or was silent for too long.
    Lost {
        /// Its address.
        receiver: SocketAddr,
    },
}

/// The sender of a tape.
#[derive(Debug)]
pub struct TapeSender<T> {
    tape_dir: PathBuf,
    manifest: TapeManifest,
    raw_source: RawSource,
    options: SenderOptions,
    transport: T,
    peers: Vec<Peer>,
    replies: Vec<Reply>,
    figures: SenderFigures,
    events: Vec<SenderEvent>,
    /// Whether the tape had a writer when it was looked for last, and when that was.
    has_writer: bool,
    writer_looked_for: Option<Duration>,
    last_completed: Option<Duration>,
    inbox: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Peer {
    session: SenderSession,
    reader: Reader,
    /// Where `session` began, for a hello that comes twice.
    hello: Hello,
    /// The tape was cut back, so the session cannot continue.
    is_lost: bool,
}

/// A message outside a session, until the transport takes it.
#[derive(Debug)]
struct Reply {
    id: SessionId,
    receiver: SocketAddr,
    /// The receiver has not said that it has read it, as it does with a refusal.
    is_unread: bool,
    message: Vec<u8>,
    is_sent: bool,
    /// When the address is forgotten.
    forget_at: Duration,
}

/// Receivers that a sender serves at once.
pub const RECEIVERS_MAX: usize = 16;

/// Refusals that wait for the transport.
const REPLIES_MAX: usize = 32;

/// How long a reply is kept, and its address.
const REPLY_LIFE: Duration = Duration::from_secs(10);

/// Time between two looks whether the tape has a writer.
const WRITER_LOOK: Duration = Duration::from_millis(20);

/// Bytes that are read at once; at least one frame.
const READ_BYTES: usize = 256 << 10;

impl<T: Transport> TapeSender<T> {
    /// Makes the sender of the tape in `dir`.
    ///
    /// # Errors
    /// Fails if there is no tape that can be read.
    pub fn open(dir: &Path, transport: T, options: SenderOptions) -> Result<Self, Error> {
        let manifest = TapeManifest::load(dir)?;
        oldest_position(dir)?;
        let mut options = options;
        let room = transport.message_bytes_max() - DATA_HEAD_BYTES;
        options.session.data_bytes =
            options.session.data_bytes.min(room) / unitape_model::LINE * unitape_model::LINE;
        Ok(Self {
            tape_dir: dir.to_owned(),
            manifest,
            raw_source: RawSource::new(dir),
            options,
            transport,
            peers: Vec::new(),
            replies: Vec::new(),
            figures: SenderFigures::default(),
            events: Vec::new(),
            has_writer: true,
            writer_looked_for: None,
            last_completed: None,
            inbox: Vec::new(),
        })
    }

    /// Returns the counts.
    pub fn figures(&self) -> SenderFigures {
        self.figures
    }

    /// Takes the events since the last call.
    pub fn take_events(&mut self) -> Vec<SenderEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns whether the sender has nothing more to do, see [`SenderOptions::once`].
    pub fn is_done(&self, now: Duration) -> bool {
        // The last message to the receiver is given time to leave this host.
        let is_over = |since| now.saturating_sub(since) >= FINISH_LINGER;
        self.options.once && self.peers.is_empty() && self.last_completed.is_some_and(is_over)
    }

    /// Does what is to be done now, and returns whether that was anything. `now` is a time that never goes back.
    ///
    /// # Errors
    /// Fails if the tape is damaged or cannot be read, or if the transport fails. [`TapeSender::poll_failed`] then tells the receivers.
    pub fn poll(&mut self, now: Duration) -> Result<bool, Error> {
        let mut inbox = std::mem::take(&mut self.inbox);
        let count = self.transport.receive(&mut |message| inbox.push(message.to_vec()))?;
        let handled = inbox.drain(..).try_for_each(|message| self.handle_message(now, &message));
        self.inbox = inbox;
        handled?;
        self.look_for_writer(now);
        let mut has_worked = count > 0;
        for index in (0..self.peers.len()).rev() {
            match self.serve(now, index) {
                Ok(worked) => has_worked |= worked,
                Err(error) => {
                    self.tell_failure(now, &error);
                    return Err(error);
                }
            }
        }
        self.remove_peers(now);
        has_worked |= self.send_replies(now)?;
        Ok(has_worked)
    }

    /// Tells the receivers why the sender ends, after [`TapeSender::poll`] has failed. Returns whether all of them have left.
    ///
    /// # Errors
    /// Fails if the transport fails.
    pub fn poll_failed(&mut self, now: Duration) -> Result<bool, Error> {
        let mut inbox = std::mem::take(&mut self.inbox);
        self.transport.receive(&mut |message| inbox.push(message.to_vec()))?;
        for message in inbox.drain(..) {
            if let Ok((id, Message::Acknowledge(acknowledge))) = Message::decode(&message) {
                self.handle_acknowledge(now, id, acknowledge);
            }
        }
        self.inbox = inbox;
        self.send_replies(now)?;
        Ok(self.replies.iter().all(|reply| reply.is_sent && !reply.is_unread))
    }

    fn handle_message(&mut self, now: Duration, bytes: &[u8]) -> Result<(), Error> {
        match Message::decode(bytes) {
            Ok((session, Message::Hello(hello))) => self.handle_hello(now, session, hello),
            Ok((session, Message::Acknowledge(acknowledge))) => {
                self.handle_acknowledge(now, session, acknowledge);
                Ok(())
            }
            Err(WireFault::Version(version)) => {
                match decode_foreign_hello(bytes).filter(|(_, reply_to)| reply_to.ip().is_loopback()) {
                    Some((session, reply_to)) => {
                        let text = format!(
                            "the receiver speaks version {version} of the protocol, the sender version {}",
                            crate::wire::PROTOCOL_VERSION
                        );
                        self.refuse_receiver(
                            now,
                            session,
                            reply_to,
                            Refusal { reason: RefusalReason::Version, text },
                        );
                    }
                    None => self.figures.dropped_messages += 1,
                }
                Ok(())
            }
            _ => {
                self.figures.dropped_messages += 1;
                Ok(())
            }
        }
    }

    fn handle_acknowledge(&mut self, now: Duration, id: SessionId, acknowledge: Acknowledge) {
        if let Some(index) = self.peers.iter().position(|peer| peer.session.id() == id) {
            self.peers[index].session.acknowledge(now, acknowledge);
            if acknowledge.is_leaving {
                self.end_session(now, index);
            }
        } else if let Some(receiver) =
            self.replies.iter().find(|reply| reply.id == id).map(|reply| reply.receiver)
            && acknowledge.is_leaving
        {
            // It has read why it was refused, or did not get the answer before.
            self.send_reply(now, id, receiver, &Message::Finish);
        } else {
            self.figures.dropped_messages += 1;
        }
    }

    fn handle_hello(&mut self, now: Duration, id: SessionId, hello: Hello) -> Result<(), Error> {
        let reply_to = hello.reply_to;
        // Nobody is made to send to another host by a datagram.
        if !reply_to.ip().is_loopback() || reply_to.port() == 0 {
            self.figures.dropped_messages += 1;
            return Ok(());
        }
        let peer_index = self.peers.iter().position(|peer| peer.session.id().receiver == id.receiver);
        if let Some(index) = peer_index {
            let peer = &self.peers[index];
            let is_late = id.number < peer.session.id().number;
            let is_confirmed = id == peer.session.id() && peer.session.last_acknowledge().is_some();
            if is_late || is_confirmed || id == peer.session.id() && peer.hello != hello {
                self.figures.dropped_messages += 1;
                return Ok(());
            }
        }
        // The receiver asks again, or another one has its address now.
        self.peers
            .retain(|peer| peer.session.id().receiver != id.receiver && peer.session.reply_to() != reply_to);
        let answer = match self.peers.len() < RECEIVERS_MAX {
            true => self.answer_hello(&hello),
            false => {
                let text = format!("the sender already serves {RECEIVERS_MAX} receivers");
                Ok(Some(Err(Refusal { reason: RefusalReason::Busy, text })))
            }
        };
        match answer {
            Ok(Some(Ok((reader, welcome)))) => {
                let session = SenderSession::new(id, &hello, welcome, self.options.session.clone(), now);
                self.figures.sessions += 1;
                self.events.push(SenderEvent::Accepted { receiver: reply_to, position: welcome.position });
                self.peers.push(Peer { session, reader, hello, is_lost: false });
                Ok(())
            }
            Ok(Some(Err(refusal))) => {
                self.refuse_receiver(now, id, reply_to, refusal);
                Ok(())
            }
            // The receiver asks again.
            Ok(None) => Ok(()),
            Err(error) => {
                self.tell_failure(now, &error);
                self.refuse_receiver(now, id, reply_to, failure_refusal(&error));
                Err(error)
            }
        }
    }

    /// Returns a reader at the position of a hello, or why the receiver is refused. `None` if this is not known yet.
    #[allow(clippy::type_complexity)] // a reader, a refusal, or nothing yet
    fn answer_hello(&self, hello: &Hello) -> Result<Option<Result<(Reader, Welcome), Refusal>>, Error> {
        let mut different_raw = None;
        let tape_end = Reader::open(&self.tape_dir, StartPosition::End)?.position();
        let oldest = oldest_position(&self.tape_dir)?;
        if let Some(theirs) = &hello.tape
            && !self.raw_source.begins_with(theirs.raw)?
        {
            let text = format!(
                "the sender's quarantine.raw does not begin with the {} bytes that the receiver has; begin a new copy, or copy the \
                 file by hand",
                theirs.raw.bytes
            );
            different_raw = Some(Refusal { reason: RefusalReason::OtherBytes, text });
        }
        let position = match &hello.tape {
            None if oldest > Position(0) => {
                let text = format!(
                    "the sender's tape begins at position {oldest}: retention has removed what is before, and a receiver \
                     without a tape begins at position 0"
                );
                return Ok(Some(Err(Refusal { reason: RefusalReason::Retained, text })));
            }
            None => Position(0),
            Some(theirs) => match compare(&self.tape_dir, self.manifest, tape_end, theirs)? {
                Comparison::Same => theirs.position,
                Comparison::NotYet if self.has_writer => return Ok(None),
                Comparison::NotYet => {
                    let text = "checksums of the sender's tape are missing; run `unitape tape verify` there"
                        .to_owned();
                    return Ok(Some(Err(Refusal { reason: RefusalReason::Damage, text })));
                }
                Comparison::Different(reason, text) => return Ok(Some(Err(Refusal { reason, text }))),
            },
        };
        // The tape itself comes first: what differs there says more.
        if let Some(refusal) = different_raw {
            return Ok(Some(Err(refusal)));
        }
        let reader = Reader::open(&self.tape_dir, StartPosition::At(position))?;
        let TapeManifest { id, segment_bytes } = self.manifest;
        Ok(Some(Ok((reader, Welcome { tape: id, segment_bytes, position, end: tape_end }))))
    }

    /// Reads and sends for a receiver.
    fn serve(&mut self, now: Duration, index: usize) -> Result<bool, Error> {
        let Self { peers, transport, figures, has_writer, raw_source: raw, .. } = self;
        let peer = &mut peers[index];
        let reply_to = peer.session.reply_to();
        let mut has_worked = false;
        if peer.session.has_room() {
            match peer.reader.next_run(READ_BYTES) {
                Ok(Some(frames)) => {
                    figures.read_bytes += frames.bytes.len() as u64;
                    peer.session.set_closed(false);
                    let raw_needed = raw.needed(frames.position, frames.bytes)?;
                    peer.session.push(frames.position, frames.bytes, raw_needed)?;
                    has_worked = true;
                }
                Ok(None) => peer.session.set_closed(!*has_writer),
                // One receiver that was overtaken ends no other.
                Err(error @ unitape_tape::Error::Retained { .. }) => {
                    let refusal = Refusal { reason: RefusalReason::Retained, text: error.to_string() };
                    let id = peer.session.id();
                    peers.remove(index);
                    self.refuse_receiver(now, id, reply_to, refusal);
                    return Ok(true);
                }
                // The receiver notices the silence, asks again, and its position is compared with the new end.
                Err(unitape_tape::Error::Rewound { .. }) => {
                    peer.is_lost = true;
                    return Ok(true);
                }
                Err(error) => return Err(error.into()),
            }
        }
        if let Some((offset, bytes)) = peer.session.missing_raw() {
            peer.session.push_raw(raw.read_bytes(offset, bytes)?);
        }
        has_worked |= peer.session.poll(now, &mut |message| transport.send(reply_to, message))?;
        Ok(has_worked)
    }

    /// Looks whether the tape has a writer. A reader that finds nothing more after that is at the end of a closed tape.
    fn look_for_writer(&mut self, now: Duration) {
        let is_due = |looked| now.saturating_sub(looked) >= WRITER_LOOK;
        if self.writer_looked_for.is_none_or(is_due) {
            self.has_writer = writer_pid(&self.tape_dir).is_some();
            self.writer_looked_for = Some(now);
        }
    }

    /// Removes receivers that are done, and those that have been silent for too long.
    fn remove_peers(&mut self, now: Duration) {
        for index in (0..self.peers.len()).rev() {
            let peer = &self.peers[index];
            let receiver = peer.session.reply_to();
            if self.options.once && peer.session.is_complete() {
                self.end_session(now, index);
            } else if peer.is_lost || peer.session.is_silent(now) {
                self.figures.silent += 1;
                self.events.push(SenderEvent::Lost { receiver });
                self.remove_peer(index);
            }
        }
    }

    /// Ends the session of a receiver that leaves or is complete.
    fn end_session(&mut self, now: Duration, index: usize) {
        let session = &self.peers[index].session;
        let (id, receiver) = (session.id(), session.reply_to());
        match session.last_acknowledge().filter(|_| session.is_complete()) {
            Some(acknowledge) => {
                self.figures.completed += 1;
                self.last_completed = Some(now);
                self.events.push(SenderEvent::Completed { receiver, position: acknowledge.committed });
            }
            None => self.events.push(SenderEvent::Lost { receiver }),
        }
        self.peers.remove(index);
        self.send_reply(now, id, receiver, &Message::Finish);
    }

    fn remove_peer(&mut self, index: usize) {
        let address = self.peers.remove(index).session.reply_to();
        self.transport.forget(address);
    }

    /// Refuses all receivers, because the tape cannot be read.
    fn tell_failure(&mut self, now: Duration, error: &Error) {
        for peer in std::mem::take(&mut self.peers) {
            let (id, to) = (peer.session.id(), peer.session.reply_to());
            self.send_reply(now, id, to, &Message::Refuse(failure_refusal(error)));
        }
    }

    fn refuse_receiver(&mut self, now: Duration, id: SessionId, receiver: SocketAddr, refusal: Refusal) {
        let is_known = self.replies.iter().any(|reply| reply.receiver == receiver);
        if !is_known {
            self.figures.refused += 1;
            self.events.push(SenderEvent::Refused { receiver, refusal: refusal.clone() });
        }
        self.send_reply(now, id, receiver, &Message::Refuse(refusal));
    }

    fn send_reply(&mut self, now: Duration, id: SessionId, to: SocketAddr, message: &Message<'_>) {
        let mut bytes = Vec::new();
        message.encode(id, &mut bytes);
        self.replies.retain(|reply| reply.receiver != to);
        if self.replies.len() < REPLIES_MAX {
            let is_unread = matches!(message, Message::Refuse(_));
            let forget_at = now + REPLY_LIFE;
            self.replies.push(Reply {
                id,
                receiver: to,
                is_unread,
                message: bytes,
                is_sent: false,
                forget_at,
            });
        }
    }

    fn send_replies(&mut self, now: Duration) -> Result<bool, Error> {
        let mut has_sent = false;
        for reply in self.replies.iter_mut().filter(|reply| !reply.is_sent) {
            reply.is_sent = self.transport.send(reply.receiver, &reply.message)?;
            has_sent |= reply.is_sent;
        }
        let (peers, transport) = (&self.peers, &mut self.transport);
        self.replies.retain(|reply| {
            let is_kept = now < reply.forget_at;
            if !is_kept && peers.iter().all(|peer| peer.session.reply_to() != reply.receiver) {
                transport.forget(reply.receiver);
            }
            is_kept
        });
        Ok(has_sent)
    }
}

/// How long a sender that is done waits, so that its last message reaches the receiver.
const FINISH_LINGER: Duration = Duration::from_millis(300);

fn failure_refusal(error: &Error) -> Refusal {
    let reason = match error {
        Error::Tape(source) if matches!(**source, unitape_tape::Error::Retained { .. }) => {
            RefusalReason::Retained
        }
        _ if error.cause() == ErrorCause::Data => RefusalReason::Damage,
        _ => RefusalReason::Failed,
    };
    Refusal { reason, text: error.to_string() }
}
