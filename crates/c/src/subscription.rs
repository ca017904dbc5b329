//! Subscriptions for C.

use std::ffi::{c_char, c_void};
use std::time::Duration;

use unitape_model::Position;
use unitape_tape::{LineagePoint, StartPosition, Subscription, WaitStrategy};

use crate::call::{Handle, run};
use crate::error::{Error, code};
use crate::text;

/// A subscription behind a handle.
#[derive(Debug)]
pub struct OpenSubscription {
    subscription: Subscription,
}

const _: () = {
    const fn may_be_sent<T: Send>() {}
    may_be_sent::<OpenSubscription>();
};

/// `unitape_frame` of the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs)] // documented in the header
pub struct Frame {
    pub position: u64,
    pub bytes: *const c_void,
    pub length: usize,
    pub frame: *const c_void,
    pub frame_length: usize,
    pub topic: u32,
    pub kind: u8,
    pub flags: u8,
    pub reserved: u16,
}

impl From<unitape_tape::Frame<'_>> for Frame {
    #[inline]
    fn from(frame: unitape_tape::Frame<'_>) -> Self {
        let (topic, bytes) = match frame.message() {
            Some(message) => (message.topic, message.bytes),
            None => (0, frame.bytes),
        };
        Self {
            position: frame.position.0,
            bytes: bytes.as_ptr().cast(),
            length: bytes.len(),
            frame: frame.bytes.as_ptr().cast(),
            frame_length: frame.bytes.len(),
            topic,
            kind: frame.header.kind(),
            flags: frame.header.flags(),
            reserved: 0,
        }
    }
}

/// `unitape_lag` of the header.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
#[allow(missing_docs)] // documented in the header
pub struct Lag {
    pub bytes: u64,
    pub events: u64,
    pub until_removal_bytes: u64,
}

/// `unitape_callback` of the header.
pub type Callback = Option<unsafe extern "C" fn(context: *mut c_void, frame: *const Frame) -> i32>;

const START_OLDEST: u32 = 0;
const START_END: u32 = 1;
const START_AT: u32 = 2;
const START_OR_OLDEST: u32 = 256;

const WAIT_BALANCED: u32 = 0;
const WAIT_SPIN: u32 = 1;
const WAIT_PARK: u32 = 2;

type SubscriptionHandle = Handle<OpenSubscription>;

/// The start that C asks for.
pub(crate) fn start_of(start: u32, position: u64) -> Result<StartPosition, Error> {
    match start {
        START_OLDEST => Ok(StartPosition::Oldest),
        START_END => Ok(StartPosition::End),
        START_AT => Ok(StartPosition::At(Position(position))),
        other => Err(Error::Argument(format!("a start {other} is unknown"))),
    }
}

/// The way of waiting that C asks for.
pub(crate) fn wait_of(strategy: u32) -> Result<WaitStrategy, Error> {
    match strategy {
        WAIT_BALANCED => Ok(WaitStrategy::Balanced),
        WAIT_SPIN => Ok(WaitStrategy::Spin),
        WAIT_PARK => Ok(WaitStrategy::Park),
        other => Err(Error::Argument(format!("a strategy {other} is unknown"))),
    }
}

/// `unitape_await_tape` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_await_tape(dir: *const c_char, timeout_ns: u64) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `dir` is null or a C string.
        let dir = unsafe { text::path(dir, "dir") }?;
        Ok(i32::from(Subscription::await_tape(dir, Duration::from_nanos(timeout_ns))?))
    })
}

/// `unitape_subscription_open` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_subscription_open(
    dir: *const c_char,
    name: *const c_char,
    start: u32,
    position: u64,
    subscription: *mut *mut SubscriptionHandle,
) -> i32 {
    run(|| {
        // SAFETY: all as the header asks.
        let (place, dir) =
            unsafe { (text::require_place(subscription, "subscription")?, text::path(dir, "dir")?) };
        let or_oldest = start & START_OR_OLDEST != 0;
        let start = start_of(start & !START_OR_OLDEST, position)?;
        let name = match name.is_null() {
            true => None,
            // SAFETY: by unitape.h, `name` is null or a C string.
            false => Some(unsafe { text::word(name, "name") }?),
        };
        let subscription = match (name, or_oldest) {
            (None, false) => Subscription::open(dir, start)?,
            (None, true) => Subscription::open_or_oldest(dir, start)?,
            (Some(name), false) => Subscription::open_named(dir, name, start)?,
            (Some(name), true) => Subscription::open_named_or_oldest(dir, name, start)?,
        };
        // SAFETY: as above.
        unsafe { text::put(place, Handle::give(OpenSubscription { subscription })) };
        Ok(code::OK)
    })
}

