//! Every command that the pages show is run, and what they show of its output is compared.
//!
//! In a block fenced as `console` or `sh`, a line that starts with `$ ` is a command (it continues after a
//! `\` at the end of a line), the lines under it are its output. Commands of `unitape` are run page by
//! page, in order, in a fresh folder that holds `vectors`, `mappings`, `examples` and `crates`; they end with exit
//! code 0 unless the line ends with `# exit N`. The README and its guides run once more, all in one folder.
//! `cargo run --release --example NAME -- …` runs the example as it was built for the tests. In shown output `...`
//! alone on a line matches any lines and `[..]` any part of a line; output that is not shown is not compared. Commands
//! that set up the machine (`git clone`, `cargo xtask demo`) are not run, but must be known ones.
//!
//! A `unitape` command that ends with ` &` runs beside the commands after it, until the page ends it with `kill`, in which
//! `$!` is its process. Its exit code is compared unless the signal is KILL. While it runs, a `unitape` command is repeated
//! until it does what the page shows, so that no page depends on the speed of the machine. On such a page
//! `monitor.listen` is a port that no other test has.
#![cfg(unix)]

use super::jobs::Job;
use crate::common::binary;
use crate::common::example;
use crate::common::ports::free_ports;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A command that hangs is ended and reported; nothing is said of how long one that works may take.
pub(super) const HANG: Duration = Duration::from_secs(300);

/// The fixtures that the commands find in their folder.
const FIXTURES: [&str; 4] = ["vectors", "mappings", "examples", "crates"];

/// Beginnings of commands that are shown but not run here.
const NOT_RUN: [&str; 20] = [
    "apt-get install",
    "cargo build",
    "cargo clippy",
    "cargo fmt",
    "cargo install",
    "cargo run",
    "cargo test",
    "cargo xtask checks",
    "cargo xtask deep",
    "cargo xtask demo",
    "cargo xtask instructions",
    "cargo xtask pages",
    "cargo xtask rounds",
    "cargo xtask seeds",
    "cargo xtask test",
    "cargo xtask tidy",
    "cargo xtask wheel",
    "cd",
    "git",
    "pip install",
];

