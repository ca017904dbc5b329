//! The tape for C: publications, subscriptions and gates behind opaque handles, as `include/unitape.h`
//! declares them; and handlers of market data, as `include/unitape_handler.h` does.
//!
//! ```text
//!   C caller                 this crate                              unitape-tape
//!  ┌────────────┐ handle  ┌────────────────────────────────┐   ┌──────────────────────┐
//!  │ offer,     ├────────▶│ null? busy? ─▶ catch_unwind ─▶ ├──▶│ Publication, Draft,  │
//!  │ claim, next│◀────────┤ code, thread's last error      │◀──┤ Batch, Subscription  │
//!  └────────────┘  code   └────────────────────────────────┘   └──────────────────────┘
//! ```
//!
//! The header is the contract and documents each function; it is written by hand, and `tests/header.rs` compiles it
//! against this crate. From Rust, use `unitape-tape` itself.
//!
//! Invariant: no panic leaves a function of this crate (`call::run`), and an object that a panic left half changed is
//! not used again. Invariant: the pointers of C become safe values in one place (`argument::exported`), by the contract
//! in the header. Invariant: at most one `&mut` to the object of a handle, because a handle that is in use is refused
//! ([`call::Handle`]).
//!
//! It does not make a handle safe to share between threads at once. It does not check that a pointer that is not null
//! is a live handle. The header states both rules.

mod argument;
mod call;
mod callbacks;
mod cursor;
mod error;
mod frames;
mod gate;
mod handler;
mod market;
mod options;
mod publication;
mod subscription;

pub use call::Handle;
pub use cursor::*;
pub use error::code;
pub use gate::*;
pub use handler::*;
pub use market::{Book, Level, LevelChange, MarketCallback, MarketRecord};
pub use options::*;
pub use publication::*;
pub use subscription::*;

use std::ffi::c_char;

/// Version of the functions and structs of the header; a program made for another does not fit.
pub const ABI: u32 = 1;

/// Implements `unitape_abi` of the header.
#[unsafe(no_mangle)]
pub extern "C" fn unitape_abi() -> u32 {
    ABI
}

/// Implements `unitape_version` of the header.
#[unsafe(no_mangle)]
pub extern "C" fn unitape_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Implements `unitape_last_error` of the header.
#[unsafe(no_mangle)]
pub extern "C" fn unitape_last_error() -> *const c_char {
    error::last()
}

/// Implements `unitape_code_name` of the header.
#[unsafe(no_mangle)]
pub extern "C" fn unitape_code_name(value: i32) -> *const c_char {
    code::name(value).as_ptr()
}

/// Implements `unitape_frame_header` of the header.
#[unsafe(no_mangle)]
pub extern "C" fn unitape_frame_header(kind: u8, flags: u8, lines: u16) -> u64 {
    // The eight bytes in the order of memory; on a big-endian machine that is another number.
    unitape_model::FrameHeader::new_unstamped(kind, flags, lines).0.to_le()
}
