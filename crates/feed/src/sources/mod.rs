//! The sources of bytes.
//!
//! | module | |
//! |---|---|
//! | `source`, `hash`, `content`, `known_content` | what a source is, what it holds, whether another one holds the same |
//! | `detect` | what a file is, by its content |
//! | `open`, `head` | files: plain, compressed, captures; their first bytes, for blocks that begin further on |
//! | `folder`, `growth` | directories whose files come while a feed runs |
//! | `receive`, `journal` | sockets and pipes, written down as they come |
//! | `archive` | the bytes behind an event, read again |
//! | `link`, `stats` | whether a feed is there, and its figures |

pub mod archive;
pub mod content;
pub mod detect;
pub mod folder;
pub mod growth;
pub mod hash;
pub mod head;
pub mod journal;
pub mod known_content;
pub mod link;
pub mod open;
pub mod receive;
pub mod source;
pub mod stats;
