//! UTF-7, RFC 2152: ASCII, and other characters as Base64 of UTF-16 between `+` and `-`.

/// Appends `bytes` as UTF-8.
///
/// # Errors
/// The place of a byte that is not ASCII, or of the `+` of a stretch that is no text. Nothing is appended.
pub(super) fn decode(bytes: &[u8], out: &mut String) -> Result<(), usize> {
    let before = out.len();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let read = match byte {
            b'+' => stretch(&bytes[at + 1..], out).map(|n| n + 1),
            0..=0x7f => {
                out.push(char::from(byte));
                Some(1)
            }
            _ => None,
        };
        let Some(read) = read else {
            out.truncate(before);
            return Err(at);
        };
        at += read;
    }
    Ok(())
}

/// Appends the characters of a stretch behind its `+`; gives its bytes, its `-` among them.
fn stretch(bytes: &[u8], out: &mut String) -> Option<usize> {
    if bytes.first() == Some(&b'-') {
        out.push('+');
        return Some(1);
    }
    let (mut bits, mut held, mut units) = (0u32, 0, Vec::new());
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
        held += 6;
        if held >= 16 {
            held -= 16;
            units.push((bits >> held) as u16);
        }
    }
    if length == 0 || held >= 6 || bits & ((1 << held) - 1) != 0 {
        return None;
    }
    out.push_str(&String::from_utf16(&units).ok()?);
    Some(length + usize::from(bytes.get(length) == Some(&b'-')))
}
