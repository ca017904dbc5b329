//! Data on demand: what `get` prints of a store that `serve` serves, and what it refuses.

use crate::common::folder::Folder;
use crate::common::{Ran, file, run, terminate, unitape};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};

/// A store of three instruments and two days, with parties, an event without an instrument, and one without a day.
fn seal(folder: &Folder) {
    // Refused before the feed had a time.
    let mut lines = "{\"ts\":\"no time\"}\n".to_owned();
    for n in 0..60i64 {
        let (ts, instr) =
            (1_710_158_400_000_000_000 + n * 4_000_000_000_000, ["VOD", "BARC", "a,b"][n as usize % 3]);
        let place = format!(r#""ts":{ts},"venue":"{}","instr":"{instr}""#, ["XLON", "CHIX"][n as usize % 2]);
        lines += &match n % 4 {
            0 => format!(
                r#"{{{place},"kind":"bbo","bid":"{n}.5","bid_qty":"10","ask":"{n}.75","ask_qty":"7"}}"#
            ),
            1 => format!(r#"{{{place},"kind":"trade","px":"{n}","qty":"3","side":"B","match_id":"M{n}"}}"#),
            2 => format!(
                r#"{{{place},"kind":"order_new","oid":"X{n}","side":"S","px":"9","qty":"5","owner":"SECRET LTD"}}"#
            ),
            _ => format!(r#"{{"ts":{ts},"kind":"news","headline":"about it","instrs":["VOD","BARC"]}}"#),
        };
        lines.push('\n');
    }
    let (input, tape) = (file(folder.dir.path(), "served.jsonl", &lines), folder.text("tape"));
    run(["consolidate", input.to_str().unwrap(), "--tape", &tape]);
    run(["store", "seal", &tape, "--store", &folder.text("ticks")]).code(0);
}

/// A server of a folder's store `ticks`, which ends with the test.
struct Server {
    process: Child,
    address: String,
    /// Address of the data channel.
    data: String,
    fingerprint: String,
}

impl Server {
    fn start(folder: &Folder, entitlements: &str) -> Self {
        folder.user_file("users.toml");
        for user in ["quant", "surveillance", "stranger"] {
            folder.add_user("users.toml", user, "analyst", &[]);
        }
        folder.private("entitlements.toml", entitlements);
        let mut process = unitape()
            .args([
                "serve",
                "--store",
                &folder.text("ticks"),
                "--users",
                &folder.text("users.toml"),
                "--json",
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let announced: Value = serde_json::from_str(&line).unwrap();
        let field = |name: &str| announced[name].as_str().unwrap().to_owned();
        Self { process, address: field("server"), data: field("data"), fingerprint: field("fingerprint") }
    }

    fn get(&self, folder: &Folder, user: &str, more: &[&str]) -> Ran {
        let address = format!("{}/ticks", self.address);
        self.get_from(&address, folder, user, more)
    }

    fn get_from(&self, address: &str, folder: &Folder, user: &str, more: &[&str]) -> Ran {
        let password = folder.text(&format!("{user}.pw"));
        let known = [
            "get",
            address,
            "--fingerprint",
            &self.fingerprint,
            "--user",
            user,
            "--password-file",
            &password,
        ];
        run(known.iter().chain(more))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        terminate(&self.process);
        _ = self.process.wait();
    }
}

fn scan(folder: &Folder, more: &[&str]) -> Ran {
    run(["store", "scan", &folder.text("ticks")].iter().chain(more))
}

const ALL: &str = "format = 1
[[entitlement]]
user = \"quant\"
dataset = \"ticks\"
[[entitlement]]
user = \"surveillance\"
dataset = \"ticks\"
classes = [\"market\", \"identity\", \"provenance\"]
";

/// Who may read all must get the bytes that the owner of the store gets, in each form and of each selection.
#[test]
fn get_prints_what_scan_prints() {
    let folder = Folder::new();
    seal(&folder);
    let server = Server::start(&folder, ALL);
    for selection in [
        &["--schema", "bbo", "--json"][..],
        &["--schema", "bbo", "--csv", "--symbols", "VOD,BARC"],
        &["--schema", "trades"],
        &["--schema", "trades", "--csv", "--symbol", "a,b", "--limit", "2"],
        &["--schema", "trades", "--json", "--date", "2024-03-12"],
        &[
            "--schema",
            "bbo",
            "--json",
            "--venue",
            "CHIX",
            "--since",
            "2024-03-11T14:00",
            "--until",
            "2024-03-13",
        ],
        &["--schema", "bbo", "--csv", "--since", "2030-01-01"],
    ] {
        let (got, wanted) = (server.get(&folder, "quant", selection), scan(&folder, selection));
        assert_eq!(got.code(0).stdout, wanted.code(0).stdout, "{selection:?}");
    }
    for selection in [
        &["--full", "--json"][..],
        &["--events", "--json", "--schema", "mbo,news", "--symbols", "VOD"],
        &["--events", "--schema", "quarantine", "--date", "undated", "--json"],
        &["--full", "--limit", "5"],
        &["--json", "--venue", "XLON"],
    ] {
        let wanted = scan(&folder, selection).code(0).stdout;
        let got = server.get(&folder, "surveillance", selection);
        assert_eq!(got.code(0).stdout, wanted, "{selection:?}");
        assert!(!wanted.is_empty(), "{selection:?}");
        // Rows need market data alone; events need more than this user may read.
        assert_eq!(server.get(&folder, "quant", selection).code(0).stdout, b"", "{selection:?}");
    }
}

/// What is not granted must not be told from what is not there.
#[test]
fn what_one_may_not_read_does_not_exist() {
    let folder = Folder::new();
    seal(&folder);
    let entitlements = "format = 1
[[entitlement]]
user = \"quant\"
dataset = \"ticks\"
symbols = [\"V*\"]
to = \"2024-03-12\"
";
    let server = Server::start(&folder, entitlements);
    let csv = &["--schema", "bbo", "--csv"][..];
    let wanted = scan(&folder, &[csv, &["--symbols", "VOD", "--date", "2024-03-11"]].concat());
    assert_eq!(server.get(&folder, "quant", csv).code(0).stdout, wanted.code(0).stdout);
    let ask = |symbol| server.get(&folder, "quant", &[csv, &["--symbols", symbol]].concat());
    let (absent, forbidden) = (ask("NONE").code(0), ask("BARC").code(0));
    assert_eq!(absent.stderr.replace("NONE", "BARC"), forbidden.stderr);
    assert_eq!((&absent.stdout, absent.stdout.lines().count()), (&forbidden.stdout, 1));

    let other = format!("{}/others", server.address);
    let absent = server.get_from(&other, &folder, "quant", csv).code(2);
    let forbidden = server.get(&folder, "stranger", csv).code(2);
    assert_eq!((&absent.stdout[..], &forbidden.stdout[..]), (&b""[..], &b""[..]));
    assert_eq!(absent.stderr.replace("others", "ticks"), forbidden.stderr);

    let listed = server.get_from(&server.address, &folder, "quant", csv).code(2).stderr;
    assert!(listed.contains("/ticks"), "{listed}");
    let listed = server.get_from(&server.address, &folder, "stranger", csv).code(2).stderr;
    assert!(listed.contains("there is no dataset that you may read"), "{listed}");

    // From the next query on, and for a file that says nothing sound as well.
    folder.private("entitlements.toml", "format = 1\n");
    assert_eq!(server.get(&folder, "quant", csv).code(2).stdout, b"");
    folder.private("entitlements.toml", "format = 1\nall = true\n");
    assert!(server.get(&folder, "quant", csv).code(1).stderr.contains("its log says why"));
}

#[test]
fn strangers_and_other_servers_are_refused() {
    let folder = Folder::new();
    seal(&folder);
    let server = Server::start(&folder, ALL);
    folder.private("wrong.pw", "another password\n");
    let rows = ["--schema", "bbo"];
    let ask = |user: &str| {
        let (address, password) = (format!("{}/ticks", server.address), folder.text("wrong.pw"));
        let known = [
            "get",
            &address,
            "--fingerprint",
            &server.fingerprint,
            "--user",
            user,
            "--password-file",
            &password,
        ];
        run(known.iter().chain(&rows))
    };
    let (unknown, wrong) = (ask("nobody").code(1), ask("quant").code(1));
    assert_eq!((&unknown.stdout[..], unknown.stderr), (&b""[..], wrong.stderr));

    let address = format!("{}/ticks", server.address);
    let (password, other) = (folder.text("quant.pw"), "5a".repeat(32));
    let known = ["get", &address, "--user", "quant", "--password-file", &password, "--fingerprint"];
    let refused = run(known.iter().chain(&[&other[..]]).chain(&rows)).code(1);
    assert!(refused.stderr.contains("another fingerprint"), "{}", refused.stderr);
    for (more, message) in
        [(&["--fingerprint", "5a"][..], "64 hexadecimal digits"), (&[][..], "--fingerprint")]
    {
        let refused = run(known[..6].iter().chain(more).chain(&rows)).code(2);
        assert!(refused.stderr.contains(message), "{}", refused.stderr);
    }
}

/// A reader that has seen enough is no failure, and a disk that is full is one.
#[test]
fn get_ends_as_others_do_where_stdout_ends() {
    let folder = Folder::new();
    seal(&folder);
    let server = Server::start(&folder, ALL);
    let address = format!("{}/ticks", server.address);
    let password = folder.text("quant.pw");
    let ask = |stdout: Stdio| {
        let known = [
            "get",
            &address,
            "--fingerprint",
            &server.fingerprint,
            "--user",
            "quant",
            "--password-file",
            &password,
        ];
        unitape()
            .args(known)
            .args(["--schema", "bbo", "--json"])
            .stdout(stdout)
            .stderr(Stdio::piped())
            .output()
            .unwrap()
    };
    let closed = ask(std::io::pipe().unwrap().1.into());
    assert_eq!((closed.status.code(), &closed.stderr[..]), (Some(0), &b""[..]));
    let full = ask(std::fs::File::create("/dev/full").unwrap().into());
    assert_eq!(full.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&full.stderr).contains("No space left"), "{full:?}");
}

/// A network between `get` and its server, which cuts the data channel after some of its bytes.
fn cut_data_channel(server: &Server, bytes: u64) -> String {
    let (private, data) = (server.address.strip_prefix("unitape://").unwrap(), &server.data);
    // The server says the port of its data channel and nothing of its host: the same ports of another address.
    let other = |address: &str| address.replace("127.0.0.1", "127.0.0.9");
    for (address, limit) in [(private, u64::MAX), (data, bytes)] {
        let (listener, to) = (TcpListener::bind(other(address)).unwrap(), address.to_owned());
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(&to).unwrap());
                let (mut from_client, mut to_server) =
                    (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
                std::thread::spawn(move || {
                    _ = std::io::copy(&mut (&server).take(limit), &mut &client);
                    _ = client.shutdown(Shutdown::Both);
                    _ = server.shutdown(Shutdown::Both);
                });
            }
        });
    }
    format!("unitape://{}/ticks", other(private))
}

/// Rows of a part must not look like the whole answer, wherever the data channel is cut.
#[test]
fn a_data_channel_that_is_cut_fails_the_command() {
    let folder = Folder::new();
    seal(&folder);
    let args = ["--schema", "bbo", "--json"];
    let all = scan(&folder, &args).code(0).text().to_owned();
    let mut failed = 0;
    for bytes in [0, 1, 40, 1000, 3000, 10_000, u64::MAX] {
        let server = Server::start(&folder, ALL);
        let address = cut_data_channel(&server, bytes);
        let ran = server.get_from(&address, &folder, "quant", &args);
        assert!(all.starts_with(ran.text()), "{bytes} bytes: {}", ran.text());
        if ran.text() == all && ran.code == Some(0) {
            continue;
        }
        failed += 1;
        let ran = ran.code(1);
        assert!(
            ran.stderr.contains("data channel") || ran.stderr.contains("connection"),
            "{bytes}: {}",
            ran.stderr
        );
    }
    assert!((3..7).contains(&failed), "{failed} of 7 failed");
}

/// A server that nobody can find is of no use, and must not look as if it had worked.
#[test]
fn a_server_that_cannot_announce_itself_ends() {
    let folder = Folder::new();
    seal(&folder);
    folder.user_file("users.toml");
    folder.add_user("users.toml", "quant", "analyst", &[]);
    folder.private("entitlements.toml", ALL);
    let (store, users, port) = (folder.text("ticks"), folder.text("users.toml"), folder.text("nowhere/port"));
    let known = ["serve", "--store", &store, "--users", &users];
    run(known.iter().chain(&["--port-file", &port])).code(1).says(&["nowhere/port"]);
}

/// Nobody writes into a pipe that lies where users or rights are read: a server that waits for it never answers.
#[test]
fn pipes_in_the_place_of_users_and_rights_are_refused() {
    let folder = Folder::new();
    seal(&folder);
    let pipe = |name: &str| {
        assert!(std::process::Command::new("mkfifo").arg(folder.path(name)).status().unwrap().success());
    };
    let (store, users, password) = (folder.text("ticks"), folder.text("users.toml"), folder.text("quant.pw"));
    let port_file = folder.text("port");
    let serve = ["serve", "--store", &store, "--users", &users, "--port-file", &port_file];
    pipe("users.toml");
    run(["user", "list", "--users", &users]).code(1).says(&["users.toml", "no regular file"]);
    folder.private("quant.pw", "a password of some length\n");
    let add = ["user", "add", "quant", "--role", "analyst", "--users", &users, "--password-file", &password];
    run(add).code(1).says(&["users.toml", "no regular file"]);
    folder.private("entitlements.toml", ALL);
    run(serve).code(1).says(&["users.toml", "no regular file"]);
    for name in ["users.toml", "entitlements.toml"] {
        std::fs::remove_file(folder.path(name)).unwrap();
    }
    folder.user_file("users.toml");
    folder.add_user("users.toml", "quant", "analyst", &[]);
    pipe("entitlements.toml");
    run(serve).code(1).says(&["entitlements.toml", "no regular file"]);
}

/// A request in XML is the same question.
#[test]
fn a_request_in_xml_gets_the_same_rows() {
    let folder = Folder::new();
    seal(&folder);
    let server = Server::start(&folder, ALL);
    folder.private("universe.txt", "VOD\n# a comment\nBARC\n");
    let request = |dataset: &str, types: &str| {
        format!(
            r#"<message type="3" priority="0"><service name="DataAccess"/><db_name value="{dataset}"/><universe_file name="universe.txt" location="{}"/><msg_types value="{types}"/><time_range from="20240311 12:00:00.000" to="20240312 00:00:00.000"/></message>"#,
            folder.dir.path().display()
        )
    };
    folder.private("request.xml", &request("ticks", "Trade,BBO"));
    let asked = ["--request", &folder.text("request.xml"), "--csv"];
    let window = ["--symbols", "VOD,BARC", "--since", "2024-03-11T12:00", "--until", "2024-03-12", "--csv"];
    let wanted =
        ["trades", "bbo"].map(|schema| scan(&folder, &[&["--schema", schema][..], &window].concat()).stdout);
    assert!(wanted.iter().all(|rows| rows.lines().count() > 2), "{wanted:?}");
    for address in [server.address.clone(), format!("{}/ticks", server.address)] {
        let got = server.get_from(&address, &folder, "quant", &asked);
        assert_eq!(got.code(0).stdout, wanted.concat());
    }
    folder.private("request.xml", &request("others", "Trade"));
    let refused = server.get(&folder, "quant", &asked);
    assert!(refused.code(2).stderr.contains("the address names the dataset ticks, the request others"));
    folder.private("request.xml", "<message type=\"3\">");
    let refused = server.get(&folder, "quant", &asked).code(2);
    assert!(refused.stderr.contains("request.xml: line 1"), "{}", refused.stderr);
}

/// Damage on the server is named, and the rest is read, as by the owner of the store.
#[test]
fn damage_on_the_server_is_named_and_the_rest_is_read() {
    let folder = Folder::new();
    seal(&folder);
    let file = folder.path("ticks/2024-03-11/bbo/00000001.blocks");
    let mut bytes = std::fs::read(&file).unwrap();
    // In the first block, behind the header of the file and that of the block.
    bytes[64 + 132 + 40] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let server = Server::start(&folder, ALL);
    let rows = ["--schema", "bbo", "--json"];
    let (got, wanted) = (server.get(&folder, "quant", &rows).code(3), scan(&folder, &rows).code(3));
    assert_eq!(got.stdout, wanted.stdout);
    assert!(got.stderr.contains("block 0 at offset"), "{}", got.stderr);
    assert!(
        Path::new(&folder.text("ticks")).is_dir() && !got.stderr.contains(&folder.text("ticks")),
        "{}",
        got.stderr
    );
}

/// The header of a block is damaged while the index still names it: the owner and a reader must hear of it alike.
#[test]
fn a_damaged_block_header_is_named_to_owner_and_reader() {
    let folder = Folder::new();
    seal(&folder);
    let file = folder.path("ticks/2024-03-11/trades/00000001.blocks");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[64 + 20] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let server = Server::start(&folder, ALL);
    let rows = ["--schema", "trades", "--json"];
    let (got, wanted) = (server.get(&folder, "quant", &rows).code(3), scan(&folder, &rows).code(3));
    assert_eq!(got.stdout, wanted.stdout);
    for ran in [&got, &wanted] {
        assert!(ran.stderr.contains("block 0 at offset"), "{}", ran.stderr);
    }
}

/// A system that refuses to open a file says nothing of the store: nobody may take it for damage, and no answer is short without a
/// word.
#[test]
fn a_refusal_of_the_system_is_no_damage() {
    let folder = Folder::new();
    seal(&folder);
    let server = Server::start(&folder, ALL);
    let file = folder.path("ticks/2024-03-11/trades/00000001.blocks");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&file, &file).unwrap();
    let rows = ["--schema", "trades", "--json"];
    let got = server.get(&folder, "quant", &rows).code(1);
    assert!(got.stderr.contains("its system refuses") && got.stdout.is_empty(), "{}", got.stderr);
    scan(&folder, &rows).code(1).says(&["the system refused to read some of it"]);
    // A file that lies elsewhere is not needed.
    server.get(&folder, "quant", &["--schema", "bbo", "--json"]).code(0);
}

/// A pipe in the place of a file of the store has nobody who writes into it.
#[test]
fn a_pipe_in_the_place_of_a_file_of_the_store_is_damage() {
    let folder = Folder::new();
    seal(&folder);
    let file = folder.path("ticks/2024-03-11/trades/00000001.blocks");
    std::fs::remove_file(&file).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    let rows = ["--schema", "trades", "--json"];
    scan(&folder, &rows).code(3).says(&["it is no regular file"]);
    let server = Server::start(&folder, ALL);
    let got = server.get(&folder, "quant", &rows).code(3);
    assert!(got.stderr.contains("trades/00000001.blocks: it cannot be read"), "{}", got.stderr);
}

/// Who keeps the key elsewhere gives it through a pipe; it lies in no file then.
#[test]
fn a_key_may_come_from_a_pipe() {
    let folder = Folder::new();
    seal(&folder);
    let wanted = scan(&folder, &["--json"]).code(0).stdout;
    let hidden = folder.path("hidden");
    std::fs::rename(folder.path("ticks.key"), &hidden).unwrap();
    let scan_with = |key: &str| {
        let (end, mut writer) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut writer, &std::fs::read(&hidden).unwrap()).unwrap();
        drop(writer);
        unitape()
            .args(["store", "scan", &folder.text("ticks"), "--json", "--key", key])
            .stdin(end)
            .output()
            .unwrap()
    };
    let got = scan_with("/dev/stdin");
    assert_eq!((got.status.code(), got.stdout), (Some(0), wanted), "{:?}", got.stderr);
    // One beside the store, which nobody named, would be waited for.
    assert!(std::process::Command::new("mkfifo").arg(folder.path("ticks.key")).status().unwrap().success());
    scan(&folder, &["--json"]).code(1).says(&["ticks.key is no regular file"]);
}
