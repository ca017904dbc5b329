//! Dated records of runs under `bench/record`: one line of JSON a part, with the commit that was run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::cargo::root;

/// The commit and the day of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedCommit {
    /// All forty digits.
    pub(crate) hash: String,
    /// Whether every tracked file is as it is in the commit, and no other file is there.
    pub(crate) is_clean: bool,
    /// The day of the run, `2026-11-26` in UTC.
    pub(crate) date: String,
}

impl RecordedCommit {
    /// The commit that is checked out.
    pub(crate) fn current() -> Result<Self, String> {
        Ok(Self {
            hash: git(&["rev-parse", "HEAD"])?,
            is_clean: git(&["status", "--porcelain"])?.is_empty(),
            date: jiff::Timestamp::now().strftime("%F").to_string(),
        })
    }

    /// Adds the commit to a line of a record.
    pub(crate) fn describe(&self, line: &mut Value) {
        line["commit"] = json!(self.hash);
        line["clean"] = json!(self.is_clean);
        line["date"] = json!(self.date);
    }
}

/// The output of git, without the last line's end.
pub(crate) fn git(args: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command.args(args).current_dir(root()).stdin(Stdio::null());
    let output = command.output().map_err(|e| format!("git does not start: {e}"))?;
    if !output.status.success() {
        return Err(format!("git {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim()));
    }
    let text = String::from_utf8(output.stdout).map_err(|_| format!("git {}: no text", args.join(" ")))?;
    Ok(text.trim_end_matches('\n').to_owned())
}

/// The folder of all records.
pub(crate) fn folder() -> PathBuf {
    root().join("bench/record")
}

/// The newest record of a kind: its lines, none if there is no record.
pub(crate) fn newest(kind: &str) -> Result<Vec<Value>, String> {
    Ok(all(&folder(), kind)?.pop().unwrap_or_default())
}

/// All records of a kind, oldest first. Their names are `DATE-KIND.jsonl`, and `DATE-KIND-2.jsonl` for the next of a day.
pub(crate) fn all(folder: &Path, kind: &str) -> Result<Vec<Vec<Value>>, String> {
    let context = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(context)? {
        let name = entry.map_err(context)?.file_name().to_string_lossy().into_owned();
        names.extend(date_and_number(&name, kind).map(|key| (key, name)));
    }
    names.sort();
    names.iter().map(|(_, name)| read(&folder.join(name))).collect()
}

/// The date and the number of a record of this kind by its file's name.
fn date_and_number(name: &str, kind: &str) -> Option<(String, u32)> {
    let (date, rest) = name.strip_suffix(".jsonl")?.split_at_checked("2026-11-26".len())?;
    let number = match rest.strip_prefix('-')?.strip_prefix(kind)? {
        "" => 1,
        later => later.strip_prefix('-')?.parse().ok()?,
    };
    Some((date.to_owned(), number))
}

fn read(path: &Path) -> Result<Vec<Value>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let parse = |(n, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|e| format!("{}:{}: {e}", path.display(), n + 1))
    };
    text.lines().enumerate().map(parse).collect()
}

/// Writes a record and gives its path. A record of the same day stays: the new one has the next number.
pub(crate) fn write(kind: &str, date: &str, lines: &[Value]) -> Result<PathBuf, String> {
    write_in(&folder(), kind, date, lines)
}

/// Writes a record into another folder, which is made if it is missing.
pub(crate) fn write_in(folder: &Path, kind: &str, date: &str, lines: &[Value]) -> Result<PathBuf, String> {
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let names = (1u32..).map(|n| match n {
        1 => format!("{date}-{kind}.jsonl"),
        n => format!("{date}-{kind}-{n}.jsonl"),
    });
    for path in names.map(|name| folder.join(name)) {
        let mut file = match std::fs::File::create_new(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => continue,
            Err(e) => return Err(format!("{}: {e}", path.display())),
        };
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        file.write_all(text.as_bytes()).map_err(|e| format!("{}: {e}", path.display()))?;
        return Ok(path);
    }
    Err(format!("{}: no name is free", folder.display()))
}

/// A string of a record, empty where there is none.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The digits of a commit that people read.
pub(crate) fn short(hash: &str) -> &str {
    hash.get(..7).unwrap_or(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second record of a day must not replace the first, and the newest is found by its name.
    #[test]
    fn records_of_one_day_stand_beside_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let line = |n: u64| [json!({ "n": n })];
        write_in(dir.path(), "deep", "2026-11-26", &line(1)).unwrap();
        for n in 2..=11 {
            write_in(dir.path(), "deep", "2026-11-26", &line(n)).unwrap();
        }
        write_in(dir.path(), "deep", "2026-11-25", &line(0)).unwrap();
        write_in(dir.path(), "test", "2026-11-27", &line(9)).unwrap();
        let numbers: Vec<u64> =
            all(dir.path(), "deep").unwrap().iter().map(|lines| lines[0]["n"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (0..=11).collect::<Vec<_>>());
        assert!(dir.path().join("2026-11-26-deep-2.jsonl").is_file());
    }

    #[test]
    fn a_line_that_is_no_json_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("2026-11-26-deep.jsonl"), "{}\nx\n").unwrap();
        let error = all(dir.path(), "deep").unwrap_err();
        assert!(error.contains("2026-11-26-deep.jsonl:2: "), "{error}");
    }
}
