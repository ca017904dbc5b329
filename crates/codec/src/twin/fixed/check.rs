//! Checks of the tests and the fuzzer: the fast path finds the same as the slow twin, however the input comes.

use super::naive;
use crate::fixed::{
    BatchReader, ColumnValue, FixedWidthDecoder, FixedWidthLayout, FramedRecord, LANES, NextRecord,
    NumberKind, RecordBatch, RecordFramer, StridedRecords,
};
use std::sync::Arc;
use unitape_base::FramedLine;

/// Every kind of column, every sign, dates and times of three origins, a header and a trailer.
pub const ALL: &str = r#"
name = "all"
record_bytes = 80
terminator = "newline"
zone = "America/New_York"
short = "pad"

[[record]]
name = "head"
role = "header"
count = "n"
column = [
  { name = "mark", length = 2, type = "literal", is = "HD" },
  { name = "day", length = 8, type = "date", form = "YYYYMMDD" },
  { name = "n", length = 6, type = "int" },
  { name = "rest", length = 64, type = "filler" },
]

[[record]]
name = "tail"
role = "trailer"
when = { mark = "TR" }
count = "n"
column = [
  { name = "mark", length = 2 },
  { name = "n", length = 6, type = "int" },
  { name = "rest", length = 72, type = "filler" },
]

[[record]]
name = "data"
column = [
  { name = "c", length = 1 },
  { name = "text", length = 6, squeeze = true },
  { name = "right", length = 4, trim = "left", pad = "*" },
  { name = "raw", length = 3, trim = "none" },
  { name = "int", length = 5, type = "int", none = ["99999"] },
  { name = "lead", length = 5, type = "int", sign = "leading" },
  { name = "trail", length = 5, type = "decimal", decimals = 2, sign = "trailing" },
  { name = "over", length = 4, type = "decimal", decimals = 1, sign = "overpunch" },
  { name = "lover", length = 3, type = "int", sign = "leading-overpunch" },
  { name = "point", length = 7, type = "decimal", sign = "leading" },
  { name = "date", length = 6, type = "date", form = "YYMMDD", pivot = 1970 },
  { name = "clock", length = 9, type = "time", form = "HHMMSSfff", date = "header.day" },
  { name = "local", length = 6, type = "time", form = "HHMMSS", date = "date", zone = "Europe/London" },
  { name = "bare", length = 5, type = "time", form = "HH:MM" },
  { name = "flag", length = 1, type = "flag", yes = ["Y", "1"], no = ["N", "0", " "] },
  { name = "big", length = 10, type = "int" },
]
"#;

/// Records without a terminator.
const PLAIN: &str = "name='x'\nterminator='none'\n[[record]]\nname='r'\n\
    column=[{name='a',length=3,type='int'},{name='b',length=2}]";

/// Records of a mainframe: EBCDIC text, zoned, packed and binary numbers, distinguished by their first character.
pub const EBCDIC: &str = r#"
name = "mainframe"
terminator = "none"
encoding = "ebcdic-037"

[[record]]
name = "tail"
role = "trailer"
when = { mark = "T" }
count = "n"
column = [
  { name = "mark", length = 1 },
  { name = "n", length = 3, type = "int", storage = "packed" },
  { name = "rest", length = 26, type = "filler" },
]

[[record]]
name = "data"
column = [
  { name = "mark", length = 1 },
  { name = "name", length = 6, squeeze = true },
  { name = "zoned", length = 4, type = "decimal", decimals = 2, sign = "overpunch" },
  { name = "packed", length = 3, type = "decimal", decimals = 2, storage = "packed" },
  { name = "wide", length = 10, type = "int", storage = "packed" },
  { name = "half", length = 2, type = "int", storage = "binary", required = true },
  { name = "count", length = 4, type = "int", storage = "unsigned" },
]
"#;

/// Checks any bytes: the first two choose a layout and the size of the pieces, the rest is the input.
///
/// # Panics
/// Panics if the fast path and the twin differ.
pub fn any_bytes(data: &[u8]) {
    let [layout_choice, piece, input @ ..] = data else { return };
    let taq = FixedWidthLayout::built_in("nyse-taq-bbo-98").unwrap_or_default();
    let text = [ALL, taq, PLAIN, EBCDIC][usize::from(*layout_choice) % 4];
    let layout = Arc::new(FixedWidthLayout::parse(text, "layout").expect("a good layout"));
    let slow = naive::decode(&layout, input);
    assert_eq!(fast(&layout, input, |_| usize::MAX / 2), slow);
    assert_eq!(fast(&layout, input, |_| usize::from(*piece) + 1), slow);
    batches(&layout, input);
    // Layouts come from outside too.
    if let Ok(text) = std::str::from_utf8(input) {
        _ = FixedWidthLayout::parse(text, "any");
    }
}

