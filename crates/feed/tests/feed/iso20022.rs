//! ISO 20022 feeds: real files to the message, bad ones with their reason, and the same tape however they are cut.

use crate::common::{self, assert_same, events, feed, run};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use unitape_codec::twin::iso20022::sample::sample_messages;
use unitape_feed::{FileFeed, Format, Mapping, TapeAccount, quarantine};

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/iso20022")
}

fn named(path: &Path) -> FileFeed {
    let format = Format::from_names("iso20022", "iso20022").unwrap();
    FileFeed { name: "iso".to_owned(), format, files: vec![path.to_owned()] }
}

/// Events of `text`, and why the rest was refused, by reason.
fn events_of(format: &Format, text: &[u8]) -> (Vec<Value>, BTreeMap<String, usize>) {
    let dir = tempfile::tempdir().unwrap();
    let (file, tape) = (dir.path().join("in.xml"), dir.path().join("tape"));
    std::fs::write(&file, text).unwrap();
    let feed = FileFeed { name: "iso".to_owned(), format: format.clone(), files: vec![file] };
    let s = run(&tape, &[feed], 1, 64 << 10).summary;
    assert!(TapeAccount::load(&tape).unwrap().sources.iter().all(|s| s.end && s.tally.is_balanced()));
    let mut reasons = BTreeMap::new();
    for entry in quarantine::list(&tape).unwrap() {
        *reasons.entry(entry.reason).or_default() += 1;
    }
    assert_eq!(reasons.values().sum::<usize>() as u64, s.quarantined);
    let mapped = events(&tape).into_iter().filter(|e| e["kind"] != "quarantine").collect();
    (mapped, reasons)
}

fn shipped() -> Format {
    Format::from_names("iso20022", "iso20022").unwrap()
}

