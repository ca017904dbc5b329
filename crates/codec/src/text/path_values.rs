//! The values of a message by path.
//!
//! ```text
//! {"id":7,"to":[{"mail":"b@x"},{"mail":"c@x"}]}
//!
//! leaves   id = 7 │ to[].mail = b@x │ to[].mail = c@x
//!                 ╰── entry to[] ───┴── entry to[] ──╯
//! ```
//!
//! Paths are numbered, and keep their number from message to message while [`PathValues::generation`] stays the same.

use super::{TextFault, TextFaultCode};
use std::collections::HashMap;

/// Values of a message, at most.
pub const LEAVES_MAX: usize = 1 << 14;

/// Bytes of a path, at most.
pub const PATH_BYTES_MAX: usize = 512;

/// Bytes of a note on sets of characters beyond which no more is added.
const NOTE_BYTES_MAX: usize = 256;

/// Paths that are kept from one message to the next.
const PATHS_MAX: usize = 1 << 12;

/// The values of a message.
#[derive(Debug, Default)]
pub struct PathValues {
    path_ids: HashMap<String, u32>,
    paths: Vec<String>,
    generation: u64,
    values: Vec<PathValue>,
    entries: Vec<ListEntry>,
    value_text: String,
    /// The text that was read by a guess, or in part.
    charset_note: String,
}

/// A value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathValue {
    /// Number of its path.
    pub path: u32,
    start: u32,
    end: u32,
    /// The kind of the value.
    pub kind: PathValueKind,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathValueKind {
    /// Text.
    Text,
    /// A number, as written.
    Number,
    /// `true` or `false`.
    Flag,
    /// `null` or `{}`: nothing.
    Nothing,
    /// `[]`: a list without entries.
    EmptyList,
}

/// An entry of a list: the values that are in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListEntry {
    /// Number of the list's path, which ends with `[]`.
    pub path: u32,
    /// Index of its first value.
    pub first_value: u32,
    /// Index after its last value.
    pub value_end: u32,
}

/// A point that the values can be rolled back to.
#[derive(Debug, Clone, Copy)]
pub(super) struct RollbackPoint {
    value_count: usize,
    entries: usize,
    text_length: usize,
}

