//! Bounded SPSC rings, the ordered parallel farm, and how to wait.
