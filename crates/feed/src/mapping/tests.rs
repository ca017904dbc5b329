//! Shipped mappings, and mistakes with their lines.

use super::*;

fn error(text: &str) -> String {
    Mapping::parse(text, "m.toml").map(|_| "ok".to_owned()).unwrap_or_else(|e| e.to_string())
}

const HEAD: &str = "name='m'\nformat='fix'\nmessage={ts='52'}\n";

#[test]
fn mistakes_are_named_where_they_are() {
    for (rule, says) in [
        ("[[rule]]\nwhen={35='X'}\n", "rule 1: neither `ignore` nor an event"),
        ("[[rule]]\nwhen={35=[]}\nignore=true", "rule 1: `when`: a list of no values"),
        ("[[rule]]\nwhen={55=[]}\nignore=true", "rule 1: `when`: a list of no values"),
        (
            "[[rule]]\nwhen={35={sign='negative'}}\nignore=true",
            "rule 1: `when`: `35` is one value or several",
        ),
        ("[[rule]]\n[[rule.event]]\nkind='bob'\n", "rule 1, event 1: no kind `bob`"),
        (
            "[[rule]]\n[[rule.event]]\nkind='bbo'\nfields={pxx='1'}\n",
            "rule 1, event 1: `bbo` has no field `pxx`",
        ),
        (
            "[[rule]]\n[[rule.event]]\nkind='bbo'\nfields={instr='55',bid='x'}\n",
            "rule 1, event 1, bid: `x` is no tag",
        ),
        (
            "[[rule]]\n[[rule.event]]\nkind='bbo'\nfields={instr='55',bid={from='1',table='t'}}\n",
            "rule 1, event 1, bid: no table `t`",
        ),
        ("[[rule]]\n[[rule.event]]\nkind='bbo'\neach='268'\n", "rule 1, event 1: no group `268`"),
        (
            "[[rule]]\n[[rule.event]]\nkind='bbo'\nfields={bid='1'}\n",
            "rule 1, event 1: `bbo` needs the field `instr`",
        ),
        ("[[rule]]\nignore=true\nwhat=1\n", "unknown field `what`"),
    ] {
        let got = error(&format!("{HEAD}{rule}"));
        assert!(got.contains(says), "{got}\nshould say: {says}");
    }
}

/// "no field `pxx`" in a file of two hundred lines is a hunt without the line.
#[test]
fn mistakes_name_their_line() {
    for (rule, line) in [
        ("[[rule]]\nwhen={35='X'}\n", 4),
        ("[[rule]]\nignore=true\n[[rule]]\n[[rule.event]]\nkind='bob'\n", 8),
        ("[[rule]]\n[[rule.event]]\nkind='bbo'\n[rule.event.fields]\ninstr='55'\nbid='x'\n", 9),
        ("[[rule]]\n[[rule.event]]\nkind='bbo'\nfields={instr='55'}\nkeep={\n a='1',\n b='y',\n}\n", 10),
        ("[group.268]\nmembers=['1',\n'2','x']\ndelimiter='1'\n[[rule]]\nignore=true", 6),
        ("[[rule]]\nwhen={35='X',yy='1'}\nignore=true", 5),
        ("[[rule]]\nignore=true\n[rule.when]\n35='X'\n55=[]\n", 8),
        ("[[rule]]\n[[rule.event]]\nkind='bbo'\nfields={bid='1'}\n", 5),
        ("rule=[]", 4),
    ] {
        let got = error(&format!("{HEAD}{rule}"));
        assert!(got.contains(&format!("m.toml:{line}: ")), "{got}\nshould be in line {line} of\n{rule}");
    }
}

