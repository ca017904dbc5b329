//! From a line to a frame.

use super::object::ObjectMembers;
use super::{FULL_LINE_BYTES_MAX, LINE_BYTES_MAX};
use std::borrow::Cow;
use unitape_model::schema::{EventFieldSpec, EventSchema, FieldLayout};
use unitape_model::{
    Amount, CivilDate, Decimal, Event, EventBuilder, EventField, EventKind, EventValue, InlineId, NameKind,
    NameResolver, Position, Price, Refusal, TapePosition, UnixNanos, flags,
};

/// The contents of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParsedEventLine<'a> {
    /// An event; its frame now ends the arena.
    Event {
        /// Where its frame begins, in bytes from the start of the arena.
        start: usize,
        /// `seq` as it is in the line.
        seq: Option<u64>,
        /// Event time.
        ts: UnixNanos,
    },
    /// `"rec":"header"`: the whole line.
    Header(&'a str),
    /// `"rec":"case"`: the whole line.
    Case(&'a str),
    /// `"rec":"expect"`: the whole line.
    Expect(&'a str),
    /// Nothing but space.
    Blank,
}

/// The word of a line whose kind no input may carry: `define`, `source`, `progress` or `quarantine`.
pub const BOOKKEEPING: &str = "bookkeeping";

/// Properties of a line that the caller knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineParseOptions {
    /// The id of the source definition; 0 without a source.
    pub source: u32,
    /// Offset of the line from the base of its source, in bytes.
    pub offset: u32,
    /// Frame flags of [`unitape_model::flags`].
    pub flags: u8,
    /// Whether a field `flags` of the line, as the full form has it, adds to them. It is a field of the user otherwise.
    pub reads_flags: bool,
}

impl Default for LineParseOptions {
    /// Makes options without a source, in which each line is a whole message.
    fn default() -> Self {
        Self { source: 0, offset: 0, flags: flags::LAST, reads_flags: false }
    }
}

/// Why a line was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}{}{}: {message}", if .field.is_some() { " in " } else { "" }, .field.as_deref().unwrap_or(""))]
pub struct LineFault {
    /// A word fit for quarantine: that of the [`Refusal`], or `bad_json`, `unknown_kind`, `unknown_rec`,
    /// `duplicate`, `missing`, `too_large`, [`BOOKKEEPING`].
    pub code: &'static str,
    /// The field it is about, cut at 64 bytes.
    pub field: Option<Box<str>>,
    /// For people.
    pub message: Box<str>,
}

impl LineFault {
    #[cold]
    pub(super) fn new(code: &'static str, field: Option<&str>, message: impl Into<Box<str>>) -> Self {
        let field = field.map(|f| f[..f.floor_char_boundary(64)].into());
        Self { code, field, message: message.into() }
    }

    #[cold]
    pub(super) fn json(e: &serde_json::Error) -> Self {
        Self::new("bad_json", None, e.to_string())
    }

    #[cold]
    fn from_refusal(field: &str, refusal: Refusal) -> Self {
        Self::new(refusal.code(), Some(field), refusal.to_string())
    }
}

/// Reads one line; an event's frame is appended to `arena`, unstamped.
///
/// `names` assigns the ids. `seq` (or `src_seq`, if present) becomes the event's own sequence, `ts_recv` its receive
/// time. A `null` means an absent field. Fields that the kind does not define are kept as unmapped fields, in their
/// order.
///
/// # Errors
/// Fails if the line is no event; the arena stays as before. Ids that `names` assigned stay assigned. The caller must
/// drop its fix-ups at or after the end of the arena.
pub fn parse_line<'a>(
    line: &'a [u8],
    names: &mut impl NameResolver,
    arena: &mut Vec<u8>,
    options: &LineParseOptions,
) -> Result<ParsedEventLine<'a>, LineFault> {
    if line.len() > LINE_BYTES_MAX {
        return Err(LineFault::new("too_large", None, "line longer than 4 MiB"));
    }
    parse(line, &mut FillByName(names), arena, ParseMode::Line(options))
}

/// Reads a line in full form. The frame appended to `arena` equals the original frame byte for byte, except for the
/// stamp. Ids come from the line; names are ignored.
///
/// # Errors
/// Fails if the line is no event; the arena stays as before.
pub fn parse_full<'a>(line: &'a [u8], arena: &mut Vec<u8>) -> Result<ParsedEventLine<'a>, LineFault> {
    if line.len() > FULL_LINE_BYTES_MAX {
        return Err(LineFault::new("too_large", None, "line longer than 48 MiB"));
    }
    parse(line, &mut FillById { id_members: None }, arena, ParseMode::Full)
}

