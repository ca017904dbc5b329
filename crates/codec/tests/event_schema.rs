//! The JSON Schema that users are given could drift away from what the codec reads.

use expect_test::expect_file;
use serde_json::{Map, Value, json};
use unitape_model::EventKind;
use unitape_model::schema::{EventSchema, FieldLayout};

fn sort_of(slot: FieldLayout) -> Value {
    let decimal = |about: &str| {
        json!({
            "description": about,
            "anyOf": [{"type": "string", "pattern": r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)$"}, {"type": "integer"}]
        })
    };
    let name = json!({"type": "string", "minLength": 1, "maxLength": 255});
    match slot {
        FieldLayout::Sym { .. } | FieldLayout::SymExt { .. } | FieldLayout::Publisher { .. } => name,
        FieldLayout::Syms { .. } => json!({"type": "array", "items": name}),
        FieldLayout::Price { .. } => decimal("price, up to nine places"),
        FieldLayout::Decimal { .. } | FieldLayout::DecimalNarrow { .. } | FieldLayout::DecimalExt => {
            decimal("up to 18 digits")
        }
        FieldLayout::Amount { .. } => decimal("amount, up to 38 digits"),
        FieldLayout::Id { .. } => {
            json!({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0, "maximum": u64::MAX}]})
        }
        FieldLayout::Text { .. } => json!({"type": "string"}),
        FieldLayout::Code { values, .. } => json!({"enum": values}),
        FieldLayout::Bool { .. } | FieldLayout::Flag { .. } => json!({"type": "boolean"}),
        FieldLayout::FlagSet { values, .. } => {
            json!({"type": "array", "items": {"enum": values}, "uniqueItems": true})
        }
        FieldLayout::Date { .. } | FieldLayout::DateAfter { .. } => {
            json!({
                "description": "a date: YYYY-MM-DD, read as YYYYMMDD as well",
                "anyOf": [{"type": "string", "pattern": "^[0-9]{4}-?[0-9]{2}-?[0-9]{2}$"}, {"type": "integer"}]
            })
        }
        FieldLayout::Tape { .. } => tape(),
        FieldLayout::TapePosition { .. } => tape_position(),
        FieldLayout::TapePositions => json!({"type": "array", "items": tape_position()}),
        FieldLayout::UInt { .. } => json!({"type": "integer", "minimum": 0, "maximum": u64::MAX}),
        FieldLayout::Nanos { .. } | FieldLayout::MillisAfter { .. } => {
            json!({"type": "integer", "description": "nanoseconds since 1970, UTC"})
        }
        FieldLayout::Json => json!({}),
    }
}

fn tape() -> Value {
    json!({"type": "string", "pattern": "^[0-9A-Fa-f]{32}$", "description": "id of a tape"})
}

fn tape_position() -> Value {
    json!({
        "type": "object",
        "properties": {"tape": tape(), "position": {"type": "integer", "minimum": 0, "maximum": u64::MAX}},
        "required": ["tape", "position"],
        "additionalProperties": false
    })
}

fn kind_schema(kind: EventKind) -> Value {
    let mut properties = Map::new();
    properties.insert("kind".into(), json!({"const": kind.name()}));
    let mut required = vec!["ts", "kind"];
    for spec in EventSchema::for_kind(kind).fields {
        let mut sort = sort_of(spec.slot);
        if spec.required {
            required.push(spec.field.name());
        } else if sort != json!({}) {
            sort = json!({"anyOf": [sort, {"type": "null"}]});
        }
        properties.insert(spec.field.name().into(), sort);
    }
    json!({"title": kind.name(), "properties": properties, "required": required})
}

#[test]
fn the_schema_in_docs_is_that_of_the_code() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "unitape event, one line of JSON Lines",
        "description": "Made from the table of kinds; docs/events.md describes them. Other fields are kept.",
        "type": "object",
        "properties": {
            "rec": {"const": "event"},
            "seq": {"type": "integer", "minimum": 0, "maximum": u64::MAX},
            "ts": {"type": "integer", "description": "event time, nanoseconds since 1970, UTC"},
            "src_seq": {"type": "integer", "minimum": 0, "maximum": u64::MAX},
            "ts_recv": {"type": "integer"},
        },
        "required": ["ts", "kind"],
        "oneOf": EventKind::EVENTS.map(kind_schema),
    });
    let text = serde_json::to_string_pretty(&schema).expect("JSON prints");
    expect_file!["../../../docs/schema/event.schema.json"].assert_eq(&format!("{text}\n"));
}
