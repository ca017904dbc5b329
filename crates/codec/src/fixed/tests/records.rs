//! Records one by one, as JSON Lines.

use super::{ALL, layout};
use crate::fixed::decode_json;
use expect_test::{Expect, expect};

fn check(layout_text: &str, input: &[u8], expected: Expect) {
    let mut out = Vec::new();
    let summary = decode_json(&mut &input[..], "f", &layout(layout_text), &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert_eq!(summary.records + summary.errors, out.lines().count() as u64);
    assert_eq!(summary.bytes, input.len() as u64);
    expected.assert_eq(&out.replace("{\"file\":\"f\",", "{"));
}

/// Numbers, signs, dates and times of every form; the trailer counts the records between header and it.
#[test]
fn every_sort_of_column() {
    check(
        ALL,
        b"HD20140309000002\n\
          ABRK  B**AB x 00042-000712345012}J99-123.45140309093109362010203" as &[u8],
        expect![[r#"
            {"n":0,"offset":0,"type":"head","fields":{"day":"2014-03-09","n":2}}
            {"n":1,"offset":17,"type":"data","fields":{"c":"A","text":"BRK B","right":"AB","raw":" x ","int":42,"lead":-7,"trail":"123.45","over":"-12","lover":-199,"point":"-123.45","date":"2014-03-09","clock":"2014-03-09T13:31:09.362Z","local":"2014-03-09T01:02:03Z","flag":false}}
            {"n":2,"offset":81,"length":0,"error":{"code":"record_count","message":"2 records stated, 1 found"}}
        "#]],
    );
}

/// A bad record is reported with its column and place, and both neighbours are there.
#[test]
fn neighbours_of_bad_records_are_kept() {
    let prices = "name='p'\nterminator='crlf'\n[[record]]\nname='price'\ncolumn=[\n\
        {name='symbol',length=4,required=true},{name='price',length=6,type='decimal',decimals=2}]";
    check(
        prices,
        b"ACME001000\r\nACME0010O0\r\nACME0010\r\nACME00100000\r\n    001000\r\nA\nCE      \r\n\r\nLAST000001",
        expect![[r#"
            {"n":0,"offset":0,"type":"price","fields":{"symbol":"ACME","price":"10"}}
            {"n":1,"offset":12,"length":10,"error":{"code":"bad_number","message":"column price at byte 5: \"0010O0\" is no number of the form the layout says"}}
            {"n":2,"offset":24,"length":8,"error":{"code":"short_record","message":"8 bytes where the layout has 10"}}
            {"n":3,"offset":34,"length":12,"error":{"code":"long_record","message":"12 bytes where the layout has 10"}}
            {"n":4,"offset":48,"length":10,"error":{"code":"missing","message":"column symbol at byte 1: \"    \" is blank and must not be"}}
            {"n":5,"offset":60,"type":"price","fields":{"symbol":"A\nCE"}}
            {"n":6,"offset":74,"type":"price","fields":{"symbol":"LAST","price":"0.01"}}
        "#]],
    );
}

/// Without its header a file has times of no day: none of them may be read as a time of 1970.
#[test]
fn times_without_their_day_are_refused() {
    let text = "name='t'\nterminator='newline'\nzone='UTC'\n\
        [[record]]\nname='h'\nrole='header'\ncolumn=[{name='d',length=6,type='date',form='YYMMDD',pivot=70}]\n\
        [[record]]\nname='r'\ncolumn=[{name='t',length=6,type='time',form='HHMMSS',date='header.d'}]";
    check(
        text,
        b"140230\n093000\n",
        expect![[r#"
            {"n":0,"offset":0,"length":6,"error":{"code":"bad_date","message":"column d at byte 1: \"140230\" has a day that the calendar does not have"}}
            {"n":1,"offset":7,"length":6,"error":{"code":"no_date","message":"column t at byte 1: \"093000\" has no date: its source is missing or not readable"}}
        "#]],
    );
}

/// The trailer of another file, or of this one when a record went missing on the way.
#[test]
fn a_trailer_that_counts_wrong_is_bad() {
    let text = "name='t'\nterminator='newline'\n\
        [[record]]\nname='end'\nrole='trailer'\nwhen={k='T'}\ncount='n'\ncolumn=[{name='k',length=1},{name='n',length=3,type='int'}]\n\
        [[record]]\nname='r'\nwhen={k=['A','B']}\ncolumn=[{name='k',length=1},{name='v',length=3}]";
    check(
        text,
        b"Aone\nBtwo\nC???\nT002\n",
        expect![[r#"
            {"n":0,"offset":0,"type":"r","fields":{"k":"A","v":"one"}}
            {"n":1,"offset":5,"type":"r","fields":{"k":"B","v":"two"}}
            {"n":2,"offset":10,"length":4,"error":{"code":"unknown_record","message":"no record of the layout has these selectors"}}
            {"n":3,"offset":15,"length":4,"error":{"code":"record_count","message":"2 records stated, 3 found"}}
        "#]],
    );
}

/// Records that end in carriage returns alone were one record that is too long, without a word about the cause.
#[test]
fn carriage_returns_alone_end_no_record() {
    let text = "name='t'\nterminator='newline'\n[[record]]\nname='r'\ncolumn=[{name='v',length=3}]";
    check(
        text,
        b"abc\rdef\r",
        expect![[r#"
            {"n":0,"offset":0,"length":8,"error":{"code":"long_record","message":"8 bytes where the layout has 3: a carriage return alone ends no record, convert the line ends of the file to line feeds (tr '\\r' '\\n')"}}
        "#]],
    );
    check(
        text,
        b"abc\ndef\rghi\njkl\n",
        expect![[r#"
            {"n":0,"offset":0,"type":"r","fields":{"v":"abc"}}
            {"n":1,"offset":4,"length":7,"error":{"code":"long_record","message":"7 bytes where the layout has 3: a carriage return alone ends no record, convert the line ends of the file to line feeds (tr '\\r' '\\n')"}}
            {"n":2,"offset":12,"type":"r","fields":{"v":"jkl"}}
        "#]],
    );
}

/// Files of another kind had records of the wrong length, and what programs leave behind the last line was one.
#[test]
fn files_of_another_kind_are_named_and_padding_is_the_end() {
    let text = "name='t'\nterminator='newline'\n[[record]]\nname='r'\ncolumn=[{name='v',length=3}]";
    check(
        text,
        b"a\0b\0c\0\n\0",
        expect![[r#"
            {"n":0,"offset":0,"length":6,"error":{"code":"utf_16","message":"the file is in UTF-16, which is not read: convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"}}
        "#]],
    );
    check(
        text,
        b"PK\x03\x04\nabc\n",
        expect![[r#"
            {"n":0,"offset":0,"length":4,"error":{"code":"zip_archive","message":"the file is a ZIP archive: unpack it and name the files in it (unzip)"}}
            {"n":1,"offset":5,"type":"r","fields":{"v":"abc"}}
        "#]],
    );
    check(
        text,
        b"abc\n\0\0\0\x1a",
        expect![[r#"
            {"n":0,"offset":0,"type":"r","fields":{"v":"abc"}}
        "#]],
    );
    check(
        text,
        b"abc\n\x1a\ndef\n",
        expect![[r#"
            {"n":0,"offset":0,"type":"r","fields":{"v":"abc"}}
            {"n":1,"offset":4,"length":1,"error":{"code":"short_record","message":"1 bytes where the layout has 3"}}
            {"n":2,"offset":6,"type":"r","fields":{"v":"def"}}
        "#]],
    );
}

/// Nothing but one endless line must not be held in memory.
#[test]
fn a_line_without_an_end_goes_in_pieces() {
    let text = "name='t'\nterminator='newline'\n[[record]]\nname='r'\ncolumn=[{name='v',length=3}]";
    let mut input = vec![b'x'; 100_000];
    input.extend_from_slice(b"\nabc\n");
    check(
        text,
        &input,
        expect![[r#"
            {"n":0,"offset":0,"length":65536,"error":{"code":"long_record","message":"65536 bytes where the layout has 3"}}
            {"n":1,"offset":65536,"length":34464,"error":{"code":"long_record","message":"34464 bytes where the layout has 3"}}
            {"n":2,"offset":100001,"type":"r","fields":{"v":"abc"}}
        "#]],
    );
}
