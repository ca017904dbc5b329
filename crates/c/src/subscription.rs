//! Subscriptions for C.

use std::ffi::{c_char, c_void};
use std::time::Duration;

use unitape_model::Position;
use unitape_tape::{LineagePoint, StartPosition, Subscription, WaitStrategy};

use crate::argument::{HandlePointer, Input, Output, exported};
use crate::call::Handle;
use crate::error::{Error, code};

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

/// Converts C's start to a start position.
pub(crate) fn start_of(start: u32, position: u64) -> Result<StartPosition, Error> {
    match start {
        START_OLDEST => Ok(StartPosition::Oldest),
        START_END => Ok(StartPosition::End),
        START_AT => Ok(StartPosition::At(Position(position))),
        other => Err(Error::Argument(format!("a start {other} is unknown"))),
    }
}

/// Converts C's wait strategy.
pub(crate) fn wait_of(strategy: u32) -> Result<WaitStrategy, Error> {
    match strategy {
        WAIT_BALANCED => Ok(WaitStrategy::Balanced),
        WAIT_SPIN => Ok(WaitStrategy::Spin),
        WAIT_PARK => Ok(WaitStrategy::Park),
        other => Err(Error::Argument(format!("a strategy {other} is unknown"))),
    }
}

exported! {
    fn unitape_await_tape(dir: Input<c_char>, timeout_ns: u64) -> i32 {
        Ok(i32::from(Subscription::await_tape(dir.path("dir")?, Duration::from_nanos(timeout_ns))?))
    }

    fn unitape_subscription_open(
        dir: Input<c_char>,
        name: Input<c_char>,
        start: u32,
        position: u64,
        handle: Output<*mut Handle<OpenSubscription>>,
    ) -> i32 {
        handle.require("subscription")?;
        let dir = dir.path("dir")?;
        let or_oldest = start & START_OR_OLDEST != 0;
        let start_position = start_of(start & !START_OR_OLDEST, position)?;
        let subscription = match (name.optional_word("name")?, or_oldest) {
            (None, false) => Subscription::open(dir, start_position)?,
            (None, true) => Subscription::open_or_oldest(dir, start_position)?,
            (Some(name), false) => Subscription::open_named(dir, name, start_position)?,
            (Some(name), true) => Subscription::open_named_or_oldest(dir, name, start_position)?,
        };
        handle.write(Handle::give(OpenSubscription { subscription }));
        Ok(code::OK)
    }

    fn unitape_subscription_resume(
        dir: Input<c_char>,
        epoch: u64,
        position: u64,
        handle: Output<*mut Handle<OpenSubscription>>,
    ) -> i32 {
        handle.require("subscription")?;
        let point = LineagePoint { epoch, position: Position(position) };
        let subscription = Subscription::resume(dir.path("dir")?, point)?;
        handle.write(Handle::give(OpenSubscription { subscription }));
        Ok(code::OK)
    }

    fn unitape_subscription_epoch(handle: &mut OpenSubscription, epoch: Output<u64>) -> i32 {
        epoch.require("epoch")?;
        epoch.write(handle.subscription.point().epoch);
        Ok(code::OK)
    }

    fn unitape_subscription_rewound(
        handle: &mut OpenSubscription,
        count: Output<u64>,
        from: Output<u64>,
        to: Output<u64>,
    ) -> i32 {
        let rewinds = handle.subscription.reader().rewinds();
        count.write(rewinds.count);
        from.write(rewinds.last_rewind.map_or(0, |rewound| rewound.reader_position.0));
        to.write(rewinds.last_rewind.map_or(0, |rewound| rewound.resume_position.0));
        Ok(code::OK)
    }

    fn unitape_subscription_close(handle: HandlePointer<OpenSubscription>) -> i32 {
        drop(handle.take_object()?);
        Ok(code::OK)
    }

    fn unitape_subscription_next(handle: &mut OpenSubscription, frame: Output<Frame>) -> i32 {
        frame.require("frame")?;
        let Some(next_frame) = handle.subscription.next()? else { return Ok(0) };
        frame.write(next_frame.into());
        Ok(1)
    }

    fn unitape_subscription_poll(
        handle: HandlePointer<OpenSubscription>,
        limit: u64,
        callback: Callback,
        context: *mut c_void,
    ) -> i64 {
        let callback = callback.ok_or(Error::Null("the callback"))?;
        // The limit that fits the answer.
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        handle.with(|handle| {
            for count in 0..limit {
                let Some(next_frame) = handle.subscription.next()? else { return Ok(count) };
                let frame = Frame::from(next_frame);
                // SAFETY: by unitape.h, `callback` may be called with `context` until this function returns; what
                // `frame` points to lives until the next frame is read, which is after the call.
                if unsafe { callback(context, &raw const frame) } != 0 {
                    return Ok(count + 1);
                }
            }
            Ok(limit)
        })
    }

    fn unitape_subscription_wait(
        handle: HandlePointer<OpenSubscription>,
        strategy: u32,
        timeout_ns: u64,
    ) -> i32 {
        let wait = wait_of(strategy)?;
        let timeout = Duration::from_nanos(timeout_ns);
        handle.with(|handle| Ok(i32::from(handle.subscription.reader().wait_as(wait, timeout)?)))
    }

    fn unitape_subscription_acknowledge(handle: &mut OpenSubscription) -> i32 {
        handle.subscription.acknowledge()?;
        Ok(code::OK)
    }

    fn unitape_subscription_position(
        handle: &mut OpenSubscription,
        position: Output<u64>,
        ordinal: Output<u64>,
    ) -> i32 {
        position.write(handle.subscription.position().0);
        ordinal.write(handle.subscription.reader().ordinal());
        Ok(code::OK)
    }

    fn unitape_subscription_seek(handle: &mut OpenSubscription, position: u64) -> i32 {
        handle.subscription.reader().seek(Position(position))?;
        Ok(code::OK)
    }

    fn unitape_subscription_at(handle: &mut OpenSubscription, position: u64, frame: Output<Frame>) -> i32 {
        frame.require("frame")?;
        frame.write(handle.subscription.reader().frame_at(Position(position))?.into());
        Ok(code::OK)
    }

    fn unitape_subscription_wait_durable(
        handle: &mut OpenSubscription,
        position: u64,
        timeout_ns: u64,
    ) -> i32 {
        let timeout = Duration::from_nanos(timeout_ns);
        handle.subscription.reader().wait_durable(Position(position), timeout)?;
        Ok(code::OK)
    }

    fn unitape_subscription_durable(handle: &mut OpenSubscription, position: Output<u64>) -> i32 {
        position.require("position")?;
        position.write(handle.subscription.reader().durable()?.0);
        Ok(code::OK)
    }

    fn unitape_subscription_lag(handle: &mut OpenSubscription, lag: Output<Lag>) -> i32 {
        lag.require("lag")?;
        let unitape_tape::ReaderLag { bytes, events, until_removal_bytes } =
            handle.subscription.reader().lag()?;
        lag.write(Lag { bytes, events, until_removal_bytes });
        Ok(code::OK)
    }

    fn unitape_subscription_skip_to_oldest(
        handle: &mut OpenSubscription,
        bytes: Output<u64>,
        events: Output<u64>,
    ) -> i32 {
        let skipped = handle.subscription.reader().skip_to_oldest()?;
        bytes.write(skipped.bytes);
        events.write(skipped.events);
        Ok(code::OK)
    }

    fn unitape_subscription_skipped(
        handle: &mut OpenSubscription,
        bytes: Output<u64>,
        events: Output<u64>,
    ) -> i32 {
        let skipped = handle.subscription.reader().skipped();
        bytes.write(skipped.bytes);
        events.write(skipped.events);
        Ok(code::OK)
    }
}
