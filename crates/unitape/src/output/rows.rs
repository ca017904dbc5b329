//! Rows as JSON, CSV, or a table for people.

use super::escape_line;
use crate::commands::tape::utc;
use std::borrow::Cow;
use std::fmt::Write as _;
use unitape_model::{ClassSet, ColumnForm, ColumnValue, EventKind, RowColumn, RowSchema};

/// The form of printed rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// One JSON object a line, with every column.
    Json,
    /// A header, and a line for each row.
    Csv,
    /// Columns of even width.
    Table,
}

impl RowFormat {
    /// Returns the format that the options `--json` and `--csv` choose.
    pub fn from_options(json: bool, csv: bool) -> Self {
        match (json, csv) {
            (true, _) => Self::Json,
            (_, true) => Self::Csv,
            _ => Self::Table,
        }
    }
}

/// Writes rows as lines, from the values of their columns.
#[derive(Clone, Debug)]
pub struct RowLines {
    /// The form.
    pub format: RowFormat,
    columns: Vec<RowColumn>,
    has_header: bool,
}

impl RowLines {
    /// Begins the lines of a schema, with the columns of these classes.
    pub fn new(format: RowFormat, schema: RowSchema, classes: ClassSet) -> Self {
        Self { format, columns: schema.columns_with(classes), has_header: false }
    }

    /// Appends the header of CSV, which CSV has without any row, too. Does nothing in another format.
    pub fn begin(&mut self, line: &mut String) {
        if self.format == RowFormat::Csv {
            self.put_header(line);
        }
    }

    /// Appends the line of a row, and before the first row the header of a table.
    pub fn put_row<'v>(&mut self, line: &mut String, value: impl Fn(&RowColumn) -> Option<ColumnValue<'v>>) {
        if !self.has_header {
            self.put_header(line);
        }
        match self.format {
            RowFormat::Json => {
                for (i, column) in self.columns.iter().enumerate() {
                    let opening = if i == 0 { '{' } else { ',' };
                    _ = write!(line, "{opening}\"{}\":", column.name);
                    put_json(line, value(column));
                }
                *line += "}\n";
            }
            RowFormat::Csv => {
                for (i, column) in self.columns.iter().enumerate() {
                    if i > 0 {
                        line.push(',');
                    }
                    put_csv(line, value(column));
                }
                line.push('\n');
            }
            RowFormat::Table => {
                let line_start = line.len();
                self.columns
                    .iter()
                    .for_each(|column| put_cell(line, line_start, column, &cell_text(value(column))));
                end_table_line(line, line_start);
            }
        }
    }

    fn put_header(&mut self, line: &mut String) {
        self.has_header = true;
        match self.format {
            RowFormat::Json => {}
            RowFormat::Csv => {
                let column_names: Vec<&str> = self.columns.iter().map(|column| column.name).collect();
                *line += &column_names.join(",");
                line.push('\n');
            }
            RowFormat::Table => {
                let line_start = line.len();
                self.columns.iter().for_each(|column| put_cell(line, line_start, column, column.name));
                end_table_line(line, line_start);
            }
        }
    }
}

fn put_json(line: &mut String, value: Option<ColumnValue<'_>>) {
    _ = match value {
        None => write!(line, "null"),
        Some(ColumnValue::Time(ts)) => write!(line, "{}", ts.0),
        Some(ColumnValue::Number(number)) => write!(line, "{number}"),
        Some(ColumnValue::Price(price)) => write!(line, "\"{price}\""),
        Some(ColumnValue::Size(size)) => write!(line, "\"{size}\""),
        Some(ColumnValue::Amount(amount)) => write!(line, "\"{amount}\""),
        Some(ColumnValue::Date(date)) => write!(line, "\"{date}\""),
        Some(ColumnValue::Bool(is_true)) => write!(line, "{is_true}"),
        Some(ColumnValue::Text(text)) => write!(line, "{}", serde_json::Value::from(text.as_ref())),
        Some(ColumnValue::Json(json)) => match serde_json::from_str::<&serde_json::value::RawValue>(&json) {
            // A newline between tokens would end our line.
            Ok(value) => write!(line, "{}", value.get().replace(['\n', '\r'], " ")),
            Err(_) => write!(line, "{}", serde_json::Value::from(json.as_ref())),
        },
    };
}

