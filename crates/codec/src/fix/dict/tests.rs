//! Small dictionaries, right and wrong; the real files are read in `tests/fix_vectors.rs`.

use expect_test::{Expect, expect};

use super::*;

fn check(xml: &str, expected: Expect) {
    let shown = match FixDictionary::parse(&[("d.xml", xml.as_bytes())]) {
        Ok(dictionary) => {
            let mut out = String::new();
            let mut messages: Vec<_> = dictionary.messages.values().collect();
            messages.sort_by_key(|message| message.msg_type.clone());
            for message in messages {
                out += &format!("{} {}\n", message.msg_type, message.name);
                for group in dictionary.groups(message.msg_type.as_bytes()).iter() {
                    show(group, 1, &mut out);
                }
            }
            out
        }
        Err(error) => format!("{error}\n"),
    };
    expected.assert_eq(&shown);
}

fn show(group: &GroupSpec, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    *out += &format!("{indent}{} by {:?}: {:?}\n", group.count_tag(), group.delimiter(), group.members());
    for nested in group.nested().iter() {
        show(nested, depth + 1, out);
    }
}

const FIELDS: &str = "<fields>
  <field number='453' name='NoPartyIDs' type='NUMINGROUP'/><field number='448' name='PartyID' type='STRING'/>
  <field number='802' name='NoSub' type='NUMINGROUP'/><field number='523' name='SubID' type='STRING'/>
  <field number='627' name='NoHops' type='NUMINGROUP'/><field number='628' name='Hop' type='STRING'/>
</fields>";

fn fix(messages: &str, components: &str) -> String {
    format!(
        "<fix>\n<header><group name='NoHops'><field name='Hop'/></group></header>\n<trailer/>\n\
         <messages>{messages}</messages>\n<components>{components}</components>\n{FIELDS}</fix>"
    )
}

