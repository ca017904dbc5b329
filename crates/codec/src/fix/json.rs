//! FIX as JSON Lines: what `unitape decode fix --json` prints.
//!
//! ```text
//! {"file":"a.fix","n":0,"offset":0,"type":"D","fields":{"8":"FIX.4.4",…,"453":[{"448":"X"}],"10":"203"}}
//! {"file":"a.fix","n":1,"offset":271,"length":9,"error":{"code":"garbage","message":"…"}}
//! {"file":"a.log","n":2,"offset":280,"length":4,"text":"out "}
//! ```
//!
//! One object for each message, each faulty message, each stretch of garbage and of a log's own text, in order. All
//! values are strings, `{"hex":"…"}` where the bytes are not UTF-8 nor text by MessageEncoding (347). A group is an array of objects
//! if the dictionary knows it; a tag that is repeated without a group is an array, at the place of
//! its first occurrence. The schema is `docs/schema/decode-fix.schema.json`.
//!
//! This is the only part of the module that reads and writes, through the reader and writer of the caller; it
//! holds a few times the largest message in memory, however long the input is.

use std::io::{Read, Write};
use std::sync::Arc;

use super::dict::FixDictionary;
use super::encoding;
use super::fault::FixFault;
use super::frame::{FixFramer, FramedFixMessage, NextFixFrame};
use super::group::{GroupScope, GroupTable, TagSet};
use super::token::{FieldToken, TokenSlice};
use super::tokens::MessageTokenizer;
use unitape_base::json::{number, string, value};
use unitape_base::{
    DecodeInput, Error, FrameFault, FrameStep, InputBuffer, JsonLines, LineDecoder, Span, decode_lines,
};

/// How to decode.
#[derive(Debug, Clone, Default)]
pub struct FixDecodeOptions {
    /// Separator, leniency, limits.
    pub framer: FixFramer,
    /// Groups by message type; without a dictionary, no tag counts a group.
    pub dictionary: Option<Arc<FixDictionary>>,
}

/// The counts of a decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FixSummary {
    /// Good messages.
    pub messages: u64,
    /// Faulty messages and garbage.
    pub errors: u64,
    /// Stretches of a log's own text.
    pub texts: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// Decodes all of `input` to JSON Lines on `out`. Data fields of the dictionary are known to the
/// framing too.
///
/// # Errors
/// Fails if the input cannot be read or the output cannot be written. Items decoded before are written.
///
/// ```
/// use unitape_codec::fix::{FixDecodeOptions, decode_json};
///
/// let mut out = Vec::new();
/// let mut input = &b"8=FIX.4.2\x019=5\x0135=0\x0110=161\x01"[..];
/// let summary = decode_json(&mut input, "a.fix", &FixDecodeOptions::default(), &mut out).unwrap();
/// assert_eq!((summary.messages, summary.errors), (1, 0));
/// assert_eq!(
///     out,
///     br#"{"file":"a.fix","n":0,"offset":0,"type":"0","fields":{"8":"FIX.4.2","9":"5","35":"0","10":"161"}}
/// "#
/// );
/// ```
pub fn decode_json(
    input: &mut dyn Read,
    file_label: &str,
    opts: &FixDecodeOptions,
    out: &mut dyn Write,
) -> Result<FixSummary, Error> {
    let mut framer = opts.framer.clone();
    if let Some(dictionary) = &opts.dictionary {
        framer = framer.with_data_tags(dictionary.data_tags());
    }
    let mut decoder = FixLineDecoder {
        framer,
        tokens: MessageTokenizer::new(),
        writer: FixJsonWriter {
            lines: JsonLines::new(file_label),
            dictionary: opts.dictionary.as_deref(),
            render: FieldsWriter::default(),
            summary: FixSummary::default(),
        },
    };
    let bytes = decode_lines(InputBuffer::new(input, file_label), &mut decoder, out)?;
    Ok(FixSummary { bytes, errors: decoder.writer.lines.errors, ..decoder.writer.summary })
}

/// Frames messages, and writes their lines.
struct FixLineDecoder<'l> {
    framer: FixFramer,
    tokens: MessageTokenizer,
    writer: FixJsonWriter<'l>,
}

