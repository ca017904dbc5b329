//! ISO 20022 framing and parsing: what is taken is what another parser reads, at every cut the same, on any bytes.

pub fn run(data: &[u8]) {
    unitape_codec::twin::iso20022::check::any_bytes(data)
}
