//! One thing goes wrong at a time, and what the handler says of it.

use super::*;

/// A rig whose product has come up: messages 1 and 2, then a snapshot twice, as there are no reference data.
fn up() -> Rig {
    let mut rig = Rig::new("");
    rig.bid(1);
    rig.bid(2);
    rig.send(0, SNAP, &snap(1, 2));
    rig.send(0, SNAP, &snap(2, 2));
    assert_eq!(rig.said(), "recovered 50, whole 9");
    assert_eq!(rig.bids("50"), [2, 1]);
    rig
}

/// Numbers that are alive from 3 on.
fn run(rig: &mut Rig, sends: &[(u8, u64)]) {
    sends.iter().for_each(|(line, n)| rig.send(*line, INC, &bid(*n)));
}

#[test]
fn a_late_joiner_waits_for_a_snapshot_that_covers() {
    let mut rig = Rig::new("");
    rig.bid(7);
    rig.bid(8);
    rig.send(0, SNAP, &snap(1, 5));
    assert_eq!((rig.said(), rig.bids("50").len()), (String::new(), 0), "5 is before the first that came");
    rig.send(0, SNAP, &snap(2, 7));
    assert_eq!(rig.said(), "recovered 50");
    assert_eq!(rig.bids("50"), [8, 7, 6, 5, 4, 3, 2, 1], "8 waited");
    rig.bid(9);
    assert_eq!(rig.bids("50")[0], 9);
}

#[test]
fn what_one_line_loses_the_other_has() {
    let mut rig = up();
    run(&mut rig, &[(0, 3), (1, 3), (1, 4), (0, 5), (1, 5), (1, 6), (0, 6)]);
    assert_eq!((rig.said(), rig.bids("50")[0]), (String::new(), 6));
    let stats = &rig.handler.stats().channels[0];
    // The first two came on line A alone.
    assert_eq!((stats.lines[0].missed, stats.lines[1].missed, stats.recovered, stats.lost), (1, 2, 3, 0));
    assert_eq!(rig.seen.outcomes["duplicate"], 3);
}

#[test]
fn a_packet_that_is_ahead_waits_for_the_other_line() {
    let mut rig = up();
    run(&mut rig, &[(0, 3), (0, 5), (0, 6)]);
    assert_eq!(rig.bids("50")[0], 3, "4 may still come");
    run(&mut rig, &[(1, 3), (1, 4)]);
    assert_eq!((rig.said(), rig.bids("50")[0]), (String::new(), 6));
}

#[test]
fn what_both_lose_is_mended_by_a_snapshot() {
    let mut rig = up();
    run(&mut rig, &[(0, 3), (1, 3), (0, 5), (1, 5), (0, 6), (1, 6), (0, 7), (1, 7)]);
    assert_eq!(rig.said(), "lost 4-4, missing 9 4-4, stale 50");
    rig.send(0, SNAP, &snap(3, 3));
    assert_eq!(rig.said(), "", "older than the gap");
    rig.send(0, SNAP, &snap(4, 6));
    assert_eq!((rig.said(), rig.bids("50")[0]), ("recovered 50".to_owned(), 7));
    rig.send(0, SNAP, &snap(5, 7));
    assert_eq!(rig.said(), "whole 9");
    let counters = rig.handler.stats().products;
    assert_eq!((counters.gaps, counters.missing, counters.snapshots_old), (1, 1, 1));
}

#[test]
fn packets_out_of_order_are_put_in_order() {
    let mut rig = up();
    run(&mut rig, &[(0, 4), (0, 3), (0, 6), (0, 7), (0, 5), (0, 8)]);
    assert_eq!((rig.said(), rig.bids("50")[0]), (String::new(), 8));
    assert_eq!(rig.handler.stats().channels[0].lines[0].reordered, 2);
}

#[test]
fn a_dead_line_is_not_waited_for_and_may_come_back() {
    let mut rig = up();
    run(&mut rig, &[(0, 3), (1, 3)]);
    rig.now += 2_000_000_000;
    // B is silent; A loses 4.
    run(&mut rig, &[(0, 5), (0, 6), (0, 7)]);
    assert_eq!(rig.said(), "lost 4-4, missing 9 4-4, stale 50");
    run(&mut rig, &[(1, 7), (1, 8), (0, 8)]);
    assert_eq!(rig.seen.outcomes["duplicate"], 3);
    // Now A is dead, and B continues alone.
    rig.now += 2_000_000_000;
    run(&mut rig, &[(1, 9), (1, 10)]);
    rig.send(0, SNAP, &snap(3, 10));
    assert_eq!(rig.bids("50")[0], 10);
}

