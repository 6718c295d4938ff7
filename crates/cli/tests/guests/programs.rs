//! Programs for tests of `advise`, `emulate` and `profile`, and the emulator that runs them.

pub mod built;
pub mod known;
pub mod lab;
