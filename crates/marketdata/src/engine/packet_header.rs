//! The header of packets, most of them read without the decoder.
//!
//! ```text
//!  template of the header ──▶ Plain: id, presence bits, a step for each field       once
//!  packet ──▶ Plain::read ──▶ Head, and where the messages begin
//!                └ anything unusual: none ──▶ the decoder reads it, as any other message
//! ```
//!
//! There is a header for every one or two messages, and in most it is a few numbers without operators that keep
//! anything: to set up the decoder costs more than to read them. Any other header has no such program. The decoder
//! would read the same values as the program; faults, and all that is rare, are left to the decoder.

use super::config::TimeUnit;
use super::field_roles::FieldRole;
use super::values::{self, time_in, time_ns};
use unitape_fast::template::{FieldEncoding, Instruction, IntegerMeaning, Operator, Template, WireType};
use unitape_fast::{DecodedValue, Message, MessageVisitor};

/// The values that a packet has before its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PacketHeader {
    pub sequence: Option<u64>,
    pub sender: u64,
    pub partition: u64,
    pub time_ns: Option<i64>,
    pub has_reset: bool,
}

/// Returns the header of a packet as the decoder has read it.
pub(super) fn decoded_header(message: &Message<'_>, unit: TimeUnit) -> PacketHeader {
    struct HeaderVisitor(PacketHeader, TimeUnit);
    impl MessageVisitor for HeaderVisitor {
        #[inline(always)]
        fn value(&mut self, tag: u16, value: DecodedValue<'_>) {
            let Some(number) = values::unsigned_number(value) else { return };
            let Self(head, unit) = self;
            match FieldRole::from_number(tag) {
                Some(FieldRole::HeadSequence) => head.sequence = Some(number),
                Some(FieldRole::HeadSender) => head.sender = number,
                Some(FieldRole::HeadPartition) => head.partition = number,
                Some(FieldRole::HeadTime) => head.time_ns = time_ns(value, *unit),
                Some(FieldRole::HeadReset) => head.has_reset = number != 0,
                _ => {}
            }
        }
    }
    let mut visiting = HeaderVisitor(PacketHeader::default(), unit);
    message.visit(&mut visiting);
    visiting.0
}

/// The program for a header whose fields are numbers and short byte vectors, and for which dictionaries are nothing.
#[derive(Clone, Debug)]
pub(super) struct HeaderProgram {
    /// The template.
    pub id: u32,
    /// The id as messages encode it, in the shortest form.
    id_prefix: Vec<u8>,
    /// Bits of the presence map, which is one byte, that no field has.
    unused: u8,
    steps: Vec<PacketHeaderField>,
}

/// A field.
#[derive(Clone, Copy, Debug)]
struct PacketHeaderField {
    field_type: HeaderFieldType,
    /// The field may be absent: its number is then encoded plus one.
    is_optional: bool,
    /// The field's bit in the presence map; the field is absent if the bit is not set. 0 if the field has no bit.
    presence_bit: u8,
    role: HeaderFieldRole,
}

#[derive(Clone, Copy, Debug)]
enum HeaderFieldType {
    /// A number, at most this one.
    Number(u64),
    /// Bytes with their length before them.
    Bytes,
}

/// The role of a field in the header.
#[derive(Clone, Copy, Debug)]
enum HeaderFieldRole {
    Sequence,
    Sender,
    Partition,
    Time,
    Reset,
    Nothing,
}

/// The bit of the template's id in the presence map, and the byte's stop bit.
const LEAD_BITS: u8 = 0xc0;

/// Fields, at most: all of them have to be read before a packet is known to be a copy.
const STEPS_MAX: usize = 16;

