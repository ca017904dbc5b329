//! The engine held against the slow twin, on templates and messages made from any bytes; for tests and the fuzzer.

use super::naive::{self, Node};
use crate::decode_json;
use crate::template::{self, TemplateFile, Templates};
use crate::{
    DecodedValue, Decoder, FieldValue, JsonDecodeOptions, Message, MessagePartIter, MessageToken,
    MessageVisitor, Projection, StreamFraming, TaggedToken, UNTAGGED,
};
use std::fmt::Write;
use std::sync::{Arc, LazyLock};

/// Decodes the message at the start of each of `messages` by both, and compares the results. A reset precedes those
/// whose number `resets` picks. Returns how many were good.
///
/// # Panics
/// Panics if the two differ.
pub fn compare<'m>(
    templates: &Arc<Templates>,
    messages: impl Iterator<Item = &'m [u8]>,
    strict: bool,
    resets: impl Fn(usize) -> bool,
) -> usize {
    let mut good = 0;
    let mut slow = naive::Decoder::new(templates.clone(), strict);
    let mut fast = Decoder::new(templates.clone()).with_strict(strict);
    let mut exact = Decoder::new(templates.clone()).with_strict(strict).with_exact();
    let projection = some_of(templates);
    let mut some = Decoder::with_projection(projection.clone()).with_strict(strict);
    let mut buffer_decoder = Decoder::new(templates.clone()).with_strict(strict);
    for (n, message) in messages.enumerate() {
        if resets(n) {
            buffer_decoder.reset();
            exact.reset();
            slow.reset();
            fast.reset();
            some.reset();
        }
        // Among other messages, the message is read where it lies, and the bytes after it must not be read as a part of
        // it.
        let mut buffer = message.to_vec();
        let trailing_bytes = message.iter().rev().chain(&[0x00, 0x81]).map(|b| b.rotate_left(n as u32 % 8));
        buffer.extend(trailing_bytes.cycle().take(1_500));
        let buffer_result = buffer_decoder.decode_in(&buffer, 0..message.len());
        let exact = exact.decode(message);
        match (slow.decode(message), fast.decode(message)) {
            (Ok(slow), Ok(fast)) => {
                let buffer_message =
                    buffer_result.unwrap_or_else(|e| panic!("message {n}, in a buffer: {e}"));
                assert_eq!(
                    (buffer_message.template, buffer_message.bytes),
                    (fast.template, fast.bytes),
                    "message {n}"
                );
                assert_eq!(nodes(&buffer_message), slow.nodes, "message {n}, in a buffer");
                let some = some.decode(message).unwrap_or_else(|e| panic!("message {n}, projected: {e}"));
                for takes in [false, true] {
                    assert_eq!(visited(&some, takes), cells_of(&some), "message {n}, visited");
                    assert_eq!(visited(&fast, takes), cells_of(&fast), "message {n}, visited");
                }
                let paths = projection.paths(&templates.list()[slow.template].name.local);
                let (mut cells, mut path) = (String::new(), String::new());
                project(&slow.nodes, &paths.expect("it is there"), &mut path, &mut cells);
                // Fields that a message in a message names are not among the template's paths.
                if !dynamic(templates, slow.template) {
                    let tagged_cells: String =
                        some.tagged_tokens().map(|cell| format!("{cell:?}\n")).collect();
                    assert_eq!(cells, tagged_cells, "message {n}, projected");
                }
                assert_eq!((slow.template, slow.bytes), (fast.template, fast.bytes), "message {n}");
                assert_eq!(slow.nodes, nodes(&fast), "message {n}");
                let exact = exact.unwrap_or_else(|e| panic!("message {n}, by the exact engine alone: {e}"));
                assert_eq!((exact.template, exact.bytes), (fast.template, fast.bytes), "message {n}");
                assert_eq!(slow.nodes, nodes(&exact), "message {n}, by the exact engine alone");
                good += usize::from(!slow.nodes.is_empty());
            }
            (Err(slow), Err(fast)) => {
                assert_eq!(slow, fast, "message {n}");
                assert_eq!(Some(&slow), buffer_result.err().as_ref(), "message {n}, in a buffer");
                assert_eq!(Some(&slow), exact.err().as_ref(), "message {n}, by the exact engine alone");
                assert_eq!(Some(slow), some.decode(message).err(), "message {n}, projected");
            }
            (slow, fast) => panic!("message {n}: slow {slow:?}, fast {fast:?}"),
        }
    }
    good
}

