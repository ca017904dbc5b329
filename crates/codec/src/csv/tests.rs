//! Rows that went wrong somewhere, and the fast path against its slow twin.

use super::{CsvLayout, decode_json};
use crate::twin::csv::check::{ALL, BARE, LATIN, any_bytes, assert_agree};
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
    assert_agree(&layout, "a_20140206", input, 7);
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

/// Old programs of the Mac end lines in carriage returns: the whole file was one header, and nothing was said.
#[test]
fn carriage_returns_alone_end_no_lines() {
    const TEXT: &str = "name='x'\ncomment='#'\ncolumn=[{name='n',type='int'},{name='t'}]";
    check(
        TEXT,
        b"n,t\r1,a\r2,b\r",
        expect![[r#"
            {"n":0,"offset":0,"length":12,"error":{"code":"bare_return","message":"a carriage return alone does not end a line: convert the line ends of the file to line feeds (tr '\\r' '\\n')"}}
        "#]],
    );
    // Lines of both kinds, one within quotes, one before a quote, and one behind a comment.
    check(
        TEXT,
        b"n,t\n1,a\r2,b\n3,\"c\rd\"\n4,e\r\"f\"\n\"5\",g\r\r\n\"6\"\r7,h\n8,i\n# end\r9,j\r",
        expect![[r#"
            {"n":0,"offset":0,"type":"header","fields":{"columns":["n","t"]}}
            {"n":1,"offset":4,"length":7,"error":{"code":"bare_return","message":"a carriage return alone does not end a line: convert the line ends of the file to line feeds (tr '\\r' '\\n')"}}
            {"n":2,"offset":12,"type":"row","fields":{"n":3,"t":"c\rd"}}
            {"n":3,"offset":20,"length":7,"error":{"code":"bare_return","message":"a carriage return alone does not end a line: convert the line ends of the file to line feeds (tr '\\r' '\\n')"}}
            {"n":4,"offset":28,"type":"row","fields":{"n":5,"t":"g\r"}}
            {"n":5,"offset":36,"length":7,"error":{"code":"bare_return","message":"a carriage return alone does not end a line: convert the line ends of the file to line feeds (tr '\\r' '\\n')"}}
            {"n":6,"offset":44,"type":"row","fields":{"n":8,"t":"i"}}
            {"n":7,"offset":48,"length":10,"error":{"code":"bare_return","message":"a carriage return alone does not end a line: convert the line ends of the file to line feeds (tr '\\r' '\\n')"}}
        "#]],
    );
    check(
        "name='x'\nskip=2\ncolumn=[{name='n'}]",
        b"a\rb\rn\r1\r",
        expect![[r#"
            {"n":0,"offset":0,"length":8,"error":{"code":"bare_return","message":"a carriage return alone does not end a line: convert the line ends of the file to line feeds (tr '\\r' '\\n')"}}
        "#]],
    );
    check(
        "name='x'\nheader='find'\ncolumn=[{name='n'}]",
        b"a\rn\r1\r",
        expect![[r#"
            {"n":0,"offset":0,"length":5,"error":{"code":"bare_return","message":"a carriage return alone does not end a line: convert the line ends of the file to line feeds (tr '\\r' '\\n')"}}
        "#]],
    );
    // A file of a header alone has no rows, whatever ends it.
    for header in ["n,t", "n,t\n", "n,t\r\n", "n,t\r"] {
        let mut out = Vec::new();
        decode_json(&mut header.as_bytes(), "a", &layout(TEXT), &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.contains("\"columns\":[\"n\",\"t\"]") && out.lines().count() == 1, "{out}");
    }
    // Longer than a row may be: a fault for each piece of it.
    let long = format!("name='x'\nrow_bytes_max=20\n{}", "column=[{name='n'}]");
    let input = "n\r".repeat(30);
    let mut out = Vec::new();
    decode_json(&mut input.as_bytes(), "a", &layout(&long), &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert_eq!(out.lines().filter(|line| line.contains("bare_return")).count(), 3, "{out}");
    assert_agree(&layout(&long), "a", input.as_bytes(), 7);
}

/// Newer files of Binance have a header where older ones have none; it was a bad row.
#[test]
fn a_first_row_of_column_names_is_a_header() {
    const TEXT: &str = "name='x'\nheader=false\nshort='pad'\ncolumn=[{name='n',type='int',required=true},{name='t'},{name='u'}]";
    check(
        TEXT,
        b"t,n\na,1\nt,2\n",
        expect![[r#"
            {"n":0,"offset":0,"type":"header","fields":{"columns":["t","n"]}}
            {"n":1,"offset":4,"type":"row","fields":{"n":1,"t":"a"}}
            {"n":2,"offset":8,"type":"row","fields":{"n":2,"t":"t"}}
        "#]],
    );
    check(
        TEXT,
        b"1,a,b\nn,t\n2,c\n",
        expect![[r#"
            {"n":0,"offset":0,"type":"row","fields":{"n":1,"t":"a","u":"b"}}
            {"n":1,"offset":6,"length":3,"error":{"code":"bad_number","message":"column n: \"n\" is no number of the form the layout says"}}
            {"n":2,"offset":10,"type":"row","fields":{"n":2,"t":"c"}}
        "#]],
    );
    check(
        TEXT,
        b"t,u\na,b\n",
        expect![[r#"
            {"n":0,"offset":0,"length":3,"error":{"code":"bad_header","message":"the header has 0 of 1 columns that must be there, not `n`; it has `t`, `u`"}}
            {"n":1,"offset":4,"length":3,"error":{"code":"no_header","message":"the file's header cannot be read"}}
        "#]],
    );
}

/// A Ctrl-Z of DOS, or NUL bytes that fill a block, were a bad row.
#[test]
fn padding_behind_the_last_line_is_its_end() {
    const TEXT: &str = "name='x'\nrow_bytes_max=5000\ncolumn=[{name='n',type='int'}]";
    let rows = |padding: &[u8]| {
        let input = [&b"n\n1\n"[..], padding].concat();
        let mut out = Vec::new();
        decode_json(&mut &input[..], "a", &layout(TEXT), &mut out).unwrap();
        assert_agree(&layout(TEXT), "a", &input, 7);
        let out = String::from_utf8(out).unwrap();
        (out.lines().count() - 1, out.contains("error"))
    };
    for padding in [&b"\x1a"[..], b"\0", b"\0\0\0\x1a\r\n", &[0; 4096]] {
        assert_eq!(rows(padding), (1, false), "{padding:x?}");
    }
    for padding in [&b"\x1a2\n"[..], b"2\0", &[0; 4097]] {
        assert_eq!(rows(padding), (2, true), "{padding:x?}");
    }
}

/// An export in UTF-16 had a bad header of strange letters, and an archive a row that is too long.
#[test]
fn files_of_another_kind_are_named() {
    for text in
        ["name='x'\ncolumn=[{name='n',type='int'}]", "name='x'\nheader=false\ncolumn=[{name='n',type='int'}]"]
    {
        for (input, code) in [
            (&b"\xff\xfen\0\n\x001\0\n\0"[..], "utf_16"),
            (b"n\0\n\x001\0\n\0", "utf_16"),
            (b"\0n\0\n\x001\0\n", "utf_16"),
            (b"PK\x03\x04\x14\0\0\n1\n", "zip_archive"),
        ] {
            let mut out = Vec::new();
            decode_json(&mut &input[..], "a", &layout(text), &mut out).unwrap();
            let out = String::from_utf8(out).unwrap();
            let first = out.lines().next().unwrap();
            assert!(
                first.contains(&format!("\"code\":\"{code}\"")) && first.contains("the file is"),
                "{out}"
            );
            assert!(!out.contains("\"row\""), "{out}");
            assert_agree(&layout(text), "a", input, 3);
        }
    }
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
            {"n":0,"offset":0,"length":20,"error":{"code":"bad_header","message":"the header has 3 of 5 columns that must be there, not `Trade Volume`, `Trade Price`; it has `Time`, `Exchange`, `Symbol`"}}
            {"n":1,"offset":21,"length":19,"error":{"code":"no_header","message":"the file's header cannot be read"}}
        "#]],
    );
    check(
        "name='x'\ncolumn=[{name='a'}]",
        b"a,a\n1,2\n",
        expect![[r#"
            {"n":0,"offset":0,"length":3,"error":{"code":"bad_header","message":"the header names column 2 twice, `a`: the layout may call the two `a#1` and `a#2`"}}
            {"n":1,"offset":4,"length":3,"error":{"code":"no_header","message":"the file's header cannot be read"}}
        "#]],
    );
}

/// Pandas, PostgreSQL and exchanges write small numbers with an exponent, which moves the point and rounds nothing.
#[test]
fn exponents_move_the_point() {
    check(
        "name='x'\ncolumn=[{name='p',type='decimal',sign='leading'},{name='q',type='int'},{name='m',type='decimal',point=','}]",
        b"p,q,m\n7.25e-05,2E+3,\n-1.6e-5,15e-1,\n1E2,1.5e1,\"7,25e-05\"\n1e1000000000,1,\n1e-31,1,\n9e18,1e18,\n1e30,1,\n\
          0e0,0e-5,\n1e,1,\ne5,1,\n1e5e5,1,\n1e+-5,1,\n1.e5,1,\n--1e5,1,\n,1e19,\n1e0000000005,1,\n,,\"1e1,5\"\n",
        expect![[r#"
            {"n":0,"offset":0,"type":"header","fields":{"columns":["p","q","m"]}}
            {"n":1,"offset":6,"type":"row","fields":{"p":"0.0000725","q":2000}}
            {"n":2,"offset":21,"length":14,"error":{"code":"bad_number","message":"column q: \"15e-1\" is no number of the form the layout says"}}
            {"n":3,"offset":36,"type":"row","fields":{"p":"100","q":15,"m":"0.0000725"}}
            {"n":4,"offset":57,"length":15,"error":{"code":"number_range","message":"column p: \"1e1000000000\" has an exponent that leads beyond 64 bits or 30 decimals"}}
            {"n":5,"offset":73,"length":8,"error":{"code":"number_range","message":"column p: \"1e-31\" has an exponent that leads beyond 64 bits or 30 decimals"}}
            {"n":6,"offset":82,"type":"row","fields":{"p":"9000000000000000000","q":1000000000000000000}}
            {"n":7,"offset":93,"type":"row","fields":{"p":"1000000000000000000000000000000","q":1}}
            {"n":8,"offset":101,"type":"row","fields":{"p":"0","q":0}}
            {"n":9,"offset":111,"length":5,"error":{"code":"bad_number","message":"column p: \"1e\" is no number of the form the layout says"}}
            {"n":10,"offset":117,"length":5,"error":{"code":"bad_number","message":"column p: \"e5\" is no number of the form the layout says"}}
            {"n":11,"offset":123,"length":8,"error":{"code":"bad_number","message":"column p: \"1e5e5\" is no number of the form the layout says"}}
            {"n":12,"offset":132,"length":8,"error":{"code":"bad_number","message":"column p: \"1e+-5\" is no number of the form the layout says"}}
            {"n":13,"offset":141,"type":"row","fields":{"p":"100000","q":1}}
            {"n":14,"offset":149,"length":8,"error":{"code":"bad_number","message":"column p: \"--1e5\" is no number of the form the layout says"}}
            {"n":15,"offset":158,"length":6,"error":{"code":"number_range","message":"column q: \"1e19\" has an exponent that leads beyond 64 bits or 30 decimals"}}
            {"n":16,"offset":165,"type":"row","fields":{"p":"100000","q":1}}
            {"n":17,"offset":181,"length":9,"error":{"code":"bad_number","message":"column m: \"1e1,5\" is no number of the form the layout says"}}
        "#]],
    );
}

/// A spreadsheet's exports state their separator in a first line, which made every row ragged.
#[test]
fn a_first_line_may_state_the_separator() {
    check(
        "name='x'\ncolumn=[{name='a',type='int'}]",
        b"sep=;\na;b\n1;2\n",
        expect![[r#"
        {"n":0,"offset":6,"type":"header","fields":{"columns":["a","b"]}}
        {"n":1,"offset":10,"type":"row","fields":{"a":1,"b":"2"}}
    "#]],
    );
    check(
        "name='x'\ncolumn=[{name='a',type='int'}]",
        b"\xef\xbb\xbfSEP=\t\r\na\tb\r\n1\t2",
        expect![[r#"
        {"n":0,"offset":10,"type":"header","fields":{"columns":["a","b"]}}
        {"n":1,"offset":15,"type":"row","fields":{"a":1,"b":"2"}}
    "#]],
    );
    check(
        "name='x'\nseparator='semicolon'",
        b"\"sep=;\"\na;b\n1;2\n",
        expect![[r#"
        {"n":0,"offset":8,"type":"header","fields":{"columns":["a","b"]}}
        {"n":1,"offset":12,"type":"row","fields":{"a":"1","b":"2"}}
    "#]],
    );
    check(
        "name='x'\nseparator='comma'",
        b"sep=;\na;b\n1;2\n",
        expect![[r#"
        {"n":0,"offset":0,"length":6,"error":{"code":"bad_separator","message":"the file states the separator `;` in its first line, the layout `,`"}}
        {"n":1,"offset":6,"length":3,"error":{"code":"no_header","message":"the file's header cannot be read"}}
        {"n":2,"offset":10,"length":3,"error":{"code":"no_header","message":"the file's header cannot be read"}}
    "#]],
    );
    check(
        "name='x'\nheader=false\ncolumn=[{name='a'},{name='b'}]",
        b"sep=|\n1|2\n",
        expect![[r#"
        {"n":0,"offset":6,"type":"row","fields":{"a":"1","b":"2"}}
    "#]],
    );
    check(
        "name='x'",
        b"sep=ab,c\n1,2\n",
        expect![[r#"
        {"n":0,"offset":0,"type":"header","fields":{"columns":["sep=ab","c"]}}
        {"n":1,"offset":9,"type":"row","fields":{"sep=ab":"1","c":"2"}}
    "#]],
    );
}

/// Two columns of one name, as joins of tables have them, made the whole file unreadable.
#[test]
fn columns_of_one_name_are_taken_by_their_number() {
    let both_named = "name='x'\ncolumn=[{name='qty'},{name='qty#2',type='int'}]";
    check(
        both_named,
        b"qty,px,qty\n1,2,3\n",
        expect![[r#"
        {"n":0,"offset":0,"type":"header","fields":{"columns":["qty","px","qty#2"]}}
        {"n":1,"offset":11,"type":"row","fields":{"qty":"1","qty#2":3,"px":"2"}}
    "#]],
    );
    check(
        "name='x'\ncolumn=[{name='qty#1',type='int'}]",
        b"px,qty,qty,qty\n1,2,3,4\n",
        expect![[r#"
        {"n":0,"offset":0,"type":"header","fields":{"columns":["px","qty","qty#2","qty#3"]}}
        {"n":1,"offset":15,"type":"row","fields":{"qty#1":2,"px":"1","qty#2":"3","qty#3":"4"}}
    "#]],
    );
    check(
        "name='x'\ncolumn=[{name='px'}]",
        b"px,qty,qty\n1,2,3\n",
        expect![[r#"
        {"n":0,"offset":0,"type":"header","fields":{"columns":["px","qty","qty#2"]}}
        {"n":1,"offset":11,"type":"row","fields":{"px":"1","qty":"2","qty#2":"3"}}
    "#]],
    );
    check(
        "name='x'\ncolumn=[{name='qty'}]",
        b"id,px,side,qty,qty\n1,2,3,4,5\n",
        expect![[r#"
        {"n":0,"offset":0,"length":18,"error":{"code":"bad_header","message":"the header names column 5 twice, `qty`: the layout may call the two `qty#1` and `qty#2`"}}
        {"n":1,"offset":19,"length":9,"error":{"code":"no_header","message":"the file's header cannot be read"}}
    "#]],
    );
    check(
        "name='x'\ncolumn=[{name='qty#3',required=true}]",
        b"qty,qty\n1,2\n",
        expect![[r#"
        {"n":0,"offset":0,"length":7,"error":{"code":"bad_header","message":"the header has 0 of 1 columns that must be there, not `qty#3`; it has `qty`, `qty#2`"}}
        {"n":1,"offset":8,"length":3,"error":{"code":"no_header","message":"the file's header cannot be read"}}
    "#]],
    );
    check(
        "name='x'\ncolumn=[{name='a'}]",
        b"a,b,b,b#2\n1,2,3,4\n",
        expect![[r#"
        {"n":0,"offset":0,"length":9,"error":{"code":"bad_header","message":"the header names column 3 twice, `b`: the layout may call the two `b#1` and `b#2`"}}
        {"n":1,"offset":10,"length":7,"error":{"code":"no_header","message":"the file's header cannot be read"}}
    "#]],
    );
}

const ACCOUNT: &[u8] = b"\"Account:\";\"1234\";\n\n\"Period: \"last\" year\";\nDate;31.12.2026\n\n\"Date\";\"Amount\"\n02.01.2026;-35,00\n12.12.2025;7,5\n";

/// Banks write lines about the account before the header.
#[test]
fn lines_before_the_header_are_skipped() {
    let columns = "separator='semicolon'\ncolumn=[{name='Date',type='date',form='DD.MM.YYYY'},{name='Amount',type='decimal',point=','}]";
    check(
        &format!("name='x'\nskip=5\n{columns}"),
        ACCOUNT,
        expect![[r#"
        {"n":0,"offset":60,"type":"header","fields":{"columns":["Date","Amount"]}}
        {"n":1,"offset":76,"type":"row","fields":{"Date":"2026-01-02","Amount":"-35"}}
        {"n":2,"offset":94,"type":"row","fields":{"Date":"2025-12-12","Amount":"7.5"}}
    "#]],
    );
    check(
        &format!("name='x'\nheader='find'\n{columns}"),
        ACCOUNT,
        expect![[r#"
        {"n":0,"offset":60,"type":"header","fields":{"columns":["Date","Amount"]}}
        {"n":1,"offset":76,"type":"row","fields":{"Date":"2026-01-02","Amount":"-35"}}
        {"n":2,"offset":94,"type":"row","fields":{"Date":"2025-12-12","Amount":"7.5"}}
    "#]],
    );
    check(
        &format!("name='x'\nskip=2\nheader='find'\n{columns}"),
        ACCOUNT,
        expect![[r#"
        {"n":0,"offset":60,"type":"header","fields":{"columns":["Date","Amount"]}}
        {"n":1,"offset":76,"type":"row","fields":{"Date":"2026-01-02","Amount":"-35"}}
        {"n":2,"offset":94,"type":"row","fields":{"Date":"2025-12-12","Amount":"7.5"}}
    "#]],
    );
    check(
        &format!("name='x'\nheader='find'\n{columns}"),
        b"a;b\nc;d\n",
        expect![[r#"
        {"n":0,"offset":0,"length":3,"error":{"code":"header_not_found","message":"none of the first 2 lines has all columns of the layout: `Date`, `Amount`"}}
        {"n":1,"offset":4,"length":3,"error":{"code":"no_header","message":"the file's header cannot be read"}}
    "#]],
    );
    check(&format!("name='x'\nheader='find'\n{columns}"), b"\n\n", expect![[r#""#]]);
    check(&format!("name='x'\nskip=9\n{columns}"), b"a;b\nc;d\n", expect![[r#""#]]);
    check(
        "name='x'\nskip=1\nheader=false\ncolumn=[{name='a',type='int'}]",
        b"made on Monday\n1\n2\n",
        expect![[r#"
            {"n":0,"offset":15,"type":"row","fields":{"a":1}}
            {"n":1,"offset":17,"type":"row","fields":{"a":2}}
        "#]],
    );
}

/// Each with its place and its reason, and the neighbours unharmed.
#[test]
fn times_that_are_none_say_why() {
    let layout = "name='x'\nzone='America/New_York'\ncolumn=[{name='t',type='timestamp',form=['YYYY-MM-DD HH:MM:SS.fff','@ms']}]";
    let mut input = b"t\n2026-03-02 09:30:00\n".to_vec();
    for text in [
        "0000-03-02 09:30:00",
        "2026-13-02 09:30:00",
        "2026-02-30 09:30:00",
        "2026-03-02 24:00:00",
        "2026-03-02 09:30:60",
        "2026-03-02 09:30:00+99:00",
        "2026-03-02 09:30:00.1111111111222222222233333333334444444444",
        "99999999999999",
        "1e1000000000",
        "2026-11-01 01:30:00",
        "2026-03-08 02:30:00",
        "tomorrow",
    ] {
        input.extend_from_slice(text.as_bytes());
        input.push(b'\n');
    }
    input.extend_from_slice(b"1772461800000\n");
    check(
        layout,
        &input,
        expect![[r#"
        {"n":0,"offset":0,"type":"header","fields":{"columns":["t"]}}
        {"n":1,"offset":2,"type":"row","fields":{"t":"2026-03-02T14:30:00Z"}}
        {"n":2,"offset":22,"length":19,"error":{"code":"bad_time","message":"column t: \"0000-03-02 09:30:00\" has a year outside 1678 to 2261, which is what nanoseconds since 1970 hold"}}
        {"n":3,"offset":42,"length":19,"error":{"code":"bad_time","message":"column t: \"2026-13-02 09:30:00\" has a month other than 1 to 12"}}
        {"n":4,"offset":62,"length":19,"error":{"code":"bad_time","message":"column t: \"2026-02-30 09:30:00\" has a day that the calendar does not have"}}
        {"n":5,"offset":82,"length":19,"error":{"code":"bad_time","message":"column t: \"2026-03-02 24:00:00\" has an hour other than 0 to 23"}}
        {"n":6,"offset":102,"length":19,"error":{"code":"bad_time","message":"column t: \"2026-03-02 09:30:60\" has a second other than 0 to 59, and no leap second can be there"}}
        {"n":7,"offset":122,"length":25,"error":{"code":"bad_time","message":"column t: \"2026-03-02 09:30:00+99:00\" has an offset from UTC of more than 14 hours, or of 60 minutes or more"}}
        {"n":8,"offset":148,"length":60,"error":{"code":"bad_time","message":"column t: \"2026-03-02 09:30:00.1111111111222222222233333333334444444444\" has more decimals than nanoseconds"}}
        {"n":9,"offset":209,"length":14,"error":{"code":"bad_time","message":"column t: \"99999999999999\" is outside 1677 to 2262, which is what nanoseconds since 1970 hold"}}
        {"n":10,"offset":224,"length":12,"error":{"code":"bad_time","message":"column t: \"1e1000000000\" is outside 1677 to 2262, which is what nanoseconds since 1970 hold"}}
        {"n":11,"offset":237,"length":19,"error":{"code":"ambiguous_time","message":"column t: \"2026-11-01 01:30:00\" occurs twice, as clocks go back that day: say `ambiguous` in the layout (first, second, by-order); see docs/time-forms.md"}}
        {"n":12,"offset":257,"length":19,"error":{"code":"skipped_time","message":"column t: \"2026-03-08 02:30:00\" never occurs, as clocks go forward that day: say `ambiguous` in the layout (first, second); see docs/time-forms.md"}}
        {"n":13,"offset":277,"length":8,"error":{"code":"bad_time","message":"column t: \"tomorrow\" does not have the form `YYYY-MM-DD HH:MM:SS.fff` or `@ms`; see docs/time-forms.md"}}
        {"n":14,"offset":286,"type":"row","fields":{"t":"2026-03-02T14:30:00Z"}}
    "#]],
    );
    check(
        "name='x'\ncolumn=[{name='t',type='timestamp',form='iso'}]",
        b"t\n2026-03-02T09:30:00Z\n2026-03-02T09:30:00\n",
        expect![[r#"
            {"n":0,"offset":0,"type":"header","fields":{"columns":["t"]}}
            {"n":1,"offset":2,"type":"row","fields":{"t":"2026-03-02T09:30:00Z"}}
            {"n":2,"offset":23,"length":19,"error":{"code":"bad_time","message":"column t: \"2026-03-02T09:30:00\" has no offset from UTC, and neither its column nor the layout has a `zone`"}}
        "#]],
    );
}

/// A file's name says the day in two ways; the seconds after midnight are in a column.
#[test]
fn seconds_after_midnight_have_the_day_of_the_file_or_of_a_column() {
    let layout = layout(
        "name='x'\nheader=false\nzone='America/New_York'\ncolumn=[{name='t',type='time',form='midnight_s',date='file'},{name='d',type='date',form='D/M/YYYY'},{name='u',type='time',form='@ms',date='d',zone='UTC'}]",
    );
    let input = b"34200.017459617,2/3/2026,1500\n86400,2/3/2026,1\n";
    let mut out = Vec::new();
    decode_json(&mut &input[..], "AAPL_2012-06-21_34200000_57600000_message_5.csv", &layout, &mut out)
        .unwrap();
    expect![[r#"
        {"file":"AAPL_2012-06-21_34200000_57600000_message_5.csv","n":0,"offset":0,"type":"row","fields":{"t":"2012-06-21T13:30:00.017459617Z","d":"2026-03-02","u":"2026-03-02T00:00:01.500Z"}}
        {"file":"AAPL_2012-06-21_34200000_57600000_message_5.csv","n":1,"offset":30,"length":16,"error":{"code":"bad_time","message":"column t: \"86400\" is no count since midnight of less than 24 hours"}}
    "#]].assert_eq(&String::from_utf8(out).unwrap());
    assert_agree(&layout, "x_2012_06_21", input, 7);
}

#[test]
fn mistakes_in_a_layout_name_their_line() {
    for (text, says) in [
        ("name='a b'", "l.toml:1: `a b` is no name"),
        ("name='x'\nseparator='colon'", "l.toml:2: unknown variant `colon`"),
        ("name='x'\nheader='search'", "l.toml:2: header: true, false or \"find\", not \"search\""),
        ("name='x'\nheader='find'", "l.toml:2: header = \"find\" looks for the columns in [[column]]"),
        ("name='x'\nskip=1001", "l.toml:2: skip: "),
        ("name='x'\nambiguous='third'", "l.toml:2: ambiguous: refuse, first, second or by-order"),
        ("name='x'\npivot=30000", "l.toml:2: pivot: "),
        ("name='x'\ncolumn=[{name='a',ambiguous='first'}]", "`ambiguous` does not go with this type"),
        (
            "name='x'\ncolumn=[{name='a',type='date',form='DD.MM.YY'}]",
            "l.toml:2: `DD.MM.YY` has years of two digits: say `pivot = 1970`",
        ),
        (
            "name='x'\ncolumn=[{name='a',type='timestamp'}]",
            "it needs a form, such as YYYYMMDDHHMMSS; see docs/time-forms.md",
        ),
        (
            "name='x'\ncolumn=[{name='a',type='timestamp',form='%Y'}]",
            "l.toml:2: `%Y` is no form of a date or time; near it are `",
        ),
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
        assert_agree(&layout(ALL), "x_20161024", input.as_bytes(), piece);
        assert_agree(&layout(BARE), "x", input.replace(',', ";").as_bytes(), piece);
        let bytes: Vec<u8> = input.chars().map(|c| match c { ',' => b'\t', '"' => b'\'', c => c as u8 }).collect();
        assert_agree(&layout(LATIN), "x", &bytes, piece);
    }

    /// Lines about something else, in any number and with any quotes, before a header or without one.
    #[test]
    fn preambles_as_the_twin_reads_them(
        head in "(sep=[;,|]\n|\"sep=;\"\r\n|sep=\n|se)?([a-c;,\"\n\r]{0,12}\n){0,4}(a;b\n|\"a\",b\n|b;a;b\n|)",
        rows in "([0-9]{1,2}[;,][0-9e]{0,4}\n){0,4}",
        skip in 0usize..4,
        piece in 1usize..20,
    ) {
        let text = format!("name='x'\nskip={skip}\nheader='find'\ncolumn=[{{name='a',type='decimal'}},{{name='b'}}]");
        let input = format!("{head}{rows}");
        assert_agree(&layout(&text), "x", input.as_bytes(), piece);
        assert_agree(&layout(&text.replace("'find'", "true")), "x", input.as_bytes(), piece);
        assert_agree(&layout(&text.replace("'find'", "false")), "x", input.as_bytes(), piece);
        assert_agree(&layout(&format!("separator='semicolon'\n{text}")), "x", input.as_bytes(), piece);
    }

    #[test]
    fn any_bytes_are_read_alike(data in prop::collection::vec(prop_oneof![3 => any::<u8>(), 2 => Just(b','), 2 => Just(b'"'), 2 => Just(b'\n'), 1 => Just(b'\r')], 0..200)) {
        any_bytes(&data);
    }
}
