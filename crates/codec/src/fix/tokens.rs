//! The fields of one message: a reusable table of (tag, where its value is).
//!
//! ```text
//! 8=FIX.4.4|9=…|35=D|38=100|…
//!                    │  ╰┬╯
//!   Token { tag: 38, start, end }     offsets from the start of the message
//! ```
//!
//! A field is `tag=value` and a separator. A tag is 1 to 9 digits without a leading zero; a value
//! is one byte or more up to the next separator, and may hold `=`. The value of a data field
//! ([`RawFieldTags`](super::RawFieldTags)) that follows directly on its length field is exactly as long as that says, with
//! separators inside.
//!
//! The fast path makes one wide pass over a message; what is unusual in one, a length field for
//! instance, is read by the walk, field by field.

use super::fault::{FieldFault, FixFault};
use super::frame::{FixFramer, FixLeniency, FramedFixMessage, NextFixFrame};
use super::head::PrefixCache;
use super::plain::{plain_length, plain_tag};
use super::shapes::TagSequenceCache;
use super::simd::{FieldColumns, FixKernel, ScanTotals};
use super::token::{FieldToken, TokenSlice};

/// The fields of one message at a time, in buffers that are used again for the next.
#[derive(Debug, Clone)]
pub struct MessageTokenizer {
    /// Grows to the largest message seen and stays; the first `used_tokens` are the current message.
    columns: FieldColumns,
    used_tokens: usize,
    kernel: FixKernel,
    heads: PrefixCache,
    shapes: TagSequenceCache,
    /// The shape that has the tags of the current message. Without a shape, the columns have the tags.
    shape_index: Option<usize>,
}

impl Default for MessageTokenizer {
    fn default() -> Self {
        Self::new()
    }
}

impl MessageTokenizer {
    /// Makes an empty table with the fastest kernel of this processor.
    #[must_use]
    pub fn new() -> Self {
        Self::with_kernel(FixKernel::best())
    }

    pub(crate) fn with_kernel(kernel: FixKernel) -> Self {
        MessageTokenizer {
            columns: FieldColumns::default(),
            used_tokens: 0,
            kernel,
            heads: PrefixCache::default(),
            shapes: TagSequenceCache::default(),
            shape_index: None,
        }
    }

    /// Makes a table for each kernel that this processor can run, for tests that compare the kernels.
    #[cfg(any(test, feature = "twin"))]
    #[doc(hidden)]
    #[must_use]
    pub fn each_kernel() -> Vec<Self> {
        FixKernel::all().into_iter().map(Self::with_kernel).collect()
    }

