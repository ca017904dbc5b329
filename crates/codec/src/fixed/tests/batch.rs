//! Columns of many records at once against the decoder, record by record: what is said to be good is, with the
//! same values, on every kernel; and plain records are good.

use crate::fixed::{
    BatchReader, ColumnValue, FixedWidthDecoder, FixedWidthLayout, FramedRecord, LANES, NextRecord,
    NumberKind, RecordFramer, StridedRecords,
};
use crate::times::CachedTimeZone;
use crate::times::calendar::{DAY_NANOS, days};
use proptest::prelude::*;
use std::sync::Arc;

const LAYOUT: &str = r#"
name = "x"
terminator = "newline"
zone = "America/New_York"
[[record]]
name = "head"
role = "header"
column = [{ name = "day", length = 8, type = "date", form = "YYYYMMDD" }]
[[record]]
name = "data"
column = [
  { name = "clock", length = 9, type = "time", form = "HHMMSSfff", date = "header.day" },
  { name = "fine", length = 15, type = "time", form = "HHMMSSfffffffff", date = "header.day", trim = "none" },
  { name = "stamp", length = 16, type = "timestamp", form = "YYYYMMDDHHMMSSff" },
  { name = "one", length = 1, type = "int" },
  { name = "eight", length = 8, type = "int", none = ["00000000", "99999999"] },
  { name = "right", length = 5, type = "int", trim = "right" },
  { name = "left", length = 5, type = "int", trim = "left", pad = "*" },
  { name = "exact", length = 5, type = "int", trim = "none" },
  { name = "must", length = 3, type = "decimal", decimals = 2, required = true },
  { name = "sixteen", length = 16, type = "decimal", decimals = 4 },
  { name = "long", length = 19, type = "decimal", decimals = 9, none = ["0000000000000000000"] },
  { name = "sign", length = 4, type = "int", sign = "trailing" },
  { name = "text", length = 3, required = true },
  { name = "flag", length = 1, type = "flag" },
  { name = "end", length = 2, type = "literal", is = "ok", required = true },
]
"#;

fn number(width: usize) -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::collection::vec(b'0'..=b'9', width).prop_map(|d| String::from_utf8(d).unwrap()),
        2 => (any::<u64>(), 0..=width).prop_map(move |(n, w)| {
            let digits = format!("{n:020}");
            format!("{:>width$}", &digits[20 - w.min(20)..])
        }),
        1 => Just("0".repeat(width)),
        1 => Just("9".repeat(width)),
        1 => Just(" ".repeat(width)),
        1 => Just("*".repeat(width)),
        1 => proptest::string::string_regex(&format!("[ *0-9]{{{width}}}")).unwrap(),
    ]
}

fn time(more: usize) -> impl Strategy<Value = String> {
    prop_oneof![
        8 => (0..25u8, 0..61u8, 0..61u8, number(more)).prop_map(|(h, m, s, f)| format!("{h:02}{m:02}{s:02}{f}")),
        1 => number(6 + more),
    ]
}

fn data() -> impl Strategy<Value = String> {
    let stamp =
        (1677..2263u32, 0..14u8, 0..32u8, time(2)).prop_map(|(y, m, d, t)| format!("{y:04}{m:02}{d:02}{t}"));
    let stamp = prop_oneof![8 => stamp, 1 => Just(" ".repeat(16))];
    let end = prop_oneof![15 => Just("ok"), 1 => Just("no")];
    let times = (time(3), time(9), stamp);
    let small = (number(1), number(8), number(5), number(5), number(5), number(3));
    let rest = (number(16), number(19), "[0-9]{3}[-+ ]|[ ]{4}", "[A ]{3}", "[YN ?]", end);
    (times, small, rest).prop_map(|((a, b, c), (d, e, f, g, h, i), (j, k, l, m, n, o))| {
        [&a, &b, &c, &d, &e, &f, &g, &h, &i, &j, &k, &l, &m, &n, o].map(|s: &str| s.to_owned()).concat()
    })
}

