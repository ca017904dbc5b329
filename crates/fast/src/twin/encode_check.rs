//! The encoder held against both decoders, on templates and messages made from any bytes; for tests and the fuzzer.

use super::check::{EXPONENTS, FuzzChoices, nodes, template_file};
use super::naive::{self, Node};
use crate::encode::{DraftFrameRef, Encoder, MessageDraft, TemplatePartRef};
use crate::record;
use crate::template::{
    FieldEncoding, FieldOperator, InitialValue, Instruction, Operator, TemplateField, TemplateFile,
    Templates, WireType,
};
use crate::{Decoder, MessageFaultCode};
use std::sync::Arc;

/// The two decoders of the encoder's messages.
#[derive(Debug)]
struct DecoderPair {
    slow: naive::Decoder,
    fast: Decoder,
}

impl DecoderPair {
    fn new(templates: &Arc<Templates>) -> Self {
        let fast = Decoder::new(templates.clone()).with_strict(true);
        Self { slow: naive::Decoder::new(templates.clone(), true), fast }
    }

    fn reset(&mut self) {
        self.slow.reset();
        self.fast.reset();
    }

    fn expect(&mut self, bytes: &[u8], template: usize, expected: &[Node], describe: &dyn Fn() -> String) {
        let slow =
            self.slow.decode(bytes).unwrap_or_else(|fault| panic!("{fault}: {bytes:02x?}\n{}", describe()));
        assert_eq!((slow.template, slow.bytes), (template, bytes.len()), "{bytes:02x?}\n{}", describe());
        assert_eq!(slow.nodes, expected, "{bytes:02x?}\n{}", describe());
        let fast =
            self.fast.decode(bytes).unwrap_or_else(|fault| panic!("{fault}: {bytes:02x?}\n{}", describe()));
        assert_eq!((fast.template, fast.bytes), (template, bytes.len()), "{bytes:02x?}\n{}", describe());
        assert_eq!(nodes(&fast), expected, "{bytes:02x?}\n{}", describe());
    }
}

/// Decodes messages, encodes them again, and decodes the result with both decoders, which are strict. A reset precedes
/// each message whose number `resets` picks. Returns the number of good messages, their bytes, and the bytes of the
/// encoder.
///
/// # Panics
/// Panics if the decoded messages differ, or if the encoder refuses a decoded message.
pub fn check_reencoding<'m>(
    templates: &Arc<Templates>,
    messages: impl Iterator<Item = &'m [u8]>,
    resets: impl Fn(usize) -> bool,
) -> (usize, usize, usize) {
    let mut decoder = Decoder::new(templates.clone());
    let (mut encoder, mut readers) = (Encoder::new(templates.clone()), DecoderPair::new(templates));
    let (mut good, mut before, mut after) = (0, 0, 0);
    let mut out = Vec::new();
    for (n, message) in messages.enumerate() {
        if resets(n) {
            decoder.reset();
            encoder.reset();
            readers.reset();
        }
        let Ok(decoded_message) = decoder.decode(message) else { continue };
        out.clear();
        if let Err(fault) = encoder.reencode(&decoded_message, &mut out) {
            panic!(
                "message {n}: {fault}\n{:02x?}\n{:?}",
                &message[..decoded_message.bytes],
                nodes(&decoded_message)
            );
        }
        let describe = || format!("message {n}: {:02x?}", &message[..decoded_message.bytes]);
        readers.expect(&out, decoded_message.template, &nodes(&decoded_message), &describe);
        (good, before, after) = (good + 1, before + decoded_message.bytes, after + out.len());
        // Only a text with characters of several bytes or with zero characters may need more bytes.
        let is_nonzero_ascii = |item| match item {
            record::MessageToken::Value(
                _,
                record::FieldValue::Text(text) | record::FieldValue::Bytes(text),
            ) => text.is_ascii() && !text.contains(&0),
            _ => true,
        };
        assert!(
            out.len() <= decoded_message.bytes || !decoded_message.items().all(is_nonzero_ascii),
            "{}: {out:02x?}",
            describe()
        );
    }
    (good, before, after)
}

