//! Memory of CXL devices: for each node a host bridge, a port, a type 3 device and a window of
//! physical addresses.
//!
//! The system finds the devices, makes a region of each and brings it online as a node, with the
//! next number after those in the firmware's tables: nodes of CXL memory come last.

use numalab_memory_model::address::CXL_WINDOW_UNIT;
use numalab_topology::Findings;

use super::FORMAT;
use super::backend::{MemoryBackend, add};
use crate::error::WriteError;
use crate::guest::{Guest, GuestNode};

/// The first bus of a host bridge; each has two buses, its own and that of its port.
const FIRST_BUS: usize = 252;
const BUSES_EACH: usize = 4;
/// The limit that keeps the buses of CXL devices after those of other devices.
const MOST_DEVICES: usize = 16;
const WINDOW_MIB: u64 = CXL_WINDOW_UNIT >> 20;

/// Checks the memory, and reports that no guest learns its performance.
///
/// # Errors
/// [`WriteError::Inexpressible`] for a node with cpus, one before a node of other memory, a size
/// that is not a multiple of 256 MiB, and for more than 16 nodes.
pub(super) fn check(guest: &Guest, findings: &mut Findings) -> Result<(), WriteError> {
    let own = guest.nodes.iter().filter(|node| !node.cxl).count();
    for (index, node) in guest.nodes.iter().enumerate().filter(|(_, node)| node.cxl) {
        let what = match node {
            GuestNode { cpus, .. } if !cpus.is_empty() => {
                format!("cpus {cpus} on node {index}, which is CXL memory")
            }
            _ if index < own => format!("CXL memory on node {index}: expected all CXL nodes last"),
            GuestNode { memory_mib, .. }
                if *memory_mib == 0 || !memory_mib.is_multiple_of(WINDOW_MIB) =>
            {
                format!(
                    "{memory_mib} MiB of CXL memory on node {index}: expected a multiple of \
                     {WINDOW_MIB} MiB"
                )
            }
            _ if index - own >= MOST_DEVICES => {
                format!("CXL memory on node {index}: expected at most {MOST_DEVICES} such nodes")
            }
            _ => continue,
        };
        return Err(WriteError::Inexpressible { format: FORMAT, what });
    }
    let has_costs = guest.access.keys().any(|&(_, target)| guest.nodes[target].cxl);
    if has_costs {
        let message = "QEMU's CXL devices report neither latency nor bandwidth: Linux puts their \
                       memory into its tier for memory of unknown performance";
        findings.note("cxl-performance-unknown", "CXL memory", message);
    }
    Ok(())
}

/// Returns the words for nodes with these memories.
pub(super) fn words(backends: &[MemoryBackend]) -> Vec<String> {
    let mut words = Vec::new();
    if backends.is_empty() {
        return words;
    }
    let window = |(index, backend): (usize, &MemoryBackend)| {
        let size = backend.size_mib;
        format!(",cxl-fmw.{index}.targets.0=cxl{index},cxl-fmw.{index}.size={size}M")
    };
    let windows: String = backends.iter().enumerate().map(window).collect();
    add(&mut words, "-machine", format!("cxl=on{windows}"));
    for (index, backend) in backends.iter().enumerate() {
        backend.add_to(&mut words);
        let (bus, memory) = (FIRST_BUS - BUSES_EACH * index, backend.node);
        let port = format!("cxlport{index}");
        let devices = [
            format!("pxb-cxl,id=cxl{index},bus=pcie.0,bus_nr={bus}"),
            format!("cxl-rp,id={port},bus=cxl{index},port=0,chassis={bus},slot=0"),
            format!(
                "cxl-type3,id=cxlmem{index},bus={port},volatile-memdev=ram{memory},sn={memory}"
            ),
        ];
        devices.into_iter().for_each(|device| add(&mut words, "-device", device));
    }
    words
}
