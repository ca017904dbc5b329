//! Fixed-width records by four layouts: the fast path against the slow twin, on any bytes, in any pieces; batches of
//! columns against the decoder; and any bytes as a layout.

pub fn run(data: &[u8]) {
    unitape_codec::twin::fixed::check::any_bytes(data)
}