/// Returns all cells of a message as a visitor gets them.
fn cells_of(message: &Message<'_>) -> Vec<String> {
    message.tagged_tokens().map(|cell| format!("{cell:?}")).collect()
}

/// Returns the cells that a visitor gets. If `takes`, the visitor takes all parts that it can, otherwise none.
fn visited(message: &Message<'_>, takes: bool) -> Vec<String> {
    #[derive(Default)]
    struct VisitedValueCollector {
        cells: Vec<String>,
        /// How many messages are around the place.
        inner: u32,
        takes: bool,
        /// Whether each open group or element is an element.
        open: Vec<bool>,
    }
    impl VisitedValueCollector {
        fn cell(&mut self, cell: TaggedToken<'_>) {
            self.cells.push(format!("{cell:?}"));
        }
    }
    impl MessageVisitor for VisitedValueCollector {
        fn value(&mut self, tag: u16, value: DecodedValue<'_>) {
            let (uint, int, decimal) = match value.get() {
                FieldValue::UInt(n) => (Some(n), None, None),
                FieldValue::Int(n) => (None, Some(n), None),
                FieldValue::Decimal { mantissa, exponent } => (None, None, Some((mantissa, exponent))),
                _ => (None, None, None),
            };
            assert_eq!((value.uint(), value.int(), value.decimal()), (uint, int, decimal));
            let bytes = match value.get() {
                FieldValue::Bytes(bytes) if bytes.len() <= 8 => {
                    Some(bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
                }
                _ => None,
            };
            assert_eq!(value.uint_of_bytes(), bytes);
            self.cell(TaggedToken::Value(tag, value.get()));
        }
        fn group(&mut self, tag: u16) {
            self.open.push(false);
            self.cell(TaggedToken::Group(tag));
        }
        fn sequence(&mut self, tag: u16, elements: u32) {
            self.open.push(false);
            self.cell(TaggedToken::Sequence(tag, elements));
        }
        fn element(&mut self) {
            self.open.push(true);
            self.cell(TaggedToken::Element);
        }
        fn end(&mut self) {
            self.open.pop();
            self.cell(TaggedToken::End);
        }
        fn inner(&mut self, _template: usize) {
            self.inner += 1;
        }
        fn inner_end(&mut self) {
            self.inner -= 1;
        }
        fn parts(&mut self, parts: &mut MessagePartIter<'_>) {
            while let Some(part) = parts.first().filter(|_| self.takes) {
                let letter = part.letter().map(|letter| [letter]);
                let number = part.uint().map(FieldValue::UInt).or(part.int().map(FieldValue::Int));
                let decimal =
                    part.decimal().map(|(mantissa, exponent)| FieldValue::Decimal { mantissa, exponent });
                let letter = letter.as_ref().map(|letter| FieldValue::Text(letter));
                if let Some(value) = number.or(decimal).or(letter) {
                    self.cell(TaggedToken::Value(part.tag(), value));
                    parts.skip_value();
                } else if parts.element() {
                    if self.open.last() == Some(&true) {
                        self.end();
                    }
                    self.element();
                } else {
                    return;
                }
            }
        }
    }
    let mut collector = VisitedValueCollector { takes, ..VisitedValueCollector::default() };
    message.visit(&mut collector);
    assert_eq!(collector.inner, 0, "messages inside that have no end");
    collector.cells
}

/// Selects about half of all paths, each with its own tag.
fn some_of(templates: &Arc<Templates>) -> Projection {
    let mut projection = Projection::new(templates.clone());
    for template in templates.list() {
        let name = &template.name.local;
        for path in projection.paths(name).expect("it is there") {
            if let Some(tag) = tag(&path) {
                projection = projection.field(name, &path, tag).expect("it is there");
            }
        }
    }
    projection
}

fn tag(path: &str) -> Option<u16> {
    let sum = path.bytes().fold(1u16, |sum, b| sum.wrapping_mul(31).wrapping_add(b.into())) & 0x7fff;
    (sum % 3 != 0).then_some(sum)
}

fn dynamic(templates: &Templates, template: usize) -> bool {
    fn any(templates: &Templates, body: &[template::Instruction]) -> bool {
        body.iter().any(|instruction| match instruction {
            template::Instruction::Dynamic => true,
            template::Instruction::Group(group) => any(templates, &group.body),
            template::Instruction::Sequence(sequence) => any(templates, &sequence.body),
            template::Instruction::Static(_, Some(index)) => any(templates, &templates.list()[*index].body),
            _ => false,
        })
    }
    any(templates, &templates.list()[template].body)
}

/// Writes the output of a decoder with the paths of [`some_of`].
fn project(nodes: &[Node], paths: &[String], path: &mut String, out: &mut String) {
    let outer = path.len();
    for node in nodes {
        let name = match node {
            Node::Value(field, _) => &field.name,
            Node::Group(name, _) | Node::Sequence(name, _) => name,
        };
        path.push_str(&name.local);
        let own_tag = tag(path);
        if let (Node::Value(field, value), Some(tag)) = (node, own_tag) {
            let kind =
                if let template::FieldEncoding::Plain(kind, _) = &field.kind { Some(*kind) } else { None };
            let value = match value {
                template::InitialValue::Int(value)
                    if kind.and_then(template::WireType::bounds).is_some_and(|b| b.0 < 0) =>
                {
                    FieldValue::Int(*value as i64)
                }
                template::InitialValue::Int(value) => FieldValue::UInt(*value as u64),
                template::InitialValue::Decimal { mantissa, exponent } => {
                    FieldValue::Decimal { mantissa: *mantissa, exponent: *exponent as i8 }
                }
                template::InitialValue::Bytes(bytes) if kind == Some(template::WireType::Bytes) => {
                    FieldValue::Bytes(bytes)
                }
                template::InitialValue::Bytes(bytes) => FieldValue::Text(bytes),
            };
            let _ = writeln!(out, "{:?}", TaggedToken::Value(tag, value));
        }
        path.push('/');
        let inside = || paths.iter().any(|p| p.starts_with(&**path) && tag(p).is_some());
        if !matches!(node, Node::Value(..)) && (own_tag.is_some() || inside()) {
            let tag = own_tag.unwrap_or(UNTAGGED);
            match node {
                Node::Group(_, nodes) => {
                    let _ = writeln!(out, "{:?}", TaggedToken::Group(tag));
                    project(nodes, paths, path, out);
                }
                Node::Sequence(_, elements) => {
                    let _ = writeln!(out, "{:?}", TaggedToken::Sequence(tag, elements.len() as u32));
                    for nodes in elements {
                        let _ = writeln!(out, "{:?}", TaggedToken::Element);
                        project(nodes, paths, path, out);
                        let _ = writeln!(out, "{:?}", TaggedToken::End);
                    }
                }
                Node::Value(..) => {}
            }
            let _ = writeln!(out, "{:?}", TaggedToken::End);
        }
        path.truncate(outer);
    }
}

/// Converts a message to the nodes of the slow twin.
pub fn nodes(message: &Message<'_>) -> Vec<Node> {
    enum OpenNode {
        Group(template::QualifiedName, Vec<Node>),
        Sequence(template::QualifiedName, Vec<Vec<Node>>),
        Element(Vec<Node>),
    }
    let mut open = vec![OpenNode::Element(Vec::new())];
    fn push_node(open: &mut [OpenNode], node: Node) {
        match open.last_mut() {
            Some(OpenNode::Group(_, nodes) | OpenNode::Element(nodes)) => nodes.push(node),
            _ => panic!("a value between elements"),
        }
    }
    for item in message.items() {
        match item {
            MessageToken::Value(field, value) => {
                let value = match value {
                    FieldValue::Int(value) => template::InitialValue::Int(value.into()),
                    FieldValue::UInt(value) => template::InitialValue::Int(value.into()),
                    FieldValue::Decimal { mantissa, exponent } => {
                        template::InitialValue::Decimal { mantissa, exponent: exponent.into() }
                    }
                    FieldValue::Text(text) | FieldValue::Bytes(text) => {
                        template::InitialValue::Bytes(text.to_vec())
                    }
                };
                push_node(&mut open, Node::Value(field.clone(), value));
            }
            MessageToken::Group(name) => open.push(OpenNode::Group(name.clone(), Vec::new())),
            MessageToken::Sequence(name, _) => open.push(OpenNode::Sequence(name.clone(), Vec::new())),
            MessageToken::Element => open.push(OpenNode::Element(Vec::new())),
            MessageToken::End => match open.pop() {
                Some(OpenNode::Group(name, nodes)) => push_node(&mut open, Node::Group(name, nodes)),
                Some(OpenNode::Sequence(name, elements)) => {
                    push_node(&mut open, Node::Sequence(name, elements))
                }
                Some(OpenNode::Element(nodes)) => match open.last_mut() {
                    Some(OpenNode::Sequence(_, elements)) => elements.push(nodes),
                    _ => panic!("an element outside of a sequence"),
                },
                None => panic!("an end without a beginning"),
            },
        }
    }
    match (open.pop(), open.is_empty()) {
        (Some(OpenNode::Element(nodes)), true) => nodes,
        _ => panic!("something is not over"),
    }
}

/// Choices made by bytes. After the last byte, all choices are 0.
#[derive(Debug)]
pub struct FuzzChoices<'c> {
    bytes: &'c [u8],
    /// Fields named so far.
    named: u32,
}

