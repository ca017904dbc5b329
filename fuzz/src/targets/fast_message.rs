//! FAST messages in every framing: the engine against the slow twin, and JSON of any bytes.

pub fn run(data: &[u8]) {
    unitape_fast::twin::check::any_bytes(data);
}
