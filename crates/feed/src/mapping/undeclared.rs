//! Text of which nothing says its set of characters: where it may be guessed, and the note that it was.

use super::plan::MappingPlan;
use std::cell::Cell;
use unitape_codec::charset::FallbackCharset;
use unitape_model::schema::EventFieldSpec;
use unitape_model::{EventBuilder, EventField, Refusal};

/// The name under which an event keeps that text of it was guessed, or is of an unknown set.
pub(super) const NOTE_NAME: &str = "encoding";

/// Returns whether the field is text for people. All others are amounts, codes and identifiers, by which events are
/// matched: a guess could make one of them two, or two of them one.
pub(crate) fn is_free_text(field: EventField) -> bool {
    matches!(
        field,
        EventField::Headline
            | EventField::Text
            | EventField::DrName
            | EventField::CrName
            | EventField::DrUltimate
            | EventField::CrUltimate
            | EventField::Source
            | EventField::Name
            | EventField::From
            | EventField::To
            | EventField::Channel
            | EventField::Reason
            | EventField::Detail
            | EventField::Issuer
            | EventField::Entries
    )
}

/// Sets a field of free text to what `text`, which is not UTF-8, is in the mapping's set of characters, or by a guess.
///
/// # Errors
/// Fails if the field is no free text, or if a byte is no character of the mapping's set.
#[cold]
pub(super) fn set_text_in_fallback_charset(
    plan: &MappingPlan,
    event: &mut EventBuilder<'_>,
    spec: &EventFieldSpec,
    text: &[u8],
    names: &mut crate::block::BlockNameResolver<'_>,
) -> Result<(), Refusal> {
    let mut out = String::new();
    if !is_free_text(spec.field) || plan.fallback.decode(text, &mut out).is_err() {
        return Err(Refusal::NotUtf8);
    }
    event.set_text(spec, out.as_bytes(), names)
}

/// Appends a kept value as JSON: text that is not UTF-8 by `fallback`, or as bytes where that does not read it.
pub(super) fn write_kept(out: &mut Vec<u8>, value: &[u8], fallback: FallbackCharset, guessed: &Cell<bool>) {
    let mut text = String::new();
    let is_read =
        !value.is_ascii() && std::str::from_utf8(value).is_err() && fallback.decode(value, &mut text).is_ok();
    if is_read {
        guessed.set(guessed.get() || fallback.is_guess());
        crate::block::json::write_json(out, text.as_bytes());
    } else {
        crate::block::json::write_json(out, value);
    }
}
