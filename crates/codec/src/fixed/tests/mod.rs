//! Layouts and records that went wrong somewhere, and the fast path against its slow twin.

mod batch;
mod ebcdic;
mod layouts;
mod records;
mod twins;

use super::FixedWidthLayout;
use crate::twin::fixed::check::{ALL, fast};
use std::sync::Arc;

pub fn layout(text: &str) -> Arc<FixedWidthLayout> {
    Arc::new(FixedWidthLayout::parse(text, "l.toml").unwrap_or_else(|e| panic!("{e}")))
}
