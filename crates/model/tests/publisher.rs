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

#[test]
fn both_are_refused() {
    let both = [(EventField::Bank, "BANKA"), (EventField::Instr, "EURUSD"), (EventField::Venue, "XOFF")];
    assert_eq!(quote(&both).unwrap_err(), Refusal::TwoPublishers);
}
