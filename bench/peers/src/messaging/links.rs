//! The links that are built without anything heavy: the raw control, ours, and TCP.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;
use unitape_bench_side::{Case, Link, MESSAGE_BYTES, Messages, Seen, Task, Words, expected_sum};
use unitape_tape::{
    Backing, Frame, HelperThreadAffinity, Publication, StartPosition, Subscription, WriterOptions,
};

/// Runs one process of `subject`.
pub fn side(subject: &str, arguments: &[String]) -> Result<(), String> {
    match subject {
        "raw" => unitape_bench_side::main(arguments, Raw::open),
        "unitape" => unitape_bench_side::main(arguments, Tape::open),
        "tcp" => unitape_bench_side::main(arguments, Tcp::open),
        _ => Err(format!("{subject} has no process in this program")),
    }
}

/// A `u64` there and back: the control to all others.
struct Raw {
    words: Words,
    send: usize,
    next: u64,
}

impl Raw {
    fn open(task: &Task) -> Result<Self, String> {
        let send = if task.first { 2 } else { 3 };
        Ok(Self { words: Words::open(&task.shared)?, send, next: 0 })
    }
}

impl Link for Raw {
    #[inline]
    fn send(&mut self, number: u64) -> Result<(), String> {
        self.words.set(self.send, number + 1);
        Ok(())
    }

    #[inline]
    fn poll(&mut self, seen: &mut Seen) -> Result<bool, String> {
        let value = self.words.get(5 - self.send);
        if value == self.next {
            return Ok(false);
        }
        seen.take_number(value - 1);
        self.next = value;
        Ok(true)
    }
}

/// Ours: a hot tape each way with its recorder running; a message takes a frame of two lines.
struct Tape {
    task: Task,
    publication: Option<Publication>,
    subscription: Option<Subscription>,
    messages: Messages,
}

const TOPIC: u32 = 1;

/// As many as the peers take at once.
const FRAMES_A_POLL: usize = 256;

impl Tape {
    fn open(task: &Task) -> Result<Self, String> {
        let messages = Messages::new();
        let mut tape = Self { task: task.clone(), publication: None, subscription: None, messages };
        if task.first || task.case == Case::RoundTrip {
            let backing = Backing::Hot { dir: None, window_segments: 16 };
            // Without a core to spare, helpers wait until those who are measured are done; a burst fits into one segment.
            let helpers = HelperThreadAffinity { nice: Some(19), ..HelperThreadAffinity::default() };
            let options =
                WriterOptions { backing, helpers, segment_bytes: 256 << 20, ..WriterOptions::default() };
            let publication = Publication::open(&tape.dir(task.first), options).map_err(|e| e.to_string())?;
            tape.publication = Some(publication);
        }
        if !task.first {
            tape.subscription = Some(tape.subscribe(true)?);
        }
        Ok(tape)
    }

    /// Of the tape that the first process writes, or the second.
    fn dir(&self, first: bool) -> PathBuf {
        self.task.dir.join(if first { "there" } else { "back" })
    }

    fn subscribe(&self, first: bool) -> Result<Subscription, String> {
        Subscription::open(&self.dir(first), StartPosition::Oldest).map_err(|e| e.to_string())
    }
}

impl Link for Tape {
    fn connect(&mut self) -> Result<(), String> {
        if self.task.first && self.task.case == Case::RoundTrip {
            self.subscription = Some(self.subscribe(false)?);
        }
        Ok(())
    }

    #[inline]
    fn send(&mut self, number: u64) -> Result<(), String> {
        let Some(publication) = &mut self.publication else { return Err("no publication".to_owned()) };
        publication.offer(TOPIC, self.messages.next(number)).map(|_| ()).map_err(|e| e.to_string())
    }

    #[inline]
    fn poll(&mut self, seen: &mut Seen) -> Result<bool, String> {
        let Some(subscription) = &mut self.subscription else { return Err("no subscription".to_owned()) };
        // What is no message is missing in the sums.
        let take =
            |frame: Frame<'_>| frame.message().into_iter().for_each(|message| seen.take(message.bytes));
        // Who answers does not look for a second message first.
        let limit = if self.task.case == Case::OneWay { FRAMES_A_POLL } else { 1 };
        subscription.poll(limit, take).map(|frames| frames > 0).map_err(|e| e.to_string())
    }

