//! From sources of bytes to the tape: framing, mapping, quarantine, consolidation.