    /// Returns the fields in message order.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> TokenSlice<'_> {
        let (tags, shape) = match self.shape_index {
            Some(shape_index) => {
                let shape = self.shapes.shape_at(shape_index);
                (&shape.tags[..], shape.id)
            }
            None => (&self.columns.tags[..self.used_tokens], 0),
        };
        TokenSlice::new(tags, &self.columns.starts, &self.columns.ends, shape)
    }

    /// Removes the fields that have no value.
    pub fn remove_empty(&mut self) {
        let tokens = self.as_slice();
        if tokens.iter().all(|token| token.start < token.end) {
            return;
        }
        let filled_tokens: Vec<FieldToken> = tokens.iter().filter(|token| token.start < token.end).collect();
        (self.used_tokens, self.shape_index) = (filled_tokens.len(), None);
        for (index, token) in filled_tokens.into_iter().enumerate() {
            self.columns.write_field(index, token.tag, token.start, token.end);
        }
    }

    /// Finds the first field with this tag.
    #[inline]
    #[must_use]
    pub fn find(&self, tag: u32) -> Option<FieldToken> {
        let tokens = self.as_slice();
        tokens.tags().iter().position(|&t| t == tag).and_then(|index| tokens.get(index))
    }

    /// Finds the first field with this tag and returns its value; `message` must be the message of these tokens.
    #[inline]
    #[must_use]
    pub fn value<'m>(&self, message: &'m [u8], tag: u32) -> Option<&'m [u8]> {
        self.find(tag).map(|token| token.slice(message))
    }

    /// Reads the fields of `message`, from `8=` to the end of field 10.
    ///
    /// # Errors
    /// Fails at the first field that is not `tag=value`; the fields before it stay readable.
    pub fn index(&mut self, message: &[u8], framer: &FixFramer) -> Result<(), FixFault> {
        (self.used_tokens, self.shape_index) = (0, None);
        if u32::try_from(message.len()).is_err() {
            // Tokens have 32-bit offsets; framing never makes so long a message.
            return Err(FixFault::NoEnd { limit: u32::MAX });
        }
        match framer.sep().byte() {
            Some(sep) => {
                let pass = self.kernel.read_fields(message, sep, framer.data_tags(), &mut self.columns);
                self.finish_message(message, pass, framer)
            }
            None => self.walk_fields(message, 0, framer),
        }
    }

    /// Frames the next message like [`FixFramer::frame`] and reads its fields, with one pass over the bytes for
    /// checksum, separators and tags. Returns a message with a field that is not `tag=value` as
    /// [`NextFixFrame::Bad`].
    pub fn frame(&mut self, framer: &FixFramer, buf: &[u8], offset: usize, eof: bool) -> NextFixFrame {
        (self.used_tokens, self.shape_index) = (0, None);
        let message_offset = after_line_ends(buf, offset);
        if let Some(sep) = framer.sep().byte()
            && let Some(message) = self.frame_expected(framer, buf, message_offset, sep)
        {
            return NextFixFrame::Message(message);
        }
        // Nothing of the above is handed on: it stays in registers, so that the next message need not
        // wait until this one is written.
        self.frame_general(framer, buf, offset, eof)
    }

    /// Frames the message at `first`, if it begins and has tags as expected.
    #[inline(always)]
    fn frame_expected(
        &mut self,
        framer: &FixFramer,
        buf: &[u8],
        first: usize,
        sep: u8,
    ) -> Option<FramedFixMessage> {
        let claim = self.heads.last_prefix.read_claim(framer, buf, first, sep)?;
        let shape_index = self.shapes.expected_shape(claim.shape_key)?;
        let shape = self.shapes.shape_at(shape_index);
        let sum = self.kernel.read_expected(claim.bytes(buf), sep, shape, &mut self.columns)?;
        if !claim.sums_to(sum, shape.tags.len(), sep) {
            return None;
        }
        (self.used_tokens, self.shape_index) = (shape.tags.len(), Some(shape_index));
        Some(claim.message())
    }

    /// Frames a message that begins otherwise, or whose tags are not those expected.
    #[inline(never)]
    fn frame_general(&mut self, framer: &FixFramer, buf: &[u8], offset: usize, eof: bool) -> NextFixFrame {
        let message_offset = after_line_ends(buf, offset);
        if let Some(sep) = framer.sep().byte() {
            if self.heads.switch_prefix(buf.get(message_offset..).unwrap_or_default())
                && let Some(message) = self.frame_expected(framer, buf, message_offset, sep)
            {
                return NextFixFrame::Message(message);
            }
            if let Some(claim) = self.heads.last_prefix.read_claim(framer, buf, message_offset, sep) {
                let (bytes, message) = (claim.bytes(buf), claim.message());
                let pass = self.kernel.read_fields(bytes, sep, framer.data_tags(), &mut self.columns);
                if claim.sums_to(pass.byte_sum, pass.seps, sep) {
                    if let Err(fault) = self.finish_message(bytes, pass, framer) {
                        return NextFixFrame::Bad { span: message.span, fault };
                    }
                    let tags = &self.columns.tags[..self.used_tokens];
                    self.shape_index = self.shapes.expect_tags(claim.shape_key, tags, framer.data_tags());
                    return NextFixFrame::Message(message);
                }
            }
        }
        self.frame_slowly(framer, buf, offset, eof)
    }

    /// Frames everything but the usual good message.
    #[cold]
    fn frame_slowly(&mut self, framer: &FixFramer, buf: &[u8], offset: usize, eof: bool) -> NextFixFrame {
        let frame = framer.frame(buf, offset, eof);
        let NextFixFrame::Message(message) = frame else { return frame };
        self.heads.add_prefix(message.span.slice(buf));
        match self.index(message.span.slice(buf), framer) {
            Ok(()) => frame,
            Err(fault) => NextFixFrame::Bad { span: message.span, fault },
        }
    }

    /// Takes the fields that a pass has read, and walks on from where it stopped.
    #[inline]
    fn finish_message(
        &mut self,
        message: &[u8],
        pass: ScanTotals,
        framer: &FixFramer,
    ) -> Result<(), FixFault> {
        self.used_tokens = pass.fields;
        if pass.walk_start < message.len() {
            self.walk_fields(message, pass.walk_start, framer)
        } else {
            Ok(())
        }
    }

    /// Reads fields one after the other from `offset`, appending to those already read.
    #[cold]
    fn walk_fields(&mut self, message: &[u8], mut offset: usize, framer: &FixFramer) -> Result<(), FixFault> {
        let sep = framer.sep();
        let accepts_empty = framer.accepts(FixLeniency::EMPTY);
        let accepts_data = framer.accepts(FixLeniency::DATA);
        // The data field expected next, its length and the tag of that.
        let mut expected = None;
        while offset < message.len() {
            let previous_tag = self.used_tokens.checked_sub(1).map_or(0, |last| self.columns.tags[last]);
            let fault = |tag, kind| FixFault::Field { offset: offset as u32, tag, kind };
            let mut value_end = sep.find(message, offset).unwrap_or(message.len());
            if value_end == offset {
                if accepts_empty {
                    offset = value_end + sep.len();
                    continue;
                }
                return Err(fault(previous_tag, FieldFault::Empty));
            }
            let Some(equals) = message[offset..value_end].iter().position(|&byte| byte == b'=') else {
                return Err(fault(previous_tag, FieldFault::NoEquals));
            };
            let value = offset + equals + 1;
            let tag = plain_tag(&message[offset..value - 1]).ok_or(fault(previous_tag, FieldFault::Tag))?;
            if let Some((data_tag, length, length_tag)) = expected.take()
                && tag == data_tag
            {
                match length {
                    Some(length)
                        if message.len() - value >= length
                            && (sep.is_at(message, value + length)
                                || value + length == message.len() && accepts_data) =>
                    {
                        value_end = value + length;
                    }
                    _ if accepts_data => {}
                    _ => {
                        let stated = length.map(|length| length as u32);
                        return Err(fault(tag, FieldFault::DataLength { length_tag, stated }));
                    }
                }
            }
            if value_end == value && !accepts_empty {
                return Err(fault(tag, FieldFault::NoValue));
            }
            self.columns.write_field(self.used_tokens, tag, value as u32, value_end as u32);
            self.used_tokens += 1;
            if let Some(data_tag) = framer.data_tags().data_of(tag) {
                expected = Some((data_tag, plain_length(&message[value..value_end]), tag));
            }
            offset = (value_end + sep.len()).min(message.len());
        }
        Ok(())
    }
}

#[inline(always)]
fn after_line_ends(buf: &[u8], mut offset: usize) -> usize {
    while matches!(buf.get(offset), Some(b'\r' | b'\n')) {
        offset += 1;
    }
    offset
}
