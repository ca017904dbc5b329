//! A bounded ring between one producer and one consumer.
//!
//! ```text
//!            consumer's line      slots (a power of two)       producer's line
//!          ┌─────────────────┐   ┌───┬───┬───┬───┬───┬───┐   ┌─────────────────┐
//!          │ head = 9        │   │   │ 9 │10 │11 │   │   │   │ tail = 12       │
//!          └─────────────────┘   └───┴───┴───┴───┴───┴───┘   └─────────────────┘
//!  consumer keeps a copy of tail   ▲ head        ▲ tail        producer keeps a copy of head
//! ```
//!
//! `head` and `tail` only grow; a slot is the index modulo the capacity. Each side looks at the other's
//! index only when its own copy says "full" or "empty", so that in a steady stream a cache line moves once
//! for many items. Nothing is allocated after [`ring`] has returned, and neither side makes a system call.

use std::{fmt, mem::MaybeUninit};

use crate::sync::{Arc, AtomicBool, AtomicUsize, CachePadded, Ordering, UnsafeCell};

/// Makes a ring for at least `capacity` items; rounded up to a power of two, at least 1.
///
/// ```
/// let (mut packets, mut reader) = unitape_ring::ring(4);
/// packets.try_push(7).unwrap();
/// assert_eq!(packets.push_batch(&mut (8..100)), 3); // room for three more
/// let mut seen = Vec::new();
/// assert_eq!(reader.pop_batch(64, |n| seen.push(n)), 4);
/// assert_eq!(seen, [7, 8, 9, 10]);
/// drop(packets);
/// assert_eq!(reader.try_pop(), Err(unitape_ring::PopError::Closed));
/// ```
///
/// # Panics
/// Panics if that many items do not fit into memory.
pub fn ring<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    make_ring(capacity)
}

/// Makes the broken copy of the ring that publishes with Relaxed. Loom must reject this copy.
#[cfg(loom)]
pub fn broken_ring<T>(capacity: usize) -> (Producer<T, false>, Consumer<T, false>) {
    make_ring(capacity)
}

/// The writing end. Dropping it closes the ring; pushed items can still be popped.
pub struct Producer<T, const SOUND: bool = true> {
    shared: Arc<SharedRing<T>>,
    /// This end's `shared.tail`, which no other thread writes.
    tail: usize,
    /// `shared.head` as last seen; the consumer may be further.
    head_seen: usize,
    fulls: u64,
}

/// The reading end. Dropping it closes the ring and drops the items that were not popped.
pub struct Consumer<T, const SOUND: bool = true> {
    shared: Arc<SharedRing<T>>,
    /// This end's `shared.head`, which no other thread writes.
    head: usize,
    /// `shared.tail` as last seen; the producer may be further.
    tail_seen: usize,
    empties: u64,
}

/// Why an item was not pushed; it is handed back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError<T> {
    /// All slots are taken; counted in [`Producer::fulls`].
    #[error("the ring is full")]
    Full(T),
    /// The consumer is gone, so the item will never be read.
    #[error("the ring's consumer is gone")]
    Closed(T),
}

/// Why nothing was popped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PopError {
    /// Nothing is there yet.
    #[error("the ring is empty")]
    Empty,
    /// Nothing is there and the producer is gone.
    #[error("the ring is empty and its producer is gone")]
    Closed,
}

impl<T, const SOUND: bool> Producer<T, SOUND> {
    /// Pushes one item.
    ///
    /// # Errors
    /// Fails with [`PushError::Full`] or [`PushError::Closed`], which return the item.
    #[inline]
    pub fn try_push(&mut self, item: T) -> Result<(), PushError<T>> {
        if self.is_closed() {
            return Err(PushError::Closed(item));
        }
        if self.room(1) == 0 {
            return Err(PushError::Full(item));
        }
        // SAFETY: `room` says that slot `tail` is free, and only this producer fills slots.
        unsafe { self.shared.write(self.tail, item) };
        self.publish_tail(self.tail.wrapping_add(1));
        Ok(())
    }

    /// Pushes items while there is room and publishes them at once; takes no item that has no room.
    /// Answers how many. A closed ring takes none.
    pub fn push_batch(&mut self, items: &mut impl Iterator<Item = T>) -> usize {
        if self.is_closed() {
            return 0;
        }
        let room = self.room(usize::MAX);
        // Publishes also when `items` panics, so that the written items are not lost.
        let mut batch = PushGuard { next: self.tail, producer: self };
        for _ in 0..room {
            let Some(item) = items.next() else { break };
            // SAFETY: `next` is less than `room` slots past the tail, so its slot is free.
            unsafe { batch.producer.shared.write(batch.next, item) };
            batch.next = batch.next.wrapping_add(1);
        }
        batch.next.wrapping_sub(batch.producer.tail)
    }

