//! `unitape watch replay --timeline`: the events of a case in lines, with the alerts under the events that completed them.
//!
//! ```text
//! margin  time since the first event  seq  kind       party  fields
//! 1                           +0.009    4  order_new  ACME   B 20000 @ 2499.5  oid S1
//!         ==> alert 1  spoofing  owner ACME, venue XLON, …
//! ```
//!
//! The margin of an event has the numbers of the alerts that name it as evidence.

use super::super::tape::utc;
use crate::output::{escape_line, grouped};
use serde_json::{Map, Value};
use std::io::{self, Write};
use unitape_codec::events::{EventLineDetail, SourceNameLookup, write_event};
use unitape_model::{Dictionary, Event};
use unitape_watch::{Alert, ReplayObserver};

/// The greatest number of events in a timeline without `--limit`.
pub const EVENTS_MAX: u64 = 2_000;

/// Writes timelines, one for each case.
///
/// It holds the events of one case until the case ends, because a later alert marks them. The limit bounds them.
pub struct TimelineWriter<W> {
    out: W,
    /// The events that the output may still have.
    events_left: u64,
    title: Option<String>,
    events: Vec<TimelineEvent>,
    alerts: Vec<TimelineAlert>,
    /// Whether the last event has no line because of the limit.
    is_over_limit: bool,
    has_output: bool,
    omissions: Omissions,
    line: Vec<u8>,
}

/// The events and alerts that the limit has left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Omissions {
    /// Events.
    pub events: u64,
    /// Alerts that these events completed.
    pub alerts: u64,
}

struct TimelineEvent {
    seq: u64,
    ts: Option<i64>,
    kind: String,
    fields: Map<String, Value>,
}

struct TimelineAlert {
    /// The index of the event that completed it.
    event_index: usize,
    alert: Alert,
}

impl<W: Write> TimelineWriter<W> {
    /// Makes a writer of at most `limit` events.
    pub fn new(out: W, limit: u64) -> Self {
        Self {
            out,
            events_left: limit,
            title: None,
            events: Vec::new(),
            alerts: Vec::new(),
            is_over_limit: false,
            has_output: false,
            omissions: Omissions::default(),
            line: Vec::new(),
        }
    }

    /// Adds an event that the scenarios have judged.
    pub fn add_event(
        &mut self,
        event: &Event<'_>,
        seq: u64,
        names: &Dictionary,
        sources: &impl SourceNameLookup,
    ) {
        self.is_over_limit = self.events_left == 0;
        if self.is_over_limit {
            self.omissions.events += 1;
            return;
        }
        self.events_left -= 1;
        self.line.clear();
        write_event(&mut self.line, event, seq, names, sources, EventLineDetail::Plain);
        let mut fields: Map<String, Value> =
            serde_json::from_slice(&self.line).expect("an event is written as a JSON object");
        ["seq", "ts", "kind"].iter().for_each(|name| _ = fields.shift_remove(*name));
        let ts = Some(event.ts_event().0).filter(|ts| *ts != i64::MIN);
        self.events.push(TimelineEvent { seq, ts, kind: event.kind().name().to_owned(), fields });
    }

    /// Adds an alert that the last event completed.
    pub fn add_alert(&mut self, alert: &Alert) {
        if self.is_over_limit || self.events.is_empty() {
            self.omissions.alerts += 1;
        } else {
            self.alerts.push(TimelineAlert { event_index: self.events.len() - 1, alert: alert.clone() });
        }
    }

    /// Writes the timeline of the last case.
    ///
    /// # Errors
    /// Fails if the output refuses it.
    pub fn finish(mut self) -> io::Result<(W, Omissions)> {
        self.flush_case()?;
        Ok((self.out, self.omissions))
    }

