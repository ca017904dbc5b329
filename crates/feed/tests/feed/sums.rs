//! Bookings and requests of several transactions: a payment for each, and the sum compared with what the message states.

use crate::common::{assert_same, events, run};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use unitape_feed::{AccountSummary, FileFeed, Format, Mapping, TapeAccount, quarantine};

const HEAD: &str = "<GrpHdr><MsgId>M</MsgId><CreDtTm>2026-03-02T09:30:00Z</CreDtTm></GrpHdr>";

fn doc(kind: &str, content: &str) -> String {
    format!("<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:{kind}\">{content}</Document>\n")
}

fn statement(entries: &str) -> String {
    doc(
        "camt.053.001.08",
        &format!(
            "<BkToCstmrStmt>{HEAD}<Stmt><Id>S1</Id><Acct><Id><IBAN>A1</IBAN></Id></Acct>{entries}</Stmt></BkToCstmrStmt>"
        ),
    )
}

fn entry(amount: &str, mark: &str, details: &str) -> String {
    format!(
        "<Ntry><Amt Ccy=\"EUR\">{amount}</Amt><CdtDbtInd>{mark}</CdtDbtInd>{details}<AddtlNtryInf>batch</AddtlNtryInf></Ntry>"
    )
}

fn details(transactions: &str) -> String {
    format!("<NtryDtls>{transactions}</NtryDtls>")
}

/// A transaction of which `what` are the elements before its parties.
fn transaction(id: &str, what: &str) -> String {
    format!(
        "<TxDtls><Refs><EndToEndId>{id}</EndToEndId></Refs>{what}<RltdPties><Dbtr><Nm>D {id}</Nm></Dbtr><Cdtr><Nm>C {id}</Nm></Cdtr></RltdPties><RmtInf><Ustrd>I {id}</Ustrd></RmtInf></TxDtls>"
    )
}

fn amount(currency: &str, amount: &str) -> String {
    format!("<AmtDtls><TxAmt><Amt Ccy=\"{currency}\">{amount}</Amt></TxAmt></AmtDtls>")
}

/// The feed, its events without what is in quarantine, and the account.
fn read(dir: &Path, format: &str, mapping: &str, text: &str) -> (FileFeed, Vec<Value>, AccountSummary) {
    let (file, tape) = (dir.join("in"), dir.join("tape"));
    std::fs::write(&file, text).unwrap();
    let format = Format::from_names(format, mapping).unwrap();
    let feed = FileFeed { name: "f".to_owned(), format, files: vec![file] };
    let summary = run(&tape, std::slice::from_ref(&feed), 1, 64 << 10).summary;
    let account = TapeAccount::load(&tape).unwrap();
    assert!(account.sources.iter().all(|s| s.end && s.tally.is_balanced()));
    // A run says what the tape says.
    assert_eq!(summary.sums_differ, account.summary().sums_differ);
    let events = events(&tape).into_iter().filter(|e| e["kind"] != "quarantine").collect();
    (feed, events, summary)
}

fn iso(text: &str) -> (Vec<Value>, AccountSummary) {
    let dir = tempfile::tempdir().unwrap();
    let (_, events, summary) = read(dir.path(), "iso20022", "iso20022", text);
    (events, summary)
}

fn payments(events: &[Value]) -> Vec<&Value> {
    events.iter().filter(|e| e["kind"] == "payment").collect()
}

fn said<'v>(event: &'v Value, name: &str) -> &'v str {
    event[name].as_str().unwrap_or("")
}

