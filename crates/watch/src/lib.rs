//! Surveillance: scenarios over the tape, alerts.
