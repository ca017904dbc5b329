//! `unitape tape hot`: whose the hot segments are that a tape names.

use crate::output::{self, CommandOutcome, say};
use std::path::PathBuf;
use unitape_tape::{TapeManifest, adopt_hot, forget_hot, hot_notice, hot_place};

/// Arguments of `tape hot`.
#[derive(Debug, clap::Args)]
pub struct HotArgs {
    /// Directory of the tape
    dir: PathBuf,
    /// Make the hot segments this tape's: it was moved, or copied from a tape that is gone
    #[arg(long)]
    adopt: bool,
    /// Make this tape forget hot segments that are not its own; they stay where they are
    #[arg(long, conflicts_with = "adopt")]
    forget: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &HotArgs) -> output::Result {
    let dir = &args.dir;
    let changed = if args.adopt {
        Some(("adopted", adopt_hot(dir)?))
    } else if args.forget {
        Some(("forgotten", forget_hot(dir)?))
    } else {
        None
    };
    let (tape, hot_dir, notice) = (TapeManifest::load(dir)?.id, hot_place(dir)?, hot_notice(dir)?);
    if args.json {
        output::print_json(&serde_json::json!({
            "tape": tape.to_string(), "hot": hot_dir, "notice": notice.as_ref().map(ToString::to_string),
            "changed": changed.as_ref().map(|(action, _)| action),
        }))?;
    } else {
        match (&changed, &hot_dir, &notice) {
            (Some(("forgotten", hot)), ..) => say!("forgotten: {}, which stays as it is", hot.display()),
            (Some((action, hot)), ..) => {
                say!("{action}: {}; the next writer of the tape records it", hot.display())
            }
            (None, _, Some(notice)) => say!("{notice}"),
            (None, Some(hot), None) => say!("the hot segments of this tape are in {}", hot.display()),
            (None, None, None) => say!("this tape has no hot segments"),
        }
    }
    Ok(if notice.is_some_and(|notice| notice.may_miss_part()) {
        CommandOutcome::Flawed
    } else {
        CommandOutcome::Clean
    })
}
