//! Codes for C, and the message of a thread's last error.

use std::cell::RefCell;
use std::ffi::{CString, c_char};

use unitape_tape::Error as Tape;

/// The errors of the header's functions.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A pointer that must point somewhere does not.
    #[error("null: {0} must not be null")]
    Null(&'static str),
    /// A value that the header does not allow.
    #[error("argument: {0}")]
    Argument(String),
    /// A call that the state does not allow.
    #[error("misuse: {0}")]
    Misuse(&'static str),
    /// A caught mistake of unitape.
    #[error("panic: {0}; this handle can only be closed")]
    Panic(String),
    /// The tape's own.
    #[error(transparent)]
    Tape(#[from] Tape),
    /// A handler's own.
    #[error(transparent)]
    Handler(#[from] unitape_marketdata::Error),
}

impl Error {
    /// Keeps the message for `unitape_last_error` and returns the code.
    pub fn store_and_code(&self) -> i32 {
        // Text of the outside (a path) may hold a zero, at which a C string would end.
        let text = self.to_string().replace('\0', "?");
        // While a thread ends its message is gone already; the code is still returned.
        let _ = LAST.try_with(|last| *last.borrow_mut() = CString::new(text).unwrap_or_default());
        self.code()
    }

    fn code(&self) -> i32 {
        match self {
            Self::Null(_) => code::NULL,
            Self::Argument(_) => code::ARGUMENT,
            Self::Misuse(_) => code::MISUSE,
            Self::Panic(_) => code::PANIC,
            Self::Handler(error) => match error {
                unitape_marketdata::Error::Socket { .. }
                | unitape_marketdata::Error::Read { .. }
                | unitape_marketdata::Error::Receive { .. } => code::IO,
                unitape_marketdata::Error::Mapping { .. } => code::OPTION,
                unitape_marketdata::Error::Container { .. } => code::DAMAGE,
                unitape_marketdata::Error::NotLive => code::MISUSE,
                unitape_marketdata::Error::Channel(_)
                | unitape_marketdata::Error::ChannelOfCapture { .. } => code::ARGUMENT,
                _ => code::OTHER,
            },
            Self::Tape(error) => match error {
                Tape::Io { .. } => code::IO,
                Tape::DiskFull { .. } => code::DISK_FULL,
                Tape::Damage { .. } => code::DAMAGE,
                Tape::NotATape { .. } => code::NOT_A_TAPE,
                Tape::ForeignVersion { .. } => code::FOREIGN_VERSION,
                Tape::ForeignTape { .. } => code::FOREIGN_TAPE,
                Tape::Locked { .. } => code::LOCKED,
                Tape::Option(_) => code::OPTION,
                Tape::BadUnit { .. } => code::BAD_UNIT,
                Tape::ClaimAbandoned(_) => code::CLAIM_ABANDONED,
                Tape::ClaimsOutstanding(_) => code::CLAIMS_OUTSTANDING,
                Tape::RecorderBehind { .. } => code::RECORDER_BEHIND,
                Tape::Retained { .. } | Tape::RetainedEvent { .. } => code::RETAINED,
                Tape::NoFrame(_) => code::NO_FRAME,
                Tape::NotDurable { .. } => code::NOT_DURABLE,
                Tape::DurabilityFailed { .. } => code::DURABILITY_FAILED,
                Tape::NoRecorder { .. } => code::NO_RECORDER,
                Tape::BeyondEnd { .. } => code::BEYOND_END,
                Tape::NotRemoved { .. } => code::NOT_REMOVED,
                Tape::Clock { .. } => code::CLOCK,
                Tape::Gated { .. } => code::GATED,
                Tape::Dropped { .. } => code::DROPPED,
                Tape::NoGate { .. } => code::NO_GATE,
                Tape::Rewound { .. } => code::REWOUND,
                Tape::Fenced { .. } => code::FENCED,
                Tape::OldEpoch { .. } => code::OLD_EPOCH,
                Tape::Forked { .. } => code::FORKED,
                Tape::UnsafeHot { .. } | Tape::HotElsewhere { .. } => code::HOT,
                _ => code::OTHER,
            },
        }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Returns the thread's last message, which is empty before the first error.
pub(crate) fn last() -> *const c_char {
    // While a thread ends its message is gone already.
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The codes of the header, `UNITAPE_E_…`. They are not given out again once they have a meaning.
pub mod code {
    use std::ffi::CStr;

    macro_rules! codes {
        ($($(#[$doc:meta])* $name:ident = $value:literal),* $(,)?) => {
            $($(#[$doc])* pub const $name: i32 = $value;)*

            /// All of them by name.
            pub const ALL: &[(&CStr, i32)] = &[$(
                (match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a name holds no zero"),
                }, $value)
            ),*];
        };
    }

    // -30, -34 and -35 were of ring tapes, which are gone.
    codes! {
        /// Done.
        OK = 0,
        /// A pointer that must point somewhere is null.
        NULL = -1,
        /// A value that the header does not allow.
        ARGUMENT = -2,
        /// A call that the state does not allow.
        MISUSE = -3,
        /// A mistake of unitape.
        PANIC = -4,
        /// An error that this version of the header has no code for.
        OTHER = -5,
        /// The system refused.
        IO = -10,
        /// No room on the disk or in shared memory.
        DISK_FULL = -11,
        /// A file is damaged.
        DAMAGE = -12,
        /// No tape is there.
        NOT_A_TAPE = -13,
        /// A tape of another version.
        FOREIGN_VERSION = -14,
        /// Another tape than the one asked for.
        FOREIGN_TAPE = -15,
        /// Somebody else has it open.
        LOCKED = -16,
        /// An option cannot be used.
        OPTION = -17,
        /// Too long, or not whole frames.
        BAD_UNIT = -18,
        /// A claim was given up; the publication must be opened again.
        CLAIM_ABANDONED = -19,
        /// Claims are out.
        CLAIMS_OUTSTANDING = -20,
        /// The window of hot segments is full.
        RECORDER_BEHIND = -21,
        /// Removed by retention.
        RETAINED = -22,
        /// No frame starts there.
        NO_FRAME = -23,
        /// Not durable in time.
        NOT_DURABLE = -24,
        /// A flush has failed.
        DURABILITY_FAILED = -25,
        /// No recorder runs that could make it durable.
        NO_RECORDER = -26,
        /// The tape does not reach that position yet.
        BEYOND_END = -27,
        /// Retention could not remove the segments beyond its limits.
        NOT_REMOVED = -28,
        /// The clock is earlier than the times on the tape.
        CLOCK = -29,
        /// A reader that the writer waits for has not come far enough.
        GATED = -31,
        /// Dropped by the policy of a gate.
        DROPPED = -32,
        /// No gate of that name.
        NO_GATE = -33,
        /// The tape was cut back before the place of a reader, which continues at the cut.
        REWOUND = -36,
        /// A later writer has the tape.
        FENCED = -37,
        /// The tape is an older copy.
        OLD_EPOCH = -38,
        /// A child of the process that opened it used or closed the publication.
        FORKED = -39,
        /// Hot segments that belong to another tape, or that another user could write to.
        HOT = -40,
    }

    /// Returns the name of a code, or `?`.
    pub(crate) fn name(value: i32) -> &'static CStr {
        ALL.iter().find(|(_, code)| *code == value).map_or(c"?", |(name, _)| name)
    }
}
