//! The messages of the FAST cases, passes over them, and the bytes of their values for a hash: from the product's
//! decoder and from the slow twin.
//!
//! Like `passes.rs` this is compiled by `bench/peers` too.

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use unitape_fast::template::{FieldEncoding, InitialValue as Exact, WireType};
use unitape_fast::twin::naive::{self, Node};
use unitape_fast::{Decoder, FieldValue, MessageToken, Projection, TaggedToken, TemplateFile, Templates};

/// The sets, by the case that measures them.
pub const SETS: [&str; 3] = ["cme", "complex30000", "moex2521"];

/// Messages and their templates. Each is decoded with empty dictionaries.
pub struct FastMessageSet {
    /// The case.
    pub name: &'static str,
    /// Notes for a reader of the figure.
    pub description: &'static str,
    /// They, read.
    pub templates: Arc<Templates>,
    /// The file of templates, for peers.
    pub xml: Cow<'static, [u8]>,
    /// All messages.
    pub input: Cow<'static, [u8]>,
    /// Each message in the input.
    pub messages: Vec<Range<usize>>,
}

static MOEX: &[u8] = include_bytes!("../../../vectors/fast/moex/olr_5020.dat");
static MOEX_XML: &[u8] = include_bytes!("../../../vectors/fast/moex/test.xml");
static COMPLEX: &[u8] = include_bytes!("../../../vectors/fast/mfast/complex30000.frames");
static COMPLEX_XML: &[u8] = include_bytes!("../../../vectors/fast/mfast/example.xml");

impl FastMessageSet {
    /// Loads the message set with this name.
    ///
    /// # Errors
    /// Fails if a file is missing; the error says how to get the file.
    pub fn load(name: &str) -> Result<Self, String> {
        let (name, description, xml, input) = match name {
            "cme" => {
                let dir = samples()?.join("fast/cme");
                let read = |file: &str| {
                    let path = dir.join(file);
                    std::fs::read(&path).map(Cow::Owned).map_err(|e| format!("{}: {e}", path.display()))
                };
                let description = "real packets of CME, whose dictionaries are reset before each";
                (SETS[0], description, read("templates.xml")?, read("sampleMD_first2000.frames")?)
            }
            "complex30000" => {
                let description =
                    "mFAST's own set; its template resets dictionaries, so each message stands alone";
                (SETS[1], description, Cow::Borrowed(COMPLEX_XML), Cow::Borrowed(COMPLEX))
            }
            _ => {
                let description = "real messages of MOEX; their template has no dictionaries";
                (SETS[2], description, Cow::Borrowed(MOEX_XML), Cow::Borrowed(MOEX))
            }
        };
        let templates = Templates::load(&[TemplateFile { name: "templates.xml", content: &xml }]);
        let templates = Arc::new(templates.map_err(|e| e.to_string())?);
        let messages = ranges(&templates, &input, name == SETS[2])?;
        Ok(Self { name, description, templates, xml, input, messages })
    }

    /// Sums the bytes of all messages without their framing.
    pub fn bytes(&self) -> u64 {
        self.messages.iter().map(|m| m.len() as u64).sum()
    }
}

/// Finds the directory of the sample files that cannot be in the project: `UNITAPE_SAMPLES`, `samples`, or beside the
/// current directory.
fn samples() -> Result<PathBuf, String> {
    let has = |dir: &Path| dir.join("fast/cme/templates.xml").is_file();
    let configured_dir = std::env::var_os("UNITAPE_SAMPLES").map(PathBuf::from);
    let places = [configured_dir, Some("samples".into()), Some("../shared/data".into())];
    places.into_iter().flatten().find(|dir| has(dir)).ok_or_else(|| {
        "its messages are not free to be here: have UNITAPE_SAMPLES name a directory with fast/cme/templates.xml and \
         fast/cme/sampleMD_first2000.frames"
            .to_owned()
    })
}

fn ranges(templates: &Arc<Templates>, input: &[u8], is_moex: bool) -> Result<Vec<Range<usize>>, String> {
    let (mut offset, mut ranges) = (0, Vec::new());
    let mut decoder = Decoder::new(templates.clone());
    while offset < input.len() {
        let head = input.get(offset..offset + 4).and_then(|h| h.try_into().ok());
        let head: [u8; 4] = head.ok_or("the input ends inside a head")?;
        offset += 4;
        let bytes = if is_moex {
            // A number; the message has its own end.
            decoder.decode(&input[offset..]).map_err(|e| e.to_string())?.bytes
        } else {
            u32::from_le_bytes(head) as usize
        };
        if input.len() - offset < bytes {
            return Err("the input ends inside a message".to_owned());
        }
        ranges.push(offset..offset + bytes);
        offset += bytes;
    }
    Ok(ranges)
}

/// Messages one after the other, as they come from a feed.
pub struct FastMessageStream {
    bytes: Vec<u8>,
    messages: Vec<Range<usize>>,
}

