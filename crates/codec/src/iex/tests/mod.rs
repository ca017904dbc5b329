//! Tests of the codec: vectors by hand, bad input, the twin.

mod cases;
mod twins;
mod vectors;
