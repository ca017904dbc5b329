//! Any bytes, as a source of each shipped sort: no panic, whole frames, and an account that closes.

use std::sync::LazyLock;
use unitape_feed::{Format, Mapping};

static FORMATS: LazyLock<Vec<Format>> = LazyLock::new(|| {
    // Those of a handler have no channels: they are what mappings of handlers are like.
    let whole = Mapping::all_built_in().filter(|m| m.fast.is_none());
    let mapped = whole.map(|m| Format::from_mapping(m.clone()).expect("shipped"));
    mapped.chain([Format::events()]).collect()
});

pub fn run(bytes: &[u8]) {
    let Some((sort, bytes)) = bytes.split_first() else { return };
    let format = &FORMATS[usize::from(*sort) % FORMATS.len()];
    unitape_feed::try_bytes(format, bytes).expect("shipped mappings compile");
}
