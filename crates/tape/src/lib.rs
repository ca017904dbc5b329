//! The log that is the transport: writer, reader, recorder, recovery.
