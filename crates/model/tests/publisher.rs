//! A bank once lost its name: a quote that carried `bank` kept it as text beside the event, which no book of best
//! prices would have looked at.

use unitape_model::{
    Dict, Dictionary, Event, EventBuilder, Field, Kind, Refusal, Schema, UnixNanos, Value, flags,
};

fn quote(fields: &[(Field, &str)]) -> Result<(Vec<u8>, Dictionary), Refusal> {
    let (mut arena, mut names) = (Vec::new(), Dictionary::default());
    let mut e = EventBuilder::begin(&mut arena, Kind::Quote, UnixNanos(5));
    for (field, text) in fields {
        e.set_text(Schema::of(Kind::Quote).get(*field).unwrap(), text.as_bytes(), &mut names)?;
    }
    e.finish(flags::LAST)?;
    Ok((arena, names))
}

#[test]
fn a_bank_stands_in_the_venues_place_and_is_told_from_one() {
    for (field, other) in [(Field::Bank, Field::Venue), (Field::Venue, Field::Bank)] {
        let (frame, names) = quote(&[(Field::Instr, "EURUSD"), (field, "BANKA")]).unwrap();
        assert_eq!(frame.len(), 64, "one line");
        let event = Event::new(&frame).unwrap();
        assert_eq!(event.field(field, &mut [0; 36]), Some(Value::Sym(Dict::Venue, 1)));
        assert_eq!(event.field(other, &mut [0; 36]), None);
        assert_eq!((event.venue(), names.name(Dict::Venue, 1)), (1, Some("BANKA")));
    }
}

#[test]
fn both_are_refused() {
    let both = [(Field::Bank, "BANKA"), (Field::Instr, "EURUSD"), (Field::Venue, "XOFF")];
    assert_eq!(quote(&both).unwrap_err(), Refusal::TwoPublishers);
}
