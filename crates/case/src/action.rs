//! What users do to a case: checked against its state, the duties of accounts and the rule of two persons, then stored.
//!
//! The check and the change are one transaction under the lock of the database. Of two processes that close one case, the second
//! one sees the case as the first has left it.

use crate::model::{ActionAuthor, ActionKind, Case, CaseState, Disposition, next_state};
use crate::store::{CaseStore, CaseWriter, NewAction};
use crate::{ActionRecord, Actor, Error};
use unitape_run::users::is_same_person;

/// What a user wants to do.
#[derive(Clone, Debug)]
pub enum CaseCommand {
    /// Give the case to this user.
    Assign {
        /// Who gets it.
        to: Actor,
    },
    /// Write a note.
    Note {
        /// The note.
        text: String,
    },
    /// Hand the case to a supervisor.
    Escalate {
        /// Why.
        text: Option<String>,
    },
    /// Propose to close the case, or, as the second person, close it.
    Close {
        /// The reason. The first person must give it; if the second one does, it must be the same.
        disposition: Option<Disposition>,
        /// An explanation.
        text: Option<String>,
    },
    /// Open the case again, or refuse the proposal to close it.
    Reopen {
        /// Why.
        text: String,
    },
}

/// Does it. `now` is the time of our clock, nanoseconds since 1970.
///
/// # Errors
/// Fails, and changes nothing, if there is no such case; if its state or the duty of the account does not allow the action; if the
/// person is a party of the case; if the second person is the first one; or if the database cannot be written.
pub fn act(
    store: &mut CaseStore,
    case: u64,
    actor: &Actor,
    command: &CaseCommand,
    now: i64,
) -> Result<ActionRecord, Error> {
    check_texts(command)?;
    let mut writer = store.begin_write()?;
    let mut case = writer.case(case)?;
    let kind = kind_of(command, case.state);
    check_actor(&writer, &case, actor, kind)?;
    let not_allowed = Error::NotAllowed { case: case.id, state: case.state, action: kind };
    let state = next_state(case.state, kind).ok_or(not_allowed)?;
    check_command(&writer, &case, actor, command, kind)?;
    let mut action = NewAction { case: Some(case.id), actor: Some(actor), ..NewAction::new(kind, now) };
    match command {
        CaseCommand::Assign { to } => {
            action.assignee = Some(&to.user);
            case.assignee = Some(to.user.clone());
        }
        CaseCommand::Note { text } => action.text = Some(text),
        CaseCommand::Escalate { text } => action.text = text.as_deref(),
        CaseCommand::Close { disposition, text } => {
            case.disposition = disposition.or(case.disposition);
            (action.disposition, action.text) = (case.disposition, text.as_deref());
        }
        CaseCommand::Reopen { text } => {
            action.text = Some(text);
            case.disposition = None;
        }
    }
    action.state = Some(state);
    (case.state, case.changed) = (state, now);
    let (number, hash) = writer.append_action(&action)?;
    writer.update_case(&case)?;
    writer.commit()?;
    let author = ActionAuthor { user: actor.user.clone(), person: actor.person.clone(), role: actor.role };
    Ok(ActionRecord {
        number,
        case: Some(case.id),
        ts: now,
        author: Some(author),
        kind,
        state: Some(state),
        assignee: action.assignee.map(str::to_owned),
        disposition: action.disposition,
        text: action.text.map(str::to_owned),
        alert: None,
        hash,
    })
}

/// Returns the kind of the action, which for `close` depends on whether somebody has proposed it.
fn kind_of(command: &CaseCommand, state: CaseState) -> ActionKind {
    match command {
        CaseCommand::Assign { .. } => ActionKind::Assign,
        CaseCommand::Note { .. } => ActionKind::Note,
        CaseCommand::Escalate { .. } => ActionKind::Escalate,
        CaseCommand::Close { .. } if state == CaseState::PendingClose => ActionKind::ConfirmClose,
        CaseCommand::Close { .. } => ActionKind::ProposeClose,
        CaseCommand::Reopen { .. } => ActionKind::Reopen,
    }
}