impl FastMessageSet {
    /// Puts the messages into another order, by a seed, and one after the other in it.
    pub fn permuted(&self, seed: &mut u64) -> FastMessageStream {
        let mut messages = self.messages.clone();
        for i in (1..messages.len()).rev() {
            *seed ^= *seed << 13;
            *seed ^= *seed >> 7;
            *seed ^= *seed << 17;
            messages.swap(i, (*seed % (i as u64 + 1)) as usize);
        }
        let mut bytes = Vec::with_capacity(self.input.len());
        for message in &mut messages {
            let from = bytes.len();
            bytes.extend_from_slice(&self.input[message.clone()]);
            *message = from..bytes.len();
        }
        FastMessageStream { bytes, messages }
    }
}

impl FastMessageStream {
    /// Returns the messages.
    pub fn messages(&self) -> impl Iterator<Item = &[u8]> {
        self.messages.iter().map(|message| &self.bytes[message.clone()])
    }
}

/// The result of a pass; the same in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastPassResult {
    /// Good messages.
    pub messages: u64,
    /// Bad ones.
    pub faults: u64,
    /// Bytes of the good ones.
    pub bytes: u64,
}

/// Decodes all messages.
pub fn pass(decoder: &mut Decoder, stream: &FastMessageStream) -> FastPassResult {
    let mut pass = FastPassResult::default();
    for message in &stream.messages {
        decoder.reset();
        match decoder.decode_in(&stream.bytes, message.clone()) {
            Ok(message) => {
                pass.messages += 1;
                pass.bytes += message.bytes as u64;
            }
            Err(_) => pass.faults += 1,
        }
    }
    pass
}

/// Decodes all messages and writes their values as bytes for a hash. A message is `M` and the template's id, then its
/// values. An integer is `I` and eight bytes. A decimal is `D`, eight bytes of the mantissa and one of the exponent. A
/// text is `S` or `B`, four bytes of the length, and the text. A sequence is `[` and four bytes of the number of
/// elements, `(` and `)` around each element, and `]`. Groups are in braces.
///
/// # Errors
/// Fails if a message is bad.
pub fn values(
    decoder: &mut Decoder,
    set: &FastMessageSet,
    mut each: impl FnMut(&[u8]),
) -> Result<u64, String> {
    let (mut value_bytes, mut count, mut open) = (Vec::new(), 0, Vec::new());
    for message in &set.messages {
        decoder.reset();
        let decoded = decoder.decode_in(&set.input, message.clone()).map_err(|e| e.to_string())?;
        value_bytes.clear();
        head(&mut value_bytes, set, decoded.template);
        for item in decoded.items() {
            match item {
                MessageToken::Value(_, value) => {
                    count += 1;
                    write_value(&mut value_bytes, value);
                }
                MessageToken::Group(_) => {
                    value_bytes.push(b'{');
                    open.push(b'}');
                }
                MessageToken::Sequence(_, n) => {
                    value_bytes.push(b'[');
                    value_bytes.extend_from_slice(&n.to_le_bytes());
                    open.push(b']');
                }
                MessageToken::Element => {
                    value_bytes.push(b'(');
                    open.push(b')');
                }
                MessageToken::End => value_bytes.extend(open.pop()),
            }
        }
        each(&value_bytes);
    }
    Ok(count)
}

/// Makes the bytes of [`values`] with the slow twin.
///
/// # Errors
/// Fails if a message is bad.
pub fn slow_values(set: &FastMessageSet, mut each: impl FnMut(&[u8])) -> Result<(), String> {
    let mut decoder = naive::Decoder::new(set.templates.clone(), true);
    let mut value_bytes = Vec::new();
    for message in &set.messages {
        decoder.reset();
        let decoded = decoder.decode(&set.input[message.clone()]).map_err(|e| e.to_string())?;
        value_bytes.clear();
        head(&mut value_bytes, set, decoded.template);
        nodes(&mut value_bytes, &decoded.nodes);
        each(&value_bytes);
    }
    Ok(())
}

fn head(out: &mut Vec<u8>, set: &FastMessageSet, template: usize) {
    out.push(b'M');
    out.extend_from_slice(&set.templates.list()[template].id.unwrap_or_default().to_le_bytes());
}

fn nodes(out: &mut Vec<u8>, all: &[Node]) {
    for node in all {
        match node {
            Node::Value(field, value) => write_value(out, to_field_value(&field.kind, value)),
            Node::Group(_, inside) => {
                out.push(b'{');
                nodes(out, inside);
                out.push(b'}');
            }
            Node::Sequence(_, elements) => {
                out.push(b'[');
                out.extend_from_slice(&(elements.len() as u32).to_le_bytes());
                for inside in elements {
                    out.push(b'(');
                    nodes(out, inside);
                    out.push(b')');
                }
                out.push(b']');
            }
        }
    }
}

