//! The real feeds of the demo, part of the program, and a plain count of what they hold.

use std::collections::BTreeMap;

/// A feed of somebody's real messages; its licence is beside it in `vectors/`.
#[derive(Debug)]
pub struct SampleFeed {
    /// Name of the feed.
    pub feed: &'static str,
    /// One line for people.
    pub title: &'static str,
    /// Format.
    pub format: &'static str,
    /// Mapping.
    pub mapping: &'static str,
    /// Names and bytes of its files.
    pub files: &'static [(&'static str, &'static [u8])],
    /// Counts it in the plainest way.
    count: fn(&[u8], &mut ExpectedFeedCounts),
}

/// The contents of a feed by a plain count.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ExpectedFeedCounts {
    /// Messages.
    pub messages: u64,
    /// Messages that are broken.
    pub quarantined: u64,
    /// Messages that are known and become nothing.
    pub ignored: u64,
    /// Events by kind.
    pub by_kind: BTreeMap<String, u64>,
}

impl ExpectedFeedCounts {
    fn event(&mut self, kind: &str) {
        *self.by_kind.entry(kind.to_owned()).or_insert(0) += 1;
    }
}

impl SampleFeed {
    /// Counts the contents without unitape's decoders.
    pub fn counted(&self) -> ExpectedFeedCounts {
        let mut counted = ExpectedFeedCounts::default();
        self.files.iter().for_each(|(_, bytes)| (self.count)(bytes, &mut counted));
        counted
    }
}

/// All of them, in the order of their time.
pub const SAMPLES: [SampleFeed; 3] = [
    SampleFeed {
        feed: "jse",
        title: "Johannesburg's index feed, FIX 5.0, 24 November 2011",
        format: "fix",
        mapping: "jse-fix50-indices",
        files: &[(
            "jse.fix",
            include_bytes!("../../../../../vectors/fix/jse/jse_fix50_marketdata_head80.fix"),
        )],
        count: jse,
    },
    SampleFeed {
        feed: "taq",
        title: "New York's Daily TAQ quotes, fixed-width, 6 February 2014",
        format: "fixed",
        mapping: "nyse-taq-bbo-98",
        files: &[("taq.txt", include_bytes!("../../../../../vectors/fixed/taq/nyse_taq_bbo_20140206.txt"))],
        count: taq,
    },
    SampleFeed {
        feed: "bank",
        title: "a bank's transfers and statements, SWIFT MT103 and MT940, 2017 to 2020",
        format: "swift",
        mapping: "swift-mt",
        files: &[
            ("mt103.rje", include_bytes!("../../../../../vectors/swift/prowide/MT103-bulk-with-ack.rje")),
            ("mt940.txt", include_bytes!("../../../../../vectors/swift/mt940/ASNB/mt940.txt")),
        ],
        count: bank,
    },
];

/// Messages and entries, identified by the fields that begin them.
fn jse(bytes: &[u8], counted: &mut ExpectedFeedCounts) {
    for field in bytes.split(|&b| b == 1) {
        match field {
            b"8=FIXT.1.1" => counted.messages += 1,
            b"35=0" => counted.ignored += 1,
            b"269=3" | b"269=y" => counted.event("index"),
            b"269=x" => counted.event("status"),
            _ => {}
        }
    }
}

/// Counts one quote on each line after a header.
fn taq(bytes: &[u8], counted: &mut ExpectedFeedCounts) {
    for (n, _) in bytes.split(|&b| b == b'\n').filter(|line| !line.is_empty()).enumerate() {
        counted.messages += 1;
        match n {
            0 => counted.ignored += 1,
            _ => counted.event("bbo"),
        }
    }
}

/// Counts messages by their type, which each message names once in block 2.
fn bank(bytes: &[u8], counted: &mut ExpectedFeedCounts) {
    for (start, kind) in [(&b"{2:O103"[..], "payment"), (b"{2:O940", "statement")] {
        for _ in bytes.windows(start.len()).filter(|w| *w == start) {
            counted.messages += 1;
            counted.event(kind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::feeds::START_NS;
    use super::*;

    /// Fails if an expected count is wrong, because the check would then blame the decoders.
    #[test]
    fn the_counts_are_those_of_their_sources() {
        let counts = SAMPLES.each_ref().map(SampleFeed::counted);
        let kinds = |n: usize| counts[n].by_kind.iter().map(|(k, n)| (k.as_str(), *n)).collect::<Vec<_>>();
        assert_eq!((counts[0].messages, kinds(0)), (11_110, vec![("index", 10_770), ("status", 80)]));
        assert_eq!((counts[1].messages, kinds(1)), (9_995, vec![("bbo", 9_994)]));
        assert_eq!((counts[2].messages, kinds(2)), (34, vec![("payment", 3), ("statement", 31)]));
    }

    /// Fails if the first sample lies on another day than the generated feeds, because a merge of them would show
    /// nothing.
    #[test]
    fn the_first_lies_in_the_stretch_of_the_made_ones() {
        let bytes = SAMPLES[0].files[0].1;
        let times: Vec<&[u8]> = bytes.split(|&b| b == 1).filter(|f| f.starts_with(b"52=20111124-")).collect();
        assert_eq!(&times[0][12..20], b"05:33:31");
        assert_eq!(&times[times.len() - 1][12..20], b"07:42:11");
        assert_eq!(times.len() as u64, SAMPLES[0].counted().messages);
        assert_eq!(crate::commands::tape::utc(START_NS as i64), "2011-11-24 05:33:00.000000000");
    }
}
