//! Faults of a stretch of FIX bytes, in six codes and a reason for people.

use std::fmt;
use unitape_base::FrameFault;

use super::standard::TagLabel;

/// The code a fault is reported under, the same word in JSON, quarantine and the docs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FixFaultCode {
    /// CheckSum (10) is not the sum of the bytes before it, or not three digits.
    BadChecksum,
    /// BodyLength (9) is missing, too large, or does not lead to CheckSum (10).
    BadBodyLength,
    /// A field is not `tag=value`, or a header field is not where it must be.
    MalformedTag,
    /// The message stops without CheckSum (10): the next one starts, or the input ends.
    Truncated,
    /// Bytes between messages that are neither message nor line end.
    Garbage,
    /// The entries of a repeating group are not as many as its count says.
    GroupCount,
}

impl FixFaultCode {
    /// Returns the code as a word, such as `bad_checksum`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            FixFaultCode::BadChecksum => "bad_checksum",
            FixFaultCode::BadBodyLength => "bad_body_length",
            FixFaultCode::MalformedTag => "malformed_tag",
            FixFaultCode::Truncated => "truncated",
            FixFaultCode::Garbage => "garbage",
            FixFaultCode::GroupCount => "group_count",
        }
    }
}

impl fmt::Display for FixFaultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The reason why bytes are no valid message.
///
/// It is a plain value without text, so that a stream of faults needs no allocation; `Display` describes it in a
/// sentence. Offsets inside are bytes from the start of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FixFault {
    /// Bytes that belong to no message.
    Garbage,
    /// No CheckSum (10) before the next message or the end of the input.
    Truncated,
    /// BodyLength (9) is not the second field, or not a number of one to nine digits.
    BodyLengthField,
    /// BodyLength (9) claims more than the largest message accepted.
    BodyLengthLimit {
        /// Bytes claimed by BodyLength (9).
        claimed: u32,
        /// The largest whole message accepted, in bytes.
        limit: u32,
    },
    /// BodyLength (9) claims one length, the body has another.
    BodyLength {
        /// Bytes claimed by BodyLength (9).
        claimed: u32,
        /// Bytes from the end of field 9 to the start of field 10.
        actual: u32,
    },
    /// Neither CheckSum (10) nor another message within the largest message accepted.
    NoEnd {
        /// The largest whole message accepted, in bytes.
        limit: u32,
    },
    /// CheckSum (10) differs from the sum of the bytes before it, modulo 256.
    Checksum {
        /// The value of field 10.
        stated: u16,
        /// The sum of the bytes.
        computed: u8,
    },
    /// CheckSum (10) is not three digits.
    ChecksumField,
    /// MsgType (35) is not the third field, or is empty.
    MsgType,
    /// A field is not `tag=value`.
    Field {
        /// Where the field starts.
        offset: u32,
        /// The field's tag; without one, the tag of the previous field; 0 if there is no previous field.
        tag: u32,
        /// The fault of the field.
        kind: FieldFault,
    },
    /// A repeating group holds another number of entries than its count says.
    GroupCount {
        /// Where the count field starts.
        offset: u32,
        /// The tag of the count field.
        tag: u32,
        /// The value of the count field, `u32::MAX` where it is no number.
        stated: u32,
        /// Entries found.
        actual: u32,
        /// The tag of the field behind them; 0 if that is not known.
        ended_by: u32,
    },
    /// Groups nest deeper than [`MAX_GROUP_DEPTH`](super::MAX_GROUP_DEPTH).
    GroupDepth {
        /// Where the count field of the group too deep starts.
        offset: u32,
        /// The tag of the count field.
        tag: u32,
    },
}

/// The fault of one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldFault {
    /// Nothing between two separators.
    Empty,
    /// No `=` in the field.
    NoEquals,
    /// The tag is not 1 to 9 digits without a leading zero.
    Tag,
    /// Nothing after the `=`.
    NoValue,
    /// A data field does not have the length that the length field before it says.
    DataLength {
        /// The tag of the length field.
        length_tag: u32,
        /// The field's value; `None` if it is not a number of one to nine digits.
        stated: Option<u32>,
    },
}

