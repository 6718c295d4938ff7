//! Conversion between the topology formats of other tools and the numalab machine model.
//!
//! Every function here is pure: it converts text to [`numalab_topology::Machine`], or the other way
//! round. A reader returns what it understood together with findings about the rest ([`Reading`]);
//! a writer of a format that cannot represent everything reports the losses ([`Written`]).
#![forbid(unsafe_code)]

pub mod architecture;
mod assembly;
pub mod capabilities;
pub mod command_line;
pub mod described;
mod device;
mod distance;
pub mod emulation;
mod error;
pub mod feature;
pub mod gallery;
mod guest;
pub mod hwloc;
pub mod libvirt;
pub mod likwid;
pub mod lscpu;
pub mod machine_toml;
pub mod memory_emulator;
pub mod mess;
pub mod numactl;
mod pasted;
pub mod printed_by;
pub mod qemu;
pub mod rankfile;
mod reading;
mod regular;
pub mod size;
pub mod slurm;
pub mod smbios;
pub mod svg;
pub mod tiers;
mod tool;
pub mod xen;
pub mod xl_info;
mod xml_text;

pub use error::{ReadError, WriteError};
pub use feature::{Carried, Feature};
pub use reading::{Reading, Written};
pub use tool::{TOOL_FORMATS, ToolFormat, ToolInput};