    /// Writes the timeline of the case that ends here.
    fn flush_case(&mut self) -> io::Result<()> {
        let title = self.title.take();
        let (events, alerts) = (std::mem::take(&mut self.events), std::mem::take(&mut self.alerts));
        if events.is_empty() {
            return Ok(());
        }
        if std::mem::replace(&mut self.has_output, true) {
            writeln!(self.out)?;
        }
        for line in title.into_iter().chain(CaseLayout::new(&events, &alerts).lines()) {
            writeln!(self.out, "{}", escape_line(line.trim_end()))?;
        }
        Ok(())
    }
}

impl<W: Write> ReplayObserver for TimelineWriter<W> {
    fn on_case(&mut self, id: &str, title: Option<&str>) -> io::Result<()> {
        self.flush_case()?;
        self.title = Some(title.map_or_else(|| id.to_owned(), |title| shortened(&format!("{id}: {title}"))));
        Ok(())
    }

    fn on_event(&mut self, event: &Event<'_>, seq: u64, names: &Dictionary) -> io::Result<()> {
        self.add_event(event, seq, names, &unitape_codec::events::EmptySourceLookup);
        Ok(())
    }

    fn on_alert(&mut self, alert: &Alert, _: Option<&str>) -> io::Result<()> {
        self.add_alert(alert);
        Ok(())
    }
}

impl Omissions {
    /// Describes what is left out; `None` if nothing is.
    pub fn message(&self, limit: u64) -> Option<String> {
        let events = match self.events {
            0 => return None,
            1 => "1 further event has".to_owned(),
            n => format!("{} further events have", grouped(n)),
        };
        let alerts = match self.alerts {
            0 => "and completed no alert".to_owned(),
            1 => "and completed 1 alert".to_owned(),
            n => format!("and completed {} alerts", grouped(n)),
        };
        Some(format!(
            "the timeline ends after {} events: {events} no line {alerts}. --limit N prints N events; \
             --case, or --from and --since of a tape, select fewer",
            grouped(limit)
        ))
    }
}

/// The width of the columns of a case.
struct CaseLayout<'a> {
    events: &'a [TimelineEvent],
    alerts: &'a [TimelineAlert],
    clock: RelativeClock,
    /// Fields with one value in the whole case, which is printed once.
    constants: Vec<(&'static str, &'a str)>,
    margins: Vec<String>,
    margin_width: usize,
    time_width: usize,
    seq_width: usize,
    kind_width: usize,
    party_width: usize,
}

