//! UTF-7, RFC 2152: ASCII, and other characters as Base64 of UTF-16 between `+` and `-`.

/// Appends `bytes` as UTF-8.
///
/// # Errors
/// Fails with the offset of a byte that is not ASCII, or of the `+` before encoded bytes that are no text. Then
/// nothing is appended.
pub(super) fn decode(bytes: &[u8], out: &mut String) -> Result<(), usize> {
    let old_length = out.len();
    let mut offset = 0;
    while let Some(&byte) = bytes.get(offset) {
        let read = match byte {
            b'+' => decode_base64(&bytes[offset + 1..], out).map(|n| n + 1),
            0..=0x7f => {
                out.push(char::from(byte));
                Some(1)
            }
            _ => None,
        };
        let Some(read) = read else {
            out.truncate(old_length);
            return Err(offset);
        };
        offset += read;
    }
    Ok(())
}

/// Appends the characters encoded after a `+`; returns the number of encoded bytes, including the closing `-`.
fn decode_base64(bytes: &[u8], out: &mut String) -> Option<usize> {
    if bytes.first() == Some(&b'-') {
        out.push('+');
        return Some(1);
    }
    let (mut bits, mut bit_count, mut units) = (0u32, 0, Vec::new());
    let mut length = 0;
    for byte in bytes {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => break,
        };
        length += 1;
        bits = (bits << 6 | u32::from(value)) & 0x3f_ffff;
        bit_count += 6;
        if bit_count >= 16 {
            bit_count -= 16;
            units.push((bits >> bit_count) as u16);
        }
    }
    if length == 0 || bit_count >= 6 || bits & ((1 << bit_count) - 1) != 0 {
        return None;
    }
    out.push_str(&String::from_utf16(&units).ok()?);
    Some(length + usize::from(bytes.get(length) == Some(&b'-')))
}