impl HeaderProgram {
    /// Compiles a template into a program. Returns `None` if the template is not plain. `tags` names the fields to
    /// read.
    pub fn compile(template: &Template, tags: &[(&str, FieldRole)]) -> Option<Self> {
        let id = template.id?;
        let mut program = Self { id, id_prefix: encode_lead(id), unused: !LEAD_BITS, steps: Vec::new() };
        let mut bit = 0x20;
        for part in &template.body {
            let Instruction::Field(field) = part else { return None };
            let FieldEncoding::Plain(r#type, operation) = &field.kind else { return None };
            let field_type = match r#type {
                WireType::UInt32 => HeaderFieldType::Number(u32::MAX.into()),
                WireType::UInt64 => HeaderFieldType::Number(u64::MAX),
                WireType::Bytes if !field.optional => HeaderFieldType::Bytes,
                _ => return None,
            };
            let has_bit = match (operation.operator, &operation.initial) {
                (Operator::None, None) => false,
                (Operator::Default, None) if field.optional && bit > 0 => true,
                _ => return None,
            };
            if field.meaning != IntegerMeaning::Number || program.steps.len() == STEPS_MAX {
                return None;
            }
            // If two ask for one field, the last one has it.
            let tag = tags.iter().rev().find(|(path, _)| *path == field.name.local).map(|(_, tag)| *tag);
            let role = match tag {
                Some(FieldRole::HeadSequence) => HeaderFieldRole::Sequence,
                Some(FieldRole::HeadSender) => HeaderFieldRole::Sender,
                Some(FieldRole::HeadPartition) => HeaderFieldRole::Partition,
                Some(FieldRole::HeadTime) => HeaderFieldRole::Time,
                Some(FieldRole::HeadReset) => HeaderFieldRole::Reset,
                _ => HeaderFieldRole::Nothing,
            };
            program.steps.push(PacketHeaderField {
                field_type,
                is_optional: field.optional,
                presence_bit: if has_bit { bit } else { 0 },
                role,
            });
            if has_bit {
                program.unused &= !bit;
                bit = bit >> 1 & 0x3f;
            }
        }
        Some(program)
    }

    /// Reads the header at the start of a packet and returns it with its length in bytes. Returns `None` if the decoder
    /// must read the header.
    #[inline(always)]
    pub fn read_header(&self, packet: &[u8], unit: TimeUnit) -> Option<(PacketHeader, usize)> {
        let (&map, mut left) = packet.split_first()?;
        if map & (LEAD_BITS | self.unused) != LEAD_BITS {
            return None;
        }
        for byte in &self.id_prefix {
            left = left.strip_prefix(std::slice::from_ref(byte))?;
        }
        let mut head = PacketHeader::default();
        for step in &self.steps {
            if map & step.presence_bit != step.presence_bit {
                continue;
            }
            let mut value;
            (value, left) = match step.field_type {
                HeaderFieldType::Number(max) => read_number(left, max)?,
                HeaderFieldType::Bytes => bytes(left)?,
            };
            if step.is_optional {
                match value.checked_sub(1) {
                    Some(less) => value = less,
                    None => continue,
                }
            }
            match step.role {
                HeaderFieldRole::Sequence => head.sequence = Some(value),
                HeaderFieldRole::Sender => head.sender = value,
                HeaderFieldRole::Partition => head.partition = value,
                HeaderFieldRole::Time => head.time_ns = time_in(value, unit),
                HeaderFieldRole::Reset => head.has_reset = value != 0,
                HeaderFieldRole::Nothing => {}
            }
        }
        Some((head, packet.len() - left.len()))
    }
}

/// Reads an unsigned number of up to eight bytes in its shortest form. Returns it with the bytes after it.
#[inline(always)]
fn read_number(bytes: &[u8], max: u64) -> Option<(u64, &[u8])> {
    let (&first, left) = bytes.split_first()?;
    if first >= 0x80 {
        return Some((u64::from(first & 0x7f), left));
    }
    long_number(bytes, max)
}

#[inline(never)]
fn long_number(bytes: &[u8], max: u64) -> Option<(u64, &[u8])> {
    let stop = bytes.iter().take(8).position(|byte| *byte >= 0x80)?;
    let (number, left) = bytes.split_at(stop + 1);
    let value = number.iter().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f));
    (number[0] != 0 && value <= max).then_some((value, left))
}

/// Reads a number of one to eight bytes, the highest first. Returns it with the bytes after it.
#[inline(always)]
fn bytes(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&length, left) = bytes.split_first()?;
    let length = usize::from(length.wrapping_sub(0x80));
    if !(1..=8).contains(&length) || left.len() < length {
        return None;
    }
    let value = match left.first_chunk() {
        Some(word) => u64::from_be_bytes(*word) >> (64 - 8 * length),
        None => left[..length].iter().fold(0, |value, byte| value << 8 | u64::from(*byte)),
    };
    Some((value, &left[length..]))
}

/// Encodes a number in groups of seven bits, the last with the stop bit.
fn encode_lead(id: u32) -> Vec<u8> {
    let groups = (0..5).rev().map(|n| (id >> (7 * n) & 0x7f) as u8);
    let mut bytes: Vec<u8> = groups.skip_while(|group| *group == 0).collect();
    match bytes.last_mut() {
        Some(last) => *last |= 0x80,
        None => bytes.push(0x80),
    }
    bytes
}
