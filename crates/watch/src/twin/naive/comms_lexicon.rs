//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::transfers::id;
use crate::twin::naive::{History, NaiveAlert, Twin, id_text, name};
use unitape_model::{Dictionary, EventField, EventKind, NameKind};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone() }
    }

    fn judge(&self, history: &History, names: &Dictionary) -> Option<NaiveAlert> {
        let now = history.now();
        // "comm only"
        if now.kind != EventKind::Comm {
            return None;
        }
        let (from, msg_id) = (now.name(EventField::From)?, id(now, EventField::MsgId)?);
        let text = own_words(now.text(EventField::Text)?);
        let fires = self.params.texts("phrases").iter().any(|phrase| has_phrase(&text, phrase));
        fires.then(|| NaiveAlert {
            ts: now.ts,
            key: vec![("from", name(names, NameKind::Name, from)), ("msg_id", id_text(msg_id))],
        })
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        // "one alert per message"
        self.judge(history, names).into_iter().collect()
    }
}

fn own_words(text: &str) -> String {
    // "A carriage return before a line end belongs to it".
    let text = text.replace("\r\n", "\n");
    let lines = text.split('\n');
    // "Text after removing quoted lines (leading >) and everything from the signature line '-- '"
    let own = lines.take_while(|line| *line != "-- ").filter(|line| !line.starts_with('>'));
    let joined = own.collect::<Vec<_>>().join("\n");
    // "whitespace collapsed, lower case"
    joined.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Implements "a phrase occurs with no word character on either side". An empty phrase does not occur.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let is_alone = |start: usize| {
        let (before, after) = (&text[..start], &text[start + phrase.len()..]);
        !is_word(before.chars().next_back()) && !is_word(after.chars().next())
    };
    let mut starts =
        text.char_indices().map(|(start, _)| start).filter(|start| text[*start..].starts_with(phrase));
    !phrase.is_empty() && starts.any(is_alone)
}
