//! The options of C for opening a publication's tape.

use std::ffi::c_char;
use std::mem::{offset_of, size_of};
use std::time::Duration;

use unitape_tape::{Backing, RecorderLocation, SyncPolicy};

use crate::argument::{Argument, Input, exported};
use crate::error::{Error, code};
use crate::gate::{self, Gate};

/// `unitape_options` of the header. Zero in a field means the default. So the library understands callers of an older
/// header with a shorter struct, and of a newer header with a longer struct.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs)] // documented in the header
pub struct Options {
    pub size: u32,
    pub backing: u32,
    pub segment_bytes: u64,
    pub hot_dir: *const c_char,
    pub window_segments: u32,
    pub recorder: u32,
    pub sync_bytes: u64,
    pub sync_interval_ns: u64,
    pub retain_bytes: u64,
    pub retain_age_ns: u64,
    pub retain_days: u64,
    pub retain_notice_ns: u64,
    pub retain_cursor_bytes: u64,
    pub prefault_bytes: u64,
    pub recorder_wait_ns: u64,
    pub flags: u64,
    pub gates: *const Gate,
    pub gate_count: u64,
    pub epoch_min: u64,
}

const BACKING_FILE: u32 = 0;
const BACKING_HOT: u32 = 1;
const RECORDER_THREAD: u32 = 0;
const RECORDER_EXTERNAL: u32 = 1;
const TRUNCATE_DAMAGE: u64 = 1 << 0;
const NO_PREFAULT: u64 = 1 << 1;

const EMPTY: Options = Options {
    size: size_of::<Options>() as u32,
    backing: BACKING_FILE,
    segment_bytes: 0,
    hot_dir: std::ptr::null(),
    window_segments: 0,
    recorder: RECORDER_THREAD,
    sync_bytes: 0,
    sync_interval_ns: 0,
    retain_bytes: 0,
    retain_age_ns: 0,
    retain_days: 0,
    retain_notice_ns: 0,
    retain_cursor_bytes: 0,
    prefault_bytes: 0,
    recorder_wait_ns: 0,
    flags: 0,
    gates: std::ptr::null(),
    gate_count: 0,
    epoch_min: 0,
};

exported! {
    fn unitape_options_init(options: *mut Options, size: usize) -> i32 {
        if options.is_null() {
            return Err(Error::Null("the options"));
        }
        let stated = u32::try_from(size).ok().filter(|&size| size as usize >= size_of::<u32>());
        let Some(stated) = stated else {
            return Err(Error::Argument(format!("options of {size} bytes are none")));
        };
        // SAFETY: not null, and by unitape.h `size` bytes are there, which hold the first field.
        unsafe {
            options.cast::<u8>().write_bytes(0, size);
            options.cast::<u32>().write(stated);
        }
        Ok(code::OK)
    }
}

impl Input<Options> {
    /// Reads the options; null: all defaults.
    ///
    /// # Errors
    /// Fails if this library does not know an option, or if options exclude each other.
    pub(crate) fn writer_options(&self) -> Result<unitape_tape::WriterOptions, Error> {
        // SAFETY: null or as many bytes as the first field says, with such pointers, by the contract of `from_c` and
        // unitape.h.
        unsafe { read(self.pointer()) }
    }
}

