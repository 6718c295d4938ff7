#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;
pub mod guests;
pub mod heap;
mod looker;
pub mod nodes;
pub mod process;
pub mod ranks;
mod repeat;
mod watch;

pub use error::ExploreError;
pub use guests::read_guests;
pub use heap::read_heap;
pub use looker::{Looker, Subject};
pub use nodes::{read_nodes, read_nodes_since};
pub use process::{read_process, read_process_on};
pub use ranks::read_ranks;
pub use repeat::{each, while_met};
pub use watch::watch;
