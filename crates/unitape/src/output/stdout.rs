//! Stdout: buffered, and no error of it is lost.
//!
//! A reader that closes its end has seen enough, which is no error. Anything else that stdout refuses is one, also when
//! a buffer is flushed as it is dropped: [`BufferedStdout`] then leaves a note, and [`finish`] finds it when the command ends.

use super::CommandFailure;
use std::fmt;
use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;

/// Buffered stdout; flush it before the command ends.
#[derive(Debug)]
pub struct BufferedStdout(BufWriter<StdoutDescriptor>);

/// Locks stdout and buffers it.
pub fn stdout() -> BufferedStdout {
    BufferedStdout(BufWriter::with_capacity(BUFFER_BYTES, unbuffered()))
}

/// Locks stdout without a buffer, for a line that is written as a whole.
pub fn unbuffered() -> StdoutDescriptor {
    StdoutDescriptor(io::stdout().lock())
}

/// Reports the error of a dropped writer.
///
/// # Errors
/// Fails if a dropped writer had an error.
pub fn finish() -> Result<(), CommandFailure> {
    match DROPPED.get() {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// The error of stdout; inside the [`io::Error`] that its writers return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StdoutError {
    kind: ErrorKind,
    message: String,
}

impl StdoutError {
    /// Finds it in an error or in the causes of that.
    pub fn find<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e Self> {
        let mut cause = Some(error);
        while let Some(e) = cause {
            let inner = e.downcast_ref::<io::Error>().and_then(|e| e.get_ref()?.downcast_ref());
            if let Some(stdout_error) = inner.or_else(|| e.downcast_ref()) {
                return Some(stdout_error);
            }
            cause = e.source();
        }
        None
    }
}

impl From<&StdoutError> for CommandFailure {
    fn from(error: &StdoutError) -> Self {
        match error.kind {
            ErrorKind::BrokenPipe => Self::ClosedStdout,
            _ => Self::Error(error.to_string()),
        }
    }
}

impl fmt::Display for StdoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write to stdout: {}; the output is not complete", self.message)
    }
}

impl std::error::Error for StdoutError {}

impl Write for BufferedStdout {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    // A line of JSON is many short writes; that of the trait loops around each.
    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Drop for BufferedStdout {
    fn drop(&mut self) {
        if let Err(error) = self.0.flush()
            && let Some(stdout_error) = StdoutError::find(&error)
        {
            // The first one says why; later ones follow from it.
            _ = DROPPED.set(stdout_error.clone());
        }
    }
}

/// The descriptor itself. The standard library's own writer swallows what a descriptor refuses that
/// may only be read.
#[derive(Debug)]
pub struct StdoutDescriptor(StdoutLock<'static>);

impl Write for StdoutDescriptor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        rustix::io::write(self.0.as_fd(), bytes).map_err(|errno| {
            let error = io::Error::from(errno);
            match error.kind() {
                ErrorKind::Interrupted => error,
                kind => io::Error::new(kind, StdoutError { kind, message: error.to_string() }),
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

static DROPPED: OnceLock<StdoutError> = OnceLock::new();

const BUFFER_BYTES: usize = 1 << 16;