#[derive(Clone, Copy)]
enum ParseMode<'o> {
    Line(&'o LineParseOptions),
    Full,
}

/// How interned fields are filled.
trait InternedFieldFiller<'a> {
    fn begin_ids(&mut self, ids: Option<&'a str>) -> Result<(), LineFault>;
    fn set_sym(
        &mut self,
        event: &mut EventBuilder<'_>,
        spec: &EventFieldSpec,
        json: &'a str,
    ) -> Result<(), LineFault>;
    fn set_syms(
        &mut self,
        event: &mut EventBuilder<'_>,
        spec: &EventFieldSpec,
        json: &'a str,
    ) -> Result<(), LineFault>;
}

struct FillByName<'n, N>(&'n mut N);

impl<'a, N: NameResolver> InternedFieldFiller<'a> for FillByName<'_, N> {
    fn begin_ids(&mut self, _ids: Option<&'a str>) -> Result<(), LineFault> {
        Ok(())
    }

    #[inline]
    fn set_sym(
        &mut self,
        event: &mut EventBuilder<'_>,
        spec: &EventFieldSpec,
        json: &'a str,
    ) -> Result<(), LineFault> {
        let name = text(json).ok_or_else(|| wrong_value(spec, "a name is text"))?;
        event
            .set_text(spec, name.as_bytes(), self.0)
            .map_err(|r| LineFault::from_refusal(spec.field.name(), r))
    }

    fn set_syms(
        &mut self,
        event: &mut EventBuilder<'_>,
        spec: &EventFieldSpec,
        json: &'a str,
    ) -> Result<(), LineFault> {
        let list: Vec<Cow<'_, str>> = serde_json::from_str::<Vec<&serde_json::value::RawValue>>(json)
            .ok()
            .and_then(|list| list.into_iter().map(|j| text(j.get())).collect())
            .ok_or_else(|| wrong_value(spec, "a list of names is needed"))?;
        event
            .set_names(spec, list.iter().map(|n| n.as_bytes()), self.0)
            .map_err(|r| LineFault::from_refusal(spec.field.name(), r))
    }
}

struct FillById<'a> {
    id_members: Option<ObjectMembers<'a>>,
}

impl<'a> FillById<'a> {
    fn id(&self, spec: &EventFieldSpec) -> Result<&'a str, LineFault> {
        let id = self.id_members.as_ref().and_then(|ids| ids.get(spec.field.name()));
        id.ok_or_else(|| LineFault::new("missing", Some(spec.field.name()), "no id of it in ids"))
    }
}

impl<'a> InternedFieldFiller<'a> for FillById<'a> {
    fn begin_ids(&mut self, ids: Option<&'a str>) -> Result<(), LineFault> {
        self.id_members = ids.map(ObjectMembers::from_text).transpose()?;
        Ok(())
    }

    fn set_sym(
        &mut self,
        event: &mut EventBuilder<'_>,
        spec: &EventFieldSpec,
        _json: &'a str,
    ) -> Result<(), LineFault> {
        let dict = spec.slot.dict().expect("called for slots of one name");
        let max = if dict == NameKind::Venue { u64::from(u16::MAX) } else { u64::from(u32::MAX) };
        let id = self.id(spec)?.parse::<u64>().ok().filter(|id| (1..=max).contains(id));
        let id = id.ok_or_else(|| wrong_value(spec, "its id in ids is no id"))? as u32;
        event.set(spec, EventValue::Sym(dict, id)).map_err(|r| LineFault::from_refusal(spec.field.name(), r))
    }

    fn set_syms(
        &mut self,
        event: &mut EventBuilder<'_>,
        spec: &EventFieldSpec,
        _json: &'a str,
    ) -> Result<(), LineFault> {
        let FieldLayout::Syms { dict } = spec.slot else { unreachable!("called for Slot::Syms") };
        let ids: Vec<u32> = serde_json::from_str(self.id(spec)?)
            .map_err(|_| wrong_value(spec, "its ids in ids are no list of ids"))?;
        let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        event
            .set(spec, EventValue::Syms(dict, &bytes))
            .map_err(|r| LineFault::from_refusal(spec.field.name(), r))
    }
}