// The line named the first payer for all of it, and the amounts and the others were nowhere.
#[test]
fn each_transaction_of_a_booking_is_a_payment() {
    for (kind, root, part) in [
        ("camt.052.001.02", "BkToCstmrAcctRpt", "Rpt"),
        ("camt.053.001.02", "BkToCstmrStmt", "Stmt"),
        ("camt.054.001.08", "BkToCstmrDbtCdtNtfctn", "Ntfctn"),
    ] {
        let batch = details(&format!(
            "<Btch><NbOfTxs>2</NbOfTxs></Btch>{}{}",
            transaction("E1", &amount("EUR", "60.15")),
            transaction("E2", "<Amt Ccy=\"EUR\">24.05</Amt>")
        ));
        let one = details(&transaction("E3", ""));
        let entries = entry("84.20", "DBIT", &batch) + &entry("5.00", "CRDT", &one);
        let text = doc(kind, &format!("<{root}>{HEAD}<{part}><Id>S1</Id>{entries}</{part}></{root}>"))
            .replace("<Id>S1</Id>", "<Id>S1</Id><Acct><Id><IBAN>A1</IBAN></Id></Acct>");
        let (events, summary) = iso(&text);
        assert_eq!((summary.quarantined, summary.sums_differ, summary.entries.total), (0, 0, 6), "{kind}");
        let lines: Vec<_> = events.iter().filter(|e| e["entries"].is_array()).collect();
        let (batch, one) = (&lines[0]["entries"][0], &lines[1]["entries"][0]);
        assert_eq!(
            (said(batch, "amt"), said(batch, "transactions"), said(batch, "info")),
            ("-84.2", "2", "batch")
        );
        assert!(batch["cpty_name"].is_null() && batch["ref"].is_null(), "{batch}");
        // The only transaction speaks for its line.
        assert_eq!((said(one, "cpty_name"), said(one, "ref"), said(one, "info")), ("D E3", "E3", "I E3"));
        let found: Vec<_> = payments(&events)
            .iter()
            .map(|e| ["ref", "amt", "ccy", "dr_name", "cr_name", "booking", "statement"].map(|n| said(e, n)))
            .collect();
        assert_eq!(
            found,
            [
                ["E1", "60.15", "EUR", "D E1", "C E1", "1", "S1"],
                ["E2", "24.05", "EUR", "D E2", "C E2", "1", "S1"],
                // It is all of its booking, so the amount of the booking is its amount.
                ["E3", "5", "EUR", "D E3", "C E3", "2", "S1"],
            ],
            "{kind}"
        );
        assert_eq!((said(lines[0], "booking"), said(lines[1], "booking")), ("1", "2"));
    }
}

