//! The report from outside: synthetic runs in, texts out.

mod runs;

mod browser;
mod comparison;
mod golden;
mod memory;
mod properties;
mod summary;
mod topology;