/// No kind has more fields.
pub(super) const FIELDS_MAX: usize = 32;

/// The members every event may have.
#[derive(Default)]
struct CommonMembers<'a> {
    rec: Option<&'a str>,
    seq: Option<&'a str>,
    ts: Option<&'a str>,
    kind: Option<&'a str>,
    src_seq: Option<&'a str>,
    ts_recv: Option<&'a str>,
    extension_json: Option<&'a str>,
    src: Option<&'a str>,
    flags: Option<&'a str>,
    ids_json: Option<&'a str>,
    raw_json: Option<&'a str>,
    position: Option<&'a str>,
}

impl<'a> CommonMembers<'a> {
    #[inline]
    fn slot_for(&mut self, name: &str, is_full: bool, reads_flags: bool) -> Option<&mut Option<&'a str>> {
        Some(match name {
            "seq" => &mut self.seq,
            "ts" => &mut self.ts,
            "kind" => &mut self.kind,
            "rec" => &mut self.rec,
            "src_seq" => &mut self.src_seq,
            "ts_recv" => &mut self.ts_recv,
            "ext" => &mut self.extension_json,
            "src" if is_full => &mut self.src,
            "flags" if reads_flags => &mut self.flags,
            "ids" if is_full => &mut self.ids_json,
            "raw" if is_full => &mut self.raw_json,
            "position" if is_full => &mut self.position,
            _ => return None,
        })
    }
}

fn parse<'a>(
    line: &'a [u8],
    naming: &mut impl InternedFieldFiller<'a>,
    arena: &mut Vec<u8>,
    mode: ParseMode<'_>,
) -> Result<ParsedEventLine<'a>, LineFault> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Ok(ParsedEventLine::Blank);
    }
    if line.contains(&b'\n') {
        return Err(LineFault::new("bad_json", None, "an event is one line"));
    }
    let line = std::str::from_utf8(line)
        .map_err(|e| LineFault::new("not_utf8", None, format!("line is not {e}")))?;
    let mut members = ObjectMembers::from_text(line)?;

    let is_full = matches!(mode, ParseMode::Full);
    let reads_flags = is_full || matches!(mode, ParseMode::Line(LineParseOptions { reads_flags: true, .. }));
    let mut common = CommonMembers::default();
    for m in members.iter_mut() {
        let name = m.name();
        // A user's own field may be called `ext`; ours is a list of pairs.
        if name == "ext" && parse_pairs(m.value).is_none() {
            continue;
        }
        if let Some(slot) = common.slot_for(&name, is_full, reads_flags) {
            if slot.replace(m.value).is_some() {
                return Err(duplicate_member(&name));
            }
            m.is_used = true;
        }
    }
    // `null` is the same as leaving a member out, here too.
    for word in [&mut common.rec, &mut common.kind, &mut common.ts] {
        *word = word.filter(|json| *json != "null");
    }
    match common.rec.map(|r| text(r).unwrap_or_default()).as_deref() {
        None | Some("event") => {}
        Some("header") => return Ok(ParsedEventLine::Header(line)),
        Some("case") => return Ok(ParsedEventLine::Case(line)),
        Some("expect") => return Ok(ParsedEventLine::Expect(line)),
        Some(_) => {
            return Err(LineFault::new("unknown_rec", Some("rec"), "not event, header, case or expect"));
        }
    }

    let kind = text(common.kind.ok_or_else(|| missing_member("kind"))?)
        .ok_or_else(|| LineFault::from_refusal("kind", Refusal::WrongSort))?;
    let kind = find_kind(&kind, is_full)?;
    let ts =
        parse_integer(common.ts.ok_or_else(|| missing_member("ts"))?).ok_or_else(|| bad_integer("ts"))?;
    let ts = UnixNanos(ts);
    let seq = parse_unsigned("seq", common.seq)?;
    if let Some(raw) = common.raw_json {
        let frame_start = unhex_frame(raw, kind, arena)?;
        return Ok(ParsedEventLine::Event { start: frame_start, seq, ts });
    }

    // A full line without the word is of layout 0: names of fields that came later are a user's own there.
    let added = !is_full || common.flags.is_some_and(has_layout_1);
    let schema = if kind.has_layouts() && !added {
        EventSchema::for_layout(kind, 0).expect("layouts are numbered from 0")
    } else {
        EventSchema::for_kind(kind)
    };
    let mut values: [Option<&'a str>; FIELDS_MAX] = [None; FIELDS_MAX];
    let mut guess = 0;
    let has_source = is_full
        && kind == EventKind::Quarantine
        && common.src.is_some_and(|s| !matches!(parse_source_offset(s), Ok((0, _))));
    for m in members.iter_mut().filter(|m| !m.is_used) {
        let name = m.name();
        // Writers keep to an order, mostly ours, so the next field is likely the one after the last.
        let spec_index = (guess..schema.fields.len())
            .chain(0..guess)
            .find(|&i| schema.fields[i].field.name() == name && (added || !schema.fields[i].added));
        let Some(i) = spec_index else {
            // `src` has it already.
            m.is_used = has_source && SOURCE_WORDS.contains(&&*name);
            continue;
        };
        if values[i].replace(m.value).is_some() {
            return Err(duplicate_member(&name));
        }
        (m.is_used, guess) = (true, i + 1);
    }
    if let Some(name) = members.duplicate_name() {
        return Err(duplicate_member(&name));
    }
    for (spec, value) in schema.fields.iter().zip(&mut values) {
        *value = value.filter(|v| *v != "null");
        if spec.required && value.is_none() && !is_full {
            return Err(missing_member(spec.field.name()));
        }
    }
    let one_of = kind.one_of();
    if !one_of.is_empty() && !is_full {
        let mut present_fields = schema.fields.iter().zip(&values).filter(|(_, value)| value.is_some());
        if !present_fields.any(|(spec, _)| one_of.contains(&spec.field)) {
            let names: Vec<&str> = one_of.iter().map(|field| field.name()).collect();
            let reason = format!("one of {} is needed", names.join(", "));
            return Err(LineFault::new("missing", Some(names[0]), reason));
        }
    }
    naming.begin_ids(common.ids_json)?;

    let mut event = EventBuilder::begin_layout(arena, schema, ts);
    let result = fill_event(&mut event, naming, &common, &values, &members, mode);
    match result {
        Ok(frame_flags) => {
            let frame_start =
                event.finish(frame_flags).map_err(|r| LineFault::new(r.code(), None, r.to_string()))?;
            Ok(ParsedEventLine::Event { start: frame_start, seq, ts })
        }
        Err(e) => {
            event.abandon();
            Err(e)
        }
    }
}

