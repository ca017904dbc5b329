//! Faults of packets and messages.

use std::fmt;
use unitape_base::FrameFault;

/// The code a fault is reported under, the same word in JSON, quarantine and the docs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IexFaultCode {
    /// A message is shorter than its type.
    BadLength,
    /// No message of the packet's protocol has this type.
    UnknownType,
    /// A packet has an unknown protocol.
    UnknownProtocol,
    /// Bytes that are no packet, or no message of one.
    Garbage,
    /// A packet ends before its last message does, or the input inside a packet.
    Truncated,
    /// A side that is neither buy nor sell.
    BadSide,
    /// A symbol that is blank, or not of printable ASCII with trailing blanks.
    BadSymbol,
    /// A code or text that is not printable ASCII.
    BadText,
    /// A time before 1970.
    BadTime,
    /// A record of a capture holds no datagram.
    BadCapture,
}

impl IexFaultCode {
    /// Returns the code as a word, such as `bad_length`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            IexFaultCode::BadLength => "bad_length",
            IexFaultCode::UnknownType => "unknown_type",
            IexFaultCode::UnknownProtocol => "unknown_protocol",
            IexFaultCode::Garbage => "garbage",
            IexFaultCode::Truncated => "truncated",
            IexFaultCode::BadSide => "bad_side",
            IexFaultCode::BadSymbol => "bad_symbol",
            IexFaultCode::BadText => "bad_text",
            IexFaultCode::BadTime => "bad_time",
            IexFaultCode::BadCapture => "bad_capture",
        }
    }
}

/// Why a range of the input is no good message. A plain value; it prints as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IexFault {
    /// The code of the fault.
    pub code: IexFaultCode,
    /// The reason in words, with the type, the numbers or the field that is at fault.
    pub detail: String,
}

impl IexFault {
    #[cold]
    pub(super) fn new(code: IexFaultCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

impl FrameFault for IexFault {
    fn code_word(&self) -> &'static str {
        self.code.as_str()
    }
}

impl fmt::Display for IexFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}