impl LineDecoder for FixLineDecoder<'_> {
    type Fault = FixFault;

    fn step(&mut self, input: DecodeInput<'_>) -> FrameStep<FixFault> {
        let Self { framer, tokens, writer } = self;
        let next_frame = tokens.frame(framer, input.bytes, input.offset, input.eof);
        if let NextFixFrame::Skipped(span) = next_frame {
            writer.text_of_log(input, span);
        }
        next_frame.map(|message| {
            writer.message(input, message, tokens);
            message.span
        })
    }

    fn lines(&mut self) -> &mut JsonLines {
        &mut self.writer.lines
    }
}

/// The lines of one file.
struct FixJsonWriter<'l> {
    lines: JsonLines,
    dictionary: Option<&'l FixDictionary>,
    render: FieldsWriter,
    summary: FixSummary,
}

impl FixJsonWriter<'_> {
    fn message(&mut self, input: DecodeInput<'_>, message: FramedFixMessage, tokens: &MessageTokenizer) {
        let bytes = &input.bytes[message.span.start..message.span.end];
        let msg_type = &input.bytes[message.msg_type.start..message.msg_type.end];
        let line = self.lines.pending_lines.len();
        self.lines.begin(input.file_offset(message.span.start));
        self.lines.pending_lines.extend_from_slice(b",\"type\":");
        value(&mut self.lines.pending_lines, msg_type);
        self.lines.pending_lines.extend_from_slice(b",\"fields\":");
        let groups = self.dictionary.map_or(GroupTable::empty(), |dictionary| dictionary.groups(msg_type));
        let fields = tokens.as_slice();
        let encoding = encoding::message_encoding(bytes, fields);
        let body = self.dictionary.map(|dictionary| dictionary.body(msg_type));
        let context = FieldRenderContext { message: bytes, dictionary: self.dictionary, body, encoding };
        match self.render.write_object(&mut self.lines.pending_lines, context, fields, groups) {
            Ok(()) => {
                self.lines.pending_lines.extend_from_slice(b"}\n");
                self.summary.messages += 1;
            }
            Err(fault) => {
                let (offset, length) = (input.file_offset(message.span.start), message.span.len());
                self.lines.cancel(line);
                self.lines.fault(offset, length, fault.code_word(), &fault);
            }
        }
    }

    fn text_of_log(&mut self, input: DecodeInput<'_>, span: Span) {
        self.lines.begin(input.file_offset(span.start));
        self.lines.pending_lines.extend_from_slice(b",\"length\":");
        number(&mut self.lines.pending_lines, span.len() as u64);
        self.lines.pending_lines.extend_from_slice(b",\"text\":");
        value(&mut self.lines.pending_lines, &input.bytes[span.start..span.end]);
        self.lines.pending_lines.extend_from_slice(b"}\n");
        self.summary.texts += 1;
    }
}

/// Writes fields as an object; keeps its tables for the next message.
#[derive(Debug, Default)]
struct FieldsWriter {
    /// Items of the objects being written, an inner object's after its outer's.
    object_items: Vec<ObjectField>,
    /// (tag, item), to find repeated tags.
    item_order: Vec<(u32, u32)>,
}

/// The message whose fields are written.
#[derive(Debug, Clone, Copy)]
struct FieldRenderContext<'m> {
    message: &'m [u8],
    dictionary: Option<&'m FixDictionary>,
    /// The tags that the message has outside groups.
    body: Option<&'m TagSet>,
    /// MessageEncoding (347), where it is stated.
    encoding: Option<&'m [u8]>,
}