/// Fields of a quarantine event's source at the top of its line.
pub(super) const SOURCE_WORDS: [&str; 2] = ["source", "offset"];

/// Sets everything; the order is the canonical one of the extension: sequence, receive time, fields as the
/// schema has them, unmapped fields as they came.
fn fill_event<'a>(
    event: &mut EventBuilder<'_>,
    naming: &mut impl InternedFieldFiller<'a>,
    common: &CommonMembers<'a>,
    values: &[Option<&'a str>; FIELDS_MAX],
    members: &ObjectMembers<'a>,
    mode: ParseMode<'_>,
) -> Result<u8, LineFault> {
    let source_seq = parse_unsigned("src_seq", common.src_seq)?;
    let (sequence, frame_flags) = match mode {
        ParseMode::Line(o) => {
            if (o.source, o.offset) != (0, 0) {
                event.source(o.source, o.offset);
            }
            let stated = common.flags.map_or(Ok(0), flag_bits)?;
            (source_seq.or(parse_unsigned("seq", common.seq)?), o.flags | stated)
        }
        ParseMode::Full => {
            if let Some(src) = common.src {
                let (source, offset) = parse_source_offset(src)?;
                event.source(source, offset);
            }
            parse_unsigned("position", common.position)?;
            (source_seq, common.flags.map_or(Ok(0), flag_bits)?)
        }
    };
    if let Some(sequence) = sequence {
        event.sequence(sequence);
    }
    if let Some(ts) = common.ts_recv.filter(|v| *v != "null") {
        event.ts_recv(UnixNanos(parse_integer(ts).ok_or_else(|| bad_integer("ts_recv"))?));
    }
    let schema = event.schema();
    for (spec, value) in schema.fields.iter().zip(values) {
        let Some(json) = *value else { continue };
        match spec.slot {
            FieldLayout::Sym { .. } | FieldLayout::SymExt { .. } | FieldLayout::Publisher { .. } => {
                naming.set_sym(event, spec, json)?
            }
            FieldLayout::Syms { .. } => naming.set_syms(event, spec, json)?,
            _ => set_plain(event, spec, json)?,
        }
    }
    for m in members.iter().filter(|m| !m.is_used) {
        let name = m.name();
        event.keep_unmapped(&name, m.value).map_err(|r| LineFault::from_refusal(&name, r))?;
    }
    for (name, json) in common.extension_json.and_then(parse_pairs).unwrap_or_default() {
        event.keep_unmapped(&name, json).map_err(|r| LineFault::from_refusal(&name, r))?;
    }
    Ok(frame_flags)
}