/// Records in which all numbers are digits alone and all else is as it should be.
fn plain() -> impl Strategy<Value = String> {
    let clock = "([01][0-9]|2[0-3])[0-5][0-9][0-5][0-9]";
    // No day has a change of the clock.
    let stamp = format!("20[0-2][0-9]0[5-8](0[1-9]|1[0-9]|2[0-8]){clock}07");
    let numbers = "[0-9]{43}0[0-9]{18}123[+]";
    proptest::string::string_regex(&format!("{clock}[0-9]{{3}}{clock}[0-9]{{9}}{stamp}{numbers}AAAYok"))
        .unwrap()
}

fn check(head: &str, records: &[String]) {
    let layout = Arc::new(FixedWidthLayout::parse(LAYOUT, "x").unwrap());
    let mut input = format!("{head}\n");
    let at = input.len();
    records.iter().for_each(|r| input += &format!("{r}\n"));
    // Room for a load after the last.
    input += &" ".repeat(16);
    let bytes = input.as_bytes();
    let mut decoder = FixedWidthDecoder::new(layout.clone());
    decoder.read_header(&bytes[..at]);
    let mut framed = [FramedRecord::default(); LANES];
    let count = RecordFramer::new(&layout).frame_records(&layout, bytes, at, &mut framed);
    assert_eq!(count, records.len());
    let ends = framed[..count].iter().map(|f| f.end);
    let starts: Vec<u32> = std::iter::once(at as u32).chain(ends).take(count).collect();
    let fast = BatchReader::new(&layout, 1).unwrap();
    let stride = records[0].len() + 1;
    let even = StridedRecords::new(bytes, at, stride, count, fast.bytes_needed()).unwrap();
    for mut columns in [fast.clone(), fast.portable()] {
        // The second time it is known which columns are odd; the third uses their distance, and the last starts
        // afresh.
        let mut fresh = columns.clone();
        for _ in 0..2 {
            let good = columns.read_batch(&mut decoder, bytes, &starts);
            hold(good, &columns, &mut decoder, head, records, (bytes, &starts));
        }
        let good = columns.read_strided(&mut decoder, even, &[]);
        hold(good, &columns, &mut decoder, head, records, (bytes, &starts));
        let good = fresh.read_strided(&mut decoder, even, &[]);
        hold(good, &fresh, &mut decoder, head, records, (bytes, &starts));
    }
}

fn is_good_record(next: NextRecord) -> bool {
    matches!(next, NextRecord::Message(line) if line.content.is_ok())
}

/// The batch reads the same values as the decoder.
fn hold(
    good: u64,
    columns: &BatchReader,
    decoder: &mut FixedWidthDecoder,
    head: &str,
    records: &[String],
    (bytes, starts): (&[u8], &[u32]),
) {
    for (lane, start) in starts.iter().enumerate() {
        let next = decoder.next(bytes, *start as usize, 0, false);
        let is_good = good >> lane & 1 == 1;
        if !is_good {
            let odd = is_odd(head, &records[lane]);
            assert!(odd || !is_good_record(next), "{}", records[lane]);
            continue;
        }
        assert!(is_good_record(next), "{next:?} {}", records[lane]);
        for (i, value) in decoder.values().iter().enumerate() {
            let Some((place, numbers)) = columns.find(i as u16) else { continue };
            let found = match (columns.empty_lanes(place) >> lane & 1, numbers) {
                (1, _) => ColumnValue::None,
                (_, NumberKind::Int) => ColumnValue::Int(columns.lane_values(place)[lane]),
                (_, NumberKind::Instant) => ColumnValue::Instant(columns.lane_values(place)[lane]),
                (_, NumberKind::Decimal(exponent)) => {
                    ColumnValue::Decimal { mantissa: columns.lane_values(place)[lane], exponent }
                }
            };
            assert_eq!(found, *value, "column {i} of {}", records[lane]);
        }
    }
}

