//! Messages of a link between tapes, from any bytes: a message or a fault. A message is written as it was read.

use unitape_link::wire::{Message, PROTOCOL_VERSION};

pub fn run(bytes: &[u8]) {
    hold(bytes);
    // Of any kind, with the head that the bytes need to be looked at.
    let Some((kind, body)) = bytes.split_first() else { return };
    let mut message = [&b"utlk"[..], &[PROTOCOL_VERSION, kind % 10], &[0; 10], body].concat();
    let length = message.len() as u32;
    message[8..12].copy_from_slice(&length.to_le_bytes());
    let checksum = crc32c::crc32c(&message);
    message[12..16].copy_from_slice(&checksum.to_le_bytes());
    hold(&message);
}

fn hold(bytes: &[u8]) {
    let Ok((session, message)) = Message::decode(bytes) else { return };
    let mut written = Vec::new();
    message.encode(session, &mut written);
    assert_eq!(Message::decode(&written), Ok((session, message)));
}
