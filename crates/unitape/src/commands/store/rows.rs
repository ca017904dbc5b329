//! `store scan` as rows: JSON, CSV, or a table for people.

use crate::commands::tape::utc;
use crate::output::{self, CommandFailure, plain};
use std::fmt::Write as _;
use std::io::Write;
use unitape_store::{ColumnForm, ColumnValue, RowColumn, RowScan, StoredRow};

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// One JSON object a line, with every column.
    Json,
    /// A header and a line for each row.
    Csv,
    /// Columns of even width.
    Table,
}

/// Prints the rows of a scan, `limit` at most; gives whether there was one.
pub fn print(
    scan: &mut RowScan<'_>,
    columns: &[RowColumn],
    format: RowFormat,
    limit: u64,
) -> Result<bool, CommandFailure> {
    let (mut out, mut line, mut count) = (output::stdout(), String::new(), 0);
    if format == RowFormat::Csv {
        let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
        out.write_all((names.join(",") + "\n").as_bytes())?;
    }
    while count < limit {
        let Some(row) = scan.next() else { break };
        if format == RowFormat::Table && count == 0 {
            columns.iter().for_each(|column| put_cell(&mut line, column, column.name));
            put_line(&mut out, &mut line)?;
        }
        match format {
            RowFormat::Json => put_json(&mut line, columns, &row),
            RowFormat::Csv => put_csv(&mut line, columns, &row),
            RowFormat::Table => put_row(&mut line, columns, &row),
        }
        put_line(&mut out, &mut line)?;
        count += 1;
    }
    out.flush()?;
    Ok(count > 0)
}

/// Writes a line and empties it.
fn put_line(out: &mut impl Write, line: &mut String) -> Result<(), CommandFailure> {
    line.truncate(line.trim_end().len());
    line.push('\n');
    out.write_all(line.as_bytes())?;
    line.clear();
    Ok(())
}

fn put_json(line: &mut String, columns: &[RowColumn], row: &StoredRow<'_>) {
    for (i, column) in columns.iter().enumerate() {
        _ = write!(line, "{}\"{}\":", if i == 0 { '{' } else { ',' }, column.name);
        _ = match row.value(column) {
            None => write!(line, "null"),
            Some(ColumnValue::Time(ts)) => write!(line, "{}", ts.0),
            Some(ColumnValue::Number(number)) => write!(line, "{number}"),
            Some(ColumnValue::Price(price)) => write!(line, "\"{price}\""),
            Some(ColumnValue::Size(size)) => write!(line, "\"{size}\""),
            Some(ColumnValue::Text(text)) => write!(line, "{}", serde_json::Value::from(text.as_ref())),
        };
    }
    line.push('}');
}

fn put_csv(line: &mut String, columns: &[RowColumn], row: &StoredRow<'_>) {
    for (i, column) in columns.iter().enumerate() {
        if i > 0 {
            line.push(',');
        }
        _ = match row.value(column) {
            None => Ok(()),
            Some(ColumnValue::Time(ts)) => write!(line, "{}", ts.0),
            Some(ColumnValue::Number(number)) => write!(line, "{number}"),
            Some(ColumnValue::Price(price)) => write!(line, "{price}"),
            Some(ColumnValue::Size(size)) => write!(line, "{size}"),
            // A text that is empty is not null; one with a blank at its end keeps it.
            Some(ColumnValue::Text(text))
                if text.is_empty() || text.contains([',', '"', '\n', '\r', ' ', '\t']) =>
            {
                write!(line, "\"{}\"", text.replace('"', "\"\""))
            }
            Some(ColumnValue::Text(text)) => write!(line, "{text}"),
        };
    }
}

fn put_row(line: &mut String, columns: &[RowColumn], row: &StoredRow<'_>) {
    for column in columns {
        let text = match row.value(column) {
            None => String::from("-"),
            Some(ColumnValue::Time(ts)) => utc(ts.0),
            Some(ColumnValue::Number(number)) => number.to_string(),
            Some(ColumnValue::Price(price)) => price.to_string(),
            Some(ColumnValue::Size(size)) => size.to_string(),
            Some(ColumnValue::Text(text)) => plain(&text).into_owned(),
        };
        put_cell(line, column, &text);
    }
}

/// Appends a cell: numbers to the right, text to the left.
fn put_cell(line: &mut String, column: &RowColumn, text: &str) {
    let (name, blank) = (column.name.len(), if line.is_empty() { "" } else { "  " });
    _ = match column.form {
        ColumnForm::Time => write!(line, "{blank}{text:29}"),
        ColumnForm::Number => write!(line, "{blank}{text:>0$}", name.max(10)),
        ColumnForm::Decimal => write!(line, "{blank}{text:>0$}", name.max(12)),
        ColumnForm::Text => write!(line, "{blank}{text:0$}", name),
    };
}