/// `unitape_subscription_resume` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_subscription_resume(
    dir: *const c_char,
    epoch: u64,
    position: u64,
    subscription: *mut *mut SubscriptionHandle,
) -> i32 {
    run(|| {
        // SAFETY: all as the header asks.
        let (place, dir) =
            unsafe { (text::require_place(subscription, "subscription")?, text::path(dir, "dir")?) };
        let point = LineagePoint { epoch, position: Position(position) };
        let subscription = Subscription::resume(dir, point)?;
        // SAFETY: as above.
        unsafe { text::put(place, Handle::give(OpenSubscription { subscription })) };
        Ok(code::OK)
    })
}

/// `unitape_subscription_epoch` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_subscription_epoch(
    subscription: *mut SubscriptionHandle,
    epoch: *mut u64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `subscription` is null or a live handle, which only this thread uses now; `epoch` is
        // null or has room for its value.
        unsafe {
            Handle::with(subscription, |s| {
                let place = text::require_place(epoch, "epoch")?;
                text::put(place, s.subscription.point().epoch);
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_subscription_rewound` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_subscription_rewound(
    subscription: *mut SubscriptionHandle,
    count: *mut u64,
    from: *mut u64,
    to: *mut u64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `subscription` is null or a live handle, which only this thread uses now; `count`,
        // `from` and `to` are null or have room for their values.
        unsafe {
            Handle::with(subscription, |s| {
                let rewinds = s.subscription.reader().rewinds();
                text::put(count, rewinds.count);
                text::put(from, rewinds.last.map_or(0, |rewound| rewound.from.0));
                text::put(to, rewinds.last.map_or(0, |rewound| rewound.to.0));
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_subscription_close` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_subscription_close(subscription: *mut SubscriptionHandle) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `subscription` is null or a live handle, which only this thread uses now.
        drop(unsafe { Handle::take(subscription) }?);
        Ok(code::OK)
    })
}

/// `unitape_subscription_next` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_subscription_next(
    subscription: *mut SubscriptionHandle,
    frame: *mut Frame,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `subscription` is null or a live handle, which only this thread uses now; `frame` is
        // null or has room for its value.
        unsafe {
            Handle::with(subscription, |s| {
                let place = text::require_place(frame, "frame")?;
                let Some(found) = s.subscription.next()? else { return Ok(0) };
                text::put(place, found.into());
                Ok(1)
            })
        }
    })
}

/// `unitape_subscription_poll` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_subscription_poll(
    subscription: *mut SubscriptionHandle,
    limit: u64,
    callback: Callback,
    context: *mut c_void,
) -> i64 {
    run(|| {
        let callback = callback.ok_or(Error::Null("the callback"))?;
        // The limit that fits the answer.
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        // SAFETY: by unitape.h, `subscription` is null or a live handle, which only this thread uses now.
        unsafe {
            Handle::with(subscription, |s| {
                for count in 0..limit {
                    let Some(found) = s.subscription.next()? else { return Ok(count) };
                    let frame = Frame::from(found);
                    if callback(context, &raw const frame) != 0 {
                        return Ok(count + 1);
                    }
                }
                Ok(limit)
            })
        }
    })
}

/// `unitape_subscription_wait` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_subscription_wait(
    subscription: *mut SubscriptionHandle,
    strategy: u32,
    timeout_ns: u64,
) -> i32 {
    run(|| {
        let wait = wait_of(strategy)?;
        // SAFETY: by unitape.h, `subscription` is null or a live handle, which only this thread uses now.
        unsafe {
            Handle::with(subscription, |s| {
                let timeout = Duration::from_nanos(timeout_ns);
                Ok(i32::from(s.subscription.reader().wait_as(wait, timeout)?))
            })
        }
    })
}

