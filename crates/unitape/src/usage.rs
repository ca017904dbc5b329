//! The command line as it was given, and what is printed where it is wrong.
//!
//! Clap quotes arguments unchanged. An argument with control characters (a name that a shell's `*` has found) is
//! quoted escaped, like all that unitape prints.

use crate::output::{self, CommandFailure, CommandOutcome, escape_line};
use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use std::ffi::OsString;
use std::io::{IsTerminal, Write};

/// Reads the arguments of this process; else how the command has ended: after help, or with a usage error.
///
/// # Errors
/// Fails with the result with which the command must end.
pub fn parse<C: Parser>() -> Result<C, output::Result> {
    C::try_parse().map_err(|error| {
        if !error.use_stderr() {
            return print_help(&error);
        }
        let is_plain = |a: OsString| a.to_str().is_some_and(|a| escape_line(a) == a);
        if std::env::args_os().all(is_plain) {
            // Clap colours it where that is wanted. A stderr that nobody reads is no error.
            _ = error.print();
        } else {
            _ = output::say_lines(&mut std::io::stderr(), &escape_quotes(error).render());
        }
        // Clap has said all there is to say.
        Err(CommandFailure::Usage(String::new()))
    })
}

/// Escapes the quoted parts of the error.
fn escape_quotes(mut error: clap::Error) -> clap::Error {
    let quoted: Vec<(ContextKind, ContextValue)> = (error.context())
        .filter_map(|(kind, value)| match value {
            ContextValue::String(text) => Some((kind, ContextValue::String(escape_line(text).into_owned()))),
            ContextValue::Strings(texts) => {
                let texts = texts.iter().map(|text| escape_line(text).into_owned());
                Some((kind, ContextValue::Strings(texts.collect())))
            }
            // Advice has the argument in it, too, but cannot be read.
            ContextValue::StyledStr(_) | ContextValue::StyledStrs(_) if kind == ContextKind::Suggested => {
                Some((kind, ContextValue::StyledStrs(Vec::new())))
            }
            _ => None,
        })
        .collect();
    for (kind, value) in quoted {
        error.insert(kind, value);
    }
    error
}

fn print_help(error: &clap::Error) -> output::Result {
    let text = error.render();
    let text = if std::io::stdout().is_terminal() { text.ansi().to_string() } else { text.to_string() };
    output::unbuffered().write_all(text.as_bytes())?;
    Ok(CommandOutcome::Clean)
}
