//! `unitape serve`: the desk, in a browser.

use super::login::UserFileArgs;
use crate::output::{self, CommandFailure, CommandOutcome, note, say};
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use unitape_server::{DeskEvent, DeskOptions};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape serve --desk --tape tape --alerts alerts --cases cases
  unitape serve --desk --tape tape --alerts alerts --cases cases --listen 127.0.0.1:8080 --json

The desk is a page for analysts: the queue of cases, the words and the evidence behind each alert, the book around it, and the \\
actions on a case. The same users, roles and rules apply as with `unitape case`. Alerts that are put onto the alert tape meanwhile \\
become cases.

Only addresses of this machine are possible, because there is no TLS yet. A session ends after 30 minutes without a request, after \\
12 hours, and when the desk stops.")]
pub struct ServeArgs {
    /// Serve the desk
    #[arg(long, required = true)]
    desk: bool,
    /// Directory of the watched tape
    #[arg(long, value_name = "DIR")]
    tape: PathBuf,
    /// Directory of its alert tape
    #[arg(long, value_name = "DIR")]
    alerts: PathBuf,
    /// Directory of the cases
    #[arg(long, value_name = "DIR")]
    cases: PathBuf,
    #[command(flatten)]
    users: UserFileArgs,
    #[command(flatten)]
    listen: ListenArgs,
    /// Print the address as JSON
    #[arg(long)]
    json: bool,
}

/// Where a desk listens.
#[derive(Debug, clap::Args)]
pub struct ListenArgs {
    /// Listen on this address of this machine; port 0 takes a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Write the port into this file once the desk listens
    #[arg(long, value_name = "FILE")]
    pub port_file: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: ServeArgs) -> output::Result {
    let stop = output::stop_flag()?;
    let options = DeskOptions {
        users: args.users.path(Some(&args.cases))?,
        tape: args.tape,
        alerts: args.alerts,
        cases: args.cases,
        listen: args.listen.listen,
    };
    let json = args.json;
    serve_desk(&options, args.listen.port_file.as_deref(), &stop, move |address| {
        if json {
            output::print_json(&serde_json::json!({ "desk": format!("http://{address}") }))
        } else {
            say!("The desk is at http://{address}; Ctrl-C ends it.");
            Ok(())
        }
    })
}

/// Serves a desk until `stop`; `announce` prints its address.
pub fn serve_desk(
    options: &DeskOptions,
    port_file: Option<&Path>,
    stop: &AtomicBool,
    announce: impl Fn(SocketAddr) -> Result<(), CommandFailure> + Send + Sync + 'static,
) -> output::Result {
    let port_file = port_file.map(Path::to_owned);
    unitape_server::serve(options, stop, move |event| match event {
        DeskEvent::Trouble(text) => note!("unitape: {text}"),
        DeskEvent::Listening(address) => {
            let announced = announce(address).and_then(|()| match &port_file {
                Some(path) => write_port(path, address.port()),
                None => Ok(()),
            });
            if let Err(failure) = announced {
                note!("unitape: {}", failure.text().unwrap_or_default());
            }
        }
    })?;
    Ok(CommandOutcome::Clean)
}

/// Writes the port as a whole: who reads the file never sees half of it.
fn write_port(path: &Path, port: u16) -> Result<(), CommandFailure> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let fail = |e: std::io::Error| CommandFailure::from(e).with_subject(path.display());
    let mut file = std::fs::File::create(&name).map_err(fail)?;
    writeln!(file, "{port}").map_err(fail)?;
    std::fs::rename(&name, path).map_err(fail)
}
