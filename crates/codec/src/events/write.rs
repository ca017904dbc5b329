//! From a frame to a line.

use super::parse::{FLAG_WORDS, LAYOUT_1, SOURCE_WORDS, parse_full};
use super::{RESERVED, SourceNameLookup};
use std::io::Write as _;
use unitape_model::schema::{EventFieldSpec, EventSchema};
use unitape_model::{
    Dictionary, Event, EventField, EventKind, EventValue, InlineId, NameKind, Position, TapePosition,
    UnixNanos,
};

/// How much of an event is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventLineDetail {
    /// `seq`, `ts`, `identifier`, the fields of the kind and the unmapped ones.
    Plain,
    /// All that the frame holds, so that [`parse_full`] makes the same frame again.
    Full,
    /// Like [`EventLineDetail::Full`], with the position on the tape.
    FullAt(Position),
}

/// Appends `event` to `out` as one JSON object, without a newline.
///
/// `seq` is the event's ordinal on the tape. A name that is not in `names` is written as `{"id":7}`, which
/// no reader mistakes for a name.
pub fn write_event(
    out: &mut Vec<u8>,
    event: &Event<'_>,
    seq: u64,
    names: &Dictionary,
    sources: &impl SourceNameLookup,
    form: EventLineDetail,
) {
    let line_start = out.len();
    // Writing to a Vec cannot fail, here and below.
    let _ = write!(out, r#"{{"seq":{seq},"ts":{},"kind":"{}""#, event.ts_event().0, event.kind().name());
    for spec in event.schema().fields {
        if let Some(value) = event.value(spec, &mut [0; 36]) {
            write_key(out, spec.field.name());
            write_value(out, spec, value, names);
        }
    }
    let has_source = event.source() != 0;
    if event.kind() == EventKind::Quarantine && has_source {
        write_origin(out, event, sources);
    }
    write_unmapped(out, event, has_source);
    if form != EventLineDetail::Plain {
        write_rest(out, event, sources);
        if let EventLineDetail::FullAt(position) = form {
            let _ = write!(out, r#","position":{position}"#);
        }
        out.push(b'}');
        // An event that the fields above do not carry (entries in another order, say) goes along as raw bytes.
        if !comes_back(&out[line_start..], event) {
            out.pop();
            write_raw(out, event);
            out.push(b'}');
        }
    } else {
        out.push(b'}');
    }
}

/// Writes `source` and `offset` of a quarantine event: the origin of its raw bytes.
fn write_origin(out: &mut Vec<u8>, event: &Event<'_>, sources: &impl SourceNameLookup) {
    write_key(out, "source");
    let base = match sources.source(event.source()) {
        Some(s) => {
            write_text(out, &format!("{}/{}", s.feed, s.file));
            s.base
        }
        None => {
            let _ = write!(out, r#"{{"id":{}}}"#, event.source());
            0
        }
    };
    let _ = write!(out, r#","offset":{}"#, base.saturating_add(event.offset().into()));
}

/// Writes unmapped fields under their own names. From the first name that a reader would take for another field,
/// writes the fields as pairs in `ext`, so that their order stays.
fn write_unmapped(out: &mut Vec<u8>, event: &Event<'_>, has_source: bool) {
    let schema = event.schema();
    let (mut written_names, mut pairs, mut newer) = (Vec::new(), false, None);
    for (name, json) in event.unmapped_fields() {
        if pairs {
            out.push(b',');
        } else if name_collides(schema, has_source, name, || {
            *newer.get_or_insert_with(|| event.needs_layout_1())
        }) || written_names.contains(&name)
            || written_names.len() >= TOP_MAX
        {
            write_key(out, "ext");
            out.push(b'[');
            pairs = true;
        } else {
            written_names.push(name);
            write_key(out, name);
            write_json(out, json);
            continue;
        }
        out.push(b'[');
        write_text(out, name);
        out.push(b',');
        write_json(out, json);
        out.push(b']');
    }
    if pairs {
        out.push(b']');
    }
}

/// Unmapped fields beside the others at most; more go to `ext` (each is compared with those before it).
const TOP_MAX: usize = 64;

/// Returns whether a reader would take a user's own field of this name for another field. In an older frame, the name
/// of a later field belongs to the user.
fn name_collides(schema: &EventSchema, has_source: bool, name: &str, newer: impl FnOnce() -> bool) -> bool {
    RESERVED.contains(&name)
        || schema.find(name).is_some_and(|spec| !spec.added || newer())
        || (schema.kind == EventKind::Quarantine && has_source && SOURCE_WORDS.contains(&name))
}

/// Writes the additions of the full form.
fn write_rest(out: &mut Vec<u8>, event: &Event<'_>, sources: &impl SourceNameLookup) {
    if let Some(source_seq) = event.sequence() {
        let _ = write!(out, r#","src_seq":{source_seq}"#);
    }
    if let Some(UnixNanos(ts)) = event.ts_recv() {
        let _ = write!(out, r#","ts_recv":{ts}"#);
    }
    if (event.source(), event.offset()) != (0, 0) {
        let _ = write!(out, r#","src":{{"id":{}"#, event.source());
        let base = sources.source(event.source()).map_or(0, |s| {
            write_key(out, "feed");
            write_text(out, s.feed);
            write_key(out, "file");
            write_text(out, s.file);
            let _ = write!(out, r#","base":{}"#, s.base);
            s.base
        });
        match base.checked_add(event.offset().into()) {
            Some(offset) => {
                let _ = write!(out, r#","offset":{offset}}}"#);
            }
            None => out.push(b'}'),
        }
    }
    write_key(out, "flags");
    let bits = event.header().flags();
    let words = FLAG_WORDS.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, word)| *word);
    let layout = event.needs_layout_1().then_some(LAYOUT_1);
    write_list(out, words.chain(layout), write_text);
    write_key(out, "ids");
    out.push(b'{');
    let mut is_first_member = true;
    for spec in event.schema().fields {
        let mut scratch = [0; 36];
        let value = event.value(spec, &mut scratch);
        if !matches!(value, Some(EventValue::Sym(..) | EventValue::Syms(..))) {
            continue;
        }
        let _ = write!(out, r#"{}"{}":"#, if is_first_member { "" } else { "," }, spec.field.name());
        is_first_member = false;
        match value {
            Some(EventValue::Sym(_, id)) => {
                let _ = write!(out, "{id}");
            }
            Some(EventValue::Syms(_, ids)) => write_list(out, each_id(ids), |out, id| {
                let _ = write!(out, "{id}");
            }),
            _ => {}
        }
    }
    out.push(b'}');
}

fn write_value(out: &mut Vec<u8>, spec: &EventFieldSpec, value: EventValue<'_>, names: &Dictionary) {
    let _ = match value {
        EventValue::Sym(dict, id) => return write_name(out, names, dict, id),
        EventValue::Syms(dict, ids) => {
            return write_list(out, each_id(ids), |out, id| write_name(out, names, dict, id));
        }
        EventValue::Text(t) => return write_text(out, t),
        EventValue::Json(j) => return write_json(out, j),
        EventValue::Id(InlineId::Text(t)) => match std::str::from_utf8(t) {
            Ok(t) => return write_text(out, t),
            Err(_) => {
                let _ = write!(out, r#"{{"hex":""#);
                write_hex(out, t);
                write!(out, r#""}}"#)
            }
        },
        EventValue::Id(InlineId::Number(n)) => write!(out, "{n}"),
        EventValue::Price(p) => write!(out, r#""{p}""#),
        EventValue::Decimal(d) => write!(out, r#""{d}""#),
        EventValue::Amount(a) => write!(out, r#""{a}""#),
        EventValue::Bool(b) => write!(out, "{b}"),
        EventValue::UInt(n) => match u8::try_from(n).ok().and_then(NameKind::from_u8) {
            Some(dict) if spec.field == EventField::Dict => return write_text(out, dict.name()),
            _ => write!(out, "{n}"),
        },
        EventValue::Nanos(UnixNanos(t)) => write!(out, "{t}"),
        EventValue::Date(date) => write!(out, r#""{date}""#),
        EventValue::Flags(values, set) => {
            let words = values.iter().enumerate().filter(|(i, _)| set >> i & 1 != 0);
            return write_list(out, words, |out, (_, word)| write_text(out, word));
        }
        EventValue::Tape(id) => write!(out, r#""{id:032x}""#),
        EventValue::TapePosition(p) => write!(out, "{p}"),
        EventValue::TapePositions(list) => {
            let list = list.as_chunks().0.iter().map(TapePosition::from_bytes);
            return write_list(out, list, |out, p| {
                let _ = write!(out, "{p}");
            });
        }
    };
}

fn write_name(out: &mut Vec<u8>, names: &Dictionary, dict: NameKind, id: u32) {
    match names.name(dict, id) {
        Some(name) => write_text(out, name),
        None => {
            let _ = write!(out, r#"{{"id":{id}}}"#);
        }
    }
}

fn write_list<T>(out: &mut Vec<u8>, items: impl Iterator<Item = T>, mut one: impl FnMut(&mut Vec<u8>, T)) {
    out.push(b'[');
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        one(out, item);
    }
    out.push(b']');
}

fn each_id(ids: &[u8]) -> impl Iterator<Item = u32> {
    ids.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().expect("four bytes")))
}

fn write_key(out: &mut Vec<u8>, name: &str) {
    out.push(b',');
    write_text(out, name);
    out.push(b':');
}

#[inline]
fn write_text(out: &mut Vec<u8>, text: &str) {
    if text.bytes().all(|b| b >= b' ' && b != b'"' && b != b'\\') {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        serde_json::to_writer(out, text).expect("text is always JSON");
    }
}

/// Writes a JSON value that the event holds as text. If the text is not valid JSON, writes it as a string.
fn write_json(out: &mut Vec<u8>, json: &str) {
    match serde_json::from_str::<&serde_json::value::RawValue>(json) {
        // A newline between tokens would end our line; inside text none can be.
        Ok(raw) => out.extend(raw.get().bytes().map(|b| if b == b'\n' { b' ' } else { b })),
        Err(_) => write_text(out, json),
    }
}

fn write_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend(bytes.iter().flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]]));
}

/// Writes the whole frame in hexadecimal digits, with its stamp zeroed.
fn write_raw(out: &mut Vec<u8>, event: &Event<'_>) {
    write_key(out, "raw");
    out.extend_from_slice(b"\"00000000");
    write_hex(out, &event.bytes()[4..]);
    out.push(b'"');
}

/// Returns whether parsing the line gives the same frame.
fn comes_back(line: &[u8], event: &Event<'_>) -> bool {
    let mut frame = Vec::with_capacity(event.bytes().len());
    parse_full(line, &mut frame).is_ok() && frame.get(4..) == event.bytes().get(4..)
}