/// A missing table had no line at all, and the fuzzer checks that every error has one.
#[test]
fn whatever_is_wrong_has_a_line() {
    for text in [
        "",
        "name='m'",
        "name='m'\nformat='nope'\nmessage={ts='52'}\n[[rule]]\nignore=true",
        "name='m'\nformat='fixed'\nmessage={ts='52'}\n[[rule]]\nignore=true",
        "name='m'\nformat='fix'\nmessage={ts='x'}\n[[rule]]\nignore=true",
        "rule=[",
        "\u{feff}name=1",
    ] {
        assert!(!crate::try_mapping(text, b""), "{text}");
    }
    let orders = include_str!("../../../../mappings/fix44-orders.toml");
    assert!(crate::try_mapping(orders, &unitape_codec::twin::fix::sample::sample_orders(2, 1)));
}

/// The columns are the layout's: a mapping for another layout must not compile.
#[test]
fn a_mapping_for_fixed_width_records_names_its_layout() {
    let rule = "[[rule]]\n[[rule.event]]\nkind='bbo'\n[rule.event.fields]\ninstr='symbol'\n";
    for (rest, says) in [
        ("message={ts='time'}\n", "format fixed needs a layout"),
        ("layout='nope'\nmessage={ts='time'}\n", "m.toml:3: layout: neither a shipped one"),
        (
            "layout='nyse-taq-bbo-98'\nmessage={ts='tim'}\n",
            "m.toml:4: message.ts: `tim` is no column of the layout nyse-taq-bbo-98",
        ),
        ("layout='nyse-taq-bbo-98'\nmessage={ts='label'}\n", "`label` is no column"),
        (
            "layout='nyse-taq-bbo-98'\nmessage={ts='time'}\n[group.x]\ncount='symbol'\ndelimiter='symbol'\nmembers=['symbol']\n",
            "m.toml:6: group.x: groups of this format have no count",
        ),
        ("layout='nyse-taq-bbo-98'\nmessage={ts='time'}\n", "ok"),
    ] {
        let got = error(&format!("name='m'\nformat='fixed'\n{rest}{rule}"));
        assert!(got.contains(says), "{got}\nshould say: {says}");
    }
    let got =
        error("name='m'\nformat='fix'\nlayout='nyse-taq-bbo-98'\nmessage={ts='52'}\n[[rule]]\nignore=true");
    assert!(got.contains("m.toml:3: format fix has no layout"), "{got}");
}

#[test]
fn framing_is_for_fix_and_has_known_separators() {
    let rest = "message={ts='52'}\n[[rule]]\nignore=true";
    for (head, says) in [
        ("name='m'\nformat='fix'\nframing={sep='|',log=true}\n", "ok"),
        ("name='m'\nformat='fix'\nframing={sep='/'}\n", "m.toml:3: framing.sep: `/` is none of"),
        ("name='m'\nformat='swift'\nframing={log=true}\n", "m.toml:3: framing: format swift has none"),
    ] {
        let got = error(&format!("{head}{rest}"));
        assert!(got.contains(says), "{got}\nshould say: {says}");
    }
}

// A field that the model got later was kept as a field of the mapping's own, and no scenario found it.
#[test]
fn a_kept_value_that_could_be_a_field_is_hinted_at() {
    let text = "name = \"m\"\nformat = \"swift\"\nmessage = { ts = \"time\" }\n[[rule]]\n[[rule.event]]\nkind = \"payment\"\n\
                [rule.event.keep]\nvalue_date = \"32A.date\"\nuetr = \"3.121\"\n[rule.event.fields]\nref = \"20.reference\"\n";
    let hints = Mapping::parse(text, "m.toml").unwrap().field_hints();
    let found: Vec<_> = hints.iter().map(|h| (h.name.as_str(), h.kind, h.path.as_str(), h.line)).collect();
    assert_eq!(found, [("uetr", "payment", "3.121", 9)]);
    for mapping in Mapping::all_built_in() {
        let payments = mapping.field_hints().into_iter().filter(|hint| hint.kind == "payment");
        assert_eq!(payments.collect::<Vec<_>>(), [], "{}", mapping.name);
    }
}