/// Sets a field that is not interned.
fn set_plain(event: &mut EventBuilder<'_>, spec: &EventFieldSpec, json: &str) -> Result<(), LineFault> {
    let refused = |r| LineFault::from_refusal(spec.field.name(), r);
    let number = |e: unitape_model::NumberFault| refused(Refusal::from(e));
    match spec.slot {
        FieldLayout::Price { .. } => {
            let p = Price::parse(&parse_decimal(spec, json)?).map_err(number)?;
            event.set(spec, EventValue::Price(p))
        }
        FieldLayout::Decimal { .. } | FieldLayout::DecimalNarrow { .. } | FieldLayout::DecimalExt => {
            let d = Decimal::parse(&parse_decimal(spec, json)?).map_err(number)?;
            event.set(spec, EventValue::Decimal(d))
        }
        FieldLayout::Amount { .. } => {
            let a = Amount::parse(&parse_decimal(spec, json)?).map_err(number)?;
            event.set(spec, EventValue::Amount(a))
        }
        FieldLayout::Id { .. } => match text(json) {
            Some(t) => event.set(spec, EventValue::Id(InlineId::Text(t.as_bytes()))),
            None if json.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
                let n = json.parse().map_err(|_| refused(Refusal::BadInteger))?;
                event.set(spec, EventValue::Id(InlineId::Number(n)))
            }
            None => return Err(wrong_value(spec, "an id is text or a number")),
        },
        FieldLayout::Text { .. } | FieldLayout::Code { .. } => {
            let t = text(json).ok_or_else(|| wrong_value(spec, "text is needed"))?;
            event.set(spec, EventValue::Text(&t))
        }
        FieldLayout::Bool { .. } | FieldLayout::Flag { .. } => match json {
            "true" => event.set(spec, EventValue::Bool(true)),
            "false" => event.set(spec, EventValue::Bool(false)),
            _ => return Err(wrong_value(spec, "true or false is needed")),
        },
        FieldLayout::UInt { .. } => {
            let n = match text(json).filter(|_| spec.field == EventField::Dict) {
                Some(word) => NameKind::ALL.into_iter().find(|d| d.name() == word).map(|d| d as u64),
                None => json.parse().ok(),
            };
            event.set(spec, EventValue::UInt(n.ok_or_else(|| refused(Refusal::BadInteger))?))
        }
        FieldLayout::Nanos { .. } | FieldLayout::MillisAfter { .. } => {
            let t =
                parse_integer(json).filter(|t| *t != i64::MIN).ok_or_else(|| refused(Refusal::BadTime))?;
            event.set(spec, EventValue::Nanos(UnixNanos(t)))
        }
        FieldLayout::FlagSet { values, .. } => {
            let words: Vec<Cow<'_, str>> =
                serde_json::from_str(json).map_err(|_| wrong_value(spec, "a list of words is needed"))?;
            let set = words.iter().try_fold(0, |set, word| {
                let bit = values.iter().position(|value| value == word).map(|i| 1 << i)?;
                (set & bit == 0).then_some(set | bit)
            });
            event.set(spec, EventValue::Flags(values, set.ok_or_else(|| refused(Refusal::BadValue))?))
        }
        FieldLayout::Date { .. } | FieldLayout::DateAfter { .. } => {
            let date = text(json).unwrap_or(Cow::Borrowed(json));
            let date = CivilDate::parse(date.as_bytes());
            let reason = "a date is text, YYYY-MM-DD or YYYYMMDD";
            event.set(
                spec,
                EventValue::Date(date.ok_or_else(|| {
                    LineFault::new(Refusal::BadTime.code(), Some(spec.field.name()), reason)
                })?),
            )
        }
        FieldLayout::Tape { .. } => {
            event.set(spec, EventValue::Tape(tape_id(json).ok_or_else(|| wrong_value(spec, TAPE_ID))?))
        }
        FieldLayout::TapePosition { .. } => {
            let p = tape_position(json).ok_or_else(|| wrong_value(spec, TAPE_POSITION))?;
            event.set(spec, EventValue::TapePosition(p))
        }
        FieldLayout::TapePositions => {
            let list: Vec<&serde_json::value::RawValue> =
                serde_json::from_str(json).map_err(|_| wrong_value(spec, "a list of positions is needed"))?;
            let mut bytes = Vec::with_capacity(list.len() * TapePosition::BYTES);
            for one in list {
                let p = tape_position(one.get()).ok_or_else(|| wrong_value(spec, TAPE_POSITION))?;
                bytes.extend_from_slice(&p.to_bytes());
            }
            event.set(spec, EventValue::TapePositions(&bytes))
        }
        FieldLayout::Json => event.set(spec, EventValue::Json(json)),
        FieldLayout::Sym { .. }
        | FieldLayout::SymExt { .. }
        | FieldLayout::Publisher { .. }
        | FieldLayout::Syms { .. } => Err(Refusal::WrongSort),
    }
    .map_err(refused)
}