// A sum that is wrong, or that nobody can know, is said in the line and in each payment of it, and of no other.
#[test]
fn sums_of_bookings_are_compared() {
    let eur = |id: &str, text: &str| transaction(id, &amount("EUR", text));
    let against = |id: &str, text: &str| {
        transaction(id, &format!("<Amt Ccy=\"EUR\">{text}</Amt><CdtDbtInd>DBIT</CdtDbtInd>"))
    };
    let charge = |text: &str| format!("<Chrgs><Rcrd><Amt Ccy=\"EUR\">{text}</Amt></Rcrd></Chrgs>");
    let counted = |n: &str, text: &str| format!("<Btch><NbOfTxs>{n}</NbOfTxs></Btch>{text}");
    let two = eur("E1", "60.15") + &eur("E2", "24.05");
    let foreign = transaction("E2", &amount("USD", "24.05"));
    let countervalue = transaction(
        "E2",
        "<AmtDtls><InstdAmt><Amt Ccy=\"USD\">26</Amt></InstdAmt><CntrValAmt><Amt Ccy=\"EUR\">24.05</Amt></CntrValAmt></AmtDtls>",
    );
    let total = |text: &str| format!("<Btch><TtlAmt Ccy=\"EUR\">{text}</TtlAmt></Btch>{two}");
    for (stated, transactions, differs, unchecked) in [
        ("84.20", details(&two), "", ""),
        ("84.21", details(&two), "Ntry/Amt is 84.21 EUR, 2 transactions in it come to 84.2 EUR", ""),
        // What is given back counts against the batch.
        ("36.10", details(&(eur("E1", "60.15") + &against("E2", "24.05"))), "", ""),
        ("84.20", details(&(eur("E1", "60.15") + &against("E2", "24.05"))), "come to 36.1 EUR", ""),
        // Of two NtryDtls each has its number, and together they are the booking.
        ("84.20", details(&counted("1", &eur("E1", "60.15"))) + &details(&eur("E2", "24.05")), "", ""),
        ("84.20", details(&counted("3", &two)), "Btch/NbOfTxs is 3, it has 2 transactions", ""),
        ("84.20", details(&counted("two", &two)), "Btch/NbOfTxs is two, it has 2 transactions", ""),
        ("84.20", details(&counted("2", &eur("E1", "84.20"))), "", "its transactions are not listed"),
        ("84.20", details(&total("84.2")), "", ""),
        ("84.20", details(&total("80")), "Btch/TtlAmt is 80 EUR, 2 transactions in it come to 84.2 EUR", ""),
        // Charges explain a difference that is as large as they are, and no other.
        ("83.20", charge("1.00") + &details(&two), "", ""),
        ("83.00", charge("1.00") + &details(&two), "Ntry/Amt is 83 EUR", ""),
        ("82.20", details(&(two.replace("<RltdPties>", &(charge("1.00") + "<RltdPties>")))), "", ""),
        // No rate is applied, and no amount is made up.
        (
            "84.20",
            details(&(eur("E1", "60.15") + &foreign)),
            "",
            "1 of 2 transactions have no amount in EUR: the sum is not compared with Ntry/Amt, 84.2",
        ),
        ("84.20", details(&(eur("E1", "60.15") + &transaction("E2", ""))), "", "1 of 2 transactions have no"),
        ("84.20", details(&(eur("E1", "60.15") + &countervalue)), "", ""),
        ("84.20", details(&(eur("E1", "60.15") + &eur("E2", &"9".repeat(38)))), "no amount of 38 digits", ""),
    ] {
        let text = statement(
            &(entry("1.00", "CRDT", "") + &entry(stated, "CRDT", &transactions) + &entry("2.00", "DBIT", "")),
        );
        let (events, summary) = iso(&text);
        assert_eq!(summary.quarantined, 0, "{transactions}");
        assert_eq!(summary.sums_differ, u64::from(!differs.is_empty()), "{transactions}");
        assert_eq!(summary.is_flawed(), !differs.is_empty());
        let about = |e: &&Value| e["booking"] == "2";
        assert!(events.iter().filter(about).count() > 1);
        for event in events.iter().filter(about) {
            for (name, says) in [("sum_differs", differs), ("sum_unchecked", unchecked)] {
                let found = said(event, name);
                assert_eq!(found.is_empty(), says.is_empty(), "{name} {event}");
                assert!(found.contains(says), "{found}, not {says}");
            }
        }
        for event in events.iter().filter(|e| !about(e)) {
            assert!(event["sum_differs"].is_null() && event["sum_unchecked"].is_null(), "{event}");
        }
    }
    // A transaction without an amount says so, beside those that have one.
    let text = statement(&entry("84.20", "CRDT", &details(&(eur("E1", "60.15") + &transaction("E2", "")))));
    let (events, _) = iso(&text);
    let [with, without] = payments(&events)[..] else { panic!("{events:?}") };
    assert_eq!((said(with, "amt"), &without["amt"]), ("60.15", &Value::Null));
    assert!(said(without, "sum_unchecked").starts_with("amount not stated; "), "{without}");
    assert!(!said(with, "sum_unchecked").contains("not stated"), "{with}");
}

fn initiation(head: &str, infos: &str) -> String {
    let head = HEAD.replace("</GrpHdr>", &format!("{head}</GrpHdr>"));
    doc("pain.001.001.09", &format!("<CstmrCdtTrfInitn>{head}{infos}</CstmrCdtTrfInitn>"))
}

fn info(id: &str, head: &str, amounts: &[&str]) -> String {
    let transactions: String = amounts
        .iter()
        .enumerate()
        .map(|(n, amount)| {
            format!(
                "<CdtTrfTxInf><PmtId><EndToEndId>{id}-{n}</EndToEndId></PmtId><Amt><InstdAmt Ccy=\"CHF\">{amount}</InstdAmt></Amt></CdtTrfTxInf>"
            )
        })
        .collect();
    format!("<PmtInf><PmtInfId>{id}</PmtInfId>{head}{transactions}</PmtInf>")
}

