//! The normal form: numbers, identities, event records, their frame. No I/O, no clock.
//!
//! ```text
//!   num  Price, Decimal, Amount, UnixNanos        exact, or refused
//!   id   Dict, InlineId, Sequence                 interned or inline
//!   kind Kind, EventField      schema Schema, Slot     which fields an event has, and where they are
//!   builder EventBuilder    event Event, Value     build and read by field
//!   records Bbo, Trade, Order                     the same bytes as plain records
//!   dict Dictionary       frame Header, Position
//!   class FieldClass                              market data, parties, or where an event came from
//!   row RowSchema, EventRow                       events of a schema as a table
//!   name_table DefinitionTable                          what ids on a tape mean, learned from its definitions
//!   cause ErrorCause                            whose fault an error is
//!   words                                         short texts in registers
//!   calendar Calendar, SessionClock, CivilDate      session, trade and spot dates
//! ```
//!
//! ```
//! use unitape_model::{Dictionary, Event, EventBuilder, EventField, EventKind, EventSchema, UnixNanos, EventValue, Price};
//!
//! let (mut arena, mut names) = (Vec::new(), Dictionary::default());
//! let schema = EventSchema::for_kind(EventKind::Trade);
//! let mut e = EventBuilder::begin(&mut arena, EventKind::Trade, UnixNanos(1_710_167_400_000_000_000));
//! for (field, text) in [("instr", "GB00B03MLX29"), ("px", "2500.5"), ("qty", "1500"), ("match_id", "M1")] {
//!     e.set_text(schema.find(field).unwrap(), text.as_bytes(), &mut names).unwrap();
//! }
//! assert!(e.missing_field().is_none());
//! e.finish(0).unwrap();
//! assert_eq!(arena.len(), 64);
//! let event = Event::new(&arena).unwrap();
//! assert_eq!(event.field(EventField::Px, &mut [0; 36]), Some(EventValue::Price(Price(2_500_500_000_000))));
//! ```
//!
//! It does not read bytes of any feed (`unitape-codec` does), or put events anywhere (`unitape-tape`).

#[cfg(not(target_endian = "little"))]
compile_error!("tapes are little-endian and so are the machines unitape runs on");

pub mod builder;
pub mod calendar;
pub mod cause;
pub mod class;
pub mod dict;
pub mod event;
pub mod frame;
pub mod id;
pub mod id_layout;
pub mod kind;
pub mod message;
pub mod name_source;
pub mod name_table;
pub mod num;
pub mod records;
pub mod refusal;
pub mod row;
pub mod schema;
pub mod side;
pub mod tape_gap;
pub mod tape_position;
pub mod words;

pub use builder::{EventBuilder, PreparedValue};
pub use calendar::{
    Calendar, CalendarError, CivilDate, CurrencyPair, DateParseError, DayKind, LocalClock, MarketSession,
    PairClock, PairDates, SessionClock, SessionDate, TimeParseError, UtcMoment,
};
pub use cause::ErrorCause;
pub use class::{ClassSet, FieldClass};
pub use dict::{Dictionary, NameResolver};
pub use event::{Event, EventValue};
pub use frame::{FrameHeader, LINE, Position, flags, frames};
pub use id::{ChannelId, InlineId, InstrumentId, NameKind, ProductId, SequenceNumber};
pub use kind::{EventField, EventKind};
pub use message::TopicMessage;
pub use name_source::NameSource;
pub use name_table::{DefinitionTable, FrameFault, LostNameCounts, SourceDefinition};
pub use num::{Amount, Decimal, NumberFault, Price, Quantity, UnixNanos};
pub use refusal::Refusal;
pub use row::{ColumnForm, ColumnValue, EventRow, RowColumn, RowSchema};
pub use schema::{EventFieldSpec, EventSchema, FieldLayout};
pub use side::Side;
pub use tape_gap::TapeGap;
pub use tape_position::TapePosition;
