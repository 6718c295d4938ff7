//! What the rules find at their borders, and what they leave alone.

mod explore_guests;
mod explore_heap;
mod explore_nodes;
mod explore_process;
mod fleet;
mod published;
mod samples;
