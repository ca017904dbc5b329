//! The slow twin of framing and fields: a byte or a line at a time, straight from the rules. It shares the types
//! with the fast path and none of its code.

use crate::swift_mt::{
    EnvelopeForm, FramedSwiftMessage, NEST_MAX, NextSwiftFrame, PREFACE_BYTES, PREFACE_LINES, Span,
    SwiftFault, SwiftField, SwiftFramer, SwiftTag,
};

/// How far after the limit bytes may decide.
const BEYOND: usize = 24;

/// Finds the frame at `input[at..]`, the whole input.
#[must_use]
pub fn frame(framer: &SwiftFramer, input: &[u8], at: usize) -> NextSwiftFrame {
    let mut from = at;
    loop {
        if from < input.len() && b"\r\n \t$\x01\x03".contains(&input[from]) {
            from += 1;
        } else if input[from..].starts_with(b"\xef\xbb\xbf") {
            from += 3;
        } else {
            break;
        }
    }
    if from == input.len() {
        return NextSwiftFrame::End;
    }
    let limit = from + framer.max_message();
    let seen = Seen { buf: &input[..input.len().min(limit + BEYOND)], from, limit, len: input.len() };
    if seen.buf[from..].starts_with(b"{1:") {
        seen.envelope()
    } else if is_body_start(&seen.buf[from..]) {
        seen.body(from)
    } else {
        seen.neither()
    }
}

/// Why a message has no end.
enum UnfinishedReason {
    /// The bytes end.
    Short,
    /// The next message starts.
    Next(usize),
    Wrong(SwiftFault, usize),
}

struct Seen<'s> {
    buf: &'s [u8],
    from: usize,
    limit: usize,
    /// Length of the whole input.
    len: usize,
}

