//! The cases that `cargo xtask instructions` counts, and the benches that it cannot count.

use std::path::Path;

/// One run of a program, or two for a command; it may give several figures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InstructionCase {
    /// As `--case` names it.
    pub(crate) name: &'static str,
    pub(crate) work: CaseWork,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum CaseWork {
    /// `unitape bench --quick NAME`: the last repeat, between two marks.
    Bench(LastRepeats),
    /// The example `instructions` of the tape's crate: the second repeat, between two marks.
    Tape,
    /// A whole command, twice: with one and with two parts of its input. The difference is the figure.
    Command { args: &'static [&'static str], operations: OperationCount },
}

/// Where the last repeats are in a binary that has no `bench --marks`: it reads the processor's clock before and after
/// each repeat, and callgrind cuts there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastRepeats {
    /// For each record of one thread, the read that begins its last repeat.
    pub(crate) from: &'static [u64],
    /// Reads in all: another number is another program than this table knows.
    pub(crate) reads: u64,
    /// Repeats in a stretch.
    pub(crate) repeats: u64,
}

/// The number of operations that a command has done.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OperationCount {
    /// As many as it prints lines.
    Lines,
    /// As many as there are messages in its part of this input.
    Messages(&'static str),
}

const fn bench(name: &'static str, from: &'static [u64], reads: u64) -> InstructionCase {
    InstructionCase { name, work: CaseWork::Bench(LastRepeats { from, reads, repeats: 1 }) }
}

const fn tape(name: &'static str) -> InstructionCase {
    InstructionCase { name, work: CaseWork::Tape }
}

