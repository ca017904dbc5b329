//! Tables, paragraphs and a little colour for a terminal of 100 columns.

use crate::output::escape_line;
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
        self.wrap("1", text)
    }

    /// Paints text of lesser weight.
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// Paints a good result.
    pub fn good(self, text: &str) -> String {
        self.wrap("32", text)
    }

    /// Paints a bad result.
    pub fn bad(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A table: columns as wide as they must be, numbers to the right.
#[derive(Debug, Default)]
pub struct TextTable {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Makes a table with these headings. A heading that begins with `>` is aligned right, with the cells under it.
    pub fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    /// Adds a row, escaped: what feeds say must not write beyond its cell.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.head.len(), "a cell for every heading");
        self.rows.push(cells.iter().map(|cell| escape_line(cell).into_owned()).collect());
    }

    /// Writes the lines of the table, indented by two.
    pub fn lines(&self, paint: TextPaint) -> Vec<String> {
        let titles: Vec<String> = self.head.iter().map(|h| h.trim_start_matches('>').to_owned()).collect();
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| &row[column]).chain([&titles[column]]);
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..titles.len()).map(width).collect();
        let line = |cells: &[String]| {
            let mut line = String::from("  ");
            for ((cell, width), head) in cells.iter().zip(&widths).zip(&self.head) {
                let pad = " ".repeat(width - cell.chars().count());
                let right = head.starts_with('>');
                line.push_str(&if right { format!("{pad}{cell}  ") } else { format!("{cell}{pad}  ") });
            }
            line.trim_end().to_owned()
        };
        let head = paint.dim(&line(&titles));
        std::iter::once(head).chain(self.rows.iter().map(|row| line(row))).collect()
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
