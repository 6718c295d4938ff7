//! The numalab command.

fn main() {}
