//! The message frame: a user's own bytes, which the tape carries and does not look into.
//!
//! ```text
//!  0            8          12         16            16 + length
//! ┌────────────┬──────────┬──────────┬─────────────┬──────────────────────┐
//! │ header word│ length   │ topic    │ bytes       │ zero to the next line│
//! │ kind 64    │ u32      │ u32      │             │                      │
//! └────────────┴──────────┴──────────┴─────────────┴──────────────────────┘
//! ```
//!
//! A message is an event like others: it has an ordinal, and it may appear between frames of any other kind.

use crate::frame::{FrameHeader, LINE, flags};

/// Kind of a frame that holds a user's message; beyond the kinds of [`crate::EventKind`], whose fields the schema
/// names.
pub const KIND_MESSAGE: u8 = 64;

/// Bytes of a message's frame before its own.
pub const MESSAGE_HEAD: usize = 16;

/// Bytes of the greatest message. The segment of a tape must hold the frame as well.
pub const MESSAGE_BYTES_MAX: usize = u16::MAX as usize * LINE - MESSAGE_HEAD;

/// A message, in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicMessage<'a> {
    /// The publisher's number of the topic.
    pub topic: u32,
    /// The bytes of the message.
    pub bytes: &'a [u8],
}

impl<'a> TopicMessage<'a> {
    /// Takes a frame apart; `None` if it holds no message.
    #[inline]
    #[must_use]
    pub fn from_frame(frame: &'a [u8]) -> Option<Self> {
        let head: &[u8; MESSAGE_HEAD] = frame.first_chunk()?;
        if FrameHeader::read(head).kind() != KIND_MESSAGE {
            return None;
        }
        let word = |offset: usize| {
            u32::from_le_bytes([head[offset], head[offset + 1], head[offset + 2], head[offset + 3]])
        };
        let bytes = frame[MESSAGE_HEAD..].get(..word(8) as usize)?;
        Some(Self { topic: word(12), bytes })
    }

    /// Computes the header word of a frame for a message of `length` bytes, and the next eight bytes. Returns `None` if
    /// the message is too long for a frame.
    #[inline]
    #[must_use]
    pub const fn header_words(topic: u32, length: usize) -> Option<(FrameHeader, u64)> {
        if length > MESSAGE_BYTES_MAX {
            return None;
        }
        let lines = (MESSAGE_HEAD + length).div_ceil(LINE) as u16;
        let header = FrameHeader::new_unstamped(KIND_MESSAGE, flags::LAST, lines);
        Some((header, (topic as u64) << 32 | length as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The length is an outside value for a reader of a tape: beyond the frame there is no message.
    #[test]
    fn a_message_lies_in_its_frame() {
        for length in [0, 1, 47, 48, 49, 100, 4096] {
            let (header, word) = TopicMessage::header_words(7, length).unwrap();
            let mut frame = vec![0xab; header.len_bytes()];
            header.write(&mut frame);
            frame[8..16].copy_from_slice(&word.to_le_bytes());
            let message = TopicMessage::from_frame(&frame).unwrap();
            assert_eq!((message.topic, message.bytes.len()), (7, length));
            assert!(frame.len() - MESSAGE_HEAD - length < LINE);
            let excess_length = (frame.len() - MESSAGE_HEAD + 1) as u32;
            frame[8..12].copy_from_slice(&excess_length.to_le_bytes());
            assert_eq!(TopicMessage::from_frame(&frame), None);
        }
        assert!(
            TopicMessage::header_words(0, MESSAGE_BYTES_MAX)
                .is_some_and(|(header, _)| header.lines() == u16::MAX)
        );
        assert_eq!(TopicMessage::header_words(0, MESSAGE_BYTES_MAX + 1), None);
        assert_eq!(TopicMessage::from_frame(&[0; 15]), None);
    }
}