    /// Pushes as much of the front of `items` as there is room for. Answers how many.
    pub fn push_slice(&mut self, items: &[T]) -> usize
    where
        T: Copy,
    {
        self.push_batch(&mut items.iter().copied())
    }

    /// Counts the free slots. Asks the consumer only if fewer than `want` are known to be free.
    #[inline]
    fn room(&mut self, want: usize) -> usize {
        let capacity = self.shared.capacity();
        let cached_room = capacity - self.tail.wrapping_sub(self.head_seen);
        if cached_room >= want.min(capacity) {
            return cached_room;
        }
        // Acquire: pairs with the Release in `Consumer::publish`; the consumer's reads of the slots it
        // freed come before our writes to them.
        self.head_seen = self.shared.head.load(Ordering::Acquire);
        let room = capacity - self.tail.wrapping_sub(self.head_seen);
        self.fulls += u64::from(room == 0);
        room
    }

    #[inline]
    fn publish_tail(&mut self, tail: usize) {
        self.tail = tail;
        // Release: pairs with the Acquire in `Consumer::ready`; the items come before their number.
        let order = if SOUND { Ordering::Release } else { Ordering::Relaxed };
        self.shared.tail.store(tail, order);
    }

    /// Returns whether the consumer is gone.
    #[inline]
    pub fn is_closed(&self) -> bool {
        // Relaxed: nothing is read because of it.
        self.shared.consumer_gone.load(Ordering::Relaxed)
    }

    /// Returns how many items fit into the ring.
    pub fn capacity(&self) -> usize {
        self.shared.capacity()
    }

    /// Counts how often a push found the ring full. This is the counter of the ring's bound.
    pub fn fulls(&self) -> u64 {
        self.fulls
    }
}

impl<T, const SOUND: bool> Consumer<T, SOUND> {
    /// Pops one item.
    ///
    /// # Errors
    /// Fails with [`PopError::Empty`], or with [`PopError::Closed`] if no further item can arrive.
    #[inline]
    pub fn try_pop(&mut self) -> Result<T, PopError> {
        if self.ready(1) == 0 {
            // The flag first, then the tail once more: items that were pushed before closing are still popped.
            if !self.producer_gone() {
                return Err(PopError::Empty);
            }
            if self.ready(1) == 0 {
                return Err(PopError::Closed);
            }
        }
        // SAFETY: `ready` says that slot `head` holds an item, and only this consumer takes items.
        let item = unsafe { self.shared.read(self.head) };
        self.publish_head(self.head.wrapping_add(1));
        Ok(item)
    }

    /// Pops up to `max` items in order and frees their slots at once. Answers how many.
    pub fn pop_batch(&mut self, max: usize, mut each: impl FnMut(T)) -> usize {
        let ready = self.ready(max).min(max);
        // Frees also when `each` panics: an item that it was given must not be dropped a second time.
        let mut batch = PopGuard { next: self.head, consumer: self };
        for _ in 0..ready {
            // SAFETY: `next` is less than `ready` slots past the head, so its slot holds an item.
            let item = unsafe { batch.consumer.shared.read(batch.next) };
            batch.next = batch.next.wrapping_add(1);
            each(item);
        }
        ready
    }

    /// Pops into the front of `out`. Answers how many.
    pub fn pop_slice(&mut self, out: &mut [T]) -> usize
    where
        T: Copy,
    {
        let mut slots = out.iter_mut();
        let max = slots.len();
        self.pop_batch(max, |item| {
            if let Some(slot) = slots.next() {
                *slot = item;
            }
        })
    }

    /// Items that can be popped, as far as known without asking the producer when `want` are known.
    #[inline]
    fn ready(&mut self, want: usize) -> usize {
        let cached_ready = self.tail_seen.wrapping_sub(self.head);
        if cached_ready >= want.min(self.shared.capacity()) {
            return cached_ready;
        }
        // Acquire: pairs with the Release in `Producer::publish`; the items are there with their number.
        self.tail_seen = self.shared.tail.load(Ordering::Acquire);
        let ready = self.tail_seen.wrapping_sub(self.head);
        self.empties += u64::from(ready == 0);
        ready
    }

    #[inline]
    fn publish_head(&mut self, head: usize) {
        self.head = head;
        // Release: pairs with the Acquire in `Producer::room`; our reads come before the slots are free.
        self.shared.head.store(head, Ordering::Release);
    }

    /// Returns whether the producer is gone. The ring may still hold items: [`PopError::Closed`] is the end.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.producer_gone()
    }

    #[inline]
    fn producer_gone(&self) -> bool {
        // Acquire: pairs with the Release in the producer's `drop`; its last tail is seen afterwards.
        self.shared.producer_gone.load(Ordering::Acquire)
    }

    /// Returns how many items fit into the ring.
    pub fn capacity(&self) -> usize {
        self.shared.capacity()
    }

    /// Counts how often a pop found the ring empty. The count shows how idle the consumer was.
    pub fn empties(&self) -> u64 {
        self.empties
    }
}

