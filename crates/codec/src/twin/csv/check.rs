//! Checks of the tests and the fuzzer: the fast path finds the same as the slow twin, however the input comes.

use super::naive;
use super::naive::{NaiveRow, RowContent};
use crate::csv::{CsvLayout, CsvRowDecoder, CsvRowKind, NextCsvRow};
use crate::fixed::ColumnValue;
use std::sync::Arc;

/// Quotes, comments, a trailer, every kind of column, and rows that are soon too long.
pub const ALL: &str = r##"
name = "all"
comment = "#"
row_bytes_max = 40
zone = "Europe/London"
trailer = { first = "END", columns = ["mark", "n"], count = "n" }
column = [
  { name = "t", type = "time", form = "HHMM", date = "file" },
  { name = "d", type = "date", form = "YYMMDD", pivot = 1970 },
  { name = "at", type = "time", form = "HHMM", date = "d" },
  { name = "n", type = "int", sign = "leading", none = ["-", "NA"] },
  { name = "p", type = "decimal", sign = "leading", required = true },
  { name = "s", squeeze = true },
  { name = "f", type = "flag", yes = ["Y", "1"] },
  { name = "m", type = "decimal", point = ",", thousands = ".", negative = ["trailing", "parentheses"] },
]
"##;

/// No header, no quotes, short rows are filled.
pub const BARE: &str = "name='bare'\nseparator='semicolon'\nquote='none'\nheader=false\nshort='pad'\nday='2014-02-06'\n\
    column=[{name='a',type='int'},{name='b'},{name='c',type='literal',is='x'}]";

/// A byte a character, in single quotes.
pub const LATIN: &str = "name='latin'\nseparator='tab'\nquote=\"'\"\nencoding='windows-1252'\n\
    trailer={first='é',columns=['mark']}\ncolumn=[{name='p',type='decimal'},{name='é',squeeze=true}]";

/// Checks any bytes: the first two choose a layout and the size of the pieces, the rest is the input.
///
/// # Panics
/// Panics if the fast path and the twin differ.
pub fn any_bytes(data: &[u8]) {
    let [layout_choice, piece, input @ ..] = data else { return };
    let taq = CsvLayout::built_in("nyse-taq-trades").unwrap_or_default();
    let text = [ALL, taq, BARE, LATIN][usize::from(*layout_choice) % 4];
    let layout = Arc::new(CsvLayout::parse(text, "layout").expect("a good layout"));
    assert_agree(&layout, "x_20161024.csv", input, usize::from(*piece) + 1);
    // Layouts come from outside too.
    if let Ok(text) = std::str::from_utf8(input) {
        _ = CsvLayout::parse(text, "any");
    }
}

/// Checks that both paths agree, on the whole input and in pieces, on every kernel.
///
/// # Panics
/// Panics if the results differ.
pub fn assert_agree(layout: &Arc<CsvLayout>, name: &str, input: &[u8], piece: usize) {
    let slow = naive::decode(layout, name, input);
    let decoder = CsvRowDecoder::new(layout.clone());
    for decoder in [decoder.clone(), decoder.portable()] {
        assert_eq!(fast(decoder.clone(), name, input, usize::MAX / 2), slow);
        assert_eq!(fast(decoder, name, input, piece), slow);
    }
}

/// Decodes an input by the fast path, given to it in pieces.
pub fn fast(mut decoder: CsvRowDecoder, name: &str, input: &[u8], piece: usize) -> Vec<NaiveRow> {
    decoder.set_name(name);
    let (mut out, mut start, mut end) = (Vec::new(), 0, piece.min(input.len()));
    let mut offset = 0;
    loop {
        let buf = &input[start..end];
        let next = decoder.next(buf, offset, start as u64, end == input.len());
        let row = match next {
            NextCsvRow::Message(row) => row,
            NextCsvRow::Incomplete { from, need } => {
                assert!(need > buf.len(), "more is asked for than is there");
                start += from;
                offset = 0;
                end = (start + need).max(end + piece).min(input.len());
                continue;
            }
            NextCsvRow::End => return out,
        };
        let outcome = match row.content {
            Ok(CsvRowKind::Header) => Ok(RowContent::Header(decoder.names().to_vec())),
            Ok(CsvRowKind::Row) => {
                let record = decoder.record(row.span.slice(buf));
                let mut fields = Vec::new();
                let columns = decoder.layout().row().columns().iter();
                for (column, value) in columns.zip(decoder.values()) {
                    if *value != ColumnValue::None && column.is_output() {
                        let mut text = Vec::new();
                        value.write(record, column.collapses_blanks(), &mut text);
                        fields.push((column.name().to_owned(), text));
                    }
                }
                let extra_fields =
                    decoder.extra_values(record).map(|(name, text)| (name.to_owned(), text.to_vec()));
                fields.extend(extra_fields);
                Ok(RowContent::Row(fields))
            }
            Ok(CsvRowKind::Trailer(count)) => {
                assert!(decoder.trailer(decoder.record(row.span.slice(buf))).count() > 0);
                Ok(RowContent::Trailer(count))
            }
            Err(fault) => {
                assert!(!decoder.explain(&fault, row.span.slice(buf)).is_empty());
                assert!(row.end > offset, "it makes progress");
                Err(fault.code.as_str())
            }
        };
        out.push(NaiveRow { offset: start + row.span.start, length: row.span.len(), outcome });
        offset = row.end;
    }
}
