//! Recognises virtual machines.

use crate::proc::field;
use crate::root::Root;

/// Returns true if the machine is known to be a virtual one.
pub(crate) fn is_guest(root: &Root) -> bool {
    let is_of_xen = root.value("sys/hypervisor/type").is_ok_and(|kind| !kind.is_empty());
    is_of_xen || has_guest_flag(&root.document("proc/cpuinfo").unwrap_or_default())
}

/// Returns true if `/proc/cpuinfo` has the flag that x86 processors show to guests.
pub(crate) fn has_guest_flag(cpuinfo: &str) -> bool {
    let flags = field(cpuinfo, "flags").unwrap_or_default();
    flags.split(' ').any(|flag| flag == "hypervisor")
}
