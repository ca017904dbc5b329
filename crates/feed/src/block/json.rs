//! Outside bytes as JSON text, as it is in events and in the quarantine.

use unitape_model::words;

/// Encodes outside bytes as a JSON string, or as `{"hex":…}` if they are not UTF-8.
pub fn json_string(value: &[u8]) -> String {
    let mut out = Vec::with_capacity(value.len() + 2);
    write_json(&mut out, value);
    String::from_utf8(out).expect("JSON of UTF-8, or of hex digits")
}

/// Decodes outside bytes from JSON that [`json_string`] made; empty for other JSON.
pub fn bytes_of_json(json: &str) -> Vec<u8> {
    match serde_json::from_str(json) {
        Ok(serde_json::Value::String(text)) => text.into_bytes(),
        Ok(value) => {
            let hex = value["hex"].as_str().unwrap_or_default().as_bytes();
            let digit = |b: u8| char::from(b).to_digit(16).unwrap_or(0) as u8;
            hex.chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
        }
        Err(_) => Vec::new(),
    }
}

/// Appends outside bytes to `out` as [`json_string`] has them.
pub fn write_json(out: &mut Vec<u8>, value: &[u8]) {
    // Without a way out, so that many bytes are looked at together.
    let (mut is_unescaped, mut ascii) = (true, true);
    for &b in value {
        is_unescaped &= (b >= b' ') & (b != b'"') & (b != b'\\');
        ascii &= b < 0x80;
    }
    if !ascii && std::str::from_utf8(value).is_err() {
        out.extend_from_slice(b"{\"hex\":\"");
        for b in value {
            out.extend_from_slice(&[HEX[usize::from(b >> 4)], HEX[usize::from(b & 15)]]);
        }
        out.extend_from_slice(b"\"}");
        return;
    }
    out.reserve(value.len() + 2);
    out.push(b'"');
    if is_unescaped {
        out.extend_from_slice(value);
    } else {
        escape(out, value);
    }
    out.push(b'"');
}

/// Appends text and escapes quotes, backslashes and control characters.
fn escape(out: &mut Vec<u8>, mut rest: &[u8]) {
    while let Some(index) = words::find_special(rest) {
        out.extend_from_slice(&rest[..index]);
        let byte = rest[index];
        match byte {
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            _ => out.extend_from_slice(&[
                b'\\',
                b'u',
                b'0',
                b'0',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]),
        }
        rest = &rest[index + 1..];
    }
    out.extend_from_slice(rest);
}

const HEX: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slow(value: &[u8]) -> String {
        match std::str::from_utf8(value) {
            Ok(text) => serde_json::Value::from(text).to_string(),
            Err(_) => {
                let digits: String = value.iter().map(|b| format!("{b:02x}")).collect();
                format!("{{\"hex\":\"{digits}\"}}")
            }
        }
    }

    proptest! {
        /// Programs of others read the kept values: the output is that of the library.
        #[test]
        fn json_is_that_of_the_library(value in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..40),
            "[ -~]{0,40}".prop_map(String::into_bytes),
            "[ -~\\r\\n\"\\\\]{0,80}".prop_map(String::into_bytes),
            "\\PC{0,20}[\\x00-\\x7f]{0,20}".prop_map(String::into_bytes),
        ]) {
            prop_assert_eq!(json_string(&value), slow(&value));
        }
    }

    #[test]
    fn every_byte_by_itself_and_in_a_row() {
        for byte in 0..=0x7f {
            for n in [1, 7, 8, 9, 17] {
                assert_eq!(json_string(&vec![byte; n]), slow(&vec![byte; n]), "{byte} × {n}");
            }
        }
    }
}