impl<'m> FieldRenderContext<'m> {
    fn group_scope(&self, tokens: TokenSlice<'m>) -> GroupScope<'m> {
        GroupScope { message: self.message, tokens, body_tags: self.body }
    }

    /// Writes a value: as text if it is UTF-8, or if the field is in the message's encoding.
    #[inline]
    fn value(&self, out: &mut Vec<u8>, token: FieldToken) {
        let bytes = token.slice(self.message);
        match self.encoding {
            Some(name) if self.is_encoded(token.tag) => match encoding::text(name, bytes) {
                Some(text) => string(out, &text),
                None => value(out, bytes),
            },
            _ => value(out, bytes),
        }
    }

    fn is_encoded(&self, tag: u32) -> bool {
        let field = || self.dictionary.and_then(|dictionary| dictionary.field(tag));
        encoding::is_encoded(tag) || field().is_some_and(super::FieldDef::is_encoded)
    }
}

/// A field of an object, or the count field that represents a whole group.
#[derive(Debug, Clone, Copy)]
struct ObjectField {
    tag: u32,
    first_item: u32,
    /// The next item of the same tag, 0 without one. An item is never both the first of its tag and the next of
    /// another item.
    next_item: u32,
    /// Whether an item of this tag is before.
    is_repeat: bool,
}

impl FieldsWriter {
    fn write_object<'m>(
        &mut self,
        out: &mut Vec<u8>,
        context: FieldRenderContext<'m>,
        tokens: TokenSlice<'m>,
        groups: &'m GroupTable,
    ) -> Result<(), FixFault> {
        let base = self.object_items.len();
        let result = self.object_at(out, context, tokens, groups, base);
        self.object_items.truncate(base);
        result
    }

    fn object_at<'m>(
        &mut self,
        out: &mut Vec<u8>,
        context: FieldRenderContext<'m>,
        tokens: TokenSlice<'m>,
        groups: &'m GroupTable,
        base: usize,
    ) -> Result<(), FixFault> {
        // A bit for each tag, by a hash of six bits of its low and high part: no two alike means
        // no tag twice, which is the usual case.
        let (mut tag_bits, mut repeated) = ([0u64; 64], false);
        let mut token_index = 0;
        while token_index < tokens.len() {
            let tag = tokens.token_at(token_index).tag;
            let field_end = match groups.get(tag) {
                Some(group) => group.read_in(context.group_scope(tokens), token_index)?.end(),
                None => token_index + 1,
            };
            let bit = 1 << (tag % 64);
            let word = &mut tag_bits[(tag >> 6) as usize % 64];
            repeated |= *word & bit != 0;
            *word |= bit;
            self.object_items.push(ObjectField {
                tag,
                first_item: token_index as u32,
                next_item: 0,
                is_repeat: false,
            });
            token_index = field_end;
        }
        if repeated {
            self.link_repeats(base);
        }
        let count = self.object_items.len();
        out.push(b'{');
        let mut needs_comma = false;
        for index in base..count {
            let item = self.object_items[index];
            if item.is_repeat {
                continue;
            }
            if needs_comma {
                out.push(b',');
            }
            needs_comma = true;
            out.push(b'"');
            number(out, u64::from(item.tag));
            out.extend_from_slice(b"\":");
            if item.next_item == 0 {
                self.write_item(out, context, tokens, groups, item)?;
                continue;
            }
            out.push(b'[');
            let mut item = item;
            loop {
                self.write_item(out, context, tokens, groups, item)?;
                if item.next_item == 0 {
                    break;
                }
                out.push(b',');
                item = self.object_items[item.next_item as usize];
            }
            out.push(b']');
        }
        out.push(b'}');
        Ok(())
    }

    /// Links the items of each tag that occurs more than once.
    fn link_repeats(&mut self, base: usize) {
        self.item_order.clear();
        let tags = self.object_items[base..].iter().enumerate();
        self.item_order.extend(tags.map(|(index, item)| (item.tag, (base + index) as u32)));
        self.item_order.sort_unstable();
        for pair in self.item_order.windows(2) {
            if pair[0].0 == pair[1].0 {
                self.object_items[pair[0].1 as usize].next_item = pair[1].1;
                self.object_items[pair[1].1 as usize].is_repeat = true;
            }
        }
    }

    #[inline]
    fn write_item<'m>(
        &mut self,
        out: &mut Vec<u8>,
        context: FieldRenderContext<'m>,
        tokens: TokenSlice<'m>,
        groups: &'m GroupTable,
        item: ObjectField,
    ) -> Result<(), FixFault> {
        let first_item = item.first_item as usize;
        let Some(group) = groups.get(item.tag) else {
            context.value(out, tokens.token_at(first_item));
            return Ok(());
        };
        out.push(b'[');
        for (n, entry) in group.read_in(context.group_scope(tokens), first_item)?.enumerate() {
            if n > 0 {
                out.push(b',');
            }
            self.write_object(out, context, entry, group.nested())?;
        }
        out.push(b']');
        Ok(())
    }
}
