use super::*;
use TemplateErrorCode::{S1, S2, S3, S4, S5};

fn load(text: &str) -> Result<Templates, TemplateError> {
    Templates::load(&[TemplateFile { name: "t.xml", content: text.as_bytes() }])
}

fn in_template(body: &str) -> String {
    format!(
        "<templates xmlns=\"http://www.fixprotocol.org/ns/fast/td/1.1\">\n<template name=\"T\" id=\"1\">\n{body}\n</template></templates>"
    )
}

/// A template that is wrong must name its place, or nobody finds it among ten thousand lines.
#[test]
fn static_errors_have_their_code_and_line() {
    for (body, code, line, says) in [
        ("<uInt32 name=\"A\"/>\n<string/>", S1, 4, "without a name"),
        ("<uInt32 name=\"A\" presence=\"maybe\"/>", S1, 3, "presence"),
        ("<string name=\"A\" charset=\"latin1\"/>", S1, 3, "charset"),
        ("<float name=\"A\"/>", S1, 3, "<float>"),
        ("<copy/>", S1, 3, "does not belong"),
        ("<uInt32 name=\"A\">\n<copy/>\n<delta/></uInt32>", S1, 5, "second operator"),
        ("<decimal name=\"A\"><exponent/>\n<copy/></decimal>", S1, 4, "beside"),
        ("<uInt32 name=\"A\">\n<exponent/></uInt32>", S1, 4, "<exponent>"),
        ("<string name=\"A\"><increment/></string>", S2, 3, "increment"),
        ("<decimal name=\"A\">\n<increment/></decimal>", S2, 4, "increment"),
        ("<uInt32 name=\"A\"><tail/></uInt32>", S2, 3, "tail"),
        ("<decimal name=\"A\"><exponent><tail/></exponent></decimal>", S2, 3, "tail"),
        ("<uInt32 name=\"A\"><copy value=\"-1\"/></uInt32>", S3, 3, "uInt32"),
        ("<int32 name=\"A\"><copy value=\"2147483648\"/></int32>", S3, 3, "int32"),
        ("<int32 name=\"A\"><copy value=\"+1\"/></int32>", S3, 3, "int32"),
        ("<uInt32 name=\"A\"><copy value=\"\"/></uInt32>", S3, 3, "uInt32"),
        ("<decimal name=\"A\"><copy value=\"1e5\"/></decimal>", S3, 3, "decimal"),
        ("<decimal name=\"A\"><copy value=\".\"/></decimal>", S3, 3, "decimal"),
        ("<decimal name=\"A\"><copy value=\"9223372036854775808\"/></decimal>", S3, 3, "decimal"),
        ("<string name=\"A\"><copy value=\"ö\"/></string>", S3, 3, "string"),
        ("<byteVector name=\"A\"><copy value=\"abc\"/></byteVector>", S3, 3, "byteVector"),
        ("<byteVector name=\"A\"><copy value=\"xy\"/></byteVector>", S3, 3, "byteVector"),
        ("<uInt32 name=\"A\"><constant/></uInt32>", S4, 3, "constant"),
        ("<uInt32 name=\"A\"><default/></uInt32>", S5, 3, "default"),
        (
            "<decimal name=\"A\" presence=\"optional\"><mantissa><default/></mantissa></decimal>",
            S5,
            3,
            "default",
        ),
        ("<sequence name=\"A\"><length><default/></length><uInt32 name=\"B\"/></sequence>", S5, 3, "default"),
        ("<group name=\"A\">\n<templateRef name=\"T\"/></group>", S1, 2, "refers to itself"),
        ("<field name=\"A\"><type name=\"B\"/></field>", S1, 3, "defined"),
    ] {
        let error = load(&in_template(body)).expect_err(body);
        assert_eq!((error.code, error.line), (code, line), "{body}: {error}");
        assert!(error.reason.contains(says), "{error}");
        assert!(error.to_string().starts_with(&format!("t.xml:{line}: {code:?}: ")), "{error}");
    }
}

#[test]
fn what_is_no_template_file_is_refused() {
    for text in [
        "",
        "text",
        "<templates",
        "<templates>",
        "<templates><template name=\"T\"></templates>",
        "<templates/><templates/>",
        "<messages/>",
        "<templates><field name=\"x\"/></templates>",
        "<templates><template id=\"1\"/></templates>",
        "<templates><template name=\"T\" id=\"4294967296\"/></templates>",
        "<templates><template name=\"T\" id=\"1\"/><template name=\"U\" id=\"1\"/></templates>",
        "<templates><define name=\"D\"/></templates>",
        "<templates><define name=\"D\"><enum/></define></templates>",
        "<templates a=\"1\" a=\"2\"/>",
    ] {
        let error = load(text).expect_err(text);
        assert_eq!(error.code, S1, "{text}: {error}");
    }
}

