//! `unitape calendar`: the session date of a venue, or the trade and spot date of a currency pair.

use crate::output::{self, CommandFailure, CommandOutcome, say};
use std::path::PathBuf;
use unitape_model::{Calendar, CurrencyPair, DayKind, UnixNanos};
use unitape_run::address::utc;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape calendar examples/calendar.csv --venue XCME --at 2026-03-02T23:00
  unitape calendar examples/calendar.csv --venue XLON --at 2026-12-24 --json
  unitape calendar examples/calendar.csv --pair EURUSD --at 2026-03-06T22:00

For a venue, --json prints `venue`, `ts` (nanoseconds since 1970), `session_date`, `day` (`open`, `half`, `holiday` or `weekend`), `closes` (the end of a half day, else null) and its `zone`. For a pair, it prints `pair`, `ts`, `trade_date` and `spot_date`. A venue or pair without a line in the file has the dates of UTC.

calendar.csv:
  what,key,date,time,zone,value
  venue,XCME,,17:00,America/Chicago,
  holiday,XLON,2026-12-25,,,
  half,XLON,2026-12-24,12:30,,
  pair,EURUSD,,17:00,America/New_York,2

Every rule: docs/calendars.md")]
#[command(group = clap::ArgGroup::new("subject").required(true).args(["venue", "pair"]))]
pub struct CalendarArgs {
    /// The calendar
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A venue by its MIC
    #[arg(long, value_name = "MIC", value_parser = parse_mic)]
    venue: Option<String>,
    /// A currency pair: EURUSD or EUR/USD
    #[arg(long, value_name = "PAIR", value_parser = parse_pair)]
    pair: Option<NamedPair>,
    /// The moment: 2026-03-02, 2026-03-02T14:30:00.5 (UTC), or nanoseconds since 1970
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    at: UnixNanos,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// A pair with its two currencies in the order in which they were given.
#[derive(Clone, Debug)]
struct NamedPair {
    pair: CurrencyPair,
    name: String,
}

/// Runs the command.
pub fn run(args: CalendarArgs) -> output::Result {
    let text = output::read_text(&args.file)?;
    let calendar = Calendar::parse(&text)
        .map_err(|e| CommandFailure::Error(format!("{}:{}: {}", args.file.display(), e.line, e.fault)))?;
    match (&args.venue, &args.pair) {
        (Some(venue), _) => print_session(&calendar, venue, &args)?,
        (_, Some(pair)) => print_pair(&calendar, pair, &args)?,
        (None, None) => unreachable!("one of the group is required"),
    }
    Ok(CommandOutcome::Clean)
}

fn print_session(calendar: &Calendar, venue: &str, args: &CalendarArgs) -> Result<(), CommandFailure> {
    let date = calendar.session_date(venue, args.at);
    let (day, closes) = (calendar.day_kind(venue, date.0), calendar.closes(venue, date.0));
    let zone = calendar.zone_name(venue);
    if args.json {
        return output::print_json(&serde_json::json!({
            "venue": venue, "ts": args.at.0, "session_date": date.to_string(), "day": day.name(),
            "closes": closes.map(|close_time| close_time.to_string()), "zone": zone,
        }));
    }
    let closes = closes.map(|close_time| format!(", closes {close_time} {zone}")).unwrap_or_default();
    let kind = if day == DayKind::Half { "half day" } else { day.name() };
    say!("{venue} at {} UTC: session date {date}, {kind}{closes}", utc(args.at.0));
    Ok(())
}

fn print_pair(calendar: &Calendar, named: &NamedPair, args: &CalendarArgs) -> Result<(), CommandFailure> {
    let dates = calendar.pair_dates(named.pair, args.at);
    let (name, trade, spot) = (&named.name, dates.trade_date, dates.spot_date);
    if args.json {
        return output::print_json(&serde_json::json!({
            "pair": name, "ts": args.at.0, "trade_date": trade.to_string(), "spot_date": spot.to_string(),
        }));
    }
    say!("{name} at {} UTC: trade date {trade}, spot date {spot}", utc(args.at.0));
    Ok(())
}

fn parse_mic(text: &str) -> Result<String, &'static str> {
    let is_mic = text.len() == 4 && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    is_mic.then(|| text.to_owned()).ok_or("a MIC has 4 capital letters or digits, as XLON")
}

fn parse_pair(text: &str) -> Result<NamedPair, &'static str> {
    let pair = CurrencyPair::parse(text).ok_or("two currencies make a pair, as EURUSD or EUR/USD")?;
    Ok(NamedPair { pair, name: text.replace('/', "") })
}