fn to_field_value<'v>(kind: &FieldEncoding, value: &'v Exact) -> FieldValue<'v> {
    match value {
        Exact::Int(value) => FieldValue::UInt(*value as u64),
        Exact::Decimal { mantissa, exponent } => {
            FieldValue::Decimal { mantissa: *mantissa, exponent: *exponent as i8 }
        }
        Exact::Bytes(bytes) if matches!(kind, FieldEncoding::Plain(WireType::Bytes, _)) => {
            FieldValue::Bytes(bytes)
        }
        Exact::Bytes(bytes) => FieldValue::Text(bytes),
    }
}

fn write_value(out: &mut Vec<u8>, value: FieldValue<'_>) {
    let mut text = |kind, text: &[u8]| {
        out.push(kind);
        out.extend_from_slice(&(text.len() as u32).to_le_bytes());
        out.extend_from_slice(text);
    };
    match value {
        FieldValue::Text(bytes) => text(b'S', bytes),
        FieldValue::Bytes(bytes) => text(b'B', bytes),
        FieldValue::Int(value) => number(out, value as u64),
        FieldValue::UInt(value) => number(out, value),
        FieldValue::Decimal { mantissa, exponent } => {
            out.push(b'D');
            out.extend_from_slice(&mantissa.to_le_bytes());
            out.push(exponent as u8);
        }
    }
}

fn number(out: &mut Vec<u8>, value: u64) {
    out.push(b'I');
    out.extend_from_slice(&value.to_le_bytes());
}

/// Selects half of the fields: every other field of each template, with its number as its tag.
pub fn half(templates: &Arc<Templates>) -> Result<Projection, String> {
    let mut projection = Projection::new(templates.clone());
    for template in templates.list() {
        let name = &template.name.local;
        let paths = projection.paths(name).map_err(|e| e.to_string())?;
        for (tag, path) in paths.iter().enumerate().filter(|(n, _)| n % 2 == 0) {
            projection = projection.field(name, path, tag as u16).map_err(|e| e.to_string())?;
        }
    }
    Ok(projection)
}

/// Writes the values of a projection as bytes for a hash, each value after the two bytes of its tag.
///
/// # Errors
/// Fails if a message is bad.
pub fn half_values(
    decoder: &mut Decoder,
    set: &FastMessageSet,
    mut each: impl FnMut(&[u8]),
) -> Result<u64, String> {
    let (mut value_bytes, mut count) = (Vec::new(), 0);
    for message in &set.messages {
        decoder.reset();
        let decoded = decoder.decode_in(&set.input, message.clone()).map_err(|e| e.to_string())?;
        value_bytes.clear();
        for cell in decoded.tagged_tokens() {
            if let TaggedToken::Value(tag, value) = cell {
                count += 1;
                value_bytes.extend_from_slice(&tag.to_le_bytes());
                write_value(&mut value_bytes, value);
            }
        }
        each(&value_bytes);
    }
    Ok(count)
}

/// Makes the bytes of [`half_values`] from all fields that the slow twin finds.
///
/// # Errors
/// Fails if a message is bad.
pub fn slow_half_values(set: &FastMessageSet, mut each: impl FnMut(&[u8])) -> Result<(), String> {
    fn walk(out: &mut Vec<u8>, all: &[Node], path: &mut String, paths: &[String]) {
        for node in all {
            let outer = path.len();
            let (Node::Group(name, _) | Node::Sequence(name, _)) = node else {
                let Node::Value(field, value) = node else { continue };
                path.push_str(&field.name.local);
                if let Some(n) = paths.iter().position(|p| p == path).filter(|n| n % 2 == 0) {
                    out.extend_from_slice(&(n as u16).to_le_bytes());
                    write_value(out, to_field_value(&field.kind, value));
                }
                path.truncate(outer);
                continue;
            };
            path.push_str(&name.local);
            path.push('/');
            match node {
                Node::Group(_, inside) => walk(out, inside, path, paths),
                Node::Sequence(_, elements) => elements.iter().for_each(|e| walk(out, e, path, paths)),
                Node::Value(..) => {}
            }
            path.truncate(outer);
        }
    }
    let mut decoder = naive::Decoder::new(set.templates.clone(), true);
    let projection = Projection::new(set.templates.clone());
    let paths: Result<Vec<_>, _> =
        set.templates.list().iter().map(|template| projection.paths(&template.name.local)).collect();
    let paths = paths.map_err(|e| e.to_string())?;
    for message in &set.messages {
        decoder.reset();
        let decoded = decoder.decode(&set.input[message.clone()]).map_err(|e| e.to_string())?;
        let mut value_bytes = Vec::new();
        walk(&mut value_bytes, &decoded.nodes, &mut String::new(), &paths[decoded.template]);
        each(&value_bytes);
    }
    Ok(())
}
