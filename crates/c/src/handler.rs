//! Handlers of market data for C.

use std::ffi::{c_char, c_void};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use unitape_marketdata::{Handler, InstrumentId, LiveOptions, Packet, Subscription, UnixNanos};

use crate::argument::{HandlePointer, Input, Output, exported};
use crate::call::Handle;
use crate::callbacks::{CallbackTable, SubscribedCallback};
use crate::error::Error;
use crate::market::{Book, Level, MarketCallback, NO_NUMBER, side_of};

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

impl From<&unitape_marketdata::LineStats> for LineStats {
    fn from(line: &unitape_marketdata::LineStats) -> Self {
        Self {
            packets: line.packets,
            bytes: line.bytes,
            first: line.first,
            twice: line.twice,
            missed: line.missed,
            reordered: line.reordered,
            corrupt: line.corrupt,
        }
    }
}

const SUBSCRIBE_ALL: u32 = 0;
const SUBSCRIBE_PRODUCT: u32 = 1;
const SUBSCRIBE_GROUP: u32 = 2;
const SUBSCRIBE_INSTRUMENT: u32 = 3;

/// Converts C's arguments to a subscription.
fn subscription_of(kind: u32, name: &Input<c_char>) -> Result<Subscription, Error> {
    if kind == SUBSCRIBE_ALL {
        return match name.pointer().is_null() {
            true => Ok(Subscription::All),
            false => Err(Error::Argument("everything has no name: it must be null".to_owned())),
        };
    }
    let name = name.word("name")?.to_owned();
    match kind {
        SUBSCRIBE_PRODUCT => Ok(Subscription::Product(name)),
        SUBSCRIBE_GROUP => Ok(Subscription::Group(name)),
        SUBSCRIBE_INSTRUMENT => Ok(Subscription::Instrument(name)),
        other => Err(Error::Argument(format!("a subscription {other} is unknown"))),
    }
}

/// Copies the best levels of a side; how many it has.
///
/// # Safety
/// The caller must pass in `levels` a pointer to room for `capacity` levels. If `capacity` is 0, the pointer may be
/// anything.
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