impl FixFault {
    /// Returns the code under which unitape reports this fault.
    #[must_use]
    pub const fn code(self) -> FixFaultCode {
        match self {
            FixFault::Garbage => FixFaultCode::Garbage,
            FixFault::Truncated => FixFaultCode::Truncated,
            FixFault::BodyLengthField
            | FixFault::BodyLengthLimit { .. }
            | FixFault::BodyLength { .. }
            | FixFault::NoEnd { .. } => FixFaultCode::BadBodyLength,
            FixFault::Checksum { .. } | FixFault::ChecksumField => FixFaultCode::BadChecksum,
            FixFault::MsgType | FixFault::Field { .. } => FixFaultCode::MalformedTag,
            FixFault::GroupCount { .. } | FixFault::GroupDepth { .. } => FixFaultCode::GroupCount,
        }
    }
}

impl FrameFault for FixFault {
    fn code_word(&self) -> &'static str {
        self.code().as_str()
    }
}

impl fmt::Display for FixFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            FixFault::Garbage => f.write_str("bytes outside any message"),
            FixFault::Truncated => f.write_str("the message ends without CheckSum (10)"),
            FixFault::BodyLengthField => {
                f.write_str("BodyLength (9) is not the second field, or not a number")
            }
            FixFault::BodyLengthLimit { claimed, limit } => {
                write!(f, "BodyLength (9) claims {claimed} bytes, the limit is {limit} a message")
            }
            FixFault::BodyLength { claimed, actual } => {
                write!(f, "BodyLength (9) claims {claimed} bytes, the body has {actual}")
            }
            FixFault::NoEnd { limit } => {
                write!(f, "no CheckSum (10) and no next message within {limit} bytes")
            }
            FixFault::Checksum { stated, computed } => {
                write!(f, "CheckSum (10) says {stated:03}, the bytes sum to {computed:03}")
            }
            FixFault::ChecksumField => f.write_str("CheckSum (10) is not three digits"),
            FixFault::MsgType => f.write_str("MsgType (35) is not the third field, or is empty"),
            FixFault::Field { offset, tag, kind } => {
                let label = TagLabel(tag);
                let reason = match kind {
                    FieldFault::NoValue => {
                        return write!(f, "the field {label} at byte {offset} has no value");
                    }
                    FieldFault::DataLength { length_tag, stated } => {
                        write!(f, "the data field {label} at byte {offset} ")?;
                        let length = TagLabel(length_tag);
                        return match stated {
                            Some(stated) => {
                                write!(f, "is not as long as {length} before it says, {stated} bytes")
                            }
                            None => write!(f, "has no length: {length} before it is not a number"),
                        };
                    }
                    FieldFault::Empty => "is empty",
                    FieldFault::NoEquals => "has no '='",
                    FieldFault::Tag => "has a tag that is not 1 to 9 digits without leading zero",
                };
                match tag {
                    0 => write!(f, "the first field, at byte {offset}, {reason}"),
                    _ => write!(f, "the field after {label}, at byte {offset}, {reason}"),
                }
            }
            FixFault::GroupCount { offset, tag, stated, actual, ended_by } => {
                let group = TagLabel(tag);
                if stated == u32::MAX {
                    return write!(f, "the count of group {group} at byte {offset} is not a number");
                }
                write!(f, "group {group} at byte {offset} says {stated} entries, has {actual}")?;
                match (actual, ended_by) {
                    (_, 0) => Ok(()),
                    (0, tag) => write!(f, "; {} follows", TagLabel(tag)),
                    (actual, tag) => write!(f, "; entry {actual} ended at {}", TagLabel(tag)),
                }
            }
            FixFault::GroupDepth { offset, tag } => {
                write!(f, "the group {} at byte {offset} is nested too deep", TagLabel(tag))
            }
        }
    }
}
