//! File systems of a given size, which can be filled.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::directory;

/// A file system of its own in memory; gone with the test.
pub struct Mount(pub tempfile::TempDir);

impl Mount {
    /// None, and a line that says so, where mounting is not permitted.
    pub fn new(options: &str) -> Option<Self> {
        let dir = directory();
        let made = mount(&["-t", "tmpfs", "-o", options, "none"], dir.path());
        if !made {
            eprintln!("mounting is not permitted here: this test sees nothing");
        }
        made.then_some(Self(dir))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let mut command = Command::new("umount");
        let _ = command.arg("--lazy").arg(self.0.path()).stderr(Stdio::null()).status();
    }
}

/// Runs `mount`; false where it is refused.
pub fn mount(arguments: &[&str], at: &Path) -> bool {
    let mut command = Command::new("mount");
    command.args(arguments).arg(at).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

/// Takes all the room there is.
pub fn fill(path: &Path) {
    use std::io::Write;
    let mut file = fs::File::create(path).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
}
