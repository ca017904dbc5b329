//! SWIFT framing, fields and components: the fast path against the slow twin, on any bytes, at every cut.

pub fn run(data: &[u8]) {
    unitape_codec::twin::swift_mt::check::any_bytes(data)
}
