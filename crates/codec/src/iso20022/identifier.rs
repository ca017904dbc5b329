//! Which message it is: the identifier at the end of a namespace.
//!
//! ```text
//! urn:iso:std:iso:20022:tech:xsd:pacs.008.001.07                                pacs.008.001.07
//! urn:swift:xsd:camt.003.001.04                                                 camt.003.001.04
//! http://www.six-interbank-clearing.com/de/pain.001.001.03.ch.02.xsd            pain.001.001.03  variant ch.02
//! urn:swift:xsd:$ahV10                                                          $ahV10 (headers only)
//! ```

use unitape_base::Span;

/// The identifier of a message: business area, message, variant and version; and the suffix of a community.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MessageIdentifier {
    /// `pacs.008.001.07`.
    pub name: Span,
    /// `ch.02`, mostly empty.
    pub variant: Span,
}

/// Bytes of `pacs.008.001.07`.
const NAME_BYTES: usize = 15;

/// Returns the message that the namespace in `span` names.
pub(super) fn from_namespace(buf: &[u8], span: Span) -> Option<MessageIdentifier> {
    from_identifier(buf, last_part(buf, span))
}

/// Parses the identifier of a message.
pub(super) fn from_identifier(buf: &[u8], span: Span) -> Option<MessageIdentifier> {
    let text = span.slice(buf);
    let shape = b"aaaa.000.000.00";
    let byte_fits = |(byte, want): (&u8, &u8)| match want {
        b'a' => byte.is_ascii_lowercase(),
        b'0' => byte.is_ascii_digit(),
        _ => byte == want,
    };
    if text.len() < NAME_BYTES || !text.iter().zip(shape).all(byte_fits) {
        return None;
    }
    let name = Span { start: span.start, end: span.start + NAME_BYTES };
    let variant = match text[NAME_BYTES..] {
        [] => Span { start: name.end, end: name.end },
        [b'.', ..] => Span { start: name.end + 1, end: span.end },
        _ => return None,
    };
    Some(MessageIdentifier { name, variant })
}

/// Returns the message that a header's own namespace names. Old namespaces do not have the usual form.
pub(super) fn from_header(buf: &[u8], span: Span) -> MessageIdentifier {
    let identifier = last_part(buf, span);
    from_identifier(buf, identifier).unwrap_or(MessageIdentifier {
        name: identifier,
        variant: Span { start: identifier.end, end: identifier.end },
    })
}

/// Returns the part after the last `:` or `/`, without `.xsd`.
fn last_part(buf: &[u8], span: Span) -> Span {
    let text = span.slice(buf);
    let text = text.strip_suffix(b".xsd").unwrap_or(text);
    let name_start = text.iter().rposition(|b| matches!(b, b':' | b'/')).map_or(0, |n| n + 1);
    Span { start: span.start + name_start, end: span.start + text.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Communities put their own words around the identifier.
    #[test]
    fn identifiers_are_found_in_namespaces() {
        for (uri, want) in [
            ("urn:iso:std:iso:20022:tech:xsd:pacs.008.001.07", Some(("pacs.008.001.07", ""))),
            ("urn:swift:xsd:camt.003.001.04", Some(("camt.003.001.04", ""))),
            (
                "http://www.six-interbank-clearing.com/de/pain.001.001.03.ch.02.xsd",
                Some(("pain.001.001.03", "ch.02")),
            ),
            ("urn:foo", None),
            ("", None),
            ("urn:iso:std:iso:20022:tech:xsd:pacs.008.001.7", None),
            ("urn:iso:std:iso:20022:tech:xsd:pacs.008.001.071", None),
            ("urn:iso:std:iso:20022:tech:xsd:PACS.008.001.07", None),
        ] {
            let buf = uri.as_bytes();
            let identifier = from_namespace(buf, Span { start: 0, end: buf.len() });
            let actual = identifier.map(|t| (t.name.slice(buf), t.variant.slice(buf)));
            assert_eq!(actual, want.map(|(a, b)| (a.as_bytes(), b.as_bytes())), "{uri}");
        }
    }
}