// What the customer's file states about itself was never looked at.
#[test]
fn sums_of_requests_are_compared() {
    let sums = |n: u32, sum: &str| format!("<NbOfTxs>{n}</NbOfTxs><CtrlSum>{sum}</CtrlSum>");
    let (first, second) = (info("P1", &sums(2, "3"), &["1", "2"]), info("P2", "", &["0.50"]));
    for (message, differing, says) in [
        (initiation(&sums(3, "3.50"), &format!("{first}{second}")), [false, false, false], ""),
        (
            initiation(&sums(3, "3.51"), &format!("{first}{second}")),
            [true, true, true],
            "GrpHdr/CtrlSum is 3.51, 3 transactions in it come to 3.5",
        ),
        (
            initiation(&sums(2, "3.50"), &format!("{first}{second}")),
            [true, true, true],
            "GrpHdr/NbOfTxs is 2, it has 3 transactions",
        ),
        (
            initiation("", &(first.replace("<CtrlSum>3<", "<CtrlSum>4<") + &second)),
            [true, true, false],
            "PmtInf/CtrlSum of P1 is 4, 2 transactions in it come to 3",
        ),
        (
            initiation("", &(first.replace("<CtrlSum>3<", "<CtrlSum>x<") + &second)),
            [true, true, false],
            "PmtInf/CtrlSum of P1 is no amount: x",
        ),
    ] {
        let (events, summary) = iso(&message);
        assert_eq!((events.len(), summary.quarantined), (3, 0));
        assert_eq!(summary.sums_differ, u64::from(!says.is_empty()));
        for (event, differs) in events.iter().zip(differing) {
            assert_eq!(said(event, "sum_differs"), if differs { says } else { "" }, "{event}");
        }
    }
}

/// A request with `infos` instructions of `each` transactions of 1.01, which states this sum.
fn large_request(infos: usize, each: usize, sum: &str) -> String {
    // Zeros before a number are none of it, and make the message long.
    let amount = format!("{:0>300}", "1.01");
    let transactions = vec![amount.as_str(); each];
    let one = |n: usize| {
        let head = format!("<NbOfTxs>{each}</NbOfTxs><Dbtr><Nm>{}</Nm></Dbtr>", "Debtor ".repeat(20));
        info(&format!("P{n}"), &head, &transactions) + "\n"
    };
    initiation(&format!("<CtrlSum>{sum}</CtrlSum>"), &(0..infos).map(one).collect::<String>())
}

