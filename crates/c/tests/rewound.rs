//! A tape that a power loss made shorter, for C: a subscription that could not be opened, or skipped messages without a
//! code.

#[path = "../../tape/tests/common/lines.rs"]
mod lines;

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

use lines::{Lines, number, power_fails};
use unitape_c::*;
use unitape_tape::WriterOptions as TapeOptions;

type Subscription = *mut Handle<OpenSubscription>;

fn publish(dir: &Path) -> unitape_tape::Publication {
    let options = TapeOptions { segment_bytes: 4096, prefault_bytes: 0, ..TapeOptions::default() };
    unitape_tape::Publication::open(dir, options).unwrap()
}

fn last() -> String {
    // SAFETY: a C string of this thread, copied at once.
    unsafe { CStr::from_ptr(unitape_last_error()) }.to_str().unwrap().to_owned()
}

fn subscribe(dir: &CString, name: &CStr) -> Subscription {
    let mut subscription = null_mut();
    // SAFETY: all pointers are good.
    let given =
        unsafe { unitape_subscription_open(dir.as_ptr(), name.as_ptr(), 0, 0, &raw mut subscription) };
    assert_eq!(given, 0, "{}", last());
    subscription
}

/// The numbers that are there, and the codes below zero.
fn read(subscription: Subscription) -> (Vec<u64>, Vec<i32>) {
    let (mut numbers, mut codes) = (Vec::new(), Vec::new());
    // SAFETY: numbers and pointers; the frame's bytes stay until the next call.
    unsafe {
        let mut frame: Frame = std::mem::zeroed();
        loop {
            match unitape_subscription_next(subscription, &raw mut frame) {
                0 => return (numbers, codes),
                1 => numbers.push(number(std::slice::from_raw_parts(frame.bytes.cast::<u8>(), frame.length))),
                code => codes.push(code),
            }
            assert!(codes.len() < 5);
        }
    }
}

#[test]
fn a_subscription_learns_that_the_tape_was_cut_back() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("tape");
    let path = CString::new(dir.as_os_str().as_bytes()).unwrap();
    let mut publication = publish(&dir);
    publication.put(0..50);
    publication.make_durable();
    publication.put(50..100);
    let (mut epoch, mut position) = (0, 0);
    // SAFETY: all pointers are good, each handle is closed once.
    unsafe {
        let subscription = subscribe(&path, c"risk");
        assert_eq!(read(subscription).0.len(), 100);
        assert_eq!(unitape_subscription_acknowledge(subscription), 0);
        assert_eq!(unitape_subscription_epoch(subscription, &raw mut epoch), 0);
        assert_eq!(unitape_subscription_position(subscription, &raw mut position, null_mut()), 0);
        assert_eq!(unitape_subscription_close(subscription), 0);
    }
    assert!(epoch > 0 && position == 6400);
    drop(publication);
    power_fails(&dir, 3200);
    let mut publication = publish(&dir);
    publication.put(1000..1200);
    // SAFETY: as above.
    unsafe {
        let mut resumed = null_mut();
        let given = unitape_subscription_resume(path.as_ptr(), epoch, position, &raw mut resumed);
        assert_eq!(given, 0, "{}", last());
        for subscription in [subscribe(&path, c"risk"), resumed] {
            assert_eq!(read(subscription), ((1000..1200).collect(), vec![code::REWOUND]));
            assert!(last().contains("cut back to position 3200"), "{}", last());
            let (mut count, mut from, mut to) = (0, 0, 0);
            let given =
                unitape_subscription_rewound(subscription, &raw mut count, &raw mut from, &raw mut to);
            assert_eq!((given, count, from, to), (0, 1, 6400, 3200));
            assert_eq!(unitape_subscription_rewound(subscription, null_mut(), null_mut(), null_mut()), 0);
            assert_eq!(unitape_subscription_close(subscription), 0);
        }
    }
    publication.close().unwrap();
}

/// A least epoch that the tape has not reached is that of a newer copy.
#[test]
fn an_older_copy_has_a_code() {
    let temp = tempfile::tempdir().unwrap();
    let path = CString::new(temp.path().join("tape").as_os_str().as_bytes()).unwrap();
    let open = |epoch_min| {
        let mut publication = null_mut();
        // SAFETY: all pointers are good.
        unsafe {
            let mut options: Options = std::mem::zeroed();
            assert_eq!(unitape_options_init(&raw mut options, size_of::<Options>()), 0);
            (options.segment_bytes, options.epoch_min) = (4096, epoch_min);
            let given = unitape_publication_open(path.as_ptr(), &raw const options, &raw mut publication);
            if given == 0 {
                assert_eq!(unitape_publication_close(publication), 0);
            }
            given
        }
    };
    assert_eq!([open(7), open(9), open(8)], [0, code::OLD_EPOCH, 0]);
}
