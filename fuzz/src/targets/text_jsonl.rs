//! JSON Lines: what is told of a line is what another parser reads, at every cut the same, on any bytes.

pub fn run(data: &[u8]) {
    unitape_codec::text::jsonl::check::any_bytes(data)
}
