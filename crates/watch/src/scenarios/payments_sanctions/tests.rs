use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind, NameKind};

const PARAMS: &str = r#"{"list":["Straße Ltd","ÅB. C","", "CO"],"drop_tokens":["ltd","CO","S.A."],
    "blocked_countries":["KP","ir"]}"#;

/// Parts of names that equal a listed name, or nearly.
const PARTS: &[&str] = &[
    "strasse",
    "STRASSE",
    "Straße",
    "straSe",
    " ",
    " ",
    "-",
    "Ltd",
    " LTD.",
    "Co",
    "A\u{30a}B",
    "åb",
    "ÅB",
    "\u{212b}b",
    "c",
    "C",
    "C\u{301}",
    ".",
    "s.a.",
    "N1",
    "ﬁ",
    "٣",
    "\u{a0}",
];
const BICS: &[&str] = &["BANKKPPY", "BANKkpPYXXX", "BANKIR", "BANKDEFF", "KPKPDEFF", "BANKK", "ÄÄÄÄKP", ""];

fn op() -> impl Strategy<Value = Op> {
    let name = || {
        let parts = proptest::collection::vec(prop::sample::select(PARTS), 1..5);
        proptest::option::of(parts.prop_map(|parts| &*parts.concat().leak()))
    };
    let bic = || proptest::option::of(prop::sample::select(BICS));
    let stage = prop::sample::select(&["initiation", "interbank", "cover", "return", "recall"][..]);
    let entry = (0u32..6, 1u32..4, 0u32..3, -20_000_000i64..20_000_000, any::<u8>());
    let payment = (step(), name(), name(), bic(), bic(), proptest::option::of(stage), 0u8..6);
    prop_oneof![
        1 => entry.prop_map(|(party, list, acct, time, odd)| {
            let mut more = vec![(EventField::Name, OpValue::Name(NameKind::Name, list))];
            more.extend((party != 0).then_some((EventField::Party, OpValue::Name(NameKind::Owner, party))));
            more.extend((acct != 0).then_some((EventField::Acct, OpValue::Name(NameKind::Account, acct))));
            more.extend((odd % 4 == 0).then_some((EventField::From, OpValue::Time(time))));
            more.extend((odd % 5 == 0).then_some((EventField::To, OpValue::Time(time + 5_000_000))));
            more.extend((odd % 16 == 1).then_some((EventField::Desk, OpValue::Name(NameKind::Desk, 1))));
            Op { kind: EventKind::List, instr: u32::from(party == 0), more, ..SILENT }
        }),
        6 => payment.prop_map(|(by, dr_name, cr_name, dr_bic, cr_bic, stage, reference)| {
            let mut more = vec![(EventField::DrAcct, OpValue::Name(NameKind::Account, 1))];
            let texts = [
                (EventField::DrName, dr_name),
                (EventField::CrName, cr_name),
                (EventField::DrBic, dr_bic),
                (EventField::CrBic, cr_bic),
                (EventField::Stage, stage),
            ];
            for (field, text) in texts {
                more.extend(text.map(|text| (field, OpValue::Text(text))));
            }
            more.extend((reference != 0).then_some((EventField::Ref, OpValue::Id(reference))));
            Op { kind: EventKind::Payment, by, more, ..SILENT }
        }),
    ]
}

/// Two ways to normalise a name could differ in one letter, mark or token.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
