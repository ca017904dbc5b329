//! The drawing of every event in `docs/formats-events.md` is made from the schema, so it cannot lie. When a test
//! here fails because the schema gained something, `UPDATE_DOCS=1 cargo test -p unitape-model` draws it again.

use std::fmt::Write;
use unitape_model::schema::{EXT_ONLY, EventSchema, TAG_UNMAPPED, width_bytes};
use unitape_model::{EventField, EventKind, FieldLayout, NameKind};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats-events.md");
const BEGIN: &str = "<!-- drawn from the schema: begin -->\n";
const END: &str = "<!-- drawn from the schema: end -->\n";

#[test]
fn the_page_shows_the_schema() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (head, rest) = page.split_once(BEGIN).expect("the mark where the drawing begins");
    let (drawn, tail) = rest.split_once(END).expect("the mark where it ends");
    let now = draw_all();
    if drawn != now && std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(PAGE, format!("{head}{BEGIN}{now}{END}{tail}")).unwrap();
        return;
    }
    assert!(drawn == now, "docs/formats-events.md is not what the schema says; draw it with UPDATE_DOCS=1");
}

fn draw_all() -> String {
    let mut out =
        String::from("\n### Dictionaries\n\n| number | dictionary | greatest id |\n|---|---|---|\n");
    for dict in NameKind::ALL {
        writeln!(out, "| {} | `{}` | {} |", dict as u8, dict.name(), dict.id_max()).unwrap();
    }
    out.push_str("\n### Tags of every kind\n\n| tag | field | payload |\n|---|---|---|\n");
    for (field, payload) in [(EventField::TsRecv, "i64 ns since 1970"), (EventField::SrcSeq, "u64")] {
        writeln!(out, "| {} | `{}` | {payload} |", field as u16, field.name()).unwrap();
    }
    writeln!(out, "| {TAG_UNMAPPED} | a field of its own name | `[name length u16][name][JSON text]` |")
        .unwrap();
    for kind in EventKind::META.into_iter().chain(EventKind::EVENTS) {
        for layout in 0..=EventSchema::for_kind(kind).layout {
            draw(&mut out, EventSchema::for_layout(kind, layout).expect("layouts are numbered from 0"));
        }
    }
    out.push('\n');
    out
}

fn draw(out: &mut String, schema: &EventSchema) {
    let size = usize::from(schema.fixed_bytes);
    let layout =
        if schema.kind.has_layouts() { format!(", layout {}", schema.layout) } else { String::new() };
    let (name, number) = (schema.kind.name(), schema.kind as u8);
    writeln!(out, "\n### `{name}`: kind {number}, {size} bytes{layout}\n").unwrap();
    out.push_str("```text\n     ");
    (0..16).for_each(|i| write!(out, "{i:<5}").unwrap());
    out.truncate(out.trim_end().len());
    out.push('\n');
    let owner = owners(schema);
    for row in (0..size).step_by(16) {
        write!(out, "{row:>4} ").unwrap();
        let mut at = row;
        while at < row + 16 {
            let same = owner[at..row + 16].iter().take_while(|o| **o == owner[at]).count();
            let width = same * 5 - 1;
            let name: String = owner[at].chars().take(width).collect();
            write!(out, "│{name:<width$}").unwrap();
            at += same;
        }
        out.push_str("│\n");
    }
    out.push_str("```\n");
    if !schema.fields.is_empty() {
        out.push_str("\n| tag | field | at | form |\n|---|---|---|---|\n");
    }
    for spec in schema.fields {
        let must = match (spec.required, spec.added) {
            (true, _) => " (must)",
            (_, true) => " (layout 1)",
            _ => "",
        };
        let (at, form) = describe(spec.slot);
        let tag = spec.field as u16;
        writeln!(out, "| {tag} | `{}`{must} | {at} | {form} |", spec.field.name()).unwrap();
    }
}

/// The name of what is at each byte.
fn owners(schema: &EventSchema) -> Vec<&'static str> {
    let mut owner = vec![""; usize::from(schema.fixed_bytes)];
    let mut place = |at: u16, n: u16, name| owner[usize::from(at)..usize::from(at + n)].fill(name);
    for (at, n, name) in [
        (0, 8, "header"),
        (8, 8, "ts_event"),
        (16, 4, "source"),
        (20, 4, "offset"),
        (24, 4, "recv delta"),
        (28, 4, "sequence"),
    ] {
        place(at, n, name);
    }
    if schema.kind.has_layouts() {
        place(38, 1, "layout");
    }
    for spec in schema.fields {
        match spec.slot {
            FieldLayout::Bool { offset: EXT_ONLY, .. } | FieldLayout::FlagSet { offset: EXT_ONLY, .. } => {}
            FieldLayout::Code { offset: at, .. }
            | FieldLayout::Bool { offset: at, .. }
            | FieldLayout::Flag { offset: at, .. }
            | FieldLayout::FlagSet { offset: at, .. } => place(at, 1, "bits"),
            FieldLayout::Publisher { .. } => place(36, 2, "publisher"),
            slot => {
                if let Some((at, n)) = width_bytes(slot) {
                    place(at, n, spec.field.name());
                }
            }
        }
        if let FieldLayout::Decimal { exp_offset: exp_at, .. }
        | FieldLayout::DecimalNarrow { exp_offset: exp_at, .. }
        | FieldLayout::Amount { exp_offset: exp_at, .. } = spec.slot
        {
            place(exp_at, 1, "exp");
        }
    }
    owner
}