exported! {
    fn unitape_handler_open(config: Input<c_char>, handle: Output<*mut Handle<OpenHandler>>) -> i32 {
        let config = config.path("config")?;
        handle.require("the place for the handler")?;
        let open_handler = OpenHandler { handler: Handler::open(config)?, callbacks: CallbackTable::default() };
        handle.write(Handle::give(open_handler));
        Ok(0)
    }

    fn unitape_handler_close(handle: HandlePointer<OpenHandler>) -> i32 {
        drop(handle.take_object()?);
        Ok(0)
    }

    fn unitape_handler_subscribe(
        handle: HandlePointer<OpenHandler>,
        what: u32,
        name: Input<c_char>,
        callback: MarketCallback,
        context: *mut c_void,
    ) -> i32 {
        let subscription = subscription_of(what, &name)?;
        let callback = callback.ok_or(Error::Null("the callback"))?;
        let subscribed = SubscribedCallback { subscription: subscription.clone(), callback, context };
        handle.with(|handle| {
            handle.handler.subscribe(subscription);
            handle.callbacks.subscribed.push(subscribed);
            handle.callbacks.forget_routes();
            Ok(0)
        })
    }

    fn unitape_handler_unsubscribe(
        handle: HandlePointer<OpenHandler>,
        what: u32,
        name: Input<c_char>,
    ) -> i32 {
        let subscription = subscription_of(what, &name)?;
        handle.with(|handle| {
            handle.handler.unsubscribe(&subscription);
            let old_count = handle.callbacks.subscribed.len();
            handle.callbacks.subscribed.retain(|s| s.subscription != subscription);
            handle.callbacks.forget_routes();
            Ok((old_count - handle.callbacks.subscribed.len()) as i32)
        })
    }

    fn unitape_handler_replay(
        handle: HandlePointer<OpenHandler>,
        file: Input<c_char>,
        channel: Input<c_char>,
    ) -> i64 {
        let (file, channel) = (file.path("file")?, channel.optional_word("channel")?);
        handle.with(|handle| {
            let counts = handle.handler.replay(file, channel, &mut handle.callbacks)?;
            Ok(counts.packets as i64)
        })
    }

    fn unitape_handler_packet(
        handle: HandlePointer<OpenHandler>,
        address: Input<c_char>,
        bytes: Input<c_void>,
        length: usize,
        ts_recv: i64,
    ) -> i32 {
        let address = address.word("address")?;
        // SAFETY: by unitape_handler.h, `bytes` has `length` bytes.
        let payload = unsafe { bytes.bytes(length) }?;
        let receiver: SocketAddr = address.parse().map_err(|_| {
            Error::Argument(format!("`{address}` is no address and port, as 224.0.50.1:59001"))
        })?;
        handle.with(|handle| {
            let packet = Packet { to: receiver, ts_recv: UnixNanos(ts_recv), position: 0, payload };
            handle.handler.packet(packet, &mut handle.callbacks);
            Ok(0)
        })
    }

    fn unitape_handler_listen(
        handle: HandlePointer<OpenHandler>,
        interface: Input<c_char>,
        buffer_bytes: u64,
    ) -> i32 {
        let mut options = LiveOptions::default();
        if let Some(address) = interface.optional_word("interface")? {
            let parsed: Result<IpAddr, _> = address.parse();
            let wrong = |_| Error::Argument(format!("`{address}` is no address of an interface"));
            options.interface = Some(parsed.map_err(wrong)?);
        }
        if buffer_bytes > 0 {
            options.buffer_bytes = usize::try_from(buffer_bytes).unwrap_or(usize::MAX);
        }
        handle.with(|handle| Ok(handle.handler.listen(&options).map(|()| 0)?))
    }

    fn unitape_handler_poll(handle: &mut OpenHandler) -> i64 {
        Ok(handle.handler.poll(&mut handle.callbacks)? as i64)
    }

    fn unitape_handler_wait(handle: &mut OpenHandler, timeout_ns: u64) -> i32 {
        Ok(i32::from(handle.handler.wait(Duration::from_nanos(timeout_ns))?))
    }

    fn unitape_handler_find(
        handle: HandlePointer<OpenHandler>,
        name: Input<c_char>,
        instrument: Output<u32>,
    ) -> i32 {
        let name = name.word("name")?;
        instrument.require("the place for the number")?;
        let id = handle.with(|handle| Ok(handle.handler.find(name)))?;
        instrument.write(id.map_or(NO_NUMBER, |instrument| instrument.0));
        Ok(i32::from(id.is_some()))
    }

    fn unitape_handler_levels(
        handle: &mut OpenHandler,
        instrument: u32,
        side: u32,
        levels: *mut Level,
        capacity: usize,
        stale: Output<u32>,
    ) -> i64 {
        let not_subscribed = || Error::Argument(format!("the instrument {instrument} is not subscribed"));
        let book = handle.handler.book(InstrumentId(instrument)).ok_or_else(not_subscribed)?;
        stale.write(u32::from(book.is_stale()));
        // SAFETY: by unitape_handler.h, `levels` has room for `capacity` levels.
        unsafe { copy(book, side, levels, capacity) }
    }

    fn unitape_book_levels(book: Input<Book>, side: u32, levels: *mut Level, capacity: usize) -> i64 {
        let view = book.view()?;
        // SAFETY: by unitape_handler.h, `levels` has room for `capacity` levels.
        unsafe { copy(view, side, levels, capacity) }
    }

    fn unitape_handler_get_stats(handle: HandlePointer<OpenHandler>, stats: Output<HandlerStats>) -> i32 {
        stats.require("the place for the figures")?;
        handle.with(|handle| {
            let (core, books) = (handle.handler.core().stats(), handle.handler.counters());
            let lines = core.channels.iter().flat_map(|c| &c.lines);
            let dropped = handle.handler.live().map_or(0, |live| live.dropped().map(|(_, n)| n).sum());
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

    fn unitape_handler_channel(
        handle: HandlePointer<OpenHandler>,
        channel: u32,
        stats: Output<ChannelStats>,
    ) -> i32 {
        stats.require("the place for the figures")?;
        handle.with(|handle| {
            let channels = handle.handler.core().stats().channels;
            let Some(channel_stats) = channels.get(channel as usize) else { return Ok(0) };
            let name = &handle.handler.tables().channels[channel as usize].name;
            stats.write(ChannelStats {
                name: name.as_ptr().cast(),
                name_length: name.len(),
                gaps: channel_stats.gaps,
                lost: channel_stats.lost,
                late: channel_stats.late,
                recovered: channel_stats.recovered,
                restarts: channel_stats.restarts,
                lines: [LineStats::from(&channel_stats.lines[0]), LineStats::from(&channel_stats.lines[1])],
            });
            Ok(1)
        })
    }
}
