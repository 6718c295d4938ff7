//! The node of single pages of any process.

use numalab_topology::NodeId;
use rustix::io::Errno;

use crate::error::ErrorClass;
use crate::syscall;

/// Pages per system call.
const BATCH_PAGES: usize = 4096;

/// Why the kernel did not tell where the pages of a process are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("move_pages(2) on process {process}: {errno}{}", hint(*.errno))]
pub struct PageNodesError {
    /// The process.
    pub process: u32,
    /// The kernel's answer.
    pub errno: Errno,
}

fn hint(errno: Errno) -> &'static str {
    match errno {
        Errno::PERM | Errno::ACCESS => "; run as root or as the user of that process",
        Errno::NOSYS => "; this kernel is built without CONFIG_MIGRATION or CONFIG_NUMA",
        _ => "",
    }
}

impl PageNodesError {
    /// The class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self.errno {
            Errno::SRCH => ErrorClass::BadInput,
            _ => ErrorClass::Lacking,
        }
    }
}

/// The node of the page at each of these addresses of a process, as `move_pages(2)` tells
/// it without moving anything; `None` for a page that is not in memory.
///
/// # Errors
/// [`PageNodesError`] if the process is gone or another user's.
pub fn page_nodes(process: u32, addresses: &[u64]) -> Result<Vec<Option<NodeId>>, PageNodesError> {
    let failed = |errno| PageNodesError { process, errno };
    let number = libc::pid_t::try_from(process).map_err(|_| failed(Errno::SRCH))?;
    let mut nodes = Vec::with_capacity(addresses.len());
    for batch in addresses.chunks(BATCH_PAGES) {
        let pages: Result<Vec<usize>, _> = batch.iter().copied().map(usize::try_from).collect();
        let pages = pages.map_err(|_| failed(Errno::FAULT))?;
        let mut status = vec![0_i32; pages.len()];
        syscall::nodes_of_pages(number, &pages, &mut status).map_err(failed)?;
        nodes.extend(status.into_iter().map(|status| u32::try_from(status).ok().map(NodeId)));
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_touched_page_has_a_node_and_an_unmapped_one_has_none() {
        let touched = Box::new([1_u8; 4096]);
        let address = touched.as_ptr() as u64;
        // Some containers forbid the call; then it must say so in words.
        match page_nodes(std::process::id(), &[address, 8]) {
            Ok(nodes) => {
                assert!(nodes[0].is_some(), "{nodes:?}");
                assert_eq!(nodes[1], None);
            }
            Err(error) => assert!(error.to_string().contains("move_pages(2)"), "{error}"),
        }
    }

    #[test]
    fn a_process_that_is_not_there_is_bad_input() {
        let error = page_nodes(u32::MAX, &[8]).unwrap_err();
        assert_eq!(error.class(), ErrorClass::BadInput);
        assert!(error.to_string().contains("4294967295"), "{error}");
    }
}
