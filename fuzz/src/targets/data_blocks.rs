//! The data channel of an answer. Its first byte chooses between any bytes, and the blocks that were asked for with one byte changed:
//! a block is the one that was sent, or it is refused.

use std::io::{self, Read, Write};

use unitape_client::SentBlockReader;
use unitape_client::wire::{BlockHead, BlockRequest, UNREADABLE};
use unitape_store::BlockFetch;

pub fn run(data: &[u8]) {
    let [choice, count, change, xor, rest @ ..] = data else { return };
    let (sizes, rest) = rest.split_at((usize::from(*count) % 9).min(rest.len()));
    if sizes.is_empty() {
        return;
    }
    let sizes: Vec<u32> = sizes.iter().map(|size| u32::from(*size)).collect();
    let mut channel = Channel { sizes: sizes.clone(), incoming: Vec::new(), next: 0, change: None };
    let is_made = choice % 2 == 1;
    if is_made {
        channel.change = Some((usize::from(*change), *xor));
    } else {
        channel.incoming = rest.to_vec();
    }
    let mut reader = SentBlockReader::open(channel, &"5a".repeat(32), &sizes).expect("a ticket");
    for index in rest.iter().take(32).map(|byte| u32::from(*byte) % sizes.len() as u32) {
        let mut out = vec![1, 2, 3];
        match reader.fetch_block(index, &mut out) {
            Ok(()) => {
                assert_eq!((out.len() - 3, &out[..3]), (sizes[index as usize] as usize, &[1, 2, 3][..]));
                assert!(!is_made || out[3..] == block(index, sizes[index as usize]), "another block");
            }
            // Of one block alone.
            Err(e) if e.kind() == io::ErrorKind::InvalidData => assert_eq!(out.len(), 3),
            Err(_) => return assert!(!is_made || *xor != 0, "a good channel is refused"),
        }
    }
}

fn block(index: u32, bytes: u32) -> Vec<u8> {
    (0..bytes).map(|n| (n * 7 + index * 31) as u8).collect()
}

/// A server that sends what it has, or the blocks that are asked for.
#[derive(Debug)]
struct Channel {
    sizes: Vec<u32>,
    incoming: Vec<u8>,
    next: usize,
    /// The byte that is changed, and its change; `None` if nothing is made.
    change: Option<(usize, u8)>,
}

impl Read for Channel {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut left = &self.incoming[self.next..];
        let n = left.read(out)?;
        self.next += n;
        Ok(n)
    }
}

impl Write for Channel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some((position, xor)) = self.change else { return Ok(bytes.len()) };
        // What opens the channel is longer than a request.
        if let Ok(request) = <[u8; BlockRequest::BYTES]>::try_from(bytes) {
            let BlockRequest { first, count } = BlockRequest::decode(request);
            let start = self.incoming.len();
            for index in first..first + count {
                let block = block(index, self.sizes[index as usize]);
                let crc = crc32c::crc32c(&block);
                self.incoming.extend(BlockHead { index, bytes: block.len() as u32, crc }.encode());
                self.incoming.extend(block);
            }
            if (start..self.incoming.len()).contains(&position) {
                self.incoming[position] ^= xor;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const _: () = assert!(UNREADABLE > 255, "no block of this target has that length");
