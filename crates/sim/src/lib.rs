//! Seeded markets whose truth is known.