/// Batches against the decoder: the records that are framed are those it finds, and those that are said to be good
/// are, with the same values, on every kernel.
///
/// # Panics
/// Panics if the results differ.
pub fn batches(layout: &Arc<FixedWidthLayout>, input: &[u8]) {
    let mut decoder = FixedWidthDecoder::new(layout.clone());
    decoder.read_header(input);
    let mut offset = FixedWidthDecoder::head(layout, input).len();
    let kinds = 0..layout.records().len() as u16;
    let columns: Vec<Option<BatchReader>> = kinds.map(|kind| BatchReader::new(layout, kind)).collect();
    let (frames, mut framed) = (RecordFramer::new(layout), [FramedRecord::default(); LANES]);
    while offset < input.len() {
        let count = frames.frame_records(layout, input, offset, &mut framed);
        if let Some((first, uniform_count)) = frames.uniform_run(layout, input, offset) {
            assert!((1..=count).contains(&uniform_count));
            let stride = first.end as usize - offset;
            for (i, framed) in framed[..uniform_count].iter().enumerate() {
                let end = (offset + (i + 1) * stride) as u32;
                assert_eq!(*framed, FramedRecord { end, ..first });
            }
            if let Some(columns) = &columns[usize::from(first.kind)]
                && let Some(rows) =
                    StridedRecords::new(input, offset, stride, uniform_count, columns.bytes_needed())
            {
                let starts: Vec<u32> = (0..rows.count()).map(|i| (offset + i * stride) as u32).collect();
                for mut columns in [columns.clone(), columns.clone().portable()] {
                    let good =
                        columns.read_strided(&mut decoder, rows, &input[offset + uniform_count * stride..]);
                    same_values(good, &columns, &mut decoder, input, &starts);
                }
            }
        }
        let mut starts = vec![Vec::new(); columns.len()];
        for framed in &framed[..count] {
            // Not the first of a file.
            let next = decoder.next(input, offset, 1, true);
            match next {
                NextRecord::Message(line) => {
                    let kind = line.content.unwrap_or(framed.kind);
                    let actual = FramedRecord { length: line.span.len() as u32, end: line.end as u32, kind };
                    assert_eq!((line.span.start, actual), (offset, *framed));
                }
                other => panic!("{other:?} at {offset}, where a record was framed"),
            }
            starts[usize::from(framed.kind)].push(offset as u32);
            offset = framed.end as usize;
        }
        for (columns, starts) in columns.iter().zip(&mut starts) {
            let Some(columns) = columns else { continue };
            starts.retain(|start| *start as usize + columns.bytes_needed() <= input.len());
            for mut columns in [columns.clone(), columns.clone().portable()] {
                let good = columns.read_batch(&mut decoder, input, starts);
                same_values(good, &columns, &mut decoder, input, starts);
            }
        }
        if count == 0 {
            match decoder.next(input, offset, 1, true) {
                NextRecord::Message(line) => offset = line.end,
                NextRecord::Incomplete { .. } | NextRecord::End => return,
            }
        }
    }
}

fn same_values(
    good: u64,
    columns: &BatchReader,
    decoder: &mut FixedWidthDecoder,
    input: &[u8],
    starts: &[u32],
) {
    for (lane, start) in starts.iter().enumerate().filter(|(lane, _)| good >> lane & 1 == 1) {
        let next = decoder.next(input, *start as usize, 1, true);
        assert!(
            matches!(next, NextRecord::Message(FramedLine { content: Ok(_), .. })),
            "{next:?} at {start}, said to be good"
        );
        for (i, value) in decoder.values().iter().enumerate() {
            let Some((op_index, numbers)) = columns.find(i as u16) else { continue };
            let n = columns.lane_values(op_index)[lane];
            let actual = match (columns.empty_lanes(op_index) >> lane & 1, numbers) {
                (1, _) => ColumnValue::None,
                (_, NumberKind::Int) => ColumnValue::Int(n),
                (_, NumberKind::Instant) => ColumnValue::Instant(n),
                (_, NumberKind::Decimal(exponent)) => ColumnValue::Decimal { mantissa: n, exponent },
            };
            assert_eq!(actual, *value, "column {i} at {start}");
        }
    }
}

/// Decodes an input by the fast path, given to it in pieces that end where `cut` says.
pub fn fast(
    layout: &Arc<FixedWidthLayout>,
    input: &[u8],
    cut: impl Fn(usize) -> usize,
) -> Vec<naive::NaiveRecord> {
    let mut decoder = FixedWidthDecoder::new(layout.clone());
    let (mut out, mut start, mut end) = (Vec::new(), 0, cut(0).min(input.len()));
    let mut offset = 0;
    loop {
        let buf = &input[start..end];
        match decoder.next(buf, offset, start as u64, end == input.len()) {
            NextRecord::Message(line) => {
                let outcome = match line.content {
                    Ok(kind) => {
                        let record = &layout.records()[usize::from(kind)];
                        let raw = decoder.record(line.span.slice(buf));
                        let mut fields = Vec::new();
                        for (column, value) in record.columns().iter().zip(decoder.values()) {
                            if *value != ColumnValue::None && column.is_output() {
                                let mut text = Vec::new();
                                value.write(raw, column.collapses_blanks(), &mut text);
                                fields.push((column.name().to_owned(), text));
                            }
                        }
                        Ok((record.name().to_owned(), fields))
                    }
                    Err(fault) => {
                        assert!(!fault.text(layout, line.span.slice(buf)).is_empty());
                        Err(fault.code)
                    }
                };
                let (offset_in_file, length) = (start + line.span.start, line.span.len());
                out.push(naive::NaiveRecord { offset: offset_in_file, length, outcome });
                offset = line.end;
            }
            NextRecord::Incomplete { from, need } => {
                assert!(need > buf.len(), "more is asked for than is there");
                start += from;
                offset = 0;
                end = (start + need).max(end + cut(end).max(1)).min(input.len());
            }
            NextRecord::End => return out,
        }
    }
}
