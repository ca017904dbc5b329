//! Amends that say what is taken off an order: read as the whole of the order, a cancel of 100 of 300 left 100.

use super::{BookFixture, orders};
use crate::{Basis, BookOptions};

/// Applies the lines, and returns the book of orders and its faults.
fn after(lines: &[&str]) -> (String, Vec<(&'static str, u64)>) {
    let mut books = BookFixture::new(BookOptions::default());
    lines.iter().for_each(|line| _ = books.feed(line));
    (books.orders(), books.faults())
}

const QUEUE: [&str; 2] = ["new oid=A side=B px=10 qty=300", "new oid=B side=B px=10 qty=200"];

#[test]
fn a_reduction_is_taken_off_what_is_left_and_keeps_the_place() {
    let reduced = |lines: &[&str]| orders(&[&QUEUE[..], lines].concat());
    assert_eq!(reduced(&["amend oid=A qty_reduced=100"]), "10:400(A,B) | ");
    assert_eq!(reduced(&["amend oid=A side=B px=10 qty_reduced=0.5"]), "10:499.5(A,B) | ");
    let twice = ["amend oid=A qty_reduced=100", "amend oid=A qty_reduced=100"];
    assert_eq!(reduced(&twice), "10:300(A,B) | ");
    // What was executed stays executed: a later total counts it.
    let executed = ["exec oid=A qty=50", "amend oid=A qty_reduced=100"];
    assert_eq!(reduced(&executed), "10:350(A,B) | ");
    assert_eq!(reduced(&[&executed[..], &["amend oid=A qty=60"]].concat()), "10:210(A,B) | ");
    // Another price takes the place, with what is left.
    assert_eq!(reduced(&["amend oid=A px=11 qty_reduced=100"]), "11:200(A) 10:200(B) | ");
}

/// An order of which nothing is left goes; a reduction of more than is left is as an execution of more than that.
#[test]
fn a_reduction_of_all_or_more_ends_the_order() {
    let end = |line: &str| after(&[&QUEUE[..], &[line]].concat());
    assert_eq!(end("amend oid=A qty_reduced=300"), ("10:200(B) | ".to_owned(), vec![]));
    for line in ["amend oid=A qty_reduced=301", "exec oid=A qty=301"] {
        assert_eq!(end(line), ("10:200(B) | ".to_owned(), vec![("negative_left", 1)]), "{line}");
    }
}

#[test]
fn a_reduction_that_cannot_be_is_left_out() {
    let unchanged = |line: &str, fault| {
        let (book, faults) = after(&[&QUEUE[..], &[line]].concat());
        assert_eq!((book.as_str(), faults), ("10:500(A,B) | ", vec![(fault, 1)]), "{line}");
    };
    unchanged("amend oid=A qty_reduced=0", "bad_quantity");
    unchanged("amend oid=A qty_reduced=-1", "bad_quantity");
    unchanged("amend oid=A qty_reduced=0.00000000000000000000001", "bad_quantity");
    unchanged("amend oid=C qty_reduced=1", "unknown_order");
}

/// The absolute quantity of an event is worth more than its difference to the one before.
#[test]
fn a_total_or_what_is_left_counts_before_a_reduction() {
    let total = |line: &str| orders(&[&QUEUE[..], &[line]].concat());
    assert_eq!(total("amend oid=A qty=250 qty_reduced=100"), "10:450(A,B) | ");
    assert_eq!(total("amend oid=A left=40 qty_reduced=100"), "10:240(A,B) | ");
}

/// Only an amend has the field: elsewhere it is the user's own.
#[test]
fn other_events_have_no_reduction() {
    let lines = ["new oid=C side=B px=9 qty=10 qty_reduced=4", "exec oid=A qty=100 qty_reduced=50"];
    assert_eq!(orders(&[&QUEUE[..], &lines].concat()), "10:400(A,B) 9:10(C) | ");
}

/// Of an order that is shown in part the level loses what is no longer shown.
#[test]
fn a_reduction_of_a_partly_shown_order() {
    let shown = "new oid=A side=B px=10 qty=300 display_qty=100";
    assert_eq!(orders(&[shown, "amend oid=A qty_reduced=150"]), "10:100(A) | ");
    assert_eq!(orders(&[shown, "amend oid=A qty_reduced=250"]), "10:50(A) | ");
}

/// An order that is being matched rests after the reduction that leaves nothing to meet, as after another amend.
#[test]
fn a_reduction_while_an_order_is_matched() {
    let lines = ["new oid=S side=S px=10 qty=5", "new oid=B side=B px=10 qty=8"];
    let mut books = BookFixture::new(BookOptions::default());
    lines.iter().for_each(|line| _ = books.feed(line));
    books.feed("amend oid=B qty_reduced=2");
    assert_eq!(books.show(Basis::Orders), " | 10:5(S)");
    books.feed("exec oid=S qty=5");
    assert_eq!(books.show(Basis::Orders), "10:6(B) | ");
}

/// Nobody knows whether a repeated reduction was counted.
#[test]
fn a_repeated_reduction_makes_the_book_stale() {
    let mut books = BookFixture::new(BookOptions::default());
    QUEUE.iter().for_each(|line| _ = books.feed(line));
    books.feed("amend oid=A qty_reduced=100 repeat=Y");
    assert_eq!((books.orders().as_str(), books.marks(Basis::Orders)), ("10:500(A,B) | ", vec!["stale"]));
}