/// The pages once promised an option that had been renamed: a reader who copies a command finds out first.
#[test]
fn the_commands_in_the_pages_work() {
    let root = root();
    assert!(root.join("README.md").is_file(), "README.md is missing");
    let mut ran = 0;
    let mut problems = String::new();
    for page in pages(&root) {
        let name = page.strip_prefix(&root).unwrap_or(&page).display().to_string();
        let text = fs::read_to_string(&page).unwrap_or_else(|e| panic!("{name}: {e}"));
        let folder = PageFolder::new(&root);
        match commands(&text) {
            Ok(commands) => ran += folder.run_page(&name, &commands, &mut problems),
            Err(why) => writeln!(problems, "{name}:{why}").unwrap(),
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
    assert!(ran > 0, "the pages show no `unitape` command");
    println!("{ran} commands of the pages ran");
}

/// Two guides wrote to a tape of the same name: who read both found the commands of the second failing.
#[test]
fn the_guides_work_one_after_another_in_one_folder() {
    let root = root();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let guides = guides(&readme);
    assert!(guides.len() >= 6, "{guides:?}");
    let folder = PageFolder::new(&root);
    let mut problems = String::new();
    for name in ["README.md"].into_iter().chain(guides) {
        let commands = commands(&fs::read_to_string(root.join(name)).unwrap()).unwrap();
        folder.run_page(name, &commands, &mut problems);
    }
    assert!(problems.is_empty(), "\n{problems}");
}

/// The pages of the table "Guides" of the README, in its order.
fn guides(readme: &str) -> Vec<&str> {
    let (_, table) = readme.split_once("## Guides").expect("the README lists guides");
    let table = table.split("\n## ").next().unwrap_or_default();
    let links = table.split("](").skip(1).filter_map(|link| link.split(')').next());
    let mut pages = Vec::new();
    for path in links.filter(|path| path.starts_with("docs/") && path.ends_with(".md")) {
        if !pages.contains(&path) {
            pages.push(path);
        }
    }
    pages
}

/// A command that a page shows.
#[derive(Debug, PartialEq)]
pub(super) struct Shown {
    line: usize,
    pub(super) command: String,
    pub(super) exit: i32,
    output: Vec<String>,
    /// Whether it runs beside the commands after it.
    is_job: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root of the repository")
}

fn pages(root: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    markdown(&root.join("docs"), &mut pages);
    pages.sort();
    let first = ["README.md", "CONTRIBUTING.md"].map(|name| root.join(name));
    first.into_iter().filter(|page| page.is_file()).chain(pages).collect()
}

fn markdown(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            markdown(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

/// Reads the commands of a page. The error begins with the number of the line.
fn commands(text: &str) -> Result<Vec<Shown>, String> {
    let mut all: Vec<Shown> = Vec::new();
    let mut block = Block::None;
    let mut continues = false;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if let Some(info) = line.trim_start().strip_prefix("```") {
            continues = false;
            block = match block {
                Block::None => Block::opened_by(info).map_err(|why| format!("{number}: {why}"))?,
                _ => Block::None,
            };
            continue;
        }
        let Block::Shell { commands: in_block } = &mut block else { continue };
        if continues && let Some(last) = all.last_mut() {
            continues = extend(&mut last.command, line.trim());
        } else if let Some(command) = line.strip_prefix("$ ") {
            *in_block += 1;
            let mut shown =
                Shown { line: number, command: String::new(), exit: 0, output: Vec::new(), is_job: false };
            continues = extend(&mut shown.command, command.trim());
            all.push(shown);
        } else if *in_block > 0 {
            all.last_mut().expect("a command was pushed").output.push(line.trim_end().to_owned());
        } else if !line.trim().is_empty() {
            // Without the `$ ` a command would be on show and never be run.
            return Err(format!("{number}: a command in a shell block starts with `$ `"));
        }
    }
    for shown in &mut all {
        if let Some((command, code)) = shown.command.rsplit_once("# exit ") {
            let wrong = |_| format!("{}: `# exit {code}` is no exit code", shown.line);
            shown.exit = code.trim().parse().map_err(wrong)?;
            shown.command = command.trim_end().to_owned();
        }
        if let Some(command) = shown.command.strip_suffix(" &") {
            shown.command = command.to_owned();
            shown.is_job = true;
        }
        while shown.output.last().is_some_and(String::is_empty) {
            shown.output.pop();
        }
    }
    Ok(all)
}

enum Block {
    None,
    /// A block of commands, with how many were seen in it so far.
    Shell {
        commands: usize,
    },
    Other,
}

impl Block {
    fn opened_by(info: &str) -> Result<Self, String> {
        let mut words = info.split([' ', ',']).filter(|word| !word.is_empty());
        match words.next() {
            Some("console" | "sh" | "bash" | "shell") => match words.next() {
                None => Ok(Block::Shell { commands: 0 }),
                Some(word) => {
                    Err(format!("`{word}`: a block of commands takes no options, it is always run"))
                }
            },
            _ => Ok(Block::Other),
        }
    }
}

/// Adds a line to a command and says whether another follows.
fn extend(command: &mut String, line: &str) -> bool {
    let (line, continues) = line.strip_suffix('\\').map_or((line, false), |line| (line.trim_end(), true));
    if !command.is_empty() {
        command.push(' ');
    }
    command.push_str(line);
    continues
}

/// A folder in which commands of pages run.
struct PageFolder {
    dir: tempfile::TempDir,
}

impl PageFolder {
    fn new(root: &Path) -> Self {
        let folder = Self { dir: tempfile::tempdir().expect("a temporary folder") };
        let work = folder.work();
        fs::create_dir(&work).expect("a folder for the commands");
        for fixture in FIXTURES.iter().filter(|fixture| root.join(fixture).exists()) {
            symlink(root.join(fixture), work.join(fixture)).expect("a link to the fixtures");
        }
        folder
    }

    fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// Runs the commands of a page, and returns how many are ours.
    fn run_page(&self, name: &str, commands: &[Shown], problems: &mut String) -> usize {
        let mut ran = 0;
        let mut folder = CommandFolder { work: self.work(), logs: self.dir.path().to_owned(), monitor: None };
        if commands.iter().any(|shown| shown.is_job) {
            folder.monitor = Some(format!("127.0.0.1:{}", free_ports(1)));
        }
        let sends_to_groups = commands.iter().any(|shown| shown.command.contains("--udp"));
        let _lock = sends_to_groups.then(lock_groups);
        let mut job: Option<Job> = None;
        for shown in commands {
            let program = without_environment(&shown.command);
            let is_ours = starts(program, "unitape");
            ran += usize::from(is_ours);
            let result = if shown.is_job {
                match &job {
                    Some(_) => Err("runs beside another command that runs beside others".to_owned()),
                    None if is_ours => Job::start(&folder, shown).map(|started| job = Some(started)),
                    None => Err("is not a command that runs beside others".to_owned()),
                }
            } else if starts(program, "kill") {
                job.take().map_or(Err("has nothing to end".to_owned()), |job| job.end(&shown.command))
            } else if let Some(command) = example_of(program) {
                ran += 1;
                run(&Shown { command, output: shown.output.clone(), ..*shown }, &folder)
            } else if let (true, Some(job)) = (is_ours, &mut job) {
                job.beside(|| run(shown, &folder))
            } else if is_ours || ["printf", "head", "cp", "mkdir"].iter().any(|tool| starts(program, tool)) {
                // The tools make the inputs that pages show.
                run(shown, &folder)
            } else if NOT_RUN.iter().any(|beginning| starts(program, beginning)) {
                Ok(())
            } else {
                Err("is not a command that is run or known".to_owned())
            };
            if let Err(why) = result {
                writeln!(problems, "{name}:{}: `{}` {why}", shown.line, shown.command).unwrap();
            }
        }
        if job.is_some() {
            writeln!(problems, "{name}: a command still runs at the end of the page").unwrap();
        }
        ran
    }
}

/// Returns the lock of the multicast groups that pages name. Two pages that use them at the same time hear each other, also from
/// another working tree.
fn lock_groups() -> File {
    let name = format!("unitape-groups-{}.lock", rustix::process::getuid().as_raw());
    let file = File::create(std::env::temp_dir().join(name)).expect("a file for the lock of the groups");
    file.lock().expect("the lock of the groups");
    file
}

/// `A=1 B=2 command` without the assignments.
fn without_environment(command: &str) -> &str {
    match command.split_once(' ') {
        Some((word, rest)) if word.contains('=') => without_environment(rest.trim_start()),
        _ => command,
    }
}

/// The command of an example that `cargo run` would build first.
fn example_of(command: &str) -> Option<String> {
    let (name, arguments) = command.strip_prefix("cargo run --release --example ")?.split_once(" -- ")?;
    Some(format!("{} {arguments}", example::example(name).display()))
}

fn starts(command: &str, beginning: &str) -> bool {
    command.strip_prefix(beginning).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Where the commands of a page run.
pub(super) struct CommandFolder {
    work: PathBuf,
    logs: PathBuf,
    /// The address in place of the one that the page's configurations name.
    monitor: Option<String>,
}

impl CommandFolder {
    /// Starts a command of the shell, whose stdout and stderr become the files `NAME.out` and `NAME.err`.
    pub(super) fn start(&self, command: &str, name: &str) -> Result<Child, String> {
        let binary = binary::binary();
        let mut path = std::ffi::OsString::from(binary.parent().expect("the binary lies in a folder"));
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        // Into files, because a full pipe that nobody reads would look like a hang.
        let create = |path: &Path| File::create(path).map_err(|e| format!("{}: {e}", path.display()));
        Command::new("sh")
            .args(["-c", command])
            .current_dir(&self.work)
            .env("PATH", path)
            .envs(self.monitor.iter().map(|address| ("UNITAPE_MONITOR__LISTEN", address)))
            .stdin(Stdio::null())
            .stdout(create(&self.log(name, "out"))?)
            .stderr(create(&self.log(name, "err"))?)
            .process_group(0)
            .spawn()
            .map_err(|e| format!("does not start: {e}"))
    }

    /// Returns the file of stdout (`out`) or stderr (`err`) of a command.
    pub(super) fn log(&self, name: &str, stream: &str) -> PathBuf {
        self.logs.join(format!("{name}.{stream}"))
    }
}

fn run(shown: &Shown, folder: &CommandFolder) -> Result<(), String> {
    let mut child = folder.start(&shown.command, "command")?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|e| e.to_string())? {
            Some(status) => break status,
            None if start.elapsed() > HANG => {
                let group = format!("-{}", child.id());
                Command::new("kill").args(["-KILL", "--", &group]).status().map_err(|e| e.to_string())?;
                child.wait().map_err(|e| e.to_string())?;
                return Err(format!("has not ended after {} s", HANG.as_secs()));
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let text = |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let read = |stream| text(&folder.log("command", stream)).map_err(|e| e.to_string());
    let (out, err) = (read("out")?, read("err")?);
    if status.code() != Some(shown.exit) {
        return Err(format!("ended with {status}, not exit code {}\n{}", shown.exit, indent(&err)));
    }
    let got: Vec<&str> = out.lines().map(str::trim_end).collect();
    let want: Vec<&str> = shown.output.iter().map(String::as_str).collect();
    if want.is_empty() || lines_match(&want, &got) {
        return Ok(());
    }
    let want = indent(&want.join("\n"));
    Err(format!("printed\n{}  instead of\n{want}  and said\n{}", indent(&out), indent(&err)))
}

pub(super) fn indent(text: &str) -> String {
    text.lines().fold(String::new(), |mut all, line| {
        writeln!(all, "    {line}").unwrap();
        all
    })
}

/// Whether lines match a pattern in which `...` is any number of lines.
fn lines_match(want: &[&str], got: &[&str]) -> bool {
    match want.split_first() {
        None => got.is_empty(),
        Some((&"...", rest)) => (0..=got.len()).any(|skip| lines_match(rest, &got[skip..])),
        Some((first, rest)) => got.split_first().is_some_and(|(line, left)| {
            let mut parts = first.split("[..]");
            let head = parts.next().unwrap_or_default();
            line_matches(head, parts, line) && lines_match(rest, left)
        }),
    }
}

/// Whether a line begins with `head` and holds the other parts in order, the last one at its end.
fn line_matches<'a>(head: &str, parts: impl Iterator<Item = &'a str>, line: &str) -> bool {
    let Some(mut left) = line.strip_prefix(head) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return left.is_empty() };
    for part in middle {
        match left.find(part) {
            Some(position) => left = &left[position + part.len()..],
            None => return false,
        }
    }
    left.ends_with(last)
}

/// Only the reader of pages itself keeps a stale page from a green run.
#[test]
fn commands_are_read_with_their_exit_code_and_output() {
    let page = "text\n```console\n$ unitape a \\\n    b   # exit 3\none\n\n$ git clone x\n\n```\n```json\n$ no\n```\n";
    let shown = |line, command: &str, exit, output: &[&str]| Shown {
        line,
        command: command.to_owned(),
        exit,
        output: output.iter().map(|&line| line.to_owned()).collect(),
        is_job: false,
    };
    let want = [shown(3, "unitape a b", 3, &["one"]), shown(7, "git clone x", 0, &[])];
    assert_eq!(commands(page).unwrap(), want);
    let job = commands("```console\n$ unitape run a & # exit 3\n```").unwrap();
    assert_eq!(job, [Shown { is_job: true, ..shown(2, "unitape run a", 3, &[]) }]);
    for (bad, why) in [
        ("```console no-run\n```", "1: `no-run`"),
        ("```sh\nunitape a\n```", "2: a command in a shell block"),
        ("```sh\n$ unitape # exit x\n```", "2: `# exit x`"),
    ] {
        assert!(commands(bad).unwrap_err().starts_with(why), "{bad}");
    }
}

#[test]
fn wildcards_stand_for_lines_and_parts_of_lines() {
    let matches = |want: &str, got: &str| {
        lines_match(&want.lines().collect::<Vec<_>>(), &got.lines().collect::<Vec<_>>())
    };
    assert!(matches("a\n...\nd", "a\nb\nc\nd") && matches("a\n...", "a") && matches("...", ""));
    assert!(!matches("a\n...\nd", "a\nb") && !matches("a", "a\nb") && !matches("a\nb", "a"));
    assert!(matches("[..] of [..] s", "3 of 14 s") && matches("n [..]", "n ") && matches("a[..]a", "aa"));
    assert!(!matches("[..] of [..] s", "3 of 14 m") && !matches("a[..]a", "a") && !matches("a", "ab"));
}

#[test]
fn a_command_is_known_by_its_first_words() {
    assert!(starts("unitape", "unitape") && starts("cargo xtask test --quick", "cargo xtask test"));
    assert!(!starts("unitaped", "unitape") && !starts("cargo xtasks", "cargo xtask test"));
    assert_eq!(without_environment("A=1 B=x cargo test"), "cargo test");
    assert_eq!(without_environment("unitape x --feed a=b"), "unitape x --feed a=b");
}
