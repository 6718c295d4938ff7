//! The report from outside: synthetic runs in, texts out.

mod runs;

mod browser;
mod comparison;
mod golden;
mod properties;
mod scaling;
mod summary;
mod topology;
