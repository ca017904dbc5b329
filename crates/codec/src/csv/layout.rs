//! Layouts: how a file is written, read from TOML and checked.

use super::needs::ColumnNeeds;
use crate::charset::Charset;
use crate::fixed::Error;
use crate::fixed::inside::{
    ColumnLayout, ColumnLayoutConfig, CsvTimeKeys, RecordLayout, build_csv_columns, parse_day,
};
use crate::times::{AmbiguousTimes, CachedTimeZone};
use serde::Deserialize;
use toml::Spanned;

/// A layout that holds together.
#[derive(Debug, Clone)]
pub struct CsvLayout {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) separator: u8,
    /// The layout names its separator: a file must not state another.
    pub(crate) states_separator: bool,
    /// Lines at the start of the file that say nothing.
    pub(crate) lines_skipped: usize,
    /// The header is the first line that has all columns.
    pub(crate) finds_header: bool,
    pub(crate) quote: Option<u8>,
    pub(crate) comment: Option<u8>,
    pub(crate) encoding: TextEncoding,
    pub(crate) header: bool,
    /// A row may end early, the rest is blank.
    pub(crate) pad: bool,
    pub(crate) row_bytes_max: usize,
    pub(crate) day: Option<i32>,
    pub(crate) trailer: Option<CsvTrailerLayout>,
    /// The columns as the layout describes them.
    pub(crate) row: RecordLayout,
    pub(crate) zone_caches: Vec<CachedTimeZone>,
    /// The zone of the layout, among them.
    pub(crate) default_zone: Option<u16>,
    /// Further columns, of which a header must have some.
    pub(crate) column_needs: ColumnNeeds,
}

/// How the last row is known, and where in it is how many rows there are.
#[derive(Debug, Clone)]
pub(crate) struct CsvTrailerLayout {
    pub first_value: Vec<u8>,
    /// From 0.
    pub count: Option<usize>,
    /// Its values have names of their own.
    pub columns: Vec<String>,
}

/// Maximum bytes of a row, unless its layout says less or more; 4 MiB at most.
pub const ROW_BYTES_MAX: usize = 64 << 10;

const ROW_BYTES_LIMIT: usize = 4 << 20;

/// Lines to be skipped at the start of a file, at most.
const SKIP_LINES_MAX: usize = 1_000;

/// Bytes of the lines before a header, at most.
pub(super) const PREAMBLE_BYTES_MAX: usize = 64 << 10;

/// Maximum values of a row.
pub(super) const VALUES_MAX: usize = 4096;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CsvLayoutConfig {
    name: Spanned<String>,
    #[serde(default)]
    title: String,
    separator: Option<CsvSeparator>,
    skip: Option<Spanned<usize>>,
    #[serde(default = "double_quote")]
    quote: Spanned<String>,
    comment: Option<Spanned<String>>,
    encoding: Option<Spanned<String>>,
    header: Option<Spanned<HeaderConfig>>,
    #[serde(default)]
    short: ShortRowPolicy,
    row_bytes_max: Option<Spanned<usize>>,
    day: Option<Spanned<String>>,
    zone: Option<Spanned<String>>,
    ambiguous: Option<Spanned<String>>,
    pivot: Option<Spanned<i64>>,
    trailer: Option<Spanned<CsvTrailerConfig>>,
    #[serde(default)]
    column: Vec<Spanned<ColumnLayoutConfig>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CsvTrailerConfig {
    /// The first value of a trailer.
    first: String,
    /// Names of its values, the first included.
    #[serde(default)]
    columns: Vec<String>,
    /// The one of them that counts the rows.
    count: Option<Spanned<String>>,
}

/// Where the header is: `true`, `false` or `"find"`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum HeaderConfig {
    Is(bool),
    Word(String),
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum CsvSeparator {
    #[default]
    Comma,
    Tab,
    Pipe,
    Semicolon,
}

/// How text that is not ASCII is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextEncoding {
    Utf8,
    Declared(Charset),
}

