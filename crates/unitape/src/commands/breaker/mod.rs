//! `unitape breaker`: limits over a tape, their trips, and the persons who trip and reset.

mod act;
mod list;
mod run;

use super::login::{LoginArgs, SecondLoginArgs};
use super::read_args::ReadArgs;
use crate::output::{self, CommandFailure};
use std::path::{Path, PathBuf};
use unitape_watch::breakers::{BreakerAction, BreakerRules, Scope};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct BreakerArgs {
    #[command(subcommand)]
    command: BreakerCommand,
}

#[derive(Debug, clap::Subcommand)]
enum BreakerCommand {
    /// Follow a tape and put a control onto the control tape when a scope passes a limit
    #[command(after_help = "Examples:
  unitape breaker run tape --rules breakers.toml --control control
  unitape breaker run tape --rules breakers.toml --control control --until-end --json

DIR is made if it does not exist. A trip is a `control` event with the action halt or kill, an id made of limit, scope and cause, and the position of its cause. A limit whose use reaches its warning share gives a `control` event with the action warn. A tripped scope does not trip again before a reset or `until`.

You can stop or kill the breaker at any time. A restart judges the tape from the oldest event again, applies trips and resets by hand at their positions, and appends only new controls. Controls in DIR stay in force under other rules, too; the new rules judge the tape from its beginning. A tape whose beginning retention has removed is refused.

--json prints each new control as one object: {\"id\", \"action\", \"scope\", \"ts\", \"cause\", \"reason\", \"detail\", \"by\", \"second_by\", \"until\", \"dry_run\"}, and at the end {\"totals\": {\"events\", \"controls\", \"appended\", \"unpriced\", \"merged\", \"forgotten\"}}: orders without a known price (unpriced), entries of a window that were merged, and orders that were forgotten because memory was full.

Exit code 3: the tape is damaged or cut, its names are lost, or DIR is the control tape of another tape.")]
    Run(run::RunArgs),
    /// List what is tripped: by whom, why, until when; with rules and tape the use of each limit
    #[command(after_help = "Examples:
  unitape breaker list --control control
  unitape breaker list --control control --rules breakers.toml --tape tape --json

The command only reads, also while a breaker runs. With --rules and --tape it judges the tape once more, and prints the use of each limit at the end in percent. --json prints {\"tripped\": …} and {\"use\": {\"limit\", \"scope\", \"percent\"}}, one object a line.")]
    List(list::ListArgs),
    /// Halt a scope by hand
    #[command(after_help = "Examples:
  unitape breaker trip --control control --tape tape --scope trader=T1 --reason 'calls unanswered' --user rita --users users.toml
  unitape breaker trip --control control --tape tape --scope firm=F01 --action kill --reason drill --dry-run --user rita --users users.toml

A trip needs an account with role risk. It takes the lock of the control tape, so end a running breaker first. The breaker applies the trip at the present end of the tape. A tripped scope is not tripped again, but a halt may become a kill.")]
    Trip {
        #[command(flatten)]
        target: ControlTarget,
        /// The effect: halt refuses new orders, kill cancels what rests as well
        #[arg(long, default_value = "halt", value_parser = parse_action)]
        action: BreakerAction,
        /// Only a rehearsal: nothing is halted
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        login: LoginArgs,
    },
    /// End the trips of a scope, by two persons
    #[command(after_help = "Example:
  unitape breaker reset --control control --tape tape --scope trader=T1 --reason 'algorithm stopped' --user rita --second-user rolf \\
    --password-file rita.pw --second-password-file rolf.pw --users users.toml

A reset needs two accounts with role risk, of two persons: two accounts of one person count once. The limits of the scope start at zero. The reset takes the lock of the control tape, so end a running breaker first.")]
    Reset {
        #[command(flatten)]
        target: ControlTarget,
        #[command(flatten)]
        login: LoginArgs,
        #[command(flatten)]
        second: SecondLoginArgs,
    },
}

/// The scope of an act, and its tapes.
#[derive(Debug, clap::Args)]
struct ControlTarget {
    /// Directory of the control tape
    #[arg(long, value_name = "DIR")]
    control: PathBuf,
    /// Directory of the tape that is watched
    #[arg(long)]
    tape: PathBuf,
    /// The scope: firm, desk, trader, algo, owner, acct, venue or instr, `=`, and its name
    #[arg(long, value_name = "KIND=NAME", value_parser = Scope::parse)]
    scope: Scope,
    /// Why, in 1 to 1000 bytes
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

/// Runs the command.
pub fn run(args: BreakerArgs) -> output::Result {
    match args.command {
        BreakerCommand::Run(args) => run::run(&args),
        BreakerCommand::List(args) => list::run(&args),
        BreakerCommand::Trip { target, action, dry_run, login } => {
            act::trip(&target, action, dry_run, &login)
        }
        BreakerCommand::Reset { target, login, second } => act::reset(&target, &login, &second),
    }
}

fn read_rules(path: &Path) -> Result<BreakerRules, CommandFailure> {
    Ok(BreakerRules::parse(&output::read_text(path)?, &path.display().to_string())?)
}

fn parse_action(text: &str) -> Result<BreakerAction, String> {
    match text {
        "halt" => Ok(BreakerAction::Halt),
        "kill" => Ok(BreakerAction::Kill),
        _ => Err("there are halt and kill".to_owned()),
    }
}
