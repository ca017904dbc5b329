//! `unitape case`: alerts as cases, from ingest to the second person who closes them.

mod act;
mod export;
mod ingest;
mod list;
mod show;
mod verify;

use super::login::LoginArgs;
use crate::output;
use std::path::PathBuf;
use unitape_case::{CaseState, Disposition};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct CaseArgs {
    #[command(subcommand)]
    command: CaseCliCommand,
}

#[derive(Debug, clap::Subcommand)]
enum CaseCliCommand {
    /// Make cases of the alerts on an alert tape
    #[command(after_help = "Examples:
  unitape case ingest alerts --tape tape --cases cases
  unitape case ingest alerts --tape tape --cases cases --follow --json

ALERTS is what `unitape watch run TAPE --alerts ALERTS` writes; --tape names the watched tape, whose id must be that in the alerts. DIR is made, for its owner alone, if it does not exist. Alerts of one scenario, key and session date join one open case. An alert that was ingested before (a replay, other parameters) is counted as seen again. Controls `blind` are kept; other events are counted.

You can stop or kill the command at any time. The next call continues at the position that the database has stored with the alerts. The cursor `case-…` of the alert tape shows the lag and holds retention. A different alert tape with the same id is refused, and so is one that was cut back before that position.

--json prints for each alert {\"alert\", \"case\", \"effect\"} (opened, joined or seen_again) with the fields of the alert, and at the end {\"totals\": {\"alerts\", \"cases\", \"seen_again\", \"blind\", \"passed_over\"}}.")]
    Ingest(ingest::IngestArgs),
    /// Print cases, page by page
    #[command(after_help = "Examples:
  unitape case list --cases cases
  unitape case list --cases cases --state new --scenario spoofing --json
  unitape case list --cases cases --party ACME --limit 20 --after 120
  unitape case list --cases cases --blind

Cases are printed by their number, at most --limit of them. If more follow, --json ends with {\"next\": CURSOR}; give it to --after. --blind prints the times at which a scenario was blind instead.")]
    List(list::ListArgs),
    /// Print a case: its alerts, their evidence, the book before and after, earlier cases, its history
    #[command(after_help = "Examples:
  unitape case show 1 --cases cases --tape tape
  unitape case show 1 --cases cases --tape tape --json --depth 10

--tape resolves the evidence on the watched tape; without it, the command prints positions alone. Exit code 3 when evidence is not on the tape any more, when the tape is damaged, or when it is not the tape of the alerts.")]
    Show(show::ShowArgs),
    /// Write a case into a file: alerts, picture of the book, evidence, history
    #[command(after_help = "Example:\n  unitape case export 1 --cases cases --tape tape --html case-1.html")]
    Export(export::ExportArgs),
    /// Give a case to a user
    #[command(after_help = "Example:\n  unitape case assign 1 anna --cases cases --user anna")]
    Assign {
        #[command(flatten)]
        target: CaseTarget,
        /// The user who gets it
        to: String,
        #[command(flatten)]
        login: LoginArgs,
    },
    /// Write a note
    #[command(
        after_help = "Example:\n  unitape case note 1 'asked the desk for the client order' --cases cases --user anna"
    )]
    Note {
        #[command(flatten)]
        target: CaseTarget,
        /// The note, 64 KiB at most
        text: String,
        #[command(flatten)]
        login: LoginArgs,
    },
    /// Hand a case to a supervisor
    #[command(
        after_help = "Example:\n  unitape case escalate 1 --text 'third time this month' --cases cases --user anna"
    )]
    Escalate {
        #[command(flatten)]
        target: CaseTarget,
        /// Why
        #[arg(long)]
        text: Option<String>,
        #[command(flatten)]
        login: LoginArgs,
    },
    /// Propose to close a case; as the second person, close it
    #[command(after_help = "Examples:
  unitape case close 1 --reason explained --text 'market maker, both sides quoted' --cases cases --user anna
  unitape case close 1 --cases cases --user bo

The first call proposes, with a reason: false_positive, explained, breach or reported. The call of a second person closes. Two accounts of one person are one person. An alert that joins the case in between withdraws the proposal. `reopen` refuses it.")]
    Close {
        #[command(flatten)]
        target: CaseTarget,
        /// The reason: false_positive, explained, breach, reported
        #[arg(long, value_parser = parse_disposition)]
        reason: Option<Disposition>,
        /// An explanation
        #[arg(long)]
        text: Option<String>,
        #[command(flatten)]
        login: LoginArgs,
    },
    /// Open a closed case again, or refuse the proposal to close it
    #[command(after_help = "Example:\n  unitape case reopen 1 --text 'new evidence' --cases cases --user bo")]
    Reopen {
        #[command(flatten)]
        target: CaseTarget,
        /// Why
        #[arg(long)]
        text: String,
        #[command(flatten)]
        login: LoginArgs,
    },
    /// Check what was done: the chain of actions, and the cases against it
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },
}

#[derive(Debug, clap::Subcommand)]
enum AuditCommand {
    /// Verify the history: name each row that was changed, removed, inserted or moved
    #[command(after_help = "Examples:
  unitape case audit verify --cases cases
  unitape case audit verify --cases cases --json

Each action has the hash of the action before it. Alerts, cases and states must agree with the actions. Each transition and its second person are checked again. The last line has the hash of the last action: keep it elsewhere to detect that the whole database was replaced. Exit code 3 when a check fails.")]
    Verify {
        /// Directory of the cases
        #[arg(long, value_name = "DIR")]
        cases: PathBuf,
        /// Print as JSON, one object a line
        #[arg(long)]
        json: bool,
    },
}

/// The case of an action.
#[derive(Debug, clap::Args)]
struct CaseTarget {
    /// The number of the case
    case: u64,
    /// Directory of the cases
    #[arg(long, value_name = "DIR")]
    cases: PathBuf,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: CaseArgs) -> output::Result {
    use act::Request;
    match args.command {
        CaseCliCommand::Ingest(args) => ingest::run(&args),
        CaseCliCommand::List(args) => list::run(&args),
        CaseCliCommand::Show(args) => show::run(&args),
        CaseCliCommand::Export(args) => export::run(&args),
        CaseCliCommand::Assign { target, to, login } => act::run(&target, &login, Request::Assign { to }),
        CaseCliCommand::Note { target, text, login } => act::run(&target, &login, Request::Note { text }),
        CaseCliCommand::Escalate { target, text, login } => {
            act::run(&target, &login, Request::Escalate { text })
        }
        CaseCliCommand::Close { target, reason, text, login } => {
            act::run(&target, &login, Request::Close { reason, text })
        }
        CaseCliCommand::Reopen { target, text, login } => act::run(&target, &login, Request::Reopen { text }),
        CaseCliCommand::Audit { command: AuditCommand::Verify { cases, json } } => verify::run(&cases, json),
    }
}

fn parse_disposition(text: &str) -> Result<Disposition, String> {
    let list_names = || format!("there are: {}", Disposition::ALL.map(Disposition::name).join(", "));
    Disposition::from_name(text).ok_or_else(list_names)
}

fn parse_state(text: &str) -> Result<CaseState, String> {
    let list_names = || format!("there are: {}", CaseState::ALL.map(CaseState::name).join(", "));
    CaseState::from_name(text).ok_or_else(list_names)
}
