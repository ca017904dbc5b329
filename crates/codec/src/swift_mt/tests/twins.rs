//! Fast and slow path on made-up streams, whole and cut, and on values of every tag.

use super::super::frame::SwiftFramer;
use crate::twin::swift_mt::{check, sample};
use proptest::prelude::*;

/// Pieces of streams, good and nearly good.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&[u8]> = vec![
        b"{1:F01AAAABEBBAXXX0000000000}",
        b"{1:F21AAAABEBBAXXX0000000000}{4:{177:1704260717}{451:0}}",
        b"{2:I103BBBBDEFFXXXXN}",
        b"{2:O1031612170425BBBBUS33BXXX01613135551704260717N}",
        b"{3:{108:REF}{119:STP}}",
        b"{4:\r\n:20:REF\r\n:32A:190425USD3700,\r\n-}",
        b"{4:\n:20:REF\n:59:/1\nNAME\n-}",
        b"{4:{1:F01PTY1US33AXXX0000000000}{2:I300PTY2GB33AXXXU3003}{4:\n:15A:\n-}{5:{CHK:1}}}",
        b"{4:",
        b"{5:{CHK:73AC90A7A3F1}}",
        b"{S:{SAC:}{COP:P}}",
        b"-}",
        b"}",
        b"{",
        b"$",
        b"$\n",
        b"\r\n",
        b"\n-\n",
        b"\n-XXX\n",
        b":20:REF\n",
        b":20:STATEMENT\r\n:25:1\r\n:28C:1/1\r\n:60F:C200101EUR444,29\r\n",
        b":61:2001010101D65,00NOVBNL47INGB9999999999\nname\n:86:text\n\nmore\n",
        b":62F:C200101EUR379,29\n-\n",
        b"ABNANL2A\n940\nABNANL2A\n",
        b":940:\n",
        b"1\n2\n3\n4\n5\n6\n7\n8\n9\n",
        b"\xef\xbb\xbf",
        b"\xef\xbb",
        b"junk ",
        b"-   \t \n",
        b"-                                \n",
    ];
    prop_oneof![
        8 => prop::sample::select(pieces).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ]
}

