//! The sets of characters of a message: what its parts declare, and what is done where nothing does.

use super::header::MailHeaderField;
use super::mime_field::MimeField;
use crate::charset::{Charset, FallbackCharset, push_ascii};
use crate::text::TextFault;
use std::cell::RefCell;

/// Decodes bytes of a message whose set is not declared, and keeps the guesses so far.
#[derive(Debug, Default)]
pub(super) struct MailCharsets {
    fallback_charset: FallbackCharset,
    /// The set that the message's text declares: raw bytes in its header are most likely of it, too.
    of_text: Option<Charset>,
    charset_notes: RefCell<Vec<String>>,
}

/// The declaration of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeclaredCharset {
    /// None, or ASCII, which many programs declare without having looked.
    Nothing,
    Known(Charset),
    /// A name that says nothing.
    Unknown,
}

impl DeclaredCharset {
    pub(super) fn by_name(name: &str) -> Self {
        match Charset::by_name(name) {
            Some(charset) if charset == Charset::ASCII => Self::Nothing,
            Some(charset) => Self::Known(charset),
            None if name.trim().is_empty() => Self::Nothing,
            None => Self::Unknown,
        }
    }
}

impl MailCharsets {
    pub(super) fn new(fallback: FallbackCharset) -> Self {
        Self { fallback_charset: fallback, ..Self::default() }
    }

    /// Reads the set that the text declares, if the header has bytes that need a set.
    pub(super) fn look_at(&mut self, message: &[u8], fields: &[MailHeaderField], content: usize) {
        if std::str::from_utf8(&message[..content]).is_ok() {
            return;
        }
        let kind = MimeField::find(message, fields, "content-type", self).ok().flatten().unwrap_or_default();
        self.of_text = kind
            .get("charset")
            .and_then(Charset::by_name)
            .filter(|charset| charset.keeps_ascii() && ![Charset::UTF_8, Charset::ASCII].contains(charset));
        self.charset_notes.borrow_mut().clear();
    }

    fn add_note(&self, note: String) {
        let mut notes = self.charset_notes.borrow_mut();
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// Returns the notes on guesses, in order.
    pub(super) fn into_notes(self) -> Vec<String> {
        self.charset_notes.into_inner()
    }

    /// Decodes a header field, which declares no set; returns also whether its set was guessed.
    ///
    /// # Errors
    /// Fails with the offset of a byte that is no character of the mapping's set.
    pub(super) fn header(&self, bytes: &[u8]) -> Result<(String, bool), usize> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok((text.to_owned(), false)),
            Err(_) => self.header_by_guess(bytes),
        }
    }

    #[cold]
    fn header_by_guess(&self, bytes: &[u8]) -> Result<(String, bool), usize> {
        let mut out = String::new();
        if let Some(charset) = self.of_text
            && charset.decode(bytes, &mut out).is_ok()
        {
            self.add_note(format!("guessed {charset}"));
            return Ok((out, true));
        }
        self.append_undeclared(bytes, &mut out)?;
        Ok((out, true))
    }

    /// Appends text whose set is not declared and that is not UTF-8.
    fn append_undeclared(&self, bytes: &[u8], out: &mut String) -> Result<(), usize> {
        self.fallback_charset.decode(bytes, out)?;
        if let Some(note) = self.fallback_charset.note() {
            self.add_note(note.to_owned());
        }
        Ok(())
    }

    /// Decodes text whose set is declared under the name `label`, or not at all; `offset` is its offset in the
    /// message.
    ///
    /// # Errors
    /// Fails at a byte that is no character of the set.
    pub(super) fn text(&self, label: &str, bytes: Vec<u8>, offset: usize) -> Result<String, TextFault> {
        let mut out = String::new();
        match DeclaredCharset::by_name(label) {
            DeclaredCharset::Nothing if bytes.is_ascii() => {
                out = String::from_utf8(bytes).unwrap_or_default();
            }
            DeclaredCharset::Known(charset) => charset.decode(&bytes, &mut out).map_err(|index| {
                let detail = "a byte of the part that is no character of";
                TextFault::not_of_charset(offset + index, detail, label)
            })?,
            DeclaredCharset::Unknown => {
                push_ascii(&bytes, &mut out);
                self.note_unknown(label);
            }
            DeclaredCharset::Nothing => match String::from_utf8(bytes) {
                Ok(text) => out = text,
                Err(error) => self.append_undeclared(error.as_bytes(), &mut out).map_err(|index| {
                    let detail = "a byte that is no character of the mapping's set,";
                    TextFault::not_of_charset(offset + index, detail, self.fallback_charset.charset().name())
                })?,
            },
        }
        Ok(out)
    }

    /// Appends the characters of an encoded word; `None` where its bytes are no characters of its set.
    pub(super) fn word(&self, label: &str, bytes: &[u8], out: &mut String) -> Option<()> {
        match DeclaredCharset::by_name(label) {
            DeclaredCharset::Known(charset) => charset.decode(bytes, out).ok(),
            DeclaredCharset::Nothing => match std::str::from_utf8(bytes) {
                Ok(text) => {
                    out.push_str(text);
                    Some(())
                }
                Err(_) => self.append_undeclared(bytes, out).ok(),
            },
            DeclaredCharset::Unknown => {
                push_ascii(bytes, out);
                self.note_unknown(label);
                Some(())
            }
        }
    }

    fn note_unknown(&self, label: &str) {
        let label: String = label.trim().chars().filter(char::is_ascii_graphic).take(40).collect();
        self.add_note(format!("unknown {label}"));
    }
}
