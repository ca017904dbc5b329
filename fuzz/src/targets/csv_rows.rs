//! Rows of separated values by four layouts: the fast path against the slow twin, on any bytes, in any pieces; and
//! any bytes as a layout.

pub fn run(data: &[u8]) {
    unitape_codec::twin::csv::check::any_bytes(data)
}
