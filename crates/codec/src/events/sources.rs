//! Where events came from, by the id that they carry.

use std::collections::BTreeMap;
use unitape_model::{Event, Field, Kind, Value};

/// A source definition, as far as lines show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceName<'a> {
    /// Name of the feed.
    pub feed: &'a str,
    /// Name of the file, without its directory.
    pub file: &'a str,
    /// What is added to an event's offset, in bytes.
    pub base: u64,
}

/// Looks sources up.
pub trait SourceNames {
    /// The source of this id, if it is known.
    fn source(&self, id: u32) -> Option<SourceName<'_>>;
}

/// Knows no source.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSources;

impl SourceNames for NoSources {
    fn source(&self, _id: u32) -> Option<SourceName<'_>> {
        None
    }
}

/// The sources that a tape has defined so far.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    by_id: BTreeMap<u32, Defined>,
}

#[derive(Clone, Debug)]
struct Defined {
    feed: String,
    file: String,
    base: u64,
}

impl Sources {
    /// Takes over a definition; false when `event` is not a whole [`Kind::Source`].
    pub fn define(&mut self, event: &Event<'_>) -> bool {
        if event.kind() != Kind::Source {
            return false;
        }
        let uint = |field| match event.field(field, &mut [0; 36]) {
            Some(Value::UInt(v)) => Some(v),
            _ => None,
        };
        let text = |field| match event.field(field, &mut [0; 36]) {
            Some(Value::Text(t)) => Some(t.to_owned()),
            _ => None,
        };
        let id = uint(Field::Index).and_then(|v| u32::try_from(v).ok());
        let (Some(id), Some(feed), Some(file)) = (id, text(Field::Feed), text(Field::File)) else {
            return false;
        };
        self.by_id.insert(id, Defined { feed, file, base: uint(Field::Base).unwrap_or(0) });
        true
    }

    /// How many are known.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
}

impl SourceNames for Sources {
    fn source(&self, id: u32) -> Option<SourceName<'_>> {
        self.by_id.get(&id).map(|d| SourceName { feed: &d.feed, file: &d.file, base: d.base })
    }
}