fn describe(slot: FieldLayout) -> (String, String) {
    let place = |at: u16| if at == EXT_ONLY { "extension".to_owned() } else { at.to_string() };
    let upto = |n: u16, what: &str| if n == 0 { what.to_owned() } else { format!("{what}, {n} bytes") };
    match slot {
        FieldLayout::Sym { dict, offset: at } => (place(at), format!("id of a name ({})", dict.name())),
        FieldLayout::Publisher { bank } => {
            let when = if bank { "set" } else { "not set" };
            (place(36), format!("id of a name (venue), when bit 6 at 38 is {when}"))
        }
        FieldLayout::SymExt { dict } => (place(EXT_ONLY), format!("id of a name ({})", dict.name())),
        FieldLayout::Syms { dict } => (place(EXT_ONLY), format!("ids of names ({}), u32 each", dict.name())),
        FieldLayout::Price { offset: at } => (place(at), "price, i64 in 1e-9".to_owned()),
        FieldLayout::Decimal { offset: at, exp_offset: exp_at } => {
            (place(at), format!("i64 mantissa, exponent at {exp_at}"))
        }
        FieldLayout::DecimalNarrow { offset: at, exp_offset: exp_at } => {
            (place(at), format!("u32 mantissa, exponent at {exp_at}"))
        }
        FieldLayout::DecimalExt => (place(EXT_ONLY), "decimal, i64 mantissa and i8 exponent".to_owned()),
        FieldLayout::Amount { offset: at, exp_offset: exp_at } => {
            (place(at), format!("i128 mantissa, exponent at {exp_at}"))
        }
        FieldLayout::Id { offset: at, n } => (place(at), upto(n, "inline id")),
        FieldLayout::Text { offset: at, n } => (place(at), upto(n, "text")),
        FieldLayout::Code { offset: at, shift, bits, values } => {
            let values: Vec<String> =
                values.iter().enumerate().map(|(i, v)| format!("{} `{v}`", i + 1)).collect();
            (place(at), format!("bits {shift} to {}: {}", shift + bits - 1, values.join(", ")))
        }
        FieldLayout::Bool { offset: EXT_ONLY, .. } => (place(EXT_ONLY), "byte: 1 false, 2 true".to_owned()),
        FieldLayout::Flag { offset: at, shift } => (place(at), format!("bit {shift}: 1 true")),
        FieldLayout::FlagSet { offset: at, shift, values } => {
            let values: Vec<String> =
                values.iter().enumerate().map(|(i, v)| format!("{} `{v}`", 1 << i)).collect();
            let bits = format!("bits {shift} to {}: a ", shift + 2);
            let form = if at == EXT_ONLY { "" } else { bits.as_str() };
            (place(at), format!("{form}set of {}", values.join(", ")))
        }
        FieldLayout::Bool { offset: at, shift } => {
            (place(at), format!("bits {shift} to {}: 1 false, 2 true", shift + 1))
        }
        FieldLayout::UInt { offset: at, width } => (place(at), format!("u{}", u16::from(width) * 8)),
        FieldLayout::Nanos { offset: at } => (place(at), "i64 ns since 1970".to_owned()),
        FieldLayout::Date { offset: EXT_ONLY } => {
            (place(EXT_ONLY), "date, i32 days since 1970-01-01".to_owned())
        }
        FieldLayout::Date { offset: at } => (place(at), "date, u32".to_owned()),
        FieldLayout::DateAfter { offset: at } => {
            (place(at), "date, u8 days after the UTC date of `ts_event`".to_owned())
        }
        FieldLayout::Tape { offset: at } => (place(at), "id of a tape, 16 bytes".to_owned()),
        FieldLayout::TapePosition { offset: at } => (place(at), "position on a tape, 24 bytes".to_owned()),
        FieldLayout::TapePositions => (place(EXT_ONLY), "positions on tapes, 24 bytes each".to_owned()),
        FieldLayout::MillisAfter { offset: at } => (place(at), "u16 ms after `ts_event`".to_owned()),
        FieldLayout::Json => (place(EXT_ONLY), "JSON text".to_owned()),
    }
}
