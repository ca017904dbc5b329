//! FAST messages encoded by made-up templates, and encoded again: both decoders read what was encoded.

pub fn run(data: &[u8]) {
    unitape_fast::twin::encode_check::from_bytes(data);
}