fn put_csv(line: &mut String, value: Option<ColumnValue<'_>>) {
    _ = match value {
        None => Ok(()),
        Some(ColumnValue::Time(ts)) => write!(line, "{}", ts.0),
        Some(ColumnValue::Number(number)) => write!(line, "{number}"),
        Some(ColumnValue::Price(price)) => write!(line, "{price}"),
        Some(ColumnValue::Size(size)) => write!(line, "{size}"),
        Some(ColumnValue::Amount(amount)) => write!(line, "{amount}"),
        Some(ColumnValue::Date(date)) => write!(line, "{date}"),
        Some(ColumnValue::Bool(is_true)) => write!(line, "{is_true}"),
        // An empty text is not null.
        Some(ColumnValue::Text(text) | ColumnValue::Json(text)) if text.is_empty() => write!(line, "\"\""),
        Some(ColumnValue::Text(text) | ColumnValue::Json(text)) => write!(line, "{}", csv_text(&text)),
    };
}

/// Returns a text as CSV has it: in quotes if it has a character with a meaning, or a blank, which a reader may strip.
pub fn csv_text(text: &str) -> Cow<'_, str> {
    match text.contains([',', '"', '\n', '\r', ' ', '\t']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")).into(),
        false => text.into(),
    }
}

fn cell_text(value: Option<ColumnValue<'_>>) -> Cow<'_, str> {
    match value {
        None => "-".into(),
        Some(ColumnValue::Time(ts)) => utc(ts.0).into(),
        Some(ColumnValue::Number(number)) => number.to_string().into(),
        Some(ColumnValue::Price(price)) => price.to_string().into(),
        Some(ColumnValue::Size(size)) => size.to_string().into(),
        Some(ColumnValue::Amount(amount)) => amount.to_string().into(),
        Some(ColumnValue::Date(date)) => date.to_string().into(),
        Some(ColumnValue::Bool(is_true)) => is_true.to_string().into(),
        Some(ColumnValue::Text(text) | ColumnValue::Json(text)) => escape_line(&text).into_owned().into(),
    }
}

/// Appends a cell to the line that begins at `start`: numbers to the right, text to the left.
fn put_cell(line: &mut String, start: usize, column: &RowColumn, text: &str) {
    let (width, blank) = (column.name.len(), if line.len() == start { "" } else { "  " });
    _ = match column.form {
        ColumnForm::Time => write!(line, "{blank}{text:29}"),
        ColumnForm::Number => write!(line, "{blank}{text:>0$}", width.max(10)),
        ColumnForm::Price | ColumnForm::Size | ColumnForm::Amount => {
            write!(line, "{blank}{text:>0$}", width.max(12))
        }
        ColumnForm::Date => write!(line, "{blank}{text:0$}", width.max(10)),
        ColumnForm::Bool => write!(line, "{blank}{text:0$}", width.max(5)),
        ColumnForm::Text if column.name == "kind" => {
            write!(line, "{blank}{text:0$}", EventKind::QuoteReject.name().len())
        }
        ColumnForm::Text | ColumnForm::Json => write!(line, "{blank}{text:0$}", width),
    };
}

/// Ends the line that begins at `start`: without the blanks that fill its last cell.
fn end_table_line(line: &mut String, start: usize) {
    line.truncate(start + line[start..].trim_end().len());
    line.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use unitape_model::{Amount, CivilDate, Decimal, Price, UnixNanos};

    /// Writes a row that has every form, with the texts that CSV and JSON must quote.
    fn lines(format: RowFormat, text: &str) -> String {
        let value = |column: &RowColumn| match column.form {
            _ if column.name == "ts_recv" => None,
            ColumnForm::Time => Some(ColumnValue::Time(UnixNanos(1_000))),
            ColumnForm::Number => Some(ColumnValue::Number(u64::MAX)),
            ColumnForm::Price => Some(ColumnValue::Price(Price(-1))),
            ColumnForm::Size => Some(ColumnValue::Size(Decimal::from_int(1_000))),
            ColumnForm::Text => Some(ColumnValue::Text(text.to_owned().into())),
            other => panic!("trades have no {other:?}"),
        };
        let mut lines = RowLines::new(format, RowSchema::Trades, ClassSet::MARKET);
        let mut all = String::new();
        lines.begin(&mut all);
        lines.put_row(&mut all, value);
        all
    }

    #[test]
    fn rows_are_printed_in_three_forms() {
        assert_eq!(
            lines(RowFormat::Json, "a\"\n"),
            "{\"ts_event\":1000,\"ts_recv\":null,\"publisher_id\":18446744073709551615,\
             \"instrument_id\":18446744073709551615,\"action\":\"a\\\"\\n\",\"side\":\"a\\\"\\n\",\"price\":\"-0.000000001\",\
             \"size\":\"1000\",\"sequence\":18446744073709551615,\"match_id\":\"a\\\"\\n\",\"cond\":\"a\\\"\\n\",\
             \"trade_flags\":\"a\\\"\\n\",\"symbol\":\"a\\\"\\n\",\"venue\":\"a\\\"\\n\"}\n"
        );
        let header = "ts_event,ts_recv,publisher_id,instrument_id,action,side,price,size,sequence,match_id,cond,\
                      trade_flags,symbol,venue\n";
        for (text, quoted) in
            [("a", "a"), ("", "\"\""), ("a,b", "\"a,b\""), ("a\"", "\"a\"\"\""), ("a ", "\"a \"")]
        {
            let ids = "18446744073709551615";
            let row = format!(
                "1000,,{ids},{ids},{quoted},{quoted},-0.000000001,1000,{ids},{quoted},{quoted},{quoted},{quoted},{quoted}\n"
            );
            assert_eq!(lines(RowFormat::Csv, text), format!("{header}{row}"));
        }
        let table = lines(RowFormat::Table, "\u{1b}x");
        let (first, second) = table.split_once('\n').unwrap();
        assert!(first.starts_with("ts_event  ") && first.ends_with("venue"), "{first}");
        assert!(
            second.starts_with("1970-01-01 00:00:00.000001000  -  ") && !second.contains('\u{1b}'),
            "{second}"
        );
    }
    /// Checks a value in JSON, in CSV and in a table.
    #[track_caller]
    fn check(value: ColumnValue<'_>, json: &str, csv: &str, cell: &str) {
        let (mut json_line, mut csv_line) = (String::new(), String::new());
        put_json(&mut json_line, Some(value.clone()));
        put_csv(&mut csv_line, Some(value.clone()));
        assert_eq!((json_line.as_str(), csv_line.as_str(), &*cell_text(Some(value))), (json, csv, cell));
    }

    /// A list in quotes would be one text for a reader of JSON, and text that is no JSON would break the line.
    #[test]
    fn values_of_every_form_are_written() {
        let amount = Amount::parse(b"12345678901234567890.123").unwrap();
        let digits = "12345678901234567890.123";
        check(ColumnValue::Amount(amount), &format!("\"{digits}\""), digits, digits);
        let date = CivilDate::parse(b"2026-03-02").unwrap();
        check(ColumnValue::Date(date), "\"2026-03-02\"", "2026-03-02", "2026-03-02");
        check(ColumnValue::Bool(false), "false", "false", "false");
        let list = r#"["VOD","BP"]"#;
        check(ColumnValue::Json(list.into()), list, r#""[""VOD"",""BP""]""#, list);
        check(ColumnValue::Json("[1,\n2]".into()), "[1, 2]", "\"[1,\n2]\"", "[1,\\n2]");
        check(ColumnValue::Json("{".into()), "\"{\"", "{", "{");
    }

    #[test]
    fn columns_of_other_classes_are_behind_the_venue() {
        let header = |classes| {
            let mut line = String::new();
            RowLines::new(RowFormat::Csv, RowSchema::Status, classes).begin(&mut line);
            line
        };
        let default =
            "ts_event,ts_recv,publisher_id,instrument_id,kind,sequence,phase,px,state,ref,symbol,venue";
        assert_eq!(header(ClassSet::MARKET), format!("{default}\n"));
        assert_eq!(header(ClassSet::ALL), format!("{default},reason\n"));
    }
}