impl<'c> FuzzChoices<'c> {
    /// Choices by these bytes.
    #[must_use]
    pub fn new(bytes: &'c [u8]) -> Self {
        Self { bytes, named: 0 }
    }

    /// Chooses one of the first `n` numbers.
    pub fn choose(&mut self, n: u8) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        first % n
    }
}

/// Writes a template file from fuzz choices: a few templates with any feature of the language, most of them valid.
pub fn template_file(choices: &mut FuzzChoices<'_>) -> String {
    let mut xml = String::from("<templates xmlns=\"http://www.fixprotocol.org/ns/fast/td/1.1\">\n");
    for id in 1..=3 {
        let extra = ["", " dictionary=\"template\"", " dictionary=\"type\"", " reset=\"yes\""]
            [usize::from(choices.choose(4))];
        let _ = writeln!(xml, "<template name=\"T{id}\" id=\"{id}\"{extra}>");
        if choices.choose(3) == 1 {
            let _ = writeln!(xml, "<typeRef name=\"A{}\"/>", choices.choose(2));
        }
        body(choices, &mut xml, 0, id);
        xml.push_str("</template>\n");
    }
    xml.push_str("</templates>\n");
    xml
}

fn body(choices: &mut FuzzChoices<'_>, xml: &mut String, depth: u32, template: u32) {
    for _ in 0..1 + choices.choose(4) {
        let presence = ["", " presence=\"optional\""][usize::from(choices.choose(2))];
        choices.named += 1;
        let name = choices.named;
        match choices.choose(if depth < 3 { 14 } else { 9 }) {
            0..=8 => field(choices, xml, presence),
            9 | 10 => {
                let _ = writeln!(xml, "<group name=\"G{name}\"{presence}>");
                if choices.choose(4) == 1 {
                    let _ = writeln!(xml, "<typeRef name=\"A{}\"/>", choices.choose(2));
                }
                body(choices, xml, depth + 1, template);
                xml.push_str("</group>\n");
            }
            11 | 12 => {
                let _ = writeln!(xml, "<sequence name=\"S{name}\"{presence}>");
                match choices.choose(4) {
                    0 => {}
                    1 => xml.push_str("<length name=\"N\"/>"),
                    2 => xml.push_str("<length><constant value=\"2\"/></length>"),
                    _ => {
                        let operator = operator(choices, "3", false, !presence.is_empty());
                        let _ = write!(xml, "<length name=\"N{name}\">{operator}</length>");
                    }
                }
                body(choices, xml, depth + 1, template);
                xml.push_str("</sequence>\n");
            }
            // To a template before this one, to a template that does not exist, or to a template that the message
            // names.
            _ => match choices.choose(4) {
                0 | 1 if template > 1 => {
                    let _ = writeln!(xml, "<templateRef name=\"T{}\"/>", template - 1);
                }
                2 if choices.choose(8) == 0 => xml.push_str("<templateRef name=\"Missing\"/>\n"),
                _ => xml.push_str("<templateRef/>\n"),
            },
        }
    }
}

