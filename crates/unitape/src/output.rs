//! Shared parts of all commands: exit codes, destinations of data, and progress.
//!
//! Text for people goes through [`say!`], [`say_to!`], [`say_lines`] and [`note!`], which escape what a terminal
//! would obey; a clippy lint forbids `println!` and `eprintln!` beside them. Only JSON, raw bytes and files that a
//! command is asked for are written unchanged.

mod destination;
mod directory;
mod empty_result;
mod escape;
mod failure;
mod files;
mod row_encoder;
mod rows;
mod stdout;

pub use destination::{Destination, write_file, write_private_file};
pub use directory::OutputDirectory;
pub use empty_result::{list_known_names, refuse_name};
pub use escape::escape_line;
pub use failure::{CommandFailure, CommandOutcome, Result, cause_of, exit_code};
pub use files::{file_failure, open_file, read_bytes, read_text};
pub use row_encoder::{ColumnFormat, RowEncoder, RowForm, RowOutput, note_misfits, refuse_terminal};
pub use rows::{RowFormat, RowLines, csv_text};
pub use stdout::{finish, stdout, unbuffered};

use std::fmt::{Arguments, Display};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use unitape_model::Position;

/// Prints a line to stdout, escaped.
macro_rules! say {
    ($($words:tt)*) => { $crate::output::put_line(&mut $crate::output::unbuffered(), format_args!($($words)*))? };
}
pub(crate) use say;

/// Prints a line to a writer that goes to stdout, escaped.
macro_rules! say_to {
    ($out:expr, $($words:tt)*) => { $crate::output::put_line(&mut $out, format_args!($($words)*))? };
}
pub(crate) use say_to;

/// Prints a line to stderr, escaped. A stderr that nobody reads is no error.
macro_rules! note {
    ($($words:tt)*) => { $crate::output::put_note(format_args!($($words)*)) };
}
pub(crate) use note;

/// Writes a line, escaped.
pub fn put_line(out: &mut impl Write, words: Arguments<'_>) -> std::result::Result<(), CommandFailure> {
    Ok(out.write_all(to_line(words).as_bytes())?)
}

/// Writes a table or another text of lines that are ours; a cell that a feed has filled went through [`plain`] before.
pub fn say_lines(out: &mut impl Write, lines: &impl Display) -> std::result::Result<(), CommandFailure> {
    let text = lines.to_string();
    out.write_all(escape::escape_lines(text.trim_end_matches('\n')).as_bytes())?;
    Ok(out.write_all(b"\n")?)
}

/// Writes a line to stderr, whole or not at all. If there are too many open files, it names the limit.
pub fn put_note(words: Arguments<'_>) {
    let text = name_file_limit(words.to_string());
    _ = io::stderr().lock().write_all(to_line(format_args!("{text}")).as_bytes());
}

/// Puts the limit in the place of the system's words for too many open files.
fn name_file_limit(text: String) -> String {
    let system = io::Error::from(rustix::io::Errno::MFILE).to_string();
    if !text.contains(&system) {
        return text;
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.map_or("none".to_owned(), |limit| limit.to_string());
    text.replace(&system, &format!("too many open files: the limit is {limit} (ulimit -n)"))
}

fn to_line(words: Arguments<'_>) -> String {
    let text = words.to_string();
    let mut line = escape_line(&text).into_owned();
    line.push('\n');
    line
}

/// Prints one JSON object as a line.
pub fn print_json(value: &impl serde::Serialize) -> std::result::Result<(), CommandFailure> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(unbuffered().write_all(&line)?)
}

/// Prints an empty line, for a process that waits for one.
pub fn print_empty() -> std::result::Result<(), CommandFailure> {
    Ok(unbuffered().write_all(b"\n")?)
}

/// Prints that a tape was cut back while a command followed it.
pub fn print_rewound(from: Position, to: Position) {
    note!(
        "the tape was cut back from position {from} to {to}; what follows replaces what was printed from there on"
    );
}

