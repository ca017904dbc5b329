//! Actions: a case was once closed by one person with two accounts.

use crate::sample::{NOON, NOW, Sample, actor, alert, anna, bo};
use proptest::prelude::*;
use std::collections::BTreeMap;
use unitape_case::action::{CaseCommand, TEXT_BYTES_MAX, act};
use unitape_case::{Actor, CaseState, Disposition, Error, audit};
use unitape_run::users::Role;

fn sample() -> Sample {
    let sample = Sample::new(&[alert("ACME", 1, NOON), alert("BETA", 2, NOON)]);
    sample.ingest().unwrap();
    sample
}

fn note(text: &str) -> CaseCommand {
    CaseCommand::Note { text: text.to_owned() }
}

fn close(disposition: Option<Disposition>) -> CaseCommand {
    CaseCommand::Close { disposition, text: None }
}

#[test]
fn two_persons_close_a_case() {
    let sample = sample();
    let state = |case| sample.store().case(case).unwrap().state;
    sample.act(1, &anna(), CaseCommand::Assign { to: anna() }).unwrap();
    sample.act(1, &anna(), note("asked the desk")).unwrap();
    assert_eq!(state(1), CaseState::Investigating);
    let refused = sample.act(1, &anna(), close(None)).unwrap_err().to_string();
    assert!(refused.contains("closing needs a reason: false_positive, explained"), "{refused}");
    sample.act(1, &anna(), close(Some(Disposition::Explained))).unwrap();
    assert_eq!(state(1), CaseState::PendingClose);

    // The first person, also by another account, is no second person.
    let second_accounts = ["Anna Berg", "anna  berg", "Anna Berg ", "Anna Berg\u{200b}"]
        .map(|person| actor("anna2", person, Role::Supervisor));
    for one in [anna()].into_iter().chain(second_accounts) {
        let refused = sample.act(1, &one, close(None)).unwrap_err();
        assert!(matches!(refused, Error::Forbidden { .. }), "{refused}");
        assert!(
            refused.to_string().to_lowercase().contains("proposed to close it; a second person"),
            "{refused}"
        );
    }
    let refused = sample.act(1, &bo(), close(Some(Disposition::Breach))).unwrap_err().to_string();
    assert!(refused.contains("proposed to close it as explained, not as breach"), "{refused}");
    let action = sample.act(1, &bo(), close(None)).unwrap();
    assert_eq!((action.state, action.disposition), (Some(CaseState::Closed), Some(Disposition::Explained)));

    let late = sample.act(1, &anna(), close(None)).unwrap_err().to_string();
    assert_eq!(late, "case 1 is closed: `close` is not possible; possible: note, reopen");
    sample.act(1, &anna(), CaseCommand::Reopen { text: "new evidence".to_owned() }).unwrap();
    let case = sample.store().case(1).unwrap();
    assert_eq!(
        (case.state, case.disposition, case.assignee.as_deref()),
        (CaseState::Reopened, None, Some("anna"))
    );
    assert!(audit::verify(&sample.store()).unwrap().is_intact());
}

#[test]
fn duties_and_parties_decide_who_acts() {
    let sample = sample();
    let refused = |case, actor: &Actor, command| {
        let refused = sample.act(case, actor, command).unwrap_err();
        assert!(matches!(refused, Error::Forbidden { .. }), "{refused}");
        refused.to_string()
    };
    let (admin, auditor) = (actor("root", "Ro", Role::Admin), actor("audit", "Au", Role::Auditor));
    assert!(refused(1, &auditor, note("x")).contains("has the role auditor, which may not note"));
    assert!(
        refused(1, &anna(), CaseCommand::Assign { to: admin.clone() }).contains("does not work on cases")
    );
    sample.act(1, &admin, CaseCommand::Assign { to: anna() }).unwrap();
    let disposition = Some(Disposition::Breach);
    assert!(refused(1, &admin, close(disposition)).contains("which may not close"));
    // Nobody acts on a case about himself, and nobody gets it.
    let suspect = Actor { parties: vec!["BETA".to_owned()], ..bo() };
    assert!(refused(2, &suspect, note("it was not me")).contains("`bo` is `BETA`, a party of this case"));
    assert!(refused(2, &anna(), CaseCommand::Assign { to: suspect.clone() }).contains("`BETA`"));
    sample.act(1, &suspect, note("of another case")).unwrap();
    assert!(matches!(sample.act(9, &anna(), note("x")), Err(Error::UnknownCase(9))));
    assert!(audit::verify(&sample.store()).unwrap().is_intact());
}

#[test]
fn texts_are_kept_exactly_and_bounded() {
    let sample = sample();
    let hostile = "<script>alert(1)</script>\r\n=cmd|'/C calc'!A0\0\u{202e}evil\u{1b}[2J\"";
    let longest = "é".repeat(TEXT_BYTES_MAX / 2);
    for text in [hostile, &longest] {
        sample.act(1, &anna(), note(text)).unwrap();
    }
    let texts: Vec<Option<String>> =
        sample.store().actions(1).unwrap().into_iter().skip(1).map(|action| action.text).collect();
    assert_eq!(texts, [Some(hostile.to_owned()), Some(longest.clone())]);
    for wrong in [format!("{longest}x"), "  \n".to_owned(), String::new()] {
        assert!(matches!(sample.act(1, &anna(), note(&wrong)), Err(Error::Value(_))));
    }
    assert!(audit::verify(&sample.store()).unwrap().is_intact());
}

