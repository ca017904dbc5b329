//! The receiver of a tape: asks a sender, and writes what comes into a directory.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use unitape_model::Position;
use unitape_tape::{Reader, StartPosition, SyncPolicy, TapeManifest, Writer, WriterOptions, writer_pid};

use crate::error::Error;
use crate::fingerprint::TapeFingerprint;
use crate::raw_log::RawCopy;
use crate::session::{HeldTape, ReceiverFigures, ReceiverSession, ReceiverStep, SessionOptions, UnitSink};
use crate::transport::Transport;
use crate::wire::{HELLO_HEAD_BYTES, Hello, HelloTape, SessionId, Welcome};

/// How a receiver works.
#[derive(Clone, Debug)]
pub struct ReceiverOptions {
    /// Limits and times.
    pub session: SessionOptions,
    /// End when the sender's tape has no writer and all of it is durable here.
    pub once: bool,
    /// When the tape becomes durable.
    pub sync: SyncPolicy,
    /// A number that no other receiver of the sender has: a random one.
    pub receiver: u64,
}

impl ReceiverOptions {
    /// Returns the usual options for the receiver with this random number.
    pub fn new(receiver: u64) -> Self {
        let sync = SyncPolicy::Every { bytes: 64 << 20, interval: Duration::from_millis(200) };
        Self { session: SessionOptions::default(), once: false, sync, receiver }
    }
}

/// An event of a receiver, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiverEvent {
    /// The sender has accepted.
    Following {
        /// The end of the receiver's tape.
        position: Position,
        /// The end of the sender's tape.
        end: Position,
    },
    /// The sender is silent, or a part is missing. The receiver asks again.
    Asking,
    /// The sender has ended.
    SenderFinished,
}

/// The receiver of a tape.
#[derive(Debug)]
pub struct TapeReceiver<T> {
    tape_dir: PathBuf,
    sender: SocketAddr,
    options: ReceiverOptions,
    transport: T,
    session: ReceiverSession,
    writer: Option<TapeWriter>,
    /// The hello of the present session, which is the same each time that it is sent.
    hello: Option<(SessionId, Hello)>,
    was_following: bool,
    /// Why the sender has ended the session, until the receiver has left.
    refusal_error: Option<Error>,
    events: Vec<ReceiverEvent>,
    inbox: Vec<Vec<u8>>,
}

/// The writer of the receiver's tape.
#[derive(Debug)]
struct TapeWriter {
    writer: Writer,
    raw_copy: RawCopy,
}

impl UnitSink for TapeWriter {
    fn end_position(&self) -> Position {
        self.writer.end()
    }

    fn append(&mut self, unit: &[u8]) -> Result<(), Error> {
        self.raw_copy.make_durable()?;
        self.writer.append(unit)?;
        Ok(())
    }

    fn raw_bytes(&self) -> u64 {
        self.raw_copy.state().bytes
    }

    fn append_raw(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.raw_copy.append_bytes(bytes)
    }
}

/// How long a receiver waits until the end of the tape is durable.
const DURABLE_WAIT: Duration = Duration::from_secs(60);

impl<T: Transport> TapeReceiver<T> {
    /// Makes a receiver that writes the tape of `sender` into `dir`. Nothing is changed there before the sender has accepted.
    ///
    /// # Errors
    /// Fails if the directory holds a tape that cannot be read or has a writer.
    pub fn open(
        dir: &Path,
        sender: SocketAddr,
        transport: T,
        options: ReceiverOptions,
    ) -> Result<Self, Error> {
        if let Some(holder) = writer_pid(dir) {
            return Err(unitape_tape::Error::Locked { path: dir.join("run/writer.lock"), holder }.into());
        }
        let mut receiver = Self {
            tape_dir: dir.to_owned(),
            sender,
            session: ReceiverSession::new(options.receiver, options.session.clone()),
            options,
            transport,
            writer: None,
            hello: None,
            was_following: false,
            refusal_error: None,
            events: Vec::new(),
            inbox: Vec::new(),
        };
        // A damaged tape is reported now, also if no sender answers.
        receiver.hello = Some((receiver.session.id(), receiver.make_hello()?));
        Ok(receiver)
    }

    /// Returns the counts.
    pub fn figures(&self) -> ReceiverFigures {
        self.session.figures()
    }

    /// Returns the end of the tape, once it is open.
    pub fn end(&self) -> Option<Position> {
        self.writer.as_ref().map(|tape| tape.writer.end())
    }

    /// Takes the events since the last call.
    pub fn take_events(&mut self) -> Vec<ReceiverEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns whether the receiver has nothing more to do: it has left, see [`ReceiverOptions::once`] and [`TapeReceiver::leave`].
    pub fn is_done(&self) -> bool {
        self.session.is_ended() && self.refusal_error.is_none()
    }

    /// Ends the session in order; [`TapeReceiver::poll`] does the rest.
    pub fn leave(&mut self, now: Duration) {
        self.session.leave(now);
    }

