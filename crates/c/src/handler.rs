//! Handlers of market data for C.

use std::ffi::{c_char, c_void};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use unitape_marketdata::{Handler, InstrumentId, LiveOptions, Packet, Subscription, UnixNanos};

use crate::call::{Handle, run};
use crate::callbacks::{CallbackTable, SubscribedCallback};
use crate::error::Error;
use crate::market::{Book, Level, MarketCallback, NO_NUMBER, side_of};
use crate::text;

/// A handler behind a handle.
#[derive(Debug)]
pub struct OpenHandler {
    handler: Handler,
    callbacks: CallbackTable,
}

// A handle may go from thread to thread; the pointers beside the handler are the caller's own to vouch for.
const _: () = {
    const fn may_be_sent<T: Send>() {}
    may_be_sent::<Handler>();
};

/// `unitape_handler_stats` of the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs)] // documented in the header, here and below
pub struct HandlerStats {
    pub packets: u64,
    pub unknown: u64,
    pub refused: u64,
    pub gaps: u64,
    pub levels: u64,
    pub passed_over: u64,
    pub updates: u64,
    pub trades: u64,
    pub stale: u64,
    pub recovered: u64,
    pub faults: u64,
    pub waiting: u64,
    pub dropped: u64,
}

/// `unitape_line_stats` of the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs)]
pub struct LineStats {
    pub packets: u64,
    pub bytes: u64,
    pub first: u64,
    pub twice: u64,
    pub missed: u64,
    pub reordered: u64,
    pub corrupt: u64,
}

/// `unitape_channel_stats` of the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs)]
pub struct ChannelStats {
    pub name: *const c_char,
    pub name_length: usize,
    pub gaps: u64,
    pub lost: u64,
    pub late: u64,
    pub recovered: u64,
    pub restarts: u64,
    pub lines: [LineStats; 2],
}

const SUBSCRIBE_ALL: u32 = 0;
const SUBSCRIBE_PRODUCT: u32 = 1;
const SUBSCRIBE_GROUP: u32 = 2;
const SUBSCRIBE_INSTRUMENT: u32 = 3;

type HandlerHandle = Handle<OpenHandler>;

/// The subscription that C asks for.
///
/// # Safety
/// `name` is null or a string.
unsafe fn subscription_of(what: u32, name: *const c_char) -> Result<Subscription, Error> {
    if what == SUBSCRIBE_ALL {
        return match name.is_null() {
            true => Ok(Subscription::All),
            false => Err(Error::Argument("everything has no name: it must be null".to_owned())),
        };
    }
    // SAFETY: by unitape.h, `name` is null or a C string.
    let name = unsafe { text::word(name, "name") }?.to_owned();
    match what {
        SUBSCRIBE_PRODUCT => Ok(Subscription::Product(name)),
        SUBSCRIBE_GROUP => Ok(Subscription::Group(name)),
        SUBSCRIBE_INSTRUMENT => Ok(Subscription::Instrument(name)),
        other => Err(Error::Argument(format!("a subscription {other} is unknown"))),
    }
}

/// `unitape_handler_open` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_handler_open(
    config: *const c_char,
    handler: *mut *mut HandlerHandle,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `config` is null or a C string; `handler` is null or has room for its value. The same
        // holds below.
        let (config, handler) = unsafe {
            (text::path(config, "config")?, text::require_place(handler, "the place for the handler")?)
        };
        let opened = OpenHandler { handler: Handler::open(config)?, callbacks: CallbackTable::default() };
        // SAFETY: not null.
        unsafe { handler.write(Handle::give(opened)) };
        Ok(0)
    })
}

/// `unitape_handler_close` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_handler_close(handler: *mut HandlerHandle) -> i32 {
    // SAFETY: by unitape.h, `handler` is null or a live handle, which only this thread uses now.
    run(|| unsafe { Handle::take(handler) }.map(|_| 0))
}

/// `unitape_handler_subscribe` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_handler_subscribe(
    handler: *mut HandlerHandle,
    what: u32,
    name: *const c_char,
    callback: MarketCallback,
    context: *mut c_void,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `handler` is null or a live handle, which only this thread uses now; `name` is null or
        // a C string. The same holds below.
        let subscription = unsafe { subscription_of(what, name) }?;
        let callback = callback.ok_or(Error::Null("the callback"))?;
        let subscribed = SubscribedCallback { subscription: subscription.clone(), callback, context };
        // SAFETY: see above.
        unsafe {
            Handle::with(handler, |this| {
                this.handler.subscribe(subscription);
                this.callbacks.subscribed.push(subscribed);
                this.callbacks.forget_routes();
                Ok(0)
            })
        }
    })
}

