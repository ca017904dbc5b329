//! Requests in XML: the cases that the schema is held to as well, hostile bytes, and universe files.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use unitape_client::{
    DataRequest, RequestError, UniverseError, open_universe, read_request, refuse_universe,
};

/// `vectors/requests/cases.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    good: Vec<GoodCase>,
    broken: Vec<BrokenCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GoodCase {
    name: String,
    xml: String,
    /// The file that is opened.
    universe_file: Option<PathBuf>,
    dataset: String,
    #[serde(default)]
    symbols: Vec<String>,
    schemas: Vec<String>,
    since: Option<i64>,
    until: Option<i64>,
    #[serde(default)]
    priority: u8,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BrokenCase {
    name: String,
    xml: String,
    error: String,
    /// For the test of the schema.
    #[serde(default, rename = "schema_accepts")]
    _schema_accepts: bool,
}

fn cases() -> Cases {
    toml::from_str(&file("vectors/requests/cases.toml")).unwrap()
}

fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Reads a request whose universe file has one symbol.
fn read(xml: &[u8]) -> Result<DataRequest, RequestError> {
    read_request(xml, |_| Ok(b"IBM\n".to_vec()))
}

fn request_with(children: &str) -> String {
    format!(
        "<message type=\"3\" priority=\"0\"><service name=\"DataAccess\"/><db_name value=\"D\"/>\
         <msg_types value=\"Trade\"/>{children}</message>"
    )
}

#[test]
fn good_requests_are_read_and_broken_ones_refused() {
    let Cases { good, broken } = cases();
    for case in &good {
        let opened = Cell::new(None);
        let request = read_request(case.xml.as_bytes(), |path| {
            opened.set(Some(path.to_owned()));
            Ok(b"IBM\n".to_vec())
        });
        let request = request.unwrap_or_else(|error| panic!("{}: {error}", case.name));
        assert_eq!(opened.take(), case.universe_file, "{}", case.name);
        assert_eq!(request.dataset, case.dataset, "{}", case.name);
        assert_eq!(request.symbols, case.symbols, "{}", case.name);
        assert_eq!(
            request.schemas.iter().map(|s| s.name()).collect::<Vec<_>>(),
            case.schemas,
            "{}",
            case.name
        );
        let range = [request.since, request.until].map(|time| time.map(|time| time.0));
        assert_eq!(range, [case.since, case.until], "{}", case.name);
        assert_eq!(request.priority, case.priority, "{}", case.name);
    }
    for case in &broken {
        let opened = Cell::new(false);
        let result = read_request(case.xml.as_bytes(), |_| {
            opened.set(true);
            Ok(b"IBM\n".to_vec())
        });
        assert_eq!(result.map_err(|error| error.to_string()), Err(case.error.clone()), "{}", case.name);
        assert!(!opened.get(), "{}: a broken request opens a file", case.name);
    }
    assert!(good.len() >= 30 && broken.len() >= 100);
}

/// A new schema of the store that no request can name would go unnoticed. The case of the same name is also validated by
/// the schema of XML.
#[test]
fn every_schema_of_the_store_is_a_type_of_messages() {
    let names: Vec<_> = unitape_store::TickSchema::ALL.iter().map(|schema| schema.name()).collect();
    let case = cases().good.into_iter().find(|case| case.name == "every type of messages");
    assert_eq!(case.map(|case| case.schemas).unwrap_or_default(), names);
}

#[test]
fn the_examples_of_the_page_are_requests() {
    let page = file("docs/data-request.md");
    let examples: Vec<_> =
        page.split("```xml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        read(example.as_bytes()).unwrap_or_else(|error| panic!("{error}:\n{example}"));
    }
}

/// A request that was cut must not pass for a request of everything.
#[test]
fn every_cut_is_refused_and_every_changed_bit_is_read_or_refused() {
    for case in cases().good.iter().take(2) {
        let xml = case.xml.trim_end().as_bytes();
        for length in 0..xml.len() {
            let error = read(&xml[..length]).expect_err("a cut request");
            check_place(&error, &xml[..length]);
        }
        for offset in 0..xml.len() {
            for bit in 0..8 {
                let mut changed = xml.to_vec();
                changed[offset] ^= 1 << bit;
                match read(&changed) {
                    Ok(request) => {
                        assert!(!request.schemas.is_empty() && !request.symbols.is_empty());
                        assert!(request.since <= request.until && request.since.is_some());
                    }
                    Err(error) => check_place(&error, &changed),
                }
            }
        }
    }
}

/// The line and the column must be in the request, or right after it.
fn check_place(error: &RequestError, xml: &[u8]) {
    let lines: Vec<_> = xml.split(|byte| *byte == b'\n').collect();
    let line = lines.get(error.line - 1).unwrap_or_else(|| panic!("{error}: no such line"));
    assert!((1..=line.len() + 1).contains(&error.column), "{error}: no such column");
}

#[test]
fn size_encoding_and_depth_are_bounded() {
    let refused = |xml: &[u8], expected: &str| {
        let error = read(xml).expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    let request = request_with("");
    let mut long = format!("{request}{}", " ".repeat((1 << 20) - request.len())).into_bytes();
    assert!(read(&long).is_ok());
    long.push(b' ');
    refused(&long, "line 1, column 1: the request has 1048577 bytes, at most 1048576 are read; ");
    refused(&vec![b'<'; 64 << 20], "line 1, column 1: the request has 67108864 bytes");

    let with_mark = [b"\xEF\xBB\xBF", request.as_bytes()].concat();
    assert!(read(&with_mark).is_ok());
    refused(b"<message\n\xC3\xA9 \xE9>", "line 2, column 3: not UTF-8; save the request as UTF-8");
    let utf16: Vec<u8> = request.encode_utf16().flat_map(u16::to_le_bytes).collect();
    refused(&utf16, "line 1, column 2: character U+0000, which XML does not allow; remove it");
    refused(&[b"\xFF\xFE", &utf16[..]].concat(), "line 1, column 1: not UTF-8");
    refused("<message\u{ffff}".as_bytes(), "line 1, column 9: character U+FFFF");
    refused(b"<message \x1b[31m", "line 1, column 10: character U+001B");

    refused(&b"<a>".repeat(300_000), "line 1, column 1: <a> is no request");
    let deep = request_with(&"<universe>".repeat(90_000));
    refused(deep.as_bytes(), "line 1, column 116: <universe> cannot be in <universe>");
    let attributes: String = (0..50_000).map(|n| format!(" a{n}=\"\"")).collect();
    refused(
        format!("<message{attributes}/>").as_bytes(),
        "line 1, column 10: <message> has no attribute `a0`",
    );
}

/// What an error quotes is short, and a terminal obeys none of it.
#[test]
fn errors_quote_little_and_no_control_characters() {
    for value in ["x".repeat(900_000), "\u{9b}31m\u{7f}".to_owned()] {
        let zone = request_with(&format!("<time_range from=\"20140101 00:00:00\" zone=\"{value}\"/>"));
        let dataset = request_with("").replace("\"D\"", &format!("\"{value}\"/><{value}"));
        let location = request_with(&format!("<universe_file name=\"a/{value}\" location=\".\"/>"));
        for xml in [zone, dataset, location] {
            let message = read(xml.as_bytes()).expect_err("a broken value").to_string();
            assert!(message.len() < 500 && !message.contains(char::is_control), "{message}");
        }
    }
}

#[test]
fn a_universe_file_has_one_symbol_a_line() {
    let xml = request_with("\n<universe_file name=\"a.txt\" location=\"lists\"/>");
    let symbols = |content: &[u8]| {
        read_request(xml.as_bytes(), |_| Ok(content.to_vec()))
            .map(|request| request.symbols.join("|"))
            .map_err(|error| error.to_string())
    };
    for (content, expected) in [
        (&b"IBM\nAAPL\n"[..], "IBM|AAPL"),
        (b"IBM", "IBM"),
        (b"\xEF\xBB\xBF# S&P 500\r\nIBM\r\n\r\n  BRK B \t\r\n#AAPL\r\n \nIBM\n", "IBM|BRK B"),
        (b"A#B\n #C\n<symbol>\n", "A#B|#C|<symbol>"),
        ("É\n".as_bytes(), "É"),
    ] {
        assert_eq!(symbols(content).as_deref(), Ok(expected));
    }
    let all: String = (0..100_000).map(|n| format!("S{n}\n")).collect();
    assert!(symbols(format!("{all}S7\n").as_bytes()).is_ok());
    let long = "x".repeat(256);
    for (content, expected) in [
        (Vec::new(), "no symbol; "),
        (b"# nothing\n\n \r\n".to_vec(), "no symbol; "),
        (b"IBM\nA\xFF\n".to_vec(), "line 2 is not UTF-8; "),
        (b"IBM\n\nA\0B\n".to_vec(), "line 3: `A\u{fffd}B` is no symbol; "),
        (b"IBM\rAAPL\r".to_vec(), "line 1: `IBM\u{fffd}AAPL` is no symbol; "),
        (long.into_bytes(), "line 1: `xxxxx"),
        (format!("{all}one more\n").into_bytes(), "more than 100000 symbols; "),
        (vec![b'\n'; (16 << 20) + 1], "more than 16 MiB; "),
    ] {
        let error = symbols(&content).expect_err(expected);
        let expected = format!("line 2, column 1: universe file lists/a.txt: {expected}");
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn a_client_opens_its_universe_file_and_a_server_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().to_str().unwrap();
    let xml = request_with(&format!("<universe_file name=\"a.txt\" location=\"{location}\"/>"));
    let refusal = |open: fn(&Path) -> Result<Vec<u8>, UniverseError>| {
        read_request(xml.as_bytes(), open).expect_err("no file").to_string()
    };
    let missing = refusal(open_universe);
    assert!(
        missing.contains("a.txt: No such file") && missing.contains("; correct name and location"),
        "{missing}"
    );
    let file = std::fs::File::create(folder.path().join("a.txt")).unwrap();
    file.set_len((16 << 20) + 1).unwrap();
    assert!(refusal(open_universe).contains("more than 16 MiB"));
    std::fs::write(folder.path().join("a.txt"), "IBM\n").unwrap();
    assert_eq!(read_request(xml.as_bytes(), open_universe).unwrap().symbols, ["IBM"]);
    let refused = refusal(refuse_universe);
    assert!(refused.contains("files of the client cannot be read here"), "{refused}");
    assert!(refused.ends_with("<universe><symbol>IBM</symbol></universe>"), "{refused}");
}
