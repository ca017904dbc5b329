//! In the making.
use crate::output;
/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {}
/// Runs the command.
pub fn run(_: Args) -> output::Result {
    Ok(output::Done::Clean)
}
