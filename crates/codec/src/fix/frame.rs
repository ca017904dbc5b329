//! Framing: where the messages of a stream of bytes start and end, and what lies between them.
//!
//! ```text
//!           ╭──────── BodyLength (9) counts this ───────╮
//! 8=FIX.4.4|9=128|35=D|34=7|49=…|…            …|59=0|207=…|10=203|
//! ╰──────────── CheckSum (10) sums this ─────────────────╯
//! ```
//!
//! The answer for a position depends only on the bytes from there on, never on where the buffer
//! happens to end: if bytes not yet there could change it, it is [`NextFixFrame::Incomplete`]. At most
//! [`FixFramer::max_message`] bytes (and 32 more) are waited for. `|` below is the separator.
//!
//! # The rules
//!
//! 1. **Between messages** `\r` and `\n` are skipped: text logs hold a message a line.
//! 2. A **message starts** where `8=FIX`, up to 11 letters, digits or `.`, and a separator are.
//!    Where the start is searched for (in garbage, or inside a bad message) it does not count
//!    a) right after a digit (`58=FIX…` is text), unless `9=` follows the separator, and b) right
//!    after the `=` of a data field (`96=8=FIX…` is a message inside a message).
//! 3. Bytes that do not start a message are **garbage** up to the next start, in pieces of at most
//!    `max_message` bytes.
//! 4. If `9=N|` follows and the field after those N bytes is `10=ddd|` with the **right sum**, that
//!    is the message, whatever is inside: data fields may hold separators and whole messages.
//! 5. If it is there with the **wrong sum**, and no message starts inside, the message ends there
//!    too and is bad (`bad_checksum`).
//! 6. Otherwise BodyLength is not to be trusted. The message ends after the first `|10=…|` (a value
//!    of at most 7 bytes) and is bad (`bad_body_length`), or before the next message start or at
//!    the end of the input, whichever is first, and is bad (`truncated`). If none of these comes
//!    within `max_message` bytes, those are bad (`bad_body_length`) and the rest is garbage.
//!    A claim of more than `max_message` is never waited for.
//! 7. MsgType (35) must be the third field and not empty (`malformed_tag`). Any type passes.
//!
//! **Lenient** framing accepts what rules 5 and 6 call bad, whatever 9 and 10 say or if they are
//! missing, and asks nothing of rule 7. A line end right after a separator or after CheckSum (10)
//! then ends a message, as does the end of the input.
//!
//! **Logs** ([`FixFramer::with_log`]) hold a message a line, with text of their own before and after it.
//! Garbage then ends at the end of its line, and is [`NextFixFrame::Skipped`] unless a separator and `8=`,
//! `9=`, `35=` or `10=` are in it, or `8=FIX`: that was a message once. A line end may replace the separator after
//! CheckSum (10), and always ends a message that has none.
//!
//! **Separators.** In logs that show SOH as `|` or `^A`, length and sum are still those of the
//! original bytes: every separator counts as one byte of value 1. With `^A` a message start inside
//! the claimed length always ends the message (rule 4 holds only without one).
//!
//! **Cost.** One pass over a good message. A bad one is searched again up to its end. Only crafted
//! input, whose lengths all lead to some CheckSum of the wrong sum, is summed more than once: at
//! most `max_message` bytes for each message start.

use std::sync::Arc;

use unitape_base::{NextFrame, Span};

use super::data::RawFieldTags;
use super::fault::FixFault;
use super::plain::plain_length;
use super::scan::{self, ChecksumScanOutcome, MessageEndRule, MessageStartOutcome};
use super::sep::{FieldSeparator, SeparatorOutcome};

/// The next frame of the input. Bytes between the requested offset and the start of a span are line ends; the next
/// request must be at the end of the span. Skipped bytes are text of a log around its messages (only with
/// [`FixFramer::with_log`]).
pub type NextFixFrame = NextFrame<FramedFixMessage, FixFault, Span>;

