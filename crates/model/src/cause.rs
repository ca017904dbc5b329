//! On whose side the cause of an error lies.

use std::io::{Error, ErrorKind};

/// On whose side the cause of an error lies; every error of these crates names it with a method `cause`.
///
/// The exit codes of the command line follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCause {
    /// The call: an option or a value that no machine and no data could make right.
    Call,
    /// The data: damaged, missing, refused, of no known format, or other than they were before.
    Data,
    /// Neither: a file, a permission, a disk, a port, a lock, a configuration, another format version.
    Outside,
}

impl ErrorCause {
    /// Returns the cause of an error from the system or a decompressor.
    ///
    /// Wrong content is the fault of the data: unitape's own readers report it with these kinds, and the system never
    /// uses them.
    pub fn from_io(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::InvalidData | ErrorKind::UnexpectedEof | ErrorKind::Other => Self::Data,
            _ => Self::Outside,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_spoilt_files_are_data_and_missing_ones_are_not() {
        let cause_of = |kind: ErrorKind| ErrorCause::from_io(&kind.into());
        for kind in [ErrorKind::InvalidData, ErrorKind::UnexpectedEof, ErrorKind::Other] {
            assert_eq!(cause_of(kind), ErrorCause::Data);
        }
        for kind in [ErrorKind::NotFound, ErrorKind::PermissionDenied, ErrorKind::StorageFull] {
            assert_eq!(cause_of(kind), ErrorCause::Outside);
        }
    }
}