/// Decodes a JSON string. Returns `None` for another kind of value, or for a string that is no text (half a surrogate
/// pair).
#[inline]
pub(super) fn text(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.as_bytes().contains(&b'\\') {
        return serde_json::from_str::<String>(json).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

const TAPE_ID: &str = "the id of a tape is 32 hexadecimal digits, not all zero";
const TAPE_POSITION: &str = "a position on a tape is {\"tape\":\"32 hexadecimal digits\",\"position\":N}";

/// Parses the id of a tape; `None` for 0, which is no id.
fn tape_id(json: &str) -> Option<u128> {
    let digits = text(json).filter(|t| t.len() == 32 && t.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u128::from_str_radix(&digits, 16).ok().filter(|id| *id != 0)
}

/// Parses a position on a named tape, which must have both members and no other.
fn tape_position(json: &str) -> Option<TapePosition> {
    let members = ObjectMembers::from_text(json).ok()?;
    let has_known_names = members.iter().all(|m| matches!(&*m.name(), "tape" | "position"));
    if !has_known_names || members.duplicate_name().is_some() {
        return None;
    }
    let position = members.get("position")?.parse().ok()?;
    Some(TapePosition { tape: tape_id(members.get("tape")?)?, position: Position(position) })
}

/// Returns the digits of a decimal: a JSON string, or a JSON number that is written as an integer.
#[inline]
fn parse_decimal<'j>(spec: &EventFieldSpec, json: &'j str) -> Result<Cow<'j, [u8]>, LineFault> {
    match text(json) {
        Some(Cow::Borrowed(t)) => Ok(Cow::Borrowed(t.as_bytes())),
        Some(Cow::Owned(t)) => Ok(Cow::Owned(t.into_bytes())),
        None if json.bytes().all(|b| b == b'-' || b.is_ascii_digit()) => Ok(Cow::Borrowed(json.as_bytes())),
        None => Err(LineFault::new(
            Refusal::BadDecimal.code(),
            Some(spec.field.name()),
            "a decimal is a JSON string, so that no reader rounds it",
        )),
    }
}

#[inline]
fn parse_integer(json: &str) -> Option<i64> {
    json.parse().ok()
}

fn parse_unsigned(name: &str, json: Option<&str>) -> Result<Option<u64>, LineFault> {
    match json {
        None | Some("null") => Ok(None),
        Some(v) => v.parse().map(Some).map_err(|_| bad_integer(name)),
    }
}

/// Parses `ext` as unitape writes it: `[["name",value],…]`.
fn parse_pairs(json: &str) -> Option<Vec<(Cow<'_, str>, &str)>> {
    let list: Vec<(&serde_json::value::RawValue, &serde_json::value::RawValue)> =
        json.starts_with('[').then(|| serde_json::from_str(json).ok())??;
    list.into_iter().map(|(name, value)| Some((text(name.get())?, value.get()))).collect()
}

/// Reads source id and offset from its base out of `src`.
fn parse_source_offset(src: &str) -> Result<(u32, u32), LineFault> {
    let src = ObjectMembers::from_text(src)?;
    let uint = |name| parse_unsigned(name, src.get(name)).map(|v| v.unwrap_or(0));
    let offset = uint("offset")?.checked_sub(uint("base")?).and_then(|o| u32::try_from(o).ok());
    let id = u32::try_from(uint("id")?).map_err(|_| bad_integer("src"))?;
    Ok((id, offset.ok_or_else(|| bad_integer("src"))?))
}

/// The words for frame flags. Flags that follow from the rest of the frame have no word.
pub(super) const FLAG_WORDS: [(u8, &str); 4] = [
    (flags::LAST, "last"),
    (flags::LATE, "late"),
    (flags::SNAPSHOT, "snapshot"),
    (flags::CLOCK_AHEAD, "clock_ahead"),
];

/// The word for a frame whose reader must know layout 1.
pub(super) const LAYOUT_1: &str = "layout_1";

fn has_layout_1(flags: &str) -> bool {
    serde_json::from_str::<Vec<Cow<'_, str>>>(flags).is_ok_and(|words| words.iter().any(|w| w == LAYOUT_1))
}

fn flag_bits(json: &str) -> Result<u8, LineFault> {
    let bad = || {
        let words = "a list of last, late, snapshot, clock_ahead, layout_1";
        LineFault::new(Refusal::BadValue.code(), Some("flags"), words)
    };
    let words: Vec<Cow<'_, str>> = serde_json::from_str(json).map_err(|_| bad())?;
    words.iter().filter(|w| *w != LAYOUT_1).try_fold(0, |bits, w| {
        let (bit, _) = FLAG_WORDS.iter().find(|(_, word)| word == w).ok_or_else(bad)?;
        Ok(bits | bit)
    })
}

/// Appends the frame that `raw` spells in hexadecimal digits.
fn unhex_frame(raw: &str, kind: EventKind, arena: &mut Vec<u8>) -> Result<usize, LineFault> {
    let frame_fault = |reason| LineFault::new(Refusal::BadValue.code(), Some("raw"), reason);
    let digits = text(raw).ok_or_else(|| frame_fault("text is needed"))?;
    let digit = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    let frame_start = arena.len();
    for pair in digits.as_bytes().chunks(2) {
        let byte = match *pair {
            [a, b] => digit(a).zip(digit(b)).map(|(a, b)| a << 4 | b),
            _ => None,
        };
        let Some(byte) = byte else {
            arena.truncate(frame_start);
            return Err(frame_fault("not pairs of hexadecimal digits"));
        };
        arena.push(byte);
    }
    let is_complete = arena.get(frame_start..frame_start + 8).is_some()
        && Event::new(&arena[frame_start..])
            .is_some_and(|e| e.kind() == kind && e.bytes().len() == arena.len() - frame_start);
    if !is_complete {
        arena.truncate(frame_start);
        return Err(frame_fault("not a frame of this kind"));
    }
    arena[frame_start..frame_start + 4].fill(0);
    Ok(frame_start)
}

/// Looks up a kind by name. Kinds of a tape's account occur only in the full form, which is never input.
fn find_kind(name: &str, is_full: bool) -> Result<EventKind, LineFault> {
    match EventKind::from_name(name).filter(|k| is_full || k.is_input()) {
        Some(kind) => Ok(kind),
        None => match EventKind::reserved_from_name(name) {
            Some(kind) if is_full => Ok(kind),
            Some(_) => Err(reserved_member(name)),
            None => {
                let reason = format!("no kind of event is called {name:.40?}");
                Err(LineFault::new("unknown_kind", Some("kind"), reason))
            }
        },
    }
}

#[cold]
fn reserved_member(name: &str) -> LineFault {
    let reason = format!(
        "`{name}` belongs to the account of a tape, which unitape writes itself; no input may carry it"
    );
    LineFault::new(BOOKKEEPING, Some("kind"), reason)
}

#[cold]
fn missing_member(field: &str) -> LineFault {
    LineFault::new("missing", Some(field), format!("{field} is missing"))
}

#[cold]
fn duplicate_member(field: &str) -> LineFault {
    LineFault::new("duplicate", Some(field), "the field stands twice")
}

#[cold]
fn bad_integer(field: &str) -> LineFault {
    LineFault::new(Refusal::BadInteger.code(), Some(field), "an integer is needed")
}

#[cold]
fn wrong_value(spec: &EventFieldSpec, message: &str) -> LineFault {
    LineFault::new(Refusal::WrongSort.code(), Some(spec.field.name()), message)
}
