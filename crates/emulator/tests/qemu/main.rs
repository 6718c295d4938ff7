//! The plugin in real QEMUs: programs of a few dozen instructions on two nodes.

mod charge;
mod lab;
mod parallel;
mod refusal;
mod stages;
mod table;
mod wait;
