//! Messages of the private channel of a data server, from any bytes and as JSON: a message or an error. A message is written as it
//! was read, and the index of an answer is refused or read as far as it goes.

use std::io;

use unitape_client::wire::{ClientMessage, ServerMessage, read_message, write_message};
use unitape_model::EventRow;
use unitape_store::{AnswerReader, BlockFetch, ScanFilter, TickSchema};

pub fn run(bytes: &[u8]) {
    let framed = [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat();
    for channel in [bytes, &framed] {
        if let Ok(Some(message)) = read_message::<ClientMessage>(&mut &*channel, BYTES_MAX) {
            let written = text_of(&message);
            let again = read_message::<ClientMessage>(&mut &*written, usize::MAX).expect("what was written");
            assert_eq!(text_of(&again.expect("a message")), written);
            if let ClientMessage::Query(query) = message {
                _ = query.filter();
            }
        }
        if let Ok(Some(message)) = read_message::<ServerMessage>(&mut &*channel, BYTES_MAX) {
            let written = text_of(&message);
            let again = read_message::<ServerMessage>(&mut &*written, usize::MAX).expect("what was written");
            assert_eq!(text_of(&again.expect("a message")), written);
            if let ServerMessage::Answer(answer) = message
                && let Ok(reader) = AnswerReader::new(answer.index, "fuzz")
            {
                read(reader);
            }
        }
    }
}

fn text_of(message: &impl serde::Serialize) -> Vec<u8> {
    let mut written = Vec::new();
    write_message(&mut written, message).expect("a vector takes it");
    written
}

fn read(mut reader: AnswerReader) {
    reader.set_fetch(Box::new(EmptyBlocks { sizes: reader.block_sizes().to_vec() }));
    for schema in TickSchema::ALL {
        let Ok(mut rows) = reader.rows(schema, &ScanFilter::default()) else { continue };
        while let Some(EventRow { event, .. }) = rows.next() {
            assert_eq!(TickSchema::for_kind(event.kind()), Some(schema));
        }
    }
    if let Ok(mut scan) = reader.scan(&ScanFilter::default()) {
        while scan.next().is_some() {}
    }
}

/// Blocks that no key opens.
#[derive(Debug)]
struct EmptyBlocks {
    sizes: Vec<u32>,
}

impl BlockFetch for EmptyBlocks {
    fn fetch_block(&mut self, index: u32, out: &mut Vec<u8>) -> io::Result<()> {
        let bytes = self.sizes[index as usize] as usize;
        if bytes > BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        out.resize(out.len() + bytes, 0);
        Ok(())
    }
}

const BYTES_MAX: usize = 1 << 16;