impl<'a> CaseLayout<'a> {
    fn new(events: &'a [TimelineEvent], alerts: &'a [TimelineAlert]) -> Self {
        let clock = RelativeClock::new(events, alerts);
        let margins = margins(events, alerts);
        let width = |texts: &mut dyn Iterator<Item = usize>, max: usize| texts.max().unwrap_or(0).min(max);
        let party_width = width(&mut events.iter().map(|event| event.party().chars().count()), PARTY_MAX);
        Self {
            constants: constants(events),
            margin_width: width(&mut margins.iter().map(String::len), usize::MAX).max(1),
            time_width: width(&mut events.iter().map(|event| clock.text(event.ts).len()), usize::MAX),
            seq_width: width(&mut events.iter().map(|event| event.seq.to_string().len()), usize::MAX),
            kind_width: width(&mut events.iter().map(|event| event.kind.len()), usize::MAX),
            party_width,
            events,
            alerts,
            clock,
            margins,
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let constants: Vec<String> =
            self.constants.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let constants = match &constants[..] {
            [] => String::new(),
            some => format!("; throughout: {}", some.join(", ")),
        };
        lines.push(shortened(&format!("{} is {} UTC{constants}", self.clock.zero(), utc(self.clock.base))));
        let mut alerts = self.alerts.iter().enumerate().peekable();
        for (index, event) in self.events.iter().enumerate() {
            lines.push(self.event_line(event, &self.margins[index]));
            while let Some((number, alert)) = alerts.next_if(|(_, alert)| alert.event_index == index) {
                lines.extend(self.alert_lines(number + 1, &alert.alert, event));
            }
        }
        if self.alerts.is_empty() {
            lines.push(format!("{:1$}     no alert", "", self.margin_width));
        }
        lines
    }

    fn event_line(&self, event: &TimelineEvent, margin: &str) -> String {
        let party = event.party();
        let party = if party.is_empty() { "-" } else { party };
        let party: String = party.chars().take(self.party_width.max(1)).collect();
        shortened(&format!(
            "{margin:margins$}  {:>times$}  {:>seqs$}  {:kinds$}  {party:parties$}  {}",
            self.clock.text(event.ts),
            event.seq,
            event.kind,
            event.field_text(&self.constants),
            margins = self.margin_width,
            times = self.time_width,
            seqs = self.seq_width,
            kinds = self.kind_width,
            parties = self.party_width.max(1),
        ))
    }

    /// Returns the marked lines of an alert: scenario and key, then the detail.
    fn alert_lines(&self, number: usize, alert: &Alert, event: &TimelineEvent) -> Vec<String> {
        let key: Vec<String> = alert.key.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let time = match Some(alert.ts.0) == event.ts {
            true => String::new(),
            // A timer was due before the event that completed the alert.
            false => format!(" as of {}", self.clock.text(Some(alert.ts.0))),
        };
        let head = format!("alert {number}{time}  {}  {}", alert.scenario, key.join(", "));
        let details = alert.detail.as_object().into_iter().flatten();
        // The margin marks the events, and their numbers find the positions.
        let details: Vec<String> = details
            .filter(|(name, _)| *name != "positions")
            .map(|(name, value)| format!("{name} {}", value_text(value)))
            .collect();
        let indent = self.margin_width + 5;
        let mut texts = wrapped(&head, WIDTH - indent - 4);
        texts.extend(wrapped(&details.join(", "), WIDTH - indent - 4));
        if texts.len() > ALERT_LINES_MAX {
            texts.truncate(ALERT_LINES_MAX - 1);
            texts.push("..".to_owned());
        }
        texts.iter().map(|text| format!("{:indent$}==> {text}", "")).collect()
    }
}

impl TimelineEvent {
    /// Returns the name and value of the party that acts.
    fn party_field(&self) -> Option<(&'static str, &str)> {
        PARTIES.iter().find_map(|name| Some((*name, self.fields.get(*name)?.as_str()?)))
    }

    fn party(&self) -> &str {
        self.party_field().map_or("", |(_, party)| party)
    }

    /// Returns the fields for people: the telling ones first, without those of `constants`.
    fn field_text(&self, constants: &[(&str, &str)]) -> String {
        let mut pending: Vec<(&str, String)> = self
            .fields
            .iter()
            .filter(|(name, _)| self.party_field().is_none_or(|(party, _)| party != *name))
            .filter(|(name, _)| constants.iter().all(|(constant, _)| constant != name))
            .map(|(name, value)| (name.as_str(), value_text(value)))
            .collect();
        let mut take = |name: &str| -> Option<String> {
            let index = pending.iter().position(|(field, _)| *field == name)?;
            Some(pending.remove(index).1)
        };
        let mut texts: Vec<String> = take("side").into_iter().collect();
        for (qty_name, px_name, word) in
            [("qty", "px", ""), ("bid_qty", "bid", "bid "), ("ask_qty", "ask", "ask ")]
        {
            match (take(qty_name), take(px_name)) {
                (Some(qty), Some(px)) => texts.push(format!("{word}{qty} @ {px}")),
                (Some(qty), None) => texts.push(format!("{qty_name} {qty}")),
                (None, Some(px)) => texts.push(format!("{px_name} {px}")),
                (None, None) => {}
            }
        }
        for name in TELLING {
            texts.extend(take(name).map(|value| format!("{name} {value}")));
        }
        texts.extend(pending.iter().map(|(name, value)| format!("{name} {value}")));
        texts.join("  ")
    }
}

/// Writes times as the time since the first event.
struct RelativeClock {
    base: i64,
    decimals: u32,
    has_days: bool,
}

impl RelativeClock {
    fn new(events: &[TimelineEvent], alerts: &[TimelineAlert]) -> Self {
        let base = events.iter().find_map(|event| event.ts).unwrap_or(0);
        let event_times = events.iter().filter_map(|event| event.ts);
        let deltas: Vec<i128> = event_times
            .chain(alerts.iter().map(|alert| alert.alert.ts.0))
            .map(|ts| i128::from(ts) - i128::from(base))
            .collect();
        let decimals = [3, 6].into_iter().find(|n| deltas.iter().all(|ns| ns % 10i128.pow(9 - n) == 0));
        let has_days = deltas.iter().any(|ns| ns.unsigned_abs() >= SECONDS_MAX * 1_000_000_000);
        Self { base, decimals: decimals.unwrap_or(9), has_days }
    }

