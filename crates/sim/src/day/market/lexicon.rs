//! Scenes of `comms_lexicon`: a message has a phrase of the lexicon in the sender's own words, or nearly.

use super::super::names;
use super::super::plan::PlannedMessage;
use super::super::scenes::Scenario;
use super::super::truth::{AlertLabel, AlertLabelKey, NearMiss};
use super::event::{CommMessage, MarketEventBody};
use super::{Market, MarketNameIds};

/// Texts with a phrase.
pub(super) const FIRING: [&str; 6] = [
    "same as yesterday: we can guarantee the fix.",
    "> which line?\nmove to whatsapp",
    "Move  to\r\n\tWhatsApp, this line is taped",
    "sold all of it (before the announcement)",
    "agreed\n--\nbefore the announcement",
    "not the fixing, the fix! They guarantee the fix",
];
/// Texts that nearly have a phrase, and the reasons.
pub(super) const MISSING: [(&str, &str); 4] = [
    ("> move to whatsapp\nwhich line?", "the phrase is in a quoted line"),
    ("agreed\n-- \nbefore the announcement", "the phrase is below the signature line"),
    ("sold all of it before the announcements", "a letter follows the phrase"),
    ("same as yesterday: we can guarantee the next fix.", "another word is within the phrase"),
];

impl Market {
    /// Sends the message of a scene.
    pub(super) fn play_message(&mut self, n: usize) {
        let PlannedMessage { number: scene, miss, n } = self.messages[n];
        self.comms += 1;
        let senders = MarketNameIds::senders_of(&self.sim.x.world);
        let from = self.rng.below(senders.into()) as u32;
        let to = [self.rng.below(senders.into()) as u32; 2];
        let text = if miss { FIRING.len() + n % MISSING.len() } else { n % FIRING.len() };
        let text = super::frames::TEXTS as u8 + text as u8;
        let message =
            CommMessage { number: self.comms, from, to, reply_to: None, instr: None, changed: false, text };
        self.push_event(MarketEventBody::Comm(message));
        let msg_id = names::comm_text(self.comms);
        let sender = self.sim.x.world.trader_name(from).to_owned();
        let key = AlertLabelKey(vec![("from", sender), ("msg_id", msg_id)]);
        let (scenario, ts, seq) = (Scenario::CommsLexicon.id(), self.now, self.seq);
        if miss {
            let misses = MISSING[n % MISSING.len()].1;
            let (first_seq, trigger_seq, last_seq) = (seq, None, seq);
            self.near_misses.push(NearMiss {
                scene,
                scenario,
                key,
                misses,
                first_seq,
                trigger_seq,
                last_seq,
            });
        } else {
            let (reason, first_seq, trigger_seq) = (None, seq, seq);
            self.labels.push(AlertLabel { scene, scenario, key, reason, ts, first_seq, trigger_seq });
        }
    }
}