#[derive(Debug, Clone)]
enum Change {
    Set(usize, u8),
    Cut(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let byte = prop_oneof![prop::sample::select(b"{}:-\n\r$ 1245SXA0,".to_vec()), any::<u8>()];
    prop_oneof![
        (any::<usize>(), byte).prop_map(|(at, byte)| Change::Set(at, byte)),
        (any::<usize>(), 1usize..30).prop_map(|(at, len)| Change::Cut(at, len)),
    ]
}

fn changed(mut bytes: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for change in changes {
        let len = bytes.len();
        match *change {
            Change::Set(at, byte) if len > 0 => bytes[at % len] = byte,
            Change::Cut(at, n) if len > 0 => {
                let at = at % len;
                bytes.drain(at..len.min(at + n));
            }
            _ => {}
        }
    }
    bytes
}

prop_compose! {
    fn stream()(
        parts in prop::collection::vec(fragment(), 0..8),
        changes in prop::collection::vec(change(), 0..3),
    ) -> Vec<u8> {
        changed(parts.concat(), &changes)
    }
}

fn framer() -> impl Strategy<Value = SwiftFramer> {
    prop::sample::select(vec![64, 100, 200, 1 << 20])
        .prop_map(|max| SwiftFramer::default().with_max_message(max))
}

/// A tag and a value of its form.
const VALUES: &[(&str, &str)] = &[
    ("20", "REF"),
    ("20C", ":SEME//2005080800000944"),
    ("13C", "/RNCTIME/1356+0000"),
    ("13D", "1610301730+0000"),
    ("23B", "CRED"),
    ("23E", "PHOB/20.527.19.60"),
    ("23G", "NEWM/CODU"),
    ("25P", "12345\nAAAABEBB"),
    ("28C", "00115/001"),
    ("28E", "1/ONLY"),
    ("30", "170502"),
    ("30V", "20170502"),
    ("32A", "190425USD3700,50"),
    ("32C", "190425USD3700,50"),
    ("32H", "NEUR12,3"),
    ("33B", "NOK3710,"),
    ("34F", "EURD0,00"),
    ("35B", "ISIN GB00BH4HKS39\nVODAFONE"),
    ("35B", "/XS/123\nBOND"),
    ("36", "1,2345"),
    ("36B", ":SETT//UNIT/1000,00"),
    ("50A", "/12345678901234567890\nCFIMHKH1XXX"),
    ("50F", "/DE89370400440532013000\n1/NAME\n2/STREET\n3/DE/TOWN"),
    ("50F", "CUST/DE/1234\n1/NAME"),
    ("50K", "/0020121503\r\nNAME\r\nSTREET"),
    ("52A", "//FOOLLLLLLULLXXXL2SC05060308\nLLLLLULLXXX"),
    ("52D", "/D/123\nBANK\nTOWN"),
    ("53A", "/C/1234A0123456\nMARKDEFF"),
    ("53B", "/D\nPLACE"),
    ("53B", "/00010013800002001234"),
    ("57C", "/123"),
    ("59", "NAME\nSTREET"),
    ("59F", "/1\n1/NAME\n3/GB"),
    ("60F", "D090331EUR61,02"),
    ("61", "1409010902DR000000000001,62NTRF0000549855700010//025498557/000001\nDETAILS"),
    ("61", "200101    D65,00NOVBNL47INGB"),
    ("61", "1811261126CR\n30,00N062NONREF"),
    ("61", "2212051205C,32NDIV252100549047714//RJHI"),
    ("61", "160230D5,N024"),
    ("71A", "SHA"),
    ("71F", "USD29,"),
    ("72", "/INS/X\n//Y"),
    ("86", "a\nb"),
    ("90B", ":DEAL//ACTU/EUR11,11"),
    ("90D", "1EUR2,30"),
    ("92A", ":INTR//N1,5"),
    ("93B", ":AGGR/ISS/UNIT/N5,"),
    ("94B", ":TRAD//EXCH/XSWX"),
    ("95P", ":SELL//FOOOFRPP"),
    ("95Q", ":SELL//NAME\nSTREET"),
    ("95R", ":DEAG/FOOV/1234"),
    ("97A", ":SAFE//123456789"),
    ("98A", ":SETT//20050808"),
    ("98C", ":PREP//20070328043657"),
    ("98E", ":PREP//20141113130218,123/N0530"),
    ("19A", ":SETT//NOK123456,50"),
    ("19A", ":SETT//NNOK1,"),
    ("22F", ":SETR/ISSU/TRAD"),
    ("16R", "GENL"),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn fast_and_slow_agree(bytes in stream(), framer in framer()) {
        if let Err(message) = check::agree(&framer, &bytes) {
            prop_assert!(false, "{}", message);
        }
    }

    // A block of a stream ends anywhere. A decision at a cut must be the decision about the whole.
    #[test]
    fn a_cut_changes_no_answer(bytes in stream(), framer in framer()) {
        if let Err(message) = check::cuts(&framer, &bytes) {
            prop_assert!(false, "{}", message);
        }
    }

    // Values of a form, with a byte or two changed, under their own tag and another's.
    #[test]
    fn values_are_taken_apart_alike(
        value in prop::sample::select(VALUES),
        tag in prop_oneof![3 => Just(None), 1 => prop::sample::select(VALUES).prop_map(|v| Some(v.0))],
        changes in prop::collection::vec(change(), 0..3),
    ) {
        let bytes = changed(value.1.as_bytes().to_vec(), &changes);
        if let Err(message) = check::agree_on_value(tag.unwrap_or(value.0).as_bytes(), &bytes) {
            prop_assert!(false, "{}", message);
        }
    }
}

// A form that its own example does not have would agree with its twin on nothing but refusals.
#[test]
fn the_values_are_of_their_forms() {
    for (tag, value) in VALUES {
        let mut parts = super::super::parts::SwiftComponents::default();
        let split = super::super::parts::split(
            super::super::SwiftTag::new(tag.as_bytes()),
            value.as_bytes(),
            &mut parts,
        );
        assert_eq!(split, Ok(true), ":{tag}:{value}");
        check::agree_on_value(tag.as_bytes(), value.as_bytes()).expect("alike");
        // Mappings know a component by its name.
        for part in parts.as_slice() {
            assert!(super::super::parts::NAMES.binary_search(&part.name).is_ok(), "{}", part.name);
        }
    }
}

// The stream that the bench times must be what it says: valid, all values too, and about 550 bytes a message.
#[test]
fn sample_messages_are_good_and_agree() {
    let messages = sample::sample_messages(400, 7);
    check::agree(&SwiftFramer::default(), &messages).expect("alike");
    let mut out = Vec::new();
    let summary = super::super::decode_json(&mut &messages[..], "s", &SwiftFramer::default(), &mut out)
        .expect("memory");
    assert_eq!((summary.messages, summary.errors, summary.bad_values), (400, 0, 0));
    let mean = messages.len() / 400;
    assert!((500..=600).contains(&mean), "{mean} bytes a message");
    assert_ne!(messages, sample::sample_messages(400, 8));
}

// A tag without a form has no parts and refuses nothing, whatever follows it: every possible tag.
#[test]
fn every_tag_on_values_of_no_form() {
    let values: &[&[u8]] = &[
        b"",
        b":",
        b":S\0E",
        b":ABCD",
        b":ABCD/",
        b":ABCD//",
        b":ABCD//\n\xef",
        b":ABCD/X/Y/Z",
        b"/",
        b"//",
        b"N",
        b"EUR1,",
        b"20200101",
    ];
    // Service messages have tags of three digits.
    let letters = std::iter::once(None).chain((1..=127).map(Some));
    for letter in letters {
        for number in 0..100 {
            let mut tag = format!("{number:02}").into_bytes();
            tag.extend(letter);
            for value in values {
                check::agree_on_value(&tag, value).expect("equal");
            }
        }
    }
}