#[test]
fn a_copy_that_is_corrupt_does_not_win() {
    let mut rig = up();
    let mut bad = bid(3);
    bad.truncate(bad.len() - 1);
    rig.send(0, INC, &bad);
    run(&mut rig, &[(0, 4)]);
    assert_eq!((rig.said(), rig.bids("50")[0]), ("refused truncated".to_owned(), 2));
    run(&mut rig, &[(1, 3)]);
    assert_eq!((rig.said(), rig.bids("50")[0]), (String::new(), 4));
    // And one that is ahead of its turn.
    let mut bad = bid(6);
    bad.push(0x80);
    rig.send(0, INC, &bad);
    run(&mut rig, &[(0, 5), (0, 7), (1, 4), (1, 5), (1, 6)]);
    assert_eq!((rig.said(), rig.bids("50")[0]), ("refused truncated".to_owned(), 7));
    assert_eq!(rig.handler.stats().channels[0].lines[0].corrupt, 2);
}

#[test]
fn corrupt_on_both_lines_is_lost() {
    let mut rig = up();
    let mut bad = bid(3);
    bad.truncate(bad.len() - 1);
    rig.send(0, INC, &bad);
    rig.send(1, INC, &bad);
    run(&mut rig, &[(0, 4), (1, 4), (0, 5), (1, 5), (0, 6), (1, 6)]);
    assert_eq!(rig.said(), "refused truncated, refused truncated, lost 3-3, missing 9 3-3, stale 50");
}

#[test]
fn a_gap_while_recovering_makes_older_snapshots_useless() {
    let mut rig = up();
    run(&mut rig, &[(0, 4), (0, 5), (0, 6)]);
    assert_eq!(rig.said(), "lost 3-3, missing 9 3-3, stale 50");
    run(&mut rig, &[(0, 8), (0, 9), (0, 10)]);
    assert_eq!(rig.said(), "lost 7-7, missing 9 7-7");
    rig.send(0, SNAP, &snap(3, 5));
    assert_eq!(rig.said(), "");
    rig.send(0, SNAP, &snap(4, 7));
    assert_eq!((rig.said(), rig.bids("50")[0]), ("recovered 50".to_owned(), 10));
}

#[test]
fn a_beacon_tells_of_a_loss_when_it_is_quiet() {
    let mut rig = up();
    let beacon = |n: u64, last: u64| packet(n, n * 10, false, &[message(4, &[9, last])]);
    rig.send(0, INC, &beacon(3, 2));
    assert_eq!(rig.said(), "");
    rig.send(0, INC, &beacon(4, 5));
    assert_eq!(rig.said(), "missing 9 3-5, stale 50");
    rig.send(0, SNAP, &snap(3, 5));
    assert_eq!((rig.said(), rig.bids("50")[0]), ("recovered 50".to_owned(), 5));
}

#[test]
fn numbers_begin_again() {
    let mut rig = up();
    run(&mut rig, &[(0, 3), (1, 3)]);
    let at = |n: u64, sent: u64, reset: bool| {
        packet(n, sent, reset, &[depth(n, 9, &[(50, 0, 0, n as i64, 1, 1)])])
    };
    rig.send(0, INC, &at(1, 100, true));
    assert_eq!(rig.said(), "restart, stale 50");
    rig.send(1, INC, &at(1, 100, true));
    rig.send(0, INC, &at(2, 110, false));
    rig.send(1, INC, &at(2, 110, false));
    rig.send(0, SNAP, &snap(3, 3));
    assert_eq!(rig.said(), "", "a snapshot with old numbers");
    rig.send(0, SNAP, &packet(1, 100, true, &[snapshot(9, 2, 50, &bids_up_to(2))]));
    assert_eq!((rig.said(), rig.bids("50")), ("restart, recovered 50".to_owned(), vec![2, 1]));
    assert_eq!(rig.handler.stats().channels[0].restarts, 1);
}

