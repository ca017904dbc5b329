//! A source that is being read: plain or compressed, whole or growing, a stream or a capture.
//!
//! ```text
//!  file ─▶ as far as it may be read ─▶ gz, zst or as it is ─▶ bytes ─▶ cut at whole messages or records ─▶ block
//! ```

use crate::block::Block;
use crate::error::Error;
use crate::formats::capture::LOST_BYTES;
use crate::formats::format::Format;
use crate::formats::fragments::FragmentScan;
use crate::formats::stamp::NO_TIME;
use crate::sources::journal::ReceiveTimeReader;
use crate::sources::source::{PendingSource, is_stdin};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::UNIX_EPOCH;
use unitape_base::capture::{CaptureWalker, NextCaptureRecord, is_capture};
use unitape_model::UnixNanos;

/// An open source.
pub struct SourceReader {
    /// Index of the source within its feed.
    pub index: usize,
    /// The file.
    pub path: PathBuf,
    reader: UnpackingReader,
    limits: Arc<ReadLimits>,
    /// Offset of the next byte to read, the carried ones not counted.
    offset: u64,
    /// The bytes before this offset are on the tape.
    from: u64,
    /// End of the last block.
    block_end: u64,
    /// Bytes after the last cut.
    carry: Vec<u8>,
    packaging: SourcePackaging,
    receive_times: Option<ReceiveTimeReader>,
}

/// The packaging of messages in the bytes.
enum SourcePackaging {
    /// The first bytes decide.
    Unknown,
    /// One after the other.
    Stream,
    /// In the packets of a capture. The walker is at the first carried byte.
    Capture(Box<CaptureWalker>),
}

/// The bound up to which a file may be read now. Shared with the [`TailReader`] within a decoder; both are one
/// thread's at a time, so all accesses are Relaxed.
#[derive(Debug)]
struct ReadLimits {
    /// Its end is its end: nothing will be added.
    is_complete: AtomicBool,
    /// Up to this byte, where something else says how far; `u64::MAX` otherwise.
    end_limit: AtomicU64,
    /// Bytes read so far.
    bytes_read: AtomicU64,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            is_complete: AtomicBool::default(),
            end_limit: AtomicU64::new(u64::MAX),
            bytes_read: AtomicU64::default(),
        }
    }
}

impl ReadLimits {
    fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Relaxed)
    }

    fn set_complete(&self, complete: bool) {
        self.is_complete.store(complete, Ordering::Relaxed);
    }

    fn end_offset(&self) -> u64 {
        self.end_limit.load(Ordering::Relaxed)
    }

    fn set_upto(&self, upto: u64) {
        self.end_limit.store(upto, Ordering::Relaxed);
    }

    fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    fn set_read(&self, read: u64) {
        self.bytes_read.store(read, Ordering::Relaxed);
    }
}

enum UnpackingReader {
    Plain(TailReader),
    Gz(Box<MultiGzDecoder<BufReader<TailReader>>>),
    Zst(Box<zstd::Decoder<'static, BufReader<TailReader>>>),
    Stdin(std::io::Stdin),
}

/// The content that a block was filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockFill {
    /// The number of new bytes.
    Some(usize),
    /// There is nothing to fill it with now.
    Nothing,
}

/// A message that spans more bytes than this without a cut is passed on as it arrives; the decoder decides on it.
const UNCUT_BYTES_MAX: usize = 16 << 20;

/// A file, read as far as its limits allow: at the end of a growing file there is no data *now*.
struct TailReader {
    source_file: File,
    limits: Arc<ReadLimits>,
    /// The bytes read last, if others write the file while it is read.
    last_bytes: Option<LastBytes>,
}

/// The last bytes that were read of a file. Its length alone does not show that a file was cut and rewritten beyond
/// the part that was read.
#[derive(Default)]
struct LastBytes {
    bytes: Vec<u8>,
    /// Nothing more was there then.
    at_end: bool,
}

impl LastBytes {
    const MAX: usize = 256;

