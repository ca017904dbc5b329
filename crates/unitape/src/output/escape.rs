//! Names and texts of feeds and files, made harmless for a terminal.
//!
//! A headline may hold `ESC ] 0 ;` and set the window's title, clear the screen or hide the line above; a line feed
//! in a name makes a second line that looks like one of ours; U+202E shows the rest of a line backwards. People see
//! such characters as `\x1b`, `\n`, `\u{202e}`; everything else is printed unchanged. JSON has rules of its own for
//! them, and raw bytes are printed only where a command says so.

use std::borrow::Cow;
use std::fmt::Write;
use unitape_run::users::is_invisible;

/// Escapes `text` for a part of one line. Line feeds are escaped too.
pub fn escape_line(text: &str) -> Cow<'_, str> {
    escape_text(text, false)
}

/// Escapes `text` of several lines that unitape wrote, such as a table.
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    escape_text(text, true)
}

fn escape_text(text: &str, lines: bool) -> Cow<'_, str> {
    let harmless = |b: u8| (0x20..0x7f).contains(&b) || (lines && b == b'\n');
    let Some(first_harmful) = text.bytes().position(|b| !harmless(b)) else { return Cow::Borrowed(text) };
    // Bytes before it are ASCII, so a character begins there.
    if !text[first_harmful..].chars().any(|c| is_control(c, lines)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first_harmful]);
    for c in text[first_harmful..].chars() {
        match c {
            _ if !is_control(c, lines) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Writing to a String cannot fail, here and below.
            '\0'..='\x7f' => _ = write!(out, "\\x{:02x}", u32::from(c)),
            _ => _ = write!(out, "\\u{{{:x}}}", u32::from(c)),
        }
    }
    Cow::Owned(out)
}

/// Returns whether a character is shown as a number: a terminal would obey it, or nobody would see it.
fn is_control(c: char, lines: bool) -> bool {
    is_invisible(c) && !(lines && c == '\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_not_copied() {
        for text in ["", "XLON 2,500.5 <tag> \\ {\"a\":1}", "Gruyère 株式 – ▁▂▃ שלום"] {
            assert!(matches!(escape_line(text), Cow::Borrowed(same) if same == text));
            assert!(matches!(escape_lines(text), Cow::Borrowed(same) if same == text));
        }
        assert!(matches!(escape_lines("a\nb"), Cow::Borrowed("a\nb")));
    }

    #[test]
    fn every_control_character_is_shown_and_none_is_sent() {
        let controls = (0..0x20).chain(0x7f..0xa0).chain([0xad, 0x61c, 0xfeff]).chain(0x200b..0x2010);
        let controls = controls.chain(0x2028..0x202f).chain(0x2060..0x2070);
        for c in controls.map(|c| char::from_u32(c).unwrap()) {
            let escaped_text = escape_line(&format!("é{c}x")).into_owned();
            assert!(escaped_text.starts_with("é\\") && escaped_text.ends_with('x'), "{c:?}: {escaped_text}");
            assert!(!escaped_text.contains(c), "{c:?}: {escaped_text}");
        }
        assert_eq!(
            escape_line("\x1b]0;x\x07\r\n\t\u{9b}2J\u{7f}\u{202e}"),
            r"\x1b]0;x\x07\r\n\t\u{9b}2J\x7f\u{202e}"
        );
        assert_eq!(escape_lines("a\x1b\nb"), "a\\x1b\nb");
    }
}
