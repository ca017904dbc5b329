//! Bytes to fields and back, sans I/O, one module per format.
