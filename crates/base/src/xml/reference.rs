//! References in text: the five that XML predefines, and characters by number. There are no others: XML bombs are
//! made of references that a document defines itself.

/// The reading of a reference that starts at a `&`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XmlReferenceOutcome {
    /// A character, and where the reference ends.
    Is(char, usize),
    /// No valid reference.
    Bad,
    /// More bytes decide.
    Short,
}

/// Bytes of the longest reference, `&#x0010FFFF;` with some zeros.
const LENGTH_MAX: usize = 16;

/// Reads the reference at `buf[at]`.
#[cold]
pub fn read(buf: &[u8], start: usize) -> XmlReferenceOutcome {
    let rest = &buf[start + 1..buf.len().min(start + LENGTH_MAX)];
    let Some(n) = rest.iter().position(|b| *b == b';') else {
        let may_go_on = rest.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'#');
        return if may_go_on && rest.len() < LENGTH_MAX - 1 {
            XmlReferenceOutcome::Short
        } else {
            XmlReferenceOutcome::Bad
        };
    };
    let c = match &rest[..n] {
        b"lt" => Some('<'),
        b"gt" => Some('>'),
        b"amp" => Some('&'),
        b"apos" => Some('\''),
        b"quot" => Some('"'),
        [b'#', b'x', hex @ ..] => number(hex, 16),
        [b'#', digits @ ..] => number(digits, 10),
        _ => None,
    };
    c.map_or(XmlReferenceOutcome::Bad, |c| XmlReferenceOutcome::Is(c, start + 1 + n + 1))
}

fn number(digits: &[u8], radix: u32) -> Option<char> {
    let mut code = 0u32;
    for byte in digits {
        code = code.checked_mul(radix)?.checked_add(char::from(*byte).to_digit(radix)?)?;
    }
    let c = char::from_u32(code).filter(|_| !digits.is_empty())?;
    match c {
        '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => Some(c),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_or_refused() {
        for (text, want) in [
            ("&amp;", XmlReferenceOutcome::Is('&', 5)),
            ("&#65;x", XmlReferenceOutcome::Is('A', 5)),
            ("&#x1F600;", XmlReferenceOutcome::Is('\u{1f600}', 9)),
            ("&#0;", XmlReferenceOutcome::Bad),
            ("&#xFFFE;", XmlReferenceOutcome::Bad),
            ("&#xD800;", XmlReferenceOutcome::Bad),
            ("&#;", XmlReferenceOutcome::Bad),
            ("&#x;", XmlReferenceOutcome::Bad),
            ("&#99999999999;", XmlReferenceOutcome::Bad),
            ("&lol9;", XmlReferenceOutcome::Bad),
            ("& ", XmlReferenceOutcome::Bad),
            ("&", XmlReferenceOutcome::Short),
            ("&am", XmlReferenceOutcome::Short),
            ("&#x000000000000000000000041;", XmlReferenceOutcome::Bad),
        ] {
            assert_eq!(read(text.as_bytes(), 0), want, "{text}");
        }
    }
}
