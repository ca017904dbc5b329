//! `unitape watch page`: the generated part of a scenario's page, from its definition and its cases. `cargo xtask pages`
//! writes it into `docs/scenarios`.

use super::timeline::{EVENTS_MAX, TimelineWriter};
use crate::output::{self, CommandFailure, CommandOutcome, open_file};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use unitape_watch::{ParamDef, ScenarioDef, ScenarioSelection, replay_cases, scenarios};

/// Prints the generated part of the page of `id`. Its timeline is the first case of `files` that expects an alert of it.
///
/// # Errors
/// Fails if there is no such scenario or case, or if a file cannot be read.
pub fn print_page(id: &str, files: &[PathBuf]) -> output::Result {
    let def = scenarios::find(id)?;
    let mut example = None;
    for path in files {
        if let Some(case) = first_positive_case(id, path)? {
            example = Some((path, case));
            break;
        }
    }
    let (path, case) = example
        .ok_or_else(|| CommandFailure::Error(format!("no case of {id} in these files expects an alert")))?;
    let mut page = definition_text(def);
    let command = format!("unitape watch replay {} --scenario {id} --case {case} --timeline", path.display());
    // The counts of the replay follow the timeline.
    let _ =
        write!(page, "\n## Example\n\n```console\n$ {command}\n{}...\n```\n", case_timeline(id, path, case)?);
    let mut out = output::stdout();
    out.write_all(page.as_bytes())?;
    out.flush()?;
    Ok(CommandOutcome::Clean)
}

/// Returns the id of the first case whose `expect` line names an alert of the scenario.
fn first_positive_case(id: &str, path: &Path) -> Result<Option<String>, CommandFailure> {
    for line in BufReader::new(open_file(path)?).lines() {
        let line = line?;
        let Ok(record) = serde_json::from_str::<Value>(&line) else { continue };
        let mut alerts = record["alerts"].as_array().into_iter().flatten();
        if record["rec"] == "expect" && alerts.any(|alert| alert["scenario"] == id) {
            return Ok(record["case"].as_str().map(str::to_owned));
        }
    }
    Ok(None)
}

/// Returns the timeline of a case, as `watch replay --timeline` prints it.
fn case_timeline(id: &str, path: &Path, case: String) -> Result<String, CommandFailure> {
    let selection = ScenarioSelection { scenarios: vec![id.to_owned()], ..ScenarioSelection::default() };
    let mut timeline = TimelineWriter::new(Vec::new(), EVENTS_MAX);
    let input = BufReader::new(open_file(path)?);
    replay_cases(input, &path.display().to_string(), &selection, &[case], &mut timeline)?;
    Ok(String::from_utf8(timeline.finish()?.0).expect("lines are text"))
}

/// Writes class, key, words, parameters and regulations as Markdown.
fn definition_text(def: &ScenarioDef) -> String {
    let keys: Vec<String> = def.key_forms.iter().map(|form| form.join(", ")).collect();
    let mut text = format!("Class: {}. An alert is about {}.\n", def.class.name(), keys.join("; or about "));
    text.push_str("\n## Definition\n\n");
    text.push_str(&quoted(def.trigger));
    if !def.clarified.is_empty() {
        text.push_str(">\n");
        text.push_str(&quoted(def.clarified));
    }
    text.push_str("\n## Parameters\n\n| name | default | unit | effect |\n|---|---|---|---|\n");
    for ParamDef { name, unit, description, .. } in &def.params {
        let _ = writeln!(
            text,
            "| `{name}` | {} | {} | {} |",
            default_cell(def.param(name).expect("a parameter of the list")),
            escaped_cell(unit),
            escaped_except_code(description)
        );
    }
    text.push_str("\n## Regulation\n\n");
    def.regulation.iter().for_each(|rule| _ = writeln!(text, "- {}", escaped(rule)));
    text
}

fn default_cell(param: &ParamDef) -> String {
    match param.default_text() {
        empty if empty.is_empty() => "none".to_owned(),
        default => format!("`{}`", default.replace('|', "\\|")),
    }
}

/// Returns a text as a block quote with lines of at most [`QUOTE_WIDTH`] characters. No line begins with a sign that would
/// begin a list or a heading.
fn quoted(text: &str) -> String {
    let escaped = escaped(text);
    let (mut lines, mut line) = (Vec::<String>::new(), String::new());
    for word in escaped.split_whitespace() {
        let begins_block = word.starts_with(['-', '+', '=', '#', '>', '\\'])
            || word.ends_with(['.', ')']) && word.starts_with(|letter: char| letter.is_ascii_digit());
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > QUOTE_WIDTH && !begins_block
        {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.iter().map(|line| format!("> {line}\n")).collect()
}

/// Escapes the signs that Markdown would take as its own. An underscore inside a word is a letter to Markdown.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    let mut is_in_word = false;
    while let Some(letter) = letters.next() {
        let is_inner = is_in_word && letters.peek().is_some_and(|next| next.is_alphanumeric());
        if MARKDOWN_SIGNS.contains(letter) || letter == '_' && !is_inner {
            out.push('\\');
        }
        out.push(letter);
        is_in_word = letter.is_alphanumeric();
    }
    out
}

/// Escapes a text for a cell of a table.
fn escaped_cell(text: &str) -> String {
    escaped(text).replace('|', "\\|")
}

/// Escapes a text of `parameters.toml`, which marks words as code.
fn escaped_except_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let part = |(index, part): (usize, &str)| match index % 2 {
        0 => escaped_cell(part),
        _ => format!("`{}`", part.replace('|', "\\|")),
    };
    parts.map(part).collect()
}

const MARKDOWN_SIGNS: &str = "\\`*<[";
const QUOTE_WIDTH: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of `layering` have `|L|` and `C*100`, and Markdown would take the second as emphasis.
    #[test]
    fn words_of_a_definition_are_printed_as_they_are() {
        assert_eq!(quoted("If |L|>=n and C*100 <= x_y"), "> If |L|>=n and C\\*100 \\<= x_y\n");
        assert_eq!(escaped_except_code("`a|b_c`, x_y | _z"), "`a\\|b_c`, x_y \\| \\_z");
        let long = quoted(&format!("{} - {}", "a".repeat(126), "b".repeat(20)));
        assert!(long.lines().all(|line| !line.starts_with("> -")), "{long}");
    }
}