/// Where a message and its parts are. All offsets are into the buffer framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramedFixMessage {
    /// From `8=` to the separator after CheckSum (10).
    pub span: Span,
    /// After BodyLength (9) and before CheckSum (10).
    pub body: Span,
    /// The value of MsgType (35); empty if a lenient message has no MsgType.
    pub msg_type: Span,
    /// CheckSum (10) is right. Always, unless lenient.
    pub checksum_ok: bool,
    /// BodyLength (9) is right. Always, unless lenient.
    pub length_ok: bool,
}

/// Faults of messages that are accepted; several are joined by `|`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FixLeniency(u8);

impl FixLeniency {
    /// Every fault is refused.
    pub const NONE: Self = FixLeniency(0);
    /// BodyLength (9) is wrong or missing.
    pub const LENGTH: Self = FixLeniency(1);
    /// CheckSum (10) is wrong.
    pub const CHECKSUM: Self = FixLeniency(2);
    /// A field has no value, or two separators are adjacent.
    pub const EMPTY: Self = FixLeniency(4);
    /// A data field is not as long as the field before it says; its value ends at the next separator.
    pub const DATA: Self = FixLeniency(8);
    /// MsgType (35) is not the third field, or is missing.
    pub const TYPE: Self = FixLeniency(16);
    /// All of them.
    pub const ALL: Self = FixLeniency(31);

    /// The kinds by the words that mappings and the command line have for them.
    pub const WORDS: [(&'static str, Self); 6] = [
        ("length", Self::LENGTH),
        ("checksum", Self::CHECKSUM),
        ("empty", Self::EMPTY),
        ("data", Self::DATA),
        ("type", Self::TYPE),
        ("all", Self::ALL),
    ];

    /// Looks up a kind of leniency by its word.
    ///
    /// ```
    /// use unitape_codec::fix::FixLeniency;
    ///
    /// assert_eq!(FixLeniency::parse("empty"), Some(FixLeniency::EMPTY));
    /// assert_eq!(FixLeniency::parse("most"), None);
    /// ```
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind)
    }
}

impl std::ops::BitOr for FixLeniency {
    type Output = Self;

    fn bitor(self, rhs: Self) -> Self {
        FixLeniency(self.0 | rhs.0)
    }
}

impl From<bool> for FixLeniency {
    fn from(lenient: bool) -> Self {
        if lenient { Self::ALL } else { Self::NONE }
    }
}

/// Finds messages. Holds no state of a stream: every call is independent.
///
/// ```
/// use unitape_codec::fix::{NextFixFrame, FixFramer, FieldSeparator};
///
/// let framer = FixFramer::default().with_sep(FieldSeparator::Pipe);
/// let log = b"junk 8=FIX.4.2|9=5|35=0|10=161|\n";
/// let NextFixFrame::Bad { span, .. } = framer.frame(log, 0, true) else { panic!() };
/// assert_eq!(span.slice(log), b"junk ");
/// let NextFixFrame::Message(message) = framer.frame(log, span.end, true) else { panic!() };
/// assert_eq!(message.msg_type.slice(log), b"0");
/// assert_eq!(framer.frame(log, message.span.end, true), NextFixFrame::End);
/// ```
#[derive(Debug, Clone)]
pub struct FixFramer {
    sep: FieldSeparator,
    lenient: FixLeniency,
    reads_log: bool,
    max_message: usize,
    data: Arc<RawFieldTags>,
}

impl Default for FixFramer {
    /// Makes a strict framer with SOH, messages up to 1 MiB and the standard data fields.
    fn default() -> Self {
        FixFramer {
            sep: FieldSeparator::Soh,
            lenient: FixLeniency::NONE,
            reads_log: false,
            max_message: 1 << 20,
            data: RawFieldTags::standard(),
        }
    }
}

impl FixFramer {
    /// Sets the separator.
    #[must_use]
    pub fn with_sep(self, sep: FieldSeparator) -> Self {
        FixFramer { sep, ..self }
    }

    /// Sets the kinds of faults that the framer accepts: all of them for `true`, no kind for `false`.
    #[must_use]
    pub fn with_lenient(self, lenient: impl Into<FixLeniency>) -> Self {
        FixFramer { lenient: lenient.into(), ..self }
    }

