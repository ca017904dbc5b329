//! A file that is one list of objects, as exports have it: `[ {…}, {…} ]`, on one line or on many.
//!
//! Each entry of the list is a message by itself. Where it begins and ends is found by its brackets, without a memory of
//! the entries before it, so that a list of any length flows entry by entry. In an entry that is not JSON a line end ends
//! a string, and a bracket that closes another one ends the entry; what follows begins at the next `{`.

/// The entry at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListStep {
    /// Nothing but the list's own brackets, commas and white space up to here.
    Nothing { end: usize },
    /// An entry in `from..end`.
    Entry { from: usize, end: usize },
    /// An entry begins at `from` whose brackets do not match in `from..end`.
    Open { from: usize, end: usize },
}

/// Finds the entry at `buf[offset..]` within `limit` bytes.
pub(super) fn step(buf: &[u8], offset: usize, limit: usize) -> ListStep {
    let (mut from, mut after_comma) = (offset, false);
    loop {
        match buf.get(from) {
            None => return ListStep::Nothing { end: from },
            Some(byte) if byte.is_ascii_whitespace() => from += 1,
            Some(0xef) if buf[from..].starts_with(b"\xef\xbb\xbf") => from += 3,
            Some(b',') => (from, after_comma) = (from + 1, true),
            Some(b']') => (from, after_comma) = (from + 1, false),
            // The list's own bracket; one behind it, or behind a comma, begins a list in the list.
            Some(b'[') if !after_comma => (from, after_comma) = (from + 1, true),
            Some(_) => break,
        }
    }
    let view = &buf[..buf.len().min(from.saturating_add(limit))];
    entry(view, from)
}

fn entry(view: &[u8], from: usize) -> ListStep {
    // Which brackets are open, the innermost last: a bit each, set for objects. Deeper ones than that are refused later on,
    // whatever they are.
    let (mut kinds, mut depth, mut deep) = (0u128, 0usize, false);
    let mut offset = from;
    while let Some(&byte) = view.get(offset) {
        offset += 1;
        match byte {
            b'"' => {
                offset = string_end(view, offset);
            }
            b'{' | b'[' => {
                kinds = kinds << 1 | u128::from(byte == b'{');
                depth += 1;
                deep |= depth > 128;
            }
            b'}' | b']' => {
                let matches = deep || kinds & 1 == u128::from(byte == b'}');
                // The bracket of the list ends a value that is none.
                if depth == 0 {
                    return ListStep::Entry { from, end: (offset - 1).max(from + 1) };
                }
                if !matches {
                    return ListStep::Open { from, end: offset };
                }
                kinds >>= 1;
                depth -= 1;
                if depth == 0 {
                    return ListStep::Entry { from, end: offset };
                }
            }
            b',' | b'\n' if depth == 0 => return ListStep::Entry { from, end: offset - 1 },
            _ => {}
        }
    }
    ListStep::Open { from, end: view.len() }
}

/// Returns the offset after the quote that ends a string, or after a line end, which no string can contain.
fn string_end(view: &[u8], mut offset: usize) -> usize {
    loop {
        let list_bytes = &view[offset..];
        match memchr::memchr3(b'"', b'\\', b'\n', list_bytes) {
            None => return view.len(),
            Some(n) => {
                offset += n + 1;
                match list_bytes[n] {
                    b'"' => return offset,
                    b'\n' => return offset - 1,
                    _ => offset = view.len().min(offset + 1),
                }
            }
        }
    }
}

/// Finds the first `{` of `view[from..]` that can begin an object, after a broken entry.
pub(super) fn resync(view: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let brace_offset = from + memchr::memchr(b'{', view.get(from..)?)?;
        from = brace_offset
            + 1
            + view[brace_offset + 1..].iter().take_while(|b| b.is_ascii_whitespace()).count();
        if matches!(view.get(from), None | Some(b'"' | b'}')) {
            return Some(brace_offset);
        }
    }
}
