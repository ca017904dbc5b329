//! Who calls a command: the user file, and a password from a file or the terminal. A password is never an argument, which every
//! user of the machine can see.

use crate::output::CommandFailure;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use unitape_run::users::{Account, UserFile};

/// The user and the source of the password.
#[derive(Debug, clap::Args)]
pub struct LoginArgs {
    /// Your user name
    #[arg(long, value_name = "NAME")]
    user: String,
    #[command(flatten)]
    password: PasswordArgs,
    #[command(flatten)]
    users: UserFileArgs,
}

/// The second user of an act that needs two persons.
#[derive(Debug, clap::Args)]
pub struct SecondLoginArgs {
    /// The user name of the second person
    #[arg(long, value_name = "NAME")]
    second_user: String,
    /// As --password-file, of the second person [default: ask on the terminal]
    #[arg(long, value_name = "FILE")]
    second_password_file: Option<PathBuf>,
}

impl SecondLoginArgs {
    /// Returns the account of a second user who knows its password.
    pub fn log_in(&self, users: &UserFile) -> Result<Account, CommandFailure> {
        let password = PasswordArgs { password_file: self.second_password_file.clone() };
        let password = password.read(&format!("Password of {}: ", self.second_user))?;
        Ok(users.authenticate(&self.second_user, &password)?)
    }
}

/// The source of a password.
#[derive(Debug, clap::Args)]
pub struct PasswordArgs {
    /// Read the password from the first line of this file, which others must not be able to read; `-` for stdin [default: ask on the terminal]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

/// The user file.
#[derive(Debug, clap::Args)]
pub struct UserFileArgs {
    /// The user file [default: $UNITAPE_USERS, else users.toml in the directory of the cases]
    #[arg(long, value_name = "FILE")]
    users: Option<PathBuf>,
}

impl UserFileArgs {
    /// Returns the user file: that of the option, of the environment, or the one beside `cases`.
    pub fn path(&self, cases: Option<&Path>) -> Result<PathBuf, CommandFailure> {
        let configured =
            || std::env::var_os("UNITAPE_USERS").filter(|path| !path.is_empty()).map(PathBuf::from);
        let default_path = || Some(cases?.join("users.toml"));
        let path = self.users.clone().or_else(configured).or_else(default_path);
        path.ok_or_else(|| {
            CommandFailure::Usage("name the user file: --users FILE, or UNITAPE_USERS=FILE".to_owned())
        })
    }
}

impl LoginArgs {
    /// Returns the user file, and the account of a user who knows its password. Without cases there is no file beside them.
    pub fn log_in(&self, cases: Option<&Path>) -> Result<(UserFile, Account), CommandFailure> {
        // A file that is not there is found before anybody types a password.
        let users = UserFile::load(&self.users.path(cases)?)?;
        let password = self.password.read(&format!("Password of {}: ", self.user))?;
        let account = users.authenticate(&self.user, &password)?;
        Ok((users, account))
    }
}

impl PasswordArgs {
    /// Reads the password.
    pub fn read(&self, prompt: &str) -> Result<String, CommandFailure> {
        match &self.password_file {
            Some(path) => read_file(path),
            None => ask_secret(prompt),
        }
    }

    /// Reads a new password; on the terminal twice.
    pub fn read_new(&self, user: &str) -> Result<String, CommandFailure> {
        let password = self.read(&format!("New password of {user}: "))?;
        if self.password_file.is_none() && ask_secret("The same again: ")? != password {
            return Err(CommandFailure::Usage("the two passwords differ; nothing was changed".to_owned()));
        }
        Ok(password)
    }
}

fn read_file(path: &Path) -> Result<String, CommandFailure> {
    let fail = |error: io::Error| {
        CommandFailure::from(error).with_subject(format_args!("--password-file {}", path.display()))
    };
    if path.as_os_str() == "-" {
        return first_line(io::stdin().lock()).map_err(fail);
    }
    let file = File::open(path).map_err(fail)?;
    let metadata = file.metadata().map_err(fail)?;
    let mode = metadata.permissions().mode() & 0o7777;
    if metadata.is_file() && mode & 0o077 != 0 {
        let path = path.display();
        let message =
            format!("{path}: others may read this password (mode {mode:04o}); run: chmod 600 {path}");
        return Err(CommandFailure::Error(message));
    }
    first_line(file).map_err(fail)
}

fn first_line(input: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    input.take(PASSWORD_FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    String::from_utf8(line.to_vec())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "is not text in UTF-8"))
}

/// Asks on the terminal, without showing what is typed.
fn ask_secret(prompt: &str) -> Result<String, CommandFailure> {
    let Ok(mut terminal) = OpenOptions::new().read(true).write(true).open("/dev/tty") else {
        let message = "there is no terminal to ask for the password: give --password-file FILE";
        return Err(CommandFailure::Usage(message.to_owned()));
    };
    terminal.write_all(crate::output::escape_line(prompt).as_bytes())?;
    let visible_mode = tcgetattr(&terminal)?;
    let mut hidden = visible_mode.clone();
    // Ctrl-C would leave the terminal without echo: it ends the line instead, and is found there.
    hidden.local_modes -= LocalModes::ECHO | LocalModes::ISIG;
    hidden.special_codes[SpecialCodeIndex::VEOL] = CTRL_C;
    tcsetattr(&terminal, OptionalActions::Flush, &hidden)?;
    let mut line = Vec::new();
    let mut byte = [0];
    let read_result = loop {
        match terminal.read(&mut byte) {
            Ok(0) => break Ok(()),
            Ok(_) if matches!(byte[0], b'\n' | CTRL_C) => break Ok(()),
            Ok(_) => line.push(byte[0]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => break Err(e),
        }
    };
    tcsetattr(&terminal, OptionalActions::Flush, &visible_mode)?;
    terminal.write_all(b"\n")?;
    read_result?;
    if byte[0] == CTRL_C {
        return Err(CommandFailure::Error("stopped before a password was given".to_owned()));
    }
    String::from_utf8(line).map_err(|_| CommandFailure::Usage("the password is not text in UTF-8".to_owned()))
}

const CTRL_C: u8 = 3;
const PASSWORD_FILE_BYTES_MAX: u64 = 4096;
