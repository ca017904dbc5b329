//! Numbers that begin again, in all the ways in which nobody says so: a book that continues by the old ones is live
//! and frozen.

use super::*;

/// A product whose messages 1 to `n` have come, and a snapshot of them.
fn up_to(more: &str, n: u64) -> Rig {
    let mut rig = Rig::new(more);
    (1..=n).for_each(|n| rig.bid(n));
    rig.send(0, SNAP, &snap(1, n));
    rig.send(0, SNAP, &snap(2, n));
    assert_eq!(rig.said(), "recovered 50, whole 9");
    rig
}

/// A packet and message of new numbers, sent then, by this sender.
fn renumbered(sender: u64, n: u64, sent: u64, reset: bool) -> Vec<u8> {
    let mut out = message(1, &[sender, 4]);
    out.extend((n as u32).to_be_bytes());
    put(&mut out, 8);
    out.extend(sent.to_be_bytes());
    put(&mut out, reset.into());
    out.extend(depth(n, 9, &[(50, 0, 0, 500 + n as i64, 1, 1)]));
    out
}

/// A header that says so is believed without a clock, however near the old numbers are; its own copies are copies.
#[test]
fn a_word_is_believed_without_a_clock() {
    let mut rig = up_to(
        "framing = { header = \"Head\", sequence = \"Number\", sender = \"Sender\", reset = \"Reset\" }",
        500,
    );
    for line in [0, 0, 1] {
        rig.send(line, INC, &renumbered(7, 1, 10, true));
    }
    (2..400).for_each(|n| rig.send(0, INC, &renumbered(7, n, 10, false)));
    assert_eq!((rig.said(), rig.handler.stats().channels[0].restarts), ("restart, stale 50".to_owned(), 1));
    // And once more.
    rig.now += 2_000_000_000;
    rig.send(0, INC, &renumbered(7, 1, 10, true));
    assert_eq!((rig.said(), rig.handler.stats().channels[0].restarts), ("restart".to_owned(), 2));
}

/// A damaged clock in a copy that is bad must not make all that follows look old.
#[test]
fn a_damaged_clock_is_not_believed() {
    let mut rig = up_to("", 20);
    let mut bad = packet(21, 1 << 62, false, &[depth(21, 9, &[(50, 0, 0, 21, 1, 1)])]);
    bad.pop();
    rig.send(0, INC, &bad);
    rig.bid(21);
    // A good packet, but a copy.
    rig.send(1, INC, &packet(21, 1 << 62, false, &[depth(21, 9, &[(50, 0, 0, 21, 1, 1)])]));
    assert_eq!((rig.said(), rig.bids("50")[0]), ("refused truncated".to_owned(), 21));
    // No packet says so, and both lines restart.
    for n in 2..6 {
        (0..2).for_each(|line| rig.send(line, INC, &renumbered(7, n, 1000 + n, false)));
    }
    assert_eq!(rig.said(), "restart, stale 50");
    assert_eq!(rig.seen.outcomes["waits"], 20 + 4);
}

/// The machine that continues may have a clock that lags.
#[test]
fn a_word_is_believed_from_a_clock_that_is_behind() {
    let mut rig = up_to("", 20);
    (1..=10).for_each(|n| rig.send(0, INC, &renumbered(7, n, 150 + n, n == 1)));
    assert_eq!((rig.said(), rig.book("50")), ("restart, stale 50".to_owned(), None));
    // A late copy of that word is no other one.
    rig.send(1, INC, &renumbered(7, 1, 151, true));
    rig.send(0, INC, &renumbered(7, 1, 151, true));
    assert_eq!((rig.said(), rig.handler.stats().channels[0].restarts), (String::new(), 1));
}

/// A line that is heard for the first time when numbers begin again.
#[test]
fn a_word_is_believed_from_a_line_that_was_not_heard() {
    let mut rig = up_to("", 20);
    (1..4).for_each(|n| rig.send(1, INC, &renumbered(7, n, 1000 + n, n == 1)));
    assert_eq!((rig.said(), rig.book("50")), ("restart, stale 50".to_owned(), None));
    // But not from one that is late with the first of these numbers.
    let mut rig = Rig::new("");
    (2..=5).for_each(|n| rig.bid(n));
    rig.send(0, SNAP, &snap(1, 5));
    rig.said();
    rig.send(1, INC, &packet(1, 10, true, &[depth(1, 9, &[(50, 0, 0, 1, 1, 1)])]));
    assert_eq!((rig.said(), rig.bids("50")[0]), (String::new(), 5));
}