// Every message of the samples is events, known and not wanted, or refused for a reason that is right.
#[test]
fn every_sample_is_accounted_for() {
    // Payments, statements and their lines, statuses, ignored, refused.
    for (file, expected) in [
        ("prowide/camt.003.001.04.xml", [0, 0, 0, 1, 0]),
        ("prowide/camt.053.001.07.xml", [0, 1, 0, 0, 0]),
        ("prowide/mx_sample_bah.xml", [0, 0, 0, 1, 0]),
        ("prowide/mx_sample_document.xml", [0, 0, 0, 1, 0]),
        ("prowide/mx_sample_header.xml", [0, 0, 0, 1, 0]),
        ("prowide/mx_sample_payload.xml", [0, 0, 0, 1, 0]),
        ("prowide/pacs.002-CDATA.xml", [0, 0, 1, 0, 0]),
        ("prowide/pacs.008.001.07.xml", [1, 0, 0, 0, 0]),
        ("prowide/pacs.009.001.07.xml", [1, 0, 0, 0, 0]),
        ("prowide/seev.031.002.09.xml", [0, 0, 1, 0, 0]),
        ("moov/FI_camt_052_sample.xml.xml", [2, 4, 0, 0, 0]),
        ("moov/FI_camt_053_sample.xml.xml", [12, 11, 0, 0, 0]),
        ("moov/FI_camt_054_sample.xml.xml", [13, 7, 0, 0, 0]),
        ("moov/International_payment_USD_naujas_1.xml", [1, 0, 0, 0, 0]),
        ("moov/musterfile_pain.001_Nov2020.xml", [8, 0, 0, 0, 0]),
        ("moov/pain008-musterfile.xml", [2, 0, 0, 0, 0]),
        ("moov/sepa_payment_naujas_1.xml", [1, 0, 0, 0, 0]),
        ("moov/statement_1.xml", [4, 5, 0, 0, 0]),
        // It has no transaction whose status it reports.
        ("moov/valid_pacs_v11.xml", [0, 0, 0, 0, 1]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let s = run(dir.path(), &[feed(&vectors().join(file))], 2, 64 << 10).summary;
        let kind = |name| s.by_kind.get(name).copied().unwrap_or(0);
        let found = [kind("payment"), kind("statement"), kind("status"), s.ignored, s.quarantined];
        assert_eq!(found, expected, "{file}: {:?}", quarantine::list(dir.path()).unwrap());
        assert_eq!(s.messages, 1, "{file}");
        // One of them says that it has 7 transactions, and has 8.
        assert_eq!(s.sums_differ, u64::from(file.contains("musterfile_pain.001")), "{file}");
        assert!(
            TapeAccount::load(dir.path()).unwrap().sources.iter().all(|s| s.end && s.tally.is_balanced())
        );
    }
}

fn doc(kind: &str, content: &str) -> String {
    format!("<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:{kind}\">{content}</Document>")
}

const HEAD: &str = "<GrpHdr><MsgId>M</MsgId><CreDtTm>2026-03-02T09:30:00.000000001+01:00</CreDtTm></GrpHdr>";
/// 2026-03-02 08:30 UTC and a nanosecond.
const AT: i64 = 1_772_440_200_000_000_001;

fn payment(amount: &str, more: &str) -> String {
    doc(
        "pacs.008.001.08",
        &format!(
            "<FIToFICstmrCdtTrf>{HEAD}<CdtTrfTxInf><PmtId><EndToEndId>E</EndToEndId></PmtId>{amount}{more}</CdtTrfTxInf></FIToFICstmrCdtTrf>"
        ),
    )
}

// The event of each field of each message type.
#[test]
fn messages_become_the_right_events() {
    let amount = "<IntrBkSttlmAmt Ccy=\"EUR\">+0012.50</IntrBkSttlmAmt>";
    let parties = "<Dbtr><Pty><Nm>A &amp; B</Nm></Pty></Dbtr><DbtrAcct><Id><Othr><Id>7</Id></Othr></Id></DbtrAcct>\
        <DbtrAgt><FinInstnId><BIC>AAAABEBB</BIC></FinInstnId></DbtrAgt><CdtrAcct><Id><IBAN>GB2</IBAN></Id></CdtrAcct>";
    let two = "<PmtInf><PmtInfId>P1</PmtInfId><Dbtr><Nm>D1</Nm></Dbtr><DbtrAcct><Id><IBAN>A1</IBAN></Id></DbtrAcct>\
        <CdtTrfTxInf><PmtId><EndToEndId>E1</EndToEndId></PmtId><Amt><InstdAmt Ccy=\"CHF\">1</InstdAmt></Amt></CdtTrfTxInf>\
        <CdtTrfTxInf><PmtId><EndToEndId>E2</EndToEndId></PmtId><Amt><InstdAmt Ccy=\"CHF\">2</InstdAmt></Amt></CdtTrfTxInf></PmtInf>\
        <PmtInf><PmtInfId>P2</PmtInfId><CdtTrfTxInf><PmtId><EndToEndId>E3</EndToEndId></PmtId>\
        <Amt><EqvtAmt><Amt Ccy=\"USD\">3.25</Amt></EqvtAmt></Amt></CdtTrfTxInf></PmtInf>";
    let returned = "<TxInf><RtrId>R</RtrId><OrgnlEndToEndId>E</OrgnlEndToEndId><RtrdIntrBkSttlmAmt Ccy=\"EUR\">5</RtrdIntrBkSttlmAmt>\
        <RtrRsnInf><Rsn><Cd>AC04</Cd></Rsn></RtrRsnInf><OrgnlTxRef><Dbtr><Nm>PAYER</Nm></Dbtr><Cdtr><Nm>PAID</Nm></Cdtr></OrgnlTxRef></TxInf>";
    let statuses = "<OrgnlGrpInfAndSts><OrgnlMsgId>O</OrgnlMsgId><GrpSts>PART</GrpSts></OrgnlGrpInfAndSts>\
        <TxInfAndSts><OrgnlEndToEndId>E1</OrgnlEndToEndId><TxSts>ACSC</TxSts></TxInfAndSts>\
        <TxInfAndSts><OrgnlEndToEndId>E2</OrgnlEndToEndId><TxSts>RJCT</TxSts><StsRsnInf><Rsn><Prtry>X1</Prtry></Rsn></StsRsnInf></TxInfAndSts>";
    let balance = |code: &str, amount: &str, mark: &str| {
        format!(
            "<Bal><Tp><CdOrPrtry><Cd>{code}</Cd></CdOrPrtry></Tp><Amt Ccy=\"EUR\">{amount}</Amt><CdtDbtInd>{mark}</CdtDbtInd></Bal>"
        )
    };
    let statements = format!(
        "<Stmt><Id>S1</Id><Acct><Id><IBAN>A1</IBAN></Id></Acct>{}{}<Ntry><Amt Ccy=\"EUR\">1.10</Amt><CdtDbtInd>DBIT</CdtDbtInd>\
         <ValDt><DtTm>2026-03-01T10:00:00</DtTm></ValDt><NtryDtls><TxDtls><Refs><EndToEndId>E1</EndToEndId></Refs><Amt Ccy=\"EUR\">1</Amt></TxDtls>\
         <TxDtls><Refs><EndToEndId>E2</EndToEndId></Refs><Amt Ccy=\"EUR\">0.10</Amt><RltdPties><Cdtr><Nm>NOT OF THE FIRST</Nm></Cdtr></RltdPties></TxDtls></NtryDtls></Ntry></Stmt>\
         <Stmt><Id>S2</Id><Acct><Id><IBAN>A2</IBAN></Id></Acct>{}</Stmt>",
        balance("OPBD", "10.00", "DBIT"),
        balance("CLBD", "11.10", "DBIT"),
        balance("CLBD", "0.00", "DBIT"),
    );
    let messages = [
        payment(amount, parties),
        doc("pain.001.001.09", &format!("<CstmrCdtTrfInitn>{HEAD}{two}</CstmrCdtTrfInitn>")),
        doc("pacs.004.001.09", &format!("<PmtRtr>{HEAD}{returned}</PmtRtr>")),
        doc("pacs.002.001.10", &format!("<FIToFIPmtStsRpt>{HEAD}{statuses}</FIToFIPmtStsRpt>")),
        doc("camt.053.001.08", &format!("<BkToCstmrStmt>{HEAD}{statements}</BkToCstmrStmt>")),
        doc("camt.060.001.05", "<AcctRptgReq/>"),
    ];
    let (found, reasons) = events_of(&shipped(), messages.join("\n").as_bytes());
    assert_eq!(reasons, BTreeMap::new());
    let payment = |msg: &str, ref_: &str, ccy: &str, amt: &str, more: Value| {
        let mut event = json!({"seq": 0, "ts": AT, "kind": "payment", "msg": msg, "ref": ref_, "ccy": ccy, "amt": amt, "msg_id": "M"});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let of_booking = json!({"statement": "S1", "acct": "A1", "booking": "1", "booking_amt": "1.10", "booking_ccy": "EUR",
        "booking_mark": "DBIT", "value_date": "2026-03-01T10:00:00"});
    let expected = [
        payment(
            "pacs.008",
            "E",
            "EUR",
            "12.5",
            json!({"dr_name": "A & B", "dr_acct": "7", "dr_bic": "AAAABEBB", "cr_acct": "GB2", "stage": "interbank"}),
        ),
        payment(
            "pain.001",
            "E1",
            "CHF",
            "1",
            json!({"dr_name": "D1", "dr_acct": "A1", "payment_info": "P1", "stage": "initiation"}),
        ),
        payment(
            "pain.001",
            "E2",
            "CHF",
            "2",
            json!({"dr_name": "D1", "dr_acct": "A1", "payment_info": "P1", "stage": "initiation"}),
        ),
        // The debtor of the first PmtInf is not that of the second.
        payment("pain.001", "E3", "USD", "3.25", json!({"payment_info": "P2", "stage": "initiation"})),
        payment(
            "pacs.004",
            "E",
            "EUR",
            "5",
            json!({"dr_name": "PAID", "cr_name": "PAYER", "reason": "AC04", "return_id": "R", "stage": "return"}),
        ),
        json!({"seq": 0, "ts": AT, "kind": "status", "state": "PART", "msg": "pacs.002", "msg_id": "M", "orig_msg_id": "O"}),
        json!({"seq": 0, "ts": AT, "kind": "status", "state": "ACSC", "msg": "pacs.002", "msg_id": "M", "ref": "E1"}),
        json!({"seq": 0, "ts": AT, "kind": "status", "state": "RJCT", "reason": "X1", "msg": "pacs.002", "msg_id": "M", "ref": "E2"}),
        json!({"seq": 0, "ts": AT, "kind": "statement", "acct": "A1", "ccy": "EUR", "ref": "S1", "opening": "-10", "closing": "-11.1", "msg": "camt.053"}),
        json!({"seq": 0, "ts": AT, "kind": "statement", "acct": "A2", "ccy": "EUR", "ref": "S2", "closing": "0", "msg": "camt.053"}),
        json!({"seq": 0, "ts": AT, "kind": "statement", "acct": "A1", "ccy": "EUR", "ref": "S1", "msg": "camt.053", "booking": "1",
               "entries": [{"date": "2026-03-01", "amt": "-1.1", "ccy": "EUR", "mark": "D", "transactions": "2"}]}),
        payment("camt.053", "E1", "EUR", "1", of_booking.clone()),
        payment("camt.053", "E2", "EUR", "0.1", {
            let mut second = of_booking;
            second["cr_name"] = "NOT OF THE FIRST".into();
            second
        }),
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(*found, expected);
    }
}

// A value that cannot be exact is refused, a broken document is reported, and its neighbours are kept.
#[test]
fn bad_messages_are_refused_with_their_reason() {
    let good = payment("<IntrBkSttlmAmt Ccy=\"EUR\">1</IntrBkSttlmAmt>", "");
    let amount = |text: &str| payment(&format!("<IntrBkSttlmAmt Ccy=\"EUR\">{text}</IntrBkSttlmAmt>"), "");
    for (bad, reason) in [
        (amount(&"9".repeat(45)), "decimal_fit"),
        (amount("1,50"), "bad_decimal"),
        (amount("1e5"), "bad_decimal"),
        (amount("NaN"), "bad_decimal"),
        (amount(""), "missing"),
        (payment("<IntrBkSttlmAmt>1</IntrBkSttlmAmt>", ""), "missing"),
        (good.replace("T09:30", "T29:30"), "bad_time"),
        (good.replace("000000001+", "0000000001+"), "bad_time"),
        (good.replace("<CreDtTm>", "<X>").replace("</CreDtTm>", "</X>"), "bad_time"),
        (good.replace("pacs.008.001.08", "pacs.008"), "namespace"),
        (good.replace("urn:iso", "&urn;"), "bad_entity"),
        (format!("<!DOCTYPE a [<!ENTITY b \"{}\">]>{good}", "x".repeat(100)), "doctype"),
        (good.replace("</PmtId>", ""), "mismatch"),
        (good.replace("</CdtTrfTxInf>", "\u{1}</CdtTrfTxInf>"), "bad_char"),
        (good.replace("</CdtTrfTxInf>", "x</CdtTrfTxInf>"), "mixed"),
        ("<a><b/></a>".to_owned(), "no_document"),
        // A declaration, and no document after it.
        ("--boundary".to_owned(), "malformed"),
    ] {
        let decl = "\n<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
        let (mapped, reasons) = events_of(&shipped(), format!("{good}{decl}{bad}{decl}{good}").as_bytes());
        let (found, count) = reasons.iter().next().expect("one reason");
        // The rest of a document after a fault in its middle is not reported again.
        assert_eq!(found, reason, "{bad}");
        assert_eq!((*count, reasons.len(), mapped.len()), (1, 1, 2), "{bad} {reasons:?}");
    }
}

// A line without a direction was a credit, one without an amount had none, and a balance without a direction was not less
// than zero.
#[test]
fn amounts_without_a_direction_are_refused() {
    let line = "<Ntry><Amt Ccy=\"EUR\">5</Amt><CdtDbtInd>DBIT</CdtDbtInd><BookgDt><Dt>2026-03-01</Dt></BookgDt></Ntry>";
    let balance = "<Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy=\"EUR\">7</Amt><CdtDbtInd>DBIT</CdtDbtInd></Bal>";
    let mark = "<CdtDbtInd>DBIT</CdtDbtInd>";
    for (message, name, part) in [
        ("camt.053.001.08", "BkToCstmrStmt", "Stmt"),
        ("camt.052.001.08", "BkToCstmrAcctRpt", "Rpt"),
        ("camt.054.001.08", "BkToCstmrDbtCdtNtfctn", "Ntfctn"),
    ] {
        let statement = |balance: &str, line: &str| {
            doc(
                message,
                &format!(
                    "<{name}>{HEAD}<{part}><Id>S</Id><Acct><Id><IBAN>A1</IBAN></Id></Acct>{balance}{line}</{part}></{name}>"
                ),
            )
        };
        let notes = |text: String| {
            let dir = tempfile::tempdir().unwrap();
            let (file, tape) = (dir.path().join("in.xml"), dir.path().join("tape"));
            std::fs::write(&file, text).unwrap();
            let s = run(
                &tape,
                &[FileFeed { name: "iso".to_owned(), format: shipped(), files: vec![file] }],
                1,
                64 << 10,
            );
            assert_eq!(
                s.summary.by_kind.get("statement").copied().unwrap_or(0) > 0,
                s.summary.quarantined == 0
            );
            quarantine::list(&tape).unwrap().into_iter().map(|entry| entry.detail).collect::<Vec<_>>()
        };
        assert_eq!(notes(statement(balance, line)), [""; 0], "{message}");
        for (bad, words) in [
            (line.replace(mark, ""), "Ntry/CdtDbtInd is missing"),
            (line.replace(mark, "<CdtDbtInd/>"), "Ntry/CdtDbtInd is missing"),
            (line.replace("DBIT", "DEBIT"), "\"DEBIT\"; Ntry/CdtDbtInd is neither CRDT nor DBIT"),
            (line.replace("<Amt Ccy=\"EUR\">5</Amt>", ""), "Ntry/Amt is missing"),
            (line.replace(">5<", "><"), "Ntry/Amt is missing"),
            (line.replace(">5<", ">5,00<"), "\"5,00\""),
            (line.replace("03-01", "13-01"), "\"2026-13-01\"; Ntry/BookgDt/Dt|DtTm is no day"),
        ] {
            let notes = notes(statement(balance, &bad));
            assert!(notes.len() == 1 && notes[0].contains(words), "{message} {words}: {notes:?}");
        }
        if part == "Ntfctn" {
            continue;
        }
        for bad in
            [balance.replace(mark, ""), balance.replace("DBIT", "D"), balance.replace(mark, "<CdtDbtInd/>")]
        {
            let notes = notes(statement(&bad, line));
            assert!(notes.len() == 1 && notes[0].contains("closing"), "{message} {bad}: {notes:?}");
            assert!(notes[0].contains("CdtDbtInd beside it is neither CRDT nor DBIT"), "{notes:?}");
        }
    }
}

/// A statement of `entries` lines, each of about 300 bytes.
fn statement(entries: usize) -> String {
    let mut text = format!("<BkToCstmrStmt>{HEAD}<Stmt><Id>BIG</Id><Acct><Id><IBAN>A1</IBAN></Id></Acct>");
    for n in 0..entries {
        let _ = writeln!(
            text,
            "<Ntry><NtryRef>{n}</NtryRef><Amt Ccy=\"EUR\">{}.{:02}</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts>\
             <BookgDt><Dt>2026-03-02</Dt></BookgDt><AddtlNtryInf>{}</AddtlNtryInf></Ntry>",
            n / 100,
            n % 100,
            "information ".repeat(10),
        );
    }
    doc("camt.053.001.08", &(text + "</Stmt></BkToCstmrStmt>"))
}

// A statement larger than any block flows line by line, with the account it is of, and in bounded memory; its
// neighbours are there, and a line that is wrong takes no more with it than its part.
#[test]
fn statements_of_any_size_flow() {
    let good = payment("<IntrBkSttlmAmt Ccy=\"EUR\">1</IntrBkSttlmAmt>", "");
    let lines = 12_000;
    let large = statement(lines);
    assert!(large.len() > 3 << 20);
    let input = format!("{good}<Batch><Message>{large}</Message><Message>{good}</Message></Batch>{good}");
    let (mapped, reasons) = events_of(&shipped(), input.as_bytes());
    assert_eq!(reasons, BTreeMap::new());
    assert_eq!(mapped.len(), lines + 4);
    let statements: Vec<_> = mapped.iter().filter(|e| e["kind"] == "statement").collect();
    assert_eq!((&statements[0]["acct"], &statements[0]["entries"]), (&json!("A1"), &Value::Null));
    for (n, line) in statements[1..].iter().enumerate() {
        assert_eq!((&line["acct"], &line["ref"]), (&json!("A1"), &json!("BIG")));
        assert_eq!(line["entries"][0]["entry_ref"], n.to_string());
    }
    let bad = large.replace(
        "<NtryRef>7000</NtryRef><Amt Ccy=\"EUR\">70.00",
        "<NtryRef>7000</NtryRef><Amt Ccy=\"EUR\">70,00",
    );
    assert_ne!(bad, large);
    let (mapped, reasons) = events_of(&shipped(), format!("{good}{bad}{good}").as_bytes());
    assert_eq!(reasons, [("bad_decimal".to_owned(), 1)].into());
    let lost = lines + 3 - mapped.len();
    assert!((1..4_500).contains(&lost), "{lost}");
}

// Where the farm cuts, how many workers there are and when it was stopped must not be seen on the tape.
#[test]
fn tapes_are_the_same_however_they_are_cut() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("all.xml");
    let mut input = sample_messages(300, 3);
    input.extend_from_slice(b"junk </x>");
    input.extend_from_slice(statement(9_000).as_bytes());
    let one = payment("<IntrBkSttlmAmt Ccy=\"EUR\">1</IntrBkSttlmAmt>", "");
    let batch: String = (0..300).map(|_| format!("<M>{one}</M>")).collect();
    input.extend_from_slice(format!("<Batch>{batch}</Batch>").as_bytes());
    input.extend_from_slice(statement(5_000).as_bytes());
    input.extend_from_slice(&sample_messages(20, 4));
    std::fs::write(&file, &input).unwrap();
    let first = dir.path().join("first");
    let s = run(&first, &[named(&file)], 1, 1 << 20).summary;
    assert_eq!((s.quarantined, s.by_kind["payment"], s.by_kind["statement"]), (1, 620, 14_002));
    for (workers, block_bytes) in [(1, 64 << 10), (2, 256 << 10), (3, 4 << 10), (4, 100_000)] {
        let other = dir.path().join(format!("{workers}-{block_bytes}"));
        run(&other, &[named(&file)], workers, block_bytes);
        assert_same(&first, &other, &format!("{workers} workers, blocks of {block_bytes}"));
    }
}

// Elements around entries that have ended are not needed for the next ones. Thousands of PmtInf, each with its debtor
// and a single transaction, must not fill the context that is carried from part to part.
#[test]
fn instructions_of_any_size_flow() {
    let count = 6_000;
    let mut infos = String::new();
    for n in 0..count {
        let _ = writeln!(
            infos,
            "  <PmtInf>\n    <PmtInfId>P{n}</PmtInfId>\n    <Dbtr><Nm>{}</Nm></Dbtr>\n    <CdtTrfTxInf><PmtId><EndToEndId>E{n}</EndToEndId></PmtId>\
             <Amt><InstdAmt Ccy=\"CHF\">{n}.5</InstdAmt></Amt></CdtTrfTxInf>\n  </PmtInf>",
            "Debtor ".repeat(60),
        );
    }
    let text = doc("pain.001.001.09", &format!("<CstmrCdtTrfInitn>{HEAD}{infos}</CstmrCdtTrfInitn>"));
    assert!(text.len() > 3 << 20);
    let (mapped, reasons) = events_of(&shipped(), text.as_bytes());
    assert_eq!((mapped.len(), reasons), (count, BTreeMap::new()));
    for (n, event) in mapped.iter().enumerate() {
        let (amt, info) = (format!("{n}.5"), format!("P{n}"));
        assert_eq!((&event["amt"], &event["payment_info"]), (&json!(amt), &json!(info)));
        assert_eq!(event["msg_id"], "M");
    }
}

/// Good and bad messages, batches and a statement above the limit of a message, in an order of its own for each seed.
fn mixed(seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut pick = |of: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % of
    };
    let one = payment("<IntrBkSttlmAmt Ccy=\"EUR\">1</IntrBkSttlmAmt>", "");
    let mut input = Vec::new();
    let large = pick(12);
    for n in 0..12 {
        if n == large {
            input.extend_from_slice(statement(4_000 + pick(2_000) as usize).as_bytes());
        }
        match pick(6) {
            0 => input.extend_from_slice(&sample_messages(1 + pick(40) as usize, seed)),
            1 => input.extend_from_slice(format!("<W>{}</W>", one.repeat(1 + pick(60) as usize)).as_bytes()),
            2 => input.extend_from_slice(&one.as_bytes()[..pick(one.len() as u64) as usize]),
            3 => input.extend_from_slice(format!("<?xml version='1.0'?>{one}<!-- c --> junk ").as_bytes()),
            4 => input.extend_from_slice(one.replace("<PmtId>", "<PmtId>&x;").as_bytes()),
            _ => input.extend_from_slice(statement(pick(40) as usize).as_bytes()),
        }
    }
    input
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    // Stopped wherever it is, and started again: nothing twice, nothing missing, the same bytes.
    #[test]
    fn stopped_and_started_again(seed in any::<u64>(), workers in 1usize..4, block in 3_000usize..300_000) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("in.xml");
        std::fs::write(&file, mixed(seed)).unwrap();
        let (whole, parts) = (dir.path().join("whole"), dir.path().join("parts"));
        run(&whole, &[named(&file)], 1, 1 << 20);
        prop_assert!(TapeAccount::load(&whole).unwrap().sources.iter().all(|s| s.end && s.tally.is_balanced()));
        common::run_in_parts(&parts, &[named(&file)], workers, block, 20);
        assert_same(&whole, &parts, &format!("seed {seed}, {workers} workers, blocks of {block}"));
    }
}

