//! Other tools' topology formats to the numalab machine model and back.
//!
//! Every function here is pure: text in, [`numalab_topology::Machine`] out, or the
//! other way. A reader returns what it understood together with findings
//! about what it did not ([`Reading`]); a writer whose format
//! cannot carry everything says what was lost ([`Written`]).
#![forbid(unsafe_code)]

pub mod architecture;
mod assembly;
pub mod command_line;
mod device;
mod distance;
pub mod dot;
pub mod emulation;
mod error;
pub mod feature;
pub mod gallery;
mod guest;
pub mod hwloc;
pub mod libvirt;
pub mod lscpu;
pub mod machine_toml;
pub mod memory_emulator;
pub mod mess;
pub mod numactl;
mod pasted;
pub mod qemu;
pub mod rankfile;
mod reading;
mod regular;
pub mod size;
pub mod slurm;
pub mod smbios;
pub mod svg;
pub mod tiers;
pub mod xen;
mod xml_text;

pub use error::{ReadError, WriteError};
pub use feature::{Carried, Feature};
pub use guest::{HostNode, HostPlacement};
pub use reading::{Reading, Written};