    /// Sets whether the framer reads lines of a log, which may have text around the message.
    #[must_use]
    pub fn with_log(self, reads_log: bool) -> Self {
        FixFramer { reads_log, ..self }
    }

    /// Sets the maximum length of a message in bytes, clamped to 64 bytes at least and 256 MiB at most.
    #[must_use]
    pub fn with_max_message(self, max_message: usize) -> Self {
        FixFramer { max_message: max_message.clamp(64, 256 << 20), ..self }
    }

    /// Sets the table of data fields.
    #[must_use]
    pub fn with_data_tags(self, data: Arc<RawFieldTags>) -> Self {
        FixFramer { data, ..self }
    }

    /// Returns the field separator.
    #[must_use]
    pub const fn sep(&self) -> FieldSeparator {
        self.sep
    }

    /// Returns whether the framer accepts all these kinds of faults.
    #[inline]
    #[must_use]
    pub const fn accepts(&self, kinds: FixLeniency) -> bool {
        self.lenient.0 & kinds.0 == kinds.0
    }

    /// Returns whether a message may lack both length and checksum, so that a line end ends it.
    const fn accepts_unended(&self) -> bool {
        self.accepts(FixLeniency(FixLeniency::LENGTH.0 | FixLeniency::CHECKSUM.0))
    }

    /// Returns whether lines may have text around the message.
    #[must_use]
    pub const fn reads_log(&self) -> bool {
        self.reads_log
    }

    const fn line_ends(&self) -> MessageEndRule {
        match (self.reads_log, self.accepts_unended()) {
            (true, _) => MessageEndRule::Any,
            (false, true) => MessageEndRule::AfterSep,
            (false, false) => MessageEndRule::No,
        }
    }

    /// Returns the maximum length of a message, in bytes.
    #[must_use]
    pub const fn max_message(&self) -> usize {
        self.max_message
    }

    /// Returns the table of data fields.
    #[must_use]
    pub fn data_tags(&self) -> &RawFieldTags {
        &self.data
    }

    /// Finds the frame at `buf[offset..]`. `eof`: the input ends where `buf` ends.
    #[must_use]
    pub fn frame(&self, buf: &[u8], offset: usize, eof: bool) -> NextFixFrame {
        let mut search_offset = offset;
        while matches!(buf.get(search_offset), Some(b'\r' | b'\n')) {
            search_offset += 1;
        }
        if search_offset >= buf.len() {
            return if eof {
                NextFixFrame::End
            } else {
                NextFixFrame::Incomplete { from: search_offset, need: search_offset + 1 }
            };
        }
        let length_at = match scan::begin_string(buf, search_offset, self.sep) {
            MessageStartOutcome::Yes(length_at) => length_at,
            MessageStartOutcome::No => return self.frame_garbage(buf, search_offset, eof),
            MessageStartOutcome::Need => return self.cut_short(buf, search_offset, eof),
        };
        let (body_start, claimed) = match self.body_length(buf, length_at) {
            BodyLengthOutcome::Claims { body_start, bytes } => (body_start, bytes),
            BodyLengthOutcome::Need => return self.cut_short(buf, search_offset, eof),
            BodyLengthOutcome::Wrong => {
                return self.rescan_for_end(buf, search_offset, length_at, FixFault::BodyLengthField, eof);
            }
        };
        // The trailer is 7 bytes, more with a longer separator, which the limit need not know.
        if claimed + 7 + (body_start - search_offset) > self.max_message {
            let limit = self.max_message as u32;
            let fault = FixFault::BodyLengthLimit { claimed: claimed as u32, limit };
            return self.rescan_for_end(buf, search_offset, body_start, fault, eof);
        }
        let wrong_length = FixFault::BodyLength { claimed: claimed as u32, actual: 0 };
        let body_end = match self.body_end(buf, search_offset, body_start, claimed, eof) {
            BodyEndOutcome::At(body_end) => body_end,
            BodyEndOutcome::Need(need) => return NextFixFrame::Incomplete { from: search_offset, need },
            BodyEndOutcome::Wrong => {
                return self.rescan_for_end(buf, search_offset, body_start, wrong_length, eof);
            }
        };
        let (stated, end) = match scan::scan_trailer(buf, body_end, self.sep, self.line_ends(), eof) {
            ChecksumScanOutcome::Ends { value, end } => (value, end),
            ChecksumScanOutcome::Need if !eof => {
                return NextFixFrame::Incomplete { from: search_offset, need: buf.len() + 1 };
            }
            ChecksumScanOutcome::Need | ChecksumScanOutcome::No => {
                return self.rescan_for_end(buf, search_offset, body_start, wrong_length, eof);
            }
        };
        let computed = self.message_checksum(&buf[search_offset..body_end]);
        let span = Span { start: search_offset, end };
        if stated == Some(u16::from(computed)) {
            let message = self.message(buf, span, body_start, body_end);
            if message.msg_type.is_empty() && !self.accepts(FixLeniency::TYPE) {
                return NextFixFrame::Bad { span, fault: FixFault::MsgType };
            }
            return NextFixFrame::Message(message);
        }
        let body = Span { start: body_start, end: body_end };
        self.wrong_sum(buf, span, body, ChecksumMismatch { stated_checksum: stated, computed }, eof)
    }

