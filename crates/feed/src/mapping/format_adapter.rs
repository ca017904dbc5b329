//! The seam: all that a format adds to the mapping.
//!
//! ```text
//!  mapping.toml ──compile──▶ Plan      rules over numbered slots, the same for every format
//!       │  paths by Dialect   │ Places  which path has which slot, for the format to fill
//!       ▼                     ▼
//!  bytes ──format──▶ Message: slot → value ──Mapper──▶ events, quarantine
//! ```
//!
//! A format adds two things. A [`Dialect`] says, when a mapping is compiled, how its fields are named: a FIX tag
//! (`44`), the name of a column (`bid_price`), a SWIFT tag and a part of it (`32A.amount`). A [`ParsedMessage`] says,
//! for each message, which value is in which slot and how its values are written. Rules, conditions,
//! groups, tables, constants, what is kept and dropped, event time, sequence and quarantine are not its
//! business.
//!
//! **Slots.** Compiling gives every path that the mapping looks at a small number, and [`PathSlots`] passes it to the
//! format: `message[path] = slot`, 0 for paths that are known and not wanted; a path that is not there is *unlisted*.
//! A group's entries have slots of their own: `groups[g].members`. A format whose paths have parts (`61.amount` of
//! the member `61`) says so with [`Dialect::container`]; a part of a member has a slot in the entry, and a part that
//! is named makes the whole known.
//!
//! **Values** stay where they are: a [`ParsedMessage::Ref`] is a number that finds one (an index into a table of
//! tokens or parts). It must stay good while the message does; the mapper keeps it for values that are picked
//! out of groups.
//!
//! **To add a format:** a module in `formats` that implements both traits, frames its bytes as a
//! [`FormatDecoder`](crate::formats::format::FormatDecoder) and calls [`MessageMapper::message`](super::MessageMapper::message) for each
//! message; a line in `formats::registry`; its mappings, where some are shipped, in `mappings/` and in `built_in`. A
//! format whose messages are text values by name needs only a decoder of them, as a
//! [`TextFormat`](crate::formats::text::TextFormat): `examples/formats/ltsv.patch` adds one.

use crate::block::BlockNameResolver;
use crate::block::numbers::SequenceEffect;
use std::collections::BTreeMap;
use std::fmt::Debug;
use unitape_base::digits::parse_u64;
use unitape_model::schema::EventFieldSpec;
use unitape_model::{EventBuilder, Refusal, UnixNanos};

/// The paths by which a format names its fields.
pub trait Dialect {
    /// A field's place as the format knows it; two spellings of one place are equal.
    type Path: Clone + Ord + Debug;

    /// The path that selects among the rules first, as mappings spell it.
    const TYPE_PATH: &'static str;

    /// Whether a group has a field that counts its entries. Where it has, the group's name is the path of that
    /// field unless `count` says otherwise.
    const COUNTED_GROUPS: bool;

    /// Whether the first field of an entry marks where the entry begins. Where it does not, `delimiter` may be left
    /// out.
    const DELIMITED_GROUPS: bool = true;

    /// Reads a path.
    ///
    /// # Errors
    /// Fails if the path is invalid; the text says why.
    fn path(&self, text: &str) -> Result<Self::Path, String>;

    /// Lists the fields that framing uses and that say nothing about the market: they do not count as unlisted.
    fn framing(&self) -> Vec<Self::Path> {
        Vec::new()
    }

    /// Returns the field that contains `path`, if it is part of another field.
    fn container(&self, path: &Self::Path) -> Option<Self::Path> {
        _ = path;
        None
    }
}

/// The slots of paths.
#[derive(Clone, Debug)]
pub struct PathSlots<P> {
    /// Slots of the message by path; 0 is known and not wanted. A path that is missing here is unlisted.
    pub message: BTreeMap<P, u8>,
    /// Paths that are known and not wanted by name: framing, and those that the mapping drops. They are in `message`,
    /// too.
    pub dropped: Vec<P>,
    /// Whether unlisted fields are kept.
    pub keeps: bool,
    /// The groups, in the order in which [`ParsedMessage::next_entry`] numbers them.
    pub groups: Vec<GroupSlots<P>>,
}

/// The slots of a group's entries.
#[derive(Clone, Debug)]
pub struct GroupSlots<P> {
    /// The field that counts the entries, and its slot in the message.
    pub count: Option<(P, u8)>,
    /// First field of every entry.
    pub delimiter: P,
    /// Slots of an entry by path: 1, 2, … in the order the mapping lists its members, then parts of members.
    pub members: BTreeMap<P, u8>,
}

/// A message that its format has parsed.
pub trait ParsedMessage {
    /// Finds a value of the message.
    type Ref: Copy + Debug;

    /// The word for a field in errors: `tag`, `column`.
    const FIELD: &'static str;
    /// The word for a message's type in errors: `MsgType`.
    const TYPE: &'static str;
    /// The required form of an event time, in errors: `UTCTimestamp`.
    const TIME: &'static str;

    /// Whether its text may be of a set of characters that nothing declares: values that are not UTF-8 are read as
    /// [`unitape_codec::charset`] says.
    const UNDECLARED_TEXT: bool = false;

    /// Whether messages of a source have the same fields, which its header names: rows of separated values.
    const HAS_HEADER: bool = false;