    /// Checks bytes that were read at `offset`; no bytes mean the end of the file.
    ///
    /// # Errors
    /// Fails if the file grew after its end and no longer has the bytes that were read before.
    fn check_read(&mut self, file: &File, offset: u64, read: &[u8]) -> std::io::Result<()> {
        if !read.is_empty() && self.at_end {
            let mut now = [0; Self::MAX];
            let now = &mut now[..self.bytes.len()];
            file.read_exact_at(now, offset - now.len() as u64)?;
            if *now != *self.bytes {
                let reason = "it was rewritten while it was read: the bytes before this place have changed";
                return Err(std::io::Error::new(ErrorKind::InvalidData, reason));
            }
        }
        self.at_end = read.is_empty();
        let kept_count = self.bytes.len().min(Self::MAX.saturating_sub(read.len()));
        self.bytes.drain(..self.bytes.len() - kept_count);
        self.bytes.extend_from_slice(&read[read.len().saturating_sub(Self::MAX)..]);
        Ok(())
    }
}

impl Read for TailReader {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let offset = self.limits.bytes_read();
        let room = self.limits.end_offset().saturating_sub(offset);
        let buf_len = buf.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        let n = if buf_len == 0 { 0 } else { self.source_file.read(&mut buf[..buf_len])? };
        if let Some(last_bytes) = &mut self.last_bytes {
            last_bytes.check_read(&self.source_file, offset, &buf[..n])?;
        }
        self.limits.set_read(offset + n as u64);
        if n == 0 && !buf.is_empty() && !self.limits.is_complete() {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(n)
    }
}

impl SourceReader {
    /// Opens a source at `pending.from`. With `grows`, its end is not yet known; `is_journal`: it is a stream of ours,
    /// with receive times beside it. `None` when it has too few bytes to recognise its format.
    ///
    /// # Errors
    /// Fails if the file cannot be opened, or differs from the tape's account of it.
    pub fn new(pending: PendingSource, grows: bool, is_journal: bool) -> Result<Option<Self>, Error> {
        let PendingSource { index, path, from, size, first } = pending;
        let fail = |source| Error::Read { path: path.clone(), offset: from, source };
        let limits = Arc::new(ReadLimits::default());
        limits.set_complete(!grows);
        if is_stdin(&path) {
            let reader = UnpackingReader::Stdin(std::io::stdin());
            return Ok(Some(Self::with_reader(index, path, reader, limits, from)));
        }
        let mut file = File::open(&path).map_err(fail)?;
        let mut magic = [0; 4];
        let meta = file.metadata().map_err(fail)?;
        let is_regular = meta.is_file();
        let magic_length = if is_regular { file.read_at(&mut magic, 0).map_err(fail)? } else { 0 };
        if grows && !is_journal && magic_length < 4 {
            return Ok(None);
        }
        let is_compressed = !is_journal && is_regular && (magic[..2] == GZ || magic == ZST);
        if let Some(first) = &first
            && !is_first_message(&path, first).map_err(fail)?
        {
            let file = path.display().to_string();
            let difference = "it does not begin with the message that it began with".to_owned();
            return Err(Error::SourceReplaced { file, difference });
        }
        if grows && !is_compressed && meta.len() < from {
            let difference = format!("{} bytes, but {from} were read of it before", meta.len());
            return Err(Error::SourceReplaced { file: path.display().to_string(), difference });
        }
        let is_capture_file = !is_journal && is_regular && is_capture(&magic[..magic_length]);
        // A pipe cannot seek, and starts at its start; what is compressed or a capture is understood from there.
        let read_offset = if is_compressed || is_capture_file || !is_regular { 0 } else { from };
        if read_offset > 0 {
            file.seek(SeekFrom::Start(read_offset)).map_err(fail)?;
        }
        limits.set_read(read_offset);
        if !is_compressed {
            limits.set_upto(size.unwrap_or(u64::MAX));
        }
        let last_bytes = (grows && !is_journal).then(LastBytes::default);
        let tail = TailReader { source_file: file, limits: limits.clone(), last_bytes };
        let reader = match is_compressed {
            false => UnpackingReader::Plain(tail),
            true if magic == ZST => UnpackingReader::Zst(Box::new(zstd::Decoder::new(tail).map_err(fail)?)),
            true => UnpackingReader::Gz(Box::new(MultiGzDecoder::new(BufReader::new(tail)))),
        };
        let times = if is_journal { Some(ReceiveTimeReader::open(&path, from)?) } else { None };
        let mut this = Self::with_reader(index, path, reader, limits, from);
        this.offset = read_offset;
        if is_journal || (read_offset > 0 && !is_capture_file) {
            this.packaging = SourcePackaging::Stream;
        }
        this.receive_times = times;
        Ok(Some(this))
    }

