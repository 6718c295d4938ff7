//! The kernel's performance events that show how a program uses memory (perf_event_open(2)): page
//! faults and memory samples with data addresses, and the mappings, programs and threads that they
//! belong to.

mod data_source;
mod layout;
mod open;
mod record;
mod recording;
mod ring;
mod unit;

pub use data_source::{DataSource, Operation, ServedBy};
pub use record::{MapRecord, PerfRecord, SampleRecord};
pub use recording::{Batch, Followed, PerfError, Recording, page_faults_allowed};
pub use unit::{MemoryEvent, MemoryUnit, memory_unit};
