//! The desk of the demo: two accounts, and the page that shows its cases.

use super::demo_directory::DemoDirectory;
use crate::commands::serve::{ListenArgs, serve_desk};
use crate::output::{self, CommandFailure, say};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use unitape_run::users::{Account, Role, UserFile};
use unitape_server::DeskOptions;

/// An account of the demo, with its password.
struct DemoAccount {
    name: &'static str,
    role: Role,
    password: String,
}

/// Makes two accounts, and serves the desk until `stop`.
pub fn serve(
    demo_dir: &DemoDirectory,
    listen: &ListenArgs,
    stop: &Arc<AtomicBool>,
    json: bool,
) -> output::Result {
    let users = demo_dir.path("cases/users.toml");
    let mut accounts = Vec::new();
    for (name, role) in [("anna", Role::Analyst), ("sam", Role::Supervisor)] {
        let password = random_password()?;
        let account = Account {
            name: name.to_owned(),
            person: name.to_owned(),
            role,
            parties: Vec::new(),
            is_disabled: false,
        };
        UserFile::add_account(&users, &account, &password)?;
        accounts.push(DemoAccount { name, role, password });
    }
    let options = DeskOptions {
        tape: demo_dir.path("tape"),
        alerts: demo_dir.path("alerts"),
        cases: demo_dir.path("cases"),
        users,
        listen: listen.listen,
    };
    serve_desk(&options, listen.port_file.as_deref(), stop, move |address| {
        if json {
            let accounts: Vec<_> = accounts
                .iter()
                .map(|a| json!({ "user": a.name, "role": a.role.name(), "password": a.password }))
                .collect();
            return output::print_json(&json!({ "desk": format!("http://{address}"), "accounts": accounts }));
        }
        say!("");
        say!(
            "The desk is at http://{address}; Ctrl-C ends it. The next demo in this directory removes its cases."
        );
        for DemoAccount { name, role, password } in &accounts {
            say!("  {name} ({role}), password {password}");
        }
        Ok(())
    })
}

/// Returns a password of 20 letters and digits: 100 random bits.
pub fn random_password() -> Result<String, CommandFailure> {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut bytes = [0; 20];
    getrandom::fill(&mut bytes).map_err(|e| CommandFailure::Error(format!("random bytes: {e}")))?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}