    #[inline]
    fn idle(&mut self) -> Result<(), String> {
        match &mut self.subscription {
            // As readers of a stream do.
            Some(subscription) if self.task.case == Case::OneWay => {
                subscription.wait(Duration::from_micros(200)).map(|_| ()).map_err(|e| e.to_string())
            }
            _ => {
                std::hint::spin_loop();
                Ok(())
            }
        }
    }

    fn close(mut self) -> Result<(), String> {
        let Some(publication) = self.publication.take() else { return Ok(()) };
        publication.close().map_err(|e| e.to_string())?;
        // What was recorded is what was sent: the tape is read again from its directory.
        let mut recorded = self.subscribe(self.task.first)?;
        let mut seen = Seen::default();
        while let Some(frame) = recorded.next().map_err(|e| e.to_string())? {
            frame.message().into_iter().for_each(|message| seen.take(message.bytes));
        }
        let all = self.task.warm + self.task.count;
        if seen.count == all && seen.sum() == expected_sum(all, true) {
            return Ok(());
        }
        Err(format!("the recorded tape has {} messages of {all}, or other ones", seen.count))
    }
}

/// TCP over the loopback, without delay, both ends spinning.
struct Tcp {
    task: Task,
    listener: Option<TcpListener>,
    stream: Option<TcpStream>,
    messages: Messages,
    buffer: Vec<u8>,
    filled: usize,
}

impl Tcp {
    fn open(task: &Task) -> Result<Self, String> {
        let mut listener = None;
        if !task.first {
            let bound = TcpListener::bind(("127.0.0.1", 0)).map_err(|e| format!("listen: {e}"))?;
            let port = bound.local_addr().map_err(|e| format!("listen: {e}"))?.port();
            std::fs::write(task.dir.join("port"), port.to_string()).map_err(|e| format!("port: {e}"))?;
            listener = Some(bound);
        }
        let (messages, buffer) = (Messages::new(), vec![0; 64 << 10]);
        Ok(Self { task: task.clone(), listener, stream: None, messages, buffer, filled: 0 })
    }
}

impl Link for Tcp {
    fn connect(&mut self) -> Result<(), String> {
        let stream = match self.listener.take() {
            Some(listener) => listener.accept().map_err(|e| format!("accept: {e}"))?.0,
            None => {
                let port =
                    std::fs::read_to_string(self.task.dir.join("port")).map_err(|e| format!("port: {e}"))?;
                let port = port.parse::<u16>().map_err(|e| format!("port: {e}"))?;
                TcpStream::connect(("127.0.0.1", port)).map_err(|e| format!("connect: {e}"))?
            }
        };
        stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)).map_err(|e| e.to_string())?;
        self.stream = Some(stream);
        Ok(())
    }

    fn send(&mut self, number: u64) -> Result<(), String> {
        let Some(stream) = &mut self.stream else { return Err("not connected".to_owned()) };
        let mut rest = &self.messages.next(number)[..];
        while !rest.is_empty() {
            match stream.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(e) if e.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
                Err(e) => return Err(format!("write: {e}")),
            }
        }
        Ok(())
    }

    fn poll(&mut self, seen: &mut Seen) -> Result<bool, String> {
        let Some(stream) = &mut self.stream else { return Err("not connected".to_owned()) };
        match stream.read(&mut self.buffer[self.filled..]) {
            Ok(0) => return Err("the other side has hung up".to_owned()),
            Ok(read) => self.filled += read,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(e) => return Err(format!("read: {e}")),
        }
        let whole = self.filled - self.filled % MESSAGE_BYTES;
        self.buffer[..whole].chunks_exact(MESSAGE_BYTES).for_each(|message| seen.take(message));
        self.buffer.copy_within(whole..self.filled, 0);
        self.filled -= whole;
        Ok(whole > 0)
    }
}
