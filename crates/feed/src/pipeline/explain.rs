//! The explanation of a mapping for a sample, message by message.
//!
//! ```text
//!  sample ─ blocks, as intake cuts them ─▶ decoder with an explainer ─▶ explanations ┐
//!                                                       └─▶ frames of the block ─────┴▶ one after the other
//! ```
//!
//! The decoder is the one that makes tapes. A message that it refuses before it asks the mapping (a wrong checksum)
//! is reported without a rule, and so are the events of a format without rules. Duplicates are known on a tape only:
//! a message that may have been sent before is explained as if it came for the first time.

use crate::block::{Block, BlockMessageKind};
use crate::error::Error;
use crate::formats::decoder::DecodeOptions;
use crate::formats::format::Format;
use crate::mapping::{
    EventExplanation, ExplainedOutcome, FormPlace, MessageExplanation, QuarantineCause, RuleLocation,
    suggestion,
};
use crate::pipeline::walk::{walk_blocks, write_own_ids};
use serde_json::Value as Json;
use std::ops::ControlFlow;
use std::path::Path;
use unitape_codec::events::{EmptySourceLookup, EventLineDetail, write_event};
use unitape_model::{Dictionary, Event, EventKind, frames};

/// Gives each message of a file to `each`, with the mapping's result and the reasons, until `each` stops. Returns the
/// rules of the mapping, in the order of its file.
///
/// # Errors
/// Fails if the file cannot be read or the mapping cannot be compiled.
pub fn explain(
    format: &Format,
    input_path: &Path,
    mut each: impl FnMut(MessageExplanation) -> ControlFlow<()>,
) -> Result<Vec<RuleLocation>, Error> {
    let mut decoder = format.decoder()?;
    let rules = decoder.explain(format);
    let form_place = format.mapping_definition().and_then(|mapping| FormPlace::for_format(&mapping.format));
    let mut n = 0;
    walk_blocks(format, input_path, &mut decoder, |decoder, block| {
        let explanations = decoder.explainer().map_or(Vec::new(), |e| std::mem::take(&mut e.explanations));
        for mut explanation in with_events(block, explanations) {
            explanation.n = n;
            n += 1;
            if let (Some(form_place), Some(cause)) = (form_place, &mut explanation.quarantined) {
                cause.suggestion = suggestion(&cause.reason, &cause.detail, form_place);
            }
            if each(explanation).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(rules)
}

/// Checks that explanations and account agree for `bytes` as a whole source. Messages explained as refused must be
/// refused. For fuzzing.
///
/// # Errors
/// Fails if the mapping cannot be compiled.
///
/// # Panics
/// Panics if that does not hold.
pub fn try_explain(format: &Format, bytes: &[u8]) -> Result<(), Error> {
    let mut decoder = format.decoder()?;
    decoder.explain(format);
    let mut block = Block { bytes: bytes.to_vec(), eof: true, ..Block::default() };
    decoder.decode(&mut block, 1, &Dictionary::default(), &DecodeOptions::default());
    let tally = block.tally;
    let message_explanations =
        decoder.explainer().map_or(Vec::new(), |e| std::mem::take(&mut e.explanations));
    write_own_ids(&mut block);
    let explanations = with_events(&block, message_explanations);
    let count = |outcome| explanations.iter().filter(|t| t.outcome == outcome).count() as u64;
    assert_eq!(count(ExplainedOutcome::Events), tally.with_events, "messages with events");
    assert_eq!(count(ExplainedOutcome::Quarantined), tally.quarantined, "messages in quarantine");
    assert!(count(ExplainedOutcome::Ignored) <= tally.ignored, "messages that are ignored");
    for t in &explanations {
        let is_good = t.outcome == ExplainedOutcome::Events;
        assert!(!is_good || t.events.iter().all(|e| e.becomes.is_some()), "an event without its line: {t:?}");
        let refused = t.events.iter().flat_map(|e| &e.fields).any(|f| f.refused.is_some());
        assert!(
            !refused || t.outcome == ExplainedOutcome::Quarantined,
            "refused, and yet on the tape: {t:?}"
        );
    }
    Ok(())
}

/// Joins the explained messages with the events of the block, and adds the block's messages without an explanation.
fn with_events(block: &Block, explanations: Vec<MessageExplanation>) -> Vec<MessageExplanation> {
    let mut units = Vec::new();
    let mut unit_start = 0;
    for unit in &block.units {
        let events: Vec<Json> = frames(&block.arena[unit_start..unit.end as usize])
            .filter_map(|(_, _, frame)| Event::new(frame))
            .map(|event| render_event(&event, &block.names))
            .collect();
        unit_start = unit.end as usize;
        units.push(UnexplainedUnit {
            kind: unit.kind,
            offset: unit.offset,
            length: unit.length as usize,
            lines: events,
        });
    }
    let mut units = units.into_iter().enumerate().peekable();
    let mut all = Vec::new();
    for mut explanation in explanations {
        while let Some((_, unit)) = units.next_if(|(i, _)| *i < explanation.unit) {
            all.extend(explain_unit(unit));
        }
        if explanation.outcome == ExplainedOutcome::Events
            && let Some((_, UnexplainedUnit { lines, .. })) = units.next_if(|(i, _)| *i == explanation.unit)
        {
            explanation.events.iter_mut().zip(lines).for_each(|(event, line)| event.becomes = Some(line));
        } else if explanation.outcome == ExplainedOutcome::Quarantined {
            units.next_if(|(i, _)| *i == explanation.unit);
        }
        all.push(explanation);
    }
    all.extend(units.filter_map(|(_, unit)| explain_unit(unit)));
    all
}

/// A unit of a block, with its events as JSON.
struct UnexplainedUnit {
    kind: BlockMessageKind,
    offset: u64,
    /// Bytes of the message in the source.
    length: usize,
    lines: Vec<Json>,
}

/// Explains a message that no rule was asked about.
fn explain_unit(unit: UnexplainedUnit) -> Option<MessageExplanation> {
    let UnexplainedUnit { kind, offset, length, lines } = unit;
    let (outcome, quarantined) = match kind {
        BlockMessageKind::Events | BlockMessageKind::Numbered { .. } | BlockMessageKind::Repeat { .. } => {
            (ExplainedOutcome::Events, None)
        }
        BlockMessageKind::Quarantine | BlockMessageKind::QuarantinePart { .. } => {
            let word = |key: &str| lines.first()?.get(key)?.as_str().map(str::to_owned);
            let cause = QuarantineCause {
                reason: word("reason").unwrap_or_default(),
                detail: word("detail").unwrap_or_default(),
                suggestion: None,
            };
            (ExplainedOutcome::Quarantined, Some(cause))
        }
        BlockMessageKind::Duplicate | BlockMessageKind::Switch | BlockMessageKind::Progress { .. } => {
            return None;
        }
    };
    let length_of = |line: &Json| line.get("length")?.as_u64();
    let refused = lines.first().filter(|_| quarantined.is_some()).and_then(length_of);
    let event = |becomes: Json| {
        let kind = becomes.get("kind").and_then(Json::as_str).and_then(EventKind::from_name);
        EventExplanation {
            event: RuleLocation { number: 0, line: 0 },
            kind: kind.map_or("", EventKind::name),
            entry: None,
            fields: Vec::new(),
            kept: Vec::new(),
            becomes: Some(becomes),
        }
    };
    let events = if quarantined.is_none() { lines.into_iter().map(event).collect() } else { Vec::new() };
    Some(MessageExplanation {
        n: 0,
        offset,
        length: refused.map_or(length, |n| n as usize),
        message_type: Json::Null,
        type_label: "",
        outcome,
        quarantined,
        rule: None,
        passed_over: Vec::new(),
        time: None,
        events,
        skipped: Vec::new(),
        unit: 0,
    })
}

/// Renders an event as `tape cat` prints it, without its number on a tape.
fn render_event(event: &Event<'_>, names: &Dictionary) -> Json {
    let mut out = Vec::new();
    write_event(&mut out, event, 0, names, &EmptySourceLookup, EventLineDetail::Plain);
    let mut line: Json = serde_json::from_slice(&out).expect("JSON of ours");
    if let Json::Object(fields) = &mut line {
        fields.shift_remove("seq");
    }
    line
}
