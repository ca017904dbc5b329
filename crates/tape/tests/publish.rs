//! Messages: offered, drafted, in batches, given up, forgotten; and subscriptions that come back.

mod common;

use std::path::Path;
use std::time::Duration;

use common::{ID, content, directory, options};
use proptest::prelude::*;
use unitape_model::{FrameHeader, LINE, TopicMessage, flags};
use unitape_tape::{
    Error, Publication, Reader, StartPosition, Subscription, TapeId, WaitStrategy, Writer, WriterOptions,
    info, verify,
};

#[derive(Clone, Debug)]
enum Step {
    Offer(Vec<u8>),
    Draft(Vec<u8>, Fate),
    Batch(Vec<Vec<u8>>, Fate),
    Event(u16),
    Reopen,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Committed,
    Dropped,
    /// `mem::forget` is safe Rust; a publisher that does it must not put garbage onto the tape.
    Forgotten,
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..400);
    let fate =
        || prop::sample::select(vec![Fate::Committed, Fate::Committed, Fate::Dropped, Fate::Forgotten]);
    prop_oneof![
        4 => bytes().prop_map(Step::Offer),
        4 => (bytes(), fate()).prop_map(|(bytes, fate)| Step::Draft(bytes, fate)),
        4 => (prop::collection::vec(bytes(), 0..12), fate()).prop_map(|(all, fate)| Step::Batch(all, fate)),
        2 => (1u16..6).prop_map(Step::Event),
        1 => Just(Step::Reopen),
    ]
}

/// The frame of a message, made the slow way.
fn message(topic: u32, bytes: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; (16 + bytes.len()).div_ceil(LINE) * LINE];
    FrameHeader::new_unstamped(64, flags::LAST, (frame.len() / LINE) as u16).write(&mut frame);
    frame[8..12].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
    frame[12..16].copy_from_slice(&topic.to_le_bytes());
    frame[16..16 + bytes.len()].copy_from_slice(bytes);
    frame
}

fn event(lines: u16) -> Vec<u8> {
    let mut frame = vec![lines as u8; usize::from(lines) * LINE];
    FrameHeader::new_unstamped(20, flags::LAST, lines).write(&mut frame);
    frame
}

/// The messages that the steps must put onto a tape, in order.
fn expected(steps: &[Step]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for (topic, step) in steps.iter().enumerate() {
        match step {
            Step::Offer(bytes) | Step::Draft(bytes, Fate::Committed) => {
                frames.push(message(topic as u32, bytes));
            }
            Step::Batch(all, Fate::Committed) => {
                frames.extend(all.iter().map(|bytes| message(topic as u32, bytes)));
            }
            Step::Event(lines) => frames.push(event(*lines)),
            Step::Draft(..) | Step::Batch(..) | Step::Reopen => {}
        }
    }
    frames
}

/// A message that was given up must be nowhere, a committed one everywhere, byte for byte as if appended frame by
/// frame.
fn run(steps: &[Step], options: &WriterOptions, dir: &Path) {
    Writer::open(dir, ID, options.clone()).unwrap().0.close().unwrap();
    let mut publication = Publication::open(dir, options.clone()).unwrap();
    let mut subscription = Subscription::open(dir, StartPosition::Oldest).unwrap();
    let mut seen = Vec::new();
    for (topic, step) in steps.iter().enumerate() {
        let topic = topic as u32;
        match step {
            Step::Offer(bytes) => _ = publication.offer(topic, bytes).unwrap(),
            Step::Draft(bytes, fate) => {
                let mut draft = publication.claim(topic, bytes.len()).unwrap();
                assert!(draft.iter().all(|&b| b == 0), "a draft begins as zeros");
                draft.copy_from_slice(bytes);
                match fate {
                    Fate::Committed => _ = draft.commit().unwrap(),
                    Fate::Dropped => drop(draft),
                    Fate::Forgotten => std::mem::forget(draft),
                }
            }
            Step::Batch(all, fate) => {
                let before = publication.end();
                let mut batch = publication.batch();
                for bytes in all {
                    batch.push(topic, bytes).unwrap();
                    assert!(subscription.next().unwrap().is_none(), "seen before it was committed");
                }
                assert_eq!((batch.len(), batch.is_empty()), (all.len() as u64, all.is_empty()));
                match fate {
                    Fate::Committed => assert!(batch.commit().unwrap() >= before),
                    Fate::Dropped => drop(batch),
                    Fate::Forgotten => std::mem::forget(batch),
                }
            }
            Step::Event(lines) => _ = publication.writer().append(&event(*lines)).unwrap(),
            Step::Reopen => {
                publication.close().unwrap();
                publication = Publication::open(dir, options.clone()).unwrap();
            }
        }
        while let Some(frame) = subscription.next().unwrap() {
            seen.push(frame.bytes.to_vec());
        }
    }
    publication.close().unwrap();
    let frames = expected(steps);
    while seen.len() < frames.len() {
        assert!(subscription.wait(Duration::from_secs(180)).unwrap(), "{} of {}", seen.len(), frames.len());
        seen.extend(subscription.next().unwrap().map(|frame| frame.bytes.to_vec()));
    }
    assert!(subscription.next().unwrap().is_none());
    let same = |(a, b): (&Vec<u8>, &Vec<u8>)| a[8..] == b[8..] && a[4..8] == b[4..8];
    assert!(seen.len() == frames.len() && seen.iter().zip(&frames).all(same));
    assert!(verify(dir).unwrap().is_intact());

    let one = directory();
    let (mut writer, _) = Writer::open(one.path(), ID, common::options(4096, None)).unwrap();
    frames.iter().for_each(|frame| _ = writer.append(frame).unwrap());
    writer.close().unwrap();
    let (a, b) = (content(dir), content(one.path()));
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    assert!(a.iter().all(|(name, bytes)| *bytes == b[name]), "differs from a tape of appended frames");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_is_committed_is_there_and_nothing_else(steps in prop::collection::vec(step(), 1..40), hot: bool) {
        let (dir, other) = (directory(), directory());
        let place = other.path().join("hot");
        run(&steps, &options(4096, hot.then_some(place.as_path())), dir.path());
    }
}