/// Fails if the account may not do this, or the person is a party of the case.
fn check_actor(writer: &CaseWriter<'_>, case: &Case, actor: &Actor, kind: ActionKind) -> Result<(), Error> {
    let forbidden = |reason: String| Error::Forbidden { case: case.id, reason };
    if !actor.may(kind) {
        let (user, role) = (&actor.user, actor.role);
        return Err(forbidden(format!("`{user}` has the role {role}, which may not {}", kind.command())));
    }
    match own_party(writer, case, actor)? {
        Some(party) => Err(forbidden(format!(
            "`{}` is `{party}`, a party of this case, and may not act on it",
            actor.user
        ))),
        None => Ok(()),
    }
}

/// Returns the party of the case that the actor is.
fn own_party(writer: &CaseWriter<'_>, case: &Case, actor: &Actor) -> Result<Option<String>, Error> {
    Ok(writer.parties(case.id)?.into_iter().find(|party| actor.parties.contains(party)))
}

/// Fails if the action itself cannot be.
fn check_command(
    writer: &CaseWriter<'_>,
    case: &Case,
    actor: &Actor,
    command: &CaseCommand,
    kind: ActionKind,
) -> Result<(), Error> {
    let id = case.id;
    let forbidden = |reason: String| Err(Error::Forbidden { case: id, reason });
    match (command, kind) {
        (CaseCommand::Assign { to }, _) => {
            if !to.may(ActionKind::ProposeClose) {
                let (user, role) = (&to.user, to.role);
                return forbidden(format!("`{user}` has the role {role}, which does not work on cases"));
            }
            match own_party(writer, case, to)? {
                Some(party) => forbidden(format!("`{}` is `{party}`, a party of this case", to.user)),
                None => Ok(()),
            }
        }
        (CaseCommand::Close { disposition: None, .. }, ActionKind::ProposeClose) => {
            let disposition_names = Disposition::ALL.map(Disposition::name).join(", ");
            Err(Error::Value(format!("case {id}: closing needs a reason: {disposition_names}")))
        }
        (CaseCommand::Close { disposition, .. }, ActionKind::ConfirmClose) => {
            let proposer = writer.proposer(id)?;
            let is_same = proposer
                .is_none_or(|(user, person)| user == actor.user || is_same_person(&person, &actor.person));
            if is_same {
                let person = &actor.person;
                return forbidden(format!(
                    "{person} proposed to close it; a second person must do so, and another account is no other person"
                ));
            }
            match (disposition, case.disposition) {
                (Some(requested), Some(proposed)) if *requested != proposed => Err(Error::Value(format!(
                    "case {id}: it is proposed to close it as {proposed}, not as {requested}; `reopen` refuses the proposal"
                ))),
                _ => Ok(()),
            }
        }
        (CaseCommand::Reopen { .. }, _) if case.state == CaseState::Closed => {
            match writer.open_case(&writer.group(id)?)? {
                Some((open_case, _)) => Err(Error::Value(format!(
                    "case {id}: later alerts of its scenario, key and session date are in case {open_case}, which is open; work on that one"
                ))),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn check_texts(command: &CaseCommand) -> Result<(), Error> {
    let (text, is_needed) = match command {
        CaseCommand::Assign { .. } => (None, false),
        CaseCommand::Note { text } | CaseCommand::Reopen { text } => (Some(text), true),
        CaseCommand::Escalate { text } | CaseCommand::Close { text, .. } => (text.as_ref(), false),
    };
    if is_needed && text.is_none_or(|text| text.trim().is_empty()) {
        return Err(Error::Value("a text is needed, and this one is empty".to_owned()));
    }
    match text {
        Some(text) if text.len() > TEXT_BYTES_MAX => {
            Err(Error::Value(format!("a text has at most {TEXT_BYTES_MAX} bytes, this one {}", text.len())))
        }
        _ => Ok(()),
    }
}

/// The longest note.
pub const TEXT_BYTES_MAX: usize = 64 << 10;
