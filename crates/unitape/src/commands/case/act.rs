//! What a user does to a case.

use super::CaseTarget;
use crate::commands::clock_time;
use crate::commands::login::LoginArgs;
use crate::output::{self, CommandFailure, CommandOutcome, say};
use serde_json::{Value, json};
use unitape_case::action::{CaseCommand, act};
use unitape_case::{ActionKind, ActionRecord, Actor, CaseStore, Disposition};

/// An action as it was asked for.
#[derive(Debug)]
pub enum Request {
    Assign { to: String },
    Note { text: String },
    Escalate { text: Option<String> },
    Close { reason: Option<Disposition>, text: Option<String> },
    Reopen { text: String },
}

/// Logs in, and does it.
pub fn run(target: &CaseTarget, login: &LoginArgs, request: Request) -> output::Result {
    let mut store = CaseStore::open(&target.cases)?;
    let (users, account) = login.log_in(Some(&target.cases))?;
    let actor = Actor::from(account);
    let command = match request {
        Request::Assign { to } => {
            let account = users.accounts().find(|account| account.name == to);
            let account = account.ok_or_else(|| CommandFailure::Usage(format!("there is no user `{to}`")))?;
            if account.is_disabled {
                return Err(CommandFailure::Usage(format!("the account `{to}` is disabled")));
            }
            CaseCommand::Assign { to: account.into() }
        }
        Request::Note { text } => CaseCommand::Note { text },
        Request::Escalate { text } => CaseCommand::Escalate { text },
        Request::Close { reason, text } => CaseCommand::Close { disposition: reason, text },
        Request::Reopen { text } => CaseCommand::Reopen { text },
    };
    let action = act(&mut store, target.case, &actor, &command, clock_time().0)?;
    if target.json {
        output::print_json(&action_json(&action))?;
    } else {
        say!("case {}: {}", target.case, disposition(&action));
    }
    Ok(CommandOutcome::Clean)
}

/// Describes the result of an action.
fn disposition(action: &ActionRecord) -> String {
    let number = action.number;
    let state = action.state.map(|state| state.name()).unwrap_or_default();
    let reason = action.disposition.map(|reason| reason.name()).unwrap_or_default();
    match action.kind {
        ActionKind::Assign => {
            format!("{state}, {} has it (action {number})", action.assignee.as_deref().unwrap_or_default())
        }
        ActionKind::ProposeClose => {
            format!("{state} as {reason}; a second person closes it (action {number})")
        }
        ActionKind::ConfirmClose => format!("{state} as {reason} (action {number})"),
        _ => format!("{state} (action {number})"),
    }
}

/// Writes an action as JSON.
pub fn action_json(action: &ActionRecord) -> Value {
    let author = action.author.as_ref();
    let hash: String = action.hash.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({
        "action": action.number, "case": action.case, "ts": action.ts, "kind": action.kind.name(),
        "user": author.map(|author| &author.user), "person": author.map(|author| &author.person), "role": author.map(|author| author.role.name()),
        "state": action.state.map(|state| state.name()), "assignee": action.assignee,
        "disposition": action.disposition.map(|disposition| disposition.name()), "text": action.text, "alert": action.alert, "hash": hash,
    })
}