    fn zero(&self) -> String {
        self.text(Some(self.base))
    }

    fn text(&self, ts: Option<i64>) -> String {
        let Some(ts) = ts else { return "-".to_owned() };
        let ns = i128::from(ts) - i128::from(self.base);
        let (sign, ns) = (if ns < 0 { '-' } else { '+' }, ns.unsigned_abs());
        let (seconds, fraction) = (ns / 1_000_000_000, ns % 1_000_000_000 / 10u128.pow(9 - self.decimals));
        let decimals = self.decimals as usize;
        if !self.has_days {
            return format!("{sign}{seconds}.{fraction:0decimals$}");
        }
        let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
        let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
        format!("{sign}{days}d {hours:02}:{minutes:02}:{seconds:02}.{fraction:0decimals$}")
    }
}

/// Returns the margin of each event: the numbers of the alerts that name it.
fn margins(events: &[TimelineEvent], alerts: &[TimelineAlert]) -> Vec<String> {
    let mut numbers: Vec<Vec<usize>> = vec![Vec::new(); events.len()];
    for (index, alert) in alerts.iter().enumerate() {
        for evidence in alert.alert.evidence() {
            // Sequence numbers rise, in a case and on a tape.
            if let Ok(event_index) = events.binary_search_by_key(&evidence.seq, |event| event.seq) {
                numbers[event_index].push(index + 1);
            }
        }
    }
    let text = |numbers: &Vec<usize>| match &numbers[..] {
        [first, _, _, .., last] => format!("{first}..{last}"),
        few => few.iter().map(usize::to_string).collect::<Vec<_>>().join(","),
    };
    numbers.iter().map(text).collect()
}

/// Returns the fields that have one value in the whole case. Each kind of event has such a field always or never, so that a
/// missing value shows.
fn constants(events: &[TimelineEvent]) -> Vec<(&'static str, &str)> {
    let constant = |name: &&'static str| {
        let mut values = events.iter().filter_map(|event| event.fields.get(*name));
        let value = values.next()?.as_str()?;
        let is_same = |other: &Value| other.as_str() == Some(value);
        let has = |event: &TimelineEvent| event.fields.contains_key(*name);
        let is_regular = events
            .iter()
            .filter(|event| has(event))
            .all(|event| events.iter().all(|other| other.kind != event.kind || has(other)));
        (values.clone().count() > 0 && values.all(is_same) && is_regular).then_some((*name, value))
    };
    SHARED.iter().filter_map(constant).collect()
}

