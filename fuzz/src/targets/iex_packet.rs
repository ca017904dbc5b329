//! Packets of IEX, bare and as datagrams of a capture: the fast path against the slow twin, on any bytes, in any pieces.

pub fn run(data: &[u8]) {
    unitape_codec::twin::iex::check::any_bytes(data)
}
