//! Layouts that cannot be: each once decoded something into nonsense without a word.

use crate::fixed::FixedWidthLayout;

fn error(text: &str) -> String {
    FixedWidthLayout::parse(text, "l.toml").map_or_else(|e| e.to_string(), |_| "no error".to_owned())
}

#[test]
fn the_shipped_layouts_are_whole() {
    for name in FixedWidthLayout::all_built_in() {
        let layout = FixedWidthLayout::parse(FixedWidthLayout::built_in(name).unwrap(), name)
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(layout.name(), name);
    }
}

#[test]
fn mistakes_with_their_line() {
    const HEAD: &str = "name = 'x'\nterminator = 'newline'\nrecord_bytes = 10\n[[record]]\nname = 'r'\n";
    for (rest, says) in [
        (
            "column = [\n{ name = 'a', length = 6 },\n{ name = 'b', start = 5, length = 6 },\n]",
            "l.toml:8: column `b` begins at byte 5, inside `a`",
        ),
        (
            "column = [\n{ name = 'a', length = 4 },\n{ name = 'b', start = 6, length = 5 },\n]",
            "l.toml:8: bytes 5 to 5 belong to no column; name them, or say type = \"filler\"",
        ),
        (
            "column = [\n{ name = 'a', length = 11 },\n]",
            "l.toml:7: column `a` ends at byte 11, the record at 10",
        ),
        ("column = [\n{ name = 'a', length = 9 },\n]", "l.toml:4: bytes 10 to 10 belong to no column"),
        ("column = [\n{ name = 'a', length = 0 },\n]", "l.toml:7: a column has 1 to 32768 bytes"),
        ("column = [\n{ name = 'a', start = 0, length = 10 },\n]", "l.toml:7: start counts from 1"),
        ("column = [\n{ name = 'a' },\n]", "l.toml:7: column `a` needs a length"),
        ("column = [\n{ name = 'a', length = 10, typ = 'int' },\n]", "l.toml:7: unknown field `typ`"),
        (
            "column = [\n{ name = 'a', length = 10, type = 'integer' },\n]",
            "l.toml:7: unknown variant `integer`",
        ),
        (
            "column = [\n{ name = 'a', length = 10, decimals = 2 },\n]",
            "l.toml:7: `decimals` does not go with",
        ),
        ("column = [\n{ name = 'a', length = 10, sign = 'leading' },\n]", "l.toml:7: `sign` is for numbers"),
        ("column = [\n{ name = 'a', length = 10, type = 'date' },\n]", "l.toml:7: it needs a form"),
        (
            "column = [\n{ name = 'a', length = 10, type = 'date', form = 'YYYYMMDD' },\n]",
            "l.toml:7: the form has 8 bytes, the column 10",
        ),
        (
            "column = [\n{ name = 'a', length = 10, type = 'time', form = 'YYYY-MM-DD' },\n]",
            "l.toml:7: `YYYY-MM-DD` is a date, and the column needs a time of day; near it are `HHMMSS`",
        ),
        (
            "column = [\n{ name = 'a', length = 4 },\n{ name = 't', length = 6, type = 'time', form = 'HHMMSS', date = 'a', zone = 'UTC' },\n]",
            "l.toml:8: date: no column `a` of type date",
        ),
        (
            "column = [\n{ name = 'a', length = 4 },\n{ name = 't', length = 6, type = 'time', form = 'HHMMSS', date = 'header.d' },\n]",
            "l.toml:8: a time with a date is an instant: it needs a `zone`",
        ),
        (
            "column = [\n{ name = 'a', length = 4, zone = 'Mars/Base' },\n{ name = 't', length = 6 },\n]",
            "l.toml:7: no time zone `Mars/Base`",
        ),
        (
            "column = [\n{ name = 'a', length = 5 },\n{ name = 'a', length = 5 },\n]",
            "l.toml:8: two columns are called `a`",
        ),
        (
            "column = [\n{ name = 'a', length = 10 },\n{ name = 'b', redefines = 'a', start = 9, length = 3 },\n]",
            "l.toml:8: it must lie within bytes 1 to 10",
        ),
        (
            "count = 'a'\ncolumn = [\n{ name = 'a', length = 10 },\n]",
            "l.toml:6: a header or trailer counts records, data do not",
        ),
        (
            "role = 'trailer'\ncolumn = [\n{ name = 'a', length = 10 },\n]",
            "l.toml:4: a trailer needs a `when`",
        ),
        ("when = { b = 'X' }\ncolumn = [\n{ name = 'a', length = 10 },\n]", "l.toml:6: when: no column `b`"),
        (
            "column = [\n{ name = 'a', length = 10, type = 'literal', is = 'abc' },\n]",
            "l.toml:7: `is` must have the column's 10 bytes",
        ),
        (
            "column = [\n{ name = 'a', length = 10 },\n]\n[[record]]\nname='s'\ncolumn = [\n{ name = 'a', length = 10 },\n]",
            "l.toml:4: every record behind this one is this one",
        ),
        ("column = [\n{ name = 'a b', length = 10 },\n]", "l.toml:7: `a b` is no name"),
    ] {
        let got = error(&format!("{HEAD}{rest}"));
        assert!(got.contains(says), "{got}\nshould say: {says}\n{rest}");
    }
    assert!(error("name = 'x'").contains("l.toml:1: missing field"), "{}", error("name = 'x'"));
    let two = "name='x'\nterminator='none'\n[[record]]\nname='a'\nwhen={c='1'}\ncolumn=[{name='c',length=1}]\n\
               [[record]]\nname='b'\ncolumn=[{name='c',length=2}]";
    assert!(error(two).contains("without a terminator all records have the same length"), "{}", error(two));
}