    /// Returns where the last message in `buf` starts, or its line in a log, so that a stream can be cut into blocks
    /// there. Returns 0 if no message starts in `buf`. It is a guess: bytes inside a data field may look like a
    /// start.
    #[must_use]
    pub fn last_message_start(&self, buf: &[u8]) -> usize {
        let last_message_start = scan::last_start(buf, self.sep, &self.data).unwrap_or(0);
        let line = if self.reads_log { memchr::memrchr(b'\n', &buf[..last_message_start]) } else { None };
        line.map_or(last_message_start, |line| line + 1)
    }

    /// Finds the first message start at or after `from`. Like [`FixFramer::last_message_start`], it guesses.
    #[must_use]
    pub fn find_message(&self, buf: &[u8], from: usize) -> Option<usize> {
        let mut starts = scan::message_starts(buf, from, self.sep, &self.data);
        starts.find(|&(_, start)| matches!(start, MessageStartOutcome::Yes(_))).map(|(offset, _)| offset)
    }

    /// Applies rule 5: the claimed length leads to a CheckSum (10), which is wrong.
    #[cold]
    fn wrong_sum(
        &self,
        buf: &[u8],
        span: Span,
        body: Span,
        sums: ChecksumMismatch,
        eof: bool,
    ) -> NextFixFrame {
        // A start before the end of the body is complete or is none: a separator ends the body.
        let inner_starts = scan::message_starts(&buf[..body.end], span.start, self.sep, &self.data)
            .skip_while(|&(start, _)| start == span.start)
            .any(|(_, start)| matches!(start, MessageStartOutcome::Yes(_)));
        if inner_starts {
            let claimed = self.logical_len(&buf[body.start..body.end]) as u32;
            let fault = FixFault::BodyLength { claimed, actual: 0 };
            return self.rescan_for_end(buf, span.start, body.start, fault, eof);
        }
        if self.accepts(FixLeniency::CHECKSUM) {
            let message = self.message(buf, span, body.start, body.end);
            return NextFixFrame::Message(FramedFixMessage { checksum_ok: false, ..message });
        }
        let fault = match sums.stated_checksum {
            Some(stated) => FixFault::Checksum { stated, computed: sums.computed },
            None => FixFault::ChecksumField,
        };
        NextFixFrame::Bad { span, fault }
    }

