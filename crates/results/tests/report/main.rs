//! The report from outside: synthetic runs in, text out.

mod results;
mod runs;
mod studies;

mod browser;
mod capture;
mod comparison;
mod golden;
mod memory;
mod properties;
mod scaling;
mod study;
mod summary;
mod topology;
