//! `unitape store rekey` and `unitape store erase`: another key for a store, and the end of a day or a name.

use super::KeyArgs;
use crate::output::{self, CommandFailure, CommandOutcome, grouped, note, say};
use std::path::Path;
use std::path::PathBuf;
use unitape_store::{
    Day, EraseReport, Error, MasterKey, NameErasure, SystemRandomness, erase_day, erase_name, rekey,
};

/// Arguments of `store rekey`.
#[derive(Debug, clap::Args)]
pub struct RekeyArgs {
    /// Directory of the store
    dir: PathBuf,
    #[command(flatten)]
    key: KeyArgs,
    /// File of the new key, 64 hexadecimal digits; made if it does not exist
    #[arg(long, value_name = "FILE")]
    new_key: PathBuf,
}

/// Arguments of `store erase`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("subject").required(true).args(["date", "name"]))]
pub struct EraseArgs {
    /// Directory of the store
    dir: PathBuf,
    #[command(flatten)]
    key: KeyArgs,
    /// The day; `undated` for events without a time
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<Day>,
    /// The name, of whatever kind: instrument, venue, trader, account, owner, firm, algo, desk
    #[arg(long)]
    name: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Runs `store rekey`.
pub fn run_rekey(args: &RekeyArgs) -> output::Result {
    // The old key first: a wrong one must not leave a new one behind.
    let old_key = args.key.of_store(&args.dir)?;
    unitape_store::Store::open(&args.dir, &old_key)?;
    let (path, is_new) = (&args.new_key, !args.new_key.exists());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = std::fs::canonicalize(folder.unwrap_or(Path::new(".")));
    if folder
        .is_ok_and(|folder| std::fs::canonicalize(&args.dir).is_ok_and(|store| folder.starts_with(store)))
    {
        let fault = "a key in its store is in every copy of the store; give a file elsewhere";
        return Err(CommandFailure::Usage(format!("{}: {fault}", path.display())));
    }
    let new_key = if is_new { MasterKey::create(path, &SystemRandomness)? } else { MasterKey::load(path)? };
    if !is_new && MasterKey::is_exposed(path) {
        note!("unitape: others than its owner can read the key {0}; chmod 600 {0}", path.display());
    }
    // A key that was made stays if this fails: it is never sure that no copy of the manifest has it. It serves the next time.
    rekey(&args.dir, &old_key, &new_key, &SystemRandomness)?;
    if is_new {
        note!("unitape: made the key {}: without it nobody can read the store", path.display());
    }
    say!("{} opens with {} alone", args.dir.display(), path.display());
    Ok(CommandOutcome::Clean)
}

/// Runs `store erase`.
pub fn run_erase(args: &EraseArgs) -> output::Result {
    let key = args.key.of_store(&args.dir)?;
    let kept_files = match (args.date, &args.name) {
        (Some(date), _) => run_erase_day(&args.dir, &key, date, args.json)?,
        (None, Some(name)) => run_erase_name(&args.dir, &key, name, args.json)?,
        (None, None) => return Err(CommandFailure::Usage("erase needs --date or --name".into())),
    };
    if kept_files > 0 {
        note!(
            "unitape: {} files stay until their readers end; the next command that changes the store removes them",
            grouped(kept_files)
        );
    }
    Ok(CommandOutcome::Clean)
}

/// Erases a day. Returns the number of files that stay for now.
fn run_erase_day(dir: &Path, key: &MasterKey, date: Day, json: bool) -> Result<u64, CommandFailure> {
    let EraseReport { rows, files, kept_files } = erase_day(dir, key, date, &SystemRandomness)?;
    if json {
        output::print_json(&serde_json::json!({
            "date": date.to_string(), "rows": rows, "files": files, "kept_files": kept_files,
        }))?;
    } else if files == 0 {
        say!("nothing to erase: the store has no events of {date}");
    } else {
        say!("{} events of {date} are erased, in {} files", grouped(rows), grouped(files));
    }
    Ok(kept_files)
}

/// Erases a name. Returns the number of files that stay for now.
fn run_erase_name(dir: &Path, key: &MasterKey, name: &str, json: bool) -> Result<u64, CommandFailure> {
    let erased = erase_name(dir, key, name, &SystemRandomness).map_err(|e| match e {
        // The call is right. Whoever erases a name must see that the store does not have it, or has it in another spelling.
        Error::UnknownName { .. } => CommandFailure::Error(e.to_string()),
        e => e.into(),
    })?;
    let NameErasure { tokens, kept_files } = erased;
    if json {
        let tokens = tokens.iter().map(|(kind, token)| {
            serde_json::json!({ "kind": kind.name(), "token": token, "shown": format!("erased-{token}") })
        });
        output::print_json(&serde_json::json!({
            "name": name, "tokens": tokens.collect::<Vec<_>>(), "kept_files": kept_files,
        }))?;
    } else {
        for (kind, token) in tokens {
            say!("the {} {name} is erased: its events have the name erased-{token}", kind.name());
        }
    }
    Ok(kept_files)
}
