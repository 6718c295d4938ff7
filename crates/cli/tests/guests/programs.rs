//! Programs on which `advise`, `emulate` and `profile` are tried, and the emulator that runs them.

pub mod built;
pub mod known;
pub mod lab;
