//! ISO 20022 as JSON Lines: what `unitape decode iso20022 --json` prints.
//!
//! ```text
//! {"file":"a.xml","n":0,"offset":0,"type":"pacs.008.001.07","fields":{"Document/FIToFICstmrCdtTrf/GrpHdr/MsgId":"M1",…}}
//! {"file":"a.xml","n":1,"offset":4235,"length":9,"error":{"code":"garbage","message":"…"}}
//! ```
//!
//! One object for each message, each faulty message and each stretch of garbage, in order. A field is an element
//! with text and no elements, named by its path from `AppHdr` or `Document`, without prefixes; an attribute is
//! `path@name`. A path that is there more than once is an array, at the place of its first occurrence. The schema
//! is `docs/schema/decode-iso20022.schema.json`.
//!
//! This is the only part of the module that reads and writes, through the reader and writer of the caller.

use super::frame::{FramedIsoMessage, Iso20022Decoder};
use super::parse::{ElementVisitor, MessageRoot};
use super::value::ElementValueSpan;
use super::{IsoFault, Span};
use std::collections::HashMap;
use std::io::{Read, Write};
use unitape_base::json::value;
use unitape_base::{DecodeInput, Error, FrameStep, InputBuffer, JsonLines, LineDecoder, decode_lines};

/// The counts of a decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IsoSummary {
    /// Good messages.
    pub messages: u64,
    /// Faulty messages and garbage.
    pub errors: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// Decodes all of `input` to JSON Lines on `out`, messages of up to `max_message` bytes.
///
/// # Errors
/// Fails if the input cannot be read or the output cannot be written. Items decoded before are written.
///
/// ```
/// use unitape_codec::iso20022::{MESSAGE_BYTES_MAX, decode_json};
///
/// let mut out = Vec::new();
/// let mut input = &br#"<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pacs.002.001.11"><A C="x">1</A></Document>"#[..];
/// let summary = decode_json(&mut input, "a.xml", MESSAGE_BYTES_MAX, &mut out).unwrap();
/// assert_eq!((summary.messages, summary.errors), (1, 0));
/// assert_eq!(
///     String::from_utf8(out).unwrap(),
///     r#"{"file":"a.xml","n":0,"offset":0,"type":"pacs.002.001.11","fields":{"Document/A@C":"x","Document/A":"1"}}
/// "#
/// );
/// ```
pub fn decode_json(
    input: &mut dyn Read,
    file_label: &str,
    max_message: usize,
    out: &mut dyn Write,
) -> Result<IsoSummary, Error> {
    let mut decoder = IsoLineDecoder {
        decoder: Iso20022Decoder::default().with_max_message(max_message),
        collected_elements: ElementCollector::default(),
        writer: IsoJsonWriter { lines: JsonLines::new(file_label), ..IsoJsonWriter::default() },
    };
    let bytes = decode_lines(InputBuffer::new(input, file_label), &mut decoder, out)?;
    Ok(IsoSummary { bytes, errors: decoder.writer.lines.errors, ..decoder.writer.summary })
}

/// Reads messages, and writes their lines.
struct IsoLineDecoder {
    decoder: Iso20022Decoder<<ElementCollector as ElementVisitor>::Mark>,
    collected_elements: ElementCollector,
    writer: IsoJsonWriter,
}

impl LineDecoder for IsoLineDecoder {
    type Fault = IsoFault;

    fn step(&mut self, input: DecodeInput<'_>) -> FrameStep<IsoFault> {
        let Self { decoder, collected_elements: leaves, writer } = self;
        decoder.next(input.bytes, input.offset, input.eof, leaves).map(|message| {
            writer.lines.begin(input.file_offset(message.span.start));
            writer.message(&message, decoder.text(&message, input.bytes), leaves);
            message.span
        })
    }

    fn lines(&mut self) -> &mut JsonLines {
        &mut self.writer.lines
    }
}

/// All elements with text and all attributes of a message, with their paths. A visitor for tools and tests.
#[derive(Debug, Default)]
pub struct ElementCollector {
    /// Numbers of paths.
    path_ids: HashMap<Vec<u8>, u32>,
    paths: Vec<Vec<u8>>,
    element_values: Vec<(u32, ElementValueSpan)>,
    path_key: Vec<u8>,
}

/// Paths that are kept from one message to the next.
const PATHS_MAX: usize = 1 << 16;