/// Types, and initial values of each with those at its bounds: of texts empty ones, of eight bytes, of more.
const INITIALS: [(&str, [&str; 4]); 8] = [
    ("int32", ["-5", "2147483647", "-2147483648", "0"]),
    ("uInt32", ["7", "4294967295", "4294967294", "0"]),
    ("int64", ["77", "9223372036854775807", "-9223372036854775808", "-1"]),
    ("uInt64", ["18446744073709551614", "18446744073709551615", "9223372036854775808", "0"]),
    ("string", ["abc", "exactly8", "more than eight characters", ""]),
    ("string charset=\"unicode\"", ["ö, longer than eight", "exactly8", "ö", ""]),
    ("byteVector", ["00ff41", "0011223344556677", "00112233445566778899", ""]),
    (
        "decimal",
        [
            "-12.50",
            "-0.000000000000000000000000000000000000000000000000000000000000001",
            "1000000000000000000000000000000000000000000000000000000000000000",
            "9223372036854775807",
        ],
    ),
];

/// Initial values of exponents, also such as no decimal may have.
pub(super) const EXPONENTS: [&str; 5] = ["-2", "63", "64", "-64", "300"];

fn field(choices: &mut FuzzChoices<'_>, xml: &mut String, presence: &str) {
    let name = choices.named;
    let type_index = usize::from(choices.choose(9));
    let (word, initials, text) = match INITIALS.get(type_index) {
        Some((word, initials)) => (*word, initials, matches!(type_index, 4..=6)),
        None => {
            // Half of them are usual.
            let exponent = EXPONENTS[usize::from(choices.choose(10)).saturating_sub(5)];
            let exponent = operator(choices, exponent, false, !presence.is_empty());
            let mantissa = INITIALS[2].1[usize::from(choices.choose(4))];
            let mantissa = operator(choices, mantissa, false, false);
            let _ = writeln!(
                xml,
                "<decimal name=\"F{name}\"{presence}><exponent>{exponent}</exponent><mantissa>{mantissa}</mantissa></decimal>"
            );
            return;
        }
    };
    let initial = initials[usize::from(choices.choose(4))];
    let mut operator = operator(choices, initial, text, !presence.is_empty());
    if word == "decimal" {
        operator = operator.replace("increment", "copy");
    }
    let end = word.split(' ').next().unwrap_or(word);
    let _ = writeln!(xml, "<{word} name=\"F{name}\"{presence}>{operator}</{end}>");
}

