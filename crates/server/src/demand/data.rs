//! The data channel: sealed blocks for who has a ticket.

use super::connections::Connection;
use super::{DataServer, IDLE_MAX, LOGIN_MAX};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::SystemTime;
use unitape_client::wire::{BlockHead, BlockRequest, DATA_MAGIC, REFUSED, UNREADABLE};
use unitape_model::ErrorCause;
use unitape_store::SealedBlock;

use super::tickets::Ticket;

/// Serves a data channel until it ends. Without a good ticket nothing is said.
pub(super) fn serve(demand: &DataServer, connection: Connection) {
    let number = connection.number;
    // Who left, or who never had a ticket, is no trouble of the server.
    _ = answer_connection(demand, connection);
    demand.channels.forget_connection(number);
}

fn answer_connection(demand: &DataServer, mut connection: Connection) -> io::Result<()> {
    let stream = &mut connection.stream;
    stream.set_read_timeout(Some(LOGIN_MAX))?;
    let mut opening = [0; DATA_MAGIC.len() + 32];
    stream.read_exact(&mut opening)?;
    let (magic, ticket) = opening.split_at(DATA_MAGIC.len());
    if magic != DATA_MAGIC {
        return Ok(());
    }
    let Some(ticket) = demand.tickets.take_ticket(ticket.try_into().expect("32 bytes")) else {
        return Ok(());
    };
    demand.channels.mark_known(connection.number);
    stream.set_read_timeout(Some(IDLE_MAX))?;
    let (mut reader, mut out) = (BlockFileReader::default(), Vec::new());
    loop {
        let mut request = [0; BlockRequest::BYTES];
        stream.read_exact(&mut request)?;
        let BlockRequest { first, count } = BlockRequest::decode(request);
        let Some(wanted) =
            first.checked_add(count).and_then(|end| ticket.blocks.get(first as usize..end as usize))
        else {
            return Ok(());
        };
        for (index, block) in (first..).zip(wanted) {
            if !is_valid(&ticket) {
                return Ok(());
            }
            out.clear();
            out.resize(BlockHead::BYTES, 0);
            let head = match reader.read_block(&ticket.files[block.file as usize], block, &mut out) {
                Ok(()) => {
                    let crc = crc32c::crc32c(&out[BlockHead::BYTES..]);
                    BlockHead { index, bytes: block.bytes, crc }
                }
                Err(e) => {
                    let path = &ticket.files[block.file as usize];
                    demand.report_trouble(&format!("reading {}: {e}", path.display()));
                    out.truncate(BlockHead::BYTES);
                    let is_damage =
                        e.kind() == io::ErrorKind::NotFound || ErrorCause::from_io(&e) == ErrorCause::Data;
                    BlockHead { index, bytes: if is_damage { UNREADABLE } else { REFUSED }, crc: 0 }
                }
            };
            out[..BlockHead::BYTES].copy_from_slice(&head.encode());
            stream.write_all(&out)?;
        }
    }
}

/// Returns whether the session is there and the entitlement has not ended.
fn is_valid(ticket: &Ticket) -> bool {
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |t| t.as_nanos());
    ticket.is_alive.load(Ordering::Relaxed) && ticket.until.is_none_or(|until| (now() as i64) < until.0)
}

/// Reads blocks, mostly of one file after the other.
#[derive(Default)]
struct BlockFileReader {
    latest_file: Option<(PathBuf, File)>,
}

impl BlockFileReader {
    /// Appends the bytes of a block to `out`.
    fn read_block(&mut self, path: &Path, block: &SealedBlock, out: &mut Vec<u8>) -> io::Result<()> {
        if self.latest_file.as_ref().is_none_or(|(latest, _)| latest != path) {
            self.latest_file = Some((path.to_owned(), unitape_tape::open_regular(path)?));
        }
        let (_, file) = self.latest_file.as_ref().expect("just opened");
        let old_length = out.len();
        out.resize(old_length + block.bytes as usize, 0);
        file.read_exact_at(&mut out[old_length..], block.offset)
    }
}