/// `unitape_handler_unsubscribe` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_handler_unsubscribe(
    handler: *mut HandlerHandle,
    what: u32,
    name: *const c_char,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `handler` is null or a live handle, which only this thread uses now; `name` is null or
        // a C string. The same holds below.
        let subscription = unsafe { subscription_of(what, name) }?;
        // SAFETY: see above.
        unsafe {
            Handle::with(handler, |this| {
                this.handler.unsubscribe(&subscription);
                let before = this.callbacks.subscribed.len();
                this.callbacks.subscribed.retain(|s| s.subscription != subscription);
                this.callbacks.forget_routes();
                Ok((before - this.callbacks.subscribed.len()) as i32)
            })
        }
    })
}

/// `unitape_handler_replay` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_handler_replay(
    handler: *mut HandlerHandle,
    file: *const c_char,
    channel: *const c_char,
) -> i64 {
    run(|| {
        // SAFETY: by unitape.h, `handler` is null or a live handle, which only this thread uses now; `file` and
        // `channel` are null or C strings. The same holds below.
        let file = unsafe { text::path(file, "file") }?;
        let channel = match channel.is_null() {
            true => None,
            // SAFETY: see above.
            false => Some(unsafe { text::word(channel, "channel") }?),
        };
        // SAFETY: see above.
        unsafe {
            Handle::with(handler, |this| {
                let counts = this.handler.replay(file, channel, &mut this.callbacks)?;
                Ok(counts.packets as i64)
            })
        }
    })
}

/// `unitape_handler_packet` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_handler_packet(
    handler: *mut HandlerHandle,
    address: *const c_char,
    bytes: *const c_void,
    length: usize,
    ts_recv: i64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `handler` is null or a live handle, which only this thread uses now; `address` is null
        // or a C string; `bytes` has `length` bytes. The same holds below.
        let (address, payload) = unsafe { (text::word(address, "address")?, text::bytes(bytes, length)?) };
        let to: SocketAddr = address.parse().map_err(|_| {
            Error::Argument(format!("`{address}` is no address and port, as 224.0.50.1:59001"))
        })?;
        // SAFETY: see above.
        unsafe {
            Handle::with(handler, |this| {
                let packet = Packet { to, ts_recv: UnixNanos(ts_recv), place: 0, payload };
                this.handler.packet(packet, &mut this.callbacks);
                Ok(0)
            })
        }
    })
}

/// `unitape_handler_listen` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_handler_listen(
    handler: *mut HandlerHandle,
    interface: *const c_char,
    buffer_bytes: u64,
) -> i32 {
    run(|| {
        let mut options = LiveOptions::default();
        if !interface.is_null() {
            // SAFETY: by unitape.h, `handler` is null or a live handle, which only this thread uses now; `interface`
            // is null or a C string. The same holds below.
            let address = unsafe { text::word(interface, "interface") }?;
            let parsed: Result<IpAddr, _> = address.parse();
            let wrong = |_| Error::Argument(format!("`{address}` is no address of an interface"));
            options.interface = Some(parsed.map_err(wrong)?);
        }
        if buffer_bytes > 0 {
            options.buffer_bytes = usize::try_from(buffer_bytes).unwrap_or(usize::MAX);
        }
        // SAFETY: see above.
        unsafe { Handle::with(handler, |this| Ok(this.handler.listen(&options).map(|()| 0)?)) }
    })
}

/// `unitape_handler_poll` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_handler_poll(handler: *mut HandlerHandle) -> i64 {
    // SAFETY: by unitape.h, `handler` is null or a live handle, which only this thread uses now.
    run(|| unsafe { Handle::with(handler, |this| Ok(this.handler.poll(&mut this.callbacks)? as i64)) })
}

/// `unitape_handler_wait` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_handler_wait(handler: *mut HandlerHandle, timeout_ns: u64) -> i32 {
    run(|| {
        let timeout = Duration::from_nanos(timeout_ns);
        // SAFETY: by unitape.h, `handler` is null or a live handle, which only this thread uses now.
        unsafe { Handle::with(handler, |this| Ok(i32::from(this.handler.wait(timeout)?))) }
    })
}

/// `unitape_handler_find` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_handler_find(
    handler: *mut HandlerHandle,
    name: *const c_char,
    instrument: *mut u32,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `handler` is null or a live handle, which only this thread uses now; `name` is null or a
        // C string; `instrument` is null or has room for its value. The same holds below.
        let (name, instrument) = unsafe {
            (text::word(name, "name")?, text::require_place(instrument, "the place for the number")?)
        };
        // SAFETY: see above.
        let found = unsafe { Handle::with(handler, |this| Ok(this.handler.find(name))) }?;
        // SAFETY: not null.
        unsafe { instrument.write(found.map_or(NO_NUMBER, |instrument| instrument.0)) };
        Ok(i32::from(found.is_some()))
    })
}