/// Another sender continues, with numbers that begin again.
#[test]
fn another_sender_goes_on() {
    for said in [true, false] {
        let mut rig = up_to("", 20);
        // Copies that another sender sends are none of this.
        (15..=20).for_each(|n| rig.send(0, INC, &renumbered(6, n, n * 10 + 3, false)));
        assert_eq!((rig.said(), rig.bids("50")[0]), (String::new(), 20));
        let sent = if said { 1000 } else { 100_000_000 };
        for n in 1..=15 {
            rig.send(0, INC, &renumbered(8, n, sent + n, n == 1 && said));
        }
        assert_eq!((rig.said(), rig.book("50")), ("restart, stale 50".to_owned(), None), "{said}");
        rig.send(0, SNAP, &snap(3, 20));
        assert_eq!(rig.said(), "", "a snapshot of the old numbers");
        rig.send(0, SNAP, &snap(4, 15));
        assert_eq!((rig.said(), rig.bids("50")[0]), ("recovered 50".to_owned(), 15));
    }
}

/// Without clocks, and without numbers of packets: what arrives is old, and stays old.
#[test]
fn numbers_of_messages_begin_again_alone() {
    let mut rig = Rig::new("framing = { length = true }\nreset = \"message\"");
    let one = |n: u64| {
        let message = depth(n, 9, &[(50, 0, 0, n as i64, 1, 1)]);
        let mut out = Vec::new();
        put(&mut out, message.len() as u64);
        out.extend(message);
        out
    };
    for n in 1..=5 {
        (0..2).for_each(|line| rig.send(line, INC, &one(n)));
    }
    assert_eq!(rig.seen.outcomes["duplicate"], 5);
    rig.now += 2_000_000_000;
    (1..=3).for_each(|n| rig.send(0, INC, &one(n)));
    assert_eq!(rig.said(), "restart");
}

/// The incremental channel begins again, and the snapshots of the old numbers continue for long: they are ahead.
#[test]
fn old_snapshots_are_not_of_new_numbers() {
    let mut rig = up_to("", 50);
    (1..3).for_each(|n| rig.send(0, INC, &renumbered(7, n, 1000 + n, n == 1)));
    assert_eq!(rig.said(), "restart, stale 50");
    rig.now += 1_500_000_000;
    rig.send(0, SNAP, &snap(3, 50));
    (3..=30).for_each(|n| rig.send(0, INC, &renumbered(7, n, 1000 + n, false)));
    assert_eq!((rig.said(), rig.book("50")), (String::new(), None));
    rig.send(0, SNAP, &snap(4, 30));
    assert_eq!((rig.said(), rig.bids("50")[0]), ("recovered 50".to_owned(), 30));
}

/// A product that is quiet is known by its snapshots alone: it begins again with the channel that it would be of.
#[test]
fn a_quiet_product_begins_again_with_its_pair() {
    let mut rig = Rig::new("");
    let other = |n: u64| packet(n, n * 10, false, &[depth(n, 8, &[(40, 0, 0, 1, 1, 1)])]);
    rig.send(0, INC, &other(1));
    rig.send(0, SNAP, &snap(1, 50));
    assert_eq!(rig.said(), "recovered 50");
    (2..=5).for_each(|n| rig.send(0, INC, &other(n)));
    (1..=30).for_each(|n| rig.send(0, INC, &renumbered(7, n, 1000 + n, n == 1)));
    assert_eq!((rig.said(), rig.book("50")), ("restart, stale 50".to_owned(), None));
}

/// A receiver may join by snapshots alone, and first hear of the incremental channel that its numbers begin. Its
/// snapshots then have other numbers: they were once believed where the new numbers came past theirs.
#[test]
fn numbers_that_begin_with_the_first_packet_heard_are_not_those_of_snapshots_before() {
    let mut rig = Rig::new("");
    rig.send(0, SNAP, &snap(7, 3));
    assert_eq!((rig.said(), rig.bids("50")), ("recovered 50".to_owned(), vec![3, 2, 1]));
    let begun = |n: u64| packet(n, 1000 + n, n == 1, &[depth(n, 9, &[(50, 0, 0, 90 + n as i64, 1, 1)])]);
    (1..=6).for_each(|n| rig.send(0, INC, &begun(n)));
    assert_eq!((rig.said(), rig.bids("50")), ("restart, stale 50".to_owned(), vec![]));
    // A packet with new numbers is as good as ever.
    rig.send(0, SNAP, &packet(1, 2000, true, &[snapshot(9, 6, 50, &bids_up_to(2))]));
    assert_eq!(rig.bids("50"), [2, 1]);
}