    /// Explains why a required value is absent, if the format knows more than its path.
    #[cold]
    fn missing_note(&self, path: &str) -> Option<String> {
        _ = path;
        None
    }

    /// Returns whether no message of this source has a value in this slot, because its header does not name the
    /// field.
    #[inline]
    fn is_absent(&self, slot: u8) -> bool {
        _ = slot;
        false
    }

    /// Returns a note in words if the message was decoded as a whole with a guessed or unknown character set.
    #[inline]
    fn charset_note(&self) -> Option<&str> {
        None
    }

    /// Returns the bytes of the whole message, as they go into quarantine.
    fn raw(&self) -> &[u8];

    /// Returns the value in a slot of the message.
    fn slot(&self, slot: u8) -> Option<Self::Ref>;

    /// Returns the value as plain text: digits with `.` for decimals, `Y` and `N` for flags. Tables and conditions
    /// read this text, and it is the text that is kept. Formats that write values otherwise use `scratch`.
    fn text<'v>(&'v self, value: Self::Ref, scratch: &'v mut Vec<u8>) -> &'v [u8];

    /// Parses the value as a whole number of at most 19 digits, for the sequence.
    #[inline]
    fn number(&self, value: Self::Ref) -> Option<u64> {
        parse_u64(self.text(value, &mut Vec::new()))
    }

    /// Returns the effect of a message on the numbers of its session. `kind` is its type; `may_be_repeat` must be
    /// true if it may have been sent before.
    #[inline]
    fn sequence_effect(&self, kind: Option<Self::Ref>, sequence: u64, may_be_repeat: bool) -> SequenceEffect {
        _ = (kind, sequence, may_be_repeat);
        SequenceEffect::Counts
    }

    /// Returns whether the value has the form that its format requires. [`ParsedMessage::set_field`] refuses a value that
    /// has another form; so does an unlisted field whose name implies the form.
    #[inline]
    fn is_of_form(&self, value: Self::Ref) -> bool {
        _ = value;
        true
    }

    /// Describes the wrong component of a value with the wrong form, for people.
    #[cold]
    fn describe_flaw(&self, value: Self::Ref) -> Option<String> {
        _ = value;
        None
    }

    /// Returns whether a message is of use without this value of the wrong form, if its field is optional.
    #[cold]
    fn is_dispensable(&self, value: Self::Ref) -> bool {
        _ = value;
        false
    }

    /// Returns the value as a time.
    fn time(&self, value: Self::Ref) -> Option<UnixNanos>;

    /// Puts the value into a field of the event; by way of its text unless the format knows a shorter one.
    ///
    /// # Errors
    /// Fails if the field cannot hold it exactly.
    #[inline]
    fn set_field(
        &self,
        value: Self::Ref,
        event: &mut EventBuilder<'_>,
        spec: &EventFieldSpec,
        names: &mut BlockNameResolver<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        event.set_text(spec, self.text(value, scratch), names)
    }

    /// Fills `entry` with the next entry of a group; returns false after the last one. `entry` must have only empty
    /// slots, and the cursor the state of the previous call.
    ///
    /// # Errors
    /// Fails if the group is not what it says it is.
    fn next_entry(
        &self,
        group: usize,
        cursor: &mut EntryCursor,
        entry: &mut [Option<Self::Ref>],
    ) -> Result<bool, MessageRefusal> {
        _ = (group, cursor, entry);
        Ok(false)
    }

    /// Passes every field that the mapping does not list to `keep`, name and value, without those that are in an entry of
    /// one of these groups, if the format knows of any.
    ///
    /// # Errors
    /// Fails if `keep` fails.
    fn visit_unlisted(
        &self,
        groups: &[usize],
        keep: impl FnMut(&str, &[u8]) -> Result<(), MessageRefusal>,
    ) -> Result<(), MessageRefusal> {
        _ = (groups, keep);
        Ok(())
    }

    /// Passes the fields of an entry that the mapping does not list to `keep`, name and value.
    ///
    /// # Errors
    /// Fails if `keep` fails.
    fn unlisted_in_entry(
        &self,
        step: EntryStep,
        keep: impl FnMut(&str, &[u8]) -> Result<(), MessageRefusal>,
    ) -> Result<(), MessageRefusal> {
        _ = (step, keep);
        Ok(())
    }
}

/// The position of a walk over a group's entries; all 0 at its start. The fields are the format's to use.
#[derive(Clone, Copy, Debug, Default)]
pub struct EntryCursor {
    /// Start of the next entry.
    pub position: usize,
    /// Entries passed.
    pub entry_count: u64,
}

/// A step of a walk over a group's entries: the positions before and after the current entry.
#[derive(Clone, Copy, Debug)]
pub struct EntryStep {
    /// The group.
    pub group: usize,
    /// Before the entry.
    pub before: EntryCursor,
    /// After it.
    pub after: EntryCursor,
}

/// Why a message was refused; the words go into quarantine.
#[derive(Debug)]
pub struct MessageRefusal {
    /// One word.
    pub code: &'static str,
    /// A sentence for people.
    pub detail: String,
}

impl MessageRefusal {
    /// Returns whether the message is faulty. Otherwise the message is whole, and the mapping lacks a rule or table
    /// entry for it.
    pub fn is_garbled(&self) -> bool {
        let unwanted = ["no_rule", "no_event", "unused_entry", "unknown_value", "unknown_symbol"];
        !unwanted.contains(&self.code)
    }
}
