//! ISO 20022 on the command line: good and bad files, stdin, a feed recognised by its content.

use crate::common::{cat, root, run, run_with_stdin};

const GOOD: &str = "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.002.001.11\"><A><B C=\"x\">1</B><B>2</B></A></Document>";

fn vectors(name: &str) -> String {
    root().join("vectors/iso20022").join(name).display().to_string()
}

// A pipe gives its bytes in pieces, and a bad message must not take its neighbours with it.
#[test]
fn decode_reads_stdin_and_keeps_the_neighbours_of_bad_messages() {
    let bomb = "<!DOCTYPE lolz [<!ENTITY lol \"lol\">]><lolz>&lol;</lolz>";
    let input = format!("\u{feff}{GOOD}\n{bomb}\n<?xml version=\"1.0\"?>{GOOD}junk\n{GOOD}");
    let ran = run_with_stdin(["decode", "iso20022", "-", "--json"], input.as_bytes()).code(3);
    let lines = ran.lines();
    let types: Vec<_> =
        lines.iter().map(|l| l["type"].as_str().or(l["error"]["code"].as_str()).unwrap_or("?")).collect();
    assert_eq!(types, ["pacs.002.001.11", "doctype", "pacs.002.001.11", "garbage", "pacs.002.001.11"]);
    assert_eq!(lines[0]["fields"]["Document/A/B"], serde_json::json!(["1", "2"]));
    assert_eq!(lines[0]["fields"]["Document/A/B@C"], "x");
    assert_eq!(lines[0]["offset"], 3);
    assert_eq!(lines.iter().map(|l| l["n"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let place = lines[4]["offset"].as_u64().unwrap() as usize;
    assert_eq!(&input[place..], GOOD);
    let shown = run_with_stdin(["decode", "iso20022", "-"], GOOD.as_bytes()).code(0);
    assert_eq!(
        shown.stdout.trim_ascii_end(),
        b"0 @0 pacs.002.001.11 Document/A/B@C=x Document/A/B=[\"1\",\"2\"]"
    );
}

#[test]
fn decode_of_nothing_and_of_no_file() {
    assert!(run_with_stdin(["decode", "iso20022", "-", "--json"], b"").code(0).stdout.is_empty());
    let ran = run_with_stdin(["decode", "iso20022", "-", "--json"], b"nothing of the sort\n").code(3);
    assert_eq!(ran.json()["error"]["code"], "garbage");
    run(["decode", "iso20022", "no-such-file", "--json"]).code(1).says(&["no-such-file"]);
    run(["decode", "iso20022"]).code(2);
}

#[test]
fn a_file_is_recognised_by_its_content() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("t");
    let file = vectors("prowide/pacs.008.001.07.xml");
    let account = run(["consolidate", &file, "--tape", tape.to_str().unwrap(), "--json"]).code(0).json();
    assert_eq!((&account["messages"], &account["by_kind"]["payment"]), (&1.into(), &1.into()));
    let first = &cat(&tape, &[])[0];
    assert_eq!(
        (&first["amt"], &first["ccy"], &first["dr_name"]),
        (&"5000".into(), &"USD".into(), &"JOHN DOE".into())
    );
    // XML of another type is not accepted as one.
    let other = dir.path().join("other.xml");
    std::fs::write(&other, "<?xml version=\"1.0\"?><html><body/></html>").unwrap();
    let (other, tape) = (other.display().to_string(), dir.path().join("u").display().to_string());
    run(["consolidate", &other, "--tape", &tape]).code(3).says(&["not recognised"]);
}

/// The result of `input`: exit code, the events without the tape's own, and the reasons of the quarantine.
fn consolidated(input: &[u8]) -> (i32, Vec<serde_json::Value>, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let (file, tape) = (dir.path().join("in.xml"), dir.path().join("t"));
    std::fs::write(&file, input).unwrap();
    let feed = format!("pay=iso20022:iso20022:{}", file.display());
    let ran = run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--json"]);
    let mut events = cat(&tape, &[]);
    let reasons = events.iter().filter(|e| e["kind"] == "quarantine");
    let reasons = reasons.map(|e| format!("{}: {}", e["reason"], e["detail"])).collect();
    events.retain(|e| e["kind"] != "quarantine");
    (ran.code.unwrap(), events, reasons)
}

/// A payment with this number, its transaction made by `transaction`.
fn payment(n: usize, transaction: &str) -> String {
    format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08\"><FIToFICstmrCdtTrf><GrpHdr><MsgId>M{n}</MsgId><CreDtTm>2026-03-02T09:30:00Z</CreDtTm></GrpHdr>{transaction}</FIToFICstmrCdtTrf></Document>\n"
    )
}

fn transfer(reference: &str, debtor: &str) -> String {
    format!(
        "<CdtTrfTxInf><PmtId><EndToEndId>{reference}</EndToEndId></PmtId><IntrBkSttlmAmt Ccy=\"EUR\">12.50</IntrBkSttlmAmt><Dbtr><Nm>{debtor}</Nm></Dbtr></CdtTrfTxInf>"
    )
}

fn references(events: &[serde_json::Value]) -> Vec<&str> {
    events.iter().map(|e| e["ref"].as_str().unwrap_or("?")).collect()
}

// A message that was cut inside CDATA continued to the end of the next section, and swallowed the messages before it.
#[test]
fn a_message_cut_inside_cdata_takes_no_neighbour_with_it() {
    let good = |n: usize| payment(n, &transfer(&format!("R{n}"), "<![CDATA[A & B]]>"));
    let cut = good(1);
    let cut = &cut[..cut.find("A & B").unwrap() + 3];
    let batch = |n: usize| {
        format!(
            "<E><H>x</H><P><![CDATA[{}]]></P></E>\n",
            good(n).trim_end().replace("<![CDATA[A & B]]>", "A")
        )
    };
    let cut_batch = &batch(1)[..batch(1).find("<EndToEndId").unwrap()];
    let with = |cut: &str, of: &dyn Fn(usize) -> String| {
        let all = format!("{}{cut}{}", of(0), (2..30).map(of).collect::<String>());
        let (_, events, reasons) = consolidated(all.as_bytes());
        (events, reasons)
    };
    let all: Vec<_> = [0].into_iter().chain(2..30).map(|n| format!("R{n}")).collect();
    let (events, reasons) = with(cut, &good);
    assert_eq!(references(&events), all, "{reasons:?}");
    assert!(reasons.len() == 1 && reasons[0].contains("truncated"), "{reasons:?}");
    let (events, reasons) = with(cut_batch, &batch);
    assert_eq!(references(&events), all, "{reasons:?}");
    assert!(reasons[0].contains("truncated"), "{reasons:?}");
    // A document that is quoted whole in a section is text.
    let quoted = good(3).trim_end().replace("<![CDATA[A & B]]>", "A");
    let (_, events, reasons) =
        consolidated(payment(2, &transfer("R2", &format!("<![CDATA[{quoted}]]>"))).as_bytes());
    assert_eq!((references(&events), &reasons[..]), (vec!["R2"], &[][..]));
}

// Supplementary data of another namespace was paid (Namespaces in XML 1.0, section 6.1: a name is its namespace and local part).
#[test]
fn elements_of_another_namespace_are_no_payments() {
    let foreign = transfer("EVIL", "X").replace("<CdtTrfTxInf>", "<CdtTrfTxInf xmlns=\"urn:other\">");
    let prefixed = transfer("EVIL", "X")
        .replace("<", "<o:")
        .replace("<o:/", "</o:")
        .replace("<o:CdtTrfTxInf>", "<o:CdtTrfTxInf xmlns:o=\"urn:other\">");
    let within =
        transfer("R1", "X").replace("<PmtId>", "<PmtId><EndToEndId xmlns=\"urn:other\">EVIL</EndToEndId>");
    for other in [&foreign, &prefixed] {
        let (_, events, reasons) =
            consolidated(payment(1, &format!("{other}{}", transfer("R1", "A"))).as_bytes());
        assert_eq!(references(&events), ["R1"], "{reasons:?}");
    }
    let (_, events, reasons) = consolidated(payment(1, &within).as_bytes());
    assert_eq!(references(&events), ["R1"], "{reasons:?}");
    // The same namespace by a prefix is the same.
    let same = payment(1, &transfer("R1", "A").replace("<", "<p:").replace("<p:/", "</p:"))
        .replace("xmlns=", "xmlns:p=\"urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08\" xmlns=");
    let (_, events, reasons) = consolidated(same.as_bytes());
    assert_eq!(references(&events), ["R1"], "{reasons:?}");
}

// The first of two amounts counted, and nobody got an error (the schemas of pacs.008: maxOccurs 1).
#[test]
fn a_repeat_of_what_is_allowed_once_is_refused() {
    let amount = "<IntrBkSttlmAmt Ccy=\"EUR\">12.50</IntrBkSttlmAmt>";
    for (once, name) in [
        (amount, "IntrBkSttlmAmt"),
        ("<EndToEndId>R1</EndToEndId>", "EndToEndId"),
        ("<Nm>A</Nm>", "Nm"),
        ("<Dbtr><Nm>A</Nm></Dbtr>", "Dbtr"),
    ] {
        let twice = transfer("R1", "A").replace(once, &once.repeat(2));
        let input = format!("{}{}", payment(1, &twice), payment(2, &transfer("R2", "A")));
        let (code, events, reasons) = consolidated(input.as_bytes());
        assert_eq!((code, references(&events)), (3, vec!["R2"]), "{name}");
        assert!(reasons[0].contains("repeated") && reasons[0].contains(name), "{reasons:?}");
    }
    let body = payment(1, &transfer("R1", "A"));
    let message = &body[body.find("<FIToFI").unwrap()..body.find("</Document>").unwrap()];
    let (code, _, reasons) = consolidated(body.replace(message, &message.repeat(2)).as_bytes());
    assert_eq!(code, 3, "two messages in one document");
    assert!(reasons[0].contains("repeated"), "{reasons:?}");
    // Elements that may repeat are none the worse.
    let several =
        transfer("R1", "A").replace("</Dbtr>", "</Dbtr><RmtInf><Ustrd>a</Ustrd><Ustrd>b</Ustrd></RmtInf>");
    assert_eq!(consolidated(payment(1, &several).as_bytes()).0, 0);
}

// A file that declared ISO 8859-1 was refused where it used it.
#[test]
fn declared_encodings_of_one_byte_are_decoded() {
    for (declared, name, bytes) in [
        ("ISO-8859-1", "Müller", &b"M\xfcller"[..]),
        ("iso-8859-15", "Žižek €", b"\xb4i\xb8ek \xa4"),
        ("windows-1252", "Müller €", b"M\xfcller \x80"),
        ("Windows-1250", "Łódź", b"\xa3\xf3d\x9f"),
    ] {
        let head = format!("<?xml version=\"1.0\" encoding=\"{declared}\"?>\n");
        let batch = format!(
            "{head}<E>{}{}</E>",
            payment(1, &transfer("R1", "@@")),
            payment(2, &transfer("R2", "@@"))
        );
        for text in [format!("{head}{}", payment(1, &transfer("R1", "@@"))), batch] {
            let parts: Vec<&[u8]> = text.split("@@").map(str::as_bytes).collect();
            let (code, events, reasons) = consolidated(&parts.join(bytes));
            assert_eq!(code, 0, "{declared}: {reasons:?}");
            assert!(
                !events.is_empty() && events.iter().all(|e| e["dr_name"] == name),
                "{declared}: {events:?}"
            );
        }
    }
    // A byte that is no character of the set is refused: a control character where Windows has a quote.
    let text =
        format!("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n{}", payment(1, &transfer("R1", "@@")));
    let parts: Vec<&[u8]> = text.split("@@").map(str::as_bytes).collect();
    let (code, events, reasons) = consolidated(&parts.join(&b"\x93"[..]));
    assert_eq!((code, events.len()), (3, 0));
    assert!(reasons[0].contains("bad_char"), "{reasons:?}");
}

// XML 1.0, 3.3.3: tabs and line ends in an attribute are blanks, a reference is its character.
#[test]
fn attribute_values_are_normalised() {
    let input = GOOD.replace("C=\"x\"", "C=\" a\tb\r\nc\rd&#10;e&#x9;&amp; \"");
    let line = run_with_stdin(["decode", "iso20022", "-", "--json"], input.as_bytes()).code(0).json();
    assert_eq!(line["fields"]["Document/A/B@C"], " a b c d\ne\t& ");
}

/// A document of this message.
fn document(kind: &str, content: &str) -> String {
    format!("<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:{kind}\">{content}</Document>")
}

const GROUP: &str = "<GrpHdr><MsgId>M1</MsgId><CreDtTm>2026-03-02T09:30:00Z</CreDtTm></GrpHdr>";

fn agent(name: &str, bic: &str) -> String {
    format!("<{name}><FinInstnId><BICFI>{bic}</BICFI></FinInstnId></{name}>")
}

fn event(input: &str) -> serde_json::Value {
    let (_, mut events, reasons) = consolidated(input.as_bytes());
    assert_eq!(events.len(), 1, "{reasons:?}");
    events.pop().unwrap()
}

// The parties of a return were looked for where versions before 09 had them (pacs.004.001.09, TxInf/RtrChain).
#[test]
fn a_return_names_its_parties_in_its_chain() {
    let body = format!(
        "<PmtRtr>{GROUP}<TxInf><OrgnlEndToEndId>E1</OrgnlEndToEndId><RtrdIntrBkSttlmAmt Ccy=\"EUR\">7.00</RtrdIntrBkSttlmAmt><RtrChain><Dbtr><Pty><Nm>Payer Now</Nm></Pty></Dbtr>{}<Cdtr><Pty><Nm>Paid Now</Nm></Pty></Cdtr></RtrChain><OrgnlTxRef><Dbtr><Pty><Nm>Other</Nm></Pty></Dbtr></OrgnlTxRef></TxInf></PmtRtr>",
        agent("DbtrAgt", "AAAADEFF")
    );
    let e = event(&document("pacs.004.001.09", &body));
    assert_eq!(
        (&e["dr_name"], &e["cr_name"], &e["dr_bic"]),
        (&"Payer Now".into(), &"Paid Now".into(), &"AAAADEFF".into())
    );
    let old = event(&document("pacs.004.001.09", &body.replace("RtrChain", "Xxx")));
    assert_eq!(old["cr_name"], "Other", "without a chain who paid is paid");
}

// A cover payment named the banks as payer and payee, MT 202 COV the customers (pacs.009.001.08, UndrlygCstmrCdtTrf).
#[test]
fn covers_carry_the_same_customers() {
    let body = format!(
        "<FICdtTrf>{GROUP}<CdtTrfTxInf><PmtId><EndToEndId>E1</EndToEndId></PmtId><IntrBkSttlmAmt Ccy=\"EUR\">7.00</IntrBkSttlmAmt>{}{}<DbtrAcct><Id><IBAN>BANKACC</IBAN></Id></DbtrAcct><UndrlygCstmrCdtTrf><Dbtr><Nm>ANN</Nm></Dbtr><DbtrAcct><Id><IBAN>AT611904300234573201</IBAN></Id></DbtrAcct>{}{}<Cdtr><Nm>BOB</Nm></Cdtr></UndrlygCstmrCdtTrf></CdtTrfTxInf></FICdtTrf>",
        agent("Dbtr", "AAAADEFFXXX"),
        agent("Cdtr", "BBBBFRPPXXX"),
        agent("DbtrAgt", "CCCCATWW"),
        agent("CdtrAgt", "DDDDCHZZ")
    );
    let iso = event(&document("pacs.009.001.08", &body));
    let dir = tempfile::tempdir().unwrap();
    let (file, tape) = (dir.path().join("in.fin"), dir.path().join("t"));
    let mt = "{1:F01AAAADEFFAXXX0000000000}{2:I202BBBBFRPPXXXXN}{3:{119:COV}}{4:\r\n:20:E1\r\n:21:E1\r\n:32A:260302EUR7,\r\n:52A:AAAADEFFXXX\r\n:58A:BBBBFRPPXXX\r\n:50K:/AT611904300234573201\r\nANN\r\n:59:BOB\r\n-}";
    std::fs::write(&file, mt).unwrap();
    run(["consolidate", &file.display().to_string(), "--tape", tape.to_str().unwrap()]).code(0);
    let fin = &cat(&tape, &["--kind", "payment"])[0];
    for field in ["dr_name", "cr_name", "dr_acct", "cr_acct", "dr_bic", "cr_bic", "amt", "ccy"] {
        assert_eq!(iso[field], fin[field], "{field}: {iso} {fin}");
    }
    assert_eq!((&iso["msg"], &iso["dr_bank"]), (&"pacs.009COV".into(), &"CCCCATWW".into()));
    let plain = event(&document("pacs.009.001.08", &body.replace("UndrlygCstmrCdtTrf", "Xxx")));
    assert_eq!((&plain["msg"], &plain["dr_acct"]), (&"pacs.009".into(), &"BANKACC".into()));
}

// The other party of a line had no name since version 08 (camt.053.001.08, RltdPties/Dbtr/Pty/Nm).
#[test]
fn parties_of_statement_lines_are_choices_since_version_8() {
    let body = format!(
        "<BkToCstmrStmt>{GROUP}<Stmt><Id>S1</Id><Acct><Id><IBAN>I1</IBAN></Id></Acct><Ntry><Amt Ccy=\"EUR\">7.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><NtryDtls><TxDtls><RltdPties><Dbtr><Pty><Nm>ANN</Nm></Pty></Dbtr><Cdtr><Pty><Nm>BOB</Nm></Pty></Cdtr></RltdPties></TxDtls></NtryDtls></Ntry></Stmt></BkToCstmrStmt>"
    );
    let (_, events, reasons) = consolidated(document("camt.053.001.08", &body).as_bytes());
    assert_eq!(events.len(), 3, "{reasons:?}");
    assert_eq!(events[1]["entries"][0]["cpty_name"], "ANN");
    assert_eq!((&events[2]["dr_name"], &events[2]["cr_name"]), (&"ANN".into(), &"BOB".into()));
}

// Reversals and direct debits of banks move money and were ignored (pacs.007.001.09, pacs.010.001.03).
#[test]
fn reversals_and_debits_of_banks_are_payments() {
    let reversal = format!(
        "<FIToFIPmtRvsl>{GROUP}<TxInf><RvslId>V1</RvslId><OrgnlEndToEndId>E1</OrgnlEndToEndId><RvsdIntrBkSttlmAmt Ccy=\"EUR\">7.00</RvsdIntrBkSttlmAmt><OrgnlTxRef><Dbtr><Pty><Nm>ANN</Nm></Pty></Dbtr><Cdtr><Pty><Nm>BOB</Nm></Pty></Cdtr></OrgnlTxRef></TxInf></FIToFIPmtRvsl>"
    );
    let e = event(&document("pacs.007.001.09", &reversal));
    assert_eq!((&e["kind"], &e["dr_name"], &e["cr_name"]), (&"payment".into(), &"BOB".into(), &"ANN".into()));
    assert_eq!((&e["amt"], &e["ref"], &e["reversal_id"]), (&"7".into(), &"E1".into(), &"V1".into()));
    let debit = format!(
        "<FIDrctDbt>{GROUP}<CdtInstr><CdtId>C1</CdtId><IntrBkSttlmDt>2026-03-03</IntrBkSttlmDt>{}<DrctDbtTxInf><PmtId><EndToEndId>E1</EndToEndId></PmtId><IntrBkSttlmAmt Ccy=\"EUR\">7.00</IntrBkSttlmAmt>{}</DrctDbtTxInf></CdtInstr></FIDrctDbt>",
        agent("Cdtr", "BBBBFRPPXXX"),
        agent("Dbtr", "AAAADEFFXXX")
    );
    let e = event(&document("pacs.010.001.03", &debit));
    assert_eq!((&e["dr_bic"], &e["cr_bic"]), (&"AAAADEFFXXX".into(), &"BBBBFRPPXXX".into()));
    assert_eq!((&e["group_value_date"], &e["credit_id"]), (&"2026-03-03".into(), &"C1".into()));
}

// The other fields of a customer transfer, besides its two parties, were dropped (pacs.008.001.08).
#[test]
fn amounts_charges_and_ultimate_parties_of_a_transfer_are_kept() {
    let more = transfer("E1", "ANN").replace(
        "</IntrBkSttlmAmt>",
        "</IntrBkSttlmAmt><InstdAmt Ccy=\"USD\">13.10</InstdAmt><ChrgBr>SHAR</ChrgBr><ChrgsInf><Amt Ccy=\"EUR\">0.60</Amt><Agt><FinInstnId><BICFI>AAAADEFFXXX</BICFI></FinInstnId></Agt></ChrgsInf><UltmtDbtr><Nm>UD</Nm></UltmtDbtr><UltmtCdtr><Nm>UC</Nm></UltmtCdtr>",
    );
    let dated =
        payment(1, &more).replace("</CreDtTm>", "</CreDtTm><IntrBkSttlmDt>2026-03-03</IntrBkSttlmDt>");
    let e = event(&dated);
    for (name, value) in [
        ("amt", "12.5"),
        ("instructed_amt", "13.10"),
        ("instructed_ccy", "USD"),
        ("charge_bearer", "SHAR"),
        ("charges", "0.60"),
        ("charges_ccy", "EUR"),
        ("charges_bic", "AAAADEFFXXX"),
        ("ultimate_debtor", "UD"),
        ("ultimate_creditor", "UC"),
        ("group_value_date", "2026-03-03"),
    ] {
        assert_eq!(e[name], value, "{name}: {e}");
    }
}

// A sum that the message states and its transactions do not come to was never looked at (camt.053.001.02).
#[test]
fn a_sum_that_differs_is_an_exit_code() {
    let transaction = |amount: &str| {
        format!("<TxDtls><AmtDtls><TxAmt><Amt Ccy=\"EUR\">{amount}</Amt></TxAmt></AmtDtls></TxDtls>")
    };
    let details = [transaction("60.15"), transaction("24.05")].concat();
    for (sum, code) in [("84.20", 0), ("84.21", 3)] {
        let body = format!(
            "<BkToCstmrStmt>{GROUP}<Stmt><Id>S1</Id><Acct><Id><IBAN>I1</IBAN></Id></Acct><Ntry><Amt Ccy=\"EUR\">{sum}</Amt><CdtDbtInd>CRDT</CdtDbtInd><NtryDtls>{details}</NtryDtls></Ntry></Stmt></BkToCstmrStmt>"
        );
        let dir = tempfile::tempdir().unwrap();
        let (file, tape) = (dir.path().join("in.xml"), dir.path().join("t").display().to_string());
        std::fs::write(&file, document("camt.053.001.02", &body)).unwrap();
        let file = file.display().to_string();
        let ran = run(["consolidate", &file, "--tape", &tape, "--json"]).code(code);
        assert_eq!(ran.json()["sums_differ"].as_u64().unwrap_or(0), u64::from(code == 3));
        // A rerun has nothing to do, and says it again.
        let again = run(["consolidate", &file, "--tape", &tape]).code(code);
        let verified = run(["tape", "verify", &tape]).code(0);
        for said in [again.text(), verified.text()] {
            assert_eq!(said.contains("1 messages state another sum"), code == 3, "{said}");
        }
        let verified = run(["tape", "verify", &tape, "--json"]).code(0).json();
        assert_eq!(verified["sums_differ"], u64::from(code == 3));
        // Printed and read back, each line is a message: the line of the statement and its two payments.
        let (printed, back) = (dir.path().join("p.jsonl"), dir.path().join("u").display().to_string());
        std::fs::write(&printed, run(["tape", "cat", &tape, "--json"]).code(0).text()).unwrap();
        let printed = printed.display().to_string();
        let ran = run(["consolidate", &printed, "--tape", &back, "--json"]).code(code);
        assert_eq!(ran.json()["sums_differ"].as_u64().unwrap_or(0), if code == 3 { 3 } else { 0 });
    }
}
