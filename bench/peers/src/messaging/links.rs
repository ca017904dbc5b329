//! The links that are built without anything heavy: the raw control, ours, and TCP.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use unitape_bench_side::{Case, Link, MESSAGE_BYTES, Seen, TEMPLATE, Task, Words};
use unitape_model::{Header, LINE, flags};
use unitape_tape::{Backing, Backoff, Options, Reader, Start, TapeId, Writer};

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

/// Ours: a hot tape each way with its recorder running, a message in a frame of two lines.
struct Tape {
    task: Task,
    writer: Option<Writer>,
    reader: Option<Reader>,
    unit: [u8; 2 * LINE],
    /// For the reader of a stream: the threads that make its pages and record it share its core.
    backoff: Option<Backoff>,
}

impl Tape {
    fn open(task: &Task) -> Result<Self, String> {
        let mut unit = [0; 2 * LINE];
        Header::unstamped(20, flags::LAST, 2).write(&mut unit);
        unit[8..8 + MESSAGE_BYTES].copy_from_slice(&TEMPLATE);
        let backoff = (task.case == Case::OneWay && !task.first).then(Backoff::default);
        let mut tape = Self { task: task.clone(), writer: None, reader: None, unit, backoff };
        let name = if task.first { "there" } else { "back" };
        if task.first || task.case == Case::RoundTrip {
            let backing = Backing::Hot { dir: None, window_segments: 64 };
            let options = Options { backing, ..Options::default() };
            let id = TapeId(1 + u128::from(!task.first));
            let (writer, _) = Writer::open(&task.dir.join(name), id, options).map_err(|e| e.to_string())?;
            tape.writer = Some(writer);
        }
        if !task.first {
            tape.reader = Some(tape.reader_of("there")?);
        }
        Ok(tape)
    }

    fn reader_of(&self, name: &str) -> Result<Reader, String> {
        Reader::open(&self.task.dir.join(name), Start::Oldest).map_err(|e| e.to_string())
    }
}

impl Link for Tape {
    fn connect(&mut self) -> Result<(), String> {
        if self.task.first && self.task.case == Case::RoundTrip {
            self.reader = Some(self.reader_of("back")?);
        }
        Ok(())
    }

    #[inline]
    fn send(&mut self, number: u64) -> Result<(), String> {
        let Some(writer) = &mut self.writer else { return Err("nothing to write to".to_owned()) };
        self.unit[8..16].copy_from_slice(&number.to_le_bytes());
        writer.append(&self.unit).map(|_| ()).map_err(|e| e.to_string())
    }

    #[inline]
    fn poll(&mut self, seen: &mut Seen) -> Result<bool, String> {
        let Some(reader) = &mut self.reader else { return Err("nothing to read from".to_owned()) };
        let Some(frame) = reader.next().map_err(|e| e.to_string())? else { return Ok(false) };
        seen.take(&frame.bytes[8..8 + MESSAGE_BYTES]);
        if let Some(backoff) = &mut self.backoff {
            backoff.reset();
        }
        Ok(true)
    }

    #[inline]
    fn idle(&mut self) -> Result<(), String> {
        match &mut self.backoff {
            Some(backoff) => _ = backoff.step(),
            None => std::hint::spin_loop(),
        }
        Ok(())
    }

    fn close(mut self) -> Result<(), String> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let end = writer.end();
        writer.close().map_err(|e| e.to_string())?;
        // What was recorded is what was sent: the tape is read again from its directory.
        let mut reader = self.reader_of(if self.task.first { "there" } else { "back" })?;
        let (mut seen, mut expected) = (Seen::default(), 0);
        while let Some(frame) = reader.next().map_err(|e| e.to_string())? {
            seen.take(&frame.bytes[8..8 + MESSAGE_BYTES]);
            expected += frame.bytes.len() as u64;
        }
        let all = self.task.warm + self.task.count;
        if seen.count == all && expected == end.0 && seen.sum() == unitape_bench_side::expected_sum(all, true)
        {
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
    message: [u8; MESSAGE_BYTES],
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
        let (message, buffer) = (TEMPLATE, vec![0; 64 << 10]);
        Ok(Self { task: task.clone(), listener, stream: None, message, buffer, filled: 0 })
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
        self.message[..8].copy_from_slice(&number.to_le_bytes());
        let mut rest = &self.message[..];
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