// A group inside a component inside a group must come out nested, and the header's group in all.
#[test]
fn quickfix_groups_through_components() {
    check(
        &fix(
            "<message name='Order' msgtype='D'><component name='Parties'/></message>",
            "<component name='Parties'><group name='NoPartyIDs'><field name='PartyID'/><component name='Sub'/></group></component>
             <component name='Sub'><group name='NoSub'><field name='SubID'/></group></component>",
        ),
        expect![[r#"
            D Order
              453 by Some(448): [448, 802]
                802 by Some(523): [523]
              627 by Some(628): [628]
        "#]],
    );
}

// Each wrong file must say where; a loop must end.
#[test]
fn wrong_files_name_the_line() {
    for (xml, expected) in [
        (String::new(), expect!["d.xml:1: no XML element\n"]),
        ("{}".into(), expect!["d.xml:1: no XML element\n"]),
        (
            "<a/>".into(),
            expect![
                "d.xml:1: the root element is <a>; a QuickFIX dictionary has <fix>, Orchestra <repository>\n"
            ],
        ),
        (
            "<fix>\n<messages>\n</fix>".into(),
            expect![
                "d.xml:3: not well-formed XML: ill-formed document: expected `</messages>`, but `</fix>` was found\n"
            ],
        ),
        ("<fix>\n<fields>\n".into(), expect!["d.xml:3: the file ends inside an element\n"]),
        ("<fix/>\n<fix/>".into(), expect!["d.xml:2: content after the root element\n"]),
    ] {
        check(&xml, expected);
    }
}

// One wrong line must not cost the dictionary: the rest is read, and the note on a line left out names its number.
#[test]
fn faults_are_left_out_with_a_note() {
    let message = "<message name='A' msgtype='A'>";
    for (xml, expected) in [
        ("<fix>\n<colours/></fix>".to_owned(), "d.xml:2: <colours> does not belong in <fix>; left out"),
        (
            "<fix><fields>\n\n<field number='x' name='A'/></fields></fix>".into(),
            "d.xml:3: number=\"x\" is not a tag; left out",
        ),
        (
            "<fix><fields>\n<field number='0' name='A'/></fields></fix>".into(),
            "d.xml:2: number=\"0\" is not a tag; left out",
        ),
        (
            "<fix><fields>\n<field name='A'/></fields></fix>".into(),
            "d.xml:2: <field> has no attribute number; left out",
        ),
        (
            fix(&format!("\n{message}<field name='Nix'/></message>"), ""),
            "d.xml:5: field Nix is not defined; left out",
        ),
        (
            fix(&format!("\n\n{message}<component name='Nix'/></message>"), ""),
            "d.xml:6: component Nix is not defined; left out",
        ),
        (
            fix(&format!("{message}<group name='NoSub'/></message>"), ""),
            "d.xml:4: group 802 has no fields; left out",
        ),
        (
            fix(
                &format!("{message}<component name='C'/></message>"),
                "<component name='C'>\n<component name='C'/></component>",
            ),
            "d.xml:6: component C contains itself; left out",
        ),
    ] {
        let dictionary = FixDictionary::parse(&[("d.xml", xml.as_bytes())]).expect("tolerant");
        assert_eq!(dictionary.notes(), [expected]);
        if xml.contains("NoHops") {
            assert!(dictionary.group(b"A", 627).is_some(), "the header's group is lost:\n{xml}");
        }
    }
}

// Components that name each other twice would be read 2^30 times; a chain of them must end.
#[test]
fn components_without_end() {
    let components = (0..30).map(|n| {
        let refs = format!("<component name='C{}'/>", (n + 1) % 30).repeat(2);
        format!("<component name='C{n}'>{refs}<field name='Hop'/></component>")
    });
    let xml = fix(
        "<message name='A' msgtype='A'><component name='C0'/></message>",
        &components.collect::<String>(),
    );
    let error = FixDictionary::parse(&[("d.xml", xml.as_bytes())]).expect_err("2^30 fields");
    assert_eq!(error.to_string(), "d.xml:5: more than 100000 fields");
    let chain = (0..40).map(|n| format!("<component name='C{n}'><component name='C{}'/></component>", n + 1));
    let xml =
        fix("<message name='A' msgtype='A'><component name='C0'/></message>", &chain.collect::<String>());
    let error = FixDictionary::parse(&[("d.xml", xml.as_bytes())]).expect_err("too deep");
    assert_eq!(error.to_string(), "d.xml:5: components nest deeper than 32");
}

// Orchestra refers by id, groups before they are defined, values by code set.
#[test]
fn orchestra_groups_and_code_sets() {
    let xml = r##"<fixr:repository xmlns:fixr="x">
<fixr:codeSets><fixr:codeSet name="S" id="1" type="char"><fixr:code name="Buy" value="1"/></fixr:codeSet></fixr:codeSets>
<fixr:fields><fixr:field id="54" name="Side" type="S"/><fixr:field id="453" name="N" type="NumInGroup"/>
<fixr:field id="448" name="P" type="String"/><fixr:field id="96" name="Raw" type="data" lengthId="9500"/></fixr:fields>
<fixr:components><fixr:component id="7" name="C"><fixr:groupRef id="7"/></fixr:component></fixr:components>
<fixr:groups><fixr:group id="7" name="Ps"><fixr:numInGroup id="453"/><fixr:fieldRef id="448"/></fixr:group></fixr:groups>
<fixr:messages><fixr:message name="O" msgType="D"><fixr:structure><fixr:componentRef id="7"/></fixr:structure></fixr:message>
<fixr:message name="Binary"/></fixr:messages></fixr:repository>"##;
    check(
        xml,
        expect![[r#"
        D O
          453 by Some(448): [448]
    "#]],
    );
    let dictionary = FixDictionary::parse(&[("o.xml", xml.as_bytes())]).expect("a good file");
    let side = dictionary.field(54).expect("field 54");
    assert_eq!(side.kind, "CHAR");
    assert_eq!(side.values, [("1".to_owned(), "Buy".to_owned())]);
    assert_eq!(dictionary.data_tags().data_of(9500), Some(96));
    assert_eq!(dictionary.data_tags().data_of(354), Some(355));
}

// The session of one file, the messages of another: names of both must be known to both.
#[test]
fn two_files_make_one_dictionary() {
    let session = "<fix><header><field name='Hop'/></header><fields><field number='628' name='Hop' type='STRING'/></fields></fix>";
    let app = "<fix><messages><message name='M' msgtype='M'><group name='N'><field name='Hop'/></group></message></messages>
      <fields><field number='5000' name='N' type='NUMINGROUP'/></fields></fix>";
    let both =
        FixDictionary::parse(&[("t.xml", session.as_bytes()), ("a.xml", app.as_bytes())]).expect("both");
    assert_eq!(both.group(b"M", 5000).and_then(|group| group.delimiter()), Some(628));
    let held: Vec<_> = both.files().iter().map(ToString::to_string).collect();
    assert_eq!(
        held,
        [
            "t.xml: QuickFIX dictionary FIX ?.?: 1 fields, 0 messages, 0 components, 0 groups",
            "a.xml: QuickFIX dictionary FIX ?.?: 1 fields, 1 messages, 0 components, 1 groups",
        ]
    );
    let alone = FixDictionary::parse(&[("a.xml", app.as_bytes())]).expect("tolerant");
    assert_eq!(
        alone.notes(),
        ["a.xml:1: field Hop is not defined; left out", "a.xml:1: group 5000 has no fields; left out"]
    );
}