fn operator(choices: &mut FuzzChoices<'_>, initial: &str, text: bool, optional: bool) -> String {
    // Some share their previous value, in their type or in another.
    let key = match choices.choose(16) {
        0 => " key=\"shared\"",
        1 => " dictionary=\"own\" key=\"k\"",
        2 => " dictionary=\"type\"",
        3 => " dictionary=\"template\"",
        _ => "",
    };
    let value = if choices.choose(8) > 0 { format!(" value=\"{initial}\"") } else { String::new() };
    match choices.choose(7) {
        0 => String::new(),
        1 => format!("<constant value=\"{initial}\"/>"),
        2 if optional => format!("<default{value}/>"),
        2 => format!("<default value=\"{initial}\"/>"),
        3 => format!("<copy{value}{key}/>"),
        4 if text => format!("<tail{value}{key}/>"),
        4 => format!("<increment{value}{key}/>"),
        _ => format!("<delta{value}{key}/>"),
    }
}

/// Templates and messages from any bytes, engine against twin both ways. Gives how many messages were good.
///
/// # Panics
/// Panics if the engine and the twin differ, or if the template file is not accepted.
pub fn from_bytes(bytes: &[u8]) -> usize {
    let (choices, stream) = bytes.split_at(bytes.len() / 2);
    let mut choices = FuzzChoices::new(choices);
    let every = choices.choose(5);
    let xml = template_file(&mut choices);
    let templates = match Templates::load(&[TemplateFile { name: "made", content: xml.as_bytes() }]) {
        Ok(templates) => Arc::new(templates),
        Err(error) => panic!("{error}\n{xml}"),
    };
    let messages = messages(stream);
    let resets = |n: usize| every > 0 && n.is_multiple_of(usize::from(every));
    compare(&templates, messages.iter().map(Vec::as_slice), true, resets)
        + compare(&templates, messages.iter().map(Vec::as_slice), false, resets)
}

