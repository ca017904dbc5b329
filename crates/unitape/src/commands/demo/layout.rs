//! Tables, paragraphs and a little colour for a terminal of 100 columns.

use crate::output::escape_line;
use comfy_table::{CellAlignment, Table, presets};
use std::io::IsTerminal;

/// Columns that all output fits into.
pub const WIDTH: usize = 100;

/// Whether and how to colour.
#[derive(Clone, Copy, Debug)]
pub struct TextPaint(bool);

impl TextPaint {
    /// Colours on a terminal, none where `NO_COLOR` is set.
    pub fn for_stdout() -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        Self(std::io::stdout().is_terminal() && !set("NO_COLOR") && !dumb)
    }

    /// Paints a heading.
    pub fn bold(self, text: &str) -> String {
        self.wrap_text("1", text)
    }

    /// Paints text of lesser weight.
    pub fn dim(self, text: &str) -> String {
        self.wrap_text("2", text)
    }

    /// Paints a good result.
    pub fn good(self, text: &str) -> String {
        self.wrap_text("32", text)
    }

    /// Paints a bad result.
    pub fn bad(self, text: &str) -> String {
        self.wrap_text("1;31", text)
    }

    fn wrap_text(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A table: columns as wide as they must be, numbers to the right.
#[derive(Debug)]
pub struct TextTable(Table);

impl TextTable {
    /// Makes a table with these headings. A heading that begins with `>` is aligned right, with the cells under it.
    pub fn new(head: &[&str]) -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(head.iter().map(|title| title.trim_start_matches('>')));
        for (index, title) in head.iter().enumerate() {
            let column = table.column_mut(index).expect("a column for each heading");
            // Two blanks before each cell, none behind it.
            column.set_padding((2, 0));
            if title.starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        Self(table)
    }

    /// Adds a row, escaped: what feeds say must not write beyond its cell.
    pub fn row(&mut self, cells: Vec<String>) {
        self.0.add_row(cells.iter().map(|cell| escape_line(cell)));
    }

    /// Writes the lines of the table, indented by two.
    pub fn lines(&self, paint: TextPaint) -> Vec<String> {
        let mut lines: Vec<String> = self.0.lines().map(|line| line.trim_end().to_owned()).collect();
        lines[0] = paint.dim(&lines[0]);
        lines
    }
}

/// Breaks text into lines of at most `width` columns.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always one");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// Quotes a word for the shell if it needs quotes.
pub fn quoted(word: &str) -> String {
    let is_safe_char = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@".contains(c);
    if !word.is_empty() && word.chars().all(is_safe_char) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands that are shown are copied, also when the directory has a blank in its name.
    #[test]
    fn words_survive_the_shell() {
        assert_eq!(quoted("/tmp/a-b.c"), "/tmp/a-b.c");
        assert_eq!(quoted("/tmp/my demo"), "'/tmp/my demo'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn tables_align_by_characters_not_bytes() {
        let mut table = TextTable::new(&["name", ">n"]);
        table.row(vec!["▁▂".to_owned(), "1".to_owned()]);
        table.row(vec!["abcdef".to_owned(), "1,000".to_owned()]);
        let want = ["  name        n", "  ▁▂          1", "  abcdef  1,000"];
        assert_eq!(table.lines(TextPaint(false)), want);
        assert_eq!(wrapped("one two  three", 8), ["one two", "three"]);
        assert_eq!(TextPaint(true).bold("x"), "\x1b[1mx\x1b[0m");
    }
}