// A mended mapping also recovers messages that were in a batch or a part of a large one.
#[test]
fn quarantine_is_retried_with_its_context() {
    let text = &Mapping::built_in("iso20022").unwrap().text;
    let strict = text.replace("\"../Id\"", "{ from = \"./NotThere\", required = true }");
    let strict = strict.replace("ref = { from = \"./PmtId/EndToEndId\"", "ref = { from = \"./NotThere\"");
    let strict = strict.replace("name = \"iso20022\"", "name = \"strict\"");
    let one = payment("<IntrBkSttlmAmt Ccy=\"EUR\">1</IntrBkSttlmAmt>", "");
    let input = format!("<W xmlns:x=\"u\"><M>{one}</M><M>{one}</M></W>{}{one}", statement(9_000));
    let dir = tempfile::tempdir().unwrap();
    let (file, tape) = (dir.path().join("in.xml"), dir.path().join("tape"));
    std::fs::write(&file, input).unwrap();
    let format = Format::from_mapping(Mapping::parse(&strict, "strict").unwrap()).unwrap();
    let s =
        run(&tape, &[FileFeed { name: "iso".to_owned(), format, files: vec![file] }], 2, 64 << 10).summary;
    assert_eq!(s.quarantined, s.messages, "{s:?}");
    let mended = Mapping::built_in("iso20022").unwrap();
    let retried = quarantine::retry(&tape, Some(mended), None).unwrap();
    assert_eq!(
        (retried.tried, retried.left, retried.events),
        (s.quarantined, 0, 9_000 + 1 + 3),
        "{retried:?}"
    );
}