/// Messages from any bytes, of which many are good by templates with the ids 1 to 3.
pub fn messages(stream: &[u8]) -> Vec<Vec<u8>> {
    // Three of four bytes end an entity, or all would be long.
    let stream: Vec<u8> = stream.iter().map(|b| if b & 3 == 0 { *b & 0x7f } else { *b | 0x80 }).collect();
    // With a presence map of few bits and an id of ours; what is left out after the last message is there no more.
    let mut messages = Vec::new();
    for (n, part) in stream.chunks(30).enumerate() {
        let bits = part[0] & part.get(1).unwrap_or(&0) & 0x38;
        // In one byte, or in two.
        let mut message = if part[0] & 0x40 == 0 { vec![0xc0 | bits] } else { vec![0x40 | bits, 0x80] };
        message.push(0x81 + (n % 3) as u8);
        message.extend_from_slice(part);
        // Long enough for most.
        message.extend((0..120).map(|i| 0x80 | part[i % part.len()].rotate_left(i as u32 / 30)));
        messages.push(message);
    }
    messages
}

/// Decodes any bytes as messages with known templates, and in every framing.
///
/// # Panics
/// Panics if the engine and the twin differ.
pub fn any_bytes(bytes: &[u8]) {
    static TEMPLATES: LazyLock<Arc<Templates>> = LazyLock::new(|| {
        let content = include_bytes!("../../../../vectors/fast/mfast/example.xml");
        let templates = Templates::load(&[TemplateFile { name: "example", content }]);
        Arc::new(templates.expect("it was looked at"))
    });
    let messages: Vec<&[u8]> = bytes.split(|b| *b == 0xff).collect();
    compare(&TEMPLATES, messages.iter().copied(), false, |n| n % 5 == 4);
    for framing in [
        StreamFraming::Frames,
        StreamFraming::Cme,
        StreamFraming::Moex,
        StreamFraming::Emdi,
        StreamFraming::LengthPrefix,
        StreamFraming::Raw,
        StreamFraming::HexLines,
    ] {
        let mut decoder = Decoder::new(TEMPLATES.clone());
        let (options, mut out) = (JsonDecodeOptions { framing, ..JsonDecodeOptions::default() }, Vec::new());
        let summary = decode_json(&mut &bytes[..], "any", &mut decoder, options, &mut out);
        let summary = summary.expect("it is in memory");
        let lines: Vec<&[u8]> = out.split(|b| *b == b'\n').filter(|line| !line.is_empty()).collect();
        assert_eq!(summary.messages + summary.errors, lines.len() as u64);
        for line in lines {
            serde_json::from_slice::<serde::de::IgnoredAny>(line).expect("a line of JSON");
        }
    }
}

/// Loads any bytes as a template file and decodes with the templates that load.
///
/// # Panics
/// Panics if the engine and the twin differ.
pub fn any_templates(bytes: &[u8]) {
    let (file, message) = bytes.split_at(bytes.len() - bytes.len() / 4);
    if let Ok(templates) = Templates::load(&[TemplateFile { name: "any", content: file }]) {
        compare(&Arc::new(templates), [message, message].into_iter(), false, |_| false);
    }
}
