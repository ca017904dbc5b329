//! Small cases of framing, fields, groups and JSON: input as a log shows it, output as the
//! command prints it.

use std::sync::Arc;

use expect_test::{Expect, expect};

use super::super::{
    FixDecodeOptions, FixDictionary, FixFault, GroupSpec, MessageTokenizer, TokenSlice, decode_json,
};
use super::*;

/// The JSON of `input` without the file; `|` is SOH. Read byte by byte and at once, which must
/// not differ.
fn json(input: &[u8], opts: &FixDecodeOptions) -> String {
    let mut at_once = Vec::new();
    let summary = decode_json(&mut &input[..], "f", opts, &mut at_once).expect("memory reads and writes");
    let mut trickled = Vec::new();
    decode_json(&mut Trickle(input), "f", opts, &mut trickled).expect("memory reads and writes");
    let text = String::from_utf8(at_once).expect("JSON is UTF-8");
    assert_eq!(text.as_bytes(), trickled);
    assert_eq!(summary.messages + summary.errors + summary.texts, text.lines().count() as u64);
    for line in text.lines() {
        let parsed: serde_json::Value = serde_json::from_str(line).expect("every line is JSON");
        let kinds = ["error", "fields", "text"].iter().filter(|&&kind| parsed.get(kind).is_some());
        assert_eq!(kinds.count(), 1, "{line}");
    }
    text.replace("{\"file\":\"f\",\"n\":", "")
}

struct Trickle<'t>(&'t [u8]);

