//! A bank once lost its name: a quote that carried `bank` kept it as text beside the event, which no book of best
//! prices would have looked at.

use unitape_model::{
    Dictionary, Event, EventBuilder, EventField, EventKind, EventSchema, EventValue, NameKind, Refusal,
    UnixNanos, flags,
};

fn quote(fields: &[(EventField, &str)]) -> Result<(Vec<u8>, Dictionary), Refusal> {
    let (mut arena, mut names) = (Vec::new(), Dictionary::default());
    let mut e = EventBuilder::begin(&mut arena, EventKind::Quote, UnixNanos(5));
    for (field, text) in fields {
        e.set_text(
            EventSchema::for_kind(EventKind::Quote).get(*field).unwrap(),
            text.as_bytes(),
            &mut names,
        )?;
    }
    e.finish(flags::LAST)?;
    Ok((arena, names))
}

#[test]
fn a_bank_stands_in_the_venues_place_and_is_told_from_one() {
    for (field, other) in [(EventField::Bank, EventField::Venue), (EventField::Venue, EventField::Bank)] {
        let (frame, names) = quote(&[(EventField::Instr, "EURUSD"), (field, "BANKA")]).unwrap();
        assert_eq!(frame.len(), 64, "one line");
        let event = Event::new(&frame).unwrap();
        assert_eq!(event.field(field, &mut [0; 36]), Some(EventValue::Sym(NameKind::Venue, 1)));
        assert_eq!(event.field(other, &mut [0; 36]), None);
        assert_eq!((event.venue(), names.name(NameKind::Venue, 1)), (1, Some("BANKA")));
    }
}

/// A bank quotes otherwise on each of its venues: under one name its quotes there would replace one another.
#[test]
fn a_bank_at_a_venue_is_one_publisher() {
    for (first, second) in [(EventField::Bank, EventField::Venue), (EventField::Venue, EventField::Bank)] {
        let name = |field| if field == EventField::Bank { "BANKA" } else { "XOFF" };
        let fields = [(first, name(first)), (EventField::Instr, "EURUSD"), (second, name(second))];
        let (frame, names) = quote(&fields).unwrap();
        let event = Event::new(&frame).unwrap();
        assert_eq!(names.name(NameKind::Venue, event.venue().into()), Some("BANKA@XOFF"));
        assert!(event.field(EventField::Bank, &mut [0; 36]).is_some());
        assert_eq!(event.field(EventField::Venue, &mut [0; 36]), None);
    }
}

#[test]
fn what_would_be_two_things_under_one_name_is_refused() {
    for (bank, venue) in [("A@B", "C"), ("A", "B@C")] {
        let both = [(EventField::Instr, "EURUSD"), (EventField::Bank, bank), (EventField::Venue, venue)];
        assert_eq!(quote(&both).unwrap_err(), Refusal::PublisherName);
    }
    let twice = [(EventField::Instr, "EURUSD"), (EventField::Bank, "A"), (EventField::Bank, "B")];
    assert_eq!(quote(&twice).unwrap_err(), Refusal::TwoPublishers);
    let long = "n".repeat(250);
    let both = [(EventField::Instr, "EURUSD"), (EventField::Bank, &long), (EventField::Venue, "VENUES")];
    assert_eq!(quote(&both).unwrap_err(), Refusal::NameLength);
}