impl PathValues {
    /// Iterates over path and text of all values, in the order of the message.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|leaf| (self.path(leaf.path), self.text(leaf)))
    }

    /// Returns all values.
    #[must_use]
    pub fn as_slice(&self) -> &[PathValue] {
        &self.values
    }

    /// Returns the entries of all lists, in the order in which they begin.
    #[must_use]
    pub fn entries(&self) -> &[ListEntry] {
        &self.entries
    }

    /// Looks up a path by its number; empty if there is no such path.
    #[must_use]
    pub fn path(&self, path: u32) -> &str {
        self.paths.get(path as usize).map_or("", String::as_str)
    }

    /// Counts the numbered paths.
    #[must_use]
    pub fn path_count(&self) -> usize {
        self.paths.len()
    }

    /// Returns the text of a value: the characters of a string, or any other value as it was written.
    #[must_use]
    pub fn text(&self, leaf: &PathValue) -> &str {
        self.value_text.get(leaf.start as usize..leaf.end as usize).unwrap_or_default()
    }

    /// Changes when paths are renumbered.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns a note if the character set of a text was guessed (`guessed windows-1252`) or is unknown (`unknown
    /// x-unknown`). With an unknown set, only the ASCII characters are read.
    #[must_use]
    pub fn charset_note(&self) -> Option<&str> {
        (!self.charset_note.is_empty()).then_some(&self.charset_note)
    }

    /// Adds to the note.
    #[cold]
    pub(super) fn note_charset(&mut self, note: &str) {
        if self.charset_note.split("; ").any(|part| part == note) || self.charset_note.len() > NOTE_BYTES_MAX
        {
            return;
        }
        if !self.charset_note.is_empty() {
            self.charset_note.push_str("; ");
        }
        self.charset_note.push_str(note);
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        self.charset_note.clear();
        self.values.clear();
        self.entries.clear();
        self.value_text.clear();
        if self.paths.len() > PATHS_MAX {
            self.paths.clear();
            self.path_ids.clear();
            self.generation += 1;
        }
    }

    /// Returns the length of all values so far, in bytes.
    pub(super) fn mark(&self) -> usize {
        self.value_text.len()
    }

    /// Returns the text buffer, whose bytes after `mark` are the current value.
    pub(super) fn text_mut(&mut self) -> &mut String {
        &mut self.value_text
    }

    /// Ends a value that began at `mark`; `offset` is its offset in the message.
    pub(super) fn push_value(
        &mut self,
        path: &str,
        mark: usize,
        kind: PathValueKind,
        offset: usize,
    ) -> Result<(), TextFault> {
        if self.values.len() >= LEAVES_MAX {
            return Err(TextFault::new(TextFaultCode::TooDeep, offset, "more than 16384 values"));
        }
        let path = self.path_number(path, offset)?;
        self.values.push(PathValue { path, start: mark as u32, end: self.value_text.len() as u32, kind });
        Ok(())
    }

    /// Puts a text; `offset` is its offset in the message.
    ///
    /// # Errors
    /// Fails if the message has too many values, or if the path is too long.
    pub fn put_text(&mut self, path: &str, text: &str, offset: usize) -> Result<(), TextFault> {
        let mark = self.mark();
        self.value_text.push_str(text);
        self.push_value(path, mark, PathValueKind::Text, offset)
    }

    /// Puts a text as an entry of the list at `path`.
    pub(super) fn list_text(&mut self, path: &str, text: &str, offset: usize) -> Result<(), TextFault> {
        let entry = self.begin_entry(path, offset)?;
        self.put_text(path, text, offset)?;
        self.end_entry(entry);
        Ok(())
    }

    /// Begins an entry of the list at `path`; returns the index with which the caller must end it.
    pub(super) fn begin_entry(&mut self, path: &str, offset: usize) -> Result<usize, TextFault> {
        if self.entries.len() >= LEAVES_MAX {
            return Err(TextFault::new(TextFaultCode::TooDeep, offset, "more than 16384 entries of lists"));
        }
        let path = self.path_number(path, offset)?;
        let list_start = self.values.len() as u32;
        self.entries.push(ListEntry { path, first_value: list_start, value_end: list_start });
        Ok(self.entries.len() - 1)
    }

    pub(super) fn end_entry(&mut self, entry: usize) {
        self.entries[entry].value_end = self.values.len() as u32;
    }

    /// Returns the point reached, for [`PathValues::roll_back`].
    pub(super) fn rollback_point(&self) -> RollbackPoint {
        RollbackPoint {
            value_count: self.values.len(),
            entries: self.entries.len(),
            text_length: self.value_text.len(),
        }
    }

    /// Removes the values that were put since then.
    pub(super) fn roll_back(&mut self, point: RollbackPoint) {
        self.values.truncate(point.value_count);
        self.entries.truncate(point.entries);
        self.value_text.truncate(point.text_length);
    }

    fn path_number(&mut self, path: &str, offset: usize) -> Result<u32, TextFault> {
        if path.len() > PATH_BYTES_MAX {
            return Err(TextFault::new(TextFaultCode::TooDeep, offset, "a path of more than 512 bytes"));
        }
        // Lists repeat theirs.
        if let Some(last_value) = self.values.last()
            && self.paths[last_value.path as usize] == path
        {
            return Ok(last_value.path);
        }
        // Lists in a list repeat theirs in turn.
        if path.ends_with(']') {
            let values = self.values.iter().rev().skip(1).take(2).map(|value| value.path);
            let mut recent = self.entries.iter().rev().take(3).map(|entry| entry.path).chain(values);
            if let Some(id) = recent.find(|id| self.paths[*id as usize] == path) {
                return Ok(id);
            }
        }
        if let Some(id) = self.path_ids.get(path) {
            return Ok(*id);
        }
        let id = self.paths.len() as u32;
        self.paths.push(path.to_owned());
        self.path_ids.insert(path.to_owned(), id);
        Ok(id)
    }
}
