//! `unitape user`: the accounts of those who work on cases.

use super::login::{PasswordArgs, UserFileArgs};
use crate::output::{self, CommandFailure, CommandOutcome, note, say};
use serde_json::json;
use unitape_run::users::{Account, PasswordCost, Role, UserFile};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct UserArgs {
    #[command(subcommand)]
    command: UserCommand,
}

#[derive(Debug, clap::Subcommand)]
enum UserCommand {
    /// Add an account; make the user file if there is none
    #[command(after_help = "Examples:
  unitape user add anna --role analyst --person 'Anna Berg' --users cases/users.toml
  unitape user add anna2 --role supervisor --person 'Anna Berg' --users cases/users.toml
  unitape user add bo --role supervisor --party T-BO --password-file bo.password --users cases/users.toml

A person may have several accounts: give them the same --person. Where two persons are needed, two accounts of one person count once; capitals and blanks do not make another person. --party names the trader, owner or account of this person on tapes: nobody may act on a case about himself.

Roles: analyst and supervisor work on cases; risk writes notes and escalates; admin does all but close; auditor only reads.

The file (mode 0600) has a hash of each password: argon2id, 19 MiB, 2 passes. A table [argon2] in it with memory_kib and iterations sets another cost for new passwords.")]
    Add {
        /// The name of the account
        name: String,
        /// Its duty: analyst, supervisor, risk, admin, auditor
        #[arg(long, value_parser = parse_role)]
        role: Role,
        /// The human behind it [default: the name]
        #[arg(long, value_name = "NAME")]
        person: Option<String>,
        /// A name of this person on tapes: trader, owner, account (repeatable)
        #[arg(long, value_name = "NAME")]
        party: Vec<String>,
        #[command(flatten)]
        password: PasswordArgs,
        #[command(flatten)]
        users: UserFileArgs,
    },
    /// List the accounts
    #[command(after_help = "Example:\n  unitape user list --users cases/users.toml --json")]
    List {
        /// Print as JSON, one object a line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        users: UserFileArgs,
    },
    /// Give an account another password
    #[command(after_help = "Example:\n  unitape user password anna --users cases/users.toml")]
    Password {
        /// The name of the account
        name: String,
        #[command(flatten)]
        password: PasswordArgs,
        #[command(flatten)]
        users: UserFileArgs,
    },
    /// Disable an account; its actions stay
    #[command(after_help = "Example:\n  unitape user disable anna --users cases/users.toml")]
    Disable {
        /// The name of the account
        name: String,
        #[command(flatten)]
        users: UserFileArgs,
    },
}

/// Runs the command.
pub fn run(args: UserArgs) -> output::Result {
    match args.command {
        UserCommand::Add { name, role, person, party, password, users } => {
            let path = users.path(None)?;
            let person = person.unwrap_or_else(|| name.clone());
            let account = Account { name, person, role, parties: party, is_disabled: false };
            let cost = UserFile::add_account(&path, &account, &password.read_new(&account.name)?)?;
            print_weak(cost);
            say!("{}: added {}, {role}", path.display(), account.name);
        }
        UserCommand::List { json, users } => list_users(&UserFile::load(&users.path(None)?)?, json)?,
        UserCommand::Password { name, password, users } => {
            let path = users.path(None)?;
            // An unknown account is found before anybody types a password.
            if !UserFile::load(&path)?.accounts().any(|account| account.name == name) {
                return Err(CommandFailure::Usage(format!("{}: there is no user `{name}`", path.display())));
            }
            print_weak(UserFile::set_password(&path, &name, &password.read_new(&name)?)?);
            say!("{}: {name} has another password", path.display());
        }
        UserCommand::Disable { name, users } => {
            let path = users.path(None)?;
            UserFile::disable_account(&path, &name)?;
            say!("{}: {name} is disabled", path.display());
        }
    }
    Ok(CommandOutcome::Clean)
}

fn list_users(users: &UserFile, json: bool) -> Result<(), CommandFailure> {
    for Account { name, person, role, parties, is_disabled } in users.accounts() {
        if json {
            output::print_json(&json!({
                "user": name, "person": person, "role": role.name(), "parties": parties, "disabled": is_disabled,
            }))?;
            continue;
        }
        let parties =
            if parties.is_empty() { String::new() } else { format!(", on tapes {}", parties.join(", ")) };
        let disabled = if is_disabled { ", disabled" } else { "" };
        say!("{name}: {person}, {role}{parties}{disabled}");
    }
    Ok(())
}

fn print_weak(cost: PasswordCost) {
    if cost.is_weak() {
        let PasswordCost { memory_kib, iterations } = cost;
        note!(
            "unitape: [argon2] of the user file sets a cost below the default ({memory_kib} KiB, {iterations} iterations): \
             guessing this password is cheap"
        );
    }
}

fn parse_role(text: &str) -> Result<Role, String> {
    let list_names = || format!("there are: {}", Role::ALL.map(Role::name).join(", "));
    Role::from_name(text).ok_or_else(list_names)
}