/// An action on a database that another process holds must wait, and not see what the other one is about to change.
#[test]
fn of_two_who_close_one_case_one_wins() {
    let sample = sample();
    sample.act(1, &anna(), CaseCommand::Assign { to: anna() }).unwrap();
    sample.act(1, &anna(), close(Some(Disposition::FalsePositive))).unwrap();
    let sample = &sample;
    let closers = [bo(), actor("cy", "Cy Dahl", Role::Analyst)];
    let results: Vec<Result<_, Error>> = std::thread::scope(|scope| {
        let threads = closers.map(|closer| scope.spawn(move || sample_act(sample, &closer)));
        threads.map(|thread| thread.join().unwrap()).into()
    });
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    let lost = results.into_iter().find_map(Result::err).unwrap().to_string();
    assert_eq!(lost, "case 1 is closed: `close` is not possible; possible: note, reopen");
    assert!(audit::verify(&sample.store()).unwrap().is_intact());
}

/// An action as a user's process would do it, with a connection of its own.
fn sample_act(sample: &Sample, closer: &Actor) -> Result<unitape_case::ActionRecord, Error> {
    sample.act(1, closer, close(None))
}

/// The slow twin: what a reader of the guide would say the rules are.
#[derive(Clone, Debug, Default)]
struct TwinCase {
    state: &'static str,
    disposition: Option<Disposition>,
    assignee: Option<String>,
    proposer: Option<String>,
}

impl TwinCase {
    /// Does it and returns whether it was allowed.
    fn act(&mut self, actor: &Actor, command: &CaseCommand) -> bool {
        let works = matches!(actor.role, Role::Analyst | Role::Supervisor);
        let is_open = !matches!(self.state, "pending_close" | "closed");
        match command {
            CaseCommand::Assign { to } => {
                let receiver_works = matches!(to.role, Role::Analyst | Role::Supervisor);
                if !(works || actor.role == Role::Admin) || !is_open || !receiver_works {
                    return false;
                }
                self.assignee = Some(to.user.clone());
                if matches!(self.state, "new" | "reopened") {
                    self.state = "assigned";
                }
            }
            CaseCommand::Note { .. } => {
                if actor.role == Role::Auditor {
                    return false;
                }
                if matches!(self.state, "assigned" | "reopened") {
                    self.state = "investigating";
                }
            }
            CaseCommand::Escalate { .. } => {
                if actor.role == Role::Auditor || !is_open || self.state == "escalated" {
                    return false;
                }
                self.state = "escalated";
            }
            CaseCommand::Close { disposition, .. } => {
                if !works || matches!(self.state, "new" | "closed") {
                    return false;
                }
                if self.state == "pending_close" {
                    if self.proposer.as_ref() == Some(&actor.person)
                        || disposition.is_some_and(|o| Some(o) != self.disposition)
                    {
                        return false;
                    }
                    self.state = "closed";
                } else {
                    let Some(disposition) = disposition else { return false };
                    (self.disposition, self.proposer) = (Some(*disposition), Some(actor.person.clone()));
                    self.state = "pending_close";
                }
            }
            CaseCommand::Reopen { .. } => {
                if !(works || actor.role == Role::Admin) || is_open {
                    return false;
                }
                (self.state, self.disposition) = ("reopened", None);
            }
        }
        true
    }
}

fn actors() -> [Actor; 6] {
    [
        anna(),
        actor("anna2", "Anna Berg", Role::Supervisor),
        bo(),
        actor("root", "Ro", Role::Admin),
        actor("risk", "Ri", Role::Risk),
        actor("audit", "Au", Role::Auditor),
    ]
}

fn command(kind: u8, other: usize) -> CaseCommand {
    let text = "t".to_owned();
    match kind {
        0 | 1 => CaseCommand::Assign { to: actors()[other].clone() },
        2 => CaseCommand::Note { text },
        3 => CaseCommand::Escalate { text: None },
        4 => CaseCommand::Reopen { text },
        5 | 6 => close(Some(Disposition::ALL[other % 2])),
        _ => close(None),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]

    /// The table of transitions, the duties and the rule of two persons against the twin.
    #[test]
    fn random_actions_end_as_the_twin_says(
        steps in prop::collection::vec((1u64..3, 0usize..6, 0u8..9, 0usize..6), 60)
    ) {
        let sample = sample();
        let mut store = sample.store();
        let new = TwinCase { state: "new", ..TwinCase::default() };
        let mut twins: BTreeMap<u64, TwinCase> = BTreeMap::from([(1, new.clone()), (2, new)]);
        for (case, who, kind, other) in steps {
            let (actor, command) = (&actors()[who], command(kind, other));
            let twin = twins.get_mut(&case).unwrap();
            let is_allowed = twin.clone().act(actor, &command);
            let done = act(&mut store, case, actor, &command, NOW);
            prop_assert_eq!(done.is_ok(), is_allowed, "{:?} {:?}: {:?}", actor, command, done);
            if is_allowed {
                twin.act(actor, &command);
            }
            let stored = store.case(case).unwrap();
            prop_assert_eq!(stored.state.name(), twin.state);
            prop_assert_eq!(stored.disposition, twin.disposition);
            prop_assert_eq!(&stored.assignee, &twin.assignee);
        }
        let report = audit::verify(&store).unwrap();
        prop_assert!(report.is_intact(), "{:?}", report.findings);
    }
}
