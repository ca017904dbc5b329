//! The rules file: limits, and the tree of firms, desks, traders and algorithms.

use super::scope::{Scope, ScopeKind, ScopeTree};
use crate::error::Error;
use serde::Deserialize;
use std::collections::BTreeSet;
use unitape_base::toml::{origin, parse, suggest_word};
use unitape_model::Price;

/// The effect of a trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BreakerAction {
    /// New orders and amends of the scope are refused.
    Halt,
    /// The same, and resting orders are cancelled.
    Kill,
}

impl BreakerAction {
    /// Returns the word of events and rules.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Halt => "halt",
            Self::Kill => "kill",
        }
    }
}

/// The action of a notional limit on an order without a known price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownPrice {
    /// The order is reported and adds nothing.
    Pass,
    /// The order trips the scope.
    Trip,
}

/// The measure of a limit and its allowed maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitMeasure {
    /// Order messages in the window.
    Messages {
        /// The most that is allowed.
        max: u64,
        /// The window, nanoseconds.
        window_ns: i64,
    },
    /// New orders of one instrument, side, price and quantity in the window.
    Repeats {
        /// The most that is allowed.
        max: u64,
        /// The window, nanoseconds.
        window_ns: i64,
    },
    /// Price times quantity of orders in the window, each currency by itself.
    GrossNotional {
        /// The most that is allowed, in billionths of the currency.
        max_nano: i128,
        /// The window, nanoseconds.
        window_ns: i64,
        /// The action on an order without a price.
        unknown_price: UnknownPrice,
    },
    /// The executed part of an order, or of a parent order.
    Overfill {
        /// The most that is allowed, in percent of its quantity.
        max_percent: u64,
    },
}

impl LimitMeasure {
    /// Returns its word in the rules.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Messages { .. } => "messages",
            Self::Repeats { .. } => "repeats",
            Self::GrossNotional { .. } => "gross_notional",
            Self::Overfill { .. } => "overfill",
        }
    }
}

/// A limit of each scope of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Its name, which no other limit has.
    pub name: String,
    /// The kind of its scopes.
    pub scope: ScopeKind,
    /// The scopes by name; empty for all of the kind.
    pub names: BTreeSet<String>,
    /// The measure of the limit.
    pub measure: LimitMeasure,
    /// The share of the limit, in thousandths, at which it warns.
    pub warn: Option<u64>,
    /// The time after which a trip ends by itself, nanoseconds.
    pub until_ns: Option<i64>,
    /// Whether a trip is only a rehearsal.
    pub dry_run: bool,
    /// The effect of a trip.
    pub action: BreakerAction,
}

impl Limit {
    /// Returns whether it limits the scope of this name.
    pub fn has(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.contains(name)
    }
}