/// Makes templates and messages from any bytes. Decoders read the generated messages, and the messages that were
/// decoded and encoded again. Returns the number of good messages.
///
/// # Panics
/// Panics if the messages differ.
pub fn from_bytes(bytes: &[u8]) -> usize {
    let (choices, rest) = bytes.split_at(bytes.len() / 3);
    let mut choices = FuzzChoices::new(choices);
    let every = usize::from(choices.choose(5));
    let xml = template_file(&mut choices);
    let templates = match Templates::load(&[TemplateFile { name: "made", content: xml.as_bytes() }]) {
        Ok(templates) => Arc::new(templates),
        Err(error) => panic!("{error}\n{xml}"),
    };
    let resets = |n: usize| every > 0 && n.is_multiple_of(every);
    let (made, stream) = rest.split_at(rest.len() / 2);
    let messages = super::check::messages(stream);
    let (good, ..) = check_reencoding(&templates, messages.iter().map(Vec::as_slice), resets);
    let mut encoder = Encoder::new(templates.clone());
    let mut readers = DecoderPair::new(&templates);
    let mut draft = encoder.draft(0);
    let (mut out, mut made_good) = (Vec::new(), 0);
    for (n, part) in made.chunks(40).enumerate() {
        if resets(n) {
            encoder.reset();
            readers.reset();
        }
        let mut maker = MessageGenerator {
            templates: &templates,
            encoder: &encoder,
            draft: &mut draft,
            choices: FuzzChoices::new(part),
            open: Vec::new(),
            dynamic: 0,
            cut: false,
        };
        let template = usize::from(maker.choices.choose(3));
        maker.draft.begin(template);
        let expected = maker.template(template, None);
        let cut = maker.cut;
        out.truncate(2);
        let before = out.clone();
        match encoder.encode(&draft, &mut out) {
            Ok(()) => {
                readers.expect(&out[before.len()..], template, &expected, &|| format!("{draft:?}\n{xml}"));
                made_good += 1;
            }
            // Contents that a message cannot carry: the previous value of a shared key is of another type or empty, a
            // value is not the constant, a text becomes shorter with a tail, a template is not there.
            Err(fault) => {
                let expected_codes = [
                    MessageFaultCode::D1,
                    MessageFaultCode::D3,
                    MessageFaultCode::D4,
                    MessageFaultCode::D6,
                    MessageFaultCode::D8,
                ];
                let code = fault.code;
                // Nor an exponent that no decimal may have.
                let far = code == MessageFaultCode::R1
                    && EXPONENTS[2..].iter().any(|e| xml.contains(&format!("\"{e}\"")));
                assert!(
                    expected_codes.contains(&code) || far || cut && code == MessageFaultCode::Missing,
                    "{fault}\n{xml}"
                );
                assert_eq!(out, before);
            }
        }
    }
    good + made_good
}

/// Makes messages by choice, and what decoders should have of them.
struct MessageGenerator<'m, 'c> {
    templates: &'m Templates,
    encoder: &'m Encoder,
    draft: &'m mut MessageDraft,
    choices: FuzzChoices<'c>,
    /// The frames that values go into, the message first.
    open: Vec<DraftFrameRef>,
    dynamic: usize,
    /// A reference was left out at the limit.
    cut: bool,
}

impl MessageGenerator<'_, '_> {
    fn template(&mut self, template: usize, frame_ref: Option<DraftFrameRef>) -> Vec<Node> {
        let parts: Vec<TemplatePartRef> = self.encoder.parts(template).map(|(_, part)| part).collect();
        self.open.push(frame_ref.unwrap_or(self.draft.message_frame()));
        let mut nodes = Vec::new();
        self.body(&self.templates.list()[template].body, &parts, true, &mut nodes);
        self.open.pop();
        nodes
    }

