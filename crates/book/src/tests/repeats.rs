//! Events whose messages may be there twice.

use super::BookFixture;
use crate::BookOptions;
use unitape_model::InstrumentId;

/// A listing that its feed had cleared was said to have nothing but repeats as soon as any other listing had one.
#[test]
fn only_a_listing_whose_events_were_all_repeats_has_only_repeats() {
    let order = "new oid=A side=B px=10 qty=5";
    for (lines, has_only_repeats) in [
        (&[order][..], false),
        (&["new oid=A side=B px=10 qty=5 repeat=Y"], true),
        (&["level side=B px=10 qty=5 action=A repeat=Y", "session phase=open"], true),
        (&["new oid=A side=B px=10 qty=5 repeat=Y", order], false),
        (&[order, "status state=restarted"], false),
        (&[order, "cancel oid=A repeat=Y", "status state=restarted"], false),
        (&[order, "session phase=close", "session phase=pre"], false),
        (&[order, "status state=restarted", "new oid=B side=B px=9 qty=5 repeat=Y"], true),
        (&["session phase=open", "status state=halted repeat=Y"], false),
    ] {
        let mut books = BookFixture::new(BookOptions::default());
        lines.iter().for_each(|line| _ = books.feed(line));
        books.feed("new oid=C side=B px=10 qty=5 instr=BARC repeat=Y");
        let find = |id| books.books.find(1, InstrumentId(id)).unwrap_or_else(|| panic!("{id} {lines:?}"));
        let [vod, barc] = [find(1), find(2)];
        assert_eq!(books.books.has_only_repeats(vod), has_only_repeats, "{lines:?}");
        assert!(books.books.has_only_repeats(barc));
    }
}