    fn with_reader(
        index: usize,
        path: PathBuf,
        reader: UnpackingReader,
        limits: Arc<ReadLimits>,
        from: u64,
    ) -> Self {
        let packaging = SourcePackaging::Unknown;
        Self {
            index,
            path,
            reader,
            limits,
            offset: from,
            from,
            block_end: from,
            carry: Vec::new(),
            packaging,
            receive_times: None,
        }
    }

    /// Converts the source so that it can be opened again after the last block.
    pub fn into_pending(self) -> PendingSource {
        let size =
            Some(self.limits.end_offset()).filter(|upto| self.receive_times.is_none() && *upto != u64::MAX);
        PendingSource { index: self.index, path: self.path, from: self.block_end, size, first: None }
    }

    /// Returns when the file was last written: its content arrived at that time or before.
    pub fn modified(&self) -> Option<UnixNanos> {
        let file = self.file()?;
        let since = file.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        i64::try_from(since.as_nanos()).ok().map(UnixNanos)
    }

    fn file(&self) -> Option<&File> {
        match &self.reader {
            UnpackingReader::Plain(t) => Some(&t.source_file),
            UnpackingReader::Gz(d) => Some(&d.get_ref().get_ref().source_file),
            UnpackingReader::Zst(d) => Some(&d.get_ref().get_ref().source_file),
            UnpackingReader::Stdin(_) => None,
        }
    }

    /// Notes that the source will get no more data.
    pub fn mark_complete(&mut self) {
        self.limits.set_complete(true);
    }

    /// Returns how many bytes of the file were read.
    pub fn read_bytes(&self) -> u64 {
        self.limits.bytes_read()
    }

    /// Fails if the file was replaced or is shorter than the part that was read.
    ///
    /// # Errors
    /// Fails if the file was replaced or is shorter than the part that was read.
    pub fn check_unchanged(&self) -> Result<(), Error> {
        let Some(file) = self.file() else { return Ok(()) };
        let replaced =
            |difference: String| Error::SourceReplaced { file: self.path.display().to_string(), difference };
        let fail = |source| Error::Read { path: self.path.clone(), offset: self.offset, source };
        let own_metadata = file.metadata().map_err(fail)?;
        if own_metadata.len() < self.limits.bytes_read() {
            let (have, read) = (own_metadata.len(), self.limits.bytes_read());
            return Err(replaced(format!("it was cut to {have} bytes when {read} had been read")));
        }
        match std::fs::metadata(&self.path) {
            Ok(path_metadata)
                if (path_metadata.dev(), path_metadata.ino()) != (own_metadata.dev(), own_metadata.ino()) =>
            {
                Err(replaced("another file has taken its name".to_owned()))
            }
            Ok(_) => Ok(()),
            Err(e) if e.kind() == ErrorKind::NotFound => {
                Err(replaced("it was removed before its end".to_owned()))
            }
            Err(e) => Err(fail(e)),
        }
    }

