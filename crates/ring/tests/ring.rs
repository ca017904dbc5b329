//! The ring against its obvious twin, a `VecDeque`, and under load between two threads.
#![cfg(not(loom))]

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
};

use proptest::prelude::*;
use unitape_ring::{PopError, PushError, WaitStrategy, Waiter, ring};

#[derive(Clone, Debug)]
enum Step {
    Push,
    PushBatch(usize),
    PushSlice(usize),
    Pop,
    PopBatch(usize),
    PopSlice(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        Just(Step::Push),
        (0usize..12).prop_map(Step::PushBatch),
        (0usize..12).prop_map(Step::PushSlice),
        Just(Step::Pop),
        (0usize..12).prop_map(Step::PopBatch),
        (0usize..12).prop_map(Step::PopSlice),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// An index that is off by one shows at the wrap: an item is overwritten, read twice, or a slot is never
    /// used. The copies of the other side's index go stale on purpose; a stale one must only ever cost a
    /// look, never an item.
    #[test]
    fn a_ring_is_a_bounded_queue(capacity in 0usize..9, steps in steps()) {
        let (mut producer, mut consumer) = ring(capacity);
        let bound = capacity.max(1).next_power_of_two();
        prop_assert_eq!((producer.capacity(), consumer.capacity()), (bound, bound));
        let mut twin = VecDeque::new();
        let mut next = 0u64;
        for step in steps {
            let room = bound - twin.len();
            match step {
                Step::Push => {
                    let expected = if room > 0 { Ok(()) } else { Err(PushError::Full(next)) };
                    prop_assert_eq!(producer.try_push(next), expected);
                    if room > 0 {
                        twin.push_back(next);
                        next += 1;
                    }
                }
                Step::PushBatch(n) => {
                    let mut items = next..next + n as u64;
                    prop_assert_eq!(producer.push_batch(&mut items), n.min(room));
                    prop_assert_eq!(items.count(), n - n.min(room), "an item without room was taken");
                    twin.extend((next..).take(n.min(room)));
                    next += n.min(room) as u64;
                }
                Step::PushSlice(n) => {
                    let items: Vec<u64> = (next..).take(n).collect();
                    prop_assert_eq!(producer.push_slice(&items), n.min(room));
                    twin.extend(&items[..n.min(room)]);
                    next += n.min(room) as u64;
                }
                Step::Pop => {
                    prop_assert_eq!(consumer.try_pop(), twin.pop_front().ok_or(PopError::Empty));
                }
                Step::PopBatch(n) => {
                    let mut got = Vec::new();
                    let popped = consumer.pop_batch(n, |item| got.push(item));
                    let expected: Vec<u64> = twin.drain(..n.min(twin.len())).collect();
                    prop_assert_eq!(popped, expected.len());
                    prop_assert_eq!(got, expected);
                }
                Step::PopSlice(n) => {
                    let mut got = vec![u64::MAX; n];
                    let popped = consumer.pop_slice(&mut got);
                    let expected: Vec<u64> = twin.drain(..n.min(twin.len())).collect();
                    prop_assert_eq!(&got[..popped], &expected[..]);
                    prop_assert!(got[popped..].iter().all(|rest| *rest == u64::MAX));
                }
            }
        }
        drop(producer);
        for expected in twin {
            prop_assert_eq!(consumer.try_pop(), Ok(expected));
        }
        prop_assert_eq!(consumer.try_pop(), Err(PopError::Closed));
    }
}

/// The items are boxed, so that a torn or doubled one is a crash or a sanitizer's report and not a number
/// that happens to be right; the tiny ring makes both sides meet at the bound all the time.
#[test]
fn items_cross_threads_whole_and_in_order() {
    const ITEMS: u64 = 200_000;
    for capacity in [1, 2, 64] {
        let (mut producer, mut consumer) = ring::<Box<u64>>(capacity);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut waiter = Waiter::new(WaitStrategy::Balanced);
                let mut items = (0..ITEMS).map(Box::new);
                let mut sent = 0;
                while sent < ITEMS {
                    match producer.push_batch(&mut items.by_ref().take(7)) {
                        0 => waiter.wait(),
                        n => {
                            sent += n as u64;
                            waiter.reset();
                        }
                    }
                }
            });
            let mut waiter = Waiter::new(WaitStrategy::Balanced);
            let mut expected = 0;
            loop {
                // By turns one by one and in batches.
                let popped = if expected % 3 == 0 {
                    match consumer.try_pop() {
                        Ok(item) => {
                            assert_eq!(*item, expected);
                            expected += 1;
                            1
                        }
                        Err(PopError::Empty) => 0,
                        Err(PopError::Closed) => break,
                    }
                } else {
                    consumer.pop_batch(5, |item| {
                        assert_eq!(*item, expected);
                        expected += 1;
                    })
                };
                if popped > 0 {
                    waiter.reset();
                } else if consumer.is_closed() {
                    // The last items may have come between the empty look and the closing, so one more look
                    // decides; what it finds counts like any other.
                    match consumer.try_pop() {
                        Ok(item) => {
                            assert_eq!(*item, expected);
                            expected += 1;
                        }
                        Err(PopError::Empty) => {}
                        Err(PopError::Closed) => break,
                    }
                } else {
                    waiter.wait();
                }
            }
            assert_eq!(expected, ITEMS);
        });
    }
}

