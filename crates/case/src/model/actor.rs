//! Who acts, and what an account may do.

use super::ActionKind;
use unitape_run::users::{Account, Role};

/// Who acts on a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The account.
    pub user: String,
    /// The human behind it.
    pub person: String,
    /// The duty of the account.
    pub role: Role,
    /// The names under which the person appears on tapes.
    pub parties: Vec<String>,
}

impl From<Account> for Actor {
    fn from(account: Account) -> Self {
        let Account { name, person, role, parties, .. } = account;
        Self { user: name, person, role, parties }
    }
}

impl Actor {
    /// Returns whether the duty of the account includes the action.
    ///
    /// | role | can |
    /// |---|---|
    /// | analyst, supervisor | all |
    /// | risk | note, escalate |
    /// | admin | assign, note, escalate, reopen; never close |
    /// | auditor | nothing: reads |
    pub fn may(&self, action: ActionKind) -> bool {
        match self.role {
            Role::Analyst | Role::Supervisor => action.is_of_users(),
            Role::Risk => matches!(action, ActionKind::Note | ActionKind::Escalate),
            Role::Admin => matches!(
                action,
                ActionKind::Assign | ActionKind::Note | ActionKind::Escalate | ActionKind::Reopen
            ),
            Role::Auditor => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_auditor_reads_and_an_admin_closes_nothing() {
        let may = |role, action| {
            let (user, person) = ("u".to_owned(), "p".to_owned());
            Actor { user, person, role, parties: Vec::new() }.may(action)
        };
        for action in ActionKind::ALL {
            assert!(!may(Role::Auditor, action));
            assert!(action.is_of_users() || Role::ALL.iter().all(|role| !may(*role, action)));
        }
        for action in [ActionKind::ProposeClose, ActionKind::ConfirmClose] {
            assert!(may(Role::Analyst, action) && may(Role::Supervisor, action));
            assert!(!may(Role::Admin, action) && !may(Role::Risk, action));
        }
    }
}