    /// Applies rule 6: searches for the end, because BodyLength does not give it. Reports `fault` if a CheckSum (10)
    /// is found, and fills in its `found` length.
    #[cold]
    fn rescan_for_end(
        &self,
        buf: &[u8],
        from: usize,
        body: usize,
        fault: FixFault,
        eof: bool,
    ) -> NextFixFrame {
        // Beyond the limit, only the bytes that a start at the limit may need are looked at.
        let window = &buf[..buf.len().min(from + self.max_message + scan::LOOKAHEAD)];
        let limit = from + self.max_message;
        let is_last_window = eof && window.len() == buf.len();
        let undecided = !eof && window.len() < limit + scan::LOOKAHEAD;
        // The nearest start first, and the CheckSum only before it: each byte is searched once
        // for each message that it may belong to.
        let (mut next, mut open) = (None, None);
        for (start, kind) in scan::message_starts(window, from + 1, self.sep, &self.data) {
            if start >= limit {
                break;
            }
            match kind {
                MessageStartOutcome::Yes(_) => {
                    next = Some(start);
                    break;
                }
                MessageStartOutcome::Need => open = open.or(Some(start)),
                MessageStartOutcome::No => {}
            }
        }
        let next_start = next.unwrap_or(window.len());
        let message_end = scan::first_end(
            &window[..next_start],
            from,
            self.sep,
            self.line_ends(),
            is_last_window || next.is_some(),
        );
        match message_end {
            // A value of CheckSum (10) may turn out to be the next message.
            scan::MessageEndOutcome::Trailer { end, .. }
                if undecided && open.is_some_and(|open| open < end) =>
            {
                return NextFixFrame::Incomplete { from, need: buf.len() + 1 };
            }
            scan::MessageEndOutcome::Trailer { body_end, end } if body_end < limit => {
                let span = Span { start: from, end };
                if self.accepts(FixLeniency::LENGTH) {
                    return self.accept_wrong_length(buf, span, Span { start: body, end: body_end });
                }
                let fault = match fault {
                    FixFault::BodyLength { claimed, .. } => {
                        let actual = self.logical_len(&buf[body.min(body_end)..body_end]) as u32;
                        FixFault::BodyLength { claimed, actual }
                    }
                    fault => fault,
                };
                return NextFixFrame::Bad { span, fault };
            }
            scan::MessageEndOutcome::Line(end) if end < limit => {
                return self.frame_without_checksum(buf, from, body, end);
            }
            scan::MessageEndOutcome::Need if undecided && next.is_none() => {
                return NextFixFrame::Incomplete { from, need: buf.len() + 1 };
            }
            _ => {}
        }
        if let Some(message_start) = next {
            return self.frame_without_checksum(buf, from, body, message_start);
        }
        if undecided {
            return NextFixFrame::Incomplete { from, need: buf.len() + 1 };
        }
        if buf.len() <= limit {
            return self.frame_without_checksum(buf, from, body, buf.len());
        }
        let fault = FixFault::NoEnd { limit: self.max_message as u32 };
        NextFixFrame::Bad { span: Span { start: from, end: limit }, fault }
    }

    /// Accepts a message with a wrong length. Its CheckSum (10) must be right, unless the framer accepts wrong
    /// checksums too.
    fn accept_wrong_length(&self, buf: &[u8], span: Span, body: Span) -> NextFixFrame {
        let message = self.message(buf, span, body.start, body.end);
        if self.accepts(FixLeniency::CHECKSUM) {
            return NextFixFrame::Message(FramedFixMessage {
                checksum_ok: false,
                length_ok: false,
                ..message
            });
        }
        let computed = self.message_checksum(&buf[span.start..body.end]);
        let fault = match scan::scan_trailer(buf, body.end, self.sep, self.line_ends(), true) {
            ChecksumScanOutcome::Ends { value: Some(stated), .. } if stated != u16::from(computed) => {
                FixFault::Checksum { stated, computed }
            }
            ChecksumScanOutcome::Ends { value: Some(_), .. }
                if message.msg_type.is_empty() && !self.accepts(FixLeniency::TYPE) =>
            {
                FixFault::MsgType
            }
            ChecksumScanOutcome::Ends { value: Some(_), .. } => {
                return NextFixFrame::Message(FramedFixMessage { length_ok: false, ..message });
            }
            _ => FixFault::ChecksumField,
        };
        NextFixFrame::Bad { span, fault }
    }

