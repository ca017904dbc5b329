//! Small cases, one line each.