impl Seen<'_> {
    fn whole(&self) -> bool {
        self.len < self.limit + BEYOND
    }

    fn bad(&self, end: usize, fault: SwiftFault) -> NextSwiftFrame {
        NextSwiftFrame::Bad { span: Span { start: self.from, end: end.min(self.len) }, fault }
    }

    fn no_end(&self) -> NextSwiftFrame {
        self.bad(self.limit, SwiftFault::NoEnd { limit: (self.limit - self.from) as u32 })
    }

    fn envelope(&self) -> NextSwiftFrame {
        match self.blocks() {
            Ok(message) if message.span.end <= self.limit => {
                let text = &self.buf[..message.text().end];
                let mut at = message.text().start;
                while at < text.len() && b"\r\n \t".contains(&text[at]) {
                    at += 1;
                }
                if at == text.len() || text[at] == b'{' || tag_of(&text[at..]).is_some() {
                    NextSwiftFrame::Message(message)
                } else {
                    let offset = (at - self.from) as u32;
                    NextSwiftFrame::Bad { span: message.span, fault: SwiftFault::TextBeforeTag { offset } }
                }
            }
            Err(UnfinishedReason::Next(at)) if at <= self.limit => self.bad(at, SwiftFault::Truncated),
            Err(UnfinishedReason::Wrong(fault, at)) if at < self.limit => {
                let next = (at..self.buf.len()).find(|&i| self.buf[i..].starts_with(b"{1:"));
                self.bad(next.unwrap_or(self.limit).min(self.limit), fault)
            }
            Err(UnfinishedReason::Short) if self.whole() && self.len <= self.limit => {
                self.bad(self.len, SwiftFault::Truncated)
            }
            _ => self.no_end(),
        }
    }

    /// Reads the blocks, one after the other.
    fn blocks(&self) -> Result<FramedSwiftMessage, UnfinishedReason> {
        let mut message = FramedSwiftMessage::default();
        let (mut at, mut over) = (self.from, None);
        loop {
            if over.is_none() {
                while at < self.buf.len() && b"\r\n".contains(&self.buf[at]) {
                    at += 1;
                }
            }
            let wrong = |fault| Err(UnfinishedReason::Wrong(fault, at));
            let offset = (at - self.from) as u32;
            let ended = |message: &FramedSwiftMessage, end| {
                Ok(FramedSwiftMessage { span: Span { start: self.from, end }, ..*message })
            };
            let here = &self.buf[at..];
            let block = block_at(here);
            // A block that the bytes cut off: more could follow, unless there is no more.
            let cut = here.is_empty()
                || (here.len() < 3 && b"{1:{2:{3:{4:{5:{S:".chunks(3).any(|b| b.starts_with(here)));
            if cut && !self.whole() {
                return Err(UnfinishedReason::Short);
            }
            let Some(id) = block else {
                return match over {
                    Some(end) => ended(&message, end),
                    None if cut => Err(UnfinishedReason::Short),
                    None => wrong(SwiftFault::NoBlock { offset }),
                };
            };
            let index = "12345S".find(char::from(id)).expect("one of these");
            if id == b'1' && at > self.from {
                let Some(end) = over else { return Err(UnfinishedReason::Next(at)) };
                let service = message.blocks[0].slice(self.buf);
                let acknowledges = service.len() > 2
                    && &service[1..3] == b"21"
                    && after_line_ends(message.text().slice(self.buf)) == Some(b'{')
                    && message.block(2).is_none();
                if !acknowledges || !message.ack.is_empty() {
                    return ended(&message, end);
                }
                message = FramedSwiftMessage {
                    ack: Span { start: self.from, end },
                    ..FramedSwiftMessage::default()
                };
                over = None;
            }
            match (over, message.block(index + 1)) {
                (Some(end), Some(_)) => return ended(&message, end),
                (Some(end), None) if index < 4 => return ended(&message, end),
                (None, Some(_)) => return wrong(SwiftFault::Twice { block: id, offset }),
                _ => {}
            }
            let start = at + 3;
            let end = match over {
                _ if id == b'4' => self.text(start)?,
                None => self.closing(start, id, false)?,
                Some(over) => {
                    // Braces in pairs on one line.
                    let line = &self.buf[start..];
                    let stop = line.iter().position(|b| b"\r\n$".contains(b));
                    let line = &line[..stop.unwrap_or(line.len())];
                    let open = |n: usize| {
                        let count = |brace| line[..=n].iter().filter(|b| **b == brace).count();
                        count(b'{') as i64 - count(b'}') as i64
                    };
                    let deep = (0..line.len()).find(|&n| open(n) >= NEST_MAX as i64);
                    match (0..line.len()).find(|&n| open(n) < 0) {
                        Some(n) if deep.is_none_or(|deep| deep > n) => start + n,
                        None if deep.is_none() && stop.is_none() && !self.whole() => {
                            return Err(UnfinishedReason::Short);
                        }
                        _ => return ended(&message, over),
                    }
                }
            };
            message.blocks[index] = Span { start, end };
            at = end + if self.buf[end] == b'-' { 2 } else { 1 };
            if id == b'4' || over.is_some() {
                over = Some(at);
            }
        }
    }

    /// Finds where the text ends.
    fn text(&self, start: usize) -> Result<usize, UnfinishedReason> {
        match after_line_ends(&self.buf[start..]) {
            None => Err(UnfinishedReason::Short),
            Some(b'{') => self.closing(start, b'4', true),
            Some(_) => self.dash(start),
        }
    }

    /// Finds the first `-}`.
    fn dash(&self, start: usize) -> Result<usize, UnfinishedReason> {
        for at in start..self.buf.len() {
            if self.buf[at..].starts_with(b"-}") {
                return Ok(at);
            }
            if self.buf[at..].starts_with(b"{1:") {
                return Err(UnfinishedReason::Next(at));
            }
        }
        Err(UnfinishedReason::Short)
    }

    /// Finds the closing brace of a block whose content starts at `start`. Other blocks in it are faults. With
    /// `may_quote`, they may be messages quoted in a text.
    fn closing(&self, start: usize, block: u8, may_quote: bool) -> Result<usize, UnfinishedReason> {
        let (mut open, mut at) = (0, start);
        while at < self.buf.len() {
            let here = &self.buf[at..];
            if here[0] == b'}' {
                if open == 0 {
                    return Ok(at);
                }
                open -= 1;
            }
            if here[0] == b'{' {
                if b"{1:{2:{3:{4:{5:{S:".chunks(3).any(|b| here.len() < 3 && b.starts_with(here)) {
                    return Err(UnfinishedReason::Short);
                }
                let offset = (at - self.from) as u32;
                match block_at(here) {
                    Some(b'1') if !may_quote || at > start => return Err(UnfinishedReason::Next(at)),
                    Some(b'4') if may_quote => match after_line_ends(&here[3..]) {
                        None => return Err(UnfinishedReason::Short),
                        Some(b'{') => {}
                        Some(_) => {
                            at = self.dash(at + 3)? + 2;
                            continue;
                        }
                    },
                    Some(_) if !may_quote => {
                        return Err(UnfinishedReason::Wrong(SwiftFault::Unclosed { block, offset }, at));
                    }
                    _ => {}
                }
                open += 1;
                if open == NEST_MAX {
                    return Err(UnfinishedReason::Wrong(SwiftFault::Depth { offset }, at));
                }
            }
            at += 1;
        }
        Err(UnfinishedReason::Short)
    }

    /// Lines with where they start; the last one is there only if the input ends with it.
    fn lines(&self, from: usize) -> Vec<(usize, &[u8])> {
        let mut lines = Vec::new();
        let mut at = from;
        for line in self.buf[from..].split_inclusive(|b| *b == b'\n') {
            if line.ends_with(b"\n") || self.whole() {
                lines.push((at, line.strip_suffix(b"\n").unwrap_or(line)));
            }
            at += line.len();
        }
        lines
    }

    fn body(&self, first: usize) -> NextSwiftFrame {
        let ended = |end: usize, over: usize| {
            let mut message = FramedSwiftMessage {
                span: Span { start: self.from, end: over },
                form: EnvelopeForm::Bare,
                preface: Span { start: self.from, end: first },
                ..FramedSwiftMessage::default()
            };
            message.blocks[3] = Span { start: first, end };
            if over <= self.limit { NextSwiftFrame::Message(message) } else { self.no_end() }
        };
        let mut tags: Vec<String> = Vec::new();
        for (at, line) in self.lines(first) {
            let text = String::from_utf8_lossy(line).into_owned();
            if line.starts_with(b"-}") {
                return ended(at, at + 2);
            }
            if let Some(n) = (0..line.len()).find(|&n| line[n..].starts_with(b"{1:")) {
                return ended(at + n, at + n);
            }
            let before_etx = text.split('\u{3}').next().unwrap_or_default();
            if before_etx.trim_end_matches([' ', '\t', '\r']) == "-" {
                return ended(at, at + 1);
            }
            if before_etx.trim_end_matches([' ', '\t', '\r']) == "-XXX" {
                return ended(at, at + 4);
            }
            if text.trim_end_matches([' ', '\t', '\r']) == "$" && at > first {
                return ended(at, at);
            }
            if line.starts_with(b":20:") && !tags.is_empty() {
                return ended(at, at);
            }
            let statement =
                [":60", ":61", ":62", ":64", ":65"].iter().any(|t| text.starts_with(t) && line.len() > 3)
                    || [":86:", ":25:", ":28:", ":28C"].iter().any(|t| text.starts_with(t));
            if line.starts_with(b":20:") || statement {
                tags.push(text);
            }
        }
        if !self.whole() || self.len > self.limit { self.no_end() } else { ended(self.len, self.len) }
    }

    fn neither(&self) -> NextSwiftFrame {
        let garbage = |end: usize| self.bad(end.min(self.limit), SwiftFault::Garbage);
        let mut at = self.from;
        let mut braces = false;
        let mut lines = 0;
        loop {
            let rest = &self.buf[at..];
            let line_len = rest.iter().position(|b| *b == b'\n');
            let line = &rest[..line_len.unwrap_or(rest.len())];
            for n in 0..line.len() {
                if line[n..].starts_with(b"{1:") {
                    return garbage(at + n);
                }
                if line[n..].starts_with(b"-}") {
                    return garbage(at + n + 2);
                }
            }
            let Some(line_len) = line_len else { return garbage(self.len) };
            let text = String::from_utf8_lossy(line);
            let before_etx = text.split('\u{3}').next().unwrap_or_default();
            if braces && before_etx.trim_end_matches([' ', '\t', '\r']) == "-" {
                return garbage(at + 1);
            }
            braces = braces || line.contains(&b'{') || line.contains(&b'}');
            at += line_len + 1;
            lines += 1;
            let cut = self.buf.len() - at < 5 && !self.whole();
            if !braces && cut {
                // Not enough to recognise what starts here, and nothing more is looked at.
                if !is_body_start(&self.buf[at..]) {
                    return garbage(self.limit);
                }
            }
            if !braces && is_body_start(&self.buf[at..]) {
                if lines <= PREFACE_LINES && at - self.from <= PREFACE_BYTES && at < self.limit {
                    return self.body(at);
                }
                return garbage(at);
            }
        }
    }
}

