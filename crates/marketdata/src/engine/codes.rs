//! The venue's codes and their meanings.

use super::config::ChannelsConfig;
use super::config_refusal::{ConfigResult, refuse_config};
use super::market_event::TradingPhase;
use std::collections::BTreeMap;

/// All tables of codes.
#[derive(Clone, Debug)]
pub(super) struct VenueCodes {
    pub action: CodeMeanings,
    pub r#type: CodeMeanings,
    pub aggressor: CodeMeanings,
    pub deleted: CodeMeanings,
    pub product_state: CodeMeanings,
    pub instrument_state: CodeMeanings,
}

/// The meanings of codes: by number up to 255, and by letter; 255 for nothing.
#[derive(Clone, Debug)]
pub(super) struct CodeMeanings {
    pub numbers: [u8; 256],
    pub letters: [u8; 256],
}

/// The type of an entry, by the venue's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum EntryType {
    Bid,
    Offer,
    Trade,
    /// The book is empty.
    Empty,
    Ignore,
}

/// The action on a level, by the venue's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum EntryAction {
    New,
    Change,
    Delete,
    /// All from the best to this one.
    Thru,
    /// All from this one on.
    From,
    Overlay,
    Ignore,
}

pub(super) fn codes(text: &ChannelsConfig) -> ConfigResult<VenueCodes> {
    const ACTIONS: [&str; 7] = ["new", "change", "delete", "delete_thru", "delete_from", "overlay", "ignore"];
    const TYPES: [&str; 5] = ["bid", "offer", "trade", "empty", "ignore"];
    const SIDES: [&str; 2] = ["buy", "sell"];
    let flag = BTreeMap::from([("1".to_owned(), "yes".to_owned())]);
    let deleted = Some(text.deleted.clone().unwrap_or(flag));
    Ok(VenueCodes {
        action: code_table("action", text.action.as_ref(), &ACTIONS)?,
        r#type: code_table("type", text.r#type.as_ref(), &TYPES)?,
        aggressor: code_table("aggressor", text.aggressor.as_ref(), &SIDES)?,
        deleted: code_table("deleted", deleted.as_ref(), &["yes", "no"])?,
        product_state: code_table("product_state", text.product_state.as_ref(), &TradingPhase::WORDS)?,
        instrument_state: code_table(
            "instrument_state",
            text.instrument_state.as_ref(),
            &TradingPhase::WORDS,
        )?,
    })
}

/// Makes a table of codes whose meanings are the given words.
fn code_table(
    name: &str,
    text: Option<&BTreeMap<String, String>>,
    words: &[&str],
) -> ConfigResult<CodeMeanings> {
    let mut table = CodeMeanings { numbers: [NOTHING; 256], letters: [NOTHING; 256] };
    for (code, word) in text.into_iter().flatten() {
        let Some(meaning) = words.iter().position(|w| w == word) else {
            return refuse_config(
                &[name, code],
                format!("{name}.{code}: no `{word}`; one of {}", words.join(", ")),
            );
        };
        let (number, letter) = (code.parse::<u8>(), code.as_bytes());
        if number.is_err() && letter.len() != 1 {
            return refuse_config(
                &[name, code],
                format!("{name}.{code}: a code is a number up to 255, or a letter"),
            );
        }
        if let Ok(number) = number {
            table.numbers[usize::from(number)] = meaning as u8;
        }
        if let [letter] = letter {
            table.letters[usize::from(*letter)] = meaning as u8;
        }
    }
    Ok(table)
}

/// In a table: the code means nothing.
pub(super) const NOTHING: u8 = 255;