/// `unitape_handler_levels` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_handler_levels(
    handler: *mut HandlerHandle,
    instrument: u32,
    side: u32,
    levels: *mut Level,
    capacity: usize,
    stale: *mut u32,
) -> i64 {
    run(|| {
        // SAFETY: by unitape.h, `handler` is null or a live handle, which only this thread uses now; `stale` is null
        // or has room for its value. The same holds below.
        unsafe {
            Handle::with(handler, |this| {
                let not_subscribed =
                    || Error::Argument(format!("the instrument {instrument} is not subscribed"));
                let book = this.handler.book(InstrumentId(instrument)).ok_or_else(not_subscribed)?;
                text::put(stale, u32::from(book.is_stale()));
                copy(book, side, levels, capacity)
            })
        }
    })
}

/// `unitape_book_levels` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_book_levels(
    book: *const Book,
    side: u32,
    levels: *mut Level,
    capacity: usize,
) -> i64 {
    run(|| {
        // SAFETY: null, or of the callback that is running, as the caller vouches.
        let book = unsafe { book.as_ref() }.ok_or(Error::Null("the book"))?;
        // SAFETY: by unitape.h, `levels` is null or has room for `capacity` levels.
        unsafe { copy(book.view(), side, levels, capacity) }
    })
}

/// Copies the best levels of a side; how many it has.
///
/// # Safety
/// `levels` points to room for `capacity` levels; if that is 0 it may be anything.
unsafe fn copy(
    book: unitape_marketdata::BookView<'_>,
    side: u32,
    levels: *mut Level,
    capacity: usize,
) -> Result<i64, Error> {
    let side = side_of(side).ok_or_else(|| Error::Argument(format!("a side {side} is unknown")))?;
    if capacity > 0 && levels.is_null() {
        return Err(Error::Null("the levels"));
    }
    for (n, rung) in book.levels(side).take(capacity).enumerate() {
        // SAFETY: there is room for `capacity` of them.
        unsafe { levels.add(n).write(Level::from(rung)) };
    }
    Ok(book.depth(side) as i64)
}

/// `unitape_handler_get_stats` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_handler_get_stats(
    handler: *mut HandlerHandle,
    stats: *mut HandlerStats,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `handler` is null or a live handle, which only this thread uses now; `stats` is null
        // or has room for its value. The same holds below.
        let stats = unsafe { text::require_place(stats, "the place for the figures") }?;
        // SAFETY: see above.
        unsafe {
            Handle::with(handler, |this| {
                let (core, books) = (this.handler.core().stats(), this.handler.counters());
                let lines = core.channels.iter().flat_map(|c| &c.lines);
                let dropped = this.handler.live().map_or(0, |live| live.dropped().map(|(_, n)| n).sum());
                stats.write(HandlerStats {
                    packets: lines.map(|l| l.packets).sum(),
                    unknown: core.unknown,
                    refused: books.refused,
                    gaps: books.gaps,
                    levels: books.levels,
                    passed_over: books.passed_over,
                    updates: books.updates,
                    trades: books.trades,
                    stale: books.stale,
                    recovered: books.recovered,
                    faults: books.faults,
                    waiting: core.waiting as u64,
                    dropped,
                });
                Ok(0)
            })
        }
    })
}

/// `unitape_handler_channel` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_handler_channel(
    handler: *mut HandlerHandle,
    channel: u32,
    stats: *mut ChannelStats,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `handler` is null or a live handle, which only this thread uses now; `stats` is null
        // or has room for its value. The same holds below.
        let stats = unsafe { text::require_place(stats, "the place for the figures") }?;
        // SAFETY: see above.
        unsafe {
            Handle::with(handler, |this| {
                let all = this.handler.core().stats().channels;
                let Some(of) = all.get(channel as usize) else { return Ok(0) };
                let name = &this.handler.tables().channels[channel as usize].name;
                let line = |line: &unitape_marketdata::LineStats| LineStats {
                    packets: line.packets,
                    bytes: line.bytes,
                    first: line.first,
                    twice: line.twice,
                    missed: line.missed,
                    reordered: line.reordered,
                    corrupt: line.corrupt,
                };
                stats.write(ChannelStats {
                    name: name.as_ptr().cast(),
                    name_length: name.len(),
                    gaps: of.gaps,
                    lost: of.lost,
                    late: of.late,
                    recovered: of.recovered,
                    restarts: of.restarts,
                    lines: [line(&of.lines[0]), line(&of.lines[1])],
                });
                Ok(1)
            })
        }
    })
}