// The sum of a message that is read in parts continues from part to part and from block to block.
#[test]
fn sums_continue_from_part_to_part() {
    let right = large_request(3, 2_000, "6060");
    assert!(right.len() > 2 << 20);
    let (events, summary) = iso(&right);
    assert_eq!((events.len(), summary.quarantined, summary.sums_differ), (6_000, 0, 0));
    let wrong = large_request(3, 2_000, "6060.01");
    let (events, summary) = iso(&wrong);
    assert_eq!((events.len(), summary.quarantined, summary.sums_differ), (6_000, 0, 1));
    let last = events.last().unwrap();
    assert_eq!(said(last, "sum_differs"), "GrpHdr/CtrlSum is 6060.01, 6000 transactions in it come to 6060");
    // The part with the end of the message has no event that could say it, and goes into quarantine.
    let more = format!("<SplmtryData>{}</SplmtryData></CstmrCdtTrfInitn>", " ".repeat(800_000));
    for (sum, differing) in [("2020", 0), ("2021", 1)] {
        let text = large_request(1, 2_000, sum).replace("</CstmrCdtTrfInitn>", &more);
        let dir = tempfile::tempdir().unwrap();
        let (_, events, summary) = read(dir.path(), "iso20022", "iso20022", &text);
        assert_eq!((events.len(), summary.quarantined), (2_000, differing));
        let listed = quarantine::list(&dir.path().join("tape")).unwrap();
        let says: Vec<_> = listed.iter().map(|e| (e.reason.as_str(), e.detail.as_str())).collect();
        let says_it = [("sum_differs", "GrpHdr/CtrlSum is 2021, 2000 transactions in it come to 2020")];
        assert_eq!(says, says_it[..differing as usize]);
        let mapping = Mapping::built_in("iso20022").unwrap();
        let retried = quarantine::retry(&dir.path().join("tape"), Some(mapping), None).unwrap();
        assert_eq!(retried.left, differing, "{retried:?}");
    }
    // A booking of more than 1 MiB; then one more, which has the next number.
    let mut batch = String::new();
    for n in 0..6_000 {
        let _ = writeln!(batch, "{}", transaction(&format!("E{n}"), &amount("EUR", "0.01")));
    }
    for (sum, differing) in [("60.00", 0), ("60.01", 1)] {
        let text = statement(
            &(entry(sum, "CRDT", &details(&batch)) + &entry("1", "CRDT", &details(&transaction("L", "")))),
        );
        assert!(text.len() > 1 << 20);
        let dir = tempfile::tempdir().unwrap();
        let (feed, events, summary) = read(dir.path(), "iso20022", "iso20022", &text);
        assert_eq!((summary.quarantined, summary.sums_differ), (0, differing));
        let found = payments(&events);
        assert_eq!(found.len(), 6_001);
        assert!(found[..6_000].iter().all(|e| e["booking"] == "1" && e["amt"] == "0.01"));
        assert_eq!((said(found[6_000], "booking"), said(found[6_000], "amt")), ("2", "1"));
        let line = events.iter().find(|e| e["entries"].is_array()).unwrap();
        assert_eq!(line["entries"][0]["transactions"], "6000");
        assert!(line["entries"][0]["cpty_name"].is_null());
        assert_eq!(line["sum_differs"].is_null(), differing == 0, "{line}");
        let other = dir.path().join("other");
        run(&other, &[feed], 3, 20_000);
        assert_same(&dir.path().join("tape"), &other, "3 workers, small blocks");
    }
}

// A retried part does not know what was before it, and says nothing about the sum.
#[test]
fn a_retried_part_compares_no_sum_that_it_does_not_know() {
    let text = &Mapping::built_in("iso20022").unwrap().text;
    let strict = text.replace("ref = { from = \"./PmtId/EndToEndId\"", "ref = { from = \"./NotThere\"");
    let strict = strict.replace("name = \"iso20022\"", "name = \"strict\"");
    let dir = tempfile::tempdir().unwrap();
    let (file, tape) = (dir.path().join("in"), dir.path().join("tape"));
    std::fs::write(&file, large_request(1, 4_000, "4040")).unwrap();
    let format = Format::from_mapping(Mapping::parse(&strict, "strict").unwrap()).unwrap();
    let s = run(&tape, &[FileFeed { name: "f".to_owned(), format, files: vec![file] }], 2, 64 << 10).summary;
    assert!(s.quarantined > 1 && s.quarantined == s.messages, "{s:?}");
    let retried = quarantine::retry(&tape, Some(Mapping::built_in("iso20022").unwrap()), None).unwrap();
    assert_eq!((retried.left, retried.events), (0, 4_000), "{retried:?}");
    assert_eq!(TapeAccount::load(&tape).unwrap().sums_differ, 0);
}

fn fin(mt: &str, fields: &str) -> String {
    format!(
        "{{1:F01AAAADEHHAXXX0000000000}}{{2:O{mt}0905260302BBBBUS33AXXX00000000002603020905N}}{{4:\n{fields}\n-}}"
    )
    .replace('\n', "\r\n")
}

