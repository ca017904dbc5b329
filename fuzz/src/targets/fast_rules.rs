//! FAST by the rules of a mapping, in every framing: whole and in pieces it comes to the same, and every message is
//! accounted for.

pub fn run(data: &[u8]) {
    unitape_feed::try_fast(data);
}