// Mappings are asked for what messages have; a path that cannot be is an error before any message is read.
#[test]
fn mappings_say_what_is_wrong_with_them() {
    let head = "name='m'\nformat='iso20022'\n[message]\nts='*/GrpHdr/CreDtTm'\n";
    for (rest, says) in [
        ("[[rule]]\n[[rule.event]]\nkind='status'\nfields={state='A//B'}\n", "no element"),
        ("[[rule]]\n[[rule.event]]\nkind='status'\nfields={state='./A'}\n", "outside a group's entries"),
        (
            "[[rule]]\n[[rule.event]]\nkind='statement'\nfields={acct='A/B',entries='@entry'}\n",
            "outside a group's entries",
        ),
        (
            "[group.g]\ndelimiter='A|B/C'\nmembers=['A|B/C','.']\n[[rule]]\n[[rule.event]]\nkind='status'\neach='g'\nfields={state='./A'}\n",
            "one plain path",
        ),
        (
            "[group.g]\ndelimiter='A/C'\nmembers=['A/C','.']\n[[rule]]\n[[rule.event]]\nkind='status'\neach='g'\nfields={state='../../../A'}\n",
            "above the document",
        ),
    ] {
        let error = Mapping::parse(&format!("{head}{rest}"), "m.toml").expect_err(rest).to_string();
        assert!(error.contains(says), "{error}\nshould say: {says}");
    }
}