const fn decode(name: &'static str, args: &'static [&'static str]) -> InstructionCase {
    InstructionCase { name, work: CaseWork::Command { args, operations: OperationCount::Lines } }
}

const fn events(name: &'static str, args: &'static [&'static str]) -> InstructionCase {
    InstructionCase {
        name,
        work: CaseWork::Command { args, operations: OperationCount::Messages("events.jsonl") },
    }
}

/// All cases. In the arguments of a command `ROOT/` is the repository; `AGAIN/` a file that is named once and twice;
/// `PART/` a file that is cut to its first half and whole; `TAPE` and `STORE` are made of such parts by the same binary;
/// `FRESH` does not exist yet.
pub(crate) const CASES: &[InstructionCase] = &[
    InstructionCase {
        name: "farm/empty",
        work: CaseWork::Bench(LastRepeats { from: &[0, 2, 4], reads: 12, repeats: 3 }),
    },
    bench("fix/orders", &[2], 4),
    bench("fix/jse", &[2], 4),
    bench("fast/cme", &[2], 4),
    bench("fast/cme-half", &[2], 4),
    bench("fast/complex30000", &[2], 4),
    bench("fast/complex30000-half", &[2], 4),
    bench("fast/moex2521", &[2], 4),
    bench("fast/moex2521-half", &[2], 4),
    bench("fast/handler", &[3, 8, 13], 15),
    bench("fixed/taq", &[2], 4),
    bench("fixed/taq-events", &[2, 6, 10, 14], 16),
    bench("csv/taq", &[2], 4),
    bench("csv/taq-events", &[2], 4),
    bench("swift/typed", &[2], 4),
    bench("itch/events", &[2, 6], 8),
    bench("itch/with-orders", &[2, 6, 10, 14], 16),
    bench("iso20022/pacs008", &[2], 4),
    bench("store/scan", &[10], 12),
    bench("watch/otr", &[4], 6),
    bench("watch/wash", &[4], 6),
    bench("watch/layering", &[4], 6),
    bench("watch/three", &[4], 6),
    bench("watch/all", &[4], 6),
    bench("book/flow", &[2], 4),
    bench("book/deep", &[2], 4),
    bench("sim/events", &[4], 6),
    bench("sim/frames", &[4], 6),
    tape("tape/append-file"),
    tape("tape/append-hot"),
    tape("tape/claim-file"),
    tape("tape/claim-bulk"),
    tape("tape/claim-hot"),
    tape("tape/read-file"),
    tape("tape/read-runs-file"),
    tape("tape/read-live-file"),
    tape("tape/read-live-hot"),
    tape("tape/one-by-one-file"),
    tape("tape/one-by-one-hot"),
    tape("tape/offer-hot"),
    tape("tape/poll-hot"),
    tape("tape/record"),
    tape("tape/verify"),
    decode(
        "command/decode-fast",
        &[
            "decode",
            "fast",
            "--templates",
            "ROOT/vectors/fast/mfast/example.xml",
            "--framing",
            "frames",
            "AGAIN/complex30000.frames",
            "--json",
        ],
    ),
    decode("command/decode-fix", &["decode", "fix", "AGAIN/market.fix", "--json"]),
    decode(
        "command/decode-fixed",
        &["decode", "fixed", "--layout", "nyse-taq-bbo-98", "AGAIN/taq.txt", "--json"],
    ),
    decode("command/decode-csv", &["decode", "csv", "--layout", "nyse-taq-trades", CSV, "--json"]),
    decode("command/decode-swift", &["decode", "swift", "AGAIN/payments.swift", "--json"]),
    decode("command/decode-itch", &["decode", "itch", "AGAIN/day.itch50", "--json"]),
    decode("command/decode-iso20022", &["decode", "iso20022", "AGAIN/payments.xml", "--json"]),
    decode("command/decode-jsonl", &["decode", "jsonl", "AGAIN/events.jsonl", "--json"]),
    decode("command/decode-mail", &["decode", "mail", "AGAIN/archive.mbox", "--json"]),
    decode("command/decode-newsxml", &["decode", "newsxml", "AGAIN/news.xml", "--json"]),
    InstructionCase {
        name: "command/consolidate-fix",
        work: CaseWork::Command {
            args: &["consolidate", "PART/market.fix", "--tape", "FRESH", "--workers", "1", "--json"],
            operations: OperationCount::Messages("market.fix"),
        },
    },
    events(
        "command/consolidate-events",
        &["consolidate", "PART/events.jsonl", "--tape", "FRESH", "--workers", "1", "--json"],
    ),
    events("command/tape-cat", &["tape", "cat", "TAPE", "--json"]),
    events("command/tape-verify", &["tape", "verify", "TAPE", "--json"]),
    events("command/watch-replay", &["watch", "replay", "TAPE", "--json"]),
    events("command/watch-replay-lines", &["watch", "replay", "PART/events.jsonl", "--json"]),
    events("command/book", &["book", "TAPE", "--json"]),
    events("command/book-bbo", &["book", "TAPE", "--bbo", "--json"]),
    events("command/store-seal", &["store", "seal", "TAPE", "--store", "FRESH", "--json"]),
    events("command/store-scan", &["store", "scan", "STORE", "--json"]),
];

const CSV: &str = "AGAIN/EQY_US_ALL_TRADE_20161024.txt";

/// Bench cases whose instructions say nothing, why, and what is counted instead.
pub(crate) const UNCOVERED: &[(&str, &str)] = &[
    ("tape/raw", "the control: both processes spin"),
    (
        "tape/rtt, rtt-64, rtt-rate, rtt-load",
        "two processes spin for each other; tape/one-by-one-* has what a message costs both",
    ),
    (
        "tape/one-way, sustained",
        "a reader in another process waits; tape/append-*, claim-* and read-* have each half",
    ),
    ("tape/recorder-behind", "paced by the clock; tape/append-hot and tape/record have each half"),
    (
        "tape/readers1, readers4, readers20",
        "the writer looks at no reader: tape/append-*; each reader: tape/read-live-*",
    ),
    ("tape/isolation", "paced by the clock, beside processes that misbehave; tape/one-by-one-*"),
    ("farm/empty with 2 threads", "the threads spin for their turn; farm/empty has one thread"),
    (
        "fix/orders-to-tape, fixed/taq-to-tape, swift/to-tape",
        "the end waits for helper threads, which is 1 % of so small a count; command/consolidate-* is long enough",
    ),
    ("store/ingest", "the same; command/store-seal is long enough"),
    ("store/size", "bytes, no time"),
    ("fast/book-latency", "two threads and the clock; fast/handler has the same work from a file"),
];

/// The cases that were asked for: whole names, or the part before the slash; all when none was.
pub(crate) fn select_cases(names: &[String]) -> Result<Vec<InstructionCase>, String> {
    let is =
        |case: &InstructionCase, name: &str| case.name == name || case.name.split('/').next() == Some(name);
    if let Some(name) = names.iter().find(|name| !CASES.iter().any(|case| is(case, name))) {
        return Err(format!("no case is called `{name}`; see cargo xtask instructions --list"));
    }
    let asked = |case: &&InstructionCase| names.is_empty() || names.iter().any(|name| is(case, name));
    Ok(CASES.iter().filter(asked).copied().collect())
}

/// The part of its input that a command gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputAmount {
    /// A file once, or the first half of one.
    One,
    /// A file twice, or all of it.
    Two,
}

/// The paths that replace the words in a command's arguments.
#[derive(Debug)]
pub(crate) struct CasePaths<'a> {
    pub(crate) root: &'a Path,
    pub(crate) inputs: &'a Path,
    pub(crate) tapes: &'a Path,
    pub(crate) fresh: &'a Path,
}

