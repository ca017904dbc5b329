//! Subscribing: a reader that can have a name, and then a place that survives it.
//!
//! ```text
//!   tape    … ■ ■ ■ ■ ■ ■ ■ ■ ■ 0 0 …
//!                 ▲       ▲     ▲
//!          acknowledged  read   committed end
//!   run/cursors/NAME ┘
//! ```
//!
//! Frames that were read and not acknowledged are read again by the next subscription of the name: at least once. A
//! reader that needs exactly once stores the position together with its own results.

use std::path::Path;
use std::time::{Duration, Instant};

use unitape_model::Position;
use unitape_ring::WaitStrategy;

use crate::disk::cursor::Cursor;
use crate::disk::layout::TapeManifest;
use crate::disk::lineage::LineagePoint;
use crate::error::{Error, Result};
use crate::read::damage::ReadOptions;
use crate::read::reader::{Frame, Reader, StartPosition};

/// The reading end of a tape.
///
/// A subscription never slows the publisher and does not know other subscriptions. See [`crate::Publication`] for an
/// example.
#[derive(Debug)]
pub struct Subscription {
    reader: Reader,
    cursor: Option<Cursor>,
    wait_strategy: WaitStrategy,
}

impl Subscription {
    /// Subscribes to the tape in `dir` from `start` on.
    ///
    /// # Errors
    /// Fails as [`Reader::open`] does.
    pub fn open(dir: &Path, start: StartPosition) -> Result<Self> {
        Ok(Self { reader: Reader::open(dir, start)?, cursor: None, wait_strategy: WaitStrategy::default() })
    }

    /// Subscribes from `start` on; if retention has removed that place, from the oldest one there is.
    /// [`Reader::skipped`] of [`Subscription::reader`] returns the bytes between the two.
    ///
    /// # Errors
    /// Fails as [`Subscription::open`] does, except for a removed position.
    pub fn open_or_oldest(dir: &Path, start: StartPosition) -> Result<Self> {
        Ok(Self {
            reader: Self::reader_at(dir, start)?,
            cursor: None,
            wait_strategy: WaitStrategy::default(),
        })
    }

    /// Subscribes under a name: continues where it was acknowledged last, or at `start` when it is new. A name is
    /// for one subscriber at a time.
    ///
    /// # Errors
    /// Fails as [`Reader::open`] and [`Cursor::open`] do. Fails with [`Error::Retained`] if retention has removed the
    /// position; the error says where the tape begins now. Use [`Subscription::open_named_or_oldest`] to begin there.
    ///
    /// A tape that was cut back before the place, by a power loss, is no error here: the first look at the tape gives
    /// [`Error::Rewound`], and reading continues at the cut.
    pub fn open_named(dir: &Path, name: &str, start: StartPosition) -> Result<Self> {
        let cursor = Cursor::open(dir, name)?;
        let reader = match cursor.load_point()? {
            Some(point) => Reader::resume(dir, point)?,
            None => Reader::open(dir, start)?,
        };
        Ok(Self { reader, cursor: Some(cursor), wait_strategy: WaitStrategy::default() })
    }

    /// Subscribes at `point`, for a subscriber that stores its position itself; see [`Reader::resume`].
    ///
    /// # Errors
    /// Fails as [`Reader::resume`] does.
    pub fn resume(dir: &Path, point: LineagePoint) -> Result<Self> {
        Ok(Self { reader: Reader::resume(dir, point)?, cursor: None, wait_strategy: WaitStrategy::default() })
    }

    /// Subscribes under a name; if retention has removed its place, it continues at the oldest one there is.
    /// [`Reader::skipped`] of [`Subscription::reader`] returns the loss. It includes the events if a subscription
    /// acknowledged the name, because that one knew their number.
    ///
    /// # Errors
    /// Fails as [`Subscription::open_named`] does, except for a removed position.
    pub fn open_named_or_oldest(dir: &Path, name: &str, start: StartPosition) -> Result<Self> {
        let cursor = Cursor::open(dir, name)?;
        let reader = match cursor.load_place()? {
            Some((point, ordinal)) => {
                Reader::resume_place(dir, point, Some(ordinal), ReadOptions::default())?
            }
            None => Self::reader_at(dir, start)?,
        };
        Ok(Self { reader, cursor: Some(cursor), wait_strategy: WaitStrategy::default() })
    }

