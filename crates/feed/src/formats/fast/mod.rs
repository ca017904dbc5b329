//! FAST as the format of a feed, in one of two ways.
//!
//! | the mapping has | its messages become events by | module |
//! |---|---|---|
//! | a table `[fast]` | a market-data handler, whose steps are events | `fast_table`, `events` |
//! | a table `[fast_messages]` | the rules of the mapping | `rules` |

mod events;
mod fast_table;
pub mod rules;

pub(crate) use events::{ALONE, SENT_AGAIN};

use crate::formats::format::FormatEntry;
use std::sync::Arc;

/// FAST: a table says which way.
pub const FORMAT: FormatEntry = FormatEntry {
    name: "fast",
    load: |mapping| match (&mapping.fast, &mapping.fast_messages) {
        (Some(_), _) => mapping.load_fast(),
        (None, Some(_)) => rules::load(mapping),
        (None, None) => {
            let message = "format fast needs a table [fast] with channels, or [fast_messages] and rules";
            Err(mapping.refuse_key("format", message.to_owned()))
        }
    },
    build: |mapping| match mapping.fast_messages {
        Some(_) => Ok(Arc::new(rules::FastMappingFormat::new(mapping)?)),
        None => Ok(Arc::new(events::FastChannelsFormat)),
    },
};