/// Both lines lost the first packets of the new numbers. The packet that then arrived was the next by the old
/// numbers, so books from before and after were mixed. The snapshots' numbers reveal it.
#[test]
fn a_restart_that_both_lines_missed_is_told_by_the_snapshots() {
    let at = |n: u64, seq: u64| packet(n, 200 + n, false, &[depth(seq, 9, &[(50, 0, 0, 7, 1, 1)])]);
    let again = packet(1, 210, true, &[snapshot(9, 1, 50, &bids_up_to(1))]);
    for snapshots_first in [false, true] {
        let mut rig = Rig::new("recovery = { first = 1 }");
        for n in 1..=3 {
            (0..2).for_each(|line| rig.send(line, INC, &bid(n)));
        }
        rig.send(0, SNAP, &snap(7, 3));
        rig.said();
        if snapshots_first {
            rig.send(0, SNAP, &again);
            assert_eq!(rig.said(), "restart");
        }
        for (n, seq) in [(6, 4), (7, 5), (8, 6)] {
            (0..2).for_each(|line| rig.send(line, INC, &at(n, seq)));
        }
        if snapshots_first {
            assert_eq!(rig.said(), "lost 4-5, stale 50");
        } else {
            assert_eq!(rig.said(), "lost 4-5");
            rig.send(0, SNAP, &again);
            assert_eq!(rig.said(), "restart, stale 50");
        }
        // A packet that is older than one with new numbers is of no use.
        rig.send(0, INC, &at(9, 7));
        rig.send(0, SNAP, &packet(2, 290, false, &[snapshot(9, 2, 50, &bids_up_to(2))]));
        assert_eq!(rig.said(), "");
        rig.send(0, SNAP, &packet(3, 300, false, &[snapshot(9, 7, 50, &bids_up_to(2))]));
        assert_eq!((rig.said(), rig.bids("50")), ("recovered 50".to_owned(), vec![2, 1]));
    }
}

/// A packet that did not decode had its line treat all that came with lesser numbers as stragglers: numbers that had
/// begun again were not believed until they came past it.
#[test]
fn a_damaged_packet_does_not_hide_that_numbers_begin_again() {
    let mut rig = Rig::new("recovery = { first = 1 }");
    (1..=4).for_each(|n| rig.send(0, INC, &bid(n)));
    let mut damaged = bid(5);
    damaged.truncate(damaged.len() - 1);
    rig.send(0, INC, &damaged);
    rig.said();
    let renumbered = |n: u64| packet(n, 1000 + n, false, &[depth(n, 9, &[(50, 0, 0, 70 + n as i64, 1, 1)])]);
    (1..=2).for_each(|n| rig.send(0, INC, &renumbered(n)));
    assert_eq!(rig.said(), "restart, stale 50, recovered 50, whole 9");
    // A straggler from before a damaged one is none that begins again, and the other copy of that one is none either.
    let mut rig = Rig::new("recovery = { first = 1 }");
    for payload in [bid(1), bid(2), damaged, bid(4), bid(3), bid(5), bid(6)] {
        rig.send(0, INC, &payload);
    }
    assert_eq!(rig.bids("50"), [6, 5, 4, 3, 2, 1]);
}

/// A packet that is far behind lies aside until a second one says that numbers have begun again. Packets that waited
/// until then have old numbers, and a snapshot with new ones was once applied with them.
#[test]
fn no_snapshot_is_taken_while_a_packet_lies_aside() {
    let mut rig = Rig::new("");
    (1..=4).for_each(|n| rig.send(0, INC, &bid(n)));
    let renumbered = |n: u64| packet(n, 1000 + n, false, &[depth(n, 9, &[(50, 0, 0, 70 + n as i64, 1, 1)])]);
    rig.send(0, INC, &renumbered(1));
    rig.send(0, SNAP, &packet(1, 1010, false, &[snapshot(9, 1, 50, &bids_up_to(1))]));
    assert_eq!((rig.said(), rig.book("50")), (String::new(), None));
    rig.send(0, INC, &renumbered(2));
    assert_eq!(rig.said(), "restart");
    rig.send(0, SNAP, &packet(2, 1020, false, &[snapshot(9, 1, 50, &bids_up_to(1))]));
    assert_eq!(rig.bids("50"), [72, 1]);
}

