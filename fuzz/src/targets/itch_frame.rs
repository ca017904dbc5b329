//! ITCH in files and in packets of SoupBinTCP: the fast path against the slow twin, on any bytes, in any pieces.

pub fn run(data: &[u8]) {
    unitape_codec::twin::itch::check::any_bytes(data)
}
