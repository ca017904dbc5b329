//! The frozen inputs of the commands: a simulated market of one seed, and samples of the repository, repeated.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::builds::{MeasuredBuild, hash};
use super::cases::InputAmount;
use crate::cargo::root;

/// Their place and their contents.
#[derive(Debug)]
pub(crate) struct FrozenInputs {
    pub(crate) dir: PathBuf,
    /// Hash of all of them.
    pub(crate) hash: u64,
    /// Messages in the first half and in all of a file that is cut.
    messages: BTreeMap<&'static str, [u64; 2]>,
}

/// About how many events the simulated market has.
const EVENTS: &str = "40000";
/// Payments of it.
const PAYMENTS: &str = "4000";

/// Makes all inputs in `dir` by this tree's own simulator, the same for every commit.
pub(crate) fn prepare(dir: &Path, build: &MeasuredBuild) -> Result<FrozenInputs, String> {
    let market = dir.join("market");
    let mut command = Command::new(&build.unitape);
    command.args(["generate", "market", "--seed", "1", "--events", EVENTS, "--payments", PAYMENTS]);
    command.args(["--format", "events,fix,swift", "--out"]).arg(&market);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    if !status.map_err(|e| format!("{}: {e}", build.unitape.display()))?.success() {
        return Err("unitape generate market failed".to_owned());
    }
    let mut inputs = FrozenInputs { dir: dir.to_owned(), hash: 0, messages: BTreeMap::new() };
    for (name, starts) in [("market.fix", starts_fix as RecordStartsFn), ("events.jsonl", starts_lines)] {
        let all = read(&market.join(name))?;
        let starts = starts(&all);
        let half = starts.len() / 2;
        let cut = starts.get(half).copied().unwrap_or(all.len());
        inputs.messages.insert(name, [half as u64, starts.len() as u64]);
        inputs.write_input(InputAmount::One.folder(), name, &all[..cut])?;
        inputs.write_input(InputAmount::Two.folder(), name, &all)?;
        inputs.write_input("again", name, &all[..cut])?;
    }
    inputs.write_input("again", "payments.swift", &read(&market.join("payments.swift"))?)?;
    for (name, from, times) in REPEATED {
        let mut all = Vec::new();
        for sample in *from {
            all.extend(read(&root().join("vectors").join(sample))?);
        }
        inputs.write_input("again", name, &all.repeat(*times))?;
    }
    let trades = "EQY_US_ALL_TRADE_20161024.txt";
    inputs.write_input("again", trades, &rows(&read(&root().join("vectors/csv").join(trades))?, ROWS)?)?;
    Ok(inputs)
}

type RecordStartsFn = fn(&[u8]) -> Vec<usize>;

/// Samples that a file may hold one after the other, and how often it does.
const REPEATED: &[(&str, &[&str], usize)] = &[
    ("complex30000.frames", &["fast/mfast/complex30000.frames"], 1),
    ("taq.txt", &["fixed/taq/nyse_taq_bbo_20140206.txt"], 1),
    ("day.itch50", &["itch/20200130.itch50"], 1_000),
    (
        "payments.xml",
        &[
            "iso20022/prowide/pacs.008.001.07.xml",
            "iso20022/prowide/pacs.009.001.07.xml",
            "iso20022/moov/FI_camt_053_sample.xml.xml",
        ],
        60,
    ),
    ("archive.mbox", &["text/archive.mbox"], 2_000),
    ("news.xml", &["text/rss.xml", "text/atom.xml", "text/newsml.xml"], 500),
];

/// Rows of the sample of separated values, again and again.
const ROWS: usize = 200;

/// The rows of a file between its header and its trailer, again and again, under a trailer that counts them.
fn rows(file: &[u8], times: usize) -> Result<Vec<u8>, String> {
    let lines: Vec<&[u8]> = file.split_inclusive(|b| *b == b'\n').collect();
    let (header, rows) = match lines.as_slice() {
        [header, rows @ .., _] => (header, rows.concat().repeat(times)),
        _ => return Err("the sample of trades has no rows".to_owned()),
    };
    let count = (lines.len() - 2) * times;
    Ok([*header, &rows, format!("END|20161024|{count}\n").as_bytes()].concat())
}

/// The start of each message of a FIX file.
fn starts_fix(file: &[u8]) -> Vec<usize> {
    const BEGIN: &[u8] = b"8=FIX";
    let begins =
        |offset: &usize| file[*offset..].starts_with(BEGIN) && (*offset == 0 || file[*offset - 1] == 1);
    (0..file.len()).filter(begins).collect()
}

fn starts_lines(file: &[u8]) -> Vec<usize> {
    let after =
        file.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(newline_offset, _)| newline_offset + 1);
    std::iter::once(0).chain(after).filter(|start| *start < file.len()).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|e| format!("{}: {e}", path.display()))
}

impl FrozenInputs {
    /// Messages in this amount of a file that is cut.
    pub(crate) fn messages(&self, file: &str, amount: InputAmount) -> u64 {
        let [half, all] = self.messages.get(file).copied().unwrap_or_default();
        if amount == InputAmount::One { half } else { all }
    }

    fn write_input(&mut self, folder: &str, name: &str, content: &[u8]) -> Result<(), String> {
        let dir = self.dir.join(folder);
        let path = dir.join(name);
        let write = fs::create_dir_all(&dir).and_then(|()| fs::write(&path, content));
        write.map_err(|e| format!("{}: {e}", path.display()))?;
        self.hash = hash(&[self.hash.to_le_bytes(), hash(content).to_le_bytes()].concat());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that is cut inside a message has one message more or less than is divided by.
    #[test]
    fn files_are_cut_where_a_message_begins() {
        let fix = b"8=FIX.4.4\x0158=8=FIX\x0110=000\x018=FIX.4.4\x0110=000\x01";
        assert_eq!(starts_fix(fix), [0, 26]);
        assert_eq!(starts_lines(b"a\nbc\n\nd"), [0, 2, 5, 6]);
        assert_eq!(starts_lines(b"a\n"), [0]);
        assert_eq!(rows(b"head\na\nb\nEND|1\n", 2).unwrap(), b"head\na\nb\na\nb\nEND|20161024|4\n");
    }
}
