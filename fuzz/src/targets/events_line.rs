//! Any bytes as an event line: read or refused, and what was read comes back whole from its full form.

use unitape_codec::events::{EventLineDetail, ParsedEventLine, LineParseOptions, EmptySourceLookup, parse_full, parse_line, write_event};
use unitape_model::{Dictionary, Event};

pub fn run(data: &[u8]) {
    let (mut names, mut arena) = (Dictionary::default(), Vec::new());
    for full in [false, true] {
        arena.clear();
        let read = if full {
            parse_full(data, &mut arena)
        } else {
            parse_line(data, &mut names, &mut arena, &LineParseOptions::default())
        };
        let Ok(ParsedEventLine::Event { start, .. }) = read else {
            assert!(arena.is_empty(), "a line that gives no event leaves nothing");
            continue;
        };
        assert_eq!(start, 0);
        let event = Event::new(&arena).expect("the frame just made");
        let mut text = Vec::new();
        write_event(&mut text, &event, 0, &names, &EmptySourceLookup, EventLineDetail::Full);
        let mut back = Vec::new();
        parse_full(&text, &mut back).expect("our own line");
        assert_eq!(back, arena);
        text.clear();
        write_event(&mut text, &event, 0, &names, &EmptySourceLookup, EventLineDetail::Plain);
    }
}