/// Whether a record of the layout is left to the decoder, good or not: one with padding, a leap second, or a day with a change
/// of the clock or at the end of what nanoseconds count.
fn is_odd(head: &str, record: &str) -> bool {
    let is_padded = record.bytes().any(|b| b == b' ' || b == b'*');
    let has_leap_second = ["HHMM", "HHMMSSfffHHMM", "HHMMSSfffHHMMSSfffffffffYYYYMMDDHHMM"]
        .iter()
        .any(|before| record.get(before.len()..before.len() + 2) == Some("60"));
    let has_whole_day = |date: &str| {
        let part = |range: std::ops::Range<usize>| date.get(range)?.parse().ok();
        let day = days(part(0..4)?, part(4..6)?, part(6..8)?)?;
        CachedTimeZone::by_name("America/New_York").unwrap().day_start(day)?.checked_add(DAY_NANOS)
    };
    let stamp = record.get(24..32).unwrap_or_default();
    is_padded || has_leap_second || [head, stamp].iter().any(|date| has_whole_day(date).is_none())
}

proptest! {
    /// Blanks before the digits, after them, between them; nineteen digits, which 64 bits do not always hold.
    #[test]
    fn as_the_decoder_reads_them(
        records in prop::collection::vec(data(), 1..LANES),
        head in prop_oneof![4 => Just("20140206"), 1 => Just("20140309"), 1 => Just("2014 206")],
    ) {
        check(head, &records);
    }

    /// A column that is read four records at a time is never odd; nor is the rest of it.
    #[test]
    fn digits_alone_are_read_so(
        records in prop::collection::vec(plain(), 1..=LANES),
        odd in prop::option::of((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut records = records;
        if let Some((record, at, byte)) = odd {
            let record = record.get_mut(&mut records);
            let at = at.index(record.len());
            let byte = if matches!(byte, b'\n' | b'\r' | 0x80..) { ';' } else { char::from(byte) };
            record.replace_range(at..=at, &byte.to_string());
        }
        check("20140206", &records);
    }

    /// A line end inside a record, or one that is not where it should be, makes another record of it.
    #[test]
    fn frames_are_the_decoders(
        input in prop_oneof![
            prop::collection::vec(prop_oneof![30 => Just(b'7'), 1 => Just(b'\n'), 1 => Just(b'\r')], 1..400),
            prop::collection::vec(prop_oneof![9 => Just("77777"), 1 => Just("7777"), 1 => Just("7777\r"), 1 => Just("\r7777")], 1..90)
                .prop_flat_map(|records| (Just(records), prop::sample::select(vec!["\n", "\r\n", ""])))
                .prop_map(|(records, end)| records.join(end).into_bytes()),
        ],
        which in 0usize..3,
    ) {
        let text = ["newline", "crlf", "none"].map(|t| {
            format!("name='x'\nterminator='{t}'\n[[record]]\nname='r'\ncolumn=[{{name='a',length=5}}]")
        });
        let layout = Arc::new(FixedWidthLayout::parse(&text[which], "x").unwrap());
        let mut decoder = FixedWidthDecoder::new(layout.clone());
        let mut framed = [FramedRecord::default(); LANES];
        for at in 0..input.len() {
            let count = RecordFramer::new(&layout).frame_records(&layout, &input, at, &mut framed);
            if let Some((first, even)) = RecordFramer::new(&layout).uniform_run(&layout, &input, at) {
                prop_assert!(even >= 1 && even <= count);
                let whole = first.end as usize - at;
                for (i, framed) in framed[..even].iter().enumerate() {
                    prop_assert_eq!((framed.length, framed.kind), (first.length, first.kind));
                    prop_assert_eq!(framed.end as usize, at + (i + 1) * whole);
                }
            }
            let mut next = at;
            for framed in &framed[..count] {
                let found = decoder.next(&input, next, 1, false);
                let NextRecord::Message(line) = found else { panic!("{found:?}") };
                prop_assert!(line.content.is_ok());
                let actual = (line.span.start, line.span.len(), line.end);
                prop_assert_eq!(actual, (next, framed.length as usize, framed.end as usize));
                next = line.end;
            }
        }
    }
}
