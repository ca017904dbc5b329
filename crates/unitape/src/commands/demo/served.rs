//! The sealed days, read back from a data server on this machine, by somebody who may read them and by somebody who may not.

use super::answers::{first_difference, reason_of};
use super::demo_directory::{DemoDirectory, directory_failure};
use super::desk::random_password;
use crate::output::CommandFailure;
use std::fs;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use unitape_run::users::{Account, Role, UserFile};
use unitape_server::demand::{DemandEvent, DemandOptions, ServedStore, serve_data};
use unitape_store::MasterKey;

/// The days as a server gives them.
#[derive(Debug)]
pub struct ServedDaysReport {
    /// Rows that were read back.
    pub rows: u64,
    /// Where they are not those of the store, or where somebody got something who may not read it.
    pub differs: Vec<String>,
}

/// Serves the days, reads rows back by `unitape get`, and compares them with `unitape store scan`.
pub fn read_back(demo_dir: &DemoDirectory) -> Result<ServedDaysReport, CommandFailure> {
    let folder = demo_dir.server();
    fs::create_dir_all(&folder).map_err(|e| directory_failure("make", &folder, &e))?;
    let users = folder.join("users.toml");
    for name in ["quant", "stranger"] {
        let password = random_password()?;
        let account = Account {
            name: name.to_owned(),
            person: name.to_owned(),
            role: Role::Analyst,
            parties: Vec::new(),
            is_disabled: false,
        };
        UserFile::add(&users, &account, &password)?;
        write_private(&folder.join(format!("{name}.password")), &password)?;
    }
    write_private(&folder.join("entitlements.toml"), ENTITLEMENTS)?;
    let options = DemandOptions {
        stores: vec![ServedStore {
            name: DATASET.to_owned(),
            dir: demo_dir.store(),
            key: MasterKey::load(&MasterKey::path_beside(&demo_dir.store())?)?,
        }],
        users,
        entitlements: folder.join("entitlements.toml"),
        listen: ANY_PORT,
        data: ANY_PORT,
        certificate: None,
    };
    let (stop, (sender, receiver)) = (AtomicBool::new(false), mpsc::channel());
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            serve_data(&options, &stop, move |event| {
                if let DemandEvent::Listening { private, fingerprint, .. } = event {
                    // Where nobody waits any more, the demo has failed already.
                    _ = sender.send((private, fingerprint));
                }
            })
        });
        // Without a message the server has failed, and says why.
        let compared = receiver.recv().ok().map(|(address, fingerprint)| {
            let address = format!("unitape://{address}/{DATASET}");
            compare(demo_dir, &[&address, "--fingerprint", &fingerprint.to_string()])
        });
        stop.store(true, Ordering::Relaxed);
        server.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        compared.unwrap_or_else(|| Err(CommandFailure::Error("the data server did not listen".to_owned())))
    })
}

/// Compares the rows of a server with those of the store.
fn compare(demo_dir: &DemoDirectory, server: &[&str]) -> Result<ServedDaysReport, CommandFailure> {
    let get = |user: &str, schema: &str| {
        let password = text(&demo_dir.server().join(format!("{user}.password")));
        let login = ["--user", user, "--password-file", &password];
        unitape(&[&["get", "--schema", schema, "--json"], server, &login].concat())
    };
    let (mut rows, mut differs) = (0, Vec::new());
    for schema in ["bbo", "trades"] {
        let scan_output =
            unitape(&["store", "scan", &text(&demo_dir.store()), "--schema", schema, "--json"])?;
        let got = get("quant", schema)?;
        let (expected_text, got_text) = (utf8(&scan_output.stdout)?, utf8(&got.stdout)?);
        rows += got_text.lines().count() as u64;
        differs.extend(first_difference(got_text, expected_text));
        if !got.status.success() {
            differs.push(format!("get ended with {}: {}", got.status, reason_of(&got)));
        }
    }
    let refused = get("stranger", "bbo")?;
    if refused.status.success() || !refused.stdout.is_empty() {
        differs.push("somebody without an entitlement got an answer".to_owned());
    }
    Ok(ServedDaysReport { rows, differs })
}

/// Runs a command of this program.
fn unitape(args: &[&str]) -> Result<Output, CommandFailure> {
    Ok(Command::new(std::env::current_exe()?).args(args).stdin(Stdio::null()).output()?)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn utf8(bytes: &[u8]) -> Result<&str, CommandFailure> {
    std::str::from_utf8(bytes).map_err(|_| CommandFailure::Error("a command printed no text".to_owned()))
}

/// Writes a file that nobody else can read.
fn write_private(path: &Path, text: &str) -> Result<(), CommandFailure> {
    let opened = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    let written = opened.and_then(|mut file| writeln!(file, "{text}"));
    written.map_err(|e| directory_failure("write", path, &e))
}

const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const DATASET: &str = "days";
const ENTITLEMENTS: &str = "format = 1\n\n[[entitlement]]\nuser = \"quant\"\ndataset = \"days\"\n";