    /// Frames a message without CheckSum (10) that ends at `end`.
    fn frame_without_checksum(&self, buf: &[u8], from: usize, body: usize, end: usize) -> NextFixFrame {
        if !self.accepts_unended() {
            return NextFixFrame::Bad { span: Span { start: from, end }, fault: FixFault::Truncated };
        }
        // Line ends before the next message are not part of the last value.
        let mut trimmed = end;
        while trimmed > from && matches!(buf[trimmed - 1], b'\r' | b'\n') {
            trimmed -= 1;
        }
        let span = Span { start: from, end: trimmed };
        let message = self.message(buf, span, body.min(trimmed), trimmed);
        NextFixFrame::Message(FramedFixMessage { checksum_ok: false, length_ok: false, ..message })
    }

    /// Handles an input that stops inside the first two fields.
    #[cold]
    fn cut_short(&self, buf: &[u8], from: usize, eof: bool) -> NextFixFrame {
        if !eof {
            return NextFixFrame::Incomplete { from, need: buf.len() + 1 };
        }
        NextFixFrame::Bad { span: Span { start: from, end: buf.len() }, fault: FixFault::Truncated }
    }

    /// Applies rule 3: frames garbage.
    #[cold]
    fn frame_garbage(&self, buf: &[u8], from: usize, eof: bool) -> NextFixFrame {
        let limit = from + self.max_message;
        let mut window = &buf[..buf.len().min(limit + scan::LOOKAHEAD)];
        let mut message_end = None;
        // No start continues over a line end.
        if self.reads_log
            && let Some(line) = memchr::memchr2(b'\r', b'\n', &window[from..])
        {
            window = &window[..from + line];
            message_end = Some(window.len()).filter(|&end| end < limit);
        }
        for (start, kind) in scan::message_starts(window, from, self.sep, &self.data) {
            if start >= limit {
                break;
            }
            if matches!(kind, MessageStartOutcome::Yes(_)) {
                message_end = Some(start);
                break;
            }
        }
        let end = match message_end {
            Some(start) => start,
            None if buf.len() >= limit + scan::LOOKAHEAD || eof => buf.len().min(limit),
            None => return NextFixFrame::Incomplete { from, need: buf.len() + 1 },
        };
        let span = Span { start: from, end };
        if self.reads_log && !scan::looks_like_message(span.slice(buf), self.sep) {
            return NextFixFrame::Skipped(span);
        }
        NextFixFrame::Bad { span, fault: FixFault::Garbage }
    }

    /// Reads `9=N|` at `offset`.
    #[inline]
    fn body_length(&self, buf: &[u8], offset: usize) -> BodyLengthOutcome {
        let mut pos = offset;
        for expected in *b"9=" {
            match buf.get(pos) {
                Some(&byte) if byte == expected => pos += 1,
                Some(_) => return BodyLengthOutcome::Wrong,
                None => return BodyLengthOutcome::Need,
            }
        }
        let digits = pos;
        while pos - digits < 9 && buf.get(pos).is_some_and(u8::is_ascii_digit) {
            pos += 1;
        }
        match self.sep.check_at(buf, pos) {
            SeparatorOutcome::Yes => {}
            SeparatorOutcome::No => return BodyLengthOutcome::Wrong,
            SeparatorOutcome::Need => return BodyLengthOutcome::Need,
        }
        match plain_length(&buf[digits..pos]) {
            Some(bytes) => BodyLengthOutcome::Claims { body_start: pos + self.sep.len(), bytes },
            None => BodyLengthOutcome::Wrong,
        }
    }

    /// Finds where the body ends, after a separator, if BodyLength is right.
    #[inline]
    fn body_end(
        &self,
        buf: &[u8],
        from: usize,
        body_start: usize,
        claimed: usize,
        eof: bool,
    ) -> BodyEndOutcome {
        let Some(sep) = self.sep.byte() else {
            return self.body_end_caret(buf, from, body_start, claimed, eof);
        };
        let body_end = body_start + claimed;
        if buf.len() < body_end + 7 && !eof {
            return BodyEndOutcome::Need(body_end + 7);
        }
        if claimed == 0 || buf.get(body_end - 1) != Some(&sep) {
            return BodyEndOutcome::Wrong;
        }
        BodyEndOutcome::At(body_end)
    }