    /// Opens a reader at `start`, or at the oldest position if `start` was removed.
    fn reader_at(dir: &Path, start: StartPosition) -> Result<Reader> {
        match Reader::open(dir, start) {
            Err(Error::Retained { position, .. }) => Reader::open_after_removal(dir, position, None),
            other => other,
        }
    }

    /// Waits until a publisher has made the tape in `dir`, so that services may be started in any order. False
    /// when `timeout` has passed without one.
    ///
    /// # Errors
    /// Fails if the directory holds other data, or if the system refuses.
    pub fn await_tape(dir: &Path, timeout: Duration) -> Result<bool> {
        let since = Instant::now();
        loop {
            match TapeManifest::load(dir) {
                Ok(_) => return Ok(true),
                Err(Error::NotATape { .. }) if since.elapsed() < timeout => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(Error::NotATape { .. }) => return Ok(false),
                Err(e) => return Err(e),
            }
        }
    }

    /// Sets how [`Subscription::wait`] waits; the default is [`WaitStrategy::Balanced`].
    #[must_use]
    pub fn with_wait(mut self, wait: WaitStrategy) -> Self {
        self.wait_strategy = wait;
        self
    }

    /// Returns the next frame in place, or `None` if no more frames are committed yet. [`Frame::message`] returns the
    /// message in it.
    ///
    /// # Errors
    /// Fails as [`Reader::next`] does.
    #[inline]
    #[allow(clippy::should_implement_trait)] // lends the mapping, which an Iterator cannot
    pub fn next(&mut self) -> Result<Option<Frame<'_>>> {
        self.reader.next()
    }

    /// Passes up to `limit` waiting frames to `handle_frame`, in order, and returns their number.
    ///
    /// # Errors
    /// Fails as [`Reader::next`] does; the frames before the error were handed over.
    #[inline]
    pub fn poll(&mut self, limit: usize, mut handle_frame: impl FnMut(Frame<'_>)) -> Result<usize> {
        for count in 0..limit {
            match self.reader.next()? {
                Some(frame) => handle_frame(frame),
                None => return Ok(count),
            }
        }
        Ok(limit)
    }

    /// Waits until a frame is there, as [`Subscription::with_wait`] says. False when `timeout` has passed
    /// without one.
    ///
    /// # Errors
    /// Fails as [`Reader::next`] does.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool> {
        self.reader.wait_as(self.wait_strategy, timeout)
    }

    /// Stores that everything read so far has been dealt with: the next subscription of the name continues here. It
    /// is one system call, and survives the death of the process. The first place of a name is flushed to the disk.
    /// The system writes later ones from time to time. A power loss brings back the one that it wrote last, and later
    /// frames are read again.
    ///
    /// # Errors
    /// Fails if the subscription has no name, or if the system refuses.
    pub fn acknowledge(&mut self) -> Result<()> {
        let (point, ordinal) = (self.reader.point(), self.reader.ordinal());
        match &mut self.cursor {
            Some(cursor) => cursor.store_place(point, Some(ordinal)),
            None => Err(Error::Option("only a subscription with a name can acknowledge")),
        }
    }

    /// Returns the position after the last frame read.
    pub fn position(&self) -> Position {
        self.reader.position()
    }

    /// Returns the position after the last frame read, with its epoch. [`Subscription::resume`] takes this point.
    pub fn point(&self) -> LineagePoint {
        self.reader.point()
    }

    /// Returns the underlying reader, for runs, seeks and single frames.
    pub fn reader(&mut self) -> &mut Reader {
        &mut self.reader
    }
}