/// Templates that grow without end when they are written out were made to fill memory.
#[test]
fn templates_that_grow_are_refused() {
    let mut text = String::from("<templates><template name=\"T0\"><uInt32 name=\"A\"/></template>");
    for n in 1..40 {
        let refer = format!("<templateRef name=\"T{}\"/>", n - 1);
        text.push_str(&format!("<template name=\"T{n}\">{refer}{refer}</template>"));
    }
    let error = load(&format!("{text}</templates>")).unwrap_err();
    assert!(error.reason.contains("parts"), "{error}");
    let mut text =
        String::from("<templates><define name=\"D0\"><group><uInt32 name=\"A\"/></group></define>");
    for n in 1..40 {
        let field = |name: &str| format!("<field name=\"{name}\"><type name=\"D{}\"/></field>", n - 1);
        text.push_str(&format!("<define name=\"D{n}\"><group>{}{}</group></define>", field("A"), field("B")));
    }
    let error = load(&format!("{text}</templates>")).unwrap_err();
    assert!(error.reason.contains("parts"), "{error}");
    let mut text = String::from("<templates>");
    for n in 0..100_000 {
        text.push_str(&format!("<template name=\"T{n}\"><templateRef name=\"T{}\"/></template>", n + 1));
    }
    let error = load(&format!("{text}</templates>")).unwrap_err();
    assert!(error.reason.contains("through more than"), "{error}");
}

/// Small files that become large ones were not refused where no template alone was too large, or a name or a type was large
/// and used often.
#[test]
fn files_that_grow_in_all_are_refused() {
    let refused = |text: &str, says: &str| {
        let error = load(text).unwrap_err();
        assert!(error.code == S1 && error.reason.contains(says), "{error}");
    };
    // Each of 64 templates has as many parts as one may have, and all in a few kilobytes.
    let mut doubling = String::from("<template name=\"T0\"><uInt32 name=\"A\"/></template>");
    for n in 1..17 {
        let refer = format!("<templateRef name=\"T{}\"/>", n - 1);
        doubling.push_str(&format!("<template name=\"T{n}\">{refer}{refer}</template>"));
    }
    let many: String =
        (0..64).map(|n| format!("<template name=\"X{n}\"><templateRef name=\"T16\"/></template>")).collect();
    refused(&format!("<templates>{doubling}{many}</templates>"), "parts up to here");
    let inside = |inner: &str| {
        let name = "g".repeat(256);
        let (begin, end) = (format!("<group name=\"{name}\">").repeat(20), "</group>".repeat(20));
        format!("<templates>{doubling}<template name=\"X\">{begin}{inner}{end}</template></templates>")
    };
    refused(&inside("<templateRef name=\"T16\"/>"), "names and initial values");
    refused(&in_template(&"<templateRef/>".repeat((1 << 18) + 1)), "262144 parts");
    let long = "x".repeat(257);
    for attribute in ["name", "ns", "dictionary", "id"] {
        refused(&in_template(&format!("<uInt32 {attribute}=\"{long}\"/>")), "256 bytes");
    }
    refused(&in_template(&format!("<uInt32 name=\"A\"><copy key=\"{long}\"/></uInt32>")), "256 bytes");
    let value = "x".repeat(64 << 10);
    let constant = |value: &str| format!("<string name=\"A\"><constant value=\"{value}\"/></string>");
    load(&in_template(&constant(&value))).unwrap();
    refused(&in_template(&constant(&format!("{value}x"))), "65536 bytes");
    // A type is held once, however often it is used; a constant is not.
    let define = |of: &str, uses: usize| {
        let uses: String =
            (0..uses).map(|n| format!("<field name=\"F{n}\"><type name=\"D\"/></field>")).collect();
        format!(
            "<templates><define name=\"D\">{of}</define><template name=\"T\">{uses}</template></templates>"
        )
    };
    refused(&define(&constant(&value).replace(" name=\"A\"", ""), 2_000), "names and initial values");
    let elements: String = (0..3_000).map(|n| format!("<element name=\"E{n}\"/>")).collect();
    let templates = load(&define(&format!("<enum>{elements}</enum>"), 3_000)).unwrap();
    let [Instruction::Field(first), .., Instruction::Field(last)] = &templates.list[0].body[..] else {
        panic!("fields")
    };
    let (IntegerMeaning::Enum(first), IntegerMeaning::Enum(last)) = (&first.meaning, &last.meaning) else {
        panic!("an enum")
    };
    assert!(std::sync::Arc::ptr_eq(first, last));
    refused(&define(&format!("<enum>{elements}{elements}</enum>"), 1), "4096 elements");
    let spaces: String = (0..65).map(|n| format!(" xmlns:a{n}=\"\"")).collect();
    refused(&format!("<templates{spaces}/>"), "64 attributes");
    let spaces: String = (0..40).map(|n| format!(" xmlns:a{n}=\"\"")).collect();
    refused(&format!("<templates{spaces}><template{spaces} name=\"T\"/></templates>"), "namespaces");
    let one =
        format!("<template name=\"T\"><uInt32 name=\"A\"{spaces}/><uInt32 name=\"B\"{spaces}/></template>");
    load(&format!("<templates>{one}</templates>")).unwrap();
}

