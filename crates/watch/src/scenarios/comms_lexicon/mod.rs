//! Lexicon: a message has a phrase that somebody should read.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - Each `comm` event is a message: one alert for each event that has a phrase, also if a `msg_id` comes again. A message
//!   without sender, id or text is counted as `missing`.
//! - Lines end with a line feed. A quoted line has `>` as its very first character; a signature line is exactly `-- `. The lines
//!   before and after a quoted line follow each other.
//! - White space is that of Unicode, and none is left at the ends. Lower case is the full mapping of Unicode.
//! - A word character is a letter or digit of Unicode (`char::is_alphanumeric`) or `_`.
//! - A phrase is compared as it is given. An empty phrase does not occur.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::ids::{field_text, id_text, name_id};
use crate::missing::MissingValue;
use crate::params::ScenarioParams;
use crate::state::watch_state;
use crate::watch::{Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind};
use serde_json::json;
use unitape_model::{EventField, EventKind, NameKind};

/// The name of the scenario.
pub const ID: &str = "comms_lexicon";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Comm];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[];

/// The scenario. It keeps nothing of a message.
pub struct LexiconScenario {
    phrases: Vec<String>,
    /// The sender's own words of the current message.
    words: String,
}

watch_state!(LexiconScenario { | phrases, words });

impl LexiconScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let mut phrases = params.texts("phrases");
        phrases.retain(|phrase| !phrase.is_empty());
        Self { phrases, words: String::new() }
    }
}

impl Scenario for LexiconScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let (event, context) = (input.event, input.context);
        let from = name_id(event, EventField::From);
        if from == 0 {
            return out.missing(MissingValue::Field(EventField::From));
        }
        let Some(msg_id) = id_text(event, EventField::MsgId).filter(|id| !id.is_empty()) else {
            return out.missing(MissingValue::Field(EventField::MsgId));
        };
        let mut scratch = [0; 36];
        let Some(text) = field_text(event, EventField::Text, &mut scratch) else {
            return out.missing(MissingValue::Field(EventField::Text));
        };
        read_own_words(text, &mut self.words);
        let occurs = |phrase: &&String| has_phrase(&self.words, phrase);
        let phrases: Vec<&String> = self.phrases.iter().filter(occurs).collect();
        if !phrases.is_empty() {
            let key = vec![("from", context.name(NameKind::Name, from)), ("msg_id", msg_id)];
            let detail = context.detail(json!({ "phrases": phrases }), []);
            out.alert(Alert::new(ID, input.ts, context.seq, key, detail));
        }
    }

    fn reset(&mut self) {}

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics::default()
    }
}

/// Writes the words that are neither quoted nor in the signature, in lower case, with a space between two of them.
fn read_own_words(text: &str, words: &mut String) {
    words.clear();
    for line in text.split_inclusive('\n') {
        let line = match line.strip_suffix('\n') {
            Some(line) => line.strip_suffix('\r').unwrap_or(line),
            None => line,
        };
        if line == "-- " {
            break;
        }
        if line.starts_with('>') {
            continue;
        }
        for word in line.split_whitespace() {
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(word);
        }
    }
    if words.is_ascii() {
        words.make_ascii_lowercase();
    } else {
        // The small form of a final sigma depends on the letters around it.
        *words = words.to_lowercase();
    }
}

/// Returns whether a phrase occurs with no word character on either side. Occurrences may overlap.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut from = 0;
    while let Some(offset) = text[from..].find(phrase) {
        let start = from + offset;
        let (before, after) = (&text[..start], &text[start + phrase.len()..]);
        if !before.ends_with(is_word) && !after.starts_with(is_word) {
            return true;
        }
        from = start + phrase.chars().next().map_or(1, char::len_utf8);
    }
    false
}
