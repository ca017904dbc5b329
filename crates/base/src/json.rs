//! JSON text by hand, as the drivers of all formats write it.

use unitape_model::words;

/// The beginning of the line of a message: `{"file":…,"n":`.
#[must_use]
pub fn head(file_label: &str) -> Vec<u8> {
    let mut head = b"{\"file\":".to_vec();
    string(&mut head, file_label);
    head.extend_from_slice(b",\"n\":");
    head
}

/// A value: a string, or `{"hex":"…"}`.
#[inline]
pub fn value(out: &mut Vec<u8>, bytes: &[u8]) {
    if plain(bytes) {
        out.push(b'"');
        out.extend_from_slice(bytes);
        out.push(b'"');
        return;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => string(out, text),
        Err(_) => hex(out, bytes),
    }
}

/// `{"hex":"…"}`.
pub fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(b"{\"hex\":\"");
    for byte in bytes {
        out.push(HEX[usize::from(byte >> 4)]);
        out.push(HEX[usize::from(byte & 15)]);
    }
    out.extend_from_slice(b"\"}");
}

/// Whether all is ASCII that JSON needs no escape for.
#[inline]
fn plain(bytes: &[u8]) -> bool {
    bytes.iter().fold(true, |all, &b| all & (b' '..0x7f).contains(&b) & (b != b'"') & (b != b'\\'))
}

/// A string with its quotes. Control characters and DEL are escaped.
pub fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = words::find_special_or_del(rest) {
        out.extend_from_slice(&rest[..at]);
        let byte = rest[at];
        rest = &rest[at + 1..];
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 | 0x7f => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(byte >> 4)]);
                out.push(HEX[usize::from(byte & 15)]);
            }
            _ => out.push(byte),
        }
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// A whole number.
#[inline]
pub fn number(out: &mut Vec<u8>, mut n: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

const HEX: &[u8; 16] = b"0123456789abcdef";