/// The packet that says so was lost; the next two do not fit the old numbers.
#[test]
fn numbers_begin_again_without_a_word() {
    let mut rig = up();
    run(&mut rig, &[(0, 3), (1, 3)]);
    let at = |n: u64, sent: u64| packet(n, sent, false, &[depth(n, 9, &[(50, 0, 0, n as i64, 1, 1)])]);
    rig.send(0, INC, &at(2, 110));
    assert_eq!(rig.said(), "", "it may be damage");
    rig.send(0, INC, &at(3, 120));
    assert_eq!(rig.said(), "restart, stale 50");
    rig.send(1, INC, &at(3, 120));
    rig.send(1, INC, &at(4, 130));
    rig.send(0, INC, &at(4, 130));
    rig.send(0, SNAP, &packet(1, 130, true, &[snapshot(9, 3, 50, &bids_up_to(3))]));
    assert_eq!((rig.said(), rig.bids("50")[0]), ("restart, recovered 50".to_owned(), 4));
}

/// One number that is damaged must not end the stream.
#[test]
fn a_number_that_is_far_off_is_set_aside() {
    let mut rig = up();
    rig.send(0, INC, &packet(900_000, 25, false, &[depth(3, 9, &[(50, 0, 0, 3, 1, 1)])]));
    run(&mut rig, &[(0, 3), (0, 4)]);
    assert_eq!((rig.said(), rig.bids("50")[0]), ("refused bad_sequence".to_owned(), 4));
    // Two in a row are believed: both lines were away for long.
    run(&mut rig, &[(0, 5000), (0, 5001)]);
    rig.now += 2_000_000;
    run(&mut rig, &[(0, 5002)]);
    assert_eq!(rig.said(), "lost 5-4999, missing 9 5-4999, stale 50");
}

#[test]
fn a_window_that_is_full_or_old_is_given_up() {
    let mut rig = up();
    // B is alive, and lags: A's packets wait, 16 at most.
    run(&mut rig, &[(1, 3), (0, 3)]);
    (5..21).for_each(|n| run(&mut rig, &[(0, n)]));
    assert_eq!(rig.said(), "");
    run(&mut rig, &[(0, 21)]);
    assert_eq!(rig.said(), "lost 4-4, missing 9 4-4, stale 50");
    run(&mut rig, &[(0, 23)]);
    rig.now += 1_100_000;
    run(&mut rig, &[(0, 24)]);
    assert_eq!(rig.said(), "lost 22-22, missing 9 22-22");
    // A packet that arrives even later is reported, and not used.
    run(&mut rig, &[(1, 22)]);
    assert_eq!(rig.said(), "refused late");
}

#[test]
fn what_waits_is_bounded_and_told() {
    let mut rig = Rig::new("recovery = { levels = 3 }");
    (5..12).for_each(|n| rig.bid(n));
    assert_eq!(rig.said(), "no room");
    rig.send(0, SNAP, &snap(1, 7));
    assert_eq!(rig.said(), "", "8 fell out");
    rig.send(0, SNAP, &snap(2, 8));
    assert_eq!((rig.said(), rig.bids("50")[0]), ("recovered 50".to_owned(), 11));
    assert_eq!(rig.handler.stats().products.no_room, 4);
}

#[test]
fn with_reference_data_a_product_is_whole_when_all_have_come() {
    let mut rig = Rig::new("");
    let define = |n: u64, id: u64| packet(n, n, false, &[message(6, &[9, id])]);
    rig.send(0, REF, &define(1, 50));
    rig.send(0, REF, &define(2, 51));
    rig.bid(1);
    rig.send(0, SNAP, &snap(1, 1));
    assert_eq!(rig.said(), "recovered 50");
    rig.send(0, SNAP, &packet(2, 20, false, &[snapshot(9, 1, 51, &Book::default())]));
    assert_eq!(rig.said(), "recovered 51, whole 9");
    let before = rig.seen.outcomes["ignored"];
    rig.send(0, SNAP, &snap(3, 1));
    assert_eq!(rig.seen.outcomes["ignored"], before + 1, "nobody needs it");
    // A new instrument is asked for.
    rig.send(0, REF, &define(3, 52));
    rig.send(0, SNAP, &packet(4, 90, false, &[snapshot(9, 1, 52, &bids_up_to(2))]));
    assert_eq!((rig.said(), rig.bids("52")), ("recovered 52, whole 9".to_owned(), vec![2, 1]));
}

