//! E-mail and mbox: every byte accounted for, at every cut the same, on any bytes.

pub fn run(data: &[u8]) {
    unitape_codec::twin::text::mail::check::any_bytes(data)
}
