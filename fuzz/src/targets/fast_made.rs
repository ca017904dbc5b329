//! FAST by made-up templates: the engine against the slow twin, values and errors.

pub fn run(data: &[u8]) {
    unitape_fast::twin::check::from_bytes(data);
}