/// `unitape_subscription_acknowledge` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_subscription_acknowledge(subscription: *mut SubscriptionHandle) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `subscription` is null or a live handle, which only this thread uses now.
        unsafe {
            Handle::with(subscription, |s| {
                s.subscription.acknowledge()?;
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_subscription_position` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_subscription_position(
    subscription: *mut SubscriptionHandle,
    position: *mut u64,
    ordinal: *mut u64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `subscription` is null or a live handle, which only this thread uses now; `position`
        // and `ordinal` are null or have room for their values.
        unsafe {
            Handle::with(subscription, |s| {
                text::put(position, s.subscription.position().0);
                text::put(ordinal, s.subscription.reader().ordinal());
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_subscription_seek` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_subscription_seek(
    subscription: *mut SubscriptionHandle,
    position: u64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `subscription` is null or a live handle, which only this thread uses now.
        unsafe {
            Handle::with(subscription, |s| {
                s.subscription.reader().seek(Position(position))?;
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_subscription_at` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_subscription_at(
    subscription: *mut SubscriptionHandle,
    position: u64,
    frame: *mut Frame,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `subscription` is null or a live handle, which only this thread uses now; `frame` is
        // null or has room for its value.
        unsafe {
            Handle::with(subscription, |s| {
                let place = text::require_place(frame, "frame")?;
                text::put(place, s.subscription.reader().frame_at(Position(position))?.into());
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_subscription_wait_durable` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_subscription_wait_durable(
    subscription: *mut SubscriptionHandle,
    position: u64,
    timeout_ns: u64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `subscription` is null or a live handle, which only this thread uses now.
        unsafe {
            Handle::with(subscription, |s| {
                let timeout = Duration::from_nanos(timeout_ns);
                s.subscription.reader().wait_durable(Position(position), timeout)?;
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_subscription_durable` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_subscription_durable(
    subscription: *mut SubscriptionHandle,
    position: *mut u64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `subscription` is null or a live handle, which only this thread uses now; `position`
        // is null or has room for its value.
        unsafe {
            Handle::with(subscription, |s| {
                let place = text::require_place(position, "position")?;
                text::put(place, s.subscription.reader().durable()?.0);
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_subscription_lag` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_subscription_lag(
    subscription: *mut SubscriptionHandle,
    lag: *mut Lag,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `subscription` is null or a live handle, which only this thread uses now; `lag` is
        // null or has room for its value.
        unsafe {
            Handle::with(subscription, |s| {
                let place = text::require_place(lag, "lag")?;
                let unitape_tape::ReaderLag { bytes, events, until_removal_bytes } =
                    s.subscription.reader().lag()?;
                text::put(place, Lag { bytes, events, until_removal_bytes });
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_subscription_skip_to_oldest` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_subscription_skip_to_oldest(
    subscription: *mut SubscriptionHandle,
    bytes: *mut u64,
    events: *mut u64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `subscription` is null or a live handle, which only this thread uses now; `bytes` and
        // `events` are null or have room for their values.
        unsafe {
            Handle::with(subscription, |s| {
                let skipped = s.subscription.reader().skip_to_oldest()?;
                text::put(bytes, skipped.bytes);
                text::put(events, skipped.events);
                Ok(code::OK)
            })
        }
    })
}

/// `unitape_subscription_skipped` of the header.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unitape_subscription_skipped(
    subscription: *mut SubscriptionHandle,
    bytes: *mut u64,
    events: *mut u64,
) -> i32 {
    run(|| {
        // SAFETY: by unitape.h, `subscription` is null or a live handle, which only this thread uses now; `bytes` and
        // `events` are null or have room for their values.
        unsafe {
            Handle::with(subscription, |s| {
                let skipped = s.subscription.reader().skipped();
                text::put(bytes, skipped.bytes);
                text::put(events, skipped.events);
                Ok(code::OK)
            })
        }
    })
}
