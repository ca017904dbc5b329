//! Where records are that have their length and their line end, without looking at what is in them.

use crate::fixed::layout::Layout;
use crate::fixed::text::Terminator;

impl Layout {
    /// The record that `bytes[at..]` begins with, if it has the length of its sort and its terminator behind it:
    /// its length, where its terminator ends, and its sort. It is that record if no other line end stands in it
    /// ([`Layout::whole_lines`]) and it is not the first of its file.
    #[inline]
    #[must_use]
    pub fn record_at(&self, bytes: &[u8], at: usize) -> Option<(usize, usize, u16)> {
        let text = bytes.get(at..).filter(|t| !t.is_empty())?;
        if self.terminator == Terminator::None {
            let length = self.record_bytes_max;
            let kind = self.kind_of(text.get(..length)?)?;
            return Some((length, at + length, kind));
        }
        let kind = self.kind_of(text)?;
        let length = self.records[usize::from(kind)].bytes;
        let (last, line_end) = (*text.get(length - 1)?, text.get(length..)?);
        let line_end = match (self.terminator, line_end) {
            (_, [b'\r', b'\n', ..]) => 2,
            // With a carriage return before it the line is shorter than the record.
            (Terminator::Newline, [b'\n', ..]) if last != b'\r' => 1,
            _ => return None,
        };
        // Line ends between records are passed over before one begins.
        if matches!(text[0], b'\n' | b'\r') {
            return None;
        }
        Some((length, at + length + line_end, kind))
    }

    /// Of records one behind the other, from `at` on, that end at `ends` with their terminators: how many there
    /// are before one that has a line end within.
    #[inline]
    pub fn whole_lines(&self, bytes: &[u8], at: usize, ends: impl Iterator<Item = usize> + Clone) -> usize {
        let (mut count, mut last) = (0, at);
        ends.clone().for_each(|end| (count, last) = (count + 1, end));
        if self.terminator == Terminator::None
            || memchr::memchr_iter(b'\n', &bytes[at..last]).count() == count
        {
            return count;
        }
        let mut start = at;
        ends.take_while(|&end| {
            let one = memchr::memchr(b'\n', &bytes[start..end]) == Some(end - start - 1);
            start = end;
            one
        })
        .count()
    }
}
