//! FIX framing and fields: the fast path against the slow twin, on any bytes, at every cut.

pub fn run(data: &[u8]) {
    unitape_codec::twin::fix::check::any_bytes(data)
}
