//! The data channel: sealed blocks of an answer, asked for ahead of their use.

use crate::connection::broken_answer;
use crate::wire::{BlockHead, BlockRequest, DATA_MAGIC, REFUSED, UNREADABLE};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufReader, Read, Write};
use unitape_store::BlockFetch;

/// Bytes of blocks that one request asks for, unless one block has more.
const REQUEST_BYTES: u64 = 10 << 20;
/// Bytes of blocks that are kept until they are asked for. Blocks beyond it are asked for a second time.
const KEPT_BYTES_MAX: u64 = 64 << 20;

/// Reads the blocks of an answer from its data channel.
#[derive(Debug)]
pub struct SentBlockReader<S> {
    channel: BufReader<S>,
    sizes: Vec<u32>,
    /// Blocks that came before they were asked for; `None` if the server cannot read one.
    early_blocks: BTreeMap<u32, Option<Vec<u8>>>,
    early_bytes: u64,
}

impl<S: Read + Write> SentBlockReader<S> {
    /// Opens the data channel of an answer with blocks of these sizes.
    ///
    /// # Errors
    /// Fails if the ticket is none, or if the connection breaks.
    pub fn open(stream: S, ticket: &str, sizes: &[u32]) -> io::Result<Self> {
        let ticket = parse_ticket(ticket)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the server's ticket is none"))?;
        let mut channel = BufReader::with_capacity(1 << 18, stream);
        channel.get_mut().write_all(&[&DATA_MAGIC[..], &ticket].concat())?;
        Ok(Self { channel, sizes: sizes.to_vec(), early_blocks: BTreeMap::new(), early_bytes: 0 })
    }

    /// Asks for a block and those behind it, and keeps them all.
    fn request_blocks(&mut self, first: u32) -> io::Result<()> {
        let (mut count, mut bytes) = (0, 0);
        for (index, size) in (first..).zip(&self.sizes[first as usize..]) {
            bytes += u64::from(*size);
            // One that is there already would come twice.
            if count > 0 && (bytes > REQUEST_BYTES || self.early_blocks.contains_key(&index)) {
                break;
            }
            count += 1;
        }
        while self.early_bytes + bytes > KEPT_BYTES_MAX {
            let Some((_, block)) = self.early_blocks.pop_first() else { break };
            self.early_bytes -= block.map_or(0, |block| block.len() as u64);
        }
        self.channel.get_mut().write_all(&BlockRequest { first, count }.encode())?;
        for index in first..first + count {
            let block = self.receive_block(index)?;
            self.early_bytes += block.as_ref().map_or(0, |block| block.len() as u64);
            self.early_blocks.insert(index, block);
        }
        Ok(())
    }

    fn receive_block(&mut self, index: u32) -> io::Result<Option<Vec<u8>>> {
        let mut head = [0; BlockHead::BYTES];
        self.channel.read_exact(&mut head)?;
        let head = BlockHead::decode(head);
        let fetch_error = |message: &str| Err(io::Error::other(message.to_owned()));
        if head.index != index {
            return fetch_error("the server sends another block than it was asked for");
        }
        match head.bytes {
            UNREADABLE => return Ok(None),
            REFUSED => {
                let reason = "the server's system refuses to read a block; the log of the server says why";
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, reason));
            }
            _ => {}
        }
        if head.bytes != self.sizes[index as usize] {
            return fetch_error("the server sends a block of another length than it said");
        }
        let mut block = vec![0; head.bytes as usize];
        self.channel.read_exact(&mut block)?;
        if crc32c::crc32c(&block) != head.crc {
            return fetch_error("a block was changed on its way");
        }
        Ok(Some(block))
    }
}

impl<S: Read + Write + fmt::Debug + Send> BlockFetch for SentBlockReader<S> {
    fn fetch_block(&mut self, index: u32, out: &mut Vec<u8>) -> io::Result<()> {
        if !self.early_blocks.contains_key(&index) {
            self.request_blocks(index).map_err(broken_answer)?;
        }
        let block = self.early_blocks.remove(&index).expect("it was just received");
        let unreadable = || io::Error::new(io::ErrorKind::InvalidData, "the server cannot read it");
        let block = block.ok_or_else(unreadable)?;
        self.early_bytes -= block.len() as u64;
        out.extend_from_slice(&block);
        Ok(())
    }
}

/// Reads a ticket: 64 hexadecimal digits.
fn parse_ticket(text: &str) -> Option<[u8; 32]> {
    let mut ticket = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, digits) in ticket.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(ticket)
}
