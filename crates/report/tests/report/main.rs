//! The report from outside: synthetic runs in, texts out.

mod runs;

mod golden;