#[test]
fn books_that_begin_empty_need_no_snapshot() {
    let mut rig = Rig::new("recovery = { first = 1 }");
    rig.bid(1);
    rig.bid(2);
    assert_eq!((rig.said(), rig.bids("50")), ("whole 9, recovered 50".to_owned(), vec![2, 1]));
}

/// Trades and states are facts, whatever is missing of a book.
#[test]
fn trades_and_states_come_while_a_book_is_stale() {
    let mut rig = Rig::new("");
    rig.send(0, INC, &packet(1, 10, false, &[depth(5, 9, &[(50, 0, 2, 77, 1, 0)]), message(5, &[6, 9, 3])]));
    assert_eq!(
        (rig.said(), rig.seen.trades.clone()),
        ("state Number(3) Some(Open)".to_owned(), vec![(50, 77)])
    );
}

#[test]
fn levels_beyond_the_depth_fall_out_in_words() {
    let mut rig = Rig::new("recovery = { first = 1 }");
    let mut product = message(7, &[9]);
    product.extend([b'F', b'D' | 0x80]);
    put(&mut product, 3);
    rig.send(0, REF, &packet(1, 1, false, &[product]));
    let tables = rig.handler.tables();
    assert_eq!((tables.products[0].name.as_str(), tables.products[0].depth), ("FD", Some(3)));
    let send = |rig: &mut Rig, n: u64, e: E| rig.send(0, INC, &packet(n, n, false, &[depth(n, 9, &[e])]));
    (1..5).for_each(|n| send(&mut rig, n, (50, 0, 0, n as i64, 1, 1)));
    assert_eq!(rig.bids("50"), [4, 3, 2]);
    send(&mut rig, 5, (50, 0, 0, 9, 1, 4));
    send(&mut rig, 6, (50, 2, 0, 0, 1, 2));
    assert_eq!(rig.bids("50"), [4, 2]);
    send(&mut rig, 7, (50, 5, 0, 6, 1, 1));
    send(&mut rig, 8, (50, 0, 0, 1, 1, 3));
    assert_eq!(rig.bids("50"), [6, 2, 1]);
    send(&mut rig, 9, (50, 4, 0, 0, 1, 2));
    assert_eq!(rig.bids("50"), [6]);
    send(&mut rig, 10, (50, 0, 0, 5, 1, 2));
    send(&mut rig, 11, (50, 3, 0, 0, 1, 1));
    assert_eq!((rig.bids("50"), rig.seen.faults), (vec![5], 0));
    send(&mut rig, 12, (50, 0, 3, 0, 1, 1));
    assert_eq!(rig.bids("50"), Vec::<i64>::new());
    assert_eq!(rig.handler.stats().products.beyond, 1);
}

#[test]
fn packets_of_no_channel_and_of_no_use_are_told() {
    let mut rig = up();
    rig.send(7, INC, &bid(3));
    rig.send(0, INC, &[0x80]);
    rig.send(0, INC, &message(4, &[9, 1]));
    assert_eq!(rig.said(), "refused D5, refused no_header");
    assert_eq!((rig.handler.stats().unknown, rig.handler.stats().refused), (1, 2));
}

/// Packets that wait at the end are delivered, with their gap.
#[test]
fn the_end_of_a_source_lets_everything_go() {
    let mut rig = up();
    run(&mut rig, &[(0, 3), (1, 3), (0, 5)]);
    rig.handler.finish(&mut rig.seen);
    assert_eq!(rig.said(), "lost 4-4, missing 9 4-4, stale 50");
    assert_eq!(rig.seen.outcomes["waits"], 3, "1, 2 before the snapshot, and 5");
}

/// A channel without snapshots continues after a gap, and says that it is stale.
#[test]
fn without_snapshots_levels_go_on() {
    let mut rig = Rig::new(
        "channel = [{ name = \"inc\", role = \"incremental\", a = [\"224.0.0.1:1\"] }]\nkey = \"channel\"\n",
    );
    rig.seen.goes_on = true;
    rig.bid(1);
    rig.bid(3);
    rig.now += 2_000_000;
    rig.bid(4);
    assert_eq!(rig.said(), "recovered 50, lost 2-2, missing inc 2-2, stale 50");
    assert_eq!(rig.bids("50"), [4, 3, 1]);
}

