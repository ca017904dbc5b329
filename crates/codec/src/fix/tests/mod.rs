//! The fast path against the slow twin, and small cases of framing and fields.

mod cases;
mod fuzz;
mod twins;

use super::{FieldSeparator, FixFramer};

/// A message of `fields`, written with `|`, with the right length and sum, ends in SOH.
pub(super) fn wrap(begin: &str, fields: &str) -> Vec<u8> {
    let body = fields.replace('|', "\u{1}");
    let mut message = format!("8={begin}\u{1}9={}\u{1}{body}", body.len()).into_bytes();
    let sum: u32 = message.iter().map(|&byte| u32::from(byte)).sum();
    message.extend_from_slice(format!("10={:03}\u{1}", sum % 256).as_bytes());
    message
}

/// The bytes as a log shows them.
pub(super) fn shown(bytes: &[u8], sep: FieldSeparator) -> Vec<u8> {
    bytes.iter().flat_map(|&b| if b == 1 { sep.bytes().to_vec() } else { vec![b] }).collect()
}