impl std::io::Read for Trickle<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = buf.len().min(1).min(self.0.len());
        buf[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

fn check_with(framer: FixFramer, input: &[u8], expected: Expect) {
    expected.assert_eq(&json(input, &FixDecodeOptions { framer, dictionary: None }));
}

fn check(input: &str, expected: Expect) {
    check_with(FixFramer::default(), input.replace('|', "\u{1}").as_bytes(), expected);
}

fn lenient(input: &str, expected: Expect) {
    let framer = FixFramer::default().with_lenient(true).with_sep(FieldSeparator::Pipe);
    check_with(framer, input.as_bytes(), expected);
}

const GOOD: &str = "8=FIX.4.2|9=5|35=0|10=161|";

#[test]
fn an_empty_input_is_no_message() {
    check("", expect![[""]]);
    check("\r\n\n", expect![[""]]);
}

#[test]
fn a_message_a_line() {
    check(
        &format!("{GOOD}\n{GOOD}\r\n"),
        expect![[r#"
        0,"offset":0,"type":"0","fields":{"8":"FIX.4.2","9":"5","35":"0","10":"161"}}
        1,"offset":27,"type":"0","fields":{"8":"FIX.4.2","9":"5","35":"0","10":"161"}}
    "#]],
    );
}

// A neighbour was lost to a wrong length in more than one engine: each bad message between two
// good ones, and the good ones must be there.
#[test]
fn neighbours_of_bad_messages_are_kept() {
    for bad in [
        "8=FIX.4.2|9=5|35=0|10=160|",
        "8=FIX.4.2|9=4|35=0|10=161|",
        "8=FIX.4.2|9=31|35=0|10=161|",
        "8=FIX.4.2|9=57|35=0|10=161|",
        "8=FIX.4.2|9=999999999|35=0|10=161|",
        "8=FIX.4.2|9=1234567890|35=0|10=161|",
        "8=FIX.4.2|9=|35=0|10=161|",
        "8=FIX.4.2|9=x|35=0|10=161|",
        "8=FIX.4.2|35=0|10=161|",
        "8=FIX.4.2|9=5|35=0|10=16|",
        "8=FIX.4.2|9=5|35=0|10=1611|",
        "8=FIX.4.2|9=5|35=0|10=abc|",
        "8=FIX.4.2|9=5|35=0|10=|",
        "8=FIX.4.2|9=5|35=0|",
        "8=FIX.4.2|9=5|35=",
        "8=FIX.4.2|9=5|",
        "8=FIX.4.2|9=",
        "8=FIX.4.2|",
        "8=FIX.4.2",
        "8=FIX",
        "garbage",
        "|",
        "\0\0\0\0",
        "8=8=8=",
        "10=161|",
    ] {
        let input = format!("{GOOD}{bad}{GOOD}").replace('|', "\u{1}");
        let text = json(input.as_bytes(), &FixDecodeOptions::default());
        let lines: Vec<_> = text.lines().collect();
        let good = "\"type\":\"0\",\"fields\"";
        assert!(lines.len() >= 3, "{bad}: {text}");
        assert!(lines[0].contains(good) && lines[lines.len() - 1].contains(good), "{bad}: {text}");
        assert!(lines[1..lines.len() - 1].iter().all(|line| line.contains("\"error\"")), "{bad}: {text}");
    }
}

#[test]
fn each_fault_has_its_code() {
    check(
        "8=FIX.4.2|9=5|35=0|10=160|",
        expect![[r#"
        0,"offset":0,"length":26,"error":{"code":"bad_checksum","message":"CheckSum (10) says 160, the bytes sum to 161"}}
    "#]],
    );
    check(
        "8=FIX.4.2|9=4|35=0|10=161|",
        expect![[r#"
        0,"offset":0,"length":26,"error":{"code":"bad_body_length","message":"BodyLength (9) claims 4 bytes, the body has 5"}}
    "#]],
    );
    check(
        "8=FIX.4.2|9=9999999|35=0|10=161|",
        expect![[r#"
        0,"offset":0,"length":32,"error":{"code":"bad_body_length","message":"BodyLength (9) claims 9999999 bytes, the limit is 1048576 a message"}}
    "#]],
    );
    check(
        "8=FIX.4.2|35=0|10=161|",
        expect![[r#"
        0,"offset":0,"length":22,"error":{"code":"bad_body_length","message":"BodyLength (9) is not the second field, or not a number"}}
    "#]],
    );
    check(
        "8=FIX.4.2|9=5|35=0|10=16|",
        expect![[r#"
        0,"offset":0,"length":25,"error":{"code":"bad_checksum","message":"CheckSum (10) is not three digits"}}
    "#]],
    );
    check(
        "8=FIX.4.2|9=5|35=0|10=1",
        expect![[r#"
        0,"offset":0,"length":23,"error":{"code":"truncated","message":"the message ends without CheckSum (10)"}}
    "#]],
    );
    check(
        "8=FIX.4.2|9=5|35=0|8=FIX.4.2|9=5|35=0|10=161|",
        expect![[r#"
        0,"offset":0,"length":19,"error":{"code":"truncated","message":"the message ends without CheckSum (10)"}}
        1,"offset":19,"type":"0","fields":{"8":"FIX.4.2","9":"5","35":"0","10":"161"}}
    "#]],
    );
    check(
        "abc",
        expect![[r#"
        0,"offset":0,"length":3,"error":{"code":"garbage","message":"bytes outside any message"}}
    "#]],
    );
}

#[test]
fn each_malformed_field_has_its_offset() {
    for (body, expected) in [
        (
            "34=1|35=0|",
            expect![[r#"
            0,"offset":0,"length":32,"error":{"code":"malformed_tag","message":"MsgType (35) is not the third field, or is empty"}}
        "#]],
        ),
        (
            "35=|",
            expect![[r#"
            0,"offset":0,"length":25,"error":{"code":"malformed_tag","message":"MsgType (35) is not the third field, or is empty"}}
        "#]],
        ),
        (
            "35=0||",
            expect![[r#"
                0,"offset":0,"length":27,"error":{"code":"malformed_tag","message":"the field after 35 (MsgType), at byte 19, is empty"}}
            "#]],
        ),
        (
            "35=0|abc|",
            expect![[r#"
                0,"offset":0,"length":30,"error":{"code":"malformed_tag","message":"the field after 35 (MsgType), at byte 19, has no '='"}}
            "#]],
        ),
        (
            "35=0|=1|",
            expect![[r#"
                0,"offset":0,"length":29,"error":{"code":"malformed_tag","message":"the field after 35 (MsgType), at byte 19, has a tag that is not 1 to 9 digits without leading zero"}}
            "#]],
        ),
        (
            "35=0|058=1|",
            expect![[r#"
                0,"offset":0,"length":33,"error":{"code":"malformed_tag","message":"the field after 35 (MsgType), at byte 20, has a tag that is not 1 to 9 digits without leading zero"}}
            "#]],
        ),
        (
            "35=0|5a=1|",
            expect![[r#"
                0,"offset":0,"length":32,"error":{"code":"malformed_tag","message":"the field after 35 (MsgType), at byte 20, has a tag that is not 1 to 9 digits without leading zero"}}
            "#]],
        ),
        (
            "35=0|-5=1|",
            expect![[r#"
                0,"offset":0,"length":32,"error":{"code":"malformed_tag","message":"the field after 35 (MsgType), at byte 20, has a tag that is not 1 to 9 digits without leading zero"}}
            "#]],
        ),
        (
            "35=0|1234567890=1|",
            expect![[r#"
                0,"offset":0,"length":40,"error":{"code":"malformed_tag","message":"the field after 35 (MsgType), at byte 20, has a tag that is not 1 to 9 digits without leading zero"}}
            "#]],
        ),
        (
            "35=0|58=|",
            expect![[r#"
                0,"offset":0,"length":30,"error":{"code":"malformed_tag","message":"the field 58 (Text) at byte 19 has no value"}}
            "#]],
        ),
        (
            "35=0|95=4|96=abc|",
            expect![[r#"
                0,"offset":0,"length":39,"error":{"code":"malformed_tag","message":"the data field 96 (RawData) at byte 25 is not as long as 95 (RawDataLength) before it says, 4 bytes"}}
            "#]],
        ),
        (
            "35=0|95=x|96=abc|",
            expect![[r#"
                0,"offset":0,"length":39,"error":{"code":"malformed_tag","message":"the data field 96 (RawData) at byte 25 has no length: 95 (RawDataLength) before it is not a number"}}
            "#]],
        ),
    ] {
        check_with(FixFramer::default(), &wrap("FIX.4.4", body), expected);
    }
}

#[test]
fn good_fields_of_every_kind() {
    for (body, expected) in [
        (
            "35=UNKNOWN|",
            expect![[r#"
            0,"offset":0,"type":"UNKNOWN","fields":{"8":"FIX.4.4","9":"11","35":"UNKNOWN","10":"208"}}
        "#]],
        ),
        (
            "35=0|123456789=1|99999999=2|9999999=3|",
            expect![[r#"
            0,"offset":0,"type":"0","fields":{"8":"FIX.4.4","9":"38","35":"0","123456789":"1","99999999":"2","9999999":"3","10":"093"}}
        "#]],
        ),
        (
            "35=0|58=a=b=|",
            expect![[r#"
            0,"offset":0,"type":"0","fields":{"8":"FIX.4.4","9":"13","35":"0","58":"a=b=","10":"186"}}
        "#]],
        ),
        (
            "35=0|58=say \"hi\" \\ \t\u{7f}é|",
            expect![[r#"
            0,"offset":0,"type":"0","fields":{"8":"FIX.4.4","9":"24","35":"0","58":"say \"hi\" \\ \t\u007fé","10":"145"}}
        "#]],
        ),
        (
            "35=0|95=7|96=a|10=1=|58=x|",
            expect![[r#"
            0,"offset":0,"type":"0","fields":{"8":"FIX.4.4","9":"26","35":"0","95":"7","96":"a\u000110=1=","58":"x","10":"247"}}
        "#]],
        ),
        (
            "35=0|268=2|270=1|271=5|270=2|58=x|",
            expect![[r#"
            0,"offset":0,"type":"0","fields":{"8":"FIX.4.4","9":"34","35":"0","268":"2","270":["1","2"],"271":"5","58":"x","10":"038"}}
        "#]],
        ),
        (
            "35=0|1=a|4097=b|1=c|",
            expect![[r#"
            0,"offset":0,"type":"0","fields":{"8":"FIX.4.4","9":"20","35":"0","1":["a","c"],"4097":"b","10":"230"}}
        "#]],
        ),
    ] {
        check_with(FixFramer::default(), &wrap("FIX.4.4", body), expected);
    }
    let latin = wrap("FIX.4.4", "35=B|58=x|");
    let mut latin: Vec<u8> = latin.iter().map(|&b| if b == b'x' { 0xe9 } else { b }).collect();
    let at = latin.len() - 4;
    // x is 120, é in Latin-1 is 233: the sum grows by 113.
    let sum = (u32::from(latin[at] - b'0') * 100
        + u32::from(latin[at + 1] - b'0') * 10
        + u32::from(latin[at + 2] - b'0')
        + 113)
        % 256;
    latin.splice(at..at + 3, format!("{sum:03}").bytes());
    check_with(
        FixFramer::default(),
        &latin,
        expect![[r#"
        0,"offset":0,"type":"B","fields":{"8":"FIX.4.4","9":"10","35":"B","58":{"hex":"e9"},"10":"117"}}
    "#]],
    );
}

// A message inside a data field is content: it must not come out as a message of its own.
#[test]
fn a_message_inside_a_data_field_is_content() {
    let inner = String::from_utf8(wrap("FIX.4.2", "35=0|")).expect("ASCII");
    let outer = wrap("FIX.4.4", &format!("35=n|212={}|213={inner}|", inner.len()));
    check_with(
        FixFramer::default(),
        &outer,
        expect![[r#"
        0,"offset":0,"type":"n","fields":{"8":"FIX.4.4","9":"43","35":"n","212":"26","213":"8=FIX.4.2\u00019=5\u000135=0\u000110=161\u0001","10":"250"}}
    "#]],
    );
    // Also when the outer one is damaged.
    let damaged: Vec<u8> = outer.iter().map(|&b| if b == b'n' { b'm' } else { b }).collect();
    check_with(
        FixFramer::default(),
        &damaged,
        expect![[r#"
        0,"offset":0,"length":65,"error":{"code":"bad_checksum","message":"CheckSum (10) says 250, the bytes sum to 249"}}
    "#]],
    );
}

// Logs: other separators, no length, no sum, no separator at the end of the line.
#[test]
fn lenient_logs() {
    lenient(
        "8=FIX.4.2|9=0|35=D|58=x|10=0|\n8=FIX.4.2|9=0|35=D|58=y|10=0\n",
        expect![[r#"
        0,"offset":0,"type":"D","fields":{"8":"FIX.4.2","9":"0","35":"D","58":"x","10":"0"}}
        1,"offset":30,"type":"D","fields":{"8":"FIX.4.2","9":"0","35":"D","58":"y","10":"0"}}
    "#]],
    );
    lenient(
        "8=FIX.4.2|35=D|58=x|\n8=FIX.4.2|35=D|58=y",
        expect![[r#"
        0,"offset":0,"type":"D","fields":{"8":"FIX.4.2","35":"D","58":"x"}}
        1,"offset":21,"type":"D","fields":{"8":"FIX.4.2","35":"D","58":"y"}}
    "#]],
    );
    lenient(
        "8=FIX.4.2|34=1|58=|35=0|",
        expect![[r#"
        0,"offset":0,"type":"0","fields":{"8":"FIX.4.2","34":"1","58":"","35":"0"}}
    "#]],
    );
    lenient(
        "8=FIX.4.2|9=5|35=0|10=161\n",
        expect![[r#"
        0,"offset":0,"type":"0","fields":{"8":"FIX.4.2","9":"5","35":"0","10":"161"}}
    "#]],
    );
    lenient(
        "x8=FIX.4.2|nothing|",
        expect![[r#"
            0,"offset":0,"length":1,"error":{"code":"garbage","message":"bytes outside any message"}}
            1,"offset":1,"length":18,"error":{"code":"malformed_tag","message":"the field after 8 (BeginString), at byte 10, has no '='"}}
        "#]],
    );
}

// A log with another separator shows the same message: length and sum are of the original.
#[test]
fn separators_of_logs() {
    for sep in [FieldSeparator::Soh, FieldSeparator::Pipe, FieldSeparator::Semicolon, FieldSeparator::CaretA]
    {
        let message = shown(&wrap("FIX.4.4", "35=B|58=a^b A=|148=x|"), sep);
        check_with(
            FixFramer::default().with_sep(sep),
            &message,
            expect![[r#"
            0,"offset":0,"type":"B","fields":{"8":"FIX.4.4","9":"21","35":"B","58":"a^b A=","148":"x","10":"160"}}
        "#]],
        );
    }
}

// A log's own text is no fault, but a broken message is one. A line end may replace the last separator.
#[test]
fn text_of_logs() {
    let framer = FixFramer::default().with_sep(FieldSeparator::Pipe).with_log(true);
    let good = "8=FIX.4.2|9=5|35=0|10=161";
    let log = format!("IN|{good}\nup|8=FIX.4.2|9=5|35=\n{good}| ok\n\nno 9=5\n|35=0|\n1 {good}");
    check_with(
        framer,
        log.as_bytes(),
        expect![[r#"
            0,"offset":0,"length":3,"text":"IN|"}
            1,"offset":3,"type":"0","fields":{"8":"FIX.4.2","9":"5","35":"0","10":"161"}}
            2,"offset":29,"length":3,"text":"up|"}
            3,"offset":32,"length":17,"error":{"code":"truncated","message":"the message ends without CheckSum (10)"}}
            4,"offset":50,"type":"0","fields":{"8":"FIX.4.2","9":"5","35":"0","10":"161"}}
            5,"offset":76,"length":3,"text":" ok"}
            6,"offset":81,"length":6,"text":"no 9=5"}
            7,"offset":88,"length":6,"error":{"code":"garbage","message":"bytes outside any message"}}
            8,"offset":95,"length":2,"text":"1 "}
            9,"offset":97,"type":"0","fields":{"8":"FIX.4.2","9":"5","35":"0","10":"161"}}
        "#]],
    );
}

// Zeros and endless garbage come in pieces of the largest message, not as one.
#[test]
fn garbage_comes_in_bounded_pieces() {
    let framer = FixFramer::default().with_max_message(100);
    let mut input = vec![0; 250];
    input.extend(wrap("FIX.4.4", "35=0|"));
    check_with(
        framer.clone(),
        &input,
        expect![[r#"
        0,"offset":0,"length":100,"error":{"code":"garbage","message":"bytes outside any message"}}
        1,"offset":100,"length":100,"error":{"code":"garbage","message":"bytes outside any message"}}
        2,"offset":200,"length":50,"error":{"code":"garbage","message":"bytes outside any message"}}
        3,"offset":250,"type":"0","fields":{"8":"FIX.4.4","9":"5","35":"0","10":"163"}}
    "#]],
    );
    // A message without an end, too.
    let mut input = b"8=FIX.4.4\x019=99\x0135=0\x0158=".to_vec();
    input.extend([b'x'; 250]);
    input.extend(wrap("FIX.4.4", "35=0|"));
    check_with(
        framer,
        &input,
        expect![[r#"
        0,"offset":0,"length":100,"error":{"code":"bad_body_length","message":"no CheckSum (10) and no next message within 100 bytes"}}
        1,"offset":100,"length":100,"error":{"code":"garbage","message":"bytes outside any message"}}
        2,"offset":200,"length":73,"error":{"code":"garbage","message":"bytes outside any message"}}
        3,"offset":273,"type":"0","fields":{"8":"FIX.4.4","9":"5","35":"0","10":"163"}}
    "#]],
    );
}

fn grouped(body: &str, expected: Expect) {
    let xml = b"<fix><messages><message name='S' msgtype='s'>
      <group name='NoSides'><field name='Side'/><field name='Qty'/>
        <group name='NoParties'><field name='Party'/><field name='Role'/></group></group>
      </message></messages><fields>
      <field number='552' name='NoSides' type='NUMINGROUP'/><field number='54' name='Side' type='CHAR'/>
      <field number='38' name='Qty' type='QTY'/><field number='453' name='NoParties' type='NUMINGROUP'/>
      <field number='448' name='Party' type='STRING'/><field number='452' name='Role' type='INT'/>
      </fields></fix>";
    let dictionary = FixDictionary::parse(&[("s.xml", xml)]).expect("a good dictionary");
    let opts = FixDecodeOptions { framer: FixFramer::default(), dictionary: Some(Arc::new(dictionary)) };
    expected.assert_eq(&json(&wrap("FIX.4.4", body), &opts));
}

#[test]
fn groups_by_dictionary() {
    grouped(
        "35=s|552=2|54=1|453=2|448=A|452=1|448=B|38=9|54=2|38=8|60=x|",
        expect![[r#"
        0,"offset":0,"type":"s","fields":{"8":"FIX.4.4","9":"60","35":"s","552":[{"54":"1","453":[{"448":"A","452":"1"},{"448":"B"}],"38":"9"},{"54":"2","38":"8"}],"60":"x","10":"008"}}
    "#]],
    );
    grouped(
        "35=s|552=0|60=x|",
        expect![[r#"
        0,"offset":0,"type":"s","fields":{"8":"FIX.4.4","9":"16","35":"s","552":[],"60":"x","10":"062"}}
    "#]],
    );
    // Not a group in this type: a repeated tag.
    grouped(
        "35=t|552=1|54=1|54=2|",
        expect![[r#"
        0,"offset":0,"type":"t","fields":{"8":"FIX.4.4","9":"21","35":"t","552":"1","54":["1","2"],"10":"209"}}
    "#]],
    );
    grouped(
        "35=s|552=1|54=1|54=2|60=x|",
        expect![[r#"
            0,"offset":0,"length":48,"error":{"code":"group_count","message":"group 552 (NoSides) at byte 20 says 1 entries, has 2; entry 2 ended at 60 (TransactTime)"}}
        "#]],
    );
    grouped(
        "35=s|552=3|54=1|54=2|60=x|",
        expect![[r#"
            0,"offset":0,"length":48,"error":{"code":"group_count","message":"group 552 (NoSides) at byte 20 says 3 entries, has 2; entry 2 ended at 60 (TransactTime)"}}
        "#]],
    );
    grouped(
        "35=s|552=1|38=1|60=x|",
        expect![[r#"
            0,"offset":0,"length":43,"error":{"code":"group_count","message":"group 552 (NoSides) at byte 20 says 1 entries, has 0; 38 (OrderQty) follows"}}
        "#]],
    );
    grouped(
        "35=s|552=x|54=1|60=x|",
        expect![[r#"
            0,"offset":0,"length":43,"error":{"code":"group_count","message":"the count of group 552 (NoSides) at byte 20 is not a number"}}
        "#]],
    );
    grouped(
        "35=s|552=1|54=1|453=2|448=A|60=x|",
        expect![[r#"
            0,"offset":0,"length":55,"error":{"code":"group_count","message":"group 453 (NoPartyIDs) at byte 31 says 2 entries, has 1; entry 1 ended at 60 (TransactTime)"}}
        "#]],
    );
}

// A mapping that states its groups without a dictionary: whatever follows the count starts entries.
#[test]
fn a_group_without_a_delimiter_takes_the_first_field() {
    let message = wrap("FIX.4.4", "35=X|268=2|279=0|55=A|270=1|279=1|270=2|10000=x|");
    let mut tokens = MessageTokenizer::new();
    tokens.index(&message, &FixFramer::default()).expect("good fields");
    let spec = GroupSpec::new(268, None, vec![270, 279, 55], Vec::new());
    let tags = |tokens: TokenSlice<'_>| tokens.iter().map(|token| token.tag).collect::<Vec<_>>();
    let group = spec.read(&message, tokens.as_slice(), 3).expect("two entries");
    assert_eq!(tokens.as_slice().token_at(group.end()).tag, 10000);
    assert_eq!(group.map(tags).collect::<Vec<_>>(), [vec![279, 55, 270], vec![279, 270]]);
}

// Nesting without end must stop with a fault, not with the stack.
#[test]
fn groups_nest_to_a_limit() {
    let mut spec = Arc::new(GroupSpec::new(1040, Some(2040), Vec::new(), Vec::new()));
    for depth in (0..40).rev() {
        spec = Arc::new(GroupSpec::new(1000 + depth, None, Vec::new(), vec![spec]));
    }
    let body: String = (0..41).map(|depth| format!("{}=1|", 1000 + depth)).collect();
    let message = wrap("FIX.4.4", &format!("35=X|{body}2040=x|"));
    let mut tokens = MessageTokenizer::new();
    tokens.index(&message, &FixFramer::default()).expect("good fields");
    let read = spec.read(&message, tokens.as_slice(), 3);
    assert!(matches!(read, Err(FixFault::GroupDepth { .. })), "{read:?}");
}
