//! `unitape breaker trip` and `reset`: what persons do.

use super::ControlTarget;
use super::list::{control_json, control_line};
use crate::commands::login::{LoginArgs, SecondLoginArgs};
use crate::output::{self, CommandFailure, CommandOutcome, say};
use unitape_model::TapePosition;
use unitape_run::breaker::{ControlTape, controls_in_force};
use unitape_run::users::{Account, Role, is_same_person};
use unitape_tape::{Reader, StartPosition};
use unitape_watch::breakers::{BreakerAction, ControlVerb, RecordedControl};

/// Trips a scope.
pub fn trip(
    target: &ControlTarget,
    action: BreakerAction,
    dry_run: bool,
    login: &LoginArgs,
) -> output::Result {
    check_reason(&target.reason)?;
    let (_, account) = login.log_in(None)?;
    require_risk(&account)?;
    append_control(target, (&account, None), |active| {
        let mut scope_records =
            active.iter().filter(|record| record.scope == target.scope && record.dry_run == dry_run);
        // One that ends by itself may be over, or end too soon.
        let is_enough = |record: &&RecordedControl| match record.verb {
            ControlVerb::Trip(tripped_action) => {
                tripped_action > action || tripped_action == action && record.until.is_none()
            }
            _ => false,
        };
        match scope_records.find(is_enough) {
            Some(record) => {
                let (verb, id) = (record.verb.name(), &record.id);
                let mut message =
                    format!("{} is tripped already: {verb}, by the control `{id}`", target.scope);
                if record.until.is_some() {
                    message += "; it ends by itself, so give --action kill for one that does not";
                }
                Err(CommandFailure::Usage(message))
            }
            None => Ok((ControlVerb::Trip(action), dry_run)),
        }
    })
}

/// Resets a scope, by two persons.
pub fn reset(target: &ControlTarget, login: &LoginArgs, second: &SecondLoginArgs) -> output::Result {
    check_reason(&target.reason)?;
    let (users, account) = login.log_in(None)?;
    let second_account = second.log_in(&users)?;
    require_risk(&account)?;
    require_risk(&second_account)?;
    if is_same_person(&account.person, &second_account.person) {
        let message = format!(
            "a reset needs two persons; `{}` and `{}` are accounts of `{}`",
            account.name, second_account.name, account.person
        );
        return Err(CommandFailure::Error(message));
    }
    append_control(target, (&account, Some(&second_account)), |active| {
        if active.iter().any(|record| record.scope == target.scope) {
            Ok((ControlVerb::Resume, false))
        } else {
            let message = format!("nothing of {} is tripped; see: unitape breaker list", target.scope);
            Err(CommandFailure::Usage(message))
        }
    })
}

/// Appends the act that `decide` makes of what is in force.
fn append_control(
    target: &ControlTarget,
    (account, second_account): (&Account, Option<&Account>),
    decide: impl FnOnce(&[RecordedControl]) -> Result<(ControlVerb, bool), CommandFailure>,
) -> output::Result {
    output::print_hot_notice(&target.tape);
    let tape_end = Reader::open_with(&target.tape, StartPosition::End, target.read.options())?;
    let mut tape = ControlTape::open(&target.control, tape_end.id(), target.read.options())?;
    let (verb, dry_run) = decide(&controls_in_force(tape.records(), None))?;
    let record = RecordedControl {
        // One writer at a time numbers them.
        id: format!("{}#{}", account.name, tape.records().len() + 1),
        verb,
        scope: target.scope.clone(),
        ts: crate::commands::clock_time(),
        cause: TapePosition { tape: tape_end.id().0, position: tape_end.position() },
        reason: Some(target.reason.clone()),
        detail: None,
        user: Some(account.name.clone()),
        second_user: second_account.map(|account| account.name.clone()),
        until: None,
        dry_run,
    };
    tape.append_controls(std::slice::from_ref(&record))?;
    tape.close()?;
    if target.json {
        output::print_json(&control_json(&record))?;
    } else {
        say!("{}", control_line(&record));
    }
    Ok(CommandOutcome::Clean)
}

fn require_risk(account: &Account) -> Result<(), CommandFailure> {
    if account.role == Role::Risk {
        return Ok(());
    }
    let (name, role) = (&account.name, account.role.name());
    Err(CommandFailure::Error(format!("`{name}` has the role {role}; this needs the role risk")))
}

fn check_reason(reason: &str) -> Result<(), CommandFailure> {
    if (1..=REASON_BYTES_MAX).contains(&reason.len()) {
        return Ok(());
    }
    Err(CommandFailure::Usage(format!("--reason has 1 to {REASON_BYTES_MAX} bytes")))
}

const REASON_BYTES_MAX: usize = 1000;
