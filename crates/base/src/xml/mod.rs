//! Parts that readers of XML share: the loops over its bytes, and references in text.

pub mod reference;
mod scan;

pub use scan::{control, is_white, name, ranges_equal, skip_white, starts_name, text};
