#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;
mod finding;
pub mod guests;
pub mod heap;
pub mod nodes;
pub mod process;
mod show;
pub mod spread;
mod watch;

pub use error::ExploreError;
pub use finding::{Finding, Weight};
pub use guests::{GuestView, GuestsView, read_guests};
pub use heap::{HeapView, read_heap};
pub use nodes::{NodesView, read_nodes, read_nodes_since};
pub use process::{MappingKind, ProcessView, read_process, read_process_on};
pub use show::View;
pub use watch::watch;
