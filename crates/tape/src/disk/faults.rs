//! Faults on request, for tests: the n-th system call of a kind fails, once or from then on.
//!
//! ```text
//! arm(Call::Sync, 3, Fault::always(EIO))      in this process
//! UNITAPE_FAULTS=sync:3:5:always,write:1:28   in a process that is started with it: kind, n, errno
//!                                             then nothing, `always`, `short` or `short+always`
//! ```
//!
//! Compiled in with the feature `faults` only, which no product build has. One fault of each kind can be armed;
//! they belong to the process and so to all tapes in it.

use std::sync::OnceLock;

use parking_lot::{Mutex, MutexGuard};

/// Kinds of system calls that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemCall {
    /// Opening a file for writing, or making it.
    Open,
    /// Making a directory.
    MakeDir,
    /// Reserving blocks.
    Allocate,
    /// Giving blocks back.
    Punch,
    /// Changing a file's length.
    SetLen,
    /// Writing at an offset.
    Write,
    /// Giving a file another name.
    Rename,
    /// Removing a file's name.
    Unlink,
    /// Flushing a file.
    Sync,
    /// Flushing a directory.
    SyncDir,
    /// Mapping a file.
    Map,
    /// Advice about mapped pages.
    Advise,
}

impl SystemCall {
    /// All kinds.
    pub const ALL: [Self; 12] = [
        Self::Open,
        Self::MakeDir,
        Self::Allocate,
        Self::Punch,
        Self::SetLen,
        Self::Write,
        Self::Rename,
        Self::Unlink,
        Self::Sync,
        Self::SyncDir,
        Self::Map,
        Self::Advise,
    ];

    /// Returns the name of this operation in `UNITAPE_FAULTS`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::MakeDir => "make_dir",
            Self::Allocate => "allocate",
            Self::Punch => "punch",
            Self::SetLen => "set_len",
            Self::Write => "write",
            Self::Rename => "rename",
            Self::Unlink => "unlink",
            Self::Sync => "sync",
            Self::SyncDir => "sync_dir",
            Self::Map => "map",
            Self::Advise => "advise",
        }
    }
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InjectedFault {
    /// The error's number.
    pub errno: i32,
    /// Also all calls after it.
    pub always: bool,
    /// A write accepts half of its bytes before it fails.
    pub writes_half_first: bool,
}

impl InjectedFault {
    /// Fails one call.
    pub fn once(errno: i32) -> Self {
        Self { errno, always: false, writes_half_first: false }
    }

    /// Fails it and all after it.
    pub fn always(errno: i32) -> Self {
        Self { errno, always: true, writes_half_first: false }
    }
}

/// Fails the `nth` call (from 1) of a kind from now on.
pub fn arm(call: SystemCall, nth: u64, fault: InjectedFault) {
    let mut table = table();
    table[call as usize] = ArmedFault { calls_left: nth, fault: Some(fault), ..ArmedFault::default() };
}

/// Disarms all faults and returns the number of calls that they failed.
pub fn disarm() -> u64 {
    let mut table = table();
    let fired = table.iter().map(|armed| armed.fired).sum();
    *table = [ArmedFault::default(); SystemCall::ALL.len()];
    fired
}

/// Calls failed since the faults were armed.
pub fn fired() -> u64 {
    table().iter().map(|armed| armed.fired).sum()
}

/// Calls of a kind since the last [`arm`] of it or [`disarm`].
pub fn calls(call: SystemCall) -> u64 {
    table()[call as usize].calls
}

/// Returns the injected fault for a call, if a fault is armed and due.
pub(crate) fn take_fault(call: SystemCall) -> Option<InjectedFault> {
    let mut table = table();
    let armed = &mut table[call as usize];
    armed.calls += 1;
    let fault = armed.fault?;
    if armed.calls_left > 1 {
        armed.calls_left -= 1;
        return None;
    }
    if !fault.always {
        armed.fault = None;
    }
    armed.fired += 1;
    Some(fault)
}

#[derive(Clone, Copy, Default)]
struct ArmedFault {
    calls_left: u64,
    fault: Option<InjectedFault>,
    calls: u64,
    fired: u64,
}

fn table() -> MutexGuard<'static, [ArmedFault; SystemCall::ALL.len()]> {
    static TABLE: OnceLock<Mutex<[ArmedFault; SystemCall::ALL.len()]>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let text = std::env::var("UNITAPE_FAULTS").unwrap_or_default();
        let mut table = [ArmedFault::default(); SystemCall::ALL.len()];
        for part in text.split(',').filter(|part| !part.is_empty()) {
            // A test that asks for a fault and does not get it would pass for nothing.
            let (call, nth, fault) = parse(part).unwrap_or_else(|| panic!("UNITAPE_FAULTS: {part:?}"));
            table[call as usize] =
                ArmedFault { calls_left: nth, fault: Some(fault), ..ArmedFault::default() };
        }
        Mutex::new(table)
    });
    table.lock()
}

fn parse(text: &str) -> Option<(SystemCall, u64, InjectedFault)> {
    let mut fields = text.split(':');
    let name = fields.next()?;
    let call = SystemCall::ALL.into_iter().find(|call| call.name() == name)?;
    let nth = fields.next()?.parse().ok()?;
    let errno = fields.next()?.parse().ok()?;
    let mut fault = InjectedFault::once(errno);
    for word in fields.next().unwrap_or_default().split('+').filter(|word| !word.is_empty()) {
        match word {
            "always" => fault.always = true,
            "short" => fault.writes_half_first = true,
            _ => return None,
        }
    }
    fields.next().is_none().then_some((call, nth, fault))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fault that is read wrongly is one that is not tested.
    #[test]
    fn what_the_environment_says_is_read() {
        assert_eq!(parse("sync:3:5"), Some((SystemCall::Sync, 3, InjectedFault::once(5))));
        assert_eq!(parse("sync_dir:1:30:always"), Some((SystemCall::SyncDir, 1, InjectedFault::always(30))));
        let short = InjectedFault { writes_half_first: true, ..InjectedFault::always(28) };
        assert_eq!(parse("write:2:28:short+always"), Some((SystemCall::Write, 2, short)));
        for bad in ["sync", "sync:x:5", "none:1:5", "sync:1:5:ever", "sync:1:5:always:more"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