impl TextEncoding {
    /// Looks up the encoding `name` for rows with this separator.
    fn by_name(name: &str, separator: u8) -> Result<Self, String> {
        match Charset::by_name(name) {
            Some(charset) if charset == Charset::UTF_8 => Ok(Self::Utf8),
            Some(charset) if !charset.keeps_ascii() => {
                Err(format!("encoding: `{charset}` is no superset of ASCII: convert the file to UTF-8"))
            }
            // A byte of a character of two may be a `|`, but no comma, semicolon or tab.
            Some(charset) if separator == b'|' && !charset.is_single_byte() => Err(format!(
                "encoding: in `{charset}` a `|` may be part of a character: convert the file to UTF-8"
            )),
            Some(charset) => Ok(Self::Declared(charset)),
            None => Err(format!("encoding: the set of characters `{name}` is not known")),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ShortRowPolicy {
    #[default]
    Error,
    Pad,
}

fn double_quote() -> Spanned<String> {
    Spanned::new(0..0, "\"".to_owned())
}

impl CsvLayout {
    /// Returns the name of the character set, for errors.
    pub(super) fn encoding_name(&self) -> String {
        match self.encoding {
            TextEncoding::Utf8 => "UTF-8".to_owned(),
            TextEncoding::Declared(charset) => format!("in the set of characters `{charset}`"),
        }
    }

    /// Reads a layout; `origin` names it in errors.
    ///
    /// # Errors
    /// Fails if the text is no layout; the error has the line.
    pub fn parse(text: &str, origin: &str) -> Result<Self, Error> {
        let error_at = |offset: usize, reason: String| {
            let text_before = text.as_bytes().get(..offset).unwrap_or_default();
            let line = 1 + text_before.iter().filter(|b| **b == b'\n').count();
            Error::Layout { origin: origin.to_owned(), line, reason }
        };
        let parsed: Result<CsvLayoutConfig, _> = toml::from_str(text);
        let parsed = parsed.map_err(|e| error_at(e.span().map_or(0, |s| s.start), e.message().to_owned()))?;
        build_layout(parsed).map_err(|(offset, reason)| error_at(offset, reason))
    }

    /// Looks up a shipped layout by name and returns its text.
    #[must_use]
    pub fn built_in(name: &str) -> Option<&'static str> {
        BUILT_IN.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
    }

    /// Lists the names of the shipped layouts.
    pub fn all_built_in() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// Returns the layout's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the title, one line for people.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns the columns that the layout names.
    #[must_use]
    pub fn row(&self) -> &RecordLayout {
        &self.row
    }

    /// Adds a text column for each of `names`; the header must have these columns. A column that the layout already
    /// names stays unchanged.
    #[must_use]
    pub fn with_text_columns<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Self {
        let mut this = self.clone();
        for name in names {
            if this.row.find(name).is_none() {
                this.row.push(ColumnLayout::text_column(name));
            }
        }
        this
    }

    /// Sets the choices of columns; a header must have a column of each choice. A decoder refuses other headers.
    #[must_use]
    pub fn with_needs(mut self, needs: ColumnNeeds) -> Self {
        self.column_needs = needs;
        self
    }

    /// Returns the column names of the header. A column that is read in two ways occurs twice.
    pub fn header_names(&self) -> impl Iterator<Item = &str> {
        self.row.columns().iter().map(ColumnLayout::source)
    }

    /// Returns the header's name for the column `name`; `None` if the layout does not list the column.
    #[must_use]
    pub fn header_name(&self, name: &str) -> Option<&str> {
        self.row.find(name).map(|i| self.row.columns()[i].source())
    }

    /// Returns whether the first row names the columns.
    #[must_use]
    pub fn has_header(&self) -> bool {
        self.header
    }

    /// Returns whether the time in any column depends on earlier times in the source.
    #[must_use]
    pub fn needs_order(&self) -> bool {
        self.zone_caches.iter().any(|zone| zone.ambiguous() == AmbiguousTimes::ByOrder)
    }

    /// Returns the maximum length of a row, in bytes.
    #[must_use]
    pub fn row_bytes_max(&self) -> usize {
        self.row_bytes_max
    }

    /// Sets the choice for local times that occur twice or never.
    #[must_use]
    pub fn with_ambiguous(mut self, ambiguous: AmbiguousTimes) -> Self {
        self.row.set_ambiguous(ambiguous, &mut self.zone_caches);
        self
    }

    /// Adds the column `name`, which reads the file's column `source` as a time in `form`. The form is a date with a
    /// time, a time on the file's day, or a date.
    ///
    /// # Errors
    /// Fails if the form is invalid; the text says why.
    pub fn with_time_column(&self, name: &str, source: &str, form: &str) -> Result<Self, String> {
        let mut this = self.clone();
        if this.row.find(name).is_none() {
            let column =
                ColumnLayout::time_column(name, source, form, &mut this.zone_caches, self.default_zone)?;
            this.row.push(column);
        }
        Ok(this)
    }

    /// Returns the maximum number of bytes at the start of a file that a decoder must see if it begins further on.
    #[must_use]
    pub fn head_bytes(&self) -> usize {
        // Comments may precede a header.
        let preamble_max = if self.lines_skipped > 0 || self.finds_header { PREAMBLE_BYTES_MAX } else { 0 };
        preamble_max + 2 * self.row_bytes_max
    }

    /// Finds the day in a file name: the last `YYYYMMDD`, `YYYY-MM-DD` or `YYYY_MM_DD` in it that is a valid day.
    pub(crate) fn day_of(name: &str) -> Option<i32> {
        let bytes = name.as_bytes();
        let day = |start: usize| {
            let compact_day = bytes.get(start..start + 8).and_then(parse_day);
            compact_day.or_else(|| match bytes.get(start..start + 10)? {
                &[a, b, c, d, x @ (b'-' | b'_'), e, f, y, g, h] if x == y => {
                    parse_day(&[a, b, c, d, e, f, g, h])
                }
                _ => None,
            })
        };
        (0..bytes.len()).rev().find_map(day)
    }
}

fn build_layout(text: CsvLayoutConfig) -> Result<CsvLayout, (usize, String)> {
    let fail = |offset: usize, reason: String| Err((offset, reason));
    let states_separator = text.separator.is_some();
    let (header, finds_header) = match &text.header {
        None => (true, false),
        Some(header) => match header.get_ref() {
            HeaderConfig::Is(is) => (*is, false),
            HeaderConfig::Word(word) if word == "find" && !text.column.is_empty() => (true, true),
            HeaderConfig::Word(word) if word == "find" => {
                let reason = "header = \"find\" looks for the columns in [[column]]: name them".to_owned();
                return fail(header.span().start, reason);
            }
            HeaderConfig::Word(word) => {
                let reason = format!("header: true, false or \"find\", not \"{word}\"");
                return fail(header.span().start, reason);
            }
        },
    };
    let skip = match &text.skip {
        None => 0,
        Some(n) if *n.get_ref() <= SKIP_LINES_MAX => *n.get_ref(),
        Some(n) => {
            return fail(
                n.span().start,
                format!("skip: lines at the start of the file, {SKIP_LINES_MAX} at most"),
            );
        }
    };
    let separator = match text.separator.unwrap_or_default() {
        CsvSeparator::Comma => b',',
        CsvSeparator::Tab => b'\t',
        CsvSeparator::Pipe => b'|',
        CsvSeparator::Semicolon => b';',
    };
    let quote = match text.quote.get_ref().as_bytes() {
        b"none" => None,
        [byte @ (b'"' | b'\'' | b'`')] => Some(*byte),
        _ => return fail(text.quote.span().start, "quote: `\"`, `'`, or none".to_owned()),
    };
    let comment = match text.comment.as_ref().map(|c| (c.span().start, c.get_ref().as_bytes())) {
        None => None,
        Some((_, [byte])) if byte.is_ascii_graphic() && *byte != separator && Some(*byte) != quote => {
            Some(*byte)
        }
        Some((offset, _)) => {
            return fail(offset, "comment: one character that is neither separator nor quote".to_owned());
        }
    };
    let row_bytes_max = match &text.row_bytes_max {
        None => ROW_BYTES_MAX,
        Some(n) if (16..=ROW_BYTES_LIMIT).contains(n.get_ref()) => *n.get_ref(),
        Some(n) => return fail(n.span().start, format!("row_bytes_max: 16 to {ROW_BYTES_LIMIT}")),
    };
    let day = match &text.day {
        None => None,
        Some(day) => match CsvLayout::day_of(&day.get_ref().replace('-', "")) {
            Some(days) => Some(days),
            None => return fail(day.span().start, "day: YYYY-MM-DD".to_owned()),
        },
    };
    let trailer = match text.trailer {
        None => None,
        Some(trailer) => {
            let (offset, trailer) = (trailer.span().start, trailer.into_inner());
            if trailer.first.is_empty() {
                return fail(offset, "trailer: `first` is what its first value is".to_owned());
            }
            let count = match &trailer.count {
                None => None,
                Some(name) => match trailer.columns.iter().position(|c| c == name.get_ref()) {
                    Some(i) => Some(i),
                    None => {
                        let reason = format!("count: the trailer has no column `{}`", name.get_ref());
                        return fail(name.span().start, reason);
                    }
                },
            };
            Some(CsvTrailerLayout {
                first_value: trailer.first.into_bytes(),
                count,
                columns: trailer.columns,
            })
        }
    };
    if !header && text.column.is_empty() {
        let reason = "without a header the layout must name all columns in [[column]]".to_owned();
        return fail(text.name.span().start, reason);
    }
    let encoding = match &text.encoding {
        None => TextEncoding::Utf8,
        Some(name) => match TextEncoding::by_name(name.get_ref(), separator) {
            Ok(encoding) => encoding,
            Err(reason) => return fail(name.span().start, reason),
        },
    };
    // The layout's own zone is the first.
    let zone = text.zone.is_some().then_some(0);
    let keys = CsvTimeKeys { zone: text.zone, ambiguous: text.ambiguous, pivot: text.pivot };
    let (row, zones) = build_csv_columns(text.name, keys, text.column)?;
    let pad = text.short == ShortRowPolicy::Pad;
    Ok(CsvLayout {
        name: row.name().to_owned(),
        title: text.title,
        separator,
        states_separator,
        lines_skipped: skip,
        finds_header,
        quote,
        comment,
        encoding,
        header,
        pad,
        row_bytes_max,
        day,
        trailer,
        row: row.with_name("row"),
        zone_caches: zones,
        default_zone: zone,
        column_needs: ColumnNeeds::default(),
    })
}

const BUILT_IN: &[(&str, &str)] = &[
    ("nyse-taq-trades", include_str!("../../../../mappings/layouts/nyse-taq-trades.toml")),
    ("nyse-taq-quotes", include_str!("../../../../mappings/layouts/nyse-taq-quotes.toml")),
    ("nyse-taq-nbbo", include_str!("../../../../mappings/layouts/nyse-taq-nbbo.toml")),
    ("nyse-taq-master", include_str!("../../../../mappings/layouts/nyse-taq-master.toml")),
    ("binance-trades", include_str!("../../../../mappings/layouts/binance-trades.toml")),
    ("binance-futures-trades", include_str!("../../../../mappings/layouts/binance-futures-trades.toml")),
    ("binance-agg-trades", include_str!("../../../../mappings/layouts/binance-agg-trades.toml")),
    ("binance-klines", include_str!("../../../../mappings/layouts/binance-klines.toml")),
    ("dukascopy-ticks", include_str!("../../../../mappings/layouts/dukascopy-ticks.toml")),
    ("histdata-ticks", include_str!("../../../../mappings/layouts/histdata-ticks.toml")),
    ("histdata-bars", include_str!("../../../../mappings/layouts/histdata-bars.toml")),
    ("truefx-ticks", include_str!("../../../../mappings/layouts/truefx-ticks.toml")),
    ("mt5-ticks", include_str!("../../../../mappings/layouts/mt5-ticks.toml")),
    ("mt5-bars", include_str!("../../../../mappings/layouts/mt5-bars.toml")),
    ("lobster", include_str!("../../../../mappings/layouts/lobster.toml")),
];

#[cfg(test)]
mod tests {
    use crate::charset::Charset;
    use crate::csv::{CsvLayout, decode_json};
    use std::sync::Arc;

    fn printed(encoding: &str, separator: &str, rows: &[u8]) -> Result<String, String> {
        let text = format!(
            "name='x'\nseparator='{separator}'\nencoding='{encoding}'\n[[column]]\nname='t'\ntype='text'\n[[column]]\nname='u'\ntype='text'\n"
        );
        let layout = Arc::new(CsvLayout::parse(&text, "x.toml").map_err(|e| e.to_string())?);
        let mut out = Vec::new();
        decode_json(&mut &rows[..], "f", &layout, &mut out).unwrap();
        Ok(String::from_utf8(out).unwrap())
    }

    // A layout knew two names of the hundreds that files are written in.
    #[test]
    fn rows_are_read_in_the_set_that_the_layout_names() {
        for (encoding, separator, rows, want) in [
            ("IBM850", "semicolon", &b"t;u\nGr\x81\xe1e;1\n"[..], "Gr\u{fc}\u{df}e"),
            ("cp437", "comma", b"t,u\nna\x8bve,1\n", "na\u{ef}ve"),
            ("koi8-r", "pipe", b"t|u\n\xc2\xc1\xce\xcb|1\n", "\u{431}\u{430}\u{43d}\u{43a}"),
            ("Shift_JIS", "comma", b"t,u\n\x83\x65\x83\x58,1\n", "\u{30c6}\u{30b9}"),
            ("gbk", "tab", b"t\tu\n\xc4\xe3\t1\n", "\u{4f60}"),
            ("latin1", "comma", b"t,u\n5 \x80,1\n", "5 \u{20ac}"),
            ("utf-8", "comma", "t,u\n\u{e9},1\n".as_bytes(), "\u{e9}"),
        ] {
            let lines = printed(encoding, separator, rows).unwrap();
            assert!(lines.contains(want), "{encoding}: {lines}");
        }
        let lines = printed("euc-kr", "comma", b"t,u\n\xbe\xc8,1\n\xbe,2\nx,3\n").unwrap();
        assert!(lines.contains("column t is not in the set of characters `EUC-KR`"), "{lines}");
        assert!(lines.contains("\u{c548}") && lines.contains("\"x\""), "{lines}");
        for (encoding, separator, words) in [
            ("klingon", "comma", "`klingon` is not known"),
            ("utf-16", "comma", "superset of ASCII"),
            ("big5", "pipe", "may be part of a character"),
        ] {
            let error = printed(encoding, separator, b"").unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        assert!(Charset::by_name("big5").is_some_and(|charset| !charset.is_single_byte()));
    }
}
