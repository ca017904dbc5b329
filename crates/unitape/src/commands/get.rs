//! `unitape get`: rows and events of sealed days, from a data server.

use super::login::PasswordArgs;
use super::store::scan::{PrintArgs, PrintedScan, ScanOutput, ScanPrinter, SealedArgs, TickSource};
use crate::output::{self, CommandFailure, note};
use std::path::PathBuf;
use unitape_client::wire::DataQuery;
use unitape_client::{
    Client, DatasetAddress, Fingerprint, ServerTrust, keep_known_names, open_universe, read_request,
};
use unitape_model::ClassSet;
use unitape_store::{ReadDepth, ScanFilter};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape get unitape://127.0.0.1:7411/ticks --user quant --password-file pw --fingerprint 9f86d0… --schema bbo --csv
  unitape get unitape://ticks.example:7411/ticks --user quant --ca authority.pem --schema trades --symbols VOD --date 2024-03-11
  unitape get unitape://127.0.0.1:7411 --user quant --password-file pw --fingerprint 9f86d0… --request request.xml --json

`unitape get` prints what `unitape store scan` would print, as far as the user may read it. Instruments that the user may not read do not appear, in messages neither. --request takes dataset, instruments, schemas and times from an XML request (docs/data-request.md). It prints the rows of several schemas one schema after the other, in the order of the request.

The server sends the encrypted blocks of the store, and their keys apart, over TLS. Exit code 3 when blocks are damaged. Exit code 1 when the server cannot be reached, has another certificate, refuses the user, or closes the connection.")]
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
    select: SealedArgs,
    /// Take dataset, instruments, schemas and times from this XML request
    #[arg(long, value_name = "FILE", conflicts_with_all = ["symbols", "symbol", "from", "to", "since", "until", "date", "schema", "kind", "venue"])]
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
    let mut questions = make_questions(args)?;
    let trust = match (&args.trust.fingerprint, &args.trust.ca) {
        (Some(fingerprint), _) => ServerTrust::in_fingerprint(*fingerprint),
        (None, Some(path)) => ServerTrust::in_authorities(path)?,
        (None, None) => unreachable!("one of the group is required"),
    };
    let password = args.password.read(&format!("Password of {}: ", args.user))?;
    let DatasetAddress { host, port, .. } = &args.address;
    let mut client = Client::log_in(host, *port, &trust, &args.user, &password)?;
    if questions.iter().any(|question| question.dataset.is_empty()) {
        let message = match client.datasets() {
            [] => "there is no dataset that you may read".to_owned(),
            names => format!(
                "name a dataset behind the address: {}",
                names
                    .iter()
                    .map(|name| format!("/{}", output::escape_line(name)))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        };
        return Err(CommandFailure::Usage(message));
    }
    let (mut all, mut limit) = (PrintedScan::default(), args.select.limit().unwrap_or(u64::MAX));
    let mut printer = ScanPrinter::open(&args.print, args.select.kinds()?)?;
    for question in &mut questions {
        let printed = ask_question(&mut client, question, &mut printer, limit)?;
        limit -= printed.events;
        all.events += printed.events;
        all.problems += printed.problems;
    }
    printer.finish()?;
    if all.events == 0 && all.problems == 0 && args.select.limit() != Some(0) {
        note!("unitape: nothing that you may read is in what was asked for");
    }
    Ok(all.outcome())
}

/// Returns the questions: one, or one for each schema of an XML request whose rows are asked for.
fn make_questions(args: &GetArgs) -> Result<Vec<Question>, CommandFailure> {
    let Some(path) = &args.request else {
        let filter = args.select.filter()?;
        let output =
            ScanOutput::new(&args.print, None, &filter.schemas, &args.select.kinds()?, ClassSet::MARKET)?;
        return Ok(vec![Question { dataset: args.address.dataset.clone(), filter, output }]);
    };
    let file_failure = |e: std::io::Error| CommandFailure::from(e).with_subject(path.display());
    let xml = std::fs::read(path).map_err(file_failure)?;
    let request = read_request(&xml, open_universe)
        .map_err(|e| CommandFailure::Usage(format!("{}: {e}", path.display())))?;
    let address_dataset = &args.address.dataset;
    if !address_dataset.is_empty() && *address_dataset != request.dataset {
        let message =
            format!("the address names the dataset {address_dataset}, the request {}", request.dataset);
        return Err(CommandFailure::Usage(message));
    }
    let filter = |schemas| ScanFilter {
        symbols: request.symbols.clone(),
        from: request.since,
        to: request.until,
        schemas,
        ..ScanFilter::default()
    };
    let question = |schemas: Vec<_>| {
        let output = ScanOutput::new(&args.print, None, &schemas, &[], ClassSet::MARKET)?;
        Ok(Question { dataset: request.dataset.clone(), filter: filter(schemas), output })
    };
    match args.print.events || args.print.full {
        true => Ok(vec![question(request.schemas.clone())?]),
        false => request.schemas.iter().map(|schema| question(vec![*schema])).collect(),
    }
}

/// Asks one question, and prints the answer.
fn ask_question(
    client: &mut Client,
    question: &mut Question,
    printer: &mut ScanPrinter<'_>,
    limit: u64,
) -> Result<PrintedScan, CommandFailure> {
    let Question { dataset, filter, output } = question;
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
    let printed = printer.print(&TickSource::Answer(&answer), filter, output.clone(), limit)?;
    let problems = printed.problems + answer.problems().len() as u64;
    Ok(PrintedScan { problems, ..printed })
}
