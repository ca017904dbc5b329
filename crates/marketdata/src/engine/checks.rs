//! What channels, lines and messages must have together, so that nothing is taken wrongly without a word.

use super::config::{FastText, Kind, Reset};
use super::plan::{Config, Framing, Made, wrong};
use super::step::Role;

impl Config {
    /// Copies can be told apart, and dictionaries are those of the sender.
    pub(super) fn check_lines(&self, text: &FastText) -> Made<()> {
        let two = text.channel.iter().enumerate().find(|(_, c)| !c.a.is_empty() && !c.b.is_empty());
        let Some((channel, told)) = two else { return Ok(()) };
        let place = ["channel", &channel.to_string(), "b"];
        if self.reset == Reset::Never {
            // A copy that was begun and is bad, or one that is left out, has changed what the next is read by.
            let what = "two lines need dictionaries that are emptied, by packet or by message: reset = \"never\" is for one";
            return wrong(&place, what);
        }
        let depth =
            |m: &&super::config::MessageText| m.kind == Kind::Depth && !m.fields.contains_key("sequence");
        if matches!(self.framing, Framing::Plain | Framing::Length)
            && told.role == Role::Incremental
            && let Some(message) = text.message.iter().find(depth)
        {
            let what = format!(
                "two lines, but nothing tells copies: neither packets nor messages {} have a number",
                message.templates.join(", ")
            );
            return wrong(&place, what);
        }
        Ok(())
    }

    /// Depth that has no numbers: no snapshot tells what of it is in it.
    pub(super) fn check_unnumbered(&self, message: &[&str; 2]) -> Made<()> {
        match self.channels.iter().find(|c| c.role == Role::Snapshot) {
            None => Ok(()),
            Some(channel) => {
                let what = format!(
                    "kind depth needs the field `sequence` where there are snapshots (channel {}): by it one knows which levels \
                     they have in them",
                    channel.name
                );
                wrong(message, what)
            }
        }
    }

    /// Reference data are of a pair whose messages they tell of.
    pub(super) fn check_pairs(&self, text: &FastText) -> Made<()> {
        let has_incremental =
            |pair: &str| text.channel.iter().any(|c| c.role == Role::Incremental && c.pair == pair);
        let lost = |c: &super::config::ChannelText| c.role == Role::Reference && !has_incremental(&c.pair);
        let some = text.channel.iter().any(|c| c.role == Role::Incremental);
        match text.channel.iter().position(lost).filter(|_| some) {
            None => Ok(()),
            Some(channel) => {
                let told = &text.channel[channel];
                let what = format!(
                    "channel {} is of pair `{}`, which has no incremental channel: no book would know of its instruments; \
                     give it the `pair` of the channels it tells of, or leave `pair` away on all",
                    told.name, told.pair
                );
                wrong(&["channel", &channel.to_string(), "pair"], what)
            }
        }
    }
}
