//! `cargo xtask pages`: the generated part of each scenario's page.
//!
//! ```text
//! unitape watch scenarios ──▶ ids ─▶ unitape watch page ID CASES ─▶ docs/scenarios/ID.md, between the markers
//! ```
//!
//! A test of `unitape` makes the same comparison as `--check`, so that a stale page fails the ordinary run.

use std::path::Path;
use std::process::Command;

use crate::cargo::{Metadata, cargo, root};
use crate::demo::BINARY;
use crate::{XtaskFailure, tools};

const BEGIN: &str = "<!-- generated -->\n";
const END: &str = "<!-- /generated -->\n";

/// Writes the pages or, with `--check`, names those that differ from what would be written.
pub(crate) fn run(args: &[String]) -> Result<u8, XtaskFailure> {
    let is_check = match args {
        [] => false,
        [arg] if arg == "--check" => true,
        _ => return Err(XtaskFailure::Usage("pages takes --check alone; see cargo xtask help".to_owned())),
    };
    let root = root();
    let binary = build()?;
    let mut stale = Vec::new();
    for id in ids(&binary)? {
        let path = format!("docs/scenarios/{id}.md");
        let page = std::fs::read_to_string(root.join(&path)).map_err(|e| format!("{path}: {e}"))?;
        let cases =
            [format!("vectors/watch/{id}.jsonl"), format!("crates/watch/src/scenarios/{id}/cases.jsonl")];
        let mut args = vec!["watch", "page", &id];
        args.extend(cases.iter().map(String::as_str).filter(|file| root.join(file).is_file()));
        let written = splice(&page, &output(&binary, &args)?).map_err(|why| format!("{path}: {why}"))?;
        if written == page {
            continue;
        }
        if !is_check {
            std::fs::write(root.join(&path), written).map_err(|e| format!("{path}: {e}"))?;
        }
        stale.push(path);
    }
    match (is_check, &stale[..]) {
        (true, []) => println!("pages: all are as they would be written"),
        (true, stale) => {
            let message =
                format!("{}: not as it would be written; run `cargo xtask pages`", stale.join(", "));
            return Err(XtaskFailure::Other(message));
        }
        (false, stale) => println!("pages: {} written", stale.len()),
    }
    Ok(0)
}

/// Builds the binary as the tests build it.
fn build() -> Result<std::path::PathBuf, XtaskFailure> {
    tools::c_compiler()?;
    let mut build = cargo();
    build.args(["build", "--package", "unitape", "--bin", "unitape"]).arg(tools::fetch());
    let status = build.status().map_err(|e| format!("cargo build: {e}"))?;
    if !status.success() {
        return Err(XtaskFailure::Other(format!("cargo build: {status}")));
    }
    Ok(Metadata::load()?.target_dir()?.join("debug").join(BINARY))
}

/// Returns the ids of all scenarios.
fn ids(binary: &Path) -> Result<Vec<String>, XtaskFailure> {
    let lines = output(binary, &["watch", "scenarios", "--json"])?;
    let id = |line: &str| {
        let definition: serde_json::Value = serde_json::from_str(line).map_err(|e| e.to_string())?;
        definition["id"].as_str().map(str::to_owned).ok_or_else(|| format!("no id: {line}"))
    };
    Ok(lines.lines().map(id).collect::<Result<_, _>>()?)
}

/// Runs the binary in the root of the repository, and returns its stdout.
fn output(binary: &Path, args: &[&str]) -> Result<String, XtaskFailure> {
    let output = Command::new(binary)
        .args(args)
        .current_dir(root())
        .output()
        .map_err(|e| format!("{}: {e}", binary.display()))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(XtaskFailure::Other(format!("unitape {}: {message}", args.join(" "))));
    }
    String::from_utf8(output.stdout).map_err(|e| XtaskFailure::Other(e.to_string()))
}

/// Puts the generated part between the markers. A page without them gets them after its title.
fn splice(page: &str, generated: &str) -> Result<String, String> {
    let (title, rest) = page.split_once('\n').ok_or("the page has no title")?;
    let rest = match (rest.find(BEGIN), rest.split_once(END)) {
        (Some(_), Some((_, rest))) => rest,
        (None, None) => rest,
        _ => return Err(format!("one of the markers {} and {} is missing", BEGIN.trim(), END.trim())),
    };
    Ok(format!("{title}\n\n{BEGIN}{generated}{END}\n{}", rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hand_written_part_stays() {
        let page = "# Title\n\n## Limits\n\nNone.\n";
        let first = splice(page, "one\n").unwrap();
        assert_eq!(first, "# Title\n\n<!-- generated -->\none\n<!-- /generated -->\n\n## Limits\n\nNone.\n");
        assert_eq!(splice(&first, "one\n").unwrap(), first);
        assert_eq!(splice(&first, "two\n").unwrap(), first.replace("one\n<", "two\n<"));
        // Without the end, hand-written text would be taken for generated text.
        assert!(splice(&first.replace(END, ""), "two\n").is_err());
    }
}
