//! Records of a mainframe. Errors that other readers made: packed bytes translated as if they were text, a sign in
//! the zone lost, an accent that became two bytes and moved every column after it.

use super::{fast, layout};
use crate::fixed::decode_json;
use crate::twin::fixed::check::EBCDIC;
use crate::twin::fixed::naive;
use expect_test::{Expect, expect};
use proptest::prelude::*;

/// Text in code page 037, of the characters used here.
fn cp037(text: &str) -> Vec<u8> {
    let byte = |c: char| match c {
        '0'..='9' => 0xf0 + (c as u8 - b'0'),
        'A'..='I' => 0xc1 + (c as u8 - b'A'),
        'J'..='R' => 0xd1 + (c as u8 - b'J'),
        'S'..='Z' => 0xe2 + (c as u8 - b'S'),
        '{' => 0xc0,
        '}' => 0xd0,
        'é' => 0x51,
        _ => 0x40,
    };
    text.chars().map(byte).collect()
}

fn record(name: &str, zoned: &str, packed: [u8; 3], wide: &[u8], half: i16, count: u32) -> Vec<u8> {
    let mut out = cp037(&format!("D{name:6}{zoned}"));
    out.extend_from_slice(&packed);
    out.extend(std::iter::repeat_n(0, 10 - wide.len()));
    out.extend_from_slice(wide);
    out.extend_from_slice(&half.to_be_bytes());
    out.extend_from_slice(&count.to_be_bytes());
    out
}

fn check(input: &[u8], expected: Expect) {
    let layout = layout(EBCDIC);
    let mut out = Vec::new();
    decode_json(&mut &input[..], "a", &layout, &mut out).unwrap();
    expected.assert_eq(&String::from_utf8(out).unwrap().replace("\"file\":\"a\",", ""));
    assert_eq!(fast(&layout, input, |_| 7), naive::decode(&layout, input));
}

#[test]
fn zoned_packed_and_binary() {
    let mut input = record("CAFé", "123D", [0x12, 0x34, 0x5c], &[0x1d], -2, 7);
    input.extend(record("B  C", "012}", [0x00, 0x10, 0x0d], &[0x9f], 0x4040, u32::MAX));
    input.extend(record("", "    ", [0x40, 0x40, 0x40], &[0x12, 0x3a], 0, 0));
    input.extend(cp037("T"));
    input.extend([0x00, 0x00, 0x3f]);
    input.extend(cp037(&" ".repeat(26)));
    check(
        &input,
        expect![[r#"
            {"n":0,"offset":0,"type":"data","fields":{"mark":"D","name":"CAFé","zoned":"12.34","packed":"123.45","wide":-1,"half":-2,"count":7}}
            {"n":1,"offset":30,"type":"data","fields":{"mark":"D","name":"B C","zoned":"-1.2","packed":"-1","wide":9,"half":16448,"count":4294967295}}
            {"n":2,"offset":60,"type":"data","fields":{"mark":"D","wide":123,"half":0,"count":0}}
            {"n":3,"offset":90,"type":"tail","fields":{"mark":"T","n":3}}
        "#]],
    );
}

#[test]
fn what_is_no_number_is_told() {
    let mut input = record("A", "1X34", [0x12, 0x34, 0x5c], &[0x1d], 1, 1);
    input.extend(record("A", "1234", [0x1a, 0x34, 0x5c], &[0x1d], 1, 1));
    input.extend(record("A", "1234", [0x12, 0x34, 0x51], &[0x1d], 1, 1));
    input.extend(record("A", "1234", [0x12, 0x34, 0x5c], &[0x99; 10], 1, 1));
    input.extend(cp037("D"));
    check(
        &input,
        expect![[r#"
            {"n":0,"offset":0,"length":30,"error":{"code":"bad_number","message":"column zoned at byte 8: \"1X34\" is no number of the form the layout says"}}
            {"n":1,"offset":30,"length":30,"error":{"code":"bad_number","message":"column packed at byte 12: \"\\x1a4\\\\\" is no number of the form the layout says"}}
            {"n":2,"offset":60,"length":30,"error":{"code":"bad_number","message":"column packed at byte 12: \"\\x124Q\" is no number of the form the layout says"}}
            {"n":3,"offset":90,"length":30,"error":{"code":"bad_number","message":"column wide at byte 15: \"\\x99\\x99\\x99\\x99\\x99\\x99\\x99\\x99\\x99\\x99\" is no number of the form the layout says"}}
            {"n":4,"offset":120,"length":1,"error":{"code":"short_record","message":"1 bytes where the layout has 30"}}
        "#]],
    );
}

#[test]
fn layouts_that_cannot_be() {
    let record = |head: &str, column: &str| {
        format!("name='x'\n{head}\n[[record]]\nname='r'\ncolumn=[{{name='a',length=2,{column}}}]")
    };
    for (head, column, says) in [
        (
            "terminator='newline'\nencoding='ebcdic-037'",
            "type='int'",
            "l.toml:3: EBCDIC records have no line ends",
        ),
        ("terminator='none'\nencoding='ebcdic-1'", "type='int'", "there is: ascii, ebcdic-037, ebcdic-500"),
        ("terminator='newline'", "type='int',storage='packed'", "such a number may hold a line end"),
        ("terminator='none'", "storage='packed'", "`storage` is for int and decimal"),
        ("terminator='none'", "type='int',sign='leading',storage='packed'", "has its own sign"),
        ("terminator='none'", "type='decimal',storage='packed'", "say `decimals`"),
        ("terminator='none'\nshort='pad'", "type='int',storage='binary'", "has no blank for such a number"),
    ] {
        let got = crate::fixed::FixedWidthLayout::parse(&record(head, column), "l.toml");
        let got = got.map(|_| "ok".to_owned()).unwrap_or_else(|e| e.to_string());
        assert!(got.contains(says), "{got}\nshould say: {says}");
    }
}

proptest! {
    /// Any bytes in all columns, more often such as make numbers.
    #[test]
    fn like_the_twin(
        input in prop::collection::vec(prop_oneof![
            3 => prop::sample::select(vec![0xc4u8, 0xe3, 0x40, 0xf1, 0xf9, 0xc1, 0xd1, 0x51]),
            3 => prop::sample::select(vec![0x00u8, 0x12, 0x99, 0x1c, 0x9d, 0x5f, 0x40]),
            1 => any::<u8>(),
        ], 0..300),
        piece in 1usize..70,
    ) {
        let layout = layout(EBCDIC);
        prop_assert_eq!(fast(&layout, &input, |_| piece), naive::decode(&layout, &input));
    }
}