/// A producer that never learns that its consumer died waits for room for ever.
#[test]
fn each_end_learns_that_the_other_is_gone() {
    let (mut producer, consumer) = ring(2);
    producer.try_push(1).unwrap();
    assert!(!producer.is_closed() && !consumer.is_closed());
    drop(consumer);
    assert!(producer.is_closed());
    assert_eq!(producer.try_push(2), Err(PushError::Closed(2)));
    assert_eq!(producer.push_batch(&mut [3].into_iter()), 0);

    let (mut producer, mut consumer) = ring(2);
    producer.try_push(1).unwrap();
    drop(producer);
    assert!(consumer.is_closed());
    assert_eq!(consumer.try_pop(), Ok(1), "what was pushed before closing is not lost");
    assert_eq!(consumer.try_pop(), Err(PopError::Closed));
}

/// A bound that nobody counts is met unseen.
#[test]
fn meeting_the_bound_is_counted() {
    let (mut producer, mut consumer) = ring(2);
    assert_eq!(consumer.try_pop(), Err(PopError::Empty));
    assert_eq!(producer.push_slice(&[1, 2, 3]), 2);
    assert_eq!(producer.fulls(), 0);
    assert_eq!(producer.try_push(3), Err(PushError::Full(3)));
    assert_eq!(producer.push_slice(&[3]), 0);
    assert_eq!((producer.fulls(), consumer.empties()), (2, 1));
}

/// An item dropped twice or never: both happen when a closure panics between moving an item and moving the
/// index.
#[test]
fn every_item_is_dropped_once_also_when_a_closure_panics() {
    let token = Rc::new(());
    let (mut producer, mut consumer) = ring(8);

    let mut items = (0..5).map(|i| if i == 3 { panic!("the fourth") } else { token.clone() });
    let pushed = catch_unwind(AssertUnwindSafe(|| producer.push_batch(&mut items)));
    assert!(pushed.is_err());
    assert_eq!(Rc::strong_count(&token), 4, "the three before the panic are in the ring");

    let mut seen = 0;
    let popped = catch_unwind(AssertUnwindSafe(|| {
        consumer.pop_batch(8, |_item| {
            seen += 1;
            assert!(seen < 2, "the second");
        })
    }));
    assert!(popped.is_err());
    assert_eq!(Rc::strong_count(&token), 2, "one is left in the ring");

    drop(producer);
    drop(consumer);
    assert_eq!(Rc::strong_count(&token), 1, "the ring drops what nobody popped");
}