/// Limits, and the tree of scopes.
#[derive(Clone, Debug, Default)]
pub struct BreakerRules {
    pub(crate) limits: Vec<Limit>,
    pub(crate) tree: ScopeTree,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesText {
    #[serde(default)]
    limit: Vec<LimitText>,
    #[serde(default)]
    member: Vec<MemberText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitText {
    name: String,
    scope: String,
    names: Option<Vec<String>>,
    messages: Option<u64>,
    repeats: Option<u64>,
    gross_notional: Option<toml::Value>,
    overfill: Option<u64>,
    window: Option<String>,
    warn: Option<f64>,
    until: Option<String>,
    #[serde(default)]
    dry_run: bool,
    action: Option<String>,
    unknown_price: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemberText {
    firm: Option<String>,
    desk: Option<String>,
    trader: Option<String>,
    algo: Option<String>,
}

impl BreakerRules {
    /// Reads a rules file; `file` is its name in errors.
    ///
    /// # Errors
    /// Fails with file and line if the text is no TOML, if a word is unknown, if a value cannot be, or if there is no limit.
    pub fn parse(text: &str, file: &str) -> Result<Self, Error> {
        let rules_error = |(location, message)| Error::BreakerRules { location, message };
        let content: RulesText = parse(text, file).map_err(rules_error)?;
        let mut rules = Self::default();
        for (n, member) in content.member.iter().enumerate() {
            let names = [&member.firm, &member.desk, &member.trader, &member.algo];
            rules.tree.add(names.map(Option::as_deref)).map_err(|(level, message)| {
                let location = ["member", &n.to_string(), level];
                rules_error((origin(file, text, &location), message))
            })?;
        }
        rules.tree.close().map_err(|message| rules_error((origin(file, text, &["member"]), message)))?;
        for (n, limit) in content.limit.iter().enumerate() {
            let limit = limit.check_limit().map_err(|(key, message)| {
                rules_error((
                    origin(file, text, &["limit", &n.to_string(), key]),
                    format!("{key}: {message}"),
                ))
            })?;
            if rules.limits.iter().any(|earlier_limit| earlier_limit.name == limit.name) {
                let location = origin(file, text, &["limit", &n.to_string(), "name"]);
                return Err(rules_error((location, format!("name: there are two limits `{}`", limit.name))));
            }
            rules.limits.push(limit);
        }
        if rules.limits.is_empty() {
            let message = "there is no limit; a [[limit]] has name, scope, one of messages, repeats, gross_notional and overfill";
            return Err(rules_error((format!("{file}:1"), message.to_owned())));
        }
        Ok(rules)
    }

    /// Returns the limits, in the order of the file.
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }
}

/// The key of a limit that cannot be, and why.
type Mistake = (&'static str, String);

impl LimitText {
    fn check_limit(&self) -> Result<Limit, Mistake> {
        if self.name.is_empty() || self.name.len() > 64 || self.name.chars().any(char::is_control) {
            return Err(("name", "a name has 1 to 64 bytes, and no control characters".to_owned()));
        }
        let scope = ScopeKind::from_name(&self.scope).ok_or_else(|| {
            let scope_names = ScopeKind::ALL.map(ScopeKind::name);
            let near = suggest_word(&self.scope, scope_names);
            (
                "scope",
                format!("there is no scope `{}`{near}; there are {}", self.scope, scope_names.join(", ")),
            )
        })?;
        let names = self.names.as_deref().unwrap_or_default();
        if self.names.is_some() && names.is_empty() {
            let message = format!(
                "the list is empty, so the limit `{}` would watch nothing; leave `names` out for all of the kind",
                self.name
            );
            return Err(("names", message));
        }
        if let Some(name) = names.iter().find(|name| !Scope::is_name(name)) {
            return Err(("names", format!("{name:?}: a name has 1 to 255 bytes")));
        }
        let measure = self.check_measure()?;
        let warn = match self.warn {
            None => None,
            Some(_) if self.overfill.is_some() => {
                return Err(("warn", "an overfill does not warn: each order fills up".to_owned()));
            }
            Some(share) if share > 0.0 && share < 1.0 => {
                Some(((share * 1000.0).round() as u64).clamp(1, 999))
            }
            Some(share) => return Err(("warn", format!("{share} is no share between 0 and 1, such as 0.8"))),
        };
        let until_ns = self.until.as_deref().map(|text| parse_duration("until", text)).transpose()?;
        let action = match self.action.as_deref() {
            None | Some("halt") => BreakerAction::Halt,
            Some("kill") => BreakerAction::Kill,
            Some(word) => {
                let near = suggest_word(word, ["halt", "kill"]);
                return Err(("action", format!("there is no action `{word}`{near}; there are halt, kill")));
            }
        };
        let (name, names, dry_run) = (self.name.clone(), names.iter().cloned().collect(), self.dry_run);
        Ok(Limit { name, scope, names, measure, warn, until_ns, dry_run, action })
    }

    fn check_measure(&self) -> Result<LimitMeasure, Mistake> {
        let limit_keys = [
            ("messages", self.messages.is_some()),
            ("repeats", self.repeats.is_some()),
            ("gross_notional", self.gross_notional.is_some()),
            ("overfill", self.overfill.is_some()),
        ];
        let mut words = limit_keys.iter().filter(|(_, is_there)| *is_there).map(|(word, _)| *word);
        let word = words.next().ok_or_else(|| {
            (
                "name",
                "the rule has no limit: give one of messages, repeats, gross_notional, overfill".to_owned(),
            )
        })?;
        if let Some(second) = words.next() {
            return Err((second, format!("a limit is one thing, and this one has `{word}` already")));
        }
        if word != "gross_notional" && self.unknown_price.is_some() {
            return Err(("unknown_price", format!("goes with gross_notional, not with {word}")));
        }
        if let Some(max_percent) = self.overfill {
            if self.window.is_some() {
                return Err(("window", "an overfill has no window".to_owned()));
            }
            if !(1..=1_000_000).contains(&max_percent) {
                return Err((
                    "overfill",
                    "percent of the quantity, from 1 to 1000000; 100 is all of it".to_owned(),
                ));
            }
            return Ok(LimitMeasure::Overfill { max_percent });
        }
        let window = self.window.as_deref();
        let window =
            window.ok_or_else(|| (word, "needs a window beside it, such as window = \"1s\"".to_owned()))?;
        let window_ns = parse_duration("window", window)?;
        if let Some(value) = &self.gross_notional {
            let max_nano = parse_notional(value)?;
            let unknown_price = match self.unknown_price.as_deref() {
                None | Some("pass") => UnknownPrice::Pass,
                Some("trip") => UnknownPrice::Trip,
                Some(word) => {
                    let near = suggest_word(word, ["pass", "trip"]);
                    return Err((
                        "unknown_price",
                        format!("there is no `{word}`{near}; there are pass, trip"),
                    ));
                }
            };
            return Ok(LimitMeasure::GrossNotional { max_nano, window_ns, unknown_price });
        }
        let max = self.messages.or(self.repeats).expect("one of them is there");
        if !(1..=COUNT_MAX).contains(&max) {
            return Err((word, format!("a count from 1 to {COUNT_MAX}")));
        }
        Ok(match self.messages {
            Some(max) => LimitMeasure::Messages { max, window_ns },
            None => LimitMeasure::Repeats { max, window_ns },
        })
    }
}

/// Reads `250ms`, `1s`, `15m`, `8h`.
fn parse_duration(key: &'static str, text: &str) -> Result<i64, Mistake> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 3_600 * 1_000_000_000,
        _ => 0,
    };
    let value = number.parse::<i64>().ok().and_then(|number| number.checked_mul(factor));
    value.filter(|value| (1..=DURATION_NS_MAX).contains(value)).ok_or_else(|| {
        (key, format!("{text:?} is no time such as 250ms, 1s, 15m or 8h, above zero and up to 744h"))
    })
}

/// Reads an amount of money, in billionths.
fn parse_notional(value: &toml::Value) -> Result<i128, Mistake> {
    let text = match value {
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let amount = match value {
        toml::Value::Integer(number) => Some(i128::from(*number) * NANO),
        toml::Value::String(text) => Price::parse(text.as_bytes()).ok().map(|price| i128::from(price.0)),
        _ => None,
    };
    amount.filter(|amount| *amount > 0).ok_or_else(|| {
        (
            "gross_notional",
            format!("{text}: an amount above zero is needed, such as 1000000, or \"0.5\" as text"),
        )
    })
}

const NANO: i128 = 1_000_000_000;
const COUNT_MAX: u64 = 1_000_000;
const DURATION_NS_MAX: i64 = 31 * 24 * 3_600 * 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        BreakerRules::parse(text, "r.toml").unwrap_err().to_string()
    }

    fn limit(rest: &str) -> String {
        format!("[[limit]]\nname = 'a'\nscope = 'trader'\n{rest}\n")
    }

    #[test]
    fn rules_are_read() {
        let text = "
[[member]]
firm = 'F1'
desk = 'D1'
trader = 'T1'
[[limit]]
name = 'notional'
scope = 'desk'
names = ['D1']
gross_notional = 5_000_000
window = '1m'
warn = 0.8
until = '15m'
dry_run = true
action = 'kill'
unknown_price = 'trip'
[[limit]]
name = 'overfill'
scope = 'algo'
overfill = 100
";
        let rules = BreakerRules::parse(text, "r.toml").unwrap();
        let [first, second] = rules.limits() else { panic!("two limits") };
        let window_ns = 60_000_000_000;
        let max_nano = 5_000_000 * NANO;
        let unknown_price = UnknownPrice::Trip;
        assert_eq!(first.measure, LimitMeasure::GrossNotional { max_nano, window_ns, unknown_price });
        assert_eq!((first.warn, first.until_ns, first.dry_run), (Some(800), Some(15 * window_ns), true));
        assert!(first.has("D1") && !first.has("D2") && second.has("anything"));
        assert_eq!(second.measure, LimitMeasure::Overfill { max_percent: 100 });
    }

    /// Fails if a mistake in a rule is accepted or is reported without its line.
    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, says) in [
            (String::new(), "r.toml:1: there is no limit"),
            ("[[limits]]\n".to_owned(), "r.toml:1: unknown field `limits`"),
            ("[[limit]]\nname = 'a'\n".to_owned(), "missing field `scope`"),
            (limit("mesages = 5\nwindow = '1s'"), "r.toml:4: unknown field `mesages`"),
            (limit("mesages = 5\nwindow = '1s'"), "did you mean `messages`?"),
            (limit(""), "r.toml:2: name: the rule has no limit"),
            (limit("messages = 5"), "r.toml:4: messages: needs a window"),
            (limit("messages = 0\nwindow = '1s'"), "r.toml:4: messages: a count from 1"),
            (limit("messages = 5\nrepeats = 5\nwindow = '1s'"), "r.toml:5: repeats: a limit is one thing"),
            (limit("messages = 5\nwindow = '1 second'"), "r.toml:5: window: \"1 second\" is no time"),
            (limit("messages = 5\nwindow = '0s'"), "is no time"),
            (limit("messages = 5\nwindow = '99999999999h'"), "is no time"),
            (limit("messages = 5\nwindow = '1s'\nwarn = 1.5"), "r.toml:6: warn: 1.5 is no share"),
            (
                limit("messages = 5\nwindow = '1s'\naction = 'stop'"),
                "r.toml:6: action: there is no action `stop`",
            ),
            (limit("messages = 5\nwindow = '1s'\naction = 'hlat'"), "did you mean `halt`?"),
            (limit("messages = 5\nwindow = '1s'\nunknown_price = 'pass'"), "goes with gross_notional"),
            (limit("overfill = 0"), "percent of the quantity"),
            (limit("overfill = 100\nwindow = '1s'"), "an overfill has no window"),
            (limit("overfill = 100\nwarn = 0.5"), "an overfill does not warn"),
            (limit("gross_notional = -1\nwindow = '1s'"), "an amount above zero"),
            (limit("gross_notional = 1.5\nwindow = '1s'"), "1.5: an amount above zero is needed"),
            (
                "[[limit]]\nname = 'a'\nscope = 'tradr'\noverfill = 100\n".to_owned(),
                "r.toml:3: scope: there is no scope `tradr`; did you mean `trader`?",
            ),
            (format!("{0}{0}", limit("overfill = 100")), "r.toml:6: name: there are two limits `a`"),
            (limit("overfill = 100\nnames = ['']"), "a name has 1 to 255 bytes"),
            (
                limit("overfill = 100\nnames = []"),
                "r.toml:5: names: the list is empty, so the limit `a` would watch nothing; leave `names` out",
            ),
        ] {
            let error = refused(&text);
            assert!(error.contains(says), "{text}\n{error}");
        }
    }

    /// Fails if a member at two places is accepted. Levels have a fixed order, so no scope contains itself.
    #[test]
    fn a_tree_that_is_none_is_refused() {
        let members = |text: &str| refused(&format!("{text}{}", limit("overfill = 100")));
        let two = "[[member]]\nfirm = 'F1'\ntrader = 'T1'\n[[member]]\nfirm = 'F2'\ntrader = 'T1'\n";
        assert!(
            members(two).contains("r.toml:6: the trader `T1` is in the firm `F1` already, not in `F2`"),
            "{}",
            members(two)
        );
        let deep = "[[member]]\nfirm = 'F1'\ndesk = 'D1'\n[[member]]\ndesk = 'D1'\ntrader = 'T1'\n[[member]]\nfirm = 'F2'\ntrader = 'T1'\n";
        assert!(members(deep).contains("the trader `T1` is in the firm `F2`"), "{}", members(deep));
        assert!(members("[[member]]\ndesk = 'D1'\ndesk = 'D1'\n").contains("r.toml:3: duplicate key"));
        assert!(members("[[member]]\nfirm = 'F1'\n").contains("r.toml:2: a member has two names at least"));
        assert!(members("[[member]]\nfirm = 'F1'\nowner = 'O'\n").contains("unknown field `owner`"));
    }
}