impl ElementCollector {
    /// Paths and values, in the order of the message.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], ElementValueSpan)> {
        self.element_values.iter().map(|(path, value)| (&self.paths[*path as usize][..], *value))
    }

    fn path_index(&mut self, parent: Option<u32>, separator: u8, name: &[u8]) -> u32 {
        self.path_key.clear();
        if let Some(parent) = parent {
            self.path_key.extend_from_slice(&self.paths[parent as usize]);
            self.path_key.push(separator);
        }
        self.path_key.extend_from_slice(name);
        if let Some(id) = self.path_ids.get(&self.path_key) {
            return *id;
        }
        let id = self.paths.len() as u32;
        self.paths.push(self.path_key.clone());
        self.path_ids.insert(self.path_key.clone(), id);
        id
    }
}

impl ElementVisitor for ElementCollector {
    type Mark = u32;

    fn begin(&mut self, _live: usize) {
        self.element_values.clear();
        if self.paths.len() > PATHS_MAX {
            self.paths.clear();
            self.path_ids.clear();
        }
    }

    fn root(&mut self, root: MessageRoot) -> u32 {
        self.path_index(None, b'/', if root == MessageRoot::Header { b"AppHdr" } else { b"Document" })
    }

    fn open(&mut self, parent: u32, name: &[u8], _at: usize) -> u32 {
        self.path_index(Some(parent), b'/', name)
    }

    fn attribute(&mut self, mark: u32, name: &[u8], value: ElementValueSpan) {
        let path = self.path_index(Some(mark), b'@', name);
        self.element_values.push((path, value));
    }

    fn close(&mut self, _buf: &[u8], mark: u32, text: Option<ElementValueSpan>, _at: Span) -> bool {
        if let Some(text) = text {
            self.element_values.push((mark, text));
        }
        false
    }
}

/// The lines of one file.
#[derive(Default)]
struct IsoJsonWriter {
    lines: JsonLines,
    scratch: Vec<u8>,
    /// Values in order of path, then of place.
    path_order: Vec<(u32, u32)>,
    /// For each value, where its path's values begin in `path_order`; `AGAIN` for all but the first.
    first_by_value: Vec<u32>,
    summary: IsoSummary,
}

const AGAIN: u32 = u32::MAX;

impl IsoJsonWriter {
    fn message(&mut self, message: &FramedIsoMessage, text: &[u8], leaves: &mut ElementCollector) {
        self.push_bytes(b",\"type\":");
        value(&mut self.lines.pending_lines, message.kind.name.slice(text));
        if !message.kind.variant.is_empty() {
            self.push_bytes(b",\"variant\":");
            value(&mut self.lines.pending_lines, message.kind.variant.slice(text));
        }
        self.push_bytes(b",\"fields\":{");
        let values = &leaves.element_values;
        self.path_order.clear();
        self.path_order.extend(values.iter().enumerate().map(|(n, (path, _))| (*path, n as u32)));
        self.path_order.sort_unstable();
        self.first_by_value.clear();
        self.first_by_value.resize(values.len(), AGAIN);
        for (order_index, group) in self.path_order.iter().enumerate() {
            if order_index == 0 || self.path_order[order_index - 1].0 != group.0 {
                self.first_by_value[group.1 as usize] = order_index as u32;
            }
        }
        let mut needs_comma = false;
        for n in 0..values.len() {
            if self.first_by_value[n] == AGAIN {
                continue;
            }
            if needs_comma {
                self.push_bytes(b",");
            }
            needs_comma = true;
            let path = values[n].0;
            value(&mut self.lines.pending_lines, &leaves.paths[path as usize]);
            self.push_bytes(b":");
            let group_start = self.first_by_value[n] as usize;
            let count = self.path_order[group_start..].iter().take_while(|(p, _)| *p == path).count();
            if count > 1 {
                self.push_bytes(b"[");
            }
            for i in group_start..group_start + count {
                if i > group_start {
                    self.push_bytes(b",");
                }
                let mut scratch = std::mem::take(&mut self.scratch);
                value(
                    &mut self.lines.pending_lines,
                    values[self.path_order[i].1 as usize].1.text(text, &mut scratch),
                );
                self.scratch = scratch;
            }
            if count > 1 {
                self.push_bytes(b"]");
            }
        }
        self.push_bytes(b"}}\n");
        self.summary.messages += 1;
    }

    #[inline]
    fn push_bytes(&mut self, bytes: &[u8]) {
        self.lines.pending_lines.extend_from_slice(bytes);
    }
}