    /// Closes the tape, if it was opened. A receiver that is dropped instead leaves it as after a kill.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn close(self) -> Result<(), Error> {
        match self.writer {
            Some(TapeWriter { writer, .. }) => Ok(writer.close()?),
            None => Ok(()),
        }
    }

    /// Does what is to be done now, and returns whether that was anything. `now` is a time that never goes back.
    ///
    /// # Errors
    /// [`Error::Refused`] if the sender refuses. Fails if the tape cannot be written, or if the transport fails.
    pub fn poll(&mut self, now: Duration) -> Result<bool, Error> {
        let mut inbox = std::mem::take(&mut self.inbox);
        let count = self.transport.receive(&mut |message| inbox.push(message.to_vec()))?;
        let handled = inbox.drain(..).try_for_each(|message| self.handle_message(now, &message));
        self.inbox = inbox;
        handled?;
        let mut has_worked = count > 0;
        if self.session.is_hello_due(now) {
            has_worked |= self.send_hello(now)?;
        }
        if self.was_following && self.session.is_asking() {
            self.events.push(ReceiverEvent::Asking);
        }
        self.was_following = self.session.is_following();
        has_worked |= self.send_ack(now)?;
        match self.refusal_error.take_if(|_| self.session.is_ended()) {
            Some(error) => Err(error),
            None => Ok(has_worked),
        }
    }

    fn handle_message(&mut self, now: Duration, message: &[u8]) -> Result<(), Error> {
        let sink = self.writer.as_mut().map(|writer| writer as &mut dyn UnitSink);
        match self.session.receive_message(now, message, sink)? {
            ReceiverStep::Nothing => {}
            ReceiverStep::Welcomed(welcome) => self.open_tape(now, &welcome)?,
            ReceiverStep::Refused(refusal) => {
                // The sender may end now, and waits until this is read.
                self.refusal_error.get_or_insert(Error::Refused { sender: self.sender, refusal });
                self.session.leave_refused(now);
            }
            ReceiverStep::Finished => {
                self.events.push(ReceiverEvent::SenderFinished);
                self.session.ask();
                self.was_following = false;
            }
        }
        Ok(())
    }

    /// Opens the tape, after the sender has accepted.
    fn open_tape(&mut self, now: Duration, welcome: &Welcome) -> Result<(), Error> {
        if let Some(TapeWriter { writer, .. }) = &self.writer
            && writer.meta().id != welcome.tape
        {
            let (offered, held_tape) = (welcome.tape, writer.meta().id);
            return Err(Error::OtherOffer { sender: self.sender, offered, held_tape });
        }
        if self.writer.is_none() {
            let options = WriterOptions {
                segment_bytes: welcome.segment_bytes,
                sync_policy: self.options.sync,
                ..WriterOptions::default()
            };
            let (writer, _) = Writer::open(&self.tape_dir, welcome.tape, options)?;
            self.writer = Some(TapeWriter { writer, raw_copy: RawCopy::open(&self.tape_dir)? });
        }
        let tape_end = self.end().expect("opened above");
        self.session.begin_following(now, tape_end);
        if self.session.is_following() {
            self.was_following = true;
            self.events.push(ReceiverEvent::Following { position: tape_end, end: welcome.end });
        }
        Ok(())
    }

    fn send_hello(&mut self, now: Duration) -> Result<bool, Error> {
        let id = self.session.id();
        if self.hello.as_ref().is_none_or(|(hello_session, _)| *hello_session != id) {
            self.hello = Some((id, self.make_hello()?));
        }
        let (_, hello) = self.hello.as_ref().expect("made above");
        let (transport, sender) = (&mut self.transport, self.sender);
        self.session.send_hello(now, hello, &mut |message| transport.send(sender, message))
    }

    fn make_hello(&self) -> Result<Hello, Error> {
        let manifest = match TapeManifest::load(&self.tape_dir) {
            Ok(manifest) => Some(manifest),
            Err(unitape_tape::Error::NotATape { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let tape = match manifest {
            None => None,
            Some(TapeManifest { id, segment_bytes }) => {
                let position = match self.end() {
                    Some(end) => end,
                    None => Reader::open(&self.tape_dir, StartPosition::End)?.position(),
                };
                let segments_max = (self.transport.message_bytes_max() - HELLO_HEAD_BYTES) / 4;
                let fingerprint = TapeFingerprint::read(&self.tape_dir, position, segments_max)?;
                let raw = match &self.writer {
                    Some(tape) => tape.raw_copy.state(),
                    None => RawCopy::open(&self.tape_dir)?.state(),
                };
                Some(HelloTape { id, segment_bytes, position, fingerprint, raw })
            }
        };
        Ok(Hello { reply_to: self.transport.address(), tape })
    }

    /// Acknowledges what the tape has, and leaves when all is done.
    fn send_ack(&mut self, now: Duration) -> Result<bool, Error> {
        let (transport, sender) = (&mut self.transport, self.sender);
        let mut send = |message: &[u8]| transport.send(sender, message);
        let Some(TapeWriter { writer, raw_copy: raw }) = &self.writer else {
            return self.session.poll(now, HeldTape::default(), &mut send);
        };
        let (end, mut durable) = (writer.end(), writer.durable());
        if self.session.is_complete(end, end) && self.session.is_following() {
            if durable < end {
                writer.wait_durable(end, DURABLE_WAIT)?;
                durable = writer.durable();
            }
            if self.options.once {
                self.session.leave(now);
            }
        }
        let held_tape = HeldTape { committed: end, durable, raw_bytes: raw.state().bytes };
        self.session.poll(now, held_tape, &mut send)
    }
}