impl<T, const SOUND: bool> Drop for Producer<T, SOUND> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `Consumer::producer_gone`.
        self.shared.producer_gone.store(true, Ordering::Release);
    }
}

impl<T, const SOUND: bool> Drop for Consumer<T, SOUND> {
    fn drop(&mut self) {
        // Relaxed: the items left behind are dropped with the shared part, which the Arc orders.
        self.shared.consumer_gone.store(true, Ordering::Relaxed);
    }
}

impl<T, const SOUND: bool> fmt::Debug for Producer<T, SOUND> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Producer {{ capacity {}, tail {}, fulls {} }}", self.capacity(), self.tail, self.fulls)
    }
}

impl<T, const SOUND: bool> fmt::Debug for Consumer<T, SOUND> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Consumer {{ capacity {}, head {}, empties {} }}", self.capacity(), self.head, self.empties)
    }
}

struct SharedRing<T> {
    head: CachePadded<AtomicUsize>,
    tail: CachePadded<AtomicUsize>,
    producer_gone: CachePadded<AtomicBool>,
    consumer_gone: CachePadded<AtomicBool>,
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

// SAFETY: a slot is touched by the producer while it is outside head..tail and by the consumer while it is
// inside, there is one of each (neither end can be cloned), and the indices that say so are passed on with
// Release/Acquire. Items are moved between threads, hence `T: Send`, and never shared.
unsafe impl<T: Send> Sync for SharedRing<T> {}
// SAFETY: as above; the slots own their items.
unsafe impl<T: Send> Send for SharedRing<T> {}

impl<T> SharedRing<T> {
    #[inline]
    fn capacity(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    fn slot(&self, index: usize) -> &UnsafeCell<MaybeUninit<T>> {
        // The length is a power of two.
        &self.slots[index & (self.slots.len() - 1)]
    }

    /// Fills a slot.
    ///
    /// # Safety
    /// - The caller is the producer.
    /// - `index` is outside head..tail and less than a capacity past the head.
    #[inline]
    unsafe fn write(&self, index: usize, item: T) {
        // SAFETY: the slot is free and the producer is the only one to touch free slots.
        self.slot(index).with_mut(|slot| unsafe { (*slot).write(item) });
    }

    /// Takes an item out of a slot.
    ///
    /// # Safety
    /// - The caller is the consumer, or owns the whole ring.
    /// - `index` is inside head..tail, and is not taken again.
    #[inline]
    unsafe fn read(&self, index: usize) -> T {
        // SAFETY: slots inside head..tail are filled, and nobody else touches them.
        self.slot(index).with(|slot| unsafe { (*slot).assume_init_read() })
    }
}

impl<T> Drop for SharedRing<T> {
    fn drop(&mut self) {
        // Relaxed: the last of the two ends is gone, and the Arc's count has ordered both before this.
        let tail = self.tail.load(Ordering::Relaxed);
        let mut head = self.head.load(Ordering::Relaxed);
        while head != tail {
            // SAFETY: nobody else is left, and slots inside head..tail hold items.
            drop(unsafe { self.read(head) });
            head = head.wrapping_add(1);
        }
    }
}

struct PushGuard<'a, T, const SOUND: bool> {
    producer: &'a mut Producer<T, SOUND>,
    next: usize,
}

impl<T, const SOUND: bool> Drop for PushGuard<'_, T, SOUND> {
    fn drop(&mut self) {
        self.producer.publish_tail(self.next);
    }
}

struct PopGuard<'a, T, const SOUND: bool> {
    consumer: &'a mut Consumer<T, SOUND>,
    next: usize,
}

impl<T, const SOUND: bool> Drop for PopGuard<'_, T, SOUND> {
    fn drop(&mut self) {
        self.consumer.publish_head(self.next);
    }
}

fn make_ring<T, const SOUND: bool>(capacity: usize) -> (Producer<T, SOUND>, Consumer<T, SOUND>) {
    let capacity = capacity.max(1).checked_next_power_of_two().expect("the ring fits into memory");
    let shared = Arc::new(SharedRing {
        head: CachePadded(AtomicUsize::new(0)),
        tail: CachePadded(AtomicUsize::new(0)),
        producer_gone: CachePadded(AtomicBool::new(false)),
        consumer_gone: CachePadded(AtomicBool::new(false)),
        slots: (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
    });
    let producer = Producer { shared: shared.clone(), tail: 0, head_seen: 0, fulls: 0 };
    (producer, Consumer { shared, head: 0, tail_seen: 0, empties: 0 })
}