/// Returns the first byte after leading line ends.
fn after_line_ends(text: &[u8]) -> Option<u8> {
    text.iter().copied().find(|b| !b"\r\n".contains(b))
}

fn block_at(text: &[u8]) -> Option<u8> {
    let &[b'{', id, b':', ..] = text else { return None };
    b"12345S".contains(&id).then_some(id)
}

/// Returns the tag of a line that begins with `:tag:`.
fn tag_of(line: &[u8]) -> Option<&[u8]> {
    let mut parts = line.splitn(3, |b| *b == b':');
    let (before, tag, _) = (parts.next()?, parts.next()?, parts.next()?);
    let plain = tag.iter().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase() || *b == b'_');
    (before.is_empty() && plain && (2..=16).contains(&tag.len())).then_some(tag)
}

fn is_body_start(line: &[u8]) -> bool {
    match tag_of(line) {
        Some(b"NS") => true,
        Some([a, b, more @ ..]) => {
            a.is_ascii_digit()
                && b.is_ascii_digit()
                && more.len() <= 1
                && more.iter().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase())
        }
        _ => false,
    }
}

/// Splits a text into its fields, line by line.
#[must_use]
pub fn tokens(text: &[u8]) -> Vec<SwiftField> {
    let mut tokens: Vec<SwiftField> = Vec::new();
    let start = text.iter().position(|b| !b"\r\n \t".contains(b)).unwrap_or(text.len());
    if text[start..].starts_with(b"{") {
        return crate::swift_mt::sub_blocks(text).collect();
    }
    let mut at = start;
    for line in text[start..].split_inclusive(|b| *b == b'\n') {
        if let Some(tag) = tag_of(line) {
            let value = at + tag.len() + 2;
            let end = value as u32;
            tokens.push(SwiftField {
                tag: SwiftTag::new(tag),
                name: at as u32 + 1,
                start: end,
                line: end,
                end,
            });
        } else if tokens.is_empty() {
            return tokens;
        }
        at += line.len();
        let last = tokens.last_mut().expect("the first line has a tag");
        last.end = at as u32;
    }
    for token in &mut tokens {
        let value = &text[token.start as usize..token.end as usize];
        let line_ends = value.iter().rev().take_while(|b| b"\r\n".contains(b)).count();
        token.end -= line_ends as u32;
        let value = &text[token.start as usize..token.end as usize];
        let line = value.split(|b| *b == b'\n').next().unwrap_or_default();
        let line = if line.len() < value.len() { line.strip_suffix(b"\r").unwrap_or(line) } else { line };
        token.line = token.start + line.len() as u32;
    }
    tokens
}