    /// Fills `block` with whole messages, as far as that can be guessed, of about `want` bytes.
    ///
    /// # Errors
    /// Fails if the source cannot be read.
    pub fn fill(&mut self, block: &mut Block, want: usize, format: &Format) -> Result<BlockFill, Error> {
        block.source = self.index;
        block.bytes.clear();
        block.bytes.append(&mut self.carry);
        block.times.clear();
        block.walker = None;
        block.received_last = None;
        let mut new_bytes = 0;
        let mut want_now = want;
        loop {
            let known_end = self.offset.max(self.from);
            let read_outcome = self.read_more(&mut block.bytes, want_now)?;
            let (n, end) = match read_outcome {
                ReadOutcome::Bytes(n) => (n, false),
                ReadOutcome::Nothing => (0, false),
                ReadOutcome::End => (0, true),
            };
            new_bytes += self.offset.saturating_sub(known_end) as usize;
            block.base = self.offset - block.bytes.len() as u64;
            if n == 0 && !end {
                self.carry.append(&mut block.bytes);
                return Ok(BlockFill::Nothing);
            }
            self.detect_packaging(&block.bytes, end);
            self.skip_known(&mut block.bytes, end);
            block.base = self.offset - block.bytes.len() as u64;
            block.eof = end;
            // If all available bytes have been read, a guess would leave the last message for later. The decoder
            // reports how far it reads. The rest is decoded with the next block, which is short then too.
            let reads_all = end || (self.is_live() && n < want_now && !self.is_capture());
            let cut = if reads_all { block.bytes.len() } else { self.cut_offset(&block.bytes, format) };
            if cut > 0 || end {
                self.finish_block(block, cut);
                return Ok(BlockFill::Some(new_bytes));
            }
            if self.is_live() {
                // The available bytes make no whole message: the rest will come.
                want_now = want;
            } else {
                want_now = block.bytes.len().max(want);
            }
        }
    }

    fn is_capture(&self) -> bool {
        // Records say themselves where they end.
        !matches!(self.packaging, SourcePackaging::Stream)
    }

    fn is_live(&self) -> bool {
        !self.limits.is_complete()
    }

    /// Takes over the bytes after the cut, and the facts of its bytes that the block needs.
    fn finish_block(&mut self, block: &mut Block, cut: usize) {
        self.carry.extend_from_slice(&block.bytes[cut..]);
        block.bytes.truncate(cut);
        self.block_end = block.base + cut as u64;
        if let SourcePackaging::Capture(walker) = &mut self.packaging {
            block.walker = Some((**walker).clone());
            let mut offset = 0;
            while offset < cut {
                offset = match walker.next(&block.bytes, offset) {
                    NextCaptureRecord::Packet(p) => {
                        block.received_last = p.ts_ns.map(UnixNanos).or(block.received_last);
                        p.end
                    }
                    NextCaptureRecord::Skip { end } | NextCaptureRecord::Dropped { end, .. } => end,
                    NextCaptureRecord::More | NextCaptureRecord::Lost { .. } => break,
                };
            }
        }
        if let Some(times) = &mut self.receive_times {
            times.set_block_times(block.base + cut as u64, &mut block.times);
            block.received_last = block.times.last().map(|(_, ts)| *ts).filter(|ts| *ts != NO_TIME);
        }
    }

    /// Returns the offset at which to cut; 0 if there is no whole message or record.
    fn cut_offset(&self, bytes: &[u8], format: &Format) -> usize {
        let cut = match &self.packaging {
            SourcePackaging::Unknown => 0,
            SourcePackaging::Stream => format.cut_offset(bytes),
            SourcePackaging::Capture(walker) => capture_cut((**walker).clone(), bytes),
        };
        if cut == 0 && bytes.len() > UNCUT_BYTES_MAX { bytes.len() } else { cut }
    }

    fn detect_packaging(&mut self, bytes: &[u8], end: bool) {
        if matches!(self.packaging, SourcePackaging::Unknown) && (bytes.len() >= 4 || end) {
            self.packaging = match is_capture(bytes) {
                true => SourcePackaging::Capture(Box::default()),
                false => SourcePackaging::Stream,
            };
        }
    }

    /// Takes away what lies before the place to begin at.
    fn skip_known(&mut self, bytes: &mut Vec<u8>, end: bool) {
        let base = self.offset - bytes.len() as u64;
        if base >= self.from {
            return;
        }
        let known_bytes = usize::try_from(self.from - base).unwrap_or(usize::MAX).min(bytes.len());
        let skipped_bytes = match &mut self.packaging {
            SourcePackaging::Capture(walker) => capture_end(walker, bytes, known_bytes),
            SourcePackaging::Stream => known_bytes,
            SourcePackaging::Unknown if end => known_bytes,
            SourcePackaging::Unknown => 0,
        };
        bytes.drain(..skipped_bytes);
    }