// The network checks the sums of MT messages (error C01); files that did not come from it were never checked.
#[test]
fn sums_of_mt_messages_are_compared() {
    let customers = |settled: &str| {
        format!(
            ":20:B1\n:23:CREDIT\n:50K:/1\nPAYER\n:21:T1\n:32B:EUR60,15\n:59:/2\nANN\n:71A:OUR\n:21:T2\n:32B:EUR24,05\n:59:/3\nBOB\n:71A:OUR\n{settled}"
        )
    };
    let banks = |sum: &str| {
        format!(
            ":19:{sum}\n:30:260302\n:20:T1\n:32B:EUR60,15\n:58A:AAAADEHH\n:20:T2\n:32B:EUR24,05\n:58A:BBBBUS33"
        )
    };
    let debits = |more: &str| {
        format!(
            ":20:B1\n:30:260302\n:21:T1\n:32B:EUR60,15\n:59:/2\nANN\n:21:T2\n:32B:EUR24,05\n:59:/3\nBOB\n{more}"
        )
    };
    for (mt, fields, differs, unchecked) in [
        ("102", customers(":32A:260302EUR84,20"), "", ""),
        (
            "102",
            customers(":32A:260302EUR84,21"),
            "field 32A is 84.21, 2 transactions in the message come to 84.2",
            "",
        ),
        ("102", customers(":32A:260302EUR85,20\n:71G:EUR1,"), "", ""),
        ("102", customers(":32A:260302EUR85,20\n:19:84,20"), "", ""),
        ("102", customers(":32A:260302EUR84,20\n:19:85,20"), "field 19 is 85.2, 2 transactions", ""),
        ("102", customers(":32A:260302USD90,"), "", "the amounts are not in USD"),
        ("104", debits(":32B:EUR84,20"), "", ""),
        ("104", debits(":32B:EUR84,"), "field 32B is 84, 2 transactions", ""),
        ("107", debits(":32B:EUR80,\n:19:84,20"), "", ""),
        ("203", banks("84,20"), "", ""),
        ("203", banks("84,"), "field 19 is 84, 2 transactions", ""),
        ("201", banks("84,").replace("58A", "57A"), "field 19 is 84, 2 transactions", ""),
        ("101", customers("").trim_end().to_owned(), "", ""),
    ] {
        let good = fin("202", ":20:G\n:21:R\n:32A:260302EUR1,\n:58A:BBBBUS33");
        let dir = tempfile::tempdir().unwrap();
        let text = format!("{good}{}{good}", fin(mt, &fields));
        let (_, events, summary) = read(dir.path(), "swift", "swift-mt", &text);
        assert_eq!((summary.quarantined, events.len()), (0, 4), "{mt} {fields}");
        assert_eq!(summary.sums_differ, u64::from(!differs.is_empty()), "{mt} {fields}");
        for event in &events[1..3] {
            for (name, says) in [("sum_differs", differs), ("sum_unchecked", unchecked)] {
                let found = said(event, name);
                assert_eq!(found.is_empty(), says.is_empty(), "{name} {event}");
                assert!(found.contains(says), "{found}, not {says}");
            }
        }
        assert!([&events[0], &events[3]].iter().all(|e| e["sum_differs"].is_null()));
    }
}

// What a mapping asks for and no element can give is an error before any message is read.
#[test]
fn mappings_ask_for_sums_of_transactions_alone() {
    for (delimiter, path, says) in [
        ("A/B", "@sum_differs", "only of Ntry"),
        ("A/B", "@booking", "only of Ntry"),
        ("A/S/Ntry", "@amount", "only of Ntry/NtryDtls/TxDtls"),
        ("A/B/CdtTrfTxInf", "@sum_differs", "PmtInf"),
        ("CdtTrfTxInf", "@sum_differs", "PmtInf"),
    ] {
        let text = format!(
            "name='m'\nformat='iso20022'\n[message]\nts='*/GrpHdr/CreDtTm'\n[group.g]\ndelimiter='{delimiter}'\nmembers=['{delimiter}','.']\n[[rule]]\n[[rule.event]]\nkind='status'\neach='g'\nfields={{state='./C'}}\nkeep={{x='{path}'}}\n"
        );
        let error = Mapping::parse(&text, "m.toml").expect_err(path).to_string();
        assert!(error.contains(says), "{delimiter} {error}");
    }
    let outside = "name='m'\nformat='iso20022'\n[message]\nts='*/GrpHdr/CreDtTm'\n[[rule]]\n[[rule.event]]\nkind='status'\nfields={state='@booking'}\n";
    let error = Mapping::parse(outside, "m.toml").expect_err("outside").to_string();
    assert!(error.contains("outside a group's entries"), "{error}");
}