// A mapping of one's own: what nothing names is kept, conditions and messages of no group.
#[test]
fn unlisted_fields_are_kept_under_their_path() {
    let text = "name='m'\nformat='iso20022'\n[message]\nts='*/GrpHdr/CreDtTm'\ndrop=['*/GrpHdr/MsgId']\n\
        [[rule]]\nwhen={'@type'='pacs.008.001.08'}\n[[rule.event]]\nkind='status'\n\
        fields={state='FIToFICstmrCdtTrf/CdtTrfTxInf/PmtId/EndToEndId'}\n";
    let format = Format::from_mapping(Mapping::parse(text, "m.toml").unwrap()).unwrap();
    let one = payment("<IntrBkSttlmAmt Ccy=\"EUR\">1</IntrBkSttlmAmt>", "<Ustrd>a</Ustrd><Ustrd>b</Ustrd>");
    let tx = "Document/FIToFICstmrCdtTrf/CdtTrfTxInf";
    let (mapped, reasons) = events_of(&format, format!("<W>{one}{one}</W>").as_bytes());
    assert_eq!((mapped.len(), reasons.len()), (2, 0));
    for event in mapped {
        assert_eq!(event["state"], "E");
        assert_eq!(event[format!("{tx}/IntrBkSttlmAmt@Ccy")], "EUR");
        assert_eq!(
            (&event[format!("{tx}/Ustrd")], &event[format!("{tx}/Ustrd#2")]),
            (&json!("a"), &json!("b"))
        );
        assert!(event.get("Document/FIToFICstmrCdtTrf/GrpHdr/MsgId").is_none(), "{event}");
    }
}
