//! The source of a message's event time; [`super`] documents the order of precedence.

use super::selection::SwiftFieldSelector;
use super::values::{self, NANOS, SwiftFieldValue, SwiftValueKind};
use unitape_codec::swift_mt::parts::{self, SwiftComponents};
use unitape_codec::swift_mt::{FramedSwiftMessage, Span, SwiftField, header, value};

/// Fields that may give the event time, as far as they have been seen: index and one more.
#[derive(Debug, Default)]
pub(super) struct SwiftTimeCandidates {
    made: Option<usize>,
    closing: Option<usize>,
    opening: Option<usize>,
    value_time: Option<usize>,
    executes: Option<usize>,
    settlement_time: Option<usize>,
    dealt: Option<usize>,
    stated_time: Option<usize>,
    line_time: Option<usize>,
}

impl SwiftTimeCandidates {
    #[inline]
    pub(super) fn note_field(&mut self, number: u8, letter: u8, i: usize, value: &[u8]) {
        let candidate = match (number, letter) {
            (13, b'D') => &mut self.made,
            (98, b'A' | b'C' | b'E') if value.starts_with(b":PREP/") => &mut self.made,
            (62, _) => &mut self.closing,
            (60, _) => &mut self.opening,
            (32, b'A' | b'C' | b'D') => &mut self.value_time,
            (30, 0) => &mut self.executes,
            (30, b'T') => &mut self.dealt,
            (98, b'A' | b'C' | b'E') => match value.get(..6) {
                Some(b":SETT/" | b":ESET/") => &mut self.settlement_time,
                Some(b":TRAD/") => &mut self.dealt,
                Some(b":STAT/") => &mut self.stated_time,
                _ => return,
            },
            (61, 0) => &mut self.line_time,
            _ => return,
        };
        *candidate = candidate.or(Some(i));
    }

    pub(super) fn best_time<'t>(
        &self,
        text: &[u8],
        base: usize,
        token_at: impl Fn(usize) -> &'t SwiftField,
        message: &FramedSwiftMessage,
        buf: &[u8],
        parts: &mut SwiftComponents,
    ) -> Option<SwiftFieldValue> {
        let of_token = |i: usize, parts: &mut SwiftComponents| {
            let token = token_at(i);
            let token_span = Span { start: base + token.start as usize, end: base + token.end as usize };
            let split_outcome = parts::split_field(token, text, parts);
            values::select_part(
                &SwiftFieldSelector::Moment,
                split_outcome,
                parts,
                token.slice(text),
                token_span,
            )
        };
        if let Some(i) = self.made.or(self.closing).or(self.opening) {
            return of_token(i, parts);
        }
        let sent_time = message.block(2).and_then(|span| {
            let header_outcome = header(2, span.slice(buf), parts);
            // A block 2 without a time, or of no known form, gives none.
            values::from_header("moment", header_outcome, parts, span.slice(buf), span)
                .filter(SwiftFieldValue::is_moment)
        });
        let day = self
            .value_time
            .or(self.executes)
            .or(self.settlement_time)
            .or(self.dealt)
            .or(self.stated_time)
            .or(self.line_time);
        sent_time.or_else(|| day.and_then(|i| of_token(i, parts))).or_else(|| {
            let span = message.acknowledged(buf)?;
            let (day, time) = span.slice(buf).split_at_checked(6)?;
            let nanos = value::date(day)?.nanos() + value::time(time)? * NANOS;
            Some(SwiftFieldValue::from_span(span, SwiftValueKind::Moment(nanos)))
        })
    }
}
