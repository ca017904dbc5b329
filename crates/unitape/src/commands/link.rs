//! `unitape link`: a tape on another host.

#[cfg(feature = "link")]
mod carry;

use crate::output::{self, CommandFailure};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct LinkArgs {
    #[command(subcommand)]
    command: LinkCommand,
}

#[derive(Debug, clap::Subcommand)]
enum LinkCommand {
    /// Serve a tape to receivers
    #[command(after_help = "Examples:
  unitape link send tape --listen 127.0.0.1:7400
  unitape link send tape --listen 127.0.0.1:7400 --once --json

Each receiver gets the whole tape, and later events as they are appended. A receiver that holds another tape is refused. A slow or dead receiver holds up neither the tape nor other receivers.

Only addresses of this machine are possible, because there are no keys yet. Exit code 3 when the tape is damaged: damage is never sent.")]
    Send(SendArgs),
    /// Write the tape of a sender into a directory
    #[command(after_help = "Examples:
  unitape link receive copy --from 127.0.0.1:7400
  unitape link receive copy --from 127.0.0.1:7400 --once --json

DIR becomes the same tape as the sender's: each unit once, in order, at the same position. All commands can read it while it grows. Start the command again to continue. The sender refuses a DIR that holds another tape, or other bytes before its end; then nothing in DIR is changed, and the exit code is 1.

Only addresses of this machine are possible, because there are no keys yet. Exit code 3 when the sender's tape is damaged, or when retention there has removed the next events. The tape in DIR stays usable.")]
    Receive(ReceiveArgs),
}

#[derive(Debug, clap::Args)]
struct SendArgs {
    /// Directory of the tape
    tape: PathBuf,
    /// Listen on this address of this machine; port 0 takes a free port
    #[arg(long, value_name = "ADDR")]
    listen: SocketAddr,
    /// End when the tape has no writer and all of it is durable at the receiver
    #[arg(long)]
    once: bool,
    /// Print the counts at the end as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ReceiveArgs {
    /// Directory of the copy; made if it does not exist
    dir: PathBuf,
    /// Address of the sender
    #[arg(long, value_name = "ADDR")]
    from: SocketAddr,
    /// Receive at this address of this machine [default: a free port of 127.0.0.1, or of ::1]
    #[arg(long, value_name = "ADDR")]
    bind: Option<SocketAddr>,
    /// End when the sender's tape has no writer and all of it is durable here
    #[arg(long)]
    once: bool,
    /// Print the counts at the end as JSON
    #[arg(long)]
    json: bool,
}

impl ReceiveArgs {
    /// Returns the address at which to receive.
    fn bind_address(&self) -> SocketAddr {
        let loopback = match self.from {
            SocketAddr::V4(_) => SocketAddr::from(([127, 0, 0, 1], 0)),
            SocketAddr::V6(_) => SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], 0)),
        };
        self.bind.unwrap_or(loopback)
    }
}

/// Runs the command.
pub fn run(args: LinkArgs) -> output::Result {
    match &args.command {
        LinkCommand::Send(args) => check_loopback("--listen", args.listen)?,
        LinkCommand::Receive(args) => {
            check_loopback("--from", args.from)?;
            check_loopback("--bind", args.bind_address())?;
            if args.from.port() == 0 {
                return Err(CommandFailure::Usage("--from: a sender has no port 0".to_owned()));
            }
        }
    }
    carry(args.command)
}

/// Fails if an address is not one of this machine alone: without keys everybody on a network could read and write the tape.
fn check_loopback(option: &str, address: SocketAddr) -> Result<(), CommandFailure> {
    match address.ip().is_loopback() {
        true => Ok(()),
        false => Err(CommandFailure::Usage(format!(
            "{option} {address}: a link has no keys yet, so it works between processes of one machine only; use an address like \
             127.0.0.1:7400"
        ))),
    }
}

#[cfg(feature = "link")]
fn carry(command: LinkCommand) -> output::Result {
    match command {
        LinkCommand::Send(args) => carry::send(&args),
        LinkCommand::Receive(args) => carry::receive(&args),
    }
}

#[cfg(not(feature = "link"))]
fn carry(_: LinkCommand) -> output::Result {
    Err(CommandFailure::Usage(
        "this build has no link. Build one with `cargo build --release --package unitape --features link`; docs/link.md says what \
         that needs"
            .to_owned(),
    ))
}