impl InputAmount {
    /// The folder of inputs, tapes and stores of this amount.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::One => "half",
            Self::Two => "whole",
        }
    }
}

/// The arguments of a command with paths for the words.
pub(crate) fn arguments(args: &[&str], amount: InputAmount, places: &CasePaths<'_>) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut command_line = Vec::new();
    for arg in args {
        match arg.split_once('/') {
            Some(("ROOT", rest)) => command_line.push(text(&places.root.join(rest))),
            Some(("PART", rest)) => command_line.push(text(&places.inputs.join(amount.folder()).join(rest))),
            Some(("AGAIN", rest)) => {
                let file = text(&places.inputs.join("again").join(rest));
                command_line.extend((amount == InputAmount::Two).then(|| file.clone()));
                command_line.push(file);
            }
            _ => command_line.push(match *arg {
                "TAPE" => text(&places.tapes.join(amount.folder()).join("tape")),
                "STORE" => text(&places.tapes.join(amount.folder()).join("store")),
                "FRESH" => text(&places.fresh.join("fresh")),
                other => other.to_owned(),
            }),
        }
    }
    command_line
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A typing error that counts nothing and exits 0 would say "not slower".
    #[test]
    fn cases_are_asked_for_by_name_or_by_family_and_a_wrong_name_is_an_error() {
        let names = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
            select_cases(&names).map(|cases| cases.iter().map(|c| c.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["fix/jse"]), Ok(vec!["fix/jse"]));
        assert_eq!(names(&["fix"]), Ok(vec!["fix/orders", "fix/jse"]));
        assert_eq!(names(&[]).map(|all| all.len()), Ok(CASES.len()));
        assert!(names(&["fix", "fix/order"]).is_err_and(|e| e.contains("`fix/order`")));
        let mut all: Vec<&str> = CASES.iter().map(|c| c.name).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), CASES.len(), "a name twice");
    }

    #[test]
    fn the_second_run_of_a_command_has_twice_the_input() {
        let places = CasePaths {
            root: Path::new("/r"),
            inputs: Path::new("/i"),
            tapes: Path::new("/t"),
            fresh: Path::new("/f"),
        };
        let args = ["decode", "ROOT/x.xml", "AGAIN/a", "PART/b", "TAPE", "--store", "FRESH"];
        let line_of = |amount| arguments(&args, amount, &places).join(" ");
        assert_eq!(
            line_of(InputAmount::One),
            "decode /r/x.xml /i/again/a /i/half/b /t/half/tape --store /f/fresh"
        );
        assert_eq!(
            line_of(InputAmount::Two),
            "decode /r/x.xml /i/again/a /i/again/a /i/whole/b /t/whole/tape --store /f/fresh"
        );
    }
}