/// Reads the options; null: all defaults.
///
/// # Safety
/// The caller must pass null or a pointer to as many bytes as the first field says. Each pointer in the options must be
/// null or end with a zero.
unsafe fn read(options: *const Options) -> Result<unitape_tape::WriterOptions, Error> {
    // SAFETY: by the contract of `read`, `options` is null or has as many bytes as its first field says.
    let c_options = unsafe { read_zero_extended(options) }?;
    let mut options = unitape_tape::WriterOptions::default();
    if c_options.segment_bytes > 0 {
        options.segment_bytes = c_options.segment_bytes;
    }
    options.backing = match c_options.backing {
        BACKING_FILE if c_options.hot_dir.is_null() && c_options.window_segments == 0 => Backing::File,
        BACKING_FILE => {
            let message = "hot_dir and window_segments are for a hot backing";
            return Err(Error::Argument(message.to_owned()));
        }
        BACKING_HOT => {
            let dir = match c_options.hot_dir.is_null() {
                true => None,
                // SAFETY: by unitape.h, `given.hot_dir` is null or a C string.
                false => Some(unsafe { Input::from_c(c_options.hot_dir) }.path("hot_dir")?.to_owned()),
            };
            let window_segments =
                if c_options.window_segments == 0 { WINDOW_SEGMENTS } else { c_options.window_segments };
            Backing::Hot { dir, window_segments }
        }
        other => return Err(Error::Argument(format!("a backing {other} is unknown"))),
    };
    options.recorder = match c_options.recorder {
        RECORDER_THREAD => RecorderLocation::Thread,
        RECORDER_EXTERNAL => RecorderLocation::External,
        other => return Err(Error::Argument(format!("a recorder {other} is unknown"))),
    };
    if c_options.sync_bytes > 0 || c_options.sync_interval_ns > 0 {
        let or_never = |value: u64| if value == 0 { u64::MAX } else { value };
        options.sync_policy = SyncPolicy::Every {
            bytes: or_never(c_options.sync_bytes),
            interval: Duration::from_nanos(or_never(c_options.sync_interval_ns)),
        };
    }
    let set = |value: u64| Some(value).filter(|&value| value > 0);
    let days =
        |value| u32::try_from(value).map_err(|_| Error::Argument(format!("{value} days are too many")));
    options.retention.bytes = set(c_options.retain_bytes);
    options.retention.age = set(c_options.retain_age_ns).map(Duration::from_nanos);
    options.retention.days = set(c_options.retain_days).map(days).transpose()?;
    options.retention.hold_for_cursors = set(c_options.retain_cursor_bytes);
    if let Some(notice) = set(c_options.retain_notice_ns) {
        options.retention.notice_period = Duration::from_nanos(notice);
    }
    if c_options.flags & !(TRUNCATE_DAMAGE | NO_PREFAULT) != 0 {
        return Err(Error::Argument(format!("flags {:#x} are unknown", c_options.flags)));
    }
    if c_options.flags & NO_PREFAULT != 0 {
        options.prefault_bytes = 0;
    } else if c_options.prefault_bytes > 0 {
        options.prefault_bytes = c_options.prefault_bytes;
    }
    options.truncate_damage = c_options.flags & TRUNCATE_DAMAGE != 0;
    // SAFETY: by unitape.h, `gates` is null or has `gate_count` gates.
    options.gates = unsafe { gate::read(c_options.gates, c_options.gate_count) }?;
    options.epoch_min = c_options.epoch_min;
    if c_options.recorder_wait_ns > 0 {
        options.recorder_wait = Duration::from_nanos(c_options.recorder_wait_ns);
    }
    Ok(options)
}

/// Reads the options in the current layout. Missing fields of a shorter struct are zero; extra fields of a longer
/// struct must be zero.
unsafe fn read_zero_extended(options: *const Options) -> Result<Options, Error> {
    let mut c_options = EMPTY;
    if options.is_null() {
        return Ok(c_options);
    }
    // SAFETY: not null, and its first field is there, as the caller vouches.
    let size = unsafe { options.cast::<u32>().read() } as usize;
    if !(offset_of!(Options, segment_bytes)..=SIZE_MAX).contains(&size) || !size.is_multiple_of(8) {
        let message = format!("options of {size} bytes are none; set them with unitape_options_init");
        return Err(Error::Argument(message));
    }
    // SAFETY: the first field says how many bytes are there.
    let bytes = unsafe { std::slice::from_raw_parts(options.cast::<u8>(), size) };
    let (known_bytes, extra_bytes) = bytes.split_at(size.min(size_of::<Options>()));
    if extra_bytes.iter().any(|&b| b != 0) {
        let message = "the options say what this library is too old to know";
        return Err(Error::Argument(message.to_owned()));
    }
    // SAFETY: `known` is not longer than the struct, all of whose bytes are valid in any combination: numbers, and
    // pointers that are looked at only as the caller allows.
    unsafe {
        std::ptr::from_mut(&mut c_options).cast::<u8>().copy_from(known_bytes.as_ptr(), known_bytes.len())
    };
    Ok(c_options)
}

/// The default number of segments of a hot tape.
const WINDOW_SEGMENTS: u32 = 8;

