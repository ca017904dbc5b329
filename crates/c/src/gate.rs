//! Gates for C: as a publication declares them, and as a reader holds one.

use std::ffi::c_char;
use std::slice;
use std::time::Duration;

use unitape_model::Position;
use unitape_tape::{GateHandle, GatePolicy};

use crate::call::{Handle, run};
use crate::error::{Error, code};
use crate::text;

/// `unitape_gate` of the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs)] // documented in the header
pub struct Gate {
    pub reader: *const c_char,
    pub ahead_bytes: u64,
    pub timeout_ns: u64,
    pub policy: u32,
    pub required: u32,
    pub reserved: u64,
}

/// `unitape_dropped` of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)] // documented in the header
pub struct Dropped {
    pub count: u64,
    pub bytes: u64,
    pub first: u64,
    pub last: u64,
}

/// `unitape_gate_standing` of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)] // documented in the header
pub struct GateStanding {
    pub position: u64,
    pub dropped: Dropped,
    pub waits: u64,
    pub alive: u32,
    pub reserved: u32,
}

impl From<unitape_tape::GateDrops> for Dropped {
    fn from(dropped: unitape_tape::GateDrops) -> Self {
        let unitape_tape::GateDrops { count, bytes, first, last } = dropped;
        Self { count, bytes, first: first.0, last: last.0 }
    }
}

impl From<unitape_tape::GateStatus> for GateStanding {
    fn from(gate: unitape_tape::GateStatus) -> Self {
        Self {
            position: gate.position.0,
            dropped: gate.dropped.into(),
            waits: gate.waits,
            alive: gate.alive.into(),
            reserved: 0,
        }
    }
}

const GATE_WAIT: u32 = 0;
const GATE_DROP: u32 = 1;

/// No publication has more gates than this: a number beyond it is one that was never set.
const GATES_MAX: u64 = 1024;

/// How long a publication waits for a reader unless the caller says otherwise.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The gates that the options declare.
///
/// # Safety
/// `gates` is null or points to `count` of them, and their pointers are null or end with a zero.
pub(crate) unsafe fn read(gates: *const Gate, count: u64) -> Result<Vec<unitape_tape::Gate>, Error> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if gates.is_null() {
        return Err(Error::Null("the gates"));
    }
    if count > GATES_MAX {
        return Err(Error::Argument(format!("{count} gates are too many, {GATES_MAX} at most")));
    }
    // SAFETY: not null, checked above; by unitape.h, `gates` has `count` gates.
    let gates = unsafe { slice::from_raw_parts(gates, count as usize) };
    let known = |gate: &Gate| {
        let policy = match (gate.policy, gate.timeout_ns) {
            (GATE_WAIT, 0) => GatePolicy::Wait { timeout: TIMEOUT },
            (GATE_WAIT, ns) => GatePolicy::Wait { timeout: Duration::from_nanos(ns) },
            (GATE_DROP, 0) => GatePolicy::Drop,
            (GATE_DROP, _) => {
                return Err(Error::Argument("a gate that drops has no timeout_ns".to_owned()));
            }
            (other, _) => return Err(Error::Argument(format!("a policy {other} is unknown"))),
        };
        if gate.required > 1 || gate.reserved != 0 {
            return Err(Error::Argument("required is 0 or 1, and reserved is 0".to_owned()));
        }
        // SAFETY: null or a C string, as the caller vouches.
        let reader = unsafe { text::word(gate.reader, "reader") }?.to_owned();
        let (ahead_bytes, required) = (gate.ahead_bytes, gate.required == 1);
        Ok(unitape_tape::Gate { reader, ahead_bytes, policy, required })
    };
    gates.iter().map(known).collect()
}

/// A reader's hold on its gate, behind a handle.
#[derive(Debug)]
pub struct OpenGateHold {
    gate: GateHandle,
}

const _: () = {
    const fn may_be_sent<T: Send>() {}
    may_be_sent::<OpenGateHold>();
};

type GateHoldHandle = Handle<OpenGateHold>;

/// `unitape_gate_attach` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_gate_attach(
    dir: *const c_char,
    reader: *const c_char,
    position: u64,
    hold: *mut *mut GateHoldHandle,
) -> i32 {
    run(|| {
        // SAFETY: all as the header asks.
        let (place, dir, reader) = unsafe {
            (text::require_place(hold, "hold")?, text::path(dir, "dir")?, text::word(reader, "reader")?)
        };
        let gate = GateHandle::attach(dir, reader, Position(position))?;
        // SAFETY: as above.
        unsafe { text::put(place, Handle::give(OpenGateHold { gate })) };
        Ok(code::OK)
    })
}

/// `unitape_gate_detach` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_gate_detach(hold: *mut GateHoldHandle) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `hold` is null or a live handle, which only this thread uses now.
        drop(unsafe { Handle::take(hold) }?);
        Ok(code::OK)
    })
}

/// `unitape_gate_advance` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_gate_advance(hold: *mut GateHoldHandle, position: u64) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `hold` is null or a live handle, which only this thread uses now.
        unsafe {
            Handle::with(hold, |h| {
                h.gate.advance(Position(position));
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_gate_rewind` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_gate_rewind(hold: *mut GateHoldHandle, position: u64) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `hold` is null or a live handle, which only this thread uses now.
        unsafe {
            Handle::with(hold, |h| {
                h.gate.rewind(Position(position));
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_gate_is_heeded` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_gate_is_heeded(hold: *mut GateHoldHandle) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `hold` is null or a live handle, which only this thread uses now.
        unsafe { Handle::with(hold, |h| Ok(i32::from(h.gate.is_heeded()))) }
    })
}

/// `unitape_gate_dropped` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_gate_dropped(hold: *mut GateHoldHandle, dropped: *mut Dropped) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `hold` is null or a live handle, which only this thread uses now.
        unsafe {
            Handle::with(hold, |h| {
                text::put(text::require_place(dropped, "dropped")?, h.gate.dropped().into());
                Ok(code::OK)
            })
        }
    })
}