    /// Sets the parts of a body if `is_present`. Returns the parts after it.
    fn body<'p>(
        &mut self,
        body: &[Instruction],
        mut parts: &'p [TemplatePartRef],
        is_present: bool,
        out: &mut Vec<Node>,
    ) -> &'p [TemplatePartRef] {
        for instruction in body {
            let mut next = || {
                let (first, rest) = parts.split_first().expect("parts are in the order of the template");
                parts = rest;
                *first
            };
            match instruction {
                Instruction::Static(_, None) => {}
                Instruction::Static(_, Some(index)) => {
                    let templates = self.templates;
                    parts = self.body(&templates.list()[*index].body, parts, is_present, out);
                }
                Instruction::Field(field) => {
                    let TemplatePartRef::Field(field_ref) = next() else { panic!("a field") };
                    if !is_present {
                        continue;
                    }
                    if let Some((value, expected)) = self.field(field) {
                        if let Some(value) = value {
                            self.draft.set(field_ref, field_value(&value, field_ref.kind()));
                        }
                        out.push(Node::Value(field.clone(), expected));
                    }
                }
                Instruction::Group(group) => {
                    let TemplatePartRef::Group(group_ref) = next() else { panic!("a group") };
                    let is_present = is_present && (!group.optional || self.choices.choose(3) > 0);
                    let mut nodes = Vec::new();
                    if is_present {
                        self.draft.group(group_ref);
                    }
                    parts = self.body(&group.body, parts, is_present, &mut nodes);
                    if is_present {
                        out.push(Node::Group(group.name.clone(), nodes));
                    }
                }
                Instruction::Sequence(sequence) => {
                    let TemplatePartRef::Sequence(sequence_ref) = next() else { panic!("a sequence") };
                    let is_present = is_present && (!sequence_ref.optional() || self.choices.choose(3) > 0);
                    let constant = matches!(&sequence.length.kind, FieldEncoding::Plain(_, o) if o.operator == Operator::Constant);
                    let count = match self.choices.choose(8) {
                        _ if !is_present => 0,
                        1.. if constant => 2,
                        n => n & 3,
                    };
                    let mut elements = Vec::new();
                    if is_present {
                        self.draft.sequence(sequence_ref);
                    }
                    for _ in 0..count {
                        let element = self.draft.element(sequence_ref);
                        self.open.push(element);
                        let mut nodes = Vec::new();
                        self.body(&sequence.body, parts, true, &mut nodes);
                        self.open.pop();
                        elements.push(nodes);
                    }
                    parts = self.body(&sequence.body, parts, false, &mut Vec::new());
                    if is_present {
                        out.push(Node::Sequence(sequence.name.clone(), elements));
                    }
                }
                Instruction::Dynamic => {
                    let TemplatePartRef::Reference(dynamic_ref) = next() else { panic!("a reference") };
                    if !is_present || self.dynamic == 3 {
                        self.cut |= is_present;
                        continue;
                    }
                    self.dynamic += 1;
                    let template = usize::from(self.choices.choose(3));
                    let inside = self.draft.set_reference(dynamic_ref, template);
                    out.extend(self.template(template, Some(inside)));
                    self.dynamic -= 1;
                    for frame_ref in &self.open {
                        self.draft.reopen(*frame_ref);
                    }
                }
            }
        }
        parts
    }

    /// Chooses the value of a field. Returns the value to set, or `None` if the field must know it, and the decoded
    /// value. Returns `None` if the field is absent.
    fn field(&mut self, field: &TemplateField) -> Option<(Option<InitialValue>, InitialValue)> {
        if field.optional && self.choices.choose(3) == 0 {
            return None;
        }
        match &field.kind {
            FieldEncoding::Plain(kind, operation) => {
                let value = self.value(*kind, operation);
                let is_implied = matches!(operation.operator, Operator::Constant | Operator::Default);
                let needed = field.optional || !is_implied || operation.initial.as_ref() != Some(&value);
                Some(((needed || self.choices.choose(2) > 0).then(|| value.clone()), value))
            }
            FieldEncoding::Split(exponent, mantissa) => {
                let InitialValue::Int(e) = (match &exponent.initial {
                    Some(initial) if exponent.operator == Operator::Constant => initial.clone(),
                    _ => self.value(WireType::Int32, exponent),
                }) else {
                    panic!("an integer")
                };
                let InitialValue::Int(m) = self.value(WireType::Int64, mantissa) else {
                    panic!("an integer")
                };
                let (e, m) = (e.clamp(-63, 63) as i32, m as i64);
                let expected = InitialValue::Decimal { mantissa: m, exponent: e };
                // The value with another exponent, where the old one can be had back.
                let value = match (exponent.operator, m.checked_mul(10)) {
                    (Operator::Constant, Some(m)) if self.choices.choose(2) > 0 => {
                        InitialValue::Decimal { mantissa: m, exponent: e - 1 }
                    }
                    _ => expected.clone(),
                };
                Some((Some(value), expected))
            }
        }
    }

    fn value(&mut self, kind: WireType, operation: &FieldOperator) -> InitialValue {
        if let Some(initial) = &operation.initial
            && (self.choices.choose(3) == 0
                || operation.operator == Operator::Constant && self.choices.choose(16) > 0)
        {
            return initial.clone();
        }
        match kind {
            WireType::Decimal => {
                let exponent = i32::from(self.choices.choose(128) as i8) - 63;
                let InitialValue::Int(mantissa) = self.number(WireType::Int64) else { panic!("an integer") };
                InitialValue::Decimal { mantissa: mantissa as i64, exponent: exponent.min(63) }
            }
            WireType::Ascii | WireType::Unicode | WireType::Bytes => {
                let pieces: &[&str] = match kind {
                    WireType::Unicode => &["", "a", "ö", "öa", "€", "aaaaaaaaaaaaaaaaa", "\0"],
                    _ => &["", "a", "b", "ab", "aaaaaaaaaaaaaaaaaaaaaaaaaaa", "\0", "ba"],
                };
                let mut text = String::new();
                for _ in 0..self.choices.choose(5) {
                    text.push_str(pieces[usize::from(self.choices.choose(7))]);
                }
                InitialValue::Bytes(text.into_bytes())
            }
            kind => self.number(kind),
        }
    }

    fn number(&mut self, kind: WireType) -> InitialValue {
        let (least, most) = kind.bounds().expect("an integer");
        let small = i128::from(self.choices.choose(255));
        InitialValue::Int(match self.choices.choose(12) {
            0 => least,
            1 => most,
            2 => least + small,
            3 => most - small,
            4 => (small << 57).min(most),
            5 => (small << 24).min(most),
            6 => (-(small << 6)).max(least),
            7 => (small << 6).min(most),
            // Often one more than before.
            _ => small & 7,
        })
    }
}

fn field_value(value: &InitialValue, kind: WireType) -> record::FieldValue<'_> {
    match value {
        InitialValue::Int(value) if kind.bounds().is_some_and(|(least, _)| least < 0) => {
            record::FieldValue::Int(*value as i64)
        }
        InitialValue::Int(value) => record::FieldValue::UInt(*value as u64),
        InitialValue::Decimal { mantissa, exponent } => {
            record::FieldValue::Decimal { mantissa: *mantissa, exponent: *exponent as i8 }
        }
        InitialValue::Bytes(bytes) if kind == WireType::Bytes => record::FieldValue::Bytes(bytes),
        InitialValue::Bytes(bytes) => record::FieldValue::Text(bytes),
    }
}
