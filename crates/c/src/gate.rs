//! Gates for C: as a publication declares them, and as a reader holds one.

use std::ffi::c_char;
use std::slice;
use std::time::Duration;

use unitape_model::Position;
use unitape_tape::{GateHandle, GatePolicy};

use crate::argument::{Argument, HandlePointer, Input, Output, exported};
use crate::call::Handle;
use crate::error::{Error, code};

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
        let unitape_tape::GateDrops { count, bytes, first_position: first, last_position: last } = dropped;
        Self { count, bytes, first: first.0, last: last.0 }
    }
}

impl From<unitape_tape::GateStatus> for GateStanding {
    fn from(gate: unitape_tape::GateStatus) -> Self {
        Self {
            position: gate.position.0,
            dropped: gate.drops.into(),
            waits: gate.wait_count,
            alive: gate.alive.into(),
            reserved: 0,
        }
    }
}

const GATE_WAIT: u32 = 0;
const GATE_DROP: u32 = 1;

/// No publication has more gates than this. A greater number was never set.
const GATES_MAX: u64 = 1024;

/// How long a publication waits for a reader by default.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Reads the gates that the options declare.
///
/// # Safety
/// The caller must pass null or a pointer to `count` gates. Each pointer in a gate must be null or end with a zero.
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
    let read_gate = |gate: &Gate| {
        let policy = match (gate.policy, gate.timeout_ns) {
            (GATE_WAIT, 0) => GatePolicy::Wait { timeout: TIMEOUT },
            (GATE_WAIT, ns) => GatePolicy::Wait { timeout: Duration::from_nanos(ns) },
            (GATE_DROP, 0) => GatePolicy::Drop,
            (GATE_DROP, _) => {
                return Err(Error::Argument("a gate that drops has no timeout_ns".to_owned()));
            }
            (code, _) => return Err(Error::Argument(format!("a policy {code} is unknown"))),
        };
        if gate.required > 1 || gate.reserved != 0 {
            return Err(Error::Argument("required is 0 or 1, and reserved is 0".to_owned()));
        }
        // SAFETY: null or a C string, by the contract of `read`.
        let reader = unsafe { Input::from_c(gate.reader) }.word("reader")?.to_owned();
        let (ahead_bytes, required) = (gate.ahead_bytes, gate.required == 1);
        Ok(unitape_tape::Gate { reader, ahead_bytes, policy, holds_when_absent: required })
    };
    gates.iter().map(read_gate).collect()
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

exported! {
    fn unitape_gate_attach(
        dir: Input<c_char>,
        reader: Input<c_char>,
        position: u64,
        hold: Output<*mut Handle<OpenGateHold>>,
    ) -> i32 {
        hold.require("hold")?;
        let (dir, reader) = (dir.path("dir")?, reader.word("reader")?);
        let gate = GateHandle::attach(dir, reader, Position(position))?;
        hold.write(Handle::give(OpenGateHold { gate }));
        Ok(code::OK)
    }

    fn unitape_gate_detach(hold: HandlePointer<OpenGateHold>) -> i32 {
        drop(hold.take_object()?);
        Ok(code::OK)
    }

    fn unitape_gate_advance(hold: &mut OpenGateHold, position: u64) -> i32 {
        hold.gate.advance(Position(position));
        Ok(code::OK)
    }

    fn unitape_gate_rewind(hold: &mut OpenGateHold, position: u64) -> i32 {
        hold.gate.rewind(Position(position));
        Ok(code::OK)
    }

    fn unitape_gate_is_heeded(hold: &mut OpenGateHold) -> i32 {
        Ok(i32::from(hold.gate.is_heeded()))
    }

    fn unitape_gate_dropped(hold: &mut OpenGateHold, dropped: Output<Dropped>) -> i32 {
        dropped.require("dropped")?;
        dropped.write(hold.gate.dropped().into());
        Ok(code::OK)
    }
}
