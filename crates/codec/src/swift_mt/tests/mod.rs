//! The fast path against the slow twin, and small cases of framing and values.

mod cases;
mod fuzz;
mod twins;
