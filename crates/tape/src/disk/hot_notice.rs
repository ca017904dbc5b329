//! The notice about hot segments that a tape names and does not use.

use std::path::PathBuf;

/// The hot segments that a tape names and does not use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HotNotice {
    /// The tape is a copy: the hot segments belong to the tape that it was copied from.
    Copy {
        /// The hot directory.
        hot: PathBuf,
        /// Where the tape was that it was copied from.
        tape: PathBuf,
    },
    /// The hot segments belong to a tape that is not there any more: this one was copied or moved from it.
    Orphan {
        /// The hot directory.
        hot: PathBuf,
        /// The path where that tape was; `None` if an earlier version wrote it.
        tape: Option<PathBuf>,
    },
    /// The tape has hot segments, and a file that says where or whose they are is lost, damaged or another's.
    Doubtful {
        /// The hot directory; `None` if no file names it any more.
        hot: Option<PathBuf>,
        /// The reason.
        reason: &'static str,
    },
    /// `run/hot` names a directory that is no hot directory of this tape.
    Foreign {
        /// The directory.
        hot: PathBuf,
    },
    /// An earlier version made the hot directory: its segments are read, but unitape removes nothing there.
    Early {
        /// The hot directory.
        hot: PathBuf,
    },
}

impl HotNotice {
    /// Describes the problem without its remedy if the newest part may be missing; otherwise returns the whole notice.
    pub(crate) fn fault(&self) -> String {
        let part = "the newest part of this tape may be in";
        match self {
            Self::Orphan { hot, tape: Some(tape) } => {
                let (hot, tape) = (hot.display(), tape.display());
                format!("{part} the hot segments in {hot}, which belong to the tape that was at {tape}")
            }
            Self::Orphan { hot, tape: None } => {
                format!(
                    "{part} the hot segments in {}, which belong to a tape at another place",
                    hot.display()
                )
            }
            Self::Doubtful { hot: Some(hot), reason } => {
                format!("{part} the hot segments in {}: {reason}", hot.display())
            }
            Self::Doubtful { hot: None, reason: cause } => {
                format!("{part} hot segments that nothing names: {cause}")
            }
            Self::Copy { .. } | Self::Foreign { .. } | Self::Early { .. } => self.to_string(),
        }
    }

    /// Returns whether the newest part of the tape may be in hot segments that no process reads. A writer refuses such
    /// a tape.
    pub fn may_miss_part(&self) -> bool {
        matches!(self, Self::Orphan { .. } | Self::Doubtful { .. })
    }
}

/// Remedies where the newest part may be in hot segments.
pub(crate) const HOT_WAYS: &str = "`unitape tape hot DIR --adopt` brings them onto this tape, \
                                   `unitape tape hot DIR --forget` opens it without them";

impl std::fmt::Display for HotNotice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Copy { hot, tape } => write!(
                f,
                "this tape is a copy: it is opened from its own files; the hot segments in {} belong to {}",
                hot.display(),
                tape.display()
            ),
            Self::Orphan { .. } | Self::Doubtful { .. } => write!(f, "{}; {HOT_WAYS}", self.fault()),
            Self::Foreign { hot } => write!(
                f,
                "run/hot names {}, which is no hot directory of this tape; it is neither read nor changed",
                hot.display()
            ),
            Self::Early { hot } => write!(
                f,
                "an earlier version made the hot directory {}; the next writer records its segments and leaves it: remove it \
                 once the tape is closed",
                hot.display()
            ),
        }
    }
}
