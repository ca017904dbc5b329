//! News in XML: every byte accounted for, items as the slow twin reads them, at every cut the same, on any bytes.

pub fn run(data: &[u8]) {
    unitape_codec::twin::text::xml::check::any_bytes(data)
}