/// No header has options longer than this. A greater size was never set.
const SIZE_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn read_bytes(bytes: &mut [u64], size: u32) -> Result<unitape_tape::WriterOptions, Error> {
        bytes[0] = bytes[0] & !0xffff_ffff | u64::from(size);
        assert!(size as usize <= bytes.len() * 8);
        // SAFETY: as many bytes are there, aligned, and the pointer in them is null.
        unsafe { read(bytes.as_ptr().cast()) }
    }

    /// Fails if a program built with an older or newer header gets other options than it set, without an error.
    #[test]
    fn shorter_and_longer_structs_are_understood() {
        let mut bytes = [0u64; 64];
        bytes[1] = 1 << 20;
        assert_eq!(read_bytes(&mut bytes, 16).unwrap().segment_bytes, 1 << 20);
        assert_eq!(read_bytes(&mut bytes, 512).unwrap().segment_bytes, 1 << 20);
        assert_eq!(offset_of!(Options, recorder_wait_ns), 96);
        bytes[12] = 7;
        let wait = |size| read_bytes(&mut bytes.clone(), size).unwrap().recorder_wait;
        assert_eq!(wait(104), Duration::from_nanos(7));
        assert_eq!(wait(96), unitape_tape::WriterOptions::default().recorder_wait);
        bytes[63] = 1;
        assert!(matches!(read_bytes(&mut bytes, 512), Err(Error::Argument(_))));
        for size in [0, 1, 4, 15, 5000] {
            assert!(matches!(read_bytes(&mut [0; 1024], size), Err(Error::Argument(_))), "{size}");
        }
    }

    /// Fails if a gate is misread, because it would then hold up nobody, or everybody.
    #[test]
    fn gates_are_read() {
        let gate = |policy, timeout_ns| Gate {
            reader: c"risk".as_ptr(),
            ahead_bytes: 4096,
            timeout_ns,
            policy,
            required: 1,
            reserved: 0,
        };
        // SAFETY: whole options, whose gates are there.
        let read = |gates: &[Gate], gate_count| unsafe {
            let options = Options { gates: gates.as_ptr(), gate_count, ..EMPTY };
            read(&raw const options)
        };
        let good = [gate(0, 7), gate(0, 0), gate(1, 0)];
        let gates = read(&good, 3).unwrap().gates;
        let wait = |timeout| unitape_tape::GatePolicy::Wait { timeout };
        let policies =
            [wait(Duration::from_nanos(7)), wait(Duration::from_secs(1)), unitape_tape::GatePolicy::Drop];
        for (gate, policy) in gates.iter().zip(policies) {
            assert_eq!(
                (gate.reader.as_str(), gate.ahead_bytes, gate.holds_when_absent),
                ("risk", 4096, true)
            );
            assert_eq!(gate.policy, policy);
        }
        assert_eq!((gates.len(), read(&good, 0).unwrap().gates.len()), (3, 0));
        for bad in [
            gate(1, 7),
            gate(2, 0),
            Gate { required: 2, ..gate(0, 0) },
            Gate { reserved: 1, ..gate(0, 0) },
            Gate { reader: c"".as_ptr(), ..gate(0, 0) },
        ] {
            assert!(matches!(read(&[bad], 1), Err(Error::Argument(_))), "{bad:?}");
        }
        let nameless = Gate { reader: std::ptr::null(), ..gate(0, 0) };
        assert!(matches!(read(&[nameless], 1), Err(Error::Null(_))));
        assert!(matches!(read(&good, 5000), Err(Error::Argument(_))));
        let null_gates = Options { gate_count: 1, ..EMPTY };
        // SAFETY: null gates are refused before they are looked at.
        let null = unsafe { super::read(&raw const null_gates) };
        assert!(matches!(null, Err(Error::Null(_))));
    }

    /// Fails if a value of a newer header is read as another value.
    #[test]
    fn unknown_values_are_refused() {
        let mut good = EMPTY;
        (good.backing, good.window_segments, good.sync_bytes) = (BACKING_HOT, 4, 1 << 20);
        // SAFETY: whole options, with a null pointer.
        let read = |options: Options| unsafe { read(&raw const options) };
        let options = read(good).unwrap();
        assert_eq!(options.backing, Backing::Hot { dir: None, window_segments: 4 });
        assert_eq!(
            options.sync_policy,
            SyncPolicy::Every { bytes: 1 << 20, interval: Duration::from_nanos(u64::MAX) }
        );
        for bad in [
            Options { backing: 2, ..good },
            Options { backing: BACKING_FILE, ..good },
            Options { recorder: 2, ..good },
            Options { flags: 4, ..good },
        ] {
            assert!(matches!(read(bad), Err(Error::Argument(_))), "{bad:?}");
        }
    }
}
