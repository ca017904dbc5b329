//! JSON Lines: our parser and another read the same of a line, at every cut the same, on any bytes.

pub fn run(data: &[u8]) {
    unitape_codec::twin::text::jsonl::check::any_bytes(data)
}