/// Messages without numbers: a lost packet or an unusable message still makes the books stale. With snapshots such a
/// mapping is refused, because nothing shows which messages they include.
#[test]
fn messages_without_numbers_have_stale_books_behind_a_loss() {
    let table = TABLE.replace("sequence = \"Seq\", instrument", "instrument");
    let refused = config_from(&table, "", "", TEMPLATES).unwrap_err();
    assert!(refused.reason.contains("needs the field `sequence`"), "{}", refused.reason);
    let one =
        "channel = [{ name = \"inc\", role = \"incremental\", a = [\"224.0.0.1:1\"] }]\nmarket_depth = 100\n";
    let config = Arc::new(config_from(&table, one, "", TEMPLATES).unwrap());
    let mut rig = Rig { handler: Engine::new(config), ..Rig::with_table_text("") };
    rig.seen.goes_on = true;
    rig.bid(1);
    rig.bid(2);
    rig.bid(4);
    rig.now += 2_000_000;
    rig.bid(5);
    assert_eq!(rig.said(), "recovered 50, lost 3-3, stale 50");
    // An action that means nothing.
    rig.send(0, INC, &packet(6, 60, false, &[depth(6, 9, &[(50, 77, 0, 6, 1, 1)])]));
    assert_eq!((rig.said(), rig.bids("50")), ("refused bad_value, stale 50".to_owned(), vec![5, 4, 2, 1]));
}

/// A mapping file of one's own, like a shipped one; a mistake in it has its line.
#[test]
fn a_mapping_is_like_a_shipped_one_and_mistakes_have_their_line() {
    let dir = tempfile::tempdir().unwrap();
    // The shipped one has a name for a message of ours.
    std::fs::write(dir.path().join("t.xml"), TEMPLATES.replace("Beacon", "Pulse")).unwrap();
    let write = |more: &str| {
        let text = format!(
            "name = \"mine\"\nformat = \"fast\"\n[fast]\nlike = \"t7-emdi\"\ntemplates = [\"t.xml\"]\n{more}\n\
             [fast.framing]\nheader = \"Head\"\nsequence = \"Number\"\n\
             [[fast.channel]]\nname = \"inc\"\nrole = \"incremental\"\na = [\"224.0.0.1:1\"]\n"
        );
        let path = dir.path().join("mine.toml");
        std::fs::write(&path, text).unwrap();
        HandlerConfig::load(&path).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(write("venue = \"XEUR\""), Ok(()));
    for (more, line, says) in [
        ("venue = 1", 6, "invalid type"),
        ("key = \"channels\"", 6, "unknown variant"),
        ("window = { packets = 0 }", 6, "window.packets: 1 to 4096"),
        ("[fast.action]\n0 = \"nwe\"", 7, "no `nwe`"),
        ("[[fast.message]]\ntemplates = [\"Depht\"]\nkind = \"ignore\"", 7, "no template is called Depht"),
        (
            "[[fast.message]]\ntemplates = [\"Depth\"]\nkind = \"depth\"\nfields = { pxx = \"Px\", instrument = \"x\" }",
            9,
            "no field `pxx`",
        ),
        (
            "[[fast.message]]\ntemplates = [\"Depth\"]\nkind = \"depth\"\nfields = { instrument = \"Entries.I\" }",
            9,
            "no field `Entries.I` in Depth",
        ),
        ("[[fast.message]]\ntemplates = [\"Depth\"]\nkind = \"depth\"", 6, "needs the field `instrument`"),
    ] {
        let error = write(more).unwrap_err();
        assert!(error.contains(&format!("mine.toml:{line}: ")) && error.contains(says), "{error}\n{more}");
    }
}

/// A venue does not say that its last level falls out: who does not know how many there are has levels that are none.
#[test]
fn a_book_waits_for_reference_data_that_tell_its_depth() {
    let mut rig = Rig::with_table_text("");
    rig.bid(1);
    rig.send(0, SNAP, &snap(1, 1));
    assert_eq!(rig.said(), "");
    let mut message = message(7, &[9]);
    message.push(b'P' | 0x80);
    put(&mut message, 1);
    rig.send(0, REF, &packet(1, 1, false, &[message]));
    rig.send(0, SNAP, &snap(2, 1));
    rig.bid(2);
    assert_eq!((rig.said(), rig.bids("50")), ("recovered 50".to_owned(), vec![2]));
}
