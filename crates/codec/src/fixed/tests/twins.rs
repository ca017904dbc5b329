//! The fast path against its slow twin, on real records, on made ones, and on both with bytes changed.

use super::{ALL, fast, layout};
use crate::fixed::FixedWidthLayout;
use crate::twin::fixed::naive;
use proptest::prelude::*;
use std::sync::Arc;

const TAQ: &[u8] = include_bytes!("../../../../../vectors/fixed/taq/nyse_taq_bbo_20140206.txt");

fn taq() -> Arc<FixedWidthLayout> {
    layout(FixedWidthLayout::built_in("nyse-taq-bbo-98").unwrap())
}

#[test]
fn the_taq_file_like_the_twin() {
    let layout = taq();
    let (fast, slow) = (fast(&layout, TAQ, |_| usize::MAX / 2), naive::decode(&layout, TAQ));
    assert_eq!(slow.len(), 9_995);
    assert!(slow.iter().all(|f| f.outcome.is_ok()), "{:?}", slow.iter().find(|f| f.outcome.is_err()));
    assert_eq!(fast, slow);
}

/// A good record of the layout of all sorts, now and then with something of another sort in a column.
fn data() -> impl Strategy<Value = String> {
    let part = |good: &'static str, bad: &'static str| prop_oneof![9 => good.prop_map(|s: String| s), 1 => bad.prop_map(|s: String| s)];
    let first = (
        part("[A-Z ]", "[ -~]"),
        part("[A-Z]{2} {1,2}[A-Z ]{2}|[A-Z]{6}", " {6}").prop_map(|s| format!("{s:6.6}")),
        part("\\*[A-Z*]{3}", "\\*{4}"),
        part("[A-Z ]{3}", "[ -~]{3}"),
        part("[0-9]{5}|  [0-9]{3}|99999", "[0-9 +-]{5}"),
        part("[+-][0-9]{4}|  [+-][0-9]{2}|[0-9]{5}", "[0-9+ -]{5}"),
        part("[0-9]{4}[+ -]", "[0-9+ -]{5}"),
        part("[0-9]{3}[{}A-R]|[0-9]{4}", "[0-9A-Z{]{4}"),
        part("[{}A-R][0-9]{2}| {3}", "[0-9A-Z{]{3}"),
        part("-[0-9]{3}\\.[0-9]{2}|[0-9]{2}\\.[0-9]{4}| {7}", "[0-9.+ -]{7}"),
    );
    let second = (
        part("[0-9]{2}0[1-9][012][1-8]|140309", "[0-9]{6}"),
        part("[01][0-9][0-5][0-9][0-5][0-9]{4}", "[0-9 ]{9}"),
        part("[01][0-9][0-5][0-9][0-5][0-9]| {6}", "[0-9]{6}"),
        part("[01][0-9]:[0-5][0-9]", "[0-9:]{5}"),
        part("[YN10 ]", "[ -~]"),
        part("[0-9]{10}| {10}", "[0-9 A]{10}"),
    );
    (first, second).prop_map(|((a, b, c, d, e, f, g, h, i, j), (k, l, m, n, o, p))| {
        [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p].concat().trim_end().to_owned()
    })
}

fn file() -> impl Strategy<Value = Vec<u8>> {
    let head = prop_oneof![
        8 => "HD201(40309|41102|40206)[0-9]{6}".prop_map(|s: String| s),
        1 => "H[A-Z][0-9]{14}".prop_map(|s: String| s),
        1 => Just(String::new())
    ];
    let line = prop_oneof![
        12 => data(),
        1 => "TR[0-9]{6}".prop_map(|s: String| s),
        1 => "[ -~]{0,90}".prop_map(|s: String| s)
    ];
    let end = prop_oneof![Just("\n"), Just("\r\n"), Just("\n\n")];
    (head, prop::collection::vec((line, end), 0..12)).prop_map(|(head, lines)| {
        let lines: String = lines.iter().map(|(line, end)| format!("{line}{end}")).collect();
        format!("{head}\n{lines}").into_bytes()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn made_records_in_any_pieces(mut input in file(), change in prop::option::of((any::<usize>(), any::<u8>())), piece in 1usize..200) {
        if let (Some((at, byte)), false) = (change, input.is_empty()) {
            let at = at % input.len();
            input[at] = byte;
        }
        let layout = layout(ALL);
        let slow = naive::decode(&layout, &input);
        prop_assert_eq!(&fast(&layout, &input, |_| usize::MAX / 2), &slow);
        prop_assert_eq!(&fast(&layout, &input, |_| piece), &slow);
    }

    #[test]
    fn taq_records_with_bytes_changed(from in 0usize..9_000, changes in prop::collection::vec((any::<usize>(), any::<u8>()), 0..6), drop in 0usize..300, piece in 1usize..400) {
        let layout = taq();
        let mut input = TAQ[..98].to_vec();
        input.extend_from_slice(&TAQ[98 + from * 98..][..20 * 98]);
        for (at, byte) in changes {
            let at = at % input.len();
            input[at] = byte;
        }
        input.drain(drop.min(input.len())..(drop + drop % 7).min(input.len()));
        let slow = naive::decode(&layout, &input);
        prop_assert_eq!(&fast(&layout, &input, |_| piece), &slow);
    }

    #[test]
    fn what_the_fuzzer_checks(data in prop::collection::vec(any::<u8>(), 0..200)) {
        crate::twin::fixed::check::any_bytes(&data);
    }

    #[test]
    fn without_terminator_too(bytes in prop::collection::vec(any::<u8>(), 0..60), piece in 1usize..30) {
        let layout = layout(
            "name='x'\nterminator='none'\n[[record]]\nname='r'\ncolumn=[{name='a',length=3,type='int'},{name='b',length=2}]",
        );
        let slow = naive::decode(&layout, &bytes);
        prop_assert_eq!(&fast(&layout, &bytes, |_| piece), &slow);
    }

    #[test]
    fn no_layout_text_panics(text in "(\\[\\[record\\]\\]|name|column|=|'x'|\\{|\\}|length|[0-9]{1,6}|,|\\[|\\]|type|terminator='none'|\n| ){0,40}") {
        _ = FixedWidthLayout::parse(&text, "l.toml");
    }
}