/// Returns the outcome of an otherwise clean command whose tape was cut back `count` times while the command followed
/// it.
pub fn outcome_after_rewinds(count: u64) -> CommandOutcome {
    if count == 0 {
        return CommandOutcome::Clean;
    }
    let times = if count == 1 { "time" } else { "times" };
    note!("the tape was cut back {} {times} while it was followed", grouped(count));
    CommandOutcome::Flawed
}

/// Makes the flag that the first SIGINT or SIGTERM sets, so that a run ends in order. A second signal kills the
/// process.
pub fn stop_flag() -> std::result::Result<Arc<AtomicBool>, CommandFailure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, flag.clone())?;
        signal_hook::flag::register(signal, flag.clone())?;
    }
    Ok(flag)
}

/// Makes a descriptor that becomes readable when a signal sets the flag of [`stop_flag`]. Call `stop_flag` first.
pub fn stop_signal() -> std::result::Result<std::os::fd::OwnedFd, CommandFailure> {
    let (read, write) = std::os::unix::net::UnixStream::pair()?;
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    Ok(read.into())
}

/// Ignores SIGXFSZ. A write past a file's size limit then fails as a write error with the file's name, and the process
/// lives.
pub fn ignore_file_size_signal() -> std::result::Result<(), CommandFailure> {
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default())?;
    Ok(())
}

/// Runs `work` with a progress bar beside it, where stderr is a terminal. `position` gives bytes done and bytes
/// in all (0 when not known), `note` a few words after the bar.
pub fn with_progress<T>(
    label: &str,
    position: impl Fn() -> (u64, u64) + Sync,
    note: impl Fn() -> String + Sync,
    work: impl FnOnce() -> T,
) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    let bar = indicatif::ProgressBar::new(0);
    let style = "{prefix} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {msg}";
    bar.set_style(
        indicatif::ProgressStyle::with_template(style).expect("a template of ours").progress_chars("━━ "),
    );
    bar.set_prefix(label.to_owned());
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Acquire: pairs with the Release below; the last figures are then the final ones.
            while !is_done.load(Ordering::Acquire) {
                let (bytes_done, total) = position();
                bar.set_length(total.max(bytes_done));
                bar.set_position(bytes_done);
                bar.set_message(note());
                std::thread::sleep(Duration::from_millis(60));
            }
            bar.finish_and_clear();
        });
        // A panic in the work must not leave the bar waiting for ever.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_done.store(true, Ordering::Release);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Prints on stderr that the tape in `dir` is a copy, or names hot segments that are not its own. A command calls it
/// before it opens the tape; what cannot be read is an error of that opening.
///
/// Where the newest part of the tape may be missing, the command ends with exit code 3; see [`ending`].
pub fn print_hot_notice(dir: &Path) {
    if let Ok(Some(notice)) = unitape_tape::hot_notice(dir) {
        print_notice(dir, &notice);
    }
}

/// Prints a notice that something else has found.
pub fn print_notice(dir: &Path, notice: &unitape_tape::HotNotice) {
    note!("unitape: {}: {notice}", dir.display());
    if notice.may_miss_part() {
        // Relaxed: a flag alone.
        PART_MISSING.store(true, Ordering::Relaxed);
    }
}

/// Returns the final outcome. A clean outcome becomes flawed if a tape may have lacked its newest part.
pub fn final_outcome(outcome: CommandOutcome) -> CommandOutcome {
    match outcome {
        CommandOutcome::Clean if PART_MISSING.load(Ordering::Relaxed) => CommandOutcome::Flawed,
        outcome => outcome,
    }
}

/// A tape that this command names may lack its newest part.
static PART_MISSING: AtomicBool = AtomicBool::new(false);

/// Writes a number with commas between groups of three digits: `1234567` as `1,234,567`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Writes a number of bytes for people: `1.4 MiB`.
pub fn bytes(n: u64) -> String {
    indicatif::HumanBytes(n).to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn thousands_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(super::grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
