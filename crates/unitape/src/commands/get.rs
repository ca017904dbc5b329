//! `unitape get`: rows and events of sealed days, from a data server.

use super::login::PasswordArgs;
use super::store::scan::{self, PrintArgs, PrintedScan, ScanOutput, SelectArgs, TickSource};
use crate::output::{self, CommandFailure, note};
use std::path::PathBuf;
use unitape_client::wire::DataQuery;
use unitape_client::{
    Client, DatasetAddress, Fingerprint, ServerTrust, keep_known_names, open_universe, read_request,
};
use unitape_store::{ReadDepth, ScanFilter};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape get unitape://127.0.0.1:7411/ticks --user quant --password-file pw --fingerprint 9f86d0… --schema bbo --csv
  unitape get unitape://ticks.example:7411/ticks --user quant --ca authority.pem --schema trades --symbols VOD --date 2024-03-11
  unitape get unitape://127.0.0.1:7411 --user quant --password-file pw --fingerprint 9f86d0… --request request.xml --json

It prints what `unitape store scan` prints of the store, of that which the user may read. What he may not read does not exist
for him: neither the instrument nor its name, in messages too. With --request, dataset, instruments, schemas and times are those
of an XML request (docs/data-request.md); rows of several schemas come one schema after the other, in its order.

The days are sealed all the way: the server sends blocks as they lie in the store, and the keys for them apart, over TLS. Exit code
3 when blocks are damaged; 1 when the server cannot be reached, is not the one that was named, refuses the user, or breaks off.")]
pub struct GetArgs {
    /// The dataset: unitape://HOST:PORT/NAME; without /NAME the datasets are listed
    #[arg(value_name = "ADDRESS")]
    address: DatasetAddress,
    /// Your user name
    #[arg(long, value_name = "NAME")]
    user: String,
    #[command(flatten)]
    password: PasswordArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    select: SelectArgs,
    /// Take dataset, instruments, schemas and times from this XML request
    #[arg(long, value_name = "FILE", conflicts_with_all = ["symbols", "symbol", "since", "until", "date", "schema", "venue"])]
    request: Option<PathBuf>,
    #[command(flatten)]
    print: PrintArgs,
}

/// How the server is known.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct TrustArgs {
    /// The server has the certificate with this SHA-256, which `unitape serve` prints
    #[arg(long, value_name = "HEX", value_parser = parse_fingerprint)]
    fingerprint: Option<Fingerprint>,
    /// The server's certificate is signed by an authority in this PEM file
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

fn parse_fingerprint(text: &str) -> Result<Fingerprint, String> {
    Fingerprint::parse(text).ok_or_else(|| "a fingerprint has 64 hexadecimal digits".to_owned())
}

/// What is asked, and how it is printed.
struct Question {
    dataset: String,
    filter: ScanFilter,
    output: ScanOutput,
}

/// Runs the command.
pub fn run(args: &GetArgs) -> output::Result {
    let mut questions = questions(args)?;
    let trust = match (&args.trust.fingerprint, &args.trust.ca) {
        (Some(fingerprint), _) => ServerTrust::in_fingerprint(*fingerprint),
        (None, Some(path)) => ServerTrust::in_authorities(path)?,
        (None, None) => unreachable!("one of the group is required"),
    };
    let password = args.password.read(&format!("Password of {}: ", args.user))?;
    let DatasetAddress { host, port, .. } = &args.address;
    let mut client = Client::log_in(host, *port, &trust, &args.user, &password)?;
    if questions.iter().any(|question| question.dataset.is_empty()) {
        let what = match client.datasets() {
            [] => "there is no dataset that you may read".to_owned(),
            names => format!(
                "name a dataset behind the address: {}",
                names.iter().map(|name| format!("/{}", output::plain(name))).collect::<Vec<_>>().join(", ")
            ),
        };
        return Err(CommandFailure::Usage(what));
    }
    let (mut all, mut limit) = (PrintedScan::default(), args.print.limit.unwrap_or(u64::MAX));
    for Question { dataset, filter, output } in &mut questions {
        let printed = ask(&mut client, dataset, filter, output.clone(), &args.print, limit)?;
        limit -= printed.events;
        all.events += printed.events;
        all.problems += printed.problems;
    }
    if all.events == 0 && all.problems == 0 && args.print.limit != Some(0) {
        note!("unitape: nothing that you may read is in what was asked for");
    }
    Ok(all.outcome())
}

/// Returns the questions: one, or one for each schema of an XML request whose rows are asked for.
fn questions(args: &GetArgs) -> Result<Vec<Question>, CommandFailure> {
    let Some(path) = &args.request else {
        let filter = args.select.filter()?;
        let output = ScanOutput::new(&args.print, &filter.schemas)?;
        return Ok(vec![Question { dataset: args.address.dataset.clone(), filter, output }]);
    };
    let failed = |e: std::io::Error| CommandFailure::from(e).with_subject(path.display());
    let xml = std::fs::read(path).map_err(failed)?;
    let request = read_request(&xml, open_universe)
        .map_err(|e| CommandFailure::Usage(format!("{}: {e}", path.display())))?;
    let named = &args.address.dataset;
    if !named.is_empty() && *named != request.dataset {
        let what = format!("the address names the dataset {named}, the request {}", request.dataset);
        return Err(CommandFailure::Usage(what));
    }
    let filter = |schemas| ScanFilter {
        symbols: request.symbols.clone(),
        from: request.since,
        to: request.until,
        schemas,
        ..ScanFilter::default()
    };
    let question = |schemas: Vec<_>| {
        let output = ScanOutput::new(&args.print, &schemas)?;
        Ok(Question { dataset: request.dataset.clone(), filter: filter(schemas), output })
    };
    match args.print.events || args.print.full {
        true => Ok(vec![question(request.schemas.clone())?]),
        false => request.schemas.iter().map(|schema| question(vec![*schema])).collect(),
    }
}

/// Asks one question, and prints the answer.
fn ask(
    client: &mut Client,
    dataset: &str,
    filter: &mut ScanFilter,
    output: ScanOutput,
    print: &PrintArgs,
    limit: u64,
) -> Result<PrintedScan, CommandFailure> {
    let depth = match output {
        ScanOutput::Events => ReadDepth::Events,
        ScanOutput::Rows(..) => ReadDepth::Rows,
    };
    let answer = client.query(&DataQuery::new(dataset, depth, filter))?;
    for problem in answer.problems() {
        note!("unitape: {dataset}: {problem}");
    }
    let (unknown, is_left) = keep_known_names(&answer, filter);
    for name in unknown {
        note!("unitape: nothing that you may read, in what was asked for, has the name {name}");
    }
    let limit = if is_left { limit } else { 0 };
    let printed = scan::print(&TickSource::Answer(&answer), filter, output, print, limit)?;
    let problems = printed.problems + answer.problems().len() as u64;
    Ok(PrintedScan { problems, ..printed })
}