/// Returns a value for people: a text without its quotes, a list with a space after each comma.
fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => {
            format!("[{}]", values.iter().map(value_text).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Cuts a line that is too wide.
fn shortened(line: &str) -> String {
    // Escapes are longer than their characters.
    let line = escape_line(line);
    match line.chars().count() > WIDTH {
        true => line.chars().take(WIDTH - CUT.len()).chain(CUT.chars()).collect(),
        false => line.into_owned(),
    }
}

/// Breaks a text at its spaces into lines; a word that is too wide is broken anywhere.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let (mut lines, mut line, mut line_width) = (Vec::new(), String::new(), 0);
    for word in escape_line(text).split_inclusive(' ') {
        let word_width = word.trim_end().chars().count();
        if line_width > 0 && line_width + word_width > width {
            lines.push(std::mem::take(&mut line));
            line_width = 0;
        }
        for letter in word.chars() {
            if line_width == width && letter != ' ' {
                lines.push(std::mem::take(&mut line));
                line_width = 0;
            }
            line.push(letter);
            line_width += 1;
        }
    }
    if !line.trim_end().is_empty() {
        lines.push(line);
    }
    lines
}

/// The greatest width of a line.
const WIDTH: usize = 110;
/// Marks a line that was cut.
const CUT: &str = " ..";
const PARTY_MAX: usize = 16;
/// The greatest number of lines of an alert.
const ALERT_LINES_MAX: usize = 10;
/// A longer time is written with days.
const SECONDS_MAX: u128 = 10_000;
/// The fields that name the party that acts, the first one wins.
const PARTIES: [&str; 8] = ["owner", "trader", "acct", "firm", "from", "dr_acct", "party", "desk"];
/// Fields that are printed once if the case has one value of them.
const SHARED: [&str; 5] = ["venue", "instr", "ccy", "firm", "capacity"];
/// Fields that are printed before the rest.
const TELLING: [&str; 18] = [
    "leaves", "amt", "ccy", "cr_acct", "phase", "stage", "oid", "coid", "match_id", "cpty", "reason",
    "action", "group", "text", "headline", "instrs", "name", "trader",
];

#[cfg(test)]
mod tests {
    use super::*;
    use unitape_watch::{ScenarioSelection, replay_cases};

    fn timeline(lines: &str, limit: u64, scenario: &str) -> (String, Omissions) {
        let mut writer = TimelineWriter::new(Vec::new(), limit);
        let selection = ScenarioSelection { scenarios: vec![scenario.to_owned()], ..Default::default() };
        replay_cases(lines.as_bytes(), "lines", &selection, &[], &mut writer).unwrap();
        let (text, omissions) = writer.finish().unwrap();
        (String::from_utf8(text).unwrap(), omissions)
    }

    fn message(seq: u64, ts: i64, text: &str) -> String {
        let mut line = serde_json::json!({"seq": seq, "ts": ts, "kind": "comm", "msg_id": format!("E{seq}"),
            "channel": "email", "from": "t@f1.example", "to": ["c@x.example"]});
        line["text"] = text.into();
        format!("{line}\n")
    }

    /// A text of the market once moved the cursor of a terminal, and made lines of any width.
    #[test]
    fn lines_are_narrow_and_hold_no_control_characters() {
        let wide = "\u{1b}[2J".repeat(100) + " move to whatsapp";
        let (text, _) = timeline(&message(1, 1_000_000_000, &wide), 10, "comms_lexicon");
        assert!(text.contains("==> alert 1  comms_lexicon  from t@f1.example, msg_id E1"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{text:?}");
    }

    /// The alert of an event beyond the limit must not appear under the last event before it.
    #[test]
    fn an_alert_beyond_the_limit_is_counted_and_not_printed() {
        let lines = message(1, 1, "hello") + &message(2, 2, "move to whatsapp");
        let (text, omissions) = timeline(&lines, 1, "comms_lexicon");
        assert!(!text.contains("==>") && text.contains("hello"), "{text}");
        assert_eq!(omissions, Omissions { events: 1, alerts: 1 });
        assert!(omissions.message(1).unwrap().contains("1 further event has no line and completed 1 alert"));
        assert_eq!(timeline(&lines, 2, "comms_lexicon").1.message(2), None);
    }

    #[test]
    fn times_are_as_fine_as_the_events_and_long_ones_have_days() {
        let day_ns = 86_400_000_000_000;
        for (second_ts, expected) in [
            (1_500_000_000, "+0.500  2"),
            (1_000_000_001, "+0.000000001  2"),
            (999_000_000, "-0.001  2"),
            (1_000_000_000 + 2 * day_ns, "+2d 00:00:00.000  2"),
        ] {
            let lines = message(1, 1_000_000_000, "a") + &message(2, second_ts, "b");
            let (text, _) = timeline(&lines, 10, "comms_lexicon");
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }
}
