//! Where the data of a command go: stdout, or a file that has its name only when it is complete.

use super::stdout::{BufferedStdout, stdout};
use super::{CommandFailure, file_failure};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The destination of data.
#[derive(Debug)]
pub enum Destination {
    /// Stdout.
    Stdout(BufferedStdout),
    /// A file.
    File(OutputFile),
}

impl Destination {
    /// Opens the file that `-o` names, or stdout.
    ///
    /// # Errors
    /// Fails if the file cannot be made.
    pub fn open(path: Option<&Path>) -> Result<Self, CommandFailure> {
        match path {
            None => Ok(Self::Stdout(stdout())),
            Some(path) => OutputFile::create(path, MODE).map(Self::File).map_err(|e| file_failure(path, e)),
        }
    }

    /// Writes what is buffered, and gives a file its name.
    ///
    /// # Errors
    /// Fails if the file or stdout refuses the data.
    pub fn finish(self) -> Result<(), CommandFailure> {
        match self {
            Self::Stdout(mut out) => Ok(out.flush()?),
            Self::File(file) => {
                let path = file.final_path.clone();
                file.finish().map_err(|e| file_failure(&path, e))
            }
        }
    }
}

impl Write for Destination {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::File(file) => file.with_file_name(|out| out.write(bytes)),
        }
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.write_all(bytes),
            Self::File(file) => file.with_file_name(|out| out.write_all(bytes)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::File(file) => file.with_file_name(Write::flush),
        }
    }
}

/// Writes a file, as a whole or not at all.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), CommandFailure> {
    write_file_with(path, MODE, bytes)
}

/// Writes a file that nobody but its owner can read, as a whole or not at all.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn write_private_file(path: &Path, bytes: &[u8]) -> Result<(), CommandFailure> {
    write_file_with(path, PRIVATE_MODE, bytes)
}

fn write_file_with(path: &Path, mode: u32, bytes: &[u8]) -> Result<(), CommandFailure> {
    let write = || {
        let mut file = OutputFile::create(path, mode)?;
        file.writer.write_all(bytes)?;
        file.finish()
    };
    write().map_err(|e| file_failure(path, e))
}

/// A file that is being written beside its name. It is removed unless it is finished.
///
/// A device, a pipe and anything else that is no regular file is written in place.
#[derive(Debug)]
pub struct OutputFile {
    final_path: PathBuf,
    /// The file under its name of the meantime.
    part_path: Option<PathBuf>,
    writer: BufWriter<File>,
}

impl OutputFile {
    fn create(path: &Path, mode: u32) -> io::Result<Self> {
        // A link stays, and the file behind it is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if let Ok(metadata) = fs::metadata(&path)
            && !metadata.is_file()
        {
            let out = BufWriter::new(OpenOptions::new().write(true).open(&path)?);
            return Ok(Self { final_path: path, part_path: None, writer: out });
        }
        let mut name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let part = path.with_file_name(name);
        let out = BufWriter::with_capacity(BUFFER_BYTES, open_part(&part, mode)?);
        Ok(Self { final_path: path, part_path: Some(part), writer: out })
    }

    fn finish(mut self) -> io::Result<()> {
        self.writer.flush()?;
        if let Some(part) = &self.part_path {
            // The name must not survive a power loss that the content does not.
            self.writer.get_ref().sync_all()?;
            fs::rename(part, &self.final_path)?;
            self.part_path = None;
        }
        Ok(())
    }

    /// Does something with the file, and names it in the error.
    #[inline]
    fn with_file_name<T>(
        &mut self,
        action: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
    ) -> io::Result<T> {
        let path = &self.final_path;
        action(&mut self.writer).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(part) = &self.part_path {
            _ = fs::remove_file(part);
        }
    }
}

fn open_part(part: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(part)
}

const BUFFER_BYTES: usize = 1 << 16;
/// The permissions of a file, of which the user's mask takes some.
const MODE: u32 = 0o666;
const PRIVATE_MODE: u32 = 0o600;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a failed command leaves a file under its final name, because a user would take the file for complete.
    #[test]
    fn a_file_has_its_name_when_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.csv");
        let names = || fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect::<Vec<_>>();
        fs::write(&path, "before").unwrap();
        let mut out = Destination::open(Some(&path)).unwrap();
        out.write_all(b"a,b\n").unwrap();
        drop(out);
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        assert_eq!(names(), ["rows.csv"]);
        let mut out = Destination::open(Some(&path)).unwrap();
        out.write_all(b"a,b\n").unwrap();
        out.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a,b\n");
        assert_eq!(names(), ["rows.csv"]);
    }

    #[test]
    fn devices_are_written_in_place_and_directories_refused() {
        let mut out = Destination::open(Some(Path::new("/dev/null"))).unwrap();
        out.write_all(b"gone").unwrap();
        out.finish().unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        write_private_file(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let dir = tempfile::tempdir().unwrap();
        assert!(Destination::open(Some(dir.path())).is_err());
    }
}