    /// Reads `want` more bytes, or the available bytes of a growing file.
    fn read_more(&mut self, bytes: &mut Vec<u8>, want: usize) -> Result<ReadOutcome, Error> {
        if let Some(times) = &mut self.receive_times {
            let (upto, ended) = times.poll()?;
            self.limits.set_upto(upto);
            self.limits.set_complete(ended);
        }
        let old_length = bytes.len();
        while bytes.len() - old_length < want {
            let (start, left) = (bytes.len(), (want - (bytes.len() - old_length)) as u64);
            let read_result = match &mut self.reader {
                UnpackingReader::Plain(r) => r.take(left).read_to_end(bytes),
                UnpackingReader::Gz(r) => r.take(left).read_to_end(bytes),
                UnpackingReader::Zst(r) => r.take(left).read_to_end(bytes),
                // One read: a terminal or pipe gives what is there.
                UnpackingReader::Stdin(r) => match stdin_is_readable() {
                    true => read_once(r, bytes, left),
                    false => Err(ErrorKind::WouldBlock.into()),
                },
            };
            // The bytes before an error are there all the same.
            self.offset += (bytes.len() - start) as u64;
            match read_result {
                Ok(0) => {
                    let upto = self.limits.end_offset();
                    if self.receive_times.is_none() && upto != u64::MAX && self.offset < upto {
                        let reason = "became shorter while it was read";
                        return self.read_error(std::io::Error::new(ErrorKind::UnexpectedEof, reason));
                    }
                    let n = bytes.len() - old_length;
                    // The end is reported on its own, so that a cut is looked for in the bytes before it.
                    return Ok(if n > 0 { ReadOutcome::Bytes(n) } else { ReadOutcome::End });
                }
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    let n = bytes.len() - old_length;
                    return Ok(if n > 0 { ReadOutcome::Bytes(n) } else { ReadOutcome::Nothing });
                }
                Err(source) => return self.read_error(unpack_error(source)),
            }
        }
        Ok(ReadOutcome::Bytes(bytes.len() - old_length))
    }

    fn read_error<T>(&self, source: std::io::Error) -> Result<T, Error> {
        Err(Error::Read { path: self.path.clone(), offset: self.offset, source })
    }
}

enum ReadOutcome {
    Bytes(usize),
    Nothing,
    End,
}

fn read_once(reader: &mut impl Read, bytes: &mut Vec<u8>, most: u64) -> std::io::Result<usize> {
    let old_length = bytes.len();
    bytes.resize(old_length + usize::try_from(most).unwrap_or(READ_BYTES).min(READ_BYTES), 0);
    let read_result = reader.read(&mut bytes[old_length..]);
    bytes.truncate(old_length + *read_result.as_ref().unwrap_or(&0));
    read_result
}

/// Returns the end of the whole records of a capture, or the start of the first datagram that waits for fragments there.
fn capture_cut(mut walker: CaptureWalker, bytes: &[u8]) -> usize {
    let mut fragments = FragmentScan::default();
    let mut offset = 0;
    while offset < bytes.len() {
        offset = match walker.next(bytes, offset) {
            NextCaptureRecord::Packet(packet) => {
                fragments.add_record(bytes, offset, &packet);
                packet.end
            }
            NextCaptureRecord::Skip { end } | NextCaptureRecord::Dropped { end, .. }
                if end <= bytes.len() =>
            {
                end
            }
            NextCaptureRecord::Lost { .. } if offset + LOST_BYTES <= bytes.len() => offset + LOST_BYTES,
            _ => break,
        };
    }
    fragments.cut_offset(offset)
}

/// Leads the walker through whole records that end at or before `upto`; returns where it is. Behind damage the bytes
/// are read in pieces of fixed size.
fn capture_end(walker: &mut CaptureWalker, bytes: &[u8], upto: usize) -> usize {
    let mut offset = 0;
    while offset < bytes.len() {
        let mut next_walker = walker.clone();
        let packet_end = match next_walker.next(bytes, offset) {
            NextCaptureRecord::Packet(p) => p.end,
            NextCaptureRecord::Skip { end } | NextCaptureRecord::Dropped { end, .. } => end,
            NextCaptureRecord::More => break,
            NextCaptureRecord::Lost { .. } => offset + LOST_BYTES,
        };
        if packet_end > upto.min(bytes.len()) {
            break;
        }
        *walker = next_walker;
        offset = packet_end;
    }
    offset
}