    /// Finds the end of the body where a separator is two bytes and counts as one. A message start inside ends the
    /// count, so that a long claim is not walked again for each message that follows.
    fn body_end_caret(
        &self,
        buf: &[u8],
        from: usize,
        body_start: usize,
        claimed: usize,
        eof: bool,
    ) -> BodyEndOutcome {
        let next_start = scan::message_starts(buf, from + 1, self.sep, &self.data)
            .find(|&(_, start)| matches!(start, MessageStartOutcome::Yes(_)))
            .map(|(start, _)| start);
        let message_end = next_start.unwrap_or(buf.len());
        let (mut pos, mut left, mut on_sep) = (body_start, claimed, false);
        while left > 0 && pos < message_end {
            on_sep = self.sep.is_at(buf, pos);
            pos += if on_sep { self.sep.len() } else { 1 };
            left -= 1;
        }
        if next_start.is_none() && !eof && (left > 0 || buf.len() < pos + 8) {
            return BodyEndOutcome::Need((pos + left + 8).max(buf.len() + 1));
        }
        if left == 0 && on_sep && pos <= message_end {
            BodyEndOutcome::At(pos)
        } else {
            BodyEndOutcome::Wrong
        }
    }

    /// Computes the checksum of the bytes up to the trailer. Each separator counts as one byte of value 1.
    fn message_checksum(&self, bytes: &[u8]) -> u8 {
        let separator_excess = match self.sep {
            FieldSeparator::Soh => 0,
            FieldSeparator::Pipe => memchr::memchr_iter(b'|', bytes).count() as u64 * u64::from(b'|' - 1),
            FieldSeparator::Semicolon => {
                memchr::memchr_iter(b';', bytes).count() as u64 * u64::from(b';' - 1)
            }
            FieldSeparator::CaretA => {
                let extra = u64::from(b'^') + u64::from(b'A') - 1;
                memchr::memmem::find_iter(bytes, b"^A").count() as u64 * extra
            }
        };
        scan::byte_sum(bytes).wrapping_sub(separator_excess) as u8
    }

    /// Returns the length of `part` in bytes, with each separator counted as one byte.
    fn logical_len(&self, part: &[u8]) -> usize {
        match self.sep {
            FieldSeparator::CaretA => part.len() - memchr::memmem::find_iter(part, b"^A").count(),
            _ => part.len(),
        }
    }

    /// Makes the message at `span`, marked as valid until a fault is found.
    #[inline]
    fn message(&self, buf: &[u8], span: Span, body_start: usize, body_end: usize) -> FramedFixMessage {
        let body = Span { start: body_start.min(body_end), end: body_end };
        let mut msg_type = Span { start: body.start, end: body.start };
        if let Some(value) = body.slice(buf).strip_prefix(b"35=") {
            let value_start = body.start + 3;
            // A few bytes: a loop beats a call.
            let mut len = 0;
            while len < value.len() && !self.sep.is_at(value, len) {
                len += 1;
            }
            msg_type = Span { start: value_start, end: value_start + len };
        } else if self.accepts(FixLeniency::TYPE) {
            msg_type = scan::find_field(body.slice(buf), 35, self.sep).map_or(msg_type, |value| Span {
                start: body.start + value.start,
                end: body.start + value.end,
            });
        }
        FramedFixMessage { span, body, msg_type, checksum_ok: true, length_ok: true }
    }
}

/// Two sums of a message that are not the same.
#[derive(Clone, Copy)]
struct ChecksumMismatch {
    /// The value of CheckSum (10), `None` where it is not three digits.
    stated_checksum: Option<u16>,
    computed: u8,
}

enum BodyLengthOutcome {
    Claims { body_start: usize, bytes: usize },
    Wrong,
    Need,
}

enum BodyEndOutcome {
    At(usize),
    Need(usize),
    Wrong,
}
