//! FAST messages that are told by made-up templates, and told again: both decoders read what was told.

pub fn run(data: &[u8]) {
    unitape_fast::encode::check::from_bytes(data);
}