/// Opens a file and reads its unpacked content from the start.
///
/// # Errors
/// Fails if the file cannot be read.
pub fn unpack(file: File) -> std::io::Result<Box<dyn Read>> {
    let mut magic = [0; 4];
    let magic_length = file.read_at(&mut magic, 0)?;
    Ok(match magic {
        _ if !is_packed(&magic[..magic_length]) => Box::new(file),
        ZST => Box::new(zstd::Decoder::new(file)?),
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(BufReader::new(file))),
        _ => Box::new(file),
    })
}

/// Returns whether a file with these first four bytes is compressed.
pub fn is_packed(magic: &[u8]) -> bool {
    magic.len() >= 4 && (magic.starts_with(&GZ) || magic.starts_with(&ZST))
}

/// A hash with this prefix identifies a source by its first message.
pub const FIRST: &str = "first:";

/// Identifies a source whose end is not known when it begins: the place and hash of its first message.
pub fn first_message_hash(offset: u64, message: &[u8]) -> String {
    format!("{FIRST}{offset}+{}:{}", message.len(), &blake3::hash(message).to_hex()[..32])
}

/// Returns whether the source's first message is the message that `first` identifies.
///
/// # Errors
/// Fails if the file cannot be read.
pub fn is_first_message(path: &Path, first: &str) -> std::io::Result<bool> {
    let Some((offset, length)) = first
        .strip_prefix("first:")
        .and_then(|f| f.split(':').next())
        .and_then(|f| f.split_once('+'))
        .and_then(|(offset, length)| Some((offset.parse::<u64>().ok()?, length.parse::<u64>().ok()?)))
    else {
        return Ok(true);
    };
    let mut reader = unpack(File::open(path)?)?;
    let mut message = Vec::new();
    std::io::copy(&mut (&mut reader).take(offset), &mut std::io::sink())?;
    reader.take(length).read_to_end(&mut message)?;
    Ok(first_message_hash(offset, &message) == first)
}

fn read_magic(file: &mut File) -> std::io::Result<[u8; 4]> {
    let mut magic = [0; 4];
    file.read_exact_at(&mut magic, 0)?;
    Ok(magic)
}

/// Reads the first bytes of a file, unpacked.
///
/// # Errors
/// Fails if the file cannot be read.
pub fn first_bytes(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut out = Vec::new();
    match read_magic(&mut file).unwrap_or_default() {
        ZST => _ = zstd::Decoder::new(file)?.take(most).read_to_end(&mut out)?,
        [0x1f, 0x8b, ..] => _ = MultiGzDecoder::new(BufReader::new(file)).take(most).read_to_end(&mut out)?,
        _ => _ = file.take(most).read_to_end(&mut out)?,
    }
    Ok(out)
}

/// Waits a little for stdin: a run that is to be stopped must not hang in a read.
fn stdin_is_readable() -> bool {
    let stdin = std::io::stdin();
    let mut fds = [rustix::event::PollFd::new(&stdin, rustix::event::PollFlags::IN)];
    let wait = rustix::event::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    // A descriptor without support for waiting is read; the caller handles an interruption.
    match rustix::event::poll(&mut fds, Some(&wait)) {
        Ok(n) => n > 0,
        Err(e) => e != rustix::io::Errno::INTR,
    }
}

const GZ: [u8; 2] = [0x1f, 0x8b];
const ZST: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Bytes that one read of stdin asks for, at most.
const READ_BYTES: usize = 64 << 10;

/// Converts a decompressor's error to a fault of the content, whatever its kind.
fn unpack_error(error: std::io::Error) -> std::io::Error {
    match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::Other if error.raw_os_error().is_none() => {
            std::io::Error::new(ErrorKind::InvalidData, format!("cannot be unpacked: {error}"))
        }
        _ => error,
    }
}