/// Names and values that a file has around them: namespaces, dictionaries, types of 1.2.
#[test]
fn what_is_around_a_field_is_its_own() {
    let text = r#"<?xml version="1.0"?>
<templates xmlns="http://www.fixprotocol.org/ns/fast/td/1.2" xmlns:x="urn:x" ns="urn:a" templateNs="urn:t" dictionary="template">
  <define name="Side"><enum><element name="Buy"/><element name="Sell"/></enum></define>
  <define name="Px"><decimal><exponent><constant value="-2"/></exponent></decimal></define>
  <template name="One" id="1" x:reset="yes">
    <typeRef name="App"/>
    <x:note><x:deep name="n"/></x:note>
    <field name="Side" id="54"><type name="Side"><default value="Sell"/></type></field>
    <field name="Px"><type name="Px"/></field>
    <uInt32 name="A" ns="urn:b"><copy dictionary="global" key="k"/></uInt32>
    <timestamp name="At" unit="nanosecond"><delta/></timestamp>
    <int32Vector name="V"/>
    <sequence name="S"><length/><string/></sequence>
  </template>
</templates>"#;
    let templates = load(text).unwrap();
    let template = templates.by_id(1).unwrap();
    assert!(template.reset);
    assert_eq!((template.name.ns.as_str(), template.name.local.as_str()), ("urn:t", "One"));
    assert_eq!(template.type_ref.as_ref().unwrap().local, "App");
    let [
        Instruction::Field(side),
        Instruction::Field(px),
        Instruction::Field(a),
        Instruction::Field(at),
        Instruction::Sequence(v),
        Instruction::Sequence(s),
    ] = &template.body[..]
    else {
        panic!("{:?}", template.body)
    };
    assert_eq!((side.name.local.as_str(), side.id.as_deref()), ("Side", Some("54")));
    let FieldEncoding::Plain(WireType::UInt32, operation) = &side.kind else { panic!("{side:?}") };
    assert_eq!((operation.operator, &operation.initial), (Operator::Default, &Some(InitialValue::Int(1))));
    assert!(matches!(&side.meaning, IntegerMeaning::Enum(elements) if elements[1] == (1, "Sell".to_owned())));
    let FieldEncoding::Split(exponent, mantissa) = &px.kind else { panic!("{px:?}") };
    assert_eq!(
        (px.name.local.as_str(), exponent.operator, mantissa.operator),
        ("Px", Operator::Constant, Operator::None)
    );
    let FieldEncoding::Plain(_, operation) = &a.kind else { panic!("{a:?}") };
    assert_eq!(
        (&operation.key.dictionary, operation.key.name.ns.as_str()),
        (&DictionaryScope::Global, "urn:b")
    );
    let FieldEncoding::Plain(WireType::UInt64, operation) = &at.kind else { panic!("{at:?}") };
    assert_eq!(operation.key.dictionary, DictionaryScope::Template(0));
    assert_eq!(at.meaning, IntegerMeaning::Timestamp { unit_ns: 1 });
    assert_eq!((v.body.len(), s.body.len()), (1, 1));
    let decimal = |text: &str| initial::parse_initial(text, WireType::Decimal, true).unwrap();
    assert_eq!(decimal(" -12.50 "), InitialValue::Decimal { mantissa: -125, exponent: -1 });
    assert_eq!(decimal("12000"), InitialValue::Decimal { mantissa: 12, exponent: 3 });
    assert_eq!(decimal("0.000"), InitialValue::Decimal { mantissa: 0, exponent: 0 });
}

/// A mistake in a type was once reported with the line of its own file, but with the name of the file that used it.
#[test]
fn a_mistake_in_a_type_of_another_file_is_told_with_that_file() {
    let uses = "<templates>\n<template name=\"T\"><field name=\"A\"><type name=\"D\"/></field></template></templates>";
    let defines =
        "<templates>\n\n\n\n<define name=\"D\"><uInt32>\n<copy value=\"x\"/></uInt32></define></templates>";
    let files = [("uses.xml", uses), ("defines.xml", defines)];
    let load = |files: &[(&str, &str)]| {
        let sources: Vec<TemplateFile<'_>> =
            files.iter().map(|(name, text)| TemplateFile { name, content: text.as_bytes() }).collect();
        Templates::load(&sources).unwrap_err().to_string()
    };
    assert!(load(&files).starts_with("defines.xml:6: S3: "), "{}", load(&files));
    // And one in what the field says itself, with the file of the field.
    let twice = uses.replace("<type", "\n<copy/><delta/><type");
    let good = defines.replace("\"x\"", "\"1\"");
    let files = [("uses.xml", &*twice), ("defines.xml", &*good)];
    assert!(load(&files).starts_with("uses.xml:3: S1: "), "{}", load(&files));
}
