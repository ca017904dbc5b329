//! The ISO 20022 decoder against the vectors in `vectors/iso20022`. Where they come from is in `SOURCES.md` there.

use serde_json::Value;
use std::path::{Path, PathBuf};
use unitape_codec::iso20022::{IsoSummary, MESSAGE_BYTES_MAX, decode_json};

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/iso20022")
}

fn decode(input: &[u8], name: &str) -> (IsoSummary, Vec<Value>) {
    let mut out = Vec::new();
    let summary =
        decode_json(&mut &input[..], name, MESSAGE_BYTES_MAX, &mut out).expect("memory reads and writes");
    let lines = out.split(|b| *b == b'\n').filter(|l| !l.is_empty());
    (summary, lines.map(|l| serde_json::from_slice(l).expect("a line is JSON")).collect())
}

fn file(name: &str) -> Vec<u8> {
    let path = vectors().join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// File, type, variant, how many paths, one of them and what it says.
const FILES: [(&str, &str, &str, usize, &str, &str); 19] = [
    ("prowide/camt.003.001.04.xml", "camt.003.001.04", "", 4, "Document/GetAcct/ReqTp/PmtCtrl", "RT01"),
    ("prowide/camt.053.001.07.xml", "camt.053.001.07", "", 19, "AppHdr/BizMsgIdr", "ASDFSDF"),
    ("prowide/mx_sample_bah.xml", "head.001.001.01", "", 7, "AppHdr/CreDt", "2015-08-27T08:59:00Z"),
    ("prowide/mx_sample_document.xml", "camt.003.001.04", "", 1, "Document/GetAcct/MsgId/Id", "1"),
    ("prowide/mx_sample_header.xml", "$ahV10", "", 6, "AppHdr/MsgRef", "11308917"),
    (
        "prowide/mx_sample_payload.xml",
        "camt.003.001.04",
        "",
        7,
        "AppHdr/From/Id",
        "cn=funds,ou=abcdchzz,o=swift",
    ),
    ("prowide/pacs.002-CDATA.xml", "pacs.002.001.03", "", 14, "AppHdr/PssblDplct", "false"),
    (
        "prowide/pacs.008.001.07.xml",
        "pacs.008.001.07",
        "",
        57,
        "Document/FIToFICstmrCdtTrf/CdtTrfTxInf/IntrBkSttlmAmt@Ccy",
        "USD",
    ),
    (
        "prowide/pacs.009.001.07.xml",
        "pacs.009.001.07",
        "",
        37,
        "Document/FICdtTrf/CdtTrfTxInf/IntrBkSttlmAmt",
        "22423",
    ),
    (
        "prowide/seev.031.002.09.xml",
        "seev.031.002.09",
        "",
        33,
        "Document/CorpActnNtfctn/CorpActnGnlInf/EvtTp/Cd",
        "INTR",
    ),
    (
        "moov/FI_camt_052_sample.xml.xml",
        "camt.052.001.02",
        "",
        77,
        "Document/BkToCstmrAcctRpt/GrpHdr/MsgId",
        "BANKFILEID219073",
    ),
    (
        "moov/FI_camt_053_sample.xml.xml",
        "camt.053.001.02",
        "",
        117,
        "Document/BkToCstmrStmt/Stmt/Id",
        "BANKSTMTID0972009",
    ),
    (
        "moov/FI_camt_054_sample.xml.xml",
        "camt.054.001.02",
        "",
        103,
        "Document/BkToCstmrDbtCdtNtfctn/Ntfctn/Acct/Nm",
        "Account name",
    ),
    (
        "moov/International_payment_USD_naujas_1.xml",
        "pain.001.001.03",
        "",
        25,
        "Document/CstmrCdtTrfInitn/PmtInf/CdtTrfTxInf/Amt/InstdAmt",
        "111.11",
    ),
    (
        "moov/musterfile_pain.001_Nov2020.xml",
        "pain.001.001.03",
        "ch.02",
        40,
        "Document/CstmrCdtTrfInitn/GrpHdr/CtrlSum",
        "38.00",
    ),
    (
        "moov/pain008-musterfile.xml",
        "pain.008.001.02",
        "ch.03",
        33,
        "Document/CstmrDrctDbtInitn/PmtInf/ReqdColltnDt",
        "2018-03-16",
    ),
    (
        "moov/sepa_payment_naujas_1.xml",
        "pain.001.001.03",
        "",
        32,
        "Document/CstmrCdtTrfInitn/PmtInf/CdtTrfTxInf/Cdtr/Nm",
        "IMONE Z",
    ),
    (
        "moov/statement_1.xml",
        "camt.053.001.02",
        "",
        48,
        "Document/BkToCstmrStmt/Stmt/Acct/Ownr/Nm",
        "UAB \"TESTAVIMAS\"",
    ),
    (
        "moov/valid_pacs_v11.xml",
        "pacs.002.001.11",
        "",
        2,
        "Document/FIToFIPmtStsRpt/GrpHdr/CreDtTm",
        "2014-11-12T11:45:26.371",
    ),
];

// Every file is one message, as its sender meant it: prefixes, wrappers, comments, a byte order mark, CDATA.
#[test]
fn every_sample_message_is_accounted_for() {
    let mut found = 0;
    for folder in ["prowide", "moov"] {
        for entry in std::fs::read_dir(vectors().join(folder)).expect("a folder") {
            let path = entry.expect("an entry").path();
            found += usize::from(path.extension().is_some_and(|e| e == "xml"));
        }
    }
    assert_eq!(found, FILES.len(), "a file is not in the table");
    for (name, kind, variant, paths, path, says) in FILES {
        let (summary, lines) = decode(&file(name), name);
        assert_eq!((summary.messages, summary.errors), (1, 0), "{name}: {lines:?}");
        let line = &lines[0];
        assert_eq!((&line["type"], &line["file"]), (&kind.into(), &name.into()));
        assert_eq!(line["variant"].as_str().unwrap_or(""), variant, "{name}");
        let fields = line["fields"].as_object().expect("an object");
        assert_eq!(fields.len(), paths, "{name}: {:?}", fields.keys());
        assert_eq!(fields[path], says, "{name}");
    }
}

// A payload cut into pieces of CDATA is whole again when they are put together.
#[test]
fn cdata_keeps_its_bytes() {
    let (_, lines) = decode(&file("prowide/pacs.002-CDATA.xml"), "f");
    let parts = &lines[0]["fields"]["Document/FIToFIPmtStsRpt/OrgnlGrpInfAndSts/StsRsnInf/AddtlInf"];
    let parts: String =
        parts.as_array().expect("ten parts").iter().map(|p| p.as_str().expect("text")).collect();
    assert!(parts.starts_with("<?xml version=\"1.0\" ?><RequestPayload><h:AppHdr xmlns:h="));
    assert!(parts.contains("</h:To><h:BizMsgIdr>PA20091531272</h:BizMsgIdr>"), "{parts}");
    assert!(parts.contains("<Doc:MmbId>123456</Doc:MmbId>      </Doc:ClrSysMmbId>"));
}

// A path that is there more than once is an array, and its values are in order.
#[test]
fn repeated_paths_are_arrays() {
    let (_, lines) = decode(&file("moov/musterfile_pain.001_Nov2020.xml"), "f");
    let fields = &lines[0]["fields"];
    let ids =
        fields["Document/CstmrCdtTrfInitn/PmtInf/CdtTrfTxInf/PmtId/EndToEndId"].as_array().expect("an array");
    assert_eq!((ids.len(), &ids[0], &ids[7]), (8, &"EndToEndId-01-01".into(), &"EEndToEndId-06-01".into()));
    let currencies = &fields["Document/CstmrCdtTrfInitn/PmtInf/CdtTrfTxInf/Amt/InstdAmt@Ccy"];
    // One payment of the eight has an equivalent amount instead.
    assert_eq!(currencies.as_array().expect("an array").len(), 7);
}

// All samples in one file, and again with rubbish between them: each is found where it starts.
#[test]
fn samples_back_to_back_are_found() {
    let mut all = Vec::new();
    let mut starts = Vec::new();
    for (n, (name, ..)) in FILES.iter().enumerate() {
        starts.push((all.len(), n));
        all.extend_from_slice(&file(name));
        all.extend_from_slice(if n % 2 == 0 { b"\r\n" } else { b"" });
    }
    let (summary, lines) = decode(&all, "f");
    assert_eq!((summary.messages, summary.errors), (19, 0));
    for (line, (start, n)) in lines.iter().zip(starts) {
        let offset = line["offset"].as_u64().expect("a number") as usize;
        // A byte order mark is before it.
        assert!(offset == start || offset == start + 3, "{}: {offset}, not {start}", FILES[n].0);
        assert_eq!(line["type"], FILES[n].1);
    }
    let mut noisy = b"PREFACE ".to_vec();
    for (name, ..) in FILES {
        noisy.extend_from_slice(&file(name));
        noisy.extend_from_slice(b"\n--boundary\n");
    }
    let (summary, lines) = decode(&noisy, "f");
    assert_eq!((summary.messages, summary.errors), (19, 20), "{lines:?}");
    assert!(lines.iter().filter(|l| l["error"]["code"] == "garbage").count() == 20);
}