/// Once a subscriber that came back began at the oldest message again, or lost what it had not acknowledged.
#[test]
fn a_named_subscription_goes_on_where_it_acknowledged() {
    let dir = directory();
    let mut publication = Publication::open(dir.path(), options(64 << 10, None)).unwrap();
    for i in 0..10u32 {
        publication.offer(i, &i.to_le_bytes()).unwrap();
    }
    let topics = |from: StartPosition, take: usize, acknowledge: bool| {
        let mut subscription =
            Subscription::open_named(dir.path(), "risk", from).unwrap().with_wait(WaitStrategy::Park);
        let mut topics = Vec::new();
        let count = subscription.poll(take, |frame| topics.push(frame.message().unwrap().topic)).unwrap();
        assert_eq!(count, topics.len());
        if acknowledge {
            subscription.acknowledge().unwrap();
        }
        topics
    };
    assert_eq!(topics(StartPosition::Oldest, 3, true), [0, 1, 2]);
    assert_eq!(topics(StartPosition::Oldest, 4, false), [3, 4, 5, 6]);
    assert_eq!(topics(StartPosition::End, 100, true), [3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(topics(StartPosition::Oldest, 100, true), [0u32; 0]);
    publication.close().unwrap();
    let mut publication = Publication::open(dir.path(), options(64 << 10, None)).unwrap();
    publication.offer(10, b"").unwrap();
    assert_eq!(topics(StartPosition::Oldest, 100, false), [10]);
    let mut nameless = Subscription::open(dir.path(), StartPosition::End).unwrap();
    assert!(matches!(nameless.acknowledge(), Err(Error::Option(_))));
    assert!(!nameless.wait(Duration::from_millis(1)).unwrap());
}

/// A cursor copied from another tape, an older one or a damaged one would start a reader at a wrong place.
#[test]
fn a_cursor_of_another_tape_is_refused() {
    let (a, b) = (directory(), directory());
    for (dir, id) in [(&a, 1), (&b, 2)] {
        Writer::open(dir.path(), TapeId(id), options(4096, None)).unwrap().0.close().unwrap();
        Subscription::open_named(dir.path(), "risk", StartPosition::End).unwrap().acknowledge().unwrap();
    }
    let cursor = |dir: &Path| dir.join("run/cursors/risk");
    let good = std::fs::read(cursor(b.path())).unwrap();
    std::fs::copy(cursor(a.path()), cursor(b.path())).unwrap();
    let open = || Subscription::open_named(b.path(), "risk", StartPosition::Oldest).map(drop);
    assert!(matches!(open(), Err(Error::ForeignTape { tape_id: TapeId(1), expected_id: TapeId(2), .. })));
    std::fs::write(cursor(b.path()), [0; 12]).unwrap();
    assert!(matches!(open(), Err(Error::Damage { .. })));
    for at in 0..64 {
        let mut bad = good.clone();
        bad[at] ^= 1;
        std::fs::write(cursor(b.path()), &bad).unwrap();
        assert!(open().is_err(), "byte {at}");
    }
    std::fs::write(cursor(b.path()), &good).unwrap();
    open().unwrap();
    assert!(matches!(
        Subscription::open_named(Path::new("/nowhere"), "risk", StartPosition::End),
        Err(Error::NotATape { .. })
    ));
}

/// Services start in any order; a subscriber must not fail because it is the first.
#[test]
fn a_subscriber_may_come_before_the_tape() {
    let dir = directory();
    let tape = dir.path().join("tape");
    assert!(!Subscription::await_tape(&tape, Duration::from_millis(2)).unwrap());
    std::thread::scope(|s| {
        let waiting = s.spawn(|| {
            assert!(Subscription::await_tape(&tape, Duration::from_secs(60)).unwrap());
            let mut subscription = Subscription::open(&tape, StartPosition::Oldest).unwrap();
            assert!(subscription.wait(Duration::from_secs(60)).unwrap());
            subscription.next().unwrap().unwrap().message().map(|m| (m.topic, m.bytes.to_vec()))
        });
        let mut publication = Publication::open(&tape, options(4096, None)).unwrap();
        publication.offer(7, b"first").unwrap();
        assert_eq!(waiting.join().unwrap(), Some((7, b"first".to_vec())));
    });
    // Every tape made so has an identity of its own, and keeps it.
    let id = info(&tape).unwrap().id;
    Publication::open(&tape, options(4096, None)).unwrap().close().unwrap();
    assert_eq!(info(&tape).unwrap().id, id);
    let other = dir.path().join("other");
    Publication::open(&other, options(4096, None)).unwrap().close().unwrap();
    assert_ne!(info(&other).unwrap().id, id);
}

/// A way of waiting that slept through what came, or never gave up, would look like a lost message or a dead publisher.
#[test]
fn every_way_of_waiting_is_woken_by_what_comes_and_gives_up_in_time() {
    for wait in [WaitStrategy::Spin, WaitStrategy::Balanced, WaitStrategy::Park] {
        let dir = directory();
        let mut publication = Publication::open(dir.path(), options(4096, None)).unwrap();
        let mut subscription = Subscription::open(dir.path(), StartPosition::Oldest).unwrap().with_wait(wait);
        assert!(!subscription.wait(Duration::ZERO).unwrap(), "{wait:?}: nothing is there");
        assert!(!subscription.wait(Duration::from_millis(2)).unwrap(), "{wait:?}: nothing is there");
        std::thread::scope(|s| {
            // Over the ends of segments, where waiting asks the file system.
            let reading = s.spawn(move || {
                let mut topics = Vec::new();
                while topics.len() < 200 {
                    assert!(subscription.wait(Duration::from_secs(900)).unwrap(), "{wait:?}");
                    let before = subscription.position();
                    assert!(subscription.wait(Duration::ZERO).unwrap(), "what is there is there at once");
                    assert_eq!(subscription.position(), before, "waiting reads nothing");
                    topics.extend(subscription.next().unwrap().unwrap().message().map(|m| m.topic));
                }
                topics
            });
            for topic in 0..200 {
                publication.offer(topic, &[7; 100]).unwrap();
                if topic % 16 == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            assert!(reading.join().unwrap().into_iter().eq(0..200), "{wait:?}");
        });
        publication.close().unwrap();
    }
}

/// Too long for a frame or for the tape's segments: refused, and the publication continues.
#[test]
fn messages_that_are_too_long_are_refused() {
    let dir = directory();
    let mut publication = Publication::open(dir.path(), options(4096, None)).unwrap();
    publication.offer(0, b"before").unwrap();
    for length in [4096, 4 << 20, 5 << 20] {
        assert!(matches!(publication.offer(0, &vec![1; length]), Err(Error::BadUnit { .. })), "{length}");
        assert!(matches!(publication.claim(0, length).map(drop), Err(Error::BadUnit { .. })), "{length}");
        assert!(
            matches!(publication.batch().push(0, &vec![1; length]), Err(Error::BadUnit { .. })),
            "{length}"
        );
    }
    publication.offer(0, &[2; 4096 - 16]).unwrap();
    let unfinished = FrameHeader::new_unstamped(20, 0, 1);
    assert!(matches!(publication.writer().draft(unfinished).map(drop), Err(Error::BadUnit { .. })));
    publication.close().unwrap();
    let mut reader = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
    let mut lengths = Vec::new();
    while let Some(frame) = reader.next().unwrap() {
        lengths.push(TopicMessage::from_frame(frame.bytes).unwrap().bytes.len());
    }
    assert_eq!(lengths, [6, 4080]);
}
