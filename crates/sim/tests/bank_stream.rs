//! The stream of banks: the same for the same seed, and with all that it promises.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use unitape_sim::banks::{BankEvent, BankStream, BankStreamConfig, BestPriceConfig, BestPriceTruth};

fn lines(config: BankStreamConfig) -> Vec<String> {
    let mut stream = BankStream::new(config).expect("a good config");
    std::iter::from_fn(|| stream.next_line()).collect()
}

/// Twelve seconds of a small market.
fn small(seed: u64) -> BankStreamConfig {
    BankStreamConfig {
        seed,
        events: 12_000,
        pairs: 4,
        banks: 12,
        tiers: 3,
        rate: 1_000,
        ..BankStreamConfig::default()
    }
}

/// A truth that was written for other bytes than those at hand would call every engine wrong.
#[test]
fn the_same_seed_makes_the_same_lines() {
    assert_eq!(lines(small(3)), lines(small(3)));
    assert_ne!(lines(small(3)), lines(small(4)));
    let short = lines(BankStreamConfig { events: 500, ..small(3) });
    assert_eq!(lines(small(3))[..500], short, "fewer events are the first of more");
    let second = lines(BankStreamConfig { span_ns: 1_000_000_000, ..small(3) });
    assert!((900..1_100).contains(&second.len()), "{} events in a second of 1,000", second.len());
    assert_eq!(lines(small(3))[..second.len()], second);
}

/// A stream without its rare events tests nothing of them. The bounds are those of docs/generate-banks.md.
#[test]
fn shares_of_what_happens_are_as_documented() {
    let mut stream = BankStream::new(small(5)).expect("a good config");
    let mut truth = BestPriceTruth::new(BestPriceConfig::default()).expect("a good config");
    let mut out = Vec::new();
    while let Some(line) = stream.next_line() {
        truth.apply_line(&line, &mut out).expect("an event");
    }
    let mut of = stream.counts().clone();
    let states = ["crossed", "locked"].map(|state| (state, count(&out, &format!("\"state\":\"{state}\""))));
    of.extend(states);
    for (name, least, most) in SHARES {
        let n = of.get(name).copied().unwrap_or(0) as f64 / 12.0;
        assert!((least..=most).contains(&n), "{name}: {n} of 1,000, not {least} to {most}");
    }
    let reasons = ["expired", "indicative", "no_bank", "no_pair", "price", "quantity", "value_date"];
    assert_eq!(truth.refused().keys().copied().collect::<Vec<_>>(), reasons);
    assert!(truth.spikes() > 20, "{} spikes", truth.spikes());
}

/// Of a thousand events; `crossed` and `locked` are lines of best prices beside a thousand events.
const SHARES: [(&str, f64, f64); 23] = [
    ("quote", 950.0, 990.0),
    ("full_amount", 300.0, 550.0),
    ("valid_until", 550.0, 800.0),
    ("at_venue", 200.0, 400.0),
    ("slow_clock", 100.0, 250.0),
    ("forward", 30.0, 80.0),
    ("inverted", 10.0, 90.0),
    ("withdrawn", 6.0, 15.0),
    ("bad", 5.0, 13.0),
    ("repeated_id", 4.0, 14.0),
    ("spike", 1.0, 4.0),
    ("locking", 0.3, 3.0),
    ("crossing", 0.3, 3.0),
    ("nameless", 0.3, 3.0),
    ("deal", 4.0, 12.0),
    ("quote_reject", 1.5, 6.0),
    ("control", 1.0, 5.0),
    ("dry_run", 0.05, 1.0),
    ("status", 3.0, 14.0),
    ("logout", 0.1, 1.0),
    ("silence", 0.05, 1.0),
    ("crossed", 5.0, 100.0),
    ("locked", 0.1, 10.0),
];

fn count(out: &[u8], what: &str) -> u64 {
    String::from_utf8_lossy(out).matches(what).count() as u64
}

/// An engine that cuts an id off, or takes a number for a text, passes a test in which all ids are short numbers.
#[test]
fn ids_are_numbers_texts_and_uuids_of_8_to_40_characters() {
    let (mut lengths, mut forms) = (BTreeSet::new(), BTreeMap::new());
    for line in lines(small(6)) {
        let event: Value = serde_json::from_str(&line).expect("JSON");
        assert!(BankEvent::parse(&line).is_ok(), "{line}");
        let (length, form) = match &event["quote_id"] {
            Value::Null => continue,
            Value::String(text) if text.len() == 36 && text.matches('-').count() == 4 => (36, "uuid"),
            Value::String(text) => (text.len(), "text"),
            number => (number.to_string().len(), "number"),
        };
        lengths.insert(length);
        *forms.entry(form).or_insert(0) += 1;
    }
    assert_eq!((lengths.first(), lengths.last()), (Some(&8), Some(&40)), "{lengths:?}");
    assert_eq!(forms.len(), 3, "{forms:?}");
    assert!(forms.values().all(|n| *n > 300), "{forms:?}");
}