/// In a silence of both lines a snapshot came that has messages up to 20. A packet that is sent after it with a
/// smaller number has new numbers. By the old ones it would be the next, or one after a gap: the earlier book was
/// once considered whole.
#[test]
fn a_message_that_an_earlier_snapshot_has_is_of_new_numbers() {
    let clockless =
        "framing = { header = \"Head\", sequence = \"Number\", sender = \"Sender\", reset = \"Reset\" }";
    let depth_of = |n: u64| depth(n, 9, &[(50, 0, 0, 70, 1, 1)]);
    let beacon_of = |last: u64| message(4, &[9, last]);
    // Packets are all there: what is missing are messages.
    let up_to_20 = |more: &str| {
        let mut rig = up_to(more, 5);
        rig.send(0, INC, &packet(6, 80, false, &[depth_of(8)]));
        rig.send(0, SNAP, &snap(3, 20));
        assert_eq!(rig.said(), "missing 9 6-7, stale 50, recovered 50");
        rig
    };
    for (message, missing, next) in
        [(depth_of(12), 11, 13), (depth_of(9), 8, 10), (beacon_of(12), 12, 13), (beacon_of(8), 8, 9)]
    {
        for (more, sent, after) in [("", 2_000_000, 0), (clockless, 0, 1_500_000_000)] {
            let mut rig = up_to_20(more);
            rig.now += after;
            rig.send(0, INC, &packet(7, sent, false, std::slice::from_ref(&message)));
            assert_eq!((rig.said(), rig.book("50")), ("restart, stale 50".to_owned(), None), "{next} {sent}");
            // One without the last message that is missing is of no use.
            rig.send(0, SNAP, &packet(4, sent + 10, false, &[snapshot(9, missing - 1, 50, &bids_up_to(2))]));
            (0..3).for_each(|n| rig.send(0, INC, &packet(8 + n, sent + n, false, &[depth_of(next + n)])));
            assert_eq!((rig.said(), rig.book("50")), (String::new(), None), "{next} {sent}");
            rig.send(0, SNAP, &packet(5, sent + 90, false, &[snapshot(9, next, 50, &bids_up_to(2))]));
            assert_eq!(rig.bids("50"), [70, 70, 2, 1], "{next} {sent}");
        }
    }
    // A line that is slow brings what the snapshot has already, and the message after those is none of them.
    for (more, sent, number) in [("", 900_000, 12), (clockless, 0, 9), ("", 2_000_000, 21)] {
        let mut rig = up_to_20(more);
        rig.send(0, INC, &packet(7, sent, false, &[depth_of(number)]));
        let said = rig.said();
        assert!(!said.contains("restart") && !said.contains("stale"), "{number} {sent}: {said}");
    }
}

/// Line A brought two packets of the old numbers and no more, and line B the first five of the new ones. When A comes back with
/// the sixth, B is silent: A's number was once taken for numbers that begin once more, because they were beyond A's own.
#[test]
fn a_line_that_comes_back_goes_on_behind_the_other() {
    let mut rig = Rig::new("recovery = { first = 1 }");
    (1..=2).for_each(|n| rig.bid(n));
    (1..=9).for_each(|n| rig.send(1, INC, &bid(n)));
    let renumbered = |n: u64| packet(n, 1000 + n, n == 1, &[depth(n, 9, &[(50, 0, 0, 70 + n as i64, 1, 1)])]);
    (1..=5).for_each(|n| rig.send(1, INC, &renumbered(n)));
    rig.said();
    rig.now += 2_000_000_000;
    (6..=7).for_each(|n| rig.send(0, INC, &renumbered(n)));
    assert_eq!((rig.said(), rig.bids("50").len()), (String::new(), 7));
    assert_eq!(rig.handler.stats().channels[0].lines[0].missed, 7 + 5);
}
