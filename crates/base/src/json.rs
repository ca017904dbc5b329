//! JSON text by hand, as the drivers of all formats write it.

use unitape_model::words;

/// Makes the beginning of a message's line: `{"file":…,"n":`.
#[must_use]
pub fn head(file_label: &str) -> Vec<u8> {
    let mut head = b"{\"file\":".to_vec();
    string(&mut head, file_label);
    head.extend_from_slice(b",\"n\":");
    head
}

/// Writes a value: a string, or `{"hex":"…"}` if the bytes are not UTF-8.
#[inline]
pub fn value(out: &mut Vec<u8>, bytes: &[u8]) {
    if needs_no_escape(bytes) {
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

/// Writes bytes as `{"hex":"…"}`.
pub fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(b"{\"hex\":\"");
    for byte in bytes {
        out.push(HEX[usize::from(byte >> 4)]);
        out.push(HEX[usize::from(byte & 15)]);
    }
    out.extend_from_slice(b"\"}");
}

/// Returns whether all bytes are ASCII that JSON need not escape.
#[inline]
fn needs_no_escape(bytes: &[u8]) -> bool {
    bytes.iter().fold(true, |all, &b| all & (b' '..0x7f).contains(&b) & (b != b'"') & (b != b'\\'))
}

/// Writes a string with its quotes. Escapes control characters and DEL.
pub fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(escape_index) = words::find_special_or_del(rest) {
        out.extend_from_slice(&rest[..escape_index]);
        let byte = rest[escape_index];
        rest = &rest[escape_index + 1..];
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

/// Writes a whole number.
#[inline]
pub fn number(out: &mut Vec<u8>, mut n: u64) {
    let mut digits = [0; 20];
    let mut digit_index = digits.len();
    loop {
        digit_index -= 1;
        digits[digit_index] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[digit_index..]);
}

const HEX: &[u8; 16] = b"0123456789abcdef";
