//! Rows that went wrong somewhere, and the fast path against its slow twin.

use super::check::{ALL, BARE, LATIN, any_bytes, both};
use super::{CsvLayout, decode_json};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use std::sync::Arc;

fn layout(text: &str) -> Arc<CsvLayout> {
    Arc::new(CsvLayout::parse(text, "l.toml").unwrap_or_else(|e| panic!("{e}")))
}

fn check(text: &str, input: &[u8], expected: Expect) {
    let layout = layout(text);
    let mut out = Vec::new();
    decode_json(&mut &input[..], "a_20140206", &layout, &mut out).unwrap();
    let out = String::from_utf8(out).unwrap().replace("\"file\":\"a_20140206\",", "");
    expected.assert_eq(&out);
    both(&layout, "a_20140206", input, 7);
}

#[test]
fn quotes_line_ends_and_blanks() {
    check(
        "name='x'\ncolumn=[{name='n',type='int'}]",
        b"\xef\xbb\xbfn,\"a \"\"b\"\"\",c\r\n1,\"x\r\ny\",\"say \"\"hi\"\", please\"\r\n\r\n2,,\"\"\n3,\"a,b\",z",
        expect![[r#"
            {"n":0,"offset":3,"type":"header","fields":{"columns":["n","a \"b\"","c"]}}
            {"n":1,"offset":18,"type":"row","fields":{"n":1,"a \"b\"":"x\r\ny","c":"say \"hi\", please"}}
            {"n":2,"offset":51,"type":"row","fields":{"n":2}}
            {"n":3,"offset":57,"type":"row","fields":{"n":3,"a \"b\"":"a,b","c":"z"}}
        "#]],
    );
}

/// A quote that somebody forgot once swallowed the rest of the file.
#[test]
fn neighbours_of_bad_rows_are_kept() {
    check(
        "name='x'\ncolumn=[{name='n',type='int',required=true}]",
        b"n,t\n1,a\n2,\"b\n3,c\n4\n5,d,e\nsix,f\n7,g\"h\n8,\"i\"j\n,k\n9,\xff\n10,l\n",
        expect![[r#"
            {"n":0,"offset":0,"type":"header","fields":{"columns":["n","t"]}}
            {"n":1,"offset":4,"type":"row","fields":{"n":1,"t":"a"}}
            {"n":2,"offset":8,"length":4,"error":{"code":"bad_quote","message":"a quote within a value, or something behind a closing quote"}}
            {"n":3,"offset":13,"type":"row","fields":{"n":3,"t":"c"}}
            {"n":4,"offset":17,"length":1,"error":{"code":"ragged_row","message":"1 values where there are 2 columns"}}
            {"n":5,"offset":19,"length":5,"error":{"code":"ragged_row","message":"3 values where there are 2 columns"}}
            {"n":6,"offset":25,"length":5,"error":{"code":"bad_number","message":"column n: \"six\" is no number of the form the layout says"}}
            {"n":7,"offset":31,"length":5,"error":{"code":"bad_quote","message":"a quote within a value, or something behind a closing quote"}}
            {"n":8,"offset":37,"length":6,"error":{"code":"bad_quote","message":"a quote within a value, or something behind a closing quote"}}
            {"n":9,"offset":44,"length":2,"error":{"code":"missing","message":"column n: \"\" is blank and must not be"}}
            {"n":10,"offset":47,"length":3,"error":{"code":"not_utf8","message":"column t is not UTF-8"}}
            {"n":11,"offset":51,"type":"row","fields":{"n":10,"t":"l"}}
        "#]],
    );
}

/// Names with accents put half a file of instruments into quarantine.
#[test]
fn a_byte_a_character() {
    check(
        LATIN,
        b"p\t\xe9\t\x80\n1.5\tCAF\xc9  X\t'it''s \x80'\n\xe9\t\t\n2\t\xff\t\n",
        expect![[r#"
        {"n":0,"offset":0,"type":"header","fields":{"columns":["p","é","€"]}}
        {"n":1,"offset":6,"type":"row","fields":{"p":"1.5","é":"CAFÉ X","€":"it's €"}}
        {"n":2,"offset":28,"type":"trailer","fields":{"mark":"é"}}
        {"n":3,"offset":32,"type":"row","fields":{"p":"2","é":"ÿ"}}
    "#]],
    );
}

#[test]
fn an_open_quote_ends_with_its_line() {
    check(
        "name='x'\nrow_bytes_max=20",
        b"a,b\n1,\"open\n2,b\n3,a line that is longer than a row may be and has no end for long\n4,d\n5,\"o",
        expect![[r#"
            {"n":0,"offset":0,"type":"header","fields":{"columns":["a","b"]}}
            {"n":1,"offset":4,"length":7,"error":{"code":"unclosed_quote","message":"a quote is opened and not closed"}}
            {"n":2,"offset":12,"type":"row","fields":{"a":"2","b":"b"}}
            {"n":3,"offset":16,"length":20,"error":{"code":"long_row","message":"longer than the 20 bytes that a row may have"}}
            {"n":4,"offset":36,"length":20,"error":{"code":"long_row","message":"longer than the 20 bytes that a row may have"}}
            {"n":5,"offset":56,"length":20,"error":{"code":"long_row","message":"longer than the 20 bytes that a row may have"}}
            {"n":6,"offset":76,"length":5,"error":{"code":"ragged_row","message":"1 values where there are 2 columns"}}
            {"n":7,"offset":82,"type":"row","fields":{"a":"4","b":"d"}}
            {"n":8,"offset":86,"length":4,"error":{"code":"unclosed_quote","message":"a quote is opened and not closed"}}
        "#]],
    );
}

/// A file cut short looks whole, unless somebody counts.
#[test]
fn a_trailer_is_held_to_its_word() {
    let taq = CsvLayout::built_in("nyse-taq-trades").unwrap();
    let head = "Time|Exchange|Symbol|Sale Condition|Trade Volume|Trade Price|New Column\n";
    let row = "093000417837000|Z|BRK   B| O  |300|45.8800|x\n";
    check(
        taq,
        format!("{head}{row}END|20140206|1|||\n{row}END|20140206|3||||\nEND|20140206|x\n").as_bytes(),
        expect![[r#"
            {"n":0,"offset":0,"type":"header","fields":{"columns":["Time","Exchange","Symbol","Sale Condition","Trade Volume","Trade Price","New Column"]}}
            {"n":1,"offset":72,"type":"row","fields":{"Time":"2014-02-06T14:30:00.417837Z","Exchange":"Z","Symbol":"BRK B","Sale Condition":" O","Trade Volume":300,"Trade Price":"45.88","New Column":"x"}}
            {"n":2,"offset":117,"type":"trailer","fields":{"mark":"END","date":"20140206","records":"1"}}
            {"n":3,"offset":135,"type":"row","fields":{"Time":"2014-02-06T14:30:00.417837Z","Exchange":"Z","Symbol":"BRK B","Sale Condition":" O","Trade Volume":300,"Trade Price":"45.88","New Column":"x"}}
            {"n":4,"offset":180,"length":18,"error":{"code":"record_count","message":"3 rows stated, 2 found"}}
            {"n":5,"offset":199,"length":14,"error":{"code":"bad_trailer","message":"the trailer's count is no number"}}
        "#]],
    );
}

#[test]
fn a_header_that_is_none() {
    let taq = CsvLayout::built_in("nyse-taq-trades").unwrap();
    check(
        taq,
        b"Time|Exchange|Symbol\n093000417837000|Z|A\n",
        expect![[r#"
            {"n":0,"offset":0,"length":20,"error":{"code":"bad_header","message":"the header has 3 of 5 columns that must be there, not `Trade Volume`, `Trade Price`"}}
            {"n":1,"offset":21,"length":19,"error":{"code":"no_header","message":"the file's header cannot be read"}}
        "#]],
    );
    check(
        "name='x'",
        b"a,a\n1,2\n",
        expect![[r#"
            {"n":0,"offset":0,"length":3,"error":{"code":"bad_header","message":"the header names column 2 twice"}}
            {"n":1,"offset":4,"length":3,"error":{"code":"no_header","message":"the file's header cannot be read"}}
        "#]],
    );
}

#[test]
fn mistakes_in_a_layout_name_their_line() {
    for (text, says) in [
        ("name='a b'", "l.toml:1: `a b` is no name"),
        ("name='x'\nseparator='colon'", "l.toml:2: unknown variant `colon`"),
        ("name='x'\nquote='x'", "l.toml:2: quote: "),
        ("name='x'\ncomment=','", "l.toml:2: comment: "),
        ("name='x'\nrow_bytes_max=1", "l.toml:2: row_bytes_max: "),
        ("name='x'\nday='2014-02-30'", "l.toml:2: day: "),
        ("name='x'\nheader=false", "without a header the layout must name all columns"),
        ("name='x'\ncolumn=[{name='a'},\n{name='a'}]", "l.toml:3: two columns are called `a`"),
        ("name='x'\ncolumn=[{name='a',start=1}]", "are for fixed-width records"),
        ("name='x'\ncolumn=[{name='a',type='time',form='HHMM',date='b',zone='UTC'}]", "date: no column `b`"),
        ("name='x'\ncolumn=[{name='a',type='int',pad='0'}]", "l.toml:2: pad: "),
        ("name='x'\ntrailer={first='END',columns=['a'],count='b'}", "l.toml:2: count: "),
    ] {
        let got = CsvLayout::parse(text, "l.toml").map(|_| "ok".to_owned()).unwrap_or_else(|e| e.to_string());
        assert!(got.contains(says), "{got}\nshould say: {says}");
    }
    for name in CsvLayout::all_built_in() {
        assert_eq!(layout(CsvLayout::built_in(name).unwrap()).name(), name);
    }
}

proptest! {
    /// Separators, quotes and line ends in every order, around every limit and every cut.
    #[test]
    fn as_the_twin_reads_them(
        head in "(|t,d,at,n,p,s,f|p,x,s|p,s|\"p\",n)",
        rows in prop::collection::vec("(0930|)(,|,,|\",\"|)[-+0-9.]{0,4}(,|\n|\r\n|\"|\"\"|\"\n|,\"|\",|#|END,[0-9]?|\r|a  b|Y|é|140206){0,9}", 0..12),
        piece in 1usize..50,
    ) {
        let input = format!("{head}\n{}", rows.concat());
        both(&layout(ALL), "x_20161024", input.as_bytes(), piece);
        both(&layout(BARE), "x", input.replace(',', ";").as_bytes(), piece);
        let bytes: Vec<u8> = input.chars().map(|c| match c { ',' => b'\t', '"' => b'\'', c => c as u8 }).collect();
        both(&layout(LATIN), "x", &bytes, piece);
    }

    #[test]
    fn any_bytes_are_read_alike(data in prop::collection::vec(prop_oneof![3 => any::<u8>(), 2 => Just(b','), 2 => Just(b'"'), 2 => Just(b'\n')], 0..200)) {
        any_bytes(&data);
    }
}
