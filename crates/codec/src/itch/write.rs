//! A writer of messages, for simulated days and samples.

use super::message::specs;

/// Appends a message with its two length bytes. `values` must be the values of its fields in order: numbers as they
/// are, texts as bytes.
///
/// # Panics
/// Panics if the values do not fit the type.
pub fn write(out: &mut Vec<u8>, letter: u8, header: ItchMessageHeader, values: &[ItchSampleValue<'_>]) {
    let spec = specs().iter().find(|s| s.letter == letter).expect("a type of ITCH 5.0");
    assert_eq!(values.len(), spec.fields.len(), "values of {}", spec.name);
    out.extend_from_slice(&(spec.bytes as u16).to_be_bytes());
    out.push(letter);
    out.extend_from_slice(&header.stock_locate.to_be_bytes());
    out.extend_from_slice(&header.tracking_number.to_be_bytes());
    out.extend_from_slice(&header.timestamp_ns.to_be_bytes()[2..]);
    for (field, value) in spec.fields.iter().zip(values) {
        let bytes = field.sort.bytes();
        match *value {
            ItchSampleValue::Number(n) => out.extend_from_slice(&n.to_be_bytes()[8 - bytes..]),
            ItchSampleValue::Text(text) => {
                assert!(text.len() <= bytes, "{} of {}", field.name, spec.name);
                out.extend_from_slice(text);
                out.resize(out.len() + bytes - text.len(), b' ');
            }
        }
    }
}

/// The fields that every message begins with, after its type.
#[derive(Debug, Clone, Copy)]
pub struct ItchMessageHeader {
    /// The security's number on this day; 0 if the message is about no security.
    pub stock_locate: u16,
    /// For use inside Nasdaq.
    pub tracking_number: u16,
    /// Since midnight in New York; 48 bits of it are written.
    pub timestamp_ns: u64,
}

/// A value to write.
#[derive(Debug, Clone, Copy)]
pub enum ItchSampleValue<'p> {
    /// A number or a price in its own units.
    Number(u64),
    /// Letters; the sample adds trailing blanks.
    Text(&'p [u8]),
}
