//! Runs the commands of a step and counts what their test runners say.

use std::cmp::Ordering;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// The number of tests that ran, and the output of those that failed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct TestCount {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    /// The name of each failed test and what it wrote, shortened.
    pub(crate) failures: Vec<String>,
}

/// More than this of a failed test's output is left out of the summary; the whole is printed where it ran.
const FAILURE_LINES: usize = 40;

impl std::ops::AddAssign for TestCount {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.failures.extend(other.failures);
    }
}

impl std::fmt::Display for TestCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

impl TestCount {
    /// An error if fewer tests passed.
    pub(crate) fn at_least(&self, minimum: u64) -> Result<(), String> {
        match self.passed {
            passed if passed < minimum => {
                Err(format!("{passed} tests passed, and at least {minimum} are wanted"))
            }
            _ => Ok(()),
        }
    }
}

/// Reads a closing line of Rust's test runner, or one of Node's (`# pass 2`, `# fail 0`).
pub(crate) fn closing_line(line: &str) -> Option<TestCount> {
    let number = |prefix: &str| line.trim_end().strip_prefix(prefix)?.parse().ok();
    if let Some(passed) = number("# pass ") {
        return Some(TestCount { passed, ..TestCount::default() });
    }
    if let Some(failed) = number("# fail ") {
        return Some(TestCount { failed, ..TestCount::default() });
    }
    let rest = line.trim_end().strip_prefix("test result: ")?;
    let (_, numbers) = rest.split_once(". ")?;
    let mut count = TestCount::default();
    let mut field_count = 0;
    for part in numbers.split("; ") {
        let Some((number, word)) = part.split_once(' ') else { continue };
        let field = match word {
            "passed" => &mut count.passed,
            "failed" => &mut count.failed,
            "ignored" => &mut count.skipped,
            _ => continue,
        };
        *field = number.parse().ok()?;
        field_count += 1;
    }
    (field_count == 3).then_some(count)
}

/// Runs a command to its end, its output passed on line by line as it comes, its tests added to `count`.
/// A command that fails is an error that says how it ended.
pub(crate) fn run(command: &mut Command, count: &mut TestCount) -> Result<(), String> {
    let name = command_text(command);
    eprintln!("$ {name}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("`{name}` does not start: {e}"))?;
    if let Some(stdout) = child.stdout.take() {
        let copied = copy_lines(BufReader::new(stdout), &mut std::io::stdout(), count);
        copied.map_err(|e| format!("`{name}`: reading its output: {e}"))?;
    }
    let status = child.wait().map_err(|e| format!("`{name}`: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{name}` ended with {status}")) }
}

fn copy_lines(mut from: impl BufRead, to: &mut impl Write, count: &mut TestCount) -> std::io::Result<()> {
    let mut line = Vec::new();
    // Lines of the failed test that is being reported, with its heading.
    let mut failure_lines: Option<usize> = None;
    while from.read_until(b'\n', &mut line)? != 0 {
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if let Some(line_count) = closing_line(text) {
            *count += line_count;
        }
        if text.starts_with("---- ") && text.ends_with(" ----") {
            count.failures.push(text.to_owned());
            failure_lines = Some(0);
        } else if text == "failures:" || text.starts_with("test result: ") {
            failure_lines = None;
        } else if let (Some(lines), Some(failure)) = (&mut failure_lines, count.failures.last_mut()) {
            *lines += 1;
            match (*lines).cmp(&FAILURE_LINES) {
                Ordering::Less => failure.extend(["\n", text]),
                Ordering::Equal => failure.push_str("\n… (the rest stands above)"),
                Ordering::Greater => {}
            }
        }
        to.write_all(&line)?;
        to.flush()?;
        line.clear();
    }
    Ok(())
}

pub(crate) fn command_text(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let mut text = String::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            text.push_str(&format!("{}={:?} ", name.display(), value));
        }
    }
    text.push_str(&program.to_string_lossy());
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A count that is read wrongly would turn failures into a green run.
    #[test]
    fn closing_lines_of_the_test_runner_are_counted() {
        let ok =
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.10s";
        assert_eq!(closing_line(ok), Some(TestCount { passed: 12, skipped: 1, ..TestCount::default() }));
        let bad = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(closing_line(bad), Some(TestCount { passed: 1, failed: 2, ..TestCount::default() }));
        for line in
            ["", "test result: ok.", "test a ... ok", "test result: ok. x passed; 0 failed; 0 ignored"]
        {
            assert_eq!(closing_line(line), None, "{line:?}");
        }
    }

    /// The runner's lines must stay visible, also the last one without a newline and bytes that are no text.
    #[test]
    fn output_is_passed_on_byte_for_byte() {
        let input: &[u8] = b"a\n\xff\xfe\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured";
        let (mut out, mut count) = (Vec::new(), TestCount::default());
        copy_lines(input, &mut out, &mut count).unwrap();
        assert_eq!(out, input);
        assert_eq!(count.passed, 1);
        assert!(count.at_least(1).is_ok());
        assert!(count.at_least(2).unwrap_err().starts_with("1 tests passed, and at least 2"));
    }

    /// The closing lines are often all that is kept of a run; what failed must be among them.
    #[test]
    fn failed_tests_are_told_again_at_the_end() {
        let many = "more\n".repeat(2 * FAILURE_LINES);
        let input = format!(
            "test a ... FAILED\n\nfailures:\n\n---- m::a stdout ----\nthread panicked\nleft: 1\n\n\
             ---- b stdout ----\n{many}\nfailures:\n    m::a\n\n\
             test result: FAILED. 0 passed; 2 failed; 0 ignored\nnot of a test\n"
        );
        let mut count = TestCount::default();
        copy_lines(input.as_bytes(), &mut Vec::new(), &mut count).unwrap();
        assert_eq!(count.failed, 2);
        assert_eq!(count.failures[0], "---- m::a stdout ----\nthread panicked\nleft: 1\n");
        assert_eq!(count.failures[1].lines().count(), 1 + FAILURE_LINES);
        assert!(count.failures[1].ends_with("(the rest stands above)"));
        assert_eq!(count.failures.len(), 2);
    }

    #[test]
    fn a_command_that_fails_or_does_not_start_is_an_error() {
        let mut count = TestCount::default();
        assert!(run(&mut Command::new("false"), &mut count).unwrap_err().contains("exit status: 1"));
        assert!(
            run(&mut Command::new("no-such-program-here"), &mut count)
                .unwrap_err()
                .contains("does not start")
        );
        assert!(run(Command::new("echo").arg("hello"), &mut count).is_ok());
    }
}
